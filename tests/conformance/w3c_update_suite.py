"""The update tests of the suite ``w3c-rdf-tests``: what is in the default graph after the operations, one by one.

An operation is a standing rule here. What it does once is what it inserts and deletes at the first instant: its rule
is run over the graph as it was, without reading what it makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import squall
from squall.lexers.sparql import SparqlLexer
from squall.lexers.sparql import tree as q
from squall.rdf import Event, Triple
from squall.stages import Options
from squall.system import Construct, Delete, Insert, Pattern, System, Variable, rules
from squall.testing import isomorphic
from squall.translators.sparql import translator
from tests.conformance import Case, LeftOut, Stages
from tests.conformance.programs import translated
from tests.conformance.w3c_manifests import MF, UT, Graph, Node, manifest, path_of, triples

_S, _P, _O = (Variable(name) for name in "spo")
_COPY = System(
    "copy", joinables=(Pattern(_S, _P, _O),), consequences=(Construct((Pattern(_S, _P, _O),)),), reentrant=False
)


def cases(folder: Path) -> Iterator[Case]:
    """The cases of the index, in its order."""
    for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
        if entry["dir"].startswith("sparql/") and "UpdateEvaluationTest" in entry["type"]:
            yield Case(entry["id"], partial(_run, folder, entry))


def _run(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    place = folder / entry["dir"]
    graph = manifest(place)
    test = graph.test(entry["id"].rpartition("#")[2])
    action, result = graph.value(test, MF + "action"), graph.value(test, MF + "result")
    assert action is not None
    request = graph.value(action, UT + "request")
    assert request is not None
    path = path_of(request)
    program = SparqlLexer(base=path.as_uri())(path.read_bytes().decode("utf-8"), path.name)
    if graph.values(action, UT + "graphData"):
        raise LeftOut("updates of named graphs are not supported yet")
    facts = _data(graph, action)
    for statement in program.statements:
        facts = updated(facts, q.Program((statement,), program.name), stages)
    due = set() if result is None else _data(graph, result)
    shown = f"left: {sorted(map(str, facts))[:4]}, not {sorted(map(str, due))[:4]}"
    assert isomorphic([tuple(fact) for fact in facts], [tuple(fact) for fact in due]), shown


def _data(graph: Graph, node: Node) -> set[Triple]:
    return {triple for document in graph.values(node, UT + "data") for triple in triples(path_of(document))}


def updated(facts: set[Triple], program: q.Program, stages: Stages) -> set[Triple]:
    """The graph after an operation."""
    system = translated(program, translator)
    found = [replace(rule, reentrant=False) for rule in rules(system)]
    inserted = _run_rules([_inserting(rule) for rule in found], facts, "istream", stages)
    left = _run_rules([_COPY, *(_only(rule, Delete) for rule in found)], facts, "rstream", stages)
    last = max((time for time, _ in left), default=0)
    return {fact for time, fact in inserted if time <= 0} | {fact for time, fact in left if time == last}


def _inserting(rule: System) -> System:
    """The rule with what it inserts into the default graph as what it says of each solution."""
    made = [one for one in rule.consequences if isinstance(one, Insert) and one.graph is None]
    return replace(rule, consequences=tuple(Construct(one.template) for one in made))


def _only(rule: System, kind: type) -> System:
    return replace(rule, consequences=tuple(one for one in rule.consequences if isinstance(one, kind)))


def _run_rules(found: list[System], facts: Iterable[Triple], output: str, stages: Stages) -> list[tuple[int, Triple]]:
    plan = squall.plan(System(subsystems=tuple(found), output=output), stages.planner)
    outputs = squall.build(plan, stages.builder, Options()).run([[Event(0, tuple(facts)), Event(2, ())]])
    return [(out.time, out.fact) for out in outputs if isinstance(out.fact, Triple)]
