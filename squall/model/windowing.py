"""Windows that are given from outside of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from squall.model.expressions import Exists, Negation, Optional, Union
from squall.model.sources import Graph, Source
from squall.model.systems import System
from squall.model.windows import LANDMARK, Window


def with_windows(
    system: System, window: Window = LANDMARK, windows: Mapping[str, Window] | None = None, removals: bool = False
) -> System:
    """Returns the system with windows on all sources that name none themselves, in all of its parts.

    Args:
        system: The system.
        window: The window of streams that are not in `windows`.
        windows: Windows by stream.
        removals: Whether streams may carry removals.
    """
    return _apply_defaults(system, Source("", window, tuple(sorted((windows or {}).items())), removals))


def _with_default_windows(source: Source, default: Source) -> Source:
    """Returns a source with the windows of a default source, if it has none of its own."""
    if (source.window, source.windows) != (LANDMARK, ()):
        return replace(source, removals=source.removals or default.removals)
    if source.iri and not isinstance(source, Graph):
        return replace(source, window=default.window_of(source.iri), removals=default.removals)
    return replace(source, window=default.window, windows=default.windows, removals=default.removals)


def _apply_defaults(system: System, default: Source) -> System:
    def part(component: Any) -> Any:
        match component:
            case System():
                return _apply_defaults(component, default)
            case Union(branches=branches):
                return replace(component, branches=tuple(_apply_defaults(branch, default) for branch in branches))
            case Optional(system=nested, exists=exists):
                return replace(component, system=_apply_defaults(nested, default), exists=tuple(map(part, exists)))
            case Exists(system=nested):
                return replace(component, system=_apply_defaults(nested, default))
            case Negation(joinables=joinables):
                return replace(component, joinables=tuple(map(part, joinables)))
            case _:
                return component

    return replace(
        system,
        sources=tuple(_with_default_windows(source, default) for source in system.sources),
        joinables=tuple(map(part, system.joinables)),
        predicates=tuple(map(part, system.predicates)),
        subsystems=tuple(map(part, system.subsystems)),
    )
