"""The command ``squall run`` (or ``build``): programs become a job, and it runs."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from squall import plugins
from squall.cli import completers, messages
from squall.cli.inputs import (
    all_static_data,
    check_clock,
    check_streams,
    documents_of,
    inputs_of,
    length,
    moment,
    places_of,
    stream_names,
)
from squall.cli.no_outputs import warn_of_no_source, warn_of_unmatched, warn_of_unread_documents
from squall.cli.options import (
    BUILDER,
    CONTEXTS,
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
    show_prints,
    source_option,
    static_option,
)
from squall.cli.outputs import checkpointed, columns_of, sink_of
from squall.cli.programs import Semantics, compiled, is_replaceable, job_of, planner_of, planning_statistics
from squall.cli.running import run, serving_metrics, warn_of_risks, watched, write_measures
from squall.cli.written_files import check_written_files
from squall.errors import UsageError
from squall.process.gc_tuning import calm_collector
from squall.process.memory import parse_size
from squall.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from squall.contracts import BuilderCapabilities, Interval, Options, Replanning
    from squall.model import System
    from squall.rdf import Event
    from squall.streams import DeadLetterFile, Sink

_ADAPT = ("off", "backward", "forward", "auto")
"""Which data a run looks at for a better plan."""


@cloup.command("run", aliases=["build"], cls=Command)
@PROGRAMS
@cloup.option_group(
    "Program",
    LEXER,
    RULES,
    *MEANING,
    cloup.option(
        "--max-depth",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        metavar="N",
        help="How deep rules may nest the terms that they create.",
    ),
    cloup.option(
        "--max-terms",
        type=click.IntRange(min=1),
        default=1_000_000,
        show_default=True,
        metavar="N",
        help="How many terms a recursion may create of terms that it created.",
    ),
)
@cloup.option_group(
    "Input",
    source_option("A stream: a file, a folder, - or a URI."),
    static_option("Data that always hold. They are read first."),
    GRAPH,
    CONTEXTS,
)
@cloup.option_group(
    "Time",
    WINDOW,
    cloup.option(
        "--clock",
        type=click.Choice(["event", "wall"]),
        default="event",
        show_default=True,
        help="The time of an event: what it says, or when it arrives.",
    ),
    cloup.option(
        "--lateness", default="0s", show_default=True, metavar="TIME", help="How far streams may be out of order."
    ),
    cloup.option(
        "--heartbeat",
        default="1s",
        show_default=True,
        metavar="TIME",
        help="After how long without input time advances nevertheless.",
    ),
    cloup.option(
        "--now",
        metavar="TIME",
        help="What NOW() is for static data: ISO 8601, or milliseconds.  [default: "
        "the start of the run without sources or with --clock wall, else 1970-01-01]",
    ),
    cloup.option(
        "--seed",
        type=click.IntRange(0),
        metavar="N",
        help="What blank nodes, UUID() and RAND() depend on, for a run that can be repeated.  [default: drawn; of a "
        "run that resumes, that of its checkpoint]",
    ),
)
@cloup.option_group(
    "Output",
    cloup.option(
        "--sink",
        default="-",
        metavar="URI",
        shell_complete=completers.uris(plugins.SINKS),
        help="Where outputs go.  [default: standard output]",
    ),
    cloup.option(
        "--format",
        "format",
        metavar="NAME",
        shell_complete=completers.output_formats,
        help="The format of standard output (`squall list formats`).  [default: table for queries, nq for "
        "triples in graphs, else nt]",
    ),
    cloup.option("--timed", is_flag=True, help="Standard output with times: --format ntt, or with nq nqt."),
    cloup.option(
        "--typed",
        "types",
        multiple=True,
        metavar="NAME=TYPE",
        help="In Parquet files, and folders of tables, the type of "
        "a variable's values as Spark names it (double, timestamp, ...); of all others: *=string.",
    ),
    OUTPUT,
    REPORT,
)
@cloup.option_group(
    "Durability",
    cloup.option(
        "--checkpoint", type=FILE, metavar="DIR", help="Keep offsets and state there, so that a killed run resumes."
    ),
    cloup.option(
        "--checkpoint-interval",
        "interval",
        metavar="TIME|N",
        help="How often a checkpoint is saved, in time or in statements.  [default: 1s]",
    ),
    cloup.option(
        "--allow-removed-rules", is_flag=True, help="Resume from the checkpoint of a program that had more rules."
    ),
    cloup.option(
        "--dead-letters", type=FILE, metavar="FILE", help="Keep malformed and late statements as lines of JSON."
    ),
    cloup.option("--strict", is_flag=True, help="Stop at the first malformed statement; exit code 1 for any loss."),
)
@cloup.option_group(
    "Engine",
    PLANNER,
    BUILDER,
    cloup.option(
        "--memory-limit",
        metavar="SIZE",
        help="End a run that needs more main memory than that (500MB, 4GB), and say why.  [default: no limit]",
    ),
    cloup.option(
        "--batch-interval",
        metavar="TIME",
        help="How long to gather live events for a micro-batch.  [default: what the program says, or as long as the "
        "one before takes]",
    ),
    cloup.option("--batch", is_flag=True, help="Process bounded input as one batch: nothing live, no checkpoint."),
    cloup.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of the engine, by its own name."),
    STATISTICS,
    cloup.option("--adapt", type=click.Choice(_ADAPT), default="off", show_default=True,
                 help="Replace the plan while it runs, where the data ask for another order of joins: `backward` looks "
                 "at what the run has stored, `forward` at a sample of the input before it is processed, `auto` at all "
                 "that the builder can look at."),
    cloup.option("--adapt-interval", type=click.IntRange(min=1), default=2000, show_default=True, metavar="N",
                 help="After how many statements --adapt looks for a better plan."),
)  # fmt: skip
@cloup.option_group(
    "Observation",
    cloup.option("--progress/--no-progress", default=None, help="Show how far finite input is read.  [default: if "
                 "standard error is a terminal]"),
    cloup.option("--metrics", metavar="PORT", help="Serve metrics for Prometheus there, on the loopback interface or "
                 "at HOST:PORT."),
    cloup.option("--latency", is_flag=True, help="Measure latency and throughput of each batch and window, for the "
                 "summary; --metrics does so, too."),
    cloup.option("--profile-nodes", "profiled", type=FILE, metavar="FILE", help="Measure each node, for `squall "
                 "explain --node-metrics`."),
    cloup.option("--collect-statistics", "statistics_file", type=FILE, metavar="FILE", help="Count a sample "
                 "of the data, for --statistics."),
    QUIET, VERBOSE,
)  # fmt: skip
def build(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    entailment: str,
    same_as: str | None,
    same_as_answers: str,
    schemas: tuple[str, ...],
    specialise: bool,
    lenient: bool,
    lexer: str | None,
    prefixes: tuple[str, ...],
    prefix_files: tuple[str, ...],
    profile: str,
    max_depth: int,
    max_terms: int,
    sources: tuple[str, ...],
    statics: tuple[str, ...],
    graphs: tuple[str, ...],
    context_folders: tuple[str, ...],
    window: str,
    clock: str,
    lateness: str,
    heartbeat: str,
    now: str | None,
    seed: int | None,
    sink: str,
    format: str | None,
    timed: bool,
    types: tuple[str, ...],
    output: str | None,
    report: str | None,
    checkpoint: Path | None,
    interval: str | None,
    allow_removed_rules: bool,
    dead_letters: Path | None,
    schema_changes: str,
    strict: bool,
    planner: str,
    builder: str,
    memory_limit: str | None,
    batch_interval: str | None,
    batch: bool,
    conf: tuple[str, ...],
    statistics: Path | None,
    adapt: str,
    adapt_interval: int,
    progress: bool | None,
    metrics: str | None,
    latency: bool,
    profiled: Path | None,
    statistics_file: Path | None,
) -> None:
    """Build PROGRAMs into a job and run it.

    Outputs (what is derived, not the input) go to the sink; messages, progress and a summary to standard error.

    \b
    Sources by extension: .nt .nq .ttl .trig .rdf .jsonld and timed .ntt, also with .gz .bz2 .xz .zst; a folder; -
      --source people.ttl
      --source '-?format=nt'                  standard input
      --source 'in/?follow=yes&poll=500'      a folder that grows; so does a file
      --source 'a.nt?stream=urn:a&time=1000'  the stream and time (ms) of its statements
      --source 'obs=a.ntt?window=RANGE 10s'   a stream `obs` with a window
      --source 'a.nt?time=http://e.org/at'    the time is a property of each subject
    Sinks by extension: .nt .ntt .nq .nqt .trig .ndjson .csv .tsv .srj .srx .srcsv .srtsv, also with .gz;
    .parquet; -
      --sink derived.nt
      --sink 'out.txt?format=table'
      --sink 'out.json?format=ndjson-values'  flat objects with plain values; so have .csv and .parquet
      --sink 'answers-{time}.srj'             a file for each evaluation
      --sink 'out/?format=parquet'            a folder of files, which Spark writes
    A line of .ntt is a time (integer ms, ISO 8601, or -infinity), blanks, and an N-Triples statement.

    \b
    Examples:
      squall run family.jena --source people.ttl
      squall run rules.jena --source data.nt --builder spark --sink out.ndjson
      zcat log.ntt.gz | squall run alarm.jena --source '-?format=ntt' --timed | head
      squall run rules.jena --source dirty.nt --dead-letters lost.ndjson
      squall run query.rq --rules owl2rl --source ontology.ttl --source data.ttl
      squall run plant.owl query.csparql --source 'readings.ntt?window=RANGE 10s'
      sensors | squall run alarm.jena --source '-?format=nt' --clock wall --window 'RANGE 1m'
    """
    # In one piece: what each option means for the run, most in a conditional expression.
    from squall.contracts import Options, capabilities_of
    from squall.model import with_windows
    from squall.observe.latency import Latencies
    from squall.observe.progress import Tally
    from squall.streams import DeadLetterFile
    from squall.streams.sinks import ReportsDeadLetters

    resume = checkpoint is not None and _has_begun(checkpoint)
    places, namespaces = places_of(graphs, context_folders), prefixes_of(prefixes, prefix_files)
    semantics = Semantics(
        sources, window, output, report, profile, namespaces, entailment, schemas, statics, places, lenient,
        schema_changes, specialise, same_as, same_as_answers,
    )  # fmt: skip
    system = compiled(programs, lexer, rules, graphs, semantics)
    capabilities = capabilities_of(plugins.load(plugins.BUILDERS, builder))
    settings = tuple(_setting(text) for text in conf)
    target = sink_of(sink, format, timed, types, system)
    check_clock(clock, lateness, sources, builder, capabilities)
    options = Options(
        checkpoint=checkpoint,
        conf=settings,
        run_as_one_batch=batch,
        measure=profiled is not None,
        max_depth=max_depth,
        max_terms=max_terms,
        now=None if now is None else moment(now),
        seed=seed,
        checkpoint_interval=_interval(interval),
        allow_removed_rules=allow_removed_rules,
        memory_limit=None if memory_limit is None else parse_size(memory_limit),
        batch_interval=_batch_interval(batch_interval, system, capabilities),
        replan=_replanning(adapt, adapt_interval, capabilities),
    )
    planned_for = planning_statistics(statistics, planner, builder, checkpoint)
    may_replan = is_replaceable(planner, builder, checkpoint is not None or memory_limit is not None)
    make = planner_of(planner, planned_for, replaceable=options.replan is not None or may_replan)
    _check_durability(options, interval)
    if statistics_file and not capabilities.statistics:
        raise UsageError(f"the builder `{builder}` does not collect statistics", hint=_OTHER_BUILDER)
    read_files: dict[str, Iterable[str | Path]] = {
        "a source": (*sources, *statics),
        "a document": places_of(graphs, ()).values(),
        "a schema": schemas,
        "a program": map(Path, programs),
        "a file of prefixes": map(Path, prefix_files),
    }
    _check_written_files(sink, dead_letters, profiled, statistics_file, read_files)
    ledger = DeadLetterFile(dead_letters, strict, resume)
    if isinstance(target, ReportsDeadLetters):
        target.ledger = ledger
    times = length("--lateness", lateness, 0), clock, length("--heartbeat", heartbeat, 1)
    streams, static_data = inputs_of(sources, statics, graphs, context_folders, ledger, checkpoint is not None, *times)
    opened = documents_of(system, graphs, context_folders, (*sources, *statics), ledger)
    static = all_static_data(static_data, opened)
    system = with_windows(system, removals=streams.removals)
    check_streams(system, streams, sources, statics)
    plan = make(system)
    messages.detail(f"planned by `{planner}`: {counted(len(plan.nodes), 'node')}")
    tally = Tally()
    if latency or (metrics is not None and capabilities.batch_metrics):
        tally.latencies = Latencies(plan)
        options = replace(options, on_batch=tally.latencies)
    target, options = _with_sink(target, options, ledger, capabilities)
    job = job_of(plan, builder, options)
    if not any((sources, static_data, opened)):
        warn_of_no_source(plan)
    named = {document.iri for document, _ in opened} | stream_names((*sources, *statics))
    warn_of_unread_documents(plan, named, places_of(graphs, ()).items())
    if checkpoint is not None:
        messages.detail(f"{'resumes from' if resume else 'begins'} the checkpoint `{checkpoint}`")
        warn_of_risks(streams)
    sample: list[Event] = []
    calm_collector()
    show_prints()
    inputs = watched(streams, static, sample if statistics_file else None)
    tally.static += [*static_data, *(data for _, data in opened)]
    visible = False if messages.is_quiet() else progress
    with serving_metrics(metrics, job, inputs[0], ledger, tally):
        end = run(job, *inputs, target, ledger, checkpoint, resume, visible, columns_of(system, target), tally)
    write_measures(job, plan, sample, statistics_file, profiled)
    reasons = bool(system.fixed_schema or system.cliques or same_as or specialise)
    has_reason = end.code, tally.outputs, tally.left_out, resume, opened, reasons
    if not any((*has_reason, messages.is_quiet())):
        warn_of_unmatched(programs, lexer, rules, statics, places, semantics)
    end.exit()


_OTHER_BUILDER = "leave the option out, or use a builder that supports it: `squall list builders`"


def _replanning(mode: str, interval: int, capabilities: BuilderCapabilities) -> Replanning | None:
    """Returns how the run replaces its plan; None: it does not.

    Args:
        mode: One of `_ADAPT`.
        interval: After how many statements it looks for a better plan.
        capabilities: What the builder can do.
    """
    from squall.contracts import Replanning

    if mode == "off":
        return None
    forward = mode == "forward" or (mode == "auto" and capabilities.looks_ahead)
    return Replanning(interval, backward=mode != "forward", forward=forward)


def _batch_interval(text: str | None, system: System, capabilities: BuilderCapabilities) -> int | None:
    """Returns how long to gather events (integer ms): as the user or a program says. Raises UsageError.

    A program may be run by a builder without micro-batches, which processes its events earlier.
    """
    from squall.model.systems import batch_interval_of

    if text is not None:
        return length("--batch-interval", text, 1)
    return batch_interval_of(system) if capabilities.batch_interval else None


def _with_sink(
    target: Sink, options: Options, ledger: DeadLetterFile, capabilities: BuilderCapabilities
) -> tuple[Sink, Options]:
    """Returns the sink as the builder needs it, and the options with it and the ledger."""
    from squall.contracts import CheckpointedSink, Folder, TruncatableSink

    if options.checkpoint is not None and capabilities.recoverable_sinks:
        target = checkpointed(target)
    given_sink = target if isinstance(target, TruncatableSink | CheckpointedSink | Folder) else None
    return target, replace(options, ledger=ledger, sink=given_sink)


def _check_written_files(
    sink: str,
    dead_letters: Path | None,
    profiled: Path | None,
    statistics_file: Path | None,
    read_files: Mapping[str, Iterable[str | Path]],
) -> None:
    """Raises UsageError if a file cannot be written, or is written twice or also read (`check_written_files`)."""
    from squall.streams.sinks import check_writable

    for file in filter(None, (profiled, statistics_file)):
        check_writable(file)
    written_files = {
        "the sink": None if sink == "-" else sink,
        "the file of `--dead-letters`": dead_letters,
        "the file of `--profile-nodes`": profiled,
        "the file of `--collect-statistics`": statistics_file,
    }
    check_written_files(written_files, read_files)


def _has_begun(checkpoint: Path) -> bool:
    """Returns whether there is a checkpoint to resume from; an unfinished file is none.

    Raises:
        UsageError: The path is no folder.
    """
    try:
        status = checkpoint.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(f"the checkpoint `{checkpoint}` cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise UsageError(f"the checkpoint `{checkpoint}` cannot be used: it is no folder", hint="name another one")
    return any(entry.suffix != ".tmp" for entry in checkpoint.iterdir())


def _check_durability(options: Options, interval: str | None) -> None:
    """Raises UsageError if an option about checkpoints is given without one."""
    for option, is_given in (
        ("--checkpoint-interval", interval is not None),
        ("--allow-removed-rules", options.allow_removed_rules),
    ):
        if is_given and options.checkpoint is None:
            raise UsageError(f"`{option}` goes with `--checkpoint`")


def _interval(text: str | None) -> Interval:
    """Returns how often a checkpoint is saved."""
    from squall.contracts import Interval

    if text is not None and text.isdecimal():
        if len(text) > 18:
            raise UsageError("`--checkpoint-interval`: the number of statements is too large")
        if int(text) == 0:
            raise UsageError("`--checkpoint-interval 0`: at least one statement has to be between two checkpoints")
        return Interval(statements=int(text))
    return Interval(milliseconds=length("--checkpoint-interval", text or "1s", 1))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"`--conf {text}` is not KEY=VALUE")
    return key, value
