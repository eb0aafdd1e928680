"""WebSocket (websockets): messages from a server as a source; messages to a server, or to clients, as sinks.

Source: RFC 6455.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.dead_letters import DeadLetterFile
from squall.streams.formats import MAX_UNIT_BYTES
from squall.streams.live.base import ConnectionLost
from squall.streams.live.messages import Message, MessageSink, MessageSource
from squall.streams.live.serving import ServingSink
from squall.streams.live.web import Target, listening_target, target
from squall.streams.sinks import Sink

_POLL_S = 0.2
_NORMAL_CLOSURE = 1000
_CLIENT_ERRORS = range(400, 500)


class WebSocketSource(MessageSource):
    """``ws://host/path`` and ``wss:``: the messages of a server, text or binary.

    ``send``: a text that is sent first, such as a subscription. A server that closes normally (1000) ends the source,
    unless ``reconnect=yes``. The source is not replayable. A server that sends too fast has to wait (backpressure).
    """

    options = ("send", "reconnect")

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        self.target, address = target(address)
        super().__init__(address, ledger, time)
        self.scheme = address.scheme
        self.first = address.get("send")
        self.reconnects = address.flag("reconnect")
        self._count = 0

    def receive(self) -> Iterator[Sequence[Event]]:
        try:
            with _connected(self.scheme, self.target) as connection:
                if self.first:
                    connection.send(self.first)
                yield ()
                while not self.stopped.is_set():
                    if messages := self._messages(connection):
                        yield self.events(messages)
        except ConnectionClosed as error:
            if self.reconnects or error.rcvd is None or error.rcvd.code != _NORMAL_CLOSURE:
                raise ConnectionLost(str(error)) from error
        except InvalidStatus as error:
            if error.response.status_code in _CLIENT_ERRORS:
                raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
            raise ConnectionLost(str(error)) from error
        except (OSError, InvalidHandshake) as error:
            raise ConnectionLost(str(error) or type(error).__name__) from error

    def _messages(self, connection: ClientConnection) -> list[Message]:
        try:
            data = connection.recv(_POLL_S, decode=False)
        except TimeoutError:
            return []
        self._count += 1
        return [Message(bytes(data), self.uri, f"message {self._count}")]


class WebSocketSink(MessageSink):
    """``ws://host/path`` and ``wss:``: a message for each output or evaluation, of text unless the format is binary.

    A message that meets a lost connection is sent on the next one. It is unknown whether the messages before it have
    arrived, unless the server closed the connection properly: each such connection is a dead letter with the cause
    ``lost``.
    """

    def __init__(self, address: Address) -> None:
        self.target, address = target(address)
        super().__init__(address)
        self.scheme = address.scheme
        self.ledger: DeadLetterLedger = DeadLetterFile()
        self._connection: Any = None
        self._has_sent = False
        self._open = ExitStack()

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self._connect()
        except (OSError, InvalidHandshake) as error:
            self.fail(error)

    def send(self, data: bytes) -> None:
        self.retry_until_done(lambda: self._try_send(data))

    def disconnect(self) -> None:
        self._open.close()

    def _connect(self) -> None:
        self._open.close()
        self._connection = self._open.enter_context(_connected(self.scheme, self.target))

    def _try_send(self, data: bytes) -> Exception | None:
        """Sends a message. Returns the problem, or None."""
        try:
            if self._connection is None:
                self._connect()
            self._connection.send(data if self.binary else data.decode())
            self._has_sent = True
        except (OSError, InvalidHandshake, ConnectionClosed) as error:
            has_closed_properly = isinstance(error, ConnectionClosed) and bool(error.rcvd)  # and has read everything
            if self._has_sent and not has_closed_properly:
                reason = f"the connection is lost: {error}; what was sent may not be there"
                self.ledger.record("lost", self.uri, None, reason, "")
            self._connection, self._has_sent = None, False
            return error
        return None


class WebSocketServer(ServingSink):
    """``ws://host/path`` and ``wss:`` with ``listen=yes``: clients of the path get messages."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.target = listening_target(address)
        self.port = 0
        self._server: Any = None

    def listen(self) -> None:
        host, port, *_ = self.target.endpoint
        self._server = serve(self._serve, host, port, ssl=self.target.tls, process_request=self._refusal)
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, name=f"listens {self.uri}", daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()

    def _refusal(self, connection: ServerConnection, request: Any) -> Any:
        """Returns the response to a request for another path, or None."""
        is_here = request.path.partition("?")[0] == self.target.path
        return None if is_here else connection.respond(404, "there is nothing here\n")

    def _serve(self, connection: ServerConnection) -> None:
        def send(chunks: Sequence[bytes]) -> None:
            try:
                for data in chunks:
                    connection.send(data if self.binary else data.decode())
            except ConnectionClosed as error:
                raise ConnectionError(str(error)) from error

        abort = partial(connection.socket.shutdown, socket.SHUT_RDWR)
        self.serve_subscriber(":".join(map(str, connection.remote_address)), send, abort)


def open_sink(address: Address) -> Sink:
    """Opens ``ws://host/path`` and ``wss:``: it sends outputs to a server, or
    with ``listen=yes`` to all clients that connect.

    See `WebSocketSink` and `WebSocketServer`.
    """
    return WebSocketServer(address) if address.flag("listen") else WebSocketSink(address)


def _connected(scheme: str, target: Target) -> Any:
    """Returns a context with a connection."""
    uri = f"{scheme}://{target.host}{target.path}"
    return connect(
        uri, additional_headers=target.headers, max_size=MAX_UNIT_BYTES, ping_timeout=60, proxy=True, ssl=target.tls
    )
