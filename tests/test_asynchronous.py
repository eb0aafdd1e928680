"""Runs among coroutines: answers, backpressure, cancellation, errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

import squall
from squall.errors import ArgumentError
from squall.rdf import Event
from squall.testing import stream

PLAN = squall.plan(squall.compile("[r: (?a <http://example.org/p> ?b) -> (?b <urn:q> ?a)]", lexer="jena"))
EVENTS = stream("\n".join(f"{time} :a{time} :p :b" for time in range(1, 11)))


class Producer:
    """An asynchronous source that counts what has been taken of it.

    Attributes:
        taken: How many events have been taken.
        is_closed: Whether it has ended, or was closed.
    """

    def __init__(self, events: list[Event], is_endless: bool = False) -> None:
        self.events = events
        self.is_endless = is_endless
        self.taken = 0
        self.is_closed = False

    async def __call__(self) -> AsyncIterator[Event]:
        try:
            for event in self.events:
                await asyncio.sleep(0)
                self.taken += 1
                yield event
            if self.is_endless:
                await asyncio.Event().wait()
        finally:
            self.is_closed = True


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine, and checks that no thread of a run is left."""
    result = asyncio.run(asyncio.wait_for(coroutine, 60))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("squall-run")]
    return result


@pytest.mark.parametrize("is_asynchronous", [True, False])
def test_outputs_are_those_of_a_run(is_asynchronous: bool) -> None:
    async def outputs() -> list[Any]:
        events = Producer(EVENTS)() if is_asynchronous else EVENTS
        return [output async for output in squall.arun(PLAN, events)]

    assert finish(outputs()) == list(squall.run(PLAN, EVENTS))


def test_an_event_is_taken_when_the_outputs_before_it_were_asked_for() -> None:
    async def counts() -> list[tuple[int, int]]:
        producer = Producer(EVENTS)
        pairs = []
        async for output in squall.arun(PLAN, producer()):
            await asyncio.sleep(0.01)
            pairs.append((output.time, producer.taken))
        return pairs

    pairs = finish(counts())
    assert len(pairs) == 10
    assert all(count <= time + 1 for time, count in pairs)


def test_a_reader_that_ends_ends_the_run() -> None:
    producer = Producer(EVENTS)

    async def first() -> int:
        outputs = squall.arun(PLAN, producer())
        async for output in outputs:
            await outputs.aclose()  # type: ignore[attr-defined]
            return output.time
        raise AssertionError

    assert finish(first()) == 1
    assert producer.is_closed
    assert producer.taken < 10


def test_a_cancelled_reader_ends_a_run_that_waits() -> None:
    producer = Producer(EVENTS[:3], is_endless=True)
    times: list[int] = []

    async def cancelled() -> None:
        async def read() -> None:
            async for output in squall.arun(PLAN, producer()):
                times.append(output.time)

        reader = asyncio.create_task(read())
        while len(times) < 2:
            await asyncio.sleep(0.01)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    finish(cancelled())
    assert producer.is_closed


def test_errors_of_the_source_and_of_events_reach_the_reader() -> None:
    async def failing() -> AsyncIterator[Event]:
        yield EVENTS[0]
        raise OSError("the line is dead")

    async def read(events: Any) -> None:
        async for _ in squall.arun(PLAN, events):
            pass

    with pytest.raises(OSError, match="the line is dead"):
        finish(read(failing()))

    async def wrong() -> AsyncIterator[Any]:
        yield Event(1.5, ())  # type: ignore[arg-type]

    with pytest.raises(ArgumentError, match="whole milliseconds"):
        finish(read(wrong()))
    with pytest.raises(ArgumentError, match="events are expected"):
        squall.arun(PLAN, 5)  # type: ignore[arg-type]
