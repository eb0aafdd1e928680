"""Sources and sinks by URI, and the ledger of dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from squall import plugins
from squall.contracts import DeadLetterLedger
from squall.errors import UsageError
from squall.model.windows import Window, milliseconds
from squall.model.windows import parse_window as parse_window
from squall.rdf import ALWAYS, DEFAULT_STREAM, Term, iri, term
from squall.streams import address
from squall.streams.address import Address
from squall.streams.dead_letters import DeadLetterFile, RunLedger
from squall.streams.formats import parse_lines
from squall.streams.formats.reading import Settings
from squall.streams.sinks import FileSink, Sink
from squall.streams.sources.context_folder import contexts_of
from squall.streams.sources.files import (
    COMMON_OPTIONS,
    FileSource,
    FolderSource,
    ReadableOnce,
    Source,
    SuppliesEventTime,
)
from squall.streams.sources.merge import ObservedSources, Sources
from squall.streams.sources.reordering import ReorderingSource, TimedByProperty
from squall.streams.static_data import StaticData

__all__ = [
    "Address",
    "DeadLetterFile",
    "FileSink",
    "FileSource",
    "FolderSource",
    "ObservedSources",
    "Sink",
    "Source",
    "Sources",
    "StaticData",
    "contexts_of",
    "open_sink",
    "open_source",
    "open_static",
    "parse_lines",
    "windows",
]


def open_source(
    uri: str,
    ledger: DeadLetterLedger | None = None,
    lateness: int = 0,
    documents: Mapping[str, str] = MappingProxyType({}),
) -> Source:
    """Opens the source of a path or URI, or of standard input (``-``). Nothing is read yet.

    The window that an address may have is not applied here: see `windows`.

    Args:
        uri: The address. The name of a stream may precede it, and options may follow (see docs/streams.md).
        ledger: The ledger for dead letters. None: that of the run (`squall.contracts.Options`); without that, a dead
            letter is an error.
        lateness: How far events may be out of order, in integer ms, unless the address has that option itself.
        documents: Files, by the IRIs for which they stand: contexts of JSON-LD (see docs/reading.md).

    Raises:
        SourceError: There is no such source.
        UsageError: An option is wrong, or the format is unknown.
        PluginError: The scheme is unknown.
    """
    place = address.source(uri)
    ledger = RunLedger() if ledger is None else ledger
    if own_lateness := place.get("lateness"):
        lateness = milliseconds(own_lateness)
    property = _property(place)
    source = _with_documents(_open(place.without("time") if property else place, ledger), documents)
    if property:
        if source.removals:
            raise UsageError(f"`{uri}` has the times of its transactions itself", hint="leave `time` out")
        source = _timed(source, ledger, property)
    return ReorderingSource(source, ledger, lateness) if lateness else source


def _timed(source: Source, ledger: DeadLetterLedger, property: Term) -> Source:
    """Returns a source that takes the times of messages, or of subjects, from a property."""
    if not (isinstance(source, SuppliesEventTime) and source.messages):
        return TimedByProperty(source, ledger, property)
    source.settings = replace(source.settings, property=property)
    source.earliest = ALWAYS
    return source


def windows(uris: Iterable[str]) -> dict[str, Window]:
    """Returns the windows in the addresses of sources, by stream. Nothing is opened.

    Raises:
        UsageError: A window is malformed, or a stream has two.
    """
    windows_by_stream: dict[str, Window] = {}
    for uri in uris:
        place = address.source(uri)
        if "window" not in dict(place.options):
            continue
        stream, window = place.get("stream"), parse_window(place.get("window"))
        if windows_by_stream.setdefault(stream, window) != window:
            raise UsageError(f"{stream or DEFAULT_STREAM} has two windows: {windows_by_stream[stream]} and {window}")
    return windows_by_stream


def open_static(
    uri: str, ledger: DeadLetterLedger | None = None, documents: Mapping[str, str] = MappingProxyType({})
) -> StaticData:
    """Opens static data, and returns its events, which always hold.

    Args:
        uri: The address.
        ledger: The ledger for dead letters. None: a dead letter is an error.
        documents: Files, by the IRIs for which they stand: contexts of JSON-LD (see docs/reading.md).

    Raises:
        SourceError: There is no such source.
        UsageError: The source is timed, followed or live, an option is wrong, or the format is unknown.
        PluginError: The scheme is unknown.
    """
    place = address.source(uri)
    if any(place.get(option) for option in (*COMMON_OPTIONS, "time")):
        raise _not_static(uri)
    source = _with_documents(_open(place, RunLedger() if ledger is None else ledger, ALWAYS), documents)
    is_file = isinstance(source, FileSource | FolderSource)
    if place.flag("follow") or getattr(source, "timed", False):
        raise _not_static(uri)
    if source.live and not is_file and not isinstance(source, ReadableOnce):
        hint = "give it with --source, or save its data in a file first"
        raise UsageError(f"`{source.uri}` is live: it cannot be static", hint=hint)
    return StaticData(source)


def _not_static(uri: str) -> UsageError:
    return UsageError(f"`{uri}` is timed: it cannot be static", hint="give it with --source")


def _open(place: Address, ledger: DeadLetterLedger, *time: int) -> Source:
    factory = plugins.load(plugins.SOURCES, place.scheme)
    with plugins.dependencies(plugins.SOURCES, place.scheme):
        opened: Source = factory(place, ledger, *time)
    return opened


def _with_documents(source: Source, documents: Mapping[str, str]) -> Source:
    """Returns a source to which files for the IRIs of documents are known."""
    settings = getattr(source, "settings", None)
    if documents and isinstance(settings, Settings):  # a plug-in may have none
        files = tuple((iri, _absolute(file)) for iri, file in documents.items())
        cast(Any, source).settings = replace(settings, documents=files)
    return source


def _absolute(file: str) -> str:
    """Returns an absolute path, which is the same in every process on a machine; any other address is unchanged."""
    place = address.parse(file, "stdin")
    return str(Path(place.path).absolute()) if place.scheme == "file" else file


def _property(place: Address) -> Term | None:
    """Returns the property that the option ``time`` names, by its IRI with or without angle brackets, or None."""
    name = place.get("time")
    if ":" not in name:
        return None
    try:
        return term(name) if name.startswith("<") else term(iri(name))
    except ValueError:
        raise UsageError(f"`time={name}` in `{place.text}` is neither a whole number nor an IRI") from None


def open_sink(uri: str) -> Sink:
    """Returns the sink of a path or URI, or of standard output (``-``). Nothing is written yet (see `Sink.start`).

    Raises:
        UsageError: The sink cannot be written, or its format is unknown.
        PluginError: The scheme is unknown.
    """
    place = address.parse(uri, standard="stdout")
    factory = plugins.load(plugins.SINKS, place.scheme)
    with plugins.dependencies(plugins.SINKS, place.scheme):
        opened: Sink = factory(place)
    return opened
