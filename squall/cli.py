"""The command line: ``squall build``, ``squall explain`` and ``squall list``; ``squall check`` is in `cli_check`,
``squall update`` in `cli_update`.

Nothing heavy is imported before it is needed, so that ``squall --help`` is quick.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

from squall import __version__
from squall.cli_check import check
from squall.cli_shared import (
    FAILED,
    INTERRUPTED,
    LEXER,
    PROFILE,
    RULES,
    WINDOW,
    WRONG,
    check_files,
    show_prints,
)
from squall.cli_update import update
from squall.errors import SquallError, UsageError, near

if TYPE_CHECKING:
    from squall.figures import Figures
    from squall.plan import Plan
    from squall.rdf import Event
    from squall.stages import Job, Options
    from squall.streams import LedgerFile, Sink, Sources
    from squall.system import System

    _Meaning = Callable[..., System]


def main() -> NoReturn:
    """Runs the command line. Errors that the user can mend are printed as they are, without a traceback."""
    try:
        command.main(prog_name="squall", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG)
    except SquallError as error:
        click.echo(str(error), err=True)
        sys.exit(WRONG)
    except BrokenPipeError:
        _leave_quietly()
    sys.exit(0)


def _leave_quietly() -> None:
    """Whoever read our output has enough of it: nothing more may be flushed to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_HELP)
@click.version_option(__version__, message="squall %(version)s")
def command() -> None:
    """Run rules and continuous queries over streams of RDF.

    \b
    Derive what follows from a file, as N-Triples on standard output:
      squall build family.jena --source people.ttl
    Rules over a live stream of timed statements, with data that always hold:
      sensors | squall build alarm.jena --source '-?format=ntt' --static rooms.ttl --timed
    On Spark, following a folder, safe to kill and start again:
      squall build alarm.jena --builder spark --source 'in/?follow=yes' \\
             --sink alarms.nt --checkpoint state/
    See what is wrong with a program, what is made of it, and what there is to choose from:
      squall check alarm.jena
      squall explain alarm.jena
      squall list
    Apply a request of SPARQL Update once:
      squall update correct.ru --data people.nq --output people.nq

    Exit codes: 0 done, 1 the run failed, 2 the program or the arguments are wrong.
    """


def _semantics(command: Callable[..., None]) -> Callable[..., None]:
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


_PROGRAMS = click.argument("programs", nargs=-1, metavar="PROGRAM...")
_PLANNER = click.option("--planner", default="rete", show_default=True, metavar="NAME", help="greedy, rete, ...")
_STATISTICS = click.option("--statistics", type=click.Path(path_type=Path), metavar="FILE", help="Plan for data like "
                           "those that `build --collect-statistics` counted.")  # fmt: skip
_BUILDER = click.option("--builder", default="iterator", show_default=True, metavar="NAME", help="iterator, spark, ...")


@command.command()
@_PROGRAMS
@RULES
@LEXER
@_PLANNER
@_BUILDER
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream: a file, a folder, - or a URI.")
@click.option("--static", "statics", multiple=True, metavar="URI", help="Data that always hold; read first.")
@click.option("--graph", "graphs", multiple=True, metavar="IRI=FILE", help="Where a graph is that a program names "
              "(FROM), or a document that it imports.")  # fmt: skip
@click.option("--sink", default="-", metavar="URI", help="Where outputs go [default: standard output].")
@_semantics
@click.option("--clock", type=click.Choice(["event", "wall"]), default="event", show_default=True, help="The time "
              "of an event: what it says, or when it arrives.")  # fmt: skip
@click.option("--now", "now", metavar="TIME", help="What NOW() is of static data: ISO 8601, or milliseconds [default: "
              "without sources and with --clock wall when the run begins, else 1970-01-01].")  # fmt: skip
@click.option("--lateness", default="0s", metavar="TIME", help="How far streams may be out of order [default: 0s].")
@click.option("--heartbeat", default="1s", show_default=True, metavar="TIME", help="How long nothing may come before "
              "time goes on without it.")  # fmt: skip
@click.option("--format", "format", metavar="NAME", help="Standard output as nt, ntt, nq, nqt, trig, ndjson, "
              "ndjson-evaluations, csv, tsv, table, srj, srx, srcsv or srtsv [default: table for answers of queries, "
              "nq for triples in graphs, else nt].")  # fmt: skip
@click.option("--timed", is_flag=True, help="Standard output with times: --format ntt, or with nq nqt.")
@click.option("--strict", is_flag=True, help="Stop at the first malformed statement; exit code 1 for any loss.")
@click.option("--ledger", "--dead-letter", "lost", type=click.Path(path_type=Path), metavar="FILE", help="Keep what "
              "could not be used (malformed, late) as lines of JSON.")  # fmt: skip
@click.option("--checkpoint", type=click.Path(path_type=Path), metavar="DIR", help="Keep offsets and state there, so "
              "that a killed run goes on where it was.")  # fmt: skip
@click.option("--max-depth", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="How deep "
              "rules may nest the terms that they make.")  # fmt: skip
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of the engine (Spark).")
@_STATISTICS
@click.option("--collect-statistics", "counted", type=click.Path(path_type=Path), metavar="FILE", help="Count a sample "
              "of the data, for --statistics.")  # fmt: skip
@click.option("--profile-nodes", "profiled", type=click.Path(path_type=Path), metavar="FILE", help="Measure each node, "
              "for `squall explain --figures`.")  # fmt: skip
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
    strict: bool,
    lost: Path | None,
    checkpoint: Path | None,
    max_depth: int,
    conf: tuple[str, ...],
    statistics: Path | None,
    counted: Path | None,
    profiled: Path | None,
    progress: bool | None,
    **semantics: str,
) -> None:
    """Build PROGRAMs into a job and run it.

    Outputs (what is derived, not the input) go to the sink; messages, progress and a summary to standard error.

    \b
    Sources by ending: .nt .nq .ttl .trig .rdf .jsonld and timed .ntt, each also with .gz; a folder; -
      --source people.ttl
      --source '-?format=nt'                  standard input
      --source 'in/?follow=yes&poll=500'      a folder that grows
      --source 'a.nt?stream=urn:a&time=1000'  the stream and time (ms) of its statements
      --source 'obs=a.ntt?window=RANGE 10s'   a stream `obs` with a window
      --source 'a.nt?time=http://e.org/at'    the time is a property of each subject
    Sinks by ending: .nt .ntt .nq .nqt .trig .ndjson .csv .tsv .srj .srx .srcsv .srtsv, each also with .gz; -
      --sink derived.nt
      --sink 'out.txt?format=table'
      --sink 'answers-{time}.srj'             a file for each evaluation
    A line of .ntt is a time (integer ms, ISO 8601, or -infinity), blanks, and an N-Triples statement.

    \b
    Examples:
      squall build family.jena --source people.ttl
      squall build rules.jena --source data.nt --builder spark --sink out.ndjson
      zcat log.ntt.gz | squall build alarm.jena --source '-?format=ntt' --timed | head
      squall build rules.jena --source dirty.nt --ledger lost.ndjson
      squall build query.rq --rules owl2rl --source ontology.ttl --source data.ttl
      sensors | squall build alarm.jena --source '-?format=nt' --clock wall --window 'RANGE 1m'
    """
    from squall.streams import LedgerFile
    from squall.streams.sinks import check_writable

    resume = checkpoint is not None and checkpoint.is_dir() and any(checkpoint.iterdir())
    system = _compiled(programs, lexer, rules, graphs, semantics["profile"])
    mean = _meaning(sources, **semantics)
    make = _planner(planner, statistics)
    _usable("squall.builders", builder)
    settings = tuple(_setting(text) for text in conf)
    target = _sink(sink, format, timed, system)
    _apart(sink, (*sources, *statics))
    _timing(clock, lateness, sources, builder)
    begin = None if now is None else _moment(now)
    times = _length("--lateness", lateness, 0), clock, _length("--heartbeat", heartbeat, 1)
    _sampled(builder, counted)
    if profiled:
        check_writable(profiled)
    ledger = LedgerFile(lost, strict, resume)
    streams, static = _inputs(sources, statics, ledger, *times)
    static = chain(static, _documents(system, graphs, (*sources, *statics), ledger))
    system = mean(system, removals=streams.removals)
    _check_streams(system, streams, sources, statics)
    plan = make(system)
    options = _options(checkpoint, settings, ledger, target, profiled is not None, begin)
    job = _job(plan, builder, replace(options, max_depth=max_depth))
    if profiled and not hasattr(job, "figures"):
        raise UsageError(f"the builder `{builder}` does not measure nodes", hint="leave `--profile-nodes` out")
    sample: list[Event] = []
    _calm_collector()
    show_prints()
    inputs = _watched(streams, static, sample if counted else None)
    code = _run(job, *inputs, target, ledger, resume, progress, _columns(system, target))
    _measured(job, plan, sample, counted, profiled)
    sys.exit(code)


@command.command()
@_PROGRAMS
@RULES
@LEXER
@_PLANNER
@_BUILDER
@_semantics
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream; its name, window and format count.")
@click.option("--stage", type=click.Choice(["tree", "tps", "pps", "job"]), default="pps", show_default=True,
              help="After the lexer, the translator, the planner or the builder.")  # fmt: skip
@click.option(
    "--graph", "graphs", multiple=True, metavar="IRI=FILE", help="Where a document is that a program imports."
)
@click.option("--format", "format", default="text", show_default=True, metavar="NAME", help="text, json; of the plan "
              "(pps) also mermaid, dot, svg or html; of the tree also a language, such as jena or rifps.")  # fmt: skip
@click.option("--figures", type=click.Path(path_type=Path), metavar="FILE", help="Show what each node did in a run, "
              "from the file that `build --profile-nodes` wrote.")  # fmt: skip
@_STATISTICS
def explain(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    lexer: str | None,
    planner: str,
    builder: str,
    sources: tuple[str, ...],
    stage: str,
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
      squall explain family.jena --stage job --builder spark
      squall explain family.jena --format dot | dot -Tsvg > plan.svg
      squall explain family.jena --format html > plan.html
      squall explain family.jena --window 'RANGE 10s STEP 5s' --profile csparql
      squall explain family.rif --stage tree --format rifps   the same in another syntax
    """
    _check_format(stage, format)
    if stage != "pps" and figures:
        raise UsageError("figures are those of a plan: `--figures` goes with `--stage pps`")
    make = _planner(planner, statistics)
    if stage == "job" and format == "json":
        raise UsageError("a job is described as text only")
    if stage == "tree":
        texts = _trees(programs, lexer, rules, format)
    else:
        mean = _meaning(sources, **semantics)
        system = mean(_compiled(programs, lexer, rules, graphs, semantics["profile"]), removals=_removals(sources))
        texts = _explained(system, make, builder, stage, format, figures, statistics)
        if format == "text" and semantics["profile"] != "default":
            texts = chain([_profile(semantics["profile"])], texts)
    for text in texts:
        click.echo(text)


command.add_command(check)
command.add_command(update)


@command.command("list")
def list_() -> None:
    """List what there is to choose from.

    Lexers, translators, planners, builders, sources, sinks, rule sets and functions, each with where it comes from.
    """
    from squall import plugins, rulesets

    rows = [
        (plugins.kind(group), name, *plugins.where(group, name))
        for group in plugins.GROUPS
        if group != plugins.FUNCTIONS
        for name in plugins.names(group)
    ]
    sets = [("rule set", name, f"squall {__version__}", f"squall.rulesets:{name}") for name in rulesets.names()]
    _table(("kind", "name", "from", "object"), [*rows, *sets, *_functions()])


def _functions() -> Iterator[tuple[str, str, str, str]]:
    from squall import plugins
    from squall.functions import Function

    for name in plugins.names(plugins.FUNCTIONS):
        place = plugins.where(plugins.FUNCTIONS, name)
        for entry in plugins.load(plugins.FUNCTIONS, name):
            if isinstance(entry, Function):
                yield "function", entry.iri, *place


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; lines of tab-separated fields otherwise."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _compiled(
    programs: Sequence[str], lexer: str | None, rules: Sequence[str], graphs: Sequence[str], profile: str
) -> System:
    import squall
    from squall.streams import documents
    from squall.system import warnings

    _check_given(programs, rules)
    places = dict(map(documents.place, graphs))
    system = squall.compile(*programs, lexer=lexer, rules=rules, documents=places, profile=profile)
    for warning in warnings(system):
        click.echo(str(warning), err=True)
    return system


def _meaning(sources: Sequence[str], window: str, output: str | None, report: str | None, profile: str) -> _Meaning:
    """What makes a system what the options say; all that is wrong with them has been said by then."""
    from squall import profiles, streams, windows

    profiles.named(profile)
    policy = profiles.parse_report(report) if report else None
    default, named = windows.parse(window), streams.windows(sources)
    return partial(profiles.apply, profile=profile, window=default, windows=named, report=policy, output=output)


def _profile(name: str) -> str:
    from squall import profiles

    return f"{profiles.named(name)}\n"


def _check_given(programs: Sequence[str], rules: Sequence[str]) -> None:
    if not programs and not rules:
        raise click.UsageError("Missing argument 'PROGRAM...', or a rule set (--rules).", click.get_current_context())
    check_files(programs)


def _planner(name: str, statistics: Path | None) -> Callable[[System], Plan]:
    """What plans a system, for data such as the statistics are of. Raises UsageError if the planner has no use for
    them."""
    import squall
    from squall import plugins

    plugins.load(plugins.PLANNERS, name)
    return partial(squall.plan, planner=name, statistics=statistics)


def _sampled(builder: str, file: Path | None) -> None:
    """Data are counted in this process, and the counts written at the end: not for nothing."""
    from squall.streams.sinks import check_writable

    if file is None:
        return
    if builder != "iterator":
        raise UsageError(f"`--collect-statistics` goes with the builder `iterator`, not with `{builder}`")
    check_writable(file)


def _watched(streams: Sources, static: Iterable[Event], sample: list[Event] | None) -> tuple[Sources, Iterable[Event]]:
    """The same, with the first events going into a sample as well. What is there when streams begin, static data and
    the plan, is kept from the collector: it stays until the end."""
    from squall.streams import Watched

    if sample is None:
        return Watched(streams, gc.freeze), static

    def see(events: Sequence[Event]) -> None:
        sample.extend(events[: _SAMPLE - len(sample)])

    return Watched(streams, gc.freeze, see), _seen(static, see)


_SAMPLE = 100_000  # events that statistics are made of, at most


def _seen(events: Iterable[Event], see: Callable[[Sequence[Event]], None]) -> Iterator[Event]:
    for event in events:
        see((event,))
        yield event


def _calm_collector() -> None:
    """Statements and rows are many small objects without cycles: the collector looks for these less often. (It made
    reading take 1.7 times as long, joins a fifth longer.)"""
    gc.set_threshold(100_000, 50, 100)


def _measured(job: Job, plan: Plan, sample: Sequence[Event], counted: Path | None, profiled: Path | None) -> None:
    """Writes what was asked for."""
    from squall import figures
    from squall.statistics import Statistics

    if counted:
        Statistics.of(sample).save(counted)
    if profiled:
        figures.save(cast(Any, job).figures(), profiled, plan)


def _usable(group: str, name: str) -> None:
    from squall import plugins

    plugins.load(group, name)


def _job(plan: Plan, builder: str, options: Options) -> Job:
    import squall
    from squall import plugins

    with plugins.dependencies(plugins.BUILDERS, builder):
        return squall.build(plan, builder, options)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"`--conf {text}` is not KEY=VALUE")
    return key, value


def _sink(uri: str, format: str | None, timed: bool, system: System) -> Sink:
    from squall.streams import open_sink

    if (format or timed) and uri != "-":
        option = "--timed" if timed else "--format"
        hint = f"say it in the sink: `{uri}?format={format or 'ntt'}`"
        raise UsageError(f"`{option}` is for standard output", hint=hint)
    if timed and format not in _TIMED:
        raise UsageError(f"`--timed` goes with N-Triples and N-Quads, not with `{format}`")
    name = _TIMED[format] if timed else format or (_fitting(system) if uri == "-" else None)
    sink = open_sink(f"-?format={name}" if name else uri)
    _check_holds(sink, system)
    return sink


def _fitting(system: System) -> str:
    """The format of standard output, where none is asked for."""
    solved, graphs = _ends(system)
    return "table" if solved else "nq" if graphs else "nt"


def _ends(system: System) -> tuple[list[System], list[System]]:
    """The rules that answer with solutions or a truth value, and those that make triples in graphs."""
    from squall.rdf import QUAD
    from squall.system import Ask, AtomPattern, Construct, Select, rules

    solved, graphs = [], []
    for rule in rules(system):
        for end in rule.consequences:
            solved += [rule] if isinstance(end, Select | Ask) else []
            made = end.template if isinstance(end, Construct) and not end.internal else ()
            graphs += [rule] if any(isinstance(one, AtomPattern) and one.relation == QUAD for one in made) else []
    return solved, graphs


def _check_holds(sink: Sink, system: System) -> None:
    """Raises UsageError where a format cannot hold what the program answers."""
    from squall.streams.sinks import NO_GRAPHS, NO_SOLUTIONS

    format = getattr(sink, "format", "")
    solved, graphs = _ends(system)
    if solved and format in NO_SOLUTIONS:
        hint = "write them as a table, ndjson, csv or tsv: `--format table`, or `--sink` with such an ending"
        raise UsageError(f"the answers of `{solved[0].name}` are no triples, as `{format}` has them", hint=hint)
    if graphs and format in NO_GRAPHS:
        hint = "write quads: `--format nq`, `nqt` or `trig`"
        raise UsageError(f"`{graphs[0].name}` makes triples in graphs, which `{format}` has not", hint=hint)


_TIMED = {None: "ntt", "nt": "ntt", "ntt": "ntt", "nq": "nqt", "nqt": "nqt"}


def _removals(sources: Sequence[str]) -> bool:
    """Whether streams may carry removals: then the plan is another one."""
    from squall.streams import open_source

    return any(open_source(uri).removals for uri in sources)


def _apart(sink: str, sources: Sequence[str]) -> None:
    """Opening the sink empties it: it must not be a source."""
    from squall.streams import address

    target = Path(sink.partition("?")[0])
    for uri in sources:
        source = Path(address.source(uri).path)
        if source.exists() and target.exists() and source.samefile(target):
            raise UsageError(f"`{sink}` is a source as well as the sink")


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
    from squall.windows import milliseconds

    length = milliseconds(text)
    if length < least:
        raise UsageError(f"`{option} {text}` is too short")
    return length


def _inputs(
    sources: Sequence[str], statics: Sequence[str], ledger: LedgerFile, lateness: int, clock: str, heartbeat: int
) -> tuple[Sources, Iterable[Event]]:
    from squall.clock import EventClock, WallClock
    from squall.streams import Sources, address, open_source, open_static

    if sum(address.source(uri).path == "-" for uri in (*sources, *statics)) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    opened = [open_source(uri, ledger, lateness) for uri in sources]
    streams = Sources(opened, WallClock() if clock == "wall" else EventClock(), heartbeat)
    return streams, chain.from_iterable([open_static(uri, ledger) for uri in statics])


def _documents(system: System, graphs: Sequence[str], given: Sequence[str], ledger: LedgerFile) -> Iterable[Event]:
    """The events of the graphs that the program names, but for those that are streams."""
    from squall.streams import address, documents

    streams = {address.source(uri).get("stream") for uri in given}
    return documents.load(system, dict(map(documents.place, graphs)), streams, ledger)


def _check_streams(system: System, sources: Sources, given: Sequence[str], statics: Sequence[str]) -> None:
    """Says which streams are missing, and which queries would keep all that streams ever bring. What a file holds whose
    statements have no times is there at once, and no more than that."""
    from squall.bounds import unbounded
    from squall.rdf import ALWAYS
    from squall.streams import address
    from squall.streams.documents import check_streams

    places = [address.source(uri) for uri in (*given, *statics)]
    if all(place.scheme in ("file", "stdin") for place in places):  # a plug-in's streams are not known beforehand
        check_streams(system, {place.get("stream") for place in places})
    goes_on = [source.live or source.earliest == ALWAYS for source in sources.sources]
    for warning in unbounded(system, {place.get("stream") for place, on in zip(places, goes_on, strict=False) if on}):
        click.echo(str(warning), err=True)


def _options(
    checkpoint: Path | None,
    conf: tuple[tuple[str, str], ...],
    ledger: LedgerFile,
    sink: Sink,
    measure: bool,
    now: int | None,
) -> Options:
    from squall.stages import Options
    from squall.streams import FileSink

    rewound = sink if isinstance(sink, FileSink) else None
    return Options(checkpoint, conf, ledger, rewound, measure, now=now)


def _moment(text: str) -> int:
    """The time (integer ms) of `--now`. Raises UsageError."""
    from squall.streams.formats import time_of

    try:
        return time_of(text)
    except SyntaxError as error:
        raise UsageError(f"`--now {text}`: {error.msg}") from None


def _columns(system: System, sink: Sink) -> Collection[str]:
    """The queries that answer with solutions, if these are told in a table: facts that updates insert, or others make,
    have other columns."""
    from squall.streams.sinks import SOLUTIONS
    from squall.system import Ask, Select, rules

    if getattr(sink, "format", "") not in SOLUTIONS:
        return ()
    return {rule.name for rule in rules(system) if any(isinstance(one, Select | Ask) for one in rule.consequences)}


def _run(
    job: Job,
    sources: Sources,
    static: Iterable[Event],
    sink: Sink,
    ledger: LedgerFile,
    resume: bool,
    progress: bool | None,
    columns: Collection[str],
) -> int:
    """The exit code. From here on something has been started: what fails is the run. columns: the queries whose
    solutions are all that the sink holds; none: it holds whatever comes."""
    from squall.interrupts import endable
    from squall.progress import Tally, shown, summary
    from squall.rdf import Evaluated
    from squall.streams.sinks import Settling

    tally = Tally()
    visible = bool(sources.size) and (sys.stderr.isatty() if progress is None else progress)
    code = 0
    try:
        with closing(sink), shown(sources, tally) if visible else nullcontext(), endable(sources):
            sink.start(resume, prompt=sources.live)
            sources.settle = sink.flush if isinstance(sink, Settling) else None
            for output in job.run(sources, static):
                if columns and output.rule not in columns:
                    tally.left_out += not isinstance(output.fact, Evaluated)
                    continue
                sink.write(output)
                tally.outputs += 1
    except BrokenPipeError:
        _leave_quietly()
        return 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SquallError as error:
        click.echo(str(error), err=True)
        code = FAILED
    finally:
        ledger.close()
    click.echo(summary(sources, ledger, tally), err=True)
    return code or (FAILED if ledger.failed else 0)


def _explained(
    system: System,
    make: Callable[[System], Plan],
    builder: str,
    stage: str,
    format: str,
    figures: Path | None,
    statistics: Path | None,
) -> Iterator[str]:
    from squall import show
    from squall.stages import Options

    if stage == "tps":
        yield _shown(system, format)
        return
    plan = make(system)
    if stage == "pps":
        yield show.FORMATS[format](plan, _figures(plan, figures, statistics))
    else:
        yield _described(_job(plan, builder, Options()), builder)


def _figures(plan: Plan, measured: Path | None, statistics: Path | None) -> Figures | None:
    """What a run measured, and what is to be expected of data such as the statistics are of."""
    from squall.figures import NodeFigures, load
    from squall.statistics import Statistics, estimates

    found = load(measured, plan) if measured else {}
    expected = estimates(plan, Statistics.load(statistics)) if statistics else {}
    for id, rows in expected.items():
        found[id] = replace(found.get(id, NodeFigures()), estimated=rows)
    return found or None


def _shown(thing: Any, format: str) -> str:
    from squall import show

    return show.as_json(thing) if format == "json" else show.text(thing)


DRAWINGS = ("mermaid", "dot", "svg", "html")
"""How a plan can be shown, besides as text and as JSON."""


def _check_format(stage: str, format: str) -> None:
    if format in ("text", "json"):
        return
    if format in DRAWINGS and stage != "pps":
        raise UsageError(f"`--format {format}` draws plans: it goes with `--stage pps`")
    if format not in DRAWINGS and stage != "tree":
        raise UsageError(
            f"`--format {format}` does not go with `--stage {stage}`", hint=near(format, ("text", "json", *DRAWINGS))
        )


def _trees(programs: Sequence[str], lexer: str | None, rules: Sequence[str], format: str) -> Iterator[str]:
    import squall
    from squall import rulesets

    _check_given(programs, rules)
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


def _described(job: Job, builder: str) -> str:
    if not hasattr(job, "describe"):
        raise UsageError(f"the builder `{builder}` does not describe its jobs")
    return str(job.describe())
