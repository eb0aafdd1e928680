"""Rows as strings and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.builders.packing import orders, pack, unpack
from squall.builders.rows.entries import Head, Row, answer_row, row_fact, solution_mark
from squall.operators import Answer, Column, Deliver, Unit
from squall.plan import Input, Node, Plan
from squall.rdf import Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple, literal

CELLS = st.one_of(st.none(), st.text(), st.sampled_from(["", "\n", "\0", "\0[]", "<a>", '"1"', "?x\nq"]))


@given(st.lists(CELLS))
def test_a_row_comes_back_as_it_was(cells: list[str | None]) -> None:
    assert unpack(pack(cells)) == tuple(cells)


@given(st.lists(st.lists(CELLS), unique_by=tuple))
def test_no_two_rows_are_one_string(rows: list[list[str | None]]) -> None:
    assert len({pack(row) for row in rows}) == len(rows)


def test_a_place_in_an_order_comes_back() -> None:
    answer = Answer(("x",), (1,), ("q",), order=((Column(0), True),))
    plan = Plan((Node("u", Unit()), Node("a", answer, (Input("u"),)), Node("d", Deliver(), (Input("a"),))))
    known = orders(plan)
    mark = solution_mark(("x",), "q")
    key = known[mark]

    def head(*row: str | None) -> Head:
        return Head(mark, key(row), row)

    one, two = (literal(text) for text in ("1", "2"))
    for row in ((one, two), (None, two)):
        (back, value, rule) = unpack(pack((head(*row), two, "q")), known)
        assert (back, value, rule) == (head(*row), two, "q")
        assert isinstance(back, Head)
        assert len({back, head(two, two)}) == 2
        assert back.key > head(two, two).key, "it descends"


@pytest.mark.parametrize(
    "answer",
    [
        Triple(Term("<s>"), Term("<p>"), Term("<o>")),
        Atom(Term("<r>"), (Term("<a>"),)),
        Quad(Term("<s>"), Term("<p>"), Term("<o>"), Term("<g>")),
        Solution(("x", "y"), (Term("<a>"), None)),
        Solution((), ()),
        Boolean(True),
        Boolean(False),
    ],
)
def test_an_answer_comes_back_from_its_row(answer: Fact | Quad | Solution | Boolean) -> None:
    row: Row = unpack(pack(answer_row(answer)))
    back: Any = row_fact(row)
    assert (type(back), back) == (type(answer), answer)


def test_that_an_evaluation_is_complete_is_no_row() -> None:
    with pytest.raises(ValueError, match="no answer"):
        answer_row(Evaluated(()))
