"""Records of facts that are scanned in order, which carry their order.

`squall.builders.distributed.plan.ordered_scan` says which facts those are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from squall.builders.distributed.io.parsing import event_from_rows
from squall.builders.distributed.io.records import OrderedFact
from squall.builders.runtime.serde import pack, unpack
from squall.builders.runtime.zset import fact_row
from squall.rdf import Event, Fact

SplitPosition = tuple[int, str, int]
"""The number of a source, a file, and where the part of it begins that is read."""


class OrderedRecords:
    """Makes records of facts for a stage, in the order in which the facts arrive."""

    def __init__(self, stage: int) -> None:
        self.stage = stage
        self.places: Counter[SplitPosition] = Counter()

    def record(self, place: SplitPosition, event: Event, kind: str, fact: Fact | None, bucket: int = 0) -> OrderedFact:
        """Returns the record of a fact, or of an event without facts."""
        source, file, block = place
        number = self.places[place]
        self.places[place] += 1
        cells = fact_row(fact)[:-1] if fact is not None else ()
        row = pack((file, event.stream, event.graph, kind, *cells))
        return OrderedFact(self.stage, bucket, source, row, event.time, block, number)


def changes_of(event: Event) -> Iterator[tuple[str, Fact]]:
    """Yields the facts of an event with what happens to them, removals first."""
    yield from (("removed", fact) for fact in event.removed)
    yield from (("fact", fact) for fact in event.facts)


def ordered_events(records: Iterable[OrderedFact]) -> list[Event]:
    """Returns the events of records, in order. Adjacent facts of one time and stream are one event."""
    turn = map(_change, sorted(records, key=_sort_key))
    return [event_from_rows(*what, [cells for _, cells in alike]) for what, alike in groupby(turn, key=_change_key)]


_ChangeKey = tuple[int, str, str, str]
"""When a fact came, its stream and graph, and what happened to it."""


def _change_key(reason: tuple[_ChangeKey, Sequence[str]]) -> _ChangeKey:
    return reason[0]


def _change(record: OrderedFact) -> tuple[_ChangeKey, Sequence[str]]:
    """Returns what a record says, and the row of its fact."""
    _, stream, graph, kind, *cells = map(str, unpack(record.row))
    return (record.time, stream, graph, kind), cells


def _sort_key(record: OrderedFact) -> tuple[int, int, str, int, int]:
    """Returns the position of a record among all: by time, then as its source brings it."""
    return record.time, record.source, record.row.partition("\n")[0], record.block, record.position
