"""The pipeline of a live run: an unbounded read of turns, and the step that works each of them off.

A *turn* is what live sources have brought since the one before. The driver writes it as a file, `turn-N`
(`squall.builders.beam.live`). The read, a splittable `DoFn` without an end, tails these files. The step behind it runs
the whole plan: it writes what comes of a turn, and what it keeps from then on, as `answers-N`. So a turn that is done
again changes nothing, and where a turn is done elsewhere than the one before, the step goes on from those files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import pyarrow
from pyarrow import compute

from squall.builders.beam import files
from squall.builders.beam.beam_import import beam
from squall.builders.beam.graph import LiveGraph
from squall.builders.distributed.exec.routing import DELIVER, PhysicalPlan
from squall.builders.distributed.io.parsing import unspool
from squall.builders.distributed.io.records import INSTANT, ROW, STATE, Record, RowBatch, from_arrow, parcels, to_arrow
from squall.builders.local.event_loop import Running
from squall.builders.runtime.serde import pack_output, unpack_output
from squall.builders.runtime.state import COMPACT, State
from squall.contracts import Options, Output
from squall.rdf import FOREVER, Event

_TIMES = beam.utils.timestamp
_TURN, _ANSWERS, _END = "turn", "answers", "end"
"""What files are named after. `end` says that there are no more turns, or that none is wanted any longer."""
BUNDLE = 1.0
"""Seconds after which a read puts off what is to come, so that a runner may take note of what has been done."""
PAUSE, LONGEST = 0.0005, 0.01
"""Seconds between two looks for a file: at first, and when nothing has come for a while."""
MOST = 1024
"""How many turns may lie behind the last one that wrote its state as a whole, at most."""
_LAST = (1 << 63) - 1
"""Behind all turns."""
_MICROS = 1000
"""Of a millisecond."""


def lay_live(root: Any, graph: LiveGraph, program: PhysicalPlan, steps: int, folder: str) -> None:
    """Puts into a pipeline what works turns off. steps: how often updates may act without an event in between."""
    read = Read(bundle_of(root))
    turns = root | f"{graph.turns}: folder" >> beam.Create([folder]) | graph.turns >> beam.ParDo(read)
    _ = turns | graph.all >> beam.ParDo(Work(program, steps))


# Files, for the driver as well


def write_turn(folder: str, number: int, events: Sequence[Event]) -> None:
    """Writes a turn. One without events, but for the first one, says that no more will come for the time being."""
    files.spool(folder, f"{_TURN}-{number}", [events])


def write_end(folder: str) -> None:
    """Says that no more turns are wanted."""
    files.spool(folder, _END, ())


def is_done(folder: str, number: int) -> bool:
    """Whether a turn has been worked off."""
    return files.exists(f"{folder}/{_ANSWERS}-{number}")


class Done(NamedTuple):
    """What has come of a turn. base: the last turn up to it that wrote its state as a whole."""

    outputs: list[Output]
    base: int


def read_done(folder: str, number: int) -> Done:
    """What has come of a turn that has been worked off."""
    said = list(_said(folder, number, (ROW, INSTANT)))
    outputs = [unpack_output(one.row, one.start) for one in said if one.kind == ROW]
    return Done(outputs, _times(said)["base"])


def delete_turn(folder: str, number: int) -> None:
    """Deletes a turn that has been worked off."""
    files.delete_file(f"{folder}/{_TURN}-{number}")


def delete_done(folder: str, number: int) -> None:
    """Deletes what has come of a turn, from which nobody goes on any longer."""
    files.delete_file(f"{folder}/{_ANSWERS}-{number}")


def _said(folder: str, number: int, kinds: Sequence[str]) -> Iterator[Record]:
    return from_arrow(_of_kinds(folder, number, kinds))


def _of_kinds(folder: str, number: int, kinds: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    wanted = pyarrow.array(kinds)
    for batch in files.read(f"{folder}/{_ANSWERS}-{number}"):
        yield batch.filter(compute.is_in(batch["kind"], wanted))


def _times(said: Iterable[Record]) -> dict[str, int]:
    return {one.row: one.start for one in said if one.kind == INSTANT}


# Reading


Turn = tuple[str, int, bytes]
"""A turn: the folder that it lies in, its number, and its events, as lines. (Bytes, as Beam looks how large it is what
goes from step to step, for which it pickles all else.)"""


class _Tracker(beam.io.restriction_trackers.OffsetRestrictionTracker):  # type: ignore[misc]
    """Turns from one on: they follow each other, so what is left can be put off, and nothing be done beside it."""

    def try_split(self, fraction_of_remainder: float) -> Any:
        return super().try_split(0) if fraction_of_remainder == 0 else None

    def is_bounded(self) -> bool:
        return False


class _Turns(beam.transforms.core.RestrictionProvider):  # type: ignore[misc]
    """All turns of a folder."""

    def initial_restriction(self, folder: str) -> Any:
        return beam.io.restriction_trackers.OffsetRange(0, _LAST)

    def create_tracker(self, restriction: Any) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, folder: str, restriction: Any) -> int:
        return 1  # nobody knows


_TURNS = beam.DoFn.RestrictionParam(_Turns())
WATERMARK = beam.DoFn.WatermarkEstimatorParam(beam.io.watermark_estimators.ManualWatermarkEstimator.default_provider())


def bundle_of(pipeline: Any) -> float:
    """For how many seconds a read that has no end goes on in a pipeline before it puts off what is to come: for ever,
    where the runner would take note of nothing, and hold 20 KB of memory for each time."""
    return inf if isinstance(pipeline.runner, beam.runners.portability.fn_api_runner.FnApiRunner) else BUNDLE


class Read(beam.DoFn):  # type: ignore[misc]
    """The turns of a folder, as they come. The watermark is the time of the last event. bundle: see `bundle_of`."""

    def __init__(self, bundle: float) -> None:
        self.bundle = bundle

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator]
    def process(self, folder: str, turns: Any = _TURNS, watermark: Any = WATERMARK) -> Iterator[Turn]:
        number = max(turns.current_restriction().start, _behind(folder))
        until = time.monotonic() + self.bundle
        while (came := _awaited(folder, number, until)) is not None:
            if not came:
                turns.try_claim(_LAST - 1)
                return
            if not turns.try_claim(number):
                return
            lines = files.read_whole(f"{folder}/{_TURN}-{number}")
            yield folder, number, lines
            for event in unspool(lines[lines.rfind(b"\n", 0, -1) + 1 :]):
                advance(watermark, event.time)
            number += 1
        turns.defer_remainder()


def advance(watermark: Any, time: int) -> None:
    """Moves a watermark on to an event time (integer ms)."""
    latest = timestamp(time)
    if (watermark.current_watermark() or _TIMES.MIN_TIMESTAMP) < latest < _TIMES.MAX_TIMESTAMP:
        watermark.set_watermark(latest)


def timestamp(time: int) -> Any:
    """A time (integer ms) as Beam has it."""
    return _TIMES.Timestamp(micros=time * _MICROS)


def _behind(folder: str) -> int:
    """The turn behind the last one that has been worked off: what is done again begins there."""
    numbers = (int(path.rpartition("-")[2]) for path in files.names(f"{folder}/{_ANSWERS}-*"))
    return max(numbers, default=-1) + 1


def _awaited(folder: str, number: int, until: float) -> bool | None:
    """Waits for a turn: whether it comes; None: it has not come up to then."""
    pause = PAUSE
    while not files.exists(f"{folder}/{_END}"):
        if files.exists(f"{folder}/{_TURN}-{number}"):
            return True
        if time.monotonic() > until:
            return None
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)
    return False


# Working turns off


class Work(beam.DoFn):  # type: ignore[misc]
    """Works turns off. The plan stays at work from one turn to the next where both are done by the same instance."""

    def __init__(self, program: PhysicalPlan, steps: int) -> None:
        self.program = program
        self.steps = steps
        self.at_work: AtWork | None = None

    def process(self, turn: Turn) -> None:
        folder, number, lines = turn
        at_work, self.at_work = self.at_work, None  # what fails in the middle is of no use any more
        if at_work is None or at_work.next != number:
            at_work = AtWork(self.program, self.steps, folder, number)
        files.write(folder, f"{_ANSWERS}-{number}", to_arrow(at_work.turn(unspool(lines))))
        self.at_work = at_work


@dataclass
class _Written:
    """What state has been written. base: the last turn that wrote it as a whole; whole, added: how many rows that
    wrote, and those since."""

    base: int = 0
    whole: int = 0
    added: int = 0

    def is_due(self, number: int) -> bool:
        """Whether a turn is to write it as a whole: when as much has been added, or very many turns have."""
        turns = number - self.base
        return turns >= MOST or (turns >= COMPACT and self.added >= self.whole)


class AtWork:
    """A plan at work in a live run. next: the turn that comes next; those before it are in files of the folder."""

    def __init__(self, program: PhysicalPlan, steps: int, folder: str, next: int) -> None:
        program.prepare()
        self.program = program
        self.folder = folder
        self.next = next
        self.running = Running(program.plan, Options(steps=steps))
        self.names = list(self.running.memories)
        self.written = _Written()
        if next:
            self._go_on()
        self.running.keep()

    def _go_on(self) -> None:
        """Takes back what the turns before have kept."""
        times = _times(_said(self.folder, self.next - 1, (INSTANT,)))
        self.written.base = times["base"]
        state = self._state()
        self.written.added = state.size()
        self.running.restore(times["passed"], self.program.begin, state.entries)

    def _state(self) -> State:
        """What the turns before have written, back to the last one that wrote all."""
        state = State()
        for number in range(self.written.base, self.next):
            for one in parcels(_of_kinds(self.folder, number, (STATE,))):
                state.add([(self.names[one.node], one.port, one.entries)])
        return state

    def turn(self, events: Sequence[Event]) -> Iterator[Record | RowBatch]:
        """The messages that come of the next turn."""
        for output in self._outputs(events):
            yield Record(ROW, DELIVER, 0, 0, 0, pack_output(output), output.time, FOREVER, 0)
        is_whole = self.written.is_due(self.next)
        kept = self._state() if is_whole else State()
        kept.add(self.running.kept())
        if is_whole:
            kept.compact(self.running.memories, self.running.passed)
            self.written = _Written(self.next, kept.size())
        else:
            self.written.added += kept.size()
        for (id, slot), entries in kept.entries.items():
            if entries:
                yield RowBatch(STATE, 0, 0, self.names.index(id), slot, entries)
        for name, number in (("passed", self.running.passed), ("base", self.written.base)):
            yield Record(INSTANT, 0, 0, 0, 0, name, number, 0, 0)
        self.next += 1

    def _outputs(self, events: Sequence[Event]) -> Iterator[Output]:
        if not self.next:
            found = self.running.start(events, self.program.begin)
        else:
            found = self.running.take(events) if events else self.running.drain()
        for outputs in found:
            yield from outputs
