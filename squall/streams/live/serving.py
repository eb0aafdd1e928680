"""Sinks that others connect to: what is written goes to all who are connected at the time."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from squall.contracts import DeadLetterLedger
from squall.errors import UsageError
from squall.streams.address import Address
from squall.streams.dead_letters import DeadLetterFile, excerpt
from squall.streams.live.messages import MessageSink
from squall.streams.live.tls import CERTIFICATES

_AT_ONCE = 64  # messages that are sent together


class Reader:
    """Somebody who reads, and what waits for him. cut: ends his connection, whatever it is doing."""

    def __init__(self, name: str, limit: int, cut: Callable[[], None]) -> None:
        self.name = name
        self.cut = cut
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._sent: list[bytes] = []
        self._changed = threading.Condition()
        self._closed = False

    def give(self, data: bytes, patience: float) -> bool:
        """Waits for room, for so many seconds; whether there was any, or there is nobody any more who might want it."""
        with self._changed:
            room = self._changed.wait_for(lambda: self._closed or len(self._waiting) < self._limit, patience)
            if room and not self._closed:
                self._waiting.append(data)
                self._changed.notify_all()
            return room

    def take(self) -> Sequence[bytes]:
        """What waits, for which it waits; what was taken before has been sent. Nothing at the end."""
        with self._changed:
            self._sent = []
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting)
            self._sent = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            self._changed.notify_all()
            return self._sent

    def settle(self, patience: float) -> bool:
        """Waits until all has been sent, as long as that goes on: for so many seconds without. Whether it has been."""
        with self._changed:
            while self._waiting or self._sent:
                if not self._changed.wait(patience):
                    return False
            return True

    def close(self) -> list[bytes]:
        """Nothing more is given to him; what has not been sent."""
        with self._changed:
            left = [*self._sent, *self._waiting]
            self._closed = True
            self._waiting.clear()
            self._sent = []
            self._changed.notify_all()
            return left

    def end(self) -> None:
        """Nothing more is given to him; what waits is still sent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class ServingSink(MessageSink):
    """A sink with ``listen=yes``. A reader gets what is written from when he has connected.

    ``connections=N``: nothing is written before so many have connected (0). ``buffer``: how many messages may wait for
    a reader (1000). A run that is faster waits for him; if he takes none for ``wait`` ms (60000), his connection is
    ended, and what waited for him is counted as ``dropped``; what a connection has not taken that breaks, as ``lost``.
    """

    options: ClassVar[tuple[str, ...]] = ("listen", "connections", "buffer", "wait", *CERTIFICATES)

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        if address.get("retry"):
            raise UsageError(f"`{self.uri}` listens: it does not connect", hint="leave `retry` out")
        self.connections = address.integer("connections", 0, least=0)
        self.buffer = address.integer("buffer", 1000, least=1)
        self.wait = address.integer("wait", 60_000, least=0) / 1000
        self.ledger: DeadLetterLedger = DeadLetterFile()
        self._readers: list[Reader] = []
        self._count = 0
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False

    @abstractmethod
    def listen(self) -> None:
        """Begins to listen; each connection that comes is served by a thread, which calls `attend`. Raises OSError."""

    @abstractmethod
    def stop(self) -> None:
        """Nobody can connect any more."""

    def framed(self, data: bytes) -> bytes:
        """A message as it is sent."""
        return data

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self.listen()
        except OSError as error:
            self.fail(error.strerror or error)
        with self._changed:
            self._changed.wait_for(lambda: self._count >= self.connections)

    def attend(self, name: str, write: Callable[[Sequence[bytes]], object], cut: Callable[[], None]) -> None:
        """Hands on to a reader what is written from now on, until the sink is closed or `write` raises OSError."""
        reader = Reader(name, self.buffer, cut)
        with self._changed:
            if self._closed:
                return
            self._readers.append(reader)
            self._threads.append(threading.current_thread())
            self._count += 1
            self._changed.notify_all()
        try:
            while chunks := reader.take():
                write(chunks)
        except OSError as error:
            self._lose("lost", f"{name}: the connection is lost: {error.strerror or error}", reader)
        finally:
            with self._changed:
                if reader in self._readers:
                    self._readers.remove(reader)
                self._threads.remove(threading.current_thread())

    def send(self, data: bytes) -> None:
        message = self.framed(data)
        for reader in self._all():
            if not reader.give(message, self.wait):
                self._drop(reader, message)

    def flush(self) -> None:
        """See `squall.streams.sinks.Flushable`: all who read have been sent what there is."""
        for reader in self._all():
            if not reader.settle(max(self.wait, 0.001)):
                self._drop(reader)

    def disconnect(self) -> None:
        with self._changed:
            self._closed = True
            threads = list(self._threads)
        for reader in self._all():
            reader.end()
        for thread in threads:  # before the server ends, which may break connections off
            thread.join()
        self.stop()

    def _all(self) -> list[Reader]:
        with self._changed:
            return list(self._readers)

    def _drop(self, reader: Reader, *more: bytes) -> None:
        with self._changed:
            if reader in self._readers:
                self._readers.remove(reader)
        reason = (
            f"{reader.name}: nothing was taken for {self.wait:g} s, and more than buffer={self.buffer} messages wait"
        )
        self._lose("dropped", reason, reader, *more)
        with suppress(OSError):  # it may have ended by itself
            reader.cut()

    def _lose(self, cause: str, reason: str, reader: Reader, *more: bytes) -> None:
        for data in (*reader.close(), *more):
            self.ledger.record(cause, self.uri, None, reason, excerpt(data).rstrip("\n"))
