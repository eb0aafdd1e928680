"""Splittable sources as rows, for jobs of an engine that are not squall's alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from squall.builders.distributed.io.parsing import DeadLetterBuffer
from squall.builders.distributed.io.records import DeadLetter
from squall.errors import UsageError
from squall.rdf import Event
from squall.streams import address, open_source
from squall.streams.sources.files import Splittable


class Statement(NamedTuple):
    """A statement as a row: its time (integer ms), its terms in N-Triples, and its graph (None: the default graph). A
    dead letter has only a text, `lost`, that says what is wrong."""

    time: int | None = None
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    graph: str | None = None
    lost: str | None = None


def open_splittable(
    uri: str, reader: str, elsewhere: Mapping[str, str], losses: DeadLetterBuffer | None = None
) -> Splittable:
    """Opens the source of an address.

    Args:
        uri: the address.
        reader: what reads it, in words.
        elsewhere: options of sources that the reader does not support, each with a hint.
        losses: the ledger for dead letters.

    Raises:
        UsageError: the address has an unsupported option, or the source cannot be split.
    """
    place = address.source(uri)
    for option, hint in elsewhere.items():
        if option in dict(place.options):
            raise UsageError(f"`{option}` in `{uri}` means nothing to {reader}", hint=hint)
    source = open_source(uri, losses)
    hint = "`squall run` reads it, on every builder"
    if source.removals:
        raise UsageError(f"`{uri}` takes statements back, which rows cannot", hint=hint)
    if getattr(getattr(source, "format", None), "tuples", False):
        raise UsageError(f"`{uri}` has tuples, which are no rows of triples", hint=hint)
    if not isinstance(source, Splittable):
        reason = "what lies between two of its positions cannot be read again"
        raise UsageError(f"`{uri}` is nothing for {reader}: {reason}", hint=hint)
    return source


def read_split(source: Splittable, part: str, losses: DeadLetterBuffer) -> Iterator[Iterator[Statement]]:
    """Yields the rows of a split of a source, batch by batch. losses: where the source records its dead letters."""
    for events in chain(source.read_split(part), [()]):
        yield _rows(events, losses.take())


def _rows(events: Iterable[Event], dead_letters: Iterable[DeadLetter]) -> Iterator[Statement]:
    for event in events:
        for fact in event.facts:
            subject, predicate, object = map(str, fact)
            yield Statement(event.time, subject, predicate, object, event.graph or None)
    for dead_letter in dead_letters:
        yield Statement(
            lost=" ".join(
                f"{dead_letter.cause}: {dead_letter.source}: {dead_letter.reason}: {dead_letter.text}".split()
            )
        )
