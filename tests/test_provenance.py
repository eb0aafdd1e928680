"""owl:sameAs with provenance: joins go by cliques, and answers have the terms that matched."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall import explain
from squall.errors import SquallError
from squall.rdf import ALWAYS, RDFS, Columns, Event, Term, Triple, iri
from squall.rdf.cliques import SAME_AS, Cliques
from tests.laws import PLANNERS, examples, hold
from tests.test_same_as import (
    CLASSES,
    EVENT_OF_MARY,
    INDIVIDUALS,
    LINKS,
    LINKS_OF_MARY,
    NAMES_OF_MARY,
    PATTERNS,
    PATTERNS_OF_NAMES,
    PATTERNS_OF_RESOURCES,
    PROPERTIES,
    QUERY_FOR_MARY,
    RULES,
    SOURCES,
    A,
    E,
    compiled,
    distributed,
    events,
    outputs,
    projected,
    query,
    shown,
    statements,
)

Answers = list[tuple[int, Any]]
ALL_PATTERNS = (*PATTERNS, *PATTERNS_OF_NAMES, *PATTERNS_OF_RESOURCES)


def check_projection(language: str, actual: Answers, by_representative: Answers, cliques: Cliques) -> None:
    """Checks that answers are those by representative, with representatives in place of terms.

    Answers that begin to hold (ISTREAM) may have come by another name before. By representative they come once.
    """
    rows, expected = projected(actual, cliques), projected(by_representative, cliques)
    if language in ("csparql", "rspql"):
        assert rows == expected
    assert rows >= expected
    assert {fact for _, fact in rows} == {fact for _, fact in expected}


@examples(30)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", SOURCES)
def test_projected_to_cliques_they_are_the_answers_by_representative(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], pattern: str, seed: int) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        by_name = {
            way: squall.plan(compiled(language, query(language, pattern), same_as=way, schema=same), planner)
            for way in ("representative", "provenance")
        }
        expected, actual = (outputs(plan, stream, same) for plan in by_name.values())
        check_projection(language, actual, expected, cliques)
        assert shown(distributed(by_name["provenance"], stream, same, seed)) == shown(actual)

    hold(law, many, stream=events(), same=statements(), pattern=st.sampled_from(ALL_PATTERNS), seed=st.integers(0, 100))


@examples(20)
@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_derive_facts_of_the_terms_that_matched(planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], seed: int) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        by_clique, plan = (
            squall.plan(compiled("jena", RULES, same_as=way, schema=same), planner)
            for way in ("representative", "provenance")
        )
        actual = outputs(plan, stream, same)
        check_projection("jena", actual, outputs(by_clique, stream, same), cliques)
        assert len(actual) == len(set(actual))
        assert shown(distributed(plan, stream, same, seed)) == shown(actual)

    hold(law, many, stream=events(), same=statements(), seed=st.integers(0, 100))


# The terms, by an evaluator that tries each combination of facts

Slots = tuple[str, str, str]
"""A pattern: variables begin with a question mark, other slots are names."""
NODES = INDIVIDUALS[:3]
"""Few terms, most of which are the same, so that patterns join them often."""


def patterns() -> st.SearchStrategy[list[Slots]]:
    node = st.sampled_from(("?x", "?y", "?x", "?y", "?z", "x1"))
    pattern = st.tuples(node, st.sampled_from(("p", "q", "p", "q", "?p")), node)
    return st.lists(pattern, min_size=1, max_size=3)


def contents() -> st.SearchStrategy[list[Triple]]:
    node = st.sampled_from(NODES)
    fact = st.builds(Triple, node, st.sampled_from([PROPERTIES[0], PROPERTIES[2]]), node)
    return st.lists(fact, min_size=3, max_size=7, unique=True)


def matches(pattern: Slots, fact: Triple, cliques: Cliques) -> dict[str, Term] | None:
    """Returns the terms that the variables of a pattern match in a fact, or None if it does not."""
    terms: dict[str, Term] = {}
    for slot, term in zip(pattern, fact, strict=True):
        expected = terms.setdefault(slot, term) if slot.startswith("?") else iri(E + slot)
        if cliques.representative(expected) != cliques.representative(term):
            return None
    return terms


def solutions(body: list[Slots], triples: list[Triple], cliques: Cliques) -> list[dict[str, Term]]:
    """Returns the solutions of patterns as a bag: the terms of the first that has a variable."""
    results: list[dict[str, Term]] = [{}]
    for pattern in body:
        matching = [terms for triple in triples if (terms := matches(pattern, triple, cliques)) is not None]
        results = [
            terms | left
            for left, terms in product(results, matching)
            if agree(left, terms, cliques)
        ]  # fmt: skip
    return results


def agree(left: dict[str, Term], right: dict[str, Term], cliques: Cliques) -> bool:
    shared = left.keys() & right
    return all(cliques.representative(left[name]) == cliques.representative(right[name]) for name in shared)


def text_of(body: list[Slots]) -> str:
    return " . ".join(" ".join(slot if slot.startswith("?") else f":{slot}" for slot in pattern) for pattern in body)


@examples(60)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("planner", PLANNERS)
def test_the_terms_are_those_of_the_first_pattern(planner: str, many: int) -> None:
    def law(
        triples: list[Triple],
        same: list[Triple],
        body: list[Slots],
        optional: list[Slots],
        negated: list[Slots],
        end: str,
    ) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        all_triples = [*triples, *(Triple(name, SAME_AS, name) for name in cliques.members)]
        names = dict.fromkeys(slot for pattern in (*body, *optional) for slot in pattern if slot.startswith("?"))
        tests = [f"FILTER STRENDS(STR({name}), '{end}')" for name in names][:1]
        negation = f"FILTER NOT EXISTS {{ {text_of(negated)} }}" if negated else ""
        option = f"OPTIONAL {{ {text_of(optional)} }}" if optional else ""
        text = query("csparql", f"{text_of(body)} {option} {negation} {' '.join(tests)}", " ".join(names) or "*")
        plan = squall.plan(compiled("csparql", text, same_as="provenance", schema=same), planner)
        actual = outputs(plan, [Event(1, tuple(triples), A)], same)

        def agreeing(left: dict[str, Term], inner: list[Slots]) -> list[dict[str, Term]]:
            return [terms for terms in solutions(inner, all_triples, cliques) if agree(left, terms, cliques)]

        expected = solutions(body, all_triples, cliques)
        if optional:
            joined = [[right | left for right in agreeing(left, optional)] or [left] for left in expected]
            expected = [row for rows in joined for row in rows]
        if negated:
            expected = [row for row in expected if not agreeing(row, negated)]
        expected = [
            row for row in expected if not tests or str(row[next(iter(names))]).endswith(f"{end}>") or end == ""
        ]
        rows = [tuple(map(row.get, names)) for row in expected]
        first_instant = [fact.values for time, fact in actual if time == 2]
        assert sorted(map(str, first_instant)) == sorted(map(str, rows))

    hold(
        law, many, triples=contents(), same=st.sampled_from([LINKS, LINKS[:1], LINKS[1:]]), body=patterns(),
        optional=st.just([]) | patterns(), negated=st.just([]) | patterns(), end=st.sampled_from(["1", "2", ""]),
    )  # fmt: skip


QUERIES = (
    ("?x (COUNT(DISTINCT ?y) AS ?n)", "?x :p ?y", "GROUP BY ?x HAVING(COUNT(DISTINCT ?y) > 0)"),
    ("(COUNT(DISTINCT ?x) AS ?n) (MAX(?v) AS ?m)", "?x :q ?v", ""), ("(SAMPLE(?c) AS ?s)", "?x a ?c", ""),
    ("?y ?n", "?y a ?c . { SELECT ?x (COUNT(DISTINCT ?z) AS ?n) { ?x :p ?z } GROUP BY ?x } ?x :q ?y", ""),
    ("*", "{ SELECT DISTINCT ?x { ?x :p ?y } } UNION { ?x a ?c } ?x :q ?v", ""), ("DISTINCT ?y", "?x :p2 ?y", ""),
    ("*", "?x :p ?y BIND(?y AS ?z) ?z :q ?w", ""),
    ("*", "?x :p ?y . ?y :q ?v BIND(COALESCE(?x, ?y) AS ?w)", "ORDER BY ?w"),
    ("*", "?x a ?c OPTIONAL { ?x :p ?y } OPTIONAL { ?y :q ?z FILTER(?z != ?x) } ?z a ?c", ""),
    ("*", "?x :p ?y FILTER EXISTS { ?y :q ?z MINUS { ?z a :C } }", ""),
    ("?x", "?x :p ?y VALUES (?x ?y) { (:x1 :x2) (UNDEF :z) }", ""),
    ("*", "?x :p ?y OPTIONAL { ?y :q ?z FILTER EXISTS { ?z a ?c . ?x a ?c } }", "ORDER BY DESC(?y)"),
)  # fmt: skip
"""Queries whose answers depend on resources alone: what they select, their patterns, and their modifiers."""


@examples(30)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", ["sparql", "csparql"])
def test_groups_and_subqueries_are_of_resources(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], parts: tuple[str, str, str]) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        selection, pattern, modifiers = parts
        text = query(language, pattern, selection, modifiers)
        expected, actual = (
            outputs(squall.plan(compiled(language, text, same_as=way, schema=same), planner), stream, same)
            for way in ("representative", "provenance")
        )
        check_projection(language, actual, expected, cliques)

    hold(law, many, stream=events(), same=statements(), parts=st.sampled_from(QUERIES))


SUBCLASS, SUBPROPERTY, DOMAIN = (iri(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain"))


def schemas() -> st.SearchStrategy[list[Triple]]:
    classes, properties = st.sampled_from([*CLASSES, iri(E + "D")]), st.sampled_from(PROPERTIES)
    axiom = (
        st.builds(Triple, classes, st.just(SUBCLASS), classes)
        | st.builds(Triple, properties, st.just(SUBPROPERTY), properties)
        | st.builds(Triple, properties, st.just(DOMAIN), classes)
    )
    return st.lists(axiom, max_size=3)


@examples(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{"entailment": "rhodf"}, {"entailment": "rdfs"}, {"rules": ["rhodf"]}], ids=str)
@pytest.mark.parametrize("language", ["sparql", "csparql"])
def test_what_follows_by_a_schema_follows_for_cliques(language: str, options: dict[str, Any], many: int) -> None:
    def law(stream: list[Event], same: list[Triple], schema: list[Triple], pattern: str) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        static = [*same, *schema]
        text = query(language, pattern)
        expected, actual = (
            outputs(squall.plan(compiled(language, text, same_as=way, schema=static, **options)), stream, static)
            for way in ("representative", "provenance")
        )
        check_projection(language, actual, expected, cliques)

    chosen = [pattern for pattern in ALL_PATTERNS if "*" not in pattern]
    hold(law, many, stream=events(), same=statements(), schema=schemas(), pattern=st.sampled_from(chosen))


GRAPH_PATTERNS = (
    "GRAPH ?g { ?x :p ?y }", "GRAPH ?g { ?x :p ?y . ?y :q ?z }", "GRAPH ?g { ?x :p+ ?y }", "GRAPH :x2 { ?x :p :y2 }",
    "GRAPH ?g { ?g :p ?y }", "GRAPH ?g { ?x :p ?y } ?g a ?c",
    "GRAPH ?g { ?x :p ?y } BIND(?g AS ?h) GRAPH ?h { ?x :q ?z }",
)  # fmt: skip


@examples(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("planner", PLANNERS)
def test_names_of_graphs_stay(planner: str, many: int) -> None:
    def law(stream: list[Event], graphs: list[Term], same: list[Triple], pattern: str) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        in_graphs = [event._replace(graph=graph) for event, graph in zip(stream, graphs, strict=False)]
        text = query("sparql", pattern)
        expected, actual = (
            outputs(squall.plan(compiled("sparql", text, same_as=way, schema=same), planner), in_graphs, same)
            for way in ("representative", "provenance")
        )
        check_projection("sparql", actual, expected, cliques)

    graphs = st.lists(st.sampled_from(INDIVIDUALS[:3]), min_size=4, max_size=4)
    hold(law, many, stream=events(), graphs=graphs, same=statements(), pattern=st.sampled_from(GRAPH_PATTERNS))


# Examples and bad input


def test_the_example_of_strider() -> None:
    """Ren et al. 2017: the answer has the names that matched, once, where the axioms give nine."""
    names, answers = NAMES_OF_MARY, {}
    for way in ("provenance", "representative", "axioms"):
        system = squall.compile(QUERY_FOR_MARY, lexer="csparql", same_as=way, schema=LINKS_OF_MARY)
        answers[way] = [fact.values for _, fact in outputs(squall.plan(system), [EVENT_OF_MARY], LINKS_OF_MARY)]
    assert answers["provenance"] == [(names[1], names[2], '"mary@x"')]
    assert answers["representative"] == [(names[0], names[0], '"mary@x"')]
    assert len(answers["axioms"]) == 9


@pytest.mark.parametrize("pragma", ["# pragma same-as provenance\n", ""])
def test_a_query_says_by_its_clause_that_it_reads_cliques(pragma: str) -> None:
    text = "REGISTER QUERY q AS " + query("csparql", "?x :p ?y").replace("SELECT", "REASONING [U,SM] SELECT")
    options: dict[str, Any] = {} if pragma else {"same_as": "provenance"}
    for way in (options, {"same_as": "representative"} if not pragma else {}):
        system = squall.compile(pragma + text, lexer="csparql", schema=LINKS, **way)
        assert system.cliques is not None
        assert system.cliques.keeps_terms == (way == options)


def test_no_source_changes_the_cliques() -> None:
    system = compiled("sparql", query("sparql", "?x :p ?y"), same_as="provenance", schema=LINKS)
    assert "owl:sameAs with provenance, with 1 clique of 3 terms, which are fixed" in explain.text(system)
    plan = squall.plan(system)
    assert "by representative" not in explain.text(plan)
    with pytest.raises(SquallError, match="says at 3 what is fixed under owl:sameAs with provenance"):
        outputs(plan, [Event(3, (Triple(iri(E + "z"), SAME_AS, iri(E + "x3")),), A)], LINKS)
    stated_before = [Event(3, (LINKS[0], Triple(iri(E + "x3"), PROPERTIES[0], iri(E + "z"))), A)]
    static = [Event(ALWAYS, tuple(LINKS))]
    for stream in (stated_before, Columns.of(stated_before)):
        assert [str(out.fact) for out in squall.run(plan, stream, static=static)] == [f"?x=<{E}x3> ?y=<{E}z>"]


def test_the_plan_is_another_one_than_by_representative() -> None:
    text = query("csparql", "?x a :D")
    plans = [
        squall.plan(compiled("csparql", text, same_as=way, schema=LINKS)) for way in ("representative", "provenance")
    ]
    ids = [{node.id for node in plan.nodes} for plan in plans]
    assert ids[0].isdisjoint(ids[1])
    assert pickle.loads(pickle.dumps(plans[1])) == plans[1]
