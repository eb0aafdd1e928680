"""The input of ``squall run``: sources, static data, documents, and their time."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from squall.cli import messages
from squall.errors import SourceError, UsageError

if TYPE_CHECKING:
    from squall.contracts import BuilderCapabilities
    from squall.model import System
    from squall.rdf import Event
    from squall.streams import DeadLetterFile, Sources, StaticData
    from squall.streams.address import Address
    from squall.streams.formats import Format
    from squall.streams.sources.documents import DocumentData


def inputs_of(
    sources: Sequence[str],
    statics: Sequence[str],
    graphs: Sequence[str],
    context_folders: Sequence[str],
    ledger: DeadLetterFile,
    has_checkpoint: bool,
    lateness: int,
    clock: str,
    heartbeat: int,
) -> tuple[Sources, list[StaticData]]:
    """Opens the sources and the static data.

    Args:
        sources: The addresses of streams.
        statics: The addresses of static data.
        graphs: The files of documents, each as IRI=FILE: contexts of JSON-LD may be among them.
        context_folders: Folders of contexts of JSON-LD.
        ledger: The ledger of dead letters.
        has_checkpoint: With a checkpoint a dead letter counts when the run processes its batch, and not when a source
            is read ahead.
        lateness: How far streams may be out of order (ms).
        clock: ``event`` or ``wall``.
        heartbeat: After how long without input time advances nevertheless (ms).
    """
    from squall.streams import Sources, address, open_source, open_static
    from squall.streams.clock import EventClock, WallClock
    from squall.streams.dead_letters import DeferredLedger

    if sum(address.source(uri).path == "-" for uri in (*sources, *statics)) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    ledgers = [DeferredLedger(ledger) for _ in sources] if has_checkpoint else []
    places = places_of(graphs, context_folders)
    opened = [
        open_source(uri, ledgers[number] if has_checkpoint else ledger, lateness, places)
        for number, uri in enumerate(sources)
    ]
    for source in opened:
        messages.detail(f"source `{source.uri}`: {'live' if source.live else 'bounded'}")
    streams = Sources(opened, WallClock() if clock == "wall" else EventClock(), heartbeat, ledgers)
    return streams, [open_static(uri, ledger, places) for uri in statics]


def places_of(graphs: Sequence[str], context_folders: Sequence[str]) -> dict[str, str]:
    """Returns files by IRI: those of ``--contexts``, and of ``--graph``, which wins."""
    from squall.streams import contexts_of
    from squall.streams.sources.documents import place

    contexts = chain.from_iterable(contexts_of(folder).items() for folder in context_folders)
    graph_places = dict(map(place, graphs))
    check_exist(graph_places.values())
    return {**dict(contexts), **graph_places}


def check_exist(uris: Iterable[str]) -> None:
    """Checks that the files and folders among sources are there, though they are not read. Raises SourceError."""
    from squall.streams import address

    for place in map(address.source, uris):
        if place.scheme == "file" and not os.path.exists(place.path):
            raise SourceError(
                f"`{place.path}` cannot be read: {os.strerror(errno.ENOENT)}",
                hint="a path that is not there is hardly the one that was meant",
            )


def documents_of(
    system: System,
    graphs: Sequence[str],
    context_folders: Sequence[str],
    addresses: Sequence[str],
    ledger: DeadLetterFile,
) -> list[DocumentData]:
    """Opens the graphs that the program names, except those that are streams."""
    from squall.streams.sources import documents

    return documents.open_documents(system, places_of(graphs, context_folders), stream_names(addresses), ledger)


def stream_names(addresses: Iterable[str]) -> set[str]:
    """Returns the names of the streams that addresses bring; "" is the default one."""
    from squall.streams import address

    return {address.source(uri).get("stream") for uri in addresses}


def all_static_data(statics: Sequence[StaticData], opened: Sequence[DocumentData]) -> Iterable[Event]:
    """Returns the events of static data and of documents."""
    from squall.streams.sources.documents import events_of
    from squall.streams.static_data import AllStaticData

    events = chain(chain.from_iterable(statics), events_of(opened))
    return AllStaticData((*statics, *(document.data for document in opened)), events)


def check_streams(system: System, sources: Sources, addresses: Sequence[str], statics: Sequence[str]) -> None:
    """Checks that the program's streams are there, and warns of queries whose state grows without bound.

    Statements without times in a bounded file are there from the beginning, and do not grow.

    Raises:
        UsageError: A stream that the program names is missing.
    """
    from squall.model.unbounded_state import unbounded_state_warnings
    from squall.rdf import ALWAYS
    from squall.streams import address
    from squall.streams.mappings.options import is_mapped
    from squall.streams.sources.documents import check_streams

    places = [address.source(uri) for uri in (*addresses, *statics)]
    if all(place.scheme in ("file", "stdin") for place in places):  # the streams of a plug-in are not known yet
        check_streams(system, {place.get("stream") for place in places})
    grows = [source.live or source.earliest == ALWAYS for source in sources.sources]
    growing = {place.get("stream") for place, is_growing in zip(places, grows, strict=False) if is_growing}
    for warning in unbounded_state_warnings(system, growing):
        messages.warning(warning)
    if any(map(is_mapped, places)):
        from squall.checking.mappings import unknown_required_fields

        for warning in chain.from_iterable(map(unknown_required_fields, places)):
            messages.warning(warning)
    if tuples := with_tuples((*addresses, *statics)):
        from squall.checking.unread_tuples import unread_tuples

        for warning in unread_tuples(system, tuples):
            messages.warning(warning)


def with_tuples(addresses: Sequence[str]) -> list[str]:
    """Returns the addresses of documents, and of folders with documents, whose quintuples become tuples."""
    from squall.streams import address

    places = ((uri, address.source(uri)) for uri in addresses)
    data = ((uri, place) for uri, place in places if place.get("valid", "data") == "data")
    return [uri for uri, place in data if any(format.tuples for format in _formats_of(place))]


def _formats_of(place: Address) -> list[Format]:
    """Returns the formats of a source by its address, which are several for the files of a folder."""
    from squall.streams.sources.files import files_of

    is_folder = place.scheme == "file" and os.path.isdir(place.path)
    paths = files_of(place.path) if is_folder and not place.get("format") else (place.path,)
    formats = [format_of(replace(place, path=path)) for path in paths]
    return [format for format in formats if format is not None]


def format_of(place: Address) -> Format | None:
    """Returns the format of a source by its address; None if the address does not say it, as that of a folder.

    Raises:
        UsageError: There is no such format, or it needs a mapping.
    """
    from squall.streams import formats
    from squall.streams.mappings.options import is_mapped

    name = place.get("format")
    format = formats.format_named(name, is_mapped(place)) if name else formats.of_path(place.path, is_mapped(place))
    return None if format is None else format[0]


def check_clock(
    clock: str, lateness: str, sources: Sequence[str], builder: str, capabilities: BuilderCapabilities
) -> None:
    """Checks ``--clock wall``: times of arrival are in order, and only a builder that sees each arrival has them."""
    from squall.streams import address

    if clock == "event":
        return
    if lateness != "0s" or any(address.source(uri).get("lateness") for uri in sources):
        raise UsageError("with `--clock wall` nothing is late", hint="leave `lateness` out")
    if not capabilities.wall_clock:
        raise UsageError(
            f"`--clock wall` does not go with the builder `{builder}`: it does not process events as they arrive",
            hint="use a builder that has the wall clock: `squall list builders`",
        )


def length(option: str, text: str, least: int) -> int:
    """Returns a length of time in ms. Raises UsageError if it is no length, or too short."""
    from squall.model.windows import milliseconds

    duration = milliseconds(text)
    if duration < least:
        raise UsageError(f"`{option} {text}` is too short")
    return duration


def moment(text: str) -> int:
    """Returns the time (integer ms) of ``--now``. Raises UsageError."""
    from squall.streams.formats.timestamps import time_of

    if re.fullmatch("(19|20|21)[0-9]{2}", text):
        hint = f"write the day, `{text}-01-01`, or so many milliseconds with a zero in front, `0{text}`"
        raise UsageError(f"`--now {text}` looks like a year, and an integer is a time in milliseconds", hint=hint)
    try:
        return time_of(text)
    except SyntaxError as error:
        raise UsageError(f"`--now {text}`: {error.msg}") from None
