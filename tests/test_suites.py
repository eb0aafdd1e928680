"""Runs the built-in stages through the test suites of the package, and checks that the suites reject broken ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import squall
from squall.contracts import Builder, Job, Options, Output
from squall.errors import BuilderError, PlannerError
from squall.model import System
from squall.plan import Node, Plan
from squall.plan.operators import AntiJoin, Join, Match, Project, Sink
from squall.rdf import ALWAYS, Event
from squall.testing import BuilderSuite, LexerSuite, PlannerSuite
from tests.toy_engine import ToyJob


class TestJenaLexer(LexerSuite):
    lexer = "jena"
    good = (
        "[r: (?x <http://example.org/p> ?y) -> (?y <http://example.org/q> ?x)]",
        "(?x rdf:type ?y), notEqual(?x, ?y) -> (?y rdf:type 'a text'^^xsd:string) .",
        "@prefix ex: <http://example.org/> .\n// said aside\n[ (?a ex:q 5) <- (?a ex:p 2.5) ]\n-> (ex:a ex:p ex:b).\n",
    )
    bad = (
        ("[r: (?x rdf:type ?y) -> (?y rdf:type ?x)", 1),
        ("[r: (?x rdf:type ?y) -> (?y rdf:type ?x)]\n[s: (?x rdf:type -> (?x rdf:type ?x)]", 2),
        ("[r: (?x rdf:type ?y ?z ?w) -> (?y rdf:type ?x)]", 1),
    )


@pytest.mark.more
class TestGreedy(PlannerSuite):
    planner = "greedy"


class TestRete(PlannerSuite):
    planner = "rete"


class TestIterator(BuilderSuite):
    builder = "iterator"


class TestToyEngine(BuilderSuite):
    """A distributed engine needs the engine interface and nothing else."""

    builder = ToyJob
    max_examples = 2


@pytest.mark.spark
class TestSpark(BuilderSuite):
    """Straight through, in one task, since there is little."""

    builder = "spark"
    max_examples = 2


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.usefixtures("in_tasks")
class TestSparkInTasks(BuilderSuite):
    builder = "spark"
    max_examples = 2


@pytest.mark.beam
class TestBeam(BuilderSuite):
    builder = "beam"
    max_examples = 2


# Broken on purpose

Law = Callable[..., None]


class _Quick:
    """Enough examples to find every defect below, without shrinking."""

    max_examples: ClassVar[int] = 500
    shrink: ClassVar[bool] = False


def _deaf_to_the_last_rule(system: System) -> Plan:
    """Omits a program's last rule if there are others."""
    return squall.plan(replace(system, subsystems=system.subsystems[:-1] or system.subsystems))


def _blind_to_repetition(system: System) -> Plan:
    """Takes the second occurrence of a variable in a pattern for anything."""

    def loosened(match: Match) -> Match:
        cells = match.cells
        repeated = [isinstance(cell, int) and cell in cells[:at] for at, cell in enumerate(cells)]
        return Match(tuple(None if again else cell for again, cell in zip(repeated, cells, strict=True)))

    return _changed(squall.plan(system), lambda op: loosened(op) if isinstance(op, Match) else op)


def _changed(plan: Plan, change: Callable[[object], object]) -> Plan:
    return Plan(tuple(replace(node, op=change(node.op)) for node in plan.nodes))  # type: ignore[arg-type]


def _one_way_joins(system: System) -> Plan:
    """Joins on one column where there are several."""
    cut = _changed(squall.plan(system), lambda op: replace(op, on=op.on[:1]) if isinstance(op, Join) else op)
    return cut


def _not_well_formed(system: System) -> Plan:
    """Delivers nothing."""
    return Plan(tuple(node for node in squall.plan(system).nodes if not isinstance(node.op, Sink)))


class _Forgetful:
    """A planner that plans the same system differently each time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, system: System) -> Plan:
        self.calls += 1
        return squall.plan(system, ("greedy", "rete", "rete", "greedy")[self.calls % 4])


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (_deaf_to_the_last_rule, "test_answers_are_those_of_the_oracle"),
        (_deaf_to_the_last_rule, "test_two_joins_over_the_same_patterns_stay_two"),
        (_blind_to_repetition, "test_answers_are_those_of_the_oracle"),
        (_one_way_joins, "test_answers_are_those_of_the_oracle"),
        (_not_well_formed, "test_every_plan_is_well_formed"),
        (_Forgetful(), "test_equal_systems_give_equal_plans"),
    ],
)
def test_the_suite_fails_on_a_broken_planner(broken: Callable[[System], Plan], law: str) -> None:
    class Suite(_Quick, PlannerSuite):
        planner = staticmethod(broken)

    with pytest.raises((AssertionError, PlannerError)):
        getattr(Suite(), law)()


@pytest.mark.fault("P12")
def test_a_planner_that_crashes_in_every_example_is_called_once() -> None:
    """P12."""
    calls: list[System] = []

    def crash(system: System) -> Plan:
        calls.append(system)
        raise KeyError("broken")

    class Suite(PlannerSuite):
        planner = staticmethod(crash)

    with pytest.raises(KeyError, match="broken") as caught:
        Suite().test_every_plan_is_well_formed()
    assert len(calls) == 1
    assert "system = System(" in caught.value.__notes__[0]


@dataclass(frozen=True)
class _Broken:
    """A builder that runs the reference builder with a fault: in the batches, in the static events or in the
    outputs."""

    batches: Callable[[Sequence[Sequence[Event]]], Iterable[Sequence[Event]]] = lambda batches: batches
    static: Callable[[Sequence[Event]], Sequence[Event]] = lambda static: static
    outputs: Callable[[Iterable[Output]], Iterable[Output]] = lambda outputs: outputs
    plan: Callable[[Plan], Plan] = lambda plan: plan

    def __call__(self, plan: Plan, options: Options) -> Job:
        return _BrokenJob(self, squall.build(self.plan(plan), "iterator", options))


@dataclass(frozen=True)
class _BrokenJob:
    fault: _Broken
    job: Job

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        outputs = self.job.run(self.fault.batches(list(batches)), self.fault.static(list(static)))
        yield from self.fault.outputs(outputs)


def _without_feedback(plan: Plan) -> Plan:
    return Plan(
        tuple(replace(node, inputs=tuple(edge for edge in node.inputs if not edge.feedback)) for node in plan.nodes)
    )


def _negating_nothing(plan: Plan) -> Plan:
    def kept(node: Node) -> Node:
        if not isinstance(node.op, AntiJoin):
            return node
        return replace(node, op=Project(tuple(range(plan.widths[node.id]))), inputs=node.inputs[:1])

    return Plan(tuple(map(kept, plan.nodes)))


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        pytest.param(_Broken(outputs=lambda actual: list(actual)[:-1]), "test_read_and_match", id="loses the last"),
        pytest.param(
            _Broken(outputs=lambda actual: list(actual)[:-1]), "test_answers_are_those_of_the_oracle", id="loses"
        ),
        pytest.param(
            _Broken(outputs=lambda actual: [out for out in actual for _ in "ab"]),
            "test_answers_are_those_of_the_oracle",
            id="says everything twice",
        ),
        pytest.param(
            _Broken(outputs=lambda actual: [out._replace(time=out.time % 1000) for out in actual]),
            "test_a_shift_in_time_shifts_the_answer",
            id="bends time",
        ),
        pytest.param(
            _Broken(outputs=lambda actual: list(actual)[::-1]),
            "test_answers_are_those_of_the_oracle",
            id="reverses",
        ),
        pytest.param(
            _Broken(outputs=lambda actual: [out._replace(rule="nobody") for out in actual]),
            "test_answers_are_those_of_the_oracle",
            id="names the wrong rule",
        ),
        pytest.param(_Broken(batches=lambda batches: batches[:1]), "test_batches_do_not_matter", id="stops early"),
        pytest.param(
            _Broken(static=lambda static: ()), "test_what_is_static_is_answered_once_and_first", id="drops static data"
        ),
        pytest.param(
            _Broken(outputs=lambda actual: [out for out in actual if out.time != ALWAYS]),
            "test_answers_are_those_of_the_oracle",
            id="keeps axioms to itself",
        ),
        pytest.param(_Broken(plan=_without_feedback), "test_feedback_reaches_the_fixpoint", id="never re-enters"),
        pytest.param(_Broken(plan=_negating_nothing), "test_answers_are_those_of_the_oracle", id="negates nothing"),
    ],
)
def test_the_suite_fails_on_a_broken_builder(fault: Builder, law: str) -> None:
    class Suite(_Quick, BuilderSuite):
        builder = staticmethod(fault)

    with pytest.raises((AssertionError, BuilderError)):
        getattr(Suite(), law)()
