"""Folders as sinks of the Spark builder: their formats, and exactly-once batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import squall
from squall.builders.distributed.exec.micro_batch import MicroBatches
from squall.builders.distributed.io.records import OutputBatch
from squall.builders.runtime.serde import pack_output
from squall.builders.spark.folder import FolderWriter
from squall.builders.spark.output_files import write
from squall.builders.spark.settings import MAX_SINGLE_TASK_ROWS
from squall.builders.spark.store import Store
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.model import Report, profiles
from squall.model.windows import CountWindow
from squall.plan import Plan
from squall.rdf import Evaluated, Event, Solution, iri, iri_text, parts
from squall.streams import Sources, open_sink, open_source
from squall.streams.sinks.folders import FolderSink
from squall.testing import stream

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

AGES = "PREFIX : <http://example.org/> SELECT ?who ?age { ?who :age ?age OPTIONAL { ?who :left ?gone } }"
EVENTS = stream('1 :ann :age 5\n2 _:bob :age 7\n3 :cat :age "x\\"y"@en')
XSD = "http://www.w3.org/2001/XMLSchema#"


def plan_of(text: str, lexer: str = "sparql") -> Plan:
    return squall.plan(squall.compile(text, lexer=lexer))


def run(
    plan: Plan, folder: Path, format: str, types: dict[str, str] | None = None, events: Sequence[Event] = EVENTS
) -> int:
    """Runs a plan over all events; the number of outputs written."""
    sink = FolderSink(str(folder), folder, format, types)
    assert list(squall.build(plan, "spark", Options(sink=sink)).run([events])) == []
    return sink.written


def table(folder: Path) -> Any:
    from squall.builders.spark import session

    return session().read.option("recursiveFileLookup", "true").parquet(str(folder))


def test_a_column_for_each_variable_with_whole_terms(tmp_path: Path) -> None:
    assert run(plan_of(AGES), tmp_path / "out", "parquet") == 3
    rows = table(tmp_path / "out").orderBy("time").collect()
    assert [row["time"] for row in rows] == [1, 2, 3]
    assert "rule" not in rows[0], "all are answers of one query"
    assert [tuple(row["age"]) for row in rows] == [
        ("5", f"{XSD}integer", None),
        ("7", f"{XSD}integer", None),
        ('x"y', "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en"),
    ]
    assert tuple(rows[0]["who"]) == ("http://example.org/ann", None, None)
    assert rows[1]["who"]["lexical"].startswith("_:")


def test_typed_columns_have_sparks_own_values(tmp_path: Path) -> None:
    numbers = AGES.replace("SELECT ?who ?age {", "SELECT ?who ?age ?gone { FILTER isNumeric(?age)")
    run(plan_of(numbers), tmp_path / "out", "parquet", {"age": "double"})
    result = table(tmp_path / "out")
    assert dict(result.dtypes)["age"] == "double"
    assert dict(result.dtypes)["who"] == dict(result.dtypes)["gone"] == "string"
    assert sorted((row["age"], row["gone"]) for row in result.collect()) == [(5.0, None), (7.0, None)]


def test_a_value_that_is_not_of_the_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuilderError, match="a value of `age` is no int"):
        run(plan_of(AGES), tmp_path / "out", "json", {"*": "string", "age": "int"})


def test_rules_make_facts_and_graphs(tmp_path: Path) -> None:
    quads = (
        "PREFIX : <http://example.org/> CONSTRUCT { ?who :is :old . GRAPH :g { ?who :is :known } } { ?who :age ?age }"
    )
    assert run(plan_of(quads), tmp_path / "out", "parquet", {}) == 6
    results = {(row["predicate"], row["object"], row["graph"]) for row in table(tmp_path / "out").collect()}
    is_ = "http://example.org/is"
    assert results == {(is_, "http://example.org/old", None), (is_, "http://example.org/known", "http://example.org/g")}


def test_lines_are_those_of_a_file(tmp_path: Path) -> None:
    plan = plan_of(AGES)
    assert run(plan, tmp_path / "out", "ndjson") == 3
    lines = [line for path in (tmp_path / "out").glob("*/part-*") for line in path.read_text().splitlines()]
    file = open_sink(str(tmp_path / "all.ndjson"))
    file.start()
    for output in squall.run(plan, EVENTS):
        file.write(output)
    file.close()
    assert sorted(lines) == sorted((tmp_path / "all.ndjson").read_text().splitlines())


@pytest.mark.more
def test_a_complete_evaluation_is_no_row_of_a_single_task_plan(tmp_path: Path) -> None:
    emitted = Report("close", empty=True)
    system = profiles.apply_profile(
        squall.compile(AGES, lexer="sparql"), window=CountWindow(2), output="rstream", report=emitted
    )
    plan = squall.plan(system)
    outputs = list(squall.run(plan, EVENTS))
    answers = [output for output in outputs if not isinstance(output.fact, Evaluated)]
    assert len(answers) < len(outputs)
    assert run(plan, tmp_path / "out", "parquet") == len(answers)


def test_the_place_puts_the_answers_of_a_time_in_order(tmp_path: Path) -> None:
    plan = plan_of(AGES + " ORDER BY DESC(?who)")
    run(plan, tmp_path / "out", "parquet", {})
    rows = [(row["time"], row["age"]) for row in table(tmp_path / "out").orderBy("time", "place").collect()]
    expected = [(out.time, out.fact.values[1]) for out in squall.run(plan, EVENTS) if isinstance(out.fact, Solution)]
    assert rows == [(time, parts(age).lexical) for time, age in expected if age is not None]


READINGS = stream("\n".join(f"{n // 100} :s{n * 7 % 300} :age {n * 37 % 90}" for n in range(300)))
"""A hundred observations at each of three times."""


def by_several(text: str, folder: Path, format: str) -> list[tuple[int, Solution]]:
    """Runs a query with snapshot output by several tasks, and returns its outputs in process."""
    from squall.builders.spark import session

    plan = squall.plan(profiles.apply_profile(squall.compile(text, lexer="sparql"), output="rstream", report=Report()))
    conf = session().conf
    settings = {
        MAX_SINGLE_TASK_ROWS: "0",
        "spark.sql.adaptive.enabled": "false",
    }  # else so little would be put together
    for name, value in settings.items():
        conf.set(name, value)
    try:
        run(plan, folder, format, events=READINGS)
    finally:
        for name in settings:
            conf.unset(name)
    assert len(list(folder.glob("*/part-*"))) > 1
    return [(out.time, out.fact) for out in squall.run(plan, READINGS) if isinstance(out.fact, Solution)]


@pytest.mark.more
def test_places_are_numbers_though_several_tasks_tell(tmp_path: Path) -> None:
    outputs = by_several(AGES + " ORDER BY DESC(?age) ?who", tmp_path / "out", "parquet")
    assert [time for time, _ in outputs] == [0] * 100 + [1] * 200 + [2] * 300
    rows = table(tmp_path / "out").orderBy("time", "place").collect()
    assert [row["place"] for row in rows] == [*range(1, 101), *range(1, 201), *range(1, 301)]
    lexical = [(time, *(parts(cell).lexical for cell in item.values[1:] if cell)) for time, item in outputs]
    assert [(row["time"], row["age"]["lexical"]) for row in rows] == lexical


@pytest.mark.more
def test_lines_are_in_order_from_file_to_file(tmp_path: Path) -> None:
    outputs = by_several(AGES + " ORDER BY DESC(?age) ?who", tmp_path / "out", "ndjson")
    files = sorted((tmp_path / "out").glob("*/part-*"))
    values = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    results = [(item["time"], item["solution"]["who"]["value"]) for item in values]
    assert results == [(time, iri_text(item.values[0])) for time, item in outputs if item.values[0]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("order", "files", "moves"), [("", 2, False), ("ORDER BY ?age", 1, False), ("ORDER BY ?age", 2, True)]
)
@pytest.mark.parametrize("format", ["parquet", "ndjson"])
def test_outputs_of_a_single_task_are_not_shuffled_to_be_sorted(
    tmp_path: Path, format: str, order: str, files: int, moves: bool
) -> None:
    from squall.builders.spark import session

    spark = session()
    plan = plan_of(AGES + order)
    row = pack_output(Output(Solution(("who", "age"), (iri("urn:a"), None)), 1, "query"))
    for _ in range(files):
        output = OutputBatch(9, [row], [1], ["p"])
        write(tmp_path / "answers", pyarrow.Table.from_batches(output.batches()))
    store = Store(tmp_path / "out")
    writer = FolderWriter(plan, FolderSink("out/", tmp_path / "out", format), store, "run")
    frame = writer._frame(spark.read.parquet(str(tmp_path / "answers")))
    assert ("Exchange" in str(frame._jdf.queryExecution().executedPlan().toString())) is moves
    assert frame.count() == files


@pytest.mark.more
def test_each_batch_is_written_exactly_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose commit was lost is processed again, but not output again. Files of others are not changed."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.ntt").write_text('1 <urn:a> <http://example.org/age> "1" .\n')
    sink = FolderSink("out/", tmp_path / "out", "ndjson")
    options = Options(checkpoint=tmp_path / "state", sink=sink)

    def go() -> dict[str, float]:
        list(squall.build(plan_of(AGES), "spark", options).run(Sources([open_source(str(tmp_path / "in"))])))
        return written()

    def written() -> dict[str, float]:
        return {str(path): path.stat().st_mtime for path in sorted((tmp_path / "out").rglob("part-*.txt"))}

    commit = MicroBatches.commit

    def killed(self: MicroBatches, number: int | None) -> None:
        if written():
            raise RuntimeError("killed")
        commit(self, number)

    monkeypatch.setattr(MicroBatches, "commit", killed)
    with pytest.raises(RuntimeError, match="killed"):
        go()
    before = written()
    assert len(before) == 1
    monkeypatch.undo()
    assert go() == before
    (tmp_path / "in" / "b.ntt").write_text('2 <urn:b> <http://example.org/age> "2" .\n')
    after = go()
    assert before.items() < after.items()
    document = [json.loads(line)["time"] for path in after for line in Path(path).read_text().splitlines()]
    assert sorted(document) == [1, 2]


def test_a_folder_of_another_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("")
    with pytest.raises(BuilderError, match="is not empty"):
        run(plan_of(AGES), tmp_path / "out", "parquet")


@pytest.mark.parametrize(
    ("text", "format", "types", "message"),
    [
        (AGES, "parquet", {"aeg": "int"}, "no column `aeg`"),
        (AGES, "parquet", {"age": "number"}, "cannot have the type `number`"),
        (AGES, "ndjson", {"age": "int"}, "has no columns to be typed"),
        (AGES.replace("?age", "?time"), "json", None, "two columns `time`"),
        (AGES.replace("?age", "?WHO"), "json", None, "two columns `WHO`"),
    ],
)
def test_an_unsupported_format_is_refused_before_spark_starts(
    text: str, format: str, types: dict[str, str] | None, message: str, tmp_path: Path
) -> None:
    sink = FolderSink("out/", tmp_path / "out", format, types)
    with pytest.raises(BuilderError, match=message):
        squall.build(plan_of(text), "spark", Options(sink=sink))


def test_two_queries_have_a_table_each(tmp_path: Path) -> None:
    plan = squall.plan(squall.compile(AGES, AGES.replace("?who", "?x"), lexer="sparql"))
    with pytest.raises(BuilderError, match=r"\(who, age\) and \(x, age\)"):
        squall.build(plan, "spark", Options(sink=FolderSink("out/", tmp_path, "parquet")))


Squall = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("types", [("--typed", "*=string", "--typed", "age=int"), ()])
def test_the_command_writes_a_folder(
    types: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ages.rq").write_text(AGES)
    Path("in.ntt").write_text('1 <urn:a> <http://example.org/age> "1" .\n2 <urn:b> <http://example.org/age> "2" .\n')
    command = ["build", "ages.rq", "--source", "in.ntt", "--sink", "out/?format=csv", "--builder", "spark"]
    code, _, result = squall(*command, *types)
    assert code == 0, result
    assert "2 outputs" in result
    (path,) = Path("out").glob("batch-*/part-*.csv")
    assert path.read_text() == "who,age,time,place\nurn:a,1,1,0\nurn:b,2,2,0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sink", "out/?format=parquet"], "the builder `iterator` writes no folder"),
        (
            ["--sink", "out/", "--builder", "spark"],
            "the address of the folder `out/` does not name the format of its files",
        ),
        (["--sink", "out/?format=nt", "--builder", "spark"], "are no triples"),
        (["--typed", "age=int"], "`--typed` is for Parquet files, and for folders"),
        (["--sink", "out/?format=parquet", "--typed", "int"], "`--typed int` is not NAME=TYPE"),
    ],
)
def test_invalid_folders_are_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ages.rq").write_text(AGES)
    Path("in.ntt").write_text("")
    code, _, result = squall("build", "ages.rq", "--source", "in.ntt", *arguments)
    assert code == 2
    assert message in result
