"""Trees, systems and plans as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from squall.plan.node_metrics import Figures


def as_json(thing: object, figures: Figures | None = None) -> str:
    """A tree, a system or a plan as JSON: each part an object with its ``kind`` and its fields, origins left out.

    figures: those of a plan's nodes, as the field ``figures`` by the nodes' ids (``seconds`` are seconds).
    """
    data = _data(thing)
    if figures:
        data = data | {"figures": {id: asdict(figure) for id, figure in figures.items()}}
    return json.dumps(data, indent=2, ensure_ascii=False)


def _data(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _data(getattr(value, field.name)) for field in fields(value) if field.name != "origin"}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, tuple | list | frozenset):
        return [_data(item) for item in value]
    return value
