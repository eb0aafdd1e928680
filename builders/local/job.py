"""The iterator builder: runs a plan in this process, the reference for all others and the embedded default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from squall.builders.local.adaptation import Adaptation
from squall.builders.local.batch_metrics import measured_batches
from squall.builders.local.event_loop import EventLoop
from squall.builders.local.identity import static_digests
from squall.builders.local.replay import ReplayedBatches
from squall.builders.runtime.layout import DataflowLayout
from squall.builders.runtime.multiway_join import multiway_join_lines, with_multiway_joins
from squall.builders.runtime.operators.scan import predicates_to_read
from squall.builders.runtime.plan_choice import check_replaceable
from squall.builders.runtime.profiled import ProfiledDataflow
from squall.builders.runtime.snapshot import SnapshotDataflow, fits
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.contracts import (
    AcceptsDeadLetters,
    BuilderCapabilities,
    Options,
    Output,
    PlanChange,
    SupportsFilterPushDown,
    declare_capabilities,
)
from squall.errors import BuilderError, SquallError
from squall.plan import Plan, Planning
from squall.plan.node_metrics import NodeMetric
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import FOREVER, Event, statement_count
from squall.streams import Sources
from squall.streams.clock import beginning


def _read_planning(checkpoint: Path) -> Planning | None:
    from squall.builders.local.checkpoint import read_planning  # on demand: most runs have no use for it

    return read_planning(checkpoint)


@declare_capabilities(
    BuilderCapabilities(
        checkpoints=True,
        checkpoint_interval=True,
        removed_rules=True,
        recoverable_sinks=True,
        wall_clock=True,
        node_metrics=True,
        statistics=True,
        replans=True,
        resumes_with_any_plan=True,
        memory_limit=True,
        batch_metrics=True,
    ),
    _read_planning,
)
def build(plan: Plan, options: Options) -> IteratorJob:
    """Runs a plan in this process, event by event, with checkpoints."""
    return IteratorJob(plan, options)


def _seed(options: Options) -> int:
    """Returns the seed of a run: that of its checkpoint, or else that of its options."""
    if options.checkpoint is not None:
        from squall.builders.local.checkpoint import saved_seed  # on demand: most runs have no use for it

        saved = saved_seed(options.checkpoint)
        if saved is not None:
            return saved
    return FIXED_SEED if options.seed is None else options.seed


def _plan_of_checkpoint(plan: Plan, options: Options) -> Plan:
    """Returns the plan of the run whose checkpoint is to be resumed, if it is another plan of the same program."""
    if options.checkpoint is None or plan.plan_again is None:
        return plan
    planning = _read_planning(options.checkpoint)
    if planning is None or planning == plan.planning:
        return plan
    try:
        before = plan.plan_again(planning)
    except SquallError:  # such as a planner that is not installed: if the plan was another one, the checkpoint says so
        return plan
    return plan if before == plan else before


def _wake_time(event_loop: EventLoop) -> int:
    """Returns when the next change of a run is complete if no event comes (integer ms), or FOREVER."""
    return FOREVER if event_loop.snapshot_dataflow else min(event_loop.next_change_time, FOREVER - 1) + 1


class IteratorJob(EventLoop):
    """A job of the iterator builder. `run` may be called once.

    A run that resumes begins with the plan of its checkpoint, and then moves to the plan that is given here.
    """

    def __init__(self, plan: Plan, options: Options, tuning: Tuning = DEFAULT_TUNING) -> None:
        check_replaceable(plan, options)
        seed = _seed(options)
        wanted, plan = plan, _plan_of_checkpoint(plan, options)
        can_begin_as_snapshots = fits(plan) and not options.measure and options.checkpoint is None
        snapshot_dataflow = SnapshotDataflow(with_seed(plan, seed), tuning) if can_begin_as_snapshots else None
        super().__init__(plan, options, snapshot_dataflow, tuning, seed)
        self.adaptation = Adaptation(self)
        """What looks for better plans."""
        if plan is not wanted:
            self.adaptation.wanted = wanted
        self._has_begun = False
        self.predicates = None if options.measure else predicates_to_read(plan)  # what is measured is all that is read

    def describe(self) -> str:
        """Describes the job as text: one stage, with every node in this process, and where the rows of each go."""
        plan = with_multiway_joins(self.plan)
        layout = DataflowLayout.of(plan)
        stage = f"1 stage of {len(plan.nodes)} nodes, run by the iterator runtime in this process"
        return "\n".join([stage, *multiway_join_lines(plan.nodes), str(layout)])

    def node_metrics(self) -> dict[str, NodeMetric]:
        """Returns the metrics of each node: all if the options demand it, otherwise only the size of its state."""
        if isinstance(self.dataflow, ProfiledDataflow):
            return self.dataflow.metrics(self.output_count)
        state = snapshot.state() if (snapshot := self.snapshot_dataflow) else self.dataflow.state()
        return {id: NodeMetric(state=size) for id, size in state.items()}

    @property
    def plan_changes(self) -> Sequence[PlanChange]:
        """The changes of the plan while the job ran (`squall.contracts.ReplacesPlans`)."""
        return self.adaptation.changes

    @property
    def refused_plan(self) -> str:
        """Why the last better plan could not replace the present one (`squall.contracts.ReplacesPlans`)."""
        return self.adaptation.refused

    @property
    def dropped_facts(self) -> int:
        """What windows have dropped because of their number (`squall.contracts.CountsDroppedFacts`)."""
        return 0 if self._dataflow is None else self._dataflow.input.dropped_facts

    def _connect(self, batches: Iterable[Sequence[Event]]) -> None:
        """Says to the input what the run needs to have of it, and when."""
        if isinstance(batches, AcceptsDeadLetters):
            batches.set_ledger(self.options.ledger)
        if isinstance(batches, SupportsFilterPushDown) and self.predicates is not None:
            batches.push_down(self.predicates)
        if isinstance(batches, Sources):
            batches.wake_time = partial(_wake_time, self)

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`."""
        if self._has_begun:
            raise BuilderError("the job has run", hint="build another one: `squall.build(plan)`")
        self._has_begun = True
        self._connect(batches)
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.checkpoint is not None:
            from squall.builders.local.durable import DurableRun  # on demand: most runs have no use for it

            digests = static_digests(static)
            run = DurableRun(self, self.options.checkpoint, batches, digests, self.adaptation)
            yield from run.outputs(static, begin)
            return
        inputs = batches if isinstance(batches, Sources) else ReplayedBatches(batches)
        static_events = [*static, *(inputs.static_events() if self.buffer.needs_complete_instants else ())]
        for outputs in self.start(static_events, begin):
            yield from outputs
        for batch in measured_batches(self, inputs):
            for outputs in self.process(batch):
                yield from outputs
            if self.adaptation.choice.replanning is not None:
                self.adaptation.count(statement_count(batch))
            if self.memory_limit is not None:
                self.adaptation.check_memory()
        for outputs in self.end():
            yield from outputs
