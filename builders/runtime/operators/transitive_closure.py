"""The transitive closure of pairs that are added one after the other, each valid over an interval.

A new step from a to b yields pairs from all sources of a to all targets of b, at the instants at which they hold
(Italiano 1986, "Amortized efficiency of a path retrieval data structure"). No pair is searched twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import compress, groupby, repeat
from operator import itemgetter, or_
from typing import Any, TypeVar

from squall.builders.runtime.intervals import Interval, Intervals, inside, outside, union
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.rdf import ALWAYS, FOREVER

T = TypeVar("T")
Pair = tuple[str, str, int, int]
"""(x, y, start, end): y can be reached from x, in one step or more, over [start, end)."""


class ClosureIndex:
    """The closure of the steps that were added.

    While all steps last for ever and come in the order of time, the closure consists of sets of nodes without times.
    From the first other step on, it consists of intervals.

    Args:
        is_own: Selects the nodes whose targets the closure outputs; None: all. All steps have to be added in either
            case. Closures that divide the nodes among them find all pairs without any communication (a *decomposable*
            recursion: Wolfson and Silberschatz, "Distributed Processing of Logic Programs", SIGMOD 1988).
        tuning: The tuning values of the runtime.
    """

    def __init__(self, is_own: Callable[[str], bool] | None = None, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.append_only: _AppendOnlyClosure | None = _AppendOnlyClosure(is_own, tuning)
        self.timed: _IntervalClosure | _SourceClosure = (
            _IntervalClosure(tuning) if is_own is None else _SourceClosure(is_own)
        )

    def add(self, deltas: Iterable[Pair]) -> list[Pair]:
        """Adds steps in any order; returns the new pairs and instants of the closure, none of them twice.

        An interval without instants adds nothing. The intervals of a pair may touch, in one result or in several.
        """
        # In the order of start, longest first, so that a pair is seldom output in parts.
        pairs = sorted((delta for delta in deltas if delta[2] < delta[3]), key=itemgetter(3), reverse=True)
        pairs.sort(key=itemgetter(2))
        if self.append_only and not self.append_only.accepts(pairs):
            self.timed.load(self.append_only.steps)
            self.append_only = None
        return self.append_only.add(pairs) if self.append_only else self.timed.add(pairs)

    def add_lasting(self, steps: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Adds steps that always hold and returns the new pairs. No other steps may have been added."""
        assert self.append_only is not None
        return self.append_only.add_lasting(steps)

    def expire(self, now: int) -> None:
        """Drops pairs and intervals that ended at `now` or before. No later delta begins before `now`."""
        self.timed.expire(now)

    def size(self) -> int:
        """Returns the number of pairs."""
        return self.append_only.size if self.append_only else self.timed.size


class _BitSets:
    """Sets of numbers as the bits of integers: small and fast if there are many pairs per node."""

    @staticmethod
    def of(numbers: Iterable[int]) -> int:
        return reduce(or_, (1 << number for number in numbers), 0)

    @staticmethod
    def has(bits: int, number: int) -> int:
        return bits >> number & 1

    @staticmethod
    def without(bits: int, other: int) -> int:
        return bits & ~other

    @staticmethod
    def count(bits: int) -> int:
        return bits.bit_count()

    @staticmethod
    def single(bits: int) -> int:
        """Returns the number in a set of one."""
        return bits.bit_length() - 1

    @staticmethod
    def select(bits: int, names: Sequence[T]) -> Iterator[T]:
        """Returns those of the names whose numbers are in the set."""
        if bits.bit_count() * _MAX_BITS_PER_MEMBER > bits.bit_length():
            return compress(names, bin(bits)[:1:-1].encode().translate(_DIGITS))
        return map(names.__getitem__, _ones(bits))


_MAX_BITS_PER_MEMBER = 64
"""If fewer than one of so many bits is set, a search for the next one is faster than a look at all."""
_DIGITS = bytes(digit == ord("1") for digit in range(256))


def _ones(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


class _HashSets:
    """Sets of numbers as hash sets, for few pairs per node."""

    of = set

    @staticmethod
    def has(members: set[int], number: int) -> bool:
        return number in members

    @staticmethod
    def without(members: set[int], other: set[int]) -> set[int]:
        return members - other

    count = len

    @staticmethod
    def single(members: set[int]) -> int:
        return next(iter(members))

    @staticmethod
    def select(members: set[int], names: Sequence[T]) -> Iterator[T]:
        return map(names.__getitem__, members)


class _OwnNodes:
    """The nodes to which a closure is restricted.

    Attributes:
        selects: Selects them by name.
        numbers: Their numbers.
        other_steps: The steps from other nodes.
    """

    def __init__(self, selects: Callable[[str], bool]) -> None:
        self.selects = selects
        self.numbers: set[int] = set()
        self.other_steps: set[tuple[int, int]] = set()


class _AppendOnlyClosure:
    """The closure of steps that never end, each of which begins no earlier than those before it.

    Nodes are numbered in the order in which they come.

    Attributes:
        before: The sources of each node; only own nodes, if there is a restriction to these.
        after: The nodes that each node leads to in one step.
        steps: The steps that the closure follows from.
        size: The number of pairs.
        pending: What is to be added to `before`.
        fresh: What was added to `before` and is not output yet.
        own: The own nodes, if there is a restriction to these.
    """

    # It has many attributes, since each step and pair uses them: nodes in an object of their own cost 6 % of `tree`.

    def __init__(self, is_own: Callable[[str], bool] | None, tuning: Tuning) -> None:
        self.tuning = tuning
        self.own = None if is_own is None else _OwnNodes(is_own)
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.before: list[Any] = []
        self.after: list[list[int]] = []
        self.steps: list[Pair] = []
        self.size = 0
        self.pending: dict[int, Any] = {}
        self.fresh: dict[int, Any] = {}
        self.sets: type[_HashSets | _BitSets] = _HashSets
        self.compared_at = (tuning.min_pairs_to_compare, tuning.min_pairs_to_compare)

    def accepts(self, pairs: Sequence[Pair]) -> bool:
        """Returns whether the steps never end and come in the order of time."""
        latest = self.steps[-1][2] if self.steps else ALWAYS
        return not pairs or (pairs[0][2] >= latest and all(delta[3] == FOREVER for delta in pairs))

    def add(self, pairs: Iterable[Pair]) -> list[Pair]:
        new_pairs: list[Pair] = []
        for start, deltas in groupby(pairs, key=itemgetter(2)):
            self._propagate(self._add_steps(deltas))
            new_pairs += self._new_pairs(start, FOREVER)
        return new_pairs

    def add_lasting(self, steps: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        self._propagate(self._add_steps((x, y, ALWAYS, FOREVER) for x, y in steps))
        return self._new_pairs()

    def _add_steps(self, deltas: Iterable[Pair]) -> list[int]:
        """Adds steps and returns their nodes, sources first as far as there is such an order."""
        graph: dict[int, dict[int, Pair]] = {}
        for step in deltas:
            graph.setdefault(self._number(step[0]), {})[self._number(step[1])] = step
        pending = self.pending
        for node, following in graph.items():
            sources: Any = self.before[node] | self.sets.of((node,) if self._is_source(node) else ())
            for other, step in following.items():
                if not self._is_implied(node, other):
                    self.steps.append(step)
                    self.after[node].append(other)
                    pending[other] = pending[other] | sources if other in pending else sources
        return _postorder(graph)[::-1]

    def _is_source(self, node: int) -> bool:
        """Returns whether the targets of a node are output."""
        return self.own is None or node in self.own.numbers

    def _is_implied(self, node: int, other: int) -> bool:
        """Returns whether a step is known or makes no difference, and notes it."""
        if self.own is None or node in self.own.numbers:
            return bool(self.sets.has(self.before[other], node))
        is_multiple = (node, other) in self.own.other_steps
        self.own.other_steps.add((node, other))
        return is_multiple

    def _number(self, name: str) -> int:
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            if self.own is not None and self.own.selects(name):
                self.own.numbers.add(number)
            self.names.append(name)
            self.before.append(self.sets.of(()))
            self.after.append([])
        return number

    def _propagate(self, order: list[int]) -> None:
        """Propagates pending sources until nothing changes.

        It takes one iteration, and one more for each level of cycles within cycles (Kam and Ullman 1976).
        """
        visited = set(order)
        before, after, pending, fresh = self.before, self.after, self.pending, self.fresh
        while pending:
            for node in order:  # the list grows meanwhile
                if node not in pending:
                    continue
                new: Any = self.sets.without(pending.pop(node), before[node])
                if not new:
                    continue
                before[node] |= new
                fresh[node] = fresh[node] | new if node in fresh else new
                for other in after[node]:
                    pending[other] = pending[other] | new if other in pending else new
                    if other not in visited:
                        visited.add(other)
                        order.append(other)
                self._count(self.sets.count(new))

    def _count(self, more: int) -> None:
        """Counts pairs. When pairs or nodes have doubled, it switches to the kind of sets that is smaller."""
        self.size += more
        if self.size > self.compared_at[0] or len(self.names) > self.compared_at[1]:
            max_bits = self.tuning.max_bits_per_pair * self.size
            self._convert(_BitSets if len(self.names) ** 2 < max_bits else _HashSets)
            self.compared_at = (2 * self.size, 2 * len(self.names))

    def _convert(self, kind: type[_HashSets | _BitSets]) -> None:
        """Converts all sets to a kind."""
        old, everything = self.sets, range(len(self.names))
        if kind is not old:
            self.sets = kind
            self.before[:] = [kind.of(old.select(members, everything)) for members in self.before]
            for sets in (self.fresh, self.pending):
                sets.update((node, kind.of(old.select(members, everything))) for node, members in sets.items())

    def _new_pairs(self, *times: int) -> list[Any]:
        """Returns the fresh pairs, with the times behind them.

        Nodes with a single new source are grouped by it, because there are often many of them.
        """
        kind, names = self.sets, self.names
        nodes: list[Any] = []
        single: dict[int, list[str]] = {}
        for node, new in self.fresh.items():
            if kind.count(new) == 1:
                single.setdefault(kind.single(new), []).append(names[node])
            else:
                nodes.extend(zip(kind.select(new, names), repeat(names[node]), *map(repeat, times)))
        for source, targets in single.items():
            nodes.extend(zip(repeat(names[source]), targets, *map(repeat, times)))
        self.fresh = {}
        return nodes


def _postorder(graph: Mapping[int, Iterable[int]]) -> list[int]:
    """Returns the nodes in the order in which a depth-first search leaves them."""
    left: list[int] = []
    visited: set[int] = set()
    for root in graph:
        stack = [root]
        while stack:
            node = stack.pop()
            if node < 0:
                left.append(~node)
            elif node not in visited:
                visited.add(node)
                stack.append(~node)  # popped again when all its descendants are done
                stack += [following for following in graph.get(node, ()) if following not in visited]
    return left


class _IntervalClosure:
    """The closure of steps that begin and end at any time.

    Attributes:
        after: The targets of each node, and when they can be reached.
        before: The sources of each node.
        ending: The pairs of which an interval ends, by the time of its end.
        ends: These times, as a heap.
        size: The number of pairs.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.after: dict[str, dict[str, Intervals]] = {}
        self.before: dict[str, set[str]] = {}
        self.ending: dict[int, list[Pair]] = {}
        self.ends: list[int] = []
        self.size = 0

    def load(self, steps: Iterable[Pair]) -> None:
        """Adds steps that never end, in the order of time, without output."""
        shared: dict[int, Intervals] = {}
        for x, y, start, end in _AppendOnlyClosure(None, self.tuning).add(steps):
            self.after.setdefault(x, {})[y] = shared.setdefault(start, ((start, end),))
            self.before.setdefault(y, set()).add(x)
            self.size += 1

    def add(self, pairs: Iterable[Pair]) -> list[Pair]:
        new_pairs: list[Pair] = []
        for x, y, start, end in pairs:
            for first, last in list(outside(start, end, self.after.get(x, {}).get(y, ()))):
                sources = [(x, first, last), *self._sources(x, y, first, last)]
                targets = [(y, first, last), *self._targets(x, y, first, last)]
                new_pairs += self._connect(sources, targets)
        self._note_ends(new_pairs)
        return new_pairs

    def _sources(self, x: str, y: str, start: int, end: int) -> Iterator[_Endpoint]:
        """Yields the sources of x at the instants at which they do not lead to y: otherwise the targets of y would be
        known."""
        for source in self.before.get(x, ()):
            targets = self.after[source]
            for first, last in _uncovered(start, end, targets[x], targets.get(y)):
                yield source, first, last

    def _targets(self, x: str, y: str, start: int, end: int) -> Iterator[_Endpoint]:
        """Yields the targets of y at the instants at which x does not lead to them."""
        targets = self.after.get(x, {})
        for target, valid in self.after.get(y, {}).items():
            for first, last in _uncovered(start, end, valid, targets.get(target)):
                yield target, first, last

    def _connect(self, sources: Iterable[_Endpoint], targets: Sequence[_Endpoint]) -> list[Pair]:
        """Connects each source to each target while both are valid; returns the new pairs."""
        pairs: list[Pair] = []
        for source, source_start, source_end in sources:
            known_targets = self.after.setdefault(source, {})
            for target, start, end in targets:
                start = source_start if source_start > start else start
                end = source_end if source_end < end else end
                if start >= end:
                    continue
                valid = known_targets.get(target)
                if valid is None:
                    known_targets[target] = ((start, end),)
                    self.before.setdefault(target, set()).add(source)
                    self.size += 1
                    pairs.append((source, target, start, end))
                else:
                    fresh = [(source, target, *part) for part in outside(start, end, valid)]
                    if fresh:
                        pairs += fresh
                        known_targets[target] = _extended(valid, start, end)
        return pairs

    def _note_ends(self, pairs: Iterable[Pair]) -> None:
        ending = self.ending
        for pair in pairs:
            end = pair[3]
            if end in ending:
                ending[end].append(pair)
            elif end != FOREVER:
                ending[end] = [pair]
                heappush(self.ends, end)

    def expire(self, now: int) -> None:
        while self.ends and self.ends[0] <= now:
            for x, y, _, _ in self.ending.pop(heappop(self.ends)):
                self._forget(x, y, now)

    def _forget(self, x: str, y: str, now: int) -> None:
        valid = self.after.get(x, {}).get(y)
        if valid is None:
            return
        if valid[-1][1] > now:
            self.after[x][y] = tuple(part for part in valid if part[1] > now)
            return
        del self.after[x][y]
        self.before[y].discard(x)
        self.size -= 1
        for neighbours, node in ((self.after, x), (self.before, y)):
            if not neighbours[node]:
                del neighbours[node]


_Endpoint = tuple[str, int, int]
"""A node, and an interval over which it is a source or a target."""


def _uncovered(start: int, end: int, valid: Intervals, covered: Intervals | None) -> Iterable[Interval]:
    """Returns the parts of [start, end) that are valid and not covered."""
    if covered or len(valid) > 1:
        return [part for interval in inside(start, end, valid) for part in outside(*interval, covered or ())]
    first, last = valid[0]
    first = start if start > first else first
    last = end if end < last else last
    return ((first, last),) if first < last else ()


def _extended(valid: Intervals, start: int, end: int) -> Intervals:
    """Returns the intervals and one more."""
    *earlier, (first, last) = valid
    if first <= start <= last < end:
        # A repeated step extends the last interval: by far the most frequent case in windows.
        return (*earlier, (first, end))
    return union((*valid, (start, end)))


class _PairValidity:
    """When pairs are valid, by their first and second node. Expired intervals may be dropped."""

    def __init__(self) -> None:
        self.by: dict[str, dict[str, Intervals]] = {}
        self.ending: dict[int, set[tuple[str, str]]] = {}
        self.ends: list[int] = []
        self.size = 0

    def of(self, first: str) -> Mapping[str, Intervals]:
        return self.by.get(first, _NONE)

    def extend(self, first: str, second: str, start: int, end: int) -> list[Interval]:
        """Makes a pair valid over an interval; returns the new parts of it."""
        targets = self.by.setdefault(first, {})
        valid = targets.get(second, ())
        fresh = list(outside(start, end, valid))
        if not fresh:
            return fresh
        targets[second] = _extended(valid, start, end) if valid else ((start, end),)
        self.size += not valid
        if end != FOREVER:
            if end not in self.ending:
                heappush(self.ends, end)
            self.ending.setdefault(end, set()).add((first, second))
        return fresh

    def expire(self, now: int) -> None:
        """Drops intervals that ended at `now` or before."""
        while self.ends and self.ends[0] <= now:
            for first, second in self.ending.pop(heappop(self.ends)):
                valid = self.by.get(first, _NONE).get(second)
                left = tuple(interval for interval in valid or () if interval[1] > now)
                if left:
                    self.by[first][second] = left
                elif valid is not None:
                    del self.by[first][second]
                    self.size -= 1
                    if not self.by[first]:
                        del self.by[first]


_NONE: Mapping[str, Intervals] = {}


class _SourceClosure:
    """The targets of some nodes, by steps that begin and end at any time.

    From each of these nodes, a new step is followed as far as it leads to new targets, at the instants at which it
    does.

    Args:
        is_own: Selects the nodes.
    """

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        self.is_own = is_own
        self.steps = _PairValidity()
        self.sources = _PairValidity()
        """The own nodes that lead to each node."""

    @property
    def size(self) -> int:
        return self.sources.size

    def load(self, steps: Iterable[Pair]) -> None:
        """Adds steps without output."""
        self.add(steps)

    def add(self, pairs: Iterable[Pair]) -> list[Pair]:
        new_pairs: list[Pair] = []
        for x, y, start, end in pairs:
            for first, last in self.steps.extend(x, y, start, end):
                begin = [(x, y, first, last)] if self.is_own(x) else []
                before = ((source, y, inside(first, last, valid)) for source, valid in self.sources.of(x).items())
                begin += [(source, node, *part) for source, node, parts in before for part in parts]
                new_pairs += self._follow(begin)
        return new_pairs

    def _follow(self, waiting: list[Pair]) -> Iterator[Pair]:
        """Yields new pairs: sources lead to nodes over intervals, and to whatever these lead to."""
        while waiting:
            source, node, start, end = waiting.pop()
            for first, last in self.sources.extend(node, source, start, end):
                yield source, node, first, last
                for following, valid in self.steps.of(node).items():
                    waiting += [(source, following, *part) for part in inside(first, last, valid)]

    def expire(self, now: int) -> None:
        self.steps.expire(now)
        self.sources.expire(now)
