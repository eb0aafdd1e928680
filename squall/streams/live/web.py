"""What HTTP and WebSocket have in common: addresses with a query and headers of their own."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import quote, urlencode

from squall.errors import UsageError
from squall.streams.address import Address, Endpoint
from squall.streams.live.tls import CERTIFICATES, context

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SAFE = ("https", "wss")
_QUERY, _HEADER = "query.", "header."


class Target(NamedTuple):
    """A server, how it is reached by TLS (None: without), what is asked of it (a path and a query), and with which
    headers."""

    endpoint: Endpoint
    tls: ssl.SSLContext | None
    path: str
    headers: dict[str, str]

    @property
    def host(self) -> str:
        host = f"[{self.endpoint.host}]" if ":" in self.endpoint.host else self.endpoint.host
        return f"{host}:{self.endpoint.port}"


def target(address: Address) -> tuple[Target, Address]:
    """What an address says to a server, and the address without that: ``query.NAME=VALUE`` belongs to the query,
    ``header.NAME=VALUE`` to the headers, a user and a password are those of basic authentication (RFC 7617)."""
    endpoint = address.endpoint(_PORTS[address.scheme])
    made_safe = context(address, address.scheme in _SAFE)
    if not endpoint.host:
        raise UsageError(f"`{address.text}` names no server", hint=f"write `{address.scheme}://HOST`")
    query = [(name.removeprefix(_QUERY), value) for name, value in address.options if name.startswith(_QUERY)]
    headers = {name.removeprefix(_HEADER): value for name, value in address.options if name.startswith(_HEADER)}
    if endpoint.user is not None:
        login = f"{endpoint.user}:{endpoint.password or ''}".encode()
        headers["Authorization"] = f"Basic {b64encode(login).decode()}"
    if any(character in value for value in headers.values() for character in "\r\n"):
        raise UsageError(f"`{address.text}` has a header with a line end in it")
    path = "/" + quote(endpoint.path, safe="/:@!$&'()*+,;=-._~") + (f"?{urlencode(query)}" if query else "")
    names = [name for name, _ in address.options if name.startswith((_QUERY, _HEADER)) or name in CERTIFICATES]
    return Target(endpoint, made_safe, path, headers), address.without(*names)


def served(address: Address) -> Target:
    """Where an address says to listen; the loopback if it has no host. Raises UsageError."""
    endpoint = address.endpoint(_PORTS[address.scheme])
    if endpoint.user is not None:
        raise UsageError(f"`{address.text}` listens: it asks nobody for a password", hint="leave the user out")
    local = endpoint._replace(host=endpoint.host or "127.0.0.1")
    return Target(local, context(address, address.scheme in _SAFE, serves=True), f"/{endpoint.path}", {})
