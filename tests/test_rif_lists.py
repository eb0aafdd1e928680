"""Lists of RIF: by example, and by law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall import functions
from squall.errors import TranslatorError
from squall.functions.rif.names import FUNC, PRED
from squall.model import Call, Filter, TableFunction, Variable
from squall.rdf import Term, literal, parts
from squall.rdf.compounds import depth
from squall.translators.common import Scope, lower_call
from tests.rif_calls import SPELLED, A, Result, X, call, check, listed, of

FIVE, NESTED = listed(0, 1, 2, 3, 4), listed(0, listed(1, 2), listed(of("01"), 2))


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("is-list", (FIVE,), True), ("is-list", (listed(),), True), ("is-list", (X,), False), ("is-list", (A,), False),
        ("is-list", (literal("<urn:x-squall:list>(", "urn:x-squall:compound"),), False),
        ("list-contains", (FIVE, of("02")), True), ("list-contains", (FIVE, of(5)), False),
        ("list-contains", (NESTED, listed(1, of("2.0", "decimal"))), True), ("list-contains", (NESTED, of(1)), False),
        ("list-contains", (A, A), False), ("list-contains", (listed(), A), False),
        ("make-list", (), listed()), ("make-list", (of(0), X, listed(1)), listed(0, X, listed(1))),
        ("count", (FIVE,), of(5)), ("count", (listed(),), of(0)), ("count", (NESTED,), of(3)), ("count", (A,), None),
        ("get", (FIVE, of(0)), of(0)), ("get", (FIVE, of(4)), of(4)), ("get", (FIVE, of(-5)), of(0)),
        ("get", (FIVE, of(-1)), of(4)), ("get", (FIVE, of(5)), None), ("get", (FIVE, of(-6)), None),
        ("get", (FIVE, of("1.0", "decimal")), of(1)), ("get", (FIVE, of("1", "double")), None),
        ("get", (FIVE, of("1.5", "decimal")), None), ("get", (of(1), of(0)), None),
        ("sublist", (FIVE, of(0), of(0)), listed()), ("sublist", (FIVE, of(0), of(4)), listed(0, 1, 2, 3)),
        ("sublist", (FIVE, of(0), of(10)), FIVE), ("sublist", (FIVE, of(0), of(-2)), listed(0, 1, 2)),
        ("sublist", (FIVE, of(2), of(4)), listed(2, 3)), ("sublist", (FIVE, of(2), of(-2)), listed(2)),
        ("sublist", (FIVE, of(0)), FIVE), ("sublist", (FIVE, of(3)), listed(3, 4)),
        ("sublist", (FIVE, of(-2)), listed(3, 4)), ("sublist", (FIVE, of(4), of(2)), listed()),
        ("append", (FIVE, of(5), of(6)), listed(0, 1, 2, 3, 4, 5, 6)), ("append", (listed(), X), listed(X)),
        ("append", (listed(1), listed(2)), listed(1, listed(2))), ("append", (FIVE,), FIVE), ("append", (X, X), None),
        ("concatenate", (listed(1), listed(1), listed(listed(2))), listed(1, 1, listed(2))),
        ("concatenate", (), listed()), ("concatenate", (FIVE, X), None),
        ("insert-before", (FIVE, of(0), of(99)), listed(99, 0, 1, 2, 3, 4)),
        ("insert-before", (FIVE, of(1), of(99)), listed(0, 99, 1, 2, 3, 4)),
        ("insert-before", (FIVE, of(5), of(99)), listed(0, 1, 2, 3, 4, 99)),
        ("insert-before", (FIVE, of(6), of(99)), None), ("insert-before", (FIVE, of(-6), of(99)), None),
        ("insert-before", (FIVE, of(-5), of(99)), listed(99, 0, 1, 2, 3, 4)),
        ("insert-before", (FIVE, of(-1), of(99)), listed(0, 1, 2, 3, 99, 4)),
        ("remove", (FIVE, of(0)), listed(1, 2, 3, 4)), ("remove", (FIVE, of(-1)), listed(0, 1, 2, 3)),
        ("remove", (FIVE, of(5)), None), ("remove", (listed(), of(0)), None),
        ("reverse", (FIVE,), listed(4, 3, 2, 1, 0)), ("reverse", (listed(),), listed()),
        ("index-of", (listed(0, 1, 2, of("02")), of(2)), listed(2, 3)), ("index-of", (FIVE, X), listed()),
        ("union", (listed(0, 1), listed(of("01"), 2), listed(0)), listed(0, 1, 2)), ("union", (), listed()),
        ("distinct-values", (listed(3, 1, of("3.0", "decimal"), 1),), listed(3, 1)),
        ("distinct-values", (NESTED,), listed(0, listed(1, 2))),
        ("intersect", (FIVE, listed(4, 1), listed(1, of("4.0", "decimal"))), listed(1, 4)),
        ("intersect", (listed(1, 1, 2), listed(1)), listed(1, 1)), ("intersect", (FIVE,), FIVE),
        ("intersect", (FIVE, listed()), listed()), ("except", (FIVE, listed(of("01"), 3)), listed(0, 2, 4)),
        ("except", (listed(1, 1, 2), listed(2)), listed(1, 1)), ("except", (FIVE, A), None),
    ],
)  # fmt: skip
def test_lists(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


ITEMS = st.lists(st.one_of(st.integers(0, 3).map(of), st.sampled_from([X, of("01"), listed(1), listed(of("01"))])))
LISTS = ITEMS.map(lambda items: listed(*items))


@given(LISTS, LISTS, LISTS)
def test_laws_of_lists(one: Term, two: Term, three: Term) -> None:
    both = call("concatenate", one, two)
    assert call("concatenate", both, three) == call("concatenate", one, call("concatenate", two, three))
    assert call("reverse", both) == call("concatenate", call("reverse", two), call("reverse", one))
    assert call("sublist", both, call("count", one)) == two
    assert call("union", one, two) == call("distinct-values", both)
    assert call("except", call("union", one, two), two) == call("distinct-values", call("except", one, two))
    without = call("except", one, two)
    assert call("intersect", one, without) == without


@given(LISTS, st.integers(-9, 9), st.sampled_from([X, of(7)]))
def test_inserted_items_can_be_removed(items: Term, position: int, item: Term) -> None:
    more = call("insert-before", items, of(position), item)
    count = int(parts(call("count", items)).lexical)
    assert (more is None) == (not -count <= position <= count)
    if more is not None:
        place = of(position if position >= 0 else position - 1)
        assert call("get", more, place) == item
        assert call("remove", more, place) == items
        assert call("list-contains", more, item) is True


@given(LISTS)
def test_the_members_of_a_list_are_what_it_contains(items: Term) -> None:
    (mode,) = SPELLED[PRED + "list-contains"].modes
    assert (mode.targets(2), mode.arguments(2), mode.table) == (range(1, 2), (0,), True)
    members = functions.lookup(mode.function).body
    assert call("distinct-values", items) == listed(*(item for (item,) in members(items)))
    assert members(None) == members(X) == []


def test_a_call_computes_each_member_of_a_list_or_asks_for_one() -> None:
    builtin, items, member = SPELLED[PRED + "list-contains"], Variable("list"), Variable("member")
    (mode,) = builtin.modes
    scope = Scope(lambda: "rule", bound=[items])
    assert list(lower_call(builtin, (items, member), scope, None)) == [
        TableFunction((member,), mode.function, (items,))
    ]
    assert list(lower_call(builtin, (items, member), scope, None)) == [Filter(Call(builtin.name, (items, member)))]
    assert scope.bound == [items, member]
    with pytest.raises(TranslatorError, match="is not bound where"):
        list(lower_call(builtin, (Variable("other"), Variable("new")), scope, None))


def test_what_puts_a_term_into_a_list_nests_terms() -> None:
    nesting = [name for name, item in SPELLED.items() if item.modes and functions.lookup(item.modes[0].function).nests]
    assert sorted(nesting) == [FUNC + name for name in ("append", "insert-before", "make-list")]
    for name in nesting:
        inputs = (FIVE, of(0), FIVE)[: 3 if name.endswith("before") else 2]
        assert depth(call(name.removeprefix(FUNC), *inputs)) <= 2
