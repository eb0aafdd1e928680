"""Systems and plans as text (the golden form): a plan is the trees of what each node feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from squall.explain import systems
from squall.explain.names import header, prefixes, shorten, with_prefixes
from squall.explain.words import edge, measured, operator
from squall.model import System
from squall.plan import Node, Plan
from squall.plan.node_metrics import Figures

WIDEST = 110
"""The column at which figures stand at the latest, but for longer lines."""


class _Line(NamedTuple):
    """A line, and the node that it is of, if it is one's own."""

    text: str
    id: str = ""


def text(thing: object, figures: Figures | None = None) -> str:
    """A system or a plan as text with shortened names, the prefixes first. Any other tree prints itself.

    figures: those of a plan's nodes, in a column behind them: rows expected (``~``), rows out, entries kept, time.
    """
    match thing:
        case System():
            return with_prefixes(systems.lines(thing))
        case Plan():
            return _plan(thing, figures or {})
        case _:
            return str(thing)


def _plan(plan: Plan, figures: Figures) -> str:
    lines = [*_lines(plan)]
    body = "\n".join(line.text for line in lines)
    known = prefixes(body)
    short = shorten(body, known).split("\n")
    behind = [measured(figures.get(line.id)) for line in lines]
    margin = min(max((len(line) for line, words in zip(short, behind, strict=True) if words), default=0), WIDEST)
    rows = (f"{line:<{margin}}  {words}" if words else line for line, words in zip(short, behind, strict=True))
    return header(known) + "\n".join(rows)


def _lines(plan: Plan) -> Iterator[_Line]:
    edges = sum(len(node.inputs) for node in plan.nodes)
    yield _Line(f"plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes, {edges} edges")
    drawn: set[str] = set()
    for node in plan.nodes:
        if all(input.feedback for input in node.inputs):
            yield _Line("")
            yield from _tree(plan, node, drawn)


class _Branch(NamedTuple):
    """An edge that is still to be drawn, in the margin of its producer."""

    margin: str
    target: str
    port: int
    last: bool


def _tree(plan: Plan, root: Node, drawn: set[str]) -> Iterator[_Line]:
    """A node and what it feeds. A node is drawn where it is met first; from then on an arrow leads to it, as feedback
    does always. With a stack of its own: a long body makes a tree deeper than Python recurses."""
    yield _Line(_node(root), root.id)
    drawn.add(root.id)
    waiting = _branches(plan, root.id, "")
    while waiting:
        branch = waiting.pop()
        target = plan.by_id[branch.target]
        input = target.inputs[branch.port]
        start = branch.margin + ("└─ " if branch.last else "├─ ")
        label = edge(input, branch.port if len(target.inputs) > 1 else None)
        note = f"  [{label}]" if label else ""
        if target.id in drawn or input.feedback:
            yield _Line(f"{start}-> {target.id}{note}")
            continue
        drawn.add(target.id)
        yield _Line(f"{start}{_node(target)}{note}", target.id)
        waiting += _branches(plan, target.id, branch.margin + ("   " if branch.last else "│  "))


def _branches(plan: Plan, id: str, margin: str) -> list[_Branch]:
    """What a node feeds, the first one last."""
    targets = plan.consumers[id]
    return [_Branch(margin, target, port, index == len(targets) - 1) for index, (target, port) in enumerate(targets)][
        ::-1
    ]


def _node(node: Node) -> str:
    return f"{node.id}: {operator(node.op)}"
