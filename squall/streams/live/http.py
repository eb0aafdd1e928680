"""HTTP: server-sent events and long polling as sources; POST requests, or server-sent events, as sinks.

Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.formats import MAX_UNIT_BYTES
from squall.streams.live.base import ConnectionLost
from squall.streams.live.events import EventStream
from squall.streams.live.messages import CONTENT_TYPES, Message, MessageSink, MessageSource
from squall.streams.live.serving import ServingSink
from squall.streams.live.web import Target, listening_target, target
from squall.streams.sinks import Sink

_CONNECT_TIMEOUT_S = 10.0
MIN_RESPONSE_TIMEOUT_S = 1.0
_CHUNK = 1 << 16
_SHUTDOWN_POLL_S = 0.1
_TRANSIENT_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""Status codes after which the same request may succeed later."""


class HttpSource(MessageSource):
    """``http://host/path`` and ``https:``: the responses of a server, which are of one of two kinds.

    Server-sent events (``text/event-stream``): each event is a message. When the server ends the stream, the source
    requests the events after the last one; 204 ends the source. It is replayable if the server is. Anything else: the
    body is a message, and the source polls, at most every ``poll`` ms (1000). The server may delay its response until
    there is something new (long polling). 204 and 304 (with an ``ETag``) mean that there is nothing new.
    """

    options = ("poll",)
    risk = "events since the last checkpoint are requested again, and are lost if the server does not keep them"

    def __init__(
        self, address: Address, ledger: DeadLetterLedger, time: int = 0, *, max_message_bytes: int = MAX_UNIT_BYTES
    ) -> None:
        self.target, address = target(address)
        super().__init__(address, ledger, time)
        self.max_message_bytes = max_message_bytes
        self.poll = address.integer("poll", 1000, least=0)
        self._is_stream = False
        self._count = 0
        self._tag = ""
        self._socket: socket.socket | None = None

    def receive(self) -> Iterator[Sequence[Event]]:
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                with closing(_connected(self.target)) as connection:
                    self._socket = connection.sock
                    yield from self._responses(connection)
            except (OSError, HTTPException) as error:
                raise ConnectionLost(str(error) or type(error).__name__) from error
            if self._is_stream:
                return
            self.stopped.wait(max(0.0, began + self.poll / 1000 - time.monotonic()))

    def seek(self, position: str) -> None:
        """Begins behind the event with an id (`squall.streams.sources.files.Replayable`)."""
        self.reached = position
        self._is_stream = bool(position)

    def acknowledge(self, position: str) -> None:
        """Does nothing: the server expects no acknowledgements."""

    def close(self) -> None:
        pass

    def interrupt(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _responses(self, connection: HTTPConnection) -> Iterator[Sequence[Event]]:
        connection.request("GET", self.target.path, headers=self._headers())
        if self.stopped.is_set():
            return
        response = connection.getresponse()
        if response.status in _TRANSIENT_STATUSES:
            raise ConnectionLost(f"the server answers {response.status}")
        if response.status in (204, 304):
            yield ()  # the end of an event stream
        elif response.status != 200:
            hint = f"it is at {response.headers['Location']}" if "Location" in response.headers else None
            raise SourceError(f"`{self.uri}` cannot be read: the server answers {response.status}", hint=hint)
        elif response.headers.get_content_type() == "text/event-stream":
            yield from self._events_of(response)
        else:
            yield self._body(response)

    def _headers(self) -> dict[str, str]:
        accepted = f"text/event-stream, {self.format.media_type}, */*;q=0.1"
        headers = {"Accept": accepted, "Cache-Control": "no-cache", **self.target.headers}
        if self.reached:
            headers["Last-Event-ID"] = self.reached
        if self._tag:
            headers["If-None-Match"] = self._tag
        return headers

    def _events_of(self, response: HTTPResponse) -> Iterator[Sequence[Event]]:
        if self.format.binary:
            hint = "poll for it, or use another format"
            raise SourceError(f"`{self.uri}` cannot be read: events of a server are text, not Jelly", hint=hint)
        self._is_stream = True
        yield ()
        stream = EventStream()
        while data := response.read1(_CHUNK):
            events = stream.read(data)
            if stream.waiting > self.max_message_bytes:
                reason = f"an event is longer than {self.max_message_bytes} bytes"
                raise SourceError(f"`{self.uri}` cannot be read: {reason}")
            messages = [self._message(text.encode()) for text in events]
            self.reached = stream.id or self.reached
            yield self.events(messages)
        if not self.stopped.is_set():
            raise ConnectionLost("the server has ended the stream")

    def _body(self, response: HTTPResponse) -> list[Event]:
        data = response.read(self.max_message_bytes + 1)
        if response.length and len(data) <= self.max_message_bytes:
            raise ConnectionLost(f"an answer ends {response.length} bytes too early")
        self._tag = response.headers.get("ETag", "")
        if len(data) > self.max_message_bytes:
            reason = f"an answer is longer than {self.max_message_bytes} bytes"
            self.ledger.record("malformed", self.uri, None, reason, "")
            return []
        return self.events([self._message(data)])

    def _message(self, data: bytes) -> Message:
        self._count += 1
        return Message(data, self.uri, f"message {self._count}")


class HttpSink(MessageSink):
    """``http://host/path`` and ``https:``: a POST request for each output or evaluation.

    A request is repeated after a transient error, a lost connection, or ``retry`` ms without a response, and may then
    arrive twice. With a checkpoint, the header ``Idempotency-Key`` is unique for each request.
    """

    def __init__(self, address: Address, *, min_response_timeout: float = MIN_RESPONSE_TIMEOUT_S) -> None:
        self.target, address = target(address)
        super().__init__(address)
        self.patience = max(self.retry / 1000, min_response_timeout)
        self._connection: Any = None

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self._connection = _connected(self.target, self.patience)
        except OSError as error:
            self.fail(error)

    def send(self, data: bytes) -> None:
        self.retry_until_done(lambda: self._post(data))

    def flush(self) -> None:
        pass

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _post(self, data: bytes) -> str | None:
        """Posts a message. Returns the problem if it may succeed later, or None. Raises SinkError if it cannot."""
        headers = {"Content-Type": CONTENT_TYPES.get(self.format, "text/plain; charset=utf-8"), **self.target.headers}
        if self.identity:
            headers["Idempotency-Key"] = self.identity
        try:
            self._connection.request("POST", self.target.path, data, headers)
            response = self._connection.getresponse()
            response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()  # the next request connects again
            return str(error) or type(error).__name__
        if response.status in _TRANSIENT_STATUSES:
            return f"the server answers {response.status}"
        if not 200 <= response.status < 300:
            self.fail(f"the server answers {response.status}")
        return None


class HttpServer(ServingSink):
    """``http://host/path`` and ``https:`` with ``listen=yes``: clients of the path get server-sent events."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        if self.binary:
            raise UsageError(f"`{self.uri}`: events of a server are text, not Jelly", hint="listen at `ws:`, or `tcp:`")
        self.target = listening_target(address)
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    def listen(self) -> None:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _CONNECT_TIMEOUT_S

            def do_GET(self) -> None:
                sink._respond(self)

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = _Server((self.target.endpoint.host, self.target.endpoint.port), Handler, self.target.tls)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(_SHUTDOWN_POLL_S,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def frame(self, data: bytes) -> bytes:
        return b"".join(b"data: %s\n" % line for line in data.splitlines()) + b"\n"

    def _respond(self, request: BaseHTTPRequestHandler) -> None:
        if request.path.partition("?")[0] != self.target.path:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Cache-Control", "no-cache")
        request.end_headers()
        request.connection.settimeout(None)
        abort = partial(socket.socket.shutdown, request.connection, socket.SHUT_RDWR)
        self.serve_subscriber(
            ":".join(map(str, request.client_address)), lambda chunks: request.wfile.write(b"".join(chunks)), abort
        )


class _Server(ThreadingHTTPServer):
    """A server that makes TLS handshakes in the threads of the connections."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler], tls: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        super().__init__(place, handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that break a connection off, or fail the TLS handshake."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def open_sink(address: Address) -> Sink:
    """Opens ``http://host/path`` and ``https:``: it posts outputs to a server, or
    with ``listen=yes`` to all clients that connect.

    See `HttpSink` and `HttpServer`.
    """
    return HttpServer(address) if address.flag("listen") else HttpSink(address)


def _connected(target: Target, patience: float | None = None) -> HTTPConnection:
    """Connects, and returns the connection, whose responses may take `patience` seconds (None: no limit).

    Raises:
        OSError: There is no connection.
    """
    host, port, *_ = target.endpoint
    connection = (
        HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT_S)
        if target.tls is None
        else HTTPSConnection(host, port, timeout=_CONNECT_TIMEOUT_S, context=target.tls)
    )
    connection.connect()
    connection.timeout = patience  # also for later connections
    connection.sock.settimeout(patience)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a stream may have no events for long
    return connection
