"""The transitive closure against Floyd and Warshall's at every instant."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squall.builders import closure
from squall.builders.closure import Closure, Pair
from squall.rdf import ALWAYS, FOREVER

LAST = 12
"""No interval of the tests begins or ends later, but for those that never end."""
INSTANTS = (ALWAYS, *range(LAST + 1))


def warshall(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    reached = set(pairs)
    nodes = sorted({node for pair in reached for node in pair})
    for middle, x, y in itertools.product(nodes, repeat=3):
        if (x, middle) in reached and (middle, y) in reached:
            reached.add((x, y))
    return reached


def at(entries: Iterable[Pair], instant: int) -> list[tuple[str, str]]:
    return [(x, y) for x, y, start, end in entries if start <= instant < end]


def check(batches: Sequence[Sequence[Pair]]) -> Closure:
    """After each batch what has been told must be the closure of what has been added, nothing twice."""
    found = Closure()
    added: list[Pair] = []
    told: list[Pair] = []
    for batch in batches:
        added += batch
        told += found.add(list(batch))
        for instant in INSTANTS:
            assert Counter(at(told, instant)) == Counter(warshall(at(added, instant)))
    assert found.size() == len({pair[:2] for pair in told})
    assert all(start < end for _, _, start, end in told)
    return found


nodes = st.sampled_from("abcdefg")
times = st.integers(0, LAST)
starts = st.just(ALWAYS) | times
growing = st.tuples(nodes, nodes, starts, st.just(FOREVER))
timed = st.tuples(nodes, nodes, starts, times | st.just(FOREVER))
batches_of_growing = st.lists(growing, max_size=14).map(lambda steps: sorted(steps, key=lambda step: step[2]))


def cut(steps: Sequence[Pair], size: int) -> list[Sequence[Pair]]:
    return [steps[place : place + size] for place in range(0, len(steps), size)]


@pytest.fixture(params=[0, 10**9], ids=["bits", "sets"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits as soon as may be, or never."""
    monkeypatch.setattr(closure, "_SMALL", request.param)
    monkeypatch.setattr(closure, "_DENSE", 10**9)


@pytest.mark.usefixtures("kind")
class TestGrowing:
    @given(batches_of_growing, st.integers(1, 14))
    def test_steps_that_never_end(self, steps: list[Pair], size: int) -> None:
        found = check(cut(steps, size))
        assert found.growing

    @given(batches_of_growing, st.lists(st.lists(timed, max_size=4), max_size=3), st.integers(1, 14))
    def test_then_some_that_end(self, steps: list[Pair], batches: list[list[Pair]], size: int) -> None:
        check([*cut(steps, size), *batches])


@given(st.lists(st.lists(timed, max_size=8), max_size=4))
@example([[("a", "b", 0, 3), ("b", "a", 1, 2)], [("a", "b", 2, 5)]])
def test_steps_of_all_kinds(batches: list[list[Pair]]) -> None:
    check(batches)


@given(st.lists(st.tuples(nodes, nodes, st.integers(0, 3), st.integers(1, 5)), max_size=25), st.integers(1, 3))
def test_what_has_ended_is_forgotten(steps: list[tuple[str, str, int, int]], size: int) -> None:
    """In windows: no step begins before the time up to which others have been forgotten."""
    now = 0
    found = Closure()
    told: list[Pair] = []
    added: list[Pair] = []
    for batch in cut(steps, size):
        now += batch[0][2]
        entries = [(x, y, now, now + length) for x, y, _, length in batch]
        added += entries
        told += found.add(entries)
        found.expire(now)
        assert found.size() == len({(x, y) for x, y, _, end in told if end > now})
    for instant in range(now + 6):
        assert Counter(at(told, instant)) == Counter(warshall(at(added, instant)))
    found.expire(now + 6)
    assert found.size() == 0
    assert not any((found.timed.after, found.timed.before, found.timed.ending, found.timed.ends))


def chain(length: int) -> list[Pair]:
    return [(str(n), str(n + 1), ALWAYS, FOREVER) for n in range(length)]


@pytest.mark.parametrize("size", [1, 7, 200])
@pytest.mark.parametrize("turned", [1, -1])
def test_a_long_chain(size: int, turned: int) -> None:
    """Long enough for bits, and for recursion to overflow if there were any."""
    found = Closure()
    told = [pair for batch in cut(chain(200)[::turned], size) for pair in found.add(list(batch))]
    expected = {(str(x), str(y), ALWAYS, FOREVER) for x in range(201) for y in range(x + 1, 201)}
    assert len(told) == len(expected)
    assert set(told) == expected
    assert found.growing
    assert found.growing.kind is closure._Bits


def test_sets_are_chosen_again_where_pairs_are_few() -> None:
    found = Closure()
    found.add(chain(100))
    bits = found.growing and found.growing.kind
    pairs = [(f"x{n}", f"y{n}", ALWAYS, FOREVER) for n in range(2000)]
    assert set(found.add(pairs)) == set(pairs)
    assert len(found.add([("100", "x0", ALWAYS, FOREVER)])) == 202
    assert found.growing
    assert (bits, found.growing.kind) == (closure._Bits, closure._Sets)


def test_a_cycle_leads_everywhere() -> None:
    found = Closure()
    told = found.add([*chain(300), ("300", "0", ALWAYS, FOREVER)])
    assert len(set(told)) == len(told) == 301**2


def test_the_widest_way_is_told_at_once() -> None:
    """The bottleneck: a pair is valid while all steps of its best path are."""
    steps = [("a", "b", 0, 5), ("b", "d", 0, 9), ("a", "c", 0, 7), ("c", "d", 0, 8)]
    assert sorted(Closure().add(steps)) == sorted([*steps, ("a", "d", 0, 7)])
