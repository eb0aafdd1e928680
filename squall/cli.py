"""The command line: ``squall build``, ``squall explain`` and ``squall list``.

Nothing heavy is imported before it is needed, so that ``squall --help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from squall import __version__
from squall.errors import SquallError, UsageError

if TYPE_CHECKING:
    from squall.plan import Plan
    from squall.rdf import Event
    from squall.stages import Job, Options
    from squall.streams import LedgerFile, Sink, Sources
    from squall.system import System

FAILED, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes: the run failed; the program or the arguments are wrong; it was interrupted. 0: done."""


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
    See what is made of a program, and what there is to choose from:
      squall explain alarm.jena
      squall list

    Exit codes: 0 done, 1 the run failed, 2 the program or the arguments are wrong.
    """


_PROGRAMS = click.argument("programs", nargs=-1, required=True, metavar="PROGRAM...")
_LEXER = click.option("--lexer", metavar="NAME", help="The programs' language [default: by the file's ending].")
_PLANNER = click.option("--planner", default="rete", show_default=True, metavar="NAME", help="greedy, rete, ...")
_BUILDER = click.option("--builder", default="iterator", show_default=True, metavar="NAME", help="iterator, spark, ...")


@command.command()
@_PROGRAMS
@_LEXER
@_PLANNER
@_BUILDER
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream: a file, a folder, - or a URI.")
@click.option("--static", "statics", multiple=True, metavar="URI", help="Data that always hold; read first.")
@click.option("--sink", default="-", metavar="URI", help="Where outputs go [default: standard output].")
@click.option("--output", type=click.Choice(["istream", "rstream", "dstream"]), help="What is handed on: what is new, "
              "all that holds, or what has ceased to hold [default: as the program says].")  # fmt: skip
@click.option("--format", "format", metavar="NAME", help="Standard output as nt, ntt, nq, ndjson or csv.")
@click.option("--timed", is_flag=True, help="Standard output as timed N-Triples (the same as --format ntt).")
@click.option("--strict", is_flag=True, help="Stop at the first malformed statement.")
@click.option("--dead-letter", type=click.Path(path_type=Path), metavar="FILE", help="Keep what could not be used "
              "(malformed, late) as lines of JSON.")  # fmt: skip
@click.option("--checkpoint", type=click.Path(path_type=Path), metavar="DIR", help="Keep offsets and state there, so "
              "that a killed run goes on where it was.")  # fmt: skip
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of the engine (Spark).")
@click.option("--progress/--no-progress", default=None, help="[default: if standard error is a terminal]")
def build(
    programs: tuple[str, ...],
    lexer: str | None,
    planner: str,
    builder: str,
    sources: tuple[str, ...],
    statics: tuple[str, ...],
    sink: str,
    output: str | None,
    format: str | None,
    timed: bool,
    strict: bool,
    dead_letter: Path | None,
    checkpoint: Path | None,
    conf: tuple[str, ...],
    progress: bool | None,
) -> None:
    """Build PROGRAMs into a job and run it.

    Outputs (what is derived, not the input) go to the sink; messages, progress and a summary to standard error.

    \b
    Sources by ending: .nt .nq .ttl .trig .rdf .jsonld and timed .ntt, each also with .gz; a folder; -
      --source people.ttl
      --source '-?format=nt'                  standard input
      --source 'in/?follow=yes&poll=500'      a folder that grows
      --source 'a.nt?stream=urn:a&time=1000'  the stream and time (ms) of its statements
    Sinks by ending: .nt .ntt .nq .ndjson .csv, each also with .gz; -
    A line of .ntt is a time (integer ms, ISO 8601, or -infinity), blanks, and an N-Triples statement.

    \b
    Examples:
      squall build family.jena --source people.ttl
      squall build rules.jena --source data.nt --builder spark --sink out.ndjson
      zcat log.ntt.gz | squall build alarm.jena --source '-?format=ntt' --timed | head
      squall build rules.jena --source dirty.nt --dead-letter lost.ndjson
    """
    resume = checkpoint is not None and checkpoint.is_dir() and any(checkpoint.iterdir())
    plan = _planned(_compiled(programs, lexer, output), planner)
    _usable("squall.builders", builder)
    settings = tuple(_setting(text) for text in conf)
    target = _sink(sink, format, timed)
    _apart(sink, (*sources, *statics))
    streams, static, ledger = _inputs(sources, statics, strict, dead_letter, resume)
    job = _job(plan, builder, _options(checkpoint, settings, ledger, target))
    sys.exit(_run(job, streams, static, target, ledger, resume, progress))


@command.command()
@_PROGRAMS
@_LEXER
@_PLANNER
@_BUILDER
@click.option("--stage", type=click.Choice(["tree", "tps", "pps", "job"]), default="pps", show_default=True,
              help="After the lexer, the translator, the planner or the builder.")  # fmt: skip
@click.option("--format", "format", type=click.Choice(["text", "json", "mermaid", "dot"]), default="text",
              show_default=True, help="mermaid and dot draw the plan (pps).")  # fmt: skip
def explain(programs: tuple[str, ...], lexer: str | None, planner: str, builder: str, stage: str, format: str) -> None:
    """Show what is made of PROGRAMs at a stage; nothing is run.

    \b
    Examples:
      squall explain family.jena                      the plan
      squall explain family.jena --stage tps          what the rules mean
      squall explain family.jena --stage job --builder spark
      squall explain family.jena --format dot | dot -Tsvg > plan.svg
    """
    if format in ("mermaid", "dot") and stage != "pps":
        raise UsageError(f"`--format {format}` draws plans: it goes with `--stage pps`")
    if format == "json" and stage == "job":
        raise UsageError("a job is described as text only")
    for text in _explained(programs, lexer, planner, builder, stage, format):
        click.echo(text)


@command.command("list")
def list_() -> None:
    """List what there is to choose from.

    Lexers, translators, planners, builders, sources, sinks and functions, each with where it comes from.
    """
    from squall import plugins

    rows = [
        (plugins.kind(group), name, *plugins.where(group, name))
        for group in plugins.GROUPS
        if group != plugins.FUNCTIONS
        for name in plugins.names(group)
    ]
    _table(("kind", "name", "from", "object"), [*rows, *_functions()])


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


def _compiled(programs: Sequence[str], lexer: str | None, output: str | None) -> System:
    import squall

    _exist(programs)
    system = squall.compile(*programs, lexer=lexer)
    return replace(system, output=output) if output else system


def _exist(programs: Sequence[str]) -> None:
    """With a lexer named, the Python interface takes a text; the command line takes files alone."""
    for program in programs:
        if not Path(program).is_file():
            raise UsageError(f"the program `{program}` does not exist")


def _planned(system: System, planner: str) -> Plan:
    import squall

    return squall.plan(system, planner=planner)


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


def _sink(uri: str, format: str | None, timed: bool) -> Sink:
    from squall.streams import open_sink

    if (format or timed) and uri != "-":
        option = "--timed" if timed else "--format"
        raise UsageError(f"`{option}` is for standard output", hint=f"say it in the sink: `{uri}?format=ntt`")
    if timed and format not in (None, "nt", "ntt"):
        raise UsageError(f"`--timed` goes with N-Triples; `{format}` holds the time anyway")
    name = "ntt" if timed else format
    return open_sink(f"-?format={name}" if name else uri)


def _apart(sink: str, sources: Sequence[str]) -> None:
    """Opening the sink empties it: it must not be a source."""
    target = Path(sink.partition("?")[0])
    for uri in sources:
        source = Path(uri.partition("?")[0])
        if source.exists() and target.exists() and source.samefile(target):
            raise UsageError(f"`{sink}` is a source as well as the sink")


def _inputs(
    sources: Sequence[str], statics: Sequence[str], strict: bool, dead_letter: Path | None, append: bool
) -> tuple[Sources, Iterable[Event], LedgerFile]:
    from squall.streams import LedgerFile, Sources, open_source, open_static

    if sum(uri.partition("?")[0] == "-" for uri in (*sources, *statics)) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    ledger = LedgerFile(dead_letter, strict, append)
    opened = Sources([open_source(uri, ledger) for uri in sources])
    return opened, chain.from_iterable([open_static(uri, ledger) for uri in statics]), ledger


def _options(checkpoint: Path | None, conf: tuple[tuple[str, str], ...], ledger: LedgerFile, sink: Sink) -> Options:
    from squall.stages import Options
    from squall.streams import FileSink

    return Options(checkpoint, conf, ledger, sink if isinstance(sink, FileSink) else None)


def _run(
    job: Job,
    sources: Sources,
    static: Iterable[Event],
    sink: Sink,
    ledger: LedgerFile,
    resume: bool,
    progress: bool | None,
) -> int:
    """The exit code. From here on something has been started: what fails is the run."""
    from squall.progress import Tally, shown, summary

    tally = Tally()
    visible = bool(sources.size) and (sys.stderr.isatty() if progress is None else progress)
    code = 0
    try:
        with closing(sink), shown(sources, tally) if visible else nullcontext():
            sink.start(resume, prompt=sources.live)
            for output in job.run(sources, static):
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
    return code


def _explained(
    programs: Sequence[str], lexer: str | None, planner: str, builder: str, stage: str, format: str
) -> Iterator[str]:
    from squall import show
    from squall.stages import Options

    forms: dict[str, Callable[[Any], str]]
    forms = {"text": show.text, "json": show.as_json, "mermaid": show.mermaid, "dot": show.dot}
    write = forms[format]
    if stage == "tree":
        yield from map(write, _trees(programs, lexer))
        return
    system = _compiled(programs, lexer, None)
    if stage == "tps":
        yield write(system)
        return
    plan = _planned(system, planner)
    yield write(plan) if stage == "pps" else _described(_job(plan, builder, Options()), builder)


def _trees(programs: Sequence[str], lexer: str | None) -> Iterator[object]:
    import squall

    _exist(programs)
    for program in programs:
        yield squall.parse(program, lexer)[1]


def _described(job: Job, builder: str) -> str:
    if not hasattr(job, "describe"):
        raise UsageError(f"the builder `{builder}` does not describe its jobs")
    return str(job.describe())
