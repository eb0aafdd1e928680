"""DataFrames of pandas and polars, and tables of Arrow, as sources and as static data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy
import pandas
import polars
import pyarrow
import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.contracts import Options
from squall.errors import ArgumentError, BuilderError, SourceError, SquallError, UsageError
from squall.functions.python_values import to_python, to_term
from squall.rdf import ALWAYS, XSD, Event, Term, Triple
from squall.streams import DeadLetterFile, Sources
from squall.streams.formats import suffix
from squall.streams.mappings import short_form
from squall.streams.mappings.evaluation import Number, TypedText, UnusableRecord
from squall.streams.mappings.python_records import record_value
from squall.streams.sources.frame_columns import BLOCK_ROWS
from squall.testing import stream
from tests import mapping_strategies as naive

E = "http://example.org/"
DATE_TIME = f"{XSD}dateTime"
MAP = (
    f"PREFIX ex: <{E}>\n"
    + '{ "sensor": ?s, "room"?: ?r, "degrees": ?d, "at": ?t } => {ex:{?s} ex:in ?r; ex:d ?d} AT ?t'
)
ROWS: list[dict[str, Any]] = [
    {"sensor": "s1", "room": "hall", "degrees": 20.5, "at": 4000},
    {"sensor": "s2", "room": None, "degrees": 12.0, "at": 1000},
    {"sensor": "s1", "room": "hall", "degrees": None, "at": 3000},
    {"sensor": None, "room": "attic", "degrees": 1.0, "at": 2000},
    {"sensor": "s4", "room": "attic", "degrees": 1.0, "at": None},
]
KINDS: dict[str, Callable[[Sequence[dict[str, Any]]], Any]] = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "table": pyarrow.Table.from_pylist,
    "batch": pyarrow.RecordBatch.from_pylist,
}
QUERY = f"PREFIX : <{E}> SELECT ?s ?d WHERE {{ ?s :d ?d }}"


def facts(events: Any) -> list[tuple[int, str]]:
    return [(event.time, " ".join(fact)) for event in events for fact in event.facts]


def plan_of(text: str, **settings: Any) -> squall.Plan:
    return squall.plan(squall.compile(text, lexer="sparql", **settings))


class Ledger(DeadLetterFile):
    """A ledger that keeps all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int | None, str]] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        super().record(cause, source, line, reason, text)
        self.rows.append((line, reason))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# With a mapping


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_records_in_the_order_of_their_times(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    source = squall.from_dataframe(KINDS[kind](ROWS), MAP, name="readings")
    double = f"^^<{XSD}double>"
    assert facts(source) == [
        (1000, f'<{E}s2> <{E}d> "12.0"{double}'),
        (3000, f'<{E}s1> <{E}in> "hall"'),
        (4000, f'<{E}s1> <{E}d> "20.5"{double}'),
        (4000, f'<{E}s1> <{E}in> "hall"'),
    ]
    assert source.dead_letters.total("malformed", "readings") == 2
    assert source.dead_letters.first["malformed", "readings"][0] == 5  # without a time it comes first
    assert (
        caplog.text.count("row 5 of `readings` cannot be used: the field `at` is missing") == len(caplog.records) == 1
    )
    assert (source.reading.statements, source.reading.malformed) == (4, 2)


@pytest.mark.parametrize("builder", ["iterator", pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
                                     pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])])  # fmt: skip
def test_every_builder_runs_over_a_frame(builder: str) -> None:
    ledger = Ledger()
    source = squall.from_dataframe(pandas.DataFrame(ROWS), MAP)
    rows = squall.run(plan_of(QUERY), source, builder, options=Options(ledger=ledger)).rows()
    assert sorted((row.time, row.s, row.d) for row in rows) == [(1000, E + "s2", 12), (4000, E + "s1", 20.5)]
    assert sorted(line or 0 for line, _ in ledger.rows) == [4, 5]
    assert not source.dead_letters.counts


def test_a_frame_is_a_source_of_all_functions() -> None:
    def frame() -> Any:
        return squall.from_dataframe(pandas.DataFrame(ROWS[:2]), MAP)

    expected = [(1000, E + "s2"), (4000, E + "s1")]
    Path("more.ntt").write_text(f'1500 <{E}s9> <{E}d> "1" .\n')
    results = [
        squall.run(plan_of(QUERY), frame()),
        squall.run(plan_of(QUERY), list(frame())),
        squall.query(QUERY, lexer="sparql", sources=frame()),
        squall.query(QUERY, lexer="sparql", sources=[frame()]),
    ]
    assert [[(row.time, row.s) for row in result.rows()] for result in results] == [expected] * 4
    together = squall.query(QUERY, lexer="sparql", sources=[frame(), Path("more.ntt")])
    assert [row.time for row in together.rows()] == [1000, 1500, 4000]

    async def outputs() -> list[int]:
        return [output.time async for output in squall.arun(plan_of(QUERY), frame())]

    assert asyncio.run(outputs()) == [1000, 4000]
    static = squall.from_dataframe(pandas.DataFrame(ROWS[:2]), MAP.removesuffix(" AT ?t"))
    joined = f"PREFIX : <{E}> SELECT ?d ?x WHERE {{ ?s :d ?d ; :p ?x }}"
    (row,) = squall.query(joined, lexer="sparql", sources=stream("7 :s1 :p 1"), static=static).rows()
    assert (row.time, row.d, row.x) == (7, 20.5, 1)
    untimed = squall.from_dataframe(pandas.DataFrame(ROWS[:2]), MAP.removesuffix(" AT ?t"))
    assert {output.time for output in squall.run(plan_of(QUERY), untimed)} == {ALWAYS}
    with pytest.raises(ArgumentError, match="static data always hold"):
        list(squall.run(plan_of(QUERY), [], static=frame()))


def test_a_frame_may_be_of_a_stream_with_a_window() -> None:
    plan = plan_of(QUERY, windows={E + "s": "RANGE 1s"}, output="dstream")
    source = squall.from_dataframe(pandas.DataFrame(ROWS[:2]), MAP, stream=E + "s")
    assert [output.time for output in squall.run(plan, source)] == [2000, 5000]


@pytest.mark.parametrize(
    ("time", "unit", "expected"),
    [
        ([2, 1], "ms", [1, 2]),
        ([2, 1], "s", [1000, 2000]),
        ([2.5, 1.0], "s", [1000, 2500]),
        (["1970-01-01T00:00:02Z", "1970-01-01"], "ms", [0, 2000]),
        ([datetime(1970, 1, 1, 0, 0, 2), datetime(1970, 1, 1)], "ms", [0, 2000]),
        ([datetime(1970, 1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)], "s", [0, 3_600_000]),
        ([date(1970, 1, 2), date(1970, 1, 1)], "ms", [0, 86_400_000]),
        ([Decimal("2.5"), Decimal(1)], "s", [1000, 2500]),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_time_is_a_column(time: list[Any], unit: str, expected: list[int], kind: str) -> None:
    mapping = f'{{ "a": ?a }} => {{ <{E}{{?a}}> <{E}p> ?a }}'
    frame = KINDS[kind]([{"a": number, "when": value} for number, value in enumerate(time)])
    events = squall.from_dataframe(frame, mapping, time="when", unit=unit)
    assert [when for when, _ in facts(events)] == expected
    assert {when for when, _ in facts(squall.from_dataframe(frame, mapping, time=7))} == {7}
    assert {when for when, _ in facts(squall.from_dataframe(frame, mapping))} == {ALWAYS}


def test_an_index_with_a_name_is_a_column() -> None:
    frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.DatetimeIndex(["2026-01-02", "2026-01-01"], name="day"))
    events = squall.from_dataframe(frame, f'{{ "a": ?a }} => {{ <{E}x> <{E}p> ?a }}', time="day")
    day = 86_400_000
    assert [event.time for event in events] == [1767225600000, 1767225600000 + day]


def test_records_may_be_nested_with_times_of_their_own() -> None:
    rows = [
        {"id": "a", "points": [{"at": 3, "v": 1.5}, {"at": 1, "v": 2.0}]},
        {"id": "b", "points": [{"at": 2, "v": 3.0}]},
    ]
    mapping = f'{{ "id": ?i, "points": [ {{ "at": ?t, "v": ?v }} ] }} => {{ <{E}{{?i}}> <{E}p> ?v }} AT ?t'
    expected = [(1, "a", 2.0), (2, "b", 3.0), (3, "a", 1.5)]
    for make in KINDS.values():
        got = squall.run(plan_of(f"SELECT ?s ?v {{ ?s <{E}p> ?v }}"), squall.from_dataframe(make(rows), mapping)).rows()
        assert [(row.time, row.s.removeprefix(E), row.v) for row in got] == expected


def test_a_reader_is_read_as_it_comes_and_once() -> None:
    table = pyarrow.Table.from_pylist([{"a": number, "at": number} for number in range(3 * BLOCK_ROWS)])
    mapping = f'{{ "a": ?a, "at": ?t }} => {{ <{E}x> <{E}p> ?a }} AT ?t'
    source = squall.from_dataframe(table.to_reader(), mapping)
    assert sum(1 for _ in source) == 3 * BLOCK_ROWS
    with pytest.raises(ArgumentError, match="which is possible once"):
        list(source)
    reader = pyarrow.Table.from_pylist([{"a": 1, "at": 2}, {"a": 2, "at": 1}]).to_reader()
    plan = plan_of(f"SELECT ?v {{ ?s <{E}p> ?v }}")
    with pytest.raises(BuilderError, match="comes after a later one"):
        list(squall.run(plan, squall.from_dataframe(reader, mapping)))

    class Relation:
        """What another library exports."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return table.__arrow_c_stream__(requested_schema)

    assert sum(1 for _ in squall.from_dataframe(Relation(), mapping)) == 3 * BLOCK_ROWS


def test_large_frames_are_read_in_blocks_with_the_numbers_of_rows() -> None:
    height = 2 * BLOCK_ROWS + 5
    frame = pandas.DataFrame({"a": ["x"] * height, "at": [height - number for number in range(height)]})
    frame.loc[3, "a"] = None
    frame.loc[height - 1, "a"] = None
    ledger = Ledger()
    source = squall.from_dataframe(frame, f'{{ "a": ?a, "at": ?t }} => {{ <{E}{{?a}}> <{E}p> ?a }} AT ?t')
    inputs = Sources([source])
    inputs.set_ledger(ledger)
    assert [event.time for event in source] == [time for time in range(1, height + 1) if time not in (height - 3, 1)]
    assert [line for line, _ in ledger.rows] == [height, 4]


def test_a_source_resumes_behind_a_block() -> None:
    frame = pandas.DataFrame({"a": range(2 * BLOCK_ROWS), "at": range(2 * BLOCK_ROWS)})
    mapping = f'{{ "a": ?a, "at": ?t }} => {{ <{E}x> <{E}p> ?a }} AT ?t'
    first = squall.from_dataframe(frame, mapping)
    next(batches := first.batches())
    second = squall.from_dataframe(frame, mapping)
    second.resume(first.current_offset())
    assert next(iter(second)).time == BLOCK_ROWS
    assert list(next(batches)) == list(second)


@given(st.data())
def test_a_frame_is_what_the_solutions_of_the_pattern_make(data: st.DataObject) -> None:
    """The rows of a frame make what a naive evaluator of the mapping makes of them as JSON."""
    spec = data.draw(naive.specs().filter(lambda spec: isinstance(spec.pattern, dict)))
    rows = data.draw(st.lists(naive.records(spec.pattern).filter(lambda row: isinstance(row, dict)), max_size=5))
    if not rows:
        return
    frame = pandas.DataFrame(
        {name: pandas.Series([row.get(name) for row in rows], dtype=object) for name in spec.pattern}
    )
    source = squall.from_dataframe(frame, short_form.read(spec.short_form(), "m.map"))
    ledger = Ledger()
    Sources([source]).set_ledger(ledger)
    events = list(source)
    bad = {line for line, _ in ledger.rows}
    expected = []
    for number, row in enumerate(rows, 1):
        statements, is_wrong, may_be_wrong = naive.naive(spec, row)
        assert may_be_wrong if number in bad else not is_wrong
        if number not in bad:
            expected += [(ALWAYS if time is None else time, *_own(triple)) for time, triple in statements]
    assert sorted((event.time, *map(str, fact)) for event in events for fact in event.facts) == sorted(expected)
    assert [event.time for event in events] == sorted(event.time for event in events)


def _own(triple: Sequence[str]) -> list[str]:
    return [term + suffix("DataFrame") if term.startswith("_:") else term for term in triple]


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.text(max_size=3), st.booleans(),
    st.floats(allow_nan=False), st.decimals(-(10**9), 10**9, places=2),
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.dates(), st.times(), st.binary(max_size=3),
    st.timedeltas(timedelta(-9999), timedelta(9999)),
)  # fmt: skip


@given(st.data(), st.sampled_from(["pandas", "polars", "table"]))
def test_typed_columns_go_out_and_in_again(data: st.DataObject, kind: str) -> None:
    """Values become triples and a typed table; its rows become the same triples, with and without a mapping."""
    events = [Event(5, (Triple(Term(f"<{E}x>"), Term(f"<{E}p>"), to_term(data.draw(VALUES))),))]
    query = f"SELECT ?v {{ ?x <{E}p> ?v }}"
    results = squall.query(query, lexer="sparql", sources=events)
    frame = {"pandas": results.to_pandas, "polars": results.to_polars, "table": results.to_arrow}[kind]()
    mapping = f'{{ "v": ?v, "time": ?t }} => {{ <{E}x> <{E}p> ?v }} AT ?t'
    again = squall.from_dataframe(frame, mapping)
    (before,), (after,) = events, list(again)
    assert (after.time, _value(after)) == (before.time, _value(before))


def _value(event: Event) -> Any:
    (fact,) = event.facts
    assert isinstance(fact, Triple)
    value = to_python(fact.object)
    return value.astimezone(UTC) if isinstance(value, datetime) else value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.int64(3), 3),
        (numpy.float64(2.5), Number("2.5")),
        (numpy.bool_(True), True),
        (numpy.array([1, 2]), [1, 2]),
        (numpy.datetime64("2026-01-01T00:00:00", "ns"), TypedText("2026-01-01T00:00:00", f"{XSD}dateTime")),
        (pandas.Timestamp("2026-01-01T00:00:00.000000001"), TypedText("2026-01-01T00:00:00.000000001", DATE_TIME)),
        (pandas.Timedelta(1, "ns"), TypedText("PT0.000000001S", f"{XSD}dayTimeDuration")),
        (pandas.NA, None),
        (pandas.NaT, None),
        (float("inf"), TypedText("INF", f"{XSD}double")),
        (float("nan"), TypedText("NaN", f"{XSD}double")),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": (1, b"\x0f")}, {"a": [1, TypedText("0F", f"{XSD}hexBinary")]}),
        (time(1, 2, 3), TypedText("01:02:03", f"{XSD}time")),
        (Decimal("20.50"), TypedText("20.5", f"{XSD}decimal")),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), TypedText("2026-01-01T00:00:00Z", DATE_TIME)),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), TypedText("0001-01-01T00:00:00+01:00", DATE_TIME)),
    ],
)  # fmt: skip
def test_values_of_records(value: Any, expected: Any) -> None:
    record = record_value(value)
    assert (type(record), record) == (type(expected), expected)
    assert getattr(record, "datatype", "") == getattr(expected, "datatype", "")


@pytest.mark.parametrize("value", ["\ud800", Decimal("NaN"), {1: 2}, object(), numpy.datetime64(1, "ns")])
def test_what_no_record_has(value: Any) -> None:
    with pytest.raises(UnusableRecord):
        record_value(value)
    frame = pandas.DataFrame({"a": pandas.Series([value, "x"], dtype=object)})
    source = squall.from_dataframe(frame, f'{{ "a": ?a }} => {{ <{E}x> <{E}p> ?a }}')
    if value == value:  # what pandas takes for no value is none
        assert facts(source) == [(ALWAYS, f'<{E}x> <{E}p> "x"')]
        assert source.dead_letters.first["malformed", "DataFrame"][1].startswith("the column `a` has ")


def test_values_of_one_text_and_different_datatypes_differ() -> None:
    """A mapping is applied by distinct values, which are equal as texts here."""
    frame = pandas.DataFrame({"a": pandas.Series([Decimal(10), b"\x10"], dtype=object)})
    source = squall.from_dataframe(frame, f'{{ "a": ?a }} => {{ <{E}x> <{E}p> ?a }}')
    assert [text.rpartition("#")[2] for _, text in facts(source)] == ["decimal>", "hexBinary>"]


def test_conditions_and_datatypes_apply_to_typed_values() -> None:
    table = pyarrow.table({"a": [Decimal("1.0"), Decimal("2.5")], "b": [date(2026, 1, 1)] * 2})
    source = squall.from_dataframe(table, f'{{ "a": 1, "b": ?b }} => {{ <{E}x> <{E}p> ?b ; <{E}q> "on {{?b}}" }}')
    assert facts(source) == [
        (ALWAYS, f'<{E}x> <{E}p> "2026-01-01"^^<{XSD}date>'),
        (ALWAYS, f'<{E}x> <{E}q> "on 2026-01-01"'),
    ]


def test_an_rml_mapping_is_a_mapping() -> None:
    rml = f"""@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
<#m> rml:logicalSource [ rml:source "x" ; rml:referenceFormulation ql:CSV ] ; rr:subjectMap [ rr:template "{E}{{s}}" ] ;
  rr:predicateObjectMap [ rr:predicate <{E}d> ; rr:objectMap [ rml:reference "d" ] ] ."""
    Path("m.ttl").write_text(rml)
    Path("m.map").write_text(f'{{ "s": ?s, "d": ?d }} => {{ <{E}{{?s}}> <{E}d> ?d }}')
    frame = pandas.DataFrame({"s": ["a"], "d": [1]})
    expected = [(ALWAYS, f'<{E}a> <{E}d> "1"^^<{XSD}integer>')]
    for mapping in (rml, "m.ttl", Path("m.ttl"), "m.map", Path("m.map").read_text()):
        assert facts(squall.from_dataframe(frame, mapping)) == expected


# Triples


def test_rows_may_be_triples_of_iris_terms_and_values() -> None:
    objects: list[tuple[Any, str]] = [
        ("http://example.org/b", "<http://example.org/b>"),
        ("urn:b", "<urn:b>"),
        ("<tag:b>", "<tag:b>"),
        ("tag:b", '"tag:b"'),
        ("plain text", '"plain text"'),
        ('"in quotes"@en', '"in quotes"@en'),
        (f'"5"^^<{XSD}int>', f'"5"^^<{XSD}int>'),
        (5, f'"5"^^<{XSD}integer>'),
        (numpy.float64(2.5), f'"2.5"^^<{XSD}double>'),
        (Decimal("2.50"), f'"2.5"^^<{XSD}decimal>'),
        (True, f'"true"^^<{XSD}boolean>'),
        (pandas.Timestamp("2026-01-01T00:00:00Z"), f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>'),
        (rdflib.URIRef("http://example.org/b"), "<http://example.org/b>"),
        (pyoxigraph.Literal("x", language="de"), '"x"@de'),
        ("_:b", f"_:b{suffix('DataFrame')}"),
    ]
    for names in (("subject", "predicate", "object"), ("s", "p", "o")):
        frame = pandas.DataFrame({
            names[0]: ["http://example.org/a"] * len(objects), names[1]: "<urn:p>",
            names[2]: pandas.Series([value for value, _ in objects], dtype=object),
        })  # fmt: skip
        assert [text for _, text in facts(squall.from_dataframe(frame))] == [
            f"<http://example.org/a> <urn:p> {expected}" for _, expected in objects
        ]


def test_triples_may_have_times_and_graphs() -> None:
    rows = [
        {"s": "urn:a", "p": "urn:p", "o": 1, "time": 2000, "g": None},
        {"s": "_:a", "p": "urn:p", "o": 2, "time": 1000, "g": "urn:g"},
        {"s": "urn:a", "p": "urn:p", "o": 3, "time": 2000, "g": None},
    ]
    for make in KINDS.values():
        events = list(squall.from_dataframe(make(rows), unit="s"))
        assert [(event.time, event.graph, len(event.facts)) for event in events] == [
            (1_000_000, "<urn:g>", 1),
            (2_000_000, "", 2),
        ]
        assert [event.time for event in squall.from_dataframe(make(rows), time=5)][:1] == [5]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"s": "a b"}, "the column `s`: `a b` is no absolute IRI"),
        ({"s": '"a"'}, 'the column `s`: `"a"` is no IRI and no blank node'),
        ({"s": None}, "the column `s` is empty"),
        ({"p": "_:b"}, "the column `p`: `_:b` is no IRI"),
        ({"p": 5}, "the column `p`: `5` is no IRI"),
        ({"o": None}, "the column `o` is empty"),
        ({"o": "<b"}, "the column `o`: `<b` begins like a term of N-Triples, and is none"),
        ({"o": '"5"^^xsd:int'}, "begins like a term of N-Triples, and is none"),
        ({"o": object()}, "the column `o` has a object, which has no term"),
        ({"o": "\ud800"}, "half of a character"),
        ({"time": "noon"}, "`noon` is no time"),
        ({"time": None}, "the field `time` is missing"),
        ({"g": "x"}, "the column `g`: `x` is no absolute IRI"),
    ],
)
def test_a_row_that_is_no_triple_is_a_dead_letter(row: dict[str, Any], reason: str) -> None:
    right = {"s": "urn:a", "p": "urn:p", "o": 1, "time": 1, "g": None}
    frame = pandas.DataFrame([right, right | row, right]).astype(object)
    source = squall.from_dataframe(frame)
    assert len(facts(source)) == 2
    line, text = source.dead_letters.first["malformed", "DataFrame"]
    assert line == 2
    assert reason in text
    with pytest.raises(SourceError, match="DataFrame:2"):
        list(squall.run(plan_of("SELECT * { ?s ?p ?o }"), squall.from_dataframe(frame, strict=True)))


def test_a_table_of_results_is_a_source() -> None:
    rule = f"PREFIX : <{E}> CONSTRUCT {{ ?s :twice ?e }} WHERE {{ ?s :d ?d BIND(2 * ?d AS ?e) }}"
    frame = squall.query(rule, lexer="sparql", sources=stream("1 :a :d 2\n5 :b :d 3.5")).to_polars()
    assert facts(squall.from_dataframe(frame)) == [
        (1, f'<{E}a> <{E}twice> "4"^^<{XSD}decimal>'),
        (5, f'<{E}b> <{E}twice> "7"^^<{XSD}decimal>'),
    ]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"map": MAP.replace('"degrees"', '"degree"')}, UsageError, "has no column `degree`.*did you mean `degrees`"),
        ({"map": "absent.map"}, UsageError, "the mapping `absent.map` cannot be read"),
        ({"map": "{ => }"}, SquallError, "the mapping:1:3: syntax error"),
        ({"map": MAP, "time": "at"}, UsageError, "has the time twice"),
        ({"map": MAP, "time": "att"}, ArgumentError, "has no column `att`, which has the time.*did you mean `at`"),
        ({"map": MAP, "unit": "h"}, ArgumentError, "is no unit of time"),
        ({"map": 5}, ArgumentError, "`map` is a mapping, and not the int `5`"),
        ({"map": MAP, "time": True}, ArgumentError, "`time` is a column or a time, and not `True`"),
        ({"map": MAP, "time": 1.5}, ArgumentError, "`time` is the name of a column"),
        ({"map": MAP, "stream": "<urn:s>"}, ArgumentError, "leave the angle brackets out"),
        ({}, ArgumentError, "has no column `subject`, which has the terms of triples.*`map=`"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        squall.from_dataframe(pandas.DataFrame(ROWS), **arguments)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1], "a DataFrame of pandas, polars or Spark.*and not a list.*pandas.DataFrame"),
        ("x.csv", "and not a str.*`squall.query"),
        (pandas.Series([1]), "and not a Series.*to_frame"),
        (polars.DataFrame({"a": [1]}).lazy(), r"a LazyFrame has no rows yet.*frame\.collect\(\)"),
        (pandas.DataFrame({1: [2]}), "the name `1` of a column is no text"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "two columns `a`"),
    ],
)
def test_what_is_no_frame(frame: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"(?s){message}"):
        squall.from_dataframe(frame, f'{{ "a": ?a }} => {{ <{E}x> <{E}p> ?a }}')


@pytest.mark.parametrize("frame", [pandas.DataFrame(ROWS), polars.DataFrame(ROWS), pyarrow.Table.from_pylist(ROWS)])
def test_a_frame_itself_is_no_input(frame: Any) -> None:
    with pytest.raises(ArgumentError, match=r"squall\.from_dataframe\(frame"):
        squall.run(plan_of(QUERY), frame)
    with pytest.raises(ArgumentError, match=r"squall\.from_dataframe\(frame"):
        squall.run(plan_of(QUERY), [], static=frame)
    with pytest.raises(ArgumentError, match=r"squall\.from_dataframe\(frame"):
        squall.query(QUERY, lexer="sparql", sources=frame)


def test_empty_frames_are_no_events() -> None:
    for make in (pandas.DataFrame, polars.DataFrame):
        assert list(squall.from_dataframe(make({"s": [], "p": [], "o": []}))) == []
    assert list(squall.from_dataframe(pandas.DataFrame(), f"{{ }} => {{ <{E}x> <{E}p> 1 }}")) == []
