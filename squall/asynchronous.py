"""A run among coroutines: it takes events of an asynchronous iterable, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from squall.contracts import Output
from squall.rdf import Event

Run = Callable[[Iterable[Sequence[Event]]], Iterator[Output[Any]]]
"""A function from batches of events to the outputs of a run."""


async def outputs(run: Run, events: AsyncIterable[Event] | Iterable[Event]) -> AsyncIterator[Output[Any]]:
    """Yields the outputs of a run over events, each of which is taken when the run has processed those before it.

    The run takes no event while its last output has not been asked for, so that a slow reader slows down the source.
    If the reader ends or is cancelled, so is the coroutine that waits for the next event, and the run is closed.

    Args:
        run: The run.
        events: The events.
    """
    feed = _Feed(events, asyncio.get_running_loop())
    results = run(feed.batches())
    with ThreadPoolExecutor(1, "squall-run") as thread:
        try:
            while (output := await asyncio.wrap_future(thread.submit(next, results, None))) is not None:
                yield output
        finally:
            feed.cancel()
            ending = thread.submit(results.close) if hasattr(results, "close") else None
            if ending is not None:
                await asyncio.shield(asyncio.wrap_future(ending))
            await feed.close()


class _Feed:
    """Events of an asynchronous iterable, which the thread of a run waits for."""

    def __init__(self, events: AsyncIterable[Event] | Iterable[Event], loop: asyncio.AbstractEventLoop) -> None:
        self._events = aiter(events) if isinstance(events, AsyncIterable) else _asynchronous(events)
        self._loop = loop
        self._waiting: Future[Event | None] | None = None
        self._cancelled = threading.Event()

    def batches(self) -> Iterator[Sequence[Event]]:
        """Yields each event as a batch. Only the thread of the run calls this."""
        while (event := self._wait()) is not None:
            yield (event,)

    def _wait(self) -> Event | None:
        """Waits for the next event; None: there is none, or nobody wants it any more."""
        if self._cancelled.is_set():
            return None
        self._waiting = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        if self._cancelled.is_set():  # in the meantime
            self._waiting.cancel()
        try:
            return self._waiting.result()
        except CancelledError:
            return None

    async def _next(self) -> Event | None:
        return await anext(self._events, None)

    def cancel(self) -> None:
        """Cancels the coroutine that waits for an event. The run has no more of them."""
        self._cancelled.set()
        if self._waiting is not None:
            self._waiting.cancel()

    async def close(self) -> None:
        """Closes the asynchronous generator, if the events come from one."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()


async def _asynchronous(events: Iterable[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event
        await asyncio.sleep(0)
