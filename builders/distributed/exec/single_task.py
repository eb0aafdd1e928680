"""A micro-batch so small that one task works it off straight through, from lines to answers: nothing is moved about.

What sources hold becomes rows of the operators in the same process: no messages are made of it, and the engine has one
job of one task to plan. Rows whose time has not come are left as messages, as everywhere, and read back by the task
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

import pyarrow

from squall.builders.distributed.exec.ordered_scan_tasks import taken
from squall.builders.distributed.exec.output_stage import worked_and_told
from squall.builders.distributed.exec.report_times import ReportTimes
from squall.builders.distributed.exec.routing import DELIVER, TURNS, WAKE, PhysicalPlan, Router
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import HERE, Span, here, source_messages, wanted
from squall.builders.distributed.io.engine import Folder
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import (
    CLOCK,
    DUE,
    HELD,
    ROW,
    TIME,
    Made,
    Record,
    RowBatch,
    parcels,
    to_arrow,
)
from squall.builders.runtime.zset import UNIT
from squall.rdf import ALWAYS, FOREVER

_START, _END = itemgetter(-3), itemgetter(-2)


@dataclass(frozen=True)
class SingleTask:
    """The worker's function for such a batch, of nothing: what it tells, and what is to be left behind.

    parse: what reads the sources. earliest: before this time (integer ms), events are late. first: the messages that
    start the program, if it starts. waited: the files of rows that have waited until their instant is
    whole. span: up to when instants have been worked off, and are to be, if sources tell of nothing later. state: of
    all levels; end: of the operation nodes.
    """

    program: PhysicalPlan
    parse: Parse
    earliest: int
    first: Sequence[Record | RowBatch]
    waited: Sequence[Folder]
    span: Span
    turns: State
    state: State
    end: State

    __name__ = "all in one task"

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.program.prepare()
        return to_arrow(self._messages())

    def _messages(self) -> Iterator[Made]:
        rows: list[RowBatch] = []
        latest = ALWAYS
        for record in self._coming():
            if isinstance(record, RowBatch) and record.kind == ROW:
                rows.append(record._replace(kind=HELD) if self.program.whole_instants else record)
            elif isinstance(record, Record) and record.kind == TIME:
                latest = max(latest, record.start)
            else:
                yield record
        yield Record(TIME, 0, 0, 0, 0, "", latest, _ends(rows) if self.program.whole_instants else ALWAYS, 0)
        rows += self._waited()
        if self.program.whole_instants and latest > ALWAYS:
            rows.append(RowBatch(CLOCK, 0, HERE, 0, WAKE, [(latest - 1, FOREVER, 1)]))
        rows += (RowBatch(ROW, level, HERE, 0, WAKE, [UNIT]) for level in (0, DELIVER))
        addressing = self.program.addressing()
        program, states = self.program, (self.state, self.end)
        for output_record in worked_and_told(program, program.levels, self.span, ReportTimes(), *states, rows):
            yield from (
                _to_wait(output_record, addressing)
                if isinstance(output_record, RowBatch) and output_record.kind == HELD
                else (output_record,)
            )

    def _coming(self) -> Iterator[Record | RowBatch]:
        """What the program starts with, and what sources hold."""
        yield from self.first
        facts: list[Record] = []
        parsed = self.parse(iter(()), wanted(self.program), self.earliest)
        for record in source_messages(self.program, self.earliest, parsed, here):
            if isinstance(record, Record) and record.level == TURNS:
                facts.append(record)
            else:
                yield record
        yield from taken(self.program, self.turns, facts, here)

    def _waited(self) -> Iterable[RowBatch]:
        """The rows that have waited."""
        batches = chain.from_iterable(self.state.read(file, None) for file in self.waited)
        return (parcel._replace(kind=DUE) for parcel in parcels(batches))


def _to_wait(parcel: RowBatch, addressing: Router) -> Iterator[RowBatch]:
    """Rows that wait, by where they are to be worked off: another batch may be larger."""
    for row_batch in addressing.rows((addressing.ids[parcel.node], parcel.port), parcel.entries):
        yield row_batch._replace(kind=HELD)


def _ends(rows: Iterable[RowBatch]) -> int:
    """The latest time at which any of the rows begins or ends, if it does."""
    latest = ALWAYS
    for parcel in rows:
        ends = filter(FOREVER.__gt__, map(_END, parcel.entries))
        latest = max(latest, max(map(_START, parcel.entries), default=ALWAYS), max(ends, default=ALWAYS))
    return latest
