"""Resolution of IRI references (RFC 3986, section 5.2, extended to IRIs by RFC 3987)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ABSOLUTE = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*""")


class _Iri(NamedTuple):
    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    def __str__(self) -> str:
        pieces = ((self.scheme, "", ":"), (self.authority, "//", ""), (self.path, "", ""))
        suffixes = ((self.query, "?", ""), (self.fragment, "#", ""))
        return "".join(f"{before}{part}{after}" for part, before, after in (*pieces, *suffixes) if part is not None)


def is_absolute(text: str) -> bool:
    """Returns whether the text is an IRI with a scheme, as in N-Triples (IRIREF)."""
    return _ABSOLUTE.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def resolved(reference: str, base: str) -> str:
    """Returns the IRI that a reference means relative to `base`, an absolute IRI. Without a base (``""``) it is
    unchanged.
    """
    if not base:
        return reference
    relative, root = _split(reference), _split(base)
    if relative.scheme is not None:
        return str(relative._replace(path=_without_dots(relative.path)))
    if relative.authority is not None:
        return str(relative._replace(scheme=root.scheme, path=_without_dots(relative.path)))
    target = root._replace(fragment=relative.fragment)
    if relative.path:
        return str(target._replace(path=_without_dots(_merged(relative.path, root)), query=relative.query))
    return str(target if relative.query is None else target._replace(query=relative.query))


def _split(text: str) -> _Iri:
    match = _PARTS.fullmatch(text)
    assert match is not None, "every text has these parts"
    scheme, authority, path, query, fragment = match.groups()
    return _Iri(scheme, authority, path, query, fragment)


def _merged(path: str, root: _Iri) -> str:
    if path.startswith("/"):
        return path
    if root.authority is not None and not root.path:
        return f"/{path}"
    return root.path[: root.path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Removes ``.`` and ``..`` from a path (RFC 3986, section 5.2.4)."""
    if "." not in path:
        return path
    segments = path.split("/")
    kept_segments: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept_segments[max(len(kept_segments) - 1, 1 if path.startswith("/") else 0) :]
        elif segment != ".":
            kept_segments.append(segment)
    if segments[-1] in (".", ".."):
        kept_segments.append("")
    return "/".join(kept_segments)
