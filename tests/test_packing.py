"""Rows as strings and back."""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.builders.packing import pack, pack_all, unpack, unpack_all
from squall.builders.rows.entries import Row, answer_row, row_fact
from squall.rdf import ALWAYS, FOREVER, Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple

CELLS = st.one_of(st.none(), st.text(), st.sampled_from(["", "\n", "\0", "\0[]", "<a>", '"1"', "?x\nq", "?x\tq"]))


@given(st.lists(CELLS))
def test_a_row_comes_back_as_it_was(cells: list[str | None]) -> None:
    assert unpack(pack(cells)) == tuple(cells)


@given(st.lists(st.lists(CELLS), unique_by=tuple))
def test_no_two_rows_are_one_string(rows: list[list[str | None]]) -> None:
    assert len({pack(row) for row in rows}) == len(rows)


SPANS = st.tuples(st.integers(ALWAYS, FOREVER), st.integers(ALWAYS, FOREVER), st.integers(-3, 3))


@given(st.lists(st.lists(CELLS, max_size=3), min_size=1), st.lists(SPANS, min_size=1))
def test_entries_come_back_together_as_they_were(rows: list[list[str | None]], spans: list[tuple[int, ...]]) -> None:
    """Those as wide as each other, as most are, and others."""
    for some in (rows, [row for row in rows if len(row) == len(rows[0])]):
        entries = [(*row, *span) for row, span in zip(some, cycle(spans), strict=False)]
        packed = pack_all(entries)
        assert unpack_all(packed.text, packed.spans) == entries
        used = spans[: len(entries)]
        assert packed.start == max(start for start, _, _ in used)
        assert packed.end == max({end for _, end, _ in used} - {FOREVER}, default=FOREVER)


def test_who_packs_does_without_pandas() -> None:
    pytest.importorskip("pandas")
    script = """
import sys
from squall.builders.distributed.messages import ROW, Message, Parcel, apart, from_arrow, to_arrow
packed = list(to_arrow([Parcel(ROW, 1, 2, 3, 4, [("<a>", "<b>", 5, 6, 7)]), Message(ROW, 0, 0, 0, 0, "", 0, 0, 0)]))
own = []
assert len(list(from_arrow(apart(packed, [0], own)))) == len(list(from_arrow(own))) == 1
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


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
