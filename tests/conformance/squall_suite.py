"""The suite ``squall``: rule files over a data file, and the set of triples that follow; queries in C-SPARQL.

A query sees all data in one window: they arrive at once, and the first step counts. Values are given as texts. Where
the original engine has emitted something else, triple by triple, the profile ``squall2013`` must emit that. Queries
without an answer are run over streams made up for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyoxigraph

from squall import rdf
from squall.model.windows import HoppingWindow
from squall.rdf import ALWAYS, Event, Fact, Term, Triple
from tests.conformance import Case, KnownBad, Stages, entries
from tests.conformance.evaluations import Row, answers, query, sources, streams
from tests.conformance.programs import answer, compiled, same
from tests.conformance.stream_queries_suite import run_made_up

EXPECTED = Path("_derived", "expected.json")
LANGUAGES = {"rif-core-xml": "rif"}
"""The names of our languages in the cases."""
STREAM = "http://example.org/stream"
"""The IRI of the stream, for which queries have a placeholder."""
EMPTY = "test.otherunion.csparql"


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case per file of rules or query, and per answer of a query."""
    request: set[str] = set()
    for entry in entries(folder / EXPECTED, "cases"):
        name = entry.get("rules") or entry["query"]
        request.add((folder / name).read_text(encoding="utf-8"))
        yield Case(name, partial(_run if "rules" in entry else _run_query, folder, entry))
        if entry.get("orig_incremental") and "query" in entry:
            yield Case(f"{name} (squall2013)", partial(_run_as_2013, folder, entry))
    for path in sorted(folder.rglob("*.csparql")):
        if path.read_text(encoding="utf-8") not in request:
            yield Case(str(path.relative_to(folder)), partial(_run_text, path))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    system = compiled(
        (folder / entry["rules"]).read_text(encoding="utf-8"), LANGUAGES.get(entry["lang"], entry["lang"])
    )
    actual = answer(system, _facts(folder / path for path in entry["data"]), stages)
    expected = [*map(_triple, entry["triples"]), *map(_triple, entry["axioms"])]
    # Variables of the bodies join by term, so that what a rule makes has the literals of the data in their own form.
    missing, surplus = sorted(map(str, set(expected) - actual)), sorted(map(str, actual - set(expected)))
    assert same(_triples(actual), expected), f"missing {missing}, surplus {surplus}"


def _triples(facts: Iterable[Fact]) -> list[Triple]:
    return [fact for fact in facts if isinstance(fact, Triple)]


def _facts(paths: Iterable[Path]) -> Iterator[Fact]:
    """Returns the facts of N-Triples files, whatever their extension."""
    for path in paths:
        for quad in pyoxigraph.parse(path.read_bytes(), format=pyoxigraph.RdfFormat.N_TRIPLES):
            yield rdf.triple(quad.subject, quad.predicate, quad.object)


def _triple(texts: list[Any]) -> Triple:
    return Triple(*map(_term, texts))


def _term(text: Any) -> Term:
    return rdf.iri(text) if isinstance(text, str) else rdf.literal(text["v"], text.get("dt"), text.get("lang"))


# Queries


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("{TEST_FILE}", STREAM)


def _run_query(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    system = query(_text(folder / entry["query"]), "csparql", output="rstream")
    (stream,) = streams(system)
    arriving = Event(0, tuple(_facts(folder / path for path in entry["stream"])), stream)
    static = Event(ALWAYS, tuple(_facts(folder / path for path in entry["static"])))
    (step,) = {
        window.step for source in sources(system) for window in source.all_windows if isinstance(window, HoppingWindow)
    }
    result = answers(system, [arriving], stages, [static], until=step)
    _compare(result[step], entry["expected"])


def _run_as_2013(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    """Returns what is emitted at the arrival of each triple, one a second; unbound is an empty text for the
    original."""
    system = query(_text(folder / entry["query"]), "csparql", "squall2013")
    (stream,) = streams(system)
    facts = list(_facts(folder / path for path in entry["stream"]))
    events = [Event(1000 * place, (fact,), stream) for place, fact in enumerate(facts, 1)]
    result = answers(system, events, stages, until=events[-1].time)
    _compare(
        [row for time, rows in sorted(result.items()) if time != ALWAYS for row in rows], entry["orig_incremental"]
    )


def _compare(rows: Iterable[Row], expected: Iterable[Iterable[str]]) -> None:
    actual, expectation = Counter(tuple(map(_shown, row)) for row in rows), Counter(map(tuple, expected))
    assert actual == expectation, (
        f"missing {list((expectation - actual).elements())}, surplus {list((actual - expectation).elements())}"
    )


def _shown(cell: Term | None) -> str:
    if cell is None:
        return ""
    return rdf.parts(cell).lexical if rdf.is_literal(cell) else rdf.iri_text(cell)


def _run_text(path: Path, stages: Stages) -> None:
    if path.name == EMPTY:
        raise KnownBad("the file is empty")
    run_made_up(query(_text(path), "csparql"), stages)
