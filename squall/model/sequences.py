"""Sequences: pairs of occurrences, one after the other (docs/semantics.md, "Patterns over time").

An occurrence is a solution of a system with the times at which it begins and ends, which two of its variables hold as
xsd:integer (ms). Sources: SEQ of EP-SPARQL (Anicic et al., WWW 2011), and the selection and negation of complex event
processing (Cugola and Margara, Processing Flows of Information, ACM Computing Surveys 44(3), 2012, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from squall.errors import Origin
from squall.model.expressions import Call, Expression
from squall.model.patterns import Variable

if TYPE_CHECKING:
    from squall.model.systems import System

Selection = Literal["nearest", "last", "each"]
"""Which of the pairs count: for each left occurrence the right ones that end first, for each right occurrence the left
ones that end last, or each pair."""


@dataclass(frozen=True)
class Between:
    """Occurrences that must be, or must not be, between the two of a pair: they begin after the left one ends, and end
    before the right one begins.

    Attributes:
        system: The occurrences. The variables that it shares with the two sides have to be equal.
        start: The variable of the time at which one begins.
        end: The variable of the time at which it ends.
        wanted: Whether there has to be one (CONTAINING), or must be none (NOT).
    """

    system: System
    start: Variable
    end: Variable
    wanted: bool = False


@dataclass(frozen=True)
class SequenceJoin:
    """Pairs of a left and a right occurrence that are equal on shared variables, where the right one begins after the
    left one ends (a JoinableComponent).

    At each instant it is a function of the occurrences that are valid then. The sources of all sides have the same
    window of time, and occurrences begin to be valid when they end, so that a later one never ends before an earlier
    one: the choice of a pair does not change while the pair is valid.

    Attributes:
        left: The left occurrences.
        right: The right occurrences.
        left_end: The variable of the time at which a left one ends.
        right_start: The variable of the time at which a right one begins.
        right_end: The variable of the time at which a right one ends.
        selection: Which pairs count, of those that fulfil everything else.
        min_gap: The least time between the end of the left one and the begin of the right one (integer ms, 1 or more).
        max_gap: The greatest such time (integer ms), or None.
        condition: A condition on the variables of a pair, or None.
        between: What must be, or must not be, between the two.
    """

    left: System
    right: System
    left_end: Variable
    right_start: Variable
    right_end: Variable
    selection: Selection = "nearest"
    min_gap: int = 1
    max_gap: int | None = None
    condition: Call | None = None
    between: tuple[Between, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def sides(self) -> tuple[System, ...]:
        """The systems inside: left, right, and those of what is between."""
        return (self.left, self.right, *(part.system for part in self.between))


@dataclass(frozen=True)
class Iteration(SequenceJoin):
    """Runs of occurrences: a left occurrence, and one after the other right ones, each a pair with the run before it.

    What a pair of the sequence join makes is a left occurrence again, and so on. The solutions are all these runs, as a
    set, with the variables of the left side. A left occurrence alone is not among them.

    Attributes:
        values: The variables of the left side that a longer run has another value of, with their values, over the
            variables of the run before and of the right occurrence. One of them is `left_end`.
        again: The condition on the variables of a run under which it goes on, or None.
    """

    values: tuple[tuple[Variable, Expression], ...] = ()
    again: Call | None = None


@dataclass(frozen=True)
class Consumption:
    """What makes each occurrence part of one match: of the solutions of a rule those are left that have it.

    A solution is a match, at the instant at which it ends. Matches have the occurrences that they are made of, in the
    order of their ends. Those that end together are in the order of `squall.functions.consumption.preference`, and then
    of the text of the terms of `order`. A match of which another one has an occurrence, with the same keys, is dropped.

    Attributes:
        keys: The variables for each combination of whose values an occurrence is part of one match.
        start: The variable of the time at which a match begins (xsd:integer ms).
        members: The variable of the occurrences that it is made of (`squall.functions.consumption`).
        steps: The names of the patterns of its steps there, in the order of the text.
        order: Variables that distinguish matches.
        retention: For how long (integer ms) an occurrence may be part of matches, from its time on, or None.
    """

    keys: tuple[Variable, ...]
    start: Variable
    members: Variable
    steps: tuple[str, ...]
    order: tuple[Variable, ...] = ()
    retention: int | None = None
