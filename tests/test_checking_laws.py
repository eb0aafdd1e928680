"""Certain findings of the checks agree with the oracle, on generated programs and streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from hypothesis import strategies as st

from squall.checking import Finding, Program, checks
from squall.model import Ask, Pattern, Select, System, Variable, is_update, rules
from squall.model.stratification import stratify
from squall.plan.cardinality import Statistics
from squall.rdf import Event, Fact, Quad
from squall.testing import oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from squall.testing.suites import permuted, renamed
from tests.laws import examples, hold

FLAT = ALL - {"output specs"}
"""Programs whose rules all belong to one answer."""


def found(check: str, program: Program) -> list[Finding]:
    return list(checks()[check](program))


def accused(finding: Finding) -> str:
    """Returns the rule that a finding names first."""
    return finding.message.split("`")[1]


def changes(system: System, events: Sequence[Event], static: Sequence[Event]) -> list[tuple[int, set[Fact | Quad]]]:
    """Returns what follows, from each instant at which it changes.

    With one rule more, answers may be output more often.
    """
    outputs: list[tuple[int, set[Fact | Quad]]] = []
    for time, answer in oracle.answers(system, events, static).items():
        facts = set(answer.facts)
        if facts != (outputs[-1][1] if outputs else set()):
            outputs.append((time, facts))
    return outputs


def without(system: System, name: str) -> System:
    return replace(system, subsystems=tuple(rule for rule in system.subsystems if rule.name != name))


@examples(60)
def test_what_never_fires_answers_nothing(many: int) -> None:
    """The data are counted and all streams are given, so that the check can be sure."""

    def law(system: System, events: list[Event], facts: list[Event]) -> None:
        streams = frozenset(event.stream for event in (*events, *facts))
        counted = Statistics.of(event for event in chain(events, facts))
        never = {accused(item) for item in found("never-fires", Program(system, given=streams, statistics=counted))}
        for answer in oracle.answers(system, events, facts).values():
            names = [*chain.from_iterable(answer.facts.values()), *(name for _, name in answer.solutions)]
            asks = {rule.name for rule in rules(system) if any(isinstance(item, Ask) for item in rule.consequences)}
            assert not never.intersection(names) - asks

    hold(law, many, system=systems(features=ALL), events=event_streams(features=ALL), facts=static_data(features=ALL))


@examples(40)
def test_an_equivalent_rule_is_a_duplicate_and_redundant(many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], data: st.DataObject) -> None:
        rule = data.draw(st.sampled_from(system.subsystems))
        copy = replace(permuted(renamed(System(subsystems=(rule,))), data).subsystems[0], name="copy")
        both = replace(system, subsystems=(*system.subsystems, copy))
        duplicates = {accused(item) for item in found("duplicates", Program(both)) if item.code == "duplicate-rule"}
        answers = any(isinstance(item, Select | Ask) for item in rule.consequences)
        ordered = rule.slice is not None and is_update(rule)  # at last by all variables, in the order of the body
        assert answers or ordered or "copy" in duplicates
        assert changes(both, events, facts) == changes(system, events, facts)

    data = {"events": event_streams(features=FLAT), "facts": static_data(features=FLAT), "data": st.data()}
    hold(law, many, system=systems(features=FLAT), **data)


@examples(60)
def test_contained_rules_are_redundant(many: int) -> None:
    features = frozenset({"axioms", "landmark", "windows", "streams", "alike"})

    def law(system: System, events: list[Event], facts: list[Event], data: st.DataObject) -> None:
        rule = data.draw(st.sampled_from(system.subsystems))
        further = Pattern(Variable("further"), Variable("y"), Variable("further"))
        narrow = replace(rule, name="narrow", joinables=(*rule.joinables, further))
        both = replace(system, subsystems=(*system.subsystems, narrow))
        stratify(both)
        for finding in found("duplicates", Program(both)):
            name = accused(finding)
            assert changes(without(both, name), events, facts) == changes(both, events, facts), name

    data = {"events": event_streams(features=features), "facts": static_data(features=features), "data": st.data()}
    hold(law, many, system=systems(features=features), **data)


@examples(60)
def test_nothing_is_without_end_where_all_ends(many: int) -> None:
    """Generated programs terminate, because their recursion makes no new terms."""

    def law(system: System) -> None:
        assert found("endless-recursion", Program(system)) == []

    hold(law, many, system=systems(features=ALL))
