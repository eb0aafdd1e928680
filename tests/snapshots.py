"""Reference results for operators: bags of rows at each instant (snapshot reducibility, semantics.md 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

from hypothesis import strategies as st

from squall.builders.runtime.operators import Operator, make_operator
from squall.builders.runtime.operators.delta_index import DeltaIndex
from squall.builders.runtime.operators.state import BufferedBatches, Stateful
from squall.builders.runtime.operators.valid_facts import ValidFacts
from squall.builders.runtime.zset import Delta, Row
from squall.model import Source
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, XSD, iri, literal
from squall.rdf.row_tags import relation_tag

INSTANTS = range(8)
A, B, C = (iri(f"urn:{name}") for name in "abc")
ONE, ALSO_ONE, TWO = literal("1", XSD + "int"), literal("01", XSD + "integer"), literal("2", XSD + "integer")
REL = relation_tag(C)

Bag = Counter[Row]
Snapshot = Callable[[Bag, Bag], Bag]
"""The function of a relational operator from the bags on its two inputs to its output. The second bag is empty if the
operator has one input."""
Step = tuple[int, list[Delta]]
"""A port, and the deltas that arrive at it."""


def at(deltas: Iterable[Delta], instant: int) -> Bag:
    """Returns the bag of rows that is valid at an instant."""
    bag: Bag = Counter()
    for *row, start, end, weight in deltas:
        if start <= instant < end:
            bag[tuple(row)] += weight
    return nonzero(bag)


def nonzero(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})


def is_proper(bag: Bag) -> bool:
    """Returns whether it is a bag: no row has a negative multiplicity."""
    return all(count >= 0 for count in bag.values())


# Operators


def ready(op: ops.Operator, *widths: int, grows: bool = False) -> Operator:
    """Returns an operator of a plan, ready to run. widths: the columns of its inputs' rows; grows: its inputs are
    append-only."""
    read = Node("read", ops.Scan(Source(removals=not grows)))
    inputs = [Node(f"in{port}", ops.Match(tuple(range(width))), (Input("read"),)) for port, width in enumerate(widths)]
    node = Node("op", op, tuple(Input(input.id) for input in inputs))
    return make_operator(node, Plan((read, *inputs, node, Node("end", ops.Sink()))))


def forget(op: Stateful, now: int) -> None:
    """Makes an operator expire all rows that have ended, however few they are."""
    _be_eager(op)
    op.expire(now)


def _be_eager(part: Any) -> None:
    part.sweep_rows = part.full_sweep_rows = 0
    for result in vars(part).values():
        for inner in result if isinstance(result, tuple) else (result,):
            if isinstance(inner, Stateful | DeltaIndex | BufferedBatches | ValidFacts):
                _be_eager(inner)


# Deltas


SPANS = tuple((start, start + length) for start in range(7) for length in range(1, 6))


@cache
def delta_lists(
    width: int, signs: Sequence[int], cells: Sequence[str | None] = (A, B), most: int = 4
) -> st.SearchStrategy[list[Delta]]:
    """Draws lists of deltas. Each delta is drawn as one number: most of a test's time goes into drawing."""
    kinds = [*[cells] * width, SPANS, signs]

    def delta(number: int) -> Delta:
        anys: list[Any] = []
        for kind in kinds:
            number, place = divmod(number, len(kind))
            anys.append(kind[place])
        *row, (start, end), weight = anys
        return (*row, start, FOREVER if end > max(INSTANTS) else end, weight)

    return st.lists(st.integers(0, prod(map(len, kinds)) - 1).map(delta), max_size=most)


@dataclass(frozen=True)
class Case:
    """An operator, the widths of its inputs, and its reference function. `columns` has those of its rows that are
    compared; `proper` says that the reference is defined for bags only, and not for signed ones."""

    make: Callable[[], Operator]
    widths: tuple[int, ...]
    expected: Snapshot
    signs: tuple[int, ...] = (-1, 1, 1, 2)
    cells: tuple[str | None, ...] = (A, B)
    columns: int | None = None
    proper: bool = False

    @cached_property
    def steps(self) -> st.SearchStrategy[list[Step]]:
        ports = [
            st.tuples(st.just(port), delta_lists(width, self.signs, self.cells))
            for port, width in enumerate(self.widths)
        ]
        return st.lists(st.one_of(ports), max_size=6)

    def holds(self, taken: Sequence[Step], came: Sequence[Delta], instants: Iterable[int] = INSTANTS) -> None:
        """Asserts that the deltas add up, at each instant, to the expected rows."""
        assert all(start < end and weight for *_, start, end, weight in came)
        sides = [[delta for at_port, batch in taken if at_port == port for delta in batch] for port in (0, 1)]
        text = [(*item[:-3][: self.columns], *item[-3:]) for item in came]
        for instant in instants:
            left, right = (at(side, instant) for side in sides)
            if not self.proper or (is_proper(left) and is_proper(right)):
                assert at(text, instant) == self.expected(left, right), instant


# Deltas in the order of time, for operators that evaluate complete instants


@dataclass(frozen=True)
class Advance:
    """The deltas that arrive before time advances to `now`: all that begin by then, and some that begin later."""

    now: int
    batch: list[Delta]


@st.composite
def courses(draw: st.DrawFn, width: int, cells: Sequence[str | None], always: bool = False) -> list[Advance]:
    """Draws a bag of rows in the course of time, in the forms in which operators report it.

    Rows arrive with their end, are cut before it, are retracted for a while, or are retracted and inserted again with
    another end. always: some rows hold always.
    """
    row = st.tuples(*[st.sampled_from(cells)] * width)
    spans = draw(st.lists(st.tuples(row, st.integers(0, 6), st.integers(1, 5), st.integers(1, 2)), max_size=6))
    coming: list[tuple[int, Delta]] = []
    for cells_of, since, length, weight in spans:
        start = ALWAYS if always and since == 0 else since
        coming += draw(_reported_forms(cells_of, start, max(since, 0) + length, weight))
    times = [ALWAYS, *sorted(draw(st.sets(st.sampled_from(INSTANTS)))), max(INSTANTS) + 5]
    advances: list[Advance] = []
    for now in times:
        batch = [delta for expected, delta in coming if expected <= now]
        coming = [(expected, delta) for expected, delta in coming if expected > now]
        advances.append(Advance(now, draw(st.permutations(batch))))
    return advances


def _reported_forms(row: Row, start: int, end: int, weight: int) -> st.SearchStrategy[list[tuple[int, Delta]]]:
    """Draws deltas that say that a row is valid over [start, end), each with the time by which it has to arrive."""
    full_result, back = (start, (*row, start, FOREVER, weight)), (*row, start, FOREVER, -weight)
    gap = max(0, start)
    return st.sampled_from(
        [
            [(start, (*row, start, end, weight))],
            [(ALWAYS, (*row, start, end, weight))],
            [full_result, (end, (*row, end, FOREVER, -weight))],
            [full_result, (end, back), (end, (*row, start, end, weight))],
            [full_result, (start, back), (start, (*row, start, end, weight))],
            [full_result, (gap, (*row, gap, gap + 1, -weight)), (end + 1, (*row, end + 1, FOREVER, -weight))],
            [full_result, (start, back)],
        ]
    )


def driven(op: Any, course: Sequence[Advance]) -> Iterator[tuple[int, list[Delta], list[Delta]]]:
    """Advances time step by step and yields (now, all deltas received, all deltas output so far)."""
    deltas: list[Delta] = []
    actual: list[Delta] = []
    for step in course:
        deltas += step.batch
        actual += op.apply(0, step.batch)
        actual += op.advance(step.now)
        yield step.now, deltas, actual
