"""Strategies for events, static data, sources, windows and report policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from squall.model import Graph, Report, Source
from squall.model.windows import (
    LANDMARK,
    SESSION_KEYS,
    BoundedCountWindow,
    CountWindow,
    FirstTriple,
    HoppingWindow,
    OpenHoppingWindow,
    OpenSessionWindow,
    SessionWindow,
    SlidingWindow,
    Window,
)
from squall.rdf import ALWAYS, HEARTBEAT, Event, Fact, Triple, heartbeat
from squall.testing.strategies.vocabulary import CORE, DERIVED_STREAMS, FACTS, GRAPHS, MEASURES, STREAMS


def facts(features: frozenset[str] = CORE) -> st.SearchStrategy[Triple]:
    """Draws a triple of the vocabulary."""
    return st.sampled_from(FACTS + 4 * MEASURES if features & {"grouping", "totals"} else FACTS)


@st.composite
def event_streams(draw: st.DrawFn, least: int = 7, most: int = 12, features: frozenset[str] = CORE) -> list[Event]:
    """Draws events in the order of time.

    There are several facts in an event, equal facts, several events at one time, and events without facts. With reports
    there are heartbeats. With windows some pauses are longer than all windows. With removals most removed facts have
    arrived before.
    """
    together = st.lists(facts(features), min_size=3, max_size=8).map(tuple)
    fact_tuples = st.one_of(together, together, together, together, st.just(()))
    pauses = st.sampled_from(
        (0, 0, 0, 1, 1, 1, 2, 2, 3, 17) if features & {"windows", "sessions", "open sessions"} else (0, 0, 0, 1, 1, 2)
    )
    times = accumulate(draw(st.lists(pauses, min_size=least, max_size=most)))
    streams = st.sampled_from((*STREAMS[:2], *STREAMS) if "streams" in features else STREAMS[:1])
    graphs = st.sampled_from(GRAPHS if "named" in features else GRAPHS[:1])
    events = [Event(time, draw(fact_tuples), draw(streams), graph=draw(graphs)) for time in times]
    if "reports" in features:
        events = [heartbeat(event.time) if not event.facts and draw(st.booleans()) else event for event in events]
    return draw(_removing(events)) if "removals" in features else events


@st.composite
def _removing(draw: st.DrawFn, events: Sequence[Event]) -> list[Event]:
    """Draws removals for some of the events, of facts that came before them or never."""
    changed_events: list[Event] = []
    past_facts: list[Fact] = []
    for event in events:
        removes = event.stream != HEARTBEAT and draw(one_in(4))
        removals = draw(st.lists(st.sampled_from((*past_facts, *FACTS[:2])), max_size=2)) if removes else []
        changed_events.append(event._replace(removed=tuple(removals)))
        past_facts += event.facts
    return changed_events


def static_data(most: int = 3, features: frozenset[str] = CORE) -> st.SearchStrategy[list[Event]]:
    """Draws facts that always hold."""
    streams = st.sampled_from((*STREAMS[:1], *STREAMS) if "streams" in features else STREAMS[:1])
    graphs = st.sampled_from(GRAPHS if "named" in features else GRAPHS[:1])

    def event(fact: Fact, stream: str, graph: str) -> Event:
        return Event(ALWAYS, (fact,), stream, graph=graph)

    return st.lists(st.builds(event, facts(features), streams, graphs), max_size=most)


def one_in(many: int) -> st.SearchStrategy[bool]:
    """Draws True once in the given number of times, and less often in simpler examples."""
    return st.integers(1, many).map(lambda number: number == many)


def reports() -> st.SearchStrategy[Report]:
    periodic = st.builds(Report, st.just("periodic"), st.sampled_from((2, 3, 4, 12)))
    policies = st.one_of(st.sampled_from((Report("change"), Report("nonempty"), Report("close"))), periodic)
    return st.builds(lambda report, empty: replace(report, empty=empty), policies, st.booleans())


def sources_of(stream: str, features: frozenset[str]) -> st.SearchStrategy[Source]:
    windows = _windows(features)
    own = st.lists(windows, min_size=2, max_size=2).map(lambda pair: tuple(zip(STREAMS[1:], pair, strict=True)))
    apart = st.one_of(st.just(()), own) if stream == "" and "streams" in features else st.just(())
    strict = st.booleans() if "named" in features else st.just(False)
    return st.builds(Source, st.just(stream), windows, apart, st.just("removals" in features), sparql_dataset=strict)


def graphs_of(features: frozenset[str]) -> st.SearchStrategy[Graph]:
    """Draws a source of a named graph, of all streams or within one."""
    sources = sources_of("", features)
    within = st.sampled_from(("", "", STREAMS[1], *(DERIVED_STREAMS if "output specs" in features else ())))

    def graph(source: Source, name: str, within: str) -> Graph:
        return Graph(name[1:-1], source.window, source.windows, source.removals, within=within)

    return st.builds(graph, sources, st.sampled_from(GRAPHS[2:4]), within)


@cache
def _windows(features: frozenset[str]) -> st.SearchStrategy[Window]:
    """Draws a window whose size is of the order of the pauses between events. Its step divides 12."""
    sizes, steps = st.integers(2, 12), st.sampled_from((1, 2, 3, 4))
    hopping = st.sampled_from((HoppingWindow, HoppingWindow, OpenHoppingWindow))
    delays = st.sampled_from((0, 0, 0, 3))
    kinds: list[st.SearchStrategy[Window]] = []
    if "landmark" in features:
        kinds.append(st.just(LANDMARK))
    if "windows" in features:
        kinds += [st.builds(SlidingWindow, sizes, delays), st.builds(SlidingWindow, sizes)]
        kinds += [
            _hopping(hopping, sizes, steps, st.integers(0, 3), st.booleans(), delays),
            steps.map(lambda size: HoppingWindow(size, size)),
        ]
    if "count" in features:
        kinds += [
            st.builds(CountWindow, st.integers(3, 16), st.sampled_from((1, 1, 2, 5))),
            st.integers(3, 16).map(_blocks),
        ]
    if {"count", "windows"} <= features:
        origins = st.builds(FirstTriple, steps)
        kinds.append(_hopping(hopping, sizes, steps, origins, st.booleans(), delays))
        kinds.append(st.builds(BoundedCountWindow, st.integers(3, 16), length=sizes))
    keys = st.sampled_from(("", *SESSION_KEYS))
    if "sessions" in features:
        kinds.append(st.builds(SessionWindow, st.integers(1, 5), keys))
    if "open sessions" in features:
        kinds.append(st.builds(OpenSessionWindow, sizes, keys))
    return st.one_of(kinds)


def _hopping(
    kinds: st.SearchStrategy[type[HoppingWindow]], *arguments: st.SearchStrategy[Any]
) -> st.SearchStrategy[HoppingWindow]:
    return st.builds(lambda kind, *fields: kind(*fields), kinds, *arguments)


def _blocks(size: int) -> CountWindow:
    return CountWindow(size, size)
