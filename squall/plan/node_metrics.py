"""Figures of a plan's nodes: what was estimated and what was measured, and the file that keeps them between runs."""

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
    """What is known of one node; None: not known.

    estimated: rows out, as the planner expects. rows: entries out, as counted. state: entries kept at the end.
    seconds: time spent in the node itself.
    """

    estimated: float | None = None
    rows: int | None = None
    state: int | None = None
    seconds: float | None = None


PlanMetrics = Mapping[str, NodeMetric]
"""By the node's id. A node that is left out has no figures."""

_AGAIN = "run the program once more with `--profile-nodes`"


def save(figures: PlanMetrics, path: str | Path, plan: Plan) -> None:
    """Writes the figures of the plan's nodes as JSON. Raises UsageError where they are another plan's, or where the
    file cannot be written."""
    _belong(figures, plan, "the figures")
    known = {id: _known(figure) for id, figure in figures.items()}
    text = json.dumps({"plan": _fingerprint(plan), "nodes": known}, indent=1, ensure_ascii=False)
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {error.strerror}") from error


def load(path: str | Path, plan: Plan) -> dict[str, NodeMetric]:
    """The figures that `save` wrote. Raises UsageError where the file cannot be read, is none of `save`'s, or is of
    another plan: one of which a node, a rule or the planner was changed."""
    data = _read(path)
    try:
        figures = {id: _figures(values) for id, values in data["nodes"].items()}
        fingerprint = data["plan"]
    except (AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"`{path}` does not hold the figures of a plan", hint=_AGAIN) from error
    _belong(figures, plan, f"`{path}`")
    if fingerprint != _fingerprint(plan):
        raise UsageError(
            f"`{path}` is of another plan: its nodes have the same names, but do something else", hint=_AGAIN
        )
    return figures


def _known(figure: NodeMetric) -> dict[str, float]:
    return {name: value for name, value in asdict(figure).items() if value is not None}


def _figures(values: dict[str, Any]) -> NodeMetric:
    if not all(isinstance(value, int | float) for value in values.values()):
        raise TypeError("a figure is a number")
    return NodeMetric(**values)


def _read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}", hint=_AGAIN) from error
    except ValueError as error:
        raise UsageError(f"`{path}` is not JSON: {error}", hint=_AGAIN) from error


def _belong(figures: PlanMetrics, plan: Plan, what: str) -> None:
    strange = sorted(figures.keys() - plan.by_id.keys())
    if strange:
        raise UsageError(f"{what}: not of this plan, which has no node `{strange[0]}`", hint=_AGAIN)


def _fingerprint(plan: Plan) -> str:
    """Numbered nodes (greedy) have the same ids in many plans; this tells them apart."""
    return hashlib.sha256(repr(plan.nodes).encode()).hexdigest()
