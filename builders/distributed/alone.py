"""Plans that one task has to run as a whole, inside a distributed engine: each of their instants decides the next.

What an update does at an instant is seen by all rules at the next one, which may be the time of no event. So the
sources are read and parsed in parallel, as ever, and the facts that the plan reads go to one task, in order, which does
with them what the iterator builder does (`squall.builders.running`); what is little is read by that task itself. What
it keeps goes into the store as messages, as all state does, and stays in the worker as a replica of that
(`squall.builders.distributed.replicas`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

import pyarrow

from squall.builders.distributed import leaving, replicas
from squall.builders.distributed.addressing import DELIVER, TOGETHER, Program
from squall.builders.distributed.evaluations import tellers
from squall.builders.distributed.exchange import Exchange, Files, Folder, Frame, Tally, Told
from squall.builders.distributed.lines import Lost, Parse, Parsed, late, lost_message
from squall.builders.distributed.messages import (
    CHUNK,
    COUNT,
    INSTANT,
    LOST,
    OF_A_BATCH,
    ROW,
    SOURCES,
    STATE,
    Message,
    Parcel,
    Step,
    from_arrow,
    making,
    to_arrow,
)
from squall.builders.distributed.turns import Placing, facts_of, in_turn, why_in_turn
from squall.builders.distributed.worker import figure_messages
from squall.builders.measured import Measured
from squall.builders.packing import orders, pack_output, unpack_output
from squall.builders.rows.entries import Entry
from squall.builders.rows.read import is_told_whole, wanted
from squall.builders.running import Running
from squall.builders.state import COMPACT, State
from squall.operators import Deliver, Feed, Operator, Read, Update
from squall.plan import Node, Plan
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Term, Triple, heartbeat
from squall.stages import Options, Output
from squall.system import Source
from squall.windows import Count, Window

_FACTS = _STATE = 0
"""The levels of the facts that the plan reads, and of what it keeps."""


class Reason(NamedTuple):
    """Why one task runs a plan: a node of it, and what that does."""

    node: Node
    what: str


def alone(plan: Plan) -> Reason | None:
    """Why one task has to run the plan; None: it need not."""
    return _first(plan, partial(_decides, plan))


def _decides(plan: Plan, op: Operator) -> str | None:
    """What it is that an operator does at an instant by which it decides what others do, or when they do it."""
    match op:
        case Update():
            return "inserts or deletes facts"
        case Feed(source=source) if any(_moves_on(one, source.stream) for one in _told_whole(plan)):
            return "makes a stream that is read by triples and steps, and told whole"
        case Deliver() | Feed() if op.output == "rstream" and any(not _is_counted(plan, one) for one in op.sources):
            return "is told whole when a window of triples moves on that nobody reads"
    return None


def _is_counted(plan: Plan, source: Source) -> bool:
    """Whether somebody counts the triples of a source's windows that move on by steps."""
    read = [node.op.source for node in plan.nodes if isinstance(node.op, Read)]
    places = ("", *(stream for stream, _ in source.windows))
    stepped = [(place, window) for place in places if _has_steps(window := source.window_of(place))]
    return all(
        any(one.iri == source.iri and one.window_of(place) == window for one in read) for place, window in stepped
    )


def _has_steps(window: Window) -> bool:
    return isinstance(window, Count) and window.step > 1


def _told_whole(plan: Plan) -> Iterator[Source]:
    """The sources of all that is told whole."""
    for op in tellers(plan).values():
        yield from op.sources


def _moves_on(source: Source, stream: str) -> bool:
    """Whether a stream is read by so many triples, and not triple by triple."""
    window = source.window_of(stream)
    return source.counts(stream) and _has_steps(window)


def in_order(plan: Plan) -> Reason | None:
    """Why one task has to run the plan, where facts are not taken in turn (`squall.builders.distributed.turns`), and
    streams not made, by tasks of their own; None: it need not."""
    return _first(plan, _needs_order)


def _needs_order(op: Operator) -> str | None:
    match op:
        case Read(source=source):
            return why_in_turn(source)
        case Update():
            return "inserts or deletes facts"
        case Feed():
            return "makes a stream that is read again"
    return None


def _first(plan: Plan, why: Callable[[Operator], str | None]) -> Reason | None:
    found = (Reason(node, what) for node in plan.nodes if (what := why(node.op)) is not None)
    return next(found, None)


@dataclass
class Progress:
    """How far a job has come: what the commit of its last batch says. All times are integer ms.

    passed: the time that has been worked off. earliest: what is before is late. due: when something is left to do, if
    nothing comes; FOREVER: never.
    number: Spark's own number of the last micro-batch; -1 before the first. base: the batch that wrote its state as a
    whole; those since have written what was added.
    """

    passed: int = ALWAYS - 1
    earliest: int = ALWAYS
    due: int = ALWAYS
    number: int = -1
    base: int = 0


class SingleTask:
    """The batches of such a job, one after the other; the state between them lies in the store. done: how many are
    committed. steps: how often updates may act without an event in between. most: how many rows of state a worker holds
    from one batch to the next, at most. few: up to how many bytes the task reads by itself (-1: none)."""

    def __init__(
        self, exchange: Exchange, store: Files, program: Program, steps: int, most: int = 0, few: int = -1
    ) -> None:
        self.exchange = exchange
        self.store = store
        self.program = program
        self.steps = steps
        self.few = few
        self.done = len(store.numbers("commits"))
        known = store.read("commits", f"{self.done - 1}.json")
        self.progress = Progress(**known) if known else Progress()
        self.next = self.progress
        folders = [("runs", batch, "work") for batch in range(self.progress.base, self.done)]
        self.lineage = replicas.Lineage(store, folders, exchange.reader(), most)
        self.told = Told()
        """What was told of the sources,"""
        self.worked = Told()
        """and by the task."""
        self.answered: tuple[str, ...] = ()
        """The files that hold the answers of the batch."""
        self.tally = Tally(program.plan)

    @property
    def unfinished(self) -> bool:
        """Whether there is something to do when no more events will come."""
        return self.progress.due < FOREVER

    def first(self) -> Sequence[Message | Parcel]:
        """The messages that start the program."""
        return [start_message()]

    def starting(self, first: Sequence[Message | Parcel]) -> Step:
        """The worker's function that makes these messages, of nothing."""
        return self.exchange.storing(making(first), self._folder("facts"))

    def reading(self, parse: Parse) -> Step:
        """The worker's function from lines to messages."""
        program, earliest = self.program, self.progress.earliest

        def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            program.prepare()
            return to_arrow(facts(program.plan, earliest, parse(batches, None, earliest)))

        step.__name__ = SOURCES
        return self.exchange.storing(step, self._folder("facts"))

    def fits(self, size: int) -> bool:
        """Whether the task reads a batch of so many bytes by itself."""
        return size <= self.few

    def work_straight(
        self, parse: Parse, first: Sequence[Message | Parcel] = (), last: bool = False, keep: bool = True
    ) -> None:
        """Works such a batch off, as `work` does. parse: reads the sources. first: the messages that start the program,
        if it starts."""
        self._begin()
        self._work(Unread(parse, tuple(first)), last, keep)
        self.told = self.worked

    def work(self, messages: Frame | None, last: bool = False, keep: bool = True) -> None:
        """Works a batch off. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come for the time being. keep: more
        batches follow, which have to know of this one.
        """
        self._begin()
        if messages is not None:
            self.told = self.exchange.told(messages)
            leaving.note(self.store, self._folder("facts"), self.told.files)
        files = leaving.files(self.store, ROW, _FACTS, [self._folder("facts")])
        if files or self.lineage.files():
            self._work(Unread(files=tuple(files)), last, keep)

    def _begin(self) -> None:
        """A batch is worked off, for the first time or once more."""
        self.store.delete("runs", self.done)
        self.store.delete(*self._outputs())
        self.lineage.begin()
        self.answered, self.told, self.worked, self.next = (), Told(), Told(), self.progress

    def _work(self, unread: Unread, last: bool, keep: bool) -> None:
        """Runs the task."""
        base = self.done if self.done - self.progress.base >= COMPACT else self.progress.base
        state = self.lineage.state([_STATE], TOGETHER, keep, self.progress.passed)
        task = Task(
            self.program, self.progress, self.steps, first=self.done == 0, last=last, whole=base == self.done,
            unread=unread, state=state,
        )  # fmt: skip
        step = self.exchange.storing(self.exchange.answering(task, self._outputs()), self._folder("work"))
        self.worked = self.exchange.alone(step)
        leaving.note(self.store, self._folder("work"), self.worked.files)
        self.lineage.add(self._folder("work"), self.worked)
        self.answered = self.worked.answers
        times = {name: time for name, _, time in self.worked.instants}
        self.next = Progress(**{**asdict(self.progress), **times, "base": base})
        self.tally.add(self.worked)

    def answers(self) -> Frame | None:
        """What the batch has to hand on, as messages: `start` is the time, `weight` the place."""
        return self.exchange.answered(self._outputs(), self.answered)

    def outputs(self) -> Iterator[Output]:
        """The outputs of the batch, in the order of time."""
        for time, _, text in self.exchange.answers(self._outputs(), self.answered):
            yield unpack_output(text, time)

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        self.next.number = self.progress.number if number is None else number
        self.progress = self.next
        self.store.write(asdict(self.progress), "commits", f"{self.done}.json")
        self.lineage.commit(whole=self.progress.base == self.done)
        for step in ("facts", "work"):
            for kind in OF_A_BATCH:
                self.store.delete(*self._folder(step), kind)
        for old in self.store.numbers("runs"):
            if old < self.progress.base:
                self.store.delete("runs", old)
        self.store.delete(*self._outputs())
        self.done += 1

    def losses(self) -> Iterator[Lost]:
        """The statements of the batch that could not be used."""
        for text in self.exchange.texts(LOST, 0, [self._folder("facts"), self._folder("work")]):
            yield Lost(*json.loads(text))

    def _folder(self, step: str) -> Folder:
        return ("runs", self.done, step)

    def _outputs(self) -> Folder:
        return ("outputs", self.done)


# What workers do


def start_message() -> Message:
    """The message that starts a program, whatever else comes."""
    return _event_alone(Event(ALWAYS, ()))


def _event_alone(event: Event) -> Message:
    """The message of an event that brings nothing."""
    return Placing(_FACTS).message((0, "", 0), event, "event", None)


def facts(plan: Plan, earliest: int, parsed: Iterable[Parsed]) -> Iterator[Message]:
    """The messages that come of what sources held: the facts that the plan reads, with the place of each. earliest: the
    time (integer ms) before which they are late."""
    predicates, whole = wanted(plan), is_told_whole(plan)
    placing = Placing(_FACTS)
    counts: Counter[int] = Counter()
    latest = ALWAYS
    for source, events, lost, _, file, block in parsed:
        yield from (lost_message(one, source) for one in lost)
        for event in events:
            counts[source] += 0 if event.is_static else len(event.facts) + len(event.removed)
            if event.time < earliest:
                lost_facts = (*event.facts, *event.removed)
                yield from (lost_message(late(event.stream, event.time, fact)) for fact in lost_facts)
                continue
            latest = max(latest, event.time)
            for kind, fact in _parts(event, predicates, whole):
                yield placing.message((source, file, block), event, kind, fact)
    if latest > ALWAYS:
        yield _event_alone(heartbeat(latest))
    for source, count in (+counts).items():
        yield Message(COUNT, 0, 0, source, 0, "", count, 0, 0)


def _parts(event: Event, predicates: Collection[Term] | None, whole: bool) -> Iterator[tuple[str, Fact | None]]:
    """The facts of an event that are of use; if there are none, the event by itself where it is an instant."""
    came = [fact for fact in event.facts if predicates is None or _is_wanted(fact, predicates)]
    yield from facts_of(event._replace(facts=tuple(came)))
    if whole and not came and not event.removed:
        yield "event", None


def _is_wanted(fact: Fact, predicates: Collection[Term]) -> bool:
    return not isinstance(fact, Triple) or fact.predicate in predicates


class Unread(NamedTuple):
    """The facts of a batch that the task has to read by itself: of the sources, or from files of messages. first: the
    messages that start the program, if it starts."""

    parse: Parse | None = None
    first: tuple[Message | Parcel, ...] = ()
    files: tuple[Folder, ...] = ()


_ALL_READ = Unread()
_NO_STATE = replicas.State((_STATE,), TOGETHER)


@dataclass(frozen=True)
class Task:
    """The worker's function of the one task: of the facts of a batch, and of the state, which it reads unless it holds
    it, it makes outputs and new state.

    progress: of the batch before. first: there is none. last: no more comes for the time being. whole: the state is
    written as a whole, not what has been added.
    """

    __name__ = "the single task"

    program: Program
    progress: Progress
    steps: int
    first: bool
    last: bool
    whole: bool = False
    unread: Unread = _ALL_READ
    state: replicas.State = _NO_STATE

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        self.program.prepare()
        return to_arrow(self._messages(from_arrow(batches)))

    def _messages(self, given: Iterable[Message]) -> Iterator[Message | Parcel]:
        came: list[Message] = []
        for one in chain(given, self._unread()):
            if one.kind == ROW:
                came.append(one)
            else:
                yield one
        running, known = self._running()
        names = list(running.memories)
        for number, output in enumerate(self._outputs(running, in_turn(came))):
            yield Message(ROW, DELIVER, 0, 0, 0, pack_output(output), output.time, FOREVER, number)
        if self.state.keep:
            for id, slot, entries in self._kept(running, known):
                for first in range(0, len(entries), CHUNK):
                    yield Parcel(STATE, _STATE, 0, names.index(id), slot, entries[first : first + CHUNK])
            for name, time in (("passed", running.passed), ("earliest", running.earliest), ("due", running.due)):
                yield Message(INSTANT, 0, 0, 0, 0, name, time, 0, 0)
        if isinstance(running.machine, Measured):
            yield from figure_messages(self.program, running.machine.figures(running.outputs))
        elif self.state.keep:
            yield self.state.put(0, running, sum(running.machine.state().values()))

    def _unread(self) -> Iterator[Message]:
        """The facts, as messages, and what else is to be told of the sources."""
        parse, first, files = self.unread
        yield from (one.message() if isinstance(one, Parcel) else one for one in first)
        if parse is not None:
            yield from facts(self.program.plan, self.progress.earliest, parse(iter(()), None, self.progress.earliest))
        for file in files:
            yield from from_arrow(self.state.read(file, None))

    def _running(self) -> tuple[Running, State]:
        """The plan at work as the batch before has left it, and the state, if that had to be read."""
        running, unknown = self.state.take(0)
        if running is not None and not unknown and not self.whole:
            return running, State()
        options = Options(steps=self.steps, measure=self.program.measure)
        running, state = Running(self.program.plan, options), State()
        names = list(running.memories)
        found = self.state.entries(self.state.versions, 0, orders(self.program.plan))
        state.entries = {(names[node], slot): entries for (node, slot), entries in found.items()}
        if not self.first:
            running.restore(self.progress.passed, self.program.begin, state.entries)
        if self.state.keep:
            running.keep()
        return running, state

    def _kept(self, running: Running, known: State) -> Iterator[tuple[str, int, list[Entry]]]:
        """What is to be written of the state."""
        if not self.whole:
            yield from running.kept()
            return
        known.add(running.kept())
        known.compact(running.memories, running.passed)
        yield from ((id, slot, entries) for (id, slot), entries in known.entries.items())

    def _outputs(self, running: Running, events: list[Event]) -> Iterator[Output]:
        static = [event for event in events if event.is_static]
        for outputs in running.start(static, self.program.begin) if self.first else ():
            yield from outputs
        for outputs in running.take(events[len(static) :]):
            yield from outputs
        for outputs in running.drain() if self.last else ():
            yield from outputs
