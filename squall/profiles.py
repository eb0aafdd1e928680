"""Profiles: where published engines differ from the definition (docs/semantics.md), their behaviour by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from squall.errors import UsageError, near
from squall.system import Report, Source, System, over
from squall.windows import LANDMARK, Count, Stepped, Window, milliseconds


def _same(window: Window) -> Window:
    return window


def _as_csparql(window: Window) -> Window:
    match window:
        case Stepped():
            return replace(window, closed=True)
        case Count(size=size, step=1):
            return Count(size, size)
        case _:
            return window


@dataclass(frozen=True)
class Profile:
    """An engine's behaviour.

    about: what it is. window: what becomes of a window. report, output: what it sets where the user does not say.
    """

    name: str
    about: str
    window: Callable[[Window], Window] = _same
    report: Report | None = None
    output: str | None = None

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
    Profile("cqels", "what is new, whenever the answer changes", report=Report("change"), output="istream"),
    Profile("rspql", "as the program's RSP-QL says; windows report when they close", report=Report("close")),
)
_NOT_YET = {
    "jena": "`noValue` looks at the whole model here, stratum by stratum: let rules that it looks at not depend on it",
    "squall2013": "OPTIONAL is a true left join here, and aggregates are those of an instant: write the unextended row "
    "as a second branch (UNION)",
}


def named(name: str) -> Profile:
    """The profile of a name. Raises UsageError if there is none, or if it is not supported yet."""
    if name in _NOT_YET:
        raise UsageError(f"the profile `{name}` is not supported yet", hint=_NOT_YET[name])
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
    """The system as it is to be run: windows on its default graph (see `squall.system.over`), and then what a profile
    makes of all its windows, its report policy and its R2S operator.

    report, output: None leaves them to the profile, and that to the program. Raises UsageError for an unknown profile.
    """
    chosen = named(profile)
    windowed: System = over(system, window, windows, removals)
    if chosen.window is not _same:
        windowed = _windowed(windowed, chosen.window)
    report = report or chosen.report or windowed.report
    return replace(
        windowed,
        report=replace(report, empty=report.empty or (chosen.report is not None and chosen.report.empty)),
        output=output or chosen.output or windowed.output,
    )


def _windowed(part: Any, change: Callable[[Window], Window]) -> Any:
    """The part of a system with other windows on all of its sources."""
    match part:
        case Source():
            windows = tuple((stream, change(window)) for stream, window in part.windows)
            return replace(part, window=change(part.window), windows=windows)
        case tuple():
            return tuple(_windowed(one, change) for one in part)
        case _ if is_dataclass(part) and type(part).__module__ == System.__module__:
            return replace(part, **{field.name: _windowed(getattr(part, field.name), change) for field in fields(part)})  # type: ignore[type-var]
        case _:
            return part


def parse_report(text: str) -> Report:
    """The report policy of a text: ``close``, ``change``, ``nonempty`` or ``periodic:5s``. Raises UsageError."""
    policy, colon, period = text.partition(":")
    if policy == "periodic" and colon and (length := milliseconds(period)) > 0:
        return Report(policy, length)
    if policy in ("close", "change", "nonempty") and not colon:
        return Report(policy)
    raise UsageError(f"`{text}` is no report policy", hint="policies: close, change, nonempty, periodic:5s")
