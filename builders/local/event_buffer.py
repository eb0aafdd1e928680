"""The events whose instant may not be complete yet: later ones can still come at their time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import cast

from squall.builders.runtime.schema_changes import CAUSE, SchemaGuard
from squall.builders.runtime.zset import Row, fact_row, row_fact
from squall.contracts import DeadLetterLedger
from squall.errors import BuilderError
from squall.rdf import DEFAULT_STREAM, FOREVER, HEARTBEAT, Columns, Event, Fact
from squall.streams.dead_letters import late_texts

_TIME = attrgetter("time")


class EventBuffer:
    """Buffers events until their instant is complete, and drops late ones.

    It is saved as rows of text (`squall.builders.runtime.operators.state.RowSerializable`).

    Args:
        needs_complete_instants: Whether events wait until their instant is complete.
        ledger: The ledger of late events and changes of the schema, or None.
        schema_guard: Recognises what would change the schema that is compiled into the plan; None if nothing is to be
            recognised.

    Attributes:
        events: The buffered events.
    """

    def __init__(
        self, needs_complete_instants: bool, ledger: DeadLetterLedger | None, schema_guard: SchemaGuard | None
    ) -> None:
        self.needs_complete_instants = needs_complete_instants
        self.events: list[Event] = []
        self._ledger = ledger
        self._schema_guard = schema_guard

    def earliest(self, watermark: int) -> int:
        """Returns the time before which an event is late (integer ms)."""
        return self.events[-1].time if self.events else watermark + self.needs_complete_instants

    def ready(self, batch: Sequence[Event], watermark: int) -> Sequence[Event]:
        """Returns the events that can be processed, and buffers those whose instant is not complete yet.

        Late events, and changes of the schema, go to the dead-letter ledger.

        Args:
            batch: The events that come.
            watermark: The time up to which all instants have been processed (integer ms).
        """
        timely = self.without_schema_changes(self._timely(batch, watermark))
        if self.needs_complete_instants or self.events:
            return self._complete(timely)
        return timely

    def ready_columns(self, columns: Columns, watermark: int) -> tuple[Sequence[Event], Columns | None]:
        """Returns what can be processed of columns, as `ready` does: buffered events before them, and columns.

        If some of it is late, or changes the schema, the events are returned one by one.
        """
        if columns.times[0] < self.earliest(watermark):
            return self.ready(columns.events, watermark), None
        is_buffering = self.needs_complete_instants or bool(self.events)
        timely = self.without_schema_changes(columns)
        if type(timely) is not Columns:
            return (self._complete(timely) if is_buffering else timely), None
        if not is_buffering:
            return (), columns
        if not self.needs_complete_instants:
            return self.take(), columns
        ready, last = columns.without_last()
        waiting = self.take()
        self.events = [event for event in waiting if event.time == last.time]
        self.events.append(last)
        return waiting[: len(waiting) + 1 - len(self.events)], ready

    def _timely(self, batch: Sequence[Event], watermark: int) -> Sequence[Event]:
        """Returns the events that are not late. The others go to the dead-letter ledger."""
        earliest = self.earliest(watermark)
        times = list(map(_TIME, batch))
        if times[:1] >= [earliest] and times == sorted(times):
            return batch
        timely: list[Event] = []
        for event in batch:
            if event.time < earliest:
                self._drop(event)
            else:
                earliest = event.time
                timely.append(event)
        return timely

    def _drop(self, event: Event) -> None:
        if self._ledger is None:
            raise BuilderError(
                "an event that always holds comes when the run has begun"
                if event.is_static
                else f"an event at {event.time} comes after a later one",
                hint="give events in the order of time, or a `ledger` in the options to keep what is late",
            )
        for fact in (*event.facts, *event.removed):
            self._ledger.record("late", event.stream or DEFAULT_STREAM, None, *late_texts(event.time, fact))

    def without_schema_changes(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events without what would change the schema, which goes to the dead-letter ledger if it may."""
        if self._schema_guard is None:
            return events
        remaining, changes = self._schema_guard.without_changes(events)
        for change in changes:
            if self._ledger is None:
                raise change.error
            self._ledger.record(CAUSE, change.event.stream or DEFAULT_STREAM, None, *change.texts)
        return remaining

    def _complete(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events whose instant is complete, and buffers the others."""
        waiting = [*self.take(), *events]
        if not self.needs_complete_instants:
            return waiting  # of a checkpoint of a program that needed complete instants
        ready_count = bisect_left(waiting, waiting[-1].time, key=_TIME) if waiting else 0
        self.events = waiting[ready_count:]
        return waiting[:ready_count]

    @property
    def next_time(self) -> int:
        """The time of the first event (integer ms), or FOREVER. Heartbeats change nothing."""
        return next((event.time for event in self.events if event.stream != HEARTBEAT), FOREVER)

    def fact_count(self) -> int:
        """Returns the number of facts in the buffer."""
        return sum(len(event.facts) for event in self.events)

    def take(self) -> list[Event]:
        """Removes and returns all buffered events."""
        events, self.events = self.events, []
        return events

    def rows(self) -> Iterator[Row]:
        """Yields a row for each event, and one for each of its facts."""
        for number, event in enumerate(self.events):
            parts: list[Row] = [("event",)]
            parts += (("fact", *fact_row(fact)[:-1]) for fact in event.facts)
            parts += (("removed", *fact_row(fact)[:-1]) for fact in event.removed)
            for place, part in enumerate(parts):
                yield (str(number), str(place), str(event.time), event.stream, event.graph, *part)

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the buffered events by those of the rows."""
        cells = sorted(([cell or "" for cell in row] for row in rows), key=lambda row: (int(row[0]), int(row[1])))
        self.events = []
        for _, parts in groupby(cells, key=itemgetter(0)):
            (_, _, time, stream, graph, *_), *facts = parts
            added, removed = (tuple(_fact(row) for row in facts if row[5] == kind) for kind in ("fact", "removed"))
            self.events.append(Event(int(time), added, stream, removed, graph))


def _fact(row: Sequence[str]) -> Fact:
    return cast(Fact, row_fact(row[6:]))
