"""The evaluation tests of the suite ``w3c-rdf-tests``: queries over graphs that always hold, and updates of them.

Results are compared up to blank nodes, first term by term; where the two differ, by the values of literals.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

import squall
from squall import rulesets
from squall.contracts import Options, Output
from squall.functions.values import value_key
from squall.lexers.sparql import SparqlLexer
from squall.lexers.sparql import tree as q
from squall.model import System
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, Boolean, Event, Solution, Term, Triple, iri, is_blank, is_literal
from squall.testing import isomorphic
from squall.translators.sparql import translator
from tests.conformance import Case, LeftOut, Stages, entries, w3c_rif
from tests.conformance.programs import translated
from tests.conformance.w3c_manifests import (
    MF,
    QT,
    Solutions,
    csv_cell,
    is_result_set,
    lexical,
    manifest,
    path_of,
    solutions,
    triples,
)

QUERIES = {"QueryEvaluationTest", "CSVResultFormatTest"}
ENTAILMENT = """
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#>.
[rdfD2:   (?x ?p ?y) -> (?p rdf:type rdf:Property)]
[rdfs6:   (?p rdf:type rdf:Property) -> (?p rdfs:subPropertyOf ?p)]
[of:      (?c rdfs:subClassOf ?d) -> (?c rdf:type rdfs:Class) (?d rdf:type rdfs:Class)]
[type:    (?x rdf:type ?c) -> (?c rdf:type rdfs:Class)]
[rdfs10:  (?c rdf:type rdfs:Class) -> (?c rdfs:subClassOf ?c)]
"""
"""The rules about classes and properties that the rule set ``rhodf`` leaves out and that answers need (RDF 1.1
Semantics, sections 8.1.1 and 9.2.1). `of` and `type` follow from the axioms about domains and ranges."""
REGIMES = "http://www.w3.org/ns/entailment/"
OWL_REGIMES = {REGIMES + name for name in ("OWL-Direct", "OWL-RDF-Based")}
ABOUT_CLASSES = ("http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#")
"""The vocabularies of a query that asks about classes and properties, or about members of a class of its own."""
REGIME = "http://www.w3.org/ns/sparql-service-description#entailmentRegime"
OTHERWISE = {
    "sparql/sparql10/optional-filter#dawg-optional-filter-005-simplified": "SPARQL 1.1 reads it in the other way, as "
    "-005-not-simplified has it (the suite's manifest says so)",
}


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, in its order."""
    for entry in entries(folder / "index.json"):
        if entry["dir"].startswith("sparql/") and QUERIES.intersection(entry["type"]):
            yield Case(entry["id"], partial(_run, folder, entry))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    if entry["id"] in OTHERWISE:
        raise LeftOut(OTHERWISE[entry["id"]])
    place = folder / entry["dir"]
    graph = manifest(place)
    test = graph.test(entry["id"].rpartition("#")[2])
    action, result = graph.value(test, MF + "action"), graph.value(test, MF + "result")
    assert action is not None
    query = graph.value(action, QT + "query") or action
    default = [iri(node.value) for node in graph.values(action, QT + "data")]
    names = [iri(node.value) for node in graph.values(action, QT + "graphData")]
    regimes = {node.value for node in (*graph.members(test, REGIME), *graph.members(action, REGIME))}
    by_owl = bool(regimes) and regimes <= OWL_REGIMES
    rules, facts = _rules(folder, default, regimes)
    outputs = answers(path_of(query), default, names, stages, rules, facts)
    if by_owl:
        outputs = [out for out in outputs if not _has_unnamed(out)]
    lax = graph.value(test, MF + "resultCardinality") == NamedNode(MF + "LaxCardinality")
    assert result is not None
    try:
        compare(outputs, path_of(result), lax)
    except AssertionError as error:
        if by_owl and any(name in path_of(query).read_text(encoding="utf-8") for name in ABOUT_CLASSES):
            reason = "asks about classes, or for members of a class of its own: OWL 2 RL is about named ones"
            raise LeftOut(reason) from error
        raise


def _rules(folder: Path, default: Iterable[Term], regimes: set[str]) -> tuple[Sequence[System], Sequence[Event]]:
    """Returns the rules and facts that the entailment regimes need."""
    if REGIMES + "RIF" in regimes:
        data = [triple for graph in default for triple in triples(path_of(NamedNode(graph[1:-1])))]
        return w3c_rif.rules(folder.parent / "rif-w3c", data)
    if regimes and regimes <= OWL_REGIMES:
        return (_owl(),), ()
    return entailment() if regimes else (), ()


def _has_unnamed(out: Output) -> bool:
    """Returns whether an answer has a class without a name, which is not allowed (SPARQL 1.1 Entailment Regimes,
    section 6). In these cases no individual is a blank node."""
    return isinstance(out.fact, Solution) and any(cell is not None and is_blank(cell) for cell in out.fact.values)


@cache
def _owl() -> System:
    return squall.compile(rulesets.path("owl2rl"))


@cache
def entailment() -> tuple[System, ...]:
    """Returns the rules of RDFS."""
    return (squall.compile(rulesets.path("rhodf")), squall.compile(ENTAILMENT, lexer="jena"))


def answers(
    query: Path,
    default: Sequence[Term],
    named: Sequence[Term],
    stages: Stages,
    rules: Sequence[System] = (),
    facts: Sequence[Event] = (),
) -> list[Output]:
    """Returns the answers of a query over graphs and facts, with the conclusions of rules; graphs that the query names
    itself come first."""
    program = SparqlLexer(base=query.as_uri())(query.read_bytes().decode("utf-8"), query.name)
    (statement,) = program.statements
    body = statement.body
    assert not isinstance(body, q.Operation)
    inputs = body.dataset or (*map(q.From, default), *map(q.FromNamed, named))
    program = replace(program, statements=(replace(statement, body=replace(body, dataset=inputs)),))
    graphs = dict.fromkeys(clause.graph for clause in inputs if isinstance(clause, q.From | q.FromNamed))
    return evaluated(program, graphs, stages, rules, facts)


def evaluated(
    program: q.Program,
    graphs: Iterable[Term],
    stages: Stages,
    rules: Sequence[System] = (),
    facts: Sequence[Event] = (),
) -> list[Output]:
    """Returns the outputs of a program, together with rules, over graphs and facts that always hold."""
    system = translated(program, translator)
    system = System(subsystems=(system, *rules)) if rules else system
    plan = squall.plan(system, stages.planner)
    static = [Event(ALWAYS, triples(path_of(NamedNode(graph[1:-1]))), graph[1:-1]) for graph in graphs]
    return list(squall.build(plan, stages.builder, Options(seed=FIXED_SEED)).run([], [*static, *facts]))


def compare(outputs: Sequence[Output], path: Path, lax: bool) -> None:
    """Raises AssertionError where the outputs are not those of a file."""
    if path.suffix in (".ttl", ".rdf") and not is_result_set(path):
        facts = [tuple(out.fact) for out in outputs if isinstance(out.fact, Triple)]
        assert _same(facts, [tuple(triple) for triple in triples(path)]), f"{len(facts)} triples: {_shown(facts)}"
        return
    if path.suffix == ".csv":
        _compare_csv(outputs, path)
        return
    expected = solutions(path)
    if isinstance(expected, bool):
        results = [out.fact.value for out in outputs if isinstance(out.fact, Boolean)]
        assert results == [expected], f"{results}, not {expected}"
        return
    rows = [_row(out.fact, expected.names) for out in outputs if isinstance(out.fact, Solution)]
    _compare(rows, expected, lax)


def _row(solution: Solution, names: Sequence[str]) -> tuple[Term | None, ...]:
    bound = dict(zip(solution.names, solution.values, strict=True))
    surplus = {name for name, value in bound.items() if value is not None} - set(names)
    assert not surplus, f"binds {surplus}"
    return tuple(bound.get(name) for name in names)


def _compare(rows: Sequence[tuple[Term | None, ...]], expected: Solutions, lax: bool) -> None:
    expectation: Sequence[tuple[Term | None, ...]] = expected.rows
    if lax:
        rows, expectation = list(dict.fromkeys(rows)), list(dict.fromkeys(expectation))
    assert _same(rows, expectation), (
        f"{len(rows)} solutions, not {len(expectation)}: {_shown(rows)}, not {_shown(expectation)}"
    )
    if expected.ordered and not any(cell and cell[0] == "_" for row in expectation for cell in row):
        assert list(rows) == list(expectation), f"in another order: {_shown(rows)}, not {_shown(expectation)}"


def _compare_csv(outputs: Sequence[Output], path: Path) -> None:
    names, *expected = csv.reader(path.read_text(encoding="utf-8").splitlines())
    rows = [_row(out.fact, names) for out in outputs if isinstance(out.fact, Solution)]
    expectation = [tuple(map(csv_cell, row)) for row in expected]
    assert isomorphic(list(lexical(rows)), expectation), f"{_shown(rows)}, not {_shown(expectation)}"


_Rows = Sequence[tuple[Term | None, ...]]


def _same(left: _Rows, right: _Rows) -> bool:
    return isomorphic(left, right) or isomorphic(_by_value(left), _by_value(right))


def _by_value(rows: _Rows) -> _Rows:
    return [tuple(_value(cell) if cell and is_literal(cell) else cell for cell in row) for row in rows]


def _value(literal: Term) -> Term:
    """Returns a text that literals of the same type and value share."""
    key = value_key(literal)
    if isinstance(key, tuple) and isinstance(key[-1], Decimal):
        key = (*key[:-1], key[-1].normalize())
    return Term(f'"{key}"')


def _shown(rows: Sequence[Sequence[Term | None]]) -> str:
    texts = [" ".join(cell or "UNDEF" for cell in row) for row in rows[:6]]
    return f"{texts}{' ...' if len(rows) > 6 else ''}"
