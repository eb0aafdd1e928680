"""The passes of the physical plan, each with and without it: both times the outputs are those of the oracle.

Without the broadcast pass no input is broadcast; without skewed keys no key is split; without partitioning all rows of
a stateful node meet in one task. The stages and the ordered scan are left out by a plan that runs as a whole in a
single task. (tests/test_sharded_plan.py does the same for shards, on programs of which many are shardable.)

A law rejects trials whose physical plan its pass does not change. It fails if few of the others have outputs, since it
would show little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast, closure_inputs
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.physical_plan import PhysicalPlan, physical_plan
from squall.builders.distributed.plan.skew import SkewedKeys, splittable_inputs
from squall.builders.distributed.plan.stages import NO_SKEWED_KEYS, exchanges_of, partitionings_of
from squall.contracts import Output
from squall.model import Construct, Pattern, Source, System, Variable
from squall.plan import Plan
from squall.plan.operators import Scan, is_stateful
from squall.plan.validation import check
from squall.rdf import Event, Term
from squall.testing.strategies import systems
from squall.testing.strategies.streams import sources_of
from squall.testing.strategies.vocabulary import LEVELS
from tests.in_memory import any_engine, any_workers, in_a_single_task
from tests.laws import examples, hold_with_outputs
from tests.regrouping import regrouped
from tests.trials import APART, Trial, trials

NO_BROADCAST = frozenset[Address]()
WITHOUT_REMOVALS = APART - {"removals"}
APPEND_ONLY = WITHOUT_REMOVALS - {"count"}
"""Features of programs that never retract facts, so that any closure is append-only."""


def staged_engine(seed: int) -> dict[str, Any]:
    """Draws options of `tests.in_memory.run`, of which none lets one task process a batch."""
    return {"workers": any_workers(Random(seed))}


# Broadcast


def inputs_of(candidates: Mapping[Address, frozenset[Address]]) -> list[Address]:
    """Returns the inputs on which candidates for broadcast inputs depend, in order."""
    return sorted(frozenset().union(*candidates.values()))


def any_broadcast(draw: Random, plan: Plan, share: float) -> frozenset[Address]:
    """Draws broadcast inputs of a plan, as if this share of the inputs had few rows."""
    candidates = broadcast_candidates(plan)
    few_rows = {address: 1 for address in inputs_of(candidates) if draw.random() < share}
    return choose_broadcast(plan, few_rows, [], 1000, candidates)


@pytest.mark.more
@pytest.mark.sampled(2)
@examples(15)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_outputs_do_not_depend_on_broadcast_inputs(planner: str, many: int) -> None:
    """Any inputs that can be broadcast, whatever arrives and whenever, with failures at any point."""

    def law(trial: Trial) -> list[Output]:
        draw = Random(trial.seed)
        plan = squall.plan(trial.system, planner)
        candidates = broadcast_candidates(plan)
        inputs = inputs_of(candidates)
        row_counts = {address: draw.randrange(1, 4) for address in inputs}
        streamed = [address for address in inputs if draw.random() < 0.3]
        broadcast_inputs = choose_broadcast(plan, row_counts, streamed, draw.choice([3, 1000]), candidates)
        assert broadcast_inputs <= candidates.keys()
        assume(partitionings_of(plan, broadcast_inputs) != partitionings_of(plan))
        trial.outputs_as_oracle(plan, **any_engine(trial.seed))
        return trial.outputs_as_oracle(plan, **any_engine(trial.seed), broadcast_inputs=broadcast_inputs)

    hold_with_outputs(law, many, trial=trials(APART))


def with_transitive_rule(system: System, predicate: Term, source: Source) -> System:
    x, y, z = map(Variable, "xyz")
    body = (Pattern(x, predicate, y), Pattern(y, predicate, z))
    rule = System("closed", (source,), body, consequences=(Construct((Pattern(x, predicate, z),)),))
    return replace(system, subsystems=(*system.subsystems, rule))


@pytest.mark.more
@examples(15)
def test_outputs_do_not_depend_on_the_partitioning_of_closures(many: int) -> None:
    """Each task finds the paths of closures that begin at nodes of its partition, whichever other inputs are broadcast
    and keys are skewed, with failures at any point."""

    def law(trial: Trial) -> list[Output]:
        draw = Random(trial.seed)
        plan = squall.plan(trial.system)
        steps = closure_inputs(plan)
        assume(steps)
        beside = any_broadcast(draw, plan, 0.3)
        if draw.random() < 0.5:
            plan = co_partitioned(draw, plan, steps | beside)
        broadcast_inputs = steps | beside
        skewed_keys = any_skewed_keys(draw, plan, broadcast_inputs, trial.all_events) if draw.random() < 0.3 else {}
        options = any_engine(trial.seed) | {"skewed_keys": skewed_keys}
        trial.outputs_as_oracle(plan, **options, broadcast_inputs=beside)
        return trial.outputs_as_oracle(plan, **options, broadcast_inputs=broadcast_inputs)

    predicates = st.sampled_from([predicate for level in LEVELS for predicate in level])
    programs = st.one_of(systems(features=APPEND_ONLY), systems(features=WITHOUT_REMOVALS))
    closed = st.builds(with_transitive_rule, programs, predicates, sources_of("", APPEND_ONLY))
    hold_with_outputs(law, many, trial=trials(WITHOUT_REMOVALS, closed))


# Skewed keys


def any_skewed_keys(
    draw: Random, plan: Plan, broadcast_inputs: frozenset[Address], events: list[Event]
) -> dict[Address, tuple[str, ...]]:
    """Draws keys, of terms of the events, that count as skewed."""
    terms = sorted({term for event in events for fact in event.facts for term in fact if isinstance(term, str)})
    results: dict[Address, tuple[str, ...]] = {}
    for (id, port), columns in splittable_inputs(plan, partitionings_of(plan, broadcast_inputs)).items():
        keys = {"\n".join(draw.choices(terms, k=len(columns))) for _ in range(draw.randrange(4)) if terms}
        results[id, port] = tuple(sorted(keys - {*results.get((id, 1 - port), ())}))
    return {address: keys for address, keys in results.items() if keys}


@pytest.mark.more
@examples(15)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_outputs_do_not_depend_on_skewed_keys(planner: str, many: int) -> None:
    """Rows of any keys are split and joined with broadcast rows of these keys; whole inputs may be broadcast besides;
    failures may happen at any point."""

    def law(trial: Trial) -> list[Output]:
        draw = Random(trial.seed)
        plan = squall.plan(trial.system, planner)
        broadcast_inputs = any_broadcast(draw, plan, 0.4) if draw.random() < 0.5 else NO_BROADCAST
        skewed_keys = any_skewed_keys(draw, plan, broadcast_inputs, trial.all_events)
        assume(partitionings_of(plan, broadcast_inputs, skewed_keys) != partitionings_of(plan, broadcast_inputs))

        def outputs(keys: SkewedKeys) -> list[Output]:
            return trial.outputs_as_oracle(
                plan,
                **any_engine(trial.seed),
                broadcast_inputs=broadcast_inputs,
                skewed_keys=keys,
                measures=lambda: draw.random() < 0.2,
            )

        outputs(NO_SKEWED_KEYS)
        return outputs(skewed_keys)

    hold_with_outputs(law, many, trial=trials(APART))


# Partitioning


def gathered(plan: Plan) -> Plan:
    """Returns the plan without a partitioning: all rows of a stateful node meet in one task."""
    return check(
        replace(
            plan,
            nodes=tuple(
                replace(node, inputs=tuple(replace(edge, columns=()) for edge in node.inputs))
                if is_stateful(node.op)
                else node
                for node in plan.nodes
            ),
        )
    )


def co_partitioned(draw: Random, plan: Plan, broadcast_inputs: frozenset[Address]) -> Plan:
    """Returns the plan with other partitioning columns: of some that are drawn, those with the fewest shuffles, so that
    much depends on how rows arrive."""

    def shuffle_count(plan: Plan) -> int:
        return sum(exchange.shuffles for exchange in exchanges_of(plan, partitionings_of(plan, broadcast_inputs)))

    return min((regrouped(draw, plan) for _ in range(10)), key=shuffle_count)


@pytest.mark.sampled(2)
@examples(20)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_outputs_do_not_depend_on_the_partitioning(planner: str, many: int) -> None:
    """Plan validation suffices: any partitioning that keeps matching rows together gives the same outputs, as none at
    all does."""

    def law(trial: Trial) -> list[Output]:
        draw = Random(trial.seed)
        plan = squall.plan(trial.system, planner)
        broadcast_inputs = any_broadcast(draw, plan, 0.4) if draw.random() < 0.3 else NO_BROADCAST
        if draw.random() < 0.8:
            plan = co_partitioned(draw, plan, broadcast_inputs)
        skewed_keys = any_skewed_keys(draw, plan, broadcast_inputs, trial.all_events) if draw.random() < 0.5 else {}
        assume(any(partitionings_of(plan).values()))
        assert not any(partitionings_of(gathered(plan)).values())
        trial.outputs_as_oracle(gathered(plan), **staged_engine(trial.seed))
        return trial.outputs_as_oracle(
            plan, **staged_engine(trial.seed), broadcast_inputs=broadcast_inputs, skewed_keys=skewed_keys
        )

    hold_with_outputs(law, many, trial=trials(APART))


# Stages and ordered scans


def has_stages(physical: PhysicalPlan) -> bool:
    return len(physical.stages) > 1


def iterates(physical: PhysicalPlan) -> bool:
    return any(stage.recursive for stage in physical.stages)


def reads_in_order(physical: PhysicalPlan) -> bool:
    sources = [node.op.source for node in physical.plan.nodes if isinstance(node.op, Scan)]
    return any(source.removals or source.is_sequential for source in sources)


@pytest.mark.sampled(5)
@examples(15)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize("is_concerned", [has_stages, iterates, reads_in_order])
def test_outputs_do_not_depend_on_how_a_plan_is_cut(
    is_concerned: Callable[[PhysicalPlan], bool], planner: str, many: int
) -> None:
    """Many tasks run the plan stage by stage, behind its ordered scans, or one task runs it as a whole. Removals, count
    windows, and derived streams come in any batches, with failures at any point."""

    def law(trial: Trial) -> list[Output]:
        plan = squall.plan(trial.system, planner)
        physical = physical_plan(plan)
        assume(physical.strategy.is_staged and is_concerned(physical))
        trial.outputs_as_oracle(plan, **staged_engine(trial.seed), change=in_a_single_task)
        return trial.outputs_as_oracle(plan, **any_engine(trial.seed))

    hold_with_outputs(law, many, trial=trials(APART))
