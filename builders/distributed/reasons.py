"""Plans that a distributed engine runs as a whole, not node by node: each of their instants decides the next.

What an update does at an instant is seen by all rules at the next one, which may be the time of no event. Such a plan
is run by one task; or, where no fact has to do with another subject's (`squall.builders.distributed.subjects`), by many
(`squall.builders.distributed.shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from squall.builders.distributed.evaluations import tellers
from squall.builders.distributed.turns import why_in_turn
from squall.operators import Deliver, Feed, Operator, Read, Update
from squall.plan import Node, Plan
from squall.system import Source
from squall.windows import Count, Window


class Reason(NamedTuple):
    """Why a plan is run as it is: a node of it, and what that does."""

    node: Node
    what: str


def as_a_whole(plan: Plan) -> Reason | None:
    """Why the plan is run as a whole; None: it is not."""
    return _first(plan, partial(_decides, plan))


def _decides(plan: Plan, op: Operator) -> str | None:
    """What it is that an operator does at an instant by which it decides what others do, or when they do it."""
    match op:
        case Update():
            return "inserts or deletes facts"
        case Feed(source=source) if any(_moves_on(one, source.stream) for one in _told_whole(plan)):
            return "makes a stream that is read by triples and steps, and told whole"
        case Deliver() | Feed() if op.output == "rstream" and any(not _is_counted(plan, one) for one in op.sources):
            return "is told whole when a window of triples moves on that nobody reads"
    return None


def _is_counted(plan: Plan, source: Source) -> bool:
    """Whether somebody counts the triples of a source's windows that move on by steps."""
    read = [node.op.source for node in plan.nodes if isinstance(node.op, Read)]
    places = ("", *(stream for stream, _ in source.windows))
    stepped = [(place, window) for place in places if _has_steps(window := source.window_of(place))]
    return all(
        any(one.iri == source.iri and one.window_of(place) == window for one in read) for place, window in stepped
    )


def _has_steps(window: Window) -> bool:
    return isinstance(window, Count) and window.step > 1


def _told_whole(plan: Plan) -> Iterator[Source]:
    """The sources of all that is told whole."""
    for op in tellers(plan).values():
        yield from op.sources


def _moves_on(source: Source, stream: str) -> bool:
    """Whether a stream is read by so many triples, and not triple by triple."""
    window = source.window_of(stream)
    return source.counts(stream) and _has_steps(window)


def in_order(plan: Plan) -> Reason | None:
    """Why one task has to run the plan, where facts are not taken in turn (`squall.builders.distributed.turns`), and
    streams not made, by tasks of their own; None: it need not."""
    return _first(plan, _needs_order)


def _needs_order(op: Operator) -> str | None:
    match op:
        case Read(source=source):
            return why_in_turn(source)
        case Update():
            return "inserts or deletes facts"
        case Feed():
            return "makes a stream that is read again"
    return None


def _first(plan: Plan, why: Callable[[Operator], str | None]) -> Reason | None:
    found = (Reason(node, what) for node in plan.nodes if (what := why(node.op)) is not None)
    return next(found, None)
