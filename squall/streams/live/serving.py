"""Sinks that listen: outputs go to all clients that are connected at the time."""

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

_MESSAGES_PER_WRITE = 64


class Subscriber:
    """A connected client, and the messages that wait for it.

    Attributes:
        name: Its name, for dead letters.
        abort: Ends its connection, whatever that is doing.
    """

    def __init__(self, name: str, limit: int, abort: Callable[[], None]) -> None:
        self.name = name
        self.abort = abort
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._sent: list[bytes] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, data: bytes, patience: float) -> bool:
        """Waits so many seconds for room, and adds a message.

        Returns whether there was room. It also is if the client is gone, which needs no message.
        """
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._closed or len(self._waiting) < self._limit, patience)
            if has_room and not self._closed:
                self._waiting.append(data)
                self._changed.notify_all()
            return has_room

    def take(self) -> Sequence[bytes]:
        """Waits for messages, and removes and returns them. Those of the last call have been sent then.

        Returns nothing at the end.
        """
        with self._changed:
            self._sent = []
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting)
            self._sent = [self._waiting.popleft() for _ in range(min(_MESSAGES_PER_WRITE, len(self._waiting)))]
            self._changed.notify_all()
            return self._sent

    def wait_until_sent(self, patience: float) -> bool:
        """Waits until all messages are sent, and returns whether they are.

        Args:
            patience: The seconds without progress after which it gives up.
        """
        with self._changed:
            while self._waiting or self._sent:
                if not self._changed.wait(patience):
                    return False
            return True

    def close(self) -> list[bytes]:
        """Accepts no more messages, and returns those that have not been sent."""
        with self._changed:
            unsent = [*self._sent, *self._waiting]
            self._closed = True
            self._waiting.clear()
            self._sent = []
            self._changed.notify_all()
            return unsent

    def end(self) -> None:
        """Accepts no more messages. Those that wait are still sent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class ServingSink(MessageSink):
    """A sink with ``listen=yes``. A subscriber gets the outputs from the time of its connection on.

    ``connections=N`` (0): the run waits until so many clients have connected. ``buffer`` (1000): the number of messages
    that may wait for a subscriber. A faster run waits for it (backpressure). If it takes none for ``wait`` ms (60000),
    the sink ends its connection, and the messages that waited are dead letters with the cause ``dropped``. Unsent
    messages of a broken connection are dead letters with the cause ``lost``.
    """

    options: ClassVar[tuple[str, ...]] = ("listen", "connections", "buffer", "wait", *CERTIFICATES)

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        if address.get("retry"):
            raise UsageError(f"`{self.uri}` listens: it does not connect", hint="leave `retry` out")
        self.connections = address.integer("connections", 0, least=0)
        self.buffer = address.integer("buffer", 1000, least=1)
        self.wait = address.milliseconds("wait", 60_000) / 1000
        self.ledger: DeadLetterLedger = DeadLetterFile()
        self._subscribers: list[Subscriber] = []
        self._count = 0
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False

    @abstractmethod
    def listen(self) -> None:
        """Begins to listen. A thread serves each connection, by `serve_subscriber`. Raises OSError."""

    @abstractmethod
    def stop(self) -> None:
        """Stops to listen: no more clients can connect."""

    def frame(self, data: bytes) -> bytes:
        """Returns a message in the form in which it is sent."""
        return data

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self.listen()
        except OSError as error:
            self.fail(error.strerror or error)
        with self._changed:
            self._changed.wait_for(lambda: self._count >= self.connections)

    def serve_subscriber(
        self, name: str, write: Callable[[Sequence[bytes]], object], abort: Callable[[], None]
    ) -> None:
        """Sends all further outputs to a client, until the sink is closed or `write` raises OSError.

        Args:
            name: The name of the client, for dead letters.
            write: Sends messages to it.
            abort: Ends its connection.
        """
        subscriber = Subscriber(name, self.buffer, abort)
        with self._changed:
            if self._closed:
                return
            self._subscribers.append(subscriber)
            self._threads.append(threading.current_thread())
            self._count += 1
            self._changed.notify_all()
        try:
            while chunks := subscriber.take():
                write(chunks)
        except OSError as error:
            self._lose("lost", f"{name}: the connection is lost: {error.strerror or error}", subscriber)
        finally:
            with self._changed:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)
                self._threads.remove(threading.current_thread())

    def send(self, data: bytes) -> None:
        message = self.frame(data)
        for subscriber in self._all():
            if not subscriber.put(message, self.wait):
                self._drop(subscriber, message)

    def flush(self) -> None:
        """Waits until all messages are sent to all subscribers (`squall.streams.sinks.Flushable`)."""
        for subscriber in self._all():
            if not subscriber.wait_until_sent(max(self.wait, 0.001)):
                self._drop(subscriber)

    def disconnect(self) -> None:
        with self._changed:
            self._closed = True
            threads = list(self._threads)
        for subscriber in self._all():
            subscriber.end()
        for thread in threads:  # before the server ends, which may break connections
            thread.join()
        self.stop()

    def _all(self) -> list[Subscriber]:
        with self._changed:
            return list(self._subscribers)

    def _drop(self, subscriber: Subscriber, *more: bytes) -> None:
        with self._changed:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)
        reason = (
            f"{subscriber.name}: nothing was taken for {self.wait:g} s, "
            f"and more than buffer={self.buffer} messages wait"
        )
        self._lose("dropped", reason, subscriber, *more)
        with suppress(OSError):  # the connection may have ended by itself
            subscriber.abort()

    def _lose(self, cause: str, reason: str, subscriber: Subscriber, *more: bytes) -> None:
        for data in (*subscriber.close(), *more):
            self.ledger.record(cause, self.uri, None, reason, excerpt(data).rstrip("\n"))
