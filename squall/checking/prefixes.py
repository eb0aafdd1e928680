"""The check ``shadowed-prefix``: prefixes that are declared twice, or that stand for an unusual namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program
from squall.compiling import Program as Text
from squall.errors import Origin
from squall.rdf import OWL, RDF, RDFS, XSD

_WELL_KNOWN = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
_FN = "http://www.w3.org/2005/xpath-functions"

_DECLARED = re.compile(
    r"""
    ^[ \t]*@prefix [ \t]+ (?P<line>[^\s:]*) :? [ \t]+ <?(?P<line_iri>[^\s<>]*)>?   # Jena: a line of its own
    | \bPREFIX \s+ (?P<word>[^\s:<]*) : \s* <(?P<word_iri>[^\s<>]*)>               # SPARQL and its kin
    | \bPrefix \s* \( \s* (?P<call>[^\s():]*) \s+ <?(?P<call_iri>[^\s<>()]*)>?     # RIF
    | \#[^\n]* | ^[ \t]*//[^\n]* | \(\*(?!\))[\s\S]*?\*\)                                # comments
    | <[^\s<>]*> | '''[\s\S]*?''' | \"{3}[\s\S]*?\"{3} | '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*"   # no declarations
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


class _Declaration(NamedTuple):
    prefix: str
    namespace: str
    start: int
    end: int


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each prefix that is declared for two namespaces, and for each well-known one that stands for
    another.

    Systems have no prefixes. So this check looks at the texts, where declarations are alike in all languages.
    """
    for text in program.texts:
        declarations: dict[str, _Declaration] = {}
        for declaration in _declarations(text.text):
            earlier = declarations.get(declaration.prefix, declaration)
            if earlier.namespace != declaration.namespace:
                name = f"the prefix `{declaration.prefix}:`"
                message = f"{name} stands for <{earlier.namespace}> so far, from here on for another"
                yield _finding(message, text, declaration, "give one of the two another prefix")
            declarations[declaration.prefix] = declaration
            usual = _WELL_KNOWN.get(declaration.prefix, declaration.namespace)
            if usual != declaration.namespace:
                message = (
                    f"the prefix `{declaration.prefix}:` stands for <{declaration.namespace}> here, not for <{usual}>"
                )
                yield _finding(message, text, declaration, f"write <{usual}>, or choose another prefix")


def _declarations(text: str) -> Iterator[_Declaration]:
    for match in _DECLARED.finditer(text):
        kind = match.lastgroup
        if kind is not None:
            prefix, namespace = match[kind.removesuffix("_iri")], match[kind]
            start = match.end() - len(match[0].lstrip())
            yield _Declaration(prefix, namespace, start, match.end())


def _finding(message: str, text: Text, declaration: _Declaration, hint: str) -> Finding:
    line = text.text.count("\n", 0, declaration.start) + 1
    column = declaration.start - (text.text.rfind("\n", 0, declaration.start) + 1) + 1
    origin = Origin(text.name, text.text, line, column, declaration.end - declaration.start)
    return Finding("shadowed-prefix", WARNING, message, origin, hint)
