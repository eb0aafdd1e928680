"""The relations of intervals over times: exactly one holds, in all languages the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import strategies as st

import squall
from squall import functions
from squall.errors import SquallError
from squall.functions.intervals import NAMESPACE
from squall.functions.values import integer
from squall.lexers.sparql.tree import STEP_FUNCTIONS
from squall.rdf import XSD, Event, Solution, Term, Triple, iri, literal
from tests.laws import examples, hold_with_outputs

Times = tuple[int, int, int, int]
INTERVALS = list(combinations_with_replacement(range(4), 2))
NAMES = [name for name, count in STEP_FUNCTIONS.items() if count == 2]
CODES = {
    "before": "<<<<", "after": ">>>>", "meets": "<<=<", "metBy": ">=>>", "overlaps": "<<><", "overlappedBy": "><>>",
    "starts": "=<><", "startedBy": "=<>>", "during": "><><", "includes": "<<>>", "finishes": "><>=",
    "finishedBy": "<<>=", "coincides": "=<>=",
}  # fmt: skip
"""How start and start, start and end, end and start, end and end compare, of intervals that are no instants."""
E = "http://example.org/"


def call(name: str, times: Iterable[Term]) -> bool:
    result = functions.lookup(NAMESPACE + name).evaluate(*times)
    assert isinstance(result, bool)
    return result


def date_time(milliseconds: int) -> Term:
    return literal(f"1970-01-01T00:00:00.{milliseconds:03}Z", XSD + "dateTime")


def code(times: Times) -> str:
    a, b, c, d = times
    return "".join("<" if left < right else ">" if left > right else "=" for left, right in product((a, b), (c, d)))


@pytest.mark.parametrize("written", [integer, date_time])
def test_exactly_one_relation_holds(written: object) -> None:
    assert callable(written)
    for first, second in product(INTERVALS, repeat=2):
        times = (*first, *second)
        (name,) = (name for name in NAMES if call(name, map(written, times)))
        if first[0] < first[1] and second[0] < second[1]:
            assert CODES[name] == code(times)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "times",
    [
        (integer(3), integer(2), integer(1), integer(5)),
        (integer(1), integer(2), date_time(1), date_time(5)),
        (literal("a"), literal("b"), literal("c"), literal("d")),
        (iri(E), iri(E), iri(E), iri(E)),
    ],
)
def test_what_is_no_interval_has_no_relation(name: str, times: tuple[Term, ...]) -> None:
    assert not call(name, times)


def answers(text: str, lexer: str, events: list[Event]) -> set[tuple[int, str]]:
    outputs = squall.run(squall.plan(squall.compile(text, lexer=lexer)), events)
    return {(out.time, str(out.fact)) for out in outputs if not isinstance(out.fact, Solution)}


JENA = """@prefix : <http://example.org/>.
[r: (?a :from ?s) (?a :to ?e) (?b :from ?u) (?b :to ?v) {name}(?s ?e ?u ?v) -> (?a :is ?b)]"""
SPARQL = """PREFIX : <http://example.org/> CONSTRUCT {{ ?a :is ?b }}
WHERE {{ ?a :from ?s ; :to ?e . ?b :from ?u ; :to ?v FILTER(<urn:x-squall:time:{name}>(?s, ?e, ?u, ?v)) }}"""
RIF = """Document(Prefix(ex <http://example.org/>) Group (
Forall ?a ?b ?s ?e ?u ?v (?a[ex:is -> ?b] :- And(?a[ex:from -> ?s ex:to -> ?e] ?b[ex:from -> ?u ex:to -> ?v]
External(<urn:x-squall:time:{name}>(?s ?e ?u ?v))))))"""


@examples(30)
def test_languages_agree(many: int) -> None:
    def law(name: str, intervals: list[tuple[int, int]]) -> Sequence[object]:
        events = [
            Event(
                number,
                tuple(
                    Triple(iri(f"{E}i{number}"), iri(E + end), integer(time))
                    for end, time in zip(("from", "to"), sorted(interval), strict=True)
                ),
            )
            for number, interval in enumerate(intervals)
        ]
        expected = {
            (max(a, b), f"<{E}i{a}> <{E}is> <{E}i{b}> .")
            for (a, first), (b, second) in product(enumerate(map(sorted, intervals)), repeat=2)
            if call(name, map(integer, (*first, *second)))
        }
        for text, lexer in ((JENA, "jena"), (SPARQL, "sparql"), (RIF, "rifps")):
            assert answers(text.format(name=name), lexer, events) == expected
        return list(expected)

    pairs = st.tuples(st.integers(0, 4), st.integers(0, 4))
    hold_with_outputs(law, many, 0.1, name=st.sampled_from(NAMES), intervals=st.lists(pairs, min_size=2, max_size=5))


@pytest.mark.parametrize(
    ("text", "lexer", "message", "hint"),
    [
        ("[r: (?x ?p ?y) start(?x ?t) -> (?x ?p ?t)]", "jena", "there is no built-in `start`", "`now(?t)`"),
        ("[r: (?x ?p ?y) end(?x ?t) -> (?x ?p ?t)]", "jena", "there is no built-in `end`", "something ends it"),
        ("[r: (?x ?p ?y) before(?x ?y) -> (?x ?p ?y)]", "jena", "`before` takes 4 arguments", ""),
        ("SELECT * { ?x ?p ?y FILTER(duration(?x) > 5) }", "sparql", "there is no function `duration`", "#timestamp>"),
        (
            "SELECT * { ?x ?p ?y FILTER(metby(?x, ?y)) }",
            "csparql",
            "there is no function `metby`",
            "time:metBy>(?start",
        ),
    ],
)
def test_times_of_facts_are_refused_by_name(text: str, lexer: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer=lexer)
    assert message in str(caught.value)
    assert hint in str(caught.value)
