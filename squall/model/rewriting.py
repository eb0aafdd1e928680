"""Rewriting of systems: a map over the direct parts of a component."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar

MODEL_PACKAGE = "squall.model."

T = TypeVar("T")


def map_parts(part: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a part of a system in which `change` is applied to each direct part.

    The direct parts are the members of a tuple and the fields of a component. Anything else (a window, a name) is
    returned as it is, and so is a part of which nothing changes.
    """
    if isinstance(part, tuple):
        return map_items(part, change)
    kind: type = type(part)
    return map_fields(part, field_names(kind), change) if kind.__module__.startswith(MODEL_PACKAGE) else part


def map_items(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Returns a tuple in which `change` is applied to each item; the tuple itself if it returns the same objects."""
    changed = tuple(map(change, items))
    return items if all(map(is_, changed, items)) else changed


def map_fields(part: T, names: Iterable[str], change: Callable[[Any], Any]) -> T:
    """Returns a dataclass instance in which `change` is applied to each of the named fields; the instance itself if it
    returns the same objects."""
    values = {name: getattr(part, name) for name in names}
    changes = {name: new for name, old in values.items() if (new := change(old)) is not old}
    return replace(part, **changes) if changes else part  # type: ignore[type-var]


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Returns the names of the fields that the constructor of a dataclass takes; none for another class."""
    return tuple(field.name for field in fields(kind) if field.init) if is_dataclass(kind) else ()
