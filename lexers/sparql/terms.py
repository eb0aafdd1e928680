"""The terms of a SPARQL program: prefixes, bases, escapes, literals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count

from squall.errors import Origin
from squall.lexers.prefixes import declaration_hint
from squall.lexers.text import Text
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, literal
from squall.rdf.iris import resolved

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_LABEL = re.compile(r"_:([\w.\u00B7\u203F\u2040-]+)")

_NAMESPACES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
"""The namespaces that hints propose for prefixes without a declaration."""


class Names:
    """The prologue read so far, and the blank nodes of a text.

    Args:
        text: The text.
        base: Its base IRI.
        prefixes: The prefixes that it may use without declaring them.
        declaration: How its language declares a prefix and its IRI, for hints.
    """

    def __init__(
        self, text: Text, base: str, prefixes: Mapping[str, str], declaration: str = "PREFIX {}: <{}>"
    ) -> None:
        self.text = text
        self.base = base
        self.prefixes = dict(prefixes)
        self.declaration = declaration
        self.unknown: set[str] = set()
        labels = {label.rstrip(".") for label in _LABEL.findall(text.text)}
        self.labels = (label for number in count() if (label := f"b{number}") not in labels)

    def iri(self, token_text: str, origin: Origin) -> Term:
        """Returns the term of ``<iri>``, ``prefix:local`` or ``a``."""
        if token_text.startswith("<"):
            return iri(resolved(token_text[1:-1], self.base))
        prefix, _, local = token_text.partition(":")
        if prefix not in self.prefixes:
            return self._undeclared(prefix, token_text, origin)
        return iri(self.prefixes[prefix] + _ESCAPE.sub(r"\1", local))

    def _undeclared(self, prefix: str, token_text: str, origin: Origin) -> Term:
        if prefix not in self.unknown:
            self.unknown.add(prefix)
            namespace = _NAMESPACES.get(prefix, "http://example.org/")
            hint = declaration_hint(prefix, self.prefixes, self.declaration.format(prefix, namespace), namespace)
            self.text.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return iri(token_text)

    def fresh(self) -> str:
        """Returns a label that occurs nowhere in the text."""
        return next(self.labels)


def unquoted(text: str) -> str:
    """Returns the content of a quoted text."""
    width = 3 if text[:3] in ("'''", '"""') and len(text) > 5 else 1
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text[width:-width])


def number(text: str) -> Term:
    """Returns the literal of a number: an xsd:integer, an xsd:decimal with a dot, or an xsd:double with an exponent."""
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return literal(text, XSD + kind)
