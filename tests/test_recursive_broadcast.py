"""Broadcast of vocabularies that rules extend: how they are chosen, and that outputs stay the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import squall
from squall.builders.distributed.plan.broadcast import (
    broadcast_candidates,
    choose_broadcast,
    general_inputs,
    vocabulary_inputs,
)
from squall.builders.distributed.plan.partitioning import BROADCAST, Address, output_partitioning
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.stages import Exchange, partitionings_of
from squall.model import Source
from squall.plan import Input, Node, Plan
from squall.plan.operators import Construct, Distinct, Join, Match, Scan
from squall.rdf import Event, iri
from squall.testing import assert_as_oracle, static, stream
from tests import in_memory
from tests.laws import FEW_EXAMPLES, examples, examples_of

PREFIX = "@prefix : <http://example.org/>.\n@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.\n"
VOCABULARY = {
    "domains": "[(?p :domain ?c) (?s ?p ?o) -> (?s rdf:type ?c)]",
    "ranges": "[(?p :range ?c) (?s ?p ?o) -> (?o rdf:type ?c)]",
    "classes": "[(?c :under ?d) (?s rdf:type ?c) -> (?s rdf:type ?d)]",
    "properties": "[(?p :implies ?q) (?s ?p ?o) -> (?s ?q ?o)]",
    "inverses": "[(?p :inverse ?q) (?s ?p ?o) -> (?o ?q ?s)]",
}
OTHERS = {
    "chains": "[(?p :implies ?q) (?q :implies ?r) -> (?p :implies ?r)]",
    "equal": "[(?c :same ?d) -> (?c :under ?d) (?d :under ?c)]",
    "mutual": "[(?c :under ?d) (?d :under ?c) -> (?c :same ?d)]",
    "what is new": "[(?s rdf:type :c0) (?s :to ?o) -> (?s :implies ?o)]",
}
QUERIES = [
    "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c",
    "SELECT ?s { ?s a :c1 FILTER NOT EXISTS { ?s a :c2 } }",
    "SELECT ?c ?o { ?c :under ?d . ?d :under ?e OPTIONAL { ?o a ?e } }",
]


TAKEN_BACK = VOCABULARY["classes"] + "[(?c :same ?d) noValue(?c, :implies) -> (?c :under ?d)]"


def rules(draw: Random) -> str:
    if draw.random() < 0.1:
        return PREFIX + TAKEN_BACK
    names = draw.sample([*VOCABULARY], draw.randrange(1, 5)) + draw.sample([*OTHERS], draw.randrange(3))
    return PREFIX + "\n".join({**VOCABULARY, **OTHERS}[name] for name in names)


def program(draw: Random, folder: Path, window: str) -> squall.System:
    """Draws rules, and sometimes a query that reads their conclusions."""
    files = [folder / "rules.jena", folder / "query.rq"]
    files[0].write_text(rules(draw))
    files[1].write_text("PREFIX : <http://example.org/>\n" + draw.choice(QUERIES))
    return squall.compile(*files[: draw.choice([1, 2, 2])], window=window)


def said(draw: Random, count: int, about: float) -> str:
    """Draws facts about few subjects, many of them about predicates and classes."""
    terms = ["to", "at", "implies", "p0", "p1"]
    lines = []
    for time in range(count):
        if draw.random() < about:
            fact = (draw.choice(terms), draw.choice(["domain", "range", "under", "implies", "inverse", "same"]),
                    draw.choice([*terms, "c0", "c1", "c2"]))  # fmt: skip
        else:
            fact = (draw.choice(["a", "b", "c", "to"]), draw.choice(terms), draw.choice(["a", "b", "c", "c1"]))
        lines.append(f"{time} " + " ".join(f":{name}" for name in fact))
    return "\n".join(lines)


def random_static_data(draw: Random, count: int) -> list[Event]:
    lines = (line.partition(" ")[2] for line in said(draw, count, 1.0).splitlines())
    return static("\n".join(lines))


@examples(12)
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("window", ["RANGE 9ms", "RANGE 12ms STEP 4ms", "LANDMARK"])
@pytest.mark.more
def test_each_output_is_emitted_exactly_once(window: str, output: str, many: int, tmp_path: Path) -> None:
    """Any vocabularies are broadcast, and any task adds to them, with failures at any point."""
    tried = Counter[bool]()
    for seed in range(many):
        draw = Random(f"{seed} {window} {output}")
        compaction_interval = draw.choice([1, 2, 100])
        system = replace(program(draw, tmp_path, window), output=output)
        plan = squall.plan(system, draw.choice(["rete", "greedy"]))
        can_be = broadcast_candidates(plan)
        entries = sorted(frozenset().union(*can_be.values()))
        rows = {entry: 1 for entry in entries if draw.random() < 0.9}
        broadcast_inputs = choose_broadcast(plan, rows, [], 1000, can_be)
        tried[any(is_copied(plan, address, broadcast_inputs) for address in broadcast_inputs)] += 1
        assert_consistent_replication(plan, broadcast_inputs)
        facts, events = random_static_data(draw, 6), stream(said(draw, 24, 0.2))
        places = sorted(draw.sample(range(len(events)), 3))
        batches = [events[begin:end] for begin, end in pairwise([0, *places, len(events)])]
        workers = in_memory.Workers(draw, draw.choice([0, 1_000_000]))
        outputs = in_memory.run(
            plan,
            batches,
            facts,
            draw.choice([0, 0, 0, 20]),
            workers=workers,
            broadcast_inputs=broadcast_inputs,
            compaction_interval=compaction_interval,
        )
        assert_as_oracle(system, outputs, events, facts)
    assert FEW_EXAMPLES or tried[True] > examples_of(many) // 6


def assert_consistent_replication(plan: Plan, broadcast_inputs: frozenset[Address]) -> None:
    """Checks that either every task makes all rows of an input that do not come from sources, or one task makes each of
    them."""
    keys = partitionings_of(plan, broadcast_inputs)
    results: dict[Address, set[bool]] = {}
    for hop in physical_plan(plan, broadcast_inputs).exchanges:
        if plan.by_id[hop.producer].inputs:
            alike = output_partitioning(plan, plan.by_id[hop.producer], keys) == BROADCAST
            results.setdefault((hop.consumer, hop.port), set()).add(alike)
    assert all(len(result) == 1 for result in results.values())


def is_copied(plan: Plan, address: Address, broadcast_inputs: frozenset[Address]) -> bool:
    """Returns whether the input follows a replicated set to which other tasks add rows."""
    id, port = address
    return any(
        isinstance(plan.by_id[hop.producer].op, Distinct)
        and any(
            item.shuffles and plan.by_id[item.producer].inputs for item in into(plan, hop.producer, broadcast_inputs)
        )
        for hop in into(plan, id, broadcast_inputs)
        if hop.port == port
    )


def into(plan: Plan, id: str, broadcast_inputs: frozenset[Address]) -> list[Exchange]:
    return [hop for hop in physical_plan(plan, broadcast_inputs).exchanges if hop.consumer == id]


def test_what_facts_say_of_anything_stays_where_it_is() -> None:
    """In RDFS, only facts about objects are shuffled."""
    text = "\n".join(VOCABULARY[name] for name in ("domains", "ranges", "classes", "properties"))
    plan = squall.plan(squall.compile(PREFIX + text, lexer="jena"))
    rows = dict.fromkeys(frozenset().union(*broadcast_candidates(plan).values()), 3)
    broadcast_inputs = choose_broadcast(plan, rows, general_inputs(plan), 10, vocabulary_inputs(plan))
    assert broadcast_inputs == vocabulary_inputs(plan)
    assert len(broadcast_inputs) == 4
    copies = {
        id
        for id, _ in partitionings_of(plan, broadcast_inputs)
        if f"{id} in every task, for itself" in str(physical_plan(plan, broadcast_inputs))
    }
    moving = [
        hop
        for hop in physical_plan(plan, broadcast_inputs).exchanges
        if hop.shuffles and plan.by_id[hop.producer].inputs
    ]
    (to_objects,) = {hop.consumer for hop in moving} - copies
    assert f"{to_objects} with all rows of input " in str(physical_plan(plan, broadcast_inputs))
    assert not choose_broadcast(plan, rows, general_inputs(plan), 10), "unless they are named"
    assert not choose_broadcast(plan, rows, general_inputs(plan), 2, vocabulary_inputs(plan)), "there are too many"


def test_a_rule_over_any_fact_is_no_vocabulary() -> None:
    path = "[(?a :edge ?b) -> (?a :path ?b)] [(?a :path ?b) (?b :path ?c) (?c :good ?d) -> (?a :path ?c)]"
    assert not vocabulary_inputs(squall.plan(squall.compile(PREFIX + path, lexer="jena")))
    any_two = "[(?s ?p ?o) (?o ?q ?r) -> (?s :near ?r)]"
    assert not vocabulary_inputs(squall.plan(squall.compile(PREFIX + any_two, lexer="jena")))


def test_retractable_rows_are_not_replicated() -> None:
    def found(body: str) -> frozenset[Address]:
        text = f"{PREFIX}{VOCABULARY['classes']} [{body} -> (?c :under ?d)]"
        return vocabulary_inputs(squall.plan(squall.compile(text, lexer="jena")))

    assert found("(?c :same ?d)")
    assert not found("(?c :same ?d) noValue(?c, :alone)")


def test_replicated_and_partitioned_rows_are_not_merged() -> None:
    """`mixed` would get rows of `static` that every task makes, and rows of `derived` that one task makes."""
    read = Node("read", Scan(Source()))
    cells = {name: (0, iri(f"http://example.org/{name}"), 1) for name in ("static", "facts", "more")}
    again = {"facts": (Input("derived", feedback=True),)}
    matches = [Node(name, Match(fits), (Input("read"), *again.get(name, ()))) for name, fits in cells.items()]
    sets = [
        Node("own", Distinct(2), (Input("static", (0,)),)),
        Node("any", Distinct(2), (Input("facts", (0,)),)),
        Node("derived", Distinct(2), (Input("paired", (0,)),)),
        Node("mixed", Distinct(2), (Input("both", (0,)), Input("more", (0,)))),
    ]
    results = [
        Node(f"facts of {id}", Construct((0, cells["more"][1], 1), ("rule",)), (Input(id),))
        for id in ("own", "derived")
    ]
    both = Node("both", Match(cells["more"]), tuple(Input(node.id) for node in results))
    joins = [
        Node("paired", Join(((0, 0),), (1, 3)), (Input("own", (0,)), Input("any", (0,)))),
        Node("last", Join(((0, 0),), (1, 3)), (Input("mixed", (0,)), Input("any", (0,)))),
    ]
    plan = Plan((read, *matches, *sets[:2], joins[0], sets[2], *results, both, sets[3], joins[1]))
    rows = dict.fromkeys(frozenset().union(*broadcast_candidates(plan).values()), 1)
    assert {("paired", 0), ("last", 0)} <= broadcast_candidates(plan).keys()
    broadcast_inputs = choose_broadcast(plan, rows, [("any", 0)], 10, broadcast_candidates(plan))
    assert_consistent_replication(plan, broadcast_inputs)
    alone = choose_broadcast(plan, rows, [("any", 0), ("own", 0)], 10, broadcast_candidates(plan))
    assert alone == {("last", 0)}
    assert_consistent_replication(plan, alone)
