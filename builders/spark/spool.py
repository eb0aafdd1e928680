"""What Spark cannot read by itself, written as files that it can: now if it ends, else as it comes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from squall.builders.distributed.lines import spool_lines
from squall.rdf import Event

SPOOL_SECONDS = 0.2
"""For how long a live stream's events are gathered into one file, at most."""
Arriving = queue.Queue[Sequence[Event] | None]
"""Batches that wait to be written; None: there are no more."""


class Spool:
    """Writes the batches of a live stream while the query runs. fail: is told what goes wrong."""

    def __init__(self, folder: Path, fail: Callable[[BaseException], None]) -> None:
        self.folder = folder
        self.fail = fail
        self.name = f"{time.time_ns()}"
        self.arriving: Arriving = queue.Queue(maxsize=10_000)
        self.writer = threading.Thread(target=self._write, daemon=True)

    def start(self, batches: Iterable[Sequence[Event]]) -> None:
        """Begins to take the batches as they come, in a thread of its own: nobody knows when the next one does."""
        threading.Thread(target=self._listen, args=(batches,), daemon=True).start()
        self.writer.start()

    def join(self, seconds: float) -> bool:
        """Whether all batches have been written; waits so long for it at most."""
        self.writer.join(seconds)
        return not self.writer.is_alive()

    def _listen(self, batches: Iterable[Sequence[Event]]) -> None:
        try:
            for batch in batches:
                self.arriving.put(batch)
        except BaseException as error:  # given to the thread that takes the outputs
            self.fail(error)
        self.arriving.put(None)

    def _write(self) -> None:
        """Writes what has arrived as files, each of what came within `SPOOL_SECONDS` of its first batch."""
        number, ended = 0, False
        try:
            while not ended and (first := self.arriving.get()) is not None:
                together, ended = _gather(self.arriving, first)
                write(self.folder, together, f"{self.name}-{number:09d}")
                number += 1
        except BaseException as error:  # given to the thread that takes the outputs
            self.fail(error)


def _gather(arriving: Arriving, first: Sequence[Event]) -> tuple[list[Sequence[Event]], bool]:
    """The first batch, what comes soon after it, and whether that was the end."""
    together, limit = [first], time.monotonic() + SPOOL_SECONDS
    while (left := limit - time.monotonic()) > 0:
        try:
            batch = arriving.get(timeout=left)
        except queue.Empty:
            break
        if batch is None:
            return together, True
        together.append(batch)
    return together, False


def write(folder: Path, batches: Iterable[Sequence[Event]], name: str, time: int | None = None) -> bool:
    """Writes events as a file of lines that workers read back; complete before it has its name. Whether there are
    any."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"_{name}"
    with draft.open("w", encoding="utf-8") as file:
        for batch in batches:
            for event in batch:
                placed = event if time is None else event._replace(time=time)
                file.writelines(f"{line}\n" for line in spool_lines(placed))
    if not draft.stat().st_size:
        draft.unlink()
        return False
    draft.rename(folder / f"{name}.json")
    return True
