"""Windows in bodies, and facts with the begin and the end of their validity.

A fact that holds has a begin, and no end that anybody could know: what holds may go on to do so. So the end is known
at the instant at which the fact does not hold any more, and there it is read. All of it is made of the operators that
windows in bodies have (docs/semantics.md, "Begin and end of facts").
"""

from __future__ import annotations

from typing import NamedTuple

from squall.errors import Origin
from squall.functions.sparql.terms import ARRIVED
from squall.functions.values import integer
from squall.model import (
    At,
    Bind,
    Call,
    Dilate,
    Erode,
    FactPattern,
    Joinable,
    NotExists,
    Select,
    System,
    Variable,
    variables,
    visible,
)

_TIME = Call(ARRIVED.iri, (integer(0),))
"""The time since which a solution holds, in ms. What always holds has none."""


def with_begin(part: System, begin: Variable, origin: Origin | None = None) -> System:
    """Returns the solutions of a part, each with the begin of the maximal interval over which it holds.

    Args:
        part: The part, whose solutions are a set.
        begin: The variable of the begin: an xsd:integer, ms since the epoch. What always holds has none, and is left
            out.
        origin: The place in the program's text.
    """
    return System(
        sources=part.sources,
        joinables=(part,),
        predicates=(Bind(begin, _TIME),),
        consequences=(Select((*visible(part), begin)),),
        origin=origin,
    )


def at_end(part: System, end: Variable, begin: Variable | None = None, origin: Origin | None = None) -> System:
    """Returns the solutions of a part that have just ceased to hold, at this instant only.

    Args:
        part: The part, whose solutions are a set.
        end: The variable of the end: an xsd:integer, ms since the epoch. It is the instant itself.
        begin: The variable of the begin, as in `with_begin`. None means that nobody asks for it.
        origin: The place in the program's text.
    """
    past = part if begin is None else with_begin(part, begin, origin)
    return System(
        sources=part.sources,
        joinables=(Dilate(past, 1, origin=origin),),
        predicates=(NotExists((part,), origin=origin), Bind(end, _TIME)),
        consequences=(Select((*visible(past), end)),),
        origin=origin,
    )


def windowed(
    part: System, mode: str, length: int, step: int, names: tuple[Variable, ...], origin: Origin | None
) -> Joinable:
    """Returns the solutions of a part through a window of rules, or with their times.

    Args:
        part: The part, whose solutions are a set.
        mode: The window: ``in``, ``always`` or ``at``; or the times: ``start``, ``end`` or ``interval``.
        length: The length of a window (integer ms).
        step: The distance of the instants at which a window moves (integer ms); 0: it moves with time.
        names: The variables of the times: of the instant of ``at``, the begin, the end, or both.
        origin: The place in the program's text.
    """
    match mode, names:
        case "always", ():
            return Erode(part, length, step, origin=origin)
        case "at", (instant,):
            return At(part, instant, length, 1, step, origin=origin)
        case "start", (begin,):
            return with_begin(part, begin, origin)
        case "end", (end,):
            return at_end(part, end, None, origin)
        case "interval", (begin, end):
            return at_end(part, end, begin, origin)
        case _:
            return Dilate(part, length, step, origin=origin)


class WindowedPattern(NamedTuple):
    """A pattern through a window of rules, or with its times: the arguments of `windowed`, and the pattern of the
    part."""

    pattern: FactPattern
    mode: str
    length: int = 0
    step: int = 0
    names: tuple[Variable, ...] = ()


def windowed_pattern(joinable: Joinable) -> WindowedPattern | None:
    """Returns the pattern and the window of which `windowed` makes a joinable; None if it makes no such one."""
    mode, part, names = _parts(joinable)
    match part:
        case System(joinables=(pattern,), consequences=(Select(variables=selected),)) if isinstance(
            pattern, FactPattern
        ):
            length, step = getattr(joinable, "length", 0), getattr(joinable, "step", 0)
            is_same = windowed(part, mode, length, step, names, None) == joinable
            is_plain = part == System(
                sources=part.sources, joinables=(pattern,), consequences=(Select(selected),)
            ) and {*selected} == {*variables(pattern)}
            return WindowedPattern(pattern, mode, length, step, names) if is_same and is_plain else None
        case _:
            return None


def _parts(joinable: Joinable) -> tuple[str, System | None, tuple[Variable, ...]]:
    """Returns the window that a joinable may be, by its form: the mode, the part, the variables of times."""
    match joinable:
        case Dilate(system=part):
            return "in", part, ()
        case Erode(system=part):
            return "always", part, ()
        case At(system=part, variable=instant):
            return "at", part, (instant,)
        case System(joinables=(System() as part,), predicates=(Bind(variable=begin),)):
            return "start", part, (begin,)
        case System(joinables=(Dilate(system=past),), predicates=(NotExists(joinables=(part,)), Bind(variable=end))):
            if not isinstance(part, System):
                return "", None, ()
            begins = [predicate.variable for predicate in past.predicates if isinstance(predicate, Bind)]
            return ("interval", part, (begins[0], end)) if begins else ("end", part, (end,))
        case _:
            return "", None, ()
