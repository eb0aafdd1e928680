"""The file in which a run in this process is kept (docs/durable.md): a log of its state, and how far it has come.

Lines of JSON. The first says what the file belongs to. A *checkpoint* is the entries that went into memories, a line
for each, then an object with all else, then a line with the checksum (CRC-32) of these lines: without that, nothing of
it counts. A file that has become long is written anew, with one checkpoint, and takes the old one's place.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from squall.builders.local.identity import LESS, differences
from squall.builders.runtime import serde
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.state import Slot, StateChangelog, live_deltas
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError

Migrate = Callable[
    [Mapping[Slot, Sequence[Delta]], Mapping[str, str], Mapping[str, str], Collection[str]], dict[Slot, list[Delta]]
]
Kept = tuple[str, int, Sequence[Delta]]
"""A memory, one of its slots, and entries that went into it."""
FORMAT = 5
"""How memories are kept; 2 had another mark in front of solutions, 3 another memory of streams that a program makes, 4
other places of solutions that are told in an order."""
NAME = "checkpoint.jsonl"


class Head(NamedTuple):
    """What a checkpoint belongs to, as what JSON can hold: names by kind, with a digest of each; and what its memories
    are, by their names (`squall.builders.local.migration.kinds`)."""

    belongs: Mapping[str, Mapping[str, str]]
    memories: Mapping[str, str]


class Step(NamedTuple):
    """Where a run is, apart from what its memories have. All times are integer ms.

    passed: the time that has been worked off. begin: what functions of time take for that of what always holds.
    begun: static data have been worked off. sources: where they stand (`squall.streams.Sources.current_offsets`). sink,
    ledger: what these have saved (`squall.contracts.CheckpointedSink`); None: they are not recovered.
    """

    passed: int
    begin: int
    begun: bool
    sources: Sequence[Any]
    sink: Any
    ledger: Any


class Checkpoint:
    """The file of one run, which is its own as long as this is open.

    head: what it belongs to. migrate: makes of the entries of a program that had other rules as well those of this one
    (`squall.builders.local.migration.carried`).
    Raises BuilderError where the file is that of something else.
    """

    def __init__(
        self,
        folder: Path,
        head: Head,
        migrate: Migrate | None = None,
        min_growth: int = DEFAULT_TUNING.min_log_growth,
    ) -> None:
        self.folder = folder
        self._min_growth = min_growth
        self.path = folder / NAME
        self.head = head
        self._migrate = migrate
        self._before: Mapping[str, str] | None = None
        """The memories of the program that had other rules as well, if the file is that of one."""
        self._carried: dict[Slot, list[Delta]] = {}
        """What is left of it, until that is in a file."""
        self.last: Step | None = None
        """The last checkpoint that there is."""
        self._file: IO[bytes] | None = None
        self._base = self._size = 0
        """The length of the file when it was last written anew, and now."""
        self._lock = _locked(folder)

    def load(self) -> dict[Slot, list[Delta]]:
        """The entries of all memories at the last checkpoint. To be called first, once."""
        state = StateChangelog()
        if self.path.exists():
            self._size = self._base = self._read(state)
            if self._migrate is not None and self._before is not None:
                rules = self.head.belongs["rules"]
                self._carried = self._migrate(state.entries, self._before, self.head.memories, rules)
                return dict(self._carried)
            self._file = self.path.open("r+b")
            self._file.truncate(self._size)
            self._file.seek(self._size)
        return state.entries

    def save(self, step: Step, changelog: Iterable[Kept], memories: Mapping[str, Stateful]) -> None:
        """A checkpoint: what went into memories since the last one, and where the run is. It is on disk when this comes
        back. Raises BuilderError where it cannot be: the one before it counts."""
        try:
            self._save(step, changelog, memories)
        except OSError as error:
            file, self._file = self._file, None
            with suppress(OSError):  # what is left to be written cannot be either
                if file is not None:
                    file.close()
            raise BuilderError(f"the checkpoint `{self.folder}` cannot be saved: {error.strerror}") from error
        self.last = step

    def _save(self, step: Step, changelog: Iterable[Kept], memories: Mapping[str, Stateful]) -> None:
        changelog = (
            (id, slot, live_deltas(entries, step.passed, memories[id].key_width(slot))) for id, slot, entries in changelog
        )
        if self._file is None or self._size > 2 * self._base + self._min_growth:
            self._write_anew(step, changelog, memories)
        else:
            self._append(self._file, step, changelog)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        os.close(self._lock)

    # The file

    def _append(self, file: IO[bytes], step: Step, changelog: Iterable[Kept]) -> None:
        sum_ = 0
        for line in (*_lines(changelog), _line(step._asdict())):
            sum_ = zlib.crc32(line, sum_)
            self._size += file.write(line)
        self._size += file.write(_line(sum_))
        file.flush()
        os.fsync(file.fileno())

    def _write_anew(self, step: Step, changelog: Iterable[Kept], memories: Mapping[str, Stateful]) -> None:
        state = StateChangelog()
        if self._file is not None:
            self._read(state)
            self._file.close()
        state.add((id, slot, entries) for (id, slot), entries in self._carried.items())
        self._carried = {}
        state.add(changelog)
        state.compact(memories, step.passed)
        draft = self.path.with_name(f"{NAME}.tmp")
        self._file = draft.open("wb")
        self._size = self._file.write(_line({"format": FORMAT, **self.head._asdict()}))
        self._append(self._file, step, ((id, slot, entries) for (id, slot), entries in state.entries.items()))
        draft.replace(self.path)
        os.fsync(self._lock)
        self._base = self._size

    def _read(self, state: StateChangelog) -> int:
        """Puts into a state what whole checkpoints have; how long the file is up to their end."""
        with self.path.open("rb") as file:
            size = len(head := file.readline())
            self._check(head)
            for length, entries, step in self._checkpoints(file):
                size += length
                state.add(entries)
                self.last = step
        if self.last is None:
            raise self._damaged()
        return size

    def _checkpoints(self, file: IO[bytes]) -> Iterator[tuple[int, list[Kept], Step]]:
        """The length, entries and step of each checkpoint, up to one that is not whole."""
        entries: list[Kept] = []
        sum_, length = 0, 0
        step: dict[str, Any] | None = None
        for line in file:
            length += len(line)
            match _value(line):
                case [str(id), int(slot), str(text), *valid]:
                    entries.append((id, slot, [(*serde.unpack(text), *valid)]))
                case dict(values):
                    step = values
                case int(known) if known == sum_ and step is not None:
                    yield length, entries, Step(**step)
                    entries, sum_, length, step = [], 0, 0, None
                    continue
                case _:
                    return
            sum_ = zlib.crc32(line, sum_)

    def _check(self, head: bytes) -> None:
        """Raises BuilderError where the file is not ours, or that of another program."""
        stored = _value(head)
        if not isinstance(stored, dict) or "format" not in stored:
            raise self._damaged()
        if stored["format"] != FORMAT:
            raise BuilderError(
                f"the checkpoint `{self.folder}` has the format {stored['format']}, and this squall writes {FORMAT}",
                hint=f"go on with the version that wrote it, or {_OTHER}",
            )
        changes = list(differences(stored["belongs"], self.head.belongs))
        if not changes:
            if stored["memories"] == self.head.memories:
                return
            changes = ["what its nodes keep"]
        has_less = all(change.startswith(LESS) for change in changes)
        if not has_less or self._migrate is None:
            difference_text = "; ".join(changes)
            hint = f"`--allow-removed-rules` goes on without them; or {_OTHER}" if has_less else _OTHER
            raise BuilderError(f"the checkpoint `{self.folder}` is that of another run: {difference_text}", hint=hint)
        self._before = stored["memories"]

    def _damaged(self) -> BuilderError:
        return BuilderError(f"`{self.path}` holds no whole checkpoint", hint=_OTHER)


_OTHER = "a run that has changed starts from a new checkpoint: name another folder, or remove this one"


def _locked(folder: Path) -> int:
    """The descriptor of the folder, which nobody else has open like this. Raises BuilderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BuilderError(f"the checkpoint `{folder}` cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BuilderError(f"the checkpoint `{folder}` is that of a run which is going on") from None
    other_names = {entry.name for entry in folder.iterdir()} - {NAME, f"{NAME}.tmp"}
    if other_names:
        os.close(descriptor)
        raise BuilderError(
            f"the folder `{folder}` holds something else: `{min(other_names)}`", hint="name another folder"
        )
    return descriptor


def _lines(changelog: Iterable[Kept]) -> Iterator[bytes]:
    for id, slot, entries in changelog:
        for *row, start, end, weight in entries:
            yield _line([id, slot, serde.pack(row), start, end, weight])


def _line(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _value(line: bytes) -> Any:
    """What a line holds; None if it is not whole."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
