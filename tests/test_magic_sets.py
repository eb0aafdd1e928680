"""RIF rules that cannot run forward: the demand transformation (magic sets) derives what is demanded, correctly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.checking import lint
from squall.errors import BuilderError, SquallError, single_errors
from squall.model import warnings
from squall.rdf import Term, iri
from squall.rdf.compounds import compound, is_compound
from squall.testing import assert_outputs
from squall.translators.rif import magic_sets
from squall.translators.rif.clauses import Clause
from tests.laws import examples_of
from tests.test_rif_translator import E, number, text, values

N0, N1, N2, N3, N6 = (number(value) for value in (0, 1, 2, 3, 6))


def less(term: str) -> str:
    return f"External(func:numeric-subtract({term} 1))"


def s(term: Term) -> Term:
    return compound(iri(E + "s"), [term])


ANYTHING = "Forall ?x (ex:p(?x))"
UP = ("Forall ?x (ex:p(External(func:numeric-add(?x 1))) :- ex:p(?x))", "ex:p(1)")
DOWN = (f"Forall ?x (ex:p(?x) :- ex:p({less('?x')}))", "ex:p(1)")
PLUS = ("Forall ?x (ex:p(0 ?x ?x))", "Forall ?x ?y ?z (ex:p(ex:s(?x) ?y ex:s(?z)) :- ex:p(?x ?y ?z))")
CUBE = "External(func:numeric-multiply(?x External(func:numeric-multiply(?x ?x))))"


@pytest.mark.parametrize(
    ("relation", "sentences", "rows"),
    [
        ("r", (ANYTHING, "ex:r() :- And(ex:p(2) ex:p(ex:a) ex:p(ex:s(2)))"), {()}),
        ("p", (ANYTHING, "ex:r() :- ex:p(2)"), {(N2,)}),
        ("r", (ANYTHING, "ex:q(1)", "ex:q(2)", "Forall ?x (ex:r(?x) :- And(ex:p(?x) ex:q(?x)))"), {(N1,), (N2,)}),
        ("r", (ANYTHING, "ex:q(1)", "ex:r(1) :- Exists ?x (And(ex:q(?x) ex:p(?x)))"), {(N1,)}),
        ("r", (ANYTHING, "ex:q(a -> 1)", "Forall ?x (ex:r(?x) :- And(ex:q(a -> ?x) ex:p(?x)))"), {(N1,)}),
        ("r", ("Forall ?x (ex:p(b -> ?x a -> 1))", "ex:r(1) :- ex:p(a -> 1 b -> 5)", "ex:r(2) :- ex:p(a -> 2 b -> 5)"),
         {(N1,)}),
        ("r", ("Forall ?x (ex:p(ex:s(?x) ?x))", "Forall ?y (ex:r(?y) :- ex:p(ex:s(3) ?y))"), {(N3,)}),
        # One that reads it cannot run forward either, and is asked in turn.
        ("q", (ANYTHING, "Forall ?x (ex:q(?x) :- ex:p(?x))", "ex:r() :- ex:q(3)"), {(N3,)}),
        ("r", (f"Forall ?x (ex:p(?x) :- External(func:numeric-subtract({CUBE} ?x)) = 0)",
               *(f"ex:r({n}) :- ex:p({n})" for n in (-1, 0, 1, 2))), {(number(-1),), (N0,), (N1,)}),
        ("r", (*UP, "ex:r(1) :- ex:p(3)", "ex:r(2) :- ex:p(1)"), {(N1,), (N2,)}),
        ("p", (*UP, "ex:r(1) :- ex:p(3)"), {(N1,), (N2,), (N3,)}),
        ("r", (*DOWN, "ex:r(1) :- ex:p(3)"), {(N1,)}),
        ("r", ("ex:p(0)", "Forall ?x (ex:p(ex:s(?x)) :- ex:p(?x))", "ex:r(1) :- ex:p(ex:s(ex:s(0)))",
               "ex:r(2) :- ex:p(ex:s(ex:s(1)))"), {(N1,)}),
        # By different arguments.
        ("r", (*PLUS, "Forall ?z (ex:r(?z) :- ex:p(ex:s(0) ex:s(ex:s(0)) ?z))"), {(s(s(s(N0))),)}),
        ("r", (*PLUS, "Forall ?x ?y (ex:r(?x ?y) :- ex:p(?x ?y ex:s(ex:s(0))))"),
         {(N0, s(s(N0))), (s(N0), s(N0)), (s(s(N0)), N0)}),
        ("r", ("Forall ?x (And(ex:p(?x) ex:q(?x)) :- ex:t(?x))", "Forall ?x (And(ex:t(?x) ex:u(1)) :- And())",
               "ex:r(1) :- ex:p(1)", "Forall ?x (ex:r(?x) :- And(ex:u(?x) ex:q(2)))"), {(N1,)}),
        # What is asked has the value of a data value, and the rest of the rule has to hold.
        ("r", ("Forall ?x (ex:p(1 ?x) :- ex:q(?x))", "Forall ?x (ex:q(?x))", "ex:r(1) :- ex:p(1.0 5)",
               "ex:r(2) :- ex:p(2 5)"), {(N1,)}),
        ("r", ("Forall ?x (ex:p(?x) :- ex:q(1))", "ex:r(1) :- ex:p(1)"), set()),
    ],
)  # fmt: skip
def test_what_is_demanded_is_derived(relation: str, sentences: Sequence[str], rows: set[tuple[Term, ...]]) -> None:
    assert values(relation, *sentences) == rows


F = ("ex:f(0) = 1", "Forall ?n (ex:f(?n) = External(func:numeric-multiply(?n ex:f("
     f"{less('?n')}))) :- External(pred:numeric-greater-than(?n 0)))")  # fmt: skip
F3 = compound(iri(E + "f"), [N3])


@pytest.mark.more
@pytest.mark.parametrize(
    ("sentences", "rows"),
    [
        (("ex:r(1) :- 6 = ex:f(3)", "ex:r(2) :- ex:f(3) = 5"), {(N1,)}),
        (("Forall ?x (ex:r(?x) :- ?x = ex:f(3))",), {(N6,)}),
        (("ex:r(1) :- ex:f(0) = ex:f(1)",), {(N1,)}),
        # A term occurs in a fact, in a compound, or by an argument that has come to be equal.
        (("ex:p(ex:f(3))", "ex:r(1) :- ex:p(6)"), {(N1,)}),
        (("ex:p(ex:s(ex:f(3)))", "Forall ?x (ex:r(?x) :- ex:p(ex:s(?x)))"), {(N6,)}),
        (("ex:c = 3", "ex:r(1) :- 6 = ex:f(ex:c)"), {(N1,)}),
        (("ex:f(2) = ex:c", "ex:r(1) :- 6 = External(func:numeric-multiply(3 ex:c))"), {(N1,)}),
        (("ex:p(3)", "Forall ?x ?y (ex:r(1) :- And(ex:p(?x) ?y = ex:f(?x) ex:q(?y)))", "ex:q(6)"), {(N1,)}),
        # By a side that is an equation of another function.
        (("Forall ?x (ex:g(?x) = ex:f(?x))", "ex:r(1) :- 2 = ex:g(2)"), {(N1,)}),
    ],
)  # fmt: skip
def test_functions_are_defined_by_equations(sentences: Sequence[str], rows: set[tuple[Term, ...]]) -> None:
    assert {row for row in values("r", *F, *sentences) if not is_compound(row[0])} == rows


def test_questions_go_with_the_stream_that_asks() -> None:
    program = text(
        "Forall ?x ?y (ex:twice(?x External(func:numeric-add(?x ?x))))",
        "Forall ?a ?x ?y (?a[ex:double -> ?y] :- And(?a[ex:has -> ?x] ex:twice(?x ?y)))",
    )
    events = f"1 <{E}a> <{E}has> 3\n3 <{E}b> <{E}has> 4"
    expected = f"1 <{E}twice>(3, 6)\n1 <{E}a> <{E}double> 6\n3 <{E}twice>(4, 8)\n3 <{E}b> <{E}double> 8"
    assert_outputs(program, events, expected, lexer="rifps")


def test_rules_that_run_on_demand_give_a_warning() -> None:
    system = squall.compile(text(*UP, "ex:r(1) :- ex:p(3)"), lexer="rifps")
    (warning,) = warnings(system)
    assert "`rule1` cannot run forward: it derives only what other rules demand" in str(warning)
    assert warning.origin is not None
    assert not list(warnings(squall.compile(text("ex:r(1) :- ex:p(3)"), lexer="rifps")))


@pytest.mark.parametrize(
    "sentences",
    [
        ("ex:p(0)", "Forall ?x (ex:p(ex:s(?x)) :- ex:p(?x))"),
        ("ex:p(0)", "Forall ?x (ex:p(ex:s(?x)) :- ex:p(?x))", "Forall ?x (ex:r(?x) :- ex:p(?x))"),
    ],
)
def test_endless_rules_that_are_demanded_as_a_whole_run_forward(sentences: Sequence[str]) -> None:
    system = squall.compile(text(*sentences), lexer="rifps")
    assert not list(warnings(system))
    with pytest.raises(BuilderError, match="nests terms more than 100 levels deep"):
        list(squall.run(squall.plan(system), []))


def test_a_rule_that_ends_runs_forward_whoever_reads_it() -> None:
    count = "Forall ?x (ex:p(External(func:numeric-add(?x 1))) :- And(ex:p(?x) External(pred:numeric-less-than(?x 3))))"
    assert values("p", "ex:p(1)", count, "ex:r(1) :- ex:p(2)") == {(N1,), (N2,), (N3,)}
    same = "Forall ?x (ex:p(External(func:numeric-add(?x 0))) :- ex:p(?x))"
    assert values("p", "ex:p(1)", "ex:p(2)", same, "ex:r(1) :- ex:p(2)") == {(N1,), (N2,)}
    twice = "Forall ?x (ex:p(?x ex:s(?x)) :- ex:p(?x ?x))"
    assert values("p", "ex:p(1 1)", "ex:p(2 2)", twice, "ex:r(1) :- ex:p(1 ex:s(1))") >= {(N2, s(N2))}
    far = 'Forall ?x (ex:p(External(func:numeric-add(?x "INF"^^xs:double))) :- ex:p(?x))'
    assert len(values("p", "ex:p(1)", far, "ex:r(1) :- ex:p(1)")) == 2
    turned = "Forall ?x ?y (ex:p(1 External(func:numeric-add(?x 1))) :- ex:p(?x ?y))"
    assert values("p", "ex:p(1 5)", turned, "ex:r(1) :- ex:p(1 2)") == {(N1, number(5)), (N1, N2)}


@pytest.mark.parametrize(
    ("sentences", "variable", "place"),
    [
        ((ANYTHING,), "x", "?x))"),
        ((ANYTHING, "Forall ?y (ex:r(?y) :- ex:p(?y))"), "y", "ex:p(?y)"),
        ((ANYTHING, "Forall ?y (ex:r(?y) :- ex:p(?y))", "ex:t() :- ex:p(1)"), "y", "ex:p(?y)"),
        ((ANYTHING, "Forall ?y (ex:a[ex:b -> ?y] :- ex:p(?y))"), "y", "ex:p(?y)"),
        (("Forall ?x (?x[ex:b -> 1])", "ex:r(1) :- ex:a[ex:b -> 1]"), "x", "?x[ex:b"),
        (("Forall ?x (?x # ex:c)", "ex:r(1) :- ex:a # ex:c"), "x", "?x # ex:c"),
        (("Forall ?x ?z (ex:p(?x) :- External(pred:numeric-less-than(?z 3)))", "ex:r(1) :- ex:p(1)"), "z", "External"),
        (("Forall ?x ?y (ex:p(?x ?y))", "Forall ?y (ex:r(?y) :- ex:p(1 ?y))"), "y", "ex:p(1 ?y)"),
        (("Forall ?x (?x = ex:a)",), "x", "?x = ex:a"),
        (("Forall ?x ?y (ex:f(?x) = ?y)", "ex:r(1) :- ex:f(1) = 2"), "x", "ex:f(?x)"),
    ],
)
def test_what_cannot_run_on_demand_is_refused_with_its_place(
    sentences: Sequence[str], variable: str, place: str
) -> None:
    program = text(*sentences)
    with pytest.raises(SquallError) as caught:
        squall.compile(program, lexer="rifps")
    wrong = [error for error in single_errors(caught.value) if f"gives a value to `?{variable}`" in error.message]
    assert wrong
    origin = wrong[0].origin
    assert origin is not None
    assert any(program[error.origin.column - 1 :].startswith(place) for error in wrong if error.origin)


@pytest.mark.more
def test_nested_terms_are_not_matched_where_equations_are_demanded() -> None:
    with pytest.raises(SquallError, match="terms with variables within terms cannot be matched"):
        squall.compile(text(*F, "Forall ?x (ex:r(?x) :- ex:p(ex:s(ex:s(?x))))"), lexer="rifps")
    flat = "Forall ?x ?y (ex:r(?x) :- And(ex:p(ex:s(?y)) ?y = ex:s(?x)))"
    assert values("r", *F, "ex:p(ex:s(ex:c))", "ex:c = ex:s(ex:f(3))", flat) >= {(N6,), (F3,)}


# Programs that run either way


ARGUMENTS = st.sampled_from(["?x", "?y", "?z", "1", "2"])
ATOMS = st.builds("ex:{}({} {})".format, st.sampled_from("pqr"), ARGUMENTS, ARGUMENTS)
HEADS = st.builds(
    "ex:{}({} {})".format, st.sampled_from("pqr"), st.sampled_from(["?x", "?y", "1"]), st.sampled_from(["?x", "?y"])
)
FACTS = st.builds("ex:{}({} {})".format, st.sampled_from("epqr"), *[st.integers(1, 4)] * 2)
RULES = st.builds(
    lambda head, edge, more: f"Forall ?x ?y ?z ({head} :- And({edge} {' '.join(more)}))",
    HEADS,
    st.sampled_from(["ex:e(?x ?y)", "ex:e(?y ?x)"]),
    st.lists(ATOMS, max_size=2),
)
GOALS = st.sampled_from(
    [
        "Forall ?x (ex:goal(?x) :- ex:p(1 ?x))",
        "Forall ?x ?y (ex:goal(?x) :- And(ex:e(?x ?y) ex:q(?x ?y)))",
        "Forall ?x ?y (ex:goal(?y) :- And(ex:p(2 ?x) ex:q(?x ?y)))",
        "ex:goal(1) :- ex:r(1 3)",
    ]
)


def _has_condition(clause: Clause) -> bool:
    return bool(clause.conjunction) and "goal" not in str(clause.conclusions[0])


@settings(max_examples=examples_of(60), deadline=None)
@given(st.lists(FACTS, max_size=8), st.lists(RULES, min_size=1, max_size=4), GOALS)
def test_rules_that_could_run_forward_derive_the_same_on_demand(facts: list[str], rules: list[str], goal: str) -> None:
    forward = values("goal", *facts, *rules, goal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(magic_sets, "_is_endless", _has_condition)
        assert values("goal", *facts, *rules, goal) == forward


def test_only_what_is_demanded_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "Forall ?x ?y ?z (ex:p(?x ?z) :- And(ex:e(?x ?y) ex:p(?y ?z)))"
    edges = [f"ex:e({n} {n + 1})" for n in range(6)]
    program = (*edges, "Forall ?x ?y (ex:p(?x ?y) :- ex:e(?x ?y))", path, "Forall ?x (ex:goal(?x) :- ex:p(4 ?x))")
    assert len(values("p", *program)) == 21
    monkeypatch.setattr(magic_sets, "_is_endless", _has_condition)
    assert values("p", *program) == {(number(x), number(y)) for x, y in [(4, 5), (4, 6), (5, 6)]}


def test_what_rules_ask_is_no_rule_that_is_written_twice() -> None:
    program = text(*F, "Forall ?n ?m (ex:r(?m) :- And(ex:p(?n) ?m = ex:f(?n) External(pred:is-literal-integer(?m))))")
    assert "duplicate-rule" not in {finding.code for finding in lint(program, lexer="rifps")}
