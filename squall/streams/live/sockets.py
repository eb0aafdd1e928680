"""TCP and UNIX sockets: streams of bytes in any format, from a server or those who connect, or to these."""

from __future__ import annotations

import io
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, cast

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.formats import LONGEST
from squall.streams.formats.reading import decoded
from squall.streams.live import tls
from squall.streams.live.base import LiveSource, Lost
from squall.streams.live.buffer import Buffer

CONNECT = 10.0  # seconds that connecting may take
_POLL = 0.2  # seconds between two looks whether a listening source was stopped
_WAITING = 64  # batches of all connections that may wait for the run


class Place:
    """The place of a socket: a host and a port, or a path; and whether connections are made safe. listens: others
    connect."""

    def __init__(self, address: Address, listens: bool = False) -> None:
        self._tls = tls.context(address, address.flag("tls"), listens)
        self.is_unix = address.scheme == "unix"
        if self.is_unix:
            if self._tls is not None:
                raise UsageError(f"`{address.text}` does not leave this machine", hint="leave `tls` out")
            path = address.path.removeprefix("//")
            if not path:
                raise UsageError(f"`{address.text}` names no socket", hint="write `unix:/path/to/socket`")
            self.where: str | tuple[str, int] = path
        else:
            endpoint = address.endpoint()
            self.where = (endpoint.host or "127.0.0.1", endpoint.port)

    def connect(self) -> socket.socket:
        if isinstance(self.where, tuple):
            connection = socket.create_connection(self.where, CONNECT)
        else:
            connection = _local(lambda unix_socket: unix_socket.connect(self.where))
        return self.secured(connection, self.where[0] if isinstance(self.where, tuple) else None)

    def secured(self, connection: socket.socket, host: str | None = None) -> socket.socket:
        """The connection as it is used: with TLS, if that is wanted. host: to which it was made; None: it was made to
        here. Raises OSError, and the connection is closed."""
        try:
            connection.settimeout(CONNECT)
            if self._tls is not None:
                # An end that is not said may have been made by somebody else.
                connection = self._tls.wrap_socket(
                    connection, server_side=host is None, server_hostname=host, suppress_ragged_eofs=False
                )
            connection.settimeout(None)
        except OSError:
            connection.close()
            raise
        return connection

    def listen(self) -> socket.socket:
        if isinstance(self.where, tuple):
            family = socket.AF_INET6 if ":" in self.where[0] else socket.AF_INET
            server = socket.create_server(self.where, family=family, backlog=128)
        else:
            self._clear(self.where)
            server = _local(lambda unix_socket: unix_socket.bind(self.where))
            server.listen(128)
        server.settimeout(_POLL)
        return server

    def accepted(self, server: socket.socket, stopped: threading.Event) -> Iterator[socket.socket]:
        """Those who connect, until that is to end. Raises OSError."""
        while not stopped.is_set():
            with suppress(TimeoutError):
                yield server.accept()[0]

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
            _local(lambda unix_socket: unix_socket.connect(path)).close()
        except ConnectionRefusedError:
            os.unlink(path)


def _local(use: Callable[[socket.socket], None]) -> socket.socket:
    """A UNIX socket that has been connected or bound."""
    unix_socket = socket.socket(socket.AF_UNIX)
    try:
        use(unix_socket)
    except OSError:
        unix_socket.close()
        raise
    return unix_socket


class SocketSource(LiveSource):
    """``tcp://host:port`` and ``unix:/path``: what a server sends, or with ``listen=yes`` what those send who connect.

    The bytes of a connection are a document of their own in the format that is named. A server that ends its stream
    ends the source, unless ``reconnect=yes``. ``connections=N``: listening ends when so many have been served (0:
    never). What has been read cannot be read again. Whoever sends too fast is not read from, and has to wait.
    """

    options = ("listen", "connections", "reconnect", "tls", *tls.CERTIFICATES)

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.settings = replace(self.settings, longest=LONGEST)
        self.listens = address.flag("listen")
        self.place = Place(address, self.listens)
        self.reconnects = address.flag("reconnect")
        self.connections = address.integer("connections", 0, least=0)
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
                while events := buffer.take():
                    yield from map(_batch, events)
            finally:
                self.stop()
                buffer.close()
                self.place.left()

    def _accept(self, server: socket.socket, buffer: Buffer[Sequence[Event] | BaseException]) -> None:
        served: list[threading.Thread] = []
        try:
            for connection in self.place.accepted(server, self.stopped):
                thread = threading.Thread(target=self._serve, args=(connection, buffer), daemon=True)
                thread.start()
                served = [
                    connection_thread
                    for connection_thread in served
                    if connection_thread.is_alive() or self.connections
                ] + [thread]
                if len(served) == self.connections:
                    break
        except OSError as error:
            buffer.put(SourceError(f"`{self.uri}` cannot be listened at: {said(error)}"))
        for thread in served:
            thread.join()
        buffer.close()

    def _serve(self, connection: socket.socket, buffer: Buffer[Sequence[Event] | BaseException]) -> None:
        try:
            connection = self.place.secured(connection)
        except OSError as error:
            self.ledger.record("lost", self.uri, None, f"a connection cannot be made safe: {said(error)}", "")
            return
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
    """The bytes of a connection as they come. Where it fails they end, and `failure` says why. is_cut: they have ended
    by that, or since the source was stopped."""

    def __init__(self, connection: socket.socket, source: SocketSource, name: str) -> None:
        self.name = name
        self.failure: OSError | None = None
        self.is_cut = False
        self._connection = connection
        self._source = source

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._connection.recv(size)
        except OSError as error:
            self.failure = None if self._source.stopped.is_set() else error
            self.is_cut = True
            return b""
        self.is_cut = not data and self._source.stopped.is_set()
        self._source.reading.bytes += len(data)
        return data


def said(error: OSError) -> str:
    """What the system says of an error."""
    return error.strerror or str(error) or type(error).__name__


def _batch(events_or_error: Sequence[Event] | BaseException) -> Sequence[Event]:
    if isinstance(events_or_error, BaseException):
        raise events_or_error
    return events_or_error


def _stop_reading(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RD)  # below TLS: what is being read still goes through that
