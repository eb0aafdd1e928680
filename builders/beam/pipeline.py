"""The pipeline of a bounded run on Beam: from lines to outputs, and reports to the driver, as files in a folder.

Between steps go records (`squall.builders.distributed.io.records`), as Arrow. Their key is an integer: the bucket of
the columns by which the next step is partitioned. The name of an output file is its key, so that a bundle that runs
again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from operator import attrgetter
from typing import Any, Protocol

import pyarrow

from squall.builders.beam import files
from squall.builders.beam.beam_import import beam
from squall.builders.beam.graph import Graph, Step
from squall.builders.distributed.exec.output_stage import change_step, output_step
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.report_times import ReportTimes, add_evaluation_times
from squall.builders.distributed.exec.sharded_plan import ShardTask, shard_records, start_record
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import FORWARD, Span, initial_records, source_step, stage_step
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import (
    DEAD_LETTER,
    INSTANT,
    SOURCE_COUNT,
    WATERMARK,
    Instant,
    Record,
    decode,
    from_arrow,
    to_arrow,
)
from squall.builders.distributed.io.records import WorkerStep as Worker
from squall.builders.distributed.io.splits import Split
from squall.builders.distributed.io.task_output import OUTPUT_ORDER
from squall.builders.distributed.plan.buckets import BUCKET_COUNT, OUTPUT_STAGE, SINGLE_PARTITION
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change
from squall.builders.runtime.report_times import ReportSchedule
from squall.rdf import ALWAYS, FOREVER

ALL = Span(ALWAYS - 1, FOREVER - 1)
"""All of time."""
_EACH = tuple(range(BUCKET_COUNT))
"""Each bucket is a group of its own."""
REPORTS, INSTANTS, ANSWERS = "reports", "instants", "answers"
"""Prefixes of file names: reports about lines, times of output evaluation, and the outputs of the last step. The key
follows."""
_RECORDS_PER_MESSAGE = 20_000
"""The number of records that are sent at once."""
Keyed = tuple[int, bytes]
"""Records in transit, with the key of their group."""
_FOR_DRIVER = {DEAD_LETTER: REPORTS, SOURCE_COUNT: REPORTS, WATERMARK: REPORTS, INSTANT: INSTANTS}
"""The destination of records that are no rows for a node."""


@dataclass(frozen=True)
class Routes:
    """Routes records to steps.

    Attributes:
        tags: the step that receives the rows of a node, by the number of the node.
        otherwise: the step that receives all rows, or "".
        keyed: the steps whose rows are grouped by key; the rows of others are one group.
    """

    tags: Mapping[int, str] = field(default_factory=dict)
    otherwise: str = ""
    keyed: frozenset[str] = frozenset()

    @property
    def all(self) -> tuple[str, ...]:
        """All destinations of records."""
        return (REPORTS, INSTANTS, *dict.fromkeys(self.tags.values()), *filter(None, [self.otherwise]))

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Any]:
        """Yields the records of batches, grouped by destination."""
        boxes: dict[tuple[str, int], list[Record]] = {}
        for record in from_arrow(batches):
            if record.type == WATERMARK and record.start == ALWAYS:  # it is not that of an event
                continue
            tag = _FOR_DRIVER.get(record.type) or self.otherwise or self.tags[record.node]
            place = tag, record.bucket if tag in self.keyed else 0
            box = boxes.setdefault(place, [])
            box.append(record)
            if len(box) == _RECORDS_PER_MESSAGE:
                yield _sent(place, boxes.pop(place))
        for place, box in boxes.items():
            yield _sent(place, box)


def _sent(place: tuple[str, int], records: Sequence[Record]) -> Any:
    tag, key = place
    return beam.pvalue.TaggedOutput(tag, (key, _encoded(to_arrow(records))))


def _encoded(batches: Iterable[pyarrow.RecordBatch]) -> bytes:
    sink = pyarrow.BufferOutputStream()
    files.write_to(sink, batches)
    return bytes(sink.getvalue())


def _decoded(parts: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
    for part in parts:
        yield from pyarrow.ipc.open_stream(part)


@dataclass(frozen=True)
class Input:
    """The input of a pipeline.

    Attributes:
        parts: splits of files.
        parse: turns their lines into facts.
        folder: the folder of the output files.
    """

    parts: Sequence[Split]
    parse: Parse
    folder: str

    def read(self, root: Any, name: str, worker: Worker, routes: Routes) -> Any:
        """Returns what the lines of the sources send. The splits are reshuffled before they are read, since one worker
        has created them."""
        parts = root | f"{name}: parts" >> beam.Create(self.parts) | f"{name}: spread" >> beam.Reshuffle()
        read = beam.FlatMap(lambda part: routes(worker(files.read_lines(part))))
        return parts | name >> read.with_outputs(*routes.all)

    def sink(self, kind: str) -> GroupSink:
        """Returns what makes, of a worker's function, the one that writes what it yields of a group into a file."""
        return partial(_writing, self.folder, kind)


class PipelineInput(Protocol):
    """What a pipeline reads, and where its results go: files of a run, or collections of another pipeline."""

    @property
    def parse(self) -> Parse:
        """Turns lines into facts."""
        ...

    def read(self, root: Any, name: str, worker: Worker, routes: Routes) -> Any:
        """Returns what the lines of the input send."""
        ...

    def sink(self, kind: str) -> GroupSink:
        """Returns what makes, of a worker's function, the one that emits the records of a group."""
        ...


GroupSink = Callable[[Callable[[Iterable[bytes]], Iterable[pyarrow.RecordBatch]]], Callable[["Group"], Iterator[Any]]]
Group = tuple[int, Iterable[bytes]]
"""All records of a key."""


def _writing(
    folder: str, name: str, worker: Callable[[Iterable[bytes]], Iterable[pyarrow.RecordBatch]]
) -> Callable[[Group], Iterator[Any]]:
    def write(group: Group) -> Iterator[Any]:
        files.write(folder, f"{name}-{group[0]}", worker(group[1]))
        return iter(())

    return write


def _routed(grouped: Any, name: str, worker: Worker, routes: Routes) -> Any:
    """Returns what a step sends."""
    work = beam.FlatMap(lambda group: routes(worker(_decoded(group[1]))))
    return grouped | name >> work.with_outputs(*routes.all)


def _grouped(collections: Sequence[Any], name: str) -> Any:
    """Groups the output of several steps by key. The key type is declared as an integer, because Beam's encoding of an
    undeclared type may differ between processes."""
    rows = collections | f"{name}: rows" >> beam.Flatten().with_output_types(Keyed)
    return rows | f"{name}: by key" >> beam.GroupByKey()


def _write_reports(grouped: Any, sink: GroupSink, name: str) -> Any:
    """Writes records for the driver. Returns what the sink emits."""
    return grouped | f"{name}: written" >> beam.FlatMap(sink(_decoded))


# Plans whose rows are grouped by key


class KeyedPipeline:
    """Builds the pipeline of a plan whose rows are grouped by key, step by step."""

    def __init__(self, root: Any, graph: Graph, program: Program, pipeline_input: PipelineInput) -> None:
        self.root = root
        self.graph = graph
        self.program = program
        self.given = pipeline_input
        self.numbers = program.physical.numbers
        self.keyed = frozenset(step.name for step in graph.steps)
        self.sent: dict[str, Any] = {}
        """The output of each step, by destination."""
        self.axioms: dict[str, list[Keyed]] = {}
        """The records that axioms send, by destination."""
        self.emitted: list[Any] = []
        """What the sinks of the input emit."""

    def build(self) -> None:
        """Adds all steps to the pipeline."""
        for tagged in self._routes(self.graph.steps)(to_arrow(initial_records(self.program))):
            self.axioms.setdefault(tagged.tag, []).append(tagged.value)
        sources = self.graph.sources.name
        worker = source_step(self.program, ALWAYS, self.given.parse)
        self.sent[sources] = self.given.read(self.root, sources, worker, self._routes_of(sources))
        for step in self.graph.stages:
            if (rows := self._rows(step)) is not None:
                self.sent[step.name] = _routed(rows, step.name, self._worker(step), self._routes_of(step.name))
        self._report([self.sent[sources][REPORTS]], REPORTS)
        self._end(self._rows(self.graph.end), self.sent[sources][INSTANTS])

    def _worker(self, step: Step) -> Worker:
        assert step.stage is not None
        assert not step.stage.recursive, "a pipeline has no loops"
        return stage_step(self.program, [step.stage], FORWARD, ALL, State((step.stage.number,), _EACH))

    def _routes_of(self, sender: str) -> Routes:
        return self._routes(step for step in self.graph.steps if sender in self.graph.senders.get(step.name, ()))

    def _routes(self, receivers: Iterable[Step]) -> Routes:
        return Routes({self.numbers[id]: step.name for step in receivers for id in step.nodes}, keyed=self.keyed)

    def _rows(self, step: Step) -> Any:
        """Returns the rows for a step, grouped; None if there can be none."""
        name = step.name
        collections = [self.sent[sender][name] for sender in self.graph.senders[name] if sender in self.sent]
        if name in self.axioms:
            collections.append(self.root | f"{name}: axioms" >> beam.Create(self.axioms[name]))
        return _grouped(collections, name) if collections else None

    def _end(self, rows: Any, instants: Any) -> None:
        """Adds the output step. Only all streams together can say when a snapshot (`rstream`) is evaluated."""
        name, program, sink = self.graph.end.name, self.program, self.given.sink(ANSWERS)
        tells_whole = any(op.output == "rstream" for _, op in program.plan.sinks)
        if tells_whole and rows is not None:
            self.emitted.append(rows | name >> beam.FlatMap(_write_answers, self._known(rows, instants), program, sink))
        elif tells_whole:
            self._report([instants], INSTANTS)
        elif rows is not None:
            self.emitted.append(rows | name >> beam.FlatMap(sink(_answering(program, ReportTimes()))))

    def _report(self, collections: Sequence[Any], name: str) -> None:
        self.emitted.append(_write_reports(_grouped(collections, name), self.given.sink(name), name))

    def _known(self, rows: Any, instants: Any) -> Any:
        """Computes the evaluation times of snapshots, for the output step and for the driver. For a snapshot on change,
        each group first reports when its part has changed."""
        name, program = self.graph.end.name, self.program
        collections = [instants]
        if any(reports_on_change(op) for _, op in program.plan.sinks):
            report_times = _side(
                _grouped(collections, f"{name}: evaluated"), f"{name}: when evaluated", program, _evaluated
            )
            collections.append(rows | f"{name}: changes" >> beam.FlatMap(_changes, report_times, program))
        grouped = _grouped(collections, INSTANTS)
        self.emitted.append(_write_reports(grouped, self.given.sink(INSTANTS), INSTANTS))
        return _side(grouped, f"{name}: report times", program, evaluations)


When = Callable[[Program, Collection[Record]], ReportTimes]


def _side(grouped: Any, name: str, program: Program, when: When) -> Any:
    """Makes evaluation times from records: a side input that is computed once."""
    report_times = grouped | name >> beam.Map(lambda group: when(program, list(from_arrow(_decoded(group[1])))))
    return beam.pvalue.AsSingleton(report_times, default_value=when(program, ()))


def evaluations(program: Program, records: Collection[Record]) -> ReportTimes:
    """Returns the times at which snapshots are output, as far as records for the driver say."""
    changed_times = {(record.node, record.start) for record in records if record.type == INSTANT and not record.row}
    return _evaluated(program, records).reported(program.plan, changed_times)


def _evaluated(program: Program, records: Collection[Record]) -> ReportTimes:
    """Returns the times at which snapshots are evaluated."""
    plan, numbers = program.plan, program.physical.numbers
    instants = {numbers[node.id]: ReportSchedule(op) for node, op in plan.sinks if op.output == "rstream"}
    reported = {decode(record, Instant) for record in records if record.type == INSTANT}
    add_evaluation_times(instants, (instant for instant in reported if instant.subject))
    return ReportTimes.upto(instants, ALL.end)


_OF_THE_END = State((OUTPUT_STAGE,), SINGLE_PARTITION)
"""The state of the output step, which stores nothing."""


def _changes(group: Group, at: ReportTimes, program: Program) -> Iterator[Keyed]:
    """Yields when the part of an answer that a group has changed."""
    yield 0, _encoded(change_step(program, ALL, at, _OF_THE_END)(_decoded(group[1])))


def _write_answers(group: Group, at: ReportTimes, program: Program, sink: GroupSink) -> Iterator[Any]:
    """Writes the outputs of a group at report times."""
    return sink(_answering(program, at))(group)


def _answering(
    program: Program, report_times: ReportTimes
) -> Callable[[Iterable[bytes]], Iterator[pyarrow.RecordBatch]]:
    """Returns a function that makes the outputs of a group, in order."""
    worker = output_step(program, ALL, report_times, _OF_THE_END)

    def answer(parts: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
        records = sorted(from_arrow(worker(_decoded(parts))), key=_output_order)
        return to_arrow(records)

    return answer


_output_order: Callable[[Record], Any] = attrgetter(*OUTPUT_ORDER)
"""The sort key of an output among all outputs."""


# Plans that one group runs


def add_whole_plan(
    root: Any, graph: Graph, program: Program, pipeline_input: PipelineInput, task: ShardTask
) -> list[Any]:
    """Adds a plan that one group runs to a pipeline. task: what the group does. Returns what the sinks emit."""
    name, routes = graph.end.name, Routes(otherwise=graph.end.name)
    worker = _finding(program, pipeline_input.parse, task.steps)
    collections = pipeline_input.read(root, graph.sources.name, worker, routes)
    start = root | f"{name}: start" >> beam.Create([tagged.value for tagged in routes(to_arrow([start_record()]))])
    rows = _grouped([collections[name], start], name)
    outputs = rows | name >> beam.FlatMap(pipeline_input.sink(ANSWERS)(lambda parts: task(_decoded(parts))))
    reports = _grouped([collections[REPORTS]], REPORTS)
    return [outputs, _write_reports(reports, pipeline_input.sink(REPORTS), REPORTS)]


def _finding(program: Program, parse: Parse, steps: int) -> Worker:
    def find(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(shard_records(program.plan, ALWAYS, parse(batches, None, ALWAYS), steps))

    return find


# What comes of it


def worker_reports(folder: str) -> list[Record]:
    """Returns the records that workers have reported to the driver."""
    paths = [path for name in (REPORTS, INSTANTS) for path in files.names(f"{folder}/{name}-*")]
    return [record for path in paths for record in from_arrow(files.read(path))]


def answers(folder: str) -> Iterator[Record]:
    """Yields the outputs of the last step, merged in order from a file for each group."""
    paths = files.names(f"{folder}/{ANSWERS}-*")
    return merge(*(from_arrow(files.read(path)) for path in paths), key=_output_order)
