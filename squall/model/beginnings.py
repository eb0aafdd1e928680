"""Programs in which nothing ends: the time since which a solution holds does not distinguish anything there."""

from __future__ import annotations

from typing import Any

from squall.functions.sparql.terms import SINCE
from squall.model.consequences import Delete
from squall.model.expressions import Bind, Call, Exists, Filter, Negation, Optional
from squall.model.reading import rules
from squall.model.rewriting import map_parts
from squall.model.stratification import is_time_dependent
from squall.model.systems import System
from squall.model.walk import Part, walk
from squall.rdf import literal

_ANY_TIME = literal("")


def without_beginnings(system: System) -> System:
    """Returns a system in which new terms do not depend on the time, if no solution ever ends and comes back.

    So such a program needs no operator state for them, and no complete instants. That is decided for the program as a
    whole, before it is planned, so that all planners and the oracle have the same terms.
    """
    parts = [part for rule in rules(system) for part in walk(rule)]
    if not any(map(_binds_beginning, parts)) or any(map(_may_end, parts)):
        return system
    result: System = _without(system)
    return result


def _without(part: Any) -> Any:
    return Bind(part.variable, _ANY_TIME) if _binds_beginning(part) else map_parts(part, _without)


def _binds_beginning(part: Any) -> bool:
    """Returns whether a part binds the time since which a solution holds, for new terms."""
    if not isinstance(part, Bind) or not isinstance(part.expression, Call):
        return False
    return part.expression.function == SINCE.iri


def _may_end(part: Part) -> bool:
    """Returns whether a part may have solutions that end, or ends facts, though nothing in it does."""
    match part:
        case System(sources=sources, consequences=consequences):
            windows = [window for source in sources for window in source.all_windows]
            return (
                part.grouping is not None
                or part.slice is not None
                or any(source.removals for source in sources)
                or any(window.expires for window in windows)
                or any(isinstance(consequence, Delete) for consequence in consequences)
            )
        case Filter(expression=expression):
            return is_time_dependent(expression)
        case _:
            return isinstance(part, Negation | Optional | Exists)
