"""What Spark cannot read by itself, written as files that it can, and where the sources stand behind what is in them.

A file is written under a name that is passed over, then the *stand* says that it counts, then it gets its own name.
So what is in the spool is not read from its sources again, and everything else is, wherever a run is killed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from squall.builders.distributed.io.parsing import Lost, lost_line, spool_lines
from squall.builders.distributed.io.prefetch import Ended, Intake, Part, split
from squall.builders.local.replay import Given
from squall.errors import BuilderError
from squall.rdf import ALWAYS
from squall.streams import Sources

SPOOL_INTERVAL_SECONDS = 0.2
"""For how long a live stream's events are gathered into one file, at most."""


class Spool:
    """Writes what sources bring into the folder of a run: as files in `files`.

    keeps: another process may go on with that folder, and reads the sources from where they stood. fail: is told what
    goes wrong while they are read. Raises BuilderError where the folder is that of other sources.
    """

    def __init__(
        self, folder: Path, inputs: Sources | Given, keeps: bool, fail: Callable[[BaseException], None]
    ) -> None:
        self.folder = folder
        self.files = folder / "spool" / "events"
        self.inputs = inputs
        self._keeps = keeps
        self._fail = fail
        self._stand = folder / "spool" / "stand.json"
        self.number = 0
        """That of the last file."""
        self._latest = ALWAYS
        """The time (integer ms) up to which events have come: what is earlier is late."""
        self._waiting: deque[tuple[int, Mapping[int, str]]] = deque()
        """The files that have not been worked off, with the positions behind them."""
        self._writer = threading.Thread(target=self._write_as_it_comes, name="spools", daemon=True)
        self.files.mkdir(parents=True, exist_ok=True)
        saved = self._known() if keeps else None
        if saved is not None:
            self.number, self._latest = saved["file"], saved["latest"]
        self._intake = Intake(inputs, keeps, self._latest)
        if isinstance(inputs, Sources):
            inputs.adopt(self)
            for ledger in inputs.ledgers:
                ledger.ledger = self
        if keeps:
            self._go_on(saved)

    # What is asked of it

    def start(self) -> None:
        """Begins to read the sources, as they bring something: nobody knows when that is."""
        self._intake.start()
        self._writer.start()

    def join(self, seconds: float) -> bool:
        """Whether all that sources bring has been written; waits so long for it at most."""
        self._writer.join(seconds)
        return not self._writer.is_alive()

    def write(self) -> None:
        """Writes all that sources bring, now."""
        self._write(self._intake.parts())

    def acknowledge(self, number: int | None = None) -> None:
        """All up to the file of a number has been worked off; None: all there is."""
        positions = None
        while self._waiting and (number is None or self._waiting[0][0] <= number):
            _, positions = self._waiting.popleft()
        if positions is not None:
            self.inputs.acknowledge(positions)

    def stop(self) -> None:
        """Sources end: what they have received is still written."""
        self.inputs.stop()

    def close(self) -> None:
        """Nothing more is read."""
        self._intake.close()

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """See `squall.contracts.Ledger`: what is lost is spooled as well, so that it counts with the rest of its batch."""
        self._intake.lost.append(Lost(cause, source, 0, line or 0, reason, text))

    # Writing

    def _write_as_it_comes(self) -> None:
        """Writes what has micro_batch_input as files, each of what came within `SPOOL_INTERVAL_SECONDS` of its first batch."""
        end: Ended | None = None
        try:
            while end is None:
                parts, end = _gather(self._intake)
                self._write(parts)
            if end.error is not None:
                self._fail(end.error)
        except BaseException as error:  # given to the thread that takes the outputs
            self._fail(error)

    def _write(self, parts: Iterable[Part]) -> None:
        """Writes a file of parts, if there is anything in them."""
        last: Part | None = None

        def lines() -> Iterator[str]:
            nonlocal last
            for last in parts:
                for event in last.events:
                    yield from spool_lines(event)
                yield from map(lost_line, last.lost)
                self._latest = last.events[-1].time if last.events else self._latest

        draft = written(file_of(self.files, self.number + 1), lines())
        if last is not None and draft is not None:
            self.number += 1
            self._waiting.append((self.number, last.positions))
            if self._keeps:
                self._note(last.standings, last.positions)
            show(draft)

    # Where sources stand

    def _note(self, standings: Sequence[Any], positions: Mapping[int, str]) -> None:
        """Says that the last file counts, and where the sources stand behind it."""
        offsets = {"file": self.number, "latest": self._latest, "sources": _uris(self.inputs)}
        draft = self._stand.with_suffix(".tmp")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(offsets | {"standings": standings, "positions": positions}, file)
            _settle(file)
        draft.replace(self._stand)

    def _known(self) -> Any:
        """What was said of the last file (`_note`), if anything was."""
        saved = json.loads(self._stand.read_text(encoding="utf-8")) if self._stand.exists() else None
        if saved is not None and saved["sources"] != _uris(self.inputs):
            raise BuilderError(
                f"the checkpoint `{self.folder}` is that of other sources: {', '.join(saved['sources'])}",
                hint="a run that has changed starts from a new checkpoint: name another folder, or remove this one",
            )
        return saved

    def _go_on(self, saved: Any) -> None:
        """Lets the sources go on where they stood, and sees to the file that was being written."""
        for draft in self.files.glob("_*"):
            if saved is not None and draft == _draft(file_of(self.files, saved["file"])):
                show(draft)
            else:
                draft.unlink()
        self.inputs.keep(saved["standings"] if saved is not None else (), int(SPOOL_INTERVAL_SECONDS * 1000))
        if saved is None:
            self._note(self.inputs.standings(), {})
            return
        positions = {int(number): position for number, position in saved["positions"].items()}
        self._waiting.append((self.number, positions))


def _uris(inputs: Sources | Given) -> list[str]:
    return [source.uri for source in inputs.sources] if isinstance(inputs, Sources) else []


def _gather(intake: Intake) -> tuple[list[Part], Ended | None]:
    """The next batch, what comes soon after it, and the end, if that has come."""
    items = intake.take(None)
    limit = time.monotonic() + SPOOL_INTERVAL_SECONDS
    while not isinstance(items[-1], Ended) and (seconds_left := limit - time.monotonic()) > 0:
        items += intake.take(seconds_left)
    return split(items)


# Files


def file_of(folder: Path | str, number: int) -> Path:
    """The file of a number, from 1; in the order of numbers, which is that of names."""
    return Path(folder, f"{number:012}.json")


def numbers(folder: Path | str) -> list[int]:
    """The numbers of the files that are there."""
    return sorted(int(path.stem) for path in Path(folder).glob("[0-9]*.json"))


def written(path: Path, lines: Iterable[str]) -> Path | None:
    """A file of lines, which is passed over until it is shown; None if there are none."""
    draft = _draft(path)
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        _settle(file)
    if not draft.stat().st_size:
        draft.unlink()
        return None
    return draft


def show(draft: Path) -> None:
    """Gives a file that is written its own name."""
    draft.rename(draft.with_name(draft.name.removeprefix("_")))


def _draft(path: Path) -> Path:
    return path.with_name(f"_{path.name}")


def _settle(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())
