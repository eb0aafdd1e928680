"""Terms that are built of terms: Jena's functors, RIF's uninterpreted functions and lists.

A compound term is a literal of the datatype `DATATYPE` whose lexical form is ``<name>(term term ...)``: the arguments
in canonical N-Triples, a compound among them as its own lexical form, so that escapes do not multiply. Two compounds
are equal if and only if their texts are: joins, sinks and engines see literals like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from squall.rdf import Term, literal, parts

DATATYPE = "urn:x-squall:compound"
LIST = Term("<urn:x-squall:list>")
"""The name of lists: their arguments are their members."""

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
"""The IRIs of the functions over compounds (`squall.functions.compounds`)."""

MAX_NESTING_DEPTH = 100
"""How deep rules may nest the terms that they make, if a run is not told otherwise."""

MEMBERS_PER_LEVEL = 10
"""How many members the lists that rules make may have for each level that they may nest terms."""

_DEEPEST = 1000
"""What is nested deeper is no compound term, only a literal: each level that is taken apart is as long as the rest."""

_ENDING = f'"^^<{DATATYPE}>'
_TOKEN = re.compile(
    r'(?P<open><[^<>"\x00-\x20]*>\()|(?P<close>\))|(?P<space> )'
    r'|(?P<term><[^<>"\x00-\x20]*>|_:[^\s()<>"]+|"(?:[^"\\\n]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>"\x00-\x20]*>)?)'
)
_MADE = re.compile(r"_:[st][0-9a-f]{32}(?:n([0-9]+))?")


class Compound(NamedTuple):
    """The parts of a compound term."""

    name: Term
    arguments: tuple[Term, ...]


def compound(name: Term, arguments: Sequence[Term]) -> Term:
    """The compound term of a name (an IRI) and its arguments, which may be compounds themselves."""
    return literal(f"{name}({' '.join(map(_inner, arguments))})", DATATYPE)


def _inner(term: Term) -> str:
    return parts(term).lexical if is_compound(term) else term


def is_compound(term: str) -> bool:
    """Whether a term is a compound: a literal of the datatype with the form of one."""
    return term.endswith(_ENDING) and parse_compound(Term(term)) is not None


def parse_compound(term: Term) -> Compound | None:
    """The parts of a compound term; None for any other term, a literal that only has the datatype included."""
    found = _read(term) if term.endswith(_ENDING) else None
    return None if found is None else found[0]


def depth(term: Term) -> int:
    """How deep terms that rules made are nested in a term: 0 for one that is not made, 1 for one of such terms only.

    Made are compounds and the blank nodes of `derived_node`.
    """
    if term[0] == "_":
        return _generation(term)
    found = _read(term) if term.endswith(_ENDING) else None
    return 0 if found is None else found[1]


def derived_node(label: str, of: Sequence[Term | None]) -> Term:
    """The blank node that a rule makes of terms: its label, one letter and 32 hexadecimal digits, says how deep it is
    nested, where it is made of others."""
    level = 1 + max((depth(term) for term in of if term), default=0)
    return Term(f"_:{label}n{level}" if level > 1 else f"_:{label}")


def _generation(term: str) -> int:
    found = _MADE.fullmatch(term)
    return 0 if found is None else int(found[1] or 1)


_MAY_FOLLOW = {
    "open": ("open", "term", "close"),
    "space": ("open", "term"),
    "term": ("space", "close"),
    "close": ("space", "close"),
}


@lru_cache(maxsize=65536)
def _read(term: Term) -> tuple[Compound, int] | None:
    """The parts of a compound, and how deep it is. None: it has another form."""
    text = parts(term).lexical
    found = _TOKEN.match(text)
    if found is None or found.lastgroup != "open":
        return None
    name = Term(found[0][:-1])
    arguments: list[Term] = []
    level = deepest = 1
    start = place = found.end()
    kind = "open"
    while level:
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup not in _MAY_FOLLOW[kind]:
            return None
        kind, place = found.lastgroup, found.end()
        if kind == "space" and level == 1:
            start = place
        elif kind == "open":
            level += 1
        elif kind == "close":
            level -= 1
        elif kind == "term" and is_compound(found[0]):
            return None  # within a compound it has no quotes
        deepest = max(deepest, level + (_generation(found[0]) if kind == "term" else 0))
        if deepest > _DEEPEST:
            return None
        if level == 1 and kind in ("term", "close"):
            arguments.append(_outer(text[start:place]))
    return (Compound(name, tuple(arguments)), deepest) if place == len(text) else None


def _outer(text: str) -> Term:
    return literal(text, DATATYPE) if text[-1] == ")" else Term(text)
