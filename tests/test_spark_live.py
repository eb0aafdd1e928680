"""Live sources and sinks without truncation on Spark: acknowledgements, commits and cleanup.

What lies between is in tests/test_spool.py, processes that are killed are in tests/test_kills.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import squall
from squall import functions
from squall.contracts import Options, Output
from squall.errors import BuilderError, SinkError
from squall.rdf import Event, Term
from squall.streams import Sources, open_source
from squall.streams.sinks.outbox import Outbox
from tests.conftest import Squall
from tests.test_live import Acknowledged, timeline

pytest.importorskip("pyspark")

from squall.builders.spark import session

pytestmark = [pytest.mark.spark, pytest.mark.more]

SEEN = "@prefix : <http://example.org/>.\n[seen: (?s :at ?v) -> (?s :seen ?v)]"


class Steps(Acknowledged):
    """Emits a batch when the one before has been processed. log: all notifications, in order."""

    def __init__(self, batches: Sequence[Sequence[Event]], commits: Path) -> None:
        super().__init__(batches)
        self.commits = commits
        self.log: list[tuple[str, int]] = []
        self.heard = threading.Semaphore()

    def note(self, what: str) -> None:
        self.log.append((what, len(list(self.commits.glob("[0-9]*.json")))))

    def batches(self) -> Iterator[Sequence[Event]]:
        for batch in super().batches():
            assert self.heard.acquire(timeout=100)
            yield batch

    def acknowledge(self, position: str) -> None:
        super().acknowledge(position)
        self.note("acknowledged")
        self.heard.release()


def test_sources_get_acknowledgements_of_committed_batches(tmp_path: Path) -> None:
    """The outputs of a batch are durable before its input is acknowledged."""
    source = Steps(timeline(1, 2, 3), tmp_path / "kept" / "commits")
    sources = Sources([source])
    sources.flush_sink = lambda: source.note("settled")
    plan = squall.plan(squall.compile(SEEN, lexer="jena"))
    job = squall.build(plan, "spark", Options(checkpoint=tmp_path / "kept"))
    read = set()
    for output in job.run(sources):
        source.note(f"output {output.time}")
        existing = [query.lastProgress for query in session().streams.active]
        read |= {source.description for progress in existing if progress is not None for source in progress.sources}
    first = [("settled", 0)]  # of the batch of what holds always
    steps = [item for n in (1, 2, 3) for item in ((f"output {n}", n), ("settled", n), ("acknowledged", n + 1))]
    assert source.log[: len(first + steps)] == first + steps
    assert source.acknowledged == ["1", "2", "3"]
    assert len(list((tmp_path / "kept" / "spool" / "events").iterdir())) < 3, "processed events are deleted"
    offsets = [
        path.read_text().splitlines()[-1] for path in sorted((tmp_path / "kept" / "spark" / "offsets").glob("[0-9]"))
    ]
    assert [json.loads(offset) for offset in offsets] == [{"file": n} for n in (1, 2, 3)]
    (description,) = read
    assert ".python.PythonMicroBatchStream" in description
    assert source.closed


class Named:
    """A sink that cannot be cut back, and fails at the so manieth output. got: by their names, and how many batches
    counted then."""

    uri = "test:"

    def __init__(self, commits: Path, fails: int) -> None:
        self.commits = commits
        self.fails = fails
        self.delivery = ""
        self.got: list[tuple[str, int, int]] = []

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        pass

    def begin_delivery(self, name: str, number: int) -> None:
        self.delivery = f"{name}-{number}"

    def write(self, output: Output) -> None:
        if len(self.got) == self.fails:
            raise SinkError("the broker has gone")
        self.got.append((f"{self.delivery}-{output.time}", output.time, len(list(self.commits.glob("[0-9]*.json")))))

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_what_cannot_be_cut_back_gets_what_counts(tmp_path: Path) -> None:
    """The sink gets an output again, with the same identity, where it is unknown whether it arrived."""
    plan = squall.plan(squall.compile(SEEN, lexer="jena"))
    sinks = [Named(tmp_path / "kept" / "commits", fails) for fails in (1, 9, 9)]

    def go(sink: Named, *times: int) -> None:
        outbox = Outbox(sink)
        job = squall.build(plan, "spark", Options(checkpoint=tmp_path / "kept", sink=outbox))
        for output in job.run(timeline(*times)):
            outbox.write(output)
        outbox.close()

    with pytest.raises(SinkError, match="has gone"):
        go(sinks[0], 1, 2)
    go(sinks[1], 1, 2)
    go(sinks[2], 1, 2, 3)
    results = [[(time, commits) for _, time, commits in sink.got] for sink in sinks]
    assert results == [[(1, 2)], [(1, 2), (2, 2)], [(3, 3)]]
    assert sinks[0].got == sinks[1].got[:1]
    assert len({name for sink in sinks for name, *_ in sink.got}) == 3
    sinks[2].uri = "other:"
    with pytest.raises(BuilderError, match="go to `test:`, and not to `other:`"):
        go(sinks[2])


CALM = "@prefix : <http://example.org/>.\n[calm: (?s :at ?v) noValue(?s :is :Loud) -> (?s :seen ?v)]"
"""A rule with negation, whose conclusions are known when their instant is complete."""


def at(*times: int) -> str:
    return "".join(f"{time} <urn:s{time}> <http://example.org/at> <urn:v> .\n" for time in times)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("address", ["in?follow=yes&poll=10", "in/1.ntt?follow=yes&poll=10", "both"])
def test_a_run_that_is_ended_is_done_with_what_it_has(tmp_path: Path, address: str, keeps: bool) -> None:
    """The input is read by Spark itself or by the driver. The run completes, or resumes another time."""
    (tmp_path / "in").mkdir()
    addresses = ["in?follow=yes&poll=10", "other.ntt?follow=yes&poll=10"] if address == "both" else [address]
    (tmp_path / "in" / "1.ntt").write_text(at(1, 2, 3))
    (tmp_path / "other.ntt").touch()
    options = Options(checkpoint=tmp_path / "kept" if keeps else None)
    plan = squall.plan(squall.compile(CALM, lexer="jena"))

    def ended(number: int) -> list[int]:
        """Returns the times of the outputs of a run that is stopped after one output."""
        sources = Sources([open_source(f"{tmp_path}/{item}") for item in addresses])
        assert not bool(sources.is_stoppable)
        results = []
        for output in squall.build(plan, "spark", options).run(sources):
            results.append(output.time)
            if output.time == number:
                assert bool(sources.is_stoppable)
                sources.stop()
        return results

    assert ended(2) == ([1, 2] if keeps else [1, 2, 3])
    if keeps:
        if len(addresses) == 1 and "1.ntt" in address:
            with (tmp_path / "in" / "1.ntt").open("a") as file:
                file.write(at(4, 5))
        else:
            (tmp_path / "in" / "2.ntt").write_text(at(4, 5))
        assert ended(4) == [3, 4]


def test_the_current_micro_batch_is_completed_first(tmp_path: Path) -> None:
    """This holds however long it takes."""
    begun, go = tmp_path / "begun", tmp_path / "go"

    @functions.function("patient", languages=("jena",))
    def patient(value: Term) -> Term:
        begun.touch()
        while not go.exists():
            time.sleep(0.05)
        return value

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.ntt").write_text(at(1))
    program = "@prefix : <http://example.org/>.\n[slow: (?s :at ?v) patient(?v, ?w) -> (?s :seen ?w)]"
    job = squall.build(
        squall.plan(squall.compile(program, lexer="jena")), "spark", Options(checkpoint=tmp_path / "kept")
    )
    sources = Sources([open_source(f"{tmp_path}/in?follow=yes&poll=10")])
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: [output.time for output in job.run(sources)])
        while not begun.exists():
            assert not result.done()
            time.sleep(0.05)
        sources.stop()
        time.sleep(2.5)  # longer than it takes a run to see that it is to end
        assert not result.done()
        go.touch()
        assert result.result(100) == [1]


def test_bounded_sources_are_not_stopped(tmp_path: Path) -> None:
    """Unless it goes on another time."""
    (tmp_path / "a.ntt").write_text(at(1))
    plan = squall.plan(squall.compile(SEEN, lexer="jena"))
    for keeps in (False, True):
        sources = Sources([open_source(f"{tmp_path}/a.ntt")])
        options = Options(checkpoint=tmp_path / "kept" if keeps else None)
        assert len(list(squall.build(plan, "spark", options).run(sources))) == 1
        assert sources.is_stoppable is keeps


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_a_run(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "calm.jena").write_text(CALM)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.ntt").write_text(at(1, 2, 3))
    command = [sys.executable, "-m", "squall", "build", "calm.jena", "--source", "in?follow=yes", "--sink", "out.ntt"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    spark = ["--builder", "spark", "--conf", "spark.master=local[1]"]
    with subprocess.Popen([*command, *spark], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 100
        while not (tmp_path / "out.ntt").exists() or not (tmp_path / "out.ntt").read_text():
            assert run.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        run.send_signal(number)
        _, streams = run.communicate(timeout=100)
    assert run.returncode == 0, streams
    assert "3 statements read, 3 outputs" in streams
    assert len((tmp_path / "out.ntt").read_text().splitlines()) == 3


def test_sources_that_are_not_replayable_are_reported(
    tmp_path: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seen.jena").write_text(SEEN)
    os.mkfifo("pipe")
    writer = threading.Thread(
        target=lambda: Path("pipe").write_text("1 <urn:a> <http://example.org/at> <urn:b> .\nbroken\n")
    )
    writer.start()
    state = ["--checkpoint", "kept", "--dead-letters", "lost.ndjson", "--builder", "spark"]
    code, _, result = squall("build", "seen.jena", "--source", "pipe?format=ntt", "--sink", "out.ntt", *state)
    writer.join()
    assert code == 0, result
    assert "source warning: `pipe?format=ntt`: events since the last checkpoint are lost" in result
    assert Path("out.ntt").read_text() == "1 <urn:a> <http://example.org/seen> <urn:b> .\n"
    assert len(Path("lost.ndjson").read_text().splitlines()) == 1
