"""The command ``squall build``: programs are made a job, and it is run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squall.cli.outputs import apart, columns_of, recoverable, sink_of
from squall.cli.programs import (
    BUILDER,
    PLANNER,
    PROGRAMS,
    STATISTICS,
    compiled,
    job_of,
    meaning,
    planner_of,
    with_semantics,
)
from squall.cli.running import asked_at, check_sampled, run, warn_of_risks, watched, write_measures
from squall.cli.shared import LEXER, RULES, show_prints
from squall.errors import UsageError
from squall.process.gc_tuning import calm_collector

if TYPE_CHECKING:
    from squall.contracts import Interval, Options
    from squall.model import System
    from squall.rdf import Event
    from squall.streams import LedgerFile, Sink, Sources


@click.command()
@PROGRAMS
@RULES
@LEXER
@PLANNER
@BUILDER
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream: a file, a folder, - or a URI.")
@click.option("--static", "statics", multiple=True, metavar="URI", help="Data that always hold; read first.")
@click.option("--graph", "graphs", multiple=True, metavar="IRI=FILE", help="Where a graph is that a program names "
              "(FROM), or a document that it imports.")  # fmt: skip
@click.option("--sink", default="-", metavar="URI", help="Where outputs go [default: standard output].")
@with_semantics
@click.option("--clock", type=click.Choice(["event", "wall"]), default="event", show_default=True, help="The time "
              "of an event: what it says, or when it arrives.")  # fmt: skip
@click.option("--now", "now", metavar="TIME", help="What NOW() is of static data: ISO 8601, or milliseconds [default: "
              "without sources and with --clock wall when the run begins, else 1970-01-01].")  # fmt: skip
@click.option("--lateness", default="0s", metavar="TIME", help="How far streams may be out of order [default: 0s].")
@click.option("--heartbeat", default="1s", show_default=True, metavar="TIME", help="How long nothing may come before "
              "time goes on without it.")  # fmt: skip
@click.option("--format", "format", metavar="NAME", help="Standard output as nt, ntt, nq, nqt, trig, rdfp, jelly, "
              "ndjson, ndjson-evaluations, nt-messages, nq-messages, trig-messages, jelly-messages, csv, tsv, table, "
              "srj, srx, srcsv or srtsv [default: table for answers of queries, nq for triples in graphs, "
              "else nt].")  # fmt: skip
@click.option("--timed", is_flag=True, help="Standard output with times: --format ntt, or with nq nqt.")
@click.option("--typed", "types", multiple=True, metavar="NAME=TYPE", help="In a folder of tables the "
              "values of a variable as Spark has them (double, timestamp, ...); of all others: *=string.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Stop at the first malformed statement; exit code 1 for any loss.")
@click.option("--dead-letters", "lost", type=click.Path(path_type=Path), metavar="FILE", help="Keep what "
              "could not be used (malformed, late) as lines of JSON.")  # fmt: skip
@click.option("--checkpoint", type=click.Path(path_type=Path), metavar="DIR", help="Keep offsets and state there, so "
              "that a killed run goes on where it was.")  # fmt: skip
@click.option("--checkpoint-interval", "every", metavar="TIME|N", help="How often that is saved, in time or in statements "
              "[default: 1s].")  # fmt: skip
@click.option(
    "--allow-removed-rules", "migrate", is_flag=True, help="Go on from the checkpoint of a program that had more rules."
)
@click.option("--batch", is_flag=True, help="Work off all there is as one batch (Spark, Beam): nothing live, no "
              "checkpoint.")  # fmt: skip
@click.option("--max-depth", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="How deep "
              "rules may nest the terms that they make.")  # fmt: skip
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of the engine "
              "(Spark), or an option of the pipeline (Beam: runner=...).")  # fmt: skip
@STATISTICS
@click.option("--collect-statistics", "counted", type=click.Path(path_type=Path), metavar="FILE", help="Count a sample "
              "of the data, for --statistics.")  # fmt: skip
@click.option("--profile-nodes", "profiled", type=click.Path(path_type=Path), metavar="FILE", help="Measure each node, "
              "for `squall explain --node-metrics`.")  # fmt: skip
@click.option("--metrics", metavar="PORT", help="Answer there with metrics for Prometheus; on the loopback, or at "
              "HOST:PORT.")  # fmt: skip
@click.option("--progress/--no-progress", default=None, help="[default: if standard error is a terminal]")
def build(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    lexer: str | None,
    planner: str,
    builder: str,
    sources: tuple[str, ...],
    statics: tuple[str, ...],
    graphs: tuple[str, ...],
    sink: str,
    clock: str,
    now: str | None,
    lateness: str,
    heartbeat: str,
    format: str | None,
    timed: bool,
    types: tuple[str, ...],
    strict: bool,
    lost: Path | None,
    checkpoint: Path | None,
    every: str | None,
    migrate: bool,
    batch: bool,
    max_depth: int,
    conf: tuple[str, ...],
    statistics: Path | None,
    counted: Path | None,
    profiled: Path | None,
    metrics: str | None,
    progress: bool | None,
    **semantics: str,
) -> None:
    """Build PROGRAMs into a job and run it.

    Outputs (what is derived, not the input) go to the sink; messages, progress and a summary to standard error.

    \b
    Sources by ending: .nt .nq .ttl .trig .rdf .jsonld and timed .ntt, each also with .gz; a folder; -
      --source people.ttl
      --source '-?format=nt'                  standard input
      --source 'in/?follow=yes&poll=500'      a folder that grows; so does a file
      --source 'a.nt?stream=urn:a&time=1000'  the stream and time (ms) of its statements
      --source 'obs=a.ntt?window=RANGE 10s'   a stream `obs` with a window
      --source 'a.nt?time=http://e.org/at'    the time is a property of each subject
    Sinks by ending: .nt .ntt .nq .nqt .trig .ndjson .csv .tsv .srj .srx .srcsv .srtsv, each also with .gz; -
      --sink derived.nt
      --sink 'out.txt?format=table'
      --sink 'answers-{time}.srj'             a file for each evaluation
      --sink 'out/?format=parquet'            a folder of files, which Spark writes
    A line of .ntt is a time (integer ms, ISO 8601, or -infinity), blanks, and an N-Triples statement.

    \b
    Examples:
      squall build family.jena --source people.ttl
      squall build rules.jena --source data.nt --builder spark --sink out.ndjson
      zcat log.ntt.gz | squall build alarm.jena --source '-?format=ntt' --timed | head
      squall build rules.jena --source dirty.nt --dead-letters lost.ndjson
      squall build query.rq --rules owl2rl --source ontology.ttl --source data.ttl
      sensors | squall build alarm.jena --source '-?format=nt' --clock wall --window 'RANGE 1m'
    """
    from squall.observe.progress import Tally
    from squall.streams import LedgerFile
    from squall.streams.sinks import ReportsDeadLetters, check_writable

    saved = checkpoint is not None
    resume = checkpoint is not None and _has_begun(checkpoint)
    system = compiled(programs, lexer, rules, graphs, semantics["profile"])
    mean = meaning(sources, **semantics)
    make = planner_of(planner, statistics)
    _usable("squall.builders", builder)
    settings = tuple(_setting(text) for text in conf)
    target = sink_of(sink, format, timed, types, system)
    apart(sink, (*sources, *statics))
    _timing(clock, lateness, sources, builder)
    begin = None if now is None else _moment(now)
    times = _length("--lateness", lateness, 0), clock, _length("--heartbeat", heartbeat, 1)
    check_sampled(builder, counted)
    if profiled:
        check_writable(profiled)
    ledger = LedgerFile(lost, strict, resume)
    if isinstance(target, ReportsDeadLetters):
        target.ledger = ledger
    durable = saved and builder == "iterator"
    if migrate and not durable:
        raise UsageError("`--allow-removed-rules` goes with `--checkpoint` and the builder `iterator`")
    interval = _interval(every, durable)
    streams, static = _inputs(sources, statics, ledger, saved, *times)
    static = chain(static, _documents(system, graphs, (*sources, *statics), ledger))
    system = mean(system, removals=streams.removals)
    _check_streams(system, streams, sources, statics)
    plan = make(system)
    if saved and builder in ("iterator", "spark"):
        target = recoverable(target)
    options = _options(checkpoint, settings, ledger, target, profiled is not None, begin)
    job = job_of(
        plan,
        builder,
        replace(
            options,
            max_depth=max_depth,
            checkpoint_interval=interval,
            run_as_one_batch=batch,
            allow_removed_rules=migrate,
        ),
    )
    if saved:
        warn_of_risks(streams)
    if profiled and not hasattr(job, "node_metrics"):
        raise UsageError(f"the builder `{builder}` does not measure nodes", hint="leave `--profile-nodes` out")
    sample: list[Event] = []
    calm_collector()
    show_prints()
    inputs, tally = watched(streams, static, sample if counted else None), Tally()
    with asked_at(metrics, job, inputs[0], ledger, tally):
        code = run(job, *inputs, target, ledger, resume, progress, columns_of(system, target), tally)
    write_measures(job, plan, sample, counted, profiled)
    sys.exit(code)


def _usable(group: str, name: str) -> None:
    from squall import plugins

    plugins.load(group, name)


def _has_begun(checkpoint: Path) -> bool:
    """Whether there is something to go on with; a draft is not. Raises UsageError where it can be no folder."""
    if checkpoint.exists() and not checkpoint.is_dir():
        raise UsageError(f"the checkpoint `{checkpoint}` cannot be used: it is no folder", hint="name another one")
    return checkpoint.is_dir() and any(entry.suffix != ".tmp" for entry in checkpoint.iterdir())


def _interval(text: str | None, durable: bool) -> Interval:
    """How often a checkpoint is saved."""
    from squall.contracts import Interval

    if text is not None and not durable:
        raise UsageError("`--checkpoint-interval` goes with `--checkpoint` and the builder `iterator`")
    if text is not None and text.isdigit():
        if int(text) == 0:
            raise UsageError("`--checkpoint-interval 0`: behind at least one statement")
        return Interval(statements=int(text))
    return Interval(milliseconds=_length("--checkpoint-interval", text or "1s", 1))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"`--conf {text}` is not KEY=VALUE")
    return key, value


def _timing(clock: str, lateness: str, sources: Sequence[str], builder: str) -> None:
    """The time of arrival has no disorder, and is there only where all that comes is seen to come."""
    from squall.streams import address

    if clock == "event":
        return
    if lateness != "0s" or any(address.source(uri).get("lateness") for uri in sources):
        raise UsageError("with `--clock wall` nothing is late", hint="leave `lateness` out")
    if builder != "iterator":
        raise UsageError(f"`--clock wall` goes with the builder `iterator`, not with `{builder}`")


def _length(option: str, text: str, least: int) -> int:
    """A length of time in ms."""
    from squall.model.windows import milliseconds

    length = milliseconds(text)
    if length < least:
        raise UsageError(f"`{option} {text}` is too short")
    return length


def _inputs(
    sources: Sequence[str],
    statics: Sequence[str],
    ledger: LedgerFile,
    saved: bool,
    lateness: int,
    clock: str,
    heartbeat: int,
) -> tuple[Sources, Iterable[Event]]:
    """saved: what is lost counts when the run comes to it, and not when a source is read ahead of that."""
    from squall.streams import Sources, address, open_source, open_static
    from squall.streams.clock import EventClock, WallClock
    from squall.streams.dead_letters import Deferred

    if sum(address.source(uri).path == "-" for uri in (*sources, *statics)) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    ledgers = [Deferred(ledger) for _ in sources] if saved else []
    opened = [open_source(uri, ledgers[number] if saved else ledger, lateness) for number, uri in enumerate(sources)]
    streams = Sources(opened, WallClock() if clock == "wall" else EventClock(), heartbeat, ledgers)
    return streams, chain.from_iterable([open_static(uri, ledger) for uri in statics])


def _documents(system: System, graphs: Sequence[str], given: Sequence[str], ledger: LedgerFile) -> Iterable[Event]:
    """The events of the graphs that the program names, but for those that are streams."""
    from squall.streams import address
    from squall.streams.sources import documents

    streams = {address.source(uri).get("stream") for uri in given}
    return documents.load(system, dict(map(documents.place, graphs)), streams, ledger)


def _check_streams(system: System, sources: Sources, given: Sequence[str], statics: Sequence[str]) -> None:
    """Says which streams are missing, and which queries would keep all that streams ever bring. What a file holds whose
    statements have no times is there at once, and no more than that."""
    from squall.model.unbounded_state import unbounded_state_warnings
    from squall.rdf import ALWAYS
    from squall.streams import address
    from squall.streams.sources.documents import check_streams

    places = [address.source(uri) for uri in (*given, *statics)]
    if all(place.scheme in ("file", "stdin") for place in places):  # a plug-in's streams are not known beforehand
        check_streams(system, {place.get("stream") for place in places})
    goes_on = [source.live or source.earliest == ALWAYS for source in sources.sources]
    for warning in unbounded_state_warnings(
        system, {place.get("stream") for place, on in zip(places, goes_on, strict=False) if on}
    ):
        click.echo(str(warning), err=True)


def _options(
    checkpoint: Path | None,
    conf: tuple[tuple[str, str], ...],
    ledger: LedgerFile,
    sink: Sink,
    measure: bool,
    now: int | None,
) -> Options:
    from squall.contracts import CheckpointedSink, Folder, Options, TruncatableSink

    rewound = sink if isinstance(sink, TruncatableSink | CheckpointedSink | Folder) else None
    return Options(checkpoint, conf, ledger, rewound, measure=measure, now=now)


def _moment(text: str) -> int:
    """The time (integer ms) of `--now`. Raises UsageError."""
    from squall.streams.formats.timestamps import time_of

    try:
        return time_of(text)
    except SyntaxError as error:
        raise UsageError(f"`--now {text}`: {error.msg}") from None
