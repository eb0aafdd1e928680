"""Compound terms: their text, their functions, how translators use them, and the limit of their depth."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall import functions
from squall.contracts import Options
from squall.errors import BuilderError
from squall.model import AtomPattern, Bind, Construct, System, Variable
from squall.plan.nesting_limit import limit_nesting
from squall.rdf import XSD, Atom, Event, Term, blank, iri, literal
from squall.rdf.compounds import DATATYPE, LIST, compound, depth, derived_node, is_compound, parse_compound
from squall.testing import run
from squall.testing.oracle import outputs
from squall.translators.common import CompoundTerm, flatten_compounds, term_expression

F, G, P, Q = (iri(f"urn:{name}") for name in "fgpq")
X, Y, Z = (Variable(name) for name in "xyz")
ONE, TWO = literal("1", XSD + "int"), literal("2", XSD + "int")

PLAIN = st.one_of(
    st.text("ab:/#", min_size=1).map(iri),
    st.text("ab1", min_size=1).map(blank),
    st.text().map(literal),
    st.text('"\\()<>_: ').map(lambda text: literal(text, "urn:d")),
    st.text("a(").map(lambda text: literal(text, None, "en-gb")),
)
TERMS = st.recursive(
    PLAIN, lambda inner: st.builds(compound, st.sampled_from((F, G, LIST)), st.lists(inner, max_size=4))
)


@given(st.sampled_from((F, G, LIST)), st.lists(TERMS, max_size=4))
def test_a_compound_has_the_parts_it_was_built_of(name: Term, arguments: list[Term]) -> None:
    built = compound(name, arguments)
    assert is_compound(built)
    assert parse_compound(built) == (name, tuple(arguments))
    assert depth(built) == 1 + max(map(depth, arguments), default=0)


def test_nested_terms_are_escaped_once() -> None:
    inner = compound(F, [literal('a"b')])
    assert inner == '"<urn:f>(\\"a\\\\\\"b\\")"^^<urn:x-squall:compound>'
    twice = compound(G, [compound(G, [inner])])
    assert len(twice) - len(inner) == 2 * len("<urn:g>()")


@given(st.text('<urn:f>()" _:b1\\^@'))
def test_other_forms_are_plain_literals(text: str) -> None:
    term = literal(text, DATATYPE)
    result = parse_compound(term)
    assert result is None or compound(result.name, result.arguments) == term


@pytest.mark.parametrize(
    "text",
    ["", "<u:f>", "<u:f>(", "<u:f>()x", "<u:f>(  )", "<u:f>( _:a)", "<u:f>(_:a )", "<u:f>(_:a  _:b)", "f()"],
)
def test_only_the_canonical_form_is_a_compound(text: str) -> None:
    assert not is_compound(literal(text, DATATYPE))
    assert depth(literal(text, DATATYPE)) == 0
    assert not is_compound(literal("<urn:f>()"))


def test_a_compound_in_quotes_within_a_compound_is_none() -> None:
    assert not is_compound(literal(f"<urn:f>({compound(G, [])})", DATATYPE))


def test_hostile_depth_is_no_compound_and_no_crash() -> None:
    deep = "<urn:f>(" * 100_000 + ")" * 100_000
    assert parse_compound(literal(deep, DATATYPE)) is None


def call(name: str, *arguments: Term) -> object:
    return functions.lookup(f"urn:x-squall:compound:{name}").evaluate(*arguments)


def number(value: int) -> Term:
    return literal(str(value), XSD + "integer")


def test_the_functions_build_and_take_apart() -> None:
    pair, members = compound(F, [ONE, TWO]), compound(LIST, [ONE, TWO])
    assert call("build", F, ONE, TWO) == pair
    assert call("takeApart", pair, F, number(2)) == [(ONE, TWO)]
    assert call("takeApart", pair, F, number(1)) == call("takeApart", pair, G, number(2)) == []
    assert call("split", members, number(1)) == [(ONE, compound(LIST, [TWO]))]
    assert call("split", members, number(2)) == [(ONE, TWO, compound(LIST, []))]
    assert call("split", members, number(3)) == call("split", pair, number(1)) == []
    assert call("join", compound(LIST, [TWO]), ONE) == members
    assert call("join", TWO, ONE) is None


def test_a_compound_without_variables_is_a_constant() -> None:
    assert term_expression(CompoundTerm(F, (CompoundTerm(G, (ONE,)),)), "r") == compound(F, [compound(G, [ONE])])
    assert term_expression(CompoundTerm(LIST, (ONE,), CompoundTerm(LIST, (TWO,))), "r") == compound(LIST, [ONE, TWO])
    assert term_expression(X, "r") == X


def matching(part: CompoundTerm) -> System:
    """Returns a rule from the facts ``p(part)`` to ``q(x y)``, or ``q(x)``."""
    numbers = count()
    slots, predicates = flatten_compounds((part,), lambda: Variable(f"new {next(numbers)}"))
    names = tuple(name for name in (X, Y) if repr(name) in repr(part))
    return System(
        "match",
        joinables=(System(joinables=(AtomPattern(P, slots),), predicates=tuple(predicates)),),
        consequences=(Construct((AtomPattern(Q, names),)),),
    )


def answers(rule: System, *terms: Term) -> set[tuple[Term, ...]]:
    event = Event(0, tuple(Atom(P, (term,)) for term in terms))
    results = {out.fact for out in squall.run(squall.plan(rule), [event])}
    assert results == {out[1] for out in outputs(rule, [event])}
    return {fact.arguments for fact in results if isinstance(fact, Atom)}


@pytest.mark.parametrize(
    ("part", "term", "row"),
    [
        (CompoundTerm(F, (X, Y)), compound(F, [ONE, TWO]), (ONE, TWO)),
        (CompoundTerm(F, (X, X)), compound(F, [ONE, ONE]), (ONE,)),
        (CompoundTerm(F, (X, X)), compound(F, [ONE, TWO]), None),
        (CompoundTerm(F, (X, ONE)), compound(F, [TWO, ONE]), (TWO,)),
        (CompoundTerm(F, (X, ONE)), compound(F, [TWO, TWO]), None),
        (CompoundTerm(F, (X, CompoundTerm(G, (Y, X)))), compound(F, [ONE, compound(G, [TWO, ONE])]), (ONE, TWO)),
        (CompoundTerm(F, (X, CompoundTerm(G, (Y, X)))), compound(F, [ONE, compound(G, [TWO, TWO])]), None),
        (CompoundTerm(F, (X, CompoundTerm(G, (ONE,)))), compound(F, [TWO, compound(G, [ONE])]), (TWO,)),
        (CompoundTerm(LIST, (X,), Y), compound(LIST, [ONE, TWO]), (ONE, compound(LIST, [TWO]))),
        (CompoundTerm(LIST, (X,), CompoundTerm(LIST, (Y,))), compound(LIST, [ONE, TWO]), (ONE, TWO)),
        (CompoundTerm(LIST, (X,), CompoundTerm(LIST, (Y,))), compound(LIST, [ONE]), None),
    ],
)
def test_patterns_take_compounds_apart(part: CompoundTerm, term: Term, row: tuple[Term, ...] | None) -> None:
    assert answers(matching(part), term) == (set() if row is None else {row})


def growing(rule: str) -> System:
    """Returns a rule that derives ``p(f(x))`` from ``p(x)``, without an end."""
    bind = Bind(Y, term_expression(CompoundTerm(F, (X,)), rule))
    return System(
        rule, joinables=(AtomPattern(P, (X,)),), predicates=(bind,), consequences=(Construct((AtomPattern(P, (Y,)),)),)
    )


def test_a_rule_that_nests_without_an_end_is_an_error_that_names_it() -> None:
    plan = squall.plan(growing("endless"))
    event = Event(0, (Atom(P, (ONE,)),))
    with pytest.raises(BuilderError, match="the rule `endless` nests terms more than 100 levels deep"):
        list(squall.run(plan, [event]))
    for most in (3, 150):
        with pytest.raises(BuilderError, match=f"more than {most} levels"):
            list(squall.run(plan, [event], options=Options(max_depth=most)))


def test_the_limit_itself_is_allowed() -> None:
    rule = growing("r")
    once = replace(rule, reentrant=False)
    event = Event(0, (Atom(P, (compound(F, [ONE]),)),))
    assert len(list(squall.run(squall.plan(once), [event], options=Options(max_depth=2)))) == 1
    with pytest.raises(BuilderError):
        list(squall.run(squall.plan(once), [event], options=Options(max_depth=1)))
    assert limit_nesting(squall.plan(once), 2) != squall.plan(once)


@pytest.mark.parametrize("call", ["makeSkolem(?y ?x)", "makeTemp(?y)"])
def test_derived_nodes_have_the_same_depth_limit(call: str) -> None:
    program = f"@prefix : <http://example.org/>.\n[chain: (?w :next ?x) {call} -> (?x :next ?y)]"
    with pytest.raises(BuilderError, match="the rule `chain` nests terms more than 100"):
        run(program, "1 :a :next :b")


def test_only_derived_nodes_have_a_depth() -> None:
    first = derived_node("s" + "0" * 32, [ONE, None])
    assert first == "_:s" + "0" * 32
    second = derived_node("s" + "1" * 32, [first, blank("s")])
    assert second == "_:s" + "1" * 32 + "n2"
    assert [depth(term) for term in (first, second, compound(F, [second]), blank("s"))] == [1, 2, 3, 0]


def test_a_pattern_of_plain_slots_is_left_as_it_is() -> None:
    assert flatten_compounds((X, ONE, CompoundTerm(F, (ONE,))), lambda: Z) == ((X, ONE, compound(F, [ONE])), [])
