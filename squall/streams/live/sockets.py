"""TCP and UNIX sockets: streams of bytes in any format, from a server, from those who connect, or to one of these."""

from __future__ import annotations

import io
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.stages import Ledger
from squall.streams.address import Address
from squall.streams.formats import LONGEST
from squall.streams.live.base import LiveSource, Lost, delays
from squall.streams.live.buffer import Buffer
from squall.streams.reading import decoded
from squall.streams.sinks import StreamSink
from squall.streams.written import check_format

_CONNECT = 10.0  # seconds that connecting may take
_POLL = 0.2  # seconds between two looks whether a listening source was stopped
_WAITING = 64  # batches of all connections that may wait for the run
_SENT = 1 << 16  # bytes that a sink puts together, unless each output is to go at once


class Place:
    """The place of a socket: a host and a port, or a path."""

    def __init__(self, address: Address) -> None:
        self.is_unix = address.scheme == "unix"
        if self.is_unix:
            path = address.path.removeprefix("//")
            if not path:
                raise UsageError(f"`{address.text}` names no socket", hint="write `unix:/path/to/socket`")
            self.where: str | tuple[str, int] = path
        else:
            endpoint = address.endpoint()
            self.where = (endpoint.host or "127.0.0.1", endpoint.port)

    def connect(self) -> socket.socket:
        if isinstance(self.where, tuple):
            connection = socket.create_connection(self.where, _CONNECT)
        else:
            connection = _local(lambda one: one.connect(self.where))
        connection.settimeout(None)
        return connection

    def listen(self) -> socket.socket:
        if isinstance(self.where, tuple):
            family = socket.AF_INET6 if ":" in self.where[0] else socket.AF_INET
            server = socket.create_server(self.where, family=family, backlog=128)
        else:
            self._clear(self.where)
            server = _local(lambda one: one.bind(self.where))
            server.listen(128)
        server.settimeout(_POLL)
        return server

    def left(self) -> None:
        """Nobody listens here any more."""
        if isinstance(self.where, str):
            with suppress(OSError):
                os.unlink(self.where)

    def _clear(self, path: str) -> None:
        """Takes away a socket that somebody left behind; raises OSError if somebody listens there."""
        if not (os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode)):
            return
        try:
            self.connect().close()
        except ConnectionRefusedError:
            os.unlink(path)


def _local(use: Callable[[socket.socket], None]) -> socket.socket:
    """A UNIX socket that has been connected or bound."""
    one = socket.socket(socket.AF_UNIX)
    try:
        use(one)
    except OSError:
        one.close()
        raise
    return one


class SocketSource(LiveSource):
    """``tcp://host:port`` and ``unix:/path``: what a server sends, or with ``listen=yes`` what those send who connect.

    The bytes of a connection are a document of their own in the format that is named. A server that ends its stream
    ends the source, unless ``reconnect=yes``. ``connections=N``: listening ends when so many have been served (0:
    never). What has been read cannot be read again. Whoever sends too fast is not read from, and has to wait.
    """

    options = ("listen", "connections", "reconnect")

    def __init__(self, address: Address, ledger: Ledger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.place = Place(address)
        self.listens = address.flag("listen")
        self.reconnects = address.flag("reconnect")
        self.connections = address.integer("connections", 0)
        if self.listens and self.reconnects:
            raise UsageError(f"`{self.uri}` listens: it cannot connect again", hint="leave `reconnect` out")
        if self.connections and not self.listens:
            raise UsageError(f"`{self.uri}` does not listen", hint="`connections` goes with `listen=yes`")
        self.bound = threading.Event()
        """Set as soon as somebody can connect; `port` is known then."""
        self.port = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._count = 0

    def receive(self) -> Iterator[Sequence[Event]]:
        return self._listened() if self.listens else self._connected()

    def interrupt(self) -> None:
        with self._lock:
            for connection in self._open:
                _stop_reading(connection)

    def _connected(self) -> Iterator[Sequence[Event]]:
        try:
            connection = self.place.connect()
        except OSError as error:
            raise Lost(said(error)) from error
        yield ()
        with self._held(connection) as received:
            yield from self._events(received)
        if received.failure is not None:
            raise Lost(said(received.failure))
        if self.reconnects:
            raise Lost("the other side has closed it")

    def _listened(self) -> Iterator[Sequence[Event]]:
        """Each connection is read by a thread, and so is the place where they arrive."""
        try:
            server = self.place.listen()
        except OSError as error:
            raise Lost(said(error)) from error
        buffer: Buffer[Sequence[Event] | BaseException] = Buffer(_WAITING)
        accepting = threading.Thread(
            target=self._accept, args=(server, buffer), name=f"listens {self.uri}", daemon=True
        )
        with server:
            self.port = server.getsockname()[1] if isinstance(self.place.where, tuple) else 0
            self.bound.set()
            yield ()
            accepting.start()
            try:
                while taken := buffer.take():
                    yield from map(_batch, taken)
            finally:
                self.stop()
                buffer.close()
                self.place.left()

    def _accept(self, server: socket.socket, buffer: Buffer[Sequence[Event] | BaseException]) -> None:
        served: list[threading.Thread] = []
        while not self.stopped.is_set() and not (self.connections and len(served) == self.connections):
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            except OSError as error:
                buffer.put(SourceError(f"`{self.uri}` cannot be listened at: {said(error)}"))
                break
            thread = threading.Thread(target=self._serve, args=(connection, buffer), daemon=True)
            thread.start()
            served = [one for one in served if one.is_alive() or self.connections] + [thread]
        for thread in served:
            thread.join()
        buffer.close()

    def _serve(self, connection: socket.socket, buffer: Buffer[Sequence[Event] | BaseException]) -> None:
        try:
            with self._held(connection) as received:
                for batch in self._events(received):
                    if not buffer.put(batch):
                        return
            if received.failure is not None:
                self.ledger.record("lost", received.name, None, f"the connection is lost: {said(received.failure)}", "")
        except BaseException as error:  # raised again where the run can be heard
            buffer.put(error)

    def _events(self, received: _Received) -> Iterator[Sequence[Event]]:
        file = cast(IO[bytes], received)
        return decoded(file, received.name, self.format, self.settings, self.ledger, self.reading)

    @contextmanager
    def _held(self, connection: socket.socket) -> Iterator[_Received]:
        """What comes of a connection, as long as it is open."""
        with self._lock:
            self._open.add(connection)
            self._count += 1
            received = _Received(connection, self, f"{self.uri}#{self._count}")
        if self.stopped.is_set():
            _stop_reading(connection)
        try:
            yield received
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()


class _Received(io.RawIOBase):
    """The bytes of a connection as they come. Where it fails they end, and `failure` says why."""

    def __init__(self, connection: socket.socket, source: SocketSource, name: str) -> None:
        self.name = name
        self.failure: OSError | None = None
        self._connection = connection
        self._source = source
        self._length = 0  # of the line so far

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._connection.recv(size)
        except OSError as error:
            self.failure = error
            return b""
        self._source.reading.bytes += len(data)
        newline = data.rfind(b"\n")
        self._length = len(data) - newline - 1 if newline >= 0 else self._length + len(data)
        if self._source.format.lines and self._length > LONGEST:
            reason = f"a line is longer than {LONGEST} bytes: the connection is not read any further"
            self._source.ledger.record("malformed", self.name, None, reason, "")
            return b""
        return data


def open_sink(address: Address) -> StreamSink:
    """What a run writes goes to whoever listens there, as a stream of bytes in any format (``format=nt``).

    A connection that is lost is made again for ``retry`` ms (60000), and what was being written is written anew.
    """
    address.only("format", "retry")
    place, name = Place(address), address.get("format", "nt")
    check_format(name)
    retry = address.integer("retry", 60_000)
    return StreamSink(address.text, name, lambda _: io.BufferedWriter(_Sending(place, retry), _SENT), alone=True)


class _Sending(io.RawIOBase):
    """Bytes that go to a socket. Raises OSError if there is no connection, and none can be made in time."""

    def __init__(self, place: Place, retry: int) -> None:
        self._place = place
        self._retry = retry
        self._connection = place.connect()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        delays_ = delays(self._retry / 1000)
        while True:
            try:
                self._connection.sendall(data)
                return len(data)
            except OSError as error:
                self._again(delays_, error)

    def _again(self, left: Iterator[float], error: OSError) -> None:
        for delay in left:
            time.sleep(delay)
            with suppress(OSError):
                self._connection.close()
                self._connection = self._place.connect()
                return
        raise ConnectionError(error.errno, said(error)) from error

    def close(self) -> None:
        super().close()
        self._connection.close()


def said(error: OSError) -> str:
    """What the system says of an error."""
    return error.strerror or str(error) or type(error).__name__


def _batch(taken: Sequence[Event] | BaseException) -> Sequence[Event]:
    if isinstance(taken, BaseException):
        raise taken
    return taken


def _stop_reading(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
