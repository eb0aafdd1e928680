"""HTTP as source (server-sent events, long polling) and sink, with the server of the standard library."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import SinkError, SourceError, UsageError
from squall.streams import DeadLetterFile, open_sink, open_source
from squall.streams.address import parse
from squall.streams.live.events import EventStream
from squall.streams.live.http import HttpSink, HttpSource
from squall.streams.sinks.outbox import IdempotentSink
from tests import brokers
from tests.live import PATIENCE, Run, example, line, output

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """A server with prepared responses, request by request; the last one is repeated. `asked` has the headers and the
    bodies so far."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.port = 0
        self.left = list(answers)
        self.lock = threading.Lock()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        with self.lock:
            body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
            self.asked.append((request.path, dict(request.headers), body))
            answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        answer(request)

    def at(self, rest: str) -> str:
        return f"http://127.0.0.1:{self.port}/{rest}"

    def opened(self, rest: str, ledger: DeadLetterFile | None = None) -> HttpSource:
        source: object = open_source(self.at(rest), ledger)
        assert isinstance(source, HttpSource)
        return source

    def limited(self, rest: str, ledger: DeadLetterFile, max_message_bytes: int) -> HttpSource:
        return HttpSource(parse(self.at(rest), "-"), ledger, max_message_bytes=max_message_bytes)


@contextmanager
def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    result = Server(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            result.answer(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        result.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield result
        finally:
            server.shutdown()


def status(number: int, body: bytes = b"", **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(number)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def stream(*pieces: bytes, until: threading.Event | None = None) -> Answer:
    """Returns a response that is a stream of events. It ends at once, or when an event is set."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        for piece in pieces:
            request.wfile.write(piece)
            request.wfile.flush()
        if until is not None:
            until.wait(PATIENCE)
        request.close_connection = True

    return answer


def event(time: int, id: str = "") -> bytes:
    return (f"id: {id}\n" if id else "").encode() + b"data: " + line(time) + b"\n"


def test_events_of_a_server_are_messages() -> None:
    ledger = DeadLetterFile()
    several = b"event: x\r\ndata: " + line(2)[:-1] + b"\r\ndata: " + line(3)[:-1] + b"\r\n\r\n"
    with serving(stream(b": hello\n\n", event(1), several, b"data: nonsense\n\n"), status(204)) as server:
        source = server.opened("a/b%20c?format=ntt&query.topic=x y&header.X-Key=secret", ledger)
        with Run(source) as run:
            assert run.end() == [1, 2, 3]
    path, headers, _ = server.asked[0]
    assert path == "/a/b%20c?topic=x+y"
    assert headers["X-Key"] == "secret"
    assert "application/n-triples" in headers["Accept"]
    assert "secret" not in source.uri
    assert ledger.counts == {("malformed", source.uri): 1}


def test_a_stream_resumes_after_the_last_event_and_204_ends_it() -> None:
    first = stream(event(1, "one"), event(2, "two"), b"id: three\ndata: not complete")
    with serving(first, status(503), stream(event(3)), status(204)) as server:
        with Run(server.opened("?format=ntt")) as run:
            assert run.end() == [1, 2, 3]
        assert [headers.get("Last-Event-ID") for _, headers, _ in server.asked] == [None, "two", "two", "two"]


def test_it_can_be_read_again_behind_an_event() -> None:
    with serving(stream(event(1, "one"), event(2)), status(204)) as server:
        source = server.opened("?format=ntt")
        next(batch for batch in source.batches() if batch)
        assert source.position() == "one"
        again = server.opened("?format=ntt")
        again.resume("seven")
        list(again.batches())
        assert server.asked[-1][1]["Last-Event-ID"] == "seven"


@pytest.mark.parametrize("answer", ["stream", "poll"])
def test_stopping_disconnects_from_a_silent_server(answer: str) -> None:
    process = threading.Event()

    def hold(request: BaseHTTPRequestHandler) -> None:
        process.wait(PATIENCE)

    silent = stream(event(1), until=process) if answer == "stream" else status(200, line(1))
    with serving(silent, hold) as server:
        with Run(server.opened("?format=ntt&poll=0")) as run:
            run.until(1)
        process.set()


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_stream_may_be_chunked(is_complete: bool) -> None:
    """Chunks and events have nothing to do with each other."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        data = event(1, "one") + event(2, "two")
        for chunk in (data[:7], data[7:60], data[60:]):
            request.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        request.wfile.write(b"0\r\n\r\n" if is_complete else b"ff\r\nid: three")
        request.close_connection = True

    with serving(answer, status(204)) as server:
        with Run(server.opened("?format=ntt")) as run:
            assert run.end() == [1, 2]
        assert [headers.get("Last-Event-ID") for _, headers, _ in server.asked] == [None, "two"]
        assert server.asked[0][1]["Accept-Encoding"] == "identity"


def test_each_polled_document_is_a_message() -> None:
    answers = [status(200, line(1), ETag='"a"'), status(304), status(204), status(500), status(200, line(2) + b"x\n")]
    ledger = DeadLetterFile()
    with serving(*answers, status(404)) as server:
        run = Run(server.opened("?format=ntt&poll=1", ledger))
        with pytest.raises(SourceError, match="404"):
            run.end()
        assert run.seen == [1, 2]
        assert [headers.get("If-None-Match") for _, headers, _ in server.asked][:3] == [None, '"a"', '"a"']
    assert ledger.total("malformed") == 1


def test_a_timed_document_that_has_not_changed_is_nothing_new() -> None:
    """That holds also for a run that resumes. Without times it is another message."""
    first, second = status(200, line(1) + line(2)), status(200, line(3))
    with serving(first, first, second, status(404)) as server:
        source = server.opened("?format=ntt&poll=0")
        run = Run(source)
        with pytest.raises(SourceError, match="404"):
            run.end()
        assert run.seen == [1, 2, 3]
        state = source.current_offset()
    with serving(second, first, status(404)) as server:
        resumed = server.opened("?format=ntt&poll=0")
        resumed.resume(state)
        with pytest.raises(SourceError, match="404"):
            Run(resumed).end()
        assert resumed.reading.statements == 2
    untimed = status(200, str(output(1).fact).encode())
    with serving(untimed, untimed, status(404)) as server:
        source = server.opened("?format=nt&poll=0")
        with pytest.raises(SourceError, match="404"):
            Run(source).end()
        assert source.reading.statements == 2
        assert source.current_offset() == ""


def test_a_truncated_response_is_requested_again() -> None:
    def half(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("ETag", '"a"')
        request.send_header("Content-Length", str(len(line(1) + line(2))))
        request.end_headers()
        request.wfile.write(line(1))
        request.close_connection = True

    with serving(status(204), half, status(200, line(1) + line(2)), status(404)) as server:
        run = Run(server.opened("?format=ntt&poll=0"))
        with pytest.raises(SourceError, match="404"):
            run.end()
        assert run.seen == [1, 2]
        assert "If-None-Match" not in server.asked[2][1]


def test_a_server_that_moved_and_is_not_there_is_named() -> None:
    expected = r"elsewhere\.invalid:80, to which it redirects"
    with serving(status(301, Location="http://elsewhere.invalid/")) as server:
        batches = server.opened("?format=nt").batches()
        with pytest.raises(SourceError, match=expected):
            list(batches)


def test_a_sink_names_the_place_to_which_a_server_redirects() -> None:
    with serving(status(308, Location="http://elsewhere.invalid/")) as server:
        sink = open_sink(server.at("in?format=nt"))
        sink.start()
        with pytest.raises(SinkError, match=r"308: it is at `http://elsewhere\.invalid/`"):
            sink.write(output(1))
        sink.close()


def test_no_server_is_an_error_at_once() -> None:
    address = f"http://127.0.0.1:{brokers.free_port()}/?format=nt"
    with pytest.raises(SourceError, match="refused"):
        list(open_source(address).batches())
    with pytest.raises(SinkError, match="refused"):
        open_sink(address).start()


def test_events_that_are_too_long_are_errors() -> None:
    ledger = DeadLetterFile()
    with serving(stream(b"data: " + b"x" * 1000)) as server, pytest.raises(SourceError, match="longer than 100"):
        list(server.limited("?format=ntt", ledger, 100).batches())
    with serving(status(200, b"x" * 101), status(404)) as server:
        with pytest.raises(SourceError, match="404"):
            list(server.limited("?format=ntt&poll=0", ledger, 100).batches())
        assert ledger.total("malformed") == 1


STREAM = (
    "\ufeff:x\ndata: a\ndata:b\nid: 7\n\r\nevent: e\r\rdata\n\ndata: \u00e9\r\ndata:  c\r\n\r\nid\n\nid: 8\ndata: lost"
)


def whole(chunks: Sequence[bytes]) -> tuple[list[str], str]:
    result = EventStream()
    return [data for chunk in chunks for data in result.read(chunk)], result.id


@given(st.lists(st.integers(0, len(STREAM.encode()))))
def test_however_a_stream_is_cut_it_has_the_same_events(cuts: list[int]) -> None:
    data = STREAM.encode()
    places = [0, *sorted(cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(places)]
    assert whole(chunks) == (["a\nb", "", "\u00e9\n c"], "")


@given(st.lists(st.binary(max_size=50)))
def test_any_bytes_are_an_event_stream(chunks: list[bytes]) -> None:
    assert whole(chunks) == whole([b"".join(chunks)])


def test_a_sink_posts_until_the_server_accepts() -> None:
    with serving(status(200), status(503), status(202)) as server:
        with closing(open_sink(server.at("in?format=ntt&header.X-Key=k"))) as sink:
            sink.start()
            for number in range(3):
                sink.write(output(number))
        bodies = [body for _, _, body in server.asked]
        assert bodies == [line(number).rstrip() for number in (0, 1, 1, 2)]
        assert {headers["X-Key"] for _, headers, _ in server.asked} == {"k"}


def test_a_request_has_an_idempotency_key() -> None:
    with serving(status(200), status(503), status(200)) as server:
        with closing(open_sink(server.at("in?format=ntt"))) as sink:
            sink.start()
            cast(IdempotentSink, sink).begin_delivery("n", 7)
            sink.write(output(1))
            sink.write(output(2))
        keys = [headers["Idempotency-Key"] for _, headers, _ in server.asked]
        assert keys == ["n-7-1", "n-7-2", "n-7-2"]


def test_a_sink_connects_again() -> None:
    def leave(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True

    with serving(leave, status(200)) as server, closing(open_sink(server.at("in?format=nt"))) as sink:
        sink.start()
        sink.write(output(1))
        assert len(server.asked) == 2
        assert server.asked[1][1]["Content-Type"] == "application/n-triples"


def impatient(uri: str) -> HttpSink:
    return HttpSink(parse(uri, "-"), min_response_timeout=0.1)


def test_a_request_that_is_not_answered_is_posted_again() -> None:
    process = threading.Event()

    def hold(request: BaseHTTPRequestHandler) -> None:
        process.wait(PATIENCE)

    with serving(hold, status(200)) as server, closing(impatient(server.at("?format=ntt&retry=400"))) as sink:
        sink.start()
        sink.write(output(1))
        process.set()
        assert [body for _, _, body in server.asked] == [line(1).rstrip()] * 2
    with serving(hold) as server, closing(impatient(server.at("?format=ntt&retry=0"))) as sink:
        process.clear()
        sink.start()
        with pytest.raises(SinkError, match="timed out"):
            sink.write(output(1))
        process.set()


@pytest.mark.parametrize(("number", "retry"), [(400, 60_000), (503, 50)])
def test_what_a_server_refuses_is_an_error(number: int, retry: int) -> None:
    with serving(status(number)) as server:
        sink = open_sink(server.at(f"in?format=nt&retry={retry}"))
        sink.start()
        with pytest.raises(SinkError, match=str(number)):
            sink.write(output(1))
        sink.close()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("http:?format=nt", "names no server"),
        ("http://h/?format=nt&token=1", "unknown option"),
        ("http://h/?format=nt&header.X=a%0ab", "line end"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


@pytest.mark.more
@pytest.mark.parametrize("name", ["http.sh", "poll.sh"])
def test_the_examples_of_the_page_run(name: str, tmp_path: Path) -> None:
    port = str(brokers.free_port())
    example(name, tmp_path, {}, **{"8000": port, "python ": f"{sys.executable} "})
