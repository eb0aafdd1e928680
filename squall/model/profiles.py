"""Profiles: the behaviour of published engines where it differs from the definition (docs/semantics.md), by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

from squall.errors import UsageError, did_you_mean
from squall.model import (
    CLOSE,
    GRAPH_EXISTS,
    Filter,
    Optional,
    Report,
    Source,
    System,
    Union,
    has_own_output,
    map_parts,
    with_windows,
)
from squall.model.jena_negation import evaluate_negation_once
from squall.model.windowing import separate_inserted_graphs
from squall.model.windows import LANDMARK, Window

R2S_OPERATORS = ("istream", "dstream", "rstream", "changes")
"""The relation-to-stream operators: what is new, what has ended, all that holds, and what has ended and is new."""


def _same_system(system: System) -> System:
    return system


def _with_unextended(part: Any) -> Any:
    """Returns the part of a system in which each optional part is a union of the unextended solutions and the joined
    ones.
    """
    rewritten = map_parts(part, _with_unextended)
    while isinstance(rewritten, System) and any(isinstance(predicate, Optional) for predicate in rewritten.predicates):
        rewritten = _union_of_unextended(rewritten)
    return rewritten


def _union_of_unextended(system: System) -> System:
    """Returns the system with its first `Optional` replaced by such a union."""
    place, optional = next(
        (place, predicate) for place, predicate in enumerate(system.predicates) if isinstance(predicate, Optional)
    )
    unextended = System(sources=system.sources, joinables=system.joinables, predicates=system.predicates[:place])
    condition = () if optional.condition is None else (Filter(optional.condition),)
    extended = System(
        sources=system.sources, joinables=(unextended, optional.system), predicates=(*optional.exists, *condition)
    )
    union = Union((unextended, extended))
    return replace(system, joinables=(union,), predicates=system.predicates[place + 1 :])


def _with_empty_graphs(part: Any) -> Any:
    """Returns the part of a system in which each named graph exists, even if it has no triples."""
    rewritten = map_parts(part, _with_empty_graphs)
    if not isinstance(rewritten, System):
        return rewritten
    joinables = tuple(part for part in rewritten.joinables if getattr(part, "name", "") != GRAPH_EXISTS)
    return replace(rewritten, joinables=joinables)


@dataclass(frozen=True)
class Profile:
    """An engine's behaviour.

    Attributes:
        name: The name of the profile.
        about: A description in a line.
        window: A function that changes each window; None: there is none.
        report: The report policy, where the user does not give one.
        output: The R2S operator, where the user does not give one.
        system: A function that changes the system.
        is_graph_in_scope: Whether the variable of ``GRAPH ?g`` has a value inside of its pattern. (In SPARQL 1.1 it has
            one behind it, section 18.6.)
    """

    name: str
    about: str
    window: Callable[[Window], Window] | None = None
    report: Report | None = None
    output: str | None = None
    system: Callable[[System], System] = _same_system
    is_graph_in_scope: bool = False

    def __str__(self) -> str:
        return f"profile {self.name}: {self.about}"


DEFAULT = Profile("default", "as docs/semantics.md defines")
PROFILES = (
    DEFAULT,
    Profile(
        "csparql",
        "windows step from the second of the stream's first triple on, TRIPLES n is tumbling, the whole answer at each "
        "step; of an empty one that it is empty",
        methodcaller("as_in_csparql"),
        Report("close", empty=True),
        "rstream",
    ),
    Profile(
        "cqels",
        "windows slide without steps; what is new, whenever the answer changes",
        methodcaller("without_steps"),
        Report("change"),
        "istream",
    ),
    Profile("rspql", "as the program's RSP-QL says; windows report when they close", report=Report("close")),
    Profile(
        "jena",
        "noValue and countLiteralValues are looked at once, when a rule fires; it concludes from the next instant on",
        system=evaluate_negation_once,
    ),
    Profile(
        "instans",
        "a named graph exists also without triples: the pattern of GRAPH <g> is evaluated in any case; inside of the "
        "pattern of GRAPH ?g the variable has a value",
        system=_with_empty_graphs,
        is_graph_in_scope=True,
    ),
    Profile(
        "squall2013",
        "OPTIONAL gives the row that it does not extend as well; windows slide without steps, and what is new is "
        "output at once, so that aggregates run",
        methodcaller("without_steps"),
        Report("close"),
        "istream",
        _with_unextended,
    ),
)


def by_name(name: str) -> Profile:
    """Returns the profile of a name. Raises UsageError if there is none."""
    profiles = {profile.name: profile for profile in PROFILES}
    if name not in profiles:
        raise UsageError(
            f"there is no profile `{name}`", hint=did_you_mean(name, profiles) or f"profiles: {', '.join(profiles)}"
        )
    return profiles[name]


def apply_profile(
    system: System,
    profile: str = DEFAULT.name,
    window: Window = LANDMARK,
    windows: Mapping[str, Window] | None = None,
    removals: bool = False,
    report: Report | None = None,
    output: str | None = None,
) -> System:
    """Returns the system as it is to be run.

    It puts windows on the default graph (`squall.model.with_windows`), and takes the graphs out of it into which
    updates insert. Then the profile changes the windows, the meaning of parts, the report policy and the R2S operator.
    With the report policy `change` windows with steps are read before they close
    (`squall.model.windows.OpenHoppingWindow`), as RSP-QL defines it.

    Args:
        system: The system.
        profile: The name of the profile.
        window: The window of streams that are not in `windows`.
        windows: Windows by stream.
        removals: Whether streams may carry removals.
        report: The report policy. None leaves it to the profile, and then to the program.
        output: The R2S operator. None leaves it to the profile, and then to the program. Derived streams, which have
            no deletions, keep theirs under `changes`.

    Raises:
        UsageError: There is no such profile or R2S operator.
    """
    engine = by_name(profile)
    windowed: System = engine.system(separate_inserted_graphs(with_windows(system, window, windows, removals)))
    if engine.window is not None:
        windowed = _change_windows(windowed, engine.window)
    policy = report or engine.report
    if policy is not None and policy.only_changes:
        windowed = _change_windows(windowed, methodcaller("while_open"))
    empty = engine.report is not None and engine.report.empty
    return _with_output(windowed, policy, _operator(output) or engine.output, empty)


def _operator(output: str | None) -> str | None:
    """Returns the name of an R2S operator. Raises UsageError if it is none."""
    if output is not None and output not in R2S_OPERATORS:
        raise UsageError(
            f"there is no output `{output}`",
            hint=did_you_mean(output, R2S_OPERATORS) or f"outputs: {', '.join(R2S_OPERATORS)}",
        )
    return output


def _with_output(system: System, report: Report | None, output: str | None, empty: bool, whole: bool = True) -> System:
    """Returns the system with another report policy and output in all of its parts that have an output of their own.

    Args:
        empty: Whether an empty answer is reported, too.
        whole: Whether the system has an output of its own. Parts of it may have one in either case.
    """
    subsystems = tuple(
        _with_output(subsystem, report, output, empty, has_own_output(subsystem)) for subsystem in system.subsystems
    )
    if not whole or (system.internal and system.stream):
        return replace(system, subsystems=subsystems)
    policy = report or system.report or (CLOSE if empty else None)
    if output == "changes" and system.stream:
        output = None
    return replace(
        system,
        report=replace(policy, empty=policy.empty or empty) if policy is not None else None,
        output=output or system.output,
        subsystems=subsystems,
    )


def _change_windows(part: Any, change: Callable[[Window], Window]) -> Any:
    """Returns the part of a system with changed windows on all of its sources."""
    if isinstance(part, Source):
        windows = tuple((stream, change(window)) for stream, window in part.windows)
        return replace(part, window=change(part.window), windows=windows)
    return map_parts(part, lambda inner: _change_windows(inner, change))
