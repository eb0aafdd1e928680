"""The iterator builder: runs a plan in this process, the reference for all others and the embedded default.

Events are taken in batches as they come. Rows that no later event can take back are handed on at once; where negation,
an aggregate, a function of time, or an R2S operator other than Istream makes an answer depend on all of an instant, its
events are held back until time has passed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from squall.builders.bulk import Bulk, fits
from squall.builders.machine import Machine
from squall.builders.measured import Measured
from squall.builders.rows.deliver import Deliver, GrowingDeliver
from squall.builders.rows.read import wanted
from squall.builders.updating import Updating
from squall.clock import beginning
from squall.errors import BuilderError
from squall.figures import NodeFigures
from squall.operators import Deliver as DeliverNode
from squall.operators import Feed
from squall.plan import Plan
from squall.rdf import ALWAYS, DEFAULT_STREAM, FOREVER, Columns, Event, Term
from squall.stages import Choosy, Options, Output

BULK = 256
"""How many facts an instant has to have, on average, for it to be worth while to work it off by itself,"""
PATIENCE = 16
"""and how many instants may have fewer before that is given up."""
Outputs = list[Output]
"""Those of some instants, in the order of time."""
_TIME = attrgetter("time")
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
        self.bulk = Bulk(plan) if fits(plan) and not options.measure else None
        """What works while instants are large."""
        self.passes = self.facts = 0
        """How many instants that did, and how many facts they had."""
        self.outputs = 0
        self.wanted = self._wanted()
        self.whole_instants = not self.bulk and self.machine.waits
        self.passed = ALWAYS - 1
        """The latest time that has been worked off; what is earlier is late."""
        self.held: list[Event] = []
        """Events of an instant that may not be complete yet."""

    def _wanted(self) -> Collection[Term] | None:
        """The predicates of the triples that the job has to be told of; None: of all. What measures counts all that is
        read, and of what is told whole each event is an instant."""
        ops = (node.op for node in self.plan.nodes)
        if self.options.measure or any(isinstance(op, DeliverNode | Feed) and op.output == "rstream" for op in ops):
            return None
        return wanted(self.plan)

    @cached_property
    def machine(self) -> Machine:
        """What works otherwise; it takes over what the other has done."""
        machine = Measured(self.plan) if self.options.measure else Machine(self.plan, fuses=not self.bulk)
        if self.bulk:
            for id, slot, entries in self.bulk.kept():
                machine.keeping[id].restore(slot, entries)
            self.bulk = None
        return machine

    @cached_property
    def updating(self) -> Updating | None:
        """What does what updates demand; None: the plan has none."""
        return Updating(self.machine, self.options.steps) if not self.bulk and self.machine.updates else None

    @cached_property
    def delivers(self) -> Sequence[Deliver | GrowingDeliver]:
        """The ends of the plan."""
        operators = (self.machine.operators[node.id] for node, _ in self.plan.deliveries)
        return [op for op in operators if isinstance(op, Deliver | GrowingDeliver)]

    def describe(self) -> str:
        """The job as text: one stage, every node in this process."""
        return f"1 stage of {len(self.plan.nodes)} nodes, run by the iterator runtime in this process"

    def figures(self) -> dict[str, NodeFigures]:
        """What each node has done so far, if the options asked to measure it; only what it keeps, otherwise."""
        if isinstance(self.machine, Measured):
            return self.machine.figures(self.outputs)
        state = self.bulk.state() if self.bulk else self.machine.state()
        return {id: NodeFigures(state=size) for id, size in state.items()}

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.stages.Job.run`."""
        if isinstance(batches, Choosy) and self.wanted is not None:
            batches.want(self.wanted)
        begin = beginning(batches) if self.options.now is None else self.options.now
        for outputs in self._parts(batches, list(static), begin):
            yield from outputs

    def _parts(self, batches: Iterable[Sequence[Event]], static: Sequence[Event], begin: int) -> Iterator[Outputs]:
        if self.bulk:
            self.bulk.start()
            yield self._instant(self.bulk, static, ALWAYS)
        else:
            self.machine.start(begin)
            self.machine.read(static)
            if self.updating:
                self.updating.settle()
            yield from self._advance(ALWAYS)
        for batch in batches:
            if isinstance(batch, Columns) and self._takes(batch):
                self.machine.read(batch)
                yield from self._advance(batch.last)
                continue
            for first in range(0, len(batch), TOGETHER):
                part = batch[first : first + TOGETHER]
                yield from self._work(self._due(self._timely(part)))
        held, self.held = self.held, []
        yield from self._work(held)
        if not self.bulk:
            yield from self._advance(FOREVER - 1)

    def _takes(self, columns: Columns) -> bool:
        """Whether columns can be read as they are: none of it is late, and all that follows is handed on at once."""
        if self.whole_instants or self.bulk or self.updating:
            return False
        return (columns.times or [columns.last])[0] >= self.passed

    def _timely(self, batch: Sequence[Event]) -> Sequence[Event]:
        """The events that are not late; the others go to the ledger."""
        earliest = self.held[-1].time if self.held else self.passed + self.whole_instants
        times = list(map(_TIME, batch))
        if times[:1] >= [earliest] and times == sorted(times):
            return batch
        timely: list[Event] = []
        for event in batch:
            if event.time < earliest:
                self._late(event)
            else:
                earliest = event.time
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

    def _work(self, events: Sequence[Event]) -> Iterator[Outputs]:
        """Works events off, and time up to those that are held back."""
        if self.bulk and self._in_bulk(events):
            for time, together in groupby(events, key=_TIME):
                yield self._instant(self.bulk, list(together), time)
        elif self.updating:
            yield from self._instant_by_instant(self.updating, events)
        elif events:
            self.machine.read(events)
            yield from self._advance(events[-1].time)
        if self.held and self.held[0].time - 1 > self.passed:
            yield from self._advance(self.held[0].time - 1)

    def _in_bulk(self, events: Sequence[Event]) -> bool:
        """Whether instants are large enough, on the whole, to be worked off one by one."""
        self.passes += len({event.time for event in events if event.facts})
        self.facts += sum(len(event.facts) for event in events)
        return self.facts >= BULK * (self.passes - PATIENCE)

    def _instant(self, bulk: Bulk, events: Sequence[Event], time: int) -> Outputs:
        for event in events:
            bulk.read(event)
        bulk.run()
        self.passed = time
        found = bulk.flush(time)
        self.outputs += len(found)
        return found

    def _advance(self, now: int) -> Iterator[Outputs]:
        """Lets time go on to `now`: all that begins then or before has been read."""
        if self.updating:
            yield from self._step_by_step(self.updating, now)
        else:
            yield from self._pass(now)

    def _pass(self, now: int) -> Iterator[Outputs]:
        self.machine.run(now)
        self.passed = now
        found = self.delivers[0].flush(now)
        for other in self.delivers[1:]:
            found += other.flush(now)
        if len(self.delivers) > 1:
            found.sort(key=_TIME)
        self.outputs += len(found)
        self.machine.expire(now)
        if found:
            yield found

    # Updates: what they do at an instant is seen at the next one

    def _instant_by_instant(self, updating: Updating, events: Sequence[Event]) -> Iterator[Outputs]:
        place = 0
        while place < len(events):
            time = events[place].time
            yield from self._step_by_step(updating, time - 1)
            after = next((i for i in range(place, len(events)) if events[i].time > time), len(events))
            self.machine.read(events[place:after])
            updating.rest()
            yield from self._one_instant(updating, time)
            place = after

    def _step_by_step(self, updating: Updating, now: int) -> Iterator[Outputs]:
        """Lets time go on to `now`, stopping wherever something begins or ends."""
        while (due := min(self.machine.due(), updating.due)) <= now:
            yield from self._one_instant(updating, due)
        if now > self.passed:
            yield from self._one_instant(updating, now)

    def _one_instant(self, updating: Updating, time: int) -> Iterator[Outputs]:
        updating.apply(time)
        yield from self._pass(time)
        if updating.collect(time):
            for instants in self.machine.instants:
                instants.add_instant(updating.due)
