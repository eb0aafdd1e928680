"""A walk over the nested parts of a rule."""

from __future__ import annotations

from collections.abc import Iterator

from squall.model.expressions import Exists, Negation, Optional, Predicate, Union
from squall.model.sequences import SequenceJoin
from squall.model.systems import Joinable, System
from squall.model.temporal import Temporal

Part = System | Joinable | Predicate


def walk(part: Part) -> Iterator[Part]:
    """Yields a system, joinable or predicate, and all of its descendants."""
    yield part
    for inner in inside(part):
        yield from walk(inner)


def inside(part: Part) -> tuple[Part, ...]:
    """Returns the direct children of a part."""
    match part:
        case System(joinables=joinables, predicates=predicates):
            return (*joinables, *predicates)
        case Union(branches=branches):
            return branches
        case SequenceJoin():
            return part.sides
        case Temporal(system=system):
            return (system,)
        case Negation(joinables=joinables):
            return joinables
        case Optional(system=system, exists=exists):
            return (system, *exists)
        case Exists(system=system):
            return (system,)
        case _:
            return ()
