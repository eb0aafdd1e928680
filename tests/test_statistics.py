"""Statistics of data, their JSON files, and cardinality estimates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

import squall
from squall.errors import UsageError
from squall.model import (
    ARRIVAL,
    GRAPH,
    Aggregate,
    AtomPattern,
    Construct,
    Grouping,
    NotExists,
    Optional,
    Pattern,
    Select,
    Slice,
    System,
    Union,
    Variable,
)
from squall.plan import Plan
from squall.plan import operators as ops
from squall.plan.cardinality import MAX_FREQUENT_VALUES, NO_COUNTS, Counts, DefaultCounts, Statistics, estimates
from squall.plan.operators import Group, Join, Match, Operator
from squall.rdf import Atom, Event, Term, Triple, iri
from squall.rdf.row_tags import relation_tag
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests.laws import examples_of

P, Q, R, K = (iri(f"urn:{name}") for name in "pqrk")
TYPE = iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
X, Y, Z, N, M = map(Variable, "xyznm")


def triples(predicate: Term, pairs: list[tuple[int, int]]) -> tuple[Triple, ...]:
    return tuple(Triple(iri(f"urn:s{pair}"), predicate, iri(f"urn:s{other}")) for pair, other in pairs)


CHAIN = Event(0, triples(P, [(n, n + 1) for n in range(100)]))
STAR = Event(0, triples(Q, [(n, 0) for n in range(50)]) + triples(Q, [(n, n) for n in range(50)]))
DATA = Statistics.of([CHAIN, STAR])


def rows(rule: System, kind: type[Operator], statistics: Statistics | None = DATA, planner: str = "greedy") -> float:
    """Returns the estimated number of rows of the last node of a kind."""
    plan = squall.plan(System(subsystems=(rule,)), planner)
    result = estimates(plan, statistics)
    return [result[node.id] for node in plan.nodes if isinstance(node.op, kind)][-1]


def rule(*joinables: Pattern | AtomPattern | Union | System, **more: object) -> System:
    return System("r", joinables=joinables, consequences=(Select((X,)),), **more)  # type: ignore[arg-type]


# Counts


def test_facts_are_counted_once() -> None:
    assert Statistics.of([CHAIN, CHAIN]) == Statistics.of([CHAIN])
    assert DATA.counts(None) == Counts(199, 100, 101, subject_pairs=495, object_pairs=2747)
    assert DATA.counts(P).triples == 100
    assert (DATA.counts(Q).subjects, DATA.counts(Q).objects) == (50, 50)
    assert DATA.counts(R) == NO_COUNTS


def test_frequent_objects_are_counted_one_by_one() -> None:
    assert DATA.counts(Q).of_object(iri("urn:s0")) == 50
    assert DATA.counts(Q).of_object(iri("urn:s7")) == 1
    many = Statistics.of(
        [Event(0, triples(R, [(n, n) for n in range(MAX_FREQUENT_VALUES + 40)] + [(n, 0) for n in range(50)]))]
    )
    assert len(many.counts(R).values) == MAX_FREQUENT_VALUES
    rare = [
        value
        for value in (iri(f"urn:s{n}") for n in range(MAX_FREQUENT_VALUES + 40))
        if value not in dict(many.counts(R).values)
    ]
    assert many.counts(R).of_object(rare[0]) == pytest.approx(1)


def test_atoms_are_counted_by_relation() -> None:
    counted = Statistics.of([Event(0, (Atom(R, (P, Q, K)), Atom(R, (P, K, Q)), Atom(Q, ())))])
    assert counted.counts(relation_tag(R)).triples == 2
    assert counted.counts(relation_tag(R)).subjects == 1
    assert counted.counts(None) == NO_COUNTS


# Kept


@settings(max_examples=examples_of(25), deadline=None)
@given(event_streams(features=ALL))
def test_saved_statistics_are_loaded(tmp_path_factory: pytest.TempPathFactory, events: list[Event]) -> None:
    path = tmp_path_factory.mktemp("statistics") / "counts.json"
    result = Statistics.of(events)
    result.save(path)
    assert Statistics.load(path) == result


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"all": {}, "predicates": []}', '{"all": 3, "predicates": [[]]}'])
def test_a_file_without_statistics_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counts.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="has no statistics"):
        Statistics.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Statistics.load(tmp_path / "away.json")


# Estimates


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (Pattern(X, P, Y), 100),
        (Pattern(X, Y, Z), 199),
        (Pattern(X, Q, iri("urn:s0")), 50),
        (Pattern(iri("urn:s1"), Q, X), 2),
        (Pattern(iri("urn:s1"), Q, iri("urn:s0")), 1),
        (Pattern(X, Q, X), 2),
        (Pattern(X, R, Y), 0),
    ],
)
def test_patterns(pattern: Pattern, count: float) -> None:
    assert rows(rule(pattern), Match) == pytest.approx(count, rel=0.05)


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (AtomPattern(GRAPH, (N, X, P, Y)), 100),
        (AtomPattern(GRAPH, (N, X, Q, iri("urn:s0"))), 50),
        (AtomPattern(GRAPH, (K, X, P, Y)), 10),
        (AtomPattern(ARRIVAL, (N, Z, X, P, Y)), 100),
        (AtomPattern(ARRIVAL, (N, Z, iri("urn:s1"), Q, X)), 2),
        (AtomPattern(ARRIVAL, (N, Z, X, R, Y)), 0),
    ],
)
def test_patterns_of_where_and_when(pattern: AtomPattern, count: float) -> None:
    assert rows(rule(pattern), Match) == pytest.approx(count, rel=0.05)
    assert 0 < rows(rule(pattern), Match, None) < 10_001


def test_joins() -> None:
    assert rows(rule(Pattern(X, P, Y), Pattern(Y, P, Z)), Join) == pytest.approx(100)
    assert rows(rule(Pattern(X, P, Y), Pattern(X, Q, Z)), Join) == pytest.approx(99, rel=0.05)
    assert rows(rule(Pattern(X, P, Y), Pattern(N, Q, Z)), Join) == pytest.approx(9900, rel=0.05)


@pytest.mark.parametrize(
    ("other", "pairs"),
    [
        (Pattern(N, P, Y), 100),
        (Pattern(N, Q, Y), 50**2 + 49),
        (Pattern(X, Q, N), 49 * 2**2 + 1),
        (Pattern(N, Z, Y), 100 + 50**2 + 49),
        (Pattern(X, Z, N), 100 + 49 * 2**2 + 1),
        (Pattern(N, Z, M), 100**2 + 99**2),
        (AtomPattern(GRAPH, (K, N, Q, Y)), (50**2 + 49) / 10),
        (AtomPattern(GRAPH, (M, N, Q, Y)), (50**2 + 49) / 10),
    ],
)
def test_a_join_of_a_pattern_with_itself_gives_the_pairs_of_equal_values(
    other: Pattern | AtomPattern, pairs: float
) -> None:
    *prefix, _, predicate, _ = other.slots
    pattern = AtomPattern(GRAPH, (*prefix, X, predicate, Y)) if prefix else Pattern(X, predicate, Y)
    assert rows(rule(pattern, other), Join) == pytest.approx(pairs)


def test_each_row_of_a_relation_agrees_with_itself() -> None:
    """Where nothing else is known of two columns together, they are not taken for independent of each other."""
    pattern, other = (AtomPattern(iri("urn:in"), (cell, Y, Z)) for cell in (X, N))
    assert rows(rule(pattern, other), Join, None) == pytest.approx(rows(rule(pattern), Match, None))


def test_two_copies_of_a_relation_are_joined_last() -> None:
    copies = AtomPattern(iri("urn:in"), (X, Y, Z)), AtomPattern(iri("urn:in"), (N, Y, Z))
    plan = squall.plan(rule(*copies, Pattern(N, TYPE, iri("urn:Guest"))))
    joins = [node for node in plan.nodes if isinstance(node.op, Join)]
    assert len(joins) == 2
    assert all(len({edge.node for edge in join.inputs}) == 2 for join in joins)


def test_statistics_without_pairs_have_groups_of_one_size(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    counts = {"triples": 99, "subjects": 50, "objects": 50, "values": []}
    path.write_text(json.dumps({"all": counts, "predicates": [[Q, counts]]}))
    result = rows(rule(Pattern(X, Q, Y), Pattern(N, Q, Y)), Join, Statistics.load(path))
    assert result == pytest.approx(99**2 / 50)


def test_other_operators() -> None:
    p = Pattern(X, P, Y)
    item, other = System(joinables=(p,)), System(joinables=(Pattern(X, Q, Y),))
    count = Grouping((Y,), (Aggregate(N, "count"),))
    assert rows(rule(Union((item, other))), ops.Select) == pytest.approx(199)
    assert rows(rule(p, predicates=(Optional(System(joinables=(Pattern(X, R, Z),))),)), ops.Select) == pytest.approx(
        100
    )
    assert rows(rule(p, predicates=(NotExists((Pattern(X, R, Z),)),)), ops.Select) == pytest.approx(100)
    assert rows(rule(p, predicates=(NotExists((Pattern(X, P, Z),)),)), ops.Select) == pytest.approx(10)
    assert rows(rule(Pattern(X, Q, Y), grouping=count), Group) == pytest.approx(50)
    assert rows(rule(p, grouping=Grouping((), count.aggregates)), Group) == 1
    assert rows(rule(p, slice=Slice(limit=7)), ops.Select) == 7


def test_what_rules_derive_counts() -> None:
    system = System("m", joinables=(Pattern(X, P, Y),), consequences=(Construct((Pattern(Y, R, X),)),))
    read = rule(Pattern(X, R, Y), Pattern(Y, P, Z))
    plan = squall.plan(System(subsystems=(system, read)), "greedy")
    result = estimates(plan, DATA)
    assert result[_match_of(plan, R)] == pytest.approx(100)


def _match_of(plan: Plan, predicate: Term) -> str:
    return next(node.id for node in plan.nodes if isinstance(node.op, Match) and node.op.cells[1] == predicate)


def test_guesses_put_patterns_in_order() -> None:
    """Constants are selective, objects more than subjects; types are not."""
    patterns = [
        Pattern(K, P, K), Pattern(X, P, K), Pattern(K, P, X), Pattern(X, P, Y), Pattern(X, TYPE, K), Pattern(X, Y, Z),
    ]  # fmt: skip
    guessed = [rows(rule(pattern), Match, None) for pattern in patterns]
    assert guessed == sorted(guessed)
    assert len(set(guessed)) == len(guessed)


def test_a_functional_predicate_has_one_object_for_each_subject() -> None:
    counts = DefaultCounts(frozenset((P,))).counts(P)
    assert counts.triples == counts.subjects
    assert DefaultCounts().counts(P).triples > DefaultCounts().counts(P).subjects


@settings(max_examples=examples_of(25), deadline=None)
@given(systems(features=ALL), event_streams(features=ALL), static_data(features=ALL))
def test_every_node_has_an_estimate(system: System, events: list[Event], facts: list[Event]) -> None:
    for planner in ("greedy", "rete"):
        plan = squall.plan(system, planner)
        for statistics in (None, Statistics(), Statistics.of([*events, *facts])):
            result = estimates(plan, statistics)
            assert set(result) == {node.id for node in plan.nodes}
            assert all(0 <= count < float("inf") for count in result.values())
