"""Streams and answers written by hand: ``2 :bob :parent :cat`` is a fact that arrives at time 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyoxigraph

from squall import rdf
from squall.errors import LexerError, Origin
from squall.rdf import ALWAYS, Event, Fact, Term, Triple

PREFIXES: Mapping[str, str] = {
    "": "http://example.org/",
    "rdf": rdf.RDF,
    "rdfs": rdf.RDFS,
    "owl": rdf.OWL,
    "xsd": rdf.XSD,
}
"""The prefixes that hand-written facts may use."""

Timed = tuple[int, Fact]
"""A time in integer milliseconds and what is said of it: a fact that arrives, or one that is answered."""


def stream(text: str, name: str = "stream") -> list[Event]:
    """One event per line: a time in integer milliseconds (or ``always``), a blank, a Turtle statement without its dot.

    ``;`` and ``,`` put several facts into one event. Blank lines and lines that begin with ``#`` are left out.
    The prefixes are `PREFIXES`. Raises LexerError with the place of the line.
    """
    return [Event(time, triples) for time, triples in _lines(text, name)]


def timed(text: str, name: str = "expected") -> list[Timed]:
    """The lines of `stream`, fact by fact: what is expected to come out, and when."""
    return [(time, fact) for time, triples in _lines(text, name) for fact in triples]


def static(text: str, name: str = "static") -> list[Event]:
    """Facts that always hold, written as in `stream`, without times."""
    return [Event(ALWAYS, _statement(line, origin)) for line, origin in _numbered(text, name)]


def term(text: str) -> Term:
    """One term in Turtle, with the prefixes of `PREFIXES`: ``:ann``, ``5``, ``"a"@en``."""
    (triple,) = _statement(f":s :p {text}", Origin("term", text, 1, 1, len(text)))
    return triple.object


def show(time: int, fact: Fact) -> str:
    """A line of `stream` for a fact."""
    return f"{'always' if time == ALWAYS else time} {show_fact(fact)}"


def show_fact(fact: Fact) -> str:
    """A fact as in a line of `stream`; an atom, which Turtle cannot say, as ``relation(arguments)``."""
    if isinstance(fact, Triple):
        return " ".join(map(_short, fact))
    return f"{_short(fact.relation)}({', '.join(map(_short, fact.arguments))})"


def _short(text: str) -> str:
    for prefix, namespace in PREFIXES.items():
        local = text[1 + len(namespace) : -1]
        if text.startswith(f"<{namespace}") and local.replace("_", "a").isalnum():
            return f"{prefix}:{local}"
    return text


def _lines(text: str, name: str) -> Iterator[tuple[int, tuple[Triple, ...]]]:
    for line, origin in _numbered(text, name):
        time, _, statement = line.partition(" ")
        yield _time(time, origin), _statement(statement, origin)


def _numbered(text: str, name: str) -> Iterator[tuple[str, Origin]]:
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield bare, Origin(name, text, number, 1 + line.index(bare[0]), len(bare))


def _time(text: str, origin: Origin) -> int:
    if text == "always":
        return ALWAYS
    try:
        return int(text)
    except ValueError as error:
        raise LexerError(f"`{text}` is no time", origin, "a line begins with milliseconds or `always`") from error


_HEADER = "".join(f"@prefix {prefix}: <{namespace}> .\n" for prefix, namespace in PREFIXES.items())


def _statement(text: str, origin: Origin) -> tuple[Triple, ...]:
    document = f"{_HEADER}{text.removesuffix('.')} ."
    try:
        quads = list(pyoxigraph.parse(document, format=pyoxigraph.RdfFormat.TURTLE))
    except SyntaxError as error:
        raise LexerError(f"`{text}` is no Turtle statement: {error.msg}", origin) from error
    return tuple(rdf.triple(quad.subject, quad.predicate, quad.object) for quad in quads)
