"""Samples of the input, which forecast what is valid together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import squall
from squall.builders.distributed.plan.sampling import PatternSampler
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.state_statistics import state_statistics
from squall.contracts import Options
from squall.model import System
from squall.plan import Plan
from squall.plan.cardinality import Counts, Statistics
from squall.rdf import ALWAYS, Event, Term, Triple, iri
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests.laws import examples, hold
from tests.test_replanning import CHAIN, unstable

PREDICATES = [Term(f"<urn:p{number}>") for number in range(4)]


def plan_of(text: str) -> Plan:
    return squall.plan(squall.compile(text, lexer="csparql"), replaceable=True)


def forecast(plan: Plan, events: Sequence[Event], share: float = 1.0) -> Statistics:
    sampler = PatternSampler(plan)
    sampler.count(events, share)
    return sampler.statistics()


def distinct_count(events: Sequence[Event], predicate: Term) -> int:
    """Returns the number of distinct triples of a predicate."""
    return len({fact for event in events for fact in event.facts if isinstance(fact, Triple) and fact[1] == predicate})


@pytest.mark.parametrize("rare", [0, 2])
@pytest.mark.parametrize("share", [1.0, 0.01])
def test_windows_hold_what_comes_within_their_time(rare: int, share: float) -> None:
    """A sample forecasts what a run stores, however long the stream goes on."""
    plan, events = plan_of(CHAIN), unstable((rare,), windows=12)
    job = IteratorJob(plan, Options())
    for _ in job.process([event for event in events if event.time < 100_001]):
        pass
    stored, expected = state_statistics(job.dataflow, job.watermark), forecast(plan, events, share)
    for predicate in PREDICATES:
        for name in ("triples", "subjects", "objects", "subject_pairs", "object_pairs"):
            value = getattr(stored.counts(predicate), name)
            assert getattr(expected.counts(predicate), name) == pytest.approx(value, rel=0.6), (predicate, name)


def test_without_windows_everything_stays() -> None:
    """The rest of the input is assumed to be like the sample."""
    plan = squall.plan(squall.compile("SELECT * { ?a <urn:p0> ?b . ?b <urn:p1> ?c }", lexer="sparql"), replaceable=True)
    events = [event._replace(stream="") for event in unstable((2,), windows=3)]
    distinct = distinct_count(events, PREDICATES[0])
    assert forecast(plan, events).counts(PREDICATES[0]).triples == pytest.approx(distinct)
    assert forecast(plan, events, 0.1).counts(PREDICATES[0]).triples == pytest.approx(10 * distinct)


def test_static_data_count_once() -> None:
    plan = plan_of(
        CHAIN.replace("WHERE", "FROM <urn:g> WHERE").replace("}", ". ?d <urn:is> <urn:good> . ?d <urn:in> ?x }")
    )
    sampler = PatternSampler(plan)
    facts = [
        Triple(iri(f"urn:{number}"), iri(predicate), value)
        for number in range(5000)
        for predicate, value in (("urn:is", iri("urn:good")), ("urn:in", iri(f"urn:x{number % 10}")))
    ]
    for first in range(0, len(facts), 1000):
        sampler.count([Event(ALWAYS, (fact,), graph=iri("urn:g")) for fact in facts[first : first + 1000]])
    sampler.count(unstable((1,), windows=6), 0.1)
    statistics = sampler.statistics()
    assert statistics.counts(iri("urn:is")).of_object(iri("urn:good")) == 5000
    assert statistics.counts(iri("urn:in")).triples == 5000
    assert statistics.counts(iri("urn:in")).objects == pytest.approx(10)
    assert statistics.counts(PREDICATES[1]).triples < 5 < 40 < statistics.counts(PREDICATES[0]).triples


def test_what_is_stored_stands_for_what_does_not_come() -> None:
    plan = plan_of(CHAIN)
    sampler = PatternSampler(plan)
    sampler.count([event for event in unstable((3,)) if event.facts[0][1] != PREDICATES[0]])
    present = Statistics(Counts(999, 99, 9), ((PREDICATES[0], Counts(999, 99, 9)),))
    assert sampler.statistics(present).counts(PREDICATES[0]) == Counts(999, 99, 9)
    assert (
        sampler.statistics(present).counts(PREDICATES[1]).triples == sampler.statistics().counts(PREDICATES[1]).triples
    )
    assert sampler.statistics().counts(PREDICATES[0]).triples == 0


def test_derived_facts_are_counted_by_no_sample() -> None:
    """Their numbers are those that are assumed without statistics."""
    rules = "[(?a <urn:q> ?b) <- (?a <urn:p0> ?b)] [(?a <urn:r> ?c) <- (?a <urn:q> ?b) (?b <urn:p1> ?c)]"
    plan = squall.plan(squall.compile(rules, lexer="jena"), replaceable=True)
    events = [event._replace(stream="") for event in unstable((2,), windows=3)]
    assert forecast(plan, events).counts(iri("urn:q")).triples > 1000
    assert forecast(plan, events).counts(PREDICATES[0]).triples == pytest.approx(distinct_count(events, PREDICATES[0]))


def sources_of(plan: Plan) -> set[str]:
    return {node.id for node in plan.nodes if not node.inputs}


@examples(40)
def test_any_program_is_planned_for_any_sample(many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event]) -> None:
        plan = squall.plan(system, replaceable=True)
        sampler = PatternSampler(plan)
        sampler.count([event._replace(time=ALWAYS) for event in facts])
        sampler.count(events, 0.5)
        assert plan.plan_again is not None
        statistics = sampler.statistics()
        assert statistics.all.triples >= 0
        again = plan.plan_again(plan.planning._replace(statistics=statistics))
        assert {node.id for node in again.nodes if not node.inputs} == {
            node.id for node in plan.nodes if not node.inputs
        }

    hold(law, many, system=systems(features=ALL), events=event_streams(features=ALL), facts=static_data())
