"""Metrics of a plan's nodes, estimated and measured, and the file that stores them between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from squall.errors import UsageError
from squall.plan import Plan


@dataclass(frozen=True)
class NodeMetric:
    """The metrics of one node; None means unknown.

    Attributes:
        estimated: The number of rows out that the planner expects.
        rows: The number of deltas out, as counted.
        state: The number of entries of operator state at the end.
        seconds: The time spent in the node itself.
        joins: The joins of the plan that ran as one multiway join, which has these metrics; without that, None.
    """

    estimated: float | None = None
    rows: int | None = None
    state: int | None = None
    seconds: float | None = None
    joins: tuple[str, ...] | None = None


PlanMetrics = Mapping[str, NodeMetric]
"""Metrics by node id. A node without metrics is left out."""


_HINT = "run the program once more with `--profile-nodes`"


def save(figures: PlanMetrics, path: str | Path, plan: Plan) -> None:
    """Writes the metrics of the plan's nodes as JSON.

    Raises:
        UsageError: The metrics belong to another plan, or the file cannot be written.
    """
    _check_nodes(figures, plan, "the figures")
    values = {id: _known_values(figure) for id, figure in figures.items()}
    text = json.dumps({"plan": _fingerprint(plan), "nodes": values}, indent=1, ensure_ascii=False)
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {error.strerror}") from error


def load(path: str | Path, plan: Plan) -> dict[str, NodeMetric]:
    """Loads the metrics that `save` wrote.

    Raises:
        UsageError: The file cannot be read, `save` did not write it, or it belongs to another plan: one in which a
            node, a rule or the planner differs.
    """
    data = _read(path)
    try:
        figures = {id: _metric(values) for id, values in data["nodes"].items()}
        fingerprint = data["plan"]
    except (AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"`{path}` does not hold the figures of a plan", hint=_HINT) from error
    _check_nodes(figures, plan, f"`{path}`")
    if fingerprint != _fingerprint(plan):
        raise UsageError(
            f"`{path}` is of another plan: its nodes have the same names, but do something else", hint=_HINT
        )
    return figures


def _known_values(figure: NodeMetric) -> dict[str, Any]:
    return {name: value for name, value in asdict(figure).items() if value is not None}


def _metric(values: dict[str, Any]) -> NodeMetric:
    joins = values.pop("joins", None)
    if not isinstance(joins, list | None) or not all(isinstance(value, int | float) for value in values.values()):
        raise TypeError("a figure is a number")
    return NodeMetric(**values, joins=joins if joins is None else tuple(map(str, joins)))


def _read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}", hint=_HINT) from error
    except ValueError as error:
        raise UsageError(f"`{path}` is not JSON: {error}", hint=_HINT) from error


def _check_nodes(figures: PlanMetrics, plan: Plan, what: str) -> None:
    strange = sorted(figures.keys() - plan.by_id.keys())
    if strange:
        raise UsageError(f"{what}: not of this plan, which has no node `{strange[0]}`", hint=_HINT)


def _fingerprint(plan: Plan) -> str:
    """Returns a digest of the plan. Numbered nodes (greedy) have the same ids in many plans, but another digest."""
    return hashlib.sha256(repr(plan.nodes).encode()).hexdigest()
