"""The total order of terms: that of SPARQL's ORDER BY where it has one, and no ties between terms."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.functions import values
from squall.functions.ordering import key
from squall.rdf import XSD, Term, blank, iri, literal


def of(lexical: str, datatype: str) -> Term:
    return literal(lexical, XSD + datatype)


SORTED = [
    None,
    blank("a"),
    blank("b"),
    iri("urn:a"),
    iri("urn:b"),
    of("-INF", "float"),
    of("-1" + "0" * 400, "integer"),
    of("-1", "int"),
    of("-0.0", "double"),
    of("0", "integer"),
    of("0.1", "decimal"),
    of("0.1", "double"),  # 0.1000000000000000055...
    of("0.1", "float"),  # 0.100000001490116...
    of("9007199254740992", "double"),
    of("9007199254740993", "integer"),
    of("1" + "0" * 400, "integer"),
    of("1e999", "double"),
    of("INF", "double"),
    of("NaN", "double"),
    of("NaN", "float"),
    literal(""),
    literal("10"),
    literal("9"),
    literal("a\tb"),
    literal("a\nb"),
    literal("aA"),
    literal("\uffff"),
    literal("\U00010000"),
    of("0", "boolean"),
    of("false", "boolean"),
    of("1", "boolean"),
    of("true", "boolean"),
    of("1999-12-31", "date"),
    of("2000-01-01+01:00", "date"),
    of("2000-01-01", "date"),
    of("-0001-12-31T00:00:00Z", "dateTime"),
    of("2000-01-01T00:30:00+01:00", "dateTime"),
    of("2000-01-01T00:00:00", "dateTime"),
    of("2000-01-01T00:00:00Z", "dateTime"),
    of("2000-01-01T00:00:00Z", "dateTimeStamp"),
    of("2000-01-01T00:00:00.05Z", "dateTime"),
    of("2000-01-01T00:00:00.5Z", "dateTime"),
    of("12000-01-01T00:00:00Z", "dateTime"),
    of("-PT2H", "dayTimeDuration"),
    of("PT25H", "dayTimeDuration"),
    of("P2D", "dayTimeDuration"),
    of("P2D", "duration"),
    of("P1M", "yearMonthDuration"),
    of("P1Y", "yearMonthDuration"),
    literal("a", None, "de"),
    literal("a", None, "en"),
    literal("b", None, "de"),
    of("yes", "boolean"),
    of("300", "byte"),
    of("2000-02-30", "date"),
    literal("b", "urn:a"),
    literal("a", "urn:b"),
]
"""In the order that the docstring of `key` gives: one pair at least for each of its clauses."""


def test_the_order_of_all_kinds() -> None:
    assert sorted(set(SORTED), key=key) == SORTED


@pytest.mark.parametrize(("less", "more"), list(itertools.pairwise(SORTED)))
def test_each_is_less_than_the_next(less: Term | None, more: Term | None) -> None:
    assert key(less) < key(more)
    assert not key(more) < key(less)


_NUMBERS = "0 -0 00 0.0 1 1.0 1e0 0.1 -1 2 INF -INF NaN"
_OTHERS = "true false a 2000-01-01 2000-01-01Z 2000-01-01T00:00:00 2000-01-01T00:00:00.0Z 2000-01-01T01:00:00+01:00"
lexicals = st.sampled_from(["", "\n", *_NUMBERS.split(), *_OTHERS.split()])
datatypes = st.sampled_from(["integer", "byte", "decimal", "float", "double", "boolean", "string", "date", "dateTime"])
literals = st.builds(of, lexicals, datatypes) | st.builds(lambda text: literal(text, None, "en"), lexicals)
terms = literals | st.sampled_from([iri("urn:a"), iri("urn:b"), blank("a"), blank("b")])


@given(terms, terms)
def test_it_is_total_and_keeps_what_is_less_by_value(left: Term, right: Term) -> None:
    assert (key(left) == key(right)) == (left == right)
    assert (key(left) < key(right)) == (left != right and not key(right) < key(left))
    if values.compare(left, right) == -1:
        assert key(left) < key(right)


@given(terms, terms, terms)
def test_it_is_transitive(one: Term, two: Term, three: Term) -> None:
    assert not (key(one) < key(two) < key(three)) or key(one) < key(three)


@given(st.lists(terms | st.none()).flatmap(lambda bag: st.tuples(st.just(bag), st.permutations(bag))))
def test_the_order_does_not_depend_on_the_order_before(bags: tuple[list[Term | None], list[Term | None]]) -> None:
    one, other = bags
    assert sorted(one, key=key) == sorted(other, key=key)
