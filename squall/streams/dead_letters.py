"""Dead letters: statements that a run could not use are counted by cause, and written to a file."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import ALWAYS, Fact

MAX_TEXT_LENGTH = 500
"""The number of characters of a long text that a dead letter keeps."""


class DeadLetterFile:
    """A ledger that counts dead letters by cause and source, and writes each to a file as a line of JSON.

    A line is ``{"cause", "source", "line", "reason", "text"}``. The cause is ``malformed``, ``late``, or another word.
    The line number is from 1, or null. The ledger may be used from several threads.

    Attributes:
        counts: The number of dead letters by cause and source.
        first: The line (or None) and the reason of the first dead letter, by cause and source.
        last: The same of the last one, which may have cost the rest of a document.
        path: The file, or None: then dead letters are only counted.
    """

    def __init__(self, path: str | Path | None = None, strict: bool = False, append: bool = False) -> None:
        """Opens the file at once, so that a run with a file that cannot be written does not start.

        Args:
            path: The file, or None.
            strict: Whether the first malformed statement is an error, and other dead letters fail the run at its end
                (see `failed`).
            append: Whether to append to the file of an earlier run.

        Raises:
            UsageError: The file cannot be written.
        """
        self.counts: Counter[tuple[str, str]] = Counter()
        self.first: dict[tuple[str, str], tuple[int | None, str]] = {}
        self.last: dict[tuple[str, str], tuple[int | None, str]] = {}
        self.path = None if path is None else Path(path)
        self._strict = strict
        self._lock = threading.Lock()
        self._file = _open_ledger(self.path, append) if self.path else None

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Records a dead letter (see `squall.contracts.DeadLetterLedger`).

        Raises:
            SourceError: A malformed statement is an error (``--strict``), or the file cannot be written. Nothing more
                is written to it then.
        """
        if self._strict and cause == "malformed":
            place = source if line is None else f"{source}:{line}"
            raise SourceError(f"{place}: {reason}", hint=f"the statement is: {text}" if text else None)
        entry = {"cause": cause, "source": source, "line": line, "reason": reason, "text": text}
        with self._lock:
            self.counts[cause, source] += 1
            self.first.setdefault((cause, source), (line, reason))
            self.last[cause, source] = (line, reason)
            if self._file:
                self._write(self._file, json.dumps(entry, ensure_ascii=False) + "\n")

    @property
    def failed(self) -> bool:
        """Whether there are dead letters although the ledger is strict."""
        return self._strict and bool(self.counts)

    def total(self, cause: str, source: str | None = None) -> int:
        """Returns the number of dead letters with a cause, of one source or of all."""
        return sum(count for key, count in self.counts.items() if key[0] == cause and source in (None, key[1]))

    def position(self) -> int:
        """Syncs the file to disk, and returns its length in bytes (`squall.contracts.TruncatableSink`).

        It is 0 if there is no file.

        Raises:
            SourceError: The file cannot be written.
        """
        if self._file is None:
            return 0
        with self._lock:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
                return self._file.tell()
            except OSError as error:
                self._refuse(self._file, error)

    def truncate(self, position: int) -> None:
        """Truncates the file to a position, but keeps the counts.

        A shorter file, such as one that was moved away meanwhile and begun anew, continues at its end.

        Raises:
            SourceError: The file cannot be written.
        """
        if self._file is not None:
            with self._lock:
                try:
                    self._file.truncate(min(position, os.fstat(self._file.fileno()).st_size))
                    self._file.seek(0, os.SEEK_END)
                except OSError as error:
                    self._refuse(self._file, error)

    def snapshot(self, last: bool = False) -> Any:
        """Returns the length of the file and the counts as a JSON value (`squall.contracts.CheckpointedSink`)."""
        length = self.position()
        counts = [[*key, count] for key, count in self.counts.items()]
        ends = {name: [[*key, *place] for key, place in getattr(self, name).items()] for name in ("first", "last")}
        return {"length": length, "counts": counts, **ends}

    def restore(self, state: Any) -> None:
        """Truncates the file to the length of a snapshot, and restores its counts."""
        self.truncate(state["length"])
        self.counts = Counter({(cause, source): count for cause, source, count in state["counts"]})
        self.first = _places(state.get("first", ()))
        self.last = _places(state.get("last", ()))

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _write(self, file: IO[str], line: str) -> None:
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            self._refuse(file, error)

    def _refuse(self, file: IO[str], error: OSError) -> NoReturn:
        """Gives the file up, and raises SourceError for an error of the system."""
        self._file = None
        with suppress(OSError):  # there is no room for the rest of the line either
            file.close()
        raise SourceError(f"the dead-letter file `{self.path}` cannot be written: {error.strerror}") from error


class DeadLetter(NamedTuple):
    """A statement that a run could not use; the fields are those of `squall.contracts.DeadLetterLedger.record`."""

    cause: str
    source: str
    line: int | None
    reason: str
    text: str


class RunLedger:
    """The ledger of a source that was opened without one: it forwards to the ledger of the run that reads the source.

    Attributes:
        ledger: The ledger of the run, which `Sources.set_ledger` sets, or None: then a dead letter is an error.
    """

    def __init__(self) -> None:
        self.ledger: DeadLetterLedger | None = None

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Records a dead letter in the ledger of the run. Raises SourceError if there is none."""
        if self.ledger is None:
            place = source if line is None else f"{source}:{line}"
            raise SourceError(f"{cause}: {place}: {reason}", hint="give a `ledger` that keeps dead letters")
        self.ledger.record(cause, source, line, reason, text)


class DeferredLedger:
    """The ledger of one source that is read ahead of the run.

    It buffers dead letters. The run's ledger gets them when the run reaches the batch with which they came.

    Attributes:
        ledger: The ledger of the run.
    """

    def __init__(self, ledger: DeadLetterLedger) -> None:
        self.ledger = ledger
        self._lock = threading.Lock()
        self._buffered: list[DeadLetter] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Buffers a dead letter."""
        with self._lock:
            self._buffered.append(DeadLetter(cause, source, line, reason, text))

    def drain(self) -> Sequence[DeadLetter]:
        """Returns the dead letters since the last call, and removes them from the buffer."""
        with self._lock:
            dead_letters, self._buffered = self._buffered, []
        return dead_letters

    def forward(self, dead_letters: Sequence[DeadLetter]) -> None:
        """Records drained dead letters in the ledger of the run."""
        for dead_letter in dead_letters:
            self.ledger.record(*dead_letter)


def ledger_of(source: object, ledger: DeadLetterLedger | None) -> DeadLetterLedger | None:
    """Returns the ledger for the dead letters of a source: its own, or else that of the run, if there is one."""
    own = getattr(source, "ledger", None)
    while isinstance(own, DeferredLedger):
        own = own.ledger
    return ledger if own is None else own


def late_texts(time: int, fact: Fact) -> tuple[str, str]:
    """Returns the reason and the text of the dead letter of a fact whose time (integer ms) has passed."""
    if time == ALWAYS:
        return "what always holds is late when the run has begun: give it as static data", f"-infinity {fact}"
    return f"its time {time} has passed", f"{time} {fact}"


def excerpt(data: bytes) -> str:
    """Returns the beginning of a text that may be long, for a dead letter."""
    return data[:MAX_TEXT_LENGTH].decode("utf-8", "replace")


def _places(rows: Sequence[Sequence[Any]]) -> dict[tuple[str, str], tuple[int | None, str]]:
    return {(cause, source): (line, reason) for cause, source, line, reason in rows}


def _open_ledger(path: Path, append: bool) -> IO[str]:
    try:
        return path.open("a" if append else "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the dead-letter file `{path}` cannot be written: {error.strerror}") from error
