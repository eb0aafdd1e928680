"""Values that trade speed for memory, and thresholds between two ways to do the same. No output depends on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The tuning values of a runtime; the defaults are measured (docs/benchmarks.md).

    A distributed builder adds its own (`squall.builders.beam.options`, `squall.builders.spark.settings`).

    Attributes:
        compaction_interval: after how many batches a distributed builder writes the whole state again, instead of
            its changes only. Spark's driver collects garbage as often.
        max_events_per_pass: the most events that one pass over the plan processes. They should fit the processor's
            caches, and expired rows should be deleted in time.
        first_join_part: a join processes so many rows of an input first, and then more or fewer at a time, by the
            number of rows that it made of them.
        min_facts_per_instant: the average number of facts from which on an instant is large enough for the snapshot
            dataflow, which evaluates it as a whole.
        min_log_growth: the bytes by which a checkpoint file may grow before it is written anew, besides twice its
            length.
        min_rows_to_sweep: the rows of a state below which it is not swept.
        max_live_rows_scanned: after so many rows that are still valid, a sweep that begins with the oldest rows stops.
        min_rows_to_factor: the rows from which on one step for all of them, as factored rows, costs less than one step
            for each.
        min_rows_per_object: the average number of facts per object from which on the facts of a predicate are grouped
            by object.
        min_pairs_to_compare: the pairs and the nodes of a transitive closure up to which the kind of its sets does not
            matter.
        max_bits_per_pair: a pair takes about so many bits in a hash set. Bit sets are smaller if there is more than one
            pair per so many pairs of nodes.
        max_prefetched_batches: the most batches that a distributed builder reads ahead of a run.
    """

    compaction_interval: int = 16
    max_events_per_pass: int = 4096
    first_join_part: int = 128
    min_facts_per_instant: int = 256
    min_log_growth: int = 1 << 20
    min_rows_to_sweep: int = 256
    max_live_rows_scanned: int = 64
    min_rows_to_factor: int = 256
    min_rows_per_object: int = 16
    min_pairs_to_compare: int = 512
    max_bits_per_pair: int = 256
    max_prefetched_batches: int = 16


DEFAULT_TUNING = Tuning()
