"""Trees, systems and plans as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from squall.plan.node_metrics import PlanMetrics

_LEFT_OUT = ("origin", "plan_again", "declared_names", "axioms")
"""Fields that are no part of what a value means."""


def as_json(value: object, metrics: PlanMetrics | None = None) -> str:
    """Encodes a tree, a system or a plan as JSON: each part is an object with its ``kind`` and its fields.

    Args:
        value: The tree, system or plan. Origins and functions are left out.
        metrics: Metrics of a plan's nodes. They become the field ``metrics``, by node id (``seconds`` are seconds).
    """
    data = _data(value)
    if metrics:
        data = data | {"metrics": {id: asdict(metric) for id, metric in metrics.items()}}
    return json.dumps(data, indent=2, ensure_ascii=False)


def _data(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _data(getattr(value, field.name)) for field in fields(value) if field.name not in _LEFT_OUT}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, frozenset):
        value = sorted(value)
    if isinstance(value, tuple | list):
        return [_data(item) for item in value]
    return value
