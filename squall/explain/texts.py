"""Systems and plans as text (the golden form). A plan is printed as trees: each node above its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from squall.explain import systems
from squall.explain.words import edge_label, metrics_text, operator_label
from squall.model import System
from squall.plan import Node, Plan
from squall.plan.gates import gated_inputs
from squall.plan.node_metrics import PlanMetrics
from squall.rdf.prefixes import header, prefixes, shorten, with_prefixes

MAX_METRICS_COLUMN = 110
"""Metrics begin at this column at the latest, except behind longer lines."""


class _Line(NamedTuple):
    """A line of text, and the id of the node that it describes, if it describes one."""

    text: str
    id: str = ""


def text(value: object, metrics: PlanMetrics | None = None) -> str:
    """Prints a system or a plan with shortened names, after a line for each prefix. Any other tree prints itself.

    Args:
        value: A system, a plan, or a syntax tree.
        metrics: Metrics of a plan's nodes, printed in a column: estimated rows (``~``), rows out, state, time.
    """
    match value:
        case System():
            return with_prefixes(systems.lines(value))
        case Plan():
            return _plan(value, metrics or {})
        case _:
            return str(value)


def _plan(plan: Plan, metrics: PlanMetrics) -> str:
    lines = [*_lines(plan)]
    body = "\n".join(line.text for line in lines)
    namespaces = prefixes(body)
    short = shorten(body, namespaces).split("\n")
    measured = [metrics_text(metrics.get(line.id)) for line in lines]
    margin = min(
        max((len(line) for line, suffix in zip(short, measured, strict=True) if suffix), default=0), MAX_METRICS_COLUMN
    )
    rows = (f"{line:<{margin}}  {suffix}" if suffix else line for line, suffix in zip(short, measured, strict=True))
    return header(namespaces) + "\n".join(rows)


def _lines(plan: Plan) -> Iterator[_Line]:
    edges = sum(len(node.inputs) for node in plan.nodes)
    yield _Line(f"plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes, {edges} edges")
    drawn_ids: set[str] = set()
    for node in plan.nodes:
        if all(input.feedback for input in node.inputs):
            yield _Line("")
            yield from _tree(plan, node, drawn_ids)
    waiting = [*gated_inputs(plan)]
    if waiting:
        yield _Line("")
        yield _Line("later steps of patterns over time")
        yield from (_Line(f"  {input}") for input in waiting)


class _Branch(NamedTuple):
    """An edge that is still to be drawn, with the margin of its producer."""

    margin: str
    target: str
    port: int
    last: bool


def _tree(plan: Plan, root: Node, drawn_ids: set[str]) -> Iterator[_Line]:
    """Yields a node and its consumers.

    A node is drawn where it is met first. Later edges to it are arrows, as feedback edges always are. The function
    keeps its own stack: a long body makes a tree deeper than Python's recursion limit.
    """
    yield _Line(_node(root), root.id)
    drawn_ids.add(root.id)
    pending = _branches(plan, root.id, "")
    while pending:
        branch = pending.pop()
        target = plan.by_id[branch.target]
        input = target.inputs[branch.port]
        start = branch.margin + ("└─ " if branch.last else "├─ ")
        label = edge_label(input, branch.port if len(target.inputs) > 1 else None)
        note = f"  [{label}]" if label else ""
        if target.id in drawn_ids or input.feedback:
            yield _Line(f"{start}-> {target.id}{note}")
            continue
        drawn_ids.add(target.id)
        yield _Line(f"{start}{_node(target)}{note}", target.id)
        pending += _branches(plan, target.id, branch.margin + ("   " if branch.last else "│  "))


def _branches(plan: Plan, id: str, margin: str) -> list[_Branch]:
    """Returns the edges to a node's consumers, the first one last."""
    targets = plan.consumers[id]
    return [_Branch(margin, target, port, index == len(targets) - 1) for index, (target, port) in enumerate(targets)][
        ::-1
    ]


def _node(node: Node) -> str:
    return f"{node.id}: {operator_label(node.op)}"
