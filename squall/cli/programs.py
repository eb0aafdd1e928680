"""What `run` and `explain` share: how programs become systems, plans and jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import click

from squall.cli import messages
from squall.cli.inputs import places_of
from squall.cli.options import check_files
from squall.wording import counted

if TYPE_CHECKING:
    from squall.contracts import Job, Options
    from squall.model import System
    from squall.plan import Plan
    from squall.plan.cardinality import Statistics


class Semantics(NamedTuple):
    """The options that say what programs mean: windows, output, report policy and profile, as texts; prefixes."""

    sources: Sequence[str]
    window: str
    output: str | None
    report: str | None
    profile: str
    prefixes: Mapping[str, str]


def compiled(
    programs: Sequence[str], lexer: str | None, rules: Sequence[str], graphs: Sequence[str], semantics: Semantics
) -> System:
    """Compiles the programs to one system, and prints its warnings."""
    import squall
    from squall import streams
    from squall.model import rules as rules_of
    from squall.model import warnings
    from squall.model.windows import parse_window

    check_given(programs, rules)
    start = perf_counter()
    sources, window, output, report, profile, prefixes = semantics
    system = squall.compile(
        *programs,
        lexer=lexer,
        rules=rules,
        window=window,
        windows=streams.windows(sources),
        documents=places_of(graphs, ()),
        profile=profile,
        output=output,
        report=report,
        prefixes=prefixes,
    )
    for warning in warnings(system):
        messages.warning(warning)
    for given_window in {*streams.windows(sources).values(), parse_window(window)}:
        if given_window.leaves_gaps:
            text = f"the window `{given_window}` leaves gaps: its step is longer than its range"
            messages.warning(text, "source")
    names = ", ".join(f"`{name}`" for name in (*programs, *rules))
    count = counted(len(list(rules_of(system))), "rule")
    messages.detail(f"compiled {names}: {count}, {perf_counter() - start:.2f} s")
    return system


def check_given(programs: Sequence[str], rules: Sequence[str]) -> None:
    """Raises an error if there is neither a program nor a rule set, or if a program is no file."""
    if not programs and not rules:
        raise click.UsageError("Missing argument 'PROGRAM...', or a rule set (--rules).", click.get_current_context())
    check_files(programs)


def planning_statistics(
    statistics: Path | None, planner: str, builder: str, checkpoint: Path | None
) -> Statistics | Path | None:
    """Returns the statistics to plan with. A run that resumes is planned as its checkpoint was, and says so.

    Args:
        statistics: The file that the user has named.
        planner: The name of the planner.
        builder: The name of the builder.
        checkpoint: The folder of the checkpoint, if the run has one.
    """
    from squall import plugins
    from squall.contracts import saved_planning
    from squall.plan.cardinality import Statistics

    planning = None if checkpoint is None else saved_planning(plugins.load(plugins.BUILDERS, builder), checkpoint)
    if planning is None or "statistics" not in signature(plugins.load(plugins.PLANNERS, planner)).parameters:
        return statistics
    way = f"with{'out statistics' if planning.statistics is None else ' the statistics of its checkpoint'}"
    if statistics is not None and Statistics.load(statistics) != planning.statistics:
        messages.warning(f"`--statistics {statistics}` is not used: a run that resumes is planned {way}", "planner")
    elif planning.statistics is not None:
        messages.note(f"the run resumes, and is planned {way}")
    return planning.statistics


def planner_of(name: str, statistics: Statistics | Path | None) -> Callable[[System], Plan]:
    """Returns a function that plans a system, for data like those of the statistics.

    Raises:
        UsageError: The planner does not use statistics.
    """
    import squall
    from squall import plugins

    plugins.load(plugins.PLANNERS, name)
    return partial(squall.plan, planner=name, statistics=statistics)


def job_of(plan: Plan, builder: str, options: Options) -> Job:
    """Returns the job that a builder makes of a plan. A missing dependency is a PluginError."""
    import squall
    from squall import plugins

    with plugins.dependencies(plugins.BUILDERS, builder):
        return squall.build(plan, builder, options)
