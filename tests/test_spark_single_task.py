"""Micro-batches on Spark that one task processes from lines to outputs: when that happens, and what it needs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.plan import Plan
from squall.rdf import Event
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle, static, stream

pytest.importorskip("pyspark")

from squall.builders.spark import (
    MAX_CACHED_STATE_ROWS,
    MAX_FILES_PER_TRIGGER,
    MAX_SINGLE_TASK_BYTES,
    MAX_SINGLE_TASK_ROWS,
    session,
)
from squall.builders.spark.settings import RECURSION_FACTOR

pytestmark = [pytest.mark.spark, pytest.mark.more]

PATHS = """@prefix : <http://example.org/>.
[pair:  (?a :edge ?b) (?b :edge ?c) -> (?a :pair ?c)]
[reach: (?a :edge ?b) -> (?a :reach ?b)]
[far:   (?a :edge ?b) (?b :reach ?c) -> (?a :reach ?c)]
[room:  (?a :pair ?b) (?b :in ?r) -> (?a :near ?r)]
"""
EVENTS = [stream(f"{time} :n{time % 7} :edge :n{time * 3 % 7}")[0] for time in range(24)]
ROOMS = static(":n1 :in :r1\n:n2 :in :r2")


@pytest.fixture(autouse=True)
def conf() -> Iterator[Any]:
    result = session().conf
    result.set(MAX_FILES_PER_TRIGGER, "1")
    yield result
    for name in (MAX_SINGLE_TASK_BYTES, MAX_FILES_PER_TRIGGER, MAX_CACHED_STATE_ROWS, MAX_SINGLE_TASK_ROWS):
        result.unset(name)


def steps(plans: list[str]) -> list[list[str]]:
    return [re.findall(r"MapInArrow (.*?)\(|Exchange", plan)[::-1] for plan in plans]


def written(folder: Path, events: list[Event], files: int) -> Path:
    folder.mkdir()
    size = -(-len(events) // files)
    for number in range(files):
        path = folder / f"part{number}.ntt"
        lines = (f"{event.time} {fact}\n" for event in events[number * size :][:size] for fact in event.facts)
        path.write_text("".join(lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def run(plan: Plan, folder: Path) -> list[Any]:
    job = squall.build(plan, "spark", Options(checkpoint=folder.with_suffix(".kept")))
    return list(job.run(Sources([open_source(str(folder))]), ROOMS))


@pytest.mark.parametrize("window", ["LANDMARK", "RANGE 5ms", "RANGE 6ms STEP 3ms"])
def test_a_small_micro_batch_is_a_single_task_without_shuffles(
    tmp_path: Path, spark_jobs: list[str], window: str
) -> None:
    """This includes iterations, static data, and buffered rows."""
    system = squall.compile(PATHS, lexer="jena", window=window)
    assert_as_oracle(system, run(squall.plan(system), written(tmp_path / "in", EVENTS, files=4)), EVENTS, ROOMS)
    batches = 6 if "STEP" in window else 5  # static data, four files, and at the end what has waited
    assert steps(spark_jobs) == [["all in one task"]] * batches


def test_small_and_large_micro_batches_can_alternate(tmp_path: Path, conf: Any, spark_jobs: list[str]) -> None:
    conf.set(MAX_SINGLE_TASK_BYTES, str(608 // RECURSION_FACTOR))
    system = squall.compile(PATHS, lexer="jena", window="RANGE 9ms STEP 3ms")
    folder = written(tmp_path / "in", EVENTS, files=8)
    sizes = {3: 10, 4: 10, 6: 10}
    for number, times in sizes.items():
        path = folder / f"part{number}.ntt"
        path.write_text(path.read_text() + "\n" * 100 * times)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    assert_as_oracle(system, run(squall.plan(system), folder), EVENTS, ROOMS)
    straight = [step == ["all in one task"] for step in steps(spark_jobs)]
    assert True in straight[straight.index(False) :], "also after one that many tasks have processed"


@pytest.mark.parametrize(("name", "value"), [(MAX_SINGLE_TASK_BYTES, "0"), (MAX_SINGLE_TASK_ROWS, "0")])
def test_single_task_batches_can_be_disabled(
    tmp_path: Path, conf: Any, spark_jobs: list[str], name: str, value: str
) -> None:
    conf.set(name, value)
    system = squall.compile(PATHS, lexer="jena")
    assert_as_oracle(system, run(squall.plan(system), written(tmp_path / "in", EVENTS, files=2)), EVENTS, ROOMS)
    assert ["all in one task"] not in steps(spark_jobs)


def test_a_large_state_stays_partitioned(tmp_path: Path, conf: Any, spark_jobs: list[str]) -> None:
    conf.set(MAX_SINGLE_TASK_ROWS, "20")
    conf.set(MAX_CACHED_STATE_ROWS, "20")
    system = squall.compile(PATHS, lexer="jena")
    assert_as_oracle(system, run(squall.plan(system), written(tmp_path / "in", EVENTS, files=4)), EVENTS, ROOMS)
    assert steps(spark_jobs)[0] == ["all in one task"]
    assert ["all in one task"] not in steps(spark_jobs)[3:]


def test_one_batch_can_be_a_single_task(tmp_path: Path, conf: Any, spark_jobs: list[str]) -> None:
    conf.unset(MAX_FILES_PER_TRIGGER)
    system = squall.compile(PATHS, lexer="jena", window="RANGE 6ms STEP 3ms")
    sources = Sources([open_source(str(written(tmp_path / "in", EVENTS, files=4)))])
    outputs = list(squall.build(squall.plan(system), "spark").run(sources, ROOMS))
    assert_as_oracle(system, outputs, EVENTS, ROOMS)
    assert sources.sources[0].reading.statements == len(EVENTS), "static data are none of its statements"
    assert steps(spark_jobs) == [["all in one task"]]


def test_the_single_task_reads_spooled_live_input(tmp_path: Path, spark_jobs: list[str]) -> None:
    """Spark does not read the lines and pass them on."""
    system = squall.compile(PATHS, lexer="jena", window="RANGE 5ms")
    batches = [EVENTS[place : place + 6] for place in range(0, len(EVENTS), 6)]
    job = squall.build(squall.plan(system), "spark", Options(checkpoint=tmp_path / "kept"))
    assert_as_oracle(system, list(job.run(iter(batches), ROOMS)), EVENTS, ROOMS)
    assert {tuple(step) for step in steps(spark_jobs)} == {("all in one task",)}


def slowly(batches: Iterator[Any]) -> Iterator[Any]:
    time.sleep(1)
    yield from batches


def test_the_same_worker_runs_each_single_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the worker has the state in its cache."""
    from squall.builders.spark.store import Store

    reader = Store.reader
    request = tmp_path / "asked"

    def noted(self: Store) -> Any:
        read = reader(self)

        def noting(file: Any) -> Any:
            with request.open("a") as log:
                log.write(f"{file[-2]}\n")
            return read(file)

        return noting

    monkeypatch.setattr(Store, "reader", noted)
    system = squall.compile(PATHS, lexer="jena", window="RANGE 50ms")
    session().range(0, 2, 1, 2).mapInArrow(slowly, "id long").collect()  # so that there are two workers
    assert_as_oracle(system, run(squall.plan(system), written(tmp_path / "in", EVENTS, files=6)), EVENTS, ROOMS)
    assert not request.exists() or "state" not in request.read_text()
