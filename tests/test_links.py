"""owl:sameAs in streams: what streams say of it while a program runs changes how facts are read from then on.

The oracle runs the program once for each time with the cliques of that time, which are known before the run, and takes
the answers of that time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.plan import Plan
from squall.rdf import ALWAYS, RDF, Event, Fact, Term, Triple, iri, literal
from squall.rdf.cliques import SAME_AS, Cliques
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs
from tests.test_same_as import CLASSES, PREFIXES, PROPERTIES, SOURCES, A, B, E, projected

TYPE = iri(RDF + "type")
READ_BY_LANGUAGE = {"sparql": {A, B}, "csparql": {A}, "cqels": {B}, "rspql": {A}}
PATTERNS = (
    ("?x ?y", "?x a :C . ?x :p ?y", ""), ("?x ?y ?z", "?x :p ?y . ?y :q ?z", ""), ("?x ?p ?y", "?x ?p ?y", ""),
    ("?y", ":x2 :p ?y", ""), ("?x", "?x :p ?x", ""), ("?x ?y", "?x :p ?y FILTER NOT EXISTS { ?y a :C }", ""),
    ("?x ?c", "?x :p ?y OPTIONAL { ?y a ?c }", ""), ("?x", "?x :p ?y MINUS { ?x a :C }", ""),
    ("?x ?y", "?x :p+ ?y", ""), ("?x ?y", "?x :q ?y FILTER(?y = :y2)", ""), ("?x", "?x :q ?v FILTER(?v > 3)", ""),
    ("?x ?y", "?x :p ?y FILTER sameTerm(?x, ?y)", ""), ("?x", "{ ?x a :C } UNION { ?y :q ?x }", ""),
    ("(COUNT(?x) AS ?n)", "?x a :C", ""), ("?x (COUNT(?y) AS ?n)", "?x :p ?y", "GROUP BY ?x"),
    ("(COUNT(DISTINCT ?x) AS ?n)", "?x :q ?v", ""), ("DISTINCT ?y", "?x :p ?y", ""),
)  # fmt: skip
"""Queries: what they select, their patterns and their modifiers."""


def queries(languages: Iterable[str] = SOURCES) -> list[tuple[str, str]]:
    return [
        (language, PREFIXES + SOURCES[language].format(selection, pattern, modifiers))
        for language in languages
        for selection, pattern, modifiers in PATTERNS
    ]


INDIVIDUALS = [iri(E + name) for name in ("x1", "x2", "x3", "y2")]
NUMBER = literal("5", "http://www.w3.org/2001/XMLSchema#integer")


def facts() -> st.SearchStrategy[Triple]:
    individuals = st.sampled_from(INDIVIDUALS)
    typing = st.builds(Triple, individuals, st.just(TYPE), st.sampled_from(CLASSES))
    return typing | st.builds(Triple, individuals, st.sampled_from(PROPERTIES), individuals | st.just(NUMBER))


def links() -> st.SearchStrategy[Triple]:
    """Draws triples of owl:sameAs."""
    kinds = (INDIVIDUALS, INDIVIDUALS, PROPERTIES, CLASSES)
    pairs = [Triple(left, SAME_AS, right) for kind in kinds for left in kind for right in kind if left < right]
    return st.sampled_from(pairs)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Draws events with facts and links, and some that remove what came before."""
    events: list[Event] = []
    time = 0
    streams = draw(st.sampled_from([(A,), (B,), (A, B)]))
    for _ in range(draw(st.integers(3, 7))):
        time += draw(st.integers(0, 1))
        stream = draw(st.sampled_from(streams))
        content = draw(st.lists(st.one_of(facts(), facts(), links()), min_size=2, max_size=4))
        brought = [fact for event in events if event.stream == stream for fact in event.facts]
        removed = draw(st.lists(st.sampled_from(brought), max_size=2)) if brought else []
        events.append(Event(time, tuple(content), stream, tuple(removed)))
    return events


def following(language: str, text: str, planner: str = "rete", **options: Any) -> Plan:
    options = {"window": "RANGE 4ms", "output": "rstream", **options}
    system = squall.compile(text, lexer=language, same_as="representative", schema_changes="follow", **options)
    return squall.plan(system, planner)


def links_at(time: int, stream: Sequence[Event], read: Iterable[str], known: Iterable[Triple] = ()) -> list[Triple]:
    """Returns the links that hold at a time: those known before the run, and those brought and not removed by then."""
    held: dict[tuple[str, Fact], None] = {}
    for event in stream:
        if event.time <= time and event.stream in read:
            for fact in event.removed:
                held.pop((event.stream, fact), None)
            held |= dict.fromkeys((event.stream, fact) for fact in event.facts if fact[1] == SAME_AS)
    return [*known, *(Triple(*fact) for _, fact in held)]  # type: ignore[arg-type]


def cliques_of(triples: Iterable[Triple]) -> Cliques:
    return Cliques.of((triple.subject, triple.object) for triple in triples)


def named_terms(text: str) -> set[Term]:
    return {iri(E + name) for name in re.findall(r"(?<=[\s(]):(\w+)", text.split("WHERE")[-1].split("{", 1)[-1])}


def counted(answers: Iterable[tuple[int, Any]], cliques: Cliques) -> Counter[tuple[int, str]]:
    """Returns answers with representatives, and how often each comes."""
    return Counter(answer for output in answers for answer in projected([output], cliques))


def without_links_of(text: str, answers: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Returns answers without links, where a query asks for any predicate: links are facts of their stream, too."""
    return [answer for answer in answers if SAME_AS not in str(answer[1])] if "?p" in text else answers


def expected_at(
    time: int, language: str, text: str, stream: Sequence[Event], planner: str, known: Sequence[Triple] = ()
) -> tuple[Counter[tuple[int, str]], Cliques]:
    """Returns the answers at a time by the oracle, and the cliques of that time."""
    triples = links_at(time, stream, READ_BY_LANGUAGE[language], known)
    options: dict[str, Any] = {"window": "RANGE 4ms", "output": "rstream", "removals": True}
    system = squall.compile(text, lexer=language, same_as="representative", schema=triples, **options)
    plain = [
        event._replace(
            facts=tuple(fact for fact in event.facts if fact[1] != SAME_AS),
            removed=tuple(fact for fact in event.removed if fact[1] != SAME_AS),
        )
        for event in stream
    ]
    outputs = [(out.time, out.fact) for out in squall.run(squall.plan(system, planner), plain)]
    answers = without_links_of(text, [output for output in outputs if output[0] == time])
    cliques = cliques_of(triples)
    return counted(answers, cliques), cliques


def without_links(stream: Iterable[Event]) -> list[Event]:
    return [event._replace(facts=tuple(fact for fact in event.facts if fact[1] != SAME_AS)) for event in stream]


def is_possible(text: str, language: str, stream: Sequence[Event], known: Sequence[Triple] = ()) -> bool:
    """Returns whether no two terms that a query names ever become the same."""
    named = named_terms(text)
    for event in stream:
        held = links_at(event.time, stream, READ_BY_LANGUAGE[language], known)
        held += [fact for fact in event.facts if fact[1] == SAME_AS and isinstance(fact, Triple)]
        if any(len(named & {*clique}) > 1 for clique in cliques_of(held).members.values()):
            return False
    return True


@examples(80)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", SOURCES)
def test_answers_are_those_by_the_cliques_of_their_time(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], program: tuple[str, str], known: list[Triple]) -> list[object]:
        _, text = program
        assume(is_possible(text, language, stream, known))
        plan = following(language, text, planner, schema=known)
        static = [Event(ALWAYS, tuple(known))] if known else []
        outputs = [(out.time, out.fact) for out in squall.run(plan, stream, static=static)]
        for time in sorted({time for time, _ in outputs} | {event.time for event in stream}):
            expected, cliques = expected_at(time, language, text, stream, planner, known)
            at_time = without_links_of(text, [output for output in outputs if output[0] == time])
            assert counted(at_time, cliques) == expected
        unlinked = squall.run(following(language, text, planner, schema=known), without_links(stream), static=static)
        return outputs if [(out.time, out.fact) for out in unlinked] != outputs else []

    hold_with_outputs(
        law, many, 0.08, stream=streams(), program=st.sampled_from(queries([language])),
        known=st.just([]) | st.lists(links(), max_size=2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("builder", "number"),
    [
        ("in memory", 60),
        pytest.param("beam", 3, marks=[pytest.mark.beam, pytest.mark.more]),
        pytest.param("spark", 3, marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", 30, marks=[pytest.mark.beam, pytest.mark.slow]),
        pytest.param("spark", 30, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_engines_agree(builder: str, number: int) -> None:
    def law(stream: list[Event], program: tuple[str, str], known: list[Triple], seed: int) -> list[object]:
        language, text = program
        assume(is_possible(text, language, stream, known))
        plan = following(language, text, schema=known)
        static = [Event(ALWAYS, tuple(known))] if known else []
        actual = sorted((out.time, str(out.fact)) for out in in_memory.outputs_on(builder, plan, stream, seed, static))
        expected = sorted((out.time, str(out.fact)) for out in squall.run(plan, stream, static=static))
        assert actual == expected
        return expected if builder == "in memory" else [law]

    hold_with_outputs(
        law, number, stream=streams(), program=st.sampled_from(queries()),
        known=st.just([]) | st.lists(links(), max_size=2), seed=st.integers(0, 1000),
    )  # fmt: skip


RULES = """@prefix : <http://example.org/> .
[r: (?x :p ?y) (?y :q ?z) -> (?x :linked ?z)]
[s: (?x :linked ?y) (?y :linked ?z) -> (?x :linked ?z)]
[t: (?x :linked ?y) equal(?y, :x2) -> (?y :open :y2)]
"""


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_read_what_they_derive(planner: str, many: int) -> None:
    """What rules have derived in the end, of all that ever came, is what they derive if the links are known before."""

    def law(stream: list[Event], seed: int) -> list[object]:
        stream = [event._replace(removed=()) for event in stream]
        same = links_at(stream[-1].time, stream, {A, B})
        cliques = cliques_of(same)
        assume(is_possible(RULES, "sparql", stream))
        plan = following("jena", RULES, planner, window="LANDMARK", output=None)
        actual = [(0, out.fact) for out in squall.run(plan, stream)]
        on_batches = [(0, out.fact) for out in in_memory.outputs_on("in memory", plan, stream, seed)]
        assert sorted(map(str, on_batches)) == sorted(map(str, actual))
        system = squall.compile(RULES, lexer="jena", same_as="representative", schema=same, window="LANDMARK")
        expected = [(0, out.fact) for out in squall.run(squall.plan(system, planner), without_links(stream))]
        assert projected(actual, cliques) == projected(expected, cliques)
        return expected if same else []

    hold_with_outputs(law, many, 0.1, stream=streams(), seed=st.integers(0, 1000))
