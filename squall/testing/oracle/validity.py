"""What is valid in a source, and when that may change (stream to relation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from squall.functions import values
from squall.model import CAME, GRAPH, Arrivals, Graph, Graphs, Source, System
from squall.model.windows import CountWindow, EmptyWindow, HoppingWindow, Landmark, SlidingWindow
from squall.rdf import ALWAYS, FOREVER, HEARTBEAT, WORKING, Atom, Event, Fact, Term, Triple, literal
from squall.testing.oracle.base import BEGIN
from squall.testing.oracle.stratification import patterns


@dataclass
class Stay:
    """The validity of a fact that a stream brought: [start, end). came: the time of its event. static: it is of the
    static data, where what is in a named graph is in no other."""

    fact: Fact
    stream: str
    graph: str
    came: int
    start: int
    end: int
    static: bool = False

    def cut(self, time: int) -> None:
        """It ends now, if it came before; an interval that would begin later is empty."""
        if self.came < time or self.came == time == ALWAYS:
            self.end = min(self.end, max(self.start, time))


def timely(events: Iterable[Event]) -> list[Event]:
    """The events that are not earlier than one before them."""
    found: list[Event] = []
    for event in events:
        if not found or event.time >= found[-1].time:
            found.append(event)
    return found


def stays_of(source: Source, events: Sequence[Event], static: Sequence[Event]) -> list[Stay]:
    """What is read through a source, and when it is valid; removals are done. events: those before `BEGIN` are of
    streams that the program makes."""
    found = [
        Stay(fact, one.stream, one.graph, one.time, one.time, FOREVER, is_static)
        for one, is_static in [*((one, True) for one in static), *((one, False) for one in events)]
        if one.time < BEGIN and reads(source, one.stream, one.graph, is_static)
        for fact in one.facts
    ]
    for stream, graph in {(event.stream, event.graph) for event in events}:
        if not reads(source, stream, graph):
            continue
        theirs = [event for event in events if event.stream == stream and event.time >= BEGIN]
        stays = [stay for stay in _windowed(source, stream, theirs) if stay.graph == graph]
        for event in theirs:
            cut_short(stays, set(event.removed) if event.graph == graph else set(), event.time)
        found += stays
    return found


def reads(source: Source, stream: str, graph: str = "", static: bool = False) -> bool:
    shut = stream == HEARTBEAT or (stream and isinstance(source.window_of(stream), EmptyWindow))
    if shut and not (static and graph and source.apart):
        return False
    name = graph[1:-1] if graph.startswith("<") else ""
    if isinstance(source, Graph):
        if source.within:
            return stream == source.within and name == source.iri
        return name == source.iri or (stream == source.iri and not (static and graph))
    if isinstance(source, Graphs) and source.only == "streams":
        return stream not in ("", WORKING) and source.iri in ("", stream)
    if isinstance(source, Graphs) and not graph and (source.only == "graphs" or stream in ("", WORKING)):
        return False
    if static and graph and source.apart:
        return source.iri != "" and source.iri == name
    return source.iri in ("", stream)


def _windowed(source: Source, stream: str, events: Sequence[Event]) -> list[Stay]:
    """The facts of one stream through its window, in the order in which they came."""
    window = source.window_of(stream)
    came = [(fact, event.graph, event.time) for event in events for fact in event.facts]
    if not isinstance(window, CountWindow):
        return [Stay(fact, stream, graph, time, *window.validity(time)) for fact, graph, time in came]
    times = [time for _, _, time in came]
    return [
        Stay(fact, stream, graph, time, *_counted(window, number, times))
        for number, (fact, graph, time) in enumerate(came)
    ]


def _counted(window: CountWindow, number: int, times: Sequence[int]) -> tuple[int, int]:
    """The validity of the fact of this number in a `CountWindow` window; the times of all facts."""
    return _at(_change(number, window), times), _at(_change(number + window.size, window), times)


def _change(number: int, window: CountWindow) -> int:
    """The number of the fact with which the content changes next, from that of this number on."""
    return (number // window.step + 1) * window.step - 1


def _at(number: int, times: Sequence[int]) -> int:
    """When the fact of this number comes; FOREVER if it never does."""
    return times[number] if number < len(times) else FOREVER


def cut_short(stays: Iterable[Stay], removed: set[Fact], time: int) -> None:
    for stay in stays:
        if stay.fact in removed:
            stay.cut(time)


def valid(source: Source, stays: Iterable[Stay], time: int) -> set[Fact]:
    return {fact for stay in stays if stay.start <= time < stay.end for fact in _seen(source, stay)}


def _seen(source: Source, stay: Stay) -> Iterator[Fact]:
    """What patterns read of a fact that a stream brought."""
    names = [Term(f"<{stay.stream}>")] if stay.stream not in ("", WORKING) else []
    if stay.graph:
        names = [Term(stay.graph)] if stay.static else [*names, Term(stay.graph)]
    if not isinstance(source, Graphs | Arrivals):
        yield stay.fact
    elif not isinstance(stay.fact, Triple):
        return
    elif isinstance(source, Graphs):
        for name in {"": names, "graphs": [Term(stay.graph)], "streams": [Term(f"<{stay.stream}>")]}[source.only]:
            yield Atom(GRAPH, (name, *stay.fact))
    elif stay.came >= BEGIN:
        for name in [literal(""), *names] if stay.stream in ("", WORKING) else names:
            yield Atom(CAME, (name, values.integer(stay.came), *stay.fact))


def evaluation_instants(source: Source, events: Sequence[Event]) -> set[int]:
    """The evaluation instants to which the events that a source reads give rise."""
    found: set[int] = set()
    came: Counter[str] = Counter()
    for event in (event for event in events if is_heard(source, event)):
        before = came[event.stream]
        came[event.stream] += len(event.facts)
        match source.window_of(event.stream):
            case Landmark() | CountWindow(step=1):
                found.add(event.time)
            case CountWindow(step=step):
                if came[event.stream] // step > before // step:
                    found.add(event.time)
            case SlidingWindow(size=size, delay=delay):
                found.update((event.time + delay, event.time + delay + size))
            case HoppingWindow() as window:
                first, last = window.validity(event.time)
                found.update(range(first, last + 1, window.step))
        if event.removed:
            found.add(event.time)
    return found


def is_heard(source: Source, event: Event) -> bool:
    """Whether an event changes what a source reads: a window of triples also counts those in other graphs."""
    if not isinstance(source.window_of(event.stream), CountWindow) or event.stream == HEARTBEAT:
        return reads(source, event.stream, event.graph)
    if isinstance(source, Graph):
        return source.within in ("", event.stream)
    return source.iri in ("", event.stream)


def sources_of(program: Iterable[System]) -> set[Source]:
    """All sources that patterns read."""
    return {source for rule in program for _, part, _ in patterns(rule) for source in part.sources}
