"""Clients of HTTP (urllib3): through a proxy where the environment names one, and to where a server redirects.

Source: RFC 9110, sections 10.2.3 (`Retry-After`) and 15.4 (redirection).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import IncompleteRead
from typing import Any
from urllib.parse import unquote, urljoin
from urllib.request import getproxies, proxy_bypass

from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, InvalidHeader, ProxyError
from urllib3.util import parse_url

from squall.errors import SourceError
from squall.streams.address import Endpoint
from squall.streams.live.base import CONNECT_TIMEOUT_S, ConnectionLost
from squall.streams.live.web import PORTS, Target, basic_authorization

_MAX_REDIRECTS = 10
_TRANSIENT_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""Status codes after which the same request may succeed later."""
_OPTIONS: dict[str, Any] = {"retries": False, "redirect": False, "preload_content": False, "decode_content": False}
"""The options of requests: this module retries none and checks redirects, and bodies are decompressed as files are."""


@contextmanager
def get(
    target: Target, headers: Callable[[Target], dict[str, str]], report: Callable[[socket.socket], object], uri: str
) -> Iterator[tuple[Target, BaseHTTPResponse]]:
    """Provides the response to a GET request, and where it is from: redirects are followed.

    Args:
        target: The target of the request.
        headers: Returns the headers of a request.
        report: It is called with the socket of each connection.
        uri: The address of the source, for messages.

    Raises:
        ConnectionLost: There is no connection, or no longer, or the server answers that it may succeed later.
        SourceError: The server redirects too often, or to where nothing may be read.
    """
    place, redirects = target, 0
    try:
        while redirects <= _MAX_REDIRECTS:
            with (
                _client(place, None, report) as client,
                client.urlopen("GET", place.url, headers=headers(place), **_OPTIONS) as response,
            ):
                other = _redirected(place, response, uri)
                if other is None:
                    _check_transient(response)
                    yield place, response
                    return
            place, redirects = other, redirects + 1
    except HTTPError as error:
        where = f"{place.host}, to which it redirects: " if redirects else ""
        raise ConnectionLost(f"{where}{_text(error)}") from error
    raise SourceError(f"`{uri}` cannot be read: more than {_MAX_REDIRECTS} redirects")


def connected(target: Target, patience: float) -> PoolManager:
    """Returns a client for `post`. Raises ConnectionLost if it cannot connect to the server.

    Args:
        target: The server.
        patience: How many seconds a response may take.
    """
    try:
        client = _client(target, patience)
        pool = client.connection_from_url(target.url)
        connection: Any = pool._get_conn()  # urllib3 has no public way to connect without a request
        if client.proxy is not None and target.tls is not None:
            pool._prepare_proxy(connection)
        else:
            connection.connect()
        connection.close()
    except (HTTPError, OSError) as error:
        raise ConnectionLost(_text(error)) from error
    return client


def post(client: PoolManager, target: Target, headers: dict[str, str], data: bytes) -> BaseHTTPResponse:
    """Returns the response to a POST request. Raises ConnectionLost if it may succeed later."""
    try:
        response = client.urlopen("POST", target.url, headers=headers, body=data, **_OPTIONS)
    except HTTPError as error:
        raise ConnectionLost(_text(error)) from error
    response.drain_conn()
    _check_transient(response)
    return response


def _redirected(target: Target, response: BaseHTTPResponse, uri: str) -> Target | None:
    """Returns the target to which a server redirects a GET request; None if it does not.

    Credentials (all headers of the address, its user, its certificate) stay with the server for which they were given:
    urllib3 would send the certificate, and headers of any name, to the other one.

    Args:
        target: The target of the request.
        response: The response.
        uri: The address of the source, for messages.

    Raises:
        SourceError: The server redirects from HTTPS to HTTP, or to a place that is no HTTP.
    """
    location = response.get_redirect_location()
    if not location:
        return None
    url = parse_url(urljoin(target.url, location))
    if url.scheme not in ("http", "https") or not url.host:
        raise SourceError(f"`{uri}` cannot be read: the server redirects to `{location}`, which is no HTTP")
    if target.tls is not None and url.scheme == "http":
        hint = "read that address itself, if you trust it without TLS"
        raise SourceError(f"`{uri}` cannot be read: it redirects from HTTPS to `{location}`", hint=hint)
    endpoint = Endpoint(url.host.strip("[]"), url.port or PORTS[url.scheme], "", None, None)
    if endpoint[:2] == target.endpoint[:2] and (url.scheme == "https") == (target.tls is not None):
        return target._replace(path=url.request_uri)
    tls = ssl.create_default_context(cafile=target.authorities or None) if url.scheme == "https" else None
    return Target(endpoint, tls, url.request_uri, {}, target.authorities)


def _check_transient(response: BaseHTTPResponse) -> None:
    """Raises ConnectionLost if the same request may succeed later."""
    if response.status in _TRANSIENT_STATUSES:
        retry_after = None
        with suppress(InvalidHeader):
            retry_after = Retry().get_retry_after(response)
        raise ConnectionLost(f"the server answers {response.status}", retry_after or 0.0)


def _text(error: BaseException) -> str:
    """Returns why a request fails: what the operating system says, without what urllib3 says about it."""
    place = ""
    while isinstance(error, HTTPError) and (cause := error.__cause__ or error.__context__):
        place = "the proxy: " if isinstance(error, ProxyError) else place
        error = cause
    if isinstance(error, IncompleteRead):
        return f"it ends {error.expected or 'some'} bytes too early"
    return place + (str(error) or type(error).__name__)


def _client(
    target: Target, patience: float | None, report: Callable[[socket.socket], object] | None = None
) -> PoolManager:
    """Returns a client of a server, with the proxy that the environment names.

    Args:
        target: The server.
        patience: How many seconds a response may take; None: no limit.
        report: It is called with the socket of each connection. None: nothing is.

    Raises:
        HTTPError: The proxy is none.
    """
    keep_alive = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a stream may have no events for long
    options: dict[str, Any] = {
        "ssl_context": target.tls,
        "timeout": Timeout(connect=CONNECT_TIMEOUT_S, read=patience),
        "socket_options": [*HTTPConnection.default_socket_options, keep_alive],
    }
    proxy = getproxies().get("http" if target.tls is None else "https")  # urllib3 does not look it up
    if not proxy or proxy_bypass(target.host):
        client = PoolManager(**options)
    else:
        url = parse_url(proxy if "://" in proxy else f"http://{proxy}")
        login = {"Proxy-Authorization": basic_authorization(unquote(url.auth))} if url.auth else {}
        client = ProxyManager(url._replace(auth=None).url, proxy_headers=login, **options)
    if report is not None:
        pool = client.connection_from_url(target.url)
        pool.ConnectionCls = _reporting(pool.ConnectionCls, report)
    return client


def _reporting(base: Any, report: Callable[[socket.socket], object]) -> Any:
    """Returns a class of connections that report their sockets."""

    class ReportingConnection(base):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            report(self.sock)

    return ReportingConnection
