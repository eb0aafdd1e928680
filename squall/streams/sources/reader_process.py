"""A long file is read by a process of its own, ahead of the work that is done on what it says.

Such a process needs a moment to start: until then the file is read here. It goes on where that was, and sends what it
has made of each block, what went to the ledger, and how far it has come. Should it end before the file does, for
whatever reason, the rest is read here again. So what comes of a file is the same.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from subprocess import DEVNULL, Popen
from typing import Any, NamedTuple, cast

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError
from squall.rdf import ALWAYS, Event
from squall.streams.formats import Format, infer_format
from squall.streams.formats.fast_ntriples import Choice
from squall.streams.formats.reading import Place, Reading, Settings, begins_there

LONG = 1 << 26
"""So many bytes that are left to read make a process worth while."""
_PATIENCE = 0.0
"""For how long (s) it is waited for after each block: not at all."""
Batches = Iterator[Sequence[Event]]


@dataclass(frozen=True)
class Task:
    """What is to be read of a file, and how far that has come."""

    path: str
    settings: Settings
    reading: Reading
    choice: Choice | None
    place: Place

    def is_long(self, format: Format) -> bool:
        """Whether there is enough left to read, and a core to do it."""
        if not (self.settings.ahead and format.timed and begins_there(format)) or os.name != "posix":
            return False
        with suppress(OSError):  # which will come up where it is read
            return os.path.getsize(self.path) - self.place.offset >= LONG and bool(sys.executable) and _cores() > 1
        return False

    def go_on(self, block: _Block) -> None:
        """This is as far as another process has come."""
        vars(self.reading).update(vars(block.reading))
        vars(self.place).update(vars(block.place))
        if self.choice is not None:
            self.choice.latest = block.latest


class _Block(NamedTuple):
    """What has been made of a block (or of several that brought nothing), and how far the task is then."""

    batch: Sequence[Event]
    losses: Sequence[tuple[Any, ...]]
    reading: Reading
    place: Place
    latest: int


def read(task: Task, ledger: DeadLetterLedger, read_in_process: Callable[[], Batches]) -> Batches:
    """The batches that `here` reads in this process, in the same order, most of them read by another one."""
    start = task.reading.bytes
    with _Other() as other:
        with closing(cast(Generator[Sequence[Event]], read_in_process())) as batches:
            for batch in batches:
                yield batch
                if other.is_ready():
                    break
            else:
                return
        task.reading.bytes = start  # they are counted again, as they are passed over
        for block in other.blocks(task):
            for loss in block.losses:
                ledger.record(*loss)
            task.go_on(block)
            if block.batch:
                yield block.batch
    if not task.place.ended:
        task.reading.bytes = start
        yield from read_in_process()


class _Other:
    """The process that reads."""

    def __enter__(self) -> _Other:
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

    def is_ready(self) -> bool:
        return self.pipe.poll(_PATIENCE)

    def blocks(self, task: Task) -> Iterator[_Block]:
        """What it sends, until the file or the process ends."""
        with suppress(EOFError, OSError):  # the process has ended, maybe in the middle of a block
            self.pipe.recv()
            self.pipe.send(task)
            while (block := self.pipe.recv()) is not None:
                yield block


def main(number: int) -> None:
    """The process that reads. number: of the pipe's end that it has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who reads what is sent sees to that
    gc.disable()  # nothing that is made here leads back to itself
    pipe = Connection(number)
    with suppress(EOFError, ConnectionError):  # the other end is not interested any more
        pipe.send(None)
        task: Task = pipe.recv()
        with suppress(SourceError):  # which will come up where the rest is read
            for block in _blocks(task):
                pipe.send(block)
            pipe.send(None)


def _blocks(task: Task) -> Iterator[_Block]:
    from squall.streams.sources.files import read_here  # which imports this module

    losses = _Losses()
    for batch in chain(read_here(task, *infer_format(task.path, task.settings.format), losses), [()]):
        latest = task.choice.latest if task.choice is not None else ALWAYS
        yield _Block(batch, losses.taken(), task.reading, task.place, latest)


class _Losses:
    """A ledger for another process."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []

    def record(self, *loss: Any) -> None:
        self.records.append(loss)

    def taken(self) -> Sequence[tuple[Any, ...]]:
        records, self.records = self.records, []
        return records


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
