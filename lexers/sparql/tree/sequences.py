"""Patterns over time (CT-SPARQL, EP-SPARQL): sequences of groups, their conjunctions and disjunctions, and what must be
absent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.sparql.tree.printing import bracketed
from squall.model import Variable
from squall.model.windows import duration

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.expressions import Aggregate, Expression
    from squall.lexers.sparql.tree.groups import Group


@dataclass(frozen=True)
class StepName:
    """The name of a step or pattern, ``?name``. It looks like a variable, but has no value in a solution.

    Attributes:
        is_variable: Whether it is a variable as well: an event of CQELS-QL is named by its subject.
    """

    name: str
    is_variable: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def variable(self) -> Variable:
        """The variable that is written like it."""
        return Variable(self.name)

    def __str__(self) -> str:
        return f"?{self.name}"


STEP_FUNCTIONS = {
    **dict.fromkeys(["start", "end", "duration"], 1),
    **dict.fromkeys(["before", "after", "meets", "metBy", "overlaps", "overlappedBy", "starts", "startedBy"], 2),
    **dict.fromkeys(["during", "includes", "finishes", "finishedBy", "coincides"], 2),
}
"""The functions of steps, with the number of their arguments: their times, and Allen's relations (J. Allen, Maintaining
knowledge about temporal intervals, CACM 26(11), 1983) by the names that Drools Fusion gives them."""


INTERVAL_FUNCTIONS = ("getDURATION", "getSTARTTIME", "getENDTIME")
"""The functions of EP-SPARQL: they are of the pattern in whose group they stand."""


@dataclass(frozen=True)
class StepCall:
    """A function of the times of steps: ``start(?step)``, ``before(?step, ?other)``, ``getDURATION()``.

    Attributes:
        function: The name, one of `STEP_FUNCTIONS` or `INTERVAL_FUNCTIONS`.
        steps: The names of the steps. `INTERVAL_FUNCTIONS` have none.
    """

    function: str
    steps: tuple[StepName, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.steps))})"


@dataclass(frozen=True)
class Absence:
    """What does not occur before or behind a pattern, ``NOT { ... } WITHIN length`` (integer ms)."""

    group: Group
    within: int
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT {self.group} WITHIN {duration(self.within)}"


@dataclass(frozen=True)
class Part:
    """What has to be between two steps, or must not be: ``CONTAINING { ... }``, ``NOT { ... }``."""

    group: Group
    wanted: bool
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'CONTAINING' if self.wanted else 'NOT'} {self.group}"


@dataclass(frozen=True)
class Previous:
    """The value of a variable in the occurrence before, ``PREVIOUS(?v)``, in the ``WHILE`` of an iteration."""

    variable: Variable
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"PREVIOUS({self.variable})"


@dataclass(frozen=True)
class Measure:
    """What is computed from a run, ``(AVG(?v) AS ?mean)``. The kind of the aggregate may also be FIRST or LAST."""

    aggregate: Aggregate
    variable: Variable
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.aggregate} AS {self.variable})"


@dataclass(frozen=True)
class Iteration:
    """How often a step or pattern occurs, ``{2,5} BY ?key CONSECUTIVE WHILE (...) MEASURES (...)``.

    Attributes:
        least: The least number of its occurrences in a run.
        most: The greatest number, or None.
        keys: The variables that all occurrences of a run agree on; None: all of them.
        is_consecutive: Whether no occurrence is between that agrees with them.
        condition: The condition on an occurrence and the one before, or None.
        measures: What is computed from a run.
    """

    least: int
    most: int | None = None
    keys: tuple[Variable, ...] | None = None
    is_consecutive: bool = False
    condition: Expression | None = None
    measures: tuple[Measure, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def quantifier(self) -> str:
        """The bounds, as the text has them."""
        if self.most is None:
            return "+" if self.least == 1 else f"{{{self.least},}}"
        return f"{{{self.least}}}" if self.least == self.most else f"{{{self.least},{self.most}}}"

    def __str__(self) -> str:
        pieces = [
            self.quantifier,
            *([] if self.keys is None else [f"BY {' '.join(map(str, self.keys)) or '()'}"]),
            *(["CONSECUTIVE"] if self.is_consecutive else []),
            *([] if self.condition is None else [f"WHILE {bracketed(self.condition)}"]),
            *([f"MEASURES {' '.join(map(str, self.measures))}"] if self.measures else []),
        ]
        return " ".join(pieces)


@dataclass(frozen=True)
class Occurrence:
    """A step or a pattern in braces, ``{ ... } AS ?name``. Bounds (integer ms) and the condition compare it with the
    step before.

    Attributes:
        after: The least time since the step before, or None.
        before: The greatest time since the step before, or None.
        when: The condition, or None.
        iteration: How often it occurs, or None: once.
    """

    group: Group
    name: StepName | None = None
    after: int | None = None
    before: int | None = None
    when: Expression | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)
    iteration: Iteration | None = None

    def __str__(self) -> str:
        pieces = [
            f"{self.group}{'' if self.iteration is None else self.iteration}",
            *([] if self.name is None else [f"AS {self.name}"]),
            *([] if self.after is None else [f"AFTER {duration(self.after)}"]),
            *([] if self.before is None else [f"BEFORE {duration(self.before)}"]),
            *([] if self.when is None else [f"WHEN {bracketed(self.when)}"]),
        ]
        return " ".join(pieces)


@dataclass(frozen=True)
class Link:
    """The step from one occurrence to the next one.

    Attributes:
        to: The next occurrence.
        selection: ``STRICT``, ``NEAREST``, ``EACH``, ``LAST``, or nothing.
        between: What has to be, or must not be, between the two.
    """

    to: Occurrence
    selection: str = ""
    between: tuple[Part, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        words = [*map(str, self.between), *([self.selection] if self.selection else []), "SEQ", str(self.to)]
        return " ".join(words)


@dataclass(frozen=True)
class Operand:
    """An operator of EP-SPARQL and the group behind it, ``SEQ { ... }``.

    Attributes:
        operator: ``SEQ``, ``EQUALS``, ``OPTIONALSEQ``, ``EQUALSOPTIONAL``, ``AND`` or ``UNION``.
        to: The group.
    """

    operator: str
    to: Occurrence
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def between(self) -> tuple[Part, ...]:
        """What has to be, or must not be, between the two: EP-SPARQL has nothing of the kind."""
        return ()

    def __str__(self) -> str:
        return f"{self.operator} {self.to}"


@dataclass(frozen=True)
class Consumption:
    """In how many matches an occurrence takes part, ``CONSUME BY ?key`` or ``REUSE``.

    Attributes:
        is_consumed: Whether it takes part in one; otherwise in all that it fits.
        keys: The variables for each combination of whose values it takes part in one; None: it takes part in one.
    """

    is_consumed: bool = True
    keys: tuple[Variable, ...] | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if not self.is_consumed:
            return "REUSE"
        return "CONSUME" if self.keys is None else f"CONSUME BY {' '.join(map(str, self.keys)) or '()'}"


@dataclass(frozen=True)
class Chain:
    """Occurrences one after the other, ``{ ... } SEQ { ... } WITHIN length`` (integer ms).

    Attributes:
        links: The links (CT-SPARQL), or the operands, from left to right (EP-SPARQL).
        preceded: What does not occur before, or None.
        followed: What does not occur behind, or None.
        within: The greatest time from begin to end, or None.
        consumption: In how many matches an occurrence takes part, or None: in all that it fits.
    """

    first: Occurrence
    links: tuple[Link | Operand, ...] = ()
    preceded: Absence | None = None
    followed: Absence | None = None
    within: int | None = None
    consumption: Consumption | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """The occurrences, in the order of the text."""
        return (self.first, *(link.to for link in self.links))

    def __str__(self) -> str:
        within = [] if self.within is None else [f"WITHIN {duration(self.within)}"]
        parts = [self.preceded, self.first, *self.links, self.followed, *within, self.consumption]
        return " ".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True)
class Conjunct:
    """A chain of a conjunction, which has to occur, or with ``NOT`` must not."""

    chain: Chain
    wanted: bool = True

    def __str__(self) -> str:
        return str(self.chain) if self.wanted else f"NOT {self.chain}"


@dataclass(frozen=True)
class Conjunction:
    """Chains that occur in any order, ``chain AND chain AND NOT chain``. The first one has to occur."""

    conjuncts: tuple[Conjunct, ...]

    def __str__(self) -> str:
        return " AND ".join(map(str, self.conjuncts))


@dataclass(frozen=True)
class TimePattern:
    """The element ``chain AND chain OR chain``: a pattern over time."""

    branches: tuple[Conjunction, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        # The full stop ends the pattern: NOT or a group might follow.
        return f"{' OR '.join(map(str, self.branches))} ."

    @property
    def chains(self) -> tuple[Conjunct, ...]:
        """The chains of all branches."""
        return tuple(conjunct for branch in self.branches for conjunct in branch.conjuncts)

    def groups(self) -> Iterator[Group]:
        """Yields all groups of the pattern, also those of what must be absent, in the order of the text."""
        for conjunct in self.chains:
            chain = conjunct.chain
            if chain.preceded is not None:
                yield chain.preceded.group
            yield chain.first.group
            for link in chain.links:
                yield from (part.group for part in link.between)
                yield link.to.group
            if chain.followed is not None:
                yield chain.followed.group


@dataclass(frozen=True)
class EventPattern(TimePattern):
    """The element ``{ ... } SEQ { ... } EQUALS { ... }``: a pattern over time of EP-SPARQL, which has one chain."""


def event_pattern(first: Group, operands: tuple[Operand, ...] = (), origin: Origin | None = None) -> EventPattern:
    """Returns a pattern over time of EP-SPARQL."""
    chain = Chain(Occurrence(first), operands, origin=origin)
    return EventPattern((Conjunction((Conjunct(chain),)),), origin)
