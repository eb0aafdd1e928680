"""Sequences of events of CQELS-QL: their times, and what is refused. What they mean is in `cases/events.case`."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

import squall
from squall.checking import lint
from squall.errors import SquallError
from squall.rdf import Event, Solution
from squall.testing.streams import stream

PREFIX = "PREFIX : <http://example.org/>\n"
EVENTS = "?a :p ?x . ?b :q ?y ."


def answers(text: str, events: Iterable[Event], planner: str = "rete") -> list[tuple[int, tuple[str, ...]]]:
    """Returns the solutions of a query by time, in the local names of IRIs and the texts of literals."""
    plan = squall.plan(squall.compile(PREFIX + text, lexer="cqels"), planner)
    outputs = squall.run(plan, list(events), of=Solution)
    return sorted((output.time, tuple(map(_short, output.fact.values))) for output in outputs)


def _short(term: str | None) -> str:
    return "" if term is None else term.split("/")[-1].rstrip(">") if term[0] == "<" else term.split('"')[1]


S = stream("1 @:s :a1 :p 1\n2 @:s :a2 :p 2\n2 @:s :n :r 1\n4 @:s :b1 :q 2\n4 @:s :b1 :of :v\n6 @:s :b2 :q 1\n")


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_times_of_events(planner: str) -> None:
    text = f"""SELECT ?a ?b (start(?a) AS ?s) (end(?b) AS ?e) (before(?a, ?b) AS ?is)
    FROM STREAM :s [RANGE 5ms] WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) FILTER(start(?b) - end(?a) > 2) }}"""
    expected = [(4, ("a1", "b1", "1", "4", "true")), (6, ("a2", "b2", "2", "6", "true"))]
    assert answers(text, S, planner) == expected


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_an_event_of_several_triples_is_of_one_instant(planner: str) -> None:
    text = "SELECT ?a ?b FROM STREAM :s WHERE { ?a :p ?x . ?b :q ?y ; :of ?v FILTER(SEQ(?a ; ?b)) }"
    assert answers(text, S, planner) == [(4, ("a1", "b1")), (4, ("a2", "b1"))]


def test_what_must_not_occur_has_filters_of_its_own() -> None:
    text = f"SELECT ?a ?b FROM STREAM :s WHERE {{ {EVENTS} ?n :r ?z FILTER(SEQ(?a ; NOT ?n ; ?b)) FILTER(?z > %s) }}"
    assert answers(text % 0, S) == [(4, ("a2", "b1")), (6, ("a2", "b2"))]
    pairs = f"SELECT ?a ?b FROM STREAM :s WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) }}"
    assert answers(text % 1, S) == answers(pairs, S)


def test_what_stands_beside_is_tested_on_matches() -> None:
    text = f"""SELECT ?a ?b ?z FROM STREAM :s [NOW] WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) BIND(?x + ?y AS ?z)
    FILTER(?z > 2) FILTER NOT EXISTS {{ GRAPH :g {{ ?a :is ?b }} }} }} ORDER BY ?z"""
    assert answers(text, S) == [(4, ("a1", "b1", "3")), (4, ("a2", "b1", "4")), (6, ("a2", "b2", "3"))]


REFUSED = [
    (f"{EVENTS} FILTER(SEQ(?a ; ?b) || ?x > 1)", "`SEQ` cannot be here", "group of the query"),
    (f"{EVENTS} OPTIONAL {{ ?a :q 2 FILTER(SEQ(?a ; ?b)) }}", "`SEQ` cannot be here", "group of the query"),
    (f"{EVENTS} FILTER(SEQ(?a ; ?b)) FILTER(SEQ(?b ; ?a))", "a query has one `SEQ`", "REGISTER STREAM"),
    (f"{EVENTS} FILTER(SEQ(?a ; ?c))", "no triple of a stream has `?c` as its subject", "`?c <http"),
    (f"{EVENTS} FILTER(SEQ(?a ; ?b ; ?a))", "`?a` is twice in `SEQ`", "a name of its own"),
    (f"{EVENTS} FILTER(SEQ(?a ; NOT ?b))", "`NOT` cannot be the first or last", "between the two"),
    (f"{EVENTS} ?x :r ?y FILTER(SEQ(?a ; ?b))", "the subject `?x` is no event of `SEQ`", "around the events"),
    (
        f"{EVENTS} ?n :r ?z FILTER(SEQ(?a ; NOT ?n ; ?b)) FILTER(?z > ?x)",
        "something else than `?n` alone, which must not occur",
        "use one variable",
    ),
    (f"{EVENTS} FILTER(SEQ(?a ; ?b)) FILTER(start(?c) > 1)", "there is no step `?c`", "SEQ(?c ; ...)"),
    (
        f"{EVENTS} ?n :r 1 FILTER(SEQ(?a ; NOT ?n ; ?b)) FILTER(end(?n) > 1)",
        "`?n` must not occur, so that it has no times",
        "leave the call out",
    ),
]


BLOCKS = [
    ("STREAM :s [RANGE 5s SLIDE 1s] { ?a :p 1 . ?b :q 2 FILTER(SEQ(?a ; ?b)) }", "not at steps", "[RANGE 10s]"),
    ("STREAM :s [TRIPLES 5] { ?a :p 1 . ?b :q 2 FILTER(SEQ(?a ; ?b)) }", "bounds no sequence", "[RANGE 10s]"),
    ("STREAM :s [SESSION 5s] { ?a :p 1 . ?b :q 2 FILTER(SEQ(?a ; ?b)) }", "bounds no sequence", "[RANGE 10s]"),
    ("STREAM :s [RANGE 2ms] { ?a :p 1 . ?b :q 2 . ?c :q 3 FILTER(SEQ(?a ; ?b ; ?c)) }", "this never occurs", "longer"),
    (
        "STREAM :s [RANGE 5s] { ?a :p 1 OPTIONAL { ?a :q 2 } ?b :q 2 FILTER(SEQ(?a ; ?b)) }",
        "among the events",
        "of its own",
    ),
    ("STREAM :s [RANGE 5s] { ?a :p 1 } ?b :q 2 FILTER(SEQ(?a ; ?b))", "no triple of a stream has `?b`", "?b <http"),
    (
        "STREAM :s [RANGE 5s] { ?a :p 1 . ?x :p 1 } STREAM :t [RANGE 5s] { ?b :q 2 } FILTER(SEQ(?a ; ?b))",
        "`?x` is no event",
        "`STREAM` of its own",
    ),
    (
        "STREAM :s [RANGE 5s] { ?a :p 1 } STREAM :t [RANGE 6s] { ?b :q 2 } FILTER(SEQ(?a ; ?b))",
        "`?b` has another window than `?a`",
        "of one length",
    ),
    (
        "STREAM :s [RANGE 5s] { ?a :p 1 } STREAM :t [RANGE 5s] { ?b :q 2 . ?a :r 2 } FILTER(SEQ(?a ; ?b))",
        "`?a` is read from two streams",
        "a name of its own",
    ),
]


ALL_REFUSED = [("FROM STREAM :s [RANGE 5s] ", *part) for part in REFUSED] + [("", *part) for part in BLOCKS]


@pytest.mark.parametrize(
    ("clause", "where", "message", "hint"), ALL_REFUSED, ids=[where for _, where, *_ in ALL_REFUSED]
)
def test_refused(clause: str, where: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile(f"{PREFIX}SELECT * {clause}WHERE {{ {where} }}", lexer="cqels")
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert re.search(r":2:\d+: translation error: ", str(caught.value))


def test_clauses_of_streams_are_of_sequences() -> None:
    with pytest.raises(SquallError, match="`FROM STREAM` is of a query with `SEQ`"):
        squall.compile(f"{PREFIX}SELECT * FROM STREAM :s [RANGE 5s] WHERE {{ ?a :p 1 }}", lexer="cqels")
    two = f"{PREFIX}SELECT * FROM STREAM :s FROM STREAM :t WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) }}"
    with pytest.raises(SquallError, match="there are two"):
        squall.compile(two, lexer="cqels")
    inside = f"{PREFIX}SELECT * FROM STREAM :s WHERE {{ STREAM :s [NOW] {{ {EVENTS} FILTER(SEQ(?a ; ?b)) }} }}"
    with pytest.raises(SquallError, match="inside of `STREAM`"):
        squall.compile(inside, lexer="cqels")


@pytest.mark.parametrize(("window", "stored"), [("[RANGE 1h]", None), ("[ALL]", "?a :p ?x"), ("[NOW]", "?a :p ?x")])
def test_sequences_that_are_not_bounded_are_reported(window: str, stored: str | None) -> None:
    text = f"{PREFIX}SELECT * FROM STREAM :s {window} WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) }}"
    findings = [(finding.code, finding.origin and finding.origin.words) for finding in lint(text, lexer="cqels")]
    assert findings == ([] if stored is None else [("unbounded-sequence", stored)])


def test_registered_matches_are_a_stream(tmp_path: object) -> None:
    text = f"""{PREFIX}REGISTER STREAM :m AS CONSTRUCT {{ ?a :then ?b }} FROM STREAM :s [RANGE 5ms]
    WHERE {{ {EVENTS} FILTER(SEQ(?a ; ?b)) }}"""
    outputs = list(squall.run(squall.plan(squall.compile(text, lexer="cqels")), S))
    assert [output.time for output in outputs] == [4, 4, 6]
