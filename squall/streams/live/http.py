"""HTTP: server-sent events and long polling as sources; POST requests, or server-sent events, as sinks.

Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import hashlib
import io
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any, cast
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, PoolManager

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.formats import (
    BY_NAME,
    FORMATS,
    MAX_UNIT_BYTES,
    Format,
    check_library,
    format_named,
    of_media_type,
    of_path,
)
from squall.streams.formats.compression import check_installed, decompressed, errors
from squall.streams.formats.reading import decode
from squall.streams.live.base import CONNECT_TIMEOUT_S, ConnectionLost
from squall.streams.live.events import EventStream
from squall.streams.live.http_client import connected, get, post
from squall.streams.live.messages import CONTENT_TYPES, Message, MessageSink, MessageSource
from squall.streams.live.serving import ServingSink
from squall.streams.live.web import Target, listening_target, target
from squall.streams.mappings import options
from squall.streams.sinks import Sink
from squall.streams.sources.byte_streams import CompressedFile, StoredFile

MIN_RESPONSE_TIMEOUT_S = 1.0
_CHUNK = 1 << 16
_SHUTDOWN_POLL_S = 0.1
_ENCODINGS = {"gzip": "gz", "x-gzip": "gz", "zstd": "zst"}
"""Compressions by their names in HTTP."""
_MEDIA_TYPES = tuple(
    f"{format.media_type};q=0.9"
    for format in FORMATS
    if not (format.timed or format.removals or format.messages or format.binary or format.records or format.tuples)
)
"""The media types that are accepted if the format is open."""


class HttpSource(MessageSource):
    """``http://host/path`` and ``https:``: the responses of a server, which are of one of two kinds.

    Server-sent events (``text/event-stream``): each event is a message. When the server ends the stream, the source
    requests the events after the last one; 204 ends the source. It is replayable if the server is. Anything else: the
    body is a message, and the source polls, at most every ``poll`` ms (1000). The server may delay its response until
    there is something new (long polling). 204 and 304 (with an ``ETag``) mean that there is nothing new; so does the
    same body again, if its statements have times.

    Without ``format``, the media type of a document decides it, or else the ending of the path. Redirects are followed.
    """

    options = ("poll",)
    risk = "events since the last checkpoint are requested again, and are lost if the server does not keep them"

    def __init__(
        self, address: Address, ledger: DeadLetterLedger, time: int = 0, *, max_message_bytes: int = MAX_UNIT_BYTES
    ) -> None:
        self.target, address = target(address)
        self.compression = ""
        self._is_format_open = False
        """Whether the media type of a document decides its format."""
        super().__init__(address, ledger, time)
        self.max_message_bytes = max_message_bytes
        self.poll = address.milliseconds("poll", 1000)
        self._is_stream = False
        self._count = 0
        self._tag = ""
        self._digest = ""
        """The digest of the last body, if its statements have times of their own."""
        self._socket: socket.socket | None = None

    def format_of(self, address: Address) -> Format:
        """Returns the format that the address names, or that the ending of its path names, or else N-Triples, until
        the server says the format."""
        if name := address.get("format"):
            format, self.compression = format_named(name, options.is_mapped(address))
            return format
        by_ending = of_path(urlsplit(self.target.path).path, options.is_mapped(address))
        format, self.compression = by_ending or (BY_NAME["nt"], "")
        check_library(format.name)
        check_installed(self.compression)
        self._is_format_open = not (format.timed or format.removals or format.records or format.tuples)
        self._has_ending = by_ending is not None
        return format

    def receive(self) -> Iterator[Sequence[Event]]:
        while not self.stopped.is_set():
            began = time.monotonic()
            with self._response() as (place, response):
                if response is None:
                    yield ()  # the end of an event stream, or nothing new
                elif _media_type(response) == "text/event-stream":
                    yield from self._events_of(response)
                else:
                    yield self._body(response, place)
            if self._is_stream:
                return
            self.stopped.wait(max(0.0, began + self.poll / 1000 - time.monotonic()))

    def read_once(self) -> Iterator[Sequence[Event]]:
        """Yields the events of the document that the server has now (`squall.streams.sources.files.ReadableOnce`)."""
        try:
            with self._response() as (place, response):
                if response is not None:
                    yield from self._document(place, response)
        except ConnectionLost as error:
            raise SourceError(f"`{self.uri}` cannot be read: {error}") from error

    def seek(self, position: str) -> None:
        """Begins behind the event with an id (`squall.streams.sources.files.Replayable`)."""
        self.reached = position
        self._is_stream = bool(position)

    def current_offset(self) -> Any:
        """Returns the id of the last event, or the digest of the last body
        (`squall.streams.sources.files.Resumable`)."""
        return {"digest": self._digest} if self._digest else self.reached

    def resume(self, state: Any) -> None:
        if isinstance(state, str):
            self.seek(state)
        else:
            self._digest = state["digest"]

    def _on_connection(self, connection: socket.socket) -> None:
        self._socket = connection
        if self.stopped.is_set():
            self.interrupt()

    def interrupt(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _response(self) -> Iterator[tuple[Target, BaseHTTPResponse | None]]:
        """Provides the response to a request, and where it is from; None if there is nothing (new).

        Raises:
            ConnectionLost: There is no connection, or no longer.
            SourceError: The server refuses the request, or redirects it to where nothing may be read.
        """
        with get(self.target, self._headers, self._on_connection, self.uri) as (place, response):
            if response.status not in (200, 204, 304):
                raise SourceError(f"`{self.uri}` cannot be read: the server answers {response.status}")
            yield place, response if response.status == 200 else None

    def content(self) -> bytes:
        """Returns the document that the server has now, decompressed.

        Raises:
            SourceError: It cannot be read, or is too long.
        """
        try:
            with self._response() as (_, response):
                if response is None:
                    raise ConnectionLost("the server has no content")
                return self._bytes(response)
        except (ConnectionLost, ValueError) as error:
            raise SourceError(f"`{self.uri}` cannot be read: {error}") from error

    def _document(self, place: Target, response: BaseHTTPResponse) -> Iterator[Sequence[Event]]:
        """Yields the events of a document of any length."""
        if _media_type(response) == "text/event-stream":
            hint = "give it with --source, or save its data in a file first"
            raise SourceError(f"`{self.uri}` is a stream of events: it cannot be static", hint=hint)
        self._detect_format(response, place)
        body = StoredFile(cast(io.FileIO, response), self.reading)
        compression = self._compression(response)
        file = cast(IO[bytes], CompressedFile(body, compression) if compression else body)
        try:
            yield from decode(file, self.uri, self.format, self.settings, self.ledger, self.reading, base=place.url)
        except errors() as error:
            raise ConnectionLost(str(error)) from error

    def _detect_format(self, response: BaseHTTPResponse, place: Target) -> None:
        """Sets the format by the media type of a response, or by the path to which a server redirects.

        The address decides it first, by its option; and by its ending if the media type is unknown.

        Raises:
            SourceError: The format is not known.
        """
        if not self._is_format_open:
            return
        media_type = _media_type(response)
        if (format := of_media_type(media_type)) is not None:
            check_library(format.name)
            self.format = format
        elif not self._has_ending:
            by_ending = of_path(urlsplit(place.path).path)
            if by_ending is not None and not (by_ending[0].timed or by_ending[0].removals):
                self.format, self.compression = by_ending
                check_installed(self.compression)
                return
            problem = f"its media type `{media_type}` is none of RDF, and its path has no ending of RDF"
            raise SourceError(f"the format of `{self.uri}` is unknown: {problem}", hint="name it: `?format=ttl`")

    def _compression(self, response: BaseHTTPResponse) -> str:
        """Returns how a body is compressed. A server may say what the ending says already. Raises SourceError."""
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return self.compression
        if encoding not in _ENCODINGS:
            raise SourceError(f"`{self.uri}` cannot be read: its content is encoded as `{encoding}`")
        return _ENCODINGS[encoding]

    def _headers(self, place: Target) -> dict[str, str]:
        accepted = ", ".join(_MEDIA_TYPES) if self._is_format_open and not self._has_ending else self.format.media_type
        accept = f"text/event-stream, {accepted}, */*;q=0.1"
        headers = {"Accept": accept, "Cache-Control": "no-cache", **place.headers}
        if self.reached:
            headers["Last-Event-ID"] = self.reached
        if self._tag:
            headers["If-None-Match"] = self._tag
        return headers

    def _events_of(self, response: BaseHTTPResponse) -> Iterator[Sequence[Event]]:
        if self._is_format_open and not self._has_ending:
            hint = "name it: `?format=nt`"
            raise SourceError(f"`{self.uri}` does not say the format of its events", hint=hint)
        if self.compression:
            raise SourceError(f"`{self.uri}` cannot be read: events of a server are text, and not compressed")
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

    def _body(self, response: BaseHTTPResponse, place: Target) -> list[Event]:
        self._detect_format(response, place)
        try:
            data = self._bytes(response)
        except ValueError as error:
            self.reading.malformed += 1
            self.ledger.record("malformed", self.uri, None, str(error), "")
            return []
        if self.timed and self._is_repeated(data):
            return []
        return self.events([self._message(data)], place.url)

    def _bytes(self, response: BaseHTTPResponse) -> bytes:
        """Returns a body, decompressed. Raises ValueError if it is too long, or cannot be decompressed."""
        limit = self.max_message_bytes
        data = response.read(limit + 1) + response.read(1)  # the last read raises HTTPError if the body is cut off
        self._tag = response.headers.get("ETag", "")
        if name := self._compression(response):
            try:
                data = decompressed(data, name, limit + 1)
            except errors() as error:
                raise ValueError(f"an answer cannot be decompressed: {error}") from error
        if len(data) > limit:
            raise ValueError(f"an answer is longer than {limit} bytes")
        return data

    def _is_repeated(self, data: bytes) -> bool:
        """Returns whether a body is the last one again. Its statements have been read, and would be late."""
        before, self._digest = self._digest, hashlib.blake2b(data, digest_size=16).hexdigest()
        return self._digest == before

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
        self._client: PoolManager | None = None

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self._client = connected(self.target, self.patience)
        except ConnectionLost as error:
            self.fail(error)

    def send(self, data: bytes) -> None:
        self.retry_until_done(lambda: self._post(data))

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.clear()

    def _post(self, data: bytes) -> ConnectionLost | None:
        """Posts a message. Returns the problem if it may succeed later, or None. Raises SinkError if it cannot."""
        assert self._client is not None
        headers = {"Content-Type": CONTENT_TYPES.get(self.format, "text/plain; charset=utf-8"), **self.target.headers}
        if self.identity:
            headers["Idempotency-Key"] = self.identity
        try:
            response = post(self._client, self.target, headers, data)
        except ConnectionLost as error:
            return error
        if not 200 <= response.status < 300:
            place = f": it is at `{location}`" if (location := response.headers.get("Location")) else ""
            self.fail(f"the server answers {response.status}{place}")
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
            timeout = CONNECT_TIMEOUT_S

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


def _media_type(response: BaseHTTPResponse) -> str:
    """Returns the media type of a body, without parameters."""
    return response.headers.get("Content-Type", "text/plain").partition(";")[0].strip().lower()
