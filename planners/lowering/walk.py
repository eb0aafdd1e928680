"""The parts of a rule: a walk over all that is nested in it."""

from __future__ import annotations

from collections.abc import Iterator

from squall.model import Exists, Joinable, Negation, Optional, Predicate, System, Union

Part = System | Joinable | Predicate


def walk(part: Part) -> Iterator[Part]:
    """A system, joinable or predicate, and all of those in it."""
    yield part
    for inner in inside(part):
        yield from walk(inner)


def inside(part: Part) -> tuple[Part, ...]:
    """What is directly in a part."""
    match part:
        case System(joinables=joinables, predicates=predicates):
            return (*joinables, *predicates)
        case Union(branches=branches):
            return branches
        case Negation(joinables=joinables):
            return joinables
        case Optional(system=system, exists=exists):
            return (system, *exists)
        case Exists(system=system):
            return (system,)
        case _:
            return ()
