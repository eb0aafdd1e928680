"""Queries on a system: its rules, documents, streams and warnings, and the variables that its parts make visible."""

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
    Negation,
    Optional,
    Predicate,
    TableFunction,
    Union,
)
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Variable
from squall.model.sequences import Iteration, SequenceJoin
from squall.model.systems import Document, Joinable, Stream, System
from squall.model.temporal import At, Temporal


def rules(system: System) -> Iterator[System]:
    """Yields the systems with consequences, in the order of the program."""
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        yield from rules(subsystem)


def documents(system: System) -> tuple[Document, ...]:
    """Returns the documents of a program, each once, in the order of the program."""
    nested = (document for subsystem in system.subsystems for document in documents(subsystem))
    return tuple(dict.fromkeys((*system.documents, *nested)))


def streams(system: System) -> tuple[Stream, ...]:
    """Returns the streams that a program names as such, each once, in the order of the program."""
    nested = (stream for subsystem in system.subsystems for stream in streams(subsystem))
    return tuple(dict.fromkeys((*system.streams, *nested)))


def warnings(system: System) -> tuple[SquallError, ...]:
    """Returns the warnings of a program, in its order."""
    return (*system.warnings, *(warning for subsystem in system.subsystems for warning in warnings(subsystem)))


def has_patterns(part: System) -> bool:
    """Returns whether patterns read the sources of this part itself."""
    negations = (predicate.joinables for predicate in part.predicates if isinstance(predicate, Negation))
    joinables = (joinable for group in (part.joinables, *negations) for joinable in group)
    return any(isinstance(joinable, FactPattern) for joinable in joinables)


def visible(part: System) -> tuple[Variable, ...]:
    """Returns the variables of a part's solutions that are visible outside, each once, in the order of its text."""
    for consequence in part.consequences:
        if isinstance(consequence, Select):
            return consequence.variables
    if part.grouping is not None:
        return (*part.grouping.keys, *(aggregate.variable for aggregate in part.grouping.aggregates))
    names = [name for joinable in part.joinables for name in variables(joinable)]
    for predicate in part.predicates:
        names += _bound_variables(predicate)
    return tuple(dict.fromkeys(names))


def _bound_variables(predicate: Predicate) -> tuple[Variable, ...]:
    match predicate:
        case Bind(variable=variable):
            return (variable,)
        case TableFunction(variables=names):
            return names
        case Optional(system=system):
            return visible(system)
        case Exists(variable=variable):
            return () if variable is None else (variable,)
        case Filter() | Negation():
            return ()


def is_update(rule: System) -> bool:
    """Returns whether a rule inserts or deletes.

    Such a rule acts on each of its solutions when it begins to hold. All variables together identify a solution.
    """
    return any(isinstance(consequence, Insert | Delete) for consequence in rule.consequences)


def is_initial(rule: System) -> bool:
    """Returns whether a rule has no body, so that what it inserts is there from the start."""
    return not (rule.joinables or rule.predicates or rule.grouping or rule.slice)


def variables(part: Joinable | Expression | None) -> Iterator[Variable]:
    """Yields the variables of an expression, or those of a joinable that are visible from outside.

    They come from left to right, with repetitions.
    """
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
        case Iteration(left=left):
            yield from visible(left)
        case SequenceJoin(left=left, right=right):
            yield from (*visible(left), *visible(right))
        case At(system=system, variable=variable):
            yield from (*visible(system), variable)
        case Temporal(system=system):
            yield from visible(system)
        case System():
            yield from visible(part)
        case str() | None:
            return
