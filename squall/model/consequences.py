"""Consequences: what a system derives from each of its solutions."""

from __future__ import annotations

from dataclasses import dataclass

from squall.model.patterns import FactPattern, Pattern, Slot, Variable


@dataclass(frozen=True)
class Construct:
    """Derives facts from each solution.

    Attributes:
        template: The patterns of the facts.
        internal: Rules read the facts, but they are no part of the answer (relations that property paths are made of).
    """

    template: tuple[FactPattern, ...]
    internal: bool = False


@dataclass(frozen=True)
class Insert:
    """Inserts facts into a graph when a solution begins to hold (SPARQL 1.1 Update, section 3.1.3).

    The facts hold from the next instant on until they are deleted. A rule without a body inserts them at the start.

    Attributes:
        template: The patterns of the facts.
        graph: The stream of the graph, a term or a variable. None is the default working graph (`squall.rdf.WORKING`).
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Delete:
    """Deletes facts when a solution begins to hold.

    Facts that streams brought or updates inserted are no longer valid from the next instant on. Facts that follow from
    other facts hold for as long as these do.

    Attributes:
        template: The patterns of the facts.
        graph: The stream from which they are deleted, a term or a variable. None means all streams.
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Select:
    """Outputs the solutions themselves, as a bag of values of these variables."""

    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Ask:
    """Outputs whether there is any solution: at each instant one `squall.rdf.Boolean`."""


Consequence = Construct | Insert | Delete | Select | Ask
