"""The windows of sources that are given from outside of a pattern: by options, and by updates of the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from operator import itemgetter
from typing import Any

from squall.model.consequences import Insert
from squall.model.expressions import Exists, Negation, Optional, Union
from squall.model.reading import rules
from squall.model.rewriting import map_parts
from squall.model.sequences import Between, SequenceJoin
from squall.model.sources import Graph, Occurrences, Source
from squall.model.systems import System
from squall.model.temporal import Temporal
from squall.model.walk import walk
from squall.model.windows import EMPTY, LANDMARK, Window
from squall.rdf import iri_text


def with_windows(
    system: System, window: Window = LANDMARK, windows: Mapping[str, Window] | None = None, removals: bool = False
) -> System:
    """Returns the system with windows on all sources that name none themselves, in all of its parts.

    Args:
        system: The system.
        window: The window of streams that are not in `windows`.
        windows: Windows by stream.
        removals: Whether streams may carry removals. Sources that may have removals already keep them.
    """
    return _apply_defaults(system, Source("", window, tuple(sorted((windows or {}).items())), removals))


def _with_default_windows(source: Source, default: Source) -> Source:
    """Returns a source with the windows of a default source, if it has none of its own."""
    if isinstance(source, Occurrences):
        return source  # its stream is the program's own
    removals = source.removals or default.removals
    if (source.window, source.windows) != (LANDMARK, ()):
        return replace(source, removals=removals)
    if source.iri and not isinstance(source, Graph):
        return replace(source, window=default.window_of(source.iri), removals=removals)
    return replace(source, window=default.window, windows=default.windows, removals=removals)


def _apply_defaults(system: System, default: Source) -> System:
    def part(component: Any) -> Any:
        match component:
            case System():
                return _apply_defaults(component, default)
            case Union(branches=branches):
                return replace(component, branches=tuple(_apply_defaults(branch, default) for branch in branches))
            case SequenceJoin() | Between() | Temporal():
                return map_parts(component, part)
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


def reads_all_streams(system: System) -> bool:
    """Returns whether all parts of a system read all streams and derived facts, as rules do that name none."""
    parts = (part for rule in rules(system) for part in walk(rule))
    return all(part.sources == (Source(),) for part in parts if isinstance(part, System))


def over_streams(system: System, streams: Sequence[Source]) -> System:
    """Returns the rules of a system such that they read some streams only, and what rules derive.

    Static data that belong to no stream are read as well, as by ``FROM STREAM`` of C-SPARQL.

    Args:
        system: The system. Each of its parts reads all streams.
        streams: The streams, each with its window (`LANDMARK`: that of the run).
    """

    def part(component: Any) -> Any:
        if isinstance(component, System):
            assert component.sources == (Source(),)
            component = replace(component, sources=(*streams, Source("", EMPTY)))
        return map_parts(component, part)

    rewritten: System = part(system)
    return rewritten


def separate_inserted_graphs(system: System) -> System:
    """Returns the system in which the default graph of SPARQL has nothing of the graphs that its updates insert into.

    A named graph is no part of the default graph (SPARQL 1.1 Query, section 13.1). This covers the graphs that updates
    name. A graph whose name is a variable is only known in the run.
    """
    graphs = {
        iri_text(consequence.graph)
        for rule in rules(system)
        for consequence in rule.consequences
        if isinstance(consequence, Insert) and isinstance(consequence.graph, str)
    }
    return _without_graphs(system, graphs) if graphs else system


def _without_graphs(part: Any, graphs: Set[str]) -> Any:
    """Returns the part of a system in which the default graph does not read these streams."""
    if not isinstance(part, Source):
        return map_parts(part, lambda inner: _without_graphs(inner, graphs))
    if part.iri or not part.sparql_dataset or part.window.is_empty:
        return part
    windows = dict(part.windows) | dict.fromkeys(graphs, EMPTY)
    return replace(part, windows=tuple(sorted(windows.items(), key=itemgetter(0))))
