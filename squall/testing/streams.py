"""Hand-written streams and answers: ``2 :bob :parent :cat`` is a fact that arrives at time 2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyoxigraph

from squall import rdf
from squall.errors import LexerError, Origin
from squall.rdf import ALWAYS, Atom, Boolean, Evaluated, Event, Fact, Quad, Solution, Term, Triple

PREFIXES: Mapping[str, str] = {
    "": "http://example.org/",
    "rdf": rdf.RDF,
    "rdfs": rdf.RDFS,
    "owl": rdf.OWL,
    "xsd": rdf.XSD,
}
"""The prefixes that hand-written facts may use."""

Timed = tuple[int, Fact | Quad | Solution | Boolean | Evaluated]
"""A time in integer milliseconds, with a fact that arrives or an item that is output."""


def stream(text: str, name: str = "stream") -> list[Event]:
    """Returns the events of a text, with one event per line.

    A line has a time in integer milliseconds (or ``always``), a blank, and a Turtle statement without its dot, or an
    atom such as ``:between(:a, 5, :b)``. ``;`` and ``,`` put several facts into one event. A time alone is an event
    without facts. ``@:s`` behind the time names the stream, and ``-`` behind that removes the facts: ``5 @:s - :a :p
    :b``. Blank lines and lines that begin with ``#`` are ignored. The prefixes are `PREFIXES`.

    Raises:
        LexerError: A line is wrong. The error has its place.
    """
    return [_event(line, origin) for line, origin in _numbered(text, name)]


def timed(text: str, name: str = "expected") -> list[Timed]:
    """Returns the lines of a text in the form of `stream`, fact by fact, as expected outputs with their times.

    A solution is a line such as ``2 ?x=:a ?y=5 ?z=``. A variable with nothing behind the equals sign is unbound. An
    atom is a line such as ``2 :between(:a, 5, :b)``.
    """
    return [timed for line, origin in _numbered(text, name) for timed in _expected(line, origin)]


def static(text: str, name: str = "static") -> list[Event]:
    """Returns facts that always hold, in the form of `stream` without times."""
    return [Event(ALWAYS, _facts(line, origin)) for line, origin in _numbered(text, name)]


def term(text: str) -> Term:
    """Returns a term in Turtle, with the prefixes of `PREFIXES`: ``:ann``, ``5``, ``"a"@en``."""
    (triple,) = _statement(f":s :p {text}", Origin("term", text, 1, 1, len(text)))
    return triple.object


def show(time: int, fact: Fact | Quad | Solution | Boolean | Evaluated) -> str:
    """Returns a fact or a solution as a line of `timed`."""
    return f"{'always' if time == ALWAYS else time} {show_fact(fact)}"


def show_fact(fact: Fact | Quad | Solution | Boolean | Evaluated) -> str:
    """Returns a fact or a solution without its time, as in a line of `timed`.

    An atom, which Turtle cannot express, is ``relation(arguments)``.
    """
    if isinstance(fact, Solution):
        pairs = zip(fact.names, fact.values, strict=True)
        return " ".join(f"?{name}={'' if value is None else _short(value)}" for name, value in pairs)
    if isinstance(fact, Triple | Quad):
        return " ".join(map(_short, fact))
    if isinstance(fact, Boolean | Evaluated):
        return str(fact)
    return f"{_short(fact.relation)}({', '.join(map(_short, fact.arguments))})"


def _short(text: str) -> str:
    for prefix, namespace in PREFIXES.items():
        local = text[1 + len(namespace) : -1]
        if text.startswith(f"<{namespace}") and local.replace("_", "a").isalnum():
            return f"{prefix}:{local}"
    return text


_LINE = re.compile(r"(?P<time>\S+)(?: +@(?P<stream>\S+))?(?: +(?P<removed>-)(?= ))?(?: +(?P<statement>.*))?")
_PAIR = re.compile(r"\?(?P<name>\w+)=(?P<value>\"(?:[^\"\\]|\\.)*\"\S*|\S*)")


def _event(line: str, origin: Origin) -> Event:
    match = _LINE.fullmatch(line)
    assert match is not None, "a line is not blank"
    time = _time(match["time"], origin)
    facts = _facts(match["statement"], origin) if match["statement"] else ()
    stream = term(match["stream"])[1:-1] if match["stream"] else ""
    return Event(time, (), stream, facts) if match["removed"] else Event(time, facts, stream)


def _expected(line: str, origin: Origin) -> Iterator[Timed]:
    time, _, statement = line.partition(" ")
    if statement.startswith("?"):
        yield _time(time, origin), _solution(statement)
    else:
        for fact in _facts(statement, origin):
            yield _time(time, origin), fact


def _facts(text: str, origin: Origin) -> tuple[Fact, ...]:
    """Returns the facts of a statement in Turtle, or an atom."""
    if match := _ATOM.fullmatch(text):
        return (_atom(match["relation"], match["arguments"], origin),)
    return _statement(text, origin)


_ATOM = re.compile(r"(?P<relation>\S+?)\((?P<arguments>.*)\)")


def _atom(relation: str, arguments: str, origin: Origin) -> Atom:
    triples = _statement(f":s :p {arguments}", origin) if arguments else ()
    return Atom(term(relation), tuple(triple.object for triple in triples))


def _solution(text: str) -> Solution:
    pairs = [(match["name"], match["value"]) for match in _PAIR.finditer(text)]
    return Solution(tuple(name for name, _ in pairs), tuple(term(value) if value else None for _, value in pairs))


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
