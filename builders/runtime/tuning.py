"""Values that trade speed for memory. No output depends on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The tuning values of a runtime; the defaults are measured (docs/benchmarks.md).

    Attributes:
        compaction_interval: after how many batches a distributed builder writes the whole state again, instead of
            its changes only. Spark's driver collects garbage as often.
        max_events_per_pass: the most events that one pass over the plan processes. They should fit the processor's
            caches, and expired rows should be deleted in time.
        min_facts_per_instant: the average number of facts from which on an instant is large enough for the snapshot
            dataflow, which evaluates it as a whole.
        max_small_instants: how many smaller instants the snapshot dataflow processes before the incremental dataflow
            takes over.
        min_log_growth: the bytes by which a checkpoint file may grow before it is written anew, besides twice its
            length.
    """

    compaction_interval: int = 16
    max_events_per_pass: int = 4096
    min_facts_per_instant: int = 256
    max_small_instants: int = 16
    min_log_growth: int = 1 << 20


DEFAULT_TUNING = Tuning()
