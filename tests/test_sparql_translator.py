"""The translators of SPARQL and the stream languages: systems of queries, their answers, and refused queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import squall
from squall import cli, explain
from squall.contracts import Output, Translator
from squall.errors import Errors, SquallError, TranslatorError, UsageError
from squall.model import (
    Document,
    Graphs,
    Report,
    Source,
    Stream,
    System,
    Variable,
    documents,
    output_specs,
    profiles,
    rules,
    warnings,
)
from squall.model.stratification import stratify
from squall.model.windows import LANDMARK, CountWindow, FirstTriple, HoppingWindow, SlidingWindow, Window
from squall.rdf import ALWAYS, Boolean, Event, Solution, Triple, iri, is_blank, literal, parts
from squall.streams.sources.documents import load
from squall.testing import assert_as_oracle, oracle, stream
from squall.translators.sparql import translator

GOLDEN = Path(__file__).parent / "golden" / "sparql"
PREFIX = "PREFIX : <http://example.org/>\n"
DATA = """
:ann :knows :bob ; :age 30 . :bob :knows :cat ; :age 12 . :cat :knows :ann . :dan :age 50 ; :friend _:x .
_:x :age 9 ; :friend _:y . _:y :age 8 .
"""


def compiled(text: str, lexer: str = "sparql") -> System:
    return squall.compile(PREFIX + text, lexer=lexer)


def triples(text: str) -> list[Triple]:
    import pyoxigraph

    from squall.rdf import term

    turtle = f"@prefix : <http://example.org/> .\n{text}"
    tree = pyoxigraph.parse(turtle, format=pyoxigraph.RdfFormat.TURTLE)
    return [Triple(term(item.subject), term(item.predicate), term(item.object)) for item in tree]


def answers(text: str, data: str = DATA) -> list[Output]:
    static = [Event(ALWAYS, tuple(triples(data)))]
    return list(squall.run(squall.plan(compiled(text)), [], static=static))


def rows(text: str, data: str = DATA) -> list[tuple[str, ...]]:
    """Returns the solutions of a query, with names without their namespace."""
    return [_plain(out.fact) for out in answers(text, data)]


def _plain(fact: object) -> tuple[str, ...]:
    assert isinstance(fact, Solution)
    return tuple(_short(value) for value in fact.values)


def _short(value: str | None) -> str:
    if value is None:
        return ""
    return parts(value).lexical if value[0] == '"' else value.removeprefix("<http://example.org/").rstrip(">")


def over(text: str, lexer: str, data: str, name: str = "http://example.org/s") -> list[Output]:
    """Returns the answers of a query over one stream."""
    events = [Event(event.time, event.facts, name) for event in stream(data)]
    return list(squall.run(squall.plan(compiled(text, lexer)), events))


def messages(text: str, lexer: str = "sparql") -> list[str]:
    with pytest.raises((TranslatorError, Errors)) as caught:
        compiled(text, lexer)
    error = caught.value
    return [item.message for item in error.errors] if isinstance(error, Errors) else [error.message]


# What queries mean


def test_it_is_a_translator() -> None:
    assert isinstance(translator, Translator)


@pytest.mark.parametrize("query", sorted(path.name for path in GOLDEN.iterdir() if path.suffix != ".txt"))
def test_golden(query: str) -> None:
    system = squall.compile(GOLDEN / query)
    assert explain.text(system) + "\n" == (GOLDEN / f"{query}.txt").read_text(encoding="utf-8")
    stratify(system)
    assert squall.plan(system, "greedy").nodes
    assert squall.plan(system, "rete").nodes


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ASK {}", "query"),
        ("INSERT DATA { :a :b :c }", "update"),
        ("INSERT DATA { :a :b :c } ; INSERT DATA { :a :b :d }", "update-2"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert list(rules(compiled(text)))[-1].name == name


def test_a_relation_is_made_once_for_equal_paths() -> None:
    once = compiled("SELECT * { ?x :p+ ?y }")
    twice = compiled("SELECT * { ?x :p+ ?y . ?y :p+ ?z OPTIONAL { ?z :p+ :a } }")
    assert len(list(rules(once))) == len(list(rules(twice))) == 3


@pytest.mark.parametrize(("one", "other"), [("(:p+)*", ":p*"), ("(:p?)+", ":p*"), ("(:p*)?", ":p*"), ("(:p+)+", ":p+")])
def test_one_mark_for_several(one: str, other: str) -> None:
    assert compiled(f"ASK {{ ?x {one} ?y }}") == compiled(f"ASK {{ ?x {other} ?y }}")


# Streams


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[RANGE 10s STEP 5s]", HoppingWindow(10_000, 5_000)),
        ("[RANGE 10s STEP 5s ORIGIN FIRST]", HoppingWindow(10_000, 5_000, FirstTriple())),
        ("[RANGE 10s]", SlidingWindow(10_000)),
        ("[RANGE 10s TUMBLING]", HoppingWindow(10_000, 10_000)),
        ("[RANGE TRIPLES 7]", CountWindow(7)),
        ("[TRIPLES 7 TUMBLING]", CountWindow(7, 7)),
        ("[TRIPLES 7 STEP 3]", CountWindow(7, 3)),
    ],
)
def test_windows_of_csparql(written: str, window: Window) -> None:
    system = compiled(f"REGISTER QUERY q AS SELECT * FROM STREAM :s {written} {{ ?x :p ?y }}", "csparql")
    assert next(rules(system)).sources[0] == Source("http://example.org/s", window)


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("RANGE PT10S STEP PT5S", HoppingWindow(10_000, 5_000)),
        ("RANGE PT10S", HoppingWindow(10_000, 10_000)),
        ("RANGE PT10S ORIGIN PT2S", HoppingWindow(10_000, 10_000, 2000)),
        ("ELEMENTS 3", CountWindow(3)),
        ("ELEMENTS 3 STEP 2", CountWindow(3, 2)),
    ],
)
def test_windows_of_rspql(written: str, window: Window) -> None:
    system = compiled(f"SELECT * FROM NAMED WINDOW :w ON :s [{written}] {{ WINDOW :w {{ ?x :p ?y }} }}", "rspql")
    assert Source("http://example.org/s", window) in _sources(next(rules(system)))


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[NOW-10s SLIDE 5s]", HoppingWindow(10_000, 5_000)),
        ("[NOW-10s SLIDE 5s ORIGIN 1s]", HoppingWindow(10_000, 5_000, 1000)),
        ("[NOW-10s]", SlidingWindow(10_000)),
        ("[FROM NOW-1h TO NOW-30m STEP 1m]", HoppingWindow(1_800_000, 60_000, delay=1_800_000)),
        ("[NOW-1h TO NOW-30m]", SlidingWindow(1_800_000, 1_800_000)),
    ],
)
def test_windows_of_sparqlstream(written: str, window: Window) -> None:
    system = compiled(f"SELECT * FROM STREAM :s {written} {{ ?x :p ?y }}", "sparqlstream")
    assert next(rules(system)).sources[0] == Source("http://example.org/s", window)


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[RANGE 10s SLIDE 5s]", HoppingWindow(10_000, 5_000)),
        ("[RANGE 10s SLIDE 5s ORIGIN FIRST]", HoppingWindow(10_000, 5_000, FirstTriple())),
        ("[RANGE 10s]", SlidingWindow(10_000)),
        ("[NOW]", SlidingWindow(1)),
        ("[ALL]", LANDMARK),
        ("[TRIPLES 7]", CountWindow(7)),
    ],
)
def test_windows_of_cqels(written: str, window: Window) -> None:
    system = compiled(f"SELECT * {{ STREAM :s {written} {{ ?x :p ?y }} }}", "cqels")
    assert _sources(next(rules(system))) == [Source("http://example.org/s", window)]
    assert system.streams == (Stream("http://example.org/s"),)
    system = compiled(f"SELECT * {{ STREAM ?s {written} {{ ?x :p ?y }} }}", "cqels")
    assert _sources(next(rules(system))) == [Graphs(window=window, only="streams")]
    assert system.streams == ()


def _sources(system: System) -> Sequence[Source]:
    return [
        *system.sources,
        *(source for part in system.joinables if isinstance(part, System) for source in _sources(part)),
    ]


STEPPED = "FROM STREAM :s [RANGE 10s STEP 5s] { ?x :p ?y }"


@pytest.mark.parametrize(
    ("text", "lexer", "output", "report"),
    [
        ("SELECT * { ?x :p ?y }", "sparql", "istream", Report()),
        ("SELECT * { ?x :p ?y } ORDER BY ?x", "sparql", "rstream", Report("change")),
        (f"SELECT * {STEPPED} ORDER BY ?x", "csparql", "rstream", Report()),
        (f"REGISTER QUERY q AS SELECT * {STEPPED}", "csparql", "rstream", Report()),
        ("SELECT * FROM STREAM :s [TRIPLES 3 STEP 2] { ?x :p ?y }", "csparql", "rstream", Report()),
        ("SELECT * FROM STREAM :s [TRIPLES 3] { ?x :p ?y }", "csparql", "istream", Report()),
        (f"REGISTER QUERY q COMPUTED EVERY 2s AS SELECT * {STEPPED}", "csparql", "rstream", Report("periodic", 2000)),
        ("SELECT * FROM STREAM :s [RANGE 10s] { ?x :p ?y }", "csparql", "istream", Report()),
        ("REGISTER DSTREAM :o AS SELECT * { ?x :p ?y }", "rspql", "dstream", Report()),
        ("REGISTER ISTREAM :o AS SELECT * { ?x :p ?y } ORDER BY ?x", "rspql", "istream", Report()),
        ("SELECT * { STREAM :s [RANGE 10s SLIDE 5s] { ?x :p ?y } }", "cqels", "istream", Report()),
        ("SELECT * FROM STREAM :s [NOW-10s SLIDE 5s] { ?x :p ?y }", "sparqlstream", "rstream", Report()),
        ("SELECT DSTREAM * FROM STREAM :s [NOW-10s SLIDE 5s] { ?x :p ?y }", "sparqlstream", "dstream", Report()),
    ],
)
def test_the_output_of_a_query(text: str, lexer: str, output: str, report: Report) -> None:
    _, spec = output_specs(compiled(text, lexer))
    assert (spec.output, spec.report) == (output, report)


def test_a_window_by_steps() -> None:
    query = "REGISTER QUERY q AS SELECT ?x (COUNT(*) AS ?n) FROM STREAM :s [RANGE 4s STEP 2s] { ?x :p ?y } GROUP BY ?x"
    system = over(query, "csparql", "1000 :a :p 1\n2500 :a :p 2\n2600 :b :p 3")
    assert sorted((out.time, _plain(out.fact)) for out in system) == [
        (2000, ("a", "1")), (4000, ("a", "2")), (4000, ("b", "1")), (6000, ("a", "1")), (6000, ("b", "1")),
    ]  # fmt: skip


def test_windows_by_name() -> None:
    query = """REGISTER DSTREAM :o AS SELECT ?x ?w
    FROM NAMED WINDOW :long ON :s [RANGE PT4S] FROM NAMED WINDOW :short ON :s [RANGE PT2S]
    { WINDOW ?w { ?x :p ?y } }"""
    system = over(query, "rspql", "1000 :a :p 1")
    assert [(out.time, _plain(out.fact)) for out in system] == [(4000, ("a", "short")), (8000, ("a", "long"))]


def test_around_streams_inside_of_a_pattern_there_are_static_data_alone() -> None:
    """The default graph and the named graphs are those of static data; events of streams are in their windows."""
    query = "SELECT ?x ?n ?g { STREAM :s [NOW] { ?x :p ?y } STREAM :s [RANGE 2s] { ?x :p ?n } GRAPH ?g { ?x :p ?z } }"
    static = [Event(ALWAYS, tuple(triples(":a :p 0 .")), graph="<http://example.org/g>")]
    plan = squall.plan(compiled(query, "cqels"))
    events = [Event(item.time, item.facts, "http://example.org/s") for item in stream("1000 :a :p 1\n1500 :a :p 2")]
    results = [(out.time, _plain(out.fact)) for out in squall.run(plan, events, static=static)]
    assert results == [(1000, ("a", "1", "g")), (1500, ("a", "1", "g")), (1500, ("a", "2", "g"))]
    plain = squall.plan(compiled("SELECT * { ?x :p ?y STREAM :s [ALL] { ?x :p ?z } }", "cqels"))
    assert [*squall.run(plain, events)] == []


def test_a_stream_may_be_a_variable() -> None:
    """The variable ranges over all streams, including the content of their named graphs and their static data."""
    query = "SELECT ?s ?x { STREAM ?s [RANGE 2s] { ?x :p ?y } ?s :wanted :yes }"
    static = [
        Event(ALWAYS, tuple(triples(":s :wanted :yes . :t :wanted :yes . :g :wanted :yes ."))),
        Event(ALWAYS, tuple(triples(":no :p 0 .")), graph="<http://example.org/g>"),
        Event(ALWAYS, tuple(triples(":d :p 0 .")), "http://example.org/s"),
    ]
    events = [
        Event(item.time, item.facts, f"http://example.org/{name}", graph=graph)
        for name, graph, item in zip(
            "stu", ("", "<http://example.org/g>", ""), stream("1 :a :p 1\n2 :b :p 2\n3 :c :p 3"), strict=True
        )
    ]
    system = compiled(query, "cqels")
    outputs = list(squall.run(squall.plan(system), events, static=static))
    assert [(out.time, _plain(out.fact)) for out in outputs] == [(ALWAYS, ("s", "d")), (1, ("s", "a")), (2, ("t", "b"))]
    assert_as_oracle(system, outputs, events, static)


def test_constructed_facts_expire_with_their_window() -> None:
    text = """REGISTER DSTREAM :o AS CONSTRUCT { ?x :q [ :of ?y ] }
    FROM NAMED WINDOW :w ON :s [ELEMENTS 1] { WINDOW :w { ?x :p ?y } }"""
    system = over(text, "rspql", "1 :a :p 1\n2 :b :p 2")
    assert {out.time for out in system} == {2}
    assert len(system) == 2


def test_rules_and_queries_in_one_run(tmp_path: Path) -> None:
    rule, query = tmp_path / "r.jena", tmp_path / "q.rq"
    rule.write_text("@prefix : <http://example.org/>.\n[r: (?x :knows ?y) -> (?y :known ?x)]")
    query.write_text(PREFIX + "SELECT ?x { ?x :known ?y } ORDER BY DESC(?x)")
    system = squall.compile(rule, query)
    assert [spec.output for spec in output_specs(system)] == ["istream", "rstream"]
    outputs = squall.run(squall.plan(system), [], static=[Event(ALWAYS, tuple(triples(DATA)))])
    assert [_plain(out.fact)[0] for out in outputs if isinstance(out.fact, Solution)] == ["cat", "bob", "ann"]


def test_a_query_with_a_data_set_of_its_own_reads_what_rules_derive_and_static_data(tmp_path: Path) -> None:
    rule, query = tmp_path / "r.jena", tmp_path / "q.rspql"
    rule.write_text("@prefix : <http://example.org/>.\n[r: (?x :p ?y) -> (?y :back ?x)]")
    query.write_text(
        f"""{PREFIX}REGISTER ISTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
        {{ ?x :floor ?n . ?y :back ?x WINDOW :w {{ ?x :p ?y }} }}"""
    )
    system = squall.compile(rule, query)
    events = [Event(event.time, event.facts, "http://example.org/s") for event in stream("1000 :a :p :b")]
    static = [Event(ALWAYS, tuple(triples(":a :floor 1 ."))), Event(ALWAYS, tuple(triples(":a :floor 2 .")), "other")]
    outputs = squall.run(squall.plan(system), events, static=static)
    solutions = [(out.time, _plain(out.fact)) for out in outputs if isinstance(out.fact, Solution)]
    assert solutions == [(2000, ("a", "1", "b"))]


# What they answer (tests/test_sparql_differential.py has what other engines answer as well)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?x { ?x :age ?n } ORDER BY DESC(?n) LIMIT 2", [("dan",), ("ann",)]),
        ("SELECT ?x { ?x :knows+ ?x } ORDER BY ?x", [("ann",), ("bob",), ("cat",)]),
        ("SELECT ?y { :dan :knows* ?y }", [("dan",)]),
        ("SELECT ?y { :nobody :knows* ?y }", [("nobody",)]),
        ("SELECT ?x { ?x :knows? :bob } ORDER BY ?x", [("ann",), ("bob",)]),
        ("SELECT (COUNT(*) AS ?n) { ?x :nothing ?y }", [("0",)]),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?x :knows ?y }", [("3",)]),
        ("SELECT (SUM(?n) AS ?s) { ?x :age ?n FILTER (?n > 20) }", [("80",)]),
        ("SELECT * { VALUES () { () () } }", [(), ()]),
        ("SELECT ?x { VALUES ?x { } }", []),
        ("SELECT (?x + 1 AS ?y) { VALUES ?x { 1 :a UNDEF } } ORDER BY DESC(?y)", [("2",), ("",), ("",)]),
        ("SELECT ?x { ?x :age ?n FILTER (ISIRI(?x) && (EXISTS { ?x :knows ?y } = (?n > 20))) }", [("ann",)]),
        ("SELECT (EXISTS { :ann :knows ?y } AS ?e) {}", [("true",)]),
        ("SELECT ?x ?e { ?x :age 12 OPTIONAL { ?x :knows ?e FILTER EXISTS { ?e :knows ?x } } }", [("bob", "")]),
        ("SELECT ?x ?e { ?x :age 12 OPTIONAL { ?x :knows ?e FILTER NOT EXISTS { ?e :knows ?x } } }", [("bob", "cat")]),
    ],
)  # fmt: skip
def test_solutions(text: str, expected: list[tuple[str, ...]]) -> None:
    assert rows(text) == expected


def test_ask() -> None:
    assert [out.fact for out in answers("ASK { :ann :knows :bob }")] == [Boolean(True)]
    assert [out.fact for out in answers("ASK { :bob :knows :ann }")] == [Boolean(False)]


def test_describe_follows_blank_nodes() -> None:
    facts = [out.fact for out in answers("DESCRIBE ?x { ?x :age 50 }")]
    assert len(facts) == 5
    assert {fact.predicate for fact in facts if isinstance(fact, Triple)} == {
        iri("http://example.org/age"), iri("http://example.org/friend"),
    }  # fmt: skip


def test_blank_nodes_are_new_for_each_solution() -> None:
    query = "CONSTRUCT { _:n :of ?x ; :by _:m . _:n :too ?x } { ?x :knows ?y }"
    facts = {out.fact for out in answers(query)}
    nodes = {
        slot for fact in facts if isinstance(fact, Triple) for slot in (fact.subject, fact.object) if is_blank(slot)
    }
    assert len(facts) == 9
    assert len(nodes) == 6


def test_calls_that_make_something_new() -> None:
    query = "SELECT (BNODE('a') AS ?a) (BNODE('a') AS ?b) (BNODE() AS ?c) (UUID() AS ?d) (UUID() AS ?e) { ?x :age 12 }"
    ((a, b, c, d, e),) = rows(query)
    assert a == b
    assert len({a, c, d, e}) == 4


def test_a_named_graph() -> None:
    query = "SELECT ?g ?y FROM NAMED :one FROM NAMED :two { GRAPH ?g { :a :p ?y } }"
    facts = [Triple(iri("http://example.org/a"), iri("http://example.org/p"), literal(text)) for text in "12"]
    static = [
        Event(ALWAYS, (fact,), f"http://example.org/{name}") for fact, name in zip(facts, ("one", "two"), strict=True)
    ]
    outputs = squall.run(squall.plan(compiled(query)), [], static=[*static, Event(ALWAYS, (facts[0],), "other")])
    assert sorted(_plain(out.fact) for out in outputs) == [("one", "1"), ("two", "2")]


GRAPHS = """1 :a :p :b :one . 2 :b :p :c :one . 3 :c :p :d :two . 4 :a :q :b :two . 5 :d :p :e . 6 :one :p :a :one"""


def in_graphs(query: str, lexer: str = "sparql", windows: dict[str, str] | None = None) -> list[tuple[object, ...]]:
    """Returns the answers of a query over `GRAPHS` by time, with names without their namespace."""
    events = []
    for line in GRAPHS.split(" . "):
        time, *nodes = line.split()
        terms = [iri(f"http://example.org/{node[1:]}") for node in nodes]
        events.append(Event(int(time), (Triple(*terms[:3]),), terms[3][1:-1] if terms[3:] else ""))
    system = squall.compile(PREFIX + query, lexer=lexer, windows=windows)
    results = {planner: list(squall.run(squall.plan(system, planner), events)) for planner in ("greedy", "rete")}
    expected = Counter((time, str(item)) for time, item, *_ in oracle.outputs(system, events))
    for outputs in results.values():
        assert Counter((out.time, str(out.fact)) for out in outputs) == expected
    return sorted((out.time, *_plain(out.fact)) for out in results["rete"])


@pytest.mark.parametrize(
    ("group", "names", "expected"),
    [
        ("?s :p ?o", "g s", [(1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (6, "one", "one")]),
        ("", "g", [(1, "one"), (3, "two")]),
        (":a :p+ ?o", "g o", [(1, "one", "b"), (2, "one", "c")]),
        ("?s :p+ :d", "g s", [(3, "two", "c")]),
        ("?s :p? :c", "g s", [(1, "one", "c"), (2, "one", "b"), (3, "two", "c")]),
        ("?s :p* ?o FILTER (?s = ?o)", "g s", [
            (1, "one", "a"), (1, "one", "b"), (2, "one", "c"), (3, "two", "c"), (3, "two", "d"),
            (4, "two", "a"), (4, "two", "b"), (6, "one", "one")]),
        (":c :p* :c", "g", [(1, "one"), (3, "two")]),
        ("?s !:q ?o FILTER (?o = :b)", "g s", [(1, "one", "a")]),
        ("?s ^:p ?o FILTER EXISTS { ?s :p/:p? ?z }", "g s", [(2, "one", "b"), (6, "one", "a")]),
        ("?s :p ?o OPTIONAL { ?o :p ?z } FILTER (BOUND(?z))", "g z", [(2, "one", "c"), (6, "one", "b")]),
        ("?s ?p ?o MINUS { ?x :q ?y }", "g s", [(1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (4, "two", "a"),
                                                (6, "one", "one")]),
        ("?s ?p ?o MINUS { ?s :q ?y }", "g s", [(1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (6, "one", "one")]),
        ("?s ?p ?o MINUS { OPTIONAL { ?s :q ?y } }", "g s", [
            (1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (6, "one", "one")]),
        ("{ SELECT DISTINCT ?s { ?s ?p ?o } } MINUS { ?s :q ?y }", "g s", [
            (1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (6, "one", "one")]),
        ("?g :p ?o", "g o", [(6, "one", "a")]),
        ("?s :p ?o FILTER (?g = :one)", "g", []),
        ("?s :p ?o BIND (:one AS ?g)", "g s", [(1, "one", "a"), (2, "one", "b"), (6, "one", "one")]),
        ("{ ?s :q ?o } UNION { VALUES ?s { :x } }", "g s", [(1, "one", "x"), (3, "two", "x"), (4, "two", "a")]),
        ("GRAPH ?h { ?s :q ?o }", "g h", [(4, "one", "two"), (4, "two", "two")]),
        ("GRAPH :two { ?s :q ?o }", "g s", [(4, "one", "a"), (4, "two", "a")]),
        ("{ SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s }", "g s n", [
            (1, "one", "a", "1"), (2, "one", "b", "1"), (3, "two", "c", "1"), (4, "two", "a", "1"),
            (6, "one", "one", "1")]),
        ("{ SELECT (COUNT(*) AS ?n) (MIN(?o) AS ?m) { ?s :q ?o } }", "g n m", [
            (1, "one", "0", ""), (3, "two", "0", ""), (4, "two", "1", "b")]),
        ("{ SELECT DISTINCT ?p { ?s ?p ?o } }", "g p", [(1, "one", "p"), (3, "two", "p"), (4, "two", "q")]),
    ],
)  # fmt: skip
def test_the_existing_graphs(group: str, names: str, expected: list[tuple[object, ...]]) -> None:
    text = " ".join(f"?{name}" for name in names.split())
    assert in_graphs(f"SELECT {text} {{ GRAPH ?g {{ {group} }} }}") == expected


def test_a_graph_exists_while_it_has_facts() -> None:
    short = {"http://example.org/one": "RANGE 1ms", "http://example.org/two": "TRIPLES 1"}
    query = "SELECT ?g ?s { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { GRAPH :two { ?x :p ?y } } }"
    assert in_graphs(query, windows=short) == [(1, "one", "a"), (2, "one", "b"), (4, "two", "a"), (6, "one", "one")]


def test_graphs_of_an_update() -> None:
    system = compiled("INSERT { ?g :has ?s } WHERE { GRAPH ?g { ?s :p ?o } }")
    (out,) = squall.run(squall.plan(system), [Event(1, (Triple(*[iri("http://example.org/p")] * 3),), "urn:g")])
    assert str(out.fact) == "<urn:g> <http://example.org/has> <http://example.org/p> ."


@pytest.mark.parametrize(
    ("range", "expected"),
    [
        ("FROM NOW-PT0.005S TO NOW-PT0.003S STEP PT0.001S", [
            (5, "a"), (6, "a"), (6, "b"), (7, "b"), (10, "one"), (11, "one")]),
        ("FROM NOW-PT0.006S TO NOW-PT0.003S", [(6, "a"), (6, "b"), (12, "one")]),
        ("FROM NOW-PT0.002S TO NOW-PT0.000S STEP PT0.002S", [(2, "a"), (4, "b"), (8, "one")]),
    ],
)  # fmt: skip
def test_windows_in_the_past(range: str, expected: list[tuple[object, ...]]) -> None:
    query = f"SELECT ?s FROM NAMED WINDOW :w ON :one [{range}] {{ WINDOW :w {{ ?s :p ?o }} }}"
    assert in_graphs(query, "rspql") == expected


def test_a_slice_is_for_each_graph() -> None:
    first = "{ SELECT ?s { ?s ?p ?o } ORDER BY DESC(?s) LIMIT 1 }"
    assert in_graphs(f"SELECT ?g ?s {{ GRAPH ?g {first} }}") == [
        (1, "one", "a"), (2, "one", "b"), (3, "two", "c"), (6, "one", "one"),
    ]  # fmt: skip
    remainder = "{ SELECT ?s ?o { ?s ?p ?o } ORDER BY ?s ?o OFFSET 1 }"
    assert in_graphs(f"SELECT ?g ?s {{ GRAPH ?g {remainder} }}") == [
        (2, "one", "b"),
        (4, "two", "c"),
        (6, "one", "one"),
    ]


def test_windows_that_the_query_names() -> None:
    query = """SELECT ?w ?s FROM NAMED WINDOW :v ON :one [RANGE PT0.002S STEP PT0.002S]
    FROM NAMED WINDOW :w ON :two [ELEMENTS 1] { WINDOW ?w { ?s ?p ?o } }"""
    assert in_graphs(query, "rspql") == [
        (2, "v", "a"), (3, "v", "a"), (3, "w", "c"), (4, "v", "b"), (4, "w", "a"), (6, "w", "a"), (8, "v", "one"),
        (8, "w", "a"), (10, "w", "a"),
    ]  # fmt: skip


# Data


def test_an_ill_typed_literal_is_kept_as_a_term() -> None:
    data = """@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . :a :age "old"^^xsd:integer . :b :age 3 ."""
    assert rows("SELECT ?x ?n { ?x :age ?n } ORDER BY ?x", data) == [("a", "old"), ("b", "3")]
    assert rows("SELECT ?x { ?x :age ?n FILTER (?n > 1) }", data) == [("b",)]
    assert rows("SELECT ?x (?n + 1 AS ?m) { ?x :age ?n } ORDER BY ?x", data) == [("a", ""), ("b", "4")]
    typed = "<http://www.w3.org/2001/XMLSchema#integer>"
    assert rows(f"SELECT ?x {{ ?x :age ?n FILTER (SAMETERM(?n, 'old'^^{typed})) }}", data) == [("a",)]
    assert rows(f"SELECT ?x {{ ?x :age 'old'^^{typed} }}", data) == [("a",)]


# Updates


def test_an_update_is_a_standing_rule() -> None:
    update = """DELETE { ?x :old ?y } INSERT { ?x :new ?y } WHERE { ?x :old ?y } ;
    INSERT { ?x :newer ?y } WHERE { ?x :new ?y }"""
    outputs = list(squall.run(squall.plan(compiled(update)), stream("1 :a :old 1")))
    results = {(out.time, out.fact.predicate, out.rule) for out in outputs if isinstance(out.fact, Triple)}
    new, newer = iri("http://example.org/new"), iri("http://example.org/newer")
    assert results == {(2, new, "update-1"), (3, newer, "update-2")}


@pytest.mark.parametrize("place", ["{}", "GRAPH :g {{ {} }}"])
def test_deleted_data_are_removed_whenever_they_arrive(place: str) -> None:
    fact, read = place.format(":a :p 1"), place.format("?x :p ?y")
    system = compiled(f"DELETE DATA {{ {fact} }} ; SELECT ?y {{ {read} }}")
    events = stream("1 @:g :a :p 1\n3 @:g :a :p 2\n5 @:g :a :p 1")
    outputs = squall.run(squall.plan(profiles.apply_profile(system, output="dstream")), events)
    assert [out.time for out in outputs] == [2, 6]


def test_data_sets_of_updates() -> None:
    """Facts in no graph belong to the graph of WITH; the pattern reads the graph of USING instead. These graphs are
    streams."""
    update = """WITH :g INSERT { ?x :q ?y } WHERE { ?x :p ?y } ;
    WITH :g INSERT { ?x :r ?y } USING :h USING NAMED :i WHERE { ?x :p ?y GRAPH ?g { ?y :p ?z } } ;
    SELECT ?x ?p { GRAPH :g { ?x ?p ?y } FILTER(?p != :p) }"""
    system = compiled(update)
    assert documents(system) == ()
    events = stream("1 @:g :a :p :b\n1 @:h :c :p :d\n1 @:i :d :p :e\n1 :x :p :y")
    results = {_plain(out.fact) for out in squall.run(squall.plan(system), events) if isinstance(out.fact, Solution)}
    assert results == {("a", "q"), ("c", "r")}


def test_a_graph_that_an_update_writes_is_no_document() -> None:
    writes = "INSERT { GRAPH :g { ?x :q ?y } } WHERE { ?x :p ?y }"
    system = compiled(f"{writes} ; SELECT * FROM :g FROM <h.ttl> {{ ?x :q ?y }}")
    assert documents(system) == (Document("h.ttl"),)
    outputs = squall.run(squall.plan(system), stream("1 :a :p :b"))
    assert [out.time for out in outputs if isinstance(out.fact, Solution)] == [2]


# Documents


def test_documents(tmp_path: Path) -> None:
    program = tmp_path / "q.rq"
    program.write_text(
        f"SELECT * FROM <a.ttl> FROM NAMED <{(tmp_path / 'b c.ttl').as_uri()}> FROM <urn:c> {{ ?s ?p ?o }}"
    )
    for name in ("a.ttl", "b c.ttl", "c.nt"):
        (tmp_path / name).write_text(f"<urn:{name[0]}> <urn:p> <urn:o> .")
    system = squall.compile(program)
    names = ("a.ttl", (tmp_path / "b c.ttl").as_uri(), "urn:c")
    assert documents(system) == tuple(map(Document, names))
    events = list(load(system, {"urn:c": str(tmp_path / "c.nt")}))
    assert {event.stream: event.facts[0][0] for event in events} == dict(
        zip(names, ("<urn:a>", "<urn:b>", "<urn:c>"), strict=True)
    )
    assert {event.time for event in events} == {ALWAYS}
    assert len(list(load(system, streams=("urn:c",)))) == 2
    outputs = list(squall.run(squall.plan(system), [], static=events))
    assert sorted(_plain(out.fact)[0] for out in outputs) == ["<urn:a", "<urn:c"]


def test_a_document_that_has_to_be_fetched() -> None:
    with pytest.raises(UsageError, match="is not loaded from there") as caught:
        load(compiled("SELECT * FROM <http://example.org/g> { ?s ?p ?o }"))
    assert caught.value.hint == "download it, and name its file: `--graph http://example.org/g=FILE`"


def test_the_command_line(tmp_path: Path) -> None:
    program, data = tmp_path / "q.rq", tmp_path / "g.nt"
    program.write_text("SELECT ?s ?t FROM <urn:g> { ?s ?p ?o }")
    data.write_text("<urn:s> <urn:p> <urn:o> .\n")
    inputs = ["build", str(program), "--sink", str(tmp_path / "out.csv")]
    process = CliRunner().invoke(cli.command, [*inputs, "--graph", f"urn:g={data}"])
    assert "urn:s" in (tmp_path / "out.csv").read_text()
    assert "translation warning: `?t` is selected, but nothing binds it" in process.stderr
    wrong = CliRunner().invoke(cli.command, [*inputs, "--graph", "urn:g"])
    assert isinstance(wrong.exception, UsageError)


# What is refused, and warned of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * { SERVICE :s { ?x ?y ?z } }", ["`SERVICE` is not supported: a run asks no other servers"]),
        ("SELECT (:f(1) AS ?x) {}", ["there is no function <http://example.org/f>"]),
        ("SELECT (<http://www.w3.org/2001/XMLSchema#integer>(1, 2) AS ?x) {}",
         ["<http://www.w3.org/2001/XMLSchema#integer> does not take 2 arguments"]),
        ("SELECT (<http://www.w3.org/2001/XMLSchema#integer>(DISTINCT 1) AS ?x) {}",
         ["`DISTINCT` in <http://www.w3.org/2001/XMLSchema#integer> is not supported"]),
        ("LOAD <x> ; CLEAR ALL ; COPY :a TO :b",
         ["`LOAD` is no standing rule", "`CLEAR` is no standing rule", "`COPY` is no standing rule"]),
    ],
)  # fmt: skip
def test_refused(text: str, expected: list[str]) -> None:
    assert messages(text) == expected
    with pytest.raises((SquallError, Errors)) as caught:
        compiled(text)
    errors = caught.value.errors if isinstance(caught.value, Errors) else [caught.value]
    assert all(error.origin and error.hint for error in errors)


@pytest.mark.parametrize(
    ("text", "lexer", "expected"),
    [
        ("SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT1S] { WINDOW :v { ?x :p ?y } }", "rspql",
         "there is no window <http://example.org/v>"),
    ],
)  # fmt: skip
def test_refused_of_streams(text: str, lexer: str, expected: str) -> None:
    assert messages(text, lexer) == [expected]


def test_places() -> None:
    with pytest.raises(SquallError) as caught:
        compiled("SELECT *\n  { ?x :p ?y SERVICE :s { ?x ?y ?z } }")
    assert caught.value.origin is not None
    assert (caught.value.origin.line, caught.value.origin.column) == (3, 14)


UNBOUND = ("`?y` never has a value here: nothing binds it", "bind it by a pattern, BIND or VALUES before")


@pytest.mark.parametrize(
    ("text", "lexer", "expected"),
    [
        ("SELECT ?nam { ?x :p ?name }", "sparql",
         [("`?nam` is selected, but nothing binds it", "did you mean `?name`?")]),
        ("SELECT ?y { ?x :p 1 } GROUP BY ?y", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p ?nam FILTER (?x = ?name) }", "sparql",
         [(UNBOUND[0].replace("?y", "?name"), "did you mean `?nam`?")]),
        ("SELECT * { ?x :p 1 FILTER (?x = 2 || ?y) }", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p ?y { ?x :q 1 FILTER (?y = 2) } }", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p 1 BIND (?y + 1 AS ?z) ?x :q ?y }", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p 1 OPTIONAL { ?x :p ?z FILTER (?z = ?y) } }", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p ?y OPTIONAL { ?x :p ?z FILTER (?z = ?y) } }", "sparql", []),
        ("SELECT * { ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER (?z = ?y) } }", "sparql", []),
        ("SELECT * { ?x :p ?y MINUS { ?x :q ?z FILTER (?z = ?y) } }", "sparql", [UNBOUND]),
        ("SELECT * { ?x :p ?z } ORDER BY ?y", "sparql", [UNBOUND]),
        ("SELECT ?x { ?x :p ?y } ORDER BY ?y", "sparql", []),
        ("SELECT (?y + 1 AS ?z) { ?x :p 1 }", "sparql", [UNBOUND]),
        ("SELECT (?y + 1 AS ?z) (?z + 1 AS ?u) { ?x :p ?y } ORDER BY ?u", "sparql", []),
        ("SELECT (AVG(?y) AS ?z) { ?x :p 1 }", "sparql", [UNBOUND]),
        ("SELECT ?x (AVG(?y) AS ?z) { ?x :p ?y } GROUP BY ?x HAVING (COUNT(*) > 1) ORDER BY ?z", "sparql", []),
        ("SELECT * FROM NAMED WINDOW :v ON :s [RANGE PT1S] FROM NAMED WINDOW :w ON :s [RANGE PT2S] "
         "{ WINDOW ?w { ?x :p ?y FILTER (?w = :v) } }", "rspql",
         [(UNBOUND[0].replace("?y", "?w"), UNBOUND[1])]),
        ("DELETE { ?x :p ?z } WHERE { ?x :p ?z FILTER (?z > ?y) }", "sparql", [UNBOUND]),
        ("# nothing", "sparql", [("there is no query and no update in the program", None)]),
        ("SELECT ?x ?n { { SELECT ?x (COUNT(*) AS ?n) { ?x :p 1 } GROUP BY ?x } }", "sparql", []),
        ("CONSTRUCT { ?x :p ?z . ?x :q 1 } { ?x :p 1 }", "sparql",
         [("`?z` is in the template, but nothing binds it", "bind it in the pattern, or leave the triple out")]),
        ("SELECT * FROM STREAM :s [RANGE 1s STEP 2s] { ?x :p ?y }", "csparql",
         [("the window leaves gaps: its step is longer than its range", None)]),
        ("SELECT * FROM NAMED WINDOW :w ON :s [ELEMENTS 1 STEP 2] { WINDOW :w { ?x :p ?y } }", "rspql",
         [("the window leaves gaps: its step is longer than its range", None)]),
    ],
)  # fmt: skip
def test_warnings(text: str, lexer: str, expected: list[tuple[str, str | None]]) -> None:
    assert [(warning.message, warning.hint) for warning in warnings(compiled(text, lexer))] == expected


def test_a_template_that_lacks_a_variable_still_makes_the_rest() -> None:
    facts = [out.fact for out in answers("CONSTRUCT { ?x :made ?z . ?x :made 1 } { ?x :age 12 }")]
    assert len(facts) == 1


def test_variables_of_a_text_never_meet_those_of_the_translation() -> None:
    names = {variable for rule in rules(squall.compile(GOLDEN / "paths.rq")) for variable in _variables(rule)}
    assert all(" " in name.name or name.name in ("x", "y") for name in names)


def _variables(rule: System) -> Sequence[Variable]:
    from squall.model import variables

    return [name for joinable in rule.joinables for name in variables(joinable)]
