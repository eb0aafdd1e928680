"""A row as one string, for messages: exact, also where a cell is unbound or has a place in an order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from squall.builders.rows.entries import Head, Row, answer_row, row_fact
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


def _as_json(row: Sequence[str | None]) -> str:
    cells = [[str(cell), cell.order, *cell.origin] if isinstance(cell, Head) else cell for cell in row]
    return _JSON + json.dumps(cells, ensure_ascii=False)


def unpack(text: str, orders: Orders | None = None) -> Row:
    """The row of a string. orders: needed where solutions have an order."""
    if text[:1] != _JSON:
        return tuple(text.split("\n")) if text else ()
    return tuple(_head(cell, orders or {}) if isinstance(cell, list) else cell for cell in json.loads(text[1:]))


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
