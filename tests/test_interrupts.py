"""Signals reach a run whatever it waits for, also one that is delivered to a thread which is not the main one."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import squall
from squall.clock import EventClock
from squall.rdf import Event
from squall.stages import Output
from squall.streams import open_sink
from squall.streams.readers import Inbox, Word
from tests.live import wait
from tests.test_live import event

Sends = Callable[[], None]


@pytest.fixture
def sends() -> Iterator[Sends]:
    """What sends a signal to the thread that calls it, when the main thread waits, and asserts that it is handled."""
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    told: list[bool] = []

    def send() -> None:
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        told.append(heard.wait(10))

    yield send
    signal.signal(signal.SIGUSR1, before)
    assert told == [True]


def test_who_waits_for_sources(sends: Sends) -> None:
    inbox = Inbox(EventClock())

    def brings() -> None:
        sends()
        inbox.put(Word(0, []))

    threading.Thread(target=brings).start()
    assert inbox.take(None) == Word(0, [])


def test_who_waits_for_readers(sends: Sends) -> None:
    sink: Any = open_sink("tcp://:0?listen=yes&format=nt&connections=1")

    def connects() -> None:
        wait(lambda: sink.port != 0)
        sends()
        socket.create_connection(("127.0.0.1", sink.port)).close()

    threading.Thread(target=connects).start()
    sink.start()
    sink.close()


@pytest.mark.spark
def test_who_waits_for_spark(sends: Sends) -> None:
    pytest.importorskip("pyspark")
    plan = squall.plan(squall.compile("(?s ?p ?o) -> (?o ?p ?s).", lexer="jena"))

    def batches() -> Iterator[Sequence[Event]]:
        yield [event(1)]
        wait(lambda: bool(outputs))  # behind them nothing comes
        sends()

    outputs: list[Output] = []
    for output in squall.build(plan, "spark").run(batches()):
        outputs.append(output)
