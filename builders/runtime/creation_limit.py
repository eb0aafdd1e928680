"""The limit of what a recursion may derive from terms that its rules create, so that no run goes on for ever.

A recursion that only combines the terms that it reads comes to an end. Where rules create terms of terms that they
created (`squall.plan.term_creation`), it may not, and whether it does is undecidable. So there are two limits: how many
terms it creates, and how many rows it derives after it has created terms of created terms of created terms. They grow
with the rows that it reads, since a recursion over much data may well derive as much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.term_creation import nesting_nodes, recursive_creations
from squall.rdf import Term
from squall.rdf.compounds import depth
from squall.wording import counted, shortened

TERMS_PER_LIVE_ROW = 10
"""A recursion may create so many terms for each row that it has, if these are more than the limit of the plan."""
ROWS_PER_ITERATION = 4
"""An iteration in which a recursion creates terms counts as so many further rows."""
CHARACTERS_PER_TERM = 256
"""A longer term counts as several, one for each so many characters."""
MIN_ENDLESS_DEPTH = 3
"""A recursion looks endless when it has nested terms so deep, or ..."""
MIN_ENDLESS_ITERATIONS = 16
"""... has created values, which do not say what they were created of, in so many iterations."""
TERMS_PER_EXCHANGE = 100
"""An iteration for which tasks exchange rows takes as long as to create about so many terms."""
ROWS_BETWEEN_COUNTS = 100_000
"""After how many rows that enter a recursion the rows in its state are counted again."""
ROWS_PER_PART = 65_536
"""About so many rows a node whose input is divided makes at a time."""

_HINT = (
    "it may go on for ever: let a test of the rule say where that ends, or read what no rule of the recursion makes; "
    "if it comes to an end, allow more with `--max-terms`"
)
T = TypeVar("T")
AnyStep = Callable[[Any], Any]
"""A step over deltas or over rows."""


@dataclass
class _Creations:
    """What a node has created.

    Attributes:
        rule: The name of a rule that the node serves.
        terms: The terms of a run of the dataflow.
        size: The number of these terms, where long ones count as several.
        iterations: In how many iterations of the run there were new ones.
        nesting: How deep terms of any run are nested, as far as `MIN_ENDLESS_DEPTH`.
    """

    rule: str
    terms: set[Term] = field(default_factory=set)
    size: int = 0
    iterations: int = 0
    nesting: int = 0
    last_iteration: int = 0

    def add(self, new_terms: Collection[Term], iteration: int) -> bool:
        """Adds terms that are new. Returns whether they are the first ones of an iteration."""
        self.terms.update(new_terms)
        self.size += len(new_terms) + sum(map(len, new_terms)) // CHARACTERS_PER_TERM
        if self.nesting < MIN_ENDLESS_DEPTH:
            self.nesting = max(self.nesting, *map(depth, new_terms))
        is_first = iteration != self.last_iteration
        self.last_iteration = iteration
        self.iterations += is_first
        return is_first

    def clear(self) -> None:
        """Begins another run."""
        self.terms.clear()
        self.size = self.iterations = self.last_iteration = 0

    @property
    def looks_endless(self) -> bool:
        return self.iterations >= MIN_ENDLESS_ITERATIONS if self.nesting == 0 else self.nesting >= MIN_ENDLESS_DEPTH


class InputDivision:
    """The division of inputs into parts of which a node makes few rows at a time.

    Where each row of a join has thousands of partners, its output would be one list of millions of rows. Nothing could
    be counted, and no signal be obeyed in time, while such a list is made or freed.

    Args:
        first_part: The number of rows in the first part.
        counts_all: Whether also what is made of smaller inputs has to be counted.

    Attributes:
        uncounted_rows: Inputs of so many rows are not divided, and what is made of them is not counted.
    """

    def __init__(self, first_part: int, counts_all: bool = False) -> None:
        self.first_part = first_part
        self.uncounted_rows = 0 if counts_all else first_part
        self.derived_rows = 0

    def add_rows(self, rows: int) -> None:
        """Counts rows that were made of a part."""
        self.derived_rows += rows

    def parts(self, rows: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yields rows part by part. What is made of each is counted (`add_rows`) before the next one is taken."""
        start, size = 0, self.first_part
        while start < len(rows):
            before = self.derived_rows
            yield rows[start : start + size]
            new_rows = self.derived_rows - before
            start += size
            size = size * 4 if new_rows * 4 <= ROWS_PER_PART else max(1, size * ROWS_PER_PART // (new_rows * 4))


class CreationLimit(InputDivision):
    """The limit of one recursion.

    Args:
        rules: The nodes that create terms, each with the name of a rule.
        max_terms: The limit of the plan (`squall.plan.Plan.max_terms`).
        outside: The nodes outside of the recursion that nest terms. It may read them, and so be endless by them.
    """

    def __init__(self, rules: Mapping[str, str], max_terms: int, outside: Mapping[str, _Creations]) -> None:
        super().__init__(first_part=1, counts_all=True)
        self.max_terms = max_terms
        self.outside = outside
        self.live_rows = 0
        self.entered_rows = ROWS_BETWEEN_COUNTS
        self.creations = {id: _Creations(rule) for id, rule in rules.items()}
        self.iteration = 0

    def begin(self) -> None:
        """Notes that a run of the dataflow begins. What it derives is counted by itself."""
        for creations in self.creations.values():
            creations.clear()
        self.iteration = self.derived_rows = 0

    def enter(self, rows: int, live_rows: Callable[[], int]) -> None:
        """Notes that the recursion gets input.

        Args:
            rows: The number of rows of the input.
            live_rows: Counts the rows in the state of the recursion.
        """
        if self.iteration:
            return
        if self.entered_rows >= ROWS_BETWEEN_COUNTS:
            self.live_rows, self.entered_rows = live_rows(), 0
        self.entered_rows += rows

    @property
    def max_created_terms(self) -> int:
        """The number of terms that the recursion may create in a run of the dataflow."""
        return max(self.max_terms, TERMS_PER_LIVE_ROW * (self.live_rows + self.entered_rows))

    def counted(self, id: str, step: AnyStep, plan: Plan) -> AnyStep:
        """Returns the step of a creating node with a count of its terms."""
        creations = self.creations[id]
        columns = new_columns(plan, id)

        def counting(rows: Any) -> Any:
            output = step(rows)
            new_terms = {term for row in output for term in row[columns]} - creations.terms
            new_terms.discard(None)
            if new_terms:
                if creations.add(new_terms, self.iteration):
                    self.add_rows(ROWS_PER_ITERATION)
                if creations.size > self.max_terms and creations.size > self.max_created_terms:
                    raise self._error(creations)
            return output

        return counting

    def add_rows(self, rows: int) -> None:
        """Counts rows that the recursion derives.

        Raises:
            BuilderError: They are too many, and the recursion looks endless.
        """
        self.derived_rows += rows
        if self.derived_rows > self.max_terms and self.derived_rows > self.max_created_terms:
            candidates = (*self.creations.values(), *self.outside.values())
            endless = [creations for creations in candidates if creations.looks_endless]
            if endless:
                raise self._error(max(endless, key=lambda creations: (len(creations.terms), creations.nesting)))

    def _error(self, creations: _Creations) -> BuilderError:
        rows = counted(self.derived_rows, "row")
        terms = f" and {counted(len(creations.terms), 'new term')} of this rule" if creations.terms else ""
        example = f": {shortened(max(creations.terms, key=depth))}" if creations.terms else ""
        return BuilderError(
            f"the rule `{creations.rule}` creates terms of terms that rules created, and the recursion does not end "
            f"after {rows}{terms}{example}",
            hint=_HINT,
        )


class CreationLimits:
    """The limits of the recursions of a plan that may create terms without end.

    Attributes:
        limits: The limits.
        by_node: The limits, by each node of such a recursion.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.limits: list[CreationLimit] = []
        self.by_node: dict[str, CreationLimit] = {}
        self.outside: dict[str, _Creations] = {}
        endless = recursive_creations(plan)
        if endless:
            nodes = nesting_nodes(plan)
            self.outside = {id: _Creations(nodes[id]) for id in nodes if id not in endless}
        for component in plan.components if endless else ():
            if rules := {id: endless[id] for id in component if id in endless}:
                self.limits.append(CreationLimit(rules, plan.max_terms, self.outside))
                self.by_node |= dict.fromkeys(component, self.limits[-1])

    def begin(self) -> None:
        """Notes that a run of the dataflow begins."""
        for limit in self.limits:
            limit.begin()

    def steps(self, step_of: Callable[[str], AnyStep]) -> dict[str, AnyStep]:
        """Returns the steps of creating nodes with counts of their terms. step_of: returns the step of a node."""
        counting = {
            id: limit.counted(id, step_of(id), self.plan) for id, limit in self.by_node.items() if id in limit.creations
        }
        return counting | {id: self._watched(id, step_of(id)) for id in self.outside}

    def _watched(self, id: str, step: AnyStep) -> AnyStep:
        """Returns the step of a node outside of the recursions, which notes how deep it nests terms."""
        creations, columns = self.outside[id], new_columns(self.plan, id)

        def watching(rows: Any) -> Any:
            output = step(rows)
            if creations.nesting < MIN_ENDLESS_DEPTH:
                terms = {term for row in output for term in row[columns]} - {None}
                creations.nesting = max(creations.nesting, *map(depth, terms)) if terms else creations.nesting
            return output

        return watching


def check_iterations(plan: Plan, nodes: Iterable[str], iterations: int) -> None:
    """Checks how often the tasks of a distributed engine have exchanged what a recursion derives.

    Args:
        plan: The plan.
        nodes: Nodes of the recursion.
        iterations: The number of exchanges, each of which is a job of the engine.

    Raises:
        BuilderError: It may create terms without end, and there were too many.
    """
    if iterations * TERMS_PER_EXCHANGE > plan.max_terms:
        recursions = (component for component in plan.components if not set(component).isdisjoint(nodes))
        endless = recursive_creations(plan)
        rule = next((endless[id] for component in recursions for id in component if id in endless), None)
        if rule is not None:
            message = f"the rule `{rule}` may create terms of terms that rules created, and the recursion does not end"
            raise BuilderError(f"{message} after {counted(iterations, 'iteration')}", hint=_HINT)


def new_columns(plan: Plan, id: str) -> slice:
    """Returns the columns that a node adds to its rows."""
    return slice(plan.widths[plan.by_id[id].inputs[0].node], plan.widths[id])
