"""A micro-batch so small that one task processes it without a shuffle: from lines to outputs, or behind its sources.

The facts of the sources become rows of the operators in the same process, without records in between. So the engine
only plans one job of one task. Rows whose time has not come are buffered as records, as everywhere, and the task reads
them back itself, as it reads the rows of sources that another job has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

import pyarrow

from squall.builders.distributed.exec.ordered_scan_tasks import scan_in_order
from squall.builders.distributed.exec.output_stage import processed_with_outputs
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import ReportTimes
from squall.builders.distributed.exec.routing import WAKE_PORT, Router
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import LOCAL_BUCKET, Span, local_outbox, source_records, wanted_predicates
from squall.builders.distributed.io.engine import Folder
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import (
    BUFFERED,
    ROW,
    WATERMARK_BROADCAST,
    OrderedFact,
    RowBatch,
    Watermark,
    WorkerOutput,
    WorkerRecord,
    as_row_batches,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.builders.runtime.zset import UNIT
from squall.rdf import ALWAYS, FOREVER

_START, _END = itemgetter(-3), itemgetter(-2)


@dataclass(frozen=True)
class SingleTask:
    """The step that processes a micro-batch in a single task. It needs no input.

    Since it has all of each answer, it also does what `change_step` does.

    Attributes:
        program: the physical plan.
        files: the files with rows of the sources: buffered ones, and what the other job has read.
        span: the time up to which instants have been processed, and that up to which they are complete if the sources
            bring nothing later.
        report_times: when snapshots are evaluated.
        ordered_scan_state: the state of ordered scans.
        state: the state of all stages.
        end: the state of the sink nodes.
        parse: reads the sources; None: another job has read them.
        earliest: the time before which events are late (integer ms).
        first: the records that start the program, in its first batch.
    """

    program: Program
    files: Sequence[Folder]
    span: Span
    report_times: ReportTimes
    ordered_scan_state: State
    state: State
    end: State
    parse: Parse | None = None
    earliest: int = ALWAYS
    first: Sequence[WorkerRecord] = ()

    @property
    def __name__(self) -> str:
        return "all in one task" if self.parse else "all stages and the end"

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.program.prepare()
        return to_arrow(self._messages())

    def _messages(self) -> Iterator[WorkerOutput]:
        rows: list[RowBatch] = []
        latest = ALWAYS
        for record in self._coming():
            if isinstance(record, RowBatch) and record.type == ROW:
                rows.append(record._replace(type=BUFFERED) if self.program.needs_complete_instants else record)
            elif isinstance(record, Watermark):
                latest = max(latest, record.latest_time)
            else:
                yield record
        yield Watermark(latest, _latest_time(rows) if self.program.needs_complete_instants else ALWAYS)
        rows += self._stored()
        if self.program.needs_complete_instants and latest > ALWAYS:
            rows.append(RowBatch(WATERMARK_BROADCAST, 0, LOCAL_BUCKET, 0, WAKE_PORT, [(latest - 1, FOREVER, 1)]))
        rows += (RowBatch(ROW, stage, LOCAL_BUCKET, 0, WAKE_PORT, [UNIT]) for stage in (0, OUTPUT_STAGE))
        router = self.program.router()
        work = self.program, self.program.stages, self.span, self.report_times, self.state, self.end
        for output_record in processed_with_outputs(*work, rows):
            yield from (
                _buffered_records(output_record, router)
                if isinstance(output_record, RowBatch) and output_record.type == BUFFERED
                else (output_record,)
            )

    def _coming(self) -> Iterator[WorkerRecord]:
        """Yields the initial records and those of the sources."""
        if self.parse is None:
            return
        yield from self.first
        facts: list[OrderedFact] = []
        parsed = self.parse(iter(()), wanted_predicates(self.program), self.earliest)
        for record in source_records(self.program, self.earliest, parsed, local_outbox):
            if isinstance(record, OrderedFact):
                facts.append(record)
            else:
                yield record
        yield from scan_in_order(self.program, self.ordered_scan_state, facts, local_outbox)

    def _stored(self) -> Iterable[RowBatch]:
        """Yields the rows of the files."""
        batches = chain.from_iterable(map(self.state.read, self.files))
        return (row_batch._replace(type=self.program.ready_type) for row_batch in as_row_batches(batches))


def _buffered_records(row_batch: RowBatch, router: Router) -> Iterator[RowBatch]:
    """Yields the rows to buffer, by their buckets, because another batch may be larger."""
    for routed in router.row_batches((router.ids[row_batch.node], row_batch.port), row_batch.deltas):
        yield routed._replace(type=BUFFERED)


def _latest_time(rows: Iterable[RowBatch]) -> int:
    """Returns the latest time at which any of the rows begins or ends to hold."""
    latest = ALWAYS
    for row_batch in rows:
        ends = filter(FOREVER.__gt__, map(_END, row_batch.deltas))
        latest = max(latest, max(map(_START, row_batch.deltas), default=ALWAYS), max(ends, default=ALWAYS))
    return latest
