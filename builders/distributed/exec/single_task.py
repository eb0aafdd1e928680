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

from squall.builders.distributed.exec.ordered_scan_tasks import scan_in_order
from squall.builders.distributed.exec.output_stage import processed_with_outputs
from squall.builders.distributed.exec.report_times import ReportTimes
from squall.builders.distributed.exec.routing import ORDERED_SCAN, OUTPUT_STAGE, WAKE_PORT, PhysicalPlan, Router
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import LOCAL_BUCKET, Span, local_outbox, source_records, wanted_predicates
from squall.builders.distributed.io.engine import Folder
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import (
    BUFFERED,
    READY,
    ROW,
    WATERMARK,
    WATERMARK_BROADCAST,
    Record,
    RowBatch,
    WorkerOutput,
    as_row_batches,
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

    def _messages(self) -> Iterator[WorkerOutput]:
        rows: list[RowBatch] = []
        latest = ALWAYS
        for record in self._coming():
            if isinstance(record, RowBatch) and record.kind == ROW:
                rows.append(record._replace(kind=BUFFERED) if self.program.needs_complete_instants else record)
            elif isinstance(record, Record) and record.kind == WATERMARK:
                latest = max(latest, record.start)
            else:
                yield record
        yield Record(
            WATERMARK, 0, 0, 0, 0, "", latest, _latest_time(rows) if self.program.needs_complete_instants else ALWAYS, 0
        )
        rows += self._waited()
        if self.program.needs_complete_instants and latest > ALWAYS:
            rows.append(RowBatch(WATERMARK_BROADCAST, 0, LOCAL_BUCKET, 0, WAKE_PORT, [(latest - 1, FOREVER, 1)]))
        rows += (RowBatch(ROW, level, LOCAL_BUCKET, 0, WAKE_PORT, [UNIT]) for level in (0, OUTPUT_STAGE))
        router = self.program.router()
        program, states = self.program, (self.state, self.end)
        for output_record in processed_with_outputs(program, program.stages, self.span, ReportTimes(), *states, rows):
            yield from (
                _buffered_records(output_record, router)
                if isinstance(output_record, RowBatch) and output_record.kind == BUFFERED
                else (output_record,)
            )

    def _coming(self) -> Iterator[Record | RowBatch]:
        """What the program starts with, and what sources hold."""
        yield from self.first
        facts: list[Record] = []
        parsed = self.parse(iter(()), wanted_predicates(self.program), self.earliest)
        for record in source_records(self.program, self.earliest, parsed, local_outbox):
            if isinstance(record, Record) and record.level == ORDERED_SCAN:
                facts.append(record)
            else:
                yield record
        yield from scan_in_order(self.program, self.turns, facts, local_outbox)

    def _waited(self) -> Iterable[RowBatch]:
        """The rows that have waited."""
        batches = chain.from_iterable(self.state.read(file, None) for file in self.waited)
        return (row_batch._replace(kind=READY) for row_batch in as_row_batches(batches))


def _buffered_records(row_batch: RowBatch, router: Router) -> Iterator[RowBatch]:
    """Rows that wait, by where they are to be worked off: another batch may be larger."""
    for routed in router.row_batches((router.ids[row_batch.node], row_batch.port), row_batch.entries):
        yield routed._replace(kind=BUFFERED)


def _latest_time(rows: Iterable[RowBatch]) -> int:
    """The latest time at which any of the rows begins or ends, if it does."""
    latest = ALWAYS
    for row_batch in rows:
        ends = filter(FOREVER.__gt__, map(_END, row_batch.entries))
        latest = max(latest, max(map(_START, row_batch.entries), default=ALWAYS), max(ends, default=ALWAYS))
    return latest
