"""The lexer of OWL 2 ontologies: RDF (Turtle, N-Triples, RDF/XML, JSON-LD), or functional-style syntax."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from squall.errors import LexerError, Origin
from squall.lexers.owl import tree
from squall.rdf import OWL, Triple

if TYPE_CHECKING:
    from pyoxigraph import RdfFormat

    from squall.streams.formats import Format


def lexer(
    text: str, name: str, prefixes: Mapping[str, str] | None = None, format: Format | None = None
) -> tree.Ontology:
    """Parses an OWL 2 ontology, by what its text begins with, and by the ending of its name.

    Args:
        text: The text.
        name: Its name, such as a path. Relative IRIs in RDF are resolved against it.
        prefixes: Prefixes from outside, for functional-style syntax.
        format: The format, if neither the text nor the name says it.

    Raises:
        LexerError: There is an error.
        Errors: There are several errors.
    """
    text = text.removeprefix("\ufeff")
    if format is None and is_functional(text, name):
        from squall.lexers.owl.functional import read

        return read(text, name, prefixes or {})
    from squall.lexers.owl.mapping import ontology

    return ontology(triples(text, name, format), name)


def triples(text: str, name: str, format: Format | None = None) -> list[Triple]:
    """Returns the triples of an ontology in a syntax of RDF: that of a format, or of the name or the text.

    Raises:
        LexerError: The text is malformed.
    """
    import pyoxigraph

    from squall.streams.formats import bounded, label_suffixer, reason_of, statements_of_quads, suffix

    base = Path(name).absolute().as_uri()
    try:
        with bounded():
            syntax = _syntax(text, name) if format is None else format.syntax
            _check_syntax(text, name, syntax)
            quads = list(pyoxigraph.parse(text.encode(), format=syntax, base_iri=base))
            statements = statements_of_quads(quads, label_suffixer(suffix(name)))
    except SyntaxError as error:
        origin = Origin(name, text, error.lineno, error.offset or 1) if error.lineno else None
        raise LexerError(reason_of(error), origin) from error
    return [Triple(*statement[:3]) for statement in statements]


_BLANK = r"(?:\s|#[^\n]*\n)*"
_FUNCTIONAL = re.compile(rf"{_BLANK}(?:Prefix|Ontology)\s*\(")


def is_functional(text: str, name: str) -> bool:
    """Returns whether a text is in functional-style syntax, by its name or its beginning."""
    return name.lower().endswith(".ofn") or _FUNCTIONAL.match(text) is not None


def _syntax(text: str, name: str) -> RdfFormat:
    """Returns the syntax of RDF that a text is in, by the ending of its name, or else by its first characters."""
    from squall.streams.formats import of_path
    from squall.streams.formats.compression import split_ending

    plain = split_ending(name)[0]
    path_format = None if plain.lower().endswith((".owl", ".rdf")) else of_path(plain)
    if path_format is not None:
        return path_format[0].syntax
    from pyoxigraph import RdfFormat

    if _XML.match(text):
        return RdfFormat.RDF_XML
    return RdfFormat.JSON_LD if _JSON.match(text) else RdfFormat.TURTLE


def _check_syntax(text: str, name: str, syntax: RdfFormat) -> None:
    """Raises LexerError if a text is in a syntax of OWL that is not read, or is XML that is not well-formed.

    The parser of RDF/XML takes the end of a text for that of its elements.
    """
    from pyoxigraph import RdfFormat

    if _MANCHESTER.match(text):
        raise _unread("the Manchester syntax", Origin(name, text, 1, 1))
    if syntax == RdfFormat.RDF_XML:
        from xml.parsers import expat

        parser = expat.ParserCreate(namespace_separator="")
        elements: list[str] = []
        parser.StartElementHandler = lambda element, _: elements.append(element) if not elements else None
        try:
            parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            origin = Origin(name, text, error.lineno, error.offset + 1)
            raise LexerError(f"malformed XML: {expat.ErrorString(error.code)}", origin) from error
        if elements == [f"{OWL}Ontology"]:
            raise _unread("OWL/XML", Origin(name, text, 1, 1))


def _unread(syntax: str, origin: Origin) -> LexerError:
    hint = "save it as RDF/XML, Turtle or functional-style syntax, as Protégé and ROBOT can"
    return LexerError(f"{syntax} is not read", origin, hint)


_MANCHESTER = re.compile(rf"{_BLANK}(?:Prefix|Ontology|Class|ObjectProperty|DataProperty|Individual):\s")
_XML = re.compile(r"\s*<(?:\?xml|!--|!DOCTYPE|[\w.-]+:RDF\b)")
_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*\{)')
