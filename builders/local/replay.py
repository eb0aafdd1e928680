"""Batches from Python as the input of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from squall.errors import ArgumentError
from squall.rdf import Event
from squall.streams.sources.reader_threads import static_prefix


class ReplayedBatches:
    """Batches from Python. The caller replays them when a run resumes, and events processed before are skipped.

    The methods are those of `squall.streams.Sources`.
    """

    stopped = False
    arrived: float | None = None
    """When the current batch arrived; None: when it is taken (`squall.streams.Sources`)."""

    def __init__(self, batches: Iterable[Sequence[Event]]) -> None:
        self._batches = batches
        self._tracks_offsets = False
        self._count = 0
        """The number of events yielded so far."""

    def track_offsets(self, states: Sequence[Any], max_wait_ms: int) -> None:
        self._tracks_offsets = True
        self._count = sum(states)

    def static_events(self) -> list[Event]:
        """Reads the events at `ALWAYS` with which a list begins. What comes one by one is not waited for."""
        events, _ = static_prefix(_checked(self._batches if isinstance(self._batches, list | tuple) else ()))
        self._count += len(events)
        return events

    def current_offsets(self) -> list[Any]:
        return [self._count]

    def positions(self) -> Mapping[int, str]:
        return {}

    def acknowledge(self, positions: Mapping[int, str] | None = None) -> None:
        pass

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass

    def batches(self) -> Iterator[Sequence[Event]]:
        return iter(self)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        start = self._count
        for batch in _checked(self._batches):
            new = batch[start:] if start else batch
            if start or self._tracks_offsets:
                start -= len(batch) - len(new)
                self._count += len(new)
            yield new


def _checked(batches: Iterable[Sequence[Event]]) -> Iterator[Sequence[Event]]:
    for batch in batches:
        if isinstance(batch, Event):
            raise ArgumentError("an event is given where a batch is", hint="write `job.run([events])`")
        yield batch
