"""The Beam builder with live sources: one pipeline with an unbounded read, fed with micro-batches by the driver."""

from __future__ import annotations

import logging
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Job, Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import Event
from squall.streams import Sources, open_source
from tests import brokers
from tests.live import threads, wait
from tests.test_beam import GRANDPARENTS, IMPORTING, REACH, RUNNERS, beam_job, parents, plain, planned, run, triple

pytestmark = [pytest.mark.beam, pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")]

COUNTED = """
PREFIX : <http://example.org/>
SELECT ?a (COUNT(?b) AS ?children) WHERE { ?a :parent ?b } GROUP BY ?a
"""


def chain(at: int) -> list[Event]:
    """Returns the batch of a stream in which each node is the parent of the next: each event but the first has an
    output."""
    return [Event(at, (triple(f"p{at}", "parent", f"p{at + 1}"),))]


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a micro-batch of each batch, however many are at hand."""
    from squall.builders.distributed.io.prefetch import EndOfSources, PrefetchedBatch, Prefetcher

    def take(self: Prefetcher, seconds: float) -> list[PrefetchedBatch | EndOfSources]:
        with suppress(queue.Empty):
            return [self._arrived.get(timeout=seconds)]
        return []

    monkeypatch.setattr(Prefetcher, "take", take)


def at_work() -> set[str]:
    """Returns the names of the threads of a run that has not ended."""
    return threads("reads sources", "runs the pipeline")


def generated(outputs: Iterator[Output]) -> Generator[Output, None, None]:
    """Outputs as what can be closed."""
    assert isinstance(outputs, Generator)
    return outputs


# One pipeline


def test_outputs_come_while_the_sources_are_open_out_of_one_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    import apache_beam

    pipelines: list[Any] = []
    make = apache_beam.Pipeline.__init__
    monkeypatch.setattr(apache_beam.Pipeline, "__init__", lambda self, **inputs: pipelines.append(make(self, **inputs)))
    actual = threading.Semaphore(0)

    def batches() -> Iterator[list[Event]]:
        yield chain(0)
        for at in range(1, 9):
            yield chain(at)
            assert actual.acquire(timeout=60)

    times = []
    for output in squall.build(planned(GRANDPARENTS), "beam").run(batches()):
        times.append(output.time)
        actual.release()
    assert times == [*range(1, 9)]
    assert len(pipelines) == 1


def test_the_steps_of_the_pipeline_have_the_names_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    import apache_beam

    names: set[str] = set()
    go = apache_beam.Pipeline.run

    def noted(self: Any, *inputs: Any) -> Any:
        names.update(label.partition("/")[0] for label in self.applied_labels)
        return go(self, *inputs)

    monkeypatch.setattr(apache_beam.Pipeline, "run", noted)
    run(GRANDPARENTS, iter([chain(0)]))
    description = squall.build(planned(GRANDPARENTS), "beam").describe()  # type: ignore[attr-defined]
    live = description.partition("where a source is live\n")[2].splitlines()
    steps = [line.strip() for line in live if not line.startswith("   ")]
    assert len(steps) == 2
    assert names >= set(steps)


@pytest.mark.more
@pytest.mark.parametrize("name", ["local", "portable"])
def test_reads_are_put_off_where_a_runner_takes_note_of_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan keeps running from bundle to bundle."""
    from squall.builders.beam import live_pipeline

    bundles: list[str] = []
    behind = live_pipeline._behind

    def noted(folder: str) -> int:
        bundles.append(folder)
        return behind(folder)

    monkeypatch.setattr(live_pipeline, "_behind", noted)
    one_by_one(monkeypatch)
    begun = counting(monkeypatch)
    batches = [[event] for event in parents(20)]

    def slowly() -> Iterator[list[Event]]:
        for batch in batches:
            time.sleep(0.05)
            yield batch

    conf = RUNNERS["portable"] if name == "portable" else ()
    job = beam_job(planned(REACH), Options(conf=conf, now=0), bundle_time=0.02)
    assert plain(job.run(slowly())) == run(REACH, batches, builder="iterator")
    assert len(bundles) > 1 if name == "portable" else len(bundles) == 1
    assert begun == [0]


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        (RUNNERS["bundles"], "`BundleBasedDirectRunner` takes no unbounded reads"),
        (RUNNERS["threads"], "several workers of a local runner lose"),
    ],
)
def test_unsuitable_runners_are_refused(conf: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(BuilderError, match=message):
        run(GRANDPARENTS, iter([chain(0)]), *conf)


# State of a live run


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the numbers of the micro-batches at which a plan starts."""
    from squall.builders.beam.live_pipeline import RunningPlan

    begun: list[int] = []
    make = RunningPlan.__init__

    def noted(self: Any, program: Any, steps: int, folder: str, next: int, tuning: Any) -> None:
        begun.append(next)
        make(self, program, steps, folder, next, tuning)

    monkeypatch.setattr(RunningPlan, "__init__", noted)
    return begun


def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets another instance process each micro-batch, as runners may."""
    from squall.builders.beam.live_pipeline import MicroBatch, Work

    process = Work.process

    def forgetful(self: Any, micro_batch: MicroBatch) -> None:
        self.plan = None
        process(self, micro_batch)

    monkeypatch.setattr(Work, "process", forgetful)


def compacting_job(plan: Plan, options: Options) -> Job:
    """Returns a job on Beam that writes its whole state every second micro-batch."""
    return beam_job(plan, options, compaction_interval=2)


@pytest.mark.parametrize("program", [REACH, COUNTED], ids=["recursion", "counts"])
@pytest.mark.parametrize("stays", [True, False])
def test_the_plan_stays_in_memory_or_is_restored_from_files(
    program: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one(monkeypatch)
    if not stays:
        anew(monkeypatch)
    begun = counting(monkeypatch)
    lexer = "jena" if program == REACH else "sparql"
    plan = squall.plan(squall.compile(program, lexer=lexer))
    batches = [[event] for event in parents(12)] + [[Event(12, (triple("p1", "closed", "yes"),))]]
    conf = (("temp_location", str(tmp_path)),)
    result = plain(compacting_job(plan, Options(now=0, conf=conf)).run(iter(batches)))
    assert result == plain(squall.build(plan, options=Options(now=0)).run(batches))
    assert begun == [0] if stays else len(begun) > 8
    assert not list(tmp_path.iterdir())


def test_state_files_are_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one(monkeypatch)
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena", window="RANGE 3ms"))
    most = 0
    for _ in compacting_job(plan, _in(tmp_path)).run(chain(at) for at in range(40)):
        most = max(most, len(list(tmp_path.glob("squall-*/*"))))
    assert 2 < most < 10


def _in(folder: Path, **options: Any) -> Options:
    return Options(conf=(("temp_location", str(folder)),), **options)


@pytest.mark.more
def test_a_repeated_read_begins_after_the_last_result(tmp_path: Path) -> None:
    """One pipeline fails, and another one begins where it ended."""
    from squall.builders.beam.graph import live_graph
    from squall.builders.beam.live_pipeline import (
        add_live_steps,
        delete_batch,
        is_done,
        read_result,
        write_batch,
        write_end,
    )
    from squall.builders.beam.options import Runner
    from squall.builders.distributed.exec.program import Program
    from squall.builders.distributed.plan.physical_plan import physical_plan

    plan, folder = planned(GRANDPARENTS), str(tmp_path)
    program = Program(physical_plan(plan))
    outputs: list[Output] = []
    for number in range(4):
        write_batch(folder, number, chain(number) if number else [])
        pipeline = threading.Thread(
            target=Runner(()).run,
            args=(lambda pipeline: add_live_steps(pipeline, live_graph(plan), program, 10, folder), True),
        )
        pipeline.start()
        wait(lambda: is_done(folder, number))  # noqa: B023
        write_end(folder)
        pipeline.join()
        (tmp_path / "end").unlink()
        outputs += read_result(folder, number).outputs
        delete_batch(folder, number)
    assert [output.time for output in outputs] == [2, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"answers-{number}" for number in range(4)]


def test_the_watermark_follows_the_events(tmp_path: Path) -> None:
    from apache_beam.io.restriction_trackers import OffsetRange
    from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
    from apache_beam.runners.sdf_utils import RestrictionTrackerView, ThreadsafeRestrictionTracker

    from squall.builders.beam.live_pipeline import Read, _Tracker, write_batch, write_end

    for number, events in enumerate([[], chain(7), chain(5000)]):
        write_batch(str(tmp_path), number, events)
    watermark = ManualWatermarkEstimator(None)
    tracker = ThreadsafeRestrictionTracker(_Tracker(OffsetRange(0, 1 << 60)))
    history = []
    for _, number, _ in Read(60).process(str(tmp_path), RestrictionTrackerView(tracker), watermark):
        history.append((number, watermark.current_watermark()))
        if number == 2:
            write_end(str(tmp_path))
    assert history == [(0, None), (1, None), (2, 0.007)]
    assert watermark.current_watermark() == 5


# Ends, and errors


def test_a_producer_that_is_fast_waits(tmp_path: Path) -> None:
    from squall.builders.beam.live import MAX_BATCHES_IN_FLIGHT

    job = beam_job(planned(GRANDPARENTS), _in(tmp_path), max_prefetched_batches=2)
    handed: list[int] = []

    def batches() -> Iterator[list[Event]]:
        while True:
            handed.append(len(handed))
            yield chain(handed[-1])

    with closing(generated(job.run(batches()))) as outputs:
        next(outputs)
        time.sleep(1)
        assert len(handed) < 6 * MAX_BATCHES_IN_FLIGHT
        assert len(list(tmp_path.glob("squall-*/batch-*"))) <= MAX_BATCHES_IN_FLIGHT
        for _ in range(100):
            next(outputs)
        assert len(handed) < 100 + 6 * MAX_BATCHES_IN_FLIGHT
    wait(lambda: not at_work())
    inputs = len(handed)
    time.sleep(0.2)
    assert len(handed) == inputs


def test_a_run_that_is_closed_early_ends_its_pipeline(tmp_path: Path) -> None:
    hold = threading.Event()

    def batches() -> Iterator[list[Event]]:
        yield chain(0)
        yield chain(1)
        hold.wait(60)

    outputs = generated(squall.build(planned(GRANDPARENTS), "beam", _in(tmp_path)).run(batches()))
    assert next(outputs).time == 1
    assert "runs the pipeline" in at_work()
    outputs.close()
    assert "runs the pipeline" not in at_work()
    assert not list(tmp_path.iterdir())
    hold.set()
    wait(lambda: not at_work())


@pytest.mark.more
def test_a_run_that_is_never_closed_does_not_keep_the_process() -> None:
    code = """
import itertools, squall
from squall.rdf import Event
from tests.test_beam_live import GRANDPARENTS, chain, planned
outputs = squall.build(planned(GRANDPARENTS), "beam").run(map(chain, itertools.count()))
print(next(outputs).time)
"""
    root = Path(__file__).parent.parent
    outputs = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert (outputs.returncode, outputs.stdout) == (0, "1\n"), outputs.stderr


def test_an_error_of_the_stream_reaches_the_caller_behind_what_came_before(tmp_path: Path) -> None:
    def batches() -> Iterator[list[Event]]:
        yield chain(0)
        yield chain(1)
        raise OSError("the sensor has gone")

    outputs = squall.build(planned(GRANDPARENTS), "beam", _in(tmp_path)).run(batches())
    assert next(outputs).time == 1
    with pytest.raises(OSError, match="the sensor has gone"):
        next(outputs)
    assert not list(tmp_path.iterdir())
    assert not at_work()


def test_an_error_in_a_micro_batch_fails_the_run(tmp_path: Path) -> None:
    program = GRANDPARENTS + "[grows: (?x :grows ?y) -> (?x :grows child(?y)) (?x :is :grown)]"
    actual, hold = threading.Event(), threading.Event()

    def batches() -> Iterator[list[Event]]:
        yield chain(0)
        yield chain(1)
        assert actual.wait(60)
        yield [Event(2, (triple("ann", "grows", "bob"),))]
        hold.wait(60)  # it does not wait for what comes then

    outputs = squall.build(planned(program), "beam", _in(tmp_path, max_depth=3)).run(batches())
    assert next(outputs).time == 1
    actual.set()
    with pytest.raises(BuilderError, match="grows"):
        next(outputs)
    assert not list(tmp_path.iterdir())
    hold.set()
    wait(lambda: not at_work())


def test_outputs_before_an_error_are_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline outputs them and fails between two polls of its results."""
    from squall.builders.beam.live_pipeline import is_done

    one_by_one(monkeypatch)
    program = GRANDPARENTS + "[grows: (?x :grows ?y) -> (?x :grows child(?y)) (?x :is :grown)]"
    failed = False

    def late(folder: str, number: int) -> bool:
        nonlocal failed
        if number != 1 or failed:
            return is_done(folder, number)
        if Path(folder, "batch-2").exists():
            wait(lambda: "runs the pipeline" not in at_work())
            failed = True
        return False

    batches = [chain(0) + chain(1), [Event(2, (triple("ann", "grows", "bob"),))]]
    monkeypatch.setattr("squall.builders.beam.live.is_done", late)
    outputs = squall.build(planned(program), "beam", Options(max_depth=3)).run(iter(batches))
    assert next(outputs).time == 1
    with pytest.raises(BuilderError, match="grows"):
        next(outputs)


def test_handlers_of_the_root_logger_stay_that_come_while_it_runs() -> None:
    root, added = logging.getLogger(), logging.NullHandler()
    before = root.handlers[:]
    for output in squall.build(planned(GRANDPARENTS), "beam").run(map(chain, range(4))):
        if output.time == 1:
            root.addHandler(added)
    assert root.handlers == [*before, added]
    root.removeHandler(added)


# Sources


@pytest.mark.more
def test_a_folder_that_grows_is_followed_until_a_signal(tmp_path: Path) -> None:
    (tmp_path / "rule.jena").write_text(GRANDPARENTS)
    (tmp_path / "in").mkdir()
    sink = tmp_path / "out.ntt"
    options = ["--source", "in/?follow=yes&poll=50", "--sink", "out.ntt", "--builder", "beam"]
    command = [sys.executable, "-m", "squall", "build", "rule.jena", *options]
    process = subprocess.Popen(command, cwd=tmp_path, env=IMPORTING, stderr=subprocess.PIPE, text=True)
    try:
        for at, (item, other) in enumerate([("ann", "bob"), ("bob", "cat"), ("cat", "dan")]):
            draft = tmp_path / "in" / "part.tmp"
            draft.write_text(f"{at} {triple(item, 'parent', other)}\n")
            draft.rename(tmp_path / "in" / f"part{at}.ntt")
            wait(lambda: sink.exists() and sink.read_text().count("\n") == at)  # noqa: B023
        process.send_signal(signal.SIGTERM)
        _, streams = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, streams
    assert "3 statements read, 2 outputs" in streams


def test_micro_batches_have_only_events_that_rules_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squall.builders.beam.live_pipeline import write_batch

    written: list[Event] = []

    def noted(folder: str, number: int, events: Sequence[Event]) -> None:
        written.extend(events)
        write_batch(folder, number, events)

    monkeypatch.setattr("squall.builders.beam.live.write_batch", noted)
    facts = [triple("a", "parent", "b"), triple("b", "parent", "c"), *(triple("a", "likes", f"b{n}") for n in range(9))]
    (tmp_path / "family.ntt").write_text("".join(f"1 {fact}\n" for fact in facts))
    source = open_source(f"{tmp_path}/?follow=yes&poll=50")
    sources = Sources([source])
    outputs = squall.build(planned(GRANDPARENTS), "beam").run(sources)
    assert next(outputs).time == 1
    sources.stop()
    assert list(outputs) == []
    assert [fact for event in written for fact in event.facts] == facts[:2]
    assert source.reading.statements == len(facts)


def test_redis_gets_acknowledgements_of_delivered_outputs(broker: brokers.Broker, redis: Any) -> None:
    def say(at: int) -> None:
        (event,) = chain(at)
        redis.xadd("k", {"data": f"{event.time} {event.facts[0]}\n"})

    def pending() -> int:
        return int(redis.xpending("k", "g")["pending"])

    sources = Sources([open_source(f"redis://127.0.0.1:{broker.port}/k?format=ntt&group=g&from=first")])
    say(0)
    say(1)
    outputs = squall.build(planned(GRANDPARENTS), "beam").run(sources)
    assert next(outputs).time == 1
    buffer = pending()
    assert buffer >= 1
    say(2)
    assert next(outputs).time == 2
    assert pending() == 1
    sources.stop()
    assert list(outputs) == []
    assert pending() == 0
