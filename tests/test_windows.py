"""Windows: their texts, and the content of each at an instant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import UsageError
from squall.model import Aggregate, Grouping, Pattern, Select, Source, System, Variable
from squall.model.windows import (
    EMPTY,
    LANDMARK,
    SESSION_KEYS,
    BoundedCountWindow,
    CountWindow,
    ElementWindow,
    FirstTriple,
    HoppingWindow,
    Landmark,
    OpenHoppingWindow,
    OpenSessionWindow,
    SessionWindow,
    SlidingWindow,
    StaticWindow,
    Window,
    duration,
    milliseconds,
    parse_window,
)
from squall.rdf import FOREVER, iri
from squall.testing import assert_outputs

TIMES = st.integers(-30, 30)
SIZES = st.integers(1, 12)
STEPPED = st.builds(HoppingWindow, SIZES, SIZES, st.integers(-9, 9), st.booleans(), st.integers(0, 9))


def _origin(window: HoppingWindow) -> int:
    assert isinstance(window.origin, int)
    return window.origin


# What is valid when


@given(TIMES)
def test_a_landmark_window_never_expires(time: int) -> None:
    assert Landmark().validity(time) == (time, FOREVER)


@given(SIZES, TIMES, TIMES)
def test_a_range_holds_what_came_within_its_size(size: int, time: int, instant: int) -> None:
    start, end = SlidingWindow(size).validity(time)
    assert (start <= instant < end) == (instant - size < time <= instant)


@given(STEPPED, TIMES, st.integers(-6, 6))
def test_a_stepped_window_holds_at_its_instants_what_came_before_within_its_size(
    window: HoppingWindow, time: int, number: int
) -> None:
    instant = _origin(window) + number * window.step
    start, end = window.validity(time)
    if window.closed:
        assert (start <= instant < end) == (instant - window.size < time + window.delay <= instant)
    else:
        assert (start <= instant < end) == (instant - window.size <= time + window.delay < instant)


@given(STEPPED, TIMES)
def test_the_content_of_a_stepped_window_changes_at_its_instants_only(window: HoppingWindow, time: int) -> None:
    for bound in window.validity(time):
        assert (bound - _origin(window)) % window.step == 0


@given(st.builds(OpenHoppingWindow, SIZES, SIZES, st.integers(-9, 9)), TIMES, TIMES)
def test_an_open_window_holds_what_its_oldest_grid_window_has_so_far(
    window: OpenHoppingWindow, time: int, instant: int
) -> None:
    begins = range(_origin(window) - 20 * window.step, instant + 1, window.step)
    oldest = next((begin for begin in begins if begin <= instant < begin + window.size), None)
    start, end = window.validity(time)
    assert (start <= instant < end) == (oldest is not None and oldest <= time <= instant)


@given(st.integers(1, 9), TIMES)
def test_a_grid_begins_at_the_first_triple(unit: int, time: int) -> None:
    begun = HoppingWindow(5, 3, FirstTriple(unit)).begun_at(time)
    assert _origin(begun) % unit == 0
    assert _origin(begun) <= time < _origin(begun) + unit
    assert begun.begun_at(time + 20) == begun


# Texts


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("", LANDMARK),
        ("LANDMARK", LANDMARK),
        ("landmark ", LANDMARK),
        ("RANGE 10s", SlidingWindow(10_000)),
        ("range 10 S", SlidingWindow(10_000)),
        ("[RANGE 500ms]", SlidingWindow(500)),
        ("RANGE 10s STEP 5s", HoppingWindow(10_000, 5_000)),
        ("[ range 1h step 1m ]", HoppingWindow(3_600_000, 60_000)),
        ("RANGE 2d TUMBLING", HoppingWindow(172_800_000, 172_800_000)),
        ("RANGE 1h DELAY 2h", SlidingWindow(3_600_000, 7_200_000)),
        ("range 2s step 1s delay 5s", HoppingWindow(2000, 1000, delay=5000)),
        ("RANGE 2s STEP 1s ORIGIN 500ms", HoppingWindow(2000, 1000, 500)),
        ("[range 2s tumbling origin first delay 1s]", HoppingWindow(2000, 2000, FirstTriple(), delay=1000)),
        ("TRIPLES 100", CountWindow(100)),
        ("[triples 5 tumbling]", CountWindow(5, 5)),
        ("triples 10 step 5", CountWindow(10, 5)),
        ("TRIPLES 5 STEP 5", CountWindow(5, 5)),
        ("TRIPLES 5 STEP 1", CountWindow(5)),
        ("[range 10m triples 1000]", BoundedCountWindow(1000, length=600_000)),
        ("SESSION 30m", SessionWindow(1_800_000)),
        ("[ session 30m by subject ]", SessionWindow(1_800_000, "SUBJECT")),
        ("SESSION 5s BY OBJECT", SessionWindow(5000, "OBJECT")),
        ("SESSION 5s ON CHANGE", OpenSessionWindow(5000)),
        ("session 5s by subject on change", OpenSessionWindow(5000, "SUBJECT")),
    ],
)
def test_a_text_names_a_window(text: str, window: Window) -> None:
    assert parse_window(text) == window


DURATIONS = st.integers(1, 10**10)
NAMED = st.one_of(
    st.just(LANDMARK),
    st.builds(SlidingWindow, DURATIONS),
    st.builds(SlidingWindow, DURATIONS, DURATIONS),
    st.builds(HoppingWindow, DURATIONS, DURATIONS),
    st.builds(HoppingWindow, DURATIONS, DURATIONS, delay=DURATIONS),
    st.builds(BoundedCountWindow, DURATIONS, length=DURATIONS),
    st.builds(SessionWindow, DURATIONS, st.sampled_from(("", *SESSION_KEYS))),
    st.builds(OpenSessionWindow, DURATIONS, st.sampled_from(("", *SESSION_KEYS))),
    st.builds(HoppingWindow, DURATIONS, DURATIONS, DURATIONS | st.builds(FirstTriple)),
    st.builds(lambda size: HoppingWindow(size, size), DURATIONS),
    st.builds(CountWindow, DURATIONS, st.integers(1, 9)),
    st.builds(lambda size: CountWindow(size, size), DURATIONS),
)


@given(NAMED)
def test_a_window_prints_as_the_text_that_names_it(window: Window) -> None:
    assert parse_window(str(window)) == window
    assert parse_window(f"[{window}]".lower() if window != LANDMARK else "landmark") == window


@pytest.mark.parametrize(
    "text",
    [
        "RANGE",
        "RANGE 10",
        "RANGE 10w",
        "RANGE 1.5s",
        "RANGE 10s STEP",
        "RANGE 10s ORIGIN 5s",
        "TRIPLES",
        "TRIPLES -1",
        "TRIPLES 5 STEP",
        "ROWS 5",
        "SESSION",
        "SESSION 5",
        "SESSION 5s BY",
        "SESSION 5s BY PREDICATE",
        "SESSION 5s ON",
        "RANGE 5s TRIPLES",
        "RANGE 5s TRIPLES 5 STEP 2",
        "RANGE 5s TUMBLING TRIPLES 5",
    ],
)
def test_an_invalid_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a window") as caught:
        parse_window(text)
    assert "RANGE 10s STEP 5s" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "RANGE 0s",
        "RANGE 5s STEP 0ms",
        "TRIPLES 0",
        "TRIPLES 5 STEP 0",
        "RANGE 0s TUMBLING",
        "SESSION 0s",
        "RANGE 0s TRIPLES 5",
        "RANGE 5s TRIPLES 0",
    ],
)
def test_an_empty_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is empty"):
        parse_window(text)


@given(st.integers(0, 10**12))
def test_a_length_of_time_and_back(length: int) -> None:
    assert milliseconds(duration(length)) == length


@pytest.mark.parametrize(
    ("length", "text"), [(1, "1ms"), (1500, "1500ms"), (10_000, "10s"), (90_000, "90s"), (7_200_000, "2h"), (0, "0d")]
)
def test_a_length_of_time_is_written_in_the_largest_unit_that_is_exact(length: int, text: str) -> None:
    assert duration(length) == text


@pytest.mark.parametrize("text", ["", "5", "s", "5 weeks", "-5s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a length of time"):
        milliseconds(text)


# Kinds


FIRST = HoppingWindow(4, 2, FirstTriple(1))
COUNTS = "depends_on_later_facts is_retractable counts_triples is_sequential mixes_subjects"
SESSIONS = "depends_on_later_facts has_sessions is_sequential has_sequential_instants"


@pytest.mark.parametrize(
    ("window", "traits"),
    [
        (LANDMARK, "begins_with_event"),
        (EMPTY, "is_empty begins_with_event"),
        (StaticWindow(), "begins_with_event is_static"),
        (ElementWindow(), "expires is_momentary begins_with_event"),
        (SlidingWindow(5), "expires begins_with_event"),
        (SlidingWindow(5, 1), "expires"),
        (HoppingWindow(5, 5), "expires is_stepped"),
        (HoppingWindow(4, 5), "expires is_stepped leaves_gaps"),
        (FIRST, "expires is_stepped begins_at_first_triple is_sequential mixes_subjects has_sequential_instants"),
        (HoppingWindow(4, 2).while_open(), "expires is_stepped"),
        (CountWindow(5), f"expires {COUNTS}"),
        (BoundedCountWindow(5, length=7), f"expires {COUNTS}"),
        (CountWindow(5, 2), f"expires {COUNTS} is_stepped has_sequential_instants"),
        (CountWindow(2, 3), f"expires {COUNTS} is_stepped leaves_gaps has_sequential_instants"),
        (SessionWindow(5), f"expires {SESSIONS} is_stepped mixes_subjects"),
        (SessionWindow(5, "SUBJECT"), f"expires {SESSIONS} is_stepped"),
        (OpenSessionWindow(5, "OBJECT"), f"expires {SESSIONS} is_retractable mixes_subjects"),
    ],
)
def test_the_traits_of_a_kind(window: Window, traits: str) -> None:
    names = (name for name in vars(Window) if isinstance(getattr(window, name), bool))
    assert {name for name in names if getattr(window, name)} == set(traits.split())


@pytest.mark.parametrize(
    ("window", "event", "instants", "position"),
    [
        (LANDMARK, (7, 1, None), [7], None),
        (EMPTY, (7, 1, None), [], None),
        (SlidingWindow(5, 1), (7, 1, None), [8, 13], None),
        (HoppingWindow(4, 2), (7, 0, None), [8, 10, 12], None),
        (HoppingWindow(4, 2).while_open(), (7, 0, None), [7, 10], None),
        (FIRST, (7, 0, None), [], None),
        (FIRST, (7, 2, None), [9, 11, 13], 7),
        (FIRST, (9, 0, 7), [11, 13, 15], 7),
        (CountWindow(5), (7, 0, None), [7], None),
        (CountWindow(5, 2), (7, 1, None), [], 1),
        (CountWindow(5, 2), (7, 1, 1), [7], 2),
        (CountWindow(5, 2), (7, 0, 2), [], 2),
        (BoundedCountWindow(5, length=3), (7, 1, None), [7, 10], None),
        (SessionWindow(5), (7, 1, None), [], None),
        (OpenSessionWindow(5), (7, 1, None), [7], None),
    ],
)
def test_when_the_content_may_change(
    window: Window, event: tuple[int, int, int | None], instants: list[int], position: int | None
) -> None:
    changed, next_position = window.change_instants(*event)
    assert (list(changed), next_position) == (instants, position)


@dataclass(frozen=True)
class DailyWindow(Window):
    """What has come since the last multiple of a number of milliseconds."""

    day: int

    def validity(self, time: int) -> tuple[int, int]:
        return time, (time // self.day + 1) * self.day

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        return self.validity(time), None


def test_a_further_kind_is_a_class() -> None:
    x, y, n = map(Variable, "xyn")
    source = Source(window=DailyWindow(10))
    grouping = Grouping((x,), (Aggregate(n, "count"),))
    facts = Pattern(x, iri("http://example.org/p"), y)
    system = System("q", (source,), (facts,), grouping=grouping, consequences=(Select((x, n)),))
    events = "2 :a :p 1\n5 :a :p 2\n12 :a :p 3"
    assert_outputs(system, events, "2 ?x=:a ?n=1\n5 ?x=:a ?n=2\n12 ?x=:a ?n=1")
    evaluations = "2 ?x=:a ?n=1\n5 ?x=:a ?n=2\n12 ?x=:a ?n=1"
    assert_outputs(system, events, evaluations, output="rstream")


def subclasses(kind: type[Window]) -> list[type[Window]]:
    return [each for child in kind.__subclasses__() for each in (child, *subclasses(child))]


def test_no_other_module_asks_of_which_kind_a_window_is() -> None:
    """The oracle has a definition of its own, and the operator of count windows one assertion."""
    root = Path(__file__).parent.parent
    kinds = "|".join(kind.__name__ for kind in subclasses(Window))
    asks = re.compile(rf"isinstance\([^()]*\b({kinds})\b|case \(?({kinds})\(")
    modules = [
        path.relative_to(root)
        for folder in ("squall", "translators", "planners", "builders")
        for path in (root / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if asks.search(line) and "assert" not in line
    ]
    assert {str(path) for path in modules} == {"squall/testing/oracle/validity.py"}
