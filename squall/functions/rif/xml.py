"""XML literals: when two are the same, and their predicates (DTB, section 4.9; RDF 1.1 Concepts, section 5.2)."""

from __future__ import annotations

from functools import lru_cache
from operator import eq, ne

from squall.functions.rif.names import Domain, Members, predicate
from squall.rdf import RDF, Term, is_literal, parts

XML_LITERAL = RDF + "XMLLiteral"


@lru_cache(maxsize=4096)
def xml(term: Term) -> str | None:
    """The canonical form of an XML literal (Canonical XML 2.0, with comments); None for everything else.

    Its content stands inside of an element, where there can be no document type, so no entities but those of XML.
    """
    from xml.etree.ElementTree import ParseError, canonicalize

    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype != XML_LITERAL:
        return None
    try:
        return canonicalize(f"<x>{lexical}</x>", with_comments=True)
    except ParseError:
        return None


_XML = Domain("XMLLiteral", xml)

MEMBERS: Members = (
    *predicate("XMLLiteral-equal", (_XML, _XML), eq, "the same XML, whatever way it is written"),
    *predicate("XMLLiteral-not-equal", (_XML, _XML), ne, "different XML"),
)
