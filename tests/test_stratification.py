"""Fact shapes (which patterns and templates have facts in common), and which programs can be stratified."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.errors import Errors, TranslatorError
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    Delete,
    FactPattern,
    Graph,
    Grouping,
    NotExists,
    Optional,
    Pattern,
    Predicate,
    Slice,
    Source,
    System,
    Union,
    Variable,
)
from squall.model.fact_shapes import Shape, overlaps, shape
from squall.model.graphs import components
from squall.model.stratification import stratify
from squall.model.windows import CountWindow, SlidingWindow
from squall.rdf import RDF, XSD, iri, literal

X, Y, Z = map(Variable, "xyz")
P, Q, R, A, B = (iri(f"urn:{name}") for name in "pqrab")
TYPE = iri(RDF + "type")
ONE, ALSO_ONE, TEXT = literal("1", XSD + "int"), literal("01", XSD + "integer"), literal("1")
NOW = Call("urn:x-squall:jena:now", ())


def rule(name: str, body: list[FactPattern], head: FactPattern, *predicates: Predicate) -> System:
    return System(name, joinables=tuple(body), predicates=predicates, consequences=(Construct((head,)),))


def program(*rules: System) -> System:
    return System(subsystems=rules)


def without(*patterns: FactPattern) -> NotExists:
    return NotExists(patterns)


def refusals(system: System) -> list[str]:
    """Returns the messages with which a program is refused."""
    with pytest.raises((TranslatorError, Errors)) as caught:
        stratify(system)
    errors = caught.value.errors if isinstance(caught.value, Errors) else [caught.value]
    return [error.message for error in errors]


# Shapes


@pytest.mark.parametrize(
    ("pattern", "result"),
    [
        (Pattern(X, P, Y), (None, P, None)),
        (Pattern(A, X, ONE), (A, None, ONE)),
        (AtomPattern(R, (X, A)), (f"@{R}", None, A)),
        (AtomPattern(R, ()), (f"@{R}",)),
    ],
)
def test_the_shape_of(pattern: FactPattern, result: Shape) -> None:
    assert shape(pattern) == result


@pytest.mark.parametrize(
    ("left", "right", "meet"),
    [
        (Pattern(X, P, Y), Pattern(Y, P, X), True),
        (Pattern(X, P, Y), Pattern(X, Q, Y), False),
        (Pattern(X, Y, Z), Pattern(A, Q, B), True),
        (Pattern(A, P, X), Pattern(X, P, B), True),
        (Pattern(A, P, X), Pattern(B, P, X), False),
        (Pattern(X, TYPE, A), Pattern(X, TYPE, B), False),
        (Pattern(X, P, ONE), Pattern(X, P, ALSO_ONE), True),
        (Pattern(X, P, ONE), Pattern(X, P, TEXT), False),
        (Pattern(X, P, ONE), Pattern(X, P, A), False),
        (AtomPattern(R, (X,)), AtomPattern(R, (A,)), True),
        (AtomPattern(R, (ONE,)), AtomPattern(R, (ALSO_ONE,)), True),
        (AtomPattern(R, (X,)), AtomPattern(Q, (X,)), False),
        (AtomPattern(R, (X,)), AtomPattern(R, (X, Y)), False),
        (AtomPattern(R, (X, Y)), Pattern(R, X, Y), False),
        (AtomPattern(R, (X, Y)), Pattern(X, Y, Z), False),
    ],
)
def test_shapes_that_have_a_fact_in_common(left: FactPattern, right: FactPattern, meet: bool) -> None:
    assert overlaps(shape(left), shape(right)) is meet
    assert overlaps(shape(right), shape(left)) is meet


# Refused


def test_a_rule_that_negates_its_own_head() -> None:
    alone = rule("win", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(Y, Q, Z)))
    assert refusals(program(alone)) == ["rule `win` negates what depends on it: `win` -> `win`"]


def test_through_two_rules() -> None:
    first = rule("first", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(X, R, Y)))
    second = rule("second", [Pattern(X, Q, Y)], Pattern(X, R, Y))
    assert refusals(program(first, second)) == [
        "rule `first` negates what depends on it: `first` -> `second` -> `first`"
    ]


def test_two_rules_that_negate_each_other_are_two_errors() -> None:
    first = rule("first", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(X, R, Y)))
    second = rule("second", [Pattern(X, P, Y)], Pattern(X, R, Y), without(Pattern(X, Q, Y)))
    assert len(refusals(program(first, second))) == 2


def test_a_rule_may_negate_one_pattern_of_a_conjunction_that_it_derives() -> None:
    alone = rule("it", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(X, P, Z), Pattern(Z, Q, Y)))
    assert refusals(program(alone)) == ["rule `it` negates what depends on it: `it` -> `it`"]


def test_a_variable_for_a_predicate_reads_everything() -> None:
    alone = rule("it", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(X, Z, A)))
    assert refusals(program(alone)) == ["rule `it` negates what depends on it: `it` -> `it`"]


def test_literals_of_one_value_are_one() -> None:
    alone = rule("it", [Pattern(X, P, Y)], Pattern(X, Q, ONE), without(Pattern(X, Q, ALSO_ONE)))
    assert refusals(program(alone)) == ["rule `it` negates what depends on it: `it` -> `it`"]


def test_the_time_inside_a_recursion() -> None:
    alone = rule("tick", [Pattern(X, P, Y)], Pattern(Y, P, Z), Bind(Z, NOW))
    assert refusals(program(alone)) == ["rule `tick` takes the time (`now`) of what depends on it: `tick` -> `tick`"]


def test_the_time_inside_a_recursion_through_two_rules() -> None:
    existing_items = rule("there", [Pattern(X, P, Y)], Pattern(X, Q, Z), Bind(Z, NOW))
    back = rule("back", [Pattern(X, Q, Y)], Pattern(X, P, Y))
    assert refusals(program(existing_items, back)) == [
        "rule `there` takes the time (`now`) of what depends on it: `there` -> `back` -> `there`"
    ]


OWN = System(joinables=(Pattern(Y, Q, Z),))
PAIRS = rule("it", [Pattern(X, P, Y)], Pattern(X, Q, Y))


@pytest.mark.parametrize(
    ("alone", "verb"),
    [
        (replace(PAIRS, predicates=(Optional(OWN),)), "takes as optional"),
        (replace(PAIRS, predicates=(Optional(System(joinables=(OWN,))),)), "takes as optional"),
        (replace(PAIRS, predicates=(Optional(replace(OWN, grouping=Grouping((Y,), ()))),)), "aggregates"),
        (replace(PAIRS, joinables=(Pattern(X, P, Y), replace(OWN, slice=Slice(limit=1)))), "slices"),
        (replace(PAIRS, joinables=(Pattern(X, Q, Y),), grouping=Grouping((X, Y), ())), "groups"),
        (replace(PAIRS, joinables=(Union((PAIRS, replace(OWN, grouping=Grouping((Y,), ())))),)), "groups"),
        (replace(PAIRS, predicates=(without(),), joinables=(Pattern(X, P, Y),)), None),
        (replace(PAIRS, predicates=(NotExists((Union((System(), OWN)),)),)), "negates"),
        (replace(PAIRS, joinables=(replace(OWN, predicates=(Bind(X, NOW),)),)), "takes the time (`now`) of"),
        (replace(PAIRS, joinables=(Pattern(X, P, Y), OWN)), None),
        (replace(PAIRS, joinables=(Pattern(X, P, Y), replace(OWN, distinct=True))), None),
        (replace(PAIRS, joinables=(Pattern(X, P, Y), Union((OWN, OWN)))), None),
    ],
)  # fmt: skip
def test_operators_that_need_a_lower_stratum(alone: System, verb: str | None) -> None:
    if verb is None:
        stratify(program(alone))
    else:
        assert refusals(program(alone)) == [f"rule `it` {verb} what depends on it: `it` -> `it`"]


def test_what_reads_a_stream_of_its_own_reads_nothing_derived() -> None:
    negated = Optional(replace(OWN, sources=(Source("urn:stream"),)))
    stratify(program(replace(PAIRS, predicates=(negated,))))
    stratify(program(replace(PAIRS, sources=(Source("urn:stream"),), predicates=(without(Pattern(Y, Q, Z)),))))


def test_a_cycle_names_the_rules_on_it() -> None:
    rules = [rule(f"r{n}", [Pattern(X, iri(f"urn:p{n}"), Y)], Pattern(X, iri(f"urn:p{n + 1}"), Y)) for n in range(3)]
    last = rule("last", [Pattern(X, P, Y)], Pattern(X, iri("urn:p0"), Y), without(Pattern(X, iri("urn:p3"), Y)))
    assert refusals(program(*rules, last)) == [
        "rule `last` negates what depends on it: `last` -> `r0` -> `r1` -> `r2` -> `last`"
    ]


def test_deletions_derive_nothing() -> None:
    alone = replace(PAIRS, predicates=(without(Pattern(X, Q, Y)),), consequences=(Delete((Pattern(X, Q, Y),)),))
    stratify(program(alone))


def test_ten_thousand_rules_about_classes() -> None:
    """Dependencies are found by an index, not by comparing all pairs: rules x rules would take minutes."""
    classes = [iri(f"urn:class{number}") for number in range(5_001)]
    steps = [rule("r", [Pattern(X, TYPE, below)], Pattern(X, TYPE, above)) for below, above in pairwise(classes)]
    begun = time.process_time()
    stratify(program(*steps, *steps))
    assert time.process_time() - begun < 5


def test_the_place_is_that_of_the_negation_and_there_is_a_hint() -> None:
    text = "[win: (?x <urn:move> ?y)\n   noValue(?y <urn:wins> ?z) -> (?x <urn:wins> ?y)]"
    with pytest.raises(TranslatorError) as caught:
        squall.compile(text, lexer="jena")
    assert caught.value.origin is not None
    assert caught.value.origin.line == 2
    assert str(caught.value.hint).endswith("its own conclusion, or evaluate it once: `--profile jena`")
    squall.compile(text, lexer="jena", profile="jena")


def made(name: str, template: Pattern) -> System:
    """Returns a query whose answer is the stream `urn:s`."""
    return System(subsystems=(rule(name, [Pattern(X, P, Y)], template),), stream="urn:s")


def reading(*sources: Source) -> System:
    body = (Pattern(X, Q, Y),)
    return System("r", sources, body, consequences=(Construct((Pattern(X, R, Y),)),), reentrant=False)


@pytest.mark.parametrize("template", [Pattern(X, Q, Y), Pattern(X, A, Y)], ids=["that is read", "that is not"])
@pytest.mark.parametrize(
    "source",
    [
        Source("urn:s", CountWindow(3)),
        Source(window=CountWindow(3)),
        Source(windows=(("urn:s", CountWindow(3)),)),
        Graph(B, CountWindow(3)),
    ],
    ids=["by itself", "with others", "by its own window", "a graph of it"],
)
def test_a_window_of_triples_is_not_of_what_two_queries_make(source: Source, template: Pattern) -> None:
    """Unread facts count as well."""
    assert refusals(program(made("m", Pattern(X, Q, Y)), made("n", template), reading(source))) == [
        "rule `r` reads <urn:s> through the window TRIPLES 3, and several queries make that stream: `m`, `n`"
    ]


def test_other_windows_are_of_what_many_queries_make() -> None:
    two = (made("m", Pattern(X, Q, Y)), made("n", Pattern(X, A, Y)))
    stratify(program(*two, reading(Source("urn:s", SlidingWindow(3)), Source("urn:other", CountWindow(3)))))
    stratify(program(two[0], reading(Source("urn:s", CountWindow(3)))))
    stratify(program(two[0], replace(two[1], stream="urn:t"), reading(Source(window=CountWindow(3)))))


# Accepted


@pytest.mark.parametrize(
    "system",
    [
        program(rule("recursive", [Pattern(X, P, Y), Pattern(Y, P, Z)], Pattern(X, P, Z))),
        program(rule("below", [Pattern(X, P, Y), Pattern(Y, P, Z)], Pattern(X, P, Z), without(Pattern(X, Q, Z)))),
        program(
            rule("one", [Pattern(X, P, Y)], Pattern(X, TYPE, A)),
            rule("two", [Pattern(X, P, Y)], Pattern(X, TYPE, B), without(Pattern(X, TYPE, A))),
        ),
        program(rule("string", [Pattern(X, P, Y)], Pattern(X, Q, TEXT), without(Pattern(X, Q, ONE)))),
        program(rule("arity", [Pattern(X, P, Y)], AtomPattern(R, (X, Y)), without(AtomPattern(R, (X,))))),
        program(rule("kind", [Pattern(X, P, Y)], AtomPattern(R, (X, Y)), without(Pattern(R, X, Y)))),
        program(rule("time", [Pattern(X, P, Y)], Pattern(X, Q, Z), Bind(Z, NOW))),
        program(rule("axiom", [], Pattern(A, P, B))),
        program(),
    ],
    ids=lambda system: system.subsystems[0].name if system.subsystems else "empty",
)
def test_a_program_that_can_be_stratified(system: System) -> None:
    stratify(system)


def test_patterns_of_rdf_type_are_distinguished_by_the_class() -> None:
    """Negating one class below another is a stratum, though both are facts of one predicate."""
    classes = [iri(f"urn:class{number}") for number in range(4)]
    steps = [
        rule(above, [Pattern(X, TYPE, classes[0])], Pattern(X, TYPE, result), without(Pattern(X, TYPE, below)))
        for above, below, result in zip(("r2", "r3"), classes[1:], classes[2:], strict=False)
    ]
    stratify(program(*steps))
    closing = rule("close", [Pattern(X, TYPE, classes[3])], Pattern(X, TYPE, classes[1]))
    assert len(refusals(program(*steps, closing))) == 2


def test_non_reentrant_conclusions_feed_nothing() -> None:
    alone = rule("it", [Pattern(X, P, Y)], Pattern(X, Q, Y), without(Pattern(X, Q, Y)))
    stratify(replace(alone, reentrant=False))


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


@given(EDGES)
def test_components_are_those_of_networkx(edges: list[tuple[int, int]]) -> None:
    graph = networkx.DiGraph(edges)
    result = components({node: list(graph.successors(node)) for node in graph})
    assert sorted(map(sorted, result)) == sorted(map(sorted, networkx.strongly_connected_components(graph)))


def test_components_of_a_long_path_and_of_a_long_cycle() -> None:
    path = {number: [number + 1] for number in range(100_000)} | {100_000: []}
    assert len(components(path)) == 100_001
    (cycle,) = components(path | {100_000: [0]})
    assert len(cycle) == 100_001
