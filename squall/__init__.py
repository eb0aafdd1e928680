"""Squall: rules and continuous queries over streams of RDF.

    system = squall.compile("family.jena")             # text to Translated Production System
    plan = squall.plan(system, planner="rete")         # to Planned Production System
    for out in squall.run(plan, events):               # out.fact, out.time, out.rule
        ...

Importing this module loads no engine and no grammar.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from squall import arguments, plugins
from squall.compiling import combine, parser, read_program
from squall.contracts import Builder, Job, Options, Output, Planner, R, check_options
from squall.errors import SquallError, UsageError, raise_all
from squall.model import Report, System
from squall.model.windows import LANDMARK, Window, as_window
from squall.plan import Plan, Planning
from squall.plan.answers import is_one_query
from squall.plan.validation import check
from squall.process.gc_tuning import no_collection
from squall.process.recursion import deep_recursion
from squall.rdf import ALWAYS, FOREVER, Atom, Columns, Event, Fact, Term, Triple
from squall.results import Results
from squall.streams.sources.merge import Sources

if TYPE_CHECKING:
    from squall import beam as beam
    from squall import spark as spark
    from squall.lexers.prefixes import Prefixes
    from squall.plan.cardinality import Statistics
    from squall.streams.mappings.model import Mapping as RecordMapping
    from squall.streams.sources.dataframes import DataFrameSource
    from squall.streams.sources.files import Source

__all__ = [
    "ALWAYS", "FOREVER", "Atom", "Event", "Fact", "Job", "Options", "Output", "Plan", "Results", "SquallError",
    "System", "Term", "Triple", "arun", "build", "compile", "from_dataframe", "parse", "plan", "query", "run",
]  # fmt: skip

__version__ = "0.1.0"

_ENGINES = ("beam", "spark")
"""The modules for pipelines and jobs of one's own, which import an engine."""


if not TYPE_CHECKING:  # to type checkers other names are errors

    def __getattr__(name: str) -> Any:
        """Imports `squall.beam` and `squall.spark` when they are used. Raises PluginError without the engine."""
        if name in _ENGINES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def parse(program: str | Path, lexer: str | None = None, prefixes: Prefixes = None) -> tuple[str, object]:
    """Parses a program. Arguments and errors are those of `compile`.

    Returns:
        The name of its language, and its syntax tree.
    """
    from squall.lexers.prefixes import as_prefixes

    arguments.check_prefixes(prefixes)
    read = read_program(program, lexer)
    return read.language, parser(read, as_prefixes(prefixes))()


@no_collection()
@deep_recursion()
def compile(
    *programs: str | Path,
    lexer: str | None = None,
    rules: Sequence[str] = (),
    window: str | Window = LANDMARK,
    windows: Mapping[str, str | Window] | None = None,
    removals: bool = False,
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    output: str | None = None,
    report: str | Report | None = None,
    prefixes: Prefixes = None,
    entailment: str = "none",
    schema: Iterable[str | Path | Triple] | Callable[[System], Iterable[Triple]] = (),
    specialise: bool = False,
    lenient: bool = False,
    schema_changes: str = "error",
    same_as: str | None = None,
    same_as_answers: str = "representatives",
) -> System:
    """Compiles one or more programs to a Translated Production System.

    Several programs become one system in which each reads what the rules of all derive.

    Args:
        programs: The programs, each a path or (with `lexer`) a text. ``rules.jena?stream=IRI&window=RANGE 10s`` reads
            that stream only, through that window, and what rules derive; so does a rule set (``rhodf?stream=IRI``).
        lexer: The language. By default the file's extension decides.
        rules: The names of rule sets (`squall.rulesets`) whose conclusions the programs read. What follows from them
            alone is part of the answer only if there is no program.
        window: The window of streams for which no program names one: a window, or a text such as ``RANGE 10s``
            (`squall.model.windows.parse_window`).
        windows: The same by stream IRI.
        removals: Whether streams may carry removals (`Event.removed`).
        documents: The files of programs that programs import, by IRI. (`squall.streams.sources.documents.load` loads
            documents of data that a program names.)
        profile: The engine whose behaviour the system gets (`squall.model.profiles`).
        output: The R2S operator of all programs: ``istream``, ``dstream``, ``rstream`` or ``changes``. None leaves it
            to the profile, and then to the programs.
        report: The report policy of all programs: a `Report`, or a text such as ``periodic:5s``
            (`squall.model.reports.parse_report`). None leaves it to the profile, and then to the programs.
        prefixes: Prefixes that all programs may use without declaring them, with their IRIs; or a file that declares
            them, as Turtle or SPARQL do. What a program declares itself wins.
        entailment: The entailment regime of patterns: ``none``, ``rhodf`` or ``rdfs`` (docs/rulesets.md). A program
            may have another by a pragma, and a query by ``REASONING [U]``.
        schema: What is known of classes and properties before the run, for an entailment regime or `specialise`: files,
            and triples. Statements about individuals in them are left out; what static data say of classes has to be
            here, too. Or a function that returns the triples for the system before it is rewritten; it is not called if
            no program has a regime, and rule sets are not specialised.
        specialise: Whether the rule sets are specialised by the schema, which no source may change then.
        lenient: What rules cannot express of an ontology is left out with a warning, and is no error.
        schema_changes: What is done with a triple in a source that would change the schema, or the terms that are the
            same: ``error``, or ``dead-letters``: then the run goes on without it; or ``follow``: what it says of
            owl:sameAs changes how facts are read from then on (``same_as="representative"``).
        same_as: How patterns treat owl:sameAs: ``none`` (like any property), ``axioms``, ``representative`` or
            ``provenance`` (docs/semantics.md). The statements that are known before the run are those of `schema`,
            static data included, and the facts of the programs. None: as a pragma of the programs says, or ``none``.
        same_as_answers: What answers have under ``representative``: ``representatives``, or ``members`` for each term.

    Raises:
        UsageError: There is no such file, rule set, regime, window, profile, R2S operator or report policy, or the
            extension is unknown.
        LexerError: The text is not in the language.
        TranslatorError: The text means nothing that can be run.
        Errors: There are several errors in the programs.
    """
    arguments_by_name = {
        "lexer": lexer, "rules": rules, "window": window, "windows": windows, "documents": documents,
        "profile": profile, "output": output, "report": report, "prefixes": prefixes, "entailment": entailment,
        "schema": schema, "specialise": specialise, "schema_changes": schema_changes, "same_as": same_as,
        "same_as_answers": same_as_answers,
    }  # fmt: skip
    arguments.check_compile(programs, arguments_by_name)
    from squall import reasoning
    from squall.lexers.prefixes import as_prefixes
    from squall.model.deadlines import with_deadlines
    from squall.model.profiles import apply_profile, by_name
    from squall.model.reports import parse_report
    from squall.model.stratification import stratify

    if not programs and not rules:
        raise UsageError("no program is given")
    engine = by_name(profile)
    policy = parse_report(report) if isinstance(report, str) else report
    default = as_window(window)
    windows_by_stream = {stream: as_window(given_window) for stream, given_window in (windows or {}).items()}
    errors: list[SquallError] = []
    texts = [read_program(program, lexer) for program in programs]
    triples = reasoning.schema_reader(schema, rules) if specialise else None
    system = combine(texts, rules, errors, documents, profile, as_prefixes(prefixes), lenient, triples, same_as)
    raise_all(errors)
    stratify(engine.system(system))
    removals = removals or schema_changes == "follow"
    windowed = apply_profile(system, profile, default, windows_by_stream, removals, policy, output)
    ways = reasoning.Ways(entailment, same_as, same_as_answers, schema_changes, specialise)
    reasoned, _ = reasoning.with_reasoning(windowed, schema, ways)
    return with_deadlines(reasoned)


@no_collection()
@deep_recursion()
def plan(
    system: System,
    planner: str | Planner = "rete",
    statistics: Statistics | str | Path | None = None,
    *,
    replaceable: bool = False,
) -> Plan:
    """Plans a system, and checks the plan.

    Args:
        system: The system.
        planner: The name of a planner, or a planner itself.
        statistics: Statistics of the data that the plan is for (`squall.plan.cardinality.Statistics.of`), or their
            file.
        replaceable: Whether a run may replace the plan by one for other statistics (`squall.contracts.Replanning`).

    Raises:
        PlannerError: The system cannot be planned.
        UsageError: The planner does not use statistics, or the file has none; or it makes no replaceable plans.
    """
    arguments.check_system(system)
    arguments.check_callable(planner, "planner")
    from squall.model.beginnings import without_beginnings
    from squall.model.systems import axioms_of

    loaded = plugins.load("squall.planners", planner) if isinstance(planner, str) else planner
    make_plan = cast(Callable[..., Plan], loaded)
    system = without_beginnings(system)
    settings: dict[str, Any] = {}
    if replaceable:
        if "replaceable" not in signature(make_plan).parameters:
            raise UsageError(f"the planner `{planner}` makes no replaceable plans", hint="the planner `rete` does")
        settings["replaceable"] = True
    if statistics is not None:
        if "statistics" not in signature(make_plan).parameters:
            raise UsageError(f"the planner `{planner}` has no use for statistics", hint="the planner `rete` has")
        settings["statistics"] = _loaded(statistics)
    result = check(make_plan(system, **settings))

    def plan_again(planning: Planning) -> Plan:
        same = planning.planner == result.planner
        return plan(
            system, planner if same else planning.planner, planning.statistics, replaceable=planning.replaceable
        )

    return replace(result, plan_again=plan_again, axioms=axioms_of(system), **settings)


def _loaded(statistics: Statistics | str | Path) -> Statistics:
    from squall.plan.cardinality import Statistics

    return statistics if isinstance(statistics, Statistics) else Statistics.load(statistics)


@no_collection()
@deep_recursion()
def build(plan: Plan, builder: str | Builder = "iterator", options: Options | None = None) -> Job:
    """Prepares a plan to run.

    Args:
        plan: The plan.
        builder: The name of a builder, or a builder itself.
        options: The options of the run.

    Raises:
        BuilderError: The builder cannot run the plan, or does not support what the options ask for.
    """
    arguments.check_plan(plan)
    arguments.check_callable(builder, "builder")
    arguments.check_options(options)
    from squall.plan.nesting_limit import limit_nesting
    from squall.plan.seeds import new_seed
    from squall.rdf.compounds import MAX_NESTING_DEPTH

    make_job = cast(Builder, plugins.load("squall.builders", builder)) if isinstance(builder, str) else builder
    run_options = options or Options()
    name = builder if isinstance(builder, str) else getattr(builder, "__name__", type(builder).__name__)
    check_options(run_options, make_job, name)
    if run_options.seed is None:
        run_options = replace(run_options, seed=new_seed())

    def limited(plan: Plan) -> Plan:
        if run_options.max_depth != MAX_NESTING_DEPTH:
            plan = limit_nesting(plan, run_options.max_depth)
        if (plan_again := plan.plan_again) is not None:
            plan = replace(plan, plan_again=lambda planning: limited(plan_again(planning)))
        return plan if run_options.max_terms == plan.max_terms else replace(plan, max_terms=run_options.max_terms)

    return make_job(limited(plan), run_options)


@overload
def run(
    plan: Plan,
    events: Iterable[Event] | Source,
    builder: str | Builder = ...,
    static: Iterable[Event] = ...,
    options: Options | None = ...,
) -> Results[Any]: ...


@overload
def run(
    plan: Plan,
    events: Iterable[Event] | Source,
    builder: str | Builder = ...,
    static: Iterable[Event] = ...,
    options: Options | None = ...,
    *,
    of: type[R],
) -> Results[R]: ...


def run(
    plan: Plan,
    events: Iterable[Event] | Source,
    builder: str | Builder = "iterator",
    static: Iterable[Event] = (),
    options: Options | None = None,
    *,
    of: type[Any] | None = None,
) -> Results[Any]:
    """Runs a plan over events and returns its outputs in the order of time, as the run makes them.

    Args:
        plan: The plan, from `plan`.
        events: Events in non-decreasing time. A list, a tuple or `squall.rdf.Columns` is one batch; of any other
            iterable each event is processed as it arrives. Or a source: of `from_dataframe`, or of
            `squall.streams.open_source`.
        builder: The name of a builder, or a builder itself.
        static: Events whose facts always hold; they are read first.
        options: Options of the run.
        of: The type that each output must carry, such as `Triple` or `Solution`. It types the outputs.

    Raises:
        BuilderError: The builder cannot run the plan.
        UsageError: An output carries something else than `of`.
        ArgumentError: An argument, or an event, is not what it has to be.
    """
    arguments.check_batches(events)
    arguments.check_batches(static)
    arguments.check_type(of)
    batches: Iterable[Sequence[Event]]
    if arguments.is_source(events):
        batches = Sources([events])
    elif isinstance(events, list | tuple | Columns):
        arguments.check_events(events)
        batches = [events]
    else:
        batches = ([event] for event in arguments.checked(events))
    outputs = build(plan, builder, options).run(batches, arguments.checked_static(static))
    return Results(outputs if of is None else _only(outputs, of), is_one_query(plan))


def _only(outputs: Iterable[Output[Any]], of: type[R]) -> Iterator[Output[R]]:
    for output in outputs:
        if not isinstance(output.fact, of):
            kind = type(output.fact).__name__
            hint = "leave `of` out, or run that rule or query by itself"
            raise UsageError(f"`{output.rule}` gives a {kind}, and `of` is {of.__name__}", hint=hint)
        yield output


def query(
    *programs: str | Path,
    sources: str | Path | Source | Iterable[Event] | Sequence[str | Path | Source],
    static: str | Path | Iterable[Event] | Sequence[str | Path] = (),
    planner: str | Planner = "rete",
    builder: str | Builder = "iterator",
    options: Options | None = None,
    **settings: Any,
) -> Results[Any]:
    """Compiles and plans programs, and runs them over sources, in one call.

    Args:
        programs: The programs, as of `compile`.
        sources: Addresses of sources (docs/streams.md) and sources (`from_dataframe`), one or several; or events, as
            of `run`. A graph of rdflib or a store of pyoxigraph is static data. The windows of addresses (``?window=``)
            apply.
        static: Addresses of static data; or a graph, or events.
        planner: The planner, as of `plan`.
        builder: The builder, as of `build`.
        options: The options of the run.
        settings: The other arguments of `compile`: ``lexer``, ``window``, ``output``, ``entailment``, ...

    Raises:
        SquallError: As of `compile`, `plan` and `run`, or a source cannot be opened.
    """
    from squall import streams

    places = arguments.addresses_and_sources(sources)
    if addresses := [place for place in places if isinstance(place, str)]:
        settings["windows"] = {**streams.windows(addresses), **(settings.get("windows") or {})}
    query_plan = plan(compile(*programs, **settings), planner)
    static_events = _static_events(static)
    if not places:
        return run(query_plan, cast(Iterable[Event], sources), builder, static_events, options)
    inputs = Sources([streams.open_source(place) if isinstance(place, str) else place for place in places])
    outputs = build(query_plan, builder, options).run(inputs, arguments.checked_static(static_events))
    return Results(outputs, is_one_query(query_plan))


def _static_events(static: Any) -> Iterable[Event]:
    """Returns the events of addresses of static data, of a graph, or of events."""
    from squall.rdf import events
    from squall.streams import open_static
    from squall.streams.static_data import AllStaticData

    if addresses := arguments.addresses(static):
        parts = [open_static(address) for address in addresses]
        return AllStaticData(parts, (event for part in parts for event in part))
    is_graph = type(static).__module__.startswith(("rdflib", "pyoxigraph"))
    return events(static) if is_graph else cast(Iterable[Event], static)


def from_dataframe(
    frame: Any,
    map: str | Path | RecordMapping | None = None,
    *,
    time: str | int | None = None,
    unit: str = "ms",
    stream: str = "",
    name: str = "DataFrame",
    strict: bool = False,
) -> DataFrameSource:
    """Returns the rows of a DataFrame as a source, which `run`, `query`, `arun` and their argument `static` take.

    With a mapping, rows are records, as those of files with ``map=`` (docs/guides/data-that-are-not-rdf.md). Without
    one a row is a triple, of the columns ``subject``, ``predicate`` and ``object`` (or ``s``, ``p``, ``o``), in the
    graph ``graph`` (``g``), if there is that column. A text there is a term if it begins like one in N-Triples (``<``,
    ``"``, ``_:``); otherwise a subject, a predicate and a graph are IRIs, and so is an object that begins with
    ``http://``, ``https://`` or ``urn:``; other objects are strings. Python values are literals
    (`squall.functions.python_values.to_term`).

    The rows of a table are read in the order of their times, which are stable for rows of one time; those of a record
    batch reader as they come, and once. A row that cannot be used is a dead letter with its number, from 1.

    Args:
        frame: A DataFrame of pandas, polars or Spark, an Arrow table, record batch or record batch reader, or what
            exports a stream of Arrow (``__arrow_c_stream__``). An index of pandas that has a name is a column. A
            DataFrame of Spark is for the builder ``spark``; it needs times.
        map: The mapping: a file, or a text in the short form or in RML.
        time: The column of the event time: timestamps, dates, texts in ISO 8601, or numbers; or one time (integer ms)
            for all rows. None: as the mapping says, or the column ``time`` of triples; rows without a time always hold.
        unit: The unit of times that are numbers: ``ms`` or ``s``.
        stream: The IRI of the stream of the triples; ``""`` is the default stream.
        name: The name of the frame in messages, which also keeps its blank nodes apart from those of others.
        strict: Whether the first row that cannot be used is an error. Otherwise such rows go to the ledger of the run,
            or are counted in `dead_letters` and logged (``squall``) if it has none.

    Raises:
        ArgumentError: It is no DataFrame, or a column is missing.
        UsageError: The mapping cannot be read, or a column is missing that it uses.
        LexerError: The mapping is malformed.
        Errors: There are several errors.
    """
    from squall.streams.sources.dataframes import DataFrameSource, row_reader
    from squall.streams.sources.frame_columns import frame_of

    arguments.check_from_dataframe(map, time, stream, name)
    if arguments.is_spark_frame(frame):
        from squall.builders.spark.sources import mapped_source

        reader = row_reader(frame.columns, map, time, unit, stream, name)
        return cast(DataFrameSource, mapped_source(frame, reader, strict))
    table = frame_of(frame)
    return DataFrameSource(table, row_reader(table.names, map, time, unit, stream, name), strict)


def arun(
    plan: Plan,
    events: AsyncIterable[Event] | Iterable[Event] | Source,
    builder: str | Builder = "iterator",
    static: Iterable[Event] = (),
    options: Options | None = None,
) -> AsyncIterator[Output[Any]]:
    """Runs a plan over events of an asynchronous iterable, and yields its outputs: `run` for coroutines.

    The run has a thread of its own, which takes an event when those before it are processed and their outputs were
    asked for. A reader that ends, or is cancelled, ends the run.

        async for output in squall.arun(plan, events()):
            ...

    Args and errors are those of `run`.
    """
    from squall import asynchronous

    if not isinstance(events, AsyncIterable):
        arguments.check_batches(events)
        if arguments.is_source(events):
            events = (event for batch in Sources([events]) for event in batch)
    arguments.check_batches(static)
    job = build(plan, builder, options)

    def run_batches(batches: Iterable[Sequence[Event]]) -> Iterator[Output[Any]]:
        checked_batches = (tuple(arguments.checked(batch)) for batch in batches)
        return job.run(checked_batches, arguments.checked_static(static))

    return asynchronous.outputs(run_batches, events)
