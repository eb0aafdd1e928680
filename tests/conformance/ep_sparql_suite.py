"""The suite ``ep-sparql-etalis``: queries of EP-SPARQL as its engine ETALIS has them, each with the event that fires.

The engine's texts have names without brackets, templates without braces, and goals of Prolog in their filters. They are
rewritten: names are IRIs, and digits are integers; ``rdf_store(s, p, o)`` is a static triple beside the pattern;
``?x is E`` is a BIND; ``write`` and the like print, and always succeed, so that they are dropped. A query with other
goals is left out. The last event that fires has to be the expected one: the engine stores one for each kind of event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from squall.rdf import ALWAYS, XSD, Event, Term, Triple, iri, is_literal, literal, parts
from tests.conformance import Case, KnownBad, LeftOut, Stages, entries
from tests.conformance.evaluations import answers, query

_WORDS = "SELECT|CONSTRUCT|WHERE|SEQ|EQUALS|OPTIONALSEQ|EQUALSOPTIONAL|UNION|FILTER|BIND|AS|getDURATION"
_NAME = re.compile(rf"(?<![?\w])(?!(?:{_WORDS})\b)([A-Za-z]\w*)")
_STORED = re.compile(r"rdf_store\(([^,()]+),([^,()]+),([^,()]+)\)")
"""A static triple, as a goal or as a fact."""
_VALUE = re.compile(r"(\?\w+) is (.+)", re.DOTALL)
_PRINTED = re.compile(r"write(_space|_nl)?\(")
_GOAL = re.compile(r"(?<![?\w])[a-z]\w*\(")
_EXPECTED = re.compile(r"event\((?:select_event\(\[(.*?)\]\)|rdf\((.*?)\)),\[")
"""The values of the event that is expected, in Prolog."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the file, in its order."""
    for entry in entries(folder / "ep_sparql_tests.json"):
        yield Case(entry["id"], partial(_run, entry))


def _run(entry: dict[str, Any], stages: Stages) -> None:
    if not entry.get("query") or not entry.get("expected_prolog"):
        raise KnownBad("it has no query, or no expected event")
    match = _EXPECTED.search(entry["expected_prolog"])
    assert match, f"no event: {entry['expected_prolog']}"
    events = [Event(1000 * place, (_triple(names),)) for place, names in enumerate(entry["events_in_order"], 1)]
    static = [Event(ALWAYS, (_stored(fact),)) for fact in entry.get("background_facts", ())]
    result = answers(query(_as_ep_sparql(entry["query"]), "epsparql"), events, stages, static)
    rows = [row for _, rows in sorted(result.items()) for row in rows]
    values = [tuple("" if cell is None else _plain(cell) for cell in row) for row in rows]
    assert values, "nothing fires"
    assert values[-1] == tuple((match[1] or match[2]).split(",")), f"fired: {values}"


def _as_ep_sparql(text: str) -> str:
    """Returns a query of the engine as EP-SPARQL has it."""
    head, _, condition = text.partition(" FILTER ")
    beside = [_element(goal) for goal in _goals(condition)]
    if _GOAL.search(head):
        raise LeftOut("a goal of Prolog in a pattern (aggregate)")
    template, _, pattern = head.partition(" WHERE ")
    template = re.sub(r"^CONSTRUCT (?!\{)(.*)", r"CONSTRUCT { \1 }", template)
    return _NAME.sub(r"<\1>", f"{template} WHERE {{ {' '.join([pattern, *filter(None, beside)])} }}")


def _goals(condition: str) -> Iterator[str]:
    """Yields the goals of a filter in brackets: the operands of its conjunction."""
    depth, goal = 0, ""
    for piece in re.split(r"(&&|[()])", condition.strip()[1:-1]):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "&&" and not depth:
            yield goal.strip()
            goal = ""
        else:
            goal += piece
    if goal.strip():
        yield goal.strip()


def _element(goal: str) -> str:
    """Returns the element of a group that a goal is, or nothing for one that prints."""
    if _PRINTED.match(goal):
        return ""
    if stored := _STORED.fullmatch(goal):
        return f". {stored[1]} {stored[2]} {stored[3]} ."
    if _GOAL.search(goal):
        raise LeftOut(f"a goal of Prolog in a filter ({goal})")
    value = _VALUE.fullmatch(goal)
    return f"BIND({value[2]} AS {value[1]})" if value else f"FILTER({goal})"


def _stored(fact: str) -> Triple:
    stored = _STORED.fullmatch(fact)
    assert stored, f"no triple: {fact}"
    return _triple([name.strip("'") for name in stored.groups()])


def _triple(names: list[str]) -> Triple:
    subject, predicate, object = names
    value = literal(object, XSD + "integer") if object.isdecimal() else iri(object)
    return Triple(iri(subject), iri(predicate), value)


def _plain(cell: Term) -> str:
    return parts(cell).lexical if is_literal(cell) else cell[1:-1]
