"""The incremental transitive closure agrees with the Floyd-Warshall algorithm at every instant."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squall.builders.runtime.operators import transitive_closure
from squall.builders.runtime.operators.transitive_closure import ClosureIndex, Pair
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.rdf import ALWAYS, FOREVER

LAST = 12
"""The latest start and end of intervals in the tests, except for those that never end."""
INSTANTS = (ALWAYS, *range(LAST + 1))


def warshall(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    reached = set(pairs)
    nodes = sorted({node for pair in reached for node in pair})
    for middle, x, y in itertools.product(nodes, repeat=3):
        if (x, middle) in reached and (middle, y) in reached:
            reached.add((x, y))
    return reached


def at(deltas: Iterable[Pair], instant: int) -> list[tuple[str, str]]:
    return [(x, y) for x, y, start, end in deltas if start <= instant < end]


class Shared:
    """Three closures that divide the start nodes among them."""

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.parts = [ClosureIndex(partial(self._is_own, number), tuning) for number in range(3)]

    @staticmethod
    def _is_own(number: int, node: str) -> bool:
        return zlib.crc32(node.encode()) % 3 == number

    def add(self, deltas: Sequence[Pair]) -> list[Pair]:
        results = [part.add(deltas) for part in self.parts]
        assert all(self._is_own(number, x) for number, pairs in enumerate(results) for x, *_ in pairs)
        return [pair for pairs in results for pair in pairs]

    def expire(self, now: int) -> None:
        for part in self.parts:
            part.expire(now)

    def size(self) -> int:
        return sum(part.size() for part in self.parts)

    @property
    def append_only(self) -> bool:
        return all(part.append_only for part in self.parts)


Make = Callable[..., ClosureIndex | Shared]
"""A function that makes a closure. Its keyword parameter is `tuning`."""


@pytest.fixture(params=[ClosureIndex, Shared], scope="module")
def made(request: pytest.FixtureRequest) -> Make:
    """Makes a closure."""
    kind: Make = request.param
    return kind


def check(batches: Sequence[Sequence[Pair]], found: ClosureIndex | Shared) -> None:
    """Checks after each batch that the output is the closure of what has been added, without duplicates."""
    added: list[Pair] = []
    pairs: list[Pair] = []
    for batch in batches:
        added += batch
        pairs += found.add(list(batch))
        for instant in INSTANTS:
            assert Counter(at(pairs, instant)) == Counter(warshall(at(added, instant)))
    assert found.size() == len({pair[:2] for pair in pairs})
    assert all(start < end for _, _, start, end in pairs)


nodes = st.sampled_from("abcdefg")
times = st.integers(0, LAST)
starts = st.just(ALWAYS) | times
growing = st.tuples(nodes, nodes, starts, st.just(FOREVER))
timed = st.tuples(nodes, nodes, starts, times | st.just(FOREVER))
batches_of_growing = st.lists(growing, max_size=14).map(lambda steps: sorted(steps, key=lambda step: step[2]))


def cut(steps: Sequence[Pair], size: int) -> list[Sequence[Pair]]:
    return [steps[place : place + size] for place in range(0, len(steps), size)]


@pytest.fixture(params=[0, 10**9], ids=["bits", "sets"], scope="module")
def tuning(request: pytest.FixtureRequest) -> Tuning:
    """Bits as soon as may be, or never."""
    return Tuning(min_pairs_to_compare=request.param, max_bits_per_pair=10**9)


class TestGrowing:
    @given(batches_of_growing, st.integers(1, 14))
    def test_steps_that_never_end(self, made: Make, tuning: Tuning, steps: list[Pair], size: int) -> None:
        check(cut(steps, size), result := made(tuning=tuning))
        assert result.append_only

    @given(batches_of_growing, st.lists(st.lists(timed, max_size=4), max_size=3), st.integers(1, 14))
    def test_then_some_that_end(
        self, made: Make, tuning: Tuning, steps: list[Pair], batches: list[list[Pair]], size: int
    ) -> None:
        check([*cut(steps, size), *batches], made(tuning=tuning))


@given(st.lists(st.lists(timed, max_size=8), max_size=4))
@example([[("a", "b", 0, 3), ("b", "a", 1, 2)], [("a", "b", 2, 5)]])
def test_steps_of_all_kinds(made: Make, batches: list[list[Pair]]) -> None:
    check(batches, made())


@given(st.lists(st.tuples(nodes, nodes, st.integers(0, 3), st.integers(1, 5)), max_size=25), st.integers(1, 3))
def test_expired_steps_are_deleted(made: Make, steps: list[tuple[str, str, int, int]], size: int) -> None:
    """With windows, no step begins before the time up to which others have been deleted."""
    now = 0
    result = made()
    pairs: list[Pair] = []
    added: list[Pair] = []
    for batch in cut(steps, size):
        now += batch[0][2]
        deltas = [(x, y, now, now + length) for x, y, _, length in batch]
        added += deltas
        pairs += result.add(deltas)
        result.expire(now)
        assert result.size() == len({(x, y) for x, y, _, end in pairs if end > now})
    for instant in range(now + 6):
        assert Counter(at(pairs, instant)) == Counter(warshall(at(added, instant)))
    result.expire(now + 6)
    assert result.size() == 0
    for part in [result] if isinstance(result, ClosureIndex) else result.parts:
        state = (
            [part.timed]
            if isinstance(part.timed, transitive_closure._IntervalClosure)
            else [part.timed.steps, part.timed.sources]
        )
        assert not any(value for item in state for name, value in vars(item).items() if name != "tuning")


def chain(length: int) -> list[Pair]:
    return [(str(n), str(n + 1), ALWAYS, FOREVER) for n in range(length)]


@pytest.mark.parametrize("size", [1, 7, 200])
@pytest.mark.parametrize("turned", [1, -1])
def test_a_long_chain(made: Make, size: int, turned: int) -> None:
    """The chain is long enough for bit sets, and would overflow the stack of a recursive implementation."""
    result = made()
    results = [pair for batch in cut(chain(200)[::turned], size) for pair in result.add(list(batch))]
    expected = {(str(x), str(y), ALWAYS, FOREVER) for x in range(201) for y in range(x + 1, 201)}
    assert len(results) == len(expected)
    assert set(results) == expected
    for part in [result] if isinstance(result, ClosureIndex) else result.parts:
        assert part.append_only
        assert part.append_only.sets is transitive_closure._BitSets


def test_sets_are_chosen_again_where_pairs_are_few() -> None:
    result = ClosureIndex()
    result.add(chain(100))
    bits = result.append_only and result.append_only.sets
    pairs = [(f"x{n}", f"y{n}", ALWAYS, FOREVER) for n in range(2000)]
    assert set(result.add(pairs)) == set(pairs)
    assert len(result.add([("100", "x0", ALWAYS, FOREVER)])) == 202
    assert result.append_only
    assert (bits, result.append_only.sets) == (transitive_closure._BitSets, transitive_closure._HashSets)


def test_a_cycle_leads_everywhere(made: Make) -> None:
    outputs = made().add([*chain(300), ("300", "0", ALWAYS, FOREVER)])
    assert len(set(outputs)) == len(outputs) == 301**2


def test_known_steps_are_not_stored_again() -> None:
    for is_own in (None, lambda _: True, lambda _: False):
        result = ClosureIndex(is_own)
        results = [result.add([("a", "b", time, FOREVER), ("b", "c", time, FOREVER)]) for time in range(5)]
        assert not any(results[1:])
        assert result.append_only
        assert len(result.append_only.steps) == 2


def test_the_longest_lasting_path_is_output_at_once() -> None:
    """A pair is valid while all steps of its best path are: the step that expires first is the bottleneck."""
    steps = [("a", "b", 0, 5), ("b", "d", 0, 9), ("a", "c", 0, 7), ("c", "d", 0, 8)]
    assert sorted(ClosureIndex().add(steps)) == sorted([*steps, ("a", "d", 0, 7)])
