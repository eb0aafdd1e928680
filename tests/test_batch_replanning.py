"""Micro-batches whose plan is replaced between two of them: what they output does not depend on it.

The engine is that of `tests/in_memory.py`: its workers and its driver fail at any point, also while the plan is
replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from random import Random
from typing import Any, NoReturn

import pytest
import rdflib
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.distributed.exec import plan_change
from squall.builders.distributed.exec.adaptation import BatchAdaptation
from squall.builders.distributed.plan import physical_plan
from squall.builders.distributed.plan.broadcast import broadcast_candidates, choose_broadcast
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.distributed.plan.physical_plan import PhysicalPlan
from squall.builders.distributed.plan.skew import splittable_inputs
from squall.builders.distributed.plan.stages import partitionings_of
from squall.builders.distributed.plan.strategy import Strategy, strategy_of
from squall.builders.local import event_loop
from squall.builders.runtime.replanning import CannotReplan
from squall.contracts import Output, Replanning
from squall.model import System
from squall.plan import Plan
from squall.plan.gates import gates_of
from squall.rdf import ALWAYS, Event, Triple, term
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL
from tests import in_memory
from tests.laws import FEW_EXAMPLES, examples, examples_of, hold
from tests.test_replanning import (
    ALWAYS_REPLANS,
    CHAIN,
    NODES,
    ONTOLOGY,
    PREDICATES,
    joins,
    statistics_by,
    triples,
    unstable,
)
from tests.trials import APART, Trial, trials


@contextmanager
def random_statistics(random: Random) -> Iterator[None]:
    """Lets jobs plan for statistics that are drawn at random."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_change, "state_statistics", lambda dataflow, _: statistics_by(random, dataflow.plan))
        yield


def moves(adaptations: Sequence[BatchAdaptation]) -> int:
    """Returns how many times the plan has been replaced."""
    return sum(len(adaptation.changes) for adaptation in adaptations)


DIVISIONS = ("stages", "single task")


@contextmanager
def divided(division: str) -> Iterator[None]:
    """Lets tasks run all plans as a whole, if that is the division."""
    with pytest.MonkeyPatch.context() as patch:
        if division != "stages":
            patch.setattr(physical_plan, "strategy_of", lambda *_: Strategy("single task"))
        yield


def any_engine(random: Random) -> dict[str, Any]:
    """Draws options of `in_memory.run`, with moves to another plan after each batch."""
    return {
        "max_single_task_rows": random.choice([0, 0, 10, 1_000_000]),
        "max_single_task_bytes": random.choice([-1, -1, 2, 1_000_000]),
        "workers": in_memory.any_workers(random) if random.random() < 0.7 else None,
        "replanning": ALWAYS_REPLANS,
    }


@pytest.mark.more
@pytest.mark.parametrize("division", DIVISIONS)
@examples(60)
def test_any_program_outputs_the_same_whatever_its_plans(many: int, division: str) -> None:
    count = 0

    def law(trial: Trial) -> None:
        nonlocal count
        draw = Random(trial.seed)
        plan = squall.plan(trial.system, replaceable=draw.random() < 0.8)
        assume(division != "stages" or strategy_of(plan).is_staged)
        adaptations: list[BatchAdaptation] = []
        with random_statistics(draw), divided(division):
            trial.outputs_as_oracle(plan, **any_engine(draw), adaptations=adaptations)
        count += moves(adaptations)

    hold(law, many, trial=trials(APART if division == "stages" else ALL))
    assert count or FEW_EXAMPLES


@pytest.mark.parametrize("division", DIVISIONS)
@examples(100)
def test_joins_output_the_same_whatever_their_plans(many: int, division: str) -> None:
    count = 0

    def law(system: System, events: list[Event], cuts: list[int], seed: int) -> None:
        nonlocal count
        random = Random(seed)
        plan = squall.plan(system, replaceable=random.random() < 0.8)
        adaptations: list[BatchAdaptation] = []
        with random_statistics(random), divided(division):
            outputs = in_memory.run(
                plan,
                in_memory.cut(events, cuts),
                broadcast_inputs=any_broadcast_inputs(plan, random) if division == "stages" else frozenset(),
                skewed_keys=any_skewed_keys(plan, random) if division == "stages" else {},
                compaction_interval=random.choice([1, 2, 100]),
                adaptations=adaptations,
                **any_engine(random),
            )
        assert_as_oracle(system, outputs, events)
        count += moves(adaptations)

    hold(
        law, many, system=joins(), events=triples(), cuts=st.lists(st.integers(0, 10), min_size=2, max_size=5),
        seed=st.integers(0, 1 << 32),
    )  # fmt: skip
    assert count or FEW_EXAMPLES


PREFIX = "PREFIX : <http://example.org/>\n"
GROWS = "INSERT { ?a :q ?c } WHERE { ?a :p ?b . ?b :q ?c . ?c :r ?d }"
SHRINKS = "DELETE { ?a :r ?b } WHERE { ?b :p ?a . ?a :q ?c . ?c :q ?b }"
LAST = """DELETE { ?a :last ?old } INSERT { ?a :last ?b }
WHERE { ?a :p ?b . ?a :q ?b . ?a :r ?c OPTIONAL { ?a :last ?old } }"""
CHAINS = "SELECT ?a ?d { ?a :p ?b . ?b :q ?c . ?c :r ?d }"
STARS = "SELECT ?a ?b ?c ?d { ?a :p ?b . ?a :q ?b . ?a :r ?c . ?a :last ?d }"


@pytest.mark.parametrize(
    ("division", "texts"),
    [
        pytest.param("single task", (GROWS, SHRINKS, CHAINS), marks=pytest.mark.more),
        ("single task", (LAST, CHAINS)),
        pytest.param("shards", (LAST, STARS), marks=pytest.mark.more),
    ],
)
@examples(60)
def test_updates_do_the_same_whatever_their_plans(many: int, division: str, texts: tuple[str, ...]) -> None:
    """What they have inserted, and what they are about to change, is that of nodes with other names in each plan."""
    count = 0

    def law(events: list[Event], cuts: list[int], seed: int) -> None:
        nonlocal count
        random = Random(seed)
        window = random.choice(["LANDMARK", "RANGE 5ms"])
        parts = (squall.compile(PREFIX + text, lexer="sparql", window=window) for text in texts)
        system = System(subsystems=tuple(parts))
        statistics = statistics_by(random, squall.plan(system))
        plan = squall.plan(system, statistics=statistics, replaceable=random.random() < 0.8)
        assert strategy_of(plan).division == division
        adaptations: list[BatchAdaptation] = []
        with random_statistics(random):
            outputs = in_memory.run(
                plan,
                in_memory.cut(events, cuts),
                compaction_interval=random.choice([1, 2, 100]),
                adaptations=adaptations,
                **any_engine(random),
            )
        assert_as_oracle(system, outputs, events)
        count += moves(adaptations)

    hold(
        law, many, events=triples(), cuts=st.lists(st.integers(0, 10), min_size=2, max_size=5),
        seed=st.integers(0, 1 << 32),
    )  # fmt: skip
    assert count > examples_of(many) / 2


def any_broadcast_inputs(plan: Plan, random: Random) -> frozenset[Address]:
    if random.random() < 0.6:
        return frozenset()
    entries = sorted(frozenset().union(*broadcast_candidates(plan).values()))
    streamed = [entry for entry in entries if random.random() < 0.4]
    return choose_broadcast(plan, dict.fromkeys(entries, 1), streamed, 1000)


def any_skewed_keys(plan: Plan, random: Random) -> dict[Address, tuple[str, ...]]:
    if random.random() < 0.6:
        return {}
    inputs = splittable_inputs(plan, partitionings_of(plan))
    by_join = {id: (id, port) for id, port in inputs if random.random() < 0.5}
    return {address: (random.choice(NODES),) for address in by_join.values()}


def run_chain(
    adaptation: BatchAdaptation, change: Callable[[PhysicalPlan], PhysicalPlan] = lambda physical: physical
) -> tuple[list[Output], list[Event], System]:
    """Runs a chain of joins in micro-batches, after each of which its plan may be replaced."""
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((3, 0), windows=3)
    plan = squall.plan(system, replaceable=True)
    size = len(events) // 6
    batches = [events[first : first + size] for first in range(0, len(events), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_memory, "BatchAdaptation", lambda *_: adaptation)
        workers = in_memory.Workers(Random(0), failure_rate=0)
        outputs = in_memory.run(plan, batches, adaptations=[], workers=workers, change=change)
    return outputs, events, system


def chain_adaptation(max_rows: int = 1_000_000) -> BatchAdaptation:
    plan = squall.plan(squall.compile(CHAIN, lexer="csparql"), replaceable=True)
    return BatchAdaptation(plan, plan.planning, Replanning(interval=1, max_share=1e9), max_rows)


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_job_follows_the_stream(division: str) -> None:
    adaptation = chain_adaptation()
    with divided(division):
        outputs, events, system = run_chain(adaptation)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert adaptation.changes
    assert all(change.gain is not None and change.gain >= 1.5 for change in adaptation.changes)


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_state_that_is_too_large_for_one_task_keeps_its_plan(division: str) -> None:
    adaptation = chain_adaptation(max_rows=10)
    with divided(division):
        outputs, events, system = run_chain(adaptation)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert not adaptation.changes
    assert re.fullmatch(r"the state has [0-9,]+ rows, and one task reads at most 10 of them", adaptation.refused)


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_plan_whose_state_is_not_known_is_refused(division: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> NoReturn:
        raise CannotReplan("it is another one")

    monkeypatch.setattr(plan_change if division == "stages" else event_loop, "replanned", refused)
    adaptation = chain_adaptation()
    with divided(division):
        outputs, events, system = run_chain(adaptation)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert not adaptation.changes
    assert adaptation.refused == "it is another one"


def test_a_plan_that_would_be_run_in_another_way_is_refused() -> None:
    strategies = chain([Strategy("single task")], repeat(Strategy("shards")))

    def change(physical: PhysicalPlan) -> PhysicalPlan:
        return replace(physical, strategy=next(strategies))

    adaptation = chain_adaptation()
    with divided("single task"):
        outputs, events, system = run_chain(adaptation, change)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert not adaptation.changes
    assert adaptation.refused == "the plans are processed in different ways"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_owl2rl_outputs_the_same_whatever_its_plans(seed: int) -> None:
    """The state of its recursion, keys, chains and contradictions moves as it is."""
    random, time, events = Random(seed), 0, list[Event]()
    for _ in range(6):
        time += random.randrange(3)
        ends = ((random.choice(NODES), random.choice(PREDICATES), random.choice(NODES)) for _ in range(2))
        events.append(Event(time, tuple(Triple(*cells) for cells in ends)))
    ontology = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    static = [Event(ALWAYS, tuple(Triple(*map(term, triple)) for triple in sorted(ontology)))]
    query = "SELECT ?a ?p ?b { ?a ?p ?b FILTER(isIRI(?b)) }"
    system = squall.compile(query, lexer="sparql", rules=["owl2rl"], window="RANGE 6ms")
    adaptations: list[BatchAdaptation] = []
    with random_statistics(random):
        outputs = in_memory.run(
            squall.plan(system, replaceable=True),
            [events[:2], events[2:4], events[4:]],
            static,
            max_single_task_rows=1_000_000,
            workers=in_memory.Workers(random, failure_rate=0.02),
            replanning=ALWAYS_REPLANS,
            adaptations=adaptations,
        )
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events, static=static))
    assert moves(adaptations)


STEPS = """PREFIX : <http://example.org/>
SELECT ?a ?d FROM STREAM :s
WHERE { { ?a :p ?b . ?b :q ?c } SEQ { ?a :q ?c . ?c :p ?d } WITHIN 10ms }
"""


@pytest.mark.more
def test_a_pattern_over_time_whose_steps_wait_elsewhere_is_replaced() -> None:
    """The gates of a plan in stages move with the rest of it."""
    system = squall.compile(STEPS, lexer="ctsparql")
    plan = squall.plan(system, replaceable=True)
    assert gates_of(plan)
    random, adaptations = Random(2), list[BatchAdaptation]()
    events = [
        Event(
            time,
            tuple(Triple(*(random.choice(names) for names in (NODES, PREDICATES, NODES))) for _ in range(9)),
            "http://example.org/s",
        )
        for time in range(24)
    ]
    with random_statistics(random):
        outputs = in_memory.run(
            plan, in_memory.cut(events, [6, 12, 18]), replanning=ALWAYS_REPLANS, adaptations=adaptations
        )
    assert outputs
    assert Counter(outputs) == Counter(squall.run(plan, events))
    assert moves(adaptations)
    assert not any(adaptation.refused for adaptation in adaptations)
