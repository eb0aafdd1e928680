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

    An absolute IRI is no relative reference: it stays as it is written, like those of N-Triples. Of a relative one the
    dot segments of the reference are removed. An authority and what follows it, and the base, stay as they are written,
    as in the data that pyoxigraph reads.
    """
    if not base:
        return reference
    relative, root = _split(reference), _split(base)
    if relative.scheme is not None:
        return reference
    if relative.authority is not None:
        return f"{root.scheme}:{reference}"
    target = root._replace(fragment=relative.fragment)
    if relative.path:
        path = _joined(_folder(root, relative.path), relative.path)
        return str(target._replace(path=path, query=relative.query))
    return str(target if relative.query is None else target._replace(query=relative.query))


def _split(text: str) -> _Iri:
    match = _PARTS.fullmatch(text)
    assert match is not None, "every text has these parts"
    scheme, authority, path, query, fragment = match.groups()
    return _Iri(scheme, authority, path, query, fragment)


def _folder(root: _Iri, path: str) -> str:
    """Returns the part of the base's path to which a path is relative: nothing, or up to its last slash."""
    if path.startswith("/"):
        return ""
    if root.authority is not None and not root.path:
        return "/"
    return root.path[: root.path.rfind("/") + 1]


def _joined(folder: str, path: str) -> str:
    """Returns a path in a folder, without the segments ``.`` and ``..`` of the path (RFC 3986, section 5.2.4)."""
    if "." not in path:
        return folder + path
    segments = path.split("/")
    joined_segments = folder.split("/")[:-1]
    root_segments = 1 if (folder or path).startswith("/") else 0
    for segment in segments:
        if segment == "..":
            del joined_segments[max(len(joined_segments) - 1, root_segments) :]
        elif segment != ".":
            joined_segments.append(segment)
    if segments[-1] in (".", ".."):
        joined_segments.append("")
    return "/".join(joined_segments)
