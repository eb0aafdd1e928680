"""The suite ``squall``: rule files over a data file, and the set of triples that follow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyoxigraph

from squall import rdf
from squall.rdf import Fact, Term, Triple
from tests.conformance import Case, LeftOut, Stages
from tests.conformance.programs import answer, compiled, same

EXPECTED = Path("_derived", "expected.json")


def cases(folder: Path) -> Iterator[Case]:
    """One case per file of rules or query."""
    for entry in json.loads((folder / EXPECTED).read_text(encoding="utf-8"))["cases"]:
        name = entry.get("rules") or entry["query"]
        yield Case(name, partial(_run, folder, entry))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    if "rules" not in entry:
        raise LeftOut(f"no queries in `{entry['lang']}` yet")
    system = compiled((folder / entry["rules"]).read_text(encoding="utf-8"), entry["lang"])
    came = answer(system, _facts(folder / path for path in entry["data"]), stages)
    due = [*map(_triple, entry["triples"]), *map(_triple, entry["axioms"])]
    # Variables of the bodies join by term, so that what a rule makes has the literals of the data in their own form.
    missing, surplus = sorted(map(str, set(due) - came)), sorted(map(str, came - set(due)))
    assert same(_triples(came), due), f"missing {missing}, surplus {surplus}"


def _triples(facts: Iterable[Fact]) -> list[Triple]:
    return [fact for fact in facts if isinstance(fact, Triple)]


def _facts(paths: Iterable[Path]) -> Iterator[Fact]:
    """The facts of N-Triples files, whatever their names end in."""
    for path in paths:
        for quad in pyoxigraph.parse(path.read_bytes(), format=pyoxigraph.RdfFormat.N_TRIPLES):
            yield rdf.triple(quad.subject, quad.predicate, quad.object)


def _triple(texts: list[Any]) -> Triple:
    return Triple(*map(_term, texts))


def _term(text: Any) -> Term:
    return rdf.iri(text) if isinstance(text, str) else rdf.literal(text["v"], text.get("dt"), text.get("lang"))
