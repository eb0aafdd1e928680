"""The text of a SPARQL program, its places, and what its words for terms mean: prefixes, bases, escapes, literals."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import count

from squall.errors import LexerError, Origin, near
from squall.iris import resolved
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, literal

_CODEPOINT = re.compile(r"\\(?:\\|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_LABEL = re.compile(r"_:([\w.\u00B7\u203F\u2040-]+)")

_NAMESPACES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
"""What is proposed for a prefix that is not declared."""


class Text:
    """A program's text. `text` is what the grammar reads: codepoint escapes are characters (SPARQL 1.1 Query, section
    19.2; a backslash that is itself escaped begins none). Places in it are turned into those of the text as given."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.errors: list[LexerError] = []
        self.lines = [0, *(found.end() for found in _LINE_END.finditer(source))]
        self.shifts: list[tuple[int, int]] = [(0, 0)]
        self.text = "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        """The text in pieces; `shifts` says from which place on of it how much longer the source is."""
        end = shift = 0
        for found in _CODEPOINT.finditer(self.source):
            code = found[1] or found[2]
            if not code:
                continue
            yield self.source[end : found.start()]
            yield self._character(int(code, 16), found)
            end = found.end()
            shift += end - found.start() - 1
            self.shifts.append((end - shift, shift))
        yield self.source[end:]

    def _character(self, code: int, found: re.Match[str]) -> str:
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self.errors.append(LexerError(f"`{found[0]}` is no character", self._origin(*found.span())))
            return "\ufffd"
        return chr(code)

    def origin(self, start: int, end: int) -> Origin:
        """The place of a part of `text`."""
        return self._origin(self._given(start), self._given(end))

    def _given(self, place: int) -> int:
        return place + self.shifts[bisect_right(self.shifts, place, key=lambda pair: pair[0]) - 1][1]

    def _origin(self, start: int, end: int) -> Origin:
        line = bisect_right(self.lines, start)
        return Origin(self.name, self.source, line, start - self.lines[line - 1] + 1, max(1, end - start))

    def fail(self, message: str, origin: Origin, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, origin, hint))


class Names:
    """The prologue, as far as it has been read, and the blank nodes of a text."""

    def __init__(self, text: Text, base: str = "") -> None:
        self.text = text
        self.base = base
        self.prefixes: dict[str, str] = {}
        self.unknown: set[str] = set()
        written = {label.rstrip(".") for label in _LABEL.findall(text.text)}
        self.labels = (label for number in count() if (label := f"b{number}") not in written)

    def iri(self, written: str, origin: Origin) -> Term:
        """The term of ``<iri>``, ``prefix:local`` or ``a``."""
        if written.startswith("<"):
            return iri(resolved(written[1:-1], self.base))
        prefix, _, local = written.partition(":")
        if prefix not in self.prefixes:
            return self._undeclared(prefix, written, origin)
        return iri(self.prefixes[prefix] + _ESCAPE.sub(r"\1", local))

    def _undeclared(self, prefix: str, written: str, origin: Origin) -> Term:
        if prefix not in self.unknown:
            self.unknown.add(prefix)
            namespace = _NAMESPACES.get(prefix, "http://example.org/")
            hint = (
                near(f"{prefix}:", [f"{known}:" for known in self.prefixes])
                or f"declare it: `PREFIX {prefix}: <{namespace}>`"
            )
            self.text.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return iri(written)

    def fresh(self) -> str:
        """A label that occurs nowhere in the text."""
        return next(self.labels)


def unquoted(text: str) -> str:
    """What a quoted text says."""
    width = 3 if text[:3] in ("'''", '"""') and len(text) > 5 else 1
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text[width:-width])


def number(text: str) -> Term:
    """The literal of a number: an xsd:integer, or with a dot an xsd:decimal, or with an exponent an xsd:double."""
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return literal(text, XSD + kind)
