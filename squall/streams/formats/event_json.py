"""Events and outputs as JSON values, for checkpoints.

Named tuples are lists in JSON. The type of a fact does not follow from the length of its list, so that the name of the
type precedes it in an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from squall.contracts import Output
from squall.rdf import Atom, Boolean, Evaluated, Event, Fact, Quad, Solution, Triple

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Triple, Atom, Quad, Solution, Boolean, Evaluated)}


def event_of(record: Sequence[Any]) -> Event:
    """Returns the event of a list."""
    time, facts, stream, removals, graph = record
    return Event(time, tuple(map(fact_of, facts)), stream, tuple(map(fact_of, removals)), graph)


def fact_of(record: Sequence[Any]) -> Fact:
    """Returns the fact of a list. That of an atom has a relation and arguments."""
    return cast(Fact, _create(Atom if len(record) == 2 else Triple, record))


def as_json(output: Output) -> list[Any]:
    """Returns an output as a list."""
    kind = type(output.fact).__name__
    return [output.time, output.rule, f"{output.change} {kind}" if output.change else kind, *output.fact]


def output_of(record: Sequence[Any]) -> Output:
    """Returns the output of a list of `as_json`."""
    time, rule, kind, *parts = record
    change, _, name = kind.rpartition(" ")
    return Output(_create(_KINDS[name], parts), time, rule, change)


def _create(kind: Any, parts: Iterable[Any]) -> Any:
    return kind(*(tuple(part) if isinstance(part, list) else part for part in parts))
