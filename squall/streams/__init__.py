"""Sources and sinks by URI, and the ledger of what could not be used."""

from __future__ import annotations

from collections.abc import Iterator

from squall import plugins
from squall.errors import UsageError
from squall.rdf import ALWAYS, Event
from squall.stages import Ledger
from squall.streams import address
from squall.streams.files import FileSource, FolderSource, Source
from squall.streams.formats import parse_lines
from squall.streams.ledger import LedgerFile
from squall.streams.merge import Sources
from squall.streams.sinks import FileSink, Sink

__all__ = [
    "FileSink",
    "FileSource",
    "FolderSource",
    "LedgerFile",
    "Sink",
    "Source",
    "Sources",
    "open_sink",
    "open_source",
    "open_static",
    "parse_lines",
]


def open_source(uri: str, ledger: Ledger | None = None) -> Source:
    """The source of a path or URI, or ``-`` for standard input. Nothing is read yet.

    What cannot be used is counted in `ledger` (without one: in a `LedgerFile` that keeps no file). Raises SourceError
    if it is not there, UsageError if an option is wrong or the format cannot be told, PluginError if the scheme is
    unknown.
    """
    place = address.parse(uri, standard="stdin")
    opened: Source = plugins.load(plugins.SOURCES, place.scheme)(place, ledger or LedgerFile())
    return opened


def open_static(uri: str, ledger: Ledger | None = None) -> Iterator[Event]:
    """The events of a source that holds always. Raises as `open_source` does; UsageError if it is timed or followed."""
    place = address.parse(uri, standard="stdin")
    source: Source = plugins.load(plugins.SOURCES, place.scheme)(place, ledger or LedgerFile(), ALWAYS)
    timed = isinstance(source, FileSource | FolderSource) and source.timed
    if timed or place.get("time") or place.flag("follow"):
        raise UsageError(f"`{uri}` is timed: it cannot be static", hint="give it with --source")
    return (event for batch in source.batches() for event in batch)


def open_sink(uri: str) -> Sink:
    """The sink of a path or URI, or ``-`` for standard output. Nothing is written or changed yet (see `Sink.start`).

    Raises UsageError if it cannot be written or its format cannot be told, PluginError if its scheme is unknown.
    """
    place = address.parse(uri, standard="stdout")
    opened: Sink = plugins.load(plugins.SINKS, place.scheme)(place)
    return opened
