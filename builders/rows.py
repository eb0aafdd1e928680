"""What each operator does to rows: the one place that says so, for every builder.

Rows come as *entries* (row, start, end, weight): the row is valid over [start, end) `weight` times more than before; a
negative weight takes validity back. An operator is told entries on its inputs (ports) and answers with entries. Joins
are bilinear and everything else but `Distinct`, `AntiJoin`, `Deliver` and timed expressions is linear in them, so that
entries may come in any order and in any batches, and add up to what the plan means at every instant (snapshot
reducibility, semantics.md 3; the algebra of weighted rows is that of Budiu et al., "DBSP", 2023).

An operator that keeps rows keeps them as entries too: `kept` tells those it has taken into its memory, and `restore`
takes them back, which is how a distributed builder stores and moves state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Protocol

from squall import functions
from squall import operators as ops
from squall.builders.intervals import (
    Intervals,
    Steps,
    add_step,
    changes,
    inside,
    levels,
    outside,
    positive,
    union,
)
from squall.functions.values import value_key
from squall.operators import Apply, Column, Expression, Value
from squall.plan import Node, Plan
from squall.rdf import ALWAYS, FOREVER, Atom, Fact, Term, Triple
from squall.stages import Output

Row = tuple[str, ...]
Entry = tuple[Row, int, int, int]
Kept = tuple[int, list[Entry]]
"""A slot of an operator's memory, and the entries that went into it."""

RULE = "="
"""What the name of a rule behind a fact begins with, as no term does."""


class Operator(Protocol):
    """One node at work."""

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        """Takes entries on an input; answers with entries of its own rows."""
        ...


# Rows


def fact_row(fact: Fact) -> Row:
    """A triple as (s, p, o), an atom as (``@relation``, arguments...)."""
    return fact if isinstance(fact, Triple) else (f"@{fact.relation}", *fact.arguments)


def row_fact(row: Row) -> Fact:
    """The fact of a row, the rule's name behind it left aside."""
    if row[0][0] == "@":
        return Atom(Term(row[0][1:]), tuple(Term(cell) for cell in row[1:] if cell[0] != RULE))
    return Triple(Term(row[0]), Term(row[1]), Term(row[2]))


def picker(columns: Sequence[int]) -> Callable[[Row], Row]:
    """The function that selects columns of a row, as a row."""
    if len(columns) == 1:
        (only,) = columns
        return lambda row: (row[only],)
    return itemgetter(*columns) if columns else lambda row: ()


def key_of(columns: Sequence[int]) -> Callable[[Row], Hashable]:
    """The function that gives what two rows have to agree on."""
    return itemgetter(*columns) if columns else lambda row: ()


def matcher(cells: Sequence[ops.Cell]) -> Callable[[Row], Row | None]:
    """The function from a fact's row to the match's row, or None if the fact does not fit."""
    terms = [(i, cell) for i, cell in enumerate(cells) if isinstance(cell, str)]
    values = [(i, value_key(cell.term)) for i, cell in enumerate(cells) if isinstance(cell, Value)]
    first = {cell: i for i, cell in reversed(list(enumerate(cells))) if isinstance(cell, int)}
    equal = [(i, first[cell]) for i, cell in enumerate(cells) if isinstance(cell, int) and first[cell] != i]
    pick = picker([first[column] for column in sorted(first)])
    size = len(cells)

    def match(row: Row) -> Row | None:
        if (row[0][0] == "@") != atom or (atom and not _has_cells(row, size)):
            return None
        for i, term in terms:
            if row[i] != term:
                return None
        for i, one in equal:
            if row[i] != row[one]:
                return None
        for i, key in values:
            if row[i][0] != '"' or value_key(Term(row[i])) != key:
                return None
        return pick(row)

    atom = isinstance(cells[0], str) and cells[0][0] == "@"
    return match


def _has_cells(row: Row, size: int) -> bool:
    """Whether a fact has so many cells, the rule's name behind it not counted."""
    return len(row) - (row[-1][0] == RULE) == size


def evaluator(expression: Expression) -> Callable[[Row, int], str | bool | None]:
    """The function that computes an expression from a row and the time since which it holds."""
    match expression:
        case Column(index=index):
            return lambda row, time: row[index]
        case Apply(function=iri, arguments=arguments):
            return _call(functions.lookup(iri), [evaluator(argument) for argument in arguments])
        case _:
            return lambda row, time: expression


def _call(
    function: functions.Function, arguments: Sequence[Callable[[Row, int], str | bool | None]]
) -> Callable[[Row, int], str | bool | None]:
    evaluate = function.evaluate
    if function.timed:
        return lambda row, time: evaluate(time, *[argument(row, time) for argument in arguments])
    return lambda row, time: evaluate(*[argument(row, time) for argument in arguments])


# Operators without memory


class Through:
    """Read: facts as they are."""

    def __init__(self, node: Node) -> None:
        pass

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        return list(entries)


class Match:
    """Facts that fit the cells, as rows."""

    def __init__(self, op: ops.Match) -> None:
        self.match = matcher(op.cells)

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        match = self.match
        return [(row, start, end, weight) for fact, start, end, weight in entries if (row := match(fact)) is not None]


class Test:
    """Rows for which the expression is true."""

    __test__ = False

    def __init__(self, op: ops.Test) -> None:
        self.holds = evaluator(op.expression)

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if self.holds(entry[0], entry[1])]


class Extend:
    """Rows with one more column."""

    def __init__(self, op: ops.Extend) -> None:
        self.value = evaluator(op.expression)

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        found = ((self.value(entry[0], entry[1]), entry) for entry in entries)
        return [((*row, value), s, e, w) for value, (row, s, e, w) in found if isinstance(value, str)]


class Emit:
    """Facts, with the name of a rule that makes them behind them."""

    def __init__(self, op: ops.Emit) -> None:
        constants = [cell for cell in op.template if isinstance(cell, str)]
        constants.append(Term(RULE + (op.rules[0] if op.rules else "")))
        self.constants = tuple(constants)
        places = iter(range(len(constants)))
        self.cells = [cell if isinstance(cell, int) else ~next(places) for cell in (*op.template, "")]

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        count = len(self.constants)
        pick = picker([cell + count if cell >= 0 else ~cell for cell in self.cells])
        constants = self.constants
        return [(pick(constants + row), start, end, weight) for row, start, end, weight in entries]


# Operators with memory


class Keeping:
    """An operator with a memory: what every one of them can be asked about it."""

    def __init__(self) -> None:
        self.log: dict[int, list[Entry]] | None = None

    def keep(self) -> None:
        """From now on `kept` is wanted."""
        self.log = {}

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        """Takes back all that `kept` ever gave of a slot, in one call, without answering."""
        raise NotImplementedError

    def kept(self) -> Iterator[Kept]:
        """What has gone into the memory since the last call."""
        if self.log:
            taken, self.log = self.log, {}
            yield from taken.items()

    def note(self, slot: int, entries: Iterable[Entry]) -> None:
        """Entries go into a slot of the memory."""
        if self.log is not None:
            self.log.setdefault(slot, []).extend(entries)


Index = dict[Hashable, list[Entry]]


def store(index: Index, key: Hashable, entry: Entry) -> None:
    """Adds an entry to an index; what has been taken back is settled at once, so that the index holds what is valid."""
    bucket = index.get(key)
    if bucket is None:
        index[key] = [entry]
        return
    bucket.append(entry)
    if entry[3] < 0:
        bucket[:] = settle(bucket)
        if not bucket:
            del index[key]


def _whole(row: Row) -> Row:
    return row


def settle(entries: Iterable[Entry]) -> list[Entry]:
    """Entries that add up to the same, none of which take back another."""
    steps: dict[Row, Steps] = {}
    for row, start, end, weight in entries:
        add_step(steps.setdefault(row, {}), start, end, weight)
    return [(row, start, end, count) for row, found in steps.items() for start, end, count in levels(found)]


class Join(Keeping):
    """Pairs of rows that agree, over the instants at which both are valid; weights multiply.

    The two sides have loops of their own, because most of the time of most programs is spent here. `keep` is nearly
    always all of the left row, then some of the right one; any other has its columns put in order afterwards.
    """

    def __init__(self, op: ops.Join, width: int) -> None:
        super().__init__()
        self.keys = (key_of([left for left, _ in op.on]), key_of([right for _, right in op.on]))
        self.sides: tuple[Index, Index] = ({}, {})
        after = [column - width for column in op.keep if column >= width]
        in_order = op.keep[: len(op.keep) - len(after)] == tuple(range(width))
        self.right = picker(after) if in_order else _whole
        self.arrange = None if in_order else picker(op.keep)

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        self.note(port, entries)
        found = self._lefts(entries) if port == 0 else self._rights(entries)
        if self.arrange is None:
            return found
        arrange = self.arrange
        return [(arrange(row), start, end, weight) for row, start, end, weight in found]

    def _lefts(self, entries: Sequence[Entry]) -> list[Entry]:
        found: list[Entry] = []
        key_of_row, mine, other, right = self.keys[0], self.sides[0], self.sides[1], self.right
        for entry in entries:
            row, start, end, weight = entry
            key = key_of_row(row)
            store(mine, key, entry)
            if key in other:
                found += [
                    (row + right(one), start if start > s else s, end if end < e else e, weight * w)
                    for one, s, e, w in other[key]
                    if start < e and s < end
                ]
        return found

    def _rights(self, entries: Sequence[Entry]) -> list[Entry]:
        found: list[Entry] = []
        key_of_row, mine, other, right = self.keys[1], self.sides[1], self.sides[0], self.right
        for entry in entries:
            row, start, end, weight = entry
            key = key_of_row(row)
            store(mine, key, entry)
            if key in other:
                part = right(row)
                found += [
                    (left + part, start if start > s else s, end if end < e else e, weight * w)
                    for left, s, e, w in other[key]
                    if start < e and s < end
                ]
        return found

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        key_of_row, index = self.keys[slot], self.sides[slot]
        for entry in entries:
            store(index, key_of_row(entry[0]), entry)


class AntiJoin(Keeping):
    """Left rows over the instants at which no right row agrees with them."""

    def __init__(self, op: ops.AntiJoin) -> None:
        super().__init__()
        self.keys = (key_of([left for left, _ in op.on]), key_of([right for _, right in op.on]))
        self.left: Index = {}
        self.right: dict[Hashable, Steps] = {}
        self.covered: dict[Hashable, Intervals] = {}

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        self.note(port, entries)
        return list(self._lefts(entries) if port == 0 else self._rights(entries))

    def _lefts(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        for entry in entries:
            row, start, end, weight = entry
            key = self.keys[0](row)
            store(self.left, key, entry)
            for first, last in outside(start, end, self.covered.get(key, ())):
                yield row, first, last, weight

    def _rights(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        for key in self._cover(entries):
            old = self.covered.get(key, ())
            new = self._settle(key)
            for start, end, sign in changes(old, new):
                for row, left_start, left_end, weight in self.left.get(key, ()):
                    for first, last in inside(left_start, left_end, ((start, end),)):
                        yield row, first, last, -sign * weight

    def _settle(self, key: Hashable) -> Intervals:
        """The instants at which a right row has the key. What adds up to nothing is forgotten."""
        steps = self.right[key]
        covered = positive(steps)
        if covered:
            self.covered[key] = covered
        else:
            self.covered.pop(key, None)
        if not steps:
            del self.right[key]
        return covered

    def _cover(self, entries: Sequence[Entry]) -> Iterable[Hashable]:
        touched: dict[Hashable, None] = {}
        for row, start, end, weight in entries:
            key = self.keys[1](row)
            add_step(self.right.setdefault(key, {}), start, end, weight)
            touched[key] = None
        return touched

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        if slot == 0:
            for entry in entries:
                store(self.left, self.keys[0](entry[0]), entry)
        else:
            for key in self._cover(entries):
                self._settle(key)


class GrowingDistinct(Keeping):
    """A set to which rows are only ever added: what is valid already is not said again."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by
        self.valid: dict[Row, Intervals] = {}

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        found: list[Entry] = []
        valid, by = self.valid, self.by
        for entry in entries:
            row, start, end, _ = entry
            key = row[:by]
            known = valid.get(key)
            if known is None:
                valid[key] = ((start, end),)
                found.append((row, start, end, 1))
            else:
                fresh = list(outside(start, end, known))
                if fresh:
                    valid[key] = union((*known, (start, end)))
                    found += [(row, first, last, 1) for first, last in fresh]
        self.note(0, found)
        return found

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        for row, start, end, _ in entries:
            key = row[: self.by]
            self.valid[key] = union((*self.valid.get(key, ()), (start, end)))


class CountingDistinct(Keeping):
    """A set whose rows may be taken back: a row is valid while more has been said for it than against.

    Rows that agree in the first `by` columns are one. What they have behind these (a fact's rule) is counted apart, so
    that a row that becomes valid comes with what makes it so.
    """

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by
        self.counts: dict[Row, Steps] = {}
        self.makers: dict[Row, dict[Row, Steps]] = {}
        self.valid: dict[Row, Intervals] = {}

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        self.note(0, entries)
        return self._update(self._count(entries))

    def _count(self, entries: Sequence[Entry]) -> Iterable[Row]:
        touched: dict[Row, None] = {}
        for row, start, end, weight in entries:
            key, rest = row[: self.by], row[self.by :]
            add_step(self.counts.setdefault(key, {}), start, end, weight)
            if rest:
                add_step(self.makers.setdefault(key, {}).setdefault(rest, {}), start, end, weight)
            touched[key] = None
        return touched

    def _update(self, keys: Iterable[Row]) -> list[Entry]:
        """Says how the validity of rows has changed, and forgets those of which nothing is left."""
        found = []
        for key in keys:
            new = positive(self.counts.get(key, {}))
            for start, end, sign in changes(self.valid.get(key, ()), new):
                found.append((self._row(key, start), start, end, sign))
            self._set(key, new)
        return found

    def _row(self, key: Row, instant: int) -> Row:
        """The row with what makes it valid at an instant behind it, if anything does."""
        makers = self.makers.get(key)
        if not makers:
            return key
        now = (rest for rest, steps in makers.items() if any(s <= instant < e for s, e in positive(steps)))
        return key + next(now, next(iter(makers)))

    def _set(self, key: Row, valid: Intervals) -> None:
        if valid:
            self.valid[key] = valid
            return
        self.valid.pop(key, None)
        if not self.counts.get(key):
            self.counts.pop(key, None)
            self.makers.pop(key, None)

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        for key in self._count(entries):
            self._set(key, positive(self.counts[key]))


class RecursiveDistinct(CountingDistinct):
    """A set in a recursion from which rows may be taken back: delete and rederive (Gupta, Mumick, Subrahmanian 1993).

    A count alone would let two facts that derive each other hold each other up. So, first, whatever is taken back
    counts as gone at once, and so does all that was derived from it (`apply` while deleting); then what still has a
    derivation from what is left comes back (`rederive`), and additions go on as usual.
    """

    def __init__(self, by: int) -> None:
        super().__init__(by)
        self.deleting = False
        self.unsettled: dict[Row, None] = {}

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        self.note(0, entries)
        keys = self._count(entries)
        if self.deleting:
            self.unsettled.update(dict.fromkeys(keys))
        found = self._delete(entries) if self.deleting else self._update(keys)
        self.note(1, found)
        return found

    def _delete(self, entries: Sequence[Entry]) -> list[Entry]:
        found: list[Entry] = []
        for row, start, end, weight in entries:
            key = row[: self.by]
            valid = self.valid.get(key, ())
            if weight < 0 and valid:
                gone = list(inside(start, end, valid))
                found += [(self._row(key, first), first, last, -1) for first, last in gone]
                self._set(key, tuple(part for one in valid for part in outside(*one, tuple(gone))))
        return found

    def rederive(self) -> list[Entry]:
        """What is valid by its counts but was deleted, or added while deleting, comes in."""
        unsettled, self.unsettled = self.unsettled, {}
        found = self._update(key for key in unsettled if key in self.counts)
        self.note(1, found)
        return found

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        if slot == 0:
            self.unsettled.update(dict.fromkeys(self._count(entries)))
            return
        steps: dict[Row, Steps] = {}
        for row, start, end, weight in entries:
            add_step(steps.setdefault(row[: self.by], {}), start, end, weight)
        for key, found in steps.items():
            self.valid[key] = union((*self.valid.get(key, ()), *((s, e) for s, e, _ in levels(found))))


class Timed(CountingDistinct):
    """An expression that is computed at the time since which a row holds, and again when that changes."""

    def __init__(self, op: ops.Test | ops.Extend, width: int) -> None:
        super().__init__(width)
        self.compute = evaluator(op.expression)
        self.extends = isinstance(op, ops.Extend)

    def _update(self, keys: Iterable[Row]) -> list[Entry]:
        found: list[Entry] = []
        for key in keys:
            old, new = self.valid.get(key, ()), positive(self.counts[key])
            found += self._rows(key, [one for one in old if one not in new], -1)
            found += self._rows(key, [one for one in new if one not in old], 1)
            self._set(key, new)
        return found

    def _rows(self, row: Row, intervals: Iterable[tuple[int, int]], weight: int) -> Iterator[Entry]:
        for start, end in intervals:
            value = self.compute(row, start)
            if not self.extends and value:
                yield row, start, end, weight
            elif self.extends and isinstance(value, str):
                yield (*row, value), start, end, weight


class Deliver(Keeping):
    """The facts of the answer, handed on by an R2S operator at the end of each batch.

    What is no RDF triple (a literal as its subject, anything but an IRI as its predicate) can be read by rules, but is
    in no answer: generalised RDF (RDF 1.1 Concepts, section 7) stays inside.
    """

    def __init__(self, op: ops.Deliver, remembers: bool) -> None:
        super().__init__()
        self.output = op.output
        self.remembers = remembers
        self.counts: dict[Row, Steps] = {}
        self.rules: dict[Row, str] = {}
        """For each fact, a rule that made it when it last became valid."""
        self.touched: dict[Row, Intervals] = {}
        """The facts of this batch, with their validity before it."""
        self.makers: dict[tuple[Row, int], str] = {}
        """A rule that made the fact at this time, in this batch."""

    def apply(self, port: int, entries: Sequence[Entry]) -> list[Entry]:
        entries = [entry for entry in entries if _is_rdf(entry[0])]
        self.note(0, entries)
        for row, start, end, weight in entries:
            fact, rule = row[:-1], row[-1].removeprefix(RULE)
            steps = self.counts.setdefault(fact, {})
            if fact not in self.touched:
                self.touched[fact] = positive(steps)
            add_step(steps, start, end, weight)
            if weight > 0:
                self.makers.setdefault((fact, start), rule)
        return []

    def flush(self, instants: Sequence[int]) -> list[Output]:
        """The outputs of a batch, by time. `instants`: its evaluation instants, in order (integer ms)."""
        found = list(self._whole(instants) if self.output == "rstream" else self._changes())
        if self.remembers:
            self._remember()
        else:
            self.counts.clear()
        self.touched.clear()
        self.makers.clear()
        return sorted(found, key=itemgetter(1))

    def _changes(self) -> Iterator[Output]:
        """What has come (istream) or gone (dstream): the ends of maximal intervals that are new."""
        end = 0 if self.output == "istream" else 1
        for fact, old in self.touched.items():
            before = {interval[end] for interval in old}
            for interval in positive(self.counts[fact]):
                time = interval[end]
                if time not in before and time != FOREVER:
                    yield Output(row_fact(fact), time, self._maker(fact, interval[0]))

    def _whole(self, instants: Sequence[int]) -> Iterator[Output]:
        """All that is valid at each instant (rstream)."""
        valid = [(fact, positive(steps)) for fact, steps in self.counts.items()]
        for instant in instants:
            for fact, intervals in valid:
                for since, end in intervals:
                    if since <= instant < end:
                        yield Output(row_fact(fact), instant, self._maker(fact, since))

    def _maker(self, fact: Row, since: int) -> str:
        """A rule that made the fact when it became valid."""
        return self.makers[fact, since] if (fact, since) in self.makers else self.rules.get(fact, "")

    def _remember(self) -> None:
        """Notes who made what is valid now, and forgets what is not."""
        for fact in self.touched:
            intervals = positive(self.counts[fact])
            if not intervals:
                self.counts.pop(fact)
                self.rules.pop(fact, None)
            else:
                self.rules[fact] = self._maker(fact, intervals[-1][0])

    def restore(self, slot: int, entries: Sequence[Entry]) -> None:
        self.apply(0, entries)
        self._remember()
        self.touched.clear()
        self.makers.clear()


def _is_rdf(row: Row) -> bool:
    return row[0][0] == "@" or (row[0][0] != '"' and row[1][0] == "<")


UNIT: Entry = ((), ALWAYS, FOREVER, 1)
"""The entry of the row without columns."""


def operator(node: Node, plan: Plan) -> Operator:
    """A node of a plan, ready to work."""
    op = node.op
    match op:
        case ops.Read() | ops.Unit():
            return Through(node)
        case ops.Match():
            return Match(op)
        case ops.Test() | ops.Extend() if ops.is_timed(op):
            return Timed(op, plan.widths[node.inputs[0].node])
        case ops.Test():
            return Test(op)
        case ops.Extend():
            return Extend(op)
        case ops.Emit():
            return Emit(op)
        case ops.Join():
            return Join(op, plan.widths[node.inputs[0].node])
        case ops.AntiJoin():
            return AntiJoin(op)
        case ops.Distinct(by=by):
            return _distinct(node, by, plan)
        case ops.Deliver():
            return Deliver(op, remembers(plan))


def remembers(plan: Plan) -> bool:
    """Whether the operation node has to know what it has handed on before."""
    node = next(node for node in plan.nodes if isinstance(node.op, ops.Deliver))
    op = node.op
    assert isinstance(op, ops.Deliver)
    return op.distinct or op.output != "istream" or node.id in plan.retractable


def _distinct(node: Node, by: int, plan: Plan) -> Operator:
    if node.id not in plan.retractable:
        return GrowingDistinct(by)
    recursive = any(node.id in component and len(component) > 1 for component in plan.components)
    return RecursiveDistinct(by) if recursive else CountingDistinct(by)
