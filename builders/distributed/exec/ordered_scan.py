"""Ordered scans: facts that one task has to read in order, by key, and the records that carry their order.

A count window takes all that a stream brings, in order, and so does one whose grid begins at the first triple. A stream
with removals needs the order of what it says of one fact, at one time as well. So sources are read in parallel, as
ever, and such facts go to the task of their stream, or to that of the fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from squall.builders.distributed.io.parsing import event_from_rows
from squall.builders.distributed.io.records import ROW, Record
from squall.builders.runtime.serde import pack, unpack
from squall.builders.runtime.zset import fact_row
from squall.model import Source
from squall.model.windows import is_sequential
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import Event, Fact

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
    window = next((window for window in source.all_windows if is_sequential(window)), None)
    return None if window is None else f"reads through the window {window}"


# As messages

SplitPosition = tuple[int, str, int]
"""The number of a source, a file, and where the part of it begins that is read."""


class OrderedRecords:
    """Makes records of facts for a stage, in the order in which the facts arrive."""

    def __init__(self, stage: int) -> None:
        self.level = stage
        self.places: Counter[SplitPosition] = Counter()

    def message(self, place: SplitPosition, event: Event, kind: str, fact: Fact | None, bucket: int = 0) -> Record:
        """Returns the record of a fact, or of an event without facts. `start` is its time; `end` and `weight` are its
        position in the file."""
        source, file, block = place
        number = self.places[place]
        self.places[place] += 1
        cells = fact_row(fact)[:-1] if fact is not None else ()
        row = pack((file, event.stream, event.graph, kind, *cells))
        return Record(ROW, self.level, bucket, source, 0, row, event.time, block, number)


def changes_of(event: Event) -> Iterator[tuple[str, Fact]]:
    """Yields the facts of an event with what happens to them, removals first."""
    yield from (("removed", fact) for fact in event.removed)
    yield from (("fact", fact) for fact in event.facts)


def ordered_events(records: Iterable[Record]) -> list[Event]:
    """Returns the events of records, in order. Adjacent facts of one time and stream are one event."""
    turn = map(_change, sorted(records, key=_sort_key))
    return [event_from_rows(*what, [cells for _, cells in alike]) for what, alike in groupby(turn, key=_change_key)]


_ChangeKey = tuple[int, str, str, str]
"""When a fact came, its stream and graph, and what happened to it."""


def _change_key(reason: tuple[_ChangeKey, Sequence[str]]) -> _ChangeKey:
    return reason[0]


def _change(record: Record) -> tuple[_ChangeKey, Sequence[str]]:
    """Returns what a record says, and the row of its fact."""
    _, stream, graph, kind, *cells = map(str, unpack(record.row))
    return (record.start, stream, graph, kind), cells


def _sort_key(record: Record) -> tuple[int, int, str, int, int]:
    """Returns the position of a record among all: by time, then as its source brings it."""
    return record.start, record.node, record.row.partition("\n")[0], record.end, record.weight
