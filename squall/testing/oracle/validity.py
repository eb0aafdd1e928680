"""Stream to relation: which facts are valid in a source, and when that may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from squall.functions import values
from squall.model import ARRIVAL, GRAPH, Arrivals, Graph, Graphs, Occurrences, Source, System
from squall.model.windows import (
    BoundedCountWindow,
    CountWindow,
    ElementWindow,
    EmptyWindow,
    HoppingWindow,
    Landmark,
    OpenHoppingWindow,
    OpenSessionWindow,
    SessionWindow,
    SlidingWindow,
    Window,
)
from squall.rdf import ALWAYS, FOREVER, HEARTBEAT, WORKING, Atom, Event, Fact, Term, Triple, literal
from squall.testing.oracle.base import BEGIN
from squall.testing.oracle.stratification import patterns


@dataclass
class Stay:
    """The validity interval [start, end) of a fact of a stream, in integer ms.

    arrival: the time of its event. static: whether it is static data, whose named graphs are disjoint.
    """

    fact: Fact
    stream: str
    graph: str
    arrival: int
    start: int
    end: int
    static: bool = False

    def cut(self, time: int) -> None:
        """Ends the interval now if the fact arrived before. An interval that would begin later becomes empty."""
        if self.arrival < time or self.arrival == time == ALWAYS:
            self.end = min(self.end, max(self.start, time))


def timely(events: Iterable[Event]) -> list[Event]:
    """Returns the events that are not late: none before them has a later time."""
    in_order: list[Event] = []
    for event in events:
        if not in_order or event.time >= in_order[-1].time:
            in_order.append(event)
    return in_order


def stays_of(source: Source, events: Sequence[Event], static: Sequence[Event]) -> list[Stay]:
    """Returns the facts that a source reads with their validity, removals applied. Events before `BEGIN` belong to
    derived streams."""
    # In one piece: the oracle stays one simple statement after another.
    all_stays = [
        Stay(
            fact,
            static_or_event.stream,
            static_or_event.graph,
            static_or_event.time,
            static_or_event.time,
            FOREVER,
            is_static,
        )
        for static_or_event, is_static in [
            *((static_or_event, True) for static_or_event in static),
            *((static_or_event, False) for static_or_event in events),
        ]
        if static_or_event.time < BEGIN and reads(source, static_or_event.stream, static_or_event.graph, is_static)
        for fact in static_or_event.facts
    ]
    for stream, graph in {(event.stream, event.graph) for event in events}:
        if not reads(source, stream, graph):
            continue
        stream_events = [event for event in events if event.stream == stream and event.time >= BEGIN]
        stays = _windowed(source, stream, stream_events)
        arrived_count = 0
        for event in stream_events:
            if event.graph == graph:
                _remove(event, stays[:arrived_count])
            arrived_count += len(event.facts)
        all_stays += [stay for stay in stays if stay.graph == graph]
    return all_stays


def reads(source: Source, stream: str, graph: str = "", static: bool = False) -> bool:
    # In one piece: one case after another, as semantics.md lists them.
    shut = stream == HEARTBEAT or (stream and isinstance(source.window_of(stream), EmptyWindow))
    if shut and not (static and graph and source.sparql_dataset):
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
    if static and graph and source.sparql_dataset:
        return source.iri != "" and source.iri == name
    return source.iri in ("", stream)


def _windowed(source: Source, stream: str, events: Sequence[Event]) -> list[Stay]:
    """Returns the facts of one stream through its window, in the order of arrival."""
    window = _begun(source.window_of(stream), events)
    arrivals = [(fact, event.graph, event.time) for event in events for fact in event.facts]
    if isinstance(window, SessionWindow):
        return [
            Stay(fact, stream, graph, time, *_in_session(window, fact, time, events)) for fact, graph, time in arrivals
        ]
    if not isinstance(window, CountWindow):
        return [Stay(fact, stream, graph, time, *window.validity(time)) for fact, graph, time in arrivals]
    times = [time for _, _, time in arrivals]
    return [
        Stay(fact, stream, graph, time, *_counted(window, number, times))
        for number, (fact, graph, time) in enumerate(arrivals)
    ]


def _begun(window: Window, events: Iterable[Event]) -> Window:
    """Returns the window of a stream, whose grid may begin at the first triple of these events."""
    first_time = next((event.time for event in events if event.facts), None)
    return window.begun_at(first_time) if isinstance(window, HoppingWindow) and first_time is not None else window


def _counted(window: CountWindow, number: int, times: Sequence[int]) -> tuple[int, int]:
    """Returns the validity of the fact of this number in a `CountWindow`. times: the arrival times of all facts."""
    start, end = _at(_change(number, window), times), _at(_change(number + window.size, window), times)
    return start, min(end, times[number] + window.length) if isinstance(window, BoundedCountWindow) else end


def _in_session(window: SessionWindow, fact: Fact, time: int, events: Iterable[Event]) -> tuple[int, int]:
    """Returns the validity of a fact that came at this time in a `SessionWindow`. events: those of its stream."""
    close = _close(window, fact, time, events)
    return (time, close) if isinstance(window, OpenSessionWindow) else (close, close + 1)


def _close(window: SessionWindow, fact: Fact, time: int, events: Iterable[Event]) -> int:
    """Returns when the session of a fact closes: when nothing of its key has come for the gap of the window."""
    key_times = {event.time for event in events for other in event.facts if _key(window, other) == _key(window, fact)}
    while later := {other for other in key_times if time < other < time + window.gap}:
        time = max(later)
    return time + window.gap


def _key(window: SessionWindow, fact: Fact) -> Term | None:
    if window.key == "":
        return None
    if isinstance(fact, Triple):
        return fact.subject if window.key == "SUBJECT" else fact.object
    terms = fact.arguments if fact.arguments else (fact.relation,)
    return terms[0] if window.key == "SUBJECT" else terms[len(terms) - 1]


def _change(number: int, window: CountWindow) -> int:
    """Returns the number of the first fact, from this number on, with which the window's content changes."""
    return (number // window.step + 1) * window.step - 1


def _at(number: int, times: Sequence[int]) -> int:
    """Returns the arrival time of the fact of this number; FOREVER if there is none."""
    return times[number] if number < len(times) else FOREVER


def _remove(event: Event, earlier: Iterable[Stay]) -> None:
    """Ends what an event removes of the facts that its stream brought before it, at the same time or earlier."""
    for stay in earlier:
        if stay.fact in event.removed and stay.graph == event.graph:
            stay.end = min(stay.end, max(stay.start, event.time))


def cut_short(stays: Iterable[Stay], removed: set[Fact], time: int) -> None:
    for stay in stays:
        if stay.fact in removed:
            stay.cut(time)


def valid(source: Source, stays: Iterable[Stay], time: int) -> set[Fact]:
    return {fact for stay in stays if stay.start <= time < stay.end for fact in _forms_read(source, stay)}


def _forms_read(source: Source, stay: Stay) -> Iterator[Fact]:
    """Yields the forms in which patterns of the source read the fact."""
    names = [Term(f"<{stay.stream}>")] if stay.stream not in ("", WORKING) else []
    if stay.graph:
        names = [Term(stay.graph)] if stay.static else [*names, Term(stay.graph)]
    if isinstance(source, Occurrences):
        if isinstance(stay.fact, Atom) and stay.arrival >= BEGIN:
            yield Atom(stay.fact.relation, (values.integer(stay.arrival), *stay.fact.arguments))
    elif not isinstance(source, Graphs | Arrivals):
        yield stay.fact
    elif not isinstance(stay.fact, Triple):
        return
    elif isinstance(source, Graphs):
        for name in {"": names, "graphs": [Term(stay.graph)], "streams": [Term(f"<{stay.stream}>")]}[source.only]:
            yield Atom(GRAPH, (name, *stay.fact))
    elif stay.arrival >= BEGIN:
        for name in [literal(""), *names] if stay.stream in ("", WORKING) else names:
            yield Atom(ARRIVAL, (name, values.integer(stay.arrival), *stay.fact))


def change_instants(source: Source, events: Sequence[Event]) -> set[int]:
    """Returns the instants at which the content of a source may change: the evaluation instants, and those at which
    sessions that have closed, and elements, are over."""
    instants = evaluation_instants(source, events)
    for event in events:
        window = source.window_of(event.stream)
        if isinstance(window, SessionWindow) and affects(source, event):
            same = [other for other in events if other.stream == event.stream]
            instants.update(_in_session(window, fact, event.time, same)[1] for fact in event.facts)
        if isinstance(window, ElementWindow) and affects(source, event):
            instants.add(event.time + window.delay + 1)
    return instants


def evaluation_instants(source: Source, events: Sequence[Event]) -> set[int]:
    """Returns the evaluation instants that the events of a source cause."""
    # In one piece: one kind of window after another, as semantics.md lists them.
    instants: set[int] = set()
    fact_counts: Counter[str] = Counter()
    for event in (event for event in events if affects(source, event)):
        before = fact_counts[event.stream]
        fact_counts[event.stream] += len(event.facts)
        past_events = (other for other in events if other.stream == event.stream and other.time <= event.time)
        match _begun(source.window_of(event.stream), past_events):
            case SessionWindow() as window:
                same = [other for other in events if other.stream == event.stream]
                instants.update(_close(window, fact, event.time, same) for fact in event.facts)
                if isinstance(window, OpenSessionWindow):
                    instants.add(event.time)
            case BoundedCountWindow(length=length):
                instants.update((event.time, event.time + length))
            case Landmark() | CountWindow(step=1):
                instants.add(event.time)
            case CountWindow(step=step):
                if fact_counts[event.stream] // step > before // step:
                    instants.add(event.time)
            case ElementWindow(delay=delay):
                instants.add(event.time + delay)
            case SlidingWindow(size=size, delay=delay):
                instants.update((event.time + delay, event.time + delay + size))
            case OpenHoppingWindow(origin=int()) as window:
                instants.update(window.validity(event.time))
            case HoppingWindow(origin=int()) as window:
                first, last = window.validity(event.time)
                instants.update(range(first, last + 1, window.step))
        if event.removed:
            instants.add(event.time)
    return instants


def affects(source: Source, event: Event) -> bool:
    """Returns whether an event changes the content of a source.

    A window that follows its stream also sees triples of other graphs.
    """
    if not source.window_of(event.stream).is_sequential or event.stream == HEARTBEAT:
        return reads(source, event.stream, event.graph)
    if isinstance(source, Graph):
        return source.within in ("", event.stream)
    return source.iri in ("", event.stream)


def sources_of(program: Iterable[System]) -> set[Source]:
    """Returns all sources that patterns of the program read."""
    return {source for rule in program for _, part, _ in patterns(rule) for source in part.sources}
