"""Merges several sources to one stream, in the order of event time or of arrival."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from squall import rdf
from squall.contracts import DeadLetterLedger
from squall.errors import ArgumentError, UsageError
from squall.rdf import ALWAYS, FOREVER, Event, Term
from squall.streams.clock import Clock, EventClock
from squall.streams.dead_letters import DeferredLedger, RunLedger
from squall.streams.formats.event_json import event_of
from squall.streams.sources.cursors import BoundedCursor, Cursor, FollowingCursor, LiveCursor, has_facts
from squall.streams.sources.files import Acknowledging, PushesFilterDown, Source, Stoppable
from squall.streams.sources.reader_threads import Inbox, ReaderThread, SourceOffset, TrackedSource
from squall.streams.sources.reordering import ReorderingSource, original


class Sources:
    """The batches of all sources, in non-decreasing time if each of the sources is in that order itself.

    An event is output when no source can still have an earlier one, that is when the watermark has reached it. The next
    event of a file is always available. A live source (a pipe, a followed folder) is read by a thread of its own. Its
    watermark is the time of its last event (or, if it is untimed, its fixed time). The other sources wait for that, but
    not longer than its `idle` milliseconds (5000 unless its address has ``idle=``) without an event. Then they continue
    without it until it has events again. Those of earlier times are late, and go to the ledger. A single source keeps
    its own order.

    If no events come for `heartbeat` milliseconds, an event without facts (a heartbeat) has the watermark, if that has
    advanced. With a clock that stamps, every event gets the time of its arrival, and the watermark follows the clock.

    Acknowledging sources (`squall.streams.sources.files.Acknowledging`) get the acknowledgement of a batch when the
    next one is requested. By then its outputs have been written, unless `flush_sink`, which is called before, raises an
    error.

    Attributes:
        sources: The sources, for builders that read them on their workers.
        clock: The clock (`squall.streams.clock`).
        heartbeat: The time in integer ms without events after which a heartbeat is output.
        ledgers: The ledgers of the sources, if these buffer dead letters. So a dead letter of a batch that was read
            ahead does not count before the batch does.
        flush_sink: Flushes the sink. It is called before anything is acknowledged.
        wake_time: Returns up to when time has to come (integer ms) before the run has something to do without an event:
            the end of a window, a deadline, a timer. With a clock that stamps, a heartbeat comes then.
        stop_run: Stops the run, if another process reads the sources. Then `stop` calls it.
        abandon_run: Cancels what other processes or threads do for the run. Then `abandon` calls it.
        stopped: Whether `stop` was called.
        arrived: When the first event of the current batch arrived, in seconds of `time.monotonic`, if the thread of a
            live source has received it; None: when the batch is taken.
    """

    flush_sink: Callable[[], None] | None = None
    stop_run: Callable[[], None] | None = None
    abandon_run: Callable[[], None] | None = None
    wake_time: Callable[[], int] | None = None

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock | None = None,
        heartbeat: int = 1000,
        ledgers: Sequence[DeferredLedger] = (),
    ) -> None:
        self.sources = _checked_sources(sources)
        self.clock = clock or EventClock()
        _check_followers(self.sources, self.clock)
        self.heartbeat = heartbeat
        self.ledgers = ledgers
        self.stopped = False
        self.arrived: float | None = None
        self._tracked = [TrackedSource(source, ledger) for source, ledger in zip_longest(self.sources, ledgers)]
        self._positions: dict[int, str] = {}
        """The positions up to which sources have been output, by their numbers."""
        self._acknowledged_positions: dict[int, str] = {}
        """The positions up to which they have been acknowledged."""
        self._states: dict[int, Any] = {}
        """The offsets of the sources, with the events that are buffered of each."""
        self._max_wait_ms: int | None = None
        self._reading = False

    @property
    def is_stoppable(self) -> bool:
        """Whether the sources are being read and `stop` can end that.

        It can if some are live, if their offsets are tracked, or if there is a `stop_run`."""
        if self.stop_run is not None:
            return True
        live = [original(source) for source in self.sources if source.live]
        can_end = bool(live) or self._max_wait_ms is not None
        return self._reading and can_end and all(isinstance(source, Stoppable) for source in live)

    def stop(self) -> None:
        """Stops live sources. It may be called by any thread.

        The events that they have received are still output. Bounded sources are read no further. If offsets are
        tracked, only events before the first one that has not been read are output.
        """
        self.stopped = True
        if self.stop_run is not None:
            self.stop_run()
            return
        for source in self.sources:
            if source.live and isinstance(source, Stoppable):
                source.stop()

    def abandon(self) -> None:
        """Abandons a run that is being interrupted, before the process ends. It may be called by any thread."""
        if self.abandon_run is not None:
            self.abandon_run()

    def track_offsets(self, states: Sequence[Any], max_wait_ms: int) -> None:
        """Tracks the offsets of the sources (`current_offsets`). It is called before reading begins.

        From then on the caller acknowledges what has been processed (`acknowledge`) and ends reading (`close`).

        Args:
            states: Offsets from which the sources resume, as `current_offsets` returned them; empty to begin anew.
            max_wait_ms: The longest time to wait for a batch, in integer ms. After that the batch is empty.
        """
        self._max_wait_ms = max_wait_ms
        for number, tracked in enumerate(self._tracked):
            tracked.tracks_offset = True
            if states:
                tracked.resume(states[number])
                self._states[number] = states[number]
            else:
                self._note(number, "", tracked.current_offset().state, (), tracked.source.earliest)

    def static_events(self) -> list[Event]:
        """Reads the events at `ALWAYS` with which bounded sources begin.

        They are static data. A run reads them before it begins, because what is derived from static data alone is
        complete then. Live sources are not waited for: there such events are late.
        """
        events: list[Event] = []
        for number, tracked in enumerate(self._tracked):
            if tracked.source.live or self.clock.stamps:
                continue
            source_events, later_events = tracked.static_events()
            if source_events:
                offset = tracked.current_offset()
                tracked.forward(offset.dead_letters)
                self._note(number, offset.position, offset.state, later_events, ALWAYS)
                events += source_events
        return events

    def current_offsets(self) -> list[Any]:
        """Returns the offset of each source, as a JSON value, behind the last batch (see `track_offsets`)."""
        return list(self._states.values())

    def positions(self) -> Mapping[int, str]:
        """Returns the positions up to which sources have been output, by their numbers.

        It is called by the thread that reads."""
        return dict(self._positions)

    def acknowledge(self, positions: Mapping[int, str] | None = None) -> None:
        """Acknowledges what has been processed.

        Args:
            positions: The `positions` up to which that is; None: all that has been output.
        """
        if self.flush_sink is not None:
            self.flush_sink()
        acknowledged = self.positions() if positions is None else positions
        for number, position in acknowledged.items():
            source = self.sources[number]
            if position != self._acknowledged_positions.get(number, "") and isinstance(source, Acknowledging):
                source.acknowledge(position)
        self._acknowledged_positions = dict(acknowledged)

    def close(self) -> None:
        """Closes acknowledging sources: nothing more is acknowledged."""
        for source in self.sources:
            if isinstance(source, Acknowledging):
                source.close()

    @property
    def live(self) -> bool:
        """Whether any of them is live."""
        return any(source.live for source in self.sources)

    @property
    def removals(self) -> bool:
        """Whether any of them may retract facts."""
        return any(source.removals for source in self.sources)

    @property
    def are_read_together(self) -> bool:
        """Whether one of them goes as far as the others have come (``tick:1s?from=0``), so that one process reads them
        all."""
        return any(map(follows_others, self.sources))

    @property
    def size(self) -> int | None:
        """The size of all sources together in bytes, or None if one is unknown."""
        sizes = [source.size for source in self.sources if source.size is not None]
        return sum(sizes) if len(sizes) == len(self.sources) else None

    def push_down(self, predicates: Collection[Term]) -> None:
        """Declares the predicates of the triples that are used (`squall.contracts.SupportsFilterPushDown`).

        Sources may leave out other triples, and events that have none of these (`PushesFilterDown`).
        """
        if self._can_push_down:
            for source in self.sources:
                if isinstance(source, PushesFilterDown):
                    source.wanted_predicates = predicates

    def set_ledger(self, ledger: DeadLetterLedger | None) -> None:
        """Sets the ledger of sources that have none of their own (`squall.contracts.AcceptsDeadLetters`)."""
        for source in self.sources:
            own = getattr(source, "ledger", None)
            if isinstance(own, RunLedger):
                own.ledger = ledger

    @property
    def _can_push_down(self) -> bool:
        """Whether no triple can be late. Late ones are dead letters, which must not be left out."""
        return not self.clock.stamps and (len(self.sources) == 1 or not self.live)

    def __iter__(self) -> Iterator[Sequence[Event]]:
        acknowledges = any(isinstance(original(source), Acknowledging) for source in self.sources)
        return self._acknowledging() if acknowledges and self._max_wait_ms is None else self.batches()

    def batches(self) -> Iterator[Sequence[Event]]:
        """Yields the batches, for a caller that requests the next one before the last has been processed.

        The caller itself acknowledges what has been processed (`acknowledge`), and ends reading (`close`).
        """
        self._reading = True
        return self._batches()

    def _acknowledging(self) -> Iterator[Sequence[Event]]:
        try:
            for batch in self.batches():
                yield batch
                if self._positions != self._acknowledged_positions:
                    self.acknowledge()
            if self._positions != self._acknowledged_positions:
                self.acknowledge()
        finally:
            self.close()

    def _batches(self) -> Iterator[Sequence[Event]]:
        if self.clock.stamps:
            return self._stamped_batches()
        needs_timeout = self.live and (isinstance(self.sources[0], ReorderingSource) or self._max_wait_ms is not None)
        has_pending = any(state["pending"] for state in self._states.values())
        is_single = len(self.sources) == 1 and not needs_timeout and not has_pending
        return self._single() if is_single else self._merged()

    def _single(self) -> Iterator[Sequence[Event]]:
        (tracked,) = self._tracked
        for batch in tracked.batches():
            self._forward_batch(0, tracked.current_offset())
            yield batch
            if self.stopped and not self.live:
                return
        self._forward_batch(0, tracked.current_offset())

    def _forward_batch(self, number: int, offset: SourceOffset) -> None:
        """Notes that all events of a source so far are output."""
        self._tracked[number].forward(offset.dead_letters)
        self._note(number, offset.position, offset.state, (), ALWAYS)

    def _note_cursors(self, cursors: Sequence[Cursor]) -> None:
        """Notes the offsets of sources whose buffered events are still to be output."""
        for number, cursor in enumerate(cursors):
            position = cursor.position if self._max_wait_ms is None else cursor.offset.position
            self._note(number, position, cursor.offset.state, cursor.pending, cursor.bound)

    def _note(self, number: int, position: str, state: Any, pending: Iterable[Event], bound: int) -> None:
        self._positions[number] = position
        if self._max_wait_ms is not None:
            self._states[number] = {**state, "pending": tuple(pending), "bound": bound}

    def _stamped_batches(self) -> Iterator[Sequence[Event]]:
        """Yields events with the time of their arrival, and heartbeats in between."""
        inbox = Inbox(self.clock)
        readers = [ReaderThread(number, tracked, inbox) for number, tracked in enumerate(self._tracked)]
        has_ended = [False] * len(readers)
        patience = min(self.heartbeat, self._max_wait_ms or self.heartbeat)
        deadline = self.clock.now() + patience
        try:
            while not all(has_ended):
                deadline = min(deadline, deadline if self.wake_time is None else self.wake_time())
                received = inbox.take(deadline)
                now = self.clock.now()
                stamped: list[Event] = []
                self.arrived = None if received is None else received.arrived
                if received is not None:
                    self._forward_batch(received.number, received.offset)
                    readers[received.number].release()
                    has_ended[received.number] = received.batch is None
                    self._stop_followers(has_ended)
                    stamped = [event._replace(time=now) for event in received.batch or () if has_facts(event)]
                if stamped or now >= deadline:
                    yield stamped or (rdf.heartbeat(now),)
                    deadline = self.clock.now() + patience
        finally:
            for reader in readers:
                reader.stop()

    def _merged(self) -> Iterator[Sequence[Event]]:
        inbox = Inbox(self.clock)
        cursors = self._cursors(inbox)
        live = {number: cursor for number, cursor in enumerate(cursors) if isinstance(cursor, LiveCursor)}
        latest = ALWAYS
        deadline = self.clock.now() + self.heartbeat
        try:
            while True:
                paused = self._is_paused
                batch = self._available(cursors, paused)
                if batch:
                    latest = max(latest, batch[-1].time)
                    yield batch
                    deadline = self.clock.now() + self.heartbeat
                elif self._has_come_to_end(cursors, paused):
                    return
                self.arrived = None
                watermark = _watermark(cursors)
                has_advanced = not batch and watermark > latest
                patience = self._patience(cursors, live.values(), deadline if has_advanced else None)
                if _receive(inbox, live, self.clock.now() if batch else patience):
                    deadline = self.clock.now() + self.heartbeat
                    continue
                self._note_cursors(cursors)  # what has arrived may be dead letters alone
                if has_advanced and self.clock.now() >= deadline:
                    latest = watermark
                    yield (rdf.heartbeat(watermark),)
                elif not batch and self._max_wait_ms is not None:
                    yield ()
        finally:
            for cursor in live.values():
                cursor.reader.stop()

    def _has_come_to_end(self, cursors: Sequence[Cursor], paused: bool) -> bool:
        """Returns whether no more events come, and stops the sources that end with the others."""
        self._stop_followers(cursor.ended for cursor in cursors)
        return _have_ended(cursors, paused)

    def _stop_followers(self, ended: Iterable[bool]) -> None:
        """Stops the sources that end with the others (``tick:1s``), if those have ended. ended: which ones have."""
        states = [(original(source), has_ended) for source, has_ended in zip(self.sources, ended, strict=True)]
        followers = [source for source, _ in states if ends_with_others(source)]
        if followers and len(followers) < len(states) and all(end for source, end in states if source not in followers):
            for source in followers:
                if isinstance(source, Stoppable):
                    source.stop()

    @property
    def _is_paused(self) -> bool:
        """Whether the run is stopped, and another one resumes from its offsets."""
        return self.stopped and self._max_wait_ms is not None

    def _cursors(self, inbox: Inbox) -> Sequence[Cursor]:
        """Returns a cursor for each source, as its offset says."""
        cursors: list[Cursor] = []
        leaders: list[Cursor] = []
        for number, tracked in enumerate(self._tracked):
            if follows_others(tracked.source):
                cursors.append(FollowingCursor(tracked, leaders))
                continue
            live = tracked.source.live
            cursors.append(LiveCursor(number, tracked, inbox, self.clock) if live else BoundedCursor(tracked))
            leaders.append(cursors[-1])
        for number, state in self._states.items():
            cursors[number].resume(SourceOffset("", state), map(event_of, state["pending"]), state["bound"])
        return cursors

    def _available(self, cursors: Sequence[Cursor], paused: bool) -> list[Event]:
        """Returns the events that can be output, and notes the offsets behind them. paused: nothing more is read."""
        for cursor in cursors if not paused else ():
            cursor.fill(self.stopped)
        batch, self.arrived = _available(cursors)
        self._note_cursors(cursors)
        return batch

    def _patience(self, cursors: Sequence[Cursor], live: Iterable[LiveCursor], deadline: int | None) -> int | None:
        """Returns the time (integer ms) until which to wait for events, or None for no limit.

        It is when a source for which others wait has been silent too long, or the given deadline, or when the caller
        wants to have a batch.
        """
        first_times = [cursor.pending[0].time for cursor in cursors if cursor.pending]
        deadlines = [cursor.deadline for cursor in live if first_times and cursor.limit < min(first_times)]
        deadlines += [] if deadline is None else [deadline]
        deadlines += [] if self._max_wait_ms is None else [self.clock.now() + self._max_wait_ms]
        return min(deadlines, default=None)


class ObservedSources(Sources):
    """Sources that call back when reading begins, and with each batch.

    Args:
        sources: The sources.
        on_begin: It is called before the first batch is read, when static data have been read.
        on_events: It is called with each batch, or None.
    """

    def __init__(
        self, sources: Sources, on_begin: Callable[[], None], on_events: Callable[[Sequence[Event]], None] | None = None
    ) -> None:
        super().__init__(sources.sources, sources.clock, sources.heartbeat, sources.ledgers)
        self._on_begin = on_begin
        self._on_events = on_events

    def push_down(self, predicates: Collection[Term]) -> None:
        """Declares predicates, unless there is an observer of the batches: it gets all triples."""
        if self._on_events is None:
            super().push_down(predicates)

    def static_events(self) -> list[Event]:
        events = super().static_events()
        if self._on_events is not None:
            self._on_events(events)
        return events

    def __iter__(self) -> Iterator[Sequence[Event]]:
        self._on_begin()
        return super().__iter__() if self._on_events is None else self._observed(self._on_events)

    def _observed(self, on_events: Callable[[Sequence[Event]], None]) -> Iterator[Sequence[Event]]:
        for batch in super().__iter__():
            on_events(batch)
            yield batch


def ends_with_others(source: Source) -> bool:
    """Returns whether a source ends when all others have ended, and has no end of its own (``tick:1s``)."""
    return getattr(original(source), "ends_with_others", False)


def follows_others(source: Source) -> bool:
    """Returns whether a source goes as far as the others have come in event time (``tick:1s?from=0``)."""
    return ends_with_others(source) and not source.live


def _check_followers(sources: Sequence[Source], clock: Clock) -> None:
    """Raises UsageError if a source has nothing to follow."""
    for source in sources:
        if follows_others(source):
            hint = "say where it ends: `until=2026-01-01T00:00:00Z`; or leave `from` out, so that it is live"
            if all(map(ends_with_others, sources)):
                raise UsageError(f"`{source.uri}` has no end: there is no other source that it could follow", hint=hint)
            if clock.stamps:
                raise UsageError(
                    f"`{source.uri}` follows event time, and events get the time of their arrival", hint=hint
                )


def _checked_sources(sources: Any) -> tuple[Source, ...]:
    """Returns sources as a tuple. Raises ArgumentError if they are none."""
    hint = "write `Sources([open_source(path)])`"
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ArgumentError(f"a sequence of sources is expected, and not {sources!r}", hint=hint)
    checked = tuple(sources)
    for source in checked:
        if not hasattr(source, "batches"):
            raise ArgumentError(f"`{source!r}` is no source", hint=hint)
    return checked


def _available(cursors: Sequence[Cursor]) -> tuple[list[Event], float | None]:
    """Returns the events that can be output, in the order of time, until a source has no more buffered; and when the
    first of them arrived, if that is known."""
    batch: list[Event] = []
    arrivals: list[float] = []
    while ready := [cursor for cursor in cursors if cursor.is_ready]:
        first = min(ready, key=lambda cursor: cursor.pending[0].time)
        arrival = first.arrival
        events = first.take(min((cursor.limit for cursor in cursors if cursor is not first), default=FOREVER))
        batch += events
        if events and arrival is not None:
            arrivals.append(arrival)
        if not events or not first.pending:
            break
    return batch, min(arrivals, default=None)


def _watermark(cursors: Sequence[Cursor]) -> int:
    """Returns the watermark. Silent sources count only if there are no others."""
    active = [cursor for cursor in cursors if cursor.pending or not cursor.is_silent]
    return min(cursor.watermark for cursor in active or cursors)


def _have_ended(cursors: Sequence[Cursor], paused: bool) -> bool:
    """Returns whether no more events come. In a paused run, buffered events wait for those that have not been read."""
    if paused:
        return all(cursor.ended for cursor in cursors if isinstance(cursor, LiveCursor))
    return all(cursor.ended and not cursor.pending for cursor in cursors)


def _receive(inbox: Inbox, live: Mapping[int, LiveCursor], until: int | None) -> bool:
    """Passes batches that have arrived to their cursors, and waits for the first one until a time.

    Returns whether there were events, or a source ended.
    """
    received, has_news = inbox.take(until), False
    while received is not None:
        live[received.number].put(received.batch, received.offset, received.arrived)
        has_news = has_news or received.batch is None or bool(received.batch)
        received = inbox.take(0)
    return has_news
