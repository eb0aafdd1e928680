"""Rewriting of systems: a map over the direct parts of a component."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

MODEL_PACKAGE = "squall.model."


def map_parts(part: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a part of a system in which `change` is applied to each direct part.

    The direct parts are the members of a tuple and the fields of a component. Anything else (a window, a name) is
    returned as it is.
    """
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if is_dataclass(part) and type(part).__module__.startswith(MODEL_PACKAGE):
        return replace(part, **{part_field.name: change(getattr(part, part_field.name)) for part_field in fields(part)})  # type: ignore[type-var]
    return part
