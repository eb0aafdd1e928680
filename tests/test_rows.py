"""Every operator is held against its relational counterpart at every instant (snapshot reducibility, semantics.md 3).

Signed entries come in any order and in any batches; at every instant what has come out has to add up to what the
counterpart makes of what has gone in. An operator that keeps rows may be stopped and go on somewhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall import functions
from squall import operators as ops
from squall.builders import rows
from squall.builders.rows import RULE, Entry, Keeping, Operator, Row, fact_row, operator, row_fact, settle
from squall.functions.jena import function_iri
from squall.operators import Apply, Column, Value
from squall.plan import Input, Node, Plan
from squall.rdf import ALWAYS, FOREVER, XSD, Atom, Triple, iri, literal
from squall.stages import Output
from squall.strata import relation_mark
from squall.system import Source

INSTANTS = range(8)
A, B, C = (iri(f"urn:{name}") for name in "abc")
ONE, ALSO_ONE, TWO = literal("1", XSD + "int"), literal("01", XSD + "integer"), literal("2", XSD + "integer")
REL = relation_mark(C)

Bag = Counter[Row]
Snapshot = Callable[[Bag, Bag], Bag]
"""What a relational operator makes of the bags on its two inputs (of the second there is none where it has one)."""
Step = tuple[int, list[Entry]]
"""A port and what comes on it."""


# The model


def at(entries: Iterable[Entry], instant: int) -> Bag:
    """The bag of rows that is valid at an instant."""
    found: Bag = Counter()
    for row, start, end, weight in entries:
        if start <= instant < end:
            found[row] += weight
    return nonzero(found)


def nonzero(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})


def linear(function: Callable[[Row], Row | None]) -> Snapshot:
    """Row by row."""

    def snapshot(left: Bag, _: Bag) -> Bag:
        made: Bag = Counter()
        for row, count in left.items():
            if (result := function(row)) is not None:
                made[result] += count
        return nonzero(made)

    return snapshot


def joined(on: Sequence[tuple[int, int]], keep: Sequence[int]) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        made: Bag = Counter()
        for (one, count), (other, times) in product(left.items(), right.items()):
            if all(one[i] == other[j] for i, j in on):
                made[tuple((one + other)[column] for column in keep)] += count * times
        return nonzero(made)

    return snapshot


def without(on: Sequence[tuple[int, int]]) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        held: Counter[Row] = Counter()
        for row, count in right.items():
            held[tuple(row[j] for _, j in on)] += count
        return Counter({row: count for row, count in left.items() if held[tuple(row[i] for i, _ in on)] <= 0})

    return snapshot


def unique(by: int) -> Snapshot:
    def snapshot(left: Bag, right: Bag) -> Bag:
        counts: Bag = Counter()
        for row, count in [*left.items(), *right.items()]:
            counts[row[:by]] += count
        return Counter({row: 1 for row, count in counts.items() if count > 0})

    return snapshot


# Entries


def entries(width: int, signs: Sequence[int], cells: Sequence[str] = (A, B)) -> st.SearchStrategy[list[Entry]]:
    row = st.tuples(*[st.sampled_from(cells)] * width)
    span = st.tuples(st.integers(0, 6), st.integers(1, 5))
    made = st.builds(_entry, row, span, st.sampled_from(signs))
    return st.lists(made, max_size=4)


def _entry(row: Row, span: tuple[int, int], weight: int) -> Entry:
    end = FOREVER if sum(span) >= max(INSTANTS) else sum(span)
    return row, span[0], end, weight


@dataclass(frozen=True)
class Case:
    """An operator, the widths of its inputs, and its counterpart. `columns`: those of its rows that are compared."""

    make: Callable[[], Operator]
    widths: tuple[int, ...]
    expected: Snapshot
    signs: tuple[int, ...] = (-1, 1, 1, 2)
    cells: tuple[str, ...] = (A, B)
    columns: int | None = None

    @property
    def steps(self) -> st.SearchStrategy[list[Step]]:
        ports = [
            st.tuples(st.just(port), entries(width, self.signs, self.cells)) for port, width in enumerate(self.widths)
        ]
        return st.lists(st.one_of(ports), max_size=6)

    def holds(self, taken: Sequence[Step], came: Sequence[Entry]) -> None:
        """What came adds up, at each instant, to what should."""
        assert all(start < end and weight for _, start, end, weight in came)
        sides = [[entry for at_port, batch in taken if at_port == port for entry in batch] for port in (0, 1)]
        shown = [(row[: self.columns], start, end, weight) for row, start, end, weight in came]
        for instant in INSTANTS:
            assert at(shown, instant) == self.expected(at(sides[0], instant), at(sides[1], instant)), instant


def match_of(*cells: ops.Cell) -> Callable[[Row], Row | None]:
    def match(row: Row) -> Row | None:
        bound: dict[int, str] = {}
        if (row[0] == REL) != (cells[0] == REL):
            return None
        for cell, term in zip(cells, row, strict=True):
            if isinstance(cell, int) and bound.setdefault(cell, term) != term:
                return None
            if isinstance(cell, str) and cell != term:
                return None
            if isinstance(cell, Value) and term not in (ONE, ALSO_ONE):
                return None
        return tuple(bound[column] for column in sorted(bound))

    return match


def _join(on: tuple[tuple[int, int], ...], keep: tuple[int, ...], widths: tuple[int, int] = (2, 2)) -> Case:
    return Case(lambda: rows.Join(ops.Join(on, keep), widths[0]), widths, joined(on, keep))


def _anti(on: tuple[tuple[int, int], ...]) -> Case:
    return Case(lambda: rows.AntiJoin(ops.AntiJoin(on)), (2, 2), without(on))


def _match(*cells: ops.Cell) -> Case:
    terms = (A, B, ONE, ALSO_ONE, TWO, REL)
    return Case(lambda: rows.Match(ops.Match(cells)), (len(cells),), linear(match_of(*cells)), cells=terms)


def _same(row: Row) -> Row | None:
    return row if row[0] == row[1] else None


EQUAL = Apply(function_iri("equal"), (Column(0), Column(1)))
CONCAT = Apply(function_iri("strConcat"), (Column(0), B))

CASES = {
    "read": Case(lambda: rows.Through(Node("r", ops.Read(Source()))), (2,), linear(lambda row: row)),
    "match": _match(0, A, 1),
    "match of a repeated column": _match(0, 1, 0),
    "match of a constant alone": _match(A, None, B),
    "match by value": _match(0, A, Value(ONE)),
    "match of an atom": _match(REL, 0, 1),
    "test": Case(lambda: rows.Test(ops.Test(EQUAL)), (2,), linear(_same)),
    "extend": Case(
        lambda: rows.Extend(ops.Extend(CONCAT)), (1,), linear(lambda row: (*row, literal(row[0][1:-1] + B[1:-1])))
    ),
    "extend without a value": Case(
        lambda: rows.Extend(ops.Extend(Apply(function_iri("addOne"), (Column(0),)))),
        (1,), linear(lambda row: (ONE, literal("2", XSD + "int")) if row[0] == ONE else None), cells=(A, ONE),
    ),
    "emit": Case(
        lambda: rows.Emit(ops.Emit((1, C, 0, 0), rules=("the rule", "another"))),
        (2,), linear(lambda row: (row[1], C, row[0], row[0], RULE + "the rule")),
    ),
    "emit of constants": Case(
        lambda: rows.Emit(ops.Emit((A, C), rules=("r",))), (1,), linear(lambda row: (A, C, RULE + "r"))
    ),
    "join": _join(((1, 0),), (0, 1, 3)),
    "join on two": _join(((1, 0), (0, 1)), (0, 1)),
    "join that keeps all": _join(((0, 0),), (0, 1, 2, 3)),
    "join that keeps the right alone": _join(((0, 1),), (2, 3)),
    "join that turns columns round": _join(((0, 0),), (3, 1, 0)),
    "join that repeats a column": _join(((0, 0),), (0, 1, 3, 3)),
    "join that keeps nothing": _join(((0, 0),), ()),
    "product": _join((), (0, 1)),
    "product with the unit": _join((), (0,), (0, 1)),
    "anti-join": _anti(((0, 1),)),
    "anti-join on two": _anti(((0, 1), (1, 0))),
    "anti-join on nothing": _anti(()),
    "growing set": Case(lambda: rows.GrowingDistinct(2), (2, 2), unique(2), signs=(1,)),
    "growing set of facts": Case(lambda: rows.GrowingDistinct(1), (2, 2), unique(1), signs=(1,), columns=1),
    "counting set": Case(lambda: rows.CountingDistinct(2), (2, 2), unique(2)),
    "counting set of facts": Case(lambda: rows.CountingDistinct(1), (2, 2), unique(1), columns=1),
    "recursive set": Case(lambda: rows.RecursiveDistinct(2), (2, 2), unique(2)),
}  # fmt: skip
KEEPING = {name: case for name, case in CASES.items() if isinstance(case.make(), Keeping)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_what_comes_out_adds_up_at_every_instant(case: Case, data: st.DataObject) -> None:
    op = case.make()
    taken: list[Step] = []
    came: list[Entry] = []
    for port, batch in data.draw(case.steps):
        came += op.apply(port, batch)
        taken.append((port, batch))
        case.holds(taken, came)


@pytest.mark.parametrize("case", KEEPING.values(), ids=KEEPING.keys())
@given(data=st.data(), settled=st.booleans())
@settings(max_examples=25, deadline=None)
def test_it_goes_on_elsewhere_from_what_it_kept(case: Case, data: st.DataObject, settled: bool) -> None:
    """After each step the state is moved into a fresh operator; `settled`: the store has added up what it holds."""
    store: dict[int, list[Entry]] = {}
    taken: list[Step] = []
    came: list[Entry] = []
    for port, batch in data.draw(case.steps):
        op = case.make()
        assert isinstance(op, Keeping)
        for slot in sorted(store):
            op.restore(slot, settle(store[slot]) if settled else store[slot])
        op.keep()
        came += op.apply(port, batch)
        for slot, kept in op.kept():
            store.setdefault(slot, []).extend(kept)
        assert list(op.kept()) == []
        taken.append((port, batch))
        case.holds(taken, came)


@pytest.mark.parametrize("name", [name for name, case in KEEPING.items() if -1 in case.signs])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_nothing_is_remembered_of_what_was_taken_back(name: str, data: st.DataObject) -> None:
    """Memories are empty when everything has been taken back (semantics.md 6, law 6)."""
    case = KEEPING[name]
    op = case.make()
    steps = [(port, [(*entry[:3], 1) for entry in batch]) for port, batch in data.draw(case.steps)]
    back = [(port, [(*entry[:3], -1) for entry in batch]) for port, batch in steps]
    for port, batch in [*steps, *data.draw(st.permutations(back))]:
        op.apply(port, batch)
    memories = [value for value in vars(op).values() if isinstance(value, dict)]
    assert not any([*memories, *getattr(op, "sides", ())]), vars(op)


# Sets in a recursion


@given(entries_of=st.lists(st.tuples(st.booleans(), entries(1, (-1, 1, 1))), max_size=6))
@settings(max_examples=50, deadline=None)
def test_a_recursive_set_deletes_first_and_rederives(entries_of: list[tuple[bool, list[Entry]]]) -> None:
    """While deleting, it says at once what may be gone, and adds nothing; when it has rederived, all is as counted."""
    op = rows.RecursiveDistinct(1)
    taken: list[Step] = []
    came: list[Entry] = []
    for deleting, batch in entries_of:
        op.deleting = deleting
        found = op.apply(0, batch)
        op.deleting = False
        assert not deleting or all(weight < 0 for *_, weight in found)
        came += found + op.rederive()
        taken.append((0, batch))
        for instant in INSTANTS:
            assert at(came, instant) == unique(1)(at([e for _, b in taken for e in b], instant), Counter())


def test_while_deleting_a_row_goes_though_it_has_another_reason() -> None:
    op = rows.RecursiveDistinct(1)
    assert op.apply(0, [((A,), 0, FOREVER, 1), ((A,), 0, FOREVER, 1)]) == [((A,), 0, FOREVER, 1)]
    op.deleting = True
    assert op.apply(0, [((A,), 3, FOREVER, -1)]) == [((A,), 3, FOREVER, -1)]
    assert op.apply(0, [((B,), 3, FOREVER, 1)]) == []
    op.deleting = False
    assert sorted(op.rederive()) == [((A,), 3, FOREVER, 1), ((B,), 3, FOREVER, 1)]


@given(
    before=st.lists(entries(1, (-1, 1, 1)), max_size=4), after=st.lists(entries(1, (-1, 1, 1)), max_size=3),
    settled=st.booleans(),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_a_recursive_set_moves_between_deleting_and_rederiving(
    before: list[list[Entry]], after: list[list[Entry]], settled: bool
) -> None:
    """The phases of a distributed recursion are rounds: each starts from what the last one kept."""
    store: dict[int, list[Entry]] = {}
    came: list[Entry] = []

    def moved(work: Callable[[rows.RecursiveDistinct], list[Entry]]) -> None:
        op = rows.RecursiveDistinct(1)
        for slot in sorted(store):
            op.restore(slot, settle(store[slot]) if settled else store[slot])
        op.keep()
        came.extend(work(op))
        for slot, kept in op.kept():
            store.setdefault(slot, []).extend(kept)

    def delete(batch: list[Entry]) -> Callable[[rows.RecursiveDistinct], list[Entry]]:
        def work(op: rows.RecursiveDistinct) -> list[Entry]:
            op.deleting = True
            return op.apply(0, batch)

        return work

    for batch in before:
        moved(delete(batch))
    moved(rows.RecursiveDistinct.rederive)
    for batch in after:
        moved(delete(batch))
    moved(rows.RecursiveDistinct.rederive)
    every = [entry for batch in [*before, *after] for entry in batch]
    for instant in INSTANTS:
        assert at(came, instant) == unique(1)(at(every, instant), Counter())


# Functions of time

NOW = Apply(function_iri("now"), ())
EARLY = Apply(function_iri("lessThan"), (NOW, literal("1970-01-01T00:00:00.004Z", XSD + "dateTime")))


def since(taken: Sequence[Entry], row: Row, instant: int) -> int:
    """Since when a row has been valid without a gap."""
    while instant > INSTANTS[0] and at(taken, instant - 1)[row] > 0:
        instant -= 1
    return instant


@pytest.mark.parametrize("op", [ops.Extend(NOW, timed=True), ops.Test(EARLY, timed=True)], ids=["extend", "test"])
@given(batches=st.lists(entries(1, (-1, 1, 1)), max_size=5), move=st.booleans(), settled=st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_function_of_time_sees_since_when_a_row_holds(
    op: ops.Extend | ops.Test, batches: list[list[Entry]], move: bool, settled: bool
) -> None:
    now = functions.lookup(function_iri("now"))
    timed = rows.Timed(op, 1)
    timed.keep()
    taken: list[Entry] = []
    came: list[Entry] = []
    store: list[Entry] = []
    for batch in batches:
        if move:
            timed = rows.Timed(op, 1)
            timed.restore(0, settle(store) if settled else store)
            timed.keep()
        came += timed.apply(0, batch)
        store += [entry for _, kept in timed.kept() for entry in kept]
        taken += batch
        for instant in INSTANTS:
            expected: Bag = Counter()
            for row, count in at(taken, instant).items():
                start = since(taken, row, instant)
                if count > 0 and isinstance(op, ops.Extend):
                    expected[(*row, str(now.evaluate(start)))] = 1
                elif count > 0 and start < 4:
                    expected[row] = 1
            assert at(came, instant) == expected


# The end of a plan


def deliver(output: str, remembers: bool = True) -> rows.Deliver:
    return rows.Deliver(ops.Deliver(output), remembers)


def fact(subject: str) -> Row:
    return (subject, C, C, RULE + "rule")


@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@given(
    changes=st.lists(st.tuples(st.integers(0, 1), st.sampled_from([A, B]), st.booleans()), max_size=12),
    cuts=st.sets(st.integers(0, 12)), move=st.booleans(),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_deliver_tells_what_changes_from_instant_to_instant(
    output: str, changes: list[tuple[int, str, bool]], cuts: set[int], move: bool
) -> None:
    """Facts come and go for ever as time goes on, in batches of whole instants."""
    taken: list[Entry] = []
    batches: list[list[Entry]] = [[]]
    time = 0
    for number, (pause, subject, comes) in enumerate(changes):
        time += pause
        if pause and number in cuts:
            batches.append([])
        holds = at(taken, time)[fact(subject)]
        if comes or holds:
            entry = (fact(subject), time, FOREVER, 1 if comes else -1)
            taken.append(entry)
            batches[-1].append(entry)
    op = deliver(output)
    came: list[tuple[int, str]] = []
    kept: list[Entry] = []
    for batch in batches:
        if move:
            op = deliver(output)
            op.restore(0, kept)
        op.keep()
        op.apply(0, batch)
        kept += [entry for _, found in op.kept() for entry in found]
        instants = sorted({entry[1] for entry in batch})
        out = op.flush(instants)
        assert [made.time for made in out] == sorted(made.time for made in out)
        came += [(made.time, made.fact[0]) for made in out if isinstance(made.fact, Triple)]
    assert Counter(came) == Counter(_told(output, taken, {entry[1] for entry in taken}))


def _told(output: str, taken: list[Entry], instants: set[int]) -> Iterable[tuple[int, str]]:
    for instant in sorted(instants):
        now = {row[0] for row, count in at(taken, instant).items() if count > 0}
        before = {row[0] for row, count in at(taken, instant - 1).items() if count > 0}
        told = {"istream": now - before, "dstream": before - now, "rstream": now}[output]
        yield from ((instant, subject) for subject in told)


def test_deliver_names_the_first_rule_and_tells_a_fact_once() -> None:
    op = deliver("istream")
    op.apply(0, [((A, B, C, RULE + "one"), 1, FOREVER, 1), ((A, B, C, RULE + "two"), 1, FOREVER, 1)])
    assert op.flush([1]) == [Output(Triple(A, B, C), 1, "one")]
    op.apply(0, [((A, B, C, RULE + "two"), 2, FOREVER, 1)])
    assert op.flush([2]) == []


def test_deliver_forgets_where_nothing_comes_twice() -> None:
    op = deliver("istream", remembers=False)
    op.apply(0, [(fact(A), 1, FOREVER, 1)])
    assert len(op.flush([1])) == 1
    assert not op.counts
    assert not op.rules


def test_deliver_hands_on_what_holds_always() -> None:
    op = deliver("istream")
    op.apply(0, [((REL, A, RULE + "axiom"), ALWAYS, FOREVER, 1)])
    assert op.flush([ALWAYS]) == [Output(Atom(C, (A,)), ALWAYS, "axiom")]


# Rows, and which operator a node becomes


@pytest.mark.parametrize("fact", [Triple(A, B, ONE), Atom(C, (A, ONE)), Atom(C, ())])
def test_a_fact_as_a_row_and_back(fact: Triple | Atom) -> None:
    assert row_fact(fact_row(fact)) == fact


def test_a_match_looks_at_no_fact_of_another_kind() -> None:
    taken: list[Entry] = [(row, 0, 9, 1) for row in ((A, B, C), (REL, B, C), (REL, B), (REL, A, RULE + "r"))]
    assert rows.Match(ops.Match((0, 1, 2))).apply(0, taken) == [((A, B, C), 0, 9, 1)]
    assert rows.Match(ops.Match((REL, 0))).apply(0, taken) == [((B,), 0, 9, 1), ((A,), 0, 9, 1)]
    assert rows.Match(ops.Match((REL, 0, 1))).apply(0, taken) == [((B, C), 0, 9, 1)]


@given(entries(1, (-1, 1, 2)))
def test_settled_entries_add_up_to_the_same(taken: list[Entry]) -> None:
    settled = settle(taken)
    assert all(at(settled, instant) == at(taken, instant) for instant in INSTANTS)
    assert all(
        at(settled, instant)[row] for row, start, end, _ in settled for instant in INSTANTS if start <= instant < end
    )


def test_a_set_is_as_simple_as_its_place_allows() -> None:
    def made(recursive: bool, negates: bool) -> dict[str, Operator]:
        again = (Input("set", feedback=True),) if recursive else ()
        plan = Plan(
            (
                Node("read", ops.Read(Source())),
                Node("match", ops.Match((0, A, 1)), (Input("read"), *again)),
                Node("other", ops.Match((0, B, 1)), (Input("read"),)),
                Node("two", ops.AntiJoin(()) if negates else ops.Join((), (0, 1)), (Input("match"), Input("other"))),
                Node("emit", ops.Emit((0, A, 1)), (Input("two"),)),
                Node("set", ops.Distinct(3), (Input("emit"),)),
                Node("end", ops.Deliver(), (Input("set"),)),
            )
        )
        return {node.id: operator(node, plan) for node in plan.nodes}

    kinds: dict[tuple[bool, bool], type] = {}
    for recursive, negates in product((False, True), (False, True)):
        kinds[recursive, negates] = type(made(recursive, negates)["set"])
    assert kinds == {
        (False, False): rows.GrowingDistinct, (True, False): rows.GrowingDistinct,
        (False, True): rows.CountingDistinct, (True, True): rows.RecursiveDistinct,
    }  # fmt: skip
