"""Printing of systems and plans: text, JSON, Mermaid, DOT, SVG and HTML, with metrics and without."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall as package
from squall import explain
from squall import model as tps
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.explain.words import heat, metrics_text
from squall.model import AtomPattern, Bind, Call, Construct, Filter, NotExists, Pattern, Source, System, Variable
from squall.model.windows import CountWindow, HoppingWindow, SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan import operators as pps
from squall.plan.node_metrics import NodeMetric
from squall.plan.node_rules import rules_by_node
from squall.plan.operators import (
    AntiJoin,
    Column,
    Distinct,
    Extend,
    Invoke,
    Join,
    Match,
    Scan,
    Sink,
    Unit,
    Value,
)
from squall.plan.validation import check
from squall.rdf import XSD, Term, iri, literal
from tests.laws import examples_of

GOLDEN = Path(__file__).parent / "golden"
E = "http://example.org/"
A, B, C = map(Variable, "abc")
TEN = literal("10", XSD + "int")
BELOW = Call("urn:x-squall:jena:lessThan", (B, TEN))

SYSTEM = System(
    subsystems=(
        System(
            name="all",
            sources=(Source("urn:stream"),),
            joinables=(Pattern(A, iri(E + "age"), B), AtomPattern(iri(E + "seen"), (A, C))),
            predicates=(
                Filter(BELOW),
                Bind(Variable("d"), Call("urn:x-squall:jena:sum", (B, Call("urn:x-squall:jena:now", ())))),
                NotExists((Pattern(A, iri(E + "gone"), C),)),
            ),
            consequences=(Construct((Pattern(A, iri("urn:other#is"), literal('say "<http://no/iri>"')),)),),
            reentrant=False,
        ),
        System(name="axiom", consequences=(Construct((Pattern(iri(E + "a"), iri(E + "b"), iri(E + "c")),)),)),
    ),
    output="rstream",
)

QUERY = System(
    name="query",
    sources=(
        Source(
            "",
            SlidingWindow(10_000),
            (("urn:s", CountWindow(5)), ("urn:t", HoppingWindow(60_000, 60_000))),
            removals=True,
        ),
    ),
    joinables=(
        Pattern(A, iri(E + "age"), B),
        tps.Union(
            (
                System(joinables=(Pattern(A, iri(E + "near"), C), Pattern(C, iri(E + "near"), A))),
                System(sources=(Source("urn:u", SlidingWindow(1500)),), joinables=(Pattern(A, iri(E + "far"), C),)),
            )
        ),
        System(
            joinables=(Pattern(A, iri(E + "kind"), B),),
            distinct=True,
            slice=tps.Slice((tps.Order(A), tps.Order(BELOW, descending=True)), offset=2, limit=3),
            consequences=(tps.Select((A, B)),),
        ),
    ),
    predicates=(
        tps.TableFunction((B, C), "urn:f#split", (A, TEN)),
        tps.Optional(System(joinables=(Pattern(A, iri(E + "name"), Variable("n")),)), BELOW),
        NotExists((System(joinables=(Pattern(A, iri(E + "gone"), C),), predicates=(Filter(BELOW),)),)),
    ),
    grouping=tps.Grouping(
        (A,),
        (
            tps.Aggregate(Variable("n"), "count"),
            tps.Aggregate(Variable("l"), "group_concat", B, distinct=True, separator=", "),
        ),
    ),
    consequences=(
        tps.Delete((Pattern(A, iri(E + "old"), B),)),
        tps.Insert((Pattern(A, iri(E + "new"), B),), iri(E + "graph")),
        tps.Select((A, Variable("n"), Variable("l"))),
    ),
    report=tps.Report("periodic", 5000),
)

PLAN = check(
    Plan(
        (
            Node("r", Scan(Source())),
            Node("s", Scan(Source("urn:stream"))),
            Node("u", Unit()),
            Node("m", Match((0, iri(E + "p"), 1)), (Input("r"), Input("d", feedback=True))),
            Node("v", Match((0, Value(TEN), None)), (Input("s"),)),
            Node("j", Join(((1, 0),), (0, 1, 3)), (Input("m", (1,)), Input("m", (0,)))),
            Node("x", Join((), ()), (Input("j", ()), Input("u", ()))),
            Node("n", AntiJoin(((0, 0),)), (Input("j", (0,)), Input("v", (0,)))),
            Node("t", ops.Filter(Invoke("urn:f#le", (Column(0), None, literal('"\\')))), (Input("n"),)),
            Node("e", Extend(Invoke("urn:f#sum", (Column(0), Column(1)))), (Input("t"),)),
            Node("o", ops.Construct((0, iri(E + "p"), 3), ("first", "second")), (Input("e"),)),
            Node("i", ops.Construct((iri(E + "a"), iri(E + "b"), iri(E + "c")), ("axiom",)), (Input("x"),)),
            Node("z", Distinct(3), (Input("i", (0,)), Input("i", (0,)))),
            Node("d", Distinct(3), (Input("z", (0,)),)),
            Node("end", Sink("dstream"), (Input("d", (0,)), Input("o", (0,)))),
        ),
        planner="hand",
    )
)  # fmt: skip

LESS = Invoke("urn:f#le", (Column(0), Column(2)))
QUERY_PLAN = check(
    Plan(
        (
            Node("r", Scan(Source("", SlidingWindow(10_000), (("urn:s", CountWindow(5)),), removals=True))),
            Node("m", Match((0, iri(E + "p"), 1)), (Input("r"),)),
            Node("l", pps.LeftJoin(((0, 0),), (0, 1, 3), LESS), (Input("m", (0,)), Input("m", (0,)))),
            Node("k", pps.LeftJoin((), (0,)), (Input("m", ()), Input("m", ()))),
            Node("p", pps.Project((0, None, 0)), (Input("k"),)),
            Node("q", pps.ConstantFilter(1, iri(E + "k")), (Input("l"),)),
            Node("u", pps.Union(), (Input("q"), Input("p"))),
            Node("a", pps.TableFunction("urn:f#split", (Column(0), TEN), 2), (Input("u"),)),
            Node(
                "g",
                pps.Group(
                    (0, 1),
                    (
                        pps.Aggregate("count"),
                        pps.Aggregate("sum", Column(2), distinct=True),
                        pps.Aggregate("group_concat", LESS, separator="; "),
                    ),
                ),
                (Input("a", (0,)),),
            ),
            Node("h", pps.Group((), (pps.Aggregate("count"),)), (Input("g", ()),)),
            Node("i", pps.Slice(((Column(0), False), (LESS, True)), 10, 1000), (Input("g", ()),)),
            Node("j", pps.Slice(offset=1), (Input("h", ()),)),
            Node("b", Unit()),
            Node("d", Extend(TEN), (Input("b"),)),
            Node("e", Extend(TEN), (Input("d"),)),
            Node("c", pps.TransitiveClosure(), (Input("e", ()),)),
            Node("w", pps.Select(("a", "n"), (0, 2), ("query",), ((pps.Column(2), True),)), (Input("i"),)),
            Node("x", pps.Select((), (), ("ask",)), (Input("j"),)),
            Node(
                "y",
                pps.Update(((None, 0, iri(E + "p"), 1),), ((1, 0, iri(E + "q"), 1),), rules=("end",)),
                (Input("c", ()),),
            ),
            Node("s", ops.Construct((0, iri(E + "p"), 1), ("urn:stream",), reentrant=False), (Input("m"),)),
            Node("t", Distinct(3), (Input("s", (0,)),)),
            Node(
                "f",
                pps.DerivedStream(
                    tps.Source("urn:stream", SlidingWindow(5000)), "rstream", tps.Report("periodic", 1000)
                ),
                (Input("t", ()),),
            ),
            Node("n", Match((0, iri(E + "q"), None)), (Input("f"),)),
            Node("v", pps.Select(("a",), (0,), ("reader",)), (Input("n"),)),
            Node("end", Sink("rstream", report=tps.Report("nonempty")), (Input("w", ()), Input("x", ()))),
            Node("emitted", Sink("istream"), (Input("t", (0,)), Input("v", ()))),
        )
    )
)

FIGURES = {
    "r": NodeMetric(rows=1200, seconds=0.0004),
    "m": NodeMetric(0.25, 1, 0, 0.0000051),
    "j": NodeMetric(1200.4, 998, 10, 0.0012),
    "n": NodeMetric(estimated=9),
    "e": NodeMetric(seconds=2),
    "o": NodeMetric(1, 123_456_789, 7, 120.4),
    "end": NodeMetric(state=1_000_000),
}
MULTIWAY_PLAN = with_multiway_joins(
    Plan(
        (
            Node("r", Scan(Source())),
            *(Node(name, Match((0, iri(E + name), 1)), (Input("r"),)) for name in ("p", "q", "s")),
            Node("j", Join(((0, 1),), (1, 2, 3)), (Input("p", (0,)), Input("q", (1,)))),
            Node("k", Join(((2, 0),), (0, 4)), (Input("j", (2,)), Input("s", (0,)))),
            Node("end", Sink("istream"), (Input("k", ()),)),
        )
    )
)
DRAWN = ["svg", "html"]
STRIDER = package.compile(
    """STREAMING { WINDOW [10 Seconds] SLIDE [5 Seconds] BATCH [1 Second] }
    REGISTER { QUERYID [Cold] SPARQL [
      PREFIX : <http://example.org/>
      SELECT ?room ?t { ?room :is :Office ; :temperature ?t FILTER(?t < 18) }
    ] }
    REGISTER { QUERYID [Warm] SPARQL [
      PREFIX : <http://example.org/>
      SELECT ?room { ?room :is :Office ; :temperature ?t FILTER(?t > 20) }
    ] }""",
    lexer="strider",
)
"""Two queries over one window, which share the join."""


SEQUENCE = package.compile(
    """
    PREFIX : <http://example.org/>
    SELECT ?user (start(?first) AS ?since) WHERE {
      { ?user :login :failed } AS ?first NOT { ?user :reset ?by } SEQ { ?user :login :ok } BEFORE 10s WITHIN 1m
    }
    """,
    lexer="ctsparql",
)
SEQUENCE_PLAN = package.plan(SEQUENCE)
"""A sequence with a negation between its steps."""


ITERATION = package.compile(
    """
    PREFIX : <http://example.org/>
    SELECT ?room ?n WHERE {
      { ?room :temperature ?t }{2,9} BY ?room WHILE (?t > PREVIOUS(?t)) MEASURES (COUNT(*) AS ?n) WITHIN 1m
    }
    """,
    lexer="ctsparql",
)
ITERATION_PLAN = package.plan(ITERATION)
GATED = package.compile(
    """
    PREFIX : <http://example.org/>
    SELECT ?road ?car WHERE { { ?road :has :Ice } SEQ { ?car :on ?road ; :speed ?v } WITHIN 1m }
    """,
    lexer="ctsparql",
)
GATED_PLAN = package.plan(GATED)
"""A step that waits for the one before it."""


LARS = package.compile(
    """
    @prefix : <http://example.org/>.
    @tick 1 sec.
    alarm(R) :- hot(R, yes) in [3 sec step 2 sec], smoke(R, yes) always in [10 sec].
    late(R) at T + 60 :- alarm(R) at T in [5 min].
    """,
    lexer="lars",
)
LARS_PLAN = package.plan(LARS)
"""Windows in bodies, and a head with a time."""

CONSUMPTION = package.compile(
    """
    PREFIX : <http://example.org/>
    SELECT ?lift ?call ?stop WHERE {
      { ?lift :calledBy ?call } EACH SEQ { ?lift :stopsAt ?stop } WITHIN 1m CONSUME BY ?lift
    }
    """,
    lexer="ctsparql",
)
CONSUMPTION_PLAN = package.plan(CONSUMPTION)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cli/system.txt", explain.text(SYSTEM)),
        ("cli/system.json", explain.as_json(SYSTEM)),
        ("cli/plan.txt", explain.text(PLAN)),
        ("cli/plan.json", explain.as_json(PLAN)),
        ("cli/plan.mmd", explain.mermaid(PLAN)),
        ("cli/plan.dot", explain.dot(PLAN)),
        ("explain/query.txt", explain.text(QUERY)),
        ("explain/query-plan.txt", explain.text(QUERY_PLAN)),
        ("explain/strider.txt", explain.text(STRIDER)),
        ("explain/strider-plan.txt", explain.text(package.plan(STRIDER))),
        ("explain/sequence.txt", explain.text(SEQUENCE)),
        ("explain/sequence-plan.txt", explain.text(SEQUENCE_PLAN)),
        ("explain/iteration.txt", explain.text(ITERATION)),
        ("explain/iteration-plan.txt", explain.text(ITERATION_PLAN)),
        ("explain/lars.txt", explain.text(LARS)),
        ("explain/lars-plan.txt", explain.text(LARS_PLAN)),
        ("explain/consumption.txt", explain.text(CONSUMPTION)),
        ("explain/consumption-plan.txt", explain.text(CONSUMPTION_PLAN)),
        ("explain/gated-plan.txt", explain.text(GATED_PLAN)),
        ("explain/figures.txt", explain.text(PLAN, FIGURES)),
        ("explain/multiway-plan.txt", explain.text(MULTIWAY_PLAN, {"k": NodeMetric(2, 3, 5, joins=("k", "j"))})),
        ("explain/figures.mmd", explain.mermaid(PLAN, FIGURES)),
        ("explain/figures.dot", explain.dot(PLAN, FIGURES)),
    ],
)
def test_golden(name: str, shown: str) -> None:
    assert shown + "\n" == (GOLDEN / name).read_text()


def test_every_operator_is_in_a_golden_plan() -> None:
    plans = (PLAN, QUERY_PLAN, MULTIWAY_PLAN, SEQUENCE_PLAN, ITERATION_PLAN, GATED_PLAN, LARS_PLAN, CONSUMPTION_PLAN)
    text = {type(node.op) for plan in plans for node in plan.nodes}
    assert text == set(get_args(pps.Operator))


@pytest.mark.parametrize("plan", [PLAN, QUERY_PLAN])
def test_every_node_is_drawn_once_and_every_edge_too(plan: Plan) -> None:
    lines = explain.text(plan).splitlines()
    for node in plan.nodes:
        assert sum(line.lstrip("│├└─ ").startswith(f"{node.id}: ") for line in lines) == 1
    assert sum("─ " in line for line in lines) == sum(len(node.inputs) for node in plan.nodes)


def test_a_node_that_only_feedback_leads_to_is_drawn() -> None:
    emit = ops.Construct((0, iri(E + "p"), 0), ("axiom",))
    loop = Plan(
        (
            Node("m", Match((0, iri(E + "p"), 0)), (Input("d", feedback=True),)),
            Node("e", emit, (Input("m"),)),
            Node("d", Distinct(3), (Input("e", (0,)),)),
            Node("end", Sink(), (Input("d", (0,)),)),
        )
    )
    text = explain.text(check(loop))
    assert "\nm: match" in text
    assert "-> m  [feedback]" in text


def test_an_iri_in_a_literal_is_left_alone() -> None:
    assert '"say \\"<http://no/iri>\\""' in explain.text(SYSTEM)


def test_json_has_no_origins_and_can_be_read() -> None:
    data = json.loads(explain.as_json(SYSTEM))
    assert data["kind"] == "System"
    assert "origin" not in data


def test_json_has_the_metrics() -> None:
    data = json.loads(explain.as_json(PLAN, FIGURES))
    assert data["metrics"]["j"] == {"estimated": 1200.4, "rows": 998, "state": 10, "seconds": 0.0012, "joins": None}
    assert "metrics" not in json.loads(explain.as_json(PLAN))


def test_labels_cannot_break_out_of_their_quotes() -> None:
    for line in explain.mermaid(PLAN).splitlines():
        assert line.count('"') in (0, 2)
    assert r"\"\\\"\\\\\"" in explain.dot(PLAN)


def test_any_other_tree_prints_itself() -> None:
    assert explain.text(iri(E)) == f"<{E}>"


# Node metrics


def test_metrics_are_printed_as_in_the_docs() -> None:
    assert metrics_text(NodeMetric(1200, 998, 10, 0.0012)) == "~1,200 rows, 998 rows, state 10, 1.2 ms"
    assert metrics_text(NodeMetric(rows=1)) == "1 row"
    assert metrics_text(NodeMetric(rows=9, joins=("b", "a"))) == "9 rows, multiway join of a + b"
    assert metrics_text(NodeMetric()) == metrics_text(None) == ""


@given(st.floats(0, 1e6))
def test_a_time_has_a_unit_that_fits(seconds: float) -> None:
    number, unit = metrics_text(NodeMetric(seconds=seconds)).replace(",", "").split()
    size = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]
    assert float(number) * size == pytest.approx(seconds, rel=0.06, abs=0.06e-6)
    assert unit == "s" or float(number) <= 1000


def test_the_hottest_nodes_are_those_that_take_most_time_or_else_those_with_most_rows() -> None:
    assert heat(FIGURES) == {"o": 4}
    assert heat({"a": NodeMetric(rows=9), "b": NodeMetric(rows=100), "c": NodeMetric(rows=45)}) == {
        "a": 1, "b": 4, "c": 3,
    }  # fmt: skip
    assert heat(None) == heat({"a": NodeMetric(rows=0)}) == heat({"a": NodeMetric(estimated=7)}) == {}


@pytest.mark.parametrize("format", ["mermaid", "dot", "svg", "html"])
def test_only_hot_nodes_are_coloured(format: str) -> None:
    colour = {"mermaid": "class n10 hot4", "dot": "fillcolor"}.get(format, 'class="node hot4"')
    assert explain.FORMATS[format](PLAN, FIGURES).count(colour) == 1
    assert colour not in explain.FORMATS[format](PLAN, None)


@pytest.mark.parametrize("format", [format for format in explain.FORMATS if format != "json"])
def test_every_format_shows_the_metrics(format: str) -> None:
    assert "~1,200 rows, 998 rows, state 10, 1.2 ms" in explain.FORMATS[format](PLAN, FIGURES)


def test_a_node_serves_the_rules_that_it_leads_to_or_comes_from() -> None:
    rules = rules_by_node(PLAN)
    assert sorted(rules["j"]) == ["axiom", "first", "second"]
    assert rules["e"] == ("first", "second")
    assert rules["d"] == rules["u"] == ("axiom",)
    assert rules_by_node(QUERY_PLAN)["c"] == ("end",)


# Pictures and pages

NASTY = "</script><!--]]>&\"'<script>"


def renamed(plan: Plan, text: str) -> Plan:
    """Returns the plan with a constant and the name of a rule replaced by this text."""
    changes: dict[str, pps.Operator] = {
        "m": Match((0, literal(text), 1)),
        "o": ops.Construct((0, Term(f"<urn:{text}>"), 3), (text,)),
    }
    return replace(plan, nodes=tuple(replace(node, op=changes.get(node.id, node.op)) for node in plan.nodes))


def picture(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


@pytest.mark.parametrize("plan", [PLAN, QUERY_PLAN])
def test_a_picture_has_every_node_and_every_edge(plan: Plan) -> None:
    root = picture(explain.svg(plan, FIGURES))
    inputs = [edge for node in plan.nodes for edge in node.inputs]
    assert sorted(node.get("data-id", "") for node in of_class(root, "node")) == sorted(node.id for node in plan.nodes)
    assert sorted(edge.get("data-from", "") for edge in of_class(root, "edge")) == sorted(edge.node for edge in inputs)
    assert len(of_class(root, "feedback")) == sum(edge.feedback for edge in inputs)


@settings(max_examples=examples_of(30))
@given(st.text())
def test_the_picture_of_any_plan_is_well_formed_xml(text: str) -> None:
    root = picture(explain.svg(renamed(PLAN, text)).encode("utf-8").decode("utf-8"))
    assert len(of_class(root, "node")) == len(PLAN.nodes)


def test_a_picture_of_nothing_but_the_end() -> None:
    root = picture(explain.svg(check(Plan((Node("end", Sink()),)))))
    assert len(of_class(root, "node")) == 1


class Scripts(HTMLParser):
    """The text of each script of a page, and the addresses that the page would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inside = ""
        self.texts: dict[str, str] = {}
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = dict(attrs)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "data", "srcset")]
        self.inside = (names.get("type") or "program") if tag == "script" else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data


def test_a_page_has_the_details_of_each_node() -> None:
    data = json.loads(Scripts(explain.html(PLAN, FIGURES)).texts["application/json"])
    nodes = {node["id"]: node for node in data["nodes"]}
    assert list(nodes) == [node.id for node in PLAN.nodes]
    assert nodes["j"] == {
        "id": "j",
        "kind": "Join",
        "words": "join on left $1 = right $0, output $0 $1 $3",
        "columns": 3,
        "inputs": [{"node": "m", "words": "partitioned by $1"}, {"node": "m", "words": "partitioned by $0"}],
        "rules": nodes["r"]["rules"],
        "metrics": {"estimated": "~1,200 rows", "rows": "998 rows", "state": "state 10", "time": "1.2 ms"},
    }
    assert sorted(data["rules"][number] for number in nodes["e"]["rules"]) == ["first", "second"]


@settings(max_examples=examples_of(30))
@given(st.text() | st.just(NASTY))
def test_nothing_in_a_plan_becomes_markup_of_the_page(text: str) -> None:
    plain, page = Scripts(explain.html(PLAN)), Scripts(explain.html(renamed(PLAN, text)))
    # The lines of a label and the list of prefixes depend on the text.
    tags = [[tag for tag in item.tags if tag not in ("tspan", "dl", "dt", "dd", "h2")] for item in (plain, page)]
    assert tags[0] == tags[1]
    assert page.texts["program"] == plain.texts["program"]
    assert text in json.loads(page.texts["application/json"])["rules"]


def test_a_page_loads_nothing() -> None:
    page = explain.html(PLAN)
    assert Scripts(page).loads == []
    assert "default-src 'none'" in page
    for way in ("@import", "fetch(", "XMLHttpRequest", "import(", "innerHTML", "eval("):
        assert way not in page
    assert page.count("url(") == page.count("url(#arrow)")


@pytest.mark.skipif(shutil.which("node") is None, reason="no JavaScript engine")
def test_the_program_of_a_page_is_javascript(tmp_path: Path) -> None:
    path = tmp_path / "page.js"
    path.write_text(Scripts(explain.html(PLAN)).texts["program"])
    outputs = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, check=False)
    assert outputs.returncode == 0, outputs.stderr


def many(rules: int) -> Plan:
    """Returns the plan of rules that share a match; each has a match, a join and a conclusion of its own."""
    nodes = [Node("r", Scan(Source())), Node("m", Match((0, iri(E + "p"), 1)), (Input("r"),))]
    for number in range(rules):
        nodes += [
            Node(f"m{number}", Match((0, iri(E + "q"), iri(f"{E}{number}"))), (Input("r"),)),
            Node(f"j{number}", Join(((0, 0),), (0, 1)), (Input("m", (0,)), Input(f"m{number}", (0,)))),
            Node(f"t{number}", ops.Filter(Invoke("urn:f#le", (Column(0), TEN))), (Input(f"j{number}"),)),
            Node(f"e{number}", ops.Construct((0, iri(E + "s"), 1), (f"rule {number}",)), (Input(f"t{number}"),)),
        ]
    ends = tuple(Input(f"e{number}", (0,)) for number in range(rules))
    return check(Plan((*nodes, Node("end", Sink(), ends))))


@pytest.mark.parametrize("format", DRAWN)
def test_a_large_plan_is_drawn_in_seconds(format: str) -> None:
    plan = many(500)
    begin = time.process_time()
    drawn = explain.FORMATS[format](plan, {"m7": NodeMetric(rows=1)})
    assert time.process_time() - begin < 10
    assert drawn.count('class="node') == len(plan.nodes) == 2003


def test_a_long_body_is_deeper_than_python_recurses() -> None:
    nodes = [Node("n0", Unit())]
    nodes += [Node(f"n{i}", Extend(TEN), (Input(f"n{i - 1}"),)) for i in range(1, 2000)]
    plan = Plan((*nodes, Node("end", Sink(), (Input("n1999"),))))
    for name, form in explain.FORMATS.items():
        assert "n1998" in form(plan, None), name
