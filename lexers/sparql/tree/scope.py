"""Scope: the variables that a part of a tree mentions, binds and projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from squall.errors import Origin
from squall.lexers.sparql.tree.events import Event, EventSequence, Match
from squall.lexers.sparql.tree.expressions import TIMESTAMP, Call, Timestamp
from squall.lexers.sparql.tree.groups import (
    Bind,
    Element,
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    Service,
    StreamWindow,
    SubSelect,
    TriplesBlock,
    Union,
    Values,
    Window,
)
from squall.lexers.sparql.tree.printing import is_unnamed
from squall.lexers.sparql.tree.sequences import Occurrence, StepCall, StepName, TimePattern
from squall.model import Variable
from squall.rdf import Term

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.queries import SelectQuery

_Part = TypeVar("_Part")


def mentioned(part: object) -> frozenset[Variable]:
    """Returns all variables in a part of a tree, in scope or not."""
    return frozenset(_inside(part, Variable))


def substituted(part: Any, name: Variable, term: Term) -> Any:
    """Returns a part of a tree in which a term is in place of a variable."""
    if part == name and isinstance(part, Variable):
        return term
    if isinstance(part, tuple):
        return tuple(substituted(child, name, term) for child in part)
    if is_dataclass(part) and not isinstance(part, type):
        values = {child.name: substituted(getattr(part, child.name), name, term) for child in fields(part)}
        return replace(part, **values)
    return part


def assigned(part: object) -> frozenset[Variable]:
    """Returns the variables in a part of a tree to which something else than a pattern may give a value: those of BIND
    and VALUES, and all of subqueries."""
    binds = frozenset(bind.variable for bind in _inside(part, Bind))
    tables = (frozenset(table.variables) for table in _inside(part, Values))
    return binds.union(*tables, *map(mentioned, _inside(part, SubSelect)))


def stream_windows(part: object) -> tuple[StreamWindow, ...]:
    """Returns all stream windows inside of a part of a tree (CQELS-QL), in the order of the text."""
    return tuple(_inside(part, StreamWindow))


def reads_by_name(part: object) -> bool:
    """Returns whether a part of a tree has patterns over named graphs or windows (``GRAPH``, ``WINDOW``)."""
    return any(True for kind in (Graph, Window) for _ in _inside(part, kind))


def time_patterns(part: object) -> tuple[TimePattern, ...]:
    """Returns all patterns over time inside of a part of a tree, in the order of the text."""
    return tuple(_inside(part, TimePattern))


def event_sequences(part: object) -> tuple[EventSequence, ...]:
    """Returns all conditions ``SEQ(...)`` inside of a part of a tree (CQELS-QL), in the order of the text."""
    return tuple(_inside(part, EventSequence))


def events(part: object) -> tuple[Event | Match, ...]:
    """Returns all elements ``EVENT`` and ``MATCH`` inside of a part of a tree (RSP-QL), in the order of the text."""
    return tuple(_inside(part, Event)) + tuple(_inside(part, Match))


def windows(part: object) -> tuple[Window, ...]:
    """Returns all elements ``WINDOW`` inside of a part of a tree (RSP-QL), in the order of the text."""
    return tuple(_inside(part, Window))


def step_calls(part: object) -> tuple[StepCall, ...]:
    """Returns all calls of functions of steps inside of a part of a tree, in the order of the text."""
    return tuple(_inside(part, StepCall))


def has_pattern(part: object) -> bool:
    """Returns whether an expression has a pattern (``EXISTS``)."""
    return any(True for _ in _inside(part, Group))


def is_over_time(element: Element) -> bool:
    """Returns whether an element of a group is a pattern over time, or a group that has one."""
    return isinstance(element, TimePattern) or (isinstance(element, Group) and is_composite(element))


def is_composite(group: Group) -> bool:
    """Returns whether a group has a pattern over time of its own."""
    return any(map(is_over_time, group.elements))


def step_names(part: object) -> tuple[StepName, ...]:
    """Returns the names of all steps inside of a part of a tree (CT-SPARQL), in the order of the text."""
    return tuple(step.name for step in _inside(part, Occurrence) if step.name is not None)


def timestamp_places(part: object) -> tuple[Origin | None, ...]:
    """Returns where the function ``timestamp`` is called inside of a part of a tree (C-SPARQL)."""
    calls = [call.origin for call in _inside(part, Call) if call.function == TIMESTAMP]
    return (*(call.origin for call in _inside(part, Timestamp)), *calls)


def _inside(part: object, kind: type[_Part]) -> Iterator[_Part]:
    """Yields all parts of a type in a part of a tree."""
    if isinstance(part, kind):
        yield part
    if isinstance(part, tuple):
        for child in part:
            yield from _inside(child, kind)
    elif is_dataclass(part):
        for child in fields(part):
            yield from _inside(getattr(part, child.name), kind)


def in_scope(element: Element) -> tuple[Variable, ...]:
    """Returns the variables in scope of an element, each once, in the order of the text.

    They do not include blank nodes (SPARQL 1.1 Query, section 18.2.1).
    """
    return tuple(dict.fromkeys(_bound(element)))


def _bound(element: Element) -> Iterable[Variable]:
    # In one piece: a flat match, as in SPARQL 1.1, section 18.2.1.
    match element:
        case TriplesBlock(triples=triples):
            slots = [
                slot
                for triple in triples
                for slot in (triple.subject, triple.predicate, triple.object, triple.start, triple.end)
            ]
            return [slot for slot in slots if isinstance(slot, Variable) and not is_unnamed(slot)]
        case Group(elements=elements):
            return [name for inner in elements for name in _bound(inner)]
        case Union(branches=branches):
            return [name for branch in branches for name in _bound(branch)]
        case Optional(group=group) | Event(group=group):
            return _bound(group)
        case Graph() | Window() | StreamWindow() | Service():
            name, group = element.name, element.group
            return [*([name] if isinstance(name, Variable) else []), *_bound(group)]
        case Bind(variable=variable):
            return [variable]
        case Values(variables=variables):
            return variables
        case SubSelect(query=query):
            return shown(query)
        case TimePattern(chains=chains):
            chains_wanted = [conjunct.chain for conjunct in chains if conjunct.wanted]
            return [name for chain in chains_wanted for step in chain.occurrences for name in _bound_by_step(step)]
        case Filter() | Minus() | Match():
            return []


def _bound_by_step(step: Occurrence) -> Iterable[Variable]:
    if step.iteration is None:
        return _bound(step.group)
    keys = _bound(step.group) if step.iteration.keys is None else step.iteration.keys
    return (*keys, *(measure.variable for measure in step.iteration.measures))


def shown(query: SelectQuery) -> tuple[Variable, ...]:
    """Returns the variables of a query's solutions, in the order of selection."""
    if query.items is not None:
        return tuple(item.variable for item in query.items)
    added = [addition.variable for clause in query.modifiers.aggregates for addition in clause.additions]
    after = query.values.variables if query.values else ()
    return tuple(dict.fromkeys([*in_scope(query.where), *added, *after]))
