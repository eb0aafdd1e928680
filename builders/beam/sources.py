"""Redis Streams and Kafka as an unbounded read, for Beam pipelines of the user's own (docs/beam.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from typing import Any

from squall.builders.beam.beam_import import beam
from squall.builders.beam.live_pipeline import WATERMARK, advance, bundle_of, timestamp
from squall.builders.distributed.io.parsing import DeadLetterBuffer
from squall.builders.distributed.io.row_source import Statement, open_splittable, read_split
from squall.streams.sources.files import Splittable

_ELSEWHERE = {
    "group": "Beam keeps the positions: leave it out",
    "lateness": "leave it out: what is late is for the windows of the pipeline to say",
    "window": "leave it out: windows are those of the pipeline",
    "stream": "leave it out: rows do not name their stream",
    "idle": "leave it out: no other source is waited for",
}
"""Options of sources that have no meaning here, and what to do instead."""
_POLL_SECONDS = 0.05
"""Seconds between two polls."""
_Restriction = tuple[str, str | None]
"""A range of positions of a source; the end None means without end."""


class ReadEvents(beam.PTransform):  # type: ignore[misc]
    """``pipeline | ReadEvents(ADDRESS)`` reads a source as `Statement` rows at their event times, without end.

    The watermark is the latest time that has been read. A dead letter is a row with a text in `lost`.

    Args:
        uri: the address of a replayable source (`squall.streams.sources.files.Splittable`): a Redis stream, or a topic
            of Kafka.
        now: read what is there now, in splits that workers read in parallel, and end.

    Raises:
        UsageError: the address is that of another source, or has an option with no meaning here.
    """

    def __init__(self, uri: str, now: bool = False) -> None:
        super().__init__()
        self.uri = uri
        self.now = now
        with closing(_opened(uri)):
            pass

    def expand(self, begin: Any) -> Any:
        if not self.now:
            bundle = bundle_of(begin.pipeline)
            return begin | "address" >> beam.Create([self.uri]) | "read" >> beam.ParDo(_Read(bundle))
        with closing(_opened(self.uri)) as source:
            splits = source.splits_of(source.beginning(), source.latest())
        rows = begin | "parts" >> beam.Create(splits) | "spread" >> beam.Reshuffle()
        return rows | "read" >> beam.FlatMap(_part, self.uri).with_output_types(Statement)


beam.coders.registry.register_coder(Statement, beam.coders.RowCoder)


def _opened(uri: str, losses: DeadLetterBuffer | None = None) -> Splittable:
    return open_splittable(uri, "`ReadEvents`", _ELSEWHERE, losses)


def _part(part: str, uri: str) -> Iterator[Any]:
    """Yields the rows of a split."""
    losses = DeadLetterBuffer()
    with closing(_opened(uri, losses)) as source:
        yield from map(_placed, chain.from_iterable(read_split(source, part, losses)))


def _placed(row: Statement) -> Any:
    """Returns a row at its event time."""
    return row if row.time is None else beam.window.TimestampedValue(row, timestamp(row.time))


class _Tracker(beam.io.iobase.RestrictionTracker):  # type: ignore[misc]
    """Tracks what is behind a position. The remainder can be deferred, but not divided: its content is unknown."""

    def __init__(self, restriction: _Restriction) -> None:
        self._behind, self._end = restriction
        self._reached = self._behind

    def current_restriction(self) -> _Restriction:
        return self._behind, self._end

    def current_progress(self) -> Any:
        return beam.io.iobase.RestrictionProgress(fraction=0.0)

    def try_claim(self, position: str) -> bool:
        if self._end is None:
            self._reached = position
        return self._end is None

    def try_split(self, fraction_of_remainder: float) -> tuple[_Restriction, _Restriction] | None:
        if fraction_of_remainder or self._end is not None:
            return None
        self._end = self._reached
        return (self._behind, self._end), (self._end, None)

    def check_done(self) -> None:
        if self._end is None:
            raise ValueError(f"what is behind {self._reached} has not been read")

    def is_bounded(self) -> bool:
        return False


class _Whole(beam.transforms.core.RestrictionProvider):  # type: ignore[misc]
    """All content of a source."""

    def initial_restriction(self, uri: str) -> _Restriction:
        with closing(_opened(uri)) as source:
            return source.beginning(), None

    def create_tracker(self, restriction: _Restriction) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, uri: str, restriction: _Restriction) -> int:
        return 1  # nobody knows


_WHOLE = beam.DoFn.RestrictionParam(_Whole())


@beam.typehints.with_output_types(Statement)
class _Read(beam.DoFn):  # type: ignore[misc]
    """Reads the rows of a source as they arrive. An instance keeps its connection."""

    def __init__(self, bundle: float) -> None:
        self._bundle = bundle
        self._known: dict[str, tuple[Splittable, DeadLetterBuffer]] = {}

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator]
    def process(self, uri: str, positions: Any = _WHOLE, watermark: Any = WATERMARK) -> Iterator[Any]:
        until = time.monotonic() + self._bundle
        source, losses = self._source(uri)
        behind, _ = positions.current_restriction()
        while time.monotonic() < until:
            latest = source.latest(behind)
            if not (splits := source.splits_of(behind, latest)):
                time.sleep(_POLL_SECONDS)
                continue
            if not positions.try_claim(latest):
                return
            behind = latest
            for part in splits:
                for row in chain.from_iterable(read_split(source, part, losses)):
                    yield _placed(row)
                    if row.time is not None:
                        advance(watermark, row.time)
        positions.defer_remainder()

    def teardown(self) -> None:
        for source, _ in self._known.values():
            source.close()

    def _source(self, uri: str) -> tuple[Splittable, DeadLetterBuffer]:
        if uri not in self._known:
            losses = DeadLetterBuffer()
            self._known[uri] = _opened(uri, losses), losses
        return self._known[uri]
