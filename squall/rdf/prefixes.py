"""Shortened names: prefixes for the namespaces of a text, and the text with them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from squall.rdf import OWL, RDF, RDFS, XSD

_KNOWN = {RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd"}
_TERM = re.compile(r'"(?:[^"\\]|\\.)*"|<(?P<space>[^<>\s]*[/#]|urn:[^<>\s]+:)(?P<local>[A-Za-z_][A-Za-z0-9_-]*)>')
"""A literal's text, or an IRI that can be cut in two. What looks like an IRI in a literal is none."""


def prefixes(body: str) -> dict[str, str]:
    """Prefixes for the namespaces of a text: well-known ones by their names, ``:`` for another that is alone, ``ns1:``,
    ``ns2:`` ... in the order in which they occur otherwise."""
    spaces = dict.fromkeys(match["space"] for match in _TERM.finditer(body) if match["space"])
    own = [space for space in spaces if space not in _KNOWN]
    names = [""] if len(own) == 1 else [f"ns{index + 1}" for index in range(len(own))]
    return dict(zip(own, names, strict=True)) | {space: _KNOWN[space] for space in spaces if space in _KNOWN}


def shorten(body: str, known: dict[str, str]) -> str:
    """The text with the namespaces of `known` as prefixes."""
    return _TERM.sub(lambda match: f"{known[match['space']]}:{match['local']}" if match["space"] else match[0], body)


def header(known: dict[str, str]) -> str:
    """A line for each prefix, and an empty one if there are any."""
    lines = "".join(f"prefix {prefix}: <{space}>\n" for space, prefix in known.items())
    return lines + "\n" if lines else ""


def with_prefixes(lines: Iterable[str]) -> str:
    """The lines with names shortened, after a line for each prefix."""
    body = "\n".join(lines)
    known = prefixes(body)
    return header(known) + shorten(body, known)
