"""The strategy of a plan: how tasks divide the work on it, and which small batches they do not divide.

Most plans run stage by stage. A plan in which an instant decides the next one runs as a whole: all rules see the effect
of an update at the next instant, which may be the time of no event. One task runs such a plan, or, if it is shardable
(`squall.builders.distributed.plan.shardability`), many do, each for a shard of the subjects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from squall.builders.distributed.plan.ordered_scan import why_ordered_source
from squall.builders.distributed.plan.shardability import Reason, why_not_shardable
from squall.builders.distributed.plan.snapshot_nodes import rstream_nodes
from squall.builders.runtime.tuning import DEFAULT_TUNING
from squall.plan import Plan
from squall.plan.operators import DerivedStream, Operator, Scan

_MAX_ADDED_FACTOR = 10
"""One task compacts up to this many times the rows that one task processes."""


@dataclass(frozen=True)
class Strategy:
    """How the tasks of an engine divide the work on a plan.

    Attributes:
        division: whether tasks run it stage by stage, or as a whole: in shards of the subjects, or in a single task.
        reasons: why it runs as a whole, and why not in shards.
        reads_small_input: whether a small batch is processed from its sources to its outputs without a shuffle. Where
            snapshots are evaluated, the driver has to decide when.
        collects_few_rows: whether one task processes few rows that a job has read. If derived streams decide when
            snapshots are evaluated, the driver needs reports of them.
    """

    division: Literal["stages", "shards", "single task"]
    reasons: tuple[Reason, ...] = ()
    reads_small_input: bool = True
    collects_few_rows: bool = False

    @property
    def is_staged(self) -> bool:
        """Whether tasks run the plan stage by stage."""
        return self.division == "stages"

    def __str__(self) -> str:
        small = "from its sources to its outputs" if self.reads_small_input else "behind its sources"
        has_single_tasks = self.is_staged and (self.reads_small_input or self.collects_few_rows)
        notes = [f"one task processes a small batch, {small}"] if has_single_tasks else map(str, self.reasons)
        return "; ".join([self.division, *notes])


def strategy_of(plan: Plan, in_one_job: bool = False) -> Strategy:
    """Returns the strategy of a plan.

    Args:
        plan: the plan.
        in_one_job: whether the engine runs all input as one job. It then has no ordered scans
            (`squall.builders.distributed.plan.ordered_scan`), no tasks for derived streams, and no shards.
    """
    reasons = (Reason(node, what) for node in plan.nodes if (what := _why_as_a_whole(node.op, in_one_job)) is not None)
    why = next(reasons, None)
    if in_one_job:
        return Strategy("single task" if why else "stages", (why,) if why else (), reads_small_input=False)
    if why is not None:
        mixing = why_not_shardable(plan)
        return Strategy("shards", (why,)) if mixing is None else Strategy("single task", (why, mixing))
    has_snapshots = bool(rstream_nodes(plan))
    has_derived_streams = any(isinstance(node.op, DerivedStream) for node in plan.nodes)
    return Strategy("stages", (), not has_snapshots, not (has_snapshots and has_derived_streams))


def _why_as_a_whole(op: Operator, in_one_job: bool) -> str | None:
    """Returns what an operator does at an instant that decides what others do at the next one."""
    match op:
        case Scan(source=source) if source.follows_links:
            return "reads facts by the links of owl:sameAs that streams bring"
        case Scan(source=source) | DerivedStream(source=source) if any(
            window.has_sessions for window in source.all_windows
        ):
            return "closes sessions when time passes"
        case Scan(source=source) if in_one_job:
            return why_ordered_source(source)
        case DerivedStream() if in_one_job:
            return "derives a stream that is read again"
    return op.decides_next_instant


# Batches


@dataclass(frozen=True)
class BatchLimits:
    """Up to which sizes one task does what else many do, and what is kept.

    Attributes:
        max_single_task_rows: one task processes a batch whose rows, with those of the state, are at most so many.
        max_cached_rows: the most rows of state that a worker caches from one step to the next.
        max_single_task_bytes: one task processes a batch of at most so many bytes from its sources to its outputs (-1:
            never).
        max_single_task_state_rows: this also needs a state of at most so many rows, or of `max_single_task_rows`.
        compaction_interval: after how many batches the whole state is written again.
    """

    max_single_task_rows: int = 0
    max_cached_rows: int = 0
    max_single_task_bytes: int = -1
    max_single_task_state_rows: int = 0
    compaction_interval: int = DEFAULT_TUNING.compaction_interval

    def fit_compaction_task(self, state_rows: int, added_rows: int) -> bool:
        """Returns whether one task compacts the state.

        Args:
            state_rows: the most rows that there are.
            added_rows: how many have been added since the last time.
        """
        return (
            self.max_single_task_rows > 0
            and self.max_single_task_bytes >= 0
            and state_rows <= self.max_single_task_rows
            and added_rows <= _MAX_ADDED_FACTOR * self.max_single_task_rows
        )


class BatchSizes(NamedTuple):
    """What is known of the sizes of a batch.

    Attributes:
        rows: the most rows that there are: those of the state, buffered ones, and new ones as far as they are read.
        input_bytes: the size of the sources; None once they have been read.
    """

    rows: int
    input_bytes: int | None = None


BatchStrategy = Literal["unshuffled", "read first", "collected", "by jobs"]
"""How a batch is processed. Before its sources are read: by tasks that read them and need no shuffle, or after a job
that reads them. Then: collected in one task, or by the jobs of the physical plan."""


def for_batch(strategy: Strategy, limits: BatchLimits, sizes: BatchSizes) -> BatchStrategy:
    """Returns how a batch is processed, which depends on its sizes."""
    if sizes.input_bytes is None:
        return "collected" if strategy.collects_few_rows and sizes.rows <= limits.max_single_task_rows else "by jobs"
    max_state_rows = max(limits.max_single_task_rows, limits.max_single_task_state_rows)
    fits_state = limits.max_single_task_rows > 0 and sizes.rows <= max_state_rows
    is_small = sizes.input_bytes <= limits.max_single_task_bytes and (fits_state or not strategy.is_staged)
    return "unshuffled" if strategy.reads_small_input and is_small else "read first"
