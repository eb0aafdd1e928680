"""Facts that have to be taken one after the other: which, by which task, and as messages that say in what order.

A window of triples takes all that a stream brings, in order; a stream that carries removals what it says of one fact.
So sources are read in parallel, as ever, and such facts go to the task of their stream, or to that of the fact.
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
from squall.model.windows import CountWindow
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import Event, Fact

_COUNT_WINDOW_SLOT = 1
"""The slot of what a `Scan` node keeps of windows of triples."""


@dataclass(frozen=True)
class OrderedScan:
    """What a plan takes in turn. sources: what its `Scan` nodes read that do so, by their ids."""

    sources: Mapping[str, Source]

    def reads(self, event: Event) -> bool:
        """Whether any of it is brought, or taken back, by an event."""
        return any(source.is_affected_by(event) for source in self.sources.values())

    def counted(self, stream: str) -> bool:
        """Whether a stream is read through a window of triples."""
        return any(source.counts(stream) for source in self.sources.values())

    def together(self, stream: str, cells: Sequence[str | None]) -> str:
        """What facts have in common that one task takes. cells: those of the fact's row."""
        return stream if self.counted(stream) else "\n".join(map(str, cells))

    def of_kept(self, slot: int, entry: Sequence[str | None]) -> str:
        """The same, of what such a node keeps in a slot (`squall.builders.runtime.operators.scan.ScanOperator`)."""
        stream = str(entry[0])
        return stream if slot == _COUNT_WINDOW_SLOT else self.together(stream, entry[3:-3])

    def describe(self) -> Iterator[str]:
        """What is taken in turn, and by which task, as text: a line each."""
        for id, source in self.sources.items():
            counts = any(isinstance(window, CountWindow) for window in source.all_windows)
            task = "all of a stream in one task" if counts else "each by the task of its own"
            yield f"then, facts in turn, {task}: {id} {why_ordered_source(source)}"


def ordered_scan_of(plan: Plan) -> OrderedScan:
    """What a plan takes in turn."""
    reads = ((node.id, node.op.source) for node in plan.nodes if isinstance(node.op, Scan))
    return OrderedScan({id: source for id, source in reads if why_ordered_source(source) is not None})


def why_ordered_source(source: Source) -> str | None:
    """For which reason what a source brings is taken in turn; None: it need not be."""
    if source.removals:
        return "reads a stream that carries removals"
    window = next((window for window in source.all_windows if isinstance(window, CountWindow)), None)
    return None if window is None else f"reads through the window {window}"


# As messages

SplitPosition = tuple[int, str, int]
"""The number of a source, a file, and where the part of it begins that is read."""


class OrderedRecords:
    """Makes messages of facts, in the order in which they come, for a level."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.places: Counter[SplitPosition] = Counter()

    def message(self, place: SplitPosition, event: Event, kind: str, fact: Fact | None, bucket: int = 0) -> Record:
        """A fact, or an event without any. (start: its time; end, weight: where in the file it is.)"""
        source, file, block = place
        number = self.places[place]
        self.places[place] += 1
        cells = fact_row(fact)[:-1] if fact is not None else ()
        row = pack((file, event.stream, event.graph, kind, *cells))
        return Record(ROW, self.level, bucket, source, 0, row, event.time, block, number)


def changes_of(event: Event) -> Iterator[tuple[str, Fact]]:
    """The facts of an event, what is removed first, with what happens to them."""
    yield from (("removed", fact) for fact in event.removed)
    yield from (("fact", fact) for fact in event.facts)


def ordered_events(messages: Iterable[Record]) -> list[Event]:
    """The events of messages in order: what comes at one time, one after the other, is one."""
    turn = map(_change, sorted(messages, key=_sort_key))
    return [event_from_rows(*what, [cells for _, cells in alike]) for what, alike in groupby(turn, key=_change_key)]


_ChangeKey = tuple[int, str, str, str]
"""When something came, its stream and graph, and what happened."""


def _change_key(reason: tuple[_ChangeKey, Sequence[str]]) -> _ChangeKey:
    return reason[0]


def _change(message: Record) -> tuple[_ChangeKey, Sequence[str]]:
    """What a message says, and the row of its fact."""
    _, stream, graph, kind, *cells = map(str, unpack(message.row))
    return (message.start, stream, graph, kind), cells


def _sort_key(message: Record) -> tuple[int, int, str, int, int]:
    """Where among all facts one belongs: by time, then as its source brings it."""
    return message.start, message.node, message.row.partition("\n")[0], message.end, message.weight
