"""The iterator builder: runs a plan in this process, the reference for all others and the embedded default.

Events are taken in batches as they come. Rows that no later event can take back are handed on at once; where negation,
a function of time, or an R2S operator other than Istream makes an answer depend on all of an instant, its events are
held back until time has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from squall.builders.machine import Machine, deliver_of
from squall.builders.rows import Deliver, Entry, fact_row
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Event
from squall.stages import Options, Output


def build(plan: Plan, options: Options) -> IteratorJob:
    """The plan as a job in this process. Raises BuilderError where options ask for what it does not have."""
    if options.checkpoint is not None:
        raise BuilderError(
            "the iterator builder keeps no checkpoint", hint="use `--builder spark`, or leave `--checkpoint` out"
        )
    if options.conf:
        raise BuilderError(f"the iterator builder has no setting `{options.conf[0][0]}`", hint="leave `--conf` out")
    return IteratorJob(plan, options)


class IteratorJob:
    """A plan at work; `run` may be called once."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan = plan
        self.options = options
        self.machine = Machine(plan)
        deliver = self.machine.operators[deliver_of(plan)]
        assert isinstance(deliver, Deliver)
        self.deliver = deliver
        self.whole_instants = bool(plan.retractable) or deliver.output != "istream"
        self.passed = ALWAYS - 1
        """The latest time that has been worked off; what is earlier is late."""
        self.held: list[Event] = []
        """Events of an instant that may not be complete yet."""

    def describe(self) -> str:
        """The job as text: one stage, every node in this process."""
        return f"1 stage of {len(self.plan.nodes)} nodes, run by the iterator runtime in this process"

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.stages.Job.run`."""
        self.machine.start()
        for event in static:
            self.machine.read(event.stream, [(fact_row(fact), ALWAYS, FOREVER, 1) for fact in event.facts])
        self.machine.run()
        yield from self.deliver.flush([ALWAYS])
        for batch in batches:
            yield from self._work(self._due(self._timely(batch)))
        yield from self._work(self.held)

    def _timely(self, batch: Sequence[Event]) -> list[Event]:
        """The events that are not late; the others go to the ledger."""
        timely: list[Event] = []
        latest = self.held[-1].time if self.held else self.passed
        for event in batch:
            if event.time < latest or (event.time == self.passed and self.whole_instants):
                self._late(event)
            else:
                latest = event.time
                timely.append(event)
        return timely

    def _late(self, event: Event) -> None:
        if self.options.ledger is None:
            raise BuilderError(
                f"an event at {event.time} comes after a later one",
                hint="give events in the order of time, or a `ledger` in the options to keep what is late",
            )
        for fact in event.facts:
            reason = f"its time {event.time} has passed"
            self.options.ledger.record("late", event.stream or DEFAULT_STREAM, None, reason, f"{event.time} {fact}")

    def _due(self, events: list[Event]) -> list[Event]:
        """The events whose instant is complete."""
        if not self.whole_instants:
            return events
        waiting = self.held + events
        last = waiting[-1].time if waiting else ALWAYS
        due = [event for event in waiting if event.time < last]
        self.held = waiting[len(due) :]
        return due

    def _work(self, events: Sequence[Event]) -> Iterator[Output]:
        if not events:
            return
        by_stream: dict[str, list[Entry]] = {}
        for event in events:
            rows = by_stream.setdefault(event.stream, [])
            rows.extend([(fact_row(fact), event.time, FOREVER, 1) for fact in event.facts])
        for stream, entries in by_stream.items():
            self.machine.read(stream, entries)
        self.machine.run()
        self.passed = events[-1].time
        yield from self.deliver.flush(sorted({event.time for event in events}))
