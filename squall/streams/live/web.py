"""Addresses of HTTP and WebSocket, which may have a query and headers."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import quote, urlencode

from squall.errors import UsageError
from squall.streams.address import Address, Endpoint
from squall.streams.live.tls import CERTIFICATES, context

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""The default ports of schemes."""
_SAFE = ("https", "wss")
_QUERY, _HEADER = "query.", "header."


class Target(NamedTuple):
    """A server, and what is requested of it.

    Attributes:
        endpoint: Its host and port.
        tls: The TLS context, or None for no encryption.
        path: The path, with the query.
        headers: The headers of requests.
        authorities: The file with the certificate authorities of the other side; ``""``: those of the system.
    """

    endpoint: Endpoint
    tls: ssl.SSLContext | None
    path: str
    headers: dict[str, str]
    authorities: str = ""

    @property
    def url(self) -> str:
        """The URL over HTTP."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://{self.host if self.endpoint.port != PORTS[scheme] else self._host_name}{self.path}"

    @property
    def _host_name(self) -> str:
        return f"[{self.endpoint.host}]" if ":" in self.endpoint.host else self.endpoint.host

    @property
    def host(self) -> str:
        """The host and port, as in a URL."""
        return f"{self._host_name}:{self.endpoint.port}"


def target(address: Address) -> tuple[Target, Address]:
    """Returns the target of an address, and the address without the options for it.

    ``query.NAME=VALUE`` belongs to the query, ``header.NAME=VALUE`` to the headers. A user and a password are sent by
    basic authentication (RFC 7617).

    Raises:
        UsageError: The address names no server, or an option is wrong.
    """
    endpoint = address.endpoint(PORTS[address.scheme])
    tls = context(address, address.scheme in _SAFE)
    if not endpoint.host:
        raise UsageError(f"`{address.text}` names no server", hint=f"write `{address.scheme}://HOST`")
    query = [(name.removeprefix(_QUERY), value) for name, value in address.options if name.startswith(_QUERY)]
    headers = {name.removeprefix(_HEADER): value for name, value in address.options if name.startswith(_HEADER)}
    if endpoint.user is not None:
        headers["Authorization"] = basic_authorization(f"{endpoint.user}:{endpoint.password or ''}")
    if any(character in value for value in headers.values() for character in "\r\n"):
        raise UsageError(f"`{address.text}` has a header with a line end in it")
    path = "/" + quote(endpoint.path, safe="/:@!$&'()*+,;=-._~") + (f"?{urlencode(query)}" if query else "")
    names = [name for name, _ in address.options if name.startswith((_QUERY, _HEADER)) or name in CERTIFICATES]
    return Target(endpoint, tls, path, headers, address.get("ca")), address.without(*names)


def basic_authorization(login: str) -> str:
    """Returns the header of a user and a password, with a colon between them (RFC 7617)."""
    return f"Basic {b64encode(login.encode()).decode()}"


def listening_target(address: Address) -> Target:
    """Returns the target at which an address listens: the loopback if it has no host.

    Raises:
        UsageError: An option is wrong.
    """
    endpoint = address.endpoint(PORTS[address.scheme])
    if endpoint.user is not None:
        raise UsageError(f"`{address.text}` listens: it asks nobody for a password", hint="leave the user out")
    local = endpoint._replace(host=endpoint.host or "127.0.0.1")
    return Target(local, context(address, address.scheme in _SAFE, serves=True), f"/{endpoint.path}", {})
