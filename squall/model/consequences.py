"""What is made of the solutions of a system (Consequences)."""

from __future__ import annotations

from dataclasses import dataclass

from squall.model.patterns import FactPattern, Pattern, Slot, Variable


@dataclass(frozen=True)
class Construct:
    """Facts made of each solution (a Consequence).

    internal: rules read them, but they are no part of the answer (relations that property paths are made of).
    """

    template: tuple[FactPattern, ...]
    internal: bool = False


@dataclass(frozen=True)
class Insert:
    """Facts that are put into a graph when a solution begins to hold (a Consequence), from the next instant on until
    they are deleted (SPARQL 1.1 Update, section 3.1.3). A rule without a body puts them there from the start.

    graph: the stream of the graph, a term or a variable; None: the default working graph (`squall.rdf.WORKING`).
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Delete:
    """Facts that end when a solution begins to hold (a Consequence): what was brought or inserted of them is valid no
    longer, from the next instant on. What follows from other facts goes on for as long as these do.

    graph: the stream in which they end, a term or a variable; None: all of them.
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Select:
    """The solutions themselves (a Consequence), as a bag of values of these variables."""

    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Ask:
    """Whether there is any solution (a Consequence): at each instant one `squall.rdf.Boolean`."""


Consequence = Construct | Insert | Delete | Select | Ask
