"""Named graphs: how patterns read them in streams, static data, documents and derived streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import squall
from squall.errors import TranslatorError
from squall.model import System, with_windows
from squall.model.windows import CountWindow, SlidingWindow
from squall.rdf import ALWAYS, Event, Solution, Triple, iri, iri_text
from squall.streams import DeadLetterFile, open_source, open_static
from squall.streams.sources import documents
from squall.testing import oracle

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}>\n"
PLANNERS = ("greedy", "rete")

TIMED = f"""\
1 <{E}a> <{E}p> <{E}b> <{E}one> .
1 <{E}a> <{E}p> <{E}c> .
2 <{E}b> <{E}p> <{E}c> <{E}two> .
2 <{E}b> <{E}p> <{E}c> <{E}one> .
3 <{E}c> <{E}p> <{E}a> _:g .
"""
TRIG = f"""\
@prefix : <{E}> .
:a :p :b .
:one {{ :b :p :c . :b :q :d }}
:two {{ :c :p :d }}
"""


def event(time: int, text: str, stream: str = "", graph: str = "") -> Event:
    facts = tuple(Triple(*(iri(E + name) for name in fact.split())) for fact in text.split(" . "))
    return Event(time, facts, stream and E + stream, graph=graph and f"<{E}{graph}>")


def answers(
    text: str, events: Sequence[Event], static: Sequence[Event] = (), lexer: str = "sparql", **windows: str
) -> list[tuple[object, ...]]:
    """Returns the answers of a query, equal for both planners and the oracle: the time, and the names of the values."""
    system = squall.compile(PREFIX + text, lexer=lexer, windows={E + name: item for name, item in windows.items()})
    return found_by(system, events, static)


def falling(query: str) -> System:
    """Returns a query that outputs which of its solutions expire."""
    system = squall.compile(PREFIX + query, lexer="sparql")
    return replace(system, subsystems=tuple(replace(subsystem, output="dstream") for subsystem in system.subsystems))


def found_by(system: System, events: Sequence[Event], static: Sequence[Event] = ()) -> list[tuple[object, ...]]:
    expected = Counter((time, str(item)) for time, item, *_ in oracle.outputs(system, events, static))
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), events, static=static))
        assert Counter((out.time, str(out.fact)) for out in outputs) == expected
    return sorted((out.time, *map(_name, _values(out.fact))) for out in outputs)


def _values(fact: object) -> tuple[str | None, ...]:
    return fact.values if isinstance(fact, Solution) else tuple(fact)  # type: ignore[arg-type]


def _name(term: str | None) -> str:
    return "" if term is None else iri_text(term).removeprefix(E) if term[0] == "<" else term[:2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "timed.nqt").write_text(TIMED)
    (tmp_path / "data.trig").write_text(TRIG)
    return tmp_path


def came(uri: str) -> list[Event]:
    return [event for batch in open_source(uri).batches() for event in batch]


# What sources bring


def test_timed_quads_come_in_their_graphs() -> None:
    result = came("timed.nqt")
    assert result[:4] == [
        event(1, "a p b", graph="one"),
        event(1, "a p c"),
        event(2, "b p c", graph="two"),
        event(2, "b p c", graph="one"),
    ]
    assert result[4].graph.startswith("_:g.")


def test_documents_have_graphs() -> None:
    assert came(f"data.trig?time=5&stream={E}s") == [
        event(5, "a p b", "s"),
        event(5, "b p c . b q d", "s", "one"),
        event(5, "c p d", "s", "two"),
    ]


def test_lines_of_quads_have_graphs(folder: Path) -> None:
    (folder / "data.nq").write_text("".join(line.split(" ", 1)[1] for line in TIMED.splitlines(True)))
    assert [event.graph[:3] for event in came("data.nq")] == ["<ht", "", "<ht", "<ht", "_:g"]


def test_a_graph_has_the_time_that_is_stated_of_its_name(folder: Path) -> None:
    """TriG is written in this way, and the RDF Stream Processing Community Group defines timestamped graphs so."""
    (folder / "graphs.trig").write_text(
        f"""@prefix : <{E}> . @prefix prov: <http://www.w3.org/ns/prov#> .
        :one prov:generatedAtTime "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
        :one {{ :a :p :b . :b :p :c }}
        :two prov:generatedAtTime 2000 .
        :two {{ :c :p :d }}
        :three {{ :e prov:generatedAtTime 3000 ; :p :f . :g :p :h }}"""
    )
    ledger = DeadLetterFile()
    source = open_source("graphs.trig?time=http://www.w3.org/ns/prov%23generatedAtTime", ledger)
    results = [event for batch in source.batches() for event in batch]
    assert [(event.time, len(event.facts), _name(event.graph) if event.graph else "") for event in results] == [
        (1000, 1, ""), (1000, 2, "one"), (2000, 1, ""), (2000, 1, "two"), (3000, 2, "three"),
    ]  # fmt: skip
    assert sum(ledger.counts.values()) == 1


# Who reads them

STREAM = [
    event(1, "a p b", "s", "one"),
    event(2, "a p c", "s"),
    event(3, "b p c", "s", "two"),
    event(3, "b p d", "", "one"),
    event(4, "c p d"),
    event(5, "d p e", "one"),
    event(6, "e p f", "t", "two"),
]


def test_a_default_graph_has_all_that_streams_bring() -> None:
    assert answers("SELECT ?x { ?x :p ?y }", STREAM) == [
        (1, "a"), (2, "a"), (3, "b"), (3, "b"), (4, "c"), (5, "d"), (6, "e"),
    ]  # fmt: skip
    assert len(answers(f"SELECT ?x FROM STREAM <{E}s> {{ ?x :p ?y }}", STREAM, lexer="csparql")) == 3


def test_graphs_are_streams_and_what_they_bring() -> None:
    assert answers("SELECT ?g ?y { GRAPH ?g { ?x :p ?y } }", STREAM) == [
        (1, "one", "b"), (1, "s", "b"), (2, "s", "c"), (3, "one", "d"), (3, "s", "c"), (3, "two", "c"), (5, "one", "e"),
        (6, "t", "f"), (6, "two", "f"),
    ]  # fmt: skip
    assert answers("SELECT ?y { GRAPH :one { ?x :p ?y } }", STREAM) == [(1, "b"), (3, "d"), (5, "e")]
    assert answers("SELECT ?y { GRAPH :s { ?x :p ?y } }", STREAM) == [(1, "b"), (2, "c"), (3, "c")]


def test_a_graph_is_read_through_the_windows_of_its_streams() -> None:
    query = falling("SELECT ?x { GRAPH :one { ?x :p ?y } }")
    system = with_windows(query, window=SlidingWindow(2), windows={f"{E}s": SlidingWindow(10)})
    assert found_by(system, STREAM) == [(5, "b"), (7, "d"), (11, "a")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("FROM STREAM :s [RANGE 2ms] { GRAPH ?g { ?x :p ?y } }", [(1, "one", "b"), (3, "two", "c")]),
        ("FROM STREAM :s { GRAPH :two { ?x :p ?y } }", [(3, "", "c")]),
        ("FROM STREAM :s { GRAPH :s { ?x :p ?y } }", []),
        ("FROM NAMED STREAM :s { GRAPH ?g { ?x :p ?y } }", [
            (1, "one", "b"), (1, "s", "b"), (2, "s", "c"), (3, "s", "c"), (3, "two", "c")]),
        ("FROM NAMED STREAM :s FROM NAMED STREAM :one { GRAPH :one { ?x :p ?y } }", [(5, "", "e")]),
        ("FROM NAMED STREAM :s FROM NAMED STREAM :one { GRAPH ?g { ?x :p ?y } FILTER (?g = :one) }", [(5, "one", "e")]),
        ("FROM NAMED STREAM :s [TRIPLES 2] { GRAPH :two { ?x :p ?y } }", [(3, "", "c")]),
        ("FROM NAMED STREAM :s { GRAPH ?g { SELECT ?y { ?x :p ?y } ORDER BY DESC(?y) LIMIT 1 } }", [
            (1, "one", "b"), (1, "s", "b"), (2, "s", "c"), (3, "two", "c")]),
    ],
)  # fmt: skip
def test_graphs_inside_of_the_streams_of_a_query(query: str, expected: list[tuple[object, ...]]) -> None:
    assert sorted(set(answers(f"SELECT ?g ?y {query}", STREAM, lexer="csparql"))) == sorted(set(expected))


def test_a_window_of_triples_counts_those_of_all_graphs() -> None:
    events = [event(1, "a p b", "s", "one"), event(2, "b p b", "s"), event(3, "c p b", "s", "two")]
    system = with_windows(falling("SELECT ?x { GRAPH :one { ?x :p ?y } }"), windows={f"{E}s": CountWindow(2)})
    assert found_by(system, events) == [(3, "a")]


def test_a_window_has_graphs() -> None:
    query = """REGISTER RSTREAM :out AS SELECT ?g ?y FROM NAMED WINDOW :w ON :s [RANGE PT0.004S STEP PT0.002S]
    { WINDOW :w { GRAPH ?g { ?x :p ?y } } }"""
    assert answers(query, STREAM, lexer="rspql") == [
        (2, "one", "b"), (4, "one", "b"), (4, "two", "c"), (6, "two", "c"),
    ]  # fmt: skip
    assert answers(query.replace("?g {", ":two {"), STREAM, lexer="rspql") == [(4, "", "c"), (6, "", "c")]


def test_event_times_of_named_graphs() -> None:
    query = f"SELECT ?t FROM STREAM <{E}s> {{ GRAPH %s {{ ?x :p ?y BIND (timestamp(?x, :p, ?y) AS ?t) }} }}"
    for graph in (":two", "?g"):
        assert {row[0] for row in answers(query % graph, STREAM, lexer="csparql")} <= {1, 3}
        assert answers(query % graph, STREAM, lexer="csparql")


# Static data are a data set

STATIC = [event(ALWAYS, "a p b"), event(ALWAYS, "b p c", graph="one"), event(ALWAYS, "c p d", "s"),
          event(ALWAYS, "d p e", "s", "two")]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?x { ?x :p ?y }", ["a", "c"]),
        ("SELECT ?x { GRAPH :one { ?x :p ?y } }", ["b"]),
        ("SELECT ?x { GRAPH :s { ?x :p ?y } }", ["c"]),
        ("SELECT ?g { GRAPH ?g { ?x :p ?y } }", ["one", "s", "two"]),
        ("SELECT ?x FROM :one { ?x :p ?y }", ["a", "b"]),
        ("SELECT ?x FROM :s { ?x :p ?y }", ["a", "c"]),
        ("SELECT ?x FROM NAMED :two { GRAPH ?g { ?x :p ?y } }", ["d"]),
        ("SELECT ?g FROM NAMED :s { GRAPH ?g { ?x :p ?y } }", ["s", "two"]),
        ("SELECT ?g FROM :s { GRAPH ?g { ?x :p ?y } }", []),
    ],
)
def test_static_data_in_a_graph_are_in_that_alone(query: str, expected: list[str]) -> None:
    assert [name for _, name in answers(query, [], STATIC)] == expected


def test_rules_read_static_data_in_graphs() -> None:
    rules = squall.compile(f"[(?x <{E}p> ?y) -> (?y <{E}q> ?x)]", lexer="jena")
    assert [row[1] for row in found_by(rules, [], STATIC)] == ["b", "c", "d", "e"]


def test_documents_are_data_sets() -> None:
    def found(query: str) -> list[str]:
        system = squall.compile(PREFIX + query, lexer="sparql")
        static = list(documents.load(system, {f"{E}d": "data.trig"}))
        return [str(name) for _, name in found_by(system, [], static)]

    assert found("SELECT ?x FROM :d { ?x :p ?y }") == ["a"]
    assert found("SELECT ?g FROM NAMED :d { GRAPH ?g { ?x :p ?y } }") == ["d", "one", "two"]
    assert found("SELECT ?x FROM NAMED :d { GRAPH :two { ?x :p ?y } }") == ["c"]
    assert [event.graph for event in open_static("data.trig")] == ["", f"<{E}one>", f"<{E}two>"]


# Changes


def test_a_removal_acts_on_its_graph() -> None:
    events = [
        event(1, "a p b", graph="one"),
        event(1, "a p b", graph="two"),
        event(2, "a p b")._replace(facts=(), removed=event(2, "a p b").facts, graph=f"<{E}one>"),
    ]
    system = with_windows(falling("SELECT ?g { GRAPH ?g { ?x :p ?y } }"), removals=True)
    assert found_by(system, events) == [(2, "one")]


@pytest.mark.parametrize(
    ("template", "expected"),
    [("?x :p ?y", [(6, "one"), (6, "s"), (6, "t")]), ("GRAPH :one { ?x :p ?y }", [(6, "one"), (6, "s")])],
)
def test_updates_delete_from_graphs(template: str, expected: list[tuple[object, ...]]) -> None:
    events = [event(1, "a p b", "s", "one"), event(2, "a p b", "t"), event(5, "a stop b")]
    update = squall.compile(f"{PREFIX}DELETE {{ {template} }} WHERE {{ ?x :stop ?y . ?x :p ?y }}", lexer="sparql")
    system = System(subsystems=(update, falling("SELECT ?g { GRAPH ?g { ?x :p ?y } }")))
    assert found_by(system, events) == expected


# Streams that the program makes


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ("?g", [(1, "a", "b"), (1, "made", "a"), (1, "made", "b")]),
        (":a", [(1, "", "b")]),
        (":made", [(1, "", "a"), (1, "", "b")]),
    ],
)
def test_what_a_program_streams_in_graphs_is_in_these(graph: str, expected: list[tuple[object, ...]]) -> None:
    result = """REGISTER STREAM :made AS CONSTRUCT { GRAPH ?x { ?x :q ?y } ?y :q ?x }
    FROM STREAM :s [RANGE 1ms] { ?x :p ?y }"""
    request = f"REGISTER QUERY Asked AS SELECT ?g ?z {{ GRAPH {graph} {{ ?u :q ?z }} }}"
    parts = [squall.compile(PREFIX + text, lexer="csparql") for text in (result, request)]
    system = System(subsystems=(*parts,))
    expected_of = Counter((time, str(item)) for time, item, *_ in oracle.outputs(system, STREAM[:1]))
    for planner in PLANNERS:
        outputs = list(squall.run(squall.plan(system, planner), STREAM[:1]))
        assert Counter((out.time, str(out.fact)) for out in outputs) == expected_of
        solutions = [out for out in outputs if isinstance(out.fact, Solution)]
        assert sorted((out.time, *map(_name, _values(out.fact))) for out in solutions) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?z FROM STREAM :made [RANGE 1ms] { ?u :q ?z }", ["a", "b"]),
        ("SELECT ?z { ?u :q ?z }", ["a", "b"]),
        ("SELECT ?z FROM :a { ?u :q ?z }", ["b"]),
        ("SELECT ?z FROM :made { ?u :q ?z }", ["a", "b"]),
        ("SELECT ?g { GRAPH ?g { ?u :q :b } }", ["a", "made"]),
        ("SELECT ?g FROM NAMED STREAM :made [RANGE 1ms] { GRAPH ?g { ?u :q :b } }", ["a", "made"]),
        ("SELECT ?z { GRAPH :made { ?u :q ?z } }", ["a", "b"]),
        ("SELECT ?z { GRAPH :a { ?u :q ?z } }", ["b"]),
        ("SELECT ?t { ?u :q ?z . BIND(f:timestamp(?u, :q, ?z) AS ?t) FILTER(BOUND(?t)) }", []),
    ],
)
def test_what_a_program_streams_of_static_data_is_read_as_all_that_it_streams(query: str, expected: list[str]) -> None:
    """A derived stream is not a dataset: a fact in a named graph at `ALWAYS` is in the stream, too."""
    result = """REGISTER STREAM :made AS CONSTRUCT { GRAPH ?x { ?x :q ?y } ?y :q ?x } { ?x :p ?y }"""
    request = query.replace("SELECT", "REGISTER QUERY Asked AS SELECT")
    prefix = PREFIX + "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>\n"
    parts = [squall.compile(prefix + text, lexer="csparql") for text in (result, request)]
    system = System(subsystems=(*parts,))
    value = found_by(system, [], [event(ALWAYS, "a p b")])
    assert [row[1] for row in value if len(row) == 2] == expected


def test_a_stream_with_a_graph_that_it_writes_depends_on_itself() -> None:
    text = "REGISTER STREAM :made AS CONSTRUCT { GRAPH :one { ?y :p ?x } } FROM :one { ?x :p ?y }"
    with pytest.raises(TranslatorError, match=r"reads the stream <http://example\.org/made> that is derived from"):
        squall.compile(PREFIX + text, lexer="csparql")
