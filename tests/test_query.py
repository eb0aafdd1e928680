"""Results of runs, as rows, tables and graphs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyoxigraph
import pytest
import rdflib

import squall
from squall.contracts import Options
from squall.errors import ArgumentError, SquallError, UsageError
from squall.rdf import ALWAYS, Event
from squall.results import MAX_ROWS_IN_HTML, Results
from squall.testing import stream

READINGS = stream("1000 :hall :degrees 21\n2000 :attic :degrees 34.5\n2500 :attic :name 'A'\n3000 :hall :degrees 19")
SELECT = """PREFIX : <http://example.org/>
SELECT ?room ?d ?name WHERE { ?room :degrees ?d OPTIONAL { ?room :name ?name } }"""
CONSTRUCT = "PREFIX : <http://example.org/> CONSTRUCT { ?r :warm ?d } WHERE { ?r :degrees ?d FILTER(?d > 20) }"
E = "http://example.org/"


def results(program: str, events: Any = READINGS, **settings: Any) -> Results[Any]:
    return squall.query(program, sources=events, lexer="sparql", **settings)


def test_rows_have_python_values() -> None:
    rows = list(results(SELECT).rows())
    first, second, *_ = rows
    assert (first.time, first.room, first.d, first.name) == (1000, E + "hall", 21, None)
    assert (second["d"], len(second), list(second)) == (Decimal("34.5"), 3, ["room", "d", "name"])
    assert repr(first).startswith("Row(time=1000, rule=")
    with pytest.raises(AttributeError, match="there is no column `x`: there are room, d, name"):
        first.x  # noqa: B018


def test_facts_and_answers_have_columns() -> None:
    (row, *_) = results(CONSTRUCT).rows()
    assert dict(row) == {"subject": E + "hall", "predicate": E + "warm", "object": 21}
    rows = results("PREFIX : <http://example.org/> ASK { ?r :degrees ?d }").rows()
    assert [row.boolean for row in rows] == [False, True]
    rules = "[r: (?a <urn:p> ?b) -> (?b <urn:q> ?a)]"
    (row,) = squall.query(rules, lexer="jena", sources=[], static=stream("always :a <urn:p> :b")).rows()
    assert (row.time, row.rule, row.object) == (ALWAYS, "r", E + "a")


def test_outputs_are_read_once_and_as_they_come() -> None:
    times: list[int] = []

    def events() -> Iterator[Event]:
        for event in READINGS:
            times.append(event.time)
            yield event

    outputs = results(CONSTRUCT, events())
    assert next(outputs).time == 1000
    assert len(times) < len(READINGS)
    assert [output.time for output in outputs] == [2000]
    assert list(outputs) == []


def test_a_table_of_arrow_has_typed_columns() -> None:
    table = results(SELECT).to_arrow()
    assert table.schema.field("time").type == pyarrow.timestamp("ms", "UTC")
    assert pyarrow.types.is_decimal(table.schema.field("d").type)
    assert table.column_names == ["time", "room", "d", "name"]
    times = table["time"].to_pylist()
    assert times[0] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert len(times) == table.num_rows == 4  # the attic twice: without and with its name
    assert sorted(table["d"].to_pylist()) == [19, 21, Decimal("34.5"), Decimal("34.5")]


@pytest.mark.parametrize(
    ("values", "type", "expected"),
    [
        (["1", "2"], "int64", [1, 2]),
        (["1", '"x"'], "string", ["1", "x"]),
        (["1", "2.5e0"], "double", [1.0, 2.5]),
        (["1.5", "2.5e0"], "double", [1.5, 2.5]),
        (["true", "false"], "bool", [True, False]),
        (["true", "1"], "string", ["true", "1"]),
        (["9223372036854775808"], "string", ["9223372036854775808"]),
        ([":a", '"x"@en'], "string", [E + "a", "x"]),
        (['"PT1S"^^xsd:duration'], "duration[us]", None),
        (['"2026-01-01"^^xsd:date', '"2026-01-01Z"^^xsd:date'], "string", ["2026-01-01", "2026-01-01Z"]),
        (['"01:02:03Z"^^xsd:time'], "string", ["01:02:03Z"]),
        (['"01:02:03"^^xsd:time'], "time64[us]", None),
    ],
)
def test_types_of_columns(values: list[str], type: str, expected: list[object] | None) -> None:
    rows = " ".join(values)
    xsd = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
    table = results(f"{xsd} SELECT ?v WHERE {{ ?s :p ?o VALUES ?v {{ {rows} }} }}", stream("1 :s :p :o")).to_arrow()
    assert str(table.schema.field("v").type) == type
    assert expected is None or sorted(map(str, table["v"].to_pylist())) == sorted(map(str, expected))


def test_what_always_holds_has_no_time_and_changes_say_which() -> None:
    table = results(CONSTRUCT, [], static=stream("always :hall :degrees 25")).to_arrow()
    assert table["time"].to_pylist() == [None]
    table = results(CONSTRUCT, window="RANGE 1s", output="changes").to_arrow()
    assert table["change"].to_pylist() == ["insert", "delete", "insert", "delete"]


def test_results_of_several_programs_are_one_table() -> None:
    Path("a.sparql").write_text(SELECT)
    Path("b.sparql").write_text(CONSTRUCT)
    table = squall.query("a.sparql", "b.sparql", sources=READINGS).to_arrow()
    assert table.column_names[:2] == ["time", "rule"]
    assert {"room", "d", "name", "subject", "predicate", "object"} <= set(table.column_names)
    assert set(table["rule"].to_pylist()) == {"a", "b"}


def test_frames() -> None:
    frame = results("PREFIX : <http://example.org/> SELECT ?r ?d { ?r :degrees ?d FILTER(?d < 30) }").to_pandas()
    assert str(frame.dtypes["d"]) == "Int64"
    assert frame["d"].sum() == 40
    frames = results(SELECT).to_polars()
    assert frames["room"].to_list()[0] == E + "hall"
    assert frames.height == 4


def test_graphs() -> None:
    graph = results(CONSTRUCT).to_graph()
    assert (rdflib.URIRef(E + "hall"), rdflib.URIRef(E + "warm"), rdflib.Literal(21)) in graph
    assert len(graph) == 2
    remaining = results(CONSTRUCT, [*READINGS, Event(9000, ())], window="RANGE 1s", output="changes")
    assert len(remaining.to_graph()) == 0
    store = squall.query(
        "PREFIX : <http://example.org/> CONSTRUCT { GRAPH :g { ?r :is :here } } WHERE { ?r :degrees ?d }",
        sources=READINGS, lexer="sparql",
    ).to_store()  # fmt: skip
    assert {str(quad.graph_name) for quad in store} == {f"<{E}g>"}
    assert isinstance(store, pyoxigraph.Store)


@pytest.mark.parametrize("form", ["to_graph", "to_store"])
def test_solutions_are_no_graph(form: str) -> None:
    with pytest.raises(UsageError, match="`rows` and `to_arrow`"):
        getattr(results(SELECT), form)()


def test_a_variable_must_not_have_the_name_of_a_column() -> None:
    with pytest.raises(UsageError, match=r"`\?time` has the name of a column"):
        results("PREFIX : <http://example.org/> SELECT ?time { ?r :degrees ?time }").to_arrow()


@pytest.mark.parametrize("library", ["arrow", "pandas", "polars"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow" if library == "arrow" else library, None)
    with pytest.raises(UsageError, match=r"squall\[frames\]"):
        getattr(results(SELECT), f"to_{library}")()


def test_a_notebook_shows_the_first_rows_and_loses_none() -> None:
    many = stream("\n".join(f"{time} :room{time} :degrees 30" for time in range(1, 41)))
    outputs = results(CONSTRUCT, many)
    html = outputs._repr_html_()
    assert html.count("<tr>") == 1 + MAX_ROWS_IN_HTML
    assert "and more" in html
    assert "<td>1970-01-01T00:00:00.001Z</td>" in html
    assert len(list(outputs)) == 40
    literal = results("SELECT ?o { ?s ?p ?o }", stream("1 :s :p '<b>'"))._repr_html_()
    assert "&lt;b&gt;" in literal
    assert "<b>" not in literal


def test_sources_are_addresses_or_events() -> None:
    Path("in.ntt").write_text(f'1000 <{E}hall> <{E}degrees> "25"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    Path("static.nt").write_text(f'<{E}attic> <{E}degrees> "26"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    assert [row.object for row in results(CONSTRUCT, "in.ntt", static=Path("static.nt")).rows()] == [26, 25]
    assert [row.object for row in results(CONSTRUCT, ["in.ntt"]).rows()] == [25]
    ends = results(CONSTRUCT, "in.ntt?window=RANGE 1s", output="dstream")
    assert [row.time for row in ends.rows()] == [2000]
    graph = rdflib.Graph().parse("static.nt")
    assert [row.object for row in results(CONSTRUCT, [], static=graph).rows()] == [26]
    with pytest.raises(ArgumentError, match="events are expected"):
        results(CONSTRUCT, 5)


@pytest.mark.parametrize("sources", ["in.ntt", READINGS])
def test_a_checkpoint_recognises_static_data_by_their_content(sources: Any) -> None:
    Path("in.ntt").write_text(f'1000 <{E}hall> <{E}degrees> "25"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    Path("static.nt").write_text(f'<{E}attic> <{E}name> "A" .\n')
    options = Options(checkpoint=Path("checkpoint"))
    assert list(results(CONSTRUCT, sources, static="static.nt", options=options))
    Path("static.nt").write_text(f'<{E}attic> <{E}name> "B" .\n')
    with pytest.raises(SquallError, match=r"static\.nt"):
        list(results(CONSTRUCT, sources, static="static.nt", options=options))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
