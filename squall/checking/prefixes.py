"""``shadowed-prefix``: prefixes that are declared anew, or that stand for another namespace than everybody's."""

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
    """A finding for each prefix of a text that is declared twice, for two namespaces, and for each that is well known
    and stands for something else.

    Systems know nothing of prefixes: this check looks at the texts, where declarations are alike in all languages.
    """
    for text in program.texts:
        known: dict[str, _Declaration] = {}
        for one in _declarations(text.text):
            before = known.get(one.prefix, one)
            if before.namespace != one.namespace:
                message = f"the prefix `{one.prefix}:` stands for <{before.namespace}> so far, from here on for another"
                yield _finding(message, text, one, "give one of the two another prefix")
            known[one.prefix] = one
            usual = _WELL_KNOWN.get(one.prefix, one.namespace)
            if usual != one.namespace:
                message = f"the prefix `{one.prefix}:` stands for <{one.namespace}> here, not for <{usual}>"
                yield _finding(message, text, one, f"write <{usual}>, or choose another prefix")


def _declarations(text: str) -> Iterator[_Declaration]:
    for found in _DECLARED.finditer(text):
        kind = found.lastgroup
        if kind is not None:
            prefix, namespace = found[kind.removesuffix("_iri")], found[kind]
            start = found.end() - len(found[0].lstrip())
            yield _Declaration(prefix, namespace, start, found.end())


def _finding(message: str, text: Text, one: _Declaration, hint: str) -> Finding:
    line = text.text.count("\n", 0, one.start) + 1
    column = one.start - (text.text.rfind("\n", 0, one.start) + 1) + 1
    origin = Origin(text.name, text.text, line, column, one.end - one.start)
    return Finding("shadowed-prefix", WARNING, message, origin, hint)
