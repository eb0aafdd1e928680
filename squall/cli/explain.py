"""The command ``squall explain``: what programs become at a stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup
from click.core import ParameterSource

from squall import plugins
from squall.cli import completers
from squall.cli.inputs import places_of
from squall.cli.options import (
    BUILDER,
    FILE,
    GRAPH,
    LEXER,
    MEANING,
    OUTPUT,
    PLANNER,
    PROGRAMS,
    QUIET,
    REPORT,
    RULES,
    STATISTICS,
    VERBOSE,
    WINDOW,
    Command,
    prefixes_of,
    source_option,
)
from squall.cli.programs import (
    Semantics,
    check_given,
    compiled,
    is_replaceable,
    job_of,
    language_writer,
    planner_of,
    planning_statistics,
)
from squall.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from squall.contracts import Job
    from squall.model import System
    from squall.plan import Plan
    from squall.plan.node_metrics import PlanMetrics


@cloup.command(cls=Command)
@PROGRAMS
@cloup.option_group(
    "Program",
    LEXER,
    RULES,
    *MEANING,
)
@cloup.option_group(
    "Input",
    source_option("A stream. Its name, window and format count; it is not read."),
    GRAPH,
)
@cloup.option_group("Time", WINDOW)
@cloup.option_group("Output", OUTPUT, REPORT)
@cloup.option_group(
    "Engine",
    PLANNER,
    BUILDER,
    STATISTICS,
    cloup.option(
        "--checkpoint",
        type=FILE,
        metavar="DIR",
        help="Show the plan of a run that resumes from there: it has the statistics of its checkpoint.",
    ),
)
@cloup.option_group(
    "Observation",
    cloup.option("--stage", type=click.Choice(["tree", "tps", "pps", "job"]), help="What to show: the result of the "
                 "lexer (tree), translator (tps), planner (pps) or builder (job).  [default: pps; with --builder also "
                 "job]"),
    cloup.option("--format", "format", default="text", show_default=True, metavar="NAME",
                 shell_complete=completers.names("text", "json", "mermaid", "dot", "svg", "html"), help="text, json; "
                 "for the plan (pps) also mermaid, dot, svg or html; for the tree also a language, such as jena; "
                 "for rules (tps) also jena, rif or rifps."),
    cloup.option("--node-metrics", "measured", type=FILE, metavar="FILE", help="Show what each node did in a run, from "
                 "the file that `squall run --profile-nodes` wrote."),
    QUIET, VERBOSE,
)  # fmt: skip
def explain(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    entailment: str,
    same_as: str | None,
    same_as_answers: str,
    schemas: tuple[str, ...],
    schema_changes: str,
    specialise: bool,
    lenient: bool,
    lexer: str | None,
    prefixes: tuple[str, ...],
    prefix_files: tuple[str, ...],
    planner: str,
    builder: str,
    sources: tuple[str, ...],
    stage: str | None,
    graphs: tuple[str, ...],
    format: str,
    measured: Path | None,
    statistics: Path | None,
    checkpoint: Path | None,
    profile: str,
    window: str,
    output: str | None,
    report: str | None,
) -> None:
    """Show what PROGRAMs become at a stage. Nothing is run.

    \b
    Examples:
      squall explain family.jena                      the plan
      squall explain family.jena --stage tps          what the rules mean
      squall explain family.jena --builder spark      the plan, and where each node of it runs
      squall explain family.jena --format dot | dot -Tsvg > plan.svg
      squall explain family.jena --format html > plan.html
      squall explain family.jena --window 'RANGE 10s STEP 5s' --profile csparql
      squall explain family.rif --stage tree --format rifps   the same in another syntax
    """
    job_too = stage is None and format == "text" and _is_given("builder")
    stage = stage or "pps"
    _check_format(stage, format)
    if stage != "pps" and measured:
        raise UsageError("node metrics are those of a plan: `--node-metrics` goes with `--stage pps`")
    planned_for = planning_statistics(statistics, planner, builder, checkpoint)
    make = planner_of(planner, planned_for, replaceable=is_replaceable(planner, builder, checkpoint is not None))
    namespaces = prefixes_of(prefixes, prefix_files)
    if stage == "tree":
        texts = _trees(programs, lexer, rules, namespaces, format)
    else:
        from squall.model import with_windows

        places = places_of(graphs, ())
        semantics = Semantics(
            sources, window, output, report, profile, namespaces, entailment, schemas, (), places, lenient,
            schema_changes=schema_changes, specialise=specialise, same_as=same_as, same_as_answers=same_as_answers,
        )  # fmt: skip
        system = compiled(programs, lexer, rules, graphs, semantics)
        system = with_windows(system, removals=_removals(sources))
        texts = _explained(system, make, builder, stage, job_too, format, measured)
        if format == "text" and profile != "default":
            texts = chain([_profile(profile)], texts)
    for text in texts:
        click.echo(text)


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _profile(name: str) -> str:
    from squall.model import profiles

    return f"{profiles.by_name(name)}\n"


def _removals(sources: Sequence[str]) -> bool:
    """Returns whether streams may carry removals: then the plan is another one."""
    from squall.streams import open_source

    return any(open_source(uri).removals for uri in sources)


def _explained(
    system: System,
    make: Callable[[System], Plan],
    builder: str,
    stage: str,
    job_too: bool,
    format: str,
    measured: Path | None,
) -> Iterator[str]:
    from squall import explain
    from squall.contracts import Options

    if stage == "tps":
        writer = language_writer(format)
        yield _shown(system, format) if writer is None else writer(system).removesuffix("\n")
        return
    plan = make(system)
    if stage == "pps":
        yield explain.FORMATS[format](plan, _metrics(plan, measured))
    else:
        yield _described(job_of(plan, builder, Options()), builder, format)
    if job_too and hasattr(job := job_of(plan, builder, Options()), "describe"):
        yield f"\njob for {builder}:\n"
        yield _described(job, builder, "text")


def _metrics(plan: Plan, measured: Path | None) -> PlanMetrics | None:
    """Returns what a run measured, and what to expect of data like those of the plan's statistics."""
    from squall.plan.cardinality import estimates
    from squall.plan.node_metrics import NodeMetric, load

    metrics = load(measured, plan) if measured else {}
    expected = estimates(plan, plan.statistics) if plan.statistics else {}
    for id, rows in expected.items():
        metrics[id] = replace(metrics.get(id, NodeMetric()), estimated=rows)
    return metrics or None


def _shown(thing: Any, format: str) -> str:
    from squall import explain

    return explain.as_json(thing) if format == "json" else explain.text(thing)


DRAWINGS = ("mermaid", "dot", "svg", "html")
"""The formats of plans, besides text and JSON."""


def _check_format(stage: str, format: str) -> None:
    if format in ("text", "json"):
        return
    if format in DRAWINGS and stage != "pps":
        raise UsageError(f"`--format {format}` draws plans: it goes with `--stage pps`")
    if format not in DRAWINGS and (
        stage not in ("tree", "tps") or (stage == "tps" and language_writer(format) is None)
    ):
        raise UsageError(
            f"`--format {format}` does not go with `--stage {stage}`",
            hint=did_you_mean(format, ("text", "json", *DRAWINGS)),
        )


def _trees(
    programs: Sequence[str], lexer: str | None, rules: Sequence[str], prefixes: Mapping[str, str], format: str
) -> Iterator[str]:
    import squall
    from squall.compiling import rule_set

    check_given(programs, rules)
    parsed = [
        *(squall.parse(rule_set(name).name) for name in rules),
        *(squall.parse(program, lexer, prefixes) for program in programs),
    ]
    for language, tree in parsed:
        yield _shown(tree, format) if format in ("text", "json") else _written(tree, language, format)


def _written(tree: Any, language: str, format: str) -> str:
    """Returns a tree as text of a language whose lexer can write it: another syntax for the same trees."""
    lexer = plugins.load(plugins.LEXERS, format)
    translators = plugins.names(plugins.TRANSLATORS)
    objects = {plugins.where(plugins.TRANSLATORS, name).object for name in (language, format) if name in translators}
    if len(objects) > 1 or format not in translators or not hasattr(lexer, "written"):
        raise UsageError(f"a program in `{language}` cannot be written as `{format}`")
    return _text_of(tree, format)


def _text_of(tree: Any, language: str) -> str:
    return str(plugins.load(plugins.LEXERS, language).written(tree)).removesuffix("\n")


def _described(job: Job, builder: str, format: str) -> str:
    if not hasattr(job, "describe"):
        raise UsageError(f"the builder `{builder}` does not describe its jobs")
    if format == "text":
        return str(job.describe())
    if not hasattr(job, "as_data"):
        raise UsageError(f"the builder `{builder}` describes its jobs as text only")
    return json.dumps(job.as_data(), indent=2)
