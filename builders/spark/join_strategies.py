"""The choice, when a run begins, of the inputs whose rows are broadcast, and of the keys that many rows have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from squall.builders.distributed.plan.broadcast import (
    choose_broadcast,
    closure_inputs,
    general_inputs,
    moved_broadcast_inputs,
    vocabulary_inputs,
)
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.sampling import InputSampler
from squall.builders.distributed.plan.skew import SkewedKeys, find_skewed_keys, moved_skewed_keys, splittable_inputs
from squall.builders.distributed.plan.stages import NO_SKEWED_KEYS, partitionings_of
from squall.builders.spark.settings import Settings
from squall.plan import Plan
from squall.rdf import Event


class JoinStrategies(NamedTuple):
    """How joins are executed: the broadcast inputs, besides those of transitive closures, and the skewed keys by
    input."""

    broadcast_inputs: frozenset[Address] = frozenset()
    skewed_keys: SkewedKeys = NO_SKEWED_KEYS

    def moved(self, before: Plan, plan: Plan) -> JoinStrategies:
        """Returns how the joins of a plan are executed that takes the place of another one."""
        return JoinStrategies(
            moved_broadcast_inputs(before, plan, self.broadcast_inputs),
            moved_skewed_keys(before, plan, self.skewed_keys),
        )


def choose_join_strategies(
    plan: Plan,
    static_rows: Mapping[Address, int],
    samples: Iterable[Sequence[Event]],
    settings: Settings,
    partitions: int,
) -> JoinStrategies:
    """Returns how the joins of a plan that runs stage by stage are executed.

    Args:
        plan: the plan.
        static_rows: the number of static rows of each input.
        samples: the beginnings of the streams.
        settings: the settings of the run.
        partitions: the number of tasks.
    """
    hot_key_share = settings.hot_key_share(partitions)
    max_broadcast_rows = settings.max_broadcast_rows if static_rows else 0
    candidates = splittable_inputs(plan, partitionings_of(plan)) if hot_key_share else {}
    if not max_broadcast_rows and not candidates:
        return JoinStrategies()
    sampler = InputSampler(plan, candidates)
    for events in samples:
        sampler.count(events)
    broadcast_inputs: frozenset[Address] = frozenset()
    if max_broadcast_rows:
        stream_inputs = {*sampler.rows, *general_inputs(plan)}
        vocabularies = vocabulary_inputs(plan)
        broadcast_inputs = choose_broadcast(plan, static_rows, stream_inputs, max_broadcast_rows, vocabularies)
    still_splittable = splittable_inputs(plan, partitionings_of(plan, broadcast_inputs | closure_inputs(plan)))
    skewed_keys = find_skewed_keys(sampler.keys, hot_key_share)
    return JoinStrategies(
        broadcast_inputs, {address: keys for address, keys in skewed_keys.items() if address in still_splittable}
    )
