"""The suite ``ep-sparql-etalis``: queries of EP-SPARQL, which extends SPARQL by sequences of events.

squall has no lexer for EP-SPARQL. Queries that are SPARQL but for their names, which have no brackets, run as SPARQL:
the last event that fires has to be the expected one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from squall.rdf import Event, Term, Triple, iri, is_literal, literal, parts
from tests.conformance import Case, KnownBad, LeftOut, Stages, entries
from tests.conformance.evaluations import answers, query

BEYOND = {
    "SEQ": "EP-SPARQL: a sequence of events (SEQ)",
    "aggregate(": "EP-SPARQL: an aggregate of events",
    "write(": "EP-SPARQL: a goal of Prolog",
}
"""The constructs that SPARQL does not have."""
_NAME = re.compile(r"(?<![?\w])(?!(?:SELECT|CONSTRUCT|WHERE|FILTER)\b)([A-Za-z]\w*)")
_EXPECTED = re.compile(r"event\((?:select_event\(\[(.*?)\]\)|rdf\((.*?)\)),\[")
"""The values of the event that is expected, in Prolog."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the file, in its order."""
    for entry in entries(folder / "ep_sparql_tests.json"):
        yield Case(entry["id"], partial(_run, entry))


def _run(entry: dict[str, Any], stages: Stages) -> None:
    if not entry.get("query") or not entry.get("expected_prolog"):
        raise KnownBad("it has no query, or no expected event")
    for construct, reason in BEYOND.items():
        if construct in entry["query"]:
            raise LeftOut(reason)
    match = _EXPECTED.search(entry["expected_prolog"])
    assert match, f"no event: {entry['expected_prolog']}"
    events = [Event(1000 * place, (_triple(names),)) for place, names in enumerate(entry["events_in_order"], 1)]
    result = answers(query(_as_sparql(entry["query"]), "sparql"), events, stages)
    rows = [row for _, rows in sorted(result.items()) for row in rows]
    values = [tuple("" if cell is None else _plain(cell) for cell in row) for row in rows]
    assert values, "nothing fires"
    assert values[-1] == tuple((match[1] or match[2]).split(",")), f"fired: {values}"


def _as_sparql(text: str) -> str:
    """Returns the query with its names as IRIs, and its template in braces."""
    named = _NAME.sub(r"<\1>", text)
    return re.sub(r"^CONSTRUCT (?!\{)(.*?) WHERE", r"CONSTRUCT { \1 } WHERE", named)


def _triple(names: list[str]) -> Triple:
    subject, predicate, object = names
    return Triple(iri(subject), iri(predicate), literal(object) if object.isdecimal() else iri(object))


def _plain(cell: Term) -> str:
    return parts(cell).lexical if is_literal(cell) else cell[1:-1]
