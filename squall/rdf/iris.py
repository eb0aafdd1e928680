"""Resolution of IRI references (RFC 3986, section 5.2, on IRIs as RFC 3987 allows)."""

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
        rest = ((self.query, "?", ""), (self.fragment, "#", ""))
        return "".join(f"{before}{part}{after}" for part, before, after in (*pieces, *rest) if part is not None)


def is_absolute(text: str) -> bool:
    """Whether the characters are an IRI with a scheme, as N-Triples has it (IRIREF)."""
    return _ABSOLUTE.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def resolved(reference: str, base: str) -> str:
    """The IRI that a reference means where `base`, an absolute IRI, is the base; as it is without one (``""``)."""
    if not base:
        return reference
    one, root = _split(reference), _split(base)
    if one.scheme is not None:
        return str(one._replace(path=_without_dots(one.path)))
    if one.authority is not None:
        return str(one._replace(scheme=root.scheme, path=_without_dots(one.path)))
    found = root._replace(fragment=one.fragment)
    if one.path:
        return str(found._replace(path=_without_dots(_merged(one.path, root)), query=one.query))
    return str(found if one.query is None else found._replace(query=one.query))


def _split(text: str) -> _Iri:
    found = _PARTS.fullmatch(text)
    assert found is not None, "every text has these parts"
    scheme, authority, path, query, fragment = found.groups()
    return _Iri(scheme, authority, path, query, fragment)


def _merged(path: str, root: _Iri) -> str:
    if path.startswith("/"):
        return path
    if root.authority is not None and not root.path:
        return f"/{path}"
    return root.path[: root.path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """The path without ``.`` and ``..`` (RFC 3986, section 5.2.4)."""
    if "." not in path:
        return path
    segments = path.split("/")
    found: list[str] = []
    for segment in segments:
        if segment == "..":
            del found[max(len(found) - 1, 1 if path.startswith("/") else 0) :]
        elif segment != ".":
            found.append(segment)
    if segments[-1] in (".", ".."):
        found.append("")
    return "/".join(found)
