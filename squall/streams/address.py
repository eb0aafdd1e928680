"""Addresses of sources and sinks: a path or a URI, with options after a question mark."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from squall.errors import ArgumentError, UsageError, did_you_mean
from squall.rdf import ALWAYS, FOREVER

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: `C:` is a drive
_NAMED = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9_.-]*|[A-Za-z][A-Za-z0-9+.-]+:[A-Za-z0-9_.:/#-]*)=(.+)", re.DOTALL)

_INTEGER = re.compile(r"-?[0-9]+")
_LONGEST_WAIT_MS = 10**12
"""About 31 years: what the system's calls can wait for."""
_PASSWORD = re.compile(r"(//[^/@:?]*:)[^/?]*(?=@)")
_SECRET = re.compile(r"([?&](?:header\.[^=&]*|[^=&]*password)=)[^&]*")
_ENDPOINT = re.compile(
    r"//(?:(?P<user>[^/@:]*)(?::(?P<password>[^/]*))?@)?(?P<host>\[[^\]]*\]|[^/:@]*)(?::(?P<port>\d{1,9}))?(?:/(?P<path>.*))?",
    re.DOTALL,
)


class Endpoint(NamedTuple):
    """The host, port and path of a server, and a user and password, or None."""

    host: str
    port: int
    path: str
    user: str | None
    password: str | None


@dataclass(frozen=True)
class Address:
    """The address of a source or sink, with options.

    ``sensors.nt?stream=urn:s`` is a path, literally. In ``file:///data/a%20b.nt`` the path is percent-decoded. ``-`` is
    standard input or output. Of any other scheme, the rest of the text is kept literally.

    Attributes:
        text: The address without passwords, for messages.
        scheme: The scheme, in lower case.
        path: The path, or what else follows the scheme.
        options: The options, in order, as pairs of name and value.
    """

    text: str
    scheme: str
    path: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.path

    def only(self, *names: str) -> None:
        """Checks the options. Raises UsageError if one is unknown, or given twice."""
        used: set[str] = set()
        for name, _ in self.options:
            if name not in names:
                hint = did_you_mean(name, names) or f"options: {', '.join(names)}"
                raise UsageError(f"`{self.text}` has the unknown option `{name}`", hint=hint)
            if name in used:
                raise UsageError(f"`{self.text}` has the option `{name}` twice")
            used.add(name)

    def without(self, *names: str) -> Address:
        """Returns the address without some of its options."""
        return replace(self, options=tuple(option for option in self.options if option[0] not in names))

    def get(self, name: str, default: str = "") -> str:
        """Returns the value of an option, or a default."""
        return dict(self.options).get(name, default)

    def integer(self, name: str, default: int, least: int | None = None) -> int:
        """Returns an option as an integer of 64 bits. Raises UsageError if it is none, or less than the least."""
        value = self.get(name, str(default))
        if not _INTEGER.fullmatch(value):
            raise UsageError(f"`{name}={value}` in `{self.text}` is not a whole number")
        number = int(value) if len(value) <= len(str(ALWAYS)) else FOREVER
        if least is not None and number < least:
            raise UsageError(f"`{name}={value}` in `{self.text}` is too small")
        if not ALWAYS <= number < FOREVER:
            raise UsageError(f"`{name}={value}` in `{self.text}` does not fit into 64 bits")
        return number

    def milliseconds(self, name: str, default: int) -> int:
        """Returns an option as milliseconds to wait. Raises UsageError if it is none, or longer than waits can be."""
        length = self.integer(name, default, least=0)
        if length > _LONGEST_WAIT_MS:
            raise UsageError(f"`{name}={length}` in `{self.text}` is too large")
        return length

    def endpoint(self, port: int = 0) -> Endpoint:
        """Returns the server of ``//user:password@host:port/path``, with percent-decoded parts.

        Args:
            port: The default port; 0: the address must have one.

        Raises:
            UsageError: The address names no server.
        """
        match = _ENDPOINT.fullmatch(self.path)
        if match is None or not (match["port"] or port) or int(match["port"] or port) > 65535:
            form = "HOST" if port else "HOST:PORT"
            raise UsageError(f"`{self.text}` names no server", hint=f"write `{self.scheme}://{form}`")
        user, password = (value if value is None else unquote(value) for value in (match["user"], match["password"]))
        host = match["host"].strip("[]")
        return Endpoint(host, int(match["port"] or port), unquote(match["path"] or ""), user, password)

    def flag(self, name: str, default: str = "no") -> bool:
        """Returns an option as a boolean. Raises UsageError if it is neither ``yes`` nor ``no``."""
        value = self.get(name, default)
        if value not in ("yes", "no"):
            raise UsageError(f"`{name}={value}` in `{self.text}` is neither yes nor no")
        return value == "yes"


def source(text: str) -> Address:
    """Parses the address of a source. The name of a stream and ``=`` may precede it (``obs=readings.nt``).

    A name begins with a letter and ends before the first ``=``, which precedes any question mark. It is plain (letters,
    digits, ``-``, ``_``, ``.``) or an IRI (also ``:``, ``/``, ``#``; not of the scheme ``file``). So
    ``data/day=1/x.nt`` and ``./day=1`` are paths, while ``day=1`` is the stream ``day`` from the file ``1``.
    """
    _check_text(text)
    place, mark, query = text.partition("?")
    match = _NAMED.fullmatch(place)
    if match is None:
        return parse(text, "stdin")
    address = parse(f"{match[2]}{mark}{query}", "stdin")
    return replace(address, text=_without_secrets(text), options=(("stream", match[1]), *address.options))


def parse(text: str, standard: str) -> Address:
    """Parses an address. ``-`` has the scheme `standard`.

    Raises:
        ArgumentError: It is no text.
        UsageError: It names no file, or cannot be a name.
    """
    _check_text(text)
    place, _, query = text.partition("?")
    _check_text(query, str.encode)
    options = tuple(parse_qsl(query, keep_blank_values=True))
    for name, value in options:
        if not (value or name.startswith("header.") or name.endswith("password")):
            hint = f"write `{name}=VALUE`, or leave the option out"
            raise UsageError(f"the option `{name}` in `{_without_secrets(text)}` has no value", hint=hint)
    if place == "-":
        return Address(text, standard, "-", options)
    if place.startswith("file:"):
        path = unquote(urlsplit(place).path)
        _check_text(path)
        return Address(text, "file", path, options)
    if _SCHEME.match(place):
        _check_text(place, str.encode)
        scheme, _, remainder = place.partition(":")
        return Address(_without_secrets(text), scheme.lower(), remainder, options)
    if not place:
        raise UsageError(f"`{text}` names no file")
    return Address(text, "file", place, options)


def _check_text(text: Any, encode: Callable[[str], bytes] = os.fsencode) -> None:
    """Checks that something can be an address: a text which `encode` turns into the bytes of a name.

    Raises:
        ArgumentError: It is no text.
        UsageError: It has characters that names cannot have.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"the address `{text!r}` is no text", hint='write `"data.nt"`, or `str(path)`')
    try:
        is_name = b"\0" not in encode(text)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise UsageError(f"the address {text!r} has characters that no name has")


def _without_secrets(text: str) -> str:
    """Returns an address without its passwords and secret headers."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***", text))
