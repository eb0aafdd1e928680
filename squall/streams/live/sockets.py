"""TCP and UNIX sockets as sources: byte streams in any format, from a server or from clients that connect."""

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
from squall.streams.formats import MAX_UNIT_BYTES
from squall.streams.formats.reading import decode
from squall.streams.live import tls
from squall.streams.live.base import CONNECT_TIMEOUT_S, ConnectionLost, LiveSource
from squall.streams.live.buffer import Buffer

_STOP_POLL_S = 0.2
"""The seconds between two checks whether a listening source was stopped."""
_MAX_BUFFERED_BATCHES = 64
"""The number of batches, of all connections, that may wait for the run."""


class SocketAddress:
    """The address of a socket.

    Attributes:
        is_unix: Whether it is a UNIX socket.
        where: A host and a port, or a path.
    """

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
        """Connects, with TLS if the address has it. Raises OSError."""
        if isinstance(self.where, tuple):
            connection = socket.create_connection(self.where, CONNECT_TIMEOUT_S)
        else:
            connection = _local(lambda unix_socket: unix_socket.connect(self.where))
        return self.secured(connection, self.where[0] if isinstance(self.where, tuple) else None)

    def secured(self, connection: socket.socket, host: str | None = None) -> socket.socket:
        """Returns a connection with TLS, if the address has it.

        Args:
            connection: The connection. It is closed if that fails.
            host: The host of the server, or None if this side is the server.

        Raises:
            OSError: The handshake fails.
        """
        try:
            connection.settimeout(CONNECT_TIMEOUT_S)
            if self._tls is not None:
                # Without a close notice, somebody else may have cut the connection off.
                connection = self._tls.wrap_socket(
                    connection, server_side=host is None, server_hostname=host, suppress_ragged_eofs=False
                )
            connection.settimeout(None)
        except OSError:
            connection.close()
            raise
        return connection

    def listen(self) -> socket.socket:
        """Returns a socket that listens. Raises OSError."""
        if isinstance(self.where, tuple):
            family = socket.AF_INET6 if ":" in self.where[0] else socket.AF_INET
            server = socket.create_server(self.where, family=family, backlog=128)
        else:
            self._remove_stale(self.where)
            server = _local(lambda unix_socket: unix_socket.bind(self.where))
            server.listen(128)
        server.settimeout(_STOP_POLL_S)
        return server

    def accepted(self, server: socket.socket, stopped: threading.Event) -> Iterator[socket.socket]:
        """Yields the connections of clients, until the event `stopped` is set. Raises OSError."""
        while not stopped.is_set():
            with suppress(TimeoutError):
                yield server.accept()[0]

    def remove(self) -> None:
        """Removes the file of a UNIX socket that no longer listens."""
        if isinstance(self.where, str):
            with suppress(OSError):
                os.unlink(self.where)

    def _remove_stale(self, path: str) -> None:
        """Removes the file of a socket on which nobody listens. Raises OSError if somebody does."""
        if not (os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode)):
            return
        try:
            _local(lambda unix_socket: unix_socket.connect(path)).close()
        except ConnectionRefusedError:
            os.unlink(path)


def _local(use: Callable[[socket.socket], None]) -> socket.socket:
    """Returns a new UNIX socket, to which `use` is applied: it connects or binds it."""
    unix_socket = socket.socket(socket.AF_UNIX)
    try:
        use(unix_socket)
    except OSError:
        unix_socket.close()
        raise
    return unix_socket


class SocketSource(LiveSource):
    """``tcp://host:port`` and ``unix:/path``: the bytes from a server, or with ``listen=yes`` from clients.

    The bytes of each connection are a document of their own in the format of the address. A server that ends its stream
    ends the source, unless ``reconnect=yes``. ``connections=N``: listening ends after so many connections (0: never).
    The source is not replayable. A side that sends too fast has to wait (backpressure).

    Attributes:
        bound: An event that is set when clients can connect. Then `port` is known.
        port: The port at which it listens.
    """

    options = ("listen", "connections", "reconnect", "tls", *tls.CERTIFICATES)

    def __init__(
        self, address: Address, ledger: DeadLetterLedger, time: int = 0, *, max_unit_bytes: int = MAX_UNIT_BYTES
    ) -> None:
        super().__init__(address, ledger, time)
        self.settings = replace(self.settings, longest=max_unit_bytes)
        self.listens = address.flag("listen")
        self.place = SocketAddress(address, self.listens)
        self.reconnects = address.flag("reconnect")
        self.connections = address.integer("connections", 0, least=0)
        if self.listens and self.reconnects:
            raise UsageError(f"`{self.uri}` listens: it cannot connect again", hint="leave `reconnect` out")
        if self.connections and not self.listens:
            raise UsageError(f"`{self.uri}` does not listen", hint="`connections` goes with `listen=yes`")
        self.bound = threading.Event()
        self.port = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._count = 0

    def receive(self) -> Iterator[Sequence[Event]]:
        return self._from_clients() if self.listens else self._from_server()

    def interrupt(self) -> None:
        with self._lock:
            for connection in self._open:
                _stop_reading(connection)

    def _from_server(self) -> Iterator[Sequence[Event]]:
        try:
            connection = self.place.connect()
        except OSError as error:
            raise ConnectionLost(error_text(error)) from error
        yield ()
        with self._receiving(connection) as received:
            yield from self._events(received)
        if received.failure is not None:
            raise ConnectionLost(error_text(received.failure))
        if self.reconnects:
            raise ConnectionLost("the other side has closed it")

    def _from_clients(self) -> Iterator[Sequence[Event]]:
        """Accepts connections in one thread, and reads each in a thread of its own."""
        try:
            server = self.place.listen()
        except OSError as error:
            raise ConnectionLost(error_text(error)) from error
        buffer: Buffer[Sequence[Event] | BaseException] = Buffer(_MAX_BUFFERED_BATCHES)
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
                self.place.remove()

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
            buffer.put(SourceError(f"`{self.uri}` cannot be listened at: {error_text(error)}"))
        for thread in served:
            thread.join()
        buffer.close()

    def _serve(self, connection: socket.socket, buffer: Buffer[Sequence[Event] | BaseException]) -> None:
        try:
            connection = self.place.secured(connection)
        except OSError as error:
            self.ledger.record(
                "lost", self.uri, None, f"the TLS handshake of a connection fails: {error_text(error)}", ""
            )
            return
        try:
            with self._receiving(connection) as received:
                for batch in self._events(received):
                    if not buffer.put(batch):
                        return
            if received.failure is not None:
                self.ledger.record(
                    "lost", received.name, None, f"the connection is lost: {error_text(received.failure)}", ""
                )
        except BaseException as error:  # the thread of the run raises it
            buffer.put(error)

    def _events(self, received: _ConnectionReader) -> Iterator[Sequence[Event]]:
        file = cast(IO[bytes], received)
        return decode(file, received.name, self.format, self.settings, self.ledger, self.reading)

    @contextmanager
    def _receiving(self, connection: socket.socket) -> Iterator[_ConnectionReader]:
        """Provides the bytes of a connection, and closes it."""
        with self._lock:
            self._open.add(connection)
            self._count += 1
            received = _ConnectionReader(connection, self, f"{self.uri}#{self._count}")
        if self.stopped.is_set():
            _stop_reading(connection)
        try:
            yield received
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()


class _ConnectionReader(io.RawIOBase):
    """A file with the bytes of a connection. An error of the connection ends it.

    Attributes:
        name: The name of the connection, for dead letters.
        failure: The error that ended it, or None.
        is_cut: Whether an error ended it, or the stop of the source.
    """

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


def error_text(error: OSError) -> str:
    """Returns the text of an error of the system."""
    return error.strerror or str(error) or type(error).__name__


def _batch(events_or_error: Sequence[Event] | BaseException) -> Sequence[Event]:
    if isinstance(events_or_error, BaseException):
        raise events_or_error
    return events_or_error


def _stop_reading(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RD)  # below TLS, which still decrypts what was received
