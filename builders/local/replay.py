"""Batches from Python as the input of a run with checkpoints: the caller replays them when the run resumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from squall.rdf import Event


class ReplayedBatches:
    """Batches from Python. The caller replays them when the run resumes, and events processed before are skipped.

    The methods are those of `squall.streams.Sources`.
    """

    stopped = False

    def __init__(self, batches: Iterable[Sequence[Event]]) -> None:
        self._batches = batches
        self._count = 0
        """The number of events yielded so far."""

    def track_offsets(self, states: Sequence[Any], max_wait_ms: int) -> None:
        self._count = sum(states)

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
        for batch in self._batches:
            new = batch[start:]
            start -= len(batch) - len(new)
            self._count += len(new)
            yield new
