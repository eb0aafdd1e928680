"""What a distributed builder runs in its workers: lines to addressed rows, and one superstep of a level, over Arrow.

A *message* is an entry with an address, as one flat record (`SCHEMA`): the same form for rows on their way to a node,
for what a node keeps between batches, for answers on their way out, and for statements that could not be used.
`squall.builders.packing` says how a row is one string.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import unquote, urlsplit

import pyarrow

from squall import functions
from squall.builders.cut import Level
from squall.builders.machine import Machine
from squall.builders.network import Address
from squall.builders.packing import orders, pack, unpack
from squall.builders.rows.entries import Entry, fact_row, row_fact
from squall.builders.state import compacted
from squall.errors import BuilderError, UsageError
from squall.operators import Group, Operator, is_stateful
from squall.plan import Plan
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, HEARTBEAT, Event, Fact
from squall.streams.formats import parse_lines, told
from squall.streams.reading import grouped
from squall.windows import Count, Window

ROW, STATE, LOST, TIME, COUNT, INSTANT = "row", "state", "lost", "time", "count", "instant"
"""The kinds of message: a row for a node; what a node keeps; a statement that could not be used; the latest time; how
many statements (`start`) of a source (`node`) were read; a time at which a stream, in a graph, brought something."""
WAKE = -1
"""The port of a message without a row: a node has something to do though nothing has come for it."""
BUCKETS = 64
"""Into how many buckets keys are hashed: the finest that state can be spread over. Part of what a checkpoint means."""
Owners = tuple[int, ...]
"""For each bucket, the partition that its rows lie in after a shuffle."""
TOGETHER: Owners = (0,) * BUCKETS
"""All rows in one task."""
DELIVER = 1_000_000
"""The level of the operation node: after all others."""

SCHEMA = "kind string, level int, bucket int, node int, port int, row string, start long, `end` long, weight int"


class Message(NamedTuple):
    """A flat record of `SCHEMA`."""

    kind: str
    level: int
    bucket: int
    node: int
    port: int
    row: str
    start: int
    end: int
    weight: int


ARROW = pyarrow.schema(
    [
        ("kind", pyarrow.string()), ("level", pyarrow.int32()), ("bucket", pyarrow.int32()), ("node", pyarrow.int32()),
        ("port", pyarrow.int32()), ("row", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()),
        ("weight", pyarrow.int32()),
    ]
)  # fmt: skip
_CHUNK = 20_000


def to_arrow(messages: Iterable[Message]) -> Iterator[pyarrow.RecordBatch]:
    """Messages in batches. A BuilderError on the way is raised as `Failed`."""
    chunk: list[Message] = []
    try:
        for message in messages:
            chunk.append(message)
            if len(chunk) == _CHUNK:
                yield _batch(chunk)
                chunk = []
    except BuilderError as error:
        raise Failed(error) from None
    if chunk:
        yield _batch(chunk)


class Failed(Exception):
    """A run that failed in a worker for a reason the user can mend. All that the driver gets of it is its text."""

    def __init__(self, error: BuilderError) -> None:
        told = json.dumps([error.message, error.hint])
        super().__init__(f"<squall {b64encode(told.encode()).decode()}>")

    @staticmethod
    def found(error: BaseException) -> BuilderError | None:
        """The error of a worker that an engine's error tells of; None if there is none."""
        told = re.search("<squall ([A-Za-z0-9+/=]+)>", str(error))
        if told is None:
            return None
        message, hint = json.loads(b64decode(told[1]))
        return BuilderError(message, hint=hint)


def _batch(chunk: Sequence[Message]) -> pyarrow.RecordBatch:
    columns = [
        pyarrow.array(values, type=field.type) for values, field in zip(zip(*chunk, strict=True), ARROW, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=ARROW)


def from_arrow(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Message]:
    """The messages of batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ARROW.names)
        yield from map(Message._make, zip(*columns, strict=True))


@dataclass(frozen=True)
class Program:
    """What every worker knows. own: the functions that users registered by hand (workers do not import their
    modules). begin: what functions of time take for the time of what always holds (integer ms)."""

    plan: Plan
    levels: tuple[Level, ...]
    own: tuple[functions.Function | functions.Builtin, ...] = ()
    begin: int = 0

    def prepare(self) -> None:
        """Makes the users' functions known in this process."""
        functions.register(*self.own)

    def addressing(self) -> Addressing:
        return Addressing(self)


class Addressing:
    """Turns entries for a node into messages: its number, its level, and the bucket of each row's key."""

    def __init__(self, program: Program) -> None:
        plan = program.plan
        self.ids = [node.id for node in plan.nodes]
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        self.levels = {id: level.number for level in program.levels for id in level.nodes}
        self.levels |= {node.id: DELIVER for node, _ in plan.deliveries}
        self.keys = {
            (node.id, port): edge.columns or ()
            for node in plan.nodes if is_stateful(node.op)
            for port, edge in enumerate(node.inputs)
        }  # fmt: skip

    def bucket(self, address: Address, row: Sequence[str | None]) -> int:
        """The bucket of a row: a hash of its grouping columns that is the same in every process."""
        key = self.keys[address]
        text = row[key[0]] if len(key) == 1 else "\n".join([row[column] or "" for column in key])
        return zlib.crc32((text or "").encode()) % BUCKETS

    def wake(self, id: str) -> Message:
        """The message that lets a node work whose rows all meet in one place, though none has come for it."""
        return Message(ROW, self.levels[id], self.bucket((id, 0), ()), self.numbers[id], WAKE, "", ALWAYS, FOREVER, 1)

    def rows(self, address: Address, entries: Iterable[Entry]) -> Iterator[Message]:
        """Entries for an address, as messages."""
        id, port = address
        level, number = self.levels[id], self.numbers[id]
        for *row, start, end, weight in entries:
            yield Message(ROW, level, self.bucket(address, row), number, port, pack(row), start, end, weight)

    def state(self, id: str, slot: int, entries: Iterable[Entry]) -> Iterator[Message]:
        """What a node keeps, as messages. The bucket of a slot's rows is that of the input they came on."""
        level, number = self.levels[id], self.numbers[id]
        address = (id, slot) if (id, slot) in self.keys else (id, 0)
        for *row, start, end, weight in entries:
            yield Message(STATE, level, self.bucket(address, row), number, slot, pack(row), start, end, weight)


# Sources


class Document(NamedTuple):
    """How the lines of a source are read.

    name: the path of the file, or of the folder, as the user gave it. format, time (ms, of untimed statements), stream:
    as in the source's address. spooled: the lines are what `spool_line` made, not RDF.
    """

    name: str
    stream: str = ""
    format: str = ""
    time: int = 0
    folder: bool = False
    spooled: bool = False

    def of(self, path: str) -> str:
        """The name of the document that a file is: it scopes blank nodes, in the same way on every builder."""
        return str(Path(self.name, Path(path).name)) if self.folder else self.name


class Parsed(NamedTuple):
    """What a run of lines of one source held, and what was lost of it. file, block: where it is from, by its name and
    where that part of it begins; what is of one block comes in order."""

    source: int
    events: list[Event]
    lost: list[Lost]
    file: str = ""
    block: int = 0


Parse = Callable[[Iterable[pyarrow.RecordBatch]], Iterator[Parsed]]
"""From lines, with the places that they are from, to what they hold."""


def spool_lines(event: Event) -> Iterator[str]:
    """The facts of an event, or an event without any, as lines of a spool file: so does what Spark cannot read go to
    its workers."""
    place = event.time, event.stream, event.graph
    kinds = [("removed", fact) for fact in event.removed] + [("fact", fact) for fact in event.facts]
    for line in [[*place, kind, *fact_row(fact)[:-1]] for kind, fact in kinds] or [[*place, "event"]]:
        yield json.dumps(line, ensure_ascii=False)


def lines_parser(documents: Sequence[Document]) -> Parse:
    """The function from batches of lines (columns value, file, block, source) to what they hold. `source` numbers the
    documents; `file` and `block` say where a line is from: the lines of a block come in order."""

    def parse(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Parsed]:
        counts: dict[tuple[str, int], int] = {}
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("file", "block", "source", "value")]
            for (file, block, source), group in groupby(zip(*columns, strict=True), key=itemgetter(0, 1, 2)):
                lines = [line for _, _, _, line in group]
                before = counts.get((file, block), 0)
                counts[file, block] = before + len(lines)
                path = unquote(urlsplit(file).path)
                yield Parsed(source, *_parse(documents[source], path, block, before, lines), file, block)

    return parse


def _parse(document: Document, path: str, block: int, before: int, lines: list[str]) -> tuple[list[Event], list[Lost]]:
    if document.spooled:
        return list(_unspool(lines)), []
    name = document.of(path)
    if path.endswith(".tmp"):  # a file that is still being written
        return [], []
    try:
        format, _ = told(path, document.format)
    except UsageError as error:
        return [], [Lost("malformed", name, 0, 0, error.message, "")] if block == before == 0 else []
    found, bad = parse_lines(lines, name, format.timed, format.name, document.time)
    lost = [Lost("malformed", name, block, before + index + 1, reason, text) for index, reason, text in bad]
    return (grouped(found, document.stream) if found else []), lost


def _unspool(lines: list[str]) -> Iterator[Event]:
    for line in lines:
        time, stream, graph, kind, *cells = json.loads(line)
        yield event_of(time, stream, graph, kind, cells)


def event_of(time: int, stream: str, graph: str, kind: str, cells: Sequence[str]) -> Event:
    """An event of one fact that comes (kind ``fact``) or ends (``removed``), or of none (``event``). cells: the fact's
    row."""
    facts = (cast(Fact, row_fact(cells)),) if cells else ()
    return Event(time, facts if kind == "fact" else (), stream, facts if kind == "removed" else (), graph)


class Lost(NamedTuple):
    """A statement that could not be used: how it is kept in a message's row."""

    cause: str
    source: str
    block: int
    line: int
    reason: str
    text: str


def lost_message(lost: Lost) -> Message:
    """A lost statement as a message."""
    return Message(LOST, 0, 0, 0, 0, json.dumps(lost), 0, 0, 0)


def source_step(
    program: Program, passed: int, parse: Parse
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """The worker's function from lines to messages for the first nodes that keep rows. passed: the time (ms) before
    which events are late."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(source_messages(program, passed, parse(batches)))

    return step


def source_messages(program: Program, passed: int, parsed: Iterable[Parsed]) -> Iterator[Message]:
    """The messages that come of what sources held."""
    machine = Machine(program.plan, hosted=())
    addressing = program.addressing()
    evaluations = _Evaluations(program.plan)
    counts: Counter[int] = Counter()
    latest = ALWAYS
    for source, events, lost, *_ in parsed:
        counts[source] += sum(len(event.facts) for event in events)
        yield from map(lost_message, lost)
        timely = [event for event in events if event.time >= passed]
        for event in events:
            if event.time < passed:
                yield from (lost_message(late(event.stream, event.time, fact)) for fact in event.facts)
        machine.read(timely)
        latest = max([latest, *(event.time for event in timely)])
        evaluations.add(timely)
        machine.run()
        yield from _outbox(machine, addressing)
    if latest > ALWAYS:
        yield Message(TIME, 0, 0, 0, 0, "", latest, 0, 0)
    yield from evaluations.messages()
    for source, count in counts.items():
        yield Message(COUNT, 0, 0, source, 0, "", count, 0, 0)


class _Evaluations:
    """Of the times at which streams bring something those that make a difference to when an answer is evaluated: where
    windows have steps, the first of each step."""

    def __init__(self, plan: Plan) -> None:
        whole = (op for _, op in plan.deliveries if op.output == "rstream")
        self.sources = tuple(dict.fromkeys(source for op in whole for source in op.sources))
        self.windows: dict[tuple[str, str], tuple[Window, ...]] = {}
        """Those through which what a stream brings in a graph is read."""
        self.first: dict[tuple[Hashable, ...], tuple[int, str, str]] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Takes note of events."""
        for event in events if self.sources else ():
            if event.stream == HEARTBEAT or event.time == ALWAYS:
                continue
            place = event.stream, event.graph
            windows = self.windows.get(place)
            if windows is None:
                read = (source for source in self.sources if source.reads(*place))
                windows = self.windows[place] = tuple(source.window_of(event.stream) for source in read)
            spans = tuple(window.validity(event.time) for window in windows if not isinstance(window, Count))
            known = self.first.get((*place, spans))
            if windows and (known is None or event.time < known[0]):
                self.first[*place, spans] = (event.time, *place)

    def messages(self) -> Iterator[Message]:
        """What has been noted."""
        for time, stream, graph in self.first.values():
            yield Message(INSTANT, 0, 0, 0, 0, pack((stream, graph)), time, 0, 0)


def late(stream: str, time: int, fact: Fact) -> Lost:
    """A fact whose time has passed."""
    return Lost("late", stream or DEFAULT_STREAM, 0, 0, f"its time {time} has passed", f"{time} {fact}")


def _outbox(machine: Machine, addressing: Addressing) -> Iterator[Message]:
    waiting, machine.outbox = machine.outbox, {}
    for address, entries in waiting.items():
        yield from addressing.rows(address, entries)


def axioms(program: Program) -> list[Message]:
    """The messages that start a program: what its axioms make; and what has a row of nothing is to tell it."""
    program.prepare()
    machine = Machine(program.plan, hosted=())
    machine.start(program.begin)
    machine.run()
    addressing = program.addressing()
    waking = [addressing.wake(node.id) for node in program.plan.nodes if _tells_of_nothing(node.op)]
    return [*_outbox(machine, addressing), *waking]


def _tells_of_nothing(op: Operator) -> bool:
    return isinstance(op, Group) and not op.keys


# Supersteps

PLAIN, DELETE, REDERIVE = "plain", "delete", "rederive"
"""The phases of a superstep. Plain: all there is to do, once. Where deletions cross partitions they take two phases
with rounds of their own: what may have lost its reason goes; then what still has one comes back."""


class Span(NamedTuple):
    """Time passes: instants up to `before` have been worked off, those up to `now` are to be (integer ms)."""

    before: int
    now: int


def superstep(
    program: Program, levels: Sequence[Level], phase: str, owners: Owners, span: Span
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """The worker's function for one round of some levels: a partition's state and new rows in, what they lead to out.

    Rows whose bucket is here are worked off at once; others are left for the next round.
    """

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(superstep_messages(program, levels, phase, owners, span, from_arrow(batches)))

    return step


def superstep_messages(
    program: Program,
    levels: Sequence[Level],
    phase: str,
    owners: Owners,
    span: Span,
    messages: Iterable[Message],
) -> Iterator[Message]:
    """What one round of some levels makes of the messages of a partition."""
    state: dict[tuple[int, int], list[Entry]] = {}
    fresh: dict[tuple[int, int], list[Entry]] = {}
    here: set[int] = set()
    for kind, _, bucket, node, port, row, start, end, weight in messages:
        box = state if kind == STATE else fresh
        box.setdefault((node, port), []).append((*unpack(row), start, end, weight))
        here.add(owners[bucket])
    if len(here) > 1:
        raise AssertionError(f"rows of the partitions {sorted(here)} in one task")
    timely = span.before < span.now and any(level.timely for level in levels)
    if not here or not (fresh or timely or phase == REDERIVE):
        return
    addressing = program.addressing()
    machine = _Partition(program, levels, addressing, owners, here)
    machine.begin(program.begin)
    machine.restore(span.before, {(addressing.ids[number], slot): kept for (number, slot), kept in state.items()})
    machine.keep()
    for (number, port), entries in fresh.items():
        if port != WAKE:
            machine.receive((addressing.ids[number], port), entries)
    machine.work(phase, span.now)
    yield from _outbox(machine, addressing)
    for id, slot, entries in machine.kept():
        yield from addressing.state(id, slot, entries)


class _Partition(Machine):
    """A machine for the buckets of one partition, on some levels: what belongs to others goes to the outbox."""

    def __init__(
        self, program: Program, levels: Sequence[Level], addressing: Addressing, owners: Owners, here: set[int]
    ) -> None:
        super().__init__(program.plan, hosted=[id for level in levels for id in level.nodes])
        self.addressing = addressing
        self.owners = owners
        self.here = here
        for node in program.plan.nodes:
            if node.id in self.driven and _tells_of_nothing(node.op) and not self._is_here((node.id, 0), ()):
                del self.driven[node.id]

    def _is_here(self, address: Address, row: Sequence[str | None]) -> bool:
        return self.owners[self.addressing.bucket(address, row)] in self.here

    def put(self, address: Address, entries: Sequence[Entry]) -> None:
        if address not in self.addressing.keys or address[0] not in self.operators:
            super().put(address, entries)
            return
        here: list[Entry] = []
        for entry in entries:
            local = self._is_here(address, entry[:-3])
            (here if local else self.outbox.setdefault(address, [])).append(entry)
        if here:
            self.receive(address, here)

    def work(self, phase: str, now: int) -> None:
        """One phase of every component, until nothing is left to do here."""
        if phase == PLAIN:
            self.run(now)
            return
        if phase == REDERIVE:
            for component in self.plan.components:
                self.rederive(component)
        self._wake(now)
        for component in self.busy():
            if phase == DELETE:
                self.delete(component)
            else:
                self.fixpoint(component)
            if component[0] in self.driven:
                self._advance(component[0], self.driven[component[0]], now)


# State


def compaction(
    program: Program, passed: int
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """The worker's function that adds up what nodes keep, and forgets what has ended. passed: the time (integer ms)
    that has been worked off: everything to come begins there or later."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        program.prepare()
        return to_arrow(_compacted(program, passed, from_arrow(batches)))

    return step


def _compacted(program: Program, passed: int, messages: Iterable[Message]) -> Iterator[Message]:
    slots: dict[tuple[int, int], list[Entry]] = {}
    ordered = orders(program.plan)
    for message in messages:
        entry = (*unpack(message.row, ordered), message.start, message.end, message.weight)
        slots.setdefault((message.node, message.port), []).append(entry)
    addressing = program.addressing()
    memories = Machine(program.plan).memories
    for (number, slot), entries in slots.items():
        id = addressing.ids[number]
        yield from addressing.state(id, slot, compacted(entries, passed, memories[id].together(slot)))
