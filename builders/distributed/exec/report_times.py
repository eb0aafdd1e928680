"""Report times in a distributed engine: when a snapshot (`rstream`) is evaluated, of an answer or a derived stream.

Nobody sees all events. Workers report which of theirs make a difference: a stream has brought something, or, where only
they can know, a node is to be evaluated. The driver makes evaluation instants of these reports (`ReportSchedule`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType

from squall.builders.distributed.io.records import Instant
from squall.builders.distributed.plan.snapshot_nodes import reports_on_change, rstream_nodes
from squall.builders.runtime.report_times import ReportSchedule
from squall.builders.runtime.serde import pack, unpack
from squall.model import Source
from squall.model.windows import Window
from squall.plan import Plan
from squall.plan.operators import DerivedStream, Sink
from squall.rdf import ALWAYS, HEARTBEAT, Event

NodeInstants = Mapping[int, Sequence[int]]
"""The instants at which a node is evaluated (integer ms), in order, by its number."""
NO_INSTANTS: NodeInstants = MappingProxyType({})


# What workers say


def stream_activity(stream: str, graph: str, time: int) -> Instant:
    """Returns the record that a stream has brought something in a graph, at a time (integer ms). `HEARTBEAT` as stream
    means that time has come so far."""
    return Instant(pack((stream, graph)), 0, time)


def evaluation_record(number: int, time: int) -> Instant:
    """Returns the record that a node is to be evaluated at a time (integer ms), or that its answer has changed then."""
    return Instant("", number, time)


class EvaluationTimes:
    """Collects the times of events that make a difference to when a node is evaluated. Where windows hop, this is the
    first time of each step. (Windows that follow a stream are left to `sequential_evaluations`.)"""

    def __init__(self, plan: Plan) -> None:
        reporters = rstream_nodes(plan)
        self.whole = {number: op.sources for number, op in reporters.items()}
        self.sources = tuple(dict.fromkeys(source for sources in self.whole.values() for source in sources))
        self.windows: dict[tuple[str, str], tuple[Window, ...]] = {}
        """The windows through which a stream is read, by stream and graph."""
        self.first: dict[tuple[Hashable, ...], tuple[str, str, int]] = {}
        self.removed: dict[tuple[int, int], None] = {}
        """The numbers of nodes that removals cause to be evaluated, each with the time."""
        self.has_periods = any(op.report.is_periodic for op in reporters.values())

    def add(self, events: Iterable[Event]) -> None:
        """Adds the times of events."""
        for event in events if self.sources else ():
            if event.stream == HEARTBEAT or event.time == ALWAYS:
                continue
            place = event.stream, event.graph
            windows = self.windows.get(place)
            if windows is None:
                windows = self.windows[place] = self._windows_of(event)
            if windows:
                spans = tuple(span for window in windows if (span := _window_span(window, event.time)) is not None)
                first_time = self.first.get((*place, spans))
                if first_time is None or event.time < first_time[2]:
                    self.first[*place, spans] = (*place, event.time)
            if event.removed:
                self._add_removal(event)

    def _windows_of(self, event: Event) -> tuple[Window, ...]:
        """Returns the windows through which the stream and graph of an event are read."""
        return tuple(source.window_of(event.stream) for source in self.sources if source.is_affected_by(event))

    def _add_removal(self, event: Event) -> None:
        for number, sources in self.whole.items():
            if any(source.is_affected_by(event) for source in sources):
                self.removed[number, event.time] = None

    def records(self, latest: int) -> Iterator[Instant]:
        """Yields the records of the collected times. latest: the time up to which events have come (integer ms); it
        matters where reports are periodic."""
        if self.has_periods and latest > ALWAYS:
            yield stream_activity(HEARTBEAT, "", latest)
        yield from (stream_activity(*first) for first in self.first.values())
        yield from (evaluation_record(*removal) for removal in self.removed)


def _window_span(window: Window, time: int) -> Hashable:
    """Returns what times have in common that make no difference to a window, or None if no time makes one."""
    if window.has_sequential_instants:
        return None
    return time if window.counts_triples else window.validity(time)


def sequential_evaluations(
    reporters: Mapping[int, Sink | DerivedStream],
    source: Source,
    positions: Mapping[str, int],
    events: Iterable[Event],
) -> Iterator[Instant]:
    """Yields what is to be evaluated because of some events in windows that follow a stream.

    Args:
        reporters: the nodes that may be evaluated (`rstream_nodes`).
        source: the source as which the events are read.
        positions: what is known of each stream before the events (`ScanOperator.positions`).
        events: the events.
    """
    for stream, time in dict.fromkeys(_sequential_instants(source, positions, events)) if reporters else ():
        for number, op in reporters.items():
            if any(source.follows_as(reader, stream) for reader in op.sources):
                yield evaluation_record(number, time)


def _sequential_instants(
    source: Source, positions: Mapping[str, int], events: Iterable[Event]
) -> Iterator[tuple[str, int]]:
    """Yields the streams whose content changes because of some events, each with the time."""
    places = dict(positions)
    for event in events:
        stream, time = event.stream, event.time
        if event.is_static or not source.has_sequential_instants(stream):
            continue
        window = source.window_of(stream)
        instants, position = window.change_instants(time, len(event.facts), places.get(stream))
        if position is not None:
            places[stream] = position
        yield from ((stream, instant) for instant in instants)


# What the driver makes of it


@dataclass(frozen=True)
class ReportTimes:
    """When snapshots are evaluated, by the number of the sink node.

    Attributes:
        previous: the latest instant before this batch (integer ms).
        instants: the instants of the batch, in order.
    """

    previous: Mapping[int, int] = field(default_factory=dict)
    instants: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @staticmethod
    def upto(instants_by_node: Mapping[int, ReportSchedule], now: int) -> ReportTimes:
        """Returns the instants up to `now` (integer ms) that have not been returned yet, and advances past them."""
        previous = {number: instants.reported_until for number, instants in instants_by_node.items()}
        return ReportTimes(
            previous, {number: tuple(instants.pop_until(now)) for number, instants in instants_by_node.items()}
        )

    def reported(self, plan: Plan, changed_queries: Collection[tuple[int, int]]) -> ReportTimes:
        """Returns only the instants with an output. changed_queries: (number of the sink node, instant) where an answer
        has changed."""
        changing = {number for number, node in enumerate(plan.nodes) if reports_on_change(node.op)}
        instants = {
            number: tuple(time for time in times if number not in changing or (number, time) in changed_queries)
            for number, times in self.instants.items()
        }
        return ReportTimes(self.previous, instants)


def add_evaluation_times(instants_by_node: Mapping[int, ReportSchedule], reported: Iterable[Instant]) -> None:
    """Adds the times that workers have reported."""
    for subject, number, time in sorted(reported, key=itemgetter(2)):
        if not subject:
            instants_by_node[number].add_instant(time)
            continue
        stream, graph = map(str, unpack(subject))
        for instants in instants_by_node.values():
            if stream == HEARTBEAT:
                instants.advance_time(time)
            else:
                instants.add([Event(time, (), stream, graph=graph)])
