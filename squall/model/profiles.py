"""Profiles: where published engines differ from the definition (docs/semantics.md), their behaviour by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from squall.errors import UsageError, near
from squall.model import CLOSE, Filter, Optional, Report, Source, System, Union, is_told, over, rebuilt
from squall.model.jena_negation import fired
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window, milliseconds


def _same(window: Window) -> Window:
    return window


def _as_csparql(window: Window) -> Window:
    match window:
        case HoppingWindow():
            return replace(window, closed=True)
        case CountWindow(size=size, step=1):
            return CountWindow(size, size)
        case _:
            return window


def _without_steps(window: Window) -> Window:
    return SlidingWindow(window.size, window.delay) if isinstance(window, HoppingWindow) else window


def _unchanged(system: System) -> System:
    return system


def _with_unextended(part: Any) -> Any:
    """The part of a system in which each optional part is a union: what it would extend, by itself, beside the join."""
    changed = rebuilt(part, _with_unextended)
    while isinstance(changed, System) and any(isinstance(one, Optional) for one in changed.predicates):
        changed = _beside(changed)
    return changed


def _beside(system: System) -> System:
    """The system with its first `Optional` as such a union."""
    place, maybe = next((place, one) for place, one in enumerate(system.predicates) if isinstance(one, Optional))
    alone = System(sources=system.sources, joinables=system.joinables, predicates=system.predicates[:place])
    condition = () if maybe.condition is None else (Filter(maybe.condition),)
    extended = System(sources=system.sources, joinables=(alone, maybe.system), predicates=(*maybe.exists, *condition))
    both = Union((alone, extended))
    return replace(system, joinables=(both,), predicates=system.predicates[place + 1 :])


@dataclass(frozen=True)
class Profile:
    """An engine's behaviour.

    about: what it is. window: what becomes of a window. report, output: what it sets where the user does not say.
    system: what becomes of a system.
    """

    name: str
    about: str
    window: Callable[[Window], Window] = _same
    report: Report | None = None
    output: str | None = None
    system: Callable[[System], System] = _unchanged

    def __str__(self) -> str:
        return f"profile {self.name}: {self.about}"


DEFAULT = Profile("default", "as docs/semantics.md defines")
PROFILES = (
    DEFAULT,
    Profile(
        "csparql",
        "a stepped window at T holds (T - range, T], TRIPLES n is tumbling, the whole answer at each step; "
        "of an empty one that it is empty",
        _as_csparql,
        Report("close", empty=True),
        "rstream",
    ),
    Profile(
        "cqels",
        "windows slide without steps; what is new, whenever the answer changes",
        _without_steps,
        Report("change"),
        "istream",
    ),
    Profile("rspql", "as the program's RSP-QL says; windows report when they close", report=Report("close")),
    Profile(
        "jena",
        "noValue and countLiteralValues are looked at once, when a rule fires; it concludes from the next instant on",
        system=fired,
    ),
    Profile(
        "squall2013",
        "OPTIONAL gives the row that it does not extend as well; windows slide without steps, and what is new is told "
        "at once, so that aggregates run",
        _without_steps,
        Report("close"),
        "istream",
        _with_unextended,
    ),
)


def named(name: str) -> Profile:
    """The profile of a name. Raises UsageError if there is none."""
    known = {profile.name: profile for profile in PROFILES}
    if name not in known:
        raise UsageError(f"there is no profile `{name}`", hint=near(name, known) or f"profiles: {', '.join(known)}")
    return known[name]


def apply(
    system: System,
    profile: str = DEFAULT.name,
    window: Window = LANDMARK,
    windows: Mapping[str, Window] | None = None,
    removals: bool = False,
    report: Report | None = None,
    output: str | None = None,
) -> System:
    """The system as it is to be run: windows on its default graph (see `squall.model.over`), and then what a profile
    makes of it: all its windows, what its parts mean, its report policy and its R2S operator.

    report, output: None leaves them to the profile, and that to the program. Raises UsageError for an unknown profile.
    """
    chosen = named(profile)
    windowed: System = chosen.system(over(system, window, windows, removals))
    if chosen.window is not _same:
        windowed = _windowed(windowed, chosen.window)
    empty = chosen.report is not None and chosen.report.empty
    return _retold(windowed, report or chosen.report, output or chosen.output, empty)


def _retold(system: System, report: Report | None, output: str | None, empty: bool) -> System:
    """The system, it and all in it that say how they are told saying this instead. empty: that an answer is empty is
    told, too."""
    told = report or system.report or (CLOSE if empty else None)
    return replace(
        system,
        report=replace(told, empty=told.empty or empty) if told is not None else None,
        output=output or system.output,
        subsystems=tuple(_retold(one, report, output, empty) if is_told(one) else one for one in system.subsystems),
    )


def _windowed(part: Any, change: Callable[[Window], Window]) -> Any:
    """The part of a system with other windows on all of its sources."""
    if isinstance(part, Source):
        windows = tuple((stream, change(window)) for stream, window in part.windows)
        return replace(part, window=change(part.window), windows=windows)
    return rebuilt(part, lambda one: _windowed(one, change))


def parse_report(text: str) -> Report:
    """The report policy of a text: ``close``, ``change``, ``nonempty`` or ``periodic:5s``. Raises UsageError."""
    policy, colon, period = text.partition(":")
    if policy == "periodic" and colon and (length := milliseconds(period)) > 0:
        return Report(policy, length)
    if policy in ("close", "change", "nonempty") and not colon:
        return Report(policy)
    raise UsageError(f"`{text}` is no report policy", hint="policies: close, change, nonempty, periodic:5s")
