"""Each pass of the Rete planner: the resulting plans as golden texts, and that outputs stay the same."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import squall
from squall import explain, rulesets
from squall.model import Source, System, with_windows
from squall.model.windows import LANDMARK, EmptyWindow, HoppingWindow, SlidingWindow, Window
from squall.plan import Plan
from squall.plan import operators as ops
from squall.plan.cardinality import Statistics
from squall.plan.operators import (
    AntiJoin,
    Column,
    Construct,
    Distinct,
    Invoke,
    Join,
    Match,
    Operator,
    Project,
    Sink,
    TransitiveClosure,
)
from squall.plan.operators import Filter as Condition
from squall.planners import rete
from squall.planners.passes.eliminate_distinct import eliminate_distinct
from squall.planners.passes.join_by_equality import join_by_equality
from squall.planners.passes.join_order import order_joins
from squall.planners.passes.prune_columns import prune_columns
from squall.planners.passes.push_filters import push_filters
from squall.planners.passes.share_constants import MAX_SEPARATE_JOINS, share_constants
from squall.planners.passes.transitive_closure import introduce_closures
from squall.rdf import ALWAYS, Event, Triple, iri
from squall.rdf.vocabulary import TYPE
from squall.testing import assert_as_oracle
from squall.testing.check import assert_outputs
from squall.testing.strategies import ALL, event_streams, static_data, systems
from squall.testing.suites import permuted, renamed
from tests.laws import examples_of

GOLDEN = Path(__file__).parent / "golden" / "plans"
PREFIX = "@prefix : <http://example.org/> .\n@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
E = "http://example.org/"
P = iri(E + "p")
JENA = "urn:x-squall:jena:"

ONLY = {f"only {one.__name__}": (one,) for one in rete.PASSES}
BUT = {f"all but {one.__name__}": tuple(other for other in rete.PASSES if other is not one) for one in rete.PASSES}
CHOICES: dict[str, tuple[rete.Pass, ...]] = {"none": (), "all": rete.PASSES, **ONLY, **BUT}
EXAMPLES = 8


def program(text: str, window: Window = LANDMARK) -> System:
    return with_windows(squall.compile(PREFIX + text, lexer="jena"), window)


def plan(text: str, *passes: rete.Pass, window: Window = LANDMARK, statistics: Statistics | None = None) -> Plan:
    return squall.plan(program(text, window), partial(rete.plan, passes=passes, statistics=statistics))


def found(of: Plan, kind: type[Operator]) -> list[Operator]:
    return [node.op for node in of.nodes if isinstance(node.op, kind)]


def kinds(of: Plan) -> Counter[str]:
    return Counter(type(node.op).__name__ for node in of.nodes)


def order(of: Plan) -> list[str]:
    """Returns the kinds of the nodes on the path from the first source to the end, through the first input of each."""
    node, names = of.nodes[-1], []
    while node.inputs:
        names.append(type(node.op).__name__)
        node = of.by_id[node.inputs[0].node]
    return names[::-1]


# No answer changes


def _as_oracle(passes: tuple[rete.Pass, ...], data: st.DataObject) -> None:
    system = data.draw(systems(features=ALL))
    events, facts = data.draw(event_streams(features=ALL)), data.draw(static_data(features=ALL))
    statistics = data.draw(st.sampled_from([None, Statistics.of([*events, *facts])]))
    query_plan = squall.plan(system, partial(rete.plan, passes=passes, statistics=statistics))
    assert_as_oracle(system, list(squall.run(query_plan, events, static=facts)), events, facts)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", CHOICES)
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_answers_are_those_of_the_oracle(name: str, data: st.DataObject) -> None:
    _as_oracle(CHOICES[name], data)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
@settings(max_examples=examples_of(300), deadline=None)
@given(st.data())
def test_answers_are_those_of_the_oracle_at_length(name: str, data: st.DataObject) -> None:
    _as_oracle(CHOICES[name], data)


@settings(max_examples=examples_of(40), deadline=None)
@given(systems(features=ALL - {"select"}), st.data())  # the names of a query's variables are part of its answers
def test_passes_give_one_plan_to_one_meaning(system: System, data: st.DataObject) -> None:
    assert squall.plan(permuted(renamed(system), data)) == squall.plan(system)


# Golden: before and after

PROGRAMS: dict[str, tuple[Sequence[rete.Pass], str, Window]] = {
    "closure": (
        (introduce_closures,),
        "[t: (?x :p ?y) (?y :p ?z) -> (?x :p ?z)] [o: (?x :q ?y) -> (?x :p ?y)]",
        LANDMARK,
    ),
    "order": (
        (order_joins,),
        "[r: (?x rdf:type :C) (?x :p ?y) (?y :q ?z) (?z :r :k) -> (?x :s ?y)]",
        LANDMARK,
    ),
    "constants": (
        (share_constants,),
        " ".join(f"[r{n}: (?x :p ?y) (?x :by :s{n}) -> (?y :of :s{n})]" for n in range(MAX_SEPARATE_JOINS + 1)),
        LANDMARK,
    ),
    "tests": (
        (push_filters,),
        "[r: (?x :p ?y) (?x :q ?z) (?z :r ?w) lessThan(?y, 5) notEqual(?y, ?z) -> (?x :s ?w)]",
        LANDMARK,
    ),
    "equality": (
        (join_by_equality,),
        "[r: (?x :p ?y) (?z :q ?w) equal(?y, ?w) notEqual(?x, ?z) -> (?x :s ?z)]",
        LANDMARK,
    ),
    "columns": (
        (prune_columns,),
        "[r: (?x :p ?y) (?y :q ?z) (?z :r ?w) noValue(?x :t ?any) -> (?x :s :k)]",
        LANDMARK,
    ),
    "duplicates": ((eliminate_distinct,), "[r: (?x :p ?y) (?y :q ?z) -> (?x :s ?z)]", SlidingWindow(10_000)),
}


def numbered(text: str) -> str:
    """Returns the text with numbers instead of the digests of nodes, which every new field of an operator changes."""
    names = dict.fromkeys(re.findall(r"-[0-9a-f]{10}\b", text))
    for number, digest in enumerate(names, 1):
        text = text.replace(digest, f"-{number}")
    return text


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name: str) -> None:
    """The golden texts are rewritten if they are deleted and the test runs twice."""
    passes, text, window = PROGRAMS[name]
    for when, choice in (("before", ()), ("after", passes)):
        path = GOLDEN / f"{name}.{when}.txt"
        printed = numbered(explain.text(plan(text, *choice, window=window))) + "\n"
        if not path.exists():
            path.write_text(printed, encoding="utf-8")
            pytest.fail(f"{path} was missing, and is written now")
        assert printed == path.read_text(encoding="utf-8")


# A transitive rule

TRANSITIVE = "[t: (?x :p ?y) (?y :p ?z) -> (?x :p ?z)]"


def loops(of: Plan) -> list[int]:
    """Returns the number of nodes in each recursion."""
    return [len(component) for component in of.components if len(component) > 1]


def test_a_transitive_rule_is_no_recursion() -> None:
    query_plan = plan(TRANSITIVE, introduce_closures)
    assert kinds(query_plan)["TransitiveClosure"] == 1
    assert not loops(query_plan)
    assert loops(plan(TRANSITIVE))


@pytest.mark.parametrize("body", ["(?y :p ?z) (?x :p ?y)", "(?b :p ?z) (?x :p ?b)"])
def test_however_it_is_written(body: str) -> None:
    assert plan(f"[t: {body} -> (?x :p ?z)]", introduce_closures) == plan(TRANSITIVE, introduce_closures)


def test_a_given_step_is_derived_only_by_another_path() -> None:
    for passes in ((introduce_closures,), rete.PASSES):
        system = program(TRANSITIVE)
        events = [
            Event(time, (Triple(iri(E + edge[0]), P, iri(E + edge[1])),))
            for time, edge in enumerate(("ab", "bc", "ac", "da", "cd"))
        ]
        query_plan = squall.plan(system, partial(rete.plan, passes=passes))
        assert_as_oracle(system, list(squall.run(query_plan, events)), events)


@pytest.mark.parametrize("window", [LANDMARK, SlidingWindow(3)], ids=str)
@pytest.mark.parametrize(
    "other",
    ["[s: (?x :p ?y) -> (?y :p ?x)]", "[o: (?x :q ?y) -> (?x :p ?y)]", "[t2: (?a :q ?b) (?b :q ?c) -> (?a :q ?c)]", ""],
)
@settings(max_examples=examples_of(15), deadline=None)
@given(event_streams())
def test_with_what_other_rules_make(other: str, window: Window, events: list[Event]) -> None:
    system = with_windows(program(f"{TRANSITIVE} {other}"), window)
    query_plan = squall.plan(system, partial(rete.plan, passes=(introduce_closures,)))
    assert kinds(query_plan)["TransitiveClosure"] == 1 + ("t2" in other)
    assert_as_oracle(system, list(squall.run(query_plan, events)), events)


STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["urn:one", "urn:two"]), *2 * [st.sampled_from("abcde")]))


@pytest.mark.parametrize(
    "windows",
    [(LANDMARK, LANDMARK), (SlidingWindow(4), SlidingWindow(9)), (HoppingWindow(4, 2), SlidingWindow(5))],
    ids=str,
)
@settings(max_examples=examples_of(60), deadline=None)
@given(steps=STEPS)
@example(steps=[(0, "urn:one", "a", "b"), (0, "urn:one", "b", "c"), (0, "urn:two", "c", "d"), (1, "urn:one", "d", "e")])
def test_conclusions_of_a_transitive_rule_are_steps_of_another(
    windows: Sequence[Window], steps: list[tuple[int, str, str, str]]
) -> None:
    """Each of the rules sees a stream of its own."""
    (rule,) = program(TRANSITIVE).subsystems
    item, two = windows
    sources = (
        Source(windows=(("urn:one", item),), window=EmptyWindow()),
        Source(windows=(("urn:two", two),), window=EmptyWindow()),
    )
    system = System(subsystems=tuple(replace(rule, name=str(source), sources=(source,)) for source in sources))
    times = itertools.accumulate(time for time, *_ in steps)
    events = [
        Event(time, (Triple(iri(E + x), P, iri(E + y)),), stream)
        for time, (_, stream, x, y) in zip(times, steps, strict=True)
    ]
    query_plan = squall.plan(system, partial(rete.plan, passes=(introduce_closures,)))
    assert kinds(query_plan)["TransitiveClosure"] == 2
    assert_as_oracle(system, list(squall.run(query_plan, events)), events)


@pytest.mark.parametrize(
    "text",
    [
        "[t: (?x :p ?y) (?y :p ?z) -> (?z :p ?x)]",
        "[t: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]",
        "[t: (?x :p ?y) (?z :p ?y) -> (?x :p ?z)]",
        "[t: (?x :p ?y) (?y :q ?z) -> (?x :p ?z)]",
        "[t: (?x :p ?y) (?y :p ?z) notEqual(?x, ?z) -> (?x :p ?z)]",
        "[t: (?x :p ?y) (?y :p ?z) -> (?x :p ?z)] [n: (?x :q ?y) noValue(?x :r ?y) -> (?x :p ?y)]",
    ],
)
def test_rules_that_are_no_closure(text: str) -> None:
    """One is another kind of rule; in the other, pairs may be retracted."""
    assert plan(text, introduce_closures) == plan(text)


def test_what_a_stream_may_take_back_is_not_closed() -> None:
    system = with_windows(squall.compile(PREFIX + TRANSITIVE, lexer="jena"), removals=True)
    assert kinds(squall.plan(system))["TransitiveClosure"] == 0


# The order of joins


def joined(of: Plan) -> list[set[str]]:
    """Returns the predicates of the matches below each join."""

    def below(id: str) -> set[str]:
        node = of.by_id[id]
        if isinstance(node.op, Match):
            return {str(node.op.cells[1])[len(E) + 1 : -1]}
        return set().union(*(below(edge.node) for edge in node.inputs if not edge.feedback))

    return [below(node.id) for node in of.nodes if isinstance(node.op, Join)]


def test_constants_make_a_pattern_selective() -> None:
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) (?x :r :k) -> (?y :s ?z)]", order_joins)
    assert "r" in joined(query_plan)[0]


def test_types_are_joined_last() -> None:
    query_plan = plan("[r: (?x rdf:type :C) (?x :p ?y) (?y :q ?z) -> (?x :s ?z)]", order_joins)
    assert joined(query_plan)[0] == {"p", "q"}


OWL_RULE = "[{0}: (?p rdf:type <http://www.w3.org/2002/07/owl#{0}>) (?x{1} ?p ?y{2}) (?x{3} ?p ?y{4}) -> (?p :of ?p)]"
FUNCTIONAL = OWL_RULE.format("FunctionalProperty", "", 1, "", 2)
INVERSE_FUNCTIONAL = OWL_RULE.format("InverseFunctionalProperty", 1, "", 2, "")
KEY = "[key: (?k :first ?p) (?x1 ?p ?y) (?x2 ?p ?y) (?k :of ?c) -> (?x1 :agree ?x2)]"
TWO_TYPES = "[r: (?s :v ?a) (?s :v ?b) (?a rdf:type :F) (?b rdf:type :G) -> (?a :with ?b)]"
THREE_TYPES = (
    "[r: (?s :v ?a) (?s :v ?b) (?s :v ?c) (?a rdf:type :F) (?b rdf:type :G) (?c rdf:type :H) -> (?a :with ?b)]"
)
HUB = tuple(Triple(iri(E + "set"), iri(E + "v"), iri(f"{E}s{number}")) for number in range(50))
OF_TYPES = tuple(Triple(iri(f"{E}s{number}"), TYPE, iri(E + "FGH"[number % 3])) for number in range(50))


@pytest.mark.fault("Q1")
@pytest.mark.parametrize("text", [INVERSE_FUNCTIONAL + KEY, FUNCTIONAL, FUNCTIONAL + KEY, TWO_TYPES, THREE_TYPES])
@pytest.mark.parametrize("statistics", [None, Statistics.of([Event(0, (*HUB, *OF_TYPES))])], ids=["guesses", "counts"])
def test_two_copies_of_a_pattern_are_not_joined_first(text: str, statistics: Statistics | None) -> None:
    """Q1 of the reported faults: the pairs of all triples that agree are many, whatever the rules need."""
    assert not _self_joins(plan(text, order_joins, statistics=statistics))


@pytest.mark.more
def test_owl2rl_does_not_join_all_triples_with_themselves() -> None:
    rule_set = rulesets.path("owl2rl").read_text()
    for statistics in (None, Statistics.of([Event(0, (*HUB, *OF_TYPES))])):
        rules_plan = squall.plan(squall.compile(rule_set, lexer="jena"), statistics=statistics)
        matches = (rules_plan.by_id[id].op for id in _self_joins(rules_plan))
        assert [op for op in matches if isinstance(op, Match) and isinstance(op.cells[-2], int)] == []


def _self_joins(of: Plan) -> list[str]:
    """Returns the nodes that a join reads twice, without their `Distinct`."""
    inputs = [[edge.node for edge in node.inputs] for node in of.nodes if isinstance(node.op, Join)]
    sources = [left for left, right in inputs if left == right]
    return [of.by_id[id].inputs[0].node if isinstance(of.by_id[id].op, Distinct) else id for id in sources]


def test_functional_properties_are_joined_first() -> None:
    axiom = "[a: -> (:{} rdf:type <http://www.w3.org/2002/07/owl#FunctionalProperty>)]"
    for name in "pq":
        query_plan = plan(
            f"{axiom.format(name)} [r: (?x :p ?y) (?x :q ?z) (?x :r ?w) (?x :t ?v) -> (?y :s ?z)]", order_joins
        )
        assert name in joined(query_plan)[0]


def data(**counts: int) -> Statistics:
    """Statistics of so many triples of each predicate, each with a subject and an object of its own."""
    triples = [
        Triple(iri(f"{E}s{number}"), iri(E + name), iri(f"{E}o{number}"))
        for name, count in counts.items()
        for number in range(count)
    ]
    return Statistics.of([Event(0, tuple(triples))])


@pytest.mark.parametrize(
    ("counts", "first"),
    [
        ({"p": 1000, "q": 10, "r": 10}, {"q", "r"}),
        ({"p": 10, "q": 1000, "r": 10}, {"p", "r"}),
        ({"p": 10, "q": 10, "r": 1000}, {"p", "q"}),
    ],
)
def test_statistics_turn_the_order(counts: dict[str, int], first: set[str]) -> None:
    text = "[r: (?x :p ?y) (?x :q ?z) (?x :r ?w) -> (?y :s ?z)]"
    query_plan = plan(text, order_joins, statistics=data(**counts))
    assert joined(query_plan) == [first, {"p", "q", "r"}]


def test_a_chain_is_joined_from_both_ends() -> None:
    query_plan = plan("[r: (?a :p ?b) (?b :q ?c) (?c :r ?d) (?d :t ?e) -> (?a :s ?e)]", order_joins)
    assert sorted(map(len, joined(query_plan))) == [2, 2, 4]


def test_cross_products_are_joined_last() -> None:
    query_plan = plan("[r: (?a :p ?b) (?c :q ?d) (?b :r ?e) -> (?a :s ?d)]", order_joins)
    assert joined(query_plan) == [{"p", "r"}, {"p", "q", "r"}]


@pytest.mark.parametrize("own", ["(?o :by :s{})", "(?o :own{} ?w)"])
def test_a_hundred_rules_share_the_prefix_that_they_have_in_common(own: str) -> None:
    """They share it though the other patterns of each rule are more selective."""
    rules = " ".join(
        f"[r{n}: (?o rdf:type :Output) (?o :hasValue ?v) (?v :numericValue ?n) {own.format(n)} -> (?o :made{n} ?n)]"
        for n in range(100)
    )
    counts = kinds(plan(rules, order_joins))
    assert counts["Join"] == 2 + 100
    assert counts["Match"] == 3 + 100


# Tests


def test_a_filter_is_pushed_below_the_join() -> None:
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) lessThan(?y, 5) -> (?x :s ?z)]", push_filters)
    assert found(query_plan, Condition) == [
        Condition(Invoke(JENA + "lessThan", (Column(1), squall.Term(f'"5"^^<{XSD_INT}>'))))
    ]
    (test,) = (node for node in query_plan.nodes if isinstance(node.op, Condition))
    assert isinstance(query_plan.by_id[test.inputs[0].node].op, Match)


XSD_INT = "http://www.w3.org/2001/XMLSchema#int"


def test_a_filter_on_join_columns_is_pushed_to_both_sides() -> None:
    query_plan = plan("[r: (?x :p ?y) (?x :q ?z) notEqual(?x, :k) -> (?x :s ?z)]", push_filters)
    assert kinds(query_plan)["Filter"] == 2
    assert not {
        type(query_plan.by_id[edge.node].op)
        for node in query_plan.nodes
        if isinstance(node.op, Construct)
        for edge in node.inputs
    } - {Join}


def test_a_filter_stays_above_shared_nodes() -> None:
    text = "[a: (?x :p ?y) (?x :q ?z) lessThan(?y, 5) -> (?x :s ?z)] [b: (?x :p ?y) (?x :q ?z) -> (?x :t ?z)]"
    assert plan(text, push_filters) == plan(text)


def test_functions_with_effects_are_not_reordered() -> None:
    text = "[r: (?x :p ?y) (?x :q ?z) print(?y) lessThan(?y, 5) -> (?x :s ?z)]"
    assert plan(text, push_filters) == plan(text)


def test_a_test_goes_below_a_negation_and_a_computation_that_it_does_not_read() -> None:
    text = "[r: (?x :p ?y) sum(?y, 1, ?s) noValue(?x :q ?y) lessThan(?y, 5) greaterThan(?s, 1) -> (?x :t ?s)]"
    assert order(plan(text, push_filters)) == [
        "Match", "Filter", "Distinct", "AntiJoin", "Extend", "Filter", "Construct", "Distinct", "Sink",
    ]  # fmt: skip


def test_a_function_of_time_is_not_moved() -> None:
    text = "[r: (?x :p ?y) (?x :q ?z) now(?t) greaterThan(?t, ?y) -> (?x :s ?z)]"
    assert order(plan(text, push_filters)) == order(plan(text))


# Columns


def test_unread_columns_are_pruned() -> None:
    query_plan = plan("[r: (?x :p ?y) (?y :q ?z) (?z :r ?w) -> (?x :s :k)]", prune_columns)
    assert Match((0, iri(E + "r"), None)) in found(query_plan, Match)
    assert found(query_plan, Distinct).count(Distinct(1)) == 1
    assert max(len(op.keep) for op in found(query_plan, Join) if isinstance(op, Join)) == 2


def test_a_repeated_variable_is_compared_even_if_nothing_reads_it() -> None:
    query_plan = plan("[r: (?y :p ?y) -> (:k :s :k)]", prune_columns)
    assert found(query_plan, Match) == [Match((0, P, 0))]


def test_a_negated_input_keeps_only_the_compared_columns() -> None:
    query_plan = plan("[r: (?x :p ?y) noValue(?x :q ?any) -> (?x :s ?y)]", prune_columns)
    assert Match((0, iri(E + "q"), None)) in found(query_plan, Match)
    assert found(query_plan, AntiJoin) == [AntiJoin(((0, 0),))]


def test_a_count_sees_all_columns_of_a_set() -> None:
    from squall.model import Aggregate, Grouping, Pattern, Select, Variable

    x, y, n = map(Variable, "xyn")
    rule = System(
        "q", joinables=(Pattern(x, P, y),), grouping=Grouping((x,), (Aggregate(n, "count"),)),
        consequences=(Select((x, n)),),
    )  # fmt: skip
    query_plan = squall.plan(rule, partial(rete.plan, passes=(prune_columns,)))
    assert found(query_plan, Match) == [Match((0, P, 1))]
    assert found(query_plan, Distinct) == [Distinct(2)]


def test_projections_that_only_reorder_are_removed() -> None:
    text = "[r: (?z :r :k) (?x :p ?y) (?y :q ?z) -> (?x :s ?z)]"
    assert found(plan(text, order_joins), Project) == [Project((2, 1, 0))]
    assert found(plan(text, order_joins, prune_columns), Project) == []


# Duplicates


def test_a_bounded_window_needs_no_distinct_before_a_join() -> None:
    text = "[r: (?x :p ?y) (?y :q ?z) -> (?x :s ?z)]"
    assert kinds(plan(text, eliminate_distinct, window=SlidingWindow(10)))["Distinct"] == 0
    assert kinds(plan(text, eliminate_distinct))["Distinct"] == 2, (
        "in a landmark window repeated triples would fill memories"
    )


def test_the_end_checks_facts_that_nothing_else_reads() -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :s ?y)] [b: (?x :q ?y) -> (?x :s ?y)]", eliminate_distinct)
    assert kinds(query_plan)["Distinct"] == 0
    assert found(query_plan, Sink) == [Sink("istream", distinct=True)]


def test_facts_that_are_read_again_are_checked_where_they_are() -> None:
    query_plan = plan("[a: (?x :p ?y) -> (?x :s ?y)] [b: (?x :s ?y) -> (?x :t ?y)]", eliminate_distinct)
    assert found(query_plan, Distinct) == [Distinct(3), Distinct(3)]
    assert found(query_plan, Sink) == [Sink("istream", distinct=False)]


def sparql(text: str, *passes: rete.Pass, window: Window = LANDMARK) -> Plan:
    system = with_windows(squall.compile(f"PREFIX : <{E}> {text}", lexer="sparql"), window)
    return squall.plan(system, partial(rete.plan, passes=passes))


def test_the_patterns_of_a_set_of_classes_are_one() -> None:
    """There is one set of the rows of the union, and none of those of a branch, in any window."""
    united = sparql("SELECT DISTINCT ?x { { ?x a :A } UNION { ?x a :B } UNION { ?x :p :A } }", *rete.PASSES)
    classes = ops.OneOf((iri(E + "A"), iri(E + "B")))
    assert found(united, Match) == [Match((0, TYPE, classes)), Match((0, P, iri(E + "A")))]
    assert kinds(united)["Union"] == kinds(united)["Distinct"] == 1
    only_classes = sparql("SELECT DISTINCT ?x { { ?x a :A } UNION { ?x a :B } }", *rete.PASSES)
    assert kinds(only_classes)["Union"] == 0
    assert found(only_classes, Match) == [Match((0, TYPE, classes))]
    facts = tuple(Triple(iri(E + "x"), TYPE, term) for term in classes.terms)
    assert len(list(squall.run(only_classes, [Event(1, facts)]))) == 1
    assert len(list(squall.run(only_classes, [], static=[Event(ALWAYS, facts)]))) == 1


def test_a_pattern_is_a_part_of_one_match_and_a_pattern_of_its_own() -> None:
    text = "SELECT ?x { { SELECT DISTINCT ?x { { ?x a :A } UNION { ?x a :B } } } ?y a :A ; :p ?x }"
    matches = found(sparql(text, *rete.PASSES), Match)
    assert Match((0, TYPE, ops.OneOf((iri(E + "A"), iri(E + "B"))))) in matches
    assert Match((0, TYPE, iri(E + "A"))) in matches


def test_branches_whose_solutions_count_are_not_merged() -> None:
    """Two facts with one subject are one solution of each branch, and one fact that comes twice is one, too."""
    query_plan = sparql("SELECT ?x { { ?x a :A } UNION { ?x a :B } }", *rete.PASSES)
    assert not any(isinstance(cell, ops.OneOf) for op in found(query_plan, Match) for cell in cast(Match, op).cells)
    assert kinds(query_plan)["Distinct"] == 2


def test_solutions_are_counted() -> None:
    from squall.model import Pattern, Select, Variable

    x, y = map(Variable, "xy")
    rule = with_windows(System("q", joinables=(Pattern(x, P, y),), consequences=(Select((x,)),)), SlidingWindow(10))
    query_plan = squall.plan(rule, partial(rete.plan, passes=(eliminate_distinct,)))
    assert found(query_plan, Distinct) == [Distinct(2)]
    assert found(query_plan, ops.Select) == [ops.Select(("x",), (0,))]


def test_a_whole_program() -> None:
    assert_outputs(
        program(f"{TRANSITIVE} [far: (?x :p ?y) (?y :q ?n) lessThan(?n, 5) notEqual(?x, ?y) -> (?x :near ?n)]"),
        "1 :a :p :b\n2 :b :p :c\n3 :c :q 4",
        "2 :a :p :c\n3 :a :near 4\n3 :b :near 4",
    )


def test_the_closure_is_an_operator() -> None:
    assert found(plan(TRANSITIVE, *rete.PASSES), TransitiveClosure) == [TransitiveClosure()]


@pytest.mark.slow
def test_ten_thousand_rules_are_planned_in_seconds() -> None:
    import time

    rules = " ".join(
        f"[r{n}: (?o rdf:type :C) (?o :v ?v) (?v :n ?n) (?o :by :s{n}) -> (?o :made{n} ?n)]" for n in range(10_000)
    )
    system = program(rules)
    begun = time.process_time()
    squall.plan(system)
    assert time.process_time() - begun < 60
