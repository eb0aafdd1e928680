"""Systems and plans as text, JSON, Mermaid and DOT."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squall import show
from squall.operators import AntiJoin, Apply, Column, Deliver, Distinct, Emit, Extend, Join, Match, Read, Unit, Value
from squall.operators import Test as Filter
from squall.plan import Input, Node, Plan, check
from squall.rdf import XSD, iri, literal
from squall.system import AtomPattern, Bind, Call, Construct, Pattern, Source, System, Test, Variable, Without

GOLDEN = Path(__file__).parent / "golden" / "cli"
E = "http://example.org/"
A, B, C = map(Variable, "abc")
TEN = literal("10", XSD + "int")

SYSTEM = System(
    subsystems=(
        System(
            name="all",
            sources=(Source("urn:stream"),),
            joinables=(Pattern(A, iri(E + "age"), B), AtomPattern(iri(E + "seen"), (A, C))),
            predicates=(
                Test(Call("urn:x-squall:jena:lessThan", (B, TEN))),
                Bind(Variable("d"), Call("urn:x-squall:jena:sum", (B, Call("urn:x-squall:jena:now", ())))),
                Without((Pattern(A, iri(E + "gone"), C),)),
            ),
            consequences=(Construct((Pattern(A, iri("urn:other#is"), literal('say "<http://no/iri>"')),)),),
            reentrant=False,
        ),
        System(name="axiom", consequences=(Construct((Pattern(iri(E + "a"), iri(E + "b"), iri(E + "c")),)),)),
    ),
    output="rstream",
)

PLAN = check(
    Plan(
        (
            Node("r", Read(Source())),
            Node("s", Read(Source("urn:stream"))),
            Node("u", Unit()),
            Node("m", Match((0, iri(E + "p"), 1)), (Input("r"), Input("d", feedback=True))),
            Node("v", Match((0, Value(TEN), None)), (Input("s"),)),
            Node("j", Join(((1, 0),), (0, 1, 3)), (Input("m", (1,)), Input("m", (0,)))),
            Node("x", Join((), ()), (Input("j", ()), Input("u", ()))),
            Node("n", AntiJoin(((0, 0),)), (Input("j", (0,)), Input("v", (0,)))),
            Node("t", Filter(Apply("urn:f#le", (Column(0), None, literal('"\\')))), (Input("n"),)),
            Node("e", Extend(Apply("urn:f#sum", (Column(0), Column(1)))), (Input("t"),)),
            Node("o", Emit((0, iri(E + "p"), 3), ("first", "second")), (Input("e"),)),
            Node("i", Emit((iri(E + "a"), iri(E + "b"), iri(E + "c")), ("axiom",)), (Input("x"),)),
            Node("z", Distinct(3), (Input("i", (0,)), Input("i", (0,)))),
            Node("d", Distinct(3), (Input("z", (0,)),)),
            Node("end", Deliver("dstream"), (Input("d", (0,)), Input("o", (0,)))),
        ),
        planner="hand",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("system.txt", show.text(SYSTEM)),
        ("system.json", show.as_json(SYSTEM)),
        ("plan.txt", show.text(PLAN)),
        ("plan.json", show.as_json(PLAN)),
        ("plan.mmd", show.mermaid(PLAN)),
        ("plan.dot", show.dot(PLAN)),
    ],
)
def test_golden(name: str, shown: str) -> None:
    assert shown + "\n" == (GOLDEN / name).read_text()


def test_every_node_is_drawn_once_and_every_edge_too() -> None:
    lines = show.text(PLAN).splitlines()
    for node in PLAN.nodes:
        assert sum(line.lstrip("│├└─ ").startswith(f"{node.id}: ") for line in lines) == 1
    assert sum("─ " in line for line in lines) == sum(len(node.inputs) for node in PLAN.nodes)


def test_an_iri_in_a_literal_is_left_alone() -> None:
    assert '"say \\"<http://no/iri>\\""' in show.text(SYSTEM)


def test_json_has_no_origins_and_can_be_read() -> None:
    data = json.loads(show.as_json(SYSTEM))
    assert data["kind"] == "System"
    assert "origin" not in data


def test_labels_cannot_break_out_of_their_quotes() -> None:
    for line in show.mermaid(PLAN).splitlines():
        assert line.count('"') in (0, 2)
    assert r"\"\\\"\\\\\"" in show.dot(PLAN)


def test_any_other_tree_prints_itself() -> None:
    assert show.text(iri(E)) == f"<{E}>"
