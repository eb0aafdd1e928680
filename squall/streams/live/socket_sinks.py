"""TCP and UNIX sockets as sinks: byte streams to a server, or to the clients that connect."""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from squall.contracts import DeadLetterLedger
from squall.errors import UsageError
from squall.streams.address import Address
from squall.streams.dead_letters import DeadLetterFile
from squall.streams.formats import rdf_messages
from squall.streams.formats.output_formats import MESSAGES, check_format
from squall.streams.formats.results import DOCUMENTS
from squall.streams.live.base import CONNECT_TIMEOUT_S, delays
from squall.streams.live.serving import ServingSink
from squall.streams.live.sockets import SocketAddress, error_text
from squall.streams.live.tls import CERTIFICATES
from squall.streams.sinks import Sink, StreamSink

_BUFFER_BYTES = 1 << 16
"""The size of the buffer, unless each output is sent at once."""


def open_sink(address: Address) -> Sink:
    """Opens ``tcp://host:port`` and ``unix:/path``: it sends outputs to a server, or
    with ``listen=yes`` to all clients that connect.

    See `SocketSink` and `SocketServer`.
    """
    return SocketServer(address) if address.flag("listen") else SocketSink(address)


class SocketSink(StreamSink):
    """``tcp://host:port`` and ``unix:/path``: outputs go to the server there, as a byte stream in any format
    (``format=nt``).

    A lost connection is tried again for ``retry`` ms (60000), and the current write is repeated. It is unknown whether
    earlier outputs have arrived: each lost connection is a dead letter with the cause ``lost``.
    """

    def __init__(self, address: Address) -> None:
        address.only("format", "retry", "tls", *CERTIFICATES)
        self.ledger: DeadLetterLedger = DeadLetterFile()
        place, name = SocketAddress(address), address.get("format", "nt")
        check_format(name)
        retry = address.milliseconds("retry", 60_000)
        sending = partial(_SocketWriter, place, retry, self._lose)
        super().__init__(address.text, name, lambda _: io.BufferedWriter(sending(), _BUFFER_BYTES), alone=True)

    def _lose(self, why: str) -> None:
        self.ledger.record("lost", self.uri, None, f"the connection is lost: {why}; what was sent may not be there", "")


class SocketServer(ServingSink):
    """``tcp://host:port`` and ``unix:/path`` with ``listen=yes``: each client gets lines, messages or frames."""

    options = (*ServingSink.options, "tls")

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        if self.format in DOCUMENTS:
            hint = "a line for each: `format=ndjson-evaluations`"
            raise UsageError(f"`{self.uri}`: documents of `{self.format}` have no end on a connection", hint=hint)
        self.place = SocketAddress(address, listens=True)
        self.port = 0
        self._server: socket.socket | None = None
        self._stopped = threading.Event()

    def listen(self) -> None:
        self._server = self.place.listen()
        self.port = self._server.getsockname()[1] if isinstance(self.place.where, tuple) else 0
        threading.Thread(target=self._accept, args=(self._server,), name=f"listens {self.uri}", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._server is not None:
            self._server.close()
            self.place.remove()

    def frame(self, data: bytes) -> bytes:
        if self.format in MESSAGES:
            return rdf_messages.delimited(data + b"\n")
        if self.binary:
            from squall.streams.formats import jelly

            return jelly.delimited(data)
        return data + b"\n"

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):  # the server is closed
            for number, connection in enumerate(self.place.accepted(server, self._stopped), 1):
                threading.Thread(target=self._serve, args=(connection, f"#{number}"), daemon=True).start()

    def _serve(self, connection: socket.socket, name: str) -> None:
        with suppress(OSError):  # there is no TLS, or the connection is gone
            connection = self.place.secured(connection)
            abort = partial(socket.socket.shutdown, connection, socket.SHUT_RDWR)
            try:
                self.serve_subscriber(name, lambda chunks: connection.sendall(b"".join(chunks)), abort)
            finally:
                _end(connection)


class _SocketWriter(io.RawIOBase):
    """A file whose bytes go to a socket. Its methods raise OSError if no connection can be made in time."""

    def __init__(self, place: SocketAddress, retry: int, lose: Callable[[str], None]) -> None:
        """Connects.

        Args:
            place: The server.
            retry: How long to retry a lost connection, in ms.
            lose: It is called with the reason when a connection is lost by which something was sent.
        """
        self._place = place
        self._retry = retry
        self._lose = lose
        self._connection = place.connect()
        self._has_sent = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        pauses = delays(self._retry / 1000)
        while True:
            try:
                if self._connection.fileno() < 0:
                    self._connection = self._place.connect()
                self._connection.sendall(data)
                self._has_sent = True
                return len(data)
            except OSError as error:
                self._connection.close()
                if self._has_sent:
                    self._lose(error_text(error))
                self._has_sent = False
                if (delay := next(pauses, None)) is None:
                    raise ConnectionError(error.errno, error_text(error)) from error
                time.sleep(delay)

    def close(self) -> None:
        if not self.closed:
            super().close()
            _end(self._connection)


def _end(connection: socket.socket) -> None:
    """Closes a connection. With TLS the other side gets a notice."""
    if isinstance(connection, ssl.SSLSocket):
        with suppress(OSError):
            connection.settimeout(CONNECT_TIMEOUT_S)
            connection = connection.unwrap()
    connection.close()
