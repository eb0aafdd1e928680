"""XML literals: their equality, and their predicates (DTB, section 4.9; RDF 1.1 Concepts, section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from operator import eq, ne

from squall.functions.rif.names import Domain, Members, predicate
from squall.rdf import RDF, Term, is_literal, parts

XML_LITERAL = RDF + "XMLLiteral"

Node = tuple[object, ...]
"""A start, an end, characters, a comment or an instruction, as its kind and content."""


class _Nodes:
    """A handler that collects the nodes of a text, with namespaces and prefixes, and attributes ordered by name."""

    def __init__(self) -> None:
        self.found: list[Node] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.found.append(("start", name, *sorted(attributes.items())))

    def end(self, name: str) -> None:
        self.found.append(("end",))

    def characters(self, text: str) -> None:
        self.found.append(("text", text))

    def comment(self, text: str) -> None:
        self.found.append(("comment", text))

    def instruction(self, target: str, text: str) -> None:
        self.found.append(("instruction", target, text))


@lru_cache(maxsize=4096)
def xml(term: Term) -> tuple[Node, ...] | None:
    """Returns the nodes of an XML literal, which are equal for equal content; None for everything else.

    Its content stands inside of an element, where there can be no document type, so no entities but those of XML.
    """
    from xml.parsers import expat

    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype != XML_LITERAL:
        return None
    nodes, parser = _Nodes(), expat.ParserCreate(namespace_separator=" ")
    parser.namespace_prefixes = True
    parser.StartElementHandler, parser.EndElementHandler = nodes.start, nodes.end
    parser.CharacterDataHandler, parser.CommentHandler = nodes.characters, nodes.comment
    parser.ProcessingInstructionHandler = nodes.instruction
    try:
        parser.Parse(f"<x>{lexical}</x>", True)
    except expat.ExpatError:
        return None
    return tuple(_joined(nodes.found))


def _joined(nodes: list[Node]) -> list[Node]:
    """Returns the nodes, with consecutive characters joined, however the parser splits them."""
    merged_nodes: list[Node] = []
    for is_text, group in groupby(nodes, key=lambda node: node[0] == "text"):
        pieces = list(group)
        merged_nodes += [("text", "".join(str(text) for _, text in pieces))] if is_text else pieces
    return merged_nodes


_XML = Domain("XMLLiteral", xml)

MEMBERS: Members = (
    *predicate("XMLLiteral-equal", (_XML, _XML), eq, "the same XML, whatever way it is written"),
    *predicate("XMLLiteral-not-equal", (_XML, _XML), ne, "different XML"),
)
