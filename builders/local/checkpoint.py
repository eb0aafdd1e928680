"""The checkpoint file of a run in this process: a log of its operator state, with its progress (docs/durable.md).

The file has lines of JSON. The first one says to what the file belongs. A *checkpoint* is a line for each delta of
operator state, an object with everything else, and the CRC-32 of these lines. Lines without a valid checksum do not
count. A long file is compacted: it is rewritten with one checkpoint, and replaces the old file.
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

from squall.builders.local.identity import (
    NEW_CHECKPOINT,
    PLAN_AS_BEFORE,
    WITHOUT_RULES,
    differences,
    plan_change,
    planning_of_data,
    renaming_hint,
    schema_change,
    static_data_hint,
    unknown_format,
)
from squall.builders.runtime import serde
from squall.builders.runtime.operators.state import Stateful
from squall.builders.runtime.state import Slot, StateChangelog, live_deltas
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError
from squall.plan import Planning

Migrate = Callable[
    [Mapping[Slot, Sequence[Delta]], Mapping[str, str], Mapping[str, str], Collection[str]], dict[Slot, list[Delta]]
]
"""Removes the state of removed rules (`squall.builders.local.migration.without_removed_rules`)."""
SlotDeltas = tuple[str, int, Sequence[Delta]]
"""The key of an operator's state, one of its slots, and deltas of it."""
FORMAT = 9
"""The version of the file. Any other version is refused."""
CHECKPOINT_FILE = "checkpoint.jsonl"
_DRAFT_FILE = f"{CHECKPOINT_FILE}.tmp"


class Owner(NamedTuple):
    """What a checkpoint belongs to, as JSON values.

    Attributes:
        identity: Digests by kind and name: rules, options, sources, static data and sinks.
        state_kinds: The kind of each operator state, by its key (`squall.builders.local.migration.state_kinds`).
        planning: How the program was planned (`squall.builders.local.identity.planning_data`).
        seed: The seed of the run (`squall.plan.seeds`), which does not change.
        schema: The schema that is compiled into the plan (`squall.builders.local.identity.schema_of`).
    """

    identity: Mapping[str, Mapping[str, str]]
    state_kinds: Mapping[str, str]
    planning: Mapping[str, Any]
    seed: int
    schema: Sequence[str]


class Progress(NamedTuple):
    """The progress of a run: everything but its operator state. Times are integer ms.

    Attributes:
        watermark: The time up to which the run has processed its input.
        begin: The value of functions of time for what always holds.
        started: Whether static data have been processed.
        offsets: The offsets of the sources (`squall.streams.Sources.current_offsets`).
        sink: The saved state of the sink (`squall.contracts.CheckpointedSink`), or None.
        dead_letters: The saved state of the dead-letter ledger, or None.
    """

    watermark: int
    begin: int
    started: bool
    offsets: Sequence[Any]
    sink: Any
    dead_letters: Any


def saved_seed(folder: Path) -> int | None:
    """Returns the seed of the run whose checkpoint is in a folder; None if there is none."""
    header = _saved_header(folder)
    return None if header is None else int(header["seed"])


def read_planning(folder: Path) -> Planning | None:
    """Returns how the program of the checkpoint in a folder was planned; None if there is none."""
    header = _saved_header(folder)
    return None if header is None else planning_of_data(folder, header["planning"])


def _saved_header(folder: Path) -> dict[str, Any] | None:
    """Returns the first line of the file in a folder; None if it is damaged or has another format."""
    try:
        with (folder / CHECKPOINT_FILE).open("rb") as file:
            header = _value(file.readline())
    except OSError:
        return None
    is_whole = isinstance(header, dict) and header.get("format") == FORMAT and header.keys() >= {*Owner._fields}
    return header if is_whole else None


class Checkpoint:
    """The checkpoint file of one run, which owns the folder while this is open.

    Args:
        folder: The folder of the file.
        owner: What the file has to belong to.
        migrate: Removes the state of removed rules. None: a file of a program with more rules is refused.
        min_growth: The number of bytes by which the file has to grow before it is compacted.

    Raises:
        BuilderError: The folder cannot be used, or another run uses it.
    """

    def __init__(
        self,
        folder: Path,
        owner: Owner,
        migrate: Migrate | None = None,
        min_growth: int = DEFAULT_TUNING.min_log_growth,
    ) -> None:
        self.folder = folder
        self._min_growth = min_growth
        self.path = folder / CHECKPOINT_FILE
        self.owner = owner
        self._migrate = migrate
        self._migrated: dict[Slot, list[Delta]] = {}
        """The migrated state, until it is in a file."""
        self.last: Progress | None = None
        """The progress at the last checkpoint."""
        self._file: IO[bytes] | None = None
        self._base_bytes = self._bytes = 0
        """The length of the file after its last compaction, and now."""
        self._lock = _locked(folder)

    def load(self) -> dict[Slot, list[Delta]]:
        """Returns the operator state at the last checkpoint. Call it first, and once.

        Raises:
            BuilderError: The file belongs to another run, is damaged, has an unknown format, or cannot be written.
        """
        try:
            return self._load()
        except OSError as error:
            raise BuilderError(f"the checkpoint `{self.folder}` cannot be used: {error.strerror}") from error

    def _load(self) -> dict[Slot, list[Delta]]:
        state = StateChangelog()
        if not self.path.exists():
            return state.deltas
        previous_kinds = self._read(state)
        if previous_kinds is not None and self._migrate is not None:
            rules = self.owner.identity["rules"]
            # The old file stays until the next checkpoint replaces it.
            self._migrated = self._migrate(state.deltas, previous_kinds, self.owner.state_kinds, rules)
            return dict(self._migrated)
        self._file = self.path.open("r+b")
        self._file.truncate(self._bytes)
        self._file.seek(self._bytes)
        return state.deltas

    def save(self, progress: Progress, changelog: Iterable[SlotDeltas], states: Mapping[str, Stateful]) -> None:
        """Writes a checkpoint, and returns when it is on disk.

        Args:
            progress: The progress of the run.
            changelog: The deltas of operator state since the last checkpoint.
            states: The operator states by key.

        Raises:
            BuilderError: The checkpoint cannot be written. The one before it counts.
        """
        try:
            self._save(progress, changelog, states)
        except OSError as error:
            file, self._file = self._file, None
            with suppress(OSError):  # the buffered rest cannot be written either
                if file is not None:
                    file.close()
            raise BuilderError(f"the checkpoint `{self.folder}` cannot be saved: {error.strerror}") from error
        self.last = progress

    def _save(self, progress: Progress, changelog: Iterable[SlotDeltas], states: Mapping[str, Stateful]) -> None:
        changelog = (
            (key, slot, live_deltas(deltas, progress.watermark, states[key].key_width(slot)))
            for key, slot, deltas in changelog
        )
        if self._file is None or self._bytes > 2 * self._base_bytes + self._min_growth:
            self._compact(progress, changelog, states)
        else:
            self._append(self._file, progress, changelog)

    def replan(self, owner: Owner, old_keys: Mapping[str, str]) -> None:
        """Notes that the run has another plan. The next checkpoint rewrites the file, which counts until then.

        Args:
            owner: What the file belongs to from then on.
            old_keys: The key that each state had before. States without one are new.
        """
        self._migrated = self._take_state().renamed(old_keys).deltas
        self.owner = owner

    def close(self) -> None:
        """Closes the file, and releases the folder."""
        if self._file is not None:
            self._file.close()
        os.close(self._lock)

    # The file

    def _append(self, file: IO[bytes], progress: Progress, changelog: Iterable[SlotDeltas]) -> None:
        checksum = 0
        for line in (*_delta_lines(changelog), _line(progress._asdict())):
            checksum = zlib.crc32(line, checksum)
            self._bytes += file.write(line)
        self._bytes += file.write(_line(checksum))
        file.flush()
        os.fsync(file.fileno())

    def _compact(self, progress: Progress, changelog: Iterable[SlotDeltas], states: Mapping[str, Stateful]) -> None:
        """Rewrites the file with one checkpoint."""
        state = self._take_state()
        state.add(changelog)
        state.compact(states, progress.watermark)
        draft = self.path.with_name(_DRAFT_FILE)
        self._file = draft.open("wb")
        self._bytes = self._file.write(_line({"format": FORMAT, **self.owner._asdict()}))
        self._append(self._file, progress, ((key, slot, deltas) for (key, slot), deltas in state.deltas.items()))
        draft.replace(self.path)
        os.fsync(self._lock)
        self._base_bytes = self._bytes

    def _take_state(self) -> StateChangelog:
        """Returns the state of the last checkpoint, and closes its file, which is to be rewritten."""
        state = StateChangelog()
        if self._file is not None:
            self._read(state)
            self._file.close()
            self._file = None
        state.add((key, slot, deltas) for (key, slot), deltas in self._migrated.items())
        self._migrated = {}
        return state

    def _read(self, state: StateChangelog) -> Mapping[str, str] | None:
        """Adds the deltas of the complete checkpoints to a state. The length of the file is that up to their end.

        Returns the state kinds of the program that had more rules, if the file is of one.
        """
        with self.path.open("rb") as file:
            size = len(header := file.readline())
            previous_kinds = self._previous_kinds(header)
            for length, changelog, progress in self._checkpoints(file):
                size += length
                state.add(changelog)
                self.last = Progress(**progress)
        if self.last is None:
            raise self._damaged()
        self._bytes = self._base_bytes = size
        return previous_kinds

    def _checkpoints(self, file: IO[bytes]) -> Iterator[tuple[int, list[SlotDeltas], dict[str, Any]]]:
        """Yields the length, the deltas and the progress of each checkpoint, up to an incomplete one."""
        changelog: list[SlotDeltas] = []
        checksum, length = 0, 0
        progress: dict[str, Any] | None = None
        for line in file:
            length += len(line)
            match _value(line):
                case [str(key), int(slot), str(text), *valid]:
                    changelog.append((key, slot, [(*serde.unpack(text), *valid)]))
                case dict(values):
                    progress = values
                case int(expected) if expected == checksum and progress is not None:
                    yield length, changelog, progress
                    changelog, checksum, length, progress = [], 0, 0, None
                    continue
                case _:
                    return
            checksum = zlib.crc32(line, checksum)

    def _previous_kinds(self, header: bytes) -> Mapping[str, str] | None:
        """Returns the state kinds of the program that had more rules, if the file is of one; None if it is the same.

        Raises:
            BuilderError: The file is no checkpoint, has an unknown format, or belongs to another program.
        """
        header_value = _value(header)
        if not isinstance(header_value, dict) or "format" not in header_value:
            raise self._damaged()
        if header_value["format"] != FORMAT:
            raise unknown_format(self.folder, header_value["format"], FORMAT)
        if not header_value.keys() >= {*Owner._fields}:
            raise self._damaged()
        saved = Owner(**{name: header_value[name] for name in Owner._fields})
        changes = list(differences(saved.identity, self.owner.identity))
        if not changes:
            if saved.state_kinds == self.owner.state_kinds:
                return None
            changes = ["the state of its nodes"]
        only_removed_rules = all(change.startswith(WITHOUT_RULES) for change in changes)
        if not only_removed_rules or self._migrate is None:
            replanned = plan_change(changes, *self._plannings(saved))
            other_schema = schema_change(changes, saved.schema, self.owner.schema)
            difference_text = "; ".join((*changes, *replanned, *other_schema))
            hint = (
                f"`--allow-removed-rules` resumes without them; or {NEW_CHECKPOINT}"
                if only_removed_rules
                else renaming_hint(saved.identity["rules"], self.owner.identity["rules"])
                + (PLAN_AS_BEFORE if replanned else "")
                + static_data_hint(changes)
                + NEW_CHECKPOINT
            )
            raise BuilderError(f"the checkpoint `{self.folder}` is that of another run: {difference_text}", hint=hint)
        return saved.state_kinds

    def _plannings(self, saved: Owner) -> tuple[str, str]:
        """Returns how the program was planned before, and how it is planned now, as phrases."""
        before, now = (planning_of_data(self.folder, owner.planning) for owner in (saved, self.owner))
        return str(before), str(now)

    def _damaged(self) -> BuilderError:
        return BuilderError(f"`{self.path}` holds no complete checkpoint", hint=NEW_CHECKPOINT)


def _locked(folder: Path) -> int:
    """Returns the descriptor of the folder, which is locked for this process. Raises BuilderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BuilderError(f"the checkpoint `{folder}` cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BuilderError(f"the checkpoint `{folder}` is in use by another run") from None
    other_names = {entry.name for entry in folder.iterdir()} - {CHECKPOINT_FILE, _DRAFT_FILE}
    if other_names:
        os.close(descriptor)
        raise BuilderError(
            f"the folder `{folder}` holds something else: `{min(other_names)}`", hint="name another folder"
        )
    return descriptor


def _delta_lines(changelog: Iterable[SlotDeltas]) -> Iterator[bytes]:
    for key, slot, deltas in changelog:
        for *row, start, end, weight in deltas:
            yield _line([key, slot, serde.pack(row), start, end, weight])


def _line(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _value(line: bytes) -> Any:
    """Returns the value of a line, or None if the line is incomplete."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
