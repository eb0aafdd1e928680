"""Documents that programs name (SPARQL's FROM), as static data of the stream of their IRI; and checks of streams."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError, did_you_mean, raise_all
from squall.model import Document, System, derived_streams, documents, streams
from squall.rdf import DEFAULT_STREAM, Event, Triple
from squall.streams import StaticData, address, open_static

_PLACE = re.compile(r"(.+?)=([^=?]+(?:\?format=[^=&]+)?)", re.DOTALL)
"""An IRI, which may have `=` in it, and a file, whose name hardly does, but whose format may be given."""


class DocumentData(NamedTuple):
    """A document that a program names, and its data."""

    document: Document
    data: StaticData


def load(
    system: System,
    places: Mapping[str, str] | None = None,
    streams: Collection[str] = (),
    ledger: DeadLetterLedger | None = None,
) -> Iterator[Event]:
    """Returns the events of the documents that a program names, for the `static` of a run.

    Args:
        system: The program.
        places: Files, by the IRIs for which they stand, those of contexts of JSON-LD included.
        streams: The IRIs of the streams that come as sources, for which no document is read.
        ledger: The ledger for malformed statements.

    Raises:
        UsageError: An IRI stands for no file.
        SourceError: A file does not exist. While it is read: it has a literal of a forbidden datatype.
    """
    return events_of(open_documents(system, places, streams, ledger))


def open_documents(
    system: System,
    places: Mapping[str, str] | None = None,
    streams: Collection[str] = (),
    ledger: DeadLetterLedger | None = None,
) -> list[DocumentData]:
    """Opens the documents that a program names, as `load` does. Nothing is read yet."""
    missing = [document for document in documents(system) if document.iri not in streams]
    return [DocumentData(document, _open_document(document, places or {}, ledger)) for document in missing]


def events_of(opened: Sequence[DocumentData]) -> Iterator[Event]:
    """Returns the events of documents (see `load`)."""
    return chain.from_iterable(_allowed(document, data) for document, data in opened)


def _open_document(document: Document, places: Mapping[str, str], ledger: DeadLetterLedger | None) -> StaticData:
    address = _address(document, places)
    try:
        return open_static(address, ledger, places)
    except SourceError as error:
        hint = error.hint or f"name its file: `--graph {document.iri}=FILE`"
        raise SourceError(error.message, document.origin, hint) from error


def _allowed(document: Document, events: Iterable[Event]) -> Iterable[Event]:
    return _checked(document, events) if document.forbidden else events


def _checked(document: Document, events: Iterable[Event]) -> Iterator[Event]:
    endings = tuple(f'"^^<{datatype}>' for datatype in document.forbidden)
    for event in events:
        for fact in event.facts:
            if isinstance(fact, Triple) and fact.object.endswith(endings):
                hint = "no literal of what is imported may have this datatype"
                raise SourceError(f"<{document.iri}> has the literal {fact.object}", document.origin, hint)
        yield event


def place(text: str) -> tuple[str, str]:
    """Parses a text such as ``http://example.org/g=g.ttl`` to an IRI and a file. Raises UsageError."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise UsageError(f"`--graph {text}` is not IRI=FILE")
    return match[1].strip("<>"), match[2]


def check_streams(system: System, stream_names: Collection[str]) -> None:
    """Checks that all streams that a program reads have a source, or are derived by it.

    Args:
        system: The program.
        stream_names: The IRIs of the streams and static data that a run reads (``""`` is the default stream).

    Raises:
        UsageError: A stream has no source.
        Errors: Several streams have none.
    """
    stream_list = ", ".join(f"`{name}`" if name else DEFAULT_STREAM for name in sorted(stream_names)) or "none"
    derived = derived_streams(system)
    errors = []
    for stream in streams(system):
        if stream.iri not in stream_names and stream.iri not in derived:
            hint = (
                did_you_mean(stream.iri, (*stream_names, *derived))
                or f"name a source so: `--source '{_named_source(stream.iri)}'`"
            )
            errors.append(
                UsageError(f"the stream <{stream.iri}> is not given; given: {stream_list}", stream.origin, hint)
            )
    raise_all(errors)


def _named_source(stream: str) -> str:
    """Returns how the source of a stream is named: with its IRI in front, if an address can have it there."""
    named = f"{stream}=FILE"
    if dict(address.source(named).options) == {"stream": stream}:
        return named
    return f"FILE?stream={quote(stream, safe='')}"


def _address(document: Document, places: Mapping[str, str]) -> str:
    """Returns the address of the static source of a document."""
    path = path_of(document, places)
    return f"{path}{'&' if '?' in path else '?'}stream={quote(document.iri, safe='')}"


def path_of(document: Document, places: Mapping[str, str]) -> str:
    """Returns the file of a document.

    It is that in `places`, that of a ``file:`` IRI, or beside the program if the IRI is relative.

    Raises:
        UsageError: Its IRI stands for no file.
    """
    if document.iri in places:
        return places[document.iri]
    parts = urlsplit(document.iri)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme:
        raise UsageError(
            f"the graph <{document.iri}> is not loaded from there",
            document.origin,
            f"download it, and name its file: `--graph {document.iri}=FILE`",
        )
    folder = Path(document.origin.name).parent if document.origin else Path()
    return str(folder / unquote(document.iri))
