"""Variables and fact patterns."""

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
"""The streams that are not named graphs: the default stream and the internal ones."""


@dataclass(frozen=True)
class Pattern:
    """A triple pattern: a joinable, or the template of a fact. A literal matches by value; other terms match exactly.

    Attributes:
        exact: Literals match by term, too (SPARQL 1.1, section 18.3). It has no meaning in a template.
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
    """An n-ary pattern or template, ``relation(slots)``. `exact` means the same as in `Pattern`."""

    relation: Term
    arguments: tuple[Slot, ...]
    exact: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.arguments


FactPattern = Pattern | AtomPattern
