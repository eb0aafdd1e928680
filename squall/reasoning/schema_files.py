"""Files of schemas: data in RDF, of which each statement counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from squall.errors import LexerError, SourceError
from squall.rdf import Triple

_HINT = "correct it: what is missing of a schema has no effect"
_ENDINGS = (".owl", ".ofn")
"""The endings of ontologies, which may be in several syntaxes."""


def schema_in(address: str, documents: Mapping[str, str] = MappingProxyType({})) -> Iterator[Triple]:
    """Yields the triples of a schema.

    A file that ends in ``.owl`` is in any syntax of RDF, as a program with that ending is.

    Args:
        address: The address of static data.
        documents: Files, by the IRIs for which they stand: contexts of JSON-LD.

    Raises:
        SourceError: The schema cannot be read, or has a malformed statement.
    """
    from squall.streams import open_static

    if address.lower().endswith(_ENDINGS) and os.path.isfile(address):
        yield from _ontology(address)
        return
    for event in open_static(address, _Ledger(), documents):
        yield from (fact for fact in event.facts if isinstance(fact, Triple))


def _ontology(path: str) -> list[Triple]:
    from squall.lexers.owl import is_functional, triples

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"`{path}` cannot be read: {error}") from error
    if is_functional(text, path):
        hint = "give it as a program, without `--schema`; or save it as RDF"
        raise SourceError(f"`{path}` is in functional-style syntax, and a schema is in RDF", hint=hint)
    try:
        return triples(text, path)
    except LexerError as error:
        place = path if error.origin is None else f"{path}:{error.origin.line}"
        raise SourceError(f"malformed: {place}: {error.message}", hint=_HINT) from error


class _Ledger:
    """A ledger of dead letters in which each is an error."""

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Raises SourceError."""
        place = source if line is None else f"{source}:{line}"
        raise SourceError(f"{cause}: {place}: {reason}", hint=_HINT)
