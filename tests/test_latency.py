"""Latency and throughput of batches and windows: what builders report, and what is made of it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.builders.local.job import IteratorJob
from squall.contracts import BatchMetrics, Options
from squall.errors import BuilderError
from squall.model.windows import FirstTriple, HoppingWindow
from squall.observe.latency import COUNTS, SECONDS, Distribution, Figures, Latencies
from squall.rdf import ALWAYS, Columns, Event, Triple, iri
from squall.streams import Sources, open_source
from tests.conftest import Squall

QUERY = """REGISTER QUERY q AS SELECT ?a ?c FROM STREAM <urn:s> [RANGE 10s STEP 5s] FROM STREAM <urn:t> [RANGE 1m]
WHERE { ?a <urn:p> ?c }"""


def event(time: int, stream: str = "urn:s", size: int = 1) -> Event:
    facts = tuple(Triple(iri(f"urn:{time}"), iri("urn:p"), iri(f"urn:{number}")) for number in range(size))
    return Event(time, facts, stream)


def latencies(query: str = QUERY) -> Latencies:
    return Latencies(squall.plan(squall.compile(query, lexer="csparql")))


# Distributions


@given(st.lists(st.floats(1e-6, 1e6), min_size=1), st.floats(0, 1))
def test_quantiles_are_exact_to_within_one_percent(values: list[float], share: float) -> None:
    distribution = Distribution(SECONDS)
    for value in values:
        distribution.record(value)
    exact = sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
    assert distribution.quantile(share) == pytest.approx(exact, rel=0.0101)
    assert distribution.quantile(1) <= distribution.maximum == max(values)
    assert distribution.count == len(values)
    assert distribution.total == pytest.approx(sum(values))


@given(st.lists(st.floats(1e-6, 1e9) | st.sampled_from(SECONDS)))
def test_buckets_count_what_is_at_most_their_bound(values: list[float]) -> None:
    distribution = Distribution(SECONDS)
    for value in values:
        distribution.record(value)
    *bounded, last = distribution.cumulative()
    assert [count for _, count in bounded] == [sum(value <= bound for value in values) for bound in SECONDS]
    assert [float(text) for text, _ in bounded] == pytest.approx(SECONDS)
    assert last == ("+Inf", len(values))


def test_bounds_are_in_order_and_without_rounding_errors() -> None:
    assert list(SECONDS) == sorted(SECONDS)
    assert list(COUNTS) == sorted(COUNTS)
    assert [text for text, _ in Distribution(SECONDS).cumulative()][:4] == ["0.0001", "0.00025", "0.0005", "0.001"]


def test_a_distribution_of_nothing_has_no_quantiles() -> None:
    assert Distribution(SECONDS).quantile(0.5) == 0


# Windows

WINDOWS = st.builds(
    HoppingWindow,
    size=st.integers(1, 30),
    step=st.integers(1, 30),
    origin=st.integers(-5, 30) | st.builds(FirstTriple, st.integers(1, 7)),
    closed=st.booleans(),
    delay=st.integers(0, 5),
)
EVENTS = st.lists(st.builds(event, st.integers(0, 90), st.sampled_from(["urn:s", "urn:t"]), st.integers(1, 3)))


@given(WINDOWS, EVENTS, st.data())
def test_each_statement_counts_in_the_step_that_it_changes(
    window: HoppingWindow, events: list[Event], data: st.DataObject
) -> None:
    """The oracle knows all events, and counts the instants at which each begins to hold."""
    events.sort(key=lambda item: item.time)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=5)))
    read = [item for item in events if item.stream == "urn:s"]
    expected: Counter[int] = Counter()
    for item in read:
        expected[window.begun_at(read[0].time).validity(item.time)[0]] += len(item.facts)
    measured = measuring(window)
    completed: dict[int, int] = {}
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        batch: Sequence[Event] = events[begin:end]
        if batch:
            same_stream = len({item.stream for item in batch}) == 1
            watermark = batch[-1].time
            completed |= {at: number for at in expected if at <= watermark and at not in completed}
            statements = sum(len(item.facts) for item in batch)
            content = Columns.of(batch) if same_stream and data.draw(st.booleans()) else batch
            measured(BatchMetrics(10 * number, 10 * number + 1, 10 * number + 3, statements, watermark, content))
    (figures,) = measured.windows.values()
    assert figures.statements.count == len(completed)
    assert figures.statements.total == sum(expected[at] for at in completed)
    assert figures.statements.maximum == max((expected[at] for at in completed), default=0)
    assert figures.latency.total == 3 * len(completed)
    if completed.keys() == expected.keys() and read == events:
        assert figures.seconds.total == pytest.approx(measured.batches.seconds.total)


def measuring(window: HoppingWindow) -> Latencies:
    """Returns the latencies of a plan that reads one stream by a window."""
    from squall.model import Source
    from squall.plan.operators import Scan

    plan: Any = SimpleNamespace(nodes=[SimpleNamespace(op=Scan(Source("urn:s", window)))])
    return Latencies(plan)


def test_windows_are_those_of_the_plan() -> None:
    assert set(latencies().windows) == {("urn:s", "RANGE 10s STEP 5s")}


def test_a_window_of_all_streams_leaves_out_those_with_a_window_of_their_own() -> None:
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    window, own = HoppingWindow(10, 10), HoppingWindow(20, 20)
    measured = Latencies(squall.plan(squall.model.with_windows(system, window, {"urn:t": own})))
    measured(BatchMetrics(0, 0, 1, 3, 30, [event(1), event(2), event(3, "urn:t")]))
    assert {label: figures.statements.total for label, figures in measured.windows.items()} == {
        ("", str(window)): 2, ("urn:t", str(own)): 1
    }  # fmt: skip


def test_late_and_static_events_complete_no_step() -> None:
    measured = latencies()
    measured(BatchMetrics(0, 0, 1, 1, 6000, [event(1000)]))
    measured(BatchMetrics(1, 1, 2, 2, 12_000, [event(ALWAYS), event(2000)]))
    (figures,) = measured.windows.values()
    assert figures.statements.total == 1


def test_a_heartbeat_is_no_batch_and_completes_a_step() -> None:
    measured = latencies()
    measured(BatchMetrics(0, 0, 1, 1, 1000, [event(1000)]))
    measured(BatchMetrics(4, 4, 6, 0, 9000, [Event(9000, ())]))
    (figures,) = measured.windows.values()
    assert measured.batches.latency.count == 1
    assert (figures.latency.total, figures.seconds.total, figures.statements.total) == (2, 3, 1)


def test_the_summary_has_quantiles_and_medians() -> None:
    measured = latencies()
    assert measured.lines() == []
    measured(BatchMetrics(0, 0.5, 2, 300, 5000, [event(1000, size=300)]))
    assert measured.lines() == [
        "  1 batch: latency p50 2.00 s, p95 2.00 s, p99 2.00 s, max 2.00 s",
        "    medians: 300 statements, 1.50 s, 200 statements/s",
        "  1 step of the window RANGE 10s STEP 5s of urn:s: latency p50 2.00 s, p95 2.00 s, p99 2.00 s, max 2.00 s",
        "    medians: 300 statements, 1.50 s, 200 statements/s",
    ]


# Builders


def measured_run(options: Callable[[Callable[[BatchMetrics], None]], Options]) -> list[BatchMetrics]:
    batches = [[event(1000), event(2000)], [event(7000, size=3)], []]
    measured: list[BatchMetrics] = []
    plan = squall.plan(squall.compile(QUERY, lexer="csparql"))
    outputs = list(IteratorJob(plan, options(measured.append)).run(batches))
    assert outputs == list(IteratorJob(plan, Options()).run(batches))
    return measured


@pytest.mark.parametrize("durable", [False, True])
def test_the_iterator_measures_each_batch(tmp_path: Path, durable: bool) -> None:
    measured = measured_run(lambda on_batch: Options(checkpoint=tmp_path / "c" if durable else None, on_batch=on_batch))
    assert [(batch.statements, batch.watermark) for batch in measured] == [(2, 1999), (3, 6999)]
    times = [at for batch in measured for at in (batch.arrived, batch.began, batch.ended)]
    assert times == sorted(times)


def test_a_batch_ends_when_its_outputs_have_been_taken() -> None:
    measured: list[BatchMetrics] = []
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    for _ in IteratorJob(squall.plan(system), Options(on_batch=measured.append)).run([[event(1)], [event(2)]]):
        time.sleep(0.02)
    assert [batch.ended - batch.began >= 0.02 for batch in measured] == [True, True]


class Live:
    """A live source, whose second event is there before the first one has been processed."""

    uri = "urn:live"
    live, timed, removals, messages = True, True, False, False
    size, idle, earliest = None, 5000, ALWAYS

    def __init__(self) -> None:
        self.reading = SimpleNamespace(statements=0, bytes=0)
        self.received = threading.Event()

    def batches(self) -> Iterator[Sequence[Event]]:
        yield [event(1)]
        yield [event(2)]
        self.received.set()

    def stop(self) -> None:
        pass


def test_a_batch_of_a_live_source_arrives_when_its_thread_receives_it() -> None:
    measured: list[BatchMetrics] = []
    source: Any = Live()
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    sources = Sources([source, open_source("/dev/null?format=nt")])
    for _ in IteratorJob(squall.plan(system), Options(on_batch=measured.append)).run(sources):
        assert source.received.wait(20)
    first, *further = measured
    assert sum(batch.statements for batch in measured) == 2
    assert all(batch.arrived < first.ended <= batch.began for batch in further)


def test_other_builders_refuse_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = squall.plan(squall.compile(QUERY, lexer="csparql"))
    with pytest.raises(BuilderError, match="does not measure its batches") as error:
        squall.build(plan, lambda plan, options: None, Options(on_batch=print))  # type: ignore[arg-type]
    assert "`--latency`" in (error.value.hint or "")


@pytest.mark.beam
@pytest.mark.more
@pytest.mark.parametrize("live", [False, True])
def test_beam_measures_micro_batches_and_bounded_runs(live: bool) -> None:
    pytest.importorskip("apache_beam")
    measured: list[BatchMetrics] = []
    plan = squall.plan(squall.compile(QUERY, lexer="csparql"))
    batches = [[event(1000), event(2000)], [event(7000, size=3)]]
    job = squall.build(plan, "beam", Options(on_batch=measured.append))
    outputs = list(job.run(iter(batches) if live else batches, [event(ALWAYS)]))
    assert sorted(outputs) == sorted(IteratorJob(plan, Options()).run(batches, [event(ALWAYS)]))
    assert sum(batch.statements for batch in measured) == 5
    assert all(batch.arrived <= batch.began <= batch.ended for batch in measured)
    assert all((batch.events is not None) == live for batch in measured)
    assert live or len(measured) == 1


@pytest.mark.spark
@pytest.mark.more
@pytest.mark.parametrize("live", [False, True])
def test_spark_measures_micro_batches(tmp_path: Path, live: bool) -> None:
    pytest.importorskip("pyspark")
    measured: list[BatchMetrics] = []
    plan = squall.plan(squall.compile(QUERY, lexer="csparql"))
    batches = [[event(1000), event(2000)], [event(7000, size=3)]]
    folder = tmp_path / "in"
    folder.mkdir()
    for number, batch in enumerate(batches):
        lines = [f"{item.time} {fact}" for item in batch for fact in item.facts]
        (folder / f"{number}.ntt").write_text("".join(f"{line}\n" for line in lines))
        os.utime(folder / f"{number}.ntt", (number, number))  # Spark reads the oldest one first
    sources = Sources([open_source(f"{folder}?stream=urn:s")])
    conf = (("spark.squall.maxFilesPerTrigger", "1"),)
    job = squall.build(plan, "spark", Options(on_batch=measured.append, conf=() if live else conf))
    outputs = list(job.run(iter(batches) if live else sources, [event(ALWAYS)]))
    assert sorted(outputs) == sorted(IteratorJob(plan, Options()).run(batches, [event(ALWAYS)]))
    counts = [batch.statements for batch in measured if batch.statements]
    assert sum(counts) == 5
    assert live or counts == [2, 3]
    assert all(batch.arrived <= batch.began <= batch.ended for batch in measured)


# The command line


def test_the_summary_of_a_run_has_latencies(tmp_path: Path, squall: Squall) -> None:
    (tmp_path / "q.csparql").write_text(QUERY.replace(" FROM STREAM <urn:t> [RANGE 1m]", ""))
    (tmp_path / "s.ntt").write_text("".join(f"{n}000 <urn:{n}> <urn:p> <urn:o> .\n" for n in range(12)))
    arguments = "run", f"{tmp_path}/q.csparql", "--source", f"{tmp_path}/s.ntt?stream=urn:s"
    _, answers, summary = squall(*arguments, "--latency")
    assert "1 batch: latency p50" in summary
    assert "2 steps of the window RANGE 10s STEP 5s of urn:s: latency p50" in summary
    code, plain_answers, plain_summary = squall(*arguments)
    assert "latency" not in plain_summary
    assert (code, plain_answers) == (0, answers)


def test_figures_have_a_rate_of_their_own() -> None:
    figures = Figures()
    figures.record(latency=1, seconds=0.5, statements=100)
    assert figures.rate.total == 200
