"""Connections of HTTP clients: through a proxy where the environment names one, and to where a server redirects.

Proxies are those of the standard library (`urllib.request.getproxies`): ``HTTP_PROXY``, ``HTTPS_PROXY``, ``NO_PROXY``.

Source: RFC 9110, section 15.4 (redirection); RFC 9112, section 3.2.2 (requests to a proxy).
"""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from squall.errors import SourceError
from squall.streams.address import Endpoint
from squall.streams.live.web import PORTS, Target

MAX_REDIRECTS = 10
CONNECT_TIMEOUT_S = 10.0
REDIRECTS = (301, 302, 303, 307, 308)
"""Status codes of answers to GET that name another place."""
_SAFE = "/:@!$&'()*+,;=-._~%"
"""The characters of a path that stay as they are."""


class Client(NamedTuple):
    """A connection to a server, and what its requests need.

    Attributes:
        connection: The connection.
        path: The path of requests, which is a whole URL for a proxy.
        headers: The headers of requests that the proxy needs.
    """

    connection: HTTPConnection
    path: str
    headers: Mapping[str, str]


class _Proxy(NamedTuple):
    """A proxy: where it is, and the header with its user and password, if it has them."""

    host: str
    port: int
    headers: Mapping[str, str]


def connected(target: Target, patience: float | None = None) -> Client:
    """Connects to a server, maybe through a proxy.

    Args:
        target: The server.
        patience: How many seconds a response may take; None: no limit.

    Raises:
        OSError: There is no connection.
    """
    proxy = _proxy(target)
    connection = _connection(target, proxy)
    connection.connect()
    connection.timeout = patience  # also for later connections
    connection.sock.settimeout(patience)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a stream may have no events for long
    if proxy is None or target.tls is not None:
        return Client(connection, target.path, {})
    return Client(connection, target.url, proxy.headers)


def redirected(target: Target, response: HTTPResponse, uri: str) -> Target | None:
    """Returns the target to which a server redirects a GET request; None if it does not.

    Credentials (all headers of the address, its user, its certificate) stay with the server for which they were given.

    Args:
        target: The target of the request.
        response: The response.
        uri: The address of the source, for messages.

    Raises:
        SourceError: The server redirects from HTTPS to HTTP, or to a place that is no HTTP.
    """
    location = response.headers.get("Location")
    if response.status not in REDIRECTS or location is None:
        return None
    url = urlsplit(urljoin(target.url, location))
    try:
        port = url.port
    except ValueError:
        port = None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise SourceError(f"`{uri}` cannot be read: the server redirects to `{location}`, which is no HTTP")
    if target.tls is not None and url.scheme == "http":
        hint = "read that address itself, if you trust it without TLS"
        raise SourceError(f"`{uri}` cannot be read: it redirects from HTTPS to `{location}`", hint=hint)
    endpoint = Endpoint(url.hostname, port or PORTS[url.scheme], url.path.removeprefix("/"), None, None)
    path = quote(url.path or "/", safe=_SAFE) + (f"?{quote(url.query, safe=_SAFE + '?')}" if url.query else "")
    if endpoint[:2] == target.endpoint[:2] and (url.scheme == "https") == (target.tls is not None):
        return target._replace(endpoint=endpoint, path=path)
    tls = ssl.create_default_context(cafile=target.authorities or None) if url.scheme == "https" else None
    return Target(endpoint, tls, path, {}, target.authorities)


def _connection(target: Target, proxy: _Proxy | None) -> HTTPConnection:
    host, port, *_ = target.endpoint
    place = (host, port) if proxy is None else (proxy.host, proxy.port)
    if target.tls is None:
        return HTTPConnection(*place, timeout=CONNECT_TIMEOUT_S)
    connection = HTTPSConnection(*place, timeout=CONNECT_TIMEOUT_S, context=target.tls)
    if proxy is not None:
        connection.set_tunnel(host, port, dict(proxy.headers))
    return connection


def _proxy(target: Target) -> _Proxy | None:
    """Returns the proxy that the environment names for a target, if there is one. Raises OSError if it is not HTTP."""
    text = getproxies().get("http" if target.tls is None else "https")
    if not text or proxy_bypass(target.host):
        return None
    proxy = urlsplit(text if "://" in text else f"http://{text}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise OSError(f"the proxy `{proxy.scheme}://{proxy.hostname}` of the environment is no `http:`")
    login = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
    headers = {"Proxy-Authorization": f"Basic {b64encode(login).decode()}"} if proxy.username else {}
    return _Proxy(proxy.hostname, proxy.port or PORTS["http"], headers)
