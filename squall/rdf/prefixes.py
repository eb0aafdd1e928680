"""Prefixes: shortened names for the namespaces of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from squall.rdf import OWL, RDF, RDFS, XSD

_KNOWN = {RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd"}
_TERM = re.compile(r'"(?:[^"\\]|\\.)*"|<(?P<space>[^<>\s]*[/#]|urn:[^<>\s]+:)(?P<local>[A-Za-z_][A-Za-z0-9_-]*)>')
"""A literal's text, or an IRI that can be split. What looks like an IRI inside of a literal is none."""


def prefixes(body: str) -> dict[str, str]:
    """Chooses prefixes for the namespaces of a text.

    Well-known namespaces get their usual names. One other namespace gets ``:``; several get ``ns1:``, ``ns2:`` and so
    on, in the order in which they occur.
    """
    spaces = dict.fromkeys(match["space"] for match in _TERM.finditer(body) if match["space"])
    other_spaces = [space for space in spaces if space not in _KNOWN]
    names = [""] if len(other_spaces) == 1 else [f"ns{index + 1}" for index in range(len(other_spaces))]
    return dict(zip(other_spaces, names, strict=True)) | {space: _KNOWN[space] for space in spaces if space in _KNOWN}


def shorten(body: str, namespaces: dict[str, str]) -> str:
    """Returns the text with prefixes for the given namespaces."""
    return _TERM.sub(
        lambda match: f"{namespaces[match['space']]}:{match['local']}" if match["space"] else match[0], body
    )


def header(namespaces: dict[str, str]) -> str:
    """Returns a line for each prefix, and an empty line if there are any."""
    lines = "".join(f"prefix {prefix}: <{space}>\n" for space, prefix in namespaces.items())
    return lines + "\n" if lines else ""


def with_prefixes(lines: Iterable[str]) -> str:
    """Joins the lines with names shortened, after a line for each prefix."""
    body = "\n".join(lines)
    namespaces = prefixes(body)
    return header(namespaces) + shorten(body, namespaces)
