"""A small stream made up for a query from its own patterns, so that there is something to answer.

Of each pattern there are a few triples, with values of their own for the variables. A variable that is nowhere but at
the end of patterns stands for a number, others for an IRI.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import chain
from typing import NamedTuple

from squall.model import Exists, Negation, Pattern, Slot, Source, System, Variable, documents, rules
from squall.model.walk import Part, inside
from squall.model.windows import EMPTY
from squall.rdf import ALWAYS, XSD, Event, Term, Triple, iri, literal

COPIES = 3
"""The number of triples for each pattern. A pattern that a query negates has only the first of them."""
NUMBERS = ("1", "30", "90")


class Read(NamedTuple):
    """A pattern, what it is read from, and whether it is wanted to be absent."""

    pattern: Pattern
    sources: tuple[Source, ...]
    absent: bool


def events(system: System) -> tuple[list[Event], list[Event]]:
    """Generates the streams that a program reads, a second between one copy and the next, and its static data: those of
    the documents that it names, and, where it reads nothing else, those of no stream."""
    reads = [read for rule in rules(system) for read in _reads(rule, (), False)]
    nodes = {slot for read in reads for slot in read.pattern.slots[:2]}
    names = {document.iri for document in documents(system)}
    results = list(chain.from_iterable(_events(read, nodes, names) for read in reads))
    arriving = sorted((event for event in results if event.time != ALWAYS), key=lambda event: event.time)
    return arriving, [event for event in results if event.time == ALWAYS]


def _reads(part: Part, sources: tuple[Source, ...], absent: bool) -> Iterator[Read]:
    if isinstance(part, Pattern):
        yield Read(part, sources, absent)
    absent = absent or isinstance(part, Negation) or (isinstance(part, Exists) and part.wanted is False)
    for inner in inside(part):
        yield from _reads(inner, part.sources if isinstance(part, System) else sources, absent)


def _events(read: Read, nodes: Container[Slot], named: Container[str]) -> Iterator[Event]:
    for source in read.sources:
        background = not source.iri and source.window == EMPTY
        if not background or read.sources == (source,):
            for copy in range(1 if read.absent else COPIES):
                triple = Triple(*(_value(slot, slot in nodes, copy) for slot in read.pattern.slots))
                always = background or source.iri in named
                yield Event(ALWAYS if always else 1000 * (copy + 1), (triple,), source.iri)


def _value(slot: Slot, is_node: bool, copy: int) -> Term:
    if not isinstance(slot, Variable):
        return slot
    return iri(f"urn:{slot.name}:{copy}") if is_node else literal(NUMBERS[copy], XSD + "integer")
