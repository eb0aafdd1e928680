"""DataFrames as sources and as outputs of the Spark builder: batch and streaming."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.errors import ArgumentError, BuilderError, SourceError
from squall.rdf import Event, parts
from squall.streams import DeadLetterFile, Sources
from squall.testing import stream
from tests.live import wait

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ROUTES = "PREFIX : <http://example.org/> SELECT ?a ?c ?km { ?a :to ?b . ?b :to ?c . ?a :km ?km }"
EDGES = stream("1 :x :to :y\n1 :x :km 5\n2 :y :to :z\n3 :z :to :x\n3 :y :km 7")
TERMS = ["time", "subject", "predicate", "object"]
ROWS = [(event.time, *fact) for event in EDGES for fact in event.facts]


@pytest.fixture(scope="module")
def spark() -> Any:
    from squall.builders.spark import session

    return session()


@pytest.fixture(scope="module")
def plan() -> Any:
    return squall.plan(squall.compile(ROUTES, lexer="sparql"))


def expected(plan: Any) -> list[tuple[int, str]]:
    """Returns (time, distance) of the outputs of the run in process."""
    facts: list[tuple[int, Any]] = [(output.time, output.fact) for output in squall.run(plan, EDGES)]
    return [(time, parts(fact.values[2]).lexical) for time, fact in facts]


@pytest.mark.fault("P9")
def test_a_dataframe_or_a_single_source_in_place_of_sources(plan: Any, spark: Any) -> None:
    """P9: a job is given batches, and `to_dataframe` takes them as well."""
    from squall.spark import FrameSource, to_dataframe

    frame: Any = spark.createDataFrame(ROWS, TERMS)
    with pytest.raises(ArgumentError, match="FrameSource"):
        to_dataframe(plan, [], frame)
    with pytest.raises(ArgumentError, match=r"squall\.from_dataframe\(frame"):
        squall.run(plan, frame, "spark")
    with pytest.raises(ArgumentError, match=r"squall\.from_dataframe\(frame"):
        squall.run(plan, [], "spark", frame)
    source: Any = FrameSource(frame)
    with pytest.raises(ArgumentError, match=r"Sources\(\[source\]\)"):
        list(squall.build(plan, "spark").run(source))


def times_and_km(frame: Any) -> list[tuple[int, str]]:
    """Returns (time, distance) of the outputs."""
    return sorted((row["ms"], str(row["km"])) for row in frame.selectExpr("unix_millis(time) ms", "km").collect())


READINGS = [("hall", 20, 1.5, True, 1000), ("attic", 34, 2.5, False, 2000), (None, 1, 0.5, True, 1500)]
MAPPING = (
    "PREFIX ex: <http://example.org/>\n"
    '{ "room": ?r, "n": ?n, "x": ?x, "b": ?b } => { ex:{?r} ex:n ?n ; ex:x ?x ; ex:b ?b }'
)
TYPED = "PREFIX : <http://example.org/> SELECT ?r ?n ?x ?b ?t ?m { ?r :n ?n ; :x ?x ; :b ?b " \
        'BIND("2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> AS ?t) ' \
        "BIND(IF(?b, 1, 2.5) AS ?m) }"  # fmt: skip


def test_a_dataframe_goes_in_and_a_typed_one_comes_out(plan: Any, spark: Any) -> None:
    from squall.spark import to_dataframe

    direct = to_dataframe(plan, spark.createDataFrame(ROWS, TERMS))
    assert dict(direct.dtypes)["km"] == "bigint"
    assert times_and_km(direct) == expected(plan)
    readings = spark.createDataFrame(READINGS, "room string, n int, x double, b boolean, at long")
    source = squall.from_dataframe(readings, MAPPING, time="at")
    ledger = DeadLetterFile()
    query = squall.plan(squall.compile(TYPED, lexer="sparql"))
    result = to_dataframe(query, source, options=Options(ledger=ledger))
    types = {"r": "string", "n": "bigint", "x": "double", "b": "boolean", "t": "timestamp", "m": "decimal(38,18)"}
    assert dict(result.dtypes) == {**types, "time": "timestamp", "place": "int"}
    rows = result.selectExpr("r", "n", "x", "b", "unix_millis(t)", "m", "unix_millis(time)").collect()
    assert sorted(map(tuple, rows)) == [
        ("http://example.org/attic", 34, 2.5, False, 1767225600000, Decimal("2.5"), 2000),
        ("http://example.org/hall", 20, 1.5, True, 1767225600000, Decimal(1), 1000),
    ]
    assert ledger.total("malformed") == 1
    with pytest.raises(ArgumentError, match="the rows of `DataFrame` have no time"):
        squall.from_dataframe(readings, MAPPING)
    with pytest.raises(ArgumentError, match="no column `subject`"):
        to_dataframe(plan, readings)


@pytest.mark.more
def test_what_a_type_cannot_hold_is_text(spark: Any) -> None:
    from squall.spark import to_dataframe

    xsd = "http://www.w3.org/2001/XMLSchema#"
    cells = {
        "a": '"9223372036854775808"^^<%sinteger>', "b": '"0.0000000000000000001"^^<%sdecimal>',
        "c": '"2026-01-01T00:00:00.1234567Z"^^<%sdateTime>', "d": '"2026-01-01Z"^^<%sdate>', "e": '"x"^^<%sinteger>',
    }  # fmt: skip
    binds = " ".join(f"BIND({text % xsd} AS ?{name})" for name, text in cells.items())
    query = squall.plan(squall.compile(f"SELECT * {{ ?s ?p ?o {binds} }}", lexer="sparql"))
    result = to_dataframe(query, [EDGES[:1]])
    types = dict(result.dtypes)
    assert {name: types[name] for name in cells} == {
        "a": "decimal(38,18)", "b": "double", "c": "string", "d": "string", "e": "string"
    }  # fmt: skip


@pytest.mark.more
def test_bounded_input_gives_a_batch_dataframe(plan: Any, spark: Any) -> None:
    from squall.spark import FrameSource, to_dataframe

    frame = spark.createDataFrame(ROWS, TERMS)
    result = to_dataframe(plan, Sources([FrameSource(frame)]))
    assert not result.isStreaming
    assert result.columns == ["a", "c", "km", "time", "place"]
    assert times_and_km(result) == expected(plan)
    typed = to_dataframe(plan, [EDGES], typed={"km": "int"})
    assert typed.where("km > 5").selectExpr("a", "c", "unix_millis(time)").collect() == [
        ("http://example.org/y", "http://example.org/x", 3)
    ]


@pytest.mark.more
def test_a_value_of_another_type_is_a_clear_error(plan: Any) -> None:
    from squall.spark import to_dataframe

    with pytest.raises(BuilderError, match="a value of `a` is no int\nhint: have the query answer with what is"):
        to_dataframe(plan, [EDGES], typed={"a": "int"})


@pytest.mark.more
def test_a_dataframe_may_have_timestamps_graphs_and_a_stream(spark: Any) -> None:
    from squall.spark import FrameSource, to_dataframe

    query = "PREFIX : <http://example.org/> SELECT ?g ?o { ?s :old ?o GRAPH ?g { ?s :new ?o } }"
    window = {"http://example.org/s": "RANGE 10s"}
    windowed = squall.plan(squall.compile(query, lexer="sparql", windows=window))
    rows = [
        (5, "<urn:a>", "<http://example.org/old>", "1", None),
        (8, "<urn:a>", "<http://example.org/new>", "1", "<urn:g>"),
    ]
    frame = spark.createDataFrame(rows, "at int, subject string, predicate string, number string, graph string")
    object = "concat('\"', number, '\"') as object"
    timed = frame.selectExpr("timestamp_seconds(at) as time", "subject", "predicate", object, "graph")
    result = to_dataframe(windowed, Sources([FrameSource(timed, stream="http://example.org/s")]), typed=True)
    rows_in_graphs = result.selectExpr("g", "o", "unix_millis(time)").collect()
    in_graphs = sorted(map(tuple, rows_in_graphs))
    assert in_graphs == [("http://example.org/s", "1", 8000), ("urn:g", "1", 8000)]


@pytest.mark.more
def test_a_row_that_is_no_triple_goes_to_the_ledger(plan: Any, spark: Any, tmp_path: Path) -> None:
    from squall.spark import FrameSource, to_dataframe

    rows = [*ROWS, (4, "http://example.org/y", "<urn:p>", "<urn:o>"), (None, "<urn:s>", "<urn:p>", "<urn:o>")]
    ledger = DeadLetterFile(tmp_path / "lost.ndjson")
    frame = spark.createDataFrame(rows, "time long, subject string, predicate string, object string")
    result = to_dataframe(plan, Sources([FrameSource(frame, name="edges")]), options=Options(ledger=ledger))
    ledger.close()
    assert result.count() == len(expected(plan))
    text = (tmp_path / "lost.ndjson").read_text()
    assert ledger.total("malformed") == 2
    assert '"edges"' in text
    assert "<urn:s> <urn:p> <urn:o>" in text


def test_a_row_is_one_statement_or_none(plan: Any, spark: Any) -> None:
    """This holds for any cells; extra columns of a valid row are ignored."""
    from squall.spark import FrameSource, to_dataframe

    two = "<http://example.org/y> .\n5 <http://example.org/x> <http://example.org/to> <http://example.org/z>"
    rows = [(*row, "no\nmatter") for row in ROWS]
    rows += [(4, "<http://example.org/w>", "<http://example.org/to>", two, "")]
    ledger = DeadLetterFile()
    frame = spark.createDataFrame(rows, "time long, subject string, predicate string, object string, lost string")
    result = to_dataframe(plan, Sources([FrameSource(frame)]), options=Options(ledger=ledger))
    assert result.count() == len(expected(plan))
    assert ledger.total("malformed") == 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("subject string, predicate string, object string", "column `time`.*there are subject, predicate, object"),
        ("time string, subject string, predicate string, object string", "`time` of type bigint or timestamp.*string"),
        ("time long, subject int, predicate string, object string", "`subject` of type string: it is int"),
        ("time long, subject string, predicate string, object string, graph int", "`graph` of `edges` is int"),
    ],
)
def test_a_dataframe_of_another_form_is_refused(schema: str, message: str, spark: Any) -> None:
    from squall.spark import FrameSource

    with pytest.raises(SourceError, match=message):
        FrameSource(spark.createDataFrame([], schema), name="edges")


def test_a_dataframe_is_for_spark_and_at_its_time(plan: Any, spark: Any, tmp_path: Path) -> None:
    from squall.spark import FrameSource, to_dataframe

    source = FrameSource(spark.createDataFrame(ROWS, TERMS), name="edges")
    with pytest.raises(SourceError, match="`edges` is read by Spark alone"):
        list(squall.build(plan).run(Sources([source])))
    with pytest.raises(BuilderError, match="`edges` is all there at once"):
        to_dataframe(plan, Sources([source]), options=Options(checkpoint=tmp_path / "state"))


@pytest.mark.more
def test_live_input_gives_a_streaming_dataframe(plan: Any, spark: Any, tmp_path: Path) -> None:
    """A streaming input gives a streaming output with a sink of Spark's own, and exactly-once output after a restart.

    Spark may repeat a batch whose query was stopped before its commit. So the test stores outputs by the number of the
    batch, as a sink has to.
    """
    from squall.builders.spark.dataframes import THREAD
    from squall.spark import FrameSource, to_dataframe

    (tmp_path / "in").mkdir()
    schema = "time long, subject string, predicate string, object string"
    batches: dict[int, list[tuple[int, str]]] = {}

    def found() -> list[tuple[int, str]]:
        return sorted(row for rows in list(batches.values()) for row in rows)

    def keep(frame: Any, batch: int) -> None:
        batches[batch] = times_and_km(frame)

    def go(rows: list[tuple[Any, ...]], count: int) -> None:
        spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").json(str(tmp_path / "in"))
        inputs = spark.readStream.schema(schema).json(str(tmp_path / "in"))
        options = Options(checkpoint=tmp_path / "state")
        answers = to_dataframe(plan, Sources([FrameSource(inputs)]), options=options, typed=True)
        assert answers.isStreaming
        writer = answers.writeStream.foreachBatch(keep)
        writer.option("checkpointLocation", str(tmp_path / "mine")).start()
        wait(lambda: len(found()) >= count, 120)
        for query in spark.streams.active:
            query.stop()
        for thread in threading.enumerate():
            if thread.name == THREAD:
                thread.join()

    go(ROWS[:4], 1)
    assert found() == [(2, "5")]
    assert json.loads(max((tmp_path / "state" / "commits").glob("[0-9]*.json")).read_text())["processed_until"] == 3
    go([ROWS[4], (4, *ROWS[0][1:])], 2)
    assert found() == expected(plan)


@pytest.mark.more
def test_what_goes_wrong_behind_a_dataframe_is_logged(plan: Any, caplog: pytest.LogCaptureFixture) -> None:
    from squall.spark import to_dataframe

    def events() -> Iterator[list[Event]]:
        yield EDGES[:1]
        raise OSError("the sensor has gone")

    to_dataframe(plan, events())
    wait(lambda: "the sensor has gone" in caplog.text, 120)
    assert "the job behind a DataFrame has failed" in caplog.text


def test_a_dataframe_is_a_sink_itself(plan: Any, tmp_path: Path) -> None:
    from squall.spark import to_dataframe
    from squall.streams.sinks.folders import FolderSink

    sink = FolderSink("out/", tmp_path / "out", "parquet")
    with pytest.raises(BuilderError, match="leave `sink` out"):
        to_dataframe(plan, [EDGES], options=Options(sink=sink))
    with pytest.raises(BuilderError, match="no column `miles`"):
        to_dataframe(plan, [EDGES], typed={"miles": "int"})
