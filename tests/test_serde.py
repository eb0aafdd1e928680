"""Serialization of rows, deltas and outputs."""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.builders.runtime.serde import (
    pack,
    pack_all,
    pack_output,
    pack_outputs,
    unpack,
    unpack_all,
    unpack_output,
    unpack_outputs,
)
from squall.builders.runtime.zset import Row, answer_row, row_fact
from squall.contracts import Output
from squall.rdf import ALWAYS, FOREVER, Atom, Boolean, Evaluated, Fact, Quad, Solution, Term, Triple

CELLS = st.one_of(st.none(), st.text(), st.sampled_from(["", "\n", "\0", "\0[]", "<a>", '"1"', "?x\nq", "?x\tq"]))


@given(st.lists(CELLS))
def test_a_row_survives_a_round_trip(cells: list[str | None]) -> None:
    assert unpack(pack(cells)) == tuple(cells)


@given(st.lists(st.lists(CELLS), unique_by=tuple))
def test_no_two_rows_are_one_string(rows: list[list[str | None]]) -> None:
    assert len({pack(row) for row in rows}) == len(rows)


SPANS = st.tuples(st.integers(ALWAYS, FOREVER), st.integers(ALWAYS, FOREVER), st.integers(-3, 3))


@given(st.lists(st.lists(CELLS, max_size=3), min_size=1), st.lists(SPANS, min_size=1))
def test_deltas_survive_a_round_trip(rows: list[list[str | None]], spans: list[tuple[int, ...]]) -> None:
    """The deltas may be of equal width, as most are, or not."""
    for some in (rows, [row for row in rows if len(row) == len(rows[0])]):
        deltas = [(*row, *span) for row, span in zip(some, cycle(spans), strict=False)]
        packed = pack_all(deltas)
        assert unpack_all(packed.text, packed.spans) == deltas
        used = spans[: len(deltas)]
        assert packed.start == max(start for start, _, _ in used)
        assert packed.end == max({end for _, end, _ in used} - {FOREVER}, default=FOREVER)


def test_who_packs_does_without_pandas() -> None:
    pytest.importorskip("pandas")
    script = """
import sys
from squall.builders.distributed.io.records import ROW, Record, RowBatch, from_arrow, split_by_stage, to_arrow
packed = list(to_arrow([RowBatch(ROW, 1, 2, 3, 4, [("<a>", "<b>", 5, 6, 7)]), Record(ROW, 0, 0, 0, 0, "", 0, 0, 0)]))
own = []
assert len(list(from_arrow(split_by_stage(packed, [0], own)))) == len(list(from_arrow(own))) == 1
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
def test_an_answer_survives_a_round_trip(answer: Fact | Quad | Solution | Boolean) -> None:
    row: Row = unpack(pack(answer_row(answer)))
    back: Any = row_fact(row)
    assert (type(back), back) == (type(answer), answer)


IRIS, NAMES = st.sampled_from(["<a>", "<b>"]).map(Term), st.sampled_from(["r", "", "r\nq", "\n\n\n", "\0"])
SUBJECTS = st.one_of(IRIS, st.sampled_from(["_:b", '"generalised"', "<<( <a> <b> <c> )>>"]).map(Term))
OBJECTS = st.one_of(SUBJECTS, st.sampled_from(['"1"', '"\\n"@en']).map(Term))
TRIPLES = st.builds(Triple, SUBJECTS, IRIS, OBJECTS)
OTHERS = st.one_of(
    st.builds(Quad, SUBJECTS, IRIS, OBJECTS, IRIS),
    st.builds(Atom, st.just(Term("<r>")), st.lists(OBJECTS, max_size=3).map(tuple)),
    st.builds(lambda value: Solution(("x",), (value,)), st.one_of(st.none(), OBJECTS)),
    st.builds(Boolean, st.booleans()),
    st.builds(lambda names: Evaluated(tuple(names)), st.lists(st.sampled_from("xy"), unique=True)),
)
CHANGES = st.sampled_from(("", "insert", "delete"))


@given(
    st.one_of(
        [
            st.lists(st.builds(Output, facts, st.integers(ALWAYS, FOREVER), names, CHANGES))
            for facts, names in product((TRIPLES, st.one_of(TRIPLES, OTHERS)), (st.just("r"), NAMES))
        ]
    ),
    st.integers(1, 3),
)
def test_outputs_survive_a_round_trip(outputs: list[Output], times: int) -> None:
    """Several outputs that are packed together are packed as each of them is."""
    outputs *= times
    texts = pack_outputs(outputs)
    assert texts == list(map(pack_output, outputs))
    answers = [(output.time, 0, text) for output, text in zip(outputs, texts, strict=True)]
    results = list(unpack_outputs(answers))
    assert results == outputs == [unpack_output(text, time) for time, _, text in answers]
    for item, output in zip(results, outputs, strict=True):
        assert (type(item), type(item.fact)) == (Output, type(output.fact))


def test_that_an_evaluation_is_complete_is_no_row() -> None:
    with pytest.raises(ValueError, match="no answer"):
        answer_row(Evaluated(()))
