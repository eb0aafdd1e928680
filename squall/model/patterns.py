"""Variables, and patterns of facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall.errors import Origin
from squall.rdf import HEARTBEAT, WORKING, Term


@dataclass(frozen=True)
class Variable:
    """A variable by name, without its question mark."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Slot = Term | Variable


UNNAMED = frozenset(("", HEARTBEAT, WORKING))
"""The streams that are no named graphs: the default one, and those of our own."""


@dataclass(frozen=True)
class Pattern:
    """A triple pattern (a joinable, or a fact's template). A literal matches by value; everything else by term.

    exact: literals match by term, too (SPARQL 1.1, section 18.3). Of a template it says nothing.
    """

    subject: Slot
    predicate: Slot
    object: Slot
    exact: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return (self.subject, self.predicate, self.object)


@dataclass(frozen=True)
class AtomPattern:
    """``relation(slots)``: an n-ary pattern or template. exact: as in `Pattern`."""

    relation: Term
    arguments: tuple[Slot, ...]
    exact: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.arguments


FactPattern = Pattern | AtomPattern
