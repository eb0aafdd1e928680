"""Latency and throughput of a run: of each batch of events, and of each step of its windows.

The latency of a batch is the time from the arrival of its first event until all outputs of the batch have been taken.
The latency of a window is that of the batch that completes it. So both include what the sink takes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, floor, log
from operator import attrgetter

from squall.contracts import BatchMetrics
from squall.model.windows import HoppingWindow
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import ALWAYS, Columns, Event
from squall.wording import counted

_STREAM, _TIME, _SIZE = map(attrgetter, ("stream", "time", "statement_count"))
QUANTILES = (0.5, 0.95, 0.99)
"""The quantiles that the summary shows, besides the largest value."""
_BINS = 1 / log(1.02)
"""The number of bins of values whose ratio is e: those of one bin differ by at most 2 %, so that quantiles are exact to
within 1 %."""
_LEAST = 1e-9
"""The value as which 0 is counted: the clock's resolution, in seconds."""
SECONDS = tuple(digit * 10**power for power in range(-4, 3) for digit in (1, 2.5, 5))
"""The upper bounds of the buckets of a histogram of seconds: 0.1 ms to 500 s."""
COUNTS = tuple(digit * 10**power for power in range(8) for digit in (1, 3))
"""Those of a histogram of statements, and of statements per second."""


class Distribution:
    """The distribution of positive values, in constant memory.

    Args:
        bounds: The upper bounds of the buckets of its histogram, in order. A value at a bound belongs below it.

    Attributes:
        count: The number of values.
        total: Their sum.
        maximum: The largest one, or 0.
        bucket_counts: The number of values in each bucket; the last one has no bound.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.count = 0
        self.total = 0.0
        self.maximum = 0.0
        self.bucket_counts = [0] * (len(bounds) + 1)
        self._bins: dict[int, int] = {}

    def record(self, value: float) -> None:
        """Adds a value."""
        self.count += 1
        self.total += value
        if value > self.maximum:
            self.maximum = value
        self.bucket_counts[bisect_left(self.bounds, value)] += 1
        bin = floor(log(value or _LEAST) * _BINS)
        self._bins[bin] = self._bins.get(bin, 0) + 1

    def quantile(self, share: float) -> float:
        """Returns the least value such that a share (0 to 1) of all values are at most as large, to within 1 %.

        It is 0 if there are no values.
        """
        rank = max(ceil(share * self.count), 1)
        for number, count in sorted(self._bins.copy().items()):  # another thread may add values
            rank -= count
            if rank <= 0:
                return min(exp((number + 0.5) / _BINS), self.maximum)
        return 0.0

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """Yields each bound as text with the number of values up to it, as Prometheus wants them, ``+Inf`` last."""
        count = 0
        for bound, bucket in zip((*map(_bound_text, self.bounds), "+Inf"), list(self.bucket_counts), strict=True):
            count += bucket
            yield bound, count


def _bound_text(bound: float) -> str:
    return repr(float(f"{bound:.12g}"))


@dataclass
class Figures:
    """The distributions of batches, or of the steps of one window.

    Attributes:
        latency: Seconds from the arrival of the first event until the outputs have been taken.
        seconds: Seconds of processing.
        statements: The statements of each.
        rate: Statements per second of processing.
    """

    latency: Distribution = field(default_factory=lambda: Distribution(SECONDS))
    seconds: Distribution = field(default_factory=lambda: Distribution(SECONDS))
    statements: Distribution = field(default_factory=lambda: Distribution(COUNTS))
    rate: Distribution = field(default_factory=lambda: Distribution(COUNTS))

    def record(self, latency: float, seconds: float, statements: int) -> None:
        """Adds a batch, or a step of a window."""
        self.latency.record(latency)
        self.seconds.record(seconds)
        self.statements.record(statements)
        self.rate.record(statements / max(seconds, 1e-9))


class Latencies:
    """The latency and throughput of a run (`squall.contracts.Options.on_batch`).

    Hopping windows are measured where the batches have their events (`BatchMetrics.events`). Other windows have no
    steps that could be measured.

    Args:
        plan: The plan of the run.

    Attributes:
        batches: The figures of batches. One without statements (a heartbeat) is not counted.
        windows: The figures of the steps of each hopping window, by its stream and its text. A step without statements
            is not counted, and neither is one that only the end of the input completes.
    """

    def __init__(self, plan: Plan) -> None:
        self.batches = Figures()
        windows = dict.fromkeys(_hopping_windows(plan))
        self._steps = [_Steps(stream, excluded, window) for stream, excluded, window in windows]
        self.windows: Mapping[tuple[str, str], Figures] = {steps.label: steps.figures for steps in self._steps}

    def __call__(self, batch: BatchMetrics) -> None:
        """Adds a batch that has been processed."""
        if batch.statements:
            self.batches.record(batch.ended - batch.arrived, batch.ended - batch.began, batch.statements)
        if batch.events is not None:
            for steps in self._steps:
                steps.add(batch, batch.events)

    def lines(self) -> list[str]:
        """Returns the lines of the summary."""
        lines = _lines(counted(self.batches.latency.count, "batch", "batches"), self.batches)
        for (stream, text), figures in self.windows.items():
            name = f"{counted(figures.latency.count, 'step')} of the window {text}{stream and f' of {stream}'}"
            lines += _lines(name, figures)
        return lines


class _Steps:
    """The steps of one hopping window, of one stream or of all that have no window of their own."""

    def __init__(self, stream: str, excluded: frozenset[str], window: HoppingWindow) -> None:
        self.label = stream, str(window)
        self.figures = Figures()
        self._stream = stream
        self._excluded = excluded
        self._window = window
        self._completed = ALWAYS
        self._open: dict[int, list[float]] = {}
        """The statements so far, and the seconds, of each instant that is not complete yet."""

    def add(self, batch: BatchMetrics, events: Sequence[Event]) -> None:
        seconds = batch.ended - batch.began
        for instant, count in self._statements(batch, events):
            if instant <= self._completed:  # late
                continue
            step = self._open.setdefault(instant, [0, 0.0])
            step[0] += count
            step[1] += seconds * count / batch.statements
        if not batch.statements and self._open:  # a heartbeat: the work is that of the steps that it completes
            self._open[min(self._open)][1] += seconds
        for instant in sorted(instant for instant in self._open if instant <= batch.watermark):
            statements, busy = self._open.pop(instant)
            self.figures.record(batch.ended - batch.arrived, busy, int(statements))
        self._completed = max(self._completed, batch.watermark)

    def _statements(self, batch: BatchMetrics, events: Sequence[Event]) -> Iterable[tuple[int, int]]:
        """Returns the instants at which a batch changes the content of the window, with the statements that do so."""
        streams = {events.stream} if isinstance(events, Columns) else set(map(_STREAM, events))
        if not any(self._reads(stream) for stream in streams):
            return ()
        times = events.times if isinstance(events, Columns) else list(map(_TIME, events))
        is_sorted = isinstance(events, Columns) or times == sorted(times)
        if len(streams) > 1 or not is_sorted or times[0] == ALWAYS or self._window.begins_at_first_triple:
            return self._counted_one_by_one(events)
        return self._counted_by_slices(events, times, batch.statements)

    def _reads(self, stream: str) -> bool:
        return stream == self._stream if self._stream else stream not in self._excluded

    def _counted_by_slices(
        self, events: Sequence[Event], times: Sequence[int], statements: int
    ) -> Iterator[tuple[int, int]]:
        """Yields the same of events in the order of time that the window reads, one slice for each instant."""
        window, first = self._window, 0
        while first < len(times):
            instant = window.validity(times[first])[0]
            after = bisect_left(times, instant - window.delay + window.closed, first)
            if after == len(times):
                count = statements
            else:
                sizes = events.sizes[first:after] if isinstance(events, Columns) else map(_SIZE, events[first:after])
                count = sum(sizes)
            if count:
                yield instant, count
            statements, first = statements - count, after

    def _counted_one_by_one(self, events: Sequence[Event]) -> Iterator[tuple[int, int]]:
        """Yields the same of any events."""
        instant, end, count = 0, None, 0
        for time, size in self._sizes(events):
            if end is None or time >= end:
                if count:
                    yield instant, count
                window = self._window = self._window.begun_at(time)
                instant, count = window.validity(time)[0], 0
                end = instant - window.delay + window.closed
            count += size
        if count:
            yield instant, count

    def _sizes(self, events: Sequence[Event]) -> Iterable[tuple[int, int]]:
        """Returns the time and the number of statements of each event that the window reads."""
        if isinstance(events, Columns):
            return zip(events.times, events.sizes, strict=True)
        read = (event for event in events if not event.is_static and self._reads(event.stream))
        return ((event.time, event.statement_count) for event in read)


def _hopping_windows(plan: Plan) -> Iterator[tuple[str, frozenset[str], HoppingWindow]]:
    """Yields the hopping windows through which a plan reads streams: the stream, or ``""`` for all but some."""
    scans = (node.op for node in plan.nodes if isinstance(node.op, Scan))
    for source in sorted({scan.source for scan in scans}, key=attrgetter("iri")):
        named = frozenset(stream for stream, _ in source.windows)
        for stream, excluded, window in (
            (source.iri, named, source.window),
            *((stream, frozenset[str](), window) for stream, window in source.windows),
        ):
            if type(window) is HoppingWindow:  # one that is read while it is open has no steps
                yield stream, excluded, window


def _lines(name: str, figures: Figures) -> list[str]:
    if not figures.latency.count:
        return []
    latency = ", ".join(
        (
            *(f"p{100 * share:g} {_seconds(figures.latency.quantile(share))}" for share in QUANTILES),
            f"max {_seconds(figures.latency.maximum)}",
        )
    )
    medians = (
        counted(round(figures.statements.quantile(0.5)), "statement"),
        _seconds(figures.seconds.quantile(0.5)),
        f"{figures.rate.quantile(0.5):,.0f} statements/s",
    )
    return [f"  {name}: latency {latency}", f"    medians: {', '.join(medians)}"]


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"
