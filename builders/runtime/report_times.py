"""Evaluation instants: the times at which an rstream output emits a snapshot (docs/semantics.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from squall.model import Source
from squall.model.windows import Window
from squall.plan.operators import DerivedStream, Sink
from squall.rdf import ALWAYS, FOREVER, HEARTBEAT, Columns, Event


def _is_never_idle() -> bool:
    return False


class _WaitingEvents:
    """Events whose instants nobody has needed, since there was nothing to report.

    Attributes:
        delay: By how much the instant of an event is later at most (integer ms).
        batches: The events, batch by batch, in the order of time.
    """

    def __init__(self, windows: Iterable[Window]) -> None:
        self.delay = max((window.offset or 0 for window in windows), default=0)
        self.batches: list[Sequence[Event]] = []

    def drop_until(self, now: int) -> None:
        """Drops the batches whose instants are not later than `now` (integer ms)."""
        self.batches = [events for events in self.batches if _last_time(events) + self.delay > now]

    def take(self) -> list[Sequence[Event]]:
        """Removes and returns the batches."""
        batches, self.batches = self.batches, []
        return batches


def _last_time(events: Sequence[Event]) -> int:
    return events.times[-1] if type(events) is Columns else events[-1].time


class ReportSchedule:
    """The evaluation instants that events lead to, in order as time passes.

    Args:
        op: The node that outputs snapshots.
        is_idle: Returns whether there is nothing to report, whatever the instant. What begins later begins at an
            instant that was not passed.

    The class implements `squall.builders.runtime.operators.state.RowSerializable`.
    """

    def __init__(self, op: Sink | DerivedStream, is_idle: Callable[[], bool] = _is_never_idle) -> None:
        self.sources = tuple(dict.fromkeys(op.sources))
        self.report = op.report
        self.is_idle = is_idle
        windows = [window for source in self.sources for window in source.all_windows if not window.is_empty]
        can_wait = all(window.is_momentary for window in windows) and not self.report.is_periodic
        self.waiting = _WaitingEvents(windows) if can_wait else None
        """Events that wait, if their instants depend on nothing but their times."""
        self.affected_windows: dict[tuple[str, str], tuple[tuple[Source, Window], ...]] = {}
        """The sources that events of a stream and graph affect, with their windows of the stream."""
        self.single_times: list[int] = [ALWAYS]
        self.grid_heap: list[tuple[int, int]] = []
        """(next instant, step) of each window grid that has instants to come."""
        self.grid_ends: dict[tuple[int, int], int] = {}
        """The last instant of each grid."""
        self.positions: dict[tuple[Source, str], int] = {}
        """What each window with sequential instants has to know of a stream (`Window.change_instants`)."""
        self.first_time: int | None = None
        """The time of the first event."""
        self.last_time = ALWAYS
        """The latest known instant; with a period, the time that was reached."""
        self.reported_until = ALWAYS - 1

    @property
    def next_time(self) -> int:
        """The next known instant; FOREVER if there is none."""
        if self.report.is_periodic:
            after = max(self.first_time, self.reported_until + 1) if self.first_time is not None else FOREVER
            next_time = self.report.next_report(after)
            return next_time if next_time <= self.report.next_report(self.last_time) else FOREVER
        self._add_waiting()
        return min(
            self.single_times[0] if self.single_times else FOREVER, self.grid_heap[0][0] if self.grid_heap else FOREVER
        )

    def advance_time(self, time: int) -> None:
        """Notes that time has reached `time` (integer ms): multiples of the period are reported up to there."""
        if time > self.last_time and self.report.is_periodic:
            self.last_time = time

    def add(self, events: Sequence[Event]) -> None:
        """Adds the instants of those events, in the order of time, that the sources read."""
        if self.waiting is None or not events:
            self._add_all(events)
        else:
            self.waiting.batches.append(events)

    def skip_until(self, now: int) -> None:
        """Passes the instants up to and including `now` (integer ms), at which there is nothing to report."""
        if self.waiting is not None:
            self.waiting.drop_until(now)
        if self.waiting is None or self.waiting.batches or self.single_times:
            self.pop_until(now)

    def skip_if_idle(self, now: int) -> None:
        """Does the same if there is nothing to report at later instants either, as far as is known."""
        if self.waiting is not None and self.waiting.batches and self.is_idle():
            self.skip_until(now)

    def _add_waiting(self) -> None:
        for events in () if self.waiting is None else self.waiting.take():
            self._add_all(events)

    def _add_all(self, events: Iterable[Event]) -> None:
        if type(events) is Columns and self.affected_windows.get((events.stream, "")) == ():
            return
        for event in events:
            if event.time == ALWAYS:
                continue
            for source, window in self.affected_by(event):
                self.first_time = event.time if self.first_time is None else self.first_time
                self._add(event, source, window)

    def affected_by(self, event: Event) -> tuple[tuple[Source, Window], ...]:
        """Returns the sources that an event may change, by its stream and graph, each with its window."""
        place = event.stream, event.graph
        affected = self.affected_windows.get(place)
        if affected is None:
            sources = (source for source in self.sources if event.stream != HEARTBEAT and source.is_affected_by(event))
            affected = tuple((source, source.window_of(event.stream)) for source in sources)
            self.affected_windows[place] = affected
        return affected

    def add_close(self, source: Source, stream: str, time: int) -> None:
        """Adds the time (integer ms) at which a session of a stream has closed, as a source reads it."""
        if any(own.follows_as(source, stream) for own in self.sources):
            self.add_instant(time)

    def add_instant(self, time: int) -> None:
        """Adds an instant (integer ms). `ALWAYS` is reported again even if it was reported before."""
        self.last_time = max(self.last_time, time)
        if time == ALWAYS:
            self.reported_until = ALWAYS - 1
        if not self.report.is_periodic:
            heappush(self.single_times, time)

    def _add(self, event: Event, source: Source, window: Window) -> None:
        if event.removed:
            self.add_instant(event.time)
        if window.has_sequential_instants:
            place = source, event.stream
            instants, position = window.change_instants(event.time, len(event.facts), self.positions.get(place))
            if position is not None:
                self.positions[place] = position
        else:
            instants, _ = window.change_instants(event.time)
        if isinstance(instants, range):
            self._add_grid(instants[0], instants.step, instants[-1])
            return
        for time in instants:
            self.add_instant(time)

    def _add_grid(self, first: int, step: int, last: int) -> None:
        self.last_time = max(self.last_time, last)
        if self.report.is_periodic:
            return
        # The intervals of one window's events overlap: the longest replaces the others.
        if (first, step) not in self.grid_ends:
            heappush(self.grid_heap, (first, step))
        self.grid_ends[first, step] = max(last, self.grid_ends.get((first, step), last))

    def pop_until(self, now: int) -> list[int]:
        """Removes and returns the instants up to and including `now`, in order, each once."""
        self._add_waiting()
        candidates = sorted(set(self._periodic(now) if self.report.is_periodic else self._on_change(now)))
        instants = [time for time in candidates if time > self.reported_until]
        self.reported_until = instants[-1] if instants else self.reported_until
        return instants

    def _on_change(self, now: int) -> Iterator[int]:
        while self.single_times and self.single_times[0] <= now:
            yield heappop(self.single_times)
        while self.grid_heap and self.grid_heap[0][0] <= now:
            first, step = heappop(self.grid_heap)
            last = self.grid_ends.pop((first, step))
            yield first
            if first + step <= last:
                self._add_grid(first + step, step, last)

    def _periodic(self, now: int) -> Iterator[int]:
        if self.reported_until < ALWAYS:
            yield ALWAYS
        if self.first_time is not None:
            since = max(self.first_time, self.reported_until + 1)
            until = min(now, self.report.next_report(self.last_time))
            yield from range(self.report.next_report(since), until + 1, self.report.period)

    # Serialization (`squall.builders.runtime.operators.state.RowSerializable`)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yields the whole schedule as rows of text."""
        self._add_waiting()
        yield "last_time", str(self.last_time)
        yield "reported_until", str(self.reported_until)
        if self.first_time is not None:
            yield "first_time", str(self.first_time)
        yield from (("single_time", str(time)) for time in set(self.single_times))
        yield from (("grid", str(first), str(step), str(last)) for (first, step), last in self.grid_ends.items())
        first_times: dict[str, int] = {}
        for (source, stream), position in self.positions.items():
            if source.window_of(stream).counts_triples:
                yield "fact_count", str(self.sources.index(source)), stream, str(position)
            else:
                first_times[stream] = position
        yield from (("stream_begin", stream, str(time)) for stream, time in first_times.items())

    def load_rows(self, rows: Iterable[Sequence[str | None]]) -> None:
        """Replaces the schedule by the rows."""
        if self.waiting is not None:
            self.waiting.take()
        self.single_times, self.grid_heap, self.grid_ends, self.positions, self.first_time = [], [], {}, {}, None
        for row in rows:
            match [str(cell) for cell in row]:
                case ["last_time", time]:
                    self.last_time = int(time)
                case ["reported_until", time]:
                    self.reported_until = int(time)
                case ["first_time", time]:
                    self.first_time = int(time)
                case ["single_time", time]:
                    heappush(self.single_times, int(time))
                case ["grid", first, step, last]:
                    self._add_grid(int(first), int(step), int(last))
                case ["stream_begin", stream, time]:
                    readers = (source for source in self.sources if source.window_of(stream).begins_at_first_triple)
                    self.positions |= {(source, stream): int(time) for source in readers}
                case ["fact_count", number, stream, count]:
                    self.positions[self.sources[int(number)], stream] = int(count)


class ReportSchedules:
    """The evaluation instants of all nodes of a dataflow that output snapshots.

    Args:
        by_node: The schedules, by node.
    """

    def __init__(self, by_node: Mapping[str, ReportSchedule]) -> None:
        self.by_node = by_node
        self.nodes_of: dict[tuple[str, str], tuple[str, ...]] = {}
        """The nodes that read events of a stream and graph."""

    def __iter__(self) -> Iterator[ReportSchedule]:
        return iter(self.by_node.values())

    def add_derived(self, events: Sequence[Event]) -> Collection[str]:
        """Adds the instants of the events of a derived stream, in the order of time, to the schedules of those that
        read them, and returns their nodes. There may be many derived streams, each of which few nodes read."""
        nodes: dict[str, list[Event]] = {}
        for event in events:
            for node in self._nodes_of(event) if event.time != ALWAYS else ():
                nodes.setdefault(node, []).append(event)
        for node, node_events in nodes.items():
            self.by_node[node].add(node_events)
        return nodes.keys()

    def _nodes_of(self, event: Event) -> tuple[str, ...]:
        place = event.stream, event.graph
        nodes = self.nodes_of.get(place)
        if nodes is None:
            nodes = tuple(id for id, schedule in self.by_node.items() if schedule.affected_by(event))
            self.nodes_of[place] = nodes
        return nodes
