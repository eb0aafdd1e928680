"""Ordered scans: facts that one task has to read in order, by key.

A count window takes all that a stream brings, in order, and so does one whose grid begins at the first triple. A stream
with removals needs the order of what it says of one fact, at one time as well. So sources are read in parallel, as
ever, and such facts go to the task of their stream, or to that of the fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from squall.model import Source
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import Event

_SEQUENCE_SLOT = 1
"""The slot of a `Scan` node's state for windows that follow a stream."""


@dataclass(frozen=True)
class OrderedScan:
    """The ordered scans of a plan. sources: what its ordered `Scan` nodes read, by their ids."""

    sources: Mapping[str, Source]

    def reads(self, event: Event) -> bool:
        """Returns whether an event brings or removes facts for one of them."""
        return any(source.is_affected_by(event) for source in self.sources.values())

    def is_followed(self, stream: str) -> bool:
        """Returns whether a stream is read through a window that depends on all that it brings."""
        return any(source.follows(stream) for source in self.sources.values())

    def partition_key(self, stream: str, cells: Sequence[str | None]) -> str:
        """Returns the key of the facts that one task reads. cells: those of the fact's row."""
        return stream if self.is_followed(stream) else "\n".join(map(str, cells))

    def state_key(self, slot: int, delta: Sequence[str | None]) -> str:
        """Returns the key of the state that such a node keeps in a slot
        (`squall.builders.runtime.operators.scan.ScanOperator`)."""
        stream = str(delta[0])
        return stream if slot == _SEQUENCE_SLOT else self.partition_key(stream, delta[3:-3])

    def describe(self) -> Iterator[str]:
        """Describes what is scanned in order, and by which task, in one line each."""
        for id, source in self.sources.items():
            task = "all of a stream in one task" if source.is_sequential else "each by the task of its own"
            yield f"then, an ordered scan, {task}: {id} {why_ordered_source(source)}"


def ordered_scan_of(plan: Plan) -> OrderedScan:
    """Returns the ordered scans of a plan."""
    reads = ((node.id, node.op.source) for node in plan.nodes if isinstance(node.op, Scan))
    return OrderedScan({id: source for id, source in reads if why_ordered_source(source) is not None})


def why_ordered_source(source: Source) -> str | None:
    """Returns why what a source brings is scanned in order, or None if it need not be."""
    if source.removals:
        return "reads a stream that carries removals"
    window = next((window for window in source.all_windows if window.is_sequential), None)
    return None if window is None else f"reads through the window {window}"
