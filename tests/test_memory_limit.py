"""The limit on memory: a run that needs more says which node and why, and resumes from its checkpoint exactly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.builders.local.job import IteratorJob, build
from squall.builders.runtime import memory_limit
from squall.builders.runtime.tuning import Tuning
from squall.contracts import Interval, Options, saved_planning
from squall.errors import ArgumentError, BuilderError, UsageError
from squall.process.memory import ResidentMemory, parse_size, size_text
from squall.rdf import Event, Triple, iri
from squall.streams import open_sink

E = "http://example.org/"
PAIRS = f"@prefix : <{E}>.\n[pairs: (?x :at ?z) (?y :at ?z) -> (?x :with ?y)]"
CALM = f"@prefix : <{E}>.\n[calm: (?x :at ?y) noValue(?x :is :Loud) -> (?x :calmAt ?y)]"
AT = iri(E + "at")
HUGE = 1 << 60


class FakeMemory:
    """The size of a process that grows from a number of looks on."""

    def __init__(self, looks: int = 0, small: int = 1, large: int = 1000) -> None:
        self.looks, self.small, self.large = looks, small, large

    def bytes(self) -> int:
        self.looks -= 1
        return self.small if self.looks >= 0 else self.large


def at_one_place(count: int, time: int = 0) -> list[Event]:
    return [Event(time, tuple(Triple(iri(f"{E}s{number}"), AT, iri(E + "place")) for number in range(count)))]


def distinct_times(count: int) -> list[Event]:
    return [Event(number, (Triple(iri(f"{E}s{number}"), AT, iri(E + "place")),)) for number in range(count)]


def set_memory(job: IteratorJob, memory: Any) -> None:
    limit = job.memory_limit
    assert limit is not None
    limit.memory = memory


def limited(text: str, memory: FakeMemory, window: str = "", max_bytes: int = 100, **options: Any) -> IteratorJob:
    plan = squall.plan(squall.compile(text, lexer="jena", window=window or "LANDMARK"))
    job = IteratorJob(plan, Options(memory_limit=max_bytes, **options), Tuning(min_facts_per_instant=1 << 60))
    set_memory(job, memory)
    return job


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 5 * 10**8), ("4GB", 4 * 10**9), ("1.5 GiB", 3 << 29), ("7kb", 7000), ("2TiB", 2 << 40)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4", "4g", "GB", "-1GB", "4 G B", "4.GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"(?s)is no size of memory\nhint: write a number with its unit"):
        parse_size(text)


def test_sizes_as_text() -> None:
    assert [size_text(size) for size in (999, 1000, 1_234_567, 5 * 10**9)] == ["999 B", "1 kB", "1.23 MB", "5 GB"]


def test_the_memory_of_this_process_is_measured() -> None:
    before = ResidentMemory().bytes()
    block = b"x" * 50_000_000
    assert ResidentMemory().bytes() - before > len(block) // 2


def test_a_join_of_rows_that_agree_is_named() -> None:
    with pytest.raises(BuilderError) as caught:
        list(limited(PAIRS, FakeMemory()).run([at_one_place(300)]))
    assert re.search(
        r"`join-\w+` of the rule `pairs` has made [\d,]+ rows of the [\d,]+ rows that it stores", str(caught.value)
    )
    assert "`--statistics`" in str(caught.value)
    assert "`--planner greedy`" in str(caught.value)
    assert "`--memory-limit`" in str(caught.value)


def test_a_state_without_a_window_is_named() -> None:
    with pytest.raises(
        BuilderError,
        match=r"(?s)of the rule `calm` has [\d,]+ rows, the most.*none of them expires.*--window 'RANGE 10m'",
    ):
        list(limited(CALM, FakeMemory()).run([distinct_times(30_000)]))


def test_events_that_wait_are_named() -> None:
    with pytest.raises(BuilderError, match="30,000 facts of the input wait for the end of their instant"):
        list(limited(CALM, FakeMemory()).run([at_one_place(30_000)]))


def test_a_large_window_is_named() -> None:
    with pytest.raises(BuilderError, match=r"(?s)of the rule `calm` has [\d,]+ rows.*shorter windows"):
        list(limited(CALM, FakeMemory(), "RANGE 1h").run([distinct_times(30_000)]))


def test_outputs_count_before_they_are_made() -> None:
    """All of an instant are made in one step."""
    copy = f"@prefix : <{E}>.\n[copy: (?x :at ?y) -> (?y :of ?x)]"
    rows = memory_limit.ROWS_BETWEEN_CHECKS
    needed = rows * memory_limit.BYTES_PER_OUTPUT
    fits = limited(copy, FakeMemory(large=1), max_bytes=needed + 1)
    assert len(list(fits.run([at_one_place(rows)]))) == rows
    with pytest.raises(BuilderError, match="`copy`"):
        list(limited(copy, FakeMemory(large=2), max_bytes=needed + 1).run([at_one_place(rows)]))


def test_a_snapshot_is_limited() -> None:
    job = IteratorJob(squall.plan(squall.compile(PAIRS, lexer="jena")), Options(memory_limit=10**8))
    assert job.snapshot_dataflow is not None
    set_memory(job, FakeMemory(large=1))
    with pytest.raises(BuilderError, match=r"`pairs` has made 4,000,000 rows of the 4,000 rows"):
        list(job.run([at_one_place(2000)]))


def test_another_plan_of_the_run_is_limited_as_well() -> None:
    job = limited(f"{PAIRS}[far: (?x :with ?y) (?y :near ?z) (?z :at ?p) -> (?x :near ?z)]", FakeMemory(looks=10**6))
    list(job.start([], 0))
    list(job.process(at_one_place(2)))
    job.replan(job.plan)
    set_memory(job, FakeMemory())
    with pytest.raises(BuilderError, match="memory limit"):
        list(job.process(at_one_place(300, 1000)))


def test_all_inputs_are_divided_without_a_change_of_outputs() -> None:
    closed = f"{PAIRS}[back: (?x :with ?y) -> (?y :with ?x)] [on: (?x :with ?y) (?y :with ?z) -> (?x :with ?z)]"
    for text in (closed, CALM):
        plan = squall.plan(squall.compile(text, lexer="jena"))
        events = [*at_one_place(20), *at_one_place(30, 1000)]
        tuning = Tuning(first_join_part=1, min_facts_per_instant=1 << 60)
        outputs = IteratorJob(plan, Options(memory_limit=HUGE), tuning).run([events])
        assert sorted(map(str, outputs)) == sorted(map(str, IteratorJob(plan, Options()).run([events])))


# A better plan

CHAIN = f"PREFIX : <{E}> SELECT ?a ?d {{ ?a :p ?b . ?b :q ?c . ?c :r ?d }}"


class StoredRows:
    """A memory that holds what the nodes of a job store, and nothing else."""

    def __init__(self, job: IteratorJob) -> None:
        self.job = job

    def bytes(self) -> int:
        return sum(self.job.dataflow.state().values())


def last_rare(count: int) -> list[list[Event]]:
    """Returns a chain of triples in which each second meets many of the first, and few of the third."""

    def fact(number: int) -> Triple:
        if number % 40 == 0:
            return Triple(iri(f"{E}c{number - 2}"), iri(f"{E}r"), iri(f"{E}d"))
        middle = iri(f"{E}b{number // 2 % 5}")
        ends = iri(f"{E}a{number}"), iri(f"{E}c{number}")
        return Triple(ends[0], iri(f"{E}p"), middle) if number % 2 else Triple(middle, iri(f"{E}q"), ends[1])

    return [[Event(number, (fact(number),))] for number in range(2, count)]


def chain_job(replaceable: bool = True, **options: Any) -> IteratorJob:
    system = squall.compile(CHAIN, lexer="sparql", window="RANGE 1h")
    job = IteratorJob(
        squall.plan(system, replaceable=replaceable), Options(**options), Tuning(min_facts_per_instant=HUGE)
    )
    if job.memory_limit is not None:
        set_memory(job, StoredRows(job))
    return job


def test_a_run_that_reaches_its_limit_moves_to_a_plan_that_stores_less() -> None:
    batches, limit = last_rare(400), 1500
    free = chain_job()
    outputs = sorted(map(str, free.run(batches)))
    assert StoredRows(free).bytes() > 2 * limit
    with pytest.raises(BuilderError, match="the most of all nodes: so many rows hold at the same time\n"):
        list(chain_job(replaceable=False, memory_limit=limit).run(batches))
    job = chain_job(memory_limit=limit)
    assert sorted(map(str, job.run(batches))) == outputs
    assert len(job.plan_changes) == 1
    assert StoredRows(job).bytes() < limit


def test_a_run_that_has_replaced_its_plan_ends_if_it_needs_more_nevertheless() -> None:
    job = chain_job(memory_limit=500)
    with pytest.raises(BuilderError, match="hold at the same time; its plan has been replaced by a better one before"):
        list(job.run(last_rare(400)))
    assert len(job.plan_changes) == 1


def test_a_run_with_a_checkpoint_moves_to_a_plan_that_stores_less(tmp_path: Path) -> None:
    batches = last_rare(400)
    options: dict[str, Any] = {"seed": 1, "checkpoint": tmp_path, "memory_limit": 1500}
    outputs = sorted(map(str, chain_job(seed=1).run(batches)))
    job = chain_job(**options)
    assert sorted(map(str, job.run(batches))) == outputs
    assert len(job.plan_changes) == 1
    planning = saved_planning(build, tmp_path)
    assert planning is not None
    assert planning.statistics is not None
    assert list(chain_job(**options).run(batches)) == []


# With a checkpoint

BATCHES = [
    [
        Event(number * 100, (Triple(iri(f"{E}s{number}"), AT, iri(f"{E}place{number % 3}")),))
        for number in range(first, first + 5)
    ]
    for first in range(0, 40, 5)
]


def durable_run(folder: Path, text: str, memory: FakeMemory | None = None) -> list[str]:
    """Returns what the sink holds after a run, which may have ended by its limit."""
    sink: Any = open_sink(str(folder / "out.ntt"))
    checkpoint, interval = folder / "state", Interval(statements=7)
    plan = squall.plan(squall.compile(text, lexer="jena"))
    limit = None if memory is None else 100
    options = Options(checkpoint=checkpoint, checkpoint_interval=interval, sink=sink, memory_limit=limit, seed=1)
    job = IteratorJob(plan, options)
    if memory is not None:
        set_memory(job, memory)
    with closing(sink):
        sink.start(resume=checkpoint.exists())
        for output in job.run(BATCHES):
            sink.write(output)
    return sorted((folder / "out.ntt").read_text().splitlines())


def limit_error(folder: Path, text: str) -> str | None:
    """Returns how a run ended whose memory is always near the limit; None if it came to the end of its input."""
    try:
        durable_run(folder, text, FakeMemory(large=95))
    except BuilderError as error:
        return str(error)
    return None


@pytest.mark.parametrize("text", [PAIRS, CALM])
def test_a_run_that_ends_between_two_batches_has_saved_all(tmp_path: Path, text: str) -> None:
    """Each start gets one batch further, since a run ends behind a batch only."""
    (tmp_path / "limited").mkdir()
    (tmp_path / "undisturbed").mkdir()
    ends = list(iter(lambda: limit_error(tmp_path / "limited", text), None))
    assert 3 < len(ends) < 100
    assert all("memory limit" in error for error in ends)
    result = durable_run(tmp_path / "limited", text)
    assert result == durable_run(tmp_path / "undisturbed", text)


@pytest.mark.parametrize("text", [PAIRS, CALM])
def test_a_run_that_ends_in_the_middle_of_a_batch_repeats_it(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limit, "ROWS_BETWEEN_CHECKS", 1)
    (tmp_path / "limited").mkdir()
    (tmp_path / "undisturbed").mkdir()
    for looks in (25, 5, 40, 15):
        with pytest.raises(BuilderError, match="memory limit"):
            durable_run(tmp_path / "limited", text, FakeMemory(looks))
    assert durable_run(tmp_path / "limited", text) == durable_run(tmp_path / "undisturbed", text)


@pytest.mark.more
def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "pairs.jena").write_text(PAIRS)
    (tmp_path / "in.nt").write_text("".join(f"<{E}s{number}> <{E}at> <{E}place> .\n" for number in range(3000)))
    command = [sys.executable, "-m", "squall", "run", "pairs.jena", "--source", "in.nt", "--memory-limit", "400MB"]
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert run.returncode == 1
    assert run.stderr.startswith("build error: the run reaches its memory limit (")
    assert re.search(
        r"of the rule `pairs` has made \d,\d{3},\d{3} rows of the \d,\d{3} rows that it stores", run.stderr
    )


# Who does not support it


def test_a_builder_that_does_not_measure_memory_refuses_a_limit() -> None:
    def engine(plan: squall.Plan, options: Options) -> Iterator[Sequence[Event]]:
        raise NotImplementedError

    plan = squall.plan(squall.compile(PAIRS, lexer="jena"))
    with pytest.raises(BuilderError, match=r"(?s)`engine` leaves memory to its engine.*leave `--memory-limit` out"):
        squall.build(plan, engine, Options(memory_limit=HUGE))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -1, "4GB", True])
def test_a_limit_is_a_number_of_bytes(size: Any) -> None:
    plan = squall.plan(squall.compile(PAIRS, lexer="jena"))
    with pytest.raises(ArgumentError, match="`memory_limit` is no number of bytes"):
        squall.build(plan, options=Options(memory_limit=size))
