"""Programs that hypothesis makes up, on Spark itself, in any micro-batches; tests/test_micro_batches.py tries many more
without it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Options, Output
from squall.model import System
from squall.rdf import Event
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.more]

FEATURES = ALL - {"removals", "delete", "insert", "streams", "graphs", "named", "now"}
"""The features that lines of a file can express. They are of one stream, which the address of the file names."""


@pytest.fixture
def conf() -> Iterator[Any]:
    """Yields the settings of the session, and restores them afterwards."""
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, MAX_SINGLE_TASK_BYTES, MAX_SINGLE_TASK_ROWS, session

    spark = session()
    yield spark.conf
    for name in (MAX_SINGLE_TASK_BYTES, MAX_FILES_PER_TRIGGER, MAX_SINGLE_TASK_ROWS):
        spark.conf.unset(name)


@pytest.mark.parametrize(
    ("rows", "size"), [("0", "0"), ("50000", "0"), ("50000", "1000")], ids=["distributed", "in one task", "straight"]
)
@pytest.mark.parametrize("many", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_any_program_in_any_micro_batches(conf: Any, rows: str, size: str, many: int) -> None:
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, MAX_SINGLE_TASK_BYTES, MAX_SINGLE_TASK_ROWS

    conf.set(MAX_FILES_PER_TRIGGER, "1")
    conf.set(MAX_SINGLE_TASK_ROWS, rows)
    conf.set(MAX_SINGLE_TASK_BYTES, size)

    def law(system: System, events: list[Event], facts: list[Event], cuts: list[int]) -> None:
        events = [event for event in events if event.facts]  # a file has no events without
        with tempfile.TemporaryDirectory() as folder:
            assert_as_oracle(system, from_files(system, events, facts, cuts, Path(folder)), events, facts)

    data: dict[str, Any] = {
        "system": systems(features=FEATURES),
        "events": event_streams(features=FEATURES),
        "facts": static_data(features=FEATURES),
        "cuts": st.lists(st.integers(1, 12), max_size=2),
    }
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    quick = settings(max_examples=many, deadline=None, suppress_health_check=checks, phases=[Phase.generate])
    quick(given(**data)(law))()


def from_files(system: System, events: list[Event], facts: list[Event], cuts: list[int], folder: Path) -> list[Output]:
    """Returns the outputs for events in files of a folder, each a micro-batch."""
    places = [0, *sorted({min(cut, len(events)) for cut in cuts}), len(events)]
    (folder / "in").mkdir()
    for number, (begin, end) in enumerate(pairwise(places)):
        path = folder / "in" / f"part{number}.ntt"
        lines = (f"{event.time} {fact}\n" for event in events[begin:end] for fact in event.facts)
        path.write_text("".join(lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    job = squall.build(squall.plan(system), "spark", Options(checkpoint=folder / "checkpoint"))
    return list(job.run(Sources([open_source(str(folder / "in"))]), facts))
