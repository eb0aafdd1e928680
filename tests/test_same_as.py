"""owl:sameAs: patterns read the closure of their sources, by axioms or by a representative of each clique."""

from __future__ import annotations

import pickle
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall import explain
from squall.builders.distributed.io.records import DeadLetter
from squall.builders.runtime.operators.scan import predicates_to_read
from squall.checking import lint
from squall.cli import command
from squall.contracts import Options
from squall.errors import SquallError
from squall.model import warnings
from squall.plan import Plan
from squall.rdf import ALWAYS, OWL, RDF, RDFS, Columns, Event, Fact, Solution, Term, Triple, iri, literal
from squall.rdf.cliques import SAME_AS, Cliques
from squall.streams import DeadLetterFile
from tests import in_memory
from tests.laws import PLANNERS, examples, hold, on_engines
from tests.toy_engine import ToyJob

E = "http://example.org/"
A, B, X = E + "a", E + "b", iri(E + "x")
TYPE = iri(RDF + "type")
INDIVIDUALS = [iri(E + name) for name in ("x1", "x2", "x3", "y1", "y2", "z")]
PROPERTIES = [iri(E + name) for name in ("p", "p2", "q")]
CLASSES = [iri(E + name) for name in ("C", "C2")]
PREFIXES = f"PREFIX : <{E}> PREFIX owl: <{OWL}>\n"

SOURCES = {
    "sparql": "SELECT {} {{ {} }} {}",
    "csparql": "SELECT {} FROM STREAM <http://example.org/a> [RANGE 4ms STEP 2ms] {{ {} }} {}",
    "cqels": "SELECT {} {{ STREAM <http://example.org/b> [RANGE 3ms] {{ {} }} }} {}",
    "rspql": """REGISTER RSTREAM <out> AS SELECT {} FROM NAMED WINDOW :w ON <http://example.org/a>
        [RANGE PT0.003S STEP PT0.002S] {{ WINDOW :w {{ {} }} }} {}""",
}
PATTERNS = (
    "?x a :C", "?x a :C2 ; :p ?y", "?x ?p ?y", ":x2 :p2 ?y", "?x :p ?x", "?x :p :y2", "?x :p ?y . ?y :q ?z",
    "?x owl:sameAs ?y", ":x2 owl:sameAs ?y", "?x owl:sameAs ?x", "?x :q ?y . ?y owl:sameAs ?z", ":z ?p ?p",
    "?x :p ?y FILTER NOT EXISTS { ?y a :C }", "?x :p ?y MINUS { ?x a :C2 }", "?x :p ?y OPTIONAL { ?y a ?c }",
    "{ ?x a :C } UNION { ?y :q ?x }", "?x :p+ ?y", "?x :q ?y . FILTER EXISTS { ?y a :C }",
    "?x :q ?v FILTER(?v > 3)", "?x :q ?v BIND(?v + 1 AS ?w)", "{ SELECT DISTINCT ?y { ?x :q ?y } } ?y a ?c",
)  # fmt: skip
"""Patterns whose solutions have each choice of members, if they have one."""
PATTERNS_OF_NAMES = (
    "?x :q ?y FILTER(?y = :y2)", "?x :p ?y FILTER(?y IN (:x1, :z))", "?x :p ?y FILTER sameTerm(?x, ?y)",
    "?x :p ?y . VALUES ?y { :x1 :y1 }",
)  # fmt: skip
"""Patterns that see names. By axioms their solutions have the names that they ask for, and by members all names."""
PATTERNS_OF_RESOURCES = ("?x (:p|^:q)* ?y", "?x :p ?y BIND(IF(?y = :x1, :y1, ?y) AS ?w)")
"""Patterns in which a clique is one resource, and each of its terms is one by axioms: a path of length zero leads from
the resource to itself, by whatever names, and a value is computed of it once."""
PATTERNS_OF_TEXT = (
    '?x a ?c FILTER(STRENDS(STR(?x), "1"))', '?x :p ?y FILTER(STRENDS(STR(?x), "1") && STRENDS(STR(?y), "2"))',
    '?x :p ?y FILTER(STRENDS(STR(?x), "1")) FILTER(STRENDS(STR(?y), "2")) FILTER(?y != :z || isIRI(?y))',
    "?x :p ?y FILTER EXISTS { ?y :q ?v FILTER(STR(?v) = '5' || STRENDS(STR(?v), STR(?y))) }",
    "?x :p ?y BIND(STR(?y) AS ?text) FILTER(?text > 'http://example.org/y')", "?x :p ?y OPTIONAL { ?y a ?c "
    "FILTER(STRLEN(STR(?c)) > 20) }", "?x :p ?y FILTER(IRI(CONCAT(STR(?x), '')) = ?y)",
    "?x :q ?y BIND(IRI(REPLACE(STR(?y), 'x', 'y')) AS ?z)", "?x ?p ?y FILTER(isLiteral(?y) || isBlank(?y))",
)  # fmt: skip
"""Patterns with functions that see the text of terms: their solutions have some choices of members only."""
WAYS = (
    {"same_as": "representative"}, {"same_as": "representative", "same_as_answers": "members"},
    {"same_as": "provenance"},
)  # fmt: skip
"""The ways that have cliques."""
AGGREGATES = (
    ("(COUNT(?x) AS ?n)", "?x a :C", ""), ("(SAMPLE(?x) AS ?s)", "?x a ?c", ""),
    ("?x (COUNT(?y) AS ?n)", "?x :p ?y", "GROUP BY ?x HAVING(COUNT(?y) > 0)"),
    ("(COUNT(DISTINCT ?x) AS ?n) (MAX(?v) AS ?m)", "?x :q ?v", ""), ("?x ?y", "?x :p ?y", "ORDER BY ?y ?x LIMIT 2"),
    ("*", "?x :p ?y", ""), ("?x", "?x a :C . ?x :q ?v", ""), ("DISTINCT ?y", "?x :p2 ?y", ""),
    *(("*", pattern, "") for pattern in PATTERNS_OF_RESOURCES),
)  # fmt: skip
"""Queries whose answers count, or are those of resources: what they select, their patterns, and their modifiers."""


def variants(cliques: Cliques, fact: Fact) -> list[Triple]:
    """Returns the triples that follow from one and the axioms of equality."""
    assert isinstance(fact, Triple)
    return [Triple(*terms) for terms in product(*map(_same, [cliques] * 3, fact))]


def _same(cliques: Cliques, term: Term) -> tuple[Term, ...]:
    return cliques.clique(cliques.representative(term))


def equal_pairs(cliques: Cliques) -> list[Triple]:
    """Returns all triples of owl:sameAs."""
    cliques_of_terms = cliques.members.values()
    return [Triple(left, SAME_AS, right) for clique in cliques_of_terms for left in clique for right in clique]


def statements() -> st.SearchStrategy[list[Triple]]:
    """Draws triples of owl:sameAs."""
    kinds = (INDIVIDUALS, PROPERTIES, CLASSES)
    pairs = [Triple(left, SAME_AS, right) for kind in kinds for left in kind for right in kind if left < right]
    return st.lists(st.sampled_from(pairs), max_size=5)


def facts() -> st.SearchStrategy[Triple]:
    individuals = st.sampled_from(INDIVIDUALS)
    values = individuals | st.sampled_from([literal("5", "http://www.w3.org/2001/XMLSchema#integer"), literal("v")])
    typing = st.builds(Triple, individuals, st.just(TYPE), st.sampled_from(CLASSES))
    return typing | st.builds(Triple, individuals, st.sampled_from(PROPERTIES), values)


def events() -> st.SearchStrategy[list[Event]]:
    drawn = st.lists(facts(), min_size=1, max_size=3).map(tuple)
    event = st.tuples(st.integers(0, 12), drawn, st.sampled_from([A, B])).map(lambda values: Event(*values))
    return st.lists(event, max_size=4).map(lambda unsorted: sorted(unsorted, key=lambda each: each.time))


def query(language: str, pattern: str, selection: str = "*", modifiers: str = "") -> str:
    return PREFIXES + SOURCES[language].format(selection, pattern, modifiers)


def compiled(language: str, text: str, **options: Any) -> squall.System:
    return squall.compile(text, lexer=language, window="RANGE 4ms", **options)


def outputs(plan: Plan, stream: list[Event], static: Iterable[Triple] = ()) -> list[tuple[int, Any]]:
    """Returns the times and facts that a run outputs."""
    data = [Event(ALWAYS, tuple(static))]
    return [(out.time, out.fact) for out in squall.run(plan, stream, static=data)]


def distributed(plan: Plan, stream: list[Event], static: Iterable[Triple], seed: int) -> list[tuple[int, Any]]:
    batches = in_memory.cut(stream, [Random(seed).randrange(9)])
    return [(out.time, out.fact) for out in in_memory.run(plan, batches, [Event(ALWAYS, tuple(static))])]


def shown(answers: Iterable[tuple[int, Any]]) -> list[tuple[int, str]]:
    return sorted((time, str(fact)) for time, fact in answers)


def with_all_names(answers: Iterable[tuple[int, Any]], cliques: Cliques) -> set[tuple[int, str]]:
    """Returns answers with each choice of members for their terms."""
    return {(time, str(named)) for time, fact in answers for named in _named(fact, cliques)}


def _named(fact: Any, cliques: Cliques) -> Iterator[Any]:
    if not isinstance(fact, Solution):
        yield from variants(cliques, fact)
        return
    for values in product(*((None,) if term is None else _same(cliques, term) for term in fact.values)):
        yield fact._replace(values=values)


def projected(answers: Iterable[tuple[int, Any]], cliques: Cliques) -> set[tuple[int, str]]:
    """Returns answers with representatives, each once."""
    return {(time, str(_projected(fact, cliques))) for time, fact in answers}


def _projected(fact: Any, cliques: Cliques) -> Any:
    if isinstance(fact, Solution):
        return fact._replace(
            values=tuple(None if term is None else cliques.representative(term) for term in fact.values)
        )
    return cliques.fact(fact)


def closed(stream: list[Event], cliques: Cliques) -> list[Event]:
    """Returns events with what follows from each."""
    closure = [tuple(fact for triple in event.facts for fact in variants(cliques, triple)) for event in stream]
    pairs = tuple(equal_pairs(cliques))
    return [event._replace(facts=(*facts, *pairs)) for event, facts in zip(stream, closure, strict=True)]


def _plain(language: str, pattern: str, planner: str) -> Plan:
    """Returns the plan of a query over data in which all is given that follows."""
    return squall.plan(compiled(language, query(language, pattern)), planner)


@examples(60)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", SOURCES)
def test_answers_are_those_over_the_closure(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], pattern: str, seed: int) -> None:
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        expected = outputs(_plain(language, pattern, planner), closed(stream, cliques), equal_pairs(cliques))
        for answers in ("representatives", "members"):
            system = compiled(
                language, query(language, pattern), same_as="representative", same_as_answers=answers, schema=same
            )
            plan = squall.plan(system, planner)
            actual = outputs(plan, stream, same)
            assert projected(actual, cliques) == projected(expected, cliques)
            if answers == "members" and pattern in PATTERNS:
                assert set(shown(actual)) == set(shown(expected))
            if answers == "members" and pattern in PATTERNS_OF_NAMES:
                assert set(shown(actual)) == with_all_names(expected, cliques)
            assert shown(distributed(plan, stream, same, seed)) == shown(actual)

    # (x owl:sameAs x) comes with each event of the oracle: only there are sameAs patterns answered in windows
    patterns = (*PATTERNS, *PATTERNS_OF_NAMES, *PATTERNS_OF_TEXT)
    strategy = st.sampled_from([pattern for pattern in patterns if "sameAs" not in pattern and "?p" not in pattern])
    hold(law, many, stream=events(), same=statements(), pattern=strategy, seed=st.integers(0, 100))


@examples(40)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", SOURCES)
def test_members_are_the_answers_by_axioms(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], pattern: str) -> None:
        ways: tuple[dict[str, Any], ...] = (
            {"same_as": "axioms"},
            {"same_as": "representative", "same_as_answers": "members"},
        )
        systems = [compiled(language, query(language, pattern), schema=same, **way) for way in ways]
        by_axioms, by_members = (outputs(squall.plan(system, planner), stream, same) for system in systems)
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        sees_names = pattern in PATTERNS_OF_NAMES
        expected = with_all_names(by_axioms, cliques) if sees_names else set(shown(by_axioms))
        assert set(shown(by_members)) == expected

    patterns = st.sampled_from((*PATTERNS, *PATTERNS_OF_NAMES))
    hold(law, many, stream=events(), same=statements(), pattern=patterns)


@examples(40)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["sparql", "csparql"])
def test_a_clique_is_one_resource(language: str, many: int) -> None:
    """Counts and multiplicities are those over data that have representatives from the beginning."""

    def law(stream: list[Event], same: list[Triple], parts: tuple[str, str, str]) -> None:
        selection, pattern, modifiers = parts
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        replaced = re.sub(r":\w+", lambda match: cliques.representative(iri(E + match[0][1:])), pattern)
        quotient = [event._replace(facts=tuple(cliques.facts(event.facts))) for event in stream]
        terms = [cliques.representative(triple.subject) for triple in same]
        static = [Triple(term, SAME_AS, term) for term in terms]  # they are nodes, where paths of length zero begin
        generic = squall.plan(compiled(language, query(language, replaced, selection, modifiers)))
        expected = outputs(generic, quotient, static)
        text = query(language, pattern, selection, modifiers)
        plan = squall.plan(compiled(language, text, same_as="representative", schema=same))
        assert shown(outputs(plan, stream, same)) == shown(expected)

    hold(law, many, stream=events(), same=statements(), parts=st.sampled_from(AGGREGATES))


RULES = """@prefix : <http://example.org/> .
[r: (?x :p ?y) (?y :q ?z) -> (?x :linked ?z)]
[s: (?x :linked ?y) (?y :linked ?z) -> (?x :linked ?z)]
[t: (?x :linked ?y) equal(?y, :x2) -> (?y :open :y2)]
"""


@examples(40)
@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_read_what_they_derive(planner: str, many: int) -> None:
    def law(stream: list[Event], same: list[Triple], seed: int) -> None:
        by_axioms = squall.plan(compiled("jena", RULES, same_as="axioms", schema=same), planner)
        options: dict[str, Any] = {"same_as": "representative", "same_as_answers": "members", "schema": same}
        plan = squall.plan(compiled("jena", RULES, **options), planner)
        actual = shown(outputs(plan, stream, same))
        cliques = Cliques.of((triple.subject, triple.object) for triple in same)
        assert set(actual) == with_all_names(outputs(by_axioms, stream, same), cliques)
        assert len(actual) == len(set(actual))
        assert shown(distributed(plan, stream, same, seed)) == actual

    hold(law, many, stream=events(), same=statements(), seed=st.integers(0, 100))


# Bad input


def refused(*texts: str, language: str = "csparql", **options: Any) -> SquallError:
    with pytest.raises(SquallError) as caught:
        squall.compile(*texts, lexer=language, **{"same_as": "representative", **options})
    return caught.value


LINKS = [Triple(iri(E + "x2"), SAME_AS, iri(E + "x1")), Triple(iri(E + "x3"), SAME_AS, iri(E + "x2"))]
TEXT = "REGISTER QUERY q AS " + query("csparql", "?x :p ?y")


@pytest.mark.parametrize(
    ("text", "language", "options", "expected"),
    [
        (TEXT, "csparql", {"same_as": "representatives"}, "there is no way `representatives` to treat owl:sameAs"),
        (TEXT, "csparql", {"same_as_answers": "member"}, "did you mean `members`"),
        (TEXT, "csparql", {"same_as": "axioms", "same_as_answers": "members"}, "leave it out: answers have all"),
        (TEXT, "csparql", {"same_as": "provenance", "same_as_answers": "members"},
         "answers have the terms that matched"),
        ("[r: (?x <urn:p> ?y) -> (?x owl:sameAs ?y)]", "jena", {"same_as": "provenance"}, "`r` derives owl:sameAs"),
        (TEXT, "csparql", {"same_as": None, "same_as_answers": "members"}, "name it: `--same-as representative`"),
        (TEXT, "csparql", {"same_as": "axioms", "entailment": "rhodf"}, "treat owl:sameAs by representative"),
        (TEXT, "csparql", {"schema": [Triple(X, SAME_AS, literal("x"))]}, "a literal is not the same as anything"),
        (TEXT, "csparql", {"schema": [Triple(X, SAME_AS, TYPE)]}, "has a meaning of its own"),
        ("[r: (?x <urn:p> ?y) -> (?x owl:sameAs ?y)]", "jena", {}, "`r` derives owl:sameAs, which has to be known"),
        ("DELETE { ?x ?p ?y } WHERE { ?x ?p ?y . ?y a ?x }", "sparql", {}, "deletes facts"),
        (query("sparql", "?x :p ?y FILTER(STR(?x) = STR(NOW()))"), "sparql", {}, "which reads the time, is in one"),
        (query("sparql", "?x :p ?y BIND(CONCAT(STR(?x), STRUUID()) AS ?z)"), "sparql", {}, "has a new value for each"),
        (query("sparql", "?x :p ?y", "DISTINCT ?x", "ORDER BY ?y"), "sparql", {"same_as_answers": "members"},
         "is ordered by `?y`, which it does not select"),
        ("INSERT { ?x :q ?y } WHERE { ?x :p ?y }", "sparql", {"same_as_answers": "members"}, "inserts representatives"),
        ("# pragma same-as axiom\n" + TEXT, "csparql", {}, "did you mean `axioms`"),
        ("# pragma same-as none\n# pragma same-as axioms\n" + TEXT, "csparql", {}, "not both `none` and `axioms`"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, language: str, options: dict[str, Any], expected: str) -> None:
    prefixes = {"": E, "owl": OWL}
    error = refused(text, language=language, prefixes=prefixes, **options)
    assert expected in f"{error} {error.hint}"


def test_programs_of_a_run_have_one_way() -> None:
    other = TEXT.replace("QUERY q", "QUERY r")
    error = refused(f"# pragma same-as axioms\n{TEXT}", other)
    assert "not both `axioms` and `representative`" in str(error)
    system = squall.compile(f"# pragma same-as representative\n{TEXT}", lexer="csparql", schema=LINKS)
    assert system.cliques == Cliques.of([(iri(E + "x1"), iri(E + "x2")), (iri(E + "x2"), iri(E + "x3"))])
    with_clause = squall.compile(TEXT.replace("SELECT", "REASONING [SM] SELECT"), lexer="csparql", schema=LINKS)
    assert with_clause.cliques == system.cliques


def _run_with(event: Event, static: Iterable[Triple] = LINKS, **options: Any) -> None:
    system = squall.compile(query("sparql", "?x :p ?y"), lexer="sparql", same_as="representative", **options)
    outputs(squall.plan(system), [event], static)


@pytest.mark.parametrize("fact", [Triple(X, SAME_AS, iri(E + "x3")), Triple(X, SAME_AS, literal("x"))])
def test_no_source_changes_cliques(fact: Triple) -> None:
    events = [Event(3, (fact,), A)]
    for stream in (events, Columns.of(events)):
        with pytest.raises(SquallError, match=f"the stream `{A}` says at 3 what is fixed under owl:sameAs"):
            _run_with(*stream, schema=LINKS)
    with pytest.raises(SquallError, match="static data say what is fixed"):
        _run_with(Event(1, (), A), [fact], schema=LINKS)
    _run_with(Event(3, (), A, (LINKS[0],)), schema=LINKS, removals=True)  # the static fact holds on
    _run_with(Event(3, (Triple(iri(E + "x3"), SAME_AS, iri(E + "x1")),), A), schema=LINKS)  # it is known


OTHER_LINKS = [Triple(X, SAME_AS, iri(E + "x3")), Triple(iri(E + "z"), SAME_AS, iri(E + "y1"))]
LINKING = [
    Event(1, (Triple(iri(E + "x1"), PROPERTIES[0], X), *OTHER_LINKS), A), Event(2, (LINKS[0], OTHER_LINKS[0]), A),
    Event(3, (), A, (OTHER_LINKS[1],)), Event(7, (Triple(iri(E + "x3"), PROPERTIES[0], X),), A),
    Event(8, (OTHER_LINKS[0],), B), Event(9, (OTHER_LINKS[1], Triple(X, PROPERTIES[0], iri(E + "x2"))), B),
]  # fmt: skip
"""Events with links that are not known before the run."""


def without_links(events: Iterable[Event], streams: Collection[str]) -> list[Event]:
    """Returns events of which some streams have no other links."""
    return [
        event._replace(facts=tuple(fact for fact in event.facts if fact not in OTHER_LINKS), removed=())
        if event.stream in streams
        else event
        for event in events
    ]


def dropping_plan(lexer: str, way: dict[str, Any], removals: bool = False) -> Plan:
    text = query(lexer, "?x :p ?y")
    options: dict[str, Any] = {"schema": LINKS, "schema_changes": "dead-letters", "removals": removals}
    return squall.plan(squall.compile(text, lexer=lexer, **options, **way))


READ_BY_LANGUAGE = {"sparql": {A, B}, "csparql": {A}, "cqels": {B}}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("lexer", READ_BY_LANGUAGE)
@pytest.mark.parametrize("builder", [
    "iterator", "columns", "toy",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.slow]),
])  # fmt: skip
def test_other_links_are_dead_letters_by_option(lexer: str, way: dict[str, Any], builder: str) -> None:
    streams, ledger = READ_BY_LANGUAGE[lexer], DeadLetterFile()
    plan = dropping_plan(lexer, way, removals=builder == "iterator")
    events = LINKING if builder == "iterator" else [event._replace(removed=()) for event in LINKING]
    made_by: Any = {"toy": ToyJob, "columns": "iterator"}.get(builder, builder)
    job = squall.build(plan, made_by, Options(ledger=ledger))
    batches = [Columns.of([event]) for event in events if event.facts] if builder == "columns" else [events]
    actual = sorted((out.time, str(out.fact)) for out in job.run(batches, [Event(ALWAYS, tuple(LINKS))]))
    expected = outputs(plan, without_links(events, streams), LINKS)
    assert actual == sorted((time, str(fact)) for time, fact in expected)
    assert actual
    counts = {A: 4 if builder == "iterator" else 3, B: 2}
    assert ledger.counts == {("schema", stream): counts[stream] for stream in streams}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("lexer", READ_BY_LANGUAGE)
def test_other_links_in_any_micro_batches(lexer: str, way: dict[str, Any], seed: int) -> None:
    plan, letters = dropping_plan(lexer, way), list[DeadLetter]()
    events = [event._replace(removed=()) for event in LINKING]
    static = [Event(ALWAYS, tuple(LINKS))]
    actual = in_memory.run_anyhow(plan, [events[:2], events[2:]], static, seed, dead_letters=letters)
    expected = outputs(plan, without_links(events, READ_BY_LANGUAGE[lexer]), LINKS)
    assert sorted((out.time, str(out.fact)) for out in actual) == sorted((time, str(fact)) for time, fact in expected)
    texts = {A: [f"1 {OTHER_LINKS[0]}", f"1 {OTHER_LINKS[1]}", f"2 {OTHER_LINKS[0]}"],
             B: [f"8 {OTHER_LINKS[0]}", f"9 {OTHER_LINKS[1]}"]}  # fmt: skip
    assert sorted(letter.text for letter in letters) == sorted(
        text for stream in READ_BY_LANGUAGE[lexer] for text in texts[stream]
    )
    assert {letter.reason for letter in letters} == {"what is the same by owl:sameAs, which is fixed, does not have it"}


def test_without_a_ledger_another_link_is_an_error() -> None:
    with pytest.raises(SquallError, match=re.escape(f"by representative: {OTHER_LINKS[0]}")) as caught:
        list(squall.run(dropping_plan("sparql", WAYS[0]), LINKING[:2], static=[Event(ALWAYS, tuple(LINKS))]))
    assert "`--schema-changes dead-letters`" in (caught.value.hint or "")


# Examples


NAMES_OF_MARY = [iri(f"urn:pDoc{number}") for number in (1, 2, 3)]
LINKS_OF_MARY = [Triple(left, SAME_AS, right) for left, right in pairwise(NAMES_OF_MARY)]
EVENT_OF_MARY = Event(
    1,
    (
        Triple(NAMES_OF_MARY[0], TYPE, iri("urn:PostDoc")),
        Triple(NAMES_OF_MARY[1], iri("urn:name"), literal("Mary")),
        Triple(NAMES_OF_MARY[2], iri("urn:email"), literal("mary@x")),
    ),
    "urn:s",
)
QUERY_FOR_MARY = f"""PREFIX owl: <{OWL}> SELECT * FROM STREAM <urn:s> [RANGE 10s STEP 10s]
{{ ?x <urn:name> "Mary" . ?x owl:sameAs ?x1 . ?x1 <urn:email> ?y }}"""
"""The example of Ren et al. 2017: a query joins what is said of three names of one person."""


def test_the_example_of_strider() -> None:
    counts = {}
    for way, answers in (("axioms", "representatives"), ("representative", "representatives"),
                         ("representative", "members"), ("none", "representatives")):  # fmt: skip
        schema = () if way == "none" else LINKS_OF_MARY
        system = squall.compile(QUERY_FOR_MARY, lexer="csparql", same_as=way, same_as_answers=answers, schema=schema)
        counts[way, answers] = len(outputs(squall.plan(system), [EVENT_OF_MARY], LINKS_OF_MARY))
    assert list(counts.values()) == [9, 1, 9, 1]  # without it the window has one link, of pDoc2 and pDoc3


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", ["sparql", "csparql"])
def test_a_removal_ends_the_fact_that_it_names(language: str, planner: str) -> None:
    first, second = (Triple(iri(E + name), PROPERTIES[0], X) for name in ("x1", "x2"))
    stream = [Event(1, (first,), A), Event(2, (second,), A), Event(3, (), A, (first,)), Event(6, (), A, (second,))]
    ways: tuple[dict[str, Any], ...] = (
        {"same_as": "axioms"},
        {"same_as": "representative", "same_as_answers": "members"},
    )
    text = query(language, "?x :p ?y")
    common: dict[str, Any] = {"removals": True, "output": "rstream", "schema": LINKS}
    systems = [squall.compile(text, lexer=language, **common, **way) for way in ways]
    by_axioms, by_members = (outputs(squall.plan(system, planner), stream, LINKS) for system in systems)
    assert by_axioms
    assert set(shown(by_axioms)) == set(shown(by_members))


@pytest.mark.parametrize("planner", PLANNERS)
def test_graphs_and_count_windows_have_representatives(planner: str) -> None:
    stream = [Event(time, (Triple(iri(E + name), PROPERTIES[0], iri(E + "x3")),), A, (), f"<{E}g>")
              for time, name in enumerate(("x3", "x2", "z"), 1)]  # fmt: skip
    for text, language in (
        (f"PREFIX : <{E}> SELECT ?x ?g {{ GRAPH ?g {{ ?x :p :x2 }} }}", "sparql"),
        (f"PREFIX : <{E}> SELECT ?x ?p {{ GRAPH :g {{ ?x ?p :x2 }} }}", "sparql"),
        (f"PREFIX : <{E}> SELECT ?x FROM STREAM :a [RANGE TRIPLES 2] {{ ?x :p ?y }}", "csparql"),
    ):
        system = squall.compile(text, lexer=language, same_as="representative", schema=LINKS)
        answers = outputs(squall.plan(system, planner), stream, LINKS)
        assert {fact.values[0] for _, fact in answers} >= {iri(E + "x1"), iri(E + "z")}
        assert projected(answers, system.cliques or Cliques.of([])) == set(shown(answers))


@pytest.mark.parametrize("regime", ["rhodf", "rdfs"])
def test_the_schema_has_representatives(regime: str) -> None:
    """A class has the instances of classes below any of its names; a static triple with another name is known."""
    below, above = iri(E + "D"), iri(E + "C2")
    schema = [*LINKS, Triple(CLASSES[0], SAME_AS, above), Triple(below, iri(RDFS + "subClassOf"), above)]
    text = query("csparql", "?x a :C")
    system = squall.compile(text, lexer="csparql", entailment=regime, same_as="representative", schema=schema)
    events = [Event(1, (Triple(iri(E + "x3"), TYPE, below),), A)]
    again = Triple(below, iri(RDFS + "subClassOf"), CLASSES[0])
    for plan in (squall.plan(system), squall.plan(system, "greedy")):
        answers = outputs(plan, events, [*schema, again])
        assert {str(fact) for _, fact in answers} == {f"?x=<{E}x1>"}
        with pytest.raises(SquallError, match="what the schema does not"):
            outputs(plan, events, [*schema, Triple(above, iri(RDFS + "subClassOf"), X)])


@pytest.mark.parametrize("rule_set", ["rhodf", pytest.param("owl2rl", marks=pytest.mark.more)])
@pytest.mark.parametrize("source", ["sparql", "csparql"])
def test_rule_sets_read_representatives(source: str, rule_set: str) -> None:
    schema = [*LINKS, Triple(iri(E + "D"), iri(RDFS + "subClassOf"), CLASSES[0])]
    options: dict[str, Any] = {"lexer": source, "rules": [rule_set], "same_as": "representative", "schema": schema}
    plan = squall.plan(squall.compile(query(source, "?x a :C . ?x owl:sameAs ?y"), **options))
    events = [Event(1, (Triple(iri(E + "x3"), TYPE, iri(E + "D")),), A)]
    assert {str(fact) for _, fact in outputs(plan, events, schema)} == {f"?x=<{E}x1> ?y=<{E}x1>"}


def test_cliques_travel_with_the_plan() -> None:
    system = squall.compile(query("csparql", "?x :p ?y"), lexer="csparql", same_as="representative", schema=LINKS)
    plan = squall.plan(system)
    assert pickle.loads(pickle.dumps(plan)) == plan
    properties = [Triple(PROPERTIES[0], SAME_AS, PROPERTIES[1])]
    other = squall.compile(query("csparql", "?x :p2 ?y"), lexer="csparql", same_as="representative", schema=properties)
    assert {node.id for node in plan.nodes}.isdisjoint(node.id for node in squall.plan(other).nodes)


def test_readers_deliver_all_names_of_a_property() -> None:
    properties = [Triple(PROPERTIES[0], SAME_AS, PROPERTIES[1])]
    text = f"[r: (?x <{E}p2> ?y) -> (?x <{E}q> ?y)]"
    plan = squall.plan(squall.compile(text, lexer="jena", same_as="representative", schema=properties))
    assert predicates_to_read(plan) == frozenset((PROPERTIES[0], PROPERTIES[1], SAME_AS))


def test_columns_are_read_as_events_are() -> None:
    system = squall.compile(query("csparql", "?x :p :x2"), lexer="csparql", same_as="representative", schema=LINKS)
    stream = [Event(time, (Triple(iri(E + f"x{time % 3 + 1}"), PROPERTIES[0], X), LINKS[0]), A) for time in range(9)]
    plain = [event._replace(facts=event.facts[:1]) for event in stream]
    expected = outputs(squall.plan(system), stream, LINKS)
    for columns in (Columns.of(stream), Columns.of(plain)):
        runs = squall.run(squall.plan(system), columns, static=[Event(ALWAYS, tuple(LINKS))])
        assert [(out.time, out.fact) for out in runs] == expected


def test_explain_says_what_is_done() -> None:
    system = squall.compile(query("csparql", "?x :p ?y FILTER(STRLEN(STR(?x)) > 3)"), lexer="csparql",
                            same_as="representative", schema=LINKS)  # fmt: skip
    text = explain.text(system)
    assert "owl:sameAs by representative, with 1 clique of 3 terms, which are fixed" in text
    assert "some-member(cliques, " in text
    assert "by representative" in explain.text(squall.plan(system))


def test_a_rule_of_any_predicate_is_warned_of() -> None:
    system = squall.compile("[r: (?p <urn:is> ?q) (?x ?p ?y) -> (?x ?q ?y)]", lexer="jena", same_as="representative",
                            schema=LINKS)  # fmt: skip
    assert any("nothing follows from what `r` derives of owl:sameAs" in str(item) for item in warnings(system))
    findings = lint(TEXT, lexer="csparql", same_as="representative", schema=LINKS, streams=[A])
    assert [finding.code for finding in findings if finding.severity == "error"] == []


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(query("sparql", "?x :p ?y"))
    (tmp_path / "links.nt").write_text("".join(f"{triple}\n" for triple in LINKS))
    (tmp_path / "s.ntt").write_text(f"1 {Triple(iri(E + 'x3'), PROPERTIES[0], iri(E + 'z'))}\n")
    common = ["run", str(tmp_path / "q.rq"), "--source", str(tmp_path / "s.ntt"), "--sink", str(tmp_path / "out.tsv")]
    for option, lines in (
        (["--static"], 1), (["--same-as-answers", "members", "--static"], 3), (["--schema"], 1),
    ):  # fmt: skip
        arguments = [*common, "--same-as", "representative", *option, str(tmp_path / "links.nt")]
        with suppress(SystemExit):
            command.main(arguments, prog_name="squall", standalone_mode=False)
        assert len((tmp_path / "out.tsv").read_text().splitlines()) == lines + 1


def test_a_checkpoint_belongs_to_its_cliques(tmp_path: Path) -> None:
    def job(links: list[Triple]) -> Any:
        system = squall.compile(f"[r: (?x <{E}p> ?y) (?y <{E}q> ?z) -> (?x <{E}r> ?z)]", lexer="jena",
                                same_as="representative", schema=links)  # fmt: skip
        return squall.build(squall.plan(system), "iterator", Options(checkpoint=tmp_path / "state"))

    events = [Event(1, (Triple(X, PROPERTIES[0], iri(E + "x1")),), A)]
    list(job(LINKS).run([events], static=[Event(ALWAYS, tuple(LINKS))]))
    with pytest.raises(SquallError) as caught:
        list(job(LINKS[:1]).run([events], static=[Event(ALWAYS, tuple(LINKS[:1]))]))
    assert f"<{E}x1> {SAME_AS} <{E}x3>" in str(caught.value)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(program: tuple[str, str], way: dict[str, str], stream: list[Event], same: list[Triple], seed: int) -> None:
        language, text = program
        plan = squall.plan(compiled(language, text, schema=same, **way))
        static = [Event(ALWAYS, tuple(same))]
        actual = [(out.time, out.fact) for out in in_memory.outputs_on(builder, plan, stream, seed, static)]
        assert shown(actual) == shown(outputs(plan, stream, same))

    patterns = (*PATTERNS, *PATTERNS_OF_TEXT)
    queries = [(language, query(language, pattern)) for language in SOURCES for pattern in patterns]
    programs = [*queries, ("jena", RULES), ("jena", RULES.splitlines()[0] + "\n[r: (?x :p ?y) -> (?y :q ?x)]")]
    hold(
        law, number, program=st.sampled_from(programs), way=st.sampled_from(WAYS),
        stream=events(), same=statements(), seed=st.integers(0, 1000),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("way", "names"), [("representative", {"x1"}), ("provenance", {"x1", "x2"}), ("axioms", {"x1", "x2"})]
)
def test_an_ontology_says_what_is_the_same(way: str, names: set[str], tmp_path: Path) -> None:
    """By provenance and axioms the rules of the ontology also derive the type of the other individual."""
    axioms = "SubClassOf(:D :C) SameIndividual(:x1 :x2)"
    (tmp_path / "o.ofn").write_text(f"Prefix(:=<{E}>) Ontology({axioms})")
    (tmp_path / "q.rq").write_text(query("sparql", "?x a :C"))
    system = squall.compile(tmp_path / "o.ofn", tmp_path / "q.rq", same_as=way)
    events = [Event(1, (Triple(iri(E + "x2"), TYPE, iri(E + "D")),), A)]
    assert {str(fact) for _, fact in outputs(squall.plan(system), events)} == {f"?x=<{E}{name}>" for name in names}
