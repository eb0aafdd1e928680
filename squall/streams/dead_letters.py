"""The loss ledger: what a run could not use is counted by cause, and kept in a file."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError

SHOWN = 500
"""Characters of what may be long that the ledger keeps."""


class LedgerFile:
    """Counts lost statements by cause and source and writes each as a line of JSON to a file, if there is one.

    A line is ``{"cause", "source", "line", "reason", "text"}``; `cause` is ``malformed``, ``late``, or another word of
    who lost it; `line` counts from 1 and is null where there is none. It may be used from several threads.

    path: the file; it is opened at once, so that one that cannot be written is heard of before anything starts.
    strict: raise SourceError at the first malformed statement; what is lost otherwise makes a run no success in the end
    (see `failed`).
    append: go on with the file of an earlier run.
    Raises UsageError where the file cannot be written.
    """

    def __init__(self, path: Path | None = None, strict: bool = False, append: bool = False) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.path = path
        self._strict = strict
        self._lock = threading.Lock()
        self._file = _opened(path, append) if path else None

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
            if self._file:
                self._write(self._file, json.dumps(entry, ensure_ascii=False) + "\n")

    @property
    def failed(self) -> bool:
        """Whether something was lost where nothing may be (strict)."""
        return self._strict and bool(self.counts)

    def total(self, cause: str, source: str | None = None) -> int:
        """How many statements were lost for a cause, of one source or of all."""
        return sum(count for (why, where), count in self.counts.items() if why == cause and source in (None, where))

    def mark(self) -> int:
        """The length of the file (`squall.contracts.TruncatableSink`); 0 if there is none."""
        if self._file is None:
            return 0
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def rewind(self, mark: int) -> None:
        """Drops what the file has behind the mark; what has been counted stays counted. A file that is shorter, as one
        is that has been put aside meanwhile, goes on at its end."""
        if self._file is not None:
            with self._lock:
                self._file.truncate(min(mark, os.fstat(self._file.fileno()).st_size))
                self._file.seek(0, os.SEEK_END)

    def save(self, last: bool = False) -> Any:
        """See `squall.contracts.CheckpointedSink`."""
        length = self.mark()
        return {"length": length, "counts": [[*key, count] for key, count in self.counts.items()]}

    def recover(self, state: Any) -> None:
        self.rewind(state["length"])
        self.counts = Counter({(cause, source): count for cause, source, count in state["counts"]})

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _write(self, file: IO[str], line: str) -> None:
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            self._file = None
            with suppress(OSError):  # what is left of the line has no room either
                file.close()
            raise SourceError(f"the ledger `{self.path}` cannot be written: {error.strerror}") from error


class Loss(NamedTuple):
    """One lost statement (`squall.contracts.DeadLetterLedger`)."""

    cause: str
    source: str
    line: int | None
    reason: str
    text: str


class RunLedger:
    """The ledger of a source that was given none: that of the run that reads it (`Sources.adopt`). Where nobody keeps
    what is lost, nothing is: SourceError is raised."""

    def __init__(self) -> None:
        self.ledger: DeadLetterLedger | None = None

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """See `squall.contracts.DeadLetterLedger`."""
        if self.ledger is None:
            place = source if line is None else f"{source}:{line}"
            raise SourceError(f"{cause}: {place}: {reason}", hint="give a `ledger` to keep what is lost")
        self.ledger.record(cause, source, line, reason, text)


class Deferred:
    """The ledger of one source, of which a run may be ahead in reading: what is recorded goes into the ledger of the
    run when that comes to the batch with which it came.

    ledger: that of the run, or of who hands on what is read to the run."""

    def __init__(self, ledger: DeadLetterLedger) -> None:
        self.ledger = ledger
        self._lock = threading.Lock()
        self._lost: list[Loss] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """See `squall.contracts.DeadLetterLedger`."""
        with self._lock:
            self._lost.append(Loss(cause, source, line, reason, text))

    def take(self) -> Sequence[Loss]:
        """What has been recorded since the last call."""
        with self._lock:
            dead_letters, self._lost = self._lost, []
        return dead_letters

    def hand_on(self, dead_letters: Sequence[Loss]) -> None:
        """The run has come to it."""
        for loss in dead_letters:
            self.ledger.record(*loss)


def ledger_of(source: object, ledger: DeadLetterLedger | None) -> DeadLetterLedger | None:
    """Where what is lost of a source goes: to its own ledger, if it was given one, or else to that of the run, if there
    is one."""
    own = getattr(source, "ledger", None)
    while isinstance(own, Deferred):
        own = own.ledger
    return ledger if own is None else own


def shown(data: bytes) -> str:
    """The beginning of what may be long, for the ledger."""
    return data[:SHOWN].decode("utf-8", "replace")


def _opened(path: Path, append: bool) -> IO[str]:
    try:
        return path.open("a" if append else "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the ledger `{path}` cannot be written: {error.strerror}") from error
