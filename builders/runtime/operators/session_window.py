"""The content of a session window: the facts of the sessions of a stream that have not closed.

An arrival postpones the time at which its session closes. So this time is looked at when it comes, and not at each
arrival: a heap has one entry for each session, with the time at which it would close as of when the entry was made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import cast

from squall.builders.runtime.operators.count_window import DeltasOf, WindowFact
from squall.builders.runtime.operators.valid_facts import terms_of
from squall.builders.runtime.zset import Delta, fact_row, row_fact
from squall.model.windows import SessionWindow
from squall.rdf import ALWAYS, FOREVER, Fact, Term


@dataclass
class _Session:
    """A session.

    Attributes:
        last: When its last fact came (integer ms).
        wake_time: The time of its entry in the heap.
        facts: Its facts, in the order of arrival.
        drained_count: Of how many of them the deltas have been emitted, if the window is read while it is open.
    """

    last: int
    wake_time: int
    facts: list[WindowFact] = field(default_factory=list)
    drained_count: int = 0


class SessionContent:
    """The facts of a stream through a `SessionWindow`.

    Args:
        window: The window.
        deltas_of: Returns the deltas of a fact.
        note: Logs a fact that is added to the state (weight 1) or removed (-1).
    """

    def __init__(self, window: SessionWindow, deltas_of: DeltasOf, note: Callable[[WindowFact, int], None]) -> None:
        self.window = window
        self.deltas_of = deltas_of
        self.note = note
        self.sessions: dict[Term, _Session] = {}
        """The sessions that the next fact of their key may belong to."""
        self.complete: list[_Session] = []
        """The sessions that close at the time that was reached, the same for all, and that its facts do not belong
        to."""
        self.wake_times: list[tuple[int, Term]] = []
        """When to look at the session of a key, as a heap."""
        self.new: dict[Term, None] = {}
        """The keys of sessions with facts whose deltas were not emitted yet."""
        self.close_times: set[int] = set()
        """When sessions have closed (integer ms) since somebody has asked for it."""

    @property
    def next_time(self) -> int:
        """The time at which the next session closes, if nothing comes before; FOREVER if there is none."""
        if self.complete:
            return self.window.close_time(self.complete[0].last)
        while self.wake_times:
            time, key = self.wake_times[0]
            session = self.sessions.get(key)
            if session is None or session.wake_time != time:
                heappop(self.wake_times)
            elif self.window.close_time(session.last) > time:
                self._postpone(key, session)
            else:
                return time
        return FOREVER

    def _postpone(self, key: Term, session: _Session) -> None:
        """Replaces the first entry of the heap by one at the time at which its session closes as of now."""
        heappop(self.wake_times)
        session.wake_time = self.window.close_time(session.last)
        heappush(self.wake_times, (session.wake_time, key))

    def add(self, fact: Fact, time: int, graph: str = "") -> Iterator[Delta]:
        """Adds a fact. All sessions that close before its time (integer ms) have been closed (`advance`)."""
        key = self.window.session_key(fact)
        session = self.sessions.get(key)
        if session is not None and time >= self.window.close_time(session.last):
            self.complete.append(session)
            session = None
        if session is None:
            session = self.sessions[key] = _Session(time, self.window.close_time(time))
            heappush(self.wake_times, (session.wake_time, key))
        arrival = WindowFact(fact, time, graph, True)
        session.last = time
        session.facts.append(arrival)
        self.note(arrival, 1)
        if self.window.is_retractable:
            self.new[key] = None
        return iter(())

    def advance(self, now: int) -> Iterator[Delta]:
        """Closes the sessions that close at a time (integer ms) or before, and yields the deltas of their facts."""
        while self.next_time <= now:
            if self.complete:
                yield from self._close(self.complete.pop())
            else:
                _, key = heappop(self.wake_times)
                self.new.pop(key, None)
                yield from self._close(self.sessions.pop(key))

    def _close(self, session: _Session) -> Iterator[Delta]:
        time = self.window.close_time(session.last)
        self.close_times.add(time)
        for number, arrival in enumerate(session.facts):
            self.note(arrival, -1)
            if not arrival.is_valid:
                continue
            if self.window.is_retractable:
                yield from self._end(arrival, number < session.drained_count, time)
            else:
                yield from self.deltas_of(arrival.fact, arrival.arrival, arrival.graph, (time, time + 1), 1)

    def _end(self, arrival: WindowFact, is_drained: bool, time: int) -> Iterator[Delta]:
        """Yields the deltas of a fact that ends at a time (integer ms) and was read while its session was open."""
        fact, start, graph, _ = arrival
        if is_drained:
            yield from self.deltas_of(fact, start, graph, (time, FOREVER), -1)
        elif start < time:
            yield from self.deltas_of(fact, start, graph, (start, time), 1)

    def drain_new(self) -> Iterator[Delta]:
        """Yields the deltas of the facts of open sessions that came since the last call, if the window is read while it
        is open."""
        new, self.new = self.new, {}
        for session in (self.sessions[key] for key in new):
            for fact, time, graph, is_valid in session.facts[session.drained_count :]:
                if is_valid:
                    yield from self.deltas_of(fact, time, graph, (time, FOREVER), 1)
            session.drained_count = len(session.facts)

    def with_terms(self, terms: Collection[Term], time: int, weight: int) -> Iterator[Delta]:
        """Yields the deltas, from a time on (integer ms), of the facts with some of the terms whose deltas have been
        emitted and not ended."""
        for session in self._all_sessions():
            for fact, arrival, graph, is_valid in session.facts[: session.drained_count]:
                if is_valid and any(term in terms for term in terms_of(fact)):
                    yield from self.deltas_of(fact, arrival, graph, (time, FOREVER), weight)

    def _all_sessions(self) -> Iterator[_Session]:
        yield from self.complete
        yield from self.sessions.values()

    def remove(self, fact: Fact, time: int, is_meant: Callable[[str, int], bool]) -> Iterator[Delta]:
        """Ends the arrivals of a fact that `is_meant` accepts by graph and time of arrival. Their sessions last as long
        as before."""
        key = self.window.session_key(fact)
        own = [self.sessions[key]] if key in self.sessions else []
        for session in (*self.complete, *own):
            for number, arrival in enumerate(session.facts):
                if arrival.fact != fact or not arrival.is_valid or not is_meant(arrival.graph, arrival.arrival):
                    continue
                if self.window.is_retractable:
                    yield from self._end(arrival, number < session.drained_count, time)
                session.facts[number] = arrival._replace(is_valid=False)
                self.note(arrival, -1)
                self.note(session.facts[number], 1)

    def restore(self, counts: Mapping[Delta, int]) -> None:
        """Adds facts, or removes them, by the rows that were logged. All sessions are as their facts say."""
        facts = [arrival for session in self._all_sessions() for arrival in session.facts]
        for (arrival, graph, is_valid, *cells, _, _), count in counts.items():
            fact = WindowFact(cast(Fact, row_fact(cells)), int(arrival), graph, bool(is_valid))
            facts += [fact] * count
            for _ in range(-count):
                facts.remove(fact)
        self.sessions, self.complete, self.new = {}, [], {}
        for fact in sorted(facts, key=attrgetter("arrival")):
            key = self.window.session_key(fact.fact)
            session = self.sessions.setdefault(key, _Session(fact.arrival, 0))
            session.last = fact.arrival
            session.facts.append(fact)
            session.drained_count += self.window.is_retractable
        for session in self.sessions.values():
            session.wake_time = self.window.close_time(session.last)
        self.wake_times = [(session.wake_time, key) for key, session in self.sessions.items()]
        heapify(self.wake_times)

    def size(self) -> int:
        """Returns the number of facts."""
        return sum(len(session.facts) for session in self._all_sessions())


def session_row(arrival: WindowFact, weight: int) -> Delta:
    """Returns the row of the state of a fact."""
    fact, time, graph, is_valid = arrival
    return (str(time), graph, "valid" * is_valid, *fact_row(fact)[:-1], ALWAYS, FOREVER, weight)
