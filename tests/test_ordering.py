"""The total order of terms: that of SPARQL's ORDER BY where it has one, and no ties between terms."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.functions import values
from squall.functions.ordering import descending, key, sortable, sortable_text
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
"""Terms in the order that the docstring of `key` defines, with at least one pair for each of its clauses."""


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
def test_the_order_is_total_and_agrees_with_values(left: Term, right: Term) -> None:
    assert (key(left) == key(right)) == (left == right)
    assert (key(left) < key(right)) == (left != right and not key(right) < key(left))
    if values.compare(left, right) == -1:
        assert key(left) < key(right)


@given(terms, terms, terms)
def test_it_is_transitive(one: Term, two: Term, three: Term) -> None:
    assert not (key(one) < key(two) < key(three)) or key(one) < key(three)


@given(st.lists(terms | st.none()).flatmap(lambda bag: st.tuples(st.just(bag), st.permutations(bag))))
def test_the_order_does_not_depend_on_the_order_before(bags: tuple[list[Term | None], list[Term | None]]) -> None:
    item, other = bags
    assert sorted(item, key=key) == sorted(other, key=key)


# As text


def test_as_text_all_kinds_are_in_the_same_order() -> None:
    assert sorted(set(SORTED), key=sortable) == SORTED
    assert sorted(set(SORTED), key=lambda term: descending(sortable(term))) == SORTED[::-1]


numbers = st.one_of(
    st.integers().map(lambda value: of(str(value), "integer")),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda value: of(f"{value:f}", "decimal")),
    st.floats().map(lambda value: of(repr(value).replace("inf", "INF").replace("nan", "NaN"), "double")),
    st.floats(width=32).map(lambda value: of(repr(value).replace("inf", "INF").replace("nan", "NaN"), "float")),
)
durations = st.sampled_from(["P1Y", "P2M", "-P1M", "PT0.5S", "-PT0.05S", "P1DT1S", "-P1Y2M3DT4H5M6.7S"])
any_terms = st.one_of(
    terms, numbers, st.none(), durations.map(lambda lexical: of(lexical, "duration")), st.text().map(literal)
)


@given(any_terms, any_terms)
def test_text_is_less_for_what_the_key_is_less_for(one: Term | None, other: Term | None) -> None:
    assert (sortable(one) < sortable(other)) == (key(one) < key(other))
    assert (sortable(one) == sortable(other)) == (one == other)
    assert (descending(sortable(one)) < descending(sortable(other))) == (key(other) < key(one))


@given(st.lists(st.tuples(any_terms, any_terms), min_size=2, max_size=2), st.tuples(st.booleans(), st.booleans()))
def test_of_several_the_first_that_differs_decides(
    rows: list[tuple[Term | None, Term | None]], falls: tuple[bool, bool]
) -> None:
    def text(row: tuple[Term | None, Term | None]) -> str:
        parts = zip(map(sortable, row), falls, strict=True)
        return "".join(descending(part) if down else part for part, down in parts)

    item, other = rows
    place = 0 if item[0] != other[0] else 1
    less = key(item[place]) > key(other[place]) if falls[place] else key(item[place]) < key(other[place])
    assert (text(item) < text(other)) == less


@given(st.text(), st.text())
def test_any_text_is_compared_by_code_points_and_begins_no_other(one: str, other: str) -> None:
    """The sort keys compare alike in Python and in UTF-8. They contain no line feed."""
    texts = [sortable_text(text) for text in (one, other)]
    assert (texts[0] < texts[1]) == (one < other)
    assert one == other or not texts[1].startswith(texts[0])
    assert not any("\n" in text for text in texts)
    assert (texts[0].encode() < texts[1].encode()) == (one < other)


def test_long_numbers_stay_exact() -> None:
    digits = "1" * 1990
    long = [of(f"{sign}{digits[:-1]}{last}", "integer") for sign, last in (("-", 2), ("-", 1), ("", 1), ("", 2))]
    assert sorted(long, key=sortable) == long
    tiny = [of(f"-0.{'0' * 1900}2", "decimal"), of("5e-324", "double"), of("1e308", "double")]
    assert sorted(tiny, key=sortable) == tiny
