"""What `run` and `explain` share: how programs become systems, plans and jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from itertools import chain
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import click

from squall.cli import messages
from squall.cli.inputs import places_of, stream_names
from squall.cli.options import check_files
from squall.errors import UsageError
from squall.wording import counted

if TYPE_CHECKING:
    from squall.contracts import Job, Options
    from squall.model import System
    from squall.plan import Plan
    from squall.plan.cardinality import Statistics
    from squall.rdf import Triple


class Semantics(NamedTuple):
    """The options that say what programs mean.

    Attributes:
        sources: The addresses of streams, with their windows.
        window: The window of other streams.
        output: The R2S operator.
        report: The report policy.
        profile: The name of the profile.
        prefixes: The prefixes, with their IRIs.
        entailment: The name of the entailment regime.
        schemas: The addresses of data that describe classes and properties, and are not read otherwise.
        statics: The addresses of static data.
        places: The files of documents and of contexts of JSON-LD, by IRI.
        lenient: Whether what cannot be translated is left out with a warning.
        schema_changes: What is done with a triple in a source that would change the schema.
        specialise: Whether rule sets are specialised by the schema.
        same_as: How patterns treat owl:sameAs, or None.
        same_as_answers: What answers have of terms that are the same.
    """

    sources: Sequence[str]
    window: str
    output: str | None
    report: str | None
    profile: str
    prefixes: Mapping[str, str]
    entailment: str = "none"
    schemas: Sequence[str] = ()
    statics: Sequence[str] = ()
    places: Mapping[str, str] = MappingProxyType({})
    lenient: bool = False
    schema_changes: str = "error"
    specialise: bool = False
    same_as: str | None = None
    same_as_answers: str = "representatives"


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
    is_schema_read = False

    def schema(windowed: System) -> Iterator[Triple]:
        nonlocal is_schema_read
        is_schema_read = True
        return schema_triples(windowed, semantics)

    start = perf_counter()
    system = squall.compile(
        *programs,
        lexer=lexer,
        rules=rules,
        window=semantics.window,
        windows=streams.windows(semantics.sources),
        documents=places_of(graphs, ()),
        profile=semantics.profile,
        output=semantics.output,
        report=semantics.report,
        prefixes=semantics.prefixes,
        entailment=semantics.entailment,
        schema=schema,
        lenient=semantics.lenient,
        schema_changes=semantics.schema_changes,
        specialise=semantics.specialise,
        same_as=semantics.same_as,
        same_as_answers=semantics.same_as_answers,
    )
    if semantics.schemas and not is_schema_read:
        hint = "say which: `--entailment rhodf` or rdfs, `--rules owl2rl --specialise`, `--same-as representative`"
        raise UsageError("`--schema` goes with `--entailment`, `--specialise` or `--same-as`", hint=hint)
    for warning in warnings(system):
        messages.warning(warning)
    for given_window in {*streams.windows(semantics.sources).values(), parse_window(semantics.window)}:
        if given_window.leaves_gaps:
            text = f"the window `{given_window}` leaves gaps: its step is longer than its range"
            messages.warning(text, "source")
    for note in system.fixed_schema.notes if system.fixed_schema is not None else ():
        messages.detail(note)
    names = ", ".join(f"`{name}`" for name in (*programs, *rules))
    count = counted(len(list(rules_of(system))), "rule")
    messages.detail(f"compiled {names}: {count}, {perf_counter() - start:.2f} s")
    return system


def schema_triples(system: System, semantics: Semantics) -> Iterator[Triple]:
    """Yields the triples of schemas, of static data and of the documents that a system names.

    The run reads static data and documents again, and its ledger gets what is malformed in them.

    Raises:
        SourceError: A schema cannot be read, or has a malformed statement.
        UsageError: Static data come from standard input, which can be read once only.
    """
    from squall.rdf import Triple
    from squall.reasoning.schema_files import schema_in
    from squall.streams import DeadLetterFile, address, open_static
    from squall.streams.sources import documents

    if any(address.source(uri).path == "-" for uri in semantics.statics):
        hint = "save them in a file, or give what they say of classes and owl:sameAs by `--schema`"
        raise UsageError(
            "static data from standard input cannot be the schema as well, or say what is the same", hint=hint
        )
    for uri in semantics.schemas:
        yield from schema_in(uri, semantics.places)
    statics = [open_static(uri, DeadLetterFile(), semantics.places) for uri in semantics.statics]
    streams = stream_names((*semantics.sources, *semantics.statics))
    opened = documents.load(system, semantics.places, streams, DeadLetterFile())
    for event in chain(chain.from_iterable(statics), opened):
        yield from (fact for fact in event.facts if isinstance(fact, Triple))


def language_writer(language: str) -> Callable[[System], str] | None:
    """Returns what writes a system as text of a language, if its translator has that."""
    from squall import plugins

    if language not in plugins.names(plugins.TRANSLATORS):
        return None
    write_tree = getattr(plugins.load(plugins.TRANSLATORS, language), "written", None)
    if write_tree is None:
        return None
    lexer = plugins.load(plugins.LEXERS, language)
    return lambda system: str(lexer.written(write_tree(system)))


def system_writer(format: str) -> Callable[[System], str]:
    """Returns what writes a system in a format: text, JSON, or a language.

    Raises:
        UsageError: There is no such format.
    """
    from squall import explain, plugins
    from squall.errors import did_you_mean

    own: dict[str, Callable[[System], str]] = {"text": explain.text, "json": explain.as_json}
    writer = own.get(format) or language_writer(format)
    if writer is None:
        names = (*own, *(name for name in plugins.names(plugins.TRANSLATORS) if language_writer(name)))
        hint = did_you_mean(format, names) or f"formats: {', '.join(names)}"
        raise UsageError(f"rules cannot be written as `{format}`", hint=hint)
    return writer


def check_given(programs: Sequence[str], rules: Sequence[str]) -> None:
    """Raises an error if there is neither a program nor a rule set, or if a program is no file."""
    if not programs and not rules:
        raise click.UsageError("Missing argument 'PROGRAM...', or a rule set (--rules).", click.get_current_context())
    check_files(programs)


def planning_statistics(
    statistics: Path | None, planner: str, builder: str, checkpoint: Path | None
) -> Statistics | Path | None:
    """Returns the statistics to plan with: those that the user has named, or else those of the checkpoint.

    Some builders resume with the plan of the checkpoint only. Then the statistics are those of
    the checkpoint, and a warning says so if the user has named others.

    Args:
        statistics: The file that the user has named.
        planner: The name of the planner.
        builder: The name of the builder.
        checkpoint: The folder of the checkpoint, if the run has one.
    """
    from squall import plugins
    from squall.contracts import capabilities_of, saved_planning
    from squall.plan.cardinality import Statistics

    loaded = plugins.load(plugins.BUILDERS, builder)
    planning = None if checkpoint is None else saved_planning(loaded, checkpoint)
    if planning is None or "statistics" not in signature(plugins.load(plugins.PLANNERS, planner)).parameters:
        return statistics
    if statistics is not None and capabilities_of(loaded).resumes_with_any_plan:
        return statistics
    way = f"with{'out statistics' if planning.statistics is None else ' the statistics of its checkpoint'}"
    if statistics is not None and Statistics.load(statistics) != planning.statistics:
        messages.warning(f"`--statistics {statistics}` is not used: a run that resumes is planned {way}", "planner")
    elif planning.statistics is not None:
        messages.note(f"the run resumes, and is planned {way}")
    return planning.statistics


def planner_of(
    name: str, statistics: Statistics | Path | None, *, replaceable: bool = False
) -> Callable[[System], Plan]:
    """Returns a function that plans a system, for data like those of the statistics.

    Args:
        name: The name of the planner.
        statistics: The statistics or their file, if there are any.
        replaceable: Whether the run may replace the plan.

    Raises:
        UsageError: The planner does not use statistics, or makes no replaceable plans.
    """
    import squall
    from squall import plugins

    plugins.load(plugins.PLANNERS, name)
    return partial(squall.plan, planner=name, statistics=statistics, replaceable=replaceable)


def is_replaceable(planner: str, builder: str, has_reason: bool) -> bool:
    """Returns whether the plan of a run is replaceable, although the user has not asked for that by `--adapt`.

    Args:
        planner: The name of the planner.
        builder: The name of the builder.
        has_reason: Whether the run may have a reason to replace its plan: a checkpoint or a limit on its memory.
    """
    from squall import plugins
    from squall.contracts import capabilities_of

    makes_replaceable = "replaceable" in signature(plugins.load(plugins.PLANNERS, planner)).parameters
    capabilities = capabilities_of(plugins.load(plugins.BUILDERS, builder))
    return has_reason and makes_replaceable and capabilities.resumes_with_any_plan


def job_of(plan: Plan, builder: str, options: Options) -> Job:
    """Returns the job that a builder makes of a plan. A missing dependency is a PluginError."""
    import squall
    from squall import plugins

    with plugins.dependencies(plugins.BUILDERS, builder):
        return squall.build(plan, builder, options)
