"""The driver of a live run: reads sources ahead of one pipeline, hands it turns, and hands on what comes of them.

A thread reads the sources, another one runs the pipeline. What is at hand when the pipeline has room becomes a turn
(`squall.builders.beam.live_pipeline`). Its outputs are handed on as soon as they are there, and then its sources are told.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from squall.builders.beam.live_pipeline import (
    LONGEST,
    PAUSE,
    delete_done,
    delete_turn,
    is_done,
    read_done,
    write_end,
    write_turn,
)
from squall.builders.distributed.io.parsing import Lost
from squall.builders.distributed.io.prefetch import Ended, Intake, Part, split
from squall.builders.local.replay import Given
from squall.contracts import Output
from squall.errors import BuilderError
from squall.rdf import Event
from squall.streams import Sources

TURNS = 2
"""How many turns there may be that have not been handed on: one at work, and one for when that is done."""
_IDLE = 0.1
"""Seconds between two looks whether the pipeline is still there, while nothing comes."""


class Pipeline:
    """A pipeline at work in a thread."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="runs the pipeline", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._run()
        except BaseException as error:  # raised by the thread that takes the outputs
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether it does not work any more; what it has done is to be seen then."""
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException:
        """Why it has ended before its sources."""
        return self._error or BuilderError("the pipeline has ended, and its sources have not")

    def join(self) -> None:
        """Waits until it has ended."""
        self._thread.join()


class Waiting(NamedTuple):
    """What has not been handed on yet. turn: its number; None: there is none, as nothing came but what was lost."""

    turn: int | None
    lost: Sequence[Lost]
    positions: Mapping[int, str]


class Live:
    """A live run. folder: where turns and what comes of them lie; lose: is told what cannot be used."""

    def __init__(self, folder: str, inputs: Sources | Given, lose: Callable[[Lost], None]) -> None:
        self.folder = folder
        self.intake = Intake(inputs)
        self.lose = lose
        self.turns = 0
        """How many there have been."""
        self.base = 0
        """The last one handed on that wrote state as a whole."""
        self.waiting: deque[Waiting] = deque()
        self.acknowledged: Mapping[int, str] = {}

    def outputs(self, run: Callable[[], None], static: Iterable[Event]) -> Iterator[Output]:
        """The outputs, turn by turn. run: runs the pipeline; static: what always holds."""
        self._write(list(static), [])
        pipeline = Pipeline(run)
        try:
            self.intake.start()
            yield from self._as_they_come(pipeline)
        finally:
            write_end(self.folder)
            self.intake.close()
            pipeline.join()

    def _as_they_come(self, pipeline: Pipeline) -> Iterator[Output]:
        ended: Ended | None = None
        pause = PAUSE
        while self.waiting or ended is None:
            over = pipeline.ended
            if self.waiting and self._is_done(self.waiting[0]):
                yield from self._hand_on(self.waiting.popleft())
                pause = PAUSE
                continue
            if over:
                raise pipeline.error
            came: list[Part | Ended] = []
            if ended is None and len(self.waiting) < TURNS:
                came = self.intake.take(pause if self.waiting else _IDLE)
            else:
                time.sleep(pause)
            if came:
                ended = self._take(came)
            pause = PAUSE if came else min(2 * pause, LONGEST)
        if ended.error is not None:
            raise ended.error

    def _take(self, came: Sequence[Part | Ended]) -> Ended | None:
        """Makes a turn of what has come, and the last one of the end, if that has."""
        parts, ended = split(came)
        events = [event for part in parts for event in part.events]
        if events:
            self._write(events, parts)
        elif parts:
            self._wait(None, parts)
        if ended is not None and ended.error is None:
            self._write([], [])
        return ended

    def _write(self, events: Sequence[Event], parts: Sequence[Part]) -> None:
        write_turn(self.folder, self.turns, events)
        self._wait(self.turns, parts)
        self.turns += 1

    def _wait(self, turn: int | None, parts: Sequence[Part]) -> None:
        lost = [lost for part in parts for lost in part.lost]
        self.waiting.append(Waiting(turn, lost, parts[-1].positions if parts else self.acknowledged))

    def _is_done(self, waiting: Waiting) -> bool:
        return waiting.turn is None or is_done(self.folder, waiting.turn)

    def _hand_on(self, waiting: Waiting) -> Iterator[Output]:
        """Hands on what has come of a turn, and tells its sources."""
        for lost in waiting.lost:
            self.lose(lost)
        if waiting.turn is not None:
            done = read_done(self.folder, waiting.turn)
            yield from done.outputs
            delete_turn(self.folder, waiting.turn)
            for turn in range(self.base, done.base):
                delete_done(self.folder, turn)
            self.base = done.base
        if waiting.positions != self.acknowledged:
            self.intake.inputs.acknowledge(waiting.positions)
            self.acknowledged = waiting.positions
