"""The suite ``lubm``: the queries of the Lehigh University Benchmark over LUBM(1,0), static and as a stream.

The queries are one program with the rule set ``rhodf`` and the rules below, so that the data are closed once, for all
of them. As a stream each department arrives by itself; the window covers everything.

The queries are also continuous queries over a window of three departments, with entailment that is compiled into them.
They have the solutions that they have behind the rule set `rhodf`, which materialises what follows. So they have with
the rule set specialised by the ontology. With `owl2rl` specialised, and no rules besides, they have the answers of the
benchmark.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyoxigraph

import squall
from squall import rulesets
from squall.contracts import Options
from squall.model import Consequence, Construct, System, rules
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, Event, Solution, Triple, iri, triple
from squall.rdf import OWL as OWL_NAMESPACE
from tests.conformance import Case, Stages
from tests.conformance.programs import compiled
from tests.conformance.w3c_manifests import csv_cell, lexical, triples

ONTOLOGY = Path("ontology", "univ-bench-instans.ttl")
DATA = "lubm-1-0.nt.gz"
STREAM = "urn:departments"
INVERSE = iri(OWL_NAMESPACE + "inverseOf")
DEPARTMENT = re.compile(r"Department(\d+)\.")

OWL = """
@prefix owl: <http://www.w3.org/2002/07/owl#>.
[inverse:    (?p owl:inverseOf ?q) -> (?q owl:inverseOf ?p)]
[turned:     (?p owl:inverseOf ?q) (?x ?p ?y) -> (?y ?q ?x)]
[transitive: (?p rdf:type owl:TransitiveProperty) (?x ?p ?y) (?y ?p ?z) -> (?x ?p ?z)]
[some:       (?r owl:someValuesFrom ?c) (?r owl:onProperty ?p) (?x ?p ?y) (?y rdf:type ?c) -> (?x rdf:type ?r)]
[first:      (?c owl:intersectionOf ?l) (?l rdf:first ?a) -> (?c rdfs:subClassOf ?a)]
[second:     (?c owl:intersectionOf ?l) (?l rdf:rest ?m) (?m rdf:first ?a) -> (?c rdfs:subClassOf ?a)]
[one:        (?c owl:intersectionOf ?l) (?l rdf:first ?a) (?l rdf:rest rdf:nil) (?x rdf:type ?a) -> (?x rdf:type ?c)]
[two:        (?c owl:intersectionOf ?l) (?l rdf:first ?a) (?l rdf:rest ?m) (?m rdf:first ?b) (?m rdf:rest rdf:nil)
             (?x rdf:type ?a) (?x rdf:type ?b) -> (?x rdf:type ?c)]
"""
"""The rules that the answers need beyond RDFS: those of OWL 2 RL (section 4.3) for the constructs of the ontology. Its
intersections are of one or two classes."""

Rows = dict[str, set[tuple[object, ...]]]
"""The rows that each query answers, by its name."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields each query over all data at once, and over the departments one after the other."""
    for path in sorted((folder / "queries").glob("q*.rq")):
        for form in ("static", "stream", "specialised"):
            yield Case(f"{path.stem} {form}", partial(_run, folder, path, form))
        yield Case(f"{path.stem} entailment", partial(_run_with_entailment, folder, path.stem))
        yield Case(f"{path.stem} specialised stream", partial(_run_specialised, folder, path.stem))


def _run(folder: Path, query: Path, form: str, stages: Stages) -> None:
    path = folder / "answers" / f"answers_query{query.stem[1:]}.csv"
    _, *expected = csv.reader(path.read_text(encoding="utf-8").splitlines())
    expectation = {tuple(map(csv_cell, row)) for row in expected}
    actual = _answers(folder, form, stages).get(query.stem, set())
    assert actual == expectation, (
        f"{len(actual)} rows, not {len(expectation)}: missing {sorted(expectation - actual)[:3]}"
    )


def _run_with_entailment(folder: Path, name: str, stages: Stages) -> None:
    ontology = [axiom for axiom in _ontology(folder) if axiom.predicate != INVERSE]  # which `rhodf` has not
    static = [Event(ALWAYS, tuple(ontology))]
    actual = _continuous_answers(folder, stages, static, entailment="rhodf", schema=ontology)[name]
    assert actual == _materialised_answers(folder, stages)[name]


def _run_specialised(folder: Path, name: str, stages: Stages) -> None:
    assert _specialised_answers(folder, stages)[name] == _materialised_answers(folder, stages)[name]


@cache
def _specialised_answers(folder: Path, stages: Stages) -> dict[str, Counter[tuple[int, tuple[object, ...]]]]:
    ontology = _ontology(folder)
    return _continuous_answers(folder, stages, [], rules=["rhodf"], specialise=True, schema=ontology)


@cache
def _materialised_answers(folder: Path, stages: Stages) -> dict[str, Counter[tuple[int, tuple[object, ...]]]]:
    return _continuous_answers(folder, stages, [Event(ALWAYS, _ontology(folder))], rules=["rhodf"])


def _continuous_answers(
    folder: Path, stages: Stages, static: list[Event], **options: Any
) -> dict[str, Counter[tuple[int, tuple[object, ...]]]]:
    """Returns how often each query outputs each row at each time, over a window of the stream of departments."""
    texts = [_over_window(path) for path in sorted((folder / "queries").glob("q*.rq"))]
    plan = squall.plan(squall.compile(*texts, lexer="csparql", output="rstream", **options), stages.planner)
    batches = [[event._replace(stream=STREAM) for event in batch] for batch in _departments(_data(folder))]
    rows: dict[str, Counter[tuple[int, tuple[object, ...]]]] = defaultdict(Counter)
    for out in squall.build(plan, stages.builder, Options(seed=FIXED_SEED)).run(batches, static):
        assert isinstance(out.fact, Solution)
        rows[out.rule][out.time, out.fact.values] += 1
    return rows


def _over_window(path: Path) -> str:
    """Returns a query of the benchmark as a continuous query under the name of its file."""
    text = re.sub(
        "WHERE", f"FROM STREAM <{STREAM}> [RANGE 3s STEP 1s] WHERE", path.read_text(encoding="utf-8"), count=1
    )
    return f"REGISTER QUERY {path.stem} AS\n{text}"


@cache
def _answers(folder: Path, form: str, stages: Stages) -> Rows:
    """Returns the final answers of all queries."""
    program = _specialised_program(folder) if form == "specialised" else _program(folder)
    job = squall.build(squall.plan(program, stages.planner), stages.builder, Options(seed=FIXED_SEED))
    ontology = Event(ALWAYS, _ontology(folder))
    if form != "stream":
        outputs = job.run([], [ontology, Event(ALWAYS, _data(folder))])
    else:
        outputs = job.run(_departments(_data(folder)), [ontology])
    rows: Rows = defaultdict(set)
    for out in outputs:
        assert isinstance(out.fact, Solution)
        rows[out.rule].update(lexical([out.fact.values]))
    return rows


def _program(folder: Path) -> System:
    """Returns the rules, and each query under the name of its file."""
    results = [*rules(squall.compile(rulesets.path("rhodf"))), *rules(compiled(OWL, "jena"))]
    results = [replace(rule, consequences=tuple(_internal(rule))) for rule in results]
    for path in sorted((folder / "queries").glob("q*.rq")):
        system = compiled(path.read_text(encoding="utf-8"), "sparql")
        results += [replace(rule, name=path.stem) for rule in rules(system)]
    return System(subsystems=tuple(results))


def _specialised_program(folder: Path) -> System:
    """Returns the queries with the rule set `owl2rl`, specialised by the ontology."""
    queries = sorted((folder / "queries").glob("q*.rq"))
    return squall.compile(*queries, rules=["owl2rl"], specialise=True, schema=_ontology(folder))


def _internal(rule: System) -> Iterator[Consequence]:
    """Returns a hidden conclusion of a rule, which only queries read."""
    for consequence in rule.consequences:
        assert isinstance(consequence, Construct)
        yield replace(consequence, internal=True)


@cache
def _ontology(folder: Path) -> tuple[Triple, ...]:
    """Returns the ontology. It is read once, so that its blank nodes have one name."""
    return tuple(triples(folder / ONTOLOGY))


@cache
def _data(folder: Path) -> tuple[Triple, ...]:
    lines = gzip.decompress((folder / DATA).read_bytes())
    return tuple(
        triple(quad.subject, quad.predicate, quad.object)
        for quad in pyoxigraph.parse(lines, format=pyoxigraph.RdfFormat.N_TRIPLES)
    )


def _departments(data: Iterable[Triple]) -> list[list[Event]]:
    """Yields a batch of one event for each department. The data that belong to no department come first."""
    parts: dict[int, list[Triple]] = defaultdict(list)
    for datum in data:
        match = DEPARTMENT.search(datum.subject)
        parts[int(match[1]) if match else -1].append(datum)
    return [[Event(1000 * time, tuple(facts))] for time, (_, facts) in enumerate(sorted(parts.items()))]
