"""Where outputs of ``squall build`` go, and in which format."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from squall.errors import UsageError

if TYPE_CHECKING:
    from squall.model import System
    from squall.streams import Sink


def sink_of(uri: str, format: str | None, timed: bool, types: Sequence[str], system: System) -> Sink:
    from squall.streams import open_sink
    from squall.streams.sinks.folders import FolderSink

    if (format or timed) and uri != "-":
        option = "--timed" if timed else "--format"
        hint = f"say it in the sink: `{uri}?format={format or 'ntt'}`"
        raise UsageError(f"`{option}` is for standard output", hint=hint)
    if timed and format not in _TIMED:
        raise UsageError(f"`--timed` goes with N-Triples and N-Quads, not with `{format}`")
    name = _TIMED[format] if timed else format or (_fitting(system) if uri == "-" else None)
    sink = open_sink(f"-?format={name}" if name else uri)
    if isinstance(sink, FolderSink):
        sink.types = dict(map(_typed, types)) if types else None
    elif types:
        raise UsageError("`--typed` is for folders", hint="for example `--sink 'out/?format=parquet'`")
    _check_holds(sink, system)
    return sink


def recoverable(sink: Sink) -> Sink:
    """The sink as one that goes on where a checkpoint is: what cannot be cut back gets nothing before. (A folder is the
    builder's own affair.)"""
    from squall.contracts import CheckpointedSink, Folder
    from squall.streams.sinks.outbox import Outbox

    return sink if isinstance(sink, CheckpointedSink | Folder) else Outbox(sink)


def _typed(text: str) -> tuple[str, str]:
    name, equals, type = text.partition("=")
    if not name or not equals:
        raise UsageError(f"`--typed {text}` is not NAME=TYPE", hint="`*` stands for all other variables")
    return name, type


def _fitting(system: System) -> str:
    """The format of standard output, where none is asked for."""
    solved, graphs = _ends(system)
    return "table" if solved else "nq" if graphs else "nt"


def _ends(system: System) -> tuple[list[System], list[System]]:
    """The rules that answer with solutions or a truth value, and those that make triples in graphs."""
    from squall.model import Ask, AtomPattern, Construct, Select, rules
    from squall.rdf import QUAD

    solved, graphs = [], []
    for rule in rules(system):
        for end in rule.consequences:
            solved += [rule] if isinstance(end, Select | Ask) else []
            made = end.template if isinstance(end, Construct) and not end.internal else ()
            graphs += [rule] if any(isinstance(one, AtomPattern) and one.relation == QUAD for one in made) else []
    return solved, graphs


def _check_holds(sink: Sink, system: System) -> None:
    """Raises UsageError where a format cannot hold what the program answers."""
    from squall.streams.formats.output_formats import NO_GRAPHS, NO_SOLUTIONS

    format = getattr(sink, "format", "")
    solved, graphs = _ends(system)
    if solved and format in NO_SOLUTIONS:
        hint = "write them as a table, ndjson, csv or tsv: `--format table`, or `--sink` with such an ending"
        raise UsageError(f"the answers of `{solved[0].name}` are no triples, as `{format}` has them", hint=hint)
    if graphs and format in NO_GRAPHS:
        hint = "write quads: `--format nq`, `nqt` or `trig`"
        raise UsageError(f"`{graphs[0].name}` makes triples in graphs, which `{format}` has not", hint=hint)


_TIMED = {None: "ntt", "nt": "ntt", "ntt": "ntt", "nq": "nqt", "nqt": "nqt"}


def apart(sink: str, sources: Sequence[str]) -> None:
    """Opening the sink empties it: it must not be a source."""
    from squall.streams import address

    target = Path(sink.partition("?")[0])
    for uri in sources:
        source = Path(address.source(uri).path)
        if source.exists() and target.exists() and source.samefile(target):
            raise UsageError(f"`{sink}` is a source as well as the sink")


def columns_of(system: System, sink: Sink) -> Collection[str]:
    """The queries that answer with solutions, if these are told in a table: facts that updates insert, or others make,
    have other columns."""
    from squall.model import Ask, Select, rules
    from squall.streams.formats.output_formats import SOLUTIONS

    if getattr(sink, "format", "") not in SOLUTIONS:
        return ()
    return {rule.name for rule in rules(system) if any(isinstance(one, Select | Ask) for one in rule.consequences)}
