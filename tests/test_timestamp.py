"""C-SPARQL's function `timestamp`: the arrival times of the matched facts (docs/languages/sparql.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import squall
from squall.errors import Errors, TranslatorError
from squall.model import ARRIVAL, Arrivals, Graphs, Source, with_windows
from squall.model.windows import CountWindow, EmptyWindow, SlidingWindow
from squall.rdf import ALWAYS, Event, Solution, Triple, iri, parts
from squall.testing import oracle
from tests.laws import examples_of

PREFIX = """PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
PREFIX : <http://example.org/>
"""
DATA = "1 :a :p :b :s . 2 :b :p :c :s . 3 :a :p :b :t . 4 :a :q :b :t . 5 :c :p :d . 7 :a :p :b :s"
"""Times, triples and streams."""


def name(text: str) -> str:
    return f"http://example.org/{text.removeprefix(':')}"


def events(data: str = DATA) -> list[Event]:
    results = []
    for line in data.split(" . "):
        time, *nodes, last = line.split()
        slots, stream = ([*nodes, last], "") if len(nodes) == 2 else (nodes, name(last))
        results.append(Event(int(time), (Triple(*(iri(name(slot)) for slot in slots)),), stream))
    return results


def last(query: str, lexer: str = "csparql", data: str = DATA, **windows: object) -> list[tuple[str, ...]]:
    """Returns the solutions of a query after all input, with names without their namespace."""
    system = squall.compile(PREFIX + query, lexer=lexer, **windows)  # type: ignore[arg-type]
    static = [Event(ALWAYS, (Triple(*map(iri, map(name, ("z", "p", "z")))),), "")]
    for planner in ("greedy", "rete"):
        outputs = squall.run(squall.plan(system, planner), events(data), static=static)
        result = Counter((out.time, str(out.fact)) for out in outputs)
        assert result == Counter((time, str(item)) for time, item, *_ in oracle.outputs(system, events(data), static))
    answers = oracle.answers(system, events(data), static)
    items = [item for item, _ in answers[max(answers)].solutions]
    return sorted(tuple(map(short, item.values)) for item in items if isinstance(item, Solution))


def short(value: str | None) -> str:
    if value is None:
        return ""
    return parts(value).lexical if value[0] == '"' else value.removeprefix("<http://example.org/").rstrip(">")


# Triples


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?x (f:timestamp(?x, :p, ?y) AS ?t) { ?x :p ?y }",
         [("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        ("SELECT ?x (timestamp(?x, :p, ?y) AS ?t) FROM STREAM :s FROM STREAM :t { ?x :p ?y }",
         [("a", "7"), ("b", "2"), ("z", "")]),
        ("SELECT ?x (timestamp(?x, :p, ?y) AS ?t) FROM STREAM :t { ?x :p ?y }", [("a", "3"), ("z", "")]),
        ("SELECT ?t { BIND (timestamp(:a, :q, :b) AS ?t) }", [("4",)]),
        ("SELECT ?t { BIND (timestamp(:a, :q, :z) AS ?t) }", [("",)]),
        ("SELECT ?x { ?x ?p ?y FILTER (f:timestamp(?x, ?p, ?y) < 5) }", [("a",), ("b",)]),
        ("SELECT ?t { ?x :q ?y BIND (timestamp(?x, IRI('http://example.org/p'), ?y) - 1 AS ?t) }", [("6",)]),
        ("SELECT ?x ?t { ?x :p ?y OPTIONAL { ?x :q ?z } BIND (timestamp(?x, :q, ?z) AS ?t) }",
         [("a", "4"), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x ?t { ?x :p ?y { SELECT ?y ?t { BIND (timestamp(:b, :p, ?y) AS ?t) } } }",
         [("a", ""), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT (MAX(timestamp(?x, :p, ?y)) AS ?t) { ?x :p ?y FILTER (?x != :z) }", [("7",)]),
        ("SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING (timestamp(?x, :p, :b) > 5)", [("a",)]),
        ("SELECT ?x { ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER (timestamp(?x, :p, ?y) > timestamp(?x, :q, ?z)) } }",
         [("a",)]),
        ("SELECT ?g ?t { GRAPH ?g { ?x :p ?y BIND (timestamp(?x, :p, ?y) AS ?t) } }",
         [("s", "2"), ("s", "7"), ("t", "3")]),
        ("SELECT ?t { GRAPH :t { ?x :p ?y BIND (timestamp(?x, :p, ?y) AS ?t) } }", [("3",)]),
    ],
)  # fmt: skip
def test_the_latest_arrival_of_a_triple(query: str, expected: list[tuple[str, ...]]) -> None:
    assert last(query) == expected


def test_expired_arrivals_are_deleted() -> None:
    query = "SELECT ?x (timestamp(?x, :p, ?y) AS ?t) FROM STREAM :s [RANGE TRIPLES 1] FROM STREAM :t { ?x :p ?y }"
    assert last(query, data=f"{DATA} . 8 :x :p :y :s") == [("a", "3"), ("x", "8"), ("z", "")]
    system = squall.compile(f"{PREFIX}SELECT (timestamp(?x, :p, ?y) AS ?t) {{ ?x :p ?y }}", lexer="csparql")
    outputs = squall.run(
        squall.plan(with_windows(system, SlidingWindow(3), {name("t"): SlidingWindow(9)})),
        events("1 :a :p :b :s . 2 :a :p :b :t"),
    )
    assert [(out.time, short(out.fact.values[0])) for out in outputs if isinstance(out.fact, Solution)] == [
        (1, "1"), (2, "2"),
    ]  # fmt: skip


# Variables


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?x (timestamp(?y) AS ?t) { ?x :p ?y }", [("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        ("SELECT ?x (f:timestamp(?y) AS ?t) { ?x :p ?y }", [("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        # The latest of several patterns, in whichever of them the variable is.
        ("SELECT ?x (timestamp(?z) AS ?t) { ?x :p ?y . ?y :p ?z }", [("a", "2"), ("b", "5"), ("z", "")]),
        ("SELECT ?x (timestamp(?y) AS ?t) { ?x :p ?y . ?y :p ?z }", [("a", "7"), ("b", "5"), ("z", "")]),
        ("SELECT ?x ?t { ?x :q ?y OPTIONAL { ?y :p ?z } BIND (timestamp(?y) AS ?t) }", [("a", "4")]),
        ("SELECT ?x ?t { ?x :p ?y OPTIONAL { ?x :q ?z } BIND (timestamp(?z) AS ?t) }",
         [("a", "4"), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x (timestamp(?y) AS ?t) { { ?x :p ?y } UNION { ?x :q ?y } }",
         [("a", "7"), ("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        ("SELECT ?x (timestamp(?x) AS ?t) { ?x :p/:p ?z }", [("a", "7"), ("b", "2"), ("z", "")]),
        ("SELECT ?x (timestamp(?x) AS ?t) { ?x (:q|:z)/^:p ?z }", [("a", "4")]),
        ("SELECT ?x (timestamp(?y :t) AS ?t) { ?x :p ?y }", [("a", "3"), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x (timestamp(?y :t) AS ?t) FROM STREAM :s FROM STREAM :t { ?x :p ?y }",
         [("a", "3"), ("b", ""), ("z", "")]),
        ("SELECT ?x (f:timestamp(?y, :s) AS ?t) FROM STREAM :s FROM STREAM :t { ?x :p ?y }",
         [("a", "7"), ("b", "2"), ("z", "")]),
        ("SELECT ?x ?t { ?x :q ?y BIND (timestamp(?y { ?z :p ?y }) AS ?t) }", [("a", "7")]),
        ("SELECT ?x ?t { ?x :q ?y BIND (timestamp(?z { ?x :p ?y . ?y :p ?z }) AS ?t) }", [("a", "2")]),
        ("SELECT ?x ?t { ?x :q ?y BIND (timestamp(?y { { ?z :p ?y } UNION { ?z :q ?y } }) AS ?t) }", [("a", "7")]),
        ("SELECT ?g ?t { GRAPH ?g { ?x :p ?y } BIND (timestamp(?y) AS ?t) }", [("s", "2"), ("s", "7"), ("t", "3")]),
        ("SELECT ?t { ?x :q ?y GRAPH :s { ?x :p ?y } BIND (timestamp(?y) AS ?t) }", [("7",)]),
        ("SELECT ?x ?t { { SELECT ?x ?y { ?x :p ?y } } BIND (timestamp(?x) AS ?t) }",
         [("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        # In the filter of an OPTIONAL
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(?z) > 3) } FILTER (?x = :a) }", [("a", "b")]),
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(?z) > 4) } FILTER (?x = :a) }", [("a", "")]),
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(?y) > timestamp(?z)) } FILTER (?x = :a) }",
         [("a", "b")]),
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(?y) < timestamp(?z)) } FILTER (?x = :a) }",
         [("a", "")]),
        ("SELECT ?x ?z { ?x :q ?y OPTIONAL { ?x :p ?z FILTER (timestamp(?u { ?u :p :b }) > 6) } }", [("a", "b")]),
        ("SELECT ?x ?z { ?x :q ?y OPTIONAL { ?x :p ?z FILTER (timestamp(?u { ?u :p :b }) > 7) } }", [("a", "")]),
    ],
)  # fmt: skip
def test_the_latest_arrival_of_what_binds_a_variable(query: str, expected: list[tuple[str, ...]]) -> None:
    assert last(query) == expected


# Of both sides of an OPTIONAL, and of what need not be bound


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # A triple of one thing from outside and one from inside.
        ("SELECT ?x ?y ?z { ?x :q ?y OPTIONAL { ?y :p ?z FILTER (timestamp(?x, :p, ?y) > timestamp(?y, :p, ?z)) } }",
         [("a", "b", "c")]),
        ("SELECT ?x ?w { ?x :p ?y "
         "OPTIONAL { ?w :q ?z FILTER (timestamp(?y, :p, ?x) > 1 || timestamp(?x, ?p, ?z) > 6) } }",
         [("a", ""), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?w :q ?z FILTER (timestamp(?x, :p, ?z) > 6) } }",
         [("a", "a"), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?w :q ?z FILTER (timestamp(?x, :p, ?z) > 7) } }",
         [("a", ""), ("b", ""), ("c", ""), ("z", "")]),
        # No such triple ever came: what tests that finds it unbound.
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?w :q ?z FILTER (COALESCE(timestamp(?x, :r, ?z), 0) = 0) } }",
         [("a", "a"), ("b", "a"), ("c", "a"), ("z", "a")]),
        # The triple depends on whether something exists for both.
        ("SELECT ?x ?z { ?x :p ?y "
         "OPTIONAL { ?x :q ?z FILTER (timestamp(?x, IF (EXISTS { ?y :p ?w }, :p, :q), ?z) > 4) } FILTER (?x = :a) }",
         [("a", "b")]),
        ("SELECT ?x ?z { ?x :p ?y "
         "OPTIONAL { ?x :q ?z FILTER (timestamp(?x, IF (EXISTS { ?y :q ?w }, :p, :q), ?z) > 4) } FILTER (?x = :a) }",
         [("a", "")]),
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(IF (NOT EXISTS { ?z :q ?y }, ?x, ?y), "
         "IF (EXISTS { ?z :p ?w }, :p, :q), ?z) > 4) } FILTER (?x = :a) }",
         [("a", "b")]),
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?w :q ?z FILTER (timestamp(?x, IF (YEAR(NOW()) > 2, :p, :q), ?z) > 6) } }",
         [("a", "a"), ("b", ""), ("c", ""), ("z", "")]),
        # Solutions that are there twice stay so; expressions see what is unbound.
        ("SELECT ?x ?w { { ?x :p :b } UNION { ?x :p :b } OPTIONAL { ?w :q ?z FILTER (timestamp(?x, :p, ?z) > 6) } }",
         [("a", "a"), ("a", "a")]),
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?y :q ?u } "
         "OPTIONAL { ?w :q ?z FILTER (timestamp(?x, COALESCE(?u, :p), ?z) > 6) } }",
         [("a", "a"), ("b", ""), ("c", ""), ("z", "")]),
        # A variable that is unbound outside, and bound inside.
        ("SELECT ?x ?y { ?x :p ?o OPTIONAL { ?x :q ?y } OPTIONAL { { ?y :p :c } UNION { BIND (1 AS ?i) } "
         "FILTER (timestamp(?y, :p, :c) > 1) } } ",
         [("a", "b"), ("a", "b"), ("b", "b"), ("c", "b"), ("z", "b")]),
        # Patterns of both sides have the variable.
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?y :p ?z FILTER (timestamp(?y) > 6) } FILTER (?x = :a) }", [("a", "c")]),
        ("SELECT ?x ?z { ?x :p ?y OPTIONAL { ?y :p ?z FILTER (timestamp(?y) > 7) } FILTER (?x = :a) }", [("a", "")]),
        # Of braces that share a variable with each of the sides.
        ("SELECT ?x ?w { ?x :p ?y OPTIONAL { ?w :q ?z FILTER (timestamp(?z { ?x :p ?z }) > 6) } }",
         [("a", "a"), ("b", ""), ("c", ""), ("z", "")]),
        ("SELECT ?x ?t { ?x :p ?y OPTIONAL { ?x :q ?z } BIND (timestamp(?u { ?u :p ?z }) AS ?t) }",
         [("a", "7"), ("b", "7"), ("c", "7"), ("z", "7")]),
        ("SELECT ?x ?t { ?x :p ?y OPTIONAL { ?x :q ?z } BIND (timestamp(?x { ?x :p ?z }) AS ?t) }",
         [("a", "7"), ("b", "2"), ("c", "5"), ("z", "")]),
        ("SELECT ?x ?t { ?x :p ?y BIND (timestamp(?y { ?y :p ?o OPTIONAL { ?y :q ?x } }) AS ?t) }",
         [("a", "2"), ("b", "5"), ("c", ""), ("z", "")]),
        # A pattern of the braces with something unbound is no triple.
        ("SELECT ?y ?t { ?y :q ?x BIND (timestamp(?y { ?y :q ?u OPTIONAL { ?y :p ?w FILTER (?w = :a) } }) AS ?t) }",
         [("a", "4")]),
    ],
)  # fmt: skip
def test_both_sides_of_an_optional(query: str, expected: list[tuple[str, ...]]) -> None:
    assert last(query) == expected


Made = list[tuple[str, str, str, str]]
ONE = st.tuples(*[st.sampled_from("abc")] * 2, st.sampled_from("pqr"), st.sampled_from("st"))
MADE = st.lists(ONE, max_size=9)
"""Triples (subject, object, predicate) with their streams; each comes a millisecond after the one before."""


def counted(query: str, made: Made, expected: Callable[[Arrived], Iterable[tuple[str, ...]]]) -> None:
    """Compares the answer of a query with what is counted of when each triple came last."""
    arrived = Arrived({(s, p, o): time for time, (s, o, p, _) in enumerate(made, 1)})
    data = " . ".join(f"{time} :{s} :{p} :{o} :{stream}" for time, (s, o, p, stream) in enumerate(made, 1))
    assert last(query, data=data or "0 :z :z :y") == sorted(expected(arrived))


class Arrived(dict[tuple[str, str, str], int]):
    """A function that returns the last arrival time of triples, and 0 for no triple."""

    def __missing__(self, key: object) -> int:
        return 0

    def of(self, predicate: str) -> list[tuple[str, str]]:
        """Returns the subjects and objects of a predicate. What is there from the beginning is one of them."""
        return [(s, o) for s, p, o in self if p == predicate] + [("z", "z")] * (predicate == "p")


@given(MADE)
def test_both_sides_of_an_optional_by_counting(made: Made) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            results = [z for s, z in arrived.of("q") if s == x and arrived[y, "r", z] >= 3]
            yield from [(x, y, z) for z in results] or [(x, y, "")]

    counted("SELECT ?x ?y ?z { ?x :p ?y OPTIONAL { ?x :q ?z FILTER (timestamp(?y, :r, ?z) >= 3) } }", made, expected)


@given(MADE)
def test_both_sides_of_an_optional_inside_exists_by_counting(made: Made) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            for w in (o for s, o in arrived.of("p") if s == y):
                if not any(s == x and arrived[w, "r", z] >= 3 for s, z in arrived.of("q")):
                    yield x, y
                    break

    optional = "OPTIONAL { ?x :q ?z FILTER (timestamp(?w, :r, ?z) >= 3) }"
    counted(f"SELECT ?x ?y {{ ?x :p ?y FILTER EXISTS {{ ?y :p ?w {optional} FILTER (!BOUND(?z)) }} }}", made, expected)


@given(MADE)
def test_timestamps_absent_from_both_sides_of_an_optional(made: Made) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            ys = [u for s, u in arrived.of("r") if s == y] or [""]
            for u in ys:
                results = [z for s, z in arrived.of("q") if s == x and not 0 < arrived[u, "r", z] < 4]
                yield from [(x, y, z) for z in results] or [(x, y, "")]

    optional = "OPTIONAL { ?x :q ?z FILTER (COALESCE(timestamp(?u, :r, ?z), 9) >= 4) }"
    counted(f"SELECT ?x ?y ?z {{ ?x :p ?y OPTIONAL {{ ?y :r ?u }} {optional} }}", made, expected)


@given(MADE, st.sampled_from(["?y :p ?w", "?y :p ?w . ?x :r ?o", "?v :p ?w OPTIONAL { ?v :r ?y }"]))
def test_of_braces_inside_exists_by_counting(made: Made, braces: str) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            times = [arrived[s, "p", o] for s, o in arrived.of("p") if agrees(arrived, s, x, y)]
            if max(times, default=0) > 3 and any(s == x for s, _ in arrived.of("q")):
                yield x, y

    def agrees(arrived: Arrived, subject: str, x: str, y: str) -> bool:
        if "?v" in braces:
            results = [o for s, o in arrived.of("r") if s == subject]
            return y in results or not results
        return subject == y and ("?x" not in braces or any(s == x for s, _ in arrived.of("r")))

    exists = f"EXISTS {{ ?x :q ?z FILTER (timestamp(?w {{ {braces} }}) > 3) }}"
    counted(f"SELECT ?x ?y {{ ?x :p ?y FILTER {exists} }}", made, expected)


@pytest.mark.more
@settings(max_examples=examples_of(10))  # the oracle looks at every pair of solutions for each of a third
@given(st.lists(ONE, max_size=3))
@example([("a", "b", "q", "s")])
def test_of_braces_inside_an_optional_inside_exists_by_counting(made: Made) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            us = [o for s, o in arrived.of("r") if s == y] or [""]
            ks = [k for _, z in arrived.of("q") for k in [o for s, o in arrived.of("r") if s == z] or [""]]
            if not all(any(is_late(arrived, u, k) for k in ks) for u in us):
                yield x, y

    def is_late(arrived: Arrived, u: str, k: str) -> bool:
        pairs = [(s, t, o) for s, o in arrived.of("p") for t, other in arrived.of("p") if o == other]
        agreeing = [(s, t, o) for s, t, o in pairs if u in ("", s) and k in ("", t)]
        return not 0 < max((arrived[item, "p", o] for *both, o in agreeing for item in both), default=0) < 4

    late = "COALESCE(timestamp(?w { ?u :p ?w . ?k :p ?w }), 9) > 3"
    optional = f"OPTIONAL {{ ?v :q ?z OPTIONAL {{ ?z :r ?k }} FILTER ({late}) }}"
    exists = f"EXISTS {{ ?x :p ?y OPTIONAL {{ ?y :r ?u }} {optional} FILTER (!BOUND(?z)) }}"
    counted(f"SELECT ?x ?y {{ ?x :p ?y FILTER {exists} }}", made, expected)


@given(MADE, st.booleans())
def test_of_braces_that_share_what_need_not_be_bound_by_counting(made: Made, is_bound: bool) -> None:
    def expected(arrived: Arrived) -> Iterator[tuple[str, ...]]:
        for x, y in arrived.of("p"):
            for u in [o for s, o in arrived.of("r") if s == y] or [""] * (not is_bound):
                times = [
                    arrived[s, "p", o]
                    for s, o in arrived.of("p")
                    for v in ([b for a, b in arrived.of("q") if a == s] or [""])
                    if u in ("", v) or not v
                ]
                time = max(times, default=0)
                yield x, y, u, str(time or "")

    braces = "?s :p ?w OPTIONAL { ?s :q ?u }"
    around = "?x :p ?y . ?y :r ?u" if is_bound else "?x :p ?y OPTIONAL { ?y :r ?u }"
    query = f"SELECT ?x ?y ?u ?t {{ {around} BIND (timestamp(?w {{ {braces} }}) AS ?t) }}"
    counted(query, made, expected)


def test_braces_are_evaluated_by_themselves() -> None:
    braces = "?y :p ?w FILTER (?w != ?x)"
    query = f"SELECT ?y {{ ?x :p ?y FILTER EXISTS {{ ?y :p ?z FILTER (timestamp(?w {{ {braces} }}) > 1) }} }}"
    system = squall.compile(PREFIX + query, lexer="csparql")
    assert [str(warning.args[0]) for warning in system.warnings] == ["`?x` never has a value here: nothing binds it"]
    assert last(query) == []


# What is refused


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT (timestamp(?y) AS ?t) { BIND (1 AS ?y) }", "no triple pattern has `?y` where `timestamp(?y)` stands"),
        ("SELECT * { ?x :p ?y MINUS { ?x :q ?z } FILTER (timestamp(?z) > 1) }",
         "no triple pattern has `?z` where `timestamp(?z)` stands"),
        ("SELECT * { { SELECT ?x { ?x :p ?z } } FILTER (timestamp(?x) > 1) }",
         "no triple pattern has `?x` where `timestamp(?x)` stands"),
        ("SELECT ?y (timestamp(?y) AS ?t) { ?x :p+ ?y }", "no triple pattern has `?y` where `timestamp(?y)` stands"),
        ("SELECT ?y (timestamp(?y) AS ?t) { :a :p? ?y }", "no triple pattern has `?y` where `timestamp(?y)` stands"),
        ("SELECT ?y (timestamp(?y) AS ?t) { ?x !:p ?y }", "no triple pattern has `?y` where `timestamp(?y)` stands"),
        ("SELECT (timestamp(?y :u) AS ?t) FROM STREAM :s { ?x :p ?y }",
         "what binds `?y` does not read the stream <http://example.org/u>"),
        ("SELECT (timestamp(?y { ?x :p :z }) AS ?t) { ?x :p ?y }",
         "no triple pattern in the group of `timestamp` has `?y`"),
        ("SELECT (f:timestamp(?x, ?y) AS ?t) { ?x :p ?y }", "`timestamp` does not take these arguments"),
    ],
)  # fmt: skip
def test_refused(query: str, expected: str) -> None:
    with pytest.raises((TranslatorError, Errors)) as caught:
        squall.compile(PREFIX + query, lexer="csparql")
    errors = caught.value.errors if isinstance(caught.value, Errors) else [caught.value]
    assert [error.message for error in errors] == [expected]
    assert all(error.origin and error.hint for error in errors)


# What patterns read


def test_arrivals_have_a_stream_and_a_time() -> None:
    triple = Triple(*[iri("urn:a")] * 3)
    (history,) = Arrivals().facts_read(triple, "urn:s", 5)
    assert history == (ARRIVAL, (iri("urn:s"), '"5"^^<http://www.w3.org/2001/XMLSchema#integer>', *triple))
    assert Arrivals().facts_read(triple, "urn:s", ALWAYS) == ()
    assert Arrivals().facts_read(triple, "", 5) == ((ARRIVAL, ('""', *history[1][1:])),)


def test_sources_that_tell_more_than_triples_are_of_their_own_kind() -> None:
    assert len({Source(), Graphs(), Arrivals(), Source("s"), Graphs("s"), Arrivals("s")}) == 6
    assert [source.reads_derived_facts for source in (Source(), Source("s"), Graphs(), Arrivals())] == [
        True,
        False,
        False,
        False,
    ]
    assert [source.reads("") for source in (Source(), Source("s"), Graphs(), Arrivals())] == [True, False, False, True]
    assert not Arrivals("", EmptyWindow()).reads("s")


@pytest.mark.parametrize("kind", [Source, Graphs, Arrivals])
def test_windows_from_outside(kind: type[Source]) -> None:
    system = squall.System(sources=(kind(), kind("s"), kind("t"), kind("t", SlidingWindow(7))))
    windowed = with_windows(system, SlidingWindow(5), {"s": CountWindow(3)}, removals=True)
    assert windowed.sources == (
        kind("", SlidingWindow(5), (("s", CountWindow(3)),), removals=True),
        kind("s", CountWindow(3), removals=True),
        kind("t", SlidingWindow(5), removals=True),
        kind("t", SlidingWindow(7), removals=True),
    )
