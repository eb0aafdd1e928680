"""Evaluation instants: at which times an answer is told whole (rstream; docs/semantics.md, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from squall.model import Source
from squall.model.windows import CountWindow, HoppingWindow, Landmark, SlidingWindow
from squall.plan.operators import DerivedStream, Sink
from squall.rdf import ALWAYS, FOREVER, HEARTBEAT, Event


class ReportSchedule:
    """The evaluation instants that events lead to, given in order as time passes."""

    def __init__(self, op: Sink | DerivedStream) -> None:
        self.sources = tuple(dict.fromkeys(op.sources))
        self.report = op.report
        self.single: list[int] = [ALWAYS]
        self.grids: list[tuple[int, int]] = []
        """(next instant, step) of the grids of windows that have instants to come."""
        self.until: dict[tuple[int, int], int] = {}
        """The last instant of each."""
        self.came: dict[tuple[Source, str], int] = {}
        """How many facts have come through each window of triples that has a step, by its source and stream."""
        self.first: int | None = None
        """The time of the first event."""
        self.last = ALWAYS
        """The latest instant that is known to come, or, with a period, to which time has come."""
        self.passed = ALWAYS - 1

    @property
    def due(self) -> int:
        """The next instant, as far as is known; FOREVER: none."""
        if self.report.policy == "periodic":
            period = self.report.period
            after = max(self.first, self.passed + 1) if self.first is not None else FOREVER
            next_time = -(-after // period) * period
            return next_time if next_time <= -(-self.last // period) * period else FOREVER
        return min(self.single[0] if self.single else FOREVER, self.grids[0][0] if self.grids else FOREVER)

    def go_on(self, time: int) -> None:
        """Time has come so far (integer ms), whatever says so: multiples of a period are told up to there."""
        if time > self.last and self.report.policy == "periodic":
            self.last = time

    def add(self, events: Iterable[Event]) -> None:
        """Takes note of those among events that are read."""
        for event in events:
            is_instant = event.stream != HEARTBEAT and event.time != ALWAYS
            for source in self.sources if is_instant else ():
                if source.is_affected_by(event):
                    self.first = event.time if self.first is None else self.first
                    self._add(event, source)

    def add_instant(self, time: int) -> None:
        """There is an instant at this time (integer ms); at `ALWAYS` one more, even if it has been given."""
        self.last = max(self.last, time)
        if time == ALWAYS:
            self.passed = ALWAYS - 1
        if self.report.policy != "periodic":
            heappush(self.single, time)

    def _add(self, event: Event, source: Source) -> None:
        window = source.window_of(event.stream)
        if event.removed:
            self.add_instant(event.time)
        match window:
            case Landmark() | CountWindow(step=1):
                self.add_instant(event.time)
            case CountWindow(step=step):
                before = self.came.get((source, event.stream), 0)
                self.came[source, event.stream] = before + len(event.facts)
                if (before + len(event.facts)) // step > before // step:
                    self.add_instant(event.time)
            case SlidingWindow():
                first, last = window.validity(event.time)
                self.add_instant(first)
                self.add_instant(last)
            case HoppingWindow(step=step):
                first, last = window.validity(event.time)
                self._add_grid(first, step, last)

    def _add_grid(self, first: int, step: int, last: int) -> None:
        self.last = max(self.last, last)
        if self.report.policy == "periodic":
            return
        # The spans of one window's events overlap: the longest takes the others' place.
        if (first, step) not in self.until:
            heappush(self.grids, (first, step))
        self.until[first, step] = max(last, self.until.get((first, step), last))

    def upto(self, now: int) -> list[int]:
        """The instants up to a time, that included, which have not been given yet, in order, each once."""
        candidates = sorted(set(self._periodic(now) if self.report.policy == "periodic" else self._taken(now)))
        instants = [time for time in candidates if time > self.passed]
        self.passed = instants[-1] if instants else self.passed
        return instants

    def _taken(self, now: int) -> Iterator[int]:
        while self.single and self.single[0] <= now:
            yield heappop(self.single)
        while self.grids and self.grids[0][0] <= now:
            first, step = heappop(self.grids)
            last = self.until.pop((first, step))
            yield first
            if first + step <= last:
                self._add_grid(first + step, step, last)

    def _periodic(self, now: int) -> Iterator[int]:
        period = self.report.period
        if self.passed < ALWAYS:
            yield ALWAYS
        if self.first is not None:
            since = max(self.first, self.passed + 1)
            until = min(now, -(-self.last // period) * period)
            yield from range(-(-since // period) * period, until + 1, period)

    # What there is, as rows of text (`squall.builders.runtime.operators.state.RowSerializable`)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """All that is known, as rows of text."""
        yield "last", str(self.last)
        yield "passed", str(self.passed)
        if self.first is not None:
            yield "first", str(self.first)
        yield from (("single", str(time)) for time in set(self.single))
        yield from (("grid", str(first), str(step), str(last)) for (first, step), last in self.until.items())
        for (source, stream), count in self.came.items():
            yield "came", str(self.sources.index(source)), stream, str(count)

    def load_rows(self, rows: Iterable[Sequence[str | None]]) -> None:
        """This is all that is known."""
        self.single, self.grids, self.until, self.came, self.first = [], [], {}, {}, None
        for row in rows:
            match [str(cell) for cell in row]:
                case ["last", time]:
                    self.last = int(time)
                case ["passed", time]:
                    self.passed = int(time)
                case ["first", time]:
                    self.first = int(time)
                case ["single", time]:
                    heappush(self.single, int(time))
                case ["grid", first, step, last]:
                    self._add_grid(int(first), int(step), int(last))
                case ["came", number, stream, count]:
                    self.came[self.sources[int(number)], stream] = int(count)
