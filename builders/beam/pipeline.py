"""A plan's pipeline: lines in, answers and all that the driver has to be told out, as files in a folder.

Between steps go messages (`squall.builders.distributed.io.records`), as Arrow, with an integer for the key: the bucket of
the columns that the next step groups by. What a step writes has the name of its key: a bundle that is done again
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from operator import attrgetter
from typing import Any

import pyarrow

from squall.builders.beam import files
from squall.builders.beam.beam_import import beam
from squall.builders.beam.graph import Graph, Step
from squall.builders.distributed.exec.output_stage import changing, delivery
from squall.builders.distributed.exec.report_times import ReportTimes, changes_only, note
from squall.builders.distributed.exec.routing import BUCKETS, DELIVER, TOGETHER, PhysicalPlan
from squall.builders.distributed.exec.sharded_plan import Task, facts, start_message
from squall.builders.distributed.exec.state_cache import State
from squall.builders.distributed.exec.worker import PLAIN, Span, axioms, source_step, superstep
from squall.builders.distributed.io.parsing import Parse
from squall.builders.distributed.io.records import COUNT, INSTANT, LOST, TIME, Record, from_arrow, to_arrow
from squall.builders.distributed.io.records import Step as Worker
from squall.builders.distributed.io.splits import Part
from squall.builders.distributed.io.task_output import ORDER
from squall.builders.runtime.report_times import Instants
from squall.rdf import ALWAYS, FOREVER

ALL = Span(ALWAYS - 1, FOREVER - 1)
"""All of time."""
_EACH = tuple(range(BUCKETS))
"""Each bucket is a group of its own."""
_TOLD, _INSTANTS, _ANSWERS = "told", "instants", "answers"
"""What files are named after: what the driver is told of lines, when there is something to be told, and what the last
step makes. The key comes behind that."""
_ROWS = 20_000
"""How many messages are sent on at once."""
Keyed = tuple[int, bytes]
"""Messages on their way, behind the key of the group that they are for."""
_FOR_DRIVER = {LOST: _TOLD, COUNT: _TOLD, INSTANT: _INSTANTS}
"""Where messages go that are no rows for a node."""


@dataclass(frozen=True)
class Routes:
    """Where messages go. tags: by the number of a node, the step that takes rows for it; otherwise: the step that takes
    all rows. spread: the steps whose rows are grouped by key; those of others are one group."""

    tags: Mapping[int, str] = field(default_factory=dict)
    otherwise: str = ""
    spread: frozenset[str] = frozenset()

    @property
    def all(self) -> tuple[str, ...]:
        """All places that messages may go to."""
        return (_TOLD, _INSTANTS, *dict.fromkeys(self.tags.values()), *filter(None, [self.otherwise]))

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Any]:
        """The messages of batches, by where they go."""
        boxes: dict[tuple[str, int], list[Record]] = {}
        for message in from_arrow(batches):
            if message.kind == TIME:  # the latest time is for runs that go on
                continue
            tag = _FOR_DRIVER.get(message.kind) or self.otherwise or self.tags[message.node]
            place = tag, message.bucket if tag in self.spread else 0
            box = boxes.setdefault(place, [])
            box.append(message)
            if len(box) == _ROWS:
                yield _sent(place, boxes.pop(place))
        for place, box in boxes.items():
            yield _sent(place, box)


def _sent(place: tuple[str, int], messages: Sequence[Record]) -> Any:
    tag, key = place
    return beam.pvalue.TaggedOutput(tag, (key, _encoded(to_arrow(messages))))


def _encoded(batches: Iterable[pyarrow.RecordBatch]) -> bytes:
    sink = pyarrow.BufferOutputStream()
    files.write_to(sink, batches)
    return bytes(sink.getvalue())


def _decoded(parts: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
    for part in parts:
        yield from pyarrow.ipc.open_stream(part)


@dataclass(frozen=True)
class Input:
    """What a pipeline reads. parts: of files; parse: turns their lines into facts; folder: where its outcome goes."""

    parts: Sequence[Part]
    parse: Parse
    folder: str


Group = tuple[int, Iterable[bytes]]
"""The messages of a key, all of them."""


def _reading(worker: Worker, routes: Routes) -> Callable[[Part], Iterator[Any]]:
    def read(part: Part) -> Iterator[Any]:
        return routes(worker(files.read_lines(part)))

    return read


def _working(worker: Worker, routes: Routes) -> Callable[[Group], Iterator[Any]]:
    def work(group: Group) -> Iterator[Any]:
        return routes(worker(_decoded(group[1])))

    return work


def _writing(
    folder: str, name: str, worker: Callable[[Iterable[bytes]], Iterable[pyarrow.RecordBatch]]
) -> Callable[[Group], Iterator[Any]]:
    def write(group: Group) -> Iterator[Any]:
        files.write(folder, f"{name}-{group[0]}", worker(group[1]))
        return iter(())

    return write


def _sources(root: Any, name: str, worker: Worker, routes: Routes, given: Input) -> Any:
    """What the lines of sources send. The parts are spread before they are read: making them took one worker."""
    parts = root | f"{name}: parts" >> beam.Create(given.parts) | f"{name}: spread" >> beam.Reshuffle()
    return parts | name >> beam.FlatMap(_reading(worker, routes)).with_outputs(*routes.all)


def _grouped(came: Sequence[Any], name: str) -> Any:
    """What comes from several steps, by key. That keys are integers has to be said: what is encoded for want of a type
    need not be the same everywhere."""
    rows = came | f"{name}: rows" >> beam.Flatten().with_output_types(Keyed)
    return rows | f"{name}: by key" >> beam.GroupByKey()


def _tell(grouped: Any, folder: str, name: str) -> None:
    """Writes messages down for the driver."""
    _ = grouped | f"{name}: written" >> beam.FlatMap(_writing(folder, name, _decoded))


# Plans whose rows are grouped by key


class Layout:
    """The pipeline of such a plan, step by step."""

    def __init__(self, root: Any, graph: Graph, program: PhysicalPlan, given: Input) -> None:
        self.root = root
        self.graph = graph
        self.program = program
        self.given = given
        self.numbers = program.addressing().numbers
        self.spread = frozenset(step.name for step in graph.steps if not step.why)
        self.sent: dict[str, Any] = {}
        """What each step sends, by the places that it is for."""
        self.axioms: dict[str, list[Keyed]] = {}
        """What axioms send, alike."""

    def lay(self) -> None:
        """Puts all steps into the pipeline."""
        for tagged in self._routes(self.graph.steps)(to_arrow(axioms(self.program))):
            self.axioms.setdefault(tagged.tag, []).append(tagged.value)
        sources = self.graph.sources.name
        worker = source_step(self.program, ALWAYS, self.given.parse)
        self.sent[sources] = _sources(self.root, sources, worker, self._routes_of(sources), self.given)
        for step in self.graph.levels:
            if (rows := self._rows(step)) is not None:
                routes = self._routes_of(step.name)
                work = _working(self._worker(step), routes)
                self.sent[step.name] = rows | step.name >> beam.FlatMap(work).with_outputs(*routes.all)
        _tell(_grouped([self.sent[sources][_TOLD]], _TOLD), self.given.folder, _TOLD)
        self._end(self._rows(self.graph.end), self.sent[sources][_INSTANTS])

    def _worker(self, step: Step) -> Worker:
        assert step.level is not None
        owners = TOGETHER if step.why else _EACH
        return superstep(self.program, [step.level], PLAIN, ALL, State((step.level.number,), owners))

    def _routes_of(self, sender: str) -> Routes:
        return self._routes(step for step in self.graph.steps if sender in self.graph.senders.get(step.name, ()))

    def _routes(self, receivers: Iterable[Step]) -> Routes:
        return Routes({self.numbers[id]: step.name for step in receivers for id in step.nodes}, spread=self.spread)

    def _rows(self, step: Step) -> Any:
        """The rows for a step, grouped; None if there can be none."""
        name = step.name
        came = [self.sent[sender][name] for sender in self.graph.senders[name] if sender in self.sent]
        if name in self.axioms:
            came.append(self.root | f"{name}: axioms" >> beam.Create(self.axioms[name]))
        return _grouped(came, name) if came else None

    def _end(self, rows: Any, instants: Any) -> None:
        """Makes the answers. When those that are told whole are told, only all of the streams can say."""
        name, program, folder = self.graph.end.name, self.program, self.given.folder
        tells_whole = any(op.output == "rstream" for _, op in program.plan.sinks)
        if tells_whole and rows is not None:
            _ = rows | name >> beam.FlatMap(_delivering(program, folder), self._known(rows, instants))
        elif tells_whole:
            _tell(_grouped([instants], _INSTANTS), folder, _INSTANTS)
        elif rows is not None:
            _ = rows | name >> beam.FlatMap(_writing(folder, _ANSWERS, _answering(program, ReportTimes())))

    def _known(self, rows: Any, instants: Any) -> Any:
        """When these answers are told, for the last step and for the driver. Of one that is told where it has changed,
        each group says first where its part has."""
        name, program = self.graph.end.name, self.program
        came = [instants]
        if any(changes_only(op) for _, op in program.plan.sinks):
            at = _side(_grouped(came, f"{name}: evaluated"), f"{name}: when evaluated", program, _evaluated)
            came.append(rows | f"{name}: changes" >> beam.FlatMap(_changing(program), at))
        grouped = _grouped(came, _INSTANTS)
        _tell(grouped, self.given.folder, _INSTANTS)
        return _side(grouped, f"{name}: when told", program, evaluations)


When = Callable[[PhysicalPlan, Collection[Record]], ReportTimes]


def _side(grouped: Any, name: str, program: PhysicalPlan, when: When) -> Any:
    """What messages say of when answers are told, computed once, for each group to see."""
    found = grouped | name >> beam.Map(lambda group: when(program, list(from_arrow(_decoded(group[1])))))
    return beam.pvalue.AsSingleton(found, default_value=when(program, ()))


def evaluations(program: PhysicalPlan, told: Collection[Record]) -> ReportTimes:
    """When the answers that are told whole are told, as far as messages to the driver say."""
    changed = {(one.node, one.start) for one in told if one.kind == INSTANT and not one.row}
    return _evaluated(program, told).reported(program.plan, changed)


def _evaluated(program: PhysicalPlan, told: Collection[Record]) -> ReportTimes:
    """When they are evaluated."""
    plan, numbers = program.plan, program.addressing().numbers
    instants = {numbers[node.id]: Instants(op) for node, op in plan.sinks if op.output == "rstream"}
    came = {(one.row, one.node, one.start) for one in told if one.kind == INSTANT and one.row}
    note(instants, came)
    return ReportTimes.upto(instants, ALL.now)


_OF_THE_END = State((DELIVER,), TOGETHER)
"""Nothing is kept."""


def _changing(program: PhysicalPlan) -> Callable[[Group, ReportTimes], Iterator[Keyed]]:
    def change(group: Group, at: ReportTimes) -> Iterator[Keyed]:
        yield 0, _encoded(changing(program, ALL, at, _OF_THE_END)(_decoded(group[1])))

    return change


def _delivering(program: PhysicalPlan, folder: str) -> Callable[[Group, ReportTimes], Iterator[Any]]:
    def deliver(group: Group, at: ReportTimes) -> Iterator[Any]:
        return _writing(folder, _ANSWERS, _answering(program, at))(group)

    return deliver


def _answering(program: PhysicalPlan, known: ReportTimes) -> Callable[[Iterable[bytes]], Iterator[pyarrow.RecordBatch]]:
    """What makes the answers of a group, in order."""
    worker = delivery(program, ALL, known, _OF_THE_END)

    def answer(parts: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
        ordered = sorted(from_arrow(worker(_decoded(parts))), key=_in_turn)
        return to_arrow(ordered)

    return answer


_in_turn: Callable[[Record], Any] = attrgetter(*ORDER)
"""Where among all answers one belongs."""


# Plans that one group runs


def lay_whole(root: Any, graph: Graph, program: PhysicalPlan, given: Input, task: Task) -> None:
    """Puts into the pipeline what runs such a plan. task: what the group does."""
    name, routes = graph.end.name, Routes(otherwise=graph.end.name)
    worker = _finding(program, given.parse, task.steps)
    sent = _sources(root, graph.sources.name, worker, routes, given)
    start = root | f"{name}: start" >> beam.Create([one.value for one in routes(to_arrow([start_message()]))])
    rows = _grouped([sent[name], start], name)
    _ = rows | name >> beam.FlatMap(_writing(given.folder, _ANSWERS, _taking(task)))
    _tell(_grouped([sent[_TOLD]], _TOLD), given.folder, _TOLD)


def _finding(program: PhysicalPlan, parse: Parse, steps: int) -> Worker:
    def find(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(facts(program.plan, ALWAYS, parse(batches, None, ALWAYS), steps))

    return find


def _taking(task: Task) -> Callable[[Iterable[bytes]], Iterator[pyarrow.RecordBatch]]:
    def take(parts: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
        return task(_decoded(parts))

    return take


# What comes of it


def told(folder: str) -> list[Record]:
    """What the driver is told."""
    paths = [path for name in (_TOLD, _INSTANTS) for path in files.names(f"{folder}/{name}-*")]
    return [one for path in paths for one in from_arrow(files.read(path))]


def answers(folder: str) -> Iterator[Record]:
    """What the last step has written, a file for each group, in order."""
    paths = files.names(f"{folder}/{_ANSWERS}-*")
    return merge(*(from_arrow(files.read(path)) for path in paths), key=_in_turn)
