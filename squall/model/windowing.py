"""Systems through windows that are given from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from squall.model.expressions import Exists, Optional, Union, Without
from squall.model.sources import Graph, Source
from squall.model.systems import System
from squall.model.windows import LANDMARK, Window


def over(
    system: System, window: Window = LANDMARK, windows: Mapping[str, Window] | None = None, removals: bool = False
) -> System:
    """The system with windows on what names none itself, in all of its parts: `windows` by stream, `window` for the
    others. removals: whether streams may carry removals."""
    return _over(system, Source("", window, tuple(sorted((windows or {}).items())), removals))


def _through(source: Source, default: Source) -> Source:
    """A source through the windows of another, if it has none of its own."""
    if (source.window, source.windows) != (LANDMARK, ()):
        return replace(source, removals=source.removals or default.removals)
    if source.iri and not isinstance(source, Graph):
        return replace(source, window=default.window_of(source.iri), removals=default.removals)
    return replace(source, window=default.window, windows=default.windows, removals=default.removals)


def _over(system: System, default: Source) -> System:
    def part(one: Any) -> Any:
        match one:
            case System():
                return _over(one, default)
            case Union(branches=branches):
                return replace(one, branches=tuple(_over(branch, default) for branch in branches))
            case Optional(system=inner, exists=exists):
                return replace(one, system=_over(inner, default), exists=tuple(map(part, exists)))
            case Exists(system=inner):
                return replace(one, system=_over(inner, default))
            case Without(joinables=joinables):
                return replace(one, joinables=tuple(map(part, joinables)))
            case _:
                return one

    return replace(
        system,
        sources=tuple(_through(source, default) for source in system.sources),
        joinables=tuple(map(part, system.joinables)),
        predicates=tuple(map(part, system.predicates)),
        subsystems=tuple(map(part, system.subsystems)),
    )
