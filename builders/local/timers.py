"""Timers: facts that updates have inserted into the graph of timers, and that fire when time has reached them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from squall.builders.runtime.operators.update import GraphUpdate, InsertedFacts
from squall.contracts import DeadLetterLedger
from squall.errors import BuilderError
from squall.functions.timers import TIMERS, due_time, fired, sets_timer
from squall.rdf import ALWAYS, FOREVER, Triple

CAUSE = "timer"
"""The cause of the dead letter of a timer that cannot be set."""


class Timers:
    """The timers that are set, in the order in which they fire.

    A timer is one of the inserted facts, so that it has no state of its own: a deleted one is cancelled, and a run that
    resumes finds all of them there.

    Args:
        inserted: The facts that updates have inserted.
        can_be_set: Whether a template of the plan names the graph of timers (`squall.plan.Plan.sets_timers`).
        ledger: The ledger for timers that cannot be set, or None: then they are errors.

    Attributes:
        begin: The time (integer ms) of what always holds.
    """

    def __init__(self, inserted: InsertedFacts, can_be_set: bool, ledger: DeadLetterLedger | None) -> None:
        self.inserted = inserted
        self.can_be_set = can_be_set
        self.ledger = ledger
        self.begin = 0
        self._queue: list[tuple[int, Triple]] = []

    def restore(self, begin: int) -> None:
        """Sets the timers among the inserted facts of a run that resumes. begin: the time of what always holds."""
        self.begin = begin
        self._queue = [
            (self._due_time(fact, streams[TIMERS][1]), fact)
            for fact, streams in self.inserted.facts.items()
            if TIMERS in streams and isinstance(fact, Triple) and sets_timer(TIMERS, fact.predicate)
        ]
        heapify(self._queue)

    def inserted_fact(self, update: GraphUpdate, time: int, rule: str) -> Triple | None:
        """Returns the fact with which an insertion begins at a time (integer ms), and sets the timer that it is.

        Args:
            update: The insertion.
            time: The time at which it takes effect.
            rule: The rule that inserts.

        Returns:
            The fact; what replaces it if it is a timer that fires at once; None if it is one that cannot be set.

        Raises:
            BuilderError: It cannot be set, and there is no ledger.
        """
        timer = update.fact
        if not sets_timer(update.stream, timer.predicate):
            return timer
        try:
            due = self._due_time(timer, time)
            if not self.can_be_set:
                raise ValueError(f"its template does not name the graph <{TIMERS}>")
        except ValueError as error:
            self._refuse(timer, time, rule, str(error))
            return None
        if due <= (self.begin if time == ALWAYS else time):
            return fired(timer)
        heappush(self._queue, (due, timer))
        return timer

    def _due_time(self, timer: Triple, inserted_at: int) -> int:
        """Returns when a timer fires. A duration counts from the instant at which the update acted."""
        set_at = self.begin if inserted_at == ALWAYS else inserted_at - 1
        return due_time(timer.predicate, timer.object, set_at)

    def _refuse(self, timer: Triple, time: int, rule: str, reason: str) -> None:
        if self.ledger is None:
            hint = "insert an xsd:dateTime, or a duration; or give a `ledger` in the options to keep what is none"
            raise BuilderError(f"`{rule}` cannot set the timer `{timer}`: {reason}", hint=hint)
        text = f"{'-infinity' if time == ALWAYS else time} {timer}"
        self.ledger.record(CAUSE, TIMERS, None, f"`{rule}`: {reason}", text)

    @property
    def next_time(self) -> int:
        """When the next timer fires (integer ms), or FOREVER."""
        while self._queue and not self._is_set(*self._queue[0]):
            heappop(self._queue)
        return self._queue[0][0] if self._queue else FOREVER

    def pop_due(self, now: int) -> Iterator[tuple[Triple, Sequence[str]]]:
        """Removes the timers that fire up to and including `now` (integer ms).

        Yields each, in the order of their times, with the update nodes that have set it. The caller deletes it.
        """
        while self.next_time <= now:
            _, timer = heappop(self._queue)
            updates, _ = self.inserted.facts[timer][TIMERS]
            yield timer, updates

    def _is_set(self, due: int, timer: Triple) -> bool:
        """Returns whether a timer is still there, and was not set anew for another time."""
        inserted = self.inserted.facts.get(timer, {}).get(TIMERS)
        return inserted is not None and self._due_time(timer, inserted[1]) == due
