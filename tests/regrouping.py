"""Draws any partitioning columns that `squall.plan.validation.check` allows, as other planners may choose them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from squall.plan import Node, Plan
from squall.plan.operators import (
    AntiJoin,
    DerivedStream,
    Distinct,
    Group,
    Join,
    LeftJoin,
    Sink,
    Slice,
    is_stateful,
    is_time_dependent,
)
from squall.plan.partitioning import Columns, inputs_by_kind, is_sequence, is_whole
from squall.plan.validation import check


def regrouped(draw: Random, plan: Plan) -> Plan:
    """Returns the plan with other grouping columns."""
    return check(replace(plan, nodes=tuple(_regrouped(draw, node, plan) for node in plan.nodes)))


def _regrouped(draw: Random, node: Node, plan: Plan) -> Node:
    if not is_stateful(node.op):
        return node
    keys = _keys(draw, node, plan)
    edges = zip(node.inputs, keys, strict=True)
    return replace(node, inputs=tuple(replace(edge, columns=columns) for edge, columns in edges))


def _keys(draw: Random, node: Node, plan: Plan) -> list[Columns]:
    """Draws the grouping columns of each input."""
    match node.op:
        case Join(on=on) | LeftJoin(on=on) | AntiJoin(on=on):
            pairs = _some(draw, on)
            return [tuple(pair[port] for pair in pairs) for port in (0, 1)]
        case Group(keys=keys) | Slice(keys=keys):
            return [_some(draw, keys)]
        case Distinct(by=by):
            return [_some(draw, range(by))] * len(node.inputs)
        case DerivedStream() | Sink():
            return _output_columns(draw, node, node.op, plan)
        case op if is_time_dependent(op):
            return [_some(draw, range(plan.widths[node.inputs[0].node]))]
    return [()] * len(node.inputs)


def _output_columns(draw: Random, node: Node, op: DerivedStream | Sink, plan: Plan) -> list[Columns]:
    columns: list[Columns] = [()] * len(node.inputs)
    for ports in inputs_by_kind(node, plan.by_id).values():
        results = [plan.by_id[node.inputs[port].node] for port in ports]
        full_result = (isinstance(op, DerivedStream) and is_whole(op)) or is_sequence(op, (item.op for item in results))
        cells = range(min(plan.widths[item.id] for item in results) - 1)
        key = () if full_result else _some(draw, cells)
        for port in ports:
            columns[port] = key
    return columns


def _some(draw: Random, items: Iterable[Any]) -> tuple[Any, ...]:
    """Draws some of the items, in any order."""
    existing = sorted({*items})
    return tuple(draw.sample(existing, draw.randrange(len(existing) + 1)))
