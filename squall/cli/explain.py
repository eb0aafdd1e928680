"""The command ``squall explain``: what is made of programs at a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from squall.cli.programs import (
    BUILDER,
    PLANNER,
    PROGRAMS,
    STATISTICS,
    check_given,
    compiled,
    job_of,
    meaning,
    planner_of,
    with_semantics,
)
from squall.cli.shared import LEXER, RULES
from squall.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from squall.contracts import Job
    from squall.model import System
    from squall.plan import Plan
    from squall.plan.node_metrics import PlanMetrics

JOBS = {"job": "describe", "physical": "physical"}
"""The stages of jobs, each with the function by which a job tells of it."""


@click.command()
@PROGRAMS
@RULES
@LEXER
@PLANNER
@BUILDER
@with_semantics
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream; its name, window and format count.")
@click.option("--stage", type=click.Choice(["tree", "tps", "pps", *JOBS]), help="After the lexer, the translator, the "
              "planner or the builder; or what the builder's engine makes of the job.  [default: pps; if a builder is "
              "named also, behind it, job]")  # fmt: skip
@click.option(
    "--graph", "graphs", multiple=True, metavar="IRI=FILE", help="Where a document is that a program imports."
)
@click.option("--format", "format", default="text", show_default=True, metavar="NAME", help="text, json; of the plan "
              "(pps) also mermaid, dot, svg or html; of the tree also a language, such as jena or rifps.")  # fmt: skip
@click.option("--node-metrics", "figures", type=click.Path(path_type=Path), metavar="FILE", help="Show what each node did in a run, "
              "from the file that `build --profile-nodes` wrote.")  # fmt: skip
@STATISTICS
def explain(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    lexer: str | None,
    planner: str,
    builder: str,
    sources: tuple[str, ...],
    stage: str | None,
    graphs: tuple[str, ...],
    format: str,
    figures: Path | None,
    statistics: Path | None,
    **semantics: str,
) -> None:
    """Show what is made of PROGRAMs at a stage; nothing is run.

    \b
    Examples:
      squall explain family.jena                      the plan
      squall explain family.jena --stage tps          what the rules mean
      squall explain family.jena --builder spark      and where each node of it runs
      squall explain family.jena --stage physical --builder spark   Spark's own plans
      squall explain family.jena --format dot | dot -Tsvg > plan.svg
      squall explain family.jena --format html > plan.html
      squall explain family.jena --window 'RANGE 10s STEP 5s' --profile csparql
      squall explain family.rif --stage tree --format rifps   the same in another syntax
    """
    job_too = stage is None and format == "text" and _is_given("builder")
    stage = stage or "pps"
    _check_format(stage, format)
    if stage != "pps" and figures:
        raise UsageError("figures are those of a plan: `--node-metrics` goes with `--stage pps`")
    make = planner_of(planner, statistics)
    if stage in JOBS and format == "json":
        raise UsageError("a job is described as text only")
    if stage == "tree":
        texts = _trees(programs, lexer, rules, format)
    else:
        mean = meaning(sources, **semantics)
        system = mean(compiled(programs, lexer, rules, graphs, semantics["profile"]), removals=_removals(sources))
        texts = _explained(system, make, builder, stage, job_too, format, figures, statistics)
        if format == "text" and semantics["profile"] != "default":
            texts = chain([_profile(semantics["profile"])], texts)
    for text in texts:
        click.echo(text)


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _profile(name: str) -> str:
    from squall.model import profiles

    return f"{profiles.by_name(name)}\n"


def _removals(sources: Sequence[str]) -> bool:
    """Whether streams may carry removals: then the plan is another one."""
    from squall.streams import open_source

    return any(open_source(uri).removals for uri in sources)


def _explained(
    system: System,
    make: Callable[[System], Plan],
    builder: str,
    stage: str,
    job_too: bool,
    format: str,
    figures: Path | None,
    statistics: Path | None,
) -> Iterator[str]:
    from squall import explain
    from squall.contracts import Options

    if stage == "tps":
        yield _shown(system, format)
        return
    plan = make(system)
    if stage == "pps":
        yield explain.FORMATS[format](plan, _figures(plan, figures, statistics))
    else:
        yield _described(job_of(plan, builder, Options()), stage, builder)
    if job_too and hasattr(job := job_of(plan, builder, Options()), JOBS["job"]):
        yield f"\njob for {builder}:\n"
        yield _described(job, "job", builder)


def _figures(plan: Plan, measured: Path | None, statistics: Path | None) -> PlanMetrics | None:
    """What a run measured, and what is to be expected of data such as the statistics are of."""
    from squall.plan.cardinality import Statistics, estimates
    from squall.plan.node_metrics import NodeMetric, load

    found = load(measured, plan) if measured else {}
    expected = estimates(plan, Statistics.load(statistics)) if statistics else {}
    for id, rows in expected.items():
        found[id] = replace(found.get(id, NodeMetric()), estimated=rows)
    return found or None


def _shown(thing: Any, format: str) -> str:
    from squall import explain

    return explain.as_json(thing) if format == "json" else explain.text(thing)


DRAWINGS = ("mermaid", "dot", "svg", "html")
"""How a plan can be shown, besides as text and as JSON."""


def _check_format(stage: str, format: str) -> None:
    if format in ("text", "json"):
        return
    if format in DRAWINGS and stage != "pps":
        raise UsageError(f"`--format {format}` draws plans: it goes with `--stage pps`")
    if format not in DRAWINGS and stage != "tree":
        raise UsageError(
            f"`--format {format}` does not go with `--stage {stage}`",
            hint=did_you_mean(format, ("text", "json", *DRAWINGS)),
        )


def _trees(programs: Sequence[str], lexer: str | None, rules: Sequence[str], format: str) -> Iterator[str]:
    import squall
    from squall import rulesets

    check_given(programs, rules)
    parsed = [*(squall.parse(rulesets.path(name)) for name in rules), *(squall.parse(one, lexer) for one in programs)]
    for language, tree in parsed:
        yield _shown(tree, format) if format in ("text", "json") else _written(tree, language, format)


def _written(tree: Any, language: str, format: str) -> str:
    """A tree as text of a language whose lexer can write it: that of another syntax for the same trees."""
    from squall import plugins

    lexer = plugins.load(plugins.LEXERS, format)
    same = plugins.where(plugins.TRANSLATORS, language).object == plugins.where(plugins.TRANSLATORS, format).object
    if not same or not hasattr(lexer, "written"):
        raise UsageError(f"a program in `{language}` cannot be written as `{format}`")
    return str(lexer.written(tree)).removesuffix("\n")


def _described(job: Job, stage: str, builder: str) -> str:
    if not hasattr(job, JOBS[stage]):
        raise UsageError(f"the builder `{builder}` has nothing to tell of its jobs at the stage `{stage}`")
    return str(getattr(job, JOBS[stage])())
