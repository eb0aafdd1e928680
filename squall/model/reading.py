"""What can be read off a system: its rules, what it names, what can be seen of its parts."""

from __future__ import annotations

from collections.abc import Iterator

from squall.errors import SquallError
from squall.model.consequences import Delete, Insert, Select
from squall.model.expressions import (
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Optional,
    Predicate,
    TableFunction,
    Union,
    Without,
)
from squall.model.patterns import AtomPattern, Pattern, Variable
from squall.model.systems import Document, Joinable, Stream, System


def rules(system: System) -> Iterator[System]:
    """The systems with consequences, in the order of the program."""
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        yield from rules(subsystem)


def documents(system: System) -> tuple[Document, ...]:
    """The documents of a program, each once, in the order of the program."""
    nested = (document for subsystem in system.subsystems for document in documents(subsystem))
    return tuple(dict.fromkeys((*system.documents, *nested)))


def streams(system: System) -> tuple[Stream, ...]:
    """The streams that a program names as such, each once, in the order of the program."""
    nested = (stream for subsystem in system.subsystems for stream in streams(subsystem))
    return tuple(dict.fromkeys((*system.streams, *nested)))


def warnings(system: System) -> tuple[SquallError, ...]:
    """The warnings of a program, in its order."""
    return (*system.warnings, *(warning for subsystem in system.subsystems for warning in warnings(subsystem)))


def visible(part: System) -> tuple[Variable, ...]:
    """The variables of a part's solutions that can be seen from outside, each once, in the order of its text."""
    for consequence in part.consequences:
        if isinstance(consequence, Select):
            return consequence.variables
    if part.grouping is not None:
        return (*part.grouping.keys, *(aggregate.variable for aggregate in part.grouping.aggregates))
    names = [name for joinable in part.joinables for name in variables(joinable)]
    for predicate in part.predicates:
        names += _made(predicate)
    return tuple(dict.fromkeys(names))


def _made(predicate: Predicate) -> tuple[Variable, ...]:
    match predicate:
        case Bind(variable=variable):
            return (variable,)
        case TableFunction(variables=names):
            return names
        case Optional(system=system):
            return visible(system)
        case Exists(variable=variable):
            return () if variable is None else (variable,)
        case Filter() | Without():
            return ()


def is_update(rule: System) -> bool:
    """Whether a rule inserts or deletes: it acts on each of its solutions when it begins to hold, and these are told
    apart by all of their variables."""
    return any(isinstance(consequence, Insert | Delete) for consequence in rule.consequences)


def is_initial(rule: System) -> bool:
    """Whether what a rule inserts is there from the start: it has no body."""
    return not (rule.joinables or rule.predicates or rule.grouping or rule.slice)


def variables(part: Joinable | Expression | None) -> Iterator[Variable]:
    """The variables of a joinable that can be seen from outside, or of an expression: left to right, repetitions
    included."""
    match part:
        case Variable():
            yield part
        case Call(arguments=arguments):
            for argument in arguments:
                yield from variables(argument)
        case Pattern() | AtomPattern():
            yield from (slot for slot in part.slots if isinstance(slot, Variable))
        case Union(branches=branches):
            for branch in branches:
                yield from visible(branch)
        case System():
            yield from visible(part)
        case str() | None:
            return
