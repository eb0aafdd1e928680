"""One micro-batch of a distributed builder: a chain of bounded jobs, from messages of the sources to outputs and state.

Each *superstep* shuffles the rows on their way to a level, and works them off in Python workers (the bulk synchronous
model: Valiant 1990), which hold or read what the level keeps (`squall.builders.distributed.exec.state_cache`). Levels
follow each other in one job; messages for later ones are handed on. A level inside which rows move takes supersteps,
each a job, until nothing moves any more. What a job leaves its tasks write as Parquet
(`squall.builders.distributed.io.task_output`), which cuts the lineage and makes the batch repeatable.

Where the answer depends on all of an instant, rows wait until time has passed the instant at which they begin; then
what looks at instants as a whole goes through all of them, in order.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from squall.builders.distributed.exec.ordered_scan_tasks import taking
from squall.builders.distributed.exec.output_stage import changing, delivery, last_levels, told_whole, whole
from squall.builders.distributed.exec.report_times import ReportTimes, changes_only, note, tellers
from squall.builders.distributed.exec.routing import DELIVER, TOGETHER, TURNS, Owners, PhysicalPlan
from squall.builders.distributed.exec.single_task import SingleTask
from squall.builders.distributed.exec.state_cache import State, StateVersions
from squall.builders.distributed.exec.worker import (
    DELETE,
    PLAIN,
    REDERIVE,
    Span,
    axioms,
    compaction,
    source_step,
    superstep,
    timed,
)
from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Engine, Files, Folder, Frame, NodeMetrics, TaskReport
from squall.builders.distributed.io.parsing import Lost, Parse
from squall.builders.distributed.io.records import (
    DUE,
    HELD,
    LOST,
    OF_A_BATCH,
    ROW,
    STATE,
    Record,
    RowBatch,
    Step,
    making,
    same,
)
from squall.builders.distributed.plan.stages import Stage
from squall.builders.runtime.report_times import Instants
from squall.builders.runtime.state import COMPACT
from squall.contracts import Output
from squall.plan.operators import DerivedStream
from squall.rdf import ALWAYS, FOREVER

_ADDED = 10
"""So many times as many rows as one task works off it adds up."""


@dataclass
class Progress:
    """How far a job has come: what the commit of its last batch says. All times are integer ms.

    passed: the latest event time so far. worked: the instants up to this one have been worked off. ends: the latest
    time at which what has been read begins or ends, if it does.
    number: Spark's own number of the last micro-batch; -1 before the first.
    held: the folders in which rows wait for their instant to be whole, each with the latest time at which one begins,
    and how many they are at most. rows: how many rows the state has at most.
    instants: what is known of evaluation instants (`Instants.rows`), by number of the operation node.
    """

    passed: int = ALWAYS
    worked: int = ALWAYS - 1
    ends: int = ALWAYS
    number: int = -1
    held: list[tuple[list[Any], int, int]] = field(default_factory=list)
    rows: int = 0
    instants: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def folders(self) -> list[Folder]:
        """Those in which rows wait."""
        return [tuple(folder) for folder, _, _ in self.held]

    @property
    def known(self) -> int:
        """How many rows there are at most, those that wait and those of the state."""
        return self.rows + sum(rows for _, _, rows in self.held)


class MicroBatches:
    """The batches of one job, one after the other; the state between them lies in the store.

    done: how many are committed. whole_instants: whether an instant is worked off only when all of it is there; then
    rows from the time `span.now + 1` on wait. at_once: no level takes rounds, and of what the sources hold nothing has
    to be known to all before it is worked off but how far time has come, which the rows bring along: a batch is one
    job. together: up to how many rows, those of the batch and of the state, another batch is worked off by a single
    task; few: up to how many bytes that are read one task works a batch off straight through (-1: never), where the
    state has up to so many rows, too, or as many as `state` says. most: how many rows of state a worker holds from one
    superstep to the next, at most.
    """

    def __init__(
        self,
        exchange: Engine,
        store: Files,
        program: PhysicalPlan,
        together: int,
        most: int,
        few: int = -1,
        state: int = 0,
    ) -> None:
        self.exchange = exchange
        self.store = store
        self.program = program
        self.together = together
        self.few = few if together > 0 else -1
        self.small = max(together, state)
        plan = program.plan
        addressing = program.addressing()
        self.numbers = numbers = addressing.numbers
        self.repeats = addressing.repeated
        """The levels to which rows come that go to all tasks."""
        self.deliveries = {numbers[node.id]: op for node, op in plan.sinks}
        self.changing = {number for number, op in self.deliveries.items() if changes_only(op)}
        self.whole_instants = program.whole_instants
        self.done = len(store.numbers("commits"))
        self.progress = Progress(**(store.read("commits", f"{self.done - 1}.json") or {}))
        self.instants = {number: Instants(op) for number, op in tellers(plan).items()}
        """When what is told whole is evaluated, by the number of the node: answers, and streams that the plan makes."""
        makers = [addressing.levels[node.id] for node in plan.nodes if isinstance(node.op, DerivedStream)]
        self.making = {*makers} if self.instants else set()
        """The levels that make streams which may say when something is told whole."""
        self.ending = program.ending
        """The last level, if it is worked off together with the end,"""
        self.before = program.levels[: len(program.levels) - len(self.ending)]
        """and those before."""
        self.at_once = not self.instants and not any(level.recursive for level in program.levels)
        self.comes = (HELD,) if self.at_once else (ROW, HELD)
        """As what the rows of the sources are stored."""
        for number, instants in self.instants.items():
            if str(number) in self.progress.instants:
                instants.take(self.progress.instants[str(number)])
        self.base = max(self.store.numbers("base"), default=-1)
        state_folders: list[Folder] = [("base", self.base)] if self.base >= 0 else []
        for batch in range(self.base + 1, self.done):
            state_folders += [("runs", batch, step) for step in self.store.names("runs", batch)]
        self.lineage = StateVersions(store, state_folders, exchange.reader(), most)
        self.steps: list[str] = []
        self.sources: list[Folder] = []
        """The step of the batch that holds what came from the sources."""
        self.answered: tuple[str, ...] = ()
        """The files that hold its answers."""
        self.told = TaskReport()
        self.evaluations = ReportTimes()
        self.tally = NodeMetrics(plan)
        self.kept = 0
        self.added = 0
        """How many rows this process has seen added to the state since it was compacted."""
        self.held: int | None = None
        """How many rows operators hold behind it, if they hold all of the state."""
        self.ends = ALWAYS
        """The latest time at which anything begins or ends that has come, or has been made of it, if it does."""
        self.keep = True
        self.span = Span(ALWAYS - 1, ALWAYS)

    @property
    def earliest(self) -> int:
        """The time (integer ms) before which an event is late."""
        watermark = self.progress.passed
        return watermark + 1 if self.whole_instants and ALWAYS < watermark <= self.progress.worked else watermark

    @property
    def unfinished(self) -> bool:
        """Whether there is something to do when no more events will come."""
        return self.whole_instants and self.progress.worked < self.progress.passed

    # A batch

    def first(self) -> Sequence[Record | RowBatch]:
        """The messages that start the program."""
        return list(axioms(self.program))

    def starting(self, first: Sequence[Record | RowBatch]) -> Step:
        """The worker's function that makes these messages, of nothing."""
        return self._entering(making(first))

    def reading(self, parse: Parse) -> Step:
        """The worker's function from lines to messages."""
        return self._entering(source_step(self.program, self.earliest, parse))

    def _entering(self, step: Step) -> Step:
        """The function, what it makes being stored where a job of its own makes it; later, where facts are taken in
        turn first."""
        return step if self.program.turns.sources else self._entered(step)

    def _taken(self, messages: Frame) -> Frame:
        """The messages of the sources, their facts taken in turn that have to be."""
        if not self.program.turns.sources:
            return messages
        step = taking(self.program, self._state([TURNS], self.exchange.owners, self.keep))
        return self.exchange.worked(messages, self._entered(step), self.exchange.partitions)

    def _entered(self, step: Step) -> Step:
        if not self.at_once:
            return self.exchange.storing(step, self._next_step(0))
        levels = (*(level.number for level in self.program.levels), DELIVER)
        return timed(step, self._places(levels, self.exchange.owners)) if self.whole_instants else step

    def work(self, messages: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Works a batch off. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come, so that every instant is
        whole. keep: more batches follow, which have to know of this one.
        """
        self._begin(keep)
        messages = None if messages is None else self._taken(messages)
        evaluations = ReportTimes()
        if self.at_once and messages is not None:
            self._at_once(messages, last)
        else:
            if messages is not None:
                self.told = self._run(messages)
                self.sources = self._of_batch(self.steps)
            self.span = Span(self.progress.worked, self._now(last))
            note(self.instants, self.told.instants)
            if self.progress.known + self.told.rows <= self.together and not self.making:
                evaluations = self._in_one_task(self._evaluated(self.deliveries))
            else:
                evaluations = self._by_levels()
        self.evaluations = evaluations

    def _begin(self, keep: bool) -> None:
        """A batch is worked off, for the first time or once more."""
        self.store.delete("runs", self.done)
        self.store.delete(*self._outputs())
        self.steps, self.sources, self.answered, self.told, self.kept = [], [], (), TaskReport(), 0
        self.evaluations = ReportTimes()
        self.ends = ALWAYS
        self.lineage.begin()
        self.keep = keep
        self.held = None

    def answers(self) -> Frame | None:
        """What the batch has to hand on, as the messages of `delivery`."""
        return self.exchange.answered(self._outputs(), self.answered)

    def outputs(self) -> Iterator[Output]:
        """The outputs of the batch, in the order of time."""
        answers = self.exchange.answers(self._outputs(), self.answered)
        yield from told_whole(answers, self.deliveries, self.evaluations)

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        before = self.progress
        watermark, ends = max(before.passed, self.told.latest), max(before.ends, self.ends)
        is_last = self.span.now == FOREVER - 1
        processed_until = self._end_of_all(max(watermark, ends)) if is_last else self.span.now
        buffered = (
            []
            if is_last or not self.whole_instants
            else [waiting for waiting in before.held if waiting[1] > processed_until]
        )
        if self.whole_instants and self.told.starts > processed_until:
            buffered += [(list(folder), self.told.starts, self.told.rows) for folder in self.sources]
        self.progress = Progress(
            passed=max(watermark, processed_until) if is_last else watermark,
            worked=processed_until,
            ends=ends,
            number=before.number if number is None else number,
            held=buffered,
            rows=before.rows + self.kept if self.held is None else self.held,
            instants={str(number): list(instants.rows()) for number, instants in self.instants.items()},
        )
        self.store.write(asdict(self.progress), "commits", f"{self.done}.json")
        self.lineage.commit()
        self.added += self.kept
        for folder in (*before.folders, *self._of_batch(self.steps)):
            for kind in OF_A_BATCH if folder not in self.progress.folders else ():
                self.store.delete(*folder, kind)
        self.store.delete(*self._outputs())
        self.done += 1
        if self.done - 1 - self.base >= COMPACT:
            self._compact()

    def _evaluated(self, numbers: Collection[int]) -> ReportTimes:
        """When what these nodes make is evaluated in this batch, if it is told whole."""
        return ReportTimes.upto(
            {number: instants for number, instants in self.instants.items() if number in numbers}, self.span.now
        )

    def _now(self, last: bool) -> int:
        """The time up to which instants are worked off."""
        if last:
            return FOREVER - 1
        latest = max(self.progress.passed, self.told.latest)
        return max(self.progress.worked, ALWAYS, latest - 1 if self.whole_instants and latest > ALWAYS else latest)

    def _end_of_all(self, time: int) -> int:
        """The time after which nothing changes, if no more events come after this time."""
        periods = [op.report.period for op in self.deliveries.values() if op.report.policy == "periodic"]
        return max([time, *(-(-time // period) * period for period in periods)]) if time > ALWAYS else time

    # Steps: each a folder of messages, by kind and level

    def _next_step(self, number: int | None = None) -> Folder:
        """The folder of the next step of this batch, or of one of them."""
        return ("runs", self.done, f"{len(self.steps) if number is None else number:04d}")

    def _run(self, messages: Frame) -> TaskReport:
        """Runs a job, which stores what it leaves as the next step of this batch. Answers with what it tells."""
        return self._done(self.exchange.told(messages))

    def _done(self, report: TaskReport) -> TaskReport:
        """A job has stored what it leaves as the next step of this batch."""
        folder = self._next_step()
        task_output.note(self.store, folder, report.files)
        self.steps.append(str(folder[-1]))
        self.lineage.add(folder, report)
        self.kept += report.kept
        self.ends = max(self.ends, report.ends)
        self.tally.add(report)
        self.answered += report.answers
        return report

    def _outputs(self) -> Folder:
        """The folder of the batch in which answers are."""
        return ("outputs", self.done)

    def _of_batch(self, steps: Iterable[str]) -> list[Folder]:
        return [("runs", self.done, step) for step in steps]

    # What levels keep

    def _state(self, levels: Iterable[int], owners: Owners, keep: bool) -> State:
        return self.lineage.state(levels, owners, keep, self._passed())

    def _end_state(self) -> State:
        """What the operation nodes keep."""
        return self._state([DELIVER], self.exchange.owners, self.keep)

    def _passed(self) -> int:
        """The time (integer ms) before which nothing begins that is still to come."""
        return self.progress.worked if self.whole_instants else self.progress.passed

    def _wakes(self, levels: Iterable[int], owners: Owners) -> Frame:
        """What lets all partitions of some levels work, whether something comes for them or not."""
        return self.exchange.waking(self._places(levels, owners))

    def _places(self, levels: Iterable[int], owners: Owners) -> list[tuple[int, int]]:
        """All partitions of some levels: each with one of its buckets."""
        buckets = {owner: bucket for bucket, owner in enumerate(owners)}.values()
        return [(level, bucket) for level in levels for bucket in buckets]

    # The sources' messages

    def losses(self) -> Iterator[Lost]:
        """The statements of the batch that could not be used."""
        for text in self.exchange.texts(LOST, 0, self.sources):
            yield Lost(*json.loads(text))

    def _due(self, level: int) -> Frame | None:
        """The rows on their way to a level: those of the sources that have waited until now, new ones that need not
        wait, and what other levels have made of them."""
        folders = [*self.progress.folders, *self.sources]
        rows = self.exchange.union(self.exchange.stored(kind, level, folders) for kind in self.comes)
        if rows is not None and self.whole_instants:
            rows = self.exchange.of_kind(DUE, rows)
        state_folders = [folder for folder in self._of_batch(self.steps) if folder not in self.sources]
        return self.exchange.union([rows, self.exchange.stored(ROW, level, state_folders)])

    def _passes(self) -> bool:
        """Whether there are instants to be worked off, whatever comes."""
        return self.whole_instants and self.span.before < self.span.now

    # All in one job, of one task

    def fits(self, size: int) -> bool:
        """Whether a batch of so many bytes is worked off straight through. (When answers are evaluated that are told
        whole, the driver has to say.)"""
        return not self.instants and size <= self.few and self.progress.known <= self.small

    def work_straight(
        self, parse: Parse, first: Sequence[Record | RowBatch] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Works such a batch off, as `work` does. parse: reads the sources. first: the messages that start the program,
        if it starts."""
        self._begin(keep)
        levels = [*(level.number for level in self.program.levels), DELIVER]
        places = [(kind, level) for kind in self.comes for level in levels]
        waited = [file for place in places for file in task_output.files(self.store, *place, self.progress.folders)]
        span = self._span_before(last)
        states = (self._state(part, TOGETHER, keep) for part in ([TURNS], levels[:-1], [DELIVER]))
        step = SingleTask(self.program, parse, self.earliest, first, waited, span, *states)
        self._whole_done(self.exchange.each([self._ending(step)]), last)
        self.held = self.told.held if keep else None

    def _span_before(self, last: bool) -> Span:
        """The time that passes, as far as it is known before the sources are read."""
        before = self.progress.worked
        return Span(before, self._now(last) if self.whole_instants else before)

    def _whole_done(self, report: TaskReport, last: bool) -> None:
        """The job is done that is all of the batch."""
        self.told = self._done(report)
        self.sources = self._of_batch(self.steps)
        self.span = Span(self.progress.worked, self._now(last))

    # All in one job

    def _at_once(self, messages: Frame, last: bool) -> None:
        """Works the batch off from sources to answers, the sources' messages in the same job."""
        self.span = self._span_before(last)
        flow: Frame | None = messages
        for level in self.before:
            flow = self._through(level, flow)
        self._whole_done(self.exchange.told(self._delivered(flow, ReportTimes())), last)

    # All in one task

    def _in_one_task(self, evaluations: ReportTimes) -> ReportTimes:
        """Works off all levels and delivers, where moving rows about would take longer than that. Answers with the
        instants at which something is told."""
        levels = [*(level.number for level in self.program.levels), DELIVER]
        rows = self.exchange.union(self._due(level) for level in levels)
        if self._passes():
            rows = self.exchange.union([rows, self._wakes(levels, TOGETHER)])
        if rows is None:
            return evaluations
        state, end = (self._state(part, TOGETHER, self.keep) for part in (levels[:-1], [DELIVER]))
        step = self._ending(whole(self.program, self.span, evaluations, state, end))
        return self._reported(evaluations, self._run(self._worked(rows, step, levels, TOGETHER)))

    def _ending(self, step: Step) -> Step:
        """The function that ends a job, and leaves answers and what is to be stored."""
        return self.exchange.storing(self.exchange.answering(step, self._outputs()), self._next_step())

    # Level by level

    def _by_levels(self) -> ReportTimes:
        """Works off level by level, those that follow each other without rounds in one job, and delivers. Answers with
        the instants at which something is told."""
        flow: Frame | None = None
        for level in self.before:
            if level.recursive:
                self._end_job(flow)
                flow = None
                self._rounds(level, (DELETE, REDERIVE) if level.deletes else (PLAIN,))
            else:
                flow = self._through(level, flow)
            if level.number in self.making:
                self._end_job(flow, makes=True)
                flow = None
        return self._deliver(flow, self._evaluated(self.deliveries))

    def _through(self, level: Stage, flow: Frame | None) -> Frame | None:
        """What is on its way when a level has been worked off. flow: before."""
        rows = self.exchange.union([flow, self._due(level.number)])
        if level.timely and self._passes():
            rows = self.exchange.union([rows, self._wakes([level.number], self.exchange.owners)])
        if rows is None:
            return None
        step = self._superstep(level, PLAIN, self.span, self.keep)
        return self._worked(rows, step, [level.number], self.exchange.owners)

    def _worked(self, rows: Frame, step: Step, levels: Sequence[int], owners: Owners) -> Frame:
        """What a step makes of rows for levels, those that go to all tasks being there in each."""
        if self.repeats & {*levels}:
            rows = self.exchange.repeated(rows, levels, sorted(map(owners.index, set(owners))))
        return self.exchange.worked(rows, step, 1 if owners == TOGETHER else self.exchange.partitions)

    def _superstep(self, level: Stage, phase: str, span: Span, keep: bool) -> Step:
        """What a worker does with rows for a level, in one round. keep: a later one has to know of it."""
        state = self._state([level.number], self.exchange.owners, keep)
        instants = self._evaluated({self.numbers[id] for id in level.nodes}).instants if self.making else {}
        return superstep(self.program, [level], phase, span, state, instants)

    def _end_job(self, flow: Frame | None, makes: bool = False) -> None:
        """What is on its way is stored. makes: streams have been made on the way."""
        if flow is not None:
            report = self._run(self.exchange.passed(flow, self.exchange.storing(same, self._next_step())))
            if makes:
                note(self.instants, report.instants)

    def _rounds(self, level: Stage, phases: Sequence[str]) -> None:
        """Works a level off, in rounds. Time passes in the first of them."""
        rows = self._due(level.number)
        span = self.span
        timely = level.timely and self._passes()
        if rows is None and not timely:
            return
        for phase in phases:
            if timely or phase == REDERIVE:
                rows = self.exchange.union([rows, self._wakes([level.number], self.exchange.owners)])
            while rows is not None:
                step = self.exchange.storing(self._superstep(level, phase, span, keep=True), self._next_step())
                report = self._run(self._worked(rows, step, [level.number], self.exchange.owners))
                if level.number in self.making:
                    note(self.instants, report.instants)
                span, timely = Span(span.now, span.now), False
                rows = self.exchange.stored(ROW, level.number, self._of_batch(self.steps[-1:]))

    # The end

    def _deliver(self, flow: Frame | None, evaluations: ReportTimes) -> ReportTimes:
        """Delivers, bucket by bucket. Answers with the instants at which something is told."""
        if any(evaluations.instants.get(number) for number in self.changing):
            # Whether the whole has changed has to be known before any part of it is told.
            self._end_job(flow)
            flow = None
            evaluations = self._changed(evaluations)
        answers = self._delivered(flow, evaluations)
        if answers is not None:
            self._run(answers)
        return evaluations

    def _changed(self, evaluations: ReportTimes) -> ReportTimes:
        """Asks each bucket at which instants its part of an answer has changed; the instants at which something is
        told."""
        rows = self.exchange.union([self._due(DELIVER), self._wakes([DELIVER], self.exchange.owners)])
        step = changing(self.program, self.span, evaluations, self._end_state())
        report = self._run(self.exchange.worked(rows, step, self.exchange.partitions))
        return self._reported(evaluations, report)

    def _delivered(self, flow: Frame | None, evaluations: ReportTimes) -> Frame | None:
        """The answers, behind what is on its way; None: there are none."""
        numbers = [level.number for level in self.ending]
        rows = self.exchange.union([flow, *map(self._due, (*numbers, DELIVER))])
        if self._passes():
            timely = [level.number for level in self.ending if level.timely]
            rows = self.exchange.union([rows, self._wakes([*timely, DELIVER], self.exchange.owners)])
        if rows is None:
            return None
        step = delivery(self.program, self.span, evaluations, self._end_state())
        if self.ending:
            state = self._state(numbers, self.exchange.owners, self.keep)
            step = last_levels(self.program, self.ending, self.span, evaluations, state, self._end_state())
        return self._worked(rows, self._ending(step), numbers, self.exchange.owners)

    def _reported(self, evaluations: ReportTimes, report: TaskReport) -> ReportTimes:
        return evaluations.reported(self.program.plan, {(number, time) for _, number, time in report.instants})

    def _added_up(self, folder: Folder) -> TaskReport | None:
        """What the job tells that adds the state of all batches so far up into a folder: of one task, if few rows have
        been added since that was done last. None: there is none."""
        step = compaction(self.program, self._passed())
        if self.few >= 0 and self.progress.known <= self.together and self.added <= _ADDED * self.together:
            files = self.lineage.files()
            step = task_output.reading(step, self.lineage.read, files)
            return self.exchange.each([self.exchange.storing(step, folder)]) if files else None
        levels = {level for version in self.lineage.versions for level in version.files}
        folders = [version.folder for version in self.lineage.versions]
        state = self.exchange.union(self.exchange.stored(STATE, level, folders) for level in levels)
        if state is None:
            return None
        step = self.exchange.storing(step, folder)
        return self.exchange.told(self.exchange.worked(state, step, self.exchange.partitions))

    def _compact(self) -> None:
        """Adds up the state of all batches so far into one folder. A crash at any point leaves all that is needed."""
        number = self.done - 1
        draft = ("base", f"_{number}")
        self.store.delete(*draft)
        report = self._added_up(draft)
        if report is None:
            return
        task_output.note(self.store, draft, report.files)
        self.progress.rows = report.kept
        self.added = 0
        self.store.rename(draft, ("base", number))
        for old in self.store.numbers("runs"):
            if old <= number and not any(folder[1] == old for folder in self.progress.folders):
                self.store.delete("runs", old)
        for old in self.store.numbers("base"):
            if old < number:
                self.store.delete("base", old)
        self.base = number
        self.lineage.compacted(("base", number))
