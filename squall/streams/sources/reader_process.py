"""Reads a long file in a process of its own, ahead of this process, which evaluates the events.

The process needs a moment to start. Until then, this process reads the file. The other one continues at its position,
and sends the events, the dead letters and the new position of each block. If it ends before the file does, for whatever
reason, this process reads the rest. So the events are the same as without it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from typing import Any, NamedTuple, cast

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError
from squall.rdf import ALWAYS, Event
from squall.streams.formats import Format, infer_format
from squall.streams.formats.reading import DocumentPosition, ReadProgress, can_begin_anywhere
from squall.streams.sources.file_reading import Batches, ReadTask, read_file


class _Block(NamedTuple):
    """The events of a block (or of several, if the first ones have none), and the state of the task after it.

    Attributes:
        batch: The events.
        dead_letters: The arguments of `DeadLetterLedger.record`, for each dead letter.
        reading: The counts of the source.
        place: The position in the file.
        latest: The latest time of a triple that was left out (`Choice.latest`).
    """

    batch: Sequence[Event]
    dead_letters: Sequence[tuple[Any, ...]]
    reading: ReadProgress
    place: DocumentPosition
    latest: int


def is_worthwhile(task: ReadTask, format: Format) -> bool:
    """Returns whether there is enough left to read for a process of its own, and a core to run it."""
    is_timed = task.settings.is_timed(format)
    if not (task.settings.ahead and is_timed and can_begin_anywhere(format)) or os.name != "posix":
        return False
    with suppress(OSError):  # reading the file raises it again
        remaining_bytes = os.path.getsize(task.path) - task.place.offset
        return remaining_bytes >= task.settings.limits.min_bytes_for_process and bool(sys.executable) and _cores() > 1
    return False


def read_ahead(task: ReadTask, ledger: DeadLetterLedger, read_here: Callable[[], Batches]) -> Batches:
    """Yields the batches of a file, most of which another process reads.

    Args:
        task: What to read, and from where.
        ledger: The ledger for malformed statements.
        read_here: Reads the same batches in this process.
    """
    start = task.reading.bytes
    with _ReaderProcess() as process:
        with closing(cast(Generator[Sequence[Event]], read_here())) as batches:
            for batch in batches:
                yield batch
                if process.is_ready(task.settings.limits.process_start_timeout):
                    break
            else:
                return
        task.reading.bytes = start  # the process counts these bytes again when it skips them
        for block in process.blocks(task):
            for dead_letter in block.dead_letters:
                ledger.record(*dead_letter)
            _advance(task, block)
            if block.batch:
                yield block.batch
    if not task.place.ended:
        task.reading.bytes = start
        yield from read_here()


def _advance(task: ReadTask, block: _Block) -> None:
    """Sets the state of a task to that after a block."""
    vars(task.reading).update(vars(block.reading))
    vars(task.place).update(vars(block.place))
    if task.predicate_filter is not None:
        task.predicate_filter.latest = block.latest


class _ReaderProcess:
    """The process that reads ahead, as this process sees it."""

    def __enter__(self) -> _ReaderProcess:
        from multiprocessing import Pipe  # only large files are read by a process
        from subprocess import DEVNULL, Popen

        self.pipe, child_end = Pipe()
        number = child_end.fileno()
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main({number})"
        self.process = Popen([sys.executable, "-c", code], pass_fds=[number], stdin=DEVNULL)
        child_end.close()
        return self

    def __exit__(self, *error: object) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()

    def is_ready(self, timeout: float) -> bool:
        """Returns whether the process has started. timeout: how many seconds to wait for that."""
        return self.pipe.poll(timeout)

    def blocks(self, task: ReadTask) -> Iterator[_Block]:
        """Yields the blocks that the process sends, until the file or the process ends."""
        with suppress(EOFError, OSError):  # the process has ended, maybe in the middle of a block
            self.pipe.recv()
            self.pipe.send(task)
            while (block := self.pipe.recv()) is not None:
                yield block


def main(number: int) -> None:
    """Runs in the process that reads ahead.

    Args:
        number: The file descriptor of its end of the pipe.
    """
    from multiprocessing.connection import Connection

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles it
    gc.disable()  # reading creates no reference cycles
    pipe = Connection(number)
    with suppress(EOFError, ConnectionError):  # the main process has closed its end
        pipe.send(None)
        task: ReadTask = pipe.recv()
        with suppress(SourceError):  # the main process meets it again when it reads the rest
            for block in _blocks(task):
                pipe.send(block)
            pipe.send(None)


def _blocks(task: ReadTask) -> Iterator[_Block]:
    ledger = _BufferingLedger()
    settings = task.settings
    format, compression = infer_format(task.path, settings.format, settings.records is not None)
    for batch in chain(read_file(task, format, compression, ledger), [()]):
        latest = task.predicate_filter.latest if task.predicate_filter is not None else ALWAYS
        yield _Block(batch, ledger.drain(), task.reading, task.place, latest)


class _BufferingLedger:
    """A ledger that buffers dead letters, to send them to the main process."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []

    def record(self, *fields: Any) -> None:
        self.records.append(fields)

    def drain(self) -> Sequence[tuple[Any, ...]]:
        records, self.records = self.records, []
        return records


def _cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
