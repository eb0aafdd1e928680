"""Generated programs on Beam: with files that workers read, with spooled input, and live."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Options, Output
from squall.model import System
from squall.plan import Plan
from squall.rdf import Event
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests.test_beam_live import anew, compacting_job, one_by_one

pytestmark = [pytest.mark.beam, pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")]

IN_FILES = ALL - {"removals", "streams", "graphs", "named", "count", "output specs"}
"""The features that lines of N-Triples can express: they are of one stream, and each line is an event of its own."""
Run = Callable[[Plan, list[Event], list[Event], list[int]], list[Output]]


def from_files(plan: Plan, events: list[Event], facts: list[Event], cuts: list[int]) -> list[Output]:
    """Returns the outputs for events in files of a folder, which workers read."""
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(cut(events, cuts)):
            lines = (f"{event.time} {fact}\n" for event in part for fact in event.facts)
            (Path(folder) / f"part{number}.ntt").write_text("".join(lines))
        return run(plan, Sources([open_source(folder)]), facts)


def at_once(plan: Plan, events: list[Event], facts: list[Event], cuts: list[int]) -> list[Output]:
    """Returns the outputs of one pipeline with spooled input."""
    return run(plan, cut(events, cuts), facts)


def live(plan: Plan, events: list[Event], facts: list[Event], cuts: list[int]) -> list[Output]:
    """Returns the outputs micro-batch by micro-batch, all of which one instance processes."""
    with pytest.MonkeyPatch.context() as patched:
        one_by_one(patched)
        return run(plan, iter(cut(events, cuts)), facts)


def moved(plan: Plan, events: list[Event], facts: list[Event], cuts: list[int]) -> list[Output]:
    """Returns the outputs micro-batch by micro-batch, each of which another instance processes."""
    with pytest.MonkeyPatch.context() as patched:
        anew(patched)
        one_by_one(patched)
        return list(compacting_job(plan, Options(now=0)).run(iter(cut(events, cuts)), facts))


def run(plan: Plan, batches: Any, facts: Sequence[Event]) -> list[Output]:
    return list(squall.build(plan, "beam", Options(now=0)).run(batches, facts))


def cut(events: list[Event], cuts: list[int]) -> list[list[Event]]:
    places = [0, *sorted({min(place, len(events)) for place in cuts}), len(events)]
    return [events[begin:end] for begin, end in pairwise(places)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("run", "features"), [(from_files, IN_FILES), (at_once, ALL), (live, ALL), (moved, ALL)])
@pytest.mark.parametrize("many", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_any_program(run: Run, features: frozenset[str], many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], cuts: list[int]) -> None:
        if run is from_files:
            events = [event for event in events if event.facts]  # a file has no events without
        outputs = run(squall.plan(system), events, facts, cuts)
        assert_as_oracle(system, outputs, events, facts)

    data: dict[str, Any] = {
        "system": systems(features=features),
        "events": event_streams(features=features),
        "facts": static_data(features=features),
        "cuts": st.lists(st.integers(1, 12), max_size=2),
    }
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    quick = settings(max_examples=many, deadline=None, suppress_health_check=checks, phases=[Phase.generate])
    quick(given(**data)(law))()
