"""Plans that are run as a whole inside a distributed engine, by one task, or by many, each for a share of all subjects.

The sources are read and parsed in parallel, as ever, and the facts that the plan reads go to the task of their share,
in order, which does with them what the iterator builder does (`squall.builders.local.event_loop`); what is little is
read by that task itself. What it keeps goes into the store as messages, as all state does, and stays in the worker as a
replica of that (`squall.builders.distributed.exec.state_cache`). Into how many shares a plan falls is decided when a
run begins."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import NamedTuple

import pyarrow

from squall.builders.distributed.exec import state_cache
from squall.builders.distributed.exec.ordered_scan import OrderedRecords, changes_of, ordered_events
from squall.builders.distributed.exec.routing import OUTPUT_STAGE, SINGLE_PARTITION, PhysicalPlan
from squall.builders.distributed.exec.worker import metric_records
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Engine, Files, Folder, Frame, NodeMetrics, TaskReport
from squall.builders.distributed.io.parsing import DeadLetter, Parse, Parsed, dead_letter_record, late_dead_letter
from squall.builders.distributed.io.records import (
    BATCH_LOCAL,
    DEAD_LETTER,
    INSTANT,
    ROW,
    ROWS_PER_BATCH,
    SOURCE_COUNT,
    SOURCE_STEP,
    STATE,
    Record,
    RowBatch,
    WorkerStep,
    constant_step,
    from_arrow,
    to_arrow,
)
from squall.builders.distributed.plan.shardability import shard_of, why_not_shardable
from squall.builders.local.event_loop import Running
from squall.builders.runtime.operators.scan import emits_snapshots, wanted
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.serde import pack_output, unpack_outputs
from squall.builders.runtime.state import COMPACT, State
from squall.builders.runtime.zset import Delta
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Term, Triple, heartbeat

_TIMES_PORT = 1
"""The port of messages that say when events came, whatever they bring."""


@dataclass
class Progress:
    """How far a job has come: what the commit of its last batch says. All times are integer ms.

    passed: the time that has been worked off. earliest: what is before is late. due: when something is left to do, if
    nothing comes; FOREVER: never.
    number: Spark's own number of the last micro-batch; -1 before the first. base: the batch that wrote its state as a
    whole; those since have written what was added. shares: how many there are.
    """

    passed: int = ALWAYS - 1
    earliest: int = ALWAYS
    due: int = ALWAYS
    number: int = -1
    base: int = 0
    shares: int = 1


class Shards:
    """The batches of such a job, one after the other; the state between them lies in the store. done: how many are
    committed. steps: how often updates may act without an event in between. most: how many rows of state a worker holds
    from one batch to the next, at most. few: up to how many bytes the tasks read by themselves (-1: none)."""

    def __init__(
        self,
        engine: Engine,
        store: Files,
        program: PhysicalPlan,
        max_update_steps: int,
        max_cached_rows: int = 0,
        max_single_task_bytes: int = -1,
    ) -> None:
        self.engine = engine
        self.store = store
        self.program = program
        self.max_update_steps = max_update_steps
        self.max_single_task_bytes = max_single_task_bytes
        self.committed_count = len(store.numbers("commits"))
        last_commit = store.read("commits", f"{self.committed_count - 1}.json")
        self.progress = Progress(**last_commit) if last_commit else Progress(shares=self._shard_count())
        self.next_progress = self.progress
        folders = [("runs", batch, "work") for batch in range(self.progress.base, self.committed_count)]
        self.state_versions = state_cache.StateVersions(store, folders, engine.reader(), max_cached_rows)
        self.report = TaskReport()
        """What was told of the sources,"""
        self.task_report = TaskReport()
        """and by the task."""
        self.output_files: tuple[str, ...] = ()
        """The files that hold the answers of the batch."""
        self.node_metrics = NodeMetrics(program.plan)

    def _shard_count(self) -> int:
        """Into how many the job falls: a task for each of as many as there can be at once."""
        return self.engine.partitions if why_not_shardable(self.program.plan) is None else 1

    @property
    def unfinished(self) -> bool:
        """Whether there is something to do when no more events will come."""
        return self.progress.due < FOREVER

    def initial_records(self) -> Sequence[Record | RowBatch]:
        """The messages that start the program."""
        return [start_record()]

    def initial_step(self, first: Sequence[Record | RowBatch]) -> WorkerStep:
        """The worker's function that makes these messages, of nothing."""
        return self.engine.with_record_files(constant_step(first), self._folder("facts"))

    def source_step(self, parse: Parse) -> WorkerStep:
        """The worker's function from lines to messages."""
        program, earliest, steps = self.program, self.progress.earliest, self.max_update_steps
        selection = ShardSelection(self.progress.shares)

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            program.prepare()
            return to_arrow(shard_records(program.plan, earliest, parse(batches, None, earliest), steps, selection))

        step.__name__ = SOURCE_STEP
        return self.engine.with_record_files(step, self._folder("facts"))

    def fits_single_task(self, size: int) -> bool:
        """Whether each task reads all of a batch of so many bytes by itself."""
        return size <= self.max_single_task_bytes

    def process_in_single_task(
        self, parse: Parse, first: Sequence[Record | RowBatch] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Works such a batch off, as `work` does. parse: reads the sources. first: the messages that start the program,
        if it starts."""
        self._reset()
        self._run_tasks([ShardInput(parse, tuple(first))] * self.progress.shares, last, keep)
        self.report = self.task_report

    def process(self, records: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Works a batch off. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come for the time being. keep: more
        batches follow, which have to know of this one.
        """
        self._reset()
        if records is not None:
            self.report = self.engine.run(records)
            task_output.write_file_list(self.store, self._folder("facts"), self.report.files)
        folders = [self._folder("facts")]
        files = [task_output.files_of(self.store, ROW, shard, folders) for shard in range(self.progress.shares)]
        if any(files) or self.state_versions.files():
            self._run_tasks([ShardInput(files=tuple(shard_files)) for shard_files in files], last, keep)

    def _reset(self) -> None:
        """A batch is worked off, for the first time or once more."""
        self.store.delete("runs", self.committed_count)
        self.store.delete(*self._output_folder())
        self.state_versions.begin()
        self.output_files, self.report, self.task_report, self.next_progress = (
            (),
            TaskReport(),
            TaskReport(),
            self.progress,
        )

    def _run_tasks(self, unread: Sequence[ShardInput], last: bool, keep: bool) -> None:
        """Runs the tasks. unread: what each has to read, by number of its share."""
        base = self.committed_count if self.committed_count - self.progress.base >= COMPACT else self.progress.base
        steps: list[WorkerStep] = []
        for shard, unread_files in enumerate(unread):
            task = ShardTask(
                self.program, self.progress, self.max_update_steps, first=self.committed_count == 0, last=last,
                whole=base == self.committed_count,
                sharing=ShardSelection(len(unread), shard), unread=unread_files,
                state=self.state_versions.state([shard], SINGLE_PARTITION, keep, self.progress.passed),
            )  # fmt: skip
            steps.append(
                self.engine.with_record_files(
                    self.engine.with_output_files(task, self._output_folder()), self._folder("work")
                )
            )
        self.task_report = self.engine.run_tasks(steps)
        task_output.write_file_list(self.store, self._folder("work"), self.task_report.files)
        self.state_versions.add(self._folder("work"), self.task_report)
        self.output_files = self.task_report.output_files
        self.next_progress = replace(self.progress, **_progress_times(self.task_report), base=base)
        self.node_metrics.add(self.task_report)

    def output_frame(self) -> Frame | None:
        """What the batch has to hand on, as messages: `start` is the time, `spans` the place."""
        return self.engine.output_frame(self._output_folder(), self.output_files)

    def outputs(self) -> Iterator[Output]:
        """The outputs of the batch, in the order of time."""
        yield from unpack_outputs(self.engine.read_outputs(self._output_folder(), self.output_files))

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        self.next_progress.number = self.progress.number if number is None else number
        self.progress = self.next_progress
        self.store.write(asdict(self.progress), "commits", f"{self.committed_count}.json")
        self.state_versions.commit(is_full=self.progress.base == self.committed_count)
        for step in ("facts", "work"):
            for kind in BATCH_LOCAL:
                self.store.delete(*self._folder(step), kind)
        for old in self.store.numbers("runs"):
            if old < self.progress.base:
                self.store.delete("runs", old)
        self.store.delete(*self._output_folder())
        self.committed_count += 1

    def dead_letters(self) -> Iterator[DeadLetter]:
        """The statements of the batch that could not be used."""
        for text in self.engine.stored_rows(DEAD_LETTER, 0, [self._folder("facts"), self._folder("work")]):
            yield DeadLetter(*json.loads(text))

    def _folder(self, step: str) -> Folder:
        return ("runs", self.committed_count, step)

    def _output_folder(self) -> Folder:
        return ("outputs", self.committed_count)


def _progress_times(report: TaskReport) -> dict[str, int]:
    """How far the tasks have come, all together."""
    times_by_source: dict[str, list[int]] = {}
    for name, _, time in report.evaluations:
        times_by_source.setdefault(name, []).append(time)
    return {name: (min if name == "due" else max)(times) for name, times in times_by_source.items()}


# What workers do


class ShardSelection(NamedTuple):
    """Which share of so many, or all of them (own: None)."""

    many: int = 1
    own: int | None = None

    @property
    def numbers(self) -> Sequence[int]:
        """Of those that are meant."""
        return range(self.many) if self.own is None else [self.own]

    def of(self, fact: Fact | None) -> int:
        """The number of that in which a fact is."""
        return shard_of(fact, self.many) if fact is not None and self.many > 1 else 0


_WHOLE_PLAN = ShardSelection()


def start_record() -> Record:
    """The message that starts a program, whatever else comes."""
    return _empty_event_record(Event(ALWAYS, ()), 0)


def _empty_event_record(event: Event, shard: int) -> Record:
    """The message of an event that brings nothing."""
    return OrderedRecords(shard).message((0, "", 0), event, "event", None)


def shard_records(
    plan: Plan, earliest: int, parsed: Iterable[Parsed], steps: int, selection: ShardSelection = _WHOLE_PLAN
) -> Iterator[Record]:
    """The messages that come of what sources held: the facts that the plan reads, with the place of each, for the level
    of its share, and when events came. earliest: the time (integer ms) before which they are late. steps: how often
    updates may act without an event in between. sharing: for whom messages are made; what else is to be told of sources
    is made for all or the first."""
    predicates, is_snapshot = wanted(plan), emits_snapshots(plan)
    numbers, reports_sources = selection.numbers, selection.own in (None, 0)
    ordered_records_by_shard = {shard: OrderedRecords(shard) for shard in numbers}
    counts: Counter[int] = Counter()
    arrivals = _EventTimes(steps)
    for source, events, dead_letters, _, file, block in parsed:
        yield from (dead_letter_record(dead_letter, source) for dead_letter in dead_letters if reports_sources)
        for event in events:
            counts[source] += 0 if event.is_static else len(event.facts) + len(event.removed)
            if event.time < earliest:
                lost_facts = (*event.facts, *event.removed) if reports_sources else ()
                yield from (dead_letter_record(late_dead_letter(event.stream, event.time, fact)) for fact in lost_facts)
                continue
            arrivals.add(event.time)
            for kind, fact in _wanted_changes(event, predicates, is_snapshot):
                if (ordered_records := ordered_records_by_shard.get(selection.of(fact))) is not None:
                    yield ordered_records.message((source, file, block), event, kind, fact)
    if arrivals.latest > ALWAYS:
        times = " ".join(map(str, arrivals.times))
        for shard in numbers:
            yield _empty_event_record(heartbeat(arrivals.latest), shard)
            yield Record(ROW, shard, 0, 0, _TIMES_PORT, times, arrivals.latest, 0, 0)
    for source, count in (+counts).items() if reports_sources else ():
        yield Record(SOURCE_COUNT, 0, 0, source, 0, "", count, 0, 0)


class _EventTimes:
    """When events came, as far as it matters to who counts the steps in between: at most one is taken at each time
    (integer ms), so that of all events between two that lie no more apart than so many steps none does."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.latest = ALWAYS
        self.times: list[int] = []

    def add(self, time: int) -> None:
        """Takes note of an event."""
        self.latest = max(self.latest, time)
        times = self.times
        if len(times) > 1 and times[-2] <= times[-1] <= time <= times[-2] + self.steps:
            times[-1] = time
        elif time != ALWAYS and times[-1:] != [time]:
            times.append(time)


def _wanted_changes(
    event: Event, predicates: Collection[Term] | None, is_snapshot: bool
) -> Iterator[tuple[str, Fact | None]]:
    """The facts of an event that are of use; if there are none, the event by itself where it is an instant."""
    event_facts = [fact for fact in event.facts if predicates is None or _is_wanted(fact, predicates)]
    yield from changes_of(event._replace(facts=tuple(event_facts)))
    if is_snapshot and not event_facts and not event.removed:
        yield "event", None


def _is_wanted(fact: Fact, predicates: Collection[Term]) -> bool:
    return not isinstance(fact, Triple) or fact.predicate in predicates


class ShardInput(NamedTuple):
    """The facts of a batch that a task has to read by itself: of the sources, or from files of messages. first: the
    messages that start the program, if it starts."""

    parse: Parse | None = None
    first: tuple[Record | RowBatch, ...] = ()
    files: tuple[Folder, ...] = ()


_NO_INPUT = ShardInput()
_POSITION_BYTES = 8
"""The bytes of the place of an output among those of a task."""
_NO_STATE = state_cache.State((0,), SINGLE_PARTITION)


@dataclass(frozen=True)
class ShardTask:
    """The worker's function of a task: of the facts of a batch, and of the state, which it reads unless it holds it, it
    makes outputs and new state.

    progress: of the batch before. first: there is none. last: no more comes for the time being. whole: the state is
    written as a whole, not what has been added. sharing: which share it has.
    """

    __name__ = "the plan as a whole"

    program: PhysicalPlan
    progress: Progress
    steps: int
    first: bool
    last: bool
    whole: bool = False
    sharing: ShardSelection = _WHOLE_PLAN
    unread: ShardInput = _NO_INPUT
    state: state_cache.State = _NO_STATE

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.program.prepare()
        return to_arrow(self._messages(from_arrow(batches)))

    def _messages(self, records: Iterable[Record]) -> Iterator[Record | RowBatch]:
        arrived: list[Record] = []
        times: list[int] = []
        for record in chain(records, self._unread()):
            if record.kind != ROW:
                yield record
            elif record.port == _TIMES_PORT:
                times += map(int, record.row.split())
            else:
                arrived.append(record)
        event_loop, previous_state = self._running()
        names = list(event_loop.memories)
        if event_loop.updating:
            event_loop.updating.expect(times)
        for number, output in enumerate(self._outputs(event_loop, ordered_events(arrived))):
            place = number.to_bytes(_POSITION_BYTES, "big")
            yield Record(ROW, OUTPUT_STAGE, 0, 0, 0, pack_output(output), output.time, FOREVER, 0, spans=place)
        if self.state.keep:
            for id, slot, deltas in self._kept(event_loop, previous_state):
                for first in range(0, len(deltas), ROWS_PER_BATCH):
                    yield RowBatch(STATE, self.share, 0, names.index(id), slot, deltas[first : first + ROWS_PER_BATCH])
            for name, time in (
                ("passed", event_loop.passed),
                ("earliest", event_loop.earliest),
                ("due", event_loop.due),
            ):
                yield Record(INSTANT, 0, 0, 0, 0, name, time, 0, 0)
        if isinstance(event_loop.machine, ProfiledDataflow):
            yield from metric_records(self.program, event_loop.machine.figures(event_loop.outputs))
        elif self.state.keep:
            yield self.state.put(0, event_loop, sum(event_loop.machine.state().values()))

    @property
    def share(self) -> int:
        """The number of its share."""
        return self.sharing.numbers[0]

    def _unread(self) -> Iterator[Record]:
        """The facts, as messages, and what else is to be told of the sources."""
        parse, first, files = self.unread
        yield from (record.message() if isinstance(record, RowBatch) else record for record in first)
        if parse is not None:
            earliest = self.progress.earliest
            parsed = parse(iter(()), None, earliest)
            yield from shard_records(self.program.plan, earliest, parsed, self.steps, self.sharing)
        for file in files:
            yield from from_arrow(self.state.read(file, None))

    def _running(self) -> tuple[Running, State]:
        """The plan at work as the batch before has left it, and the state, if that had to be read."""
        event_loop, unknown = self.state.take(0)
        if event_loop is not None and not unknown and not self.whole:
            return event_loop, State()
        options = Options(steps=self.steps, measure=self.program.measure)
        event_loop, state = Running(self.program.plan, options), State()
        for update in event_loop.machine.updates.values():
            update.initial = [demand for demand in update.initial if self.sharing.of(demand.fact) == self.share]
        names = list(event_loop.memories)
        state_deltas = self.state.entries(self.state.versions, 0)
        state.entries = {(names[node], slot): deltas for (node, slot), deltas in state_deltas.items()}
        if not self.first:
            event_loop.restore(self.progress.passed, self.program.static_time, state.entries)
        if self.state.keep:
            event_loop.keep()
        return event_loop, state

    def _kept(self, event_loop: Running, previous_state: State) -> Iterator[tuple[str, int, list[Delta]]]:
        """What is to be written of the state."""
        if not self.whole:
            yield from event_loop.kept()
            return
        previous_state.add(event_loop.kept())
        previous_state.compact(event_loop.memories, event_loop.passed)
        yield from ((id, slot, deltas) for (id, slot), deltas in previous_state.entries.items())

    def _outputs(self, event_loop: Running, events: list[Event]) -> Iterator[Output]:
        static = [event for event in events if event.is_static]
        for outputs in event_loop.start(static, self.program.static_time) if self.first else ():
            yield from outputs
        for outputs in event_loop.take(events[len(static) :]):
            yield from outputs
        for outputs in event_loop.drain() if self.last else ():
            yield from outputs
