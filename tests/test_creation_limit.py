"""Tests of the limit of recursions that create terms of terms that they created."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

import squall
from squall.builders.distributed.io.records import WorkerError
from squall.contracts import Options
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.term_creation import recursive_creations
from squall.rdf import ALWAYS, Event, Triple, iri
from tests import in_memory

E = "http://example.org/"
PREFIX = f"@prefix : <{E}>.\n@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.\n"
SEEN = "[seen: (?x :p ?a) -> (?x :seen :yes)]"
ENDLESS = {
    "functors that widen": f"[wide: (?x :p ?a) (?y :p ?b) -> (?x :p f(?a ?b))]\n{SEEN}",
    "functors over each property": "[some: (?x rdf:type ?c) (?p :p ?q) -> (?x rdf:type some(?p ?c))]\n"
    "[all: (?x :p ?y) -> (?x rdf:type :C)] [seen: (?x rdf:type ?c) -> (?x :seen :yes)]",
    "blank nodes that widen": "[skolem: (?x :p ?a) (?y :p ?b) makeSkolem(?z ?a ?b) -> (?x :p ?z)]",
    "blank nodes of two rules": "[first: (?x :p ?a) (?y :p ?b) makeSkolem(?z ?a ?b) -> (?x :q ?z)]\n"
    "[second: (?x :q ?z) -> (?x :p ?z)]",
    "many rows about few nested blank nodes": "[next: (?x :p ?y) makeSkolem(?z ?y) -> (?y :p ?z)]\n"
    "[same: (?x :p ?a) (?y :p ?b) -> (?a :same ?b)] [alike: (?a :same ?b) (?b :p ?c) -> (?c :p ?a)]",
    "numbers": "[count: (?x :p ?y) -> (?x :n 1)] [next: (?x :n ?a) sum(?a 1 ?b) -> (?x :n ?b)]",
    "texts": '[text: (?x :p ?y) -> (?x :n "a")] [longer: (?x :n ?a) strConcat(?a "x" ?b) -> (?x :n ?b)]',
    "texts that double": '[text: (?x :p ?y) -> (?x :n "ab")] [double: (?x :n ?a) strConcat(?a ?a ?b) -> (?x :n ?b)]',
    "distances in a cycle": "[start: (:a :p ?y) -> (:a :n 0)]\n"
    "[next: (?x :n ?a) (?x :p ?y) sum(?a 1 ?b) -> (?y :n ?b)]",
    "negation before it": "[none: (?x :p ?a) noValue(?x :blocked ?y) -> (?x :free ?a)]\n"
    "[skolem: (?x :free ?a) (?y :free ?b) makeSkolem(?z ?a ?b) -> (?x :free ?z)]",
}
"""Programs that do not end, by what they create."""
ENDING = {
    "a term for each fact": "[term: (?x :p ?y) makeSkolem(?z ?x) -> (?z :of ?x)] [all: (?x ?p ?y) -> (?y :used ?p)]",
    "a path of terms": "[term: (?x :p ?y) makeSkolem(?z ?x) -> (?x :node ?z)]\n"
    "[path: (?x :p ?y) (?y :node ?z) -> (?x :reaches ?z)] [more: (?x :p ?y) (?y :reaches ?z) -> (?x :reaches ?z)]",
    "a test": "[start: (:n0 :p ?y) -> (:n0 :n 0)]\n"
    "[next: (?x :n ?a) lessThan(?a 40) (?x :p ?y) sum(?a 1 ?b) -> (?y :n ?b)]",
}
"""Programs that end, and create or derive more than the limit, but no more than their data allow."""
SUBCLASS = iri("http://www.w3.org/2000/01/rdf-schema#subClassOf")
LIMITED = Options(max_terms=200)


def planned(program: str) -> Plan:
    return squall.plan(squall.compile(PREFIX + program.replace("] [", "]\n["), lexer="jena"))


def cycle() -> tuple[Triple, ...]:
    names = [iri(f"{E}{name}") for name in "abc"]
    return tuple(Triple(names[i], iri(f"{E}p"), names[(i + 1) % 3]) for i in range(3))


def path(length: int) -> tuple[Triple, ...]:
    return tuple(Triple(iri(f"{E}n{i}"), iri(f"{E}p"), iri(f"{E}n{i + 1}")) for i in range(length))


def run(plan: Plan, facts: Iterable[Triple], how: str) -> int:
    """Returns the number of outputs of a run over static data or over a stream."""
    event = Event(ALWAYS if how == "static" else 1, tuple(facts))
    static, events = ([event], []) if how == "static" else ([], [event])
    return len(list(squall.run(plan, events, static=static, options=LIMITED)))


@pytest.mark.fault("Q2")
@pytest.mark.parametrize("how", ["static", "stream"])
@pytest.mark.parametrize("name", ENDLESS)
def test_recursion_that_creates_terms_without_an_end_is_an_error(name: str, how: str) -> None:
    with pytest.raises(BuilderError, match=r"the rule `.+` creates terms of terms that rules created") as caught:
        run(planned(ENDLESS[name]), cycle(), how)
    assert "`--max-terms`" in str(caught.value.hint)


@pytest.mark.parametrize("how", ["static", "stream"])
@pytest.mark.parametrize("name", ENDING)
def test_recursion_over_much_data_may_create_as_much(name: str, how: str) -> None:
    assert run(planned(ENDING[name]), path(250), how) >= 40


@pytest.mark.parametrize(
    "name", [pytest.param("blank nodes that widen", marks=pytest.mark.more), "distances in a cycle"]
)
def test_tasks_have_the_same_limit(name: str) -> None:
    plan = replace(planned(ENDLESS[name]), max_terms=200)
    with pytest.raises((BuilderError, WorkerError), match="and the recursion does not end after"):
        in_memory.run(plan, [[Event(1, cycle())]])


@pytest.mark.parametrize("rules", ["rdfs", "rhodf", pytest.param("owl2rl", marks=pytest.mark.more)])
def test_rule_sets_are_not_stopped(rules: str) -> None:
    plan = squall.plan(squall.compile(rules=(rules,)))
    assert {rule.partition("-")[0] for rule in recursive_creations(plan).values()} <= {"prp"}
    schema = [Triple(iri(f"{E}C{i}"), SUBCLASS, iri(f"{E}C{i + 1}")) for i in range(20)]
    outputs = squall.run(plan, [], static=[Event(ALWAYS, tuple(schema))], options=Options(max_terms=10))
    assert len(list(outputs)) >= 190


def test_a_term_has_no_more_characters_than_the_nesting_limit_allows() -> None:
    program = f"[double: (?x :p ?a) -> (?x :p f(?a ?a))]\n{SEEN}"
    with pytest.raises(BuilderError, match="`double` makes a term of more than 200000 characters"):
        list(squall.run(planned(program), [Event(1, cycle())], options=Options(max_depth=20)))
