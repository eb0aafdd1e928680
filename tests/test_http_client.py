"""HTTP clients: redirects, the proxies of the environment, when they try again, and what they wait for."""

from __future__ import annotations

import gzip
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from squall.errors import SinkError, SourceError
from squall.streams import DeadLetterFile, open_sink, open_source, open_static
from squall.streams.live import http_client
from squall.streams.live.base import delays
from tests import brokers
from tests.live import PATIENCE, output, wait
from tests.test_live_http import Server, event, serving, status, stream
from tests.test_live_serving import Certificates, certificates, shown

__all__ = ["certificates"]
pytestmark = pytest.mark.fault("D6")
NT = b"<http://ex/a> <http://ex/p> <http://ex/o> .\n"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def facts(uri: str) -> list[Any]:
    return [fact for event in open_static(uri) for fact in event.facts]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_followed(code: int) -> None:
    """The path is resolved against the address."""
    answers = status(code, Location="../b?c=d e"), status(code, Location="/c"), status(200, NT)
    with serving(*answers) as server:
        assert len(facts(server.at("x/a?format=nt"))) == 1
        assert [path for path, _, _ in server.asked] == ["/x/a", "/b?c=d%20e", "/c"]


def test_too_many_redirects_are_an_error() -> None:
    with serving(status(302, Location="/again")) as server:
        with pytest.raises(SourceError, match="more than 10 redirects"):
            facts(server.at("x?format=nt"))
        assert len(server.asked) == 11


@pytest.mark.parametrize("location", ["ftp://example.org/x", "file:///etc/passwd", "mailto:x@example.org"])
def test_a_redirect_leads_to_http_only(location: str) -> None:
    with serving(status(302, Location=location)) as server, pytest.raises(SourceError, match="which is no HTTP"):
        facts(server.at("x?format=nt"))


def test_credentials_stay_with_their_server() -> None:
    with serving(status(200, NT)) as other:
        with serving(status(302, Location="/b"), status(302, Location=other.at("c"))) as server:
            uri = server.at("a?format=nt&header.X-Key=secret").replace("//", "//user:password@")
            assert len(facts(uri)) == 1
            assert all("Authorization" in headers and "X-Key" in headers for _, headers, _ in server.asked)
        ((_, headers, _),) = other.asked
        assert not {"Authorization", "X-Key"} & set(headers)


def server_context(certificate: Path) -> ssl.SSLContext:
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    result.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return result


def test_a_certificate_stays_with_its_server(certificates: Certificates) -> None:
    own, trusted = certificates("own"), certificates("server")
    presented: list[Any] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        presented.append(request.connection.getpeercert())
        status(200, NT)(request)

    context = server_context(trusted)
    context.load_verify_locations(own)
    context.verify_mode = ssl.CERT_OPTIONAL
    with serving(answer, tls=context) as other:
        location = f"https://localhost:{other.port}/"
        with serving(status(302, Location=location), tls=context) as server:
            options = f"?format=nt&ca={trusted}&{shown(own)}"
            assert len(facts(f"https://localhost:{server.port}/{options}")) == 1
        assert len(facts(f"{location}{options}")) == 1
    elsewhere, here = presented
    assert elsewhere in (None, {})
    assert here


def test_a_polled_source_follows_redirects_each_time() -> None:
    answers = status(302, Location="/b"), status(200, NT), status(302, Location="/c"), status(200, NT), status(404)
    with serving(*answers) as server:
        with pytest.raises(SourceError, match="404"):
            list(open_source(server.at("a?format=nt&poll=0")).batches())
        assert [path for path, _, _ in server.asked] == ["/a", "/b", "/a", "/c", "/a"]


def test_https_does_not_redirect_to_http(certificates: Certificates) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = certificates("server")
    tls.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with serving(status(200, NT)) as plain, serving(status(302, Location=plain.at("x")), tls=tls) as server:
        with pytest.raises(SourceError, match="it redirects from HTTPS to `http://") as failure:
            facts(f"https://localhost:{server.port}/?format=nt&ca={certificate}")
        assert failure.value.hint is not None
        assert plain.asked == []


@pytest.mark.parametrize(("login", "header"), [("", None), ("user:p%C3%A4ss@", "Basic dXNlcjpww6Rzcw==")])
def test_a_proxy_may_have_a_user(login: str, header: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(200, NT)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://{login}127.0.0.1:{proxy.port}")
        assert len(facts("http://example.invalid/a?format=nt")) == 1
        assert proxy.asked[0][1].get("Proxy-Authorization") == header


def test_a_proxy_may_use_tls(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certificates("server")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(status(200, NT), tls=server_context(certificate)) as proxy:
        monkeypatch.setenv("http_proxy", f"https://localhost:{proxy.port}")
        assert len(facts("http://example.invalid/a?format=nt")) == 1
        assert proxy.asked[0][0] == "http://example.invalid/a"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{scheme}_proxy", f"http://127.0.0.1:{brokers.free_port()}")
    with pytest.raises(SourceError, match=r"cannot be read: the proxy: .*refused"):
        facts(f"{scheme}://example.invalid/a?format=nt")
    with pytest.raises(SinkError, match="refused"):
        open_sink(f"{scheme}://example.invalid/a?format=nt").start()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
def test_a_proxy_of_the_environment_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(200, NT)) as proxy:
        monkeypatch.setenv(name, f"http://user:pass%20word@127.0.0.1:{proxy.port}")
        assert len(facts("http://example.invalid/a?format=nt&query.b=c")) == 1
        ((path, headers, _),) = proxy.asked
        assert path == "http://example.invalid/a?b=c"
        assert headers["Host"] == "example.invalid"
        assert headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNzIHdvcmQ="


def test_a_sink_uses_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(200)) as proxy:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        sink = open_sink("http://example.invalid/in?format=nt")
        sink.start()
        sink.write(output(1))
        sink.close()
        ((path, _, body),) = proxy.asked
        assert path == "http://example.invalid/in"
        assert body


def test_hosts_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(200, NT)) as server, serving(status(502)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
        assert len(facts(server.at("?format=nt"))) == 1
        assert proxy.asked == []


def test_another_kind_of_proxy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://user:secret@127.0.0.1:1")
    with pytest.raises(SourceError, match=r"unsupported scheme socks5, should use http:// or https://") as failure:
        facts("http://example.invalid/?format=nt")
    assert "secret" not in str(failure.value)


@contextmanager
def tunnel(port: int) -> Iterator[tuple[int, list[bytes]]]:
    """Runs a proxy whose tunnels all lead to one port. Yields its own port, and the requests that it gets."""
    requests: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # the other side may have closed it already
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        connection, _ = server.accept()
        with connection, closing(socket.create_connection(("127.0.0.1", port))) as other:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += connection.recv(1)
            requests.append(request)
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=copy, args=(other, connection), daemon=True)
            back.start()
            copy(connection, other)
            back.join()

    threading.Thread(target=serve, daemon=True).start()
    with server:
        yield server.getsockname()[1], requests


def test_https_passes_a_proxy_through_a_tunnel(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = certificates("server")
    tls.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with serving(status(200, NT), tls=tls) as server, tunnel(server.port) as (port, requests):
        monkeypatch.setenv("https_proxy", f"http://user:secret@127.0.0.1:{port}")
        assert len(facts(f"https://localhost:{server.port}/?format=nt&ca={certificate}&header.X-Key=k")) == 1
        (request,) = requests
        assert request.startswith(f"CONNECT localhost:{server.port} HTTP/1.".encode())
        assert b"Proxy-Authorization: Basic " in request
        assert b"X-Key" not in request
        assert "Proxy-Authorization" not in server.asked[0][1]


def waits_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns for how long a source waits between attempts, without waiting. The server ends it."""
    source = server.opened("?format=ntt")
    result: list[float] = []
    monkeypatch.setattr(source.stopped, "wait", result.append)
    list(source.batches())
    return result


@pytest.mark.parametrize(
    ("value", "shortest", "longest"),
    [
        ("7", 7.15, 7.2),
        (lambda: formatdate(time.time() + 30, usegmt=True), 20, 30.2),
        ("3600", 60.15, 60.2),
        ("0", 0.15, 0.2),
        ("soon", 0.15, 0.2),
        (lambda: formatdate(time.time() - 30, usegmt=True), 0.15, 0.2),
    ],
)
def test_a_source_waits_for_as_long_as_the_server_says(
    value: str | Callable[[], str], shortest: float, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits a little longer, at random, and at most for `retry`."""
    header = {"Retry-After": value if isinstance(value, str) else value()}
    with serving(stream(event(1)), status(503, b"", **header), status(204)) as server:
        after_the_stream, after_the_status = waits_of(server, monkeypatch)
    assert 0.075 <= after_the_stream <= 0.1
    assert shortest <= after_the_status <= longest


def test_a_sink_waits_for_as_long_as_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("squall.streams.live.messages.time", SimpleNamespace(sleep=pauses.append))
    answers = (
        status(503, b"", **{"Retry-After": "7"}),
        status(429),
        status(429, b"", **{"Retry-After": "3600"}),
        status(200),
    )
    with serving(*answers) as server, closing(open_sink(server.at("?format=ntt&retry=20000"))) as sink:
        sink.start()
        sink.write(output(1))
        assert len(server.asked) == 4
    first, second, third = pauses
    assert 7.075 <= first <= 7.1
    assert 0.15 <= second <= 0.2
    assert 20.3 <= third <= 20.4


def test_delays_are_random() -> None:
    """Clients that lose a server at one time do not come back at one time."""
    firsts = [next(delays(60)) for _ in range(50)]
    assert len(set(firsts)) == 50
    assert all(0.075 <= first <= 0.1 for first in firsts)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("role", ["source", "sink"])
def test_a_run_that_waits_for_a_server_ends_with_a_signal(role: str, tmp_path: Path) -> None:
    program = tmp_path / "program.jena"
    program.write_text("[r: (?s <http://ex/p> ?o) -> (?s <http://ex/q> ?o)]")
    lines = tmp_path / "a.ntt"
    lines.write_text("1000 <http://ex/a> <http://ex/p> <http://ex/o> .\n")
    busy = status(503, b"", **{"Retry-After": "3600"})
    with serving(*([stream(event(1))] if role == "source" else []), busy) as server:
        uri = server.at("?format=ntt&retry=3600000")
        ends = ["--source", uri] if role == "source" else ["--source", str(lines), "--sink", uri]
        command = [sys.executable, "-m", "squall", "run", str(program), *ends]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            wait(lambda: len(server.asked) == (2 if role == "source" else 1), PATIENCE)
            began = time.monotonic()
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=PATIENCE)
            assert time.monotonic() - began < 10


def test_a_handshake_that_is_not_answered_ends(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://localhost:{server.getsockname()[1]}/?format=nt&ca={certificates('server')}"
        with pytest.raises(SourceError, match="timed out"):
            facts(address)
        with pytest.raises(SinkError, match="timed out"):
            open_sink(address).start()


def test_a_source_that_is_stopped_before_it_connects_ends() -> None:
    """The socket may appear after the stop, which could not end it."""
    release = threading.Event()
    with serving(lambda request: (release.wait(PATIENCE), None)[1]) as server:
        source = server.opened("?format=ntt")
        connect = source._on_connection

        def stop_first(connection: socket.socket) -> None:
            source.stop()
            connect(connection)

        source._on_connection = stop_first  # type: ignore[method-assign]
        assert list(source.batches()) == []
        release.set()


def test_a_sink_keeps_its_connection() -> None:
    places = set()

    def answer(request: BaseHTTPRequestHandler) -> None:
        places.add(request.client_address)
        status(200, b"accepted")(request)

    with serving(answer) as server, closing(open_sink(server.at("?format=ntt"))) as sink:
        sink.start()
        for number in range(3):
            sink.write(output(number))
        assert len(server.asked) == 3
    assert len(places) == 1


COMPRESSED = {"gzip": gzip.compress(NT * 1000), "zstd": zstandard.compress(NT * 1000)}
CUT = {
    "gzip": "Compressed file ended before the end-of-stream marker was reached",
    "zstd": "the compressed file ends before the end of its last frame",
}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_compressed_document_that_is_cut_is_an_error(encoding: str) -> None:
    data = COMPRESSED[encoding]
    half = status(200, data[: len(data) // 2], **{"Content-Encoding": encoding})
    with serving(half) as server, pytest.raises(SourceError, match=CUT[encoding]):
        facts(server.at("?format=nt"))
    ledger = DeadLetterFile()
    with serving(half, status(200, data, **{"Content-Encoding": encoding}), status(404)) as server:
        source = server.opened("?format=nt&poll=0", ledger)
        with pytest.raises(SourceError, match="404"):
            list(source.batches())
        assert source.reading.statements == 1000
        assert ledger.first["malformed", source.uri][1] == f"an answer cannot be decompressed: {CUT[encoding]}"


@pytest.mark.parametrize("encoding", [*COMPRESSED, ""])
def test_a_connection_that_ends_within_a_document_is_an_error(encoding: str) -> None:
    data = COMPRESSED.get(encoding, NT)

    def half(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.send_header("Content-Encoding", encoding or "identity")
        request.end_headers()
        request.wfile.write(data[:-10])
        request.close_connection = True

    for format in ("nt", "ttl"):
        with serving(half) as server, pytest.raises(SourceError, match="it ends 10 bytes too early"):
            facts(server.at(f"?format={format}"))
