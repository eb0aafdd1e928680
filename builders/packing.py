"""Rows as strings, one by one or all those of a message: exact, also where a cell is unbound or has an order."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from squall.builders.rows.entries import Entry, Head, Row, answer_row, row_fact
from squall.builders.rows.timeline import order_name, ordering
from squall.operators import Answer
from squall.plan import Plan
from squall.rdf import Evaluated
from squall.stages import Output

_JSON = "\0"
"""What stands in front of a row that is written as JSON."""
_EVALUATED = "="
"""The first cell of the row that says that an evaluation is complete."""
Orders = Mapping[str, Callable[[Row], Any]]
"""By the name of an order the sort key of the row that a solution is made of."""


def pack(row: Sequence[str | None]) -> str:
    """A row as one string: its cells divided by line feeds, which no term's text has inside (N-Triples escapes them).
    As JSON where that could not be told apart again."""
    try:
        text = "\n".join(row)  # type: ignore[arg-type]  # that a cell is None is rare, and shows
    except TypeError:
        return _as_json(row)
    if text.count("\n") != len(row) - 1 or not text or text[0] == _JSON:
        return _as_json(row) if row else ""
    return text


def pack_all(entries: Sequence[Entry]) -> tuple[str, bytes]:
    """Entries as a string, which has their rows, and as 64-bit integers: their starts, ends and weights.

    The cells are divided by line feeds, column by column; as JSON where rows could not be told apart again.
    """
    spans = array("q", [entry[place] for place in (-3, -2, -1) for entry in entries]).tobytes()
    try:
        columns = list(zip(*entries, strict=True))[:-3]
        text = "\n".join(chain.from_iterable(columns))
    except (TypeError, ValueError):  # a cell is None, or one row is wider than another: rare, and shows
        return _all_as_json(entries), spans
    plain = text.count("\n") == max(len(columns) * len(entries) - 1, 0) and text[:1] != _JSON
    return (text, spans) if plain and (text or not columns) else (_all_as_json(entries), spans)


def unpack_all(text: str, spans: bytes, orders: Orders) -> list[Entry]:
    """The entries of which `pack_all` made this. orders: needed where solutions have an order."""
    numbers = array("q", spans)
    size = len(numbers) // 3
    starts, ends, weights = numbers[:size], numbers[size : 2 * size], numbers[2 * size :]
    if text[:1] == _JSON:
        rows = (_row(cells, orders) for cells in json.loads(text[1:]))
        return [(*row, *span) for row, *span in zip(rows, starts, ends, weights, strict=True)]
    cells = text.split("\n") if text else []
    columns = (cells[first : first + size] for first in range(0, len(cells), size))
    return list(zip(*columns, starts, ends, weights, strict=True))


def _all_as_json(entries: Sequence[Entry]) -> str:
    return _JSON + json.dumps([_cells(entry[:-3]) for entry in entries], ensure_ascii=False)


def _as_json(row: Sequence[str | None]) -> str:
    return _JSON + json.dumps(_cells(row), ensure_ascii=False)


def _cells(row: Sequence[str | None]) -> list[Any]:
    """What a row is in JSON."""
    return [[str(cell), cell.order, *cell.origin] if isinstance(cell, Head) else cell for cell in row]


def _row(cells: Sequence[Any], orders: Orders) -> Row:
    return tuple(_head(cell, orders) if isinstance(cell, list) else cell for cell in cells)


def unpack(text: str, orders: Orders | None = None) -> Row:
    """The row of a string. orders: needed where solutions have an order."""
    if text[:1] != _JSON:
        return tuple(text.split("\n")) if text else ()
    return _row(json.loads(text[1:]), orders or {})


def _head(cell: list[Any], orders: Orders) -> Head:
    first, order, *row = cell
    origin = tuple(row)
    return Head(first, orders[order](origin), origin, order)


def pack_output(output: Output) -> str:
    """An output as one string, but for its time."""
    fact = output.fact
    row = (_EVALUATED, *fact.names) if isinstance(fact, Evaluated) else answer_row(fact)
    return pack((*row, output.rule))


def unpack_output(text: str, time: int) -> Output:
    """The output of a string, at its time (integer ms)."""
    *cells, rule = unpack(text)
    if cells[0] == _EVALUATED:
        return Output(Evaluated(tuple(map(str, cells[1:]))), time, str(rule))
    return Output(row_fact(cells), time, str(rule))


def orders(plan: Plan) -> dict[str, Callable[[Row], Any]]:
    """The orders of the solutions of a plan's queries."""
    found = {node.op.order for node in plan.nodes if isinstance(node.op, Answer) and node.op.order}
    return {order_name(order): ordering(order) for order in found}
