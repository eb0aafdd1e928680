"""What `build` and `explain` share: their arguments, and how programs become systems, plans and jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squall.cli.shared import PROFILE, WINDOW, check_files

if TYPE_CHECKING:
    from squall.contracts import Job, Options
    from squall.model import System
    from squall.plan import Plan


def with_semantics(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what programs mean over time."""
    options = (
        WINDOW,
        click.option("--output", type=click.Choice(["istream", "rstream", "dstream"]), help="What is handed on: what "
                     "is new, all that holds, or what has ceased to hold [default: as the program says]."),
        click.option("--report", metavar="POLICY", help="When: close (default), change, nonempty or periodic:5s."),
        PROFILE,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


PROGRAMS = click.argument("programs", nargs=-1, metavar="PROGRAM...")
PLANNER = click.option("--planner", default="rete", show_default=True, metavar="NAME", help="greedy, rete, ...")
STATISTICS = click.option("--statistics", type=click.Path(path_type=Path), metavar="FILE", help="Plan for data like "
                           "those that `build --collect-statistics` counted.")  # fmt: skip
BUILDER = click.option("--builder", default="iterator", show_default=True, metavar="NAME",
                       help="iterator, spark, beam, ...")  # fmt: skip


def compiled(
    programs: Sequence[str], lexer: str | None, rules: Sequence[str], graphs: Sequence[str], profile: str
) -> System:
    import squall
    from squall.model import warnings
    from squall.streams.sources import documents

    check_given(programs, rules)
    places = dict(map(documents.place, graphs))
    system = squall.compile(*programs, lexer=lexer, rules=rules, documents=places, profile=profile)
    for warning in warnings(system):
        click.echo(str(warning), err=True)
    return system


def meaning(
    sources: Sequence[str], window: str, output: str | None, report: str | None, profile: str
) -> Callable[..., System]:
    """What makes a system what the options say; all that is wrong with them has been said by then."""
    from squall import streams
    from squall.model import profiles, windows

    profiles.by_name(profile)
    policy = profiles.parse_report(report) if report else None
    default, named = windows.parse_window(window), streams.windows(sources)
    return partial(profiles.apply_profile, profile=profile, window=default, windows=named, report=policy, output=output)


def check_given(programs: Sequence[str], rules: Sequence[str]) -> None:
    if not programs and not rules:
        raise click.UsageError("Missing argument 'PROGRAM...', or a rule set (--rules).", click.get_current_context())
    check_files(programs)


def planner_of(name: str, statistics: Path | None) -> Callable[[System], Plan]:
    """What plans a system, for data such as the statistics are of. Raises UsageError if the planner has no use for
    them."""
    import squall
    from squall import plugins

    plugins.load(plugins.PLANNERS, name)
    return partial(squall.plan, planner=name, statistics=statistics)


def job_of(plan: Plan, builder: str, options: Options) -> Job:
    import squall
    from squall import plugins

    with plugins.dependencies(plugins.BUILDERS, builder):
        return squall.build(plan, builder, options)
