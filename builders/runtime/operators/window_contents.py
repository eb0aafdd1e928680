"""The windows of a scan that follow their streams: what they hold, or have to know, of each stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import cast

from squall.builders.runtime.operators.count_window import CountWindowContent, DeltasOf, WindowFact
from squall.builders.runtime.operators.session_window import SessionContent, session_row
from squall.builders.runtime.operators.state import SlotChanges, SnapshotDiff, sum_weights
from squall.builders.runtime.zset import Delta
from squall.model import Source
from squall.model.windows import CountWindow, SessionWindow
from squall.rdf import ALWAYS, FOREVER, Fact, Term

_FIRST = itemgetter(0)
_SEQUENCE_SLOT, SESSION_SLOT = 1, 2
"""The slots of a scan's state for positions and the content of count windows, and for the facts of sessions."""


class WindowContents:
    """The content of the windows of a scan, by stream.

    Args:
        source: The source that the scan reads.
        deltas_of: Returns the deltas of a fact of a stream.
        note: Logs changes of the state of sessions.
    """

    def __init__(
        self,
        source: Source,
        deltas_of: Callable[[str, Fact, int, str, tuple[int, int], int], Iterator[Delta]],
        note: Callable[[int, Iterable[Delta]], None],
    ) -> None:
        self.source = source
        self.deltas_of = deltas_of
        self.note = note
        self.counts: dict[str, CountWindowContent] = {}
        self.sessions: dict[str, SessionContent] = {}
        self.first_times: dict[str, int] = {}
        """The time of the first triple (integer ms) of each stream where a grid begins with it."""
        self.diff = SnapshotDiff()

    @property
    def by_stream(self) -> dict[str, CountWindowContent | SessionContent]:
        """The content of the windows that have one, by stream."""
        return {**self.counts, **self.sessions}

    def of(self, stream: str) -> CountWindowContent | SessionContent:
        """Returns the content of a stream whose window has no `validity`."""
        content = self.counts.get(stream) or self.sessions.get(stream)
        return content if content is not None else self._new(stream)

    def _new(self, stream: str) -> CountWindowContent | SessionContent:
        window, deltas_of = self.source.window_of(stream), cast(DeltasOf, partial(self.deltas_of, stream))
        if window.has_sessions:
            assert isinstance(window, SessionWindow)
            self.sessions[stream] = SessionContent(window, deltas_of, partial(self._note, stream))
            return self.sessions[stream]
        assert isinstance(window, CountWindow)
        self.counts[stream] = CountWindowContent(window, deltas_of)
        return self.counts[stream]

    def _note(self, stream: str, arrival: WindowFact, weight: int) -> None:
        self.note(SESSION_SLOT, ((stream, *session_row(fact, weight)) for fact in (arrival,)))  # not made without a log

    # Time

    @property
    def next_time(self) -> int:
        """The next time at which the content changes if nothing comes; FOREVER if there is none."""
        return min((content.next_time for content in self.sessions.values()), default=FOREVER)

    def advance(self, now: int) -> Iterator[Delta]:
        """Yields the deltas of the sessions that close at a time (integer ms) or before."""
        for content in self.sessions.values():
            yield from content.advance(now)

    def pop_close_times(self) -> Iterator[tuple[str, int]]:
        """Yields and forgets when sessions have closed: the streams, and the times (integer ms)."""
        for stream, content in self.sessions.items():
            times, content.close_times = content.close_times, set()
            yield from ((stream, time) for time in times)

    def drain_new(self) -> Iterator[Delta]:
        """Yields the deltas of the facts that came since the last call and are still there."""
        for counted in self.counts.values():
            yield from counted.drain_new()
        for content in self.sessions.values():
            yield from content.drain_new()

    def with_terms(self, terms: Collection[Term], time: int, weight: int) -> Iterator[Delta]:
        """Yields the deltas, from a time on (integer ms), of the facts with some of the terms. All deltas have been
        drained."""
        for content in self.by_stream.values():
            yield from content.with_terms(terms, time, weight)

    @property
    def positions(self) -> dict[str, int]:
        """What windows have to know of each stream that they follow: how many triples came (count windows), or when the
        first one came (integer ms)."""
        return {stream: content.fact_count for stream, content in self.counts.items()} | self.first_times

    # State

    def changelog(self) -> Iterator[SlotChanges]:
        """Yields the changes since the last call, but for those of sessions, which have been logged."""
        counted_rows = ((stream, *row) for stream, content in self.counts.items() for row in content.rows())
        rows = chain(counted_rows, ((stream, str(time)) for stream, time in self.first_times.items()))
        if changes := self.diff.update((*row, ALWAYS, FOREVER, 1) for row in rows):
            yield _SEQUENCE_SLOT, changes

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        """Restores a slot from its changes."""
        if slot == SESSION_SLOT:
            counts = sum_weights(deltas)
            for stream in {str(row[0]) for row in counts}:
                content = self.of(stream)
                assert isinstance(content, SessionContent)
                content.restore({row[1:]: count for row, count in counts.items() if row[0] == stream})
            return
        for stream, rows in groupby(sorted(delta[:-3] for delta in self.diff.restore(deltas)), key=_FIRST):
            counted = self.of(stream) if self.source.window_of(stream).counts_triples else None
            if isinstance(counted, CountWindowContent):
                counted.load_rows([row[1:] for row in rows])
            else:
                ((_, time),) = rows
                self.first_times[str(stream)] = int(str(time))

    def expire(self, now: int) -> None:
        """Drops what ended at a time (integer ms) or before."""
        for content in self.counts.values():
            for _ in content.advance(now):
                pass

    def size(self) -> int:
        """Returns the number of facts."""
        return sum(content.size() for content in self.by_stream.values())
