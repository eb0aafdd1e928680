"""The spool: input that Spark cannot read by itself, written as files that it can, with the offsets of its sources.

A file is written under a hidden name. Then the offsets file says that it counts, and then it gets its final name. So a
run that is killed anywhere reads nothing twice that is in the spool, and replays everything else from its sources.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from squall.builders.distributed.io.parsing import dead_letter_line, spool_lines, unspool
from squall.builders.distributed.io.prefetch import EndOfSources, PrefetchedBatch, Prefetcher, split_end
from squall.builders.distributed.io.records import DeadLetter
from squall.builders.local.replay import ReplayedBatches
from squall.builders.spark.disk_errors import disk_errors
from squall.builders.spark.settings import DEFAULT_TUNING, SparkTuning
from squall.errors import BuilderError
from squall.rdf import ALWAYS, Event
from squall.streams import Sources

_LINES_PER_BLOCK = 1000
"""The number of lines of a spool file that are read at a time."""


class Spool:
    """Writes the events of sources into the folder of a run, as files in `files`.

    Args:
        folder: the folder of the run.
        inputs: the sources.
        keeps: whether another process may resume from the folder; it then reads the sources from their offsets.
        fail: receives the errors of reading threads.
        tuning: the tuning values of the builder.

    Raises:
        BuilderError: the folder belongs to other sources.
    """

    def __init__(
        self,
        folder: Path,
        inputs: Sources | ReplayedBatches,
        keeps: bool,
        fail: Callable[[BaseException], None],
        tuning: SparkTuning = DEFAULT_TUNING,
    ) -> None:
        self.folder = folder
        self.files = folder / "spool" / "events"
        self.inputs = inputs
        self._keeps = keeps
        self._fail = fail
        self._interval = tuning.spool_interval
        self._offsets_file = folder / "spool" / "offsets.json"
        self.number = 0
        """The number of the last file."""
        self._latest = ALWAYS
        """The latest event time so far (integer ms); an earlier event is late."""
        self._waiting: deque[tuple[int, Mapping[int, str]]] = deque()
        """The files that have not been processed, with the source positions behind them."""
        self._writer = threading.Thread(target=self._write_as_it_comes, name="spools", daemon=True)
        self.files.mkdir(parents=True, exist_ok=True)
        saved_offsets = self._known() if keeps else None
        if saved_offsets is not None:
            self.number, self._latest = saved_offsets["file"], saved_offsets["latest"]
        self._intake = Prefetcher(inputs, keeps, self._latest, tuning)
        if isinstance(inputs, Sources):
            inputs.set_ledger(self)
            for ledger in inputs.ledgers:
                ledger.ledger = self
        if keeps:
            self._go_on(saved_offsets)

    # What is asked of it

    def start(self) -> None:
        """Starts reading live sources, in threads."""
        self._intake.start()
        self._writer.start()

    def join(self, seconds: float) -> bool:
        """Waits at most `seconds`; returns whether all input has been written."""
        self._writer.join(seconds)
        return not self._writer.is_alive()

    def write(self) -> None:
        """Writes all input of bounded sources now."""
        self._write(self._intake.parts())

    def acknowledge(self, number: int | None = None) -> None:
        """Acknowledges to the sources that all files up to `number` have been processed; None: all files."""
        positions = None
        while self._waiting and (number is None or self._waiting[0][0] <= number):
            _, positions = self._waiting.popleft()
        if positions is not None:
            self.inputs.acknowledge(positions)

    def stop(self) -> None:
        """Ends the sources; what they have received is still written."""
        self.inputs.stop()

    def close(self) -> None:
        """Stops reading."""
        self._intake.close()

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Spools a dead letter (`squall.contracts.DeadLetterLedger`), so that it counts with the rest of its batch."""
        self._intake.lost.append(DeadLetter(cause, source, 0, line or 0, reason, text))

    # Writing

    def _write_as_it_comes(self) -> None:
        """Writes arriving events as files, one for what arrives soon after a batch."""
        end: EndOfSources | None = None
        try:
            while end is None:
                parts, end = _gather(self._intake, self._interval)
                self._write(parts)
            if end.error is not None:
                self._fail(end.error)
        except BaseException as error:  # given to the thread that takes the outputs
            self._fail(error)

    def _write(self, parts: Iterable[PrefetchedBatch]) -> None:
        """Writes a file of parts, if they have any content."""
        last: PrefetchedBatch | None = None

        def lines() -> Iterator[str]:
            nonlocal last
            for last in parts:
                for event in last.events:
                    yield from spool_lines(event)
                yield from map(dead_letter_line, last.lost)
                self._latest = last.events[-1].time if last.events else self._latest

        with disk_errors(self.folder):
            draft = write_lines(file_of(self.files, self.number + 1), lines())
            if last is not None and draft is not None:
                self.number += 1
                self._waiting.append((self.number, last.positions))
                if self._keeps:
                    self._note(last.current_offsets, last.positions)
                publish(draft)

    # Where sources stand

    def _note(self, current_offsets: Sequence[Any], positions: Mapping[int, str]) -> None:
        """Saves that the last file counts, and the offsets of the sources behind it."""
        offsets = {"file": self.number, "latest": self._latest, "sources": _uris(self.inputs)}
        draft = self._offsets_file.with_suffix(".tmp")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(offsets | {"standings": current_offsets, "positions": positions}, file)
            _settle(file)
        draft.replace(self._offsets_file)

    def _known(self) -> Any:
        """Returns what `_note` has saved, if there is anything."""
        saved_offsets = (
            json.loads(self._offsets_file.read_text(encoding="utf-8")) if self._offsets_file.exists() else None
        )
        if saved_offsets is not None and saved_offsets["sources"] != _uris(self.inputs):
            raise BuilderError(
                f"the checkpoint `{self.folder}` is that of other sources: {', '.join(saved_offsets['sources'])}",
                hint="a run that has changed starts from a new checkpoint: name another folder, or remove this one",
            )
        return saved_offsets

    def _go_on(self, saved_offsets: Any) -> None:
        """Resumes the sources from their saved offsets, and completes or deletes the file that was being written."""
        for draft in self.files.glob("_*"):
            if saved_offsets is not None and draft == _draft(file_of(self.files, saved_offsets["file"])):
                publish(draft)
            else:
                draft.unlink()
        self.inputs.track_offsets(
            saved_offsets["standings"] if saved_offsets is not None else (), int(self._interval * 1000)
        )
        if saved_offsets is None:
            self._note(self.inputs.current_offsets(), {})
            return
        positions = {int(number): position for number, position in saved_offsets["positions"].items()}
        self._waiting.append((self.number, positions))


def _uris(inputs: Sources | ReplayedBatches) -> list[str]:
    return [source.uri for source in inputs.sources] if isinstance(inputs, Sources) else []


def _gather(intake: Prefetcher, interval: float) -> tuple[list[PrefetchedBatch], EndOfSources | None]:
    """Returns the next batch with what arrives soon after it, and the end of the input, if it has been reached.
    interval: how many seconds are soon."""
    items = intake.take(None)
    limit = time.monotonic() + interval
    while not isinstance(items[-1], EndOfSources) and (seconds_left := limit - time.monotonic()) > 0:
        items += intake.take(seconds_left)
    return split_end(items)


# Files


def file_of(folder: Path | str, number: int) -> Path:
    """Returns the file of a number, from 1. Names sort as their numbers do."""
    return Path(folder, f"{number:012}.json")


def numbers(folder: Path | str) -> list[int]:
    """Returns the numbers of the files that exist, in ascending order."""
    return sorted(int(path.stem) for path in Path(folder).glob("[0-9]*.json"))


def write_lines(path: Path, lines: Iterable[str]) -> Path | None:
    """Writes lines into a file with a hidden name; None: there are no lines."""
    draft = _draft(path)
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        _settle(file)
    if not draft.stat().st_size:
        draft.unlink()
        return None
    return draft


def spooled_events(path: Path) -> Iterator[Sequence[Event]]:
    """Yields the events of a spool file, some of them at a time."""
    with open(path, "rb") as lines:
        while block := b"".join(islice(lines, _LINES_PER_BLOCK)):
            yield unspool(block)


def publish(draft: Path) -> None:
    """Gives a written file its final name."""
    draft.rename(draft.with_name(draft.name.removeprefix("_")))


def _draft(path: Path) -> Path:
    return path.with_name(f"_{path.name}")


def _settle(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())
