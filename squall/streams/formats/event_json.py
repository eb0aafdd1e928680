"""Events and outputs that JSON has held: what a checkpoint has of them, as they were.

As named tuples they are lists there. What is in an output does not tell by its length what it is, and so has the name
of its kind in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from squall.contracts import Output
from squall.rdf import Atom, Boolean, Evaluated, Event, Fact, Quad, Solution, Triple

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Triple, Atom, Quad, Solution, Boolean, Evaluated)}


def event_of(record: Sequence[Any]) -> Event:
    """The event of a list."""
    time, facts, stream, removals, graph = record
    return Event(time, tuple(map(fact_of, facts)), stream, tuple(map(fact_of, removals)), graph)


def fact_of(record: Sequence[Any]) -> Fact:
    """The fact of a list: an atom has a relation and arguments."""
    return cast(Fact, _made(Atom if len(record) == 2 else Triple, record))


def as_json(output: Output) -> list[Any]:
    """An output as a list."""
    return [output.time, output.rule, type(output.fact).__name__, *output.fact]


def output_of(record: Sequence[Any]) -> Output:
    """The output of a list that `as_json` gave."""
    time, rule, kind, *parts = record
    return Output(_made(_KINDS[kind], parts), time, rule)


def _made(kind: Any, parts: Iterable[Any]) -> Any:
    return kind(*(tuple(part) if isinstance(part, list) else part for part in parts))
