"""A signal reaches a run whatever it waits for, also when another thread than the main one receives it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

import squall
from squall import functions
from squall.contracts import Interval, Options, Output
from squall.process.signals import stop_on_signal
from squall.rdf import Event, Term
from squall.streams import Sources, open_sink, open_source
from squall.streams.clock import EventClock
from squall.streams.formats.limits import ReadLimits
from squall.streams.sources.reader_threads import Inbox, ReadBatch
from tests.limits import open_limited
from tests.live import wait
from tests.test_live import event


class Ended:
    """Sources that record that they were stopped, and that their run was abandoned."""

    is_stoppable = True

    def __init__(self) -> None:
        self.stopped, self.abandoned = threading.Event(), threading.Event()

    def stop(self) -> None:
        self.stopped.set()

    def abandon(self) -> None:
        self.abandoned.set()


@contextmanager
def heard() -> Iterator[Callable[[], None]]:
    """Gives what sends a signal to the thread that calls it, while the main one waits, and waits until it is heard."""
    sources = Ended()
    outputs: list[bool] = []

    def send() -> None:
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        outputs.append(sources.stopped.wait(10))

    with stop_on_signal(cast(Sources, sources)):
        yield send
    assert outputs == [True]


def test_who_waits_for_sources() -> None:
    inbox = Inbox(EventClock())
    with heard() as send:

        def brings() -> None:
            send()
            inbox.put(ReadBatch(0, []))

        threading.Thread(target=brings).start()
        assert inbox.take(None) == ReadBatch(0, [])


def test_who_reads_the_one_source() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    source = open_source(f"tcp://127.0.0.1:{server.getsockname()[1]}?format=nt")
    with heard() as send:

        def serves() -> None:
            connection = server.accept()[0]
            send()
            connection.close()

        threading.Thread(target=serves).start()
        assert not [*Sources([source])]
    server.close()


def test_who_waits_for_readers() -> None:
    sink: Any = open_sink("tcp://:0?listen=yes&format=nt&connections=1")
    with heard() as send:

        def connects() -> None:
            wait(lambda: sink.port != 0)
            send()
            socket.create_connection(("127.0.0.1", sink.port)).close()

        threading.Thread(target=connects).start()
        sink.start()
        sink.close()


@pytest.mark.spark
@pytest.mark.more
def test_who_waits_for_spark() -> None:
    pytest.importorskip("pyspark")
    plan = squall.plan(squall.compile("(?s ?p ?o) -> (?o ?p ?s).", lexer="jena"))
    outputs: list[Output] = []
    with heard() as send:

        def batches() -> Iterator[Sequence[Event]]:
            yield [event(1)]
            wait(lambda: bool(outputs))  # behind them nothing comes
            send()

        for output in squall.build(plan, "spark").run(batches()):
            outputs.append(output)


@pytest.mark.fault("P11")
def test_a_run_that_does_not_drain_in_time_is_interrupted_and_abandoned() -> None:
    """P11 of the reported faults: the work for one batch took minutes."""
    sources = Ended()

    def work() -> None:
        signal.raise_signal(signal.SIGTERM)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            sum(range(1000))

    with pytest.raises(KeyboardInterrupt), stop_on_signal(cast(Sources, sources), drain_timeout_s=0.05):
        work()
    assert sources.stopped.is_set()
    assert sources.abandoned.is_set()


@pytest.mark.fault("P11")
def test_the_process_ends_without_a_run_that_an_interruption_does_not_end() -> None:
    exited = threading.Event()
    with stop_on_signal(cast(Sources, Ended()), exited.set, exit_timeout_s=0.05):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        assert exited.wait(30)


STUBBORN = """
import signal
import time
from typing import Any, cast
from squall.process.signals import stop_on_signal
from tests.test_signals import Ended

def work():
    try:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(60)
    finally:
        sum(range(10**12))  # hours in which no other thread and no handler can run

with stop_on_signal(cast(Any, Ended()), print, drain_timeout_s=0.05, exit_timeout_s=0.05):
    work()
"""


@pytest.mark.more
def test_the_kernel_ends_a_process_in_which_no_thread_can_run() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    stubborn = subprocess.run([sys.executable, "-c", STUBBORN], env=environment, timeout=60, check=False)
    assert stubborn.returncode == -signal.SIGALRM


def test_no_alarm_outlives_a_run_that_a_signal_has_ended() -> None:
    with stop_on_signal(cast(Sources, Ended()), lambda: None):
        signal.raise_signal(signal.SIGTERM)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_an_interruption_breaks_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with suppress(KeyboardInterrupt), stop_on_signal(Sources([])):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            logging.error("a connection is broken")
    logging.error("after that")
    assert caplog.messages == ["after that"]


@pytest.mark.fault("P11")
def test_an_interrupted_instant_is_repeated_when_the_run_resumes(tmp_path: Path, empty_registry: None) -> None:
    """P11 of the reported faults."""
    signals, is_middle = [signal.SIGINT, signal.SIGTERM], threading.Event()

    @functions.function("interrupts", languages=("jena",))
    def interrupts(value: Term) -> Term:
        while is_middle.is_set() and signals:
            signal.raise_signal(signals.pop())
        return value

    rule = "@prefix : <urn:>.\n[seen: (?s :at ?v) interrupts(?v, ?w) (?o :at ?v) -> (?s :with ?o)]"
    plan = squall.plan(squall.compile(rule, lexer="jena"))
    source = tmp_path / "in.ntt"
    source.write_text("".join(f"{n // 3} <urn:s{n}> <urn:at> <urn:v> .\n" for n in range(9)))

    def run(name: str) -> list[str]:
        sink: Any = open_sink(str(tmp_path / f"{name}.ntt"))
        folder = tmp_path / name
        options = Options(checkpoint=folder, checkpoint_interval=Interval(statements=1), sink=sink)
        sources = Sources([open_limited(str(source), ReadLimits(chunk_bytes=100))])
        with stop_on_signal(sources), closing(sink):
            sink.start(resume=folder.exists())
            for output in squall.build(plan, options=options).run(sources):
                sink.write(output)
                is_middle.set()
        return sorted((tmp_path / f"{name}.ntt").read_text().splitlines())

    with pytest.raises(KeyboardInterrupt):
        run("interrupted")
    assert run("interrupted") == run("undisturbed")


SLOW = """
import time
from pathlib import Path
from squall import functions
from squall.cli import main

@functions.function("patient", languages=("jena",))
def patient(value):
    while value == "<urn:slow>" and not Path(FOLDER, "go").exists():
        Path(FOLDER, "begun").touch()
        time.sleep(0.05)
    return value

main()
"""
"""A program that stays in the middle of an instant until there is a file."""
NAMES = "first", "slow", "last"
CHECKPOINT = ["--source", "in.ntt", "--checkpoint", "kept"]
LIVE = ["--source", "in?follow=yes"]
BOUNDED = ["--source", "in.ntt"]
SPARK = ["--builder", "spark", "--conf", "spark.master=local[2]"]


@pytest.mark.fault("P11")
@pytest.mark.more
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(CHECKPOINT, id="iterator, with a checkpoint"),
        pytest.param(LIVE, id="iterator, live"),
        pytest.param(["--source", "in.nt"], id="iterator, a snapshot"),
        pytest.param(["--static", "in.nt", *CHECKPOINT], id="iterator, static data"),
        pytest.param([*CHECKPOINT, *SPARK], id="Spark, with a checkpoint", marks=pytest.mark.spark),
        pytest.param([*LIVE, *SPARK], id="Spark, live", marks=pytest.mark.spark),
        pytest.param([*BOUNDED, *SPARK], id="Spark, in one batch", marks=pytest.mark.spark),
        pytest.param([*LIVE, "--builder", "beam"], id="Beam, live", marks=pytest.mark.beam),
        pytest.param([*BOUNDED, "--builder", "beam"], id="Beam, in one pipeline", marks=pytest.mark.beam),
    ],
)
def test_a_signal_ends_a_run_in_the_middle_of_an_instant(tmp_path: Path, options: list[str]) -> None:
    written = interrupted_output(tmp_path, options, "(?s :at ?v) patient(?v, ?w) -> (?s :seen ?w)")
    if "--static" in options:
        assert sorted(written) == sorted(f"-infinity <urn:s> <urn:seen> <urn:{name}> ." for name in NAMES)
    elif "--checkpoint" in options:
        assert written == [f"{n} <urn:s> <urn:seen> <urn:{name}> ." for n, name in enumerate(NAMES)]


@pytest.mark.more
@pytest.mark.parametrize(
    ("body", "delay"),
    [
        pytest.param("(?s :at ?v) patient(?v, ?w) noValue(?w :is :Loud) -> (?s :seen ?w)", 0, id="complete instants"),
        pytest.param("(?s :at ?v) patient(?v, ?w) -> drop(0) (?s :seen ?w)", 1, id="an update"),
    ],
)
def test_a_signal_ends_a_run_in_the_middle_of_a_complete_instant(tmp_path: Path, body: str, delay: int) -> None:
    written = interrupted_output(tmp_path, CHECKPOINT, body)
    assert written == [f"{n + delay} <urn:s> <urn:seen> <urn:{name}> ." for n, name in enumerate(NAMES)]


def interrupted_output(tmp_path: Path, options: list[str], body: str) -> list[str]:
    """Returns what a run of a rule has written that was interrupted, and resumed if it has a checkpoint.

    The signal reaches all processes of a group, as service managers send it."""
    (tmp_path / "main.py").write_text(SLOW.replace("FOLDER", repr(str(tmp_path))))
    (tmp_path / "rule.jena").write_text(f"@prefix : <urn:>.\n[seen: {body}]")
    (tmp_path / "in").mkdir()
    (tmp_path / "in.nt").write_text("".join(f"<urn:s> <urn:at> <urn:{name}> .\n" for name in NAMES))
    lines = [f"{n} <urn:s> <urn:at> <urn:{name}> .\n" for n, name in enumerate(NAMES)]
    for path in ("in.ntt", "in/1.ntt"):
        (tmp_path / path).write_text("".join(lines))

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "main.py", "build", "rule.jena", "--sink", "out.ntt", *options]
        environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    with start() as interrupted:
        wait(lambda: (tmp_path / "begun").exists() or interrupted.poll() is not None, 200)
        if interrupted.poll() is None:
            os.killpg(interrupted.pid, signal.SIGTERM)
        _, messages = interrupted.communicate(timeout=100)
    assert interrupted.returncode == 130, messages
    assert "interrupted: what was in progress is abandoned" in messages
    assert not [line for line in messages.splitlines() if line.startswith(("Traceback", "\tat ", "Exception"))]
    if "--checkpoint" in options:
        (tmp_path / "go").touch()
        with start() as resumed:
            _, messages = resumed.communicate(timeout=200)
        assert resumed.returncode == 0, messages
    return (tmp_path / "out.ntt").read_text().splitlines()


def test_nothing_is_left_behind() -> None:
    def found() -> tuple[Any, ...]:
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup)
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGURG)]
        return wakeup, handlers, {thread.name for thread in threading.enumerate()} & {"hears signals"}

    before = found()
    with stop_on_signal(cast(Sources, Ended())):
        during = found()
    assert [item != other for item, other in zip(during, before, strict=True)] == [True, True, True]
    assert found() == before
