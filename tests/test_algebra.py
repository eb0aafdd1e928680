"""SPARQL algebra beyond rules: small programs with their answers, on both planners."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import squall
from squall import explain
from squall.errors import TranslatorError
from squall.functions.jena import function_iri
from squall.functions.sparql.tables import TABLE
from squall.model import (
    Aggregate,
    Ask,
    AtomPattern,
    Bind,
    Call,
    Construct,
    Exists,
    Grouping,
    Minus,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Report,
    Select,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    with_windows,
)
from squall.model import Filter as Holds
from squall.model.stratification import stratify
from squall.model.windows import SlidingWindow
from squall.plan import Plan
from squall.plan import operators as ops
from squall.plan.operators import (
    AntiJoin,
    Distinct,
    Extend,
    Join,
    LeftJoin,
    Match,
    TransitiveClosure,
    Value,
)
from squall.rdf import ALWAYS, XSD, Boolean, Evaluated, Event, Solution, Term, Triple, iri, literal
from squall.testing import assert_as_oracle, stream, term
from squall.translators.sparql import calls
from tests.test_planners import kinds

PLANNERS = ("greedy", "rete")
E = "http://example.org/"
X, Y, Z, V, W = map(Variable, "xyzvw")
P, Q, R = (iri(E + name) for name in "pqr")
A, B, C, D = (iri(E + name) for name in "abcd")
XPY = Pattern(X, P, Y)
TWO = term('"2"^^xsd:int')
DATA = ":a :p :b; :q :c . :b :p :c; :r :c . :c :p :a; :q :d; :r :d ."


def part(*joinables: Any, then: tuple[Predicate, ...] = (), **more: Any) -> System:
    return System(joinables=joinables, predicates=then, **more)


def query(*names: Variable, of: tuple[Any, ...] = (XPY,), then: tuple[Predicate, ...] = (), **more: Any) -> System:
    return System("q", joinables=of, predicates=then, consequences=(Select(names),), **more)


def answers(system: System, data: str = DATA) -> Counter[tuple[Term | None, ...]]:
    """Returns the values of the solutions, which are the same on both planners and by the oracle."""
    events = stream(f"1 {data}")
    results: list[Counter[tuple[Term | None, ...]]] = []
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), events))
        assert_as_oracle(system, outputs, events)
        results.append(Counter(out.fact.values for out in outputs if isinstance(out.fact, Solution)))
    assert results[0] == results[1]
    return results[0]


def once(*rows: tuple[Term | None, ...]) -> Counter[tuple[Term | None, ...]]:
    return Counter(rows)


def test_a_literal_matches_by_value_or_exactly() -> None:
    item, other = term("1"), term('"01"^^xsd:integer')
    data = ':a :p 1 . :b :p "01"^^xsd:integer .'
    assert answers(query(X, of=(Pattern(X, P, item),)), data) == once((A,), (B,))
    assert answers(query(X, of=(Pattern(X, P, item, exact=True),)), data) == once((A,))
    assert answers(query(X, of=(Pattern(X, P, other, exact=True),)), data) == once((B,))


def test_an_atom_matches_exactly_too() -> None:
    plan = squall.plan(query(X, of=(AtomPattern(P, (X, term("1")), exact=True), AtomPattern(P, (X, term("2"))))))
    cells = [node.op.cells[2] for node in plan.nodes if isinstance(node.op, Match)]
    assert set(cells) == {term("1"), Value(term("2"))}


def test_a_solution_without_a_value_is_dropped_or_kept() -> None:
    call = Call(function_iri("sum"), (Y, term("1")))
    data = ":a :p 1 . :b :p :c ."
    assert answers(query(X, V, then=(Bind(V, call),)), data) == once((A, TWO))
    assert answers(query(X, V, then=(Bind(V, call, keep_unbound=True),)), data) == once((A, TWO), (B, None))


@pytest.mark.parametrize("planner", PLANNERS)
def test_what_surely_has_a_value_may_be_joined_on_as_ever(planner: str) -> None:
    system = query(X, V, then=(Bind(V, Y, keep_unbound=True), Optional(part(Pattern(V, Q, Z)))))
    plan = squall.plan(system, planner)
    assert (kinds(plan)["LeftJoin"], kinds(plan)["Union"]) == (1, 0)


# Compatible solutions

QV, RV = Optional(part(Pattern(X, Q, V))), Optional(part(Pattern(X, R, V)))


def test_a_second_optional_part_binds_what_the_first_left_unbound() -> None:
    assert answers(query(X, V, then=(QV, RV))) == once((A, C), (B, C), (C, D))
    assert answers(query(X, V, then=(RV, QV))) == once((A, C), (B, C), (C, D))


def test_an_unbound_variable_is_compatible_with_any_value() -> None:
    values = Union((part(Pattern(X, Q, V)), part(Pattern(X, R, W))))
    result = answers(query(X, V, W, of=(values, Pattern(X, R, V))))
    assert result == once((C, D, None), (B, C, C), (C, D, D))


def test_a_bag_stays_a_bag() -> None:
    twice = Union((part(Pattern(X, Q, V)), part(Pattern(X, Q, V)), part(Pattern(X, R, W))))
    assert answers(query(X, V, of=(twice, Pattern(X, Q, V)))) == Counter({(A, C): 2, (C, D): 3})


@pytest.mark.parametrize("many", [2, 3, 4, 5])
def test_any_number_of_variables_may_be_unbound(many: int) -> None:
    """Beyond a certain number, all pairs are joined and filtered."""
    names = [Variable(f"v{number}") for number in range(many)]
    sides = [
        Union(tuple(part(Pattern(A, predicate, name)) for name in names for predicate in choice))
        for choice in ((P, Q), (Q, R))
    ]
    result = answers(query(*names, of=tuple(sides)), ":a :p :b; :q :c, :d; :r :e .")
    assert result.total() == 9 * many * many - many * 7


def test_the_condition_of_an_optional_part_is_one_of_pairs() -> None:
    unlike = Call(function_iri("notEqual"), (Y, V))
    result = answers(query(X, V, then=(QV, Optional(part(Pattern(X, R, V)), unlike))))
    assert result == once((A, C), (B, None), (C, D))


def test_minus_asks_for_something_in_common() -> None:
    assert answers(query(X, then=(NotExists((Pattern(Z, R, W),)),))) == once()
    assert answers(query(X, then=(Minus((Pattern(Z, R, W),)),))) == once((A,), (B,), (C,))
    assert answers(query(X, then=(Minus((Pattern(X, R, W),)),))) == once((A,))
    # Only what is bound is in common: of :b nothing is.
    assert answers(query(X, then=(QV, Minus((Pattern(Z, R, V),))))) == once((B,))
    assert answers(query(X, then=(QV, NotExists((Pattern(Z, R, V),))))) == once()


# EXISTS


def exists(*joinables: Any, then: tuple[Predicate, ...] = ()) -> System:
    return part(*joinables, then=then)


SAME = Holds(Call(function_iri("equal"), (X, W)))
ASKED: dict[str, tuple[System, set[Term]]] = {
    "a pattern": (exists(Pattern(X, Q, Z)), {A, C}),
    "nothing": (exists(), {A, B, C}),
    "what has nothing to do with it": (exists(Pattern(Z, R, D)), {A, B, C}),
    "a test of what is outside": (exists(Pattern(Z, P, W), then=(SAME,)), {A, B, C}),
    "a test alone": (exists(then=(Holds(Call(function_iri("equal"), (X, A))),)), {A}),
    "an optional part": (exists(then=(Optional(part(Pattern(X, Q, Z))),)), {A, B, C}),
    "what an optional part finds": (
        exists(then=(Optional(part(Pattern(X, Q, Z))), Holds(Call(function_iri("bound"), (Z,))))), {A, C},
    ),
    "a branch that tests": (
        exists(Union((part(Pattern(X, R, C)), part(then=(Holds(Call(function_iri("equal"), (Y, B))),))))), {A, B},
    ),
    "nothing of what another asks for": (
        exists(Pattern(X, Q, Z), then=(Exists(None, exists(Pattern(Y, P, Z)), False),)), {C},
    ),
    "a sub-query": (exists(part(Pattern(Z, Q, X), consequences=(Select((X,)),))), {C}),
    "a sub-query that hides a name": (exists(part(Pattern(X, R, C), consequences=(Select((Z,)),))), {A, B, C}),
    "a name of one's own": (
        exists(Union((part(Pattern(Y, P, C), then=(Bind(X, A),)), part(Pattern(Y, P, Z), then=(Bind(X, C),))))),
        {A, C},
    ),
    "a name of one's own, and a test": (
        exists(
            Union((part(Pattern(Y, P, Z), then=(Bind(X, A),)), part(Pattern(Y, P, Z), then=(Bind(X, C),)))),
            then=(Holds(Call(function_iri("equal"), (Y, B))),),
        ),
        {A},
    ),
    "values": (
        exists(
            part(then=(TableFunction((X, Z), TABLE.iri, (literal("2", XSD + "integer"), A, A, B, C, B, D)),)),
            Pattern(Y, P, W),
            then=(Holds(Call(function_iri("equal"), (Y, Z))),),
        ),
        {B},
    ),
    "a value of what is outside": (
        exists(Pattern(Z, P, W), then=(Bind(V, X), Holds(Call(function_iri("equal"), (V, W))))), {A, B, C},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), ASKED.values(), ids=ASKED.keys())
def test_exists_and_not_exists_for_each_solution(asked: System, expected: set[Term]) -> None:
    assert set(answers(query(X, then=(Exists(None, asked, True),)))) == {(item,) for item in expected}
    assert set(answers(query(X, then=(Exists(None, asked, False),)))) == {(item,) for item in {A, B, C} - expected}
    results = {(item, term(str(item in expected).lower())) for item in (A, B, C)}
    assert set(answers(query(X, Variable("exists"), then=(Exists(Variable("exists"), asked),)))) == results


def test_an_unbound_variable_is_free_inside() -> None:
    request = exists(Pattern(V, P, C))
    assert answers(query(X, then=(QV, Exists(None, request, True)))) == once((B,))


def test_a_stored_fact_may_be_an_output_as_well() -> None:
    assert answers(query(X, V, then=(Exists(V, exists(Pattern(X, R, C)), True),))) == once((B, term("true")))
    result = answers(query(X, V, then=(Exists(V, exists(Pattern(X, R, C)), False),)))
    assert result == once((A, term("false")), (C, term("false")))


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_filter_that_asks_is_as_cheap_as_a_join(planner: str) -> None:
    for expected, kind in ((True, Join), (False, AntiJoin)):
        plan = squall.plan(query(X, then=(Exists(None, exists(Pattern(X, Q, Z)), expected),)), planner)
        assert [
            type(node.op) for node in plan.nodes if isinstance(node.op, Join | AntiJoin | LeftJoin | ops.Union)
        ] == [kind]


def test_the_condition_of_an_optional_part_may_ask() -> None:
    existing = Exists(W, exists(Pattern(Y, R, V)))
    condition = calls.condition(W)
    result = answers(query(X, V, then=(Optional(part(Pattern(X, Q, V)), condition, (existing,)),)))
    assert result == once((A, C), (B, None), (C, None))


def test_a_rule_may_test_for_its_conclusions_but_not_for_their_absence() -> None:
    head, body = Pattern(X, R, Y), (Pattern(X, P, Y),)
    request = exists(Pattern(Y, R, Z))

    def rule(expected: bool | None) -> System:
        return System(
            "r", joinables=body, predicates=(Exists(V, request, expected),), consequences=(Construct((head,)),)
        )

    stratify(rule(True))
    data = stream("1 :a :p :b\n2 :c :p :a\n3 :b :r :d")
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(rule(True), planner), data))
        assert_as_oracle(rule(True), outputs, data)
        assert len(outputs) == 2
    for expected in (False, None):
        with pytest.raises(TranslatorError, match="asks for what depends on it"):
            stratify(rule(expected))


@pytest.mark.parametrize(
    "asked",
    [
        exists(Pattern(X, P, Y), then=(Minus((Pattern(V, R, D),)),)),
        exists(Pattern(X, P, V), then=(Minus((Pattern(V, R, D),)),)),
        exists(Pattern(X, P, V), then=(Minus((Pattern(X, Q, V),)),)),
        exists(Pattern(V, P, Z), then=(Minus((Pattern(V, R, Z), Pattern(X, P, Z))),)),
        exists(Pattern(V, P, Z), then=(Minus((Pattern(Z, R, W), Pattern(V, P, Z))),)),
    ],
)
@pytest.mark.parametrize("wanted", [True, False])
def test_minus_inside_of_exists(asked: System, wanted: bool) -> None:
    """A correlated variable counts as a constant; another variable counts if both sides bind it."""
    answers(query(X, V, then=(QV, Exists(None, asked, wanted))))
    pair = Optional(part(Pattern(X, R, W)))
    answers(query(X, V, W, then=(QV, pair, Exists(None, asked, wanted))))


# What is inside


PATH = Term("<path p+>")
STEPS = (
    System("step", joinables=(XPY,), consequences=(Construct((AtomPattern(PATH, (X, Y)),), internal=True),)),
    System(
        "steps",
        joinables=(AtomPattern(PATH, (X, Y)), AtomPattern(PATH, (Y, Z))),
        consequences=(Construct((AtomPattern(PATH, (X, Z)),), internal=True),),
    ),
)
REACHED = System(subsystems=(*STEPS, query(Y, of=(AtomPattern(PATH, (A, Y)),))))


def test_internal_facts_are_read_and_not_answered() -> None:
    assert answers(REACHED) == once((A,), (B,), (C,))
    alone = squall.plan(System(subsystems=STEPS))
    assert list(squall.run(alone, stream(f"1 {DATA}"))) == []


def test_a_derived_stream_may_be_an_output_as_well() -> None:
    aloud = System("aloud", joinables=(XPY,), consequences=(Construct((Pattern(Y, R, X),)),))
    inside = System("inside", joinables=(XPY,), consequences=(Construct((Pattern(X, R, X),), internal=True),))
    system, events = System(subsystems=(aloud, inside)), stream("1 :a :p :b\n2 :c :p :c")
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), events))
        assert_as_oracle(system, outputs, events)
        assert {out.rule for out in outputs} == {"aloud"}


def test_a_relation_is_closed_as_a_predicate_is() -> None:
    plan = squall.plan(REACHED)
    assert kinds(plan)["TransitiveClosure"] == 1
    assert all(len(component) == 1 for component in plan.components)
    emits = [node.op for node in plan.nodes if isinstance(node.op, ops.Construct)]
    assert {op.template for op in emits} == {("@<path p+>", 0, 1)}
    assert all(op.internal for op in emits)


def test_other_atoms_are_no_relation() -> None:
    """The atoms differ from the relation: one has three arguments, and one is a triple in the other direction."""
    for head, item, two in (
        (AtomPattern(P, (X, A, Z)), AtomPattern(P, (X, A, Y)), AtomPattern(P, (Y, A, Z))),
        (Pattern(X, Z, P), Pattern(X, Y, P), Pattern(Y, Z, P)),
    ):
        plan = squall.plan(System("r", joinables=(item, two), consequences=(Construct((head,)),)))
        assert kinds(plan)["TransitiveClosure"] == 0


# ASK, and evaluations


def test_ask_has_one_answer_at_each_instant() -> None:
    system = with_windows(System("q", joinables=(XPY,), consequences=(Ask(),)), SlidingWindow(5))
    events = stream("1 :a :p :b\n3 :b :p :c\n20 :a :q :c")
    emitted = {
        "istream": [(ALWAYS, False), (1, True), (8, False)],
        "dstream": [(1, False), (8, True)],
        "rstream": [(ALWAYS, False), (1, True), (3, True), (6, True), (8, False), (20, False), (25, False)],
    }
    for output, expected in emitted.items():
        request = replace(system, output=output)
        for planner in PLANNERS:
            outputs = list(squall.run(squall.plan(request, planner), events))
            assert_as_oracle(request, outputs, events)
            assert [(out.time, out.fact) for out in outputs] == [(time, Boolean(value)) for time, value in expected]


def test_two_queries_that_answer_the_same_each_answer() -> None:
    item, two = query(X), replace(query(X), name="p")
    both, events = System(subsystems=(item, two)), stream("1 :a :p :b")
    for output in ("istream", "rstream"):
        for planner in PLANNERS:
            outputs = list(squall.run(squall.plan(replace(both, output=output), planner), events))
            assert sorted(out.rule for out in outputs) == ["p", "q"]
            assert {out.fact for out in outputs} == {Solution(("x",), (A,))}


def test_empty_evaluations_are_reported() -> None:
    asks = System("asks", joinables=(Pattern(X, R, Y),), consequences=(Ask(),))
    makes = System("makes", joinables=(XPY,), consequences=(Construct((Pattern(Y, Q, X),)),), reentrant=False)
    rule = System("rule", joinables=(XPY,), consequences=(Construct((Pattern(Y, R, X),)),))
    program = System(subsystems=(query(X), asks, makes, rule), output="rstream", report=Report(empty=True))
    system, events = with_windows(program, SlidingWindow(5)), stream("1 :a :p :b")
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), events))
        assert_as_oracle(system, outputs, events)
        process = [(out.time, out.rule, out.fact) for out in outputs if isinstance(out.fact, Evaluated)]
        each = [("asks", Evaluated(())), ("makes", Evaluated(())), ("q", Evaluated(("x",)))]
        assert process == [(time, *item) for time in (ALWAYS, 1, 6) for item in each]
        assert [out.time for out in outputs if isinstance(out.fact, Solution)] == [1]


def test_empty_evaluations_are_not_reported_by_default() -> None:
    system = with_windows(query(X, output="rstream", report=Report("nonempty", empty=True)), SlidingWindow(5))
    outputs = list(squall.run(squall.plan(system), stream("1 :a :p :b")))
    assert [(out.time, type(out.fact)) for out in outputs] == [(1, Solution), (1, Evaluated)]


# The rest


def test_distinct_solutions_are_counted() -> None:
    either = Union((part(XPY), part(XPY), part(Pattern(X, Q, V))))
    none, five = (literal(text, XSD + "integer") for text in "05")
    for counted in (calls.solution((X, Y, V)), None):
        grouping = Grouping((), (Aggregate(Z, "count", counted, distinct=True),))
        assert answers(query(Z, of=(either,), grouping=grouping)) == once((none,), (five,))


def test_a_named_graph_is_a_source_and_a_name() -> None:
    """The test builds ``GRAPH ?g`` as translators do."""
    graphs = (E + "g1", E + "g2")
    branches = tuple(
        System(sources=(Source(graph),), joinables=(XPY,), predicates=(Bind(V, iri(graph)),)) for graph in graphs
    )
    system = query(V, X, of=(Union(branches),))
    static = [Event(ALWAYS, (Triple(A, P, B),), graphs[0]), Event(ALWAYS, (Triple(B, P, C),), graphs[1])]
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), [], static=static))
        assert_as_oracle(system, outputs, [], static)
        assert {out.fact.values for out in outputs if isinstance(out.fact, Solution)} == {
            (iri(graphs[0]), A),
            (iri(graphs[1]), B),
        }


def test_it_is_shown() -> None:
    inner = exists(Pattern(X, Q, term("1"), exact=True))
    then = (
        Bind(V, Y, keep_unbound=True),
        Minus((Pattern(X, R, Y),)),
        Exists(None, inner, False),
        Optional(inner, calls.condition(W), (Exists(W, inner),)),
    )
    ask = System("a", joinables=(XPY,), consequences=(Ask(),))
    text = explain.text(System(subsystems=(query(X, then=then), ask, *STEPS), report=Report(empty=True)))
    assert text.splitlines()[3:] == _SHOWN.splitlines()


_SHOWN = """\
output istream, with end markers

rule q
  match       ?x :p ?y
  bind        ?v = ?y, or unbound
  minus       ?x :r ?y
  exists      no solution
                match       ?x :q "1"^^xsd:integer (literals match by term)
  optional    match       ?x :q "1"^^xsd:integer (literals match by term)
              exists      ?w = whether a solution exists
                            match       ?x :q "1"^^xsd:integer (literals match by term)
              condition   ebv(?w)
  select      ?x

rule a
  match       ?x :p ?y
  ask         whether any solution exists

rule step
  match       ?x :p ?y
  internal    <path p+>(?x, ?y)

rule steps
  match       <path p+>(?x, ?y)
              <path p+>(?y, ?z)
  internal    <path p+>(?x, ?z)
"""


def kept(plan: Plan, *types: type) -> list[Any]:
    return [node.op for node in plan.nodes if isinstance(node.op, types)]


@pytest.mark.parametrize("planner", PLANNERS)
def test_ask_is_a_left_join_of_one_row(planner: str) -> None:
    plan = squall.plan(System("q", joinables=(XPY,), consequences=(Ask(),)), planner)
    assert [op.ask for op in kept(plan, ops.Select)] == [True]
    assert kept(plan, LeftJoin)[0].on == ()
    assert len(kept(plan, Extend)) == 2
    assert Distinct(0) in kept(plan, Distinct)
    assert not kept(plan, TransitiveClosure)
