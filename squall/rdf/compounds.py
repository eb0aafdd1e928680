"""Compound terms, which are built of terms: Jena's functors, RIF's uninterpreted functions and lists.

A compound term is a literal of the datatype `DATATYPE` whose lexical form is ``<name>(term term ...)``. The arguments
are canonical N-Triples; a compound among them is its own lexical form, so that escapes do not multiply. Two compounds
are equal if and only if their texts are: joins, sinks and engines treat them as any other literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from squall.rdf import Term, literal, parts

DATATYPE = "urn:x-squall:compound"
LIST = Term("<urn:x-squall:list>")
"""The name of lists. Their arguments are their members."""

BUILD = "urn:x-squall:compound:build"
DECOMPOSE = "urn:x-squall:compound:takeApart"
SPLIT = "urn:x-squall:compound:split"
JOIN = "urn:x-squall:compound:join"
LIMIT = "urn:x-squall:compound:limit"
ARGUMENTS = "urn:x-squall:compound:arguments"
REPLACED = "urn:x-squall:compound:replaced"
REDUCED = "urn:x-squall:compound:reduced"
MEMBERS = "urn:x-squall:compound:members"
CLASH = "urn:x-squall:compound:clash"
VIOLATED = "urn:x-squall:compound:violated"
UNKNOWN = "urn:x-squall:compound:unknown"
IS_RDF = "urn:x-squall:compound:isRDF"
NO_SCHEMA = "urn:x-squall:compound:noSchema"
SAME_NAMES = "urn:x-squall:compound:sameNames"
"""The IRIs of the functions over compounds (`squall.functions.compounds`)."""

MAX_NESTING_DEPTH = 100
"""The default limit of how deep rules may nest the terms that they make."""

MEMBERS_PER_LEVEL = 10
"""Lists that rules make may have this many members for each level of the nesting limit."""

CHARACTERS_PER_LEVEL = 10_000
"""The text of a term that rules make may have this many characters for each level of the nesting limit."""

MAX_PARSED_DEPTH = 1000
"""A literal that is nested deeper is not parsed as a compound: each level that is parsed is as long as the rest."""

_ENDING = f'"^^<{DATATYPE}>'
_TOKEN = re.compile(
    r'(?P<open><[^<>"\x00-\x20]*>\()|(?P<close>\))|(?P<space> )'
    r'|(?P<term><[^<>"\x00-\x20]*>|_:[^\s()<>"]+|"(?:[^"\\\n]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>"\x00-\x20]*>)?)'
)
_DERIVED_NODE = re.compile(r"_:[st][0-9a-f]{32}(?:n([0-9]+))?")


class Compound(NamedTuple):
    """The parts of a compound term."""

    name: Term
    arguments: tuple[Term, ...]


def compound(name: Term, arguments: Sequence[Term]) -> Term:
    """Returns the compound term of a name (an IRI) and its arguments, which may be compounds themselves."""
    return literal(f"{name}({' '.join(map(_inner, arguments))})", DATATYPE)


def _inner(term: Term) -> str:
    return parts(term).lexical if is_compound(term) else term


def is_compound(term: str) -> bool:
    """Returns whether a term is a compound: a literal of the datatype that also has the form."""
    return term.endswith(_ENDING) and parse_compound(Term(term)) is not None


def parse_compound(term: Term) -> Compound | None:
    """Returns the parts of a compound term, or None for any other term, even a literal with the datatype only."""
    parsed = _read(term) if term.endswith(_ENDING) else None
    return None if parsed is None else parsed[0]


def depth(term: Term) -> int:
    """Returns how deep terms that rules made are nested in a term: 0 for none, 1 if they contain no others.

    Such terms are compounds and the blank nodes of `derived_node`.
    """
    if term[0] == "_":
        return _node_depth(term)
    parsed = _read(term) if term.endswith(_ENDING) else None
    return 0 if parsed is None else parsed[1]


def derived_node(label: str, arguments: Sequence[Term | None]) -> Term:
    """Returns the blank node that a rule makes from terms.

    Its label is one letter and 32 hexadecimal digits. If some of the terms were made by rules, it also has the nesting
    depth.
    """
    depth_of_node = 1 + max((depth(term) for term in arguments if term), default=0)
    return Term(f"_:{label}n{depth_of_node}" if depth_of_node > 1 else f"_:{label}")


def _node_depth(term: str) -> int:
    match = _DERIVED_NODE.fullmatch(term)
    return 0 if match is None else int(match[1] or 1)


_MAY_FOLLOW = {
    "open": ("open", "term", "close"),
    "space": ("open", "term"),
    "term": ("space", "close"),
    "close": ("space", "close"),
}


@lru_cache(maxsize=65536)
def _read(term: Term) -> tuple[Compound, int] | None:
    """Returns the parts of a compound and its depth, or None if the text has another form."""
    # In one piece: a loop over tokens, which every new compound term runs through.
    text = parts(term).lexical
    match = _TOKEN.match(text)
    if match is None or match.lastgroup != "open":
        return None
    name = Term(match[0][:-1])
    arguments: list[Term] = []
    level = deepest = 1
    start = position = match.end()
    kind = "open"
    while level:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup not in _MAY_FOLLOW[kind]:
            return None
        kind, position = match.lastgroup, match.end()
        if kind == "space" and level == 1:
            start = position
        elif kind == "open":
            level += 1
        elif kind == "close":
            level -= 1
        elif kind == "term" and is_compound(match[0]):
            return None  # within a compound it has no quotes
        deepest = max(deepest, level + (_node_depth(match[0]) if kind == "term" else 0))
        if deepest > MAX_PARSED_DEPTH:
            return None
        if level == 1 and kind in ("term", "close"):
            arguments.append(_outer(text[start:position]))
    return (Compound(name, tuple(arguments)), deepest) if position == len(text) else None


def _outer(text: str) -> Term:
    return literal(text, DATATYPE) if text[-1] == ")" else Term(text)
