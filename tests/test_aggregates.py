"""Incremental aggregates agree with their definition over the list of current values."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squall import functions
from squall.builders.runtime.operators.aggregate import accumulator
from squall.errors import SquallError
from squall.functions import values
from squall.functions.aggregation import Accumulator
from squall.functions.ordering import key
from squall.functions.sparql import aggregates
from squall.plan.operators import Aggregate, Column
from squall.rdf import XSD, Term, blank, iri, is_blank, literal

OF = Column(0)
KINDS = ("count", "sum", "avg", "min", "max", "sample", "group_concat")


def of(lexical: str, datatype: str) -> Term:
    return literal(lexical, XSD + datatype)


def filled(kind: str, *bag: Term | None, distinct: bool = False) -> Accumulator:
    result = accumulator(Aggregate(kind, OF, distinct, ", "))
    for value in bag:
        result.add(value, 1)
    return result


ONE, TWO, THREE = (of(str(n), "integer") for n in (1, 2, 3))
HALF, FLOAT, DOUBLE = of("0.5", "decimal"), of("0.1", "float"), of("0.1", "double")
INF, MINUS_INF, NAN = of("INF", "double"), of("-INF", "float"), of("NaN", "float")
TEXT = literal("a\nb")


@pytest.mark.parametrize(
    ("kind", "bag", "expected"),
    [
        ("count", [], of("0", "integer")),
        ("count", [ONE, None, ONE, TEXT], of("3", "integer")),
        ("sum", [], of("0", "integer")),
        ("sum", [ONE, TWO, TWO], of("5", "integer")),
        ("sum", [of("4294967296", "integer"), ONE], of("4294967297", "integer")),
        ("sum", [ONE, of("0.50", "decimal")], of("1.5", "decimal")),
        ("sum", [HALF, HALF], of("1", "decimal")),
        ("sum", [FLOAT, FLOAT, ONE], of("1.2", "float")),
        ("sum", [FLOAT, DOUBLE], of("0.20000000149011612", "double")),
        ("sum", [DOUBLE] * 10, of("1.0", "double")),
        ("sum", [of("1e308", "double")] * 2, of("INF", "double")),
        ("sum", [of("-3e38", "float")] * 2, of("-INF", "float")),
        ("sum", [INF, ONE], of("INF", "double")),
        ("sum", [MINUS_INF, HALF], of("-INF", "float")),
        ("sum", [INF, MINUS_INF], of("NaN", "double")),
        ("sum", [NAN, ONE], of("NaN", "float")),
        ("sum", [ONE, TEXT], None),
        ("sum", [ONE, None], None),
        ("avg", [], of("0", "integer")),
        ("avg", [ONE, TWO], of("1.5", "decimal")),
        ("avg", [ONE, THREE], of("2", "decimal")),
        ("avg", [ONE, ONE, TWO], of("1." + "3" * 59, "decimal")),
        ("avg", [FLOAT, FLOAT], FLOAT),
        ("avg", [INF, ONE], of("INF", "double")),
        ("avg", [of("1e308", "double")] * 3, of("1.0E308", "double")),
        ("avg", [ONE, blank("b")], None),
        ("min", [], None),
        ("min", [TEXT, TWO], TWO),
        ("min", [None, TWO], None),
        ("max", [TEXT, TWO, iri("urn:x")], TEXT),
        ("max", [None, TWO], None),
        ("max", [of("9", "integer"), of("10.0", "decimal")], of("10.0", "decimal")),
        ("sample", [None, TEXT, TWO, iri("urn:x")], iri("urn:x")),
        ("group_concat", [], literal("")),
        ("group_concat", [TEXT, of("10", "int"), of("9", "int"), iri("urn:x")], literal("urn:x, 9, 10, a\nb")),
        ("group_concat", [ONE, None], None),
        ("group_concat", [ONE, blank("b")], None),
        ("group_concat", [TWO, ONE, TWO], literal("1, 2, 2")),
    ],
)
def test_the_value_of_a_bag(kind: str, bag: list[Term | None], expected: Term | None) -> None:
    assert filled(kind, *bag).value() == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("count", of("3", "integer")),
        ("sum", of("4.0", "decimal")),
        ("avg", of("1.3" + "3" * 58, "decimal")),
        ("min", ONE),
        ("max", TWO),
        ("group_concat", literal("1, 1.0, 2")),
    ],
)
def test_distinct_is_by_term(kind: str, expected: Term) -> None:
    result = filled(kind, ONE, TWO, ONE, of("1.0", "decimal"), TWO, distinct=True).value()
    assert result is not None
    assert values.same(result, expected)


def test_solutions_are_counted_whatever_their_values() -> None:
    result = accumulator(Aggregate("count"))
    result.add(None, 2)
    result.add(ONE, 1)
    assert result.value() == of("3", "integer")


@pytest.mark.parametrize("aggregate", [Aggregate("median", OF), Aggregate("count", distinct=True)])
def test_an_unknown_aggregate_is_refused(aggregate: Aggregate) -> None:
    with pytest.raises(SquallError, match=aggregate.kind):
        accumulator(aggregate)


def test_the_type_follows_the_remaining_values() -> None:
    result = filled("sum", ONE, DOUBLE, INF, TEXT)
    for removals, expected in ((TEXT, of("INF", "double")), (INF, of("1.1", "double")), (DOUBLE, ONE)):
        result.add(removals, -1)
        left = result.value()
        assert left is not None
        assert values.same(left, expected)


BAGS: list[list[Term | None]] = [
    [], [ONE], [TEXT], [blank("b")], [None], [ONE, ONE], [ONE, ONE, TWO], [ONE, TEXT, TEXT], [ONE, None]
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_planners_know_of_an_aggregate_is_true(kind: str) -> None:
    traits = functions.lookup_aggregate(kind)
    results = [filled(kind, *bag).value() for bag in BAGS]
    bound_bags = (result for bag, result in zip(BAGS, results, strict=True) if bag and None not in bag)
    once = [filled(kind, *dict.fromkeys(bag)).value() for bag in BAGS]
    other_values = [filled(kind, *(value and TEXT for value in bag)).value() for bag in BAGS]
    assert traits.always_bound == (None not in results)
    assert (traits.always_bound or traits.bound_if_values_are) == (None not in bound_bags)
    assert traits.ignores_duplicates == (results == once)
    assert traits.presence_only == (results == other_values)


# Against the definition


def naive(aggregate: Aggregate, bag: Sequence[Term | None]) -> Term | None:
    """Computes the aggregate by its definition, from the list of all values."""
    bag = list(dict.fromkeys(bag)) if aggregate.distinct else bag
    existing_items = sorted((value for value in bag if value is not None), key=key)
    match aggregate.kind:
        case "count":
            return values.integer(len(existing_items) if aggregate.expression else len(bag))
        case "sample":
            return existing_items[0] if existing_items else None
    if None in bag:
        return None
    match aggregate.kind:
        case "min":
            return existing_items[0] if existing_items else None
        case "max":
            return existing_items[-1] if existing_items else None
        case "group_concat":
            if any(map(is_blank, existing_items)):
                return None
            return literal(aggregate.separator.join(values.text(value) for value in existing_items))
    numbers = [values.number(value) for value in existing_items]
    if None in numbers:
        return None
    return naive_sum([number for number in numbers if number], aggregate.kind == "avg")


def naive_sum(numbers: Sequence[values.Number], average: bool) -> Term | None:
    kind = max(map(kind_of, numbers), default=aggregates.INTEGER)
    divisor = len(numbers) if average and numbers else 1
    kind = max(kind, aggregates.DECIMAL) if average and numbers else kind
    beyond = [n.value for n in numbers if isinstance(n.value, float) and not math.isfinite(n.value)]
    if beyond:
        return aggregates.number(float(sum(beyond)), kind)
    return aggregates.number(sum((Fraction(n.value) for n in numbers), Fraction(0)) / divisor, kind)


def kind_of(found: values.Number) -> int:
    if found.is_floating:
        return aggregates.FLOAT if found.kind == "float" else aggregates.DOUBLE
    return aggregates.INTEGER if isinstance(found.value, int) else aggregates.DECIMAL


lexicals = st.sampled_from(["0", "1", "-1", "2.50", "0.1", "1e300", "INF", "-INF", "NaN", "x", ""])
numerics = st.builds(
    of,
    st.integers(-(10**30), 10**30).map(str)
    | st.decimals(-100, 100, places=3).map(str)
    | st.floats(width=32).map(lambda value: values.text(values.double(value)))
    | st.floats().map(lambda value: values.text(values.double(value))),
    st.sampled_from(["integer", "int", "decimal", "float", "double"]),
)
small = st.builds(of, lexicals, st.sampled_from(["integer", "decimal", "float", "double", "string"]))
some = st.none() | small | numerics | st.sampled_from([iri("urn:a"), blank("a"), literal("a", None, "en")])
pools = st.lists(small, min_size=1, max_size=3) | st.lists(numerics, min_size=1) | st.lists(some, min_size=1)
shapes = st.builds(Aggregate, st.sampled_from(KINDS), st.just(OF), st.booleans(), st.sampled_from(["", ", "]))


@given(shapes, pools, st.data())
def test_each_change_agrees_with_the_definition(
    aggregate: Aggregate, pool: list[Term | None], data: st.DataObject
) -> None:
    result = accumulator(aggregate)
    bag: list[Term | None] = []
    for _ in range(data.draw(st.integers(1, 12))):
        value = data.draw(st.sampled_from(bag or pool) | st.sampled_from(pool))
        weight = data.draw(st.integers(-bag.count(value), 2))
        result.add(value, weight)
        bag += [value] * weight
        for _ in range(-weight):
            bag.remove(value)
        assert result.value() == naive(aggregate, bag)
        assert result.empty() == (not bag)


@given(shapes, st.lists(some, max_size=6), st.lists(some, max_size=3), st.data())
def test_changes_add_up_in_any_order(
    aggregate: Aggregate, bag: list[Term | None], gone: list[Term | None], data: st.DataObject
) -> None:
    """Within an instant a value may be retracted before it is inserted."""
    result = accumulator(aggregate)
    changes = [(value, 1) for value in bag + gone] + [(value, -1) for value in gone]
    for value, weight in data.draw(st.permutations(changes)):
        result.add(value, weight)
    assert result.value() == naive(aggregate, bag)


@pytest.mark.parametrize("kind", ["min", "max"])
def test_a_heap_is_bounded_by_the_live_values(kind: str) -> None:
    result = accumulator(Aggregate(kind, OF))
    edge = of("0" if kind == "min" else "5000", "integer")
    result.add(edge, 1)
    for n in range(1, 1000):
        result.add(of(str(n), "integer"), 1)
        if n > 5:
            result.add(of(str(n - 5), "integer"), -1)
    assert isinstance(result, aggregates._FirstValue)
    assert result.value() == edge
    assert len(result.heap) <= 40
    result.add(edge, -1)
    assert result.value() == of("995" if kind == "min" else "999", "integer")


# Rounding


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(16777217.0)
@example(1e-45)
@example(3.4028235677973366e38)
def test_a_sum_of_floats_is_rounded_as_the_machine_does(value: float) -> None:
    result = values.number(aggregates.number(Fraction(value), aggregates.FLOAT))
    try:
        (expected,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        expected = math.copysign(math.inf, value)
    assert result is not None
    assert result == (expected, "float")


def test_it_is_rounded_once() -> None:
    """By way of a double 16777217.000...1 would lose its last digit, be half-way, and go to 16777216."""
    result = filled("sum", of("16777216", "float"), of("1." + "0" * 30 + "1", "decimal"))
    assert result.value() == of("1.6777218E7", "float")
