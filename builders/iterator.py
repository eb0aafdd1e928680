"""The iterator builder: runs a plan in this process, the reference for all others and the embedded default.

Events are taken in batches as they come. Rows that no later event can take back are handed on at once; where negation,
an aggregate, a function of time, or an R2S operator other than Istream makes an answer depend on all of an instant, its
events are held back until time has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from squall.builders.instants import Instants
from squall.builders.machine import Machine
from squall.builders.measured import Measured
from squall.builders.rows.deliver import Deliver, GrowingDeliver
from squall.errors import BuilderError
from squall.figures import NodeFigures
from squall.plan import Plan
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Event, Fact
from squall.stages import Options, Output

TOGETHER = 4096
"""How many events are worked off at once, at most: what is at hand together should fit the processor's caches, and what
has ended be forgotten in time."""


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
        self.machine = Measured(plan) if options.measure else Machine(plan)
        self.outputs = 0
        deliver = self.machine.operators[plan.delivery[0].id]
        assert isinstance(deliver, Deliver | GrowingDeliver)
        self.deliver = deliver
        self.instants = Instants(plan) if isinstance(deliver, Deliver) and deliver.output == "rstream" else None
        self.whole_instants = isinstance(deliver, Deliver)
        self.passed = ALWAYS - 1
        """The latest time that has been worked off; what is earlier is late."""
        self.held: list[Event] = []
        """Events of an instant that may not be complete yet."""
        self.demands: dict[int, list[Fact]] = {}
        """Facts that rules take out of the streams, by the time at which they do."""

    def describe(self) -> str:
        """The job as text: one stage, every node in this process."""
        return f"1 stage of {len(self.plan.nodes)} nodes, run by the iterator runtime in this process"

    def figures(self) -> dict[str, NodeFigures]:
        """What each node has done so far, if the options asked to measure it; only what it keeps, otherwise."""
        if isinstance(self.machine, Measured):
            return self.machine.figures(self.outputs)
        return {id: NodeFigures(state=size) for id, size in self.machine.state().items()}

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.stages.Job.run`."""
        self.machine.start()
        self.machine.read(list(static))
        yield from self._advance(ALWAYS)
        for batch in batches:
            for first in range(0, len(batch), TOGETHER):
                part = batch[first : first + TOGETHER]
                yield from self._work(self._due(self._timely(part)))
        held, self.held = self.held, []
        yield from self._work(held)
        yield from self._advance(FOREVER - 1)

    def _timely(self, batch: Sequence[Event]) -> Sequence[Event]:
        """The events that are not late; the others go to the ledger."""
        timely: list[Event] = []
        latest = self.held[-1].time if self.held else self.passed
        for event in batch:
            time = event.time
            if time < latest or (time == self.passed and self.whole_instants):
                self._late(event)
            else:
                latest = time
                timely.append(event)
        return timely

    def _late(self, event: Event) -> None:
        if self.options.ledger is None:
            raise BuilderError(
                f"an event at {event.time} comes after a later one",
                hint="give events in the order of time, or a `ledger` in the options to keep what is late",
            )
        for fact in (*event.facts, *event.removed):
            reason = f"its time {event.time} has passed"
            self.options.ledger.record("late", event.stream or DEFAULT_STREAM, None, reason, f"{event.time} {fact}")

    def _due(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events whose instant is complete."""
        if not self.whole_instants:
            return events
        waiting = [*self.held, *events]
        last = waiting[-1].time if waiting else ALWAYS
        due = [event for event in waiting if event.time < last]
        self.held = waiting[len(due) :]
        return due

    def _work(self, events: Sequence[Event]) -> Iterator[Output]:
        """Works events off, and time up to those that are held back."""
        if self.machine.retracts:
            yield from self._instant_by_instant(events)
        elif events:
            self._read(events)
            yield from self._advance(events[-1].time)
        if self.held and self.held[0].time - 1 > self.passed:
            yield from self._advance(self.held[0].time - 1)

    def _read(self, events: Sequence[Event]) -> None:
        if self.instants is not None:
            self.instants.add(events)
        self.machine.read(events)

    def _advance(self, now: int) -> Iterator[Output]:
        """Lets time go on to `now`: all that begins then or before has been read."""
        if self.machine.retracts:
            yield from self._retracting(now)
        else:
            yield from self._pass(now)

    def _pass(self, now: int) -> Iterator[Output]:
        self.machine.run(now)
        self.passed = now
        instants = self.instants.upto(now) if self.instants is not None else ()
        found = self.deliver.flush(now, instants)
        self.outputs += len(found)
        self.machine.expire(now)
        yield from found

    # Rules that take facts out of the streams: what they do at an instant is seen at the next one

    def _instant_by_instant(self, events: Sequence[Event]) -> Iterator[Output]:
        place = 0
        while place < len(events):
            time = events[place].time
            yield from self._retracting(time - 1)
            after = next((i for i in range(place, len(events)) if events[i].time > time), len(events))
            self._read(events[place:after])
            yield from self._one_instant(time)
            place = after

    def _retracting(self, now: int) -> Iterator[Output]:
        """Lets time go on to `now`, stopping wherever something begins or ends."""
        while (due := min(self.machine.due(), min(self.demands, default=FOREVER))) <= now:
            yield from self._one_instant(due)
        if now > self.passed:
            yield from self._one_instant(now)

    def _one_instant(self, time: int) -> Iterator[Output]:
        for fact in self.demands.pop(time, ()):
            self.machine.remove(fact, time)
        yield from self._pass(time)
        for since, fact in self.machine.demanded(time):
            if since == ALWAYS:
                continue  # no stream has brought anything yet
            self.demands.setdefault(since + 1, []).append(fact)
            if self.instants is not None:
                self.instants.add_instant(since + 1)
