"""Changes what is directly in a part of a system, and leaves what is no part of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

PARTS = "squall.model."


def rebuilt(part: Any, change: Callable[[Any], Any]) -> Any:
    """The part of a system with all changed that is directly in it: the members of a tuple, the fields of a component.
    Anything else (a window, a name) stays as it is."""
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if is_dataclass(part) and type(part).__module__.startswith(PARTS):
        return replace(part, **{one.name: change(getattr(part, one.name)) for one in fields(part)})  # type: ignore[type-var]
    return part
