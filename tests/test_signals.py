"""A signal reaches a run whatever it waits for, also when another thread than the main one receives it."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import pytest

import squall
from squall.contracts import Output
from squall.process.signals import stop_on_signal
from squall.rdf import Event
from squall.streams import Sources, open_sink, open_source
from squall.streams.clock import EventClock
from squall.streams.sources.reader_threads import Inbox, ReadBatch
from tests.live import wait
from tests.test_live import event


class Ended:
    """Sources that record that they were stopped."""

    is_stoppable = True

    def __init__(self, is_resumable: bool = False) -> None:
        self.is_resumable = is_resumable
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


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
@pytest.mark.parametrize("is_resumable", [True, False], ids=["with a checkpoint", "without"])
def test_long_work_ends_some_time_after_a_signal_if_the_run_resumes(is_resumable: bool) -> None:
    """P11 of the reported faults: the work for one batch took minutes."""
    sources = Ended(is_resumable)
    end = time.monotonic() + (10 if is_resumable else 0.2)
    with (
        pytest.raises(KeyboardInterrupt) if is_resumable else nullcontext(),
        stop_on_signal(cast(Sources, sources), suspension_timeout_s=0.05),
    ):
        signal.raise_signal(signal.SIGTERM)
        while time.monotonic() < end:
            sum(range(1000))
    assert sources.stopped.is_set()


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
