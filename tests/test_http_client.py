"""HTTP clients: redirects, and the proxies of the environment."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from squall.errors import SourceError
from squall.streams import open_sink, open_source, open_static
from tests.live import output
from tests.test_live_http import serving, status
from tests.test_live_serving import Certificates, certificates

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
    with pytest.raises(SourceError, match=r"the proxy `socks5://127.0.0.1` of the environment is no `http:`"):
        facts("http://example.invalid/?format=nt")


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
