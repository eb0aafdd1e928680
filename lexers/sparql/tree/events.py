"""Sequences of events by the names of their events: ``SEQ(?a ; ?b)`` of CQELS-QL, ``EVENT`` and ``MATCH`` of RSP-QL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.sparql.tree.printing import iso_duration
from squall.lexers.sparql.tree.sequences import Consumption, StepName
from squall.model import Variable
from squall.rdf import Term

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.groups import Group


@dataclass(frozen=True)
class SequencedEvent:
    """An event of a sequence, ``?event`` or ``NOT ?event``: the triples of which it is the subject (CQELS-QL).

    Attributes:
        variable: The subject.
        wanted: Whether it has to occur. One with ``NOT`` must not occur between the two beside it.
    """

    variable: Variable
    wanted: bool = True
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'' if self.wanted else 'NOT '}{self.variable}"


@dataclass(frozen=True)
class EventSequence:
    """The condition ``SEQ(?a ; NOT ?n ; ?b)`` of a filter: events occur in this order (CQELS-QL)."""

    events: tuple[SequencedEvent, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"SEQ({' ; '.join(map(str, self.events))})"


@dataclass(frozen=True)
class Event:
    """The element ``EVENT ?name ON window { ... }``: an event and its name (RSP-QL).

    Attributes:
        on: The window, or the stream.
    """

    name: StepName
    on: Term
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"EVENT {self.name} ON {self.on} {self.group}"


@dataclass(frozen=True)
class EventOperand:
    """A part of a sequence of events: the name of an event, or a sequence in brackets (RSP-QL).

    Attributes:
        selection: ``FIRST``, ``LAST``, ``EVERY`` or nothing.
    """

    of: StepName | EventChain
    selection: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        of = f"({self.of})" if isinstance(self.of, EventChain) else str(self.of)
        return f"{self.selection} {of}".lstrip()


@dataclass(frozen=True)
class EventChain:
    """Events one after the other, ``?a SEQ ?b WITHIN length`` (RSP-QL).

    Attributes:
        operands: The parts, one or more.
        within: The greatest time from begin to end (integer ms), or None.
        consumption: In how many matches an event takes part, or None: in all that it fits.
    """

    operands: tuple[EventOperand, ...]
    within: int | None = None
    consumption: Consumption | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        within = "" if self.within is None else f" WITHIN {iso_duration(self.within)}"
        consumption = "" if self.consumption is None else f" {self.consumption}"
        return f"{' SEQ '.join(map(str, self.operands))}{within}{consumption}"


@dataclass(frozen=True)
class Match:
    """The element ``MATCH ?a SEQ ?b``: events that occur one after the other (RSP-QL)."""

    chain: EventChain
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        # The full stop ends the sequence: a triple whose subject is a variable might follow.
        return f"MATCH {self.chain} ."
