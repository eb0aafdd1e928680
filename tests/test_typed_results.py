"""Plain and typed values in files: CSV, flat JSON and Parquet, compared with an evaluation term by term."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from squall.contracts import Output
from squall.errors import SinkError, UsageError
from squall.functions.python_values import to_python
from squall.rdf import ALWAYS, XSD, Atom, Boolean, Evaluated, Quad, Solution, Term, Triple, iri, literal, parts
from squall.streams import open_sink
from squall.streams.formats.plain_json import json_of_term
from squall.streams.formats.results import plain_value
from squall.streams.formats.typed_columns import TypedColumn
from squall.streams.sinks.parquet_files import ParquetPatternSink, ParquetSink

Squall = Callable[..., tuple[int, str, str]]

_LEXICAL = st.one_of(
    st.sampled_from(
        ["1", "0", "-0", "+7", "007", "20.50", "-1.0E3", "1e400", "INF", "-INF", "NaN", "true", "false", "x", "", "0.1",
         "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" * 38, "1" * 39,
         "9" * 5000, "0." + "1" * 38, "123456789012345678901.123456789012345678", "2024-02-29", "2024-02-30",
         "2024-02-29T24:00:00Z", "2024-02-29T10:00:00+05:30", "2024-02-29T10:00:00", "0001-01-01T00:00:00+14:00",
         "2024-02-29T10:00:00.1234567Z", "12000-01-01T00:00:00Z", "10:00:00", "10:00:00Z", "0AFF", "\t\"é\\\n", "PT1H"]
    ),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda number: format(number, "f")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)  # fmt: skip
_DATATYPES = ("integer", "decimal", "double", "float", "boolean", "dateTime", "date", "time", "string", "hexBinary",
              "int", "duration")  # fmt: skip
LITERALS = st.builds(lambda lexical, name: literal(lexical, XSD + name), _LEXICAL, st.sampled_from(_DATATYPES))
TERMS = st.one_of(
    LITERALS,
    LITERALS,
    st.just(Term("_:b1")),
    st.just(iri("http://example.org/a")),
    st.just(literal("hall", language="en")),
)


def solution(*values: Term | None, at: int = 1, names: Sequence[str] = ("a", "b", "c")) -> Output:
    return Output(Solution(tuple(names[: len(values)]), values), at, "q")


def written(uri: str, *outputs: Output, **types: str) -> None:
    with closing(open_sink(uri)) as sink:
        if types:
            assert isinstance(sink, ParquetSink | ParquetPatternSink)
            sink.types = {"*" if name == "all" else name: type for name, type in types.items()}
        sink.start()
        for output in outputs:
            sink.write(output)


# Flat JSON


@given(TERMS)
def test_a_value_of_json_is_that_of_the_term(term: Term) -> None:
    text = json_of_term(term)
    value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    expected = to_python(term) if len(term) < 1000 else plain_value(term)
    if isinstance(expected, bool):
        assert value is expected
    elif isinstance(expected, int | Decimal):
        assert (type(value), value) == (Decimal, Decimal(expected))
    elif isinstance(expected, float) and abs(expected) < float("inf"):
        assert isinstance(value, Decimal)
        is_single = parts(term).datatype == f"{XSD}float"
        assert float(value) == expected or (is_single and float(value) == pytest.approx(expected, rel=1e-6))
    else:
        assert value == plain_value(term)
    assert "\n" not in text


def test_flat_objects(tmp_path: Path) -> None:
    outputs = (
        solution(literal("21", XSD + "integer"), None, literal("a\n", language="en"), at=1000),
        solution(literal("20.50", XSD + "decimal"), literal("NaN", XSD + "double"), iri("urn:a"), at=ALWAYS),
        Output(Triple(iri("urn:s"), iri("urn:p"), literal("1", XSD + "boolean")), 5, "r", "insert"),
        Output(Quad(iri("urn:s"), iri("urn:p"), Term("_:b"), iri("urn:g")), 5, "r"),
        Output(Atom(iri("urn:r"), (literal("x"), literal("+7", XSD + "int"))), 6, "r"),
        Output(Boolean(True), 7, "q"),
        Output(Evaluated(("a",)), 7, "q"),
    )
    written(f"{tmp_path}/x?format=ndjson-values", *outputs)
    assert (tmp_path / "x").read_text().splitlines() == [
        '{"time": 1000, "rule": "q", "a": 21, "b": null, "c": "a\\n"}',
        '{"time": null, "rule": "q", "a": 20.50, "b": "NaN", "c": "urn:a"}',
        '{"time": 5, "rule": "r", "change": "insert", "subject": "urn:s", "predicate": "urn:p", "object": true}',
        '{"time": 5, "rule": "r", "subject": "urn:s", "predicate": "urn:p", "object": "_:b", "graph": "urn:g"}',
        '{"time": 6, "rule": "r", "relation": "urn:r", "argument1": "x", "argument2": 7}',
        '{"time": 7, "rule": "q", "boolean": true}',
    ]


@pytest.mark.parametrize("name", ["time", "rule"])
@pytest.mark.parametrize("uri", ["x?format=ndjson-values", "x.parquet", "x.csv", "x?format=tsv-terms"])
def test_a_variable_has_not_the_name_of_a_column_of_all_outputs(name: str, uri: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=rf"`\?{name}` has the name of a column of all outputs\n.*SELECT"):
        written(f"{tmp_path}/{uri}", solution(literal("x"), names=(name,)))


TABLES = ("csv", "tsv", "csv-terms", "tsv-terms", "ndjson-values", "parquet")
A, B = "SELECT ?a { ?s <urn:p> ?a }", "SELECT ?a { ?s <urn:q> ?a }"


def columns_in_file(path: str, format: str) -> list[str]:
    """Returns the columns of a file with at least one row."""
    if format == "parquet":
        return [*parquet.read_table(path).column_names]
    first = Path(path).read_text().splitlines()[0]
    return [*json.loads(first)] if format == "ndjson-values" else first.replace("\t", ",").split(",")


@pytest.mark.parametrize("format", TABLES)
@pytest.mark.parametrize(
    ("programs", "sink", "columns"),
    [
        ({"a": A}, "out", ["time", "a"]),
        ({"a": "ASK { ?s <urn:p> ?a }"}, "out", ["time", "boolean"]),
        ({"a": A, "b": B}, "out", ["time", "rule", "a"]),
        ({"a": A, "b": B}, "out-{query}-{time}", ["time", "a"]),
        ({"a": "CONSTRUCT { ?s <urn:r> ?a } { ?s <urn:p> ?a }"}, "out", ["time", "rule", "subject", "predicate",
                                                                         "object"]),
        ({"a": "SELECT ?rule { ?s <urn:p> ?rule }"}, "out", ["time", "rule"]),
    ],
)  # fmt: skip
def test_a_table_has_a_column_for_rules_only_if_it_has_several(
    format: str,
    programs: dict[str, str],
    sink: str,
    columns: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    squall: Squall,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ntt").write_text('1 <urn:s> <urn:p> "x" .\n1 <urn:s> <urn:q> "y" .\n')
    for name, text in programs.items():
        Path(f"{name}.rq").write_text(text)
    ending = f"{format.partition('-')[0]}"
    uri = f"{sink}.{ending}" + ("" if ending == format else f"?format={format}")
    code, _, err = squall("run", *(f"{name}.rq" for name in programs), "--source", "x.ntt", "--sink", uri)
    assert code == 0, err
    files = sorted(str(path) for path in Path().glob(f"out*.{ending}"))
    assert len(files) >= len(programs) * ("query" in sink) + ("query" not in sink)
    assert {tuple(columns_in_file(file, format)) for file in files} == {tuple(columns)}


@pytest.mark.parametrize("format", TABLES)
@pytest.mark.parametrize(
    ("programs", "name"), [(["time"], "time"), (["rule", "a"], "rule"), (["time"], "change"), (["rule"], "change")]
)
def test_a_variable_with_the_name_of_a_column_is_refused_before_the_run(
    format: str, programs: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ntt").write_text("")
    for program in programs:
        variable = name if name == "change" else program if len(programs) == 1 else "rule"
        Path(f"{program}.rq").write_text(f"SELECT ?{variable} {{ ?s <urn:p> ?{variable} }}")
    output = ("--output", "changes") if name == "change" else ()
    files = [f"{program}.rq" for program in programs]
    code, _, err = squall("run", *files, "--source", "x.ntt", "--sink", f"out.x?format={format}", *output)
    assert (code, f"the variable `?{name}` of" in err, f"`SELECT (?{name} AS ?{name}Value)`" in err) == (2, True, True)


# Parquet


def naive_type(terms: Sequence[Term]) -> str:
    """Returns the type of a column by the definition: the first one that holds each value as it is."""
    values = [plain_value(term) if len(term) > 1000 else to_python(term) for term in terms]
    kinds = set(map(type, values))
    if kinds == {bool}:
        return "bool"
    if kinds and kinds <= {int, Decimal, float}:
        numbers = [Decimal(value) for value in values if not isinstance(value, float)]  # type: ignore[arg-type]
        if kinds == {int} and all(-(2**63) <= number < 2**63 for number in numbers):
            return "int64"
        texts = [format(number, "f").lstrip("-").partition(".") for number in numbers]
        scale = max((len(text[2]) for text in texts), default=0)
        if float not in kinds and max(len(text[0].lstrip("0")) for text in texts) + scale <= 38:
            return f"decimal128(38, {scale})"
        is_exact = all(abs(number) < 10**300 and Decimal(float(number)) == number for number in numbers)
        return "double" if is_exact else "string"
    if kinds == {datetime}:
        try:
            [value.astimezone(UTC) for value in values]  # type: ignore[union-attr]
        except OverflowError:
            return "string"
        return "timestamp[us, tz=UTC]"
    if kinds == {time} and all(value.tzinfo is None for value in values):  # type: ignore[union-attr]
        return "time64[us]"
    return {frozenset((date,)): "date32[day]", frozenset((bytes,)): "binary"}.get(frozenset(kinds), "string")


@given(st.lists(st.one_of(TERMS, st.none()), max_size=6), st.randoms(use_true_random=False))
def test_a_column_has_the_narrowest_type_that_holds_all_values(terms: list[Term | None], order: random.Random) -> None:
    check_column(terms)
    check_column(order.sample(terms, len(terms)))


@given(st.sampled_from(_DATATYPES), st.lists(_LEXICAL, min_size=1, max_size=4))
def test_a_column_of_one_datatype(name: str, lexical: list[str]) -> None:
    check_column([literal(text, XSD + name) for text in lexical])


def check_column(terms: Sequence[Term | None]) -> None:
    column = TypedColumn("x")
    for term in terms:
        column.observe(term)
    array = column.array(terms)
    bound = [term for term in terms if term is not None]
    assert str(array.type) == naive_type(bound)
    for term, value in zip(terms, array.to_pylist(), strict=True):
        if term is None:
            assert value is None
        elif array.type == pyarrow.string():
            assert value == plain_value(term)
        else:
            expected: Any = to_python(term)
            assert value == expected or (isnan(value) and isnan(expected))


@given(st.lists(st.tuples(TERMS, st.one_of(TERMS, st.none())), max_size=8))
def test_a_file_has_the_values_of_its_columns(rows: list[tuple[Term, Term | None]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.parquet")
        written(str(path), *(solution(*row, at=number) for number, row in enumerate(rows)))
        assert [file.name for file in path.parent.iterdir()] == ["x.parquet"]
        table = parquet.read_table(path)
    assert table.column_names[:2] == ["time", "rule"]
    assert [str(kind) for kind in table.schema.types[:2]] == ["timestamp[ms, tz=UTC]", "string"]
    assert table["time"].cast(pyarrow.int64()).to_pylist() == [*range(len(rows))]
    for name, terms in zip(("a", "b"), zip(*rows, strict=True), strict=False):
        column = TypedColumn(name)
        for term in terms:
            column.observe(term)
        assert repr(table[name].to_pylist()) == repr(column.array(terms).to_pylist())


@pytest.mark.parametrize(
    ("type", "lexical", "value"),
    [
        ("string", "007", "007"), ("boolean", "1", True), ("boolean", "2", None), ("int", "7", 7),
        ("int", "2147483648", None), ("long", "2147483648", 2**31), ("long", "20.0", None), ("float", "0.5", 0.5),
        ("double", "21", 21.0), ("double", "20.1", 20.1), ("double", "hot", None), 
        ("decimal(4,2)", "20.1", Decimal("20.10")),
        ("decimal(4, 2)", "20.100", Decimal("20.10")), ("decimal(4,2)", "20.123", None),
        ("decimal(4,2)", "120.1", None),
        ("decimal", "12", Decimal(12)), ("decimal", "1.5", None), ("decimal(38,0)", "1" * 38, Decimal("1" * 38)),
        ("date", "2024-02-29", date(2024, 2, 29)), ("date", "2024-02-30", None),
        ("timestamp", "2024-02-29T10:00:00+05:00", datetime(2024, 2, 29, 5, tzinfo=UTC)),
        ("timestamp", "0001-01-01T00:00:00+14:00", None), ("long", "9" * 5000, None),
    ],
)  # fmt: skip
def test_the_type_of_a_column_can_be_given(type: str, lexical: str, value: object, tmp_path: Path) -> None:
    path, datatype = tmp_path / "x.parquet", XSD + random.Random(lexical).choice(("string", "integer", "decimal"))
    output = solution(literal("x"), literal(lexical, datatype))
    if value is None:
        with pytest.raises(SinkError, match=r"of `b` is no .*\n.*--typed 'b=string'"):
            written(str(path), output, b=type)
        return
    written(str(path), output, b=type)
    assert parquet.read_table(path).to_pylist()[0]["b"] == value
    written(str(path), output, all=type if type == "string" else "string", b=type)
    assert parquet.read_table(path).to_pylist()[0]["a"] == "x"


def test_all_outputs_of_a_file_have_the_same_columns(tmp_path: Path) -> None:
    path = f"{tmp_path}/x.parquet"
    with pytest.raises(SinkError, match=r"cannot hold outputs with other columns than a\n.*ndjson-values"):
        written(path, solution(literal("x")), solution(literal("x"), literal("y")))
    with pytest.raises(SinkError, match="other columns"):
        written(path, Output(Boolean(True), 1, "q", "insert"), Output(Boolean(True), 1, "q"))


def test_a_file_of_many_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squall.streams.sinks.parquet_files._ROWS_PER_GROUP", 7)
    numbers = [*range(20), "20.5"]
    outputs = [
        solution(literal(str(number), XSD + ("decimal" if number == "20.5" else "integer"))) for number in numbers
    ]
    written(f"{tmp_path}/x.parquet", *outputs)
    file = parquet.ParquetFile(tmp_path / "x.parquet")
    assert file.num_row_groups == 3
    assert file.read()["a"].to_pylist() == [*map(Decimal, numbers)]


def test_a_file_for_each_evaluation(tmp_path: Path) -> None:
    outputs = [solution(literal(text, XSD + "integer"), at=at) for at, text in ((1, "1"), (1, "2"), (2, "x"))]
    written(f"{tmp_path}/x-{{time}}.parquet", *outputs)
    values = [parquet.read_table(tmp_path / f"x-{at}.parquet")["a"].to_pylist() for at in (1, 2)]
    assert values == [[1, 2], ["x"]]
    with pytest.raises(SinkError, match="`x` of `a` is no long"):
        written(f"{tmp_path}/x-{{time}}.parquet", *outputs, a="long")


# Programs


QUERY = "PREFIX : <http://example.org/> SELECT ?room ?d ?since { ?room :reads ?d . OPTIONAL { ?room :since ?since } }"
DATA = """\
1000 <http://example.org/hall> <http://example.org/reads> "21"^^<http://www.w3.org/2001/XMLSchema#integer> .
2000 <http://example.org/hall> <http://example.org/reads> "20.5"^^<http://www.w3.org/2001/XMLSchema#double> .
2000 <http://example.org/hall> <http://example.org/since> "2024-02-29"^^<http://www.w3.org/2001/XMLSchema#date> .
3000 <http://example.org/attic> <http://example.org/reads> "-3"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(QUERY)
    Path("x.ntt").write_text(DATA)
    return "run", "q.rq", "--source", "x.ntt"


def rows_in_files() -> list[list[dict[str, Any]]]:
    with open("out.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    lines = [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()]
    tables = [rows, lines, parquet.read_table("out.parquet").to_pylist()]
    return [sorted(table, key=repr) for table in tables]


SINKS = ("out.csv", "out.ndjson?format=ndjson-values", "out.parquet")
BUILDERS = [
    pytest.param("iterator", "rete"),
    pytest.param("iterator", "greedy"),
    pytest.param("spark", "rete", marks=[pytest.mark.spark, pytest.mark.more]),
    pytest.param("beam", "rete", marks=[pytest.mark.beam, pytest.mark.more]),
]


@pytest.mark.parametrize(("builder", "planner"), BUILDERS)
def test_files_are_the_same_on_all_builders(
    builder: str, planner: str, program: tuple[str, ...], squall: Squall
) -> None:
    for sink in SINKS:
        code, _, err = squall(*program, "--sink", sink, "--builder", builder, "--planner", planner)
        assert code == 0, err
    rows, lines, table = rows_in_files()
    hall, attic = "http://example.org/hall", "http://example.org/attic"
    day = "2024-02-29"
    expected = [(1000, hall, 21, None), (2000, hall, 21, day), (2000, hall, 20.5, day),
                (3000, attic, -3, None)]  # fmt: skip
    as_rows: list[dict[str, Any]] = [
        {"time": at, "room": room, "d": d, "since": since} for at, room, d, since in expected
    ]
    assert lines == sorted(as_rows, key=repr)
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in as_rows]
    assert rows == sorted(texts, key=repr)
    typed = [
        {
            **row,
            "time": datetime.fromtimestamp(row["time"] / 1000, UTC),
            "d": float(row["d"]),
            "since": row["since"] and date.fromisoformat(row["since"]),
        }
        for row in as_rows
    ]
    assert {repr({**row, "time": row["time"].timestamp()}) for row in table} == {
        repr({**row, "time": row["time"].timestamp()}) for row in typed
    }
    assert len(table) == len(typed)


def test_an_empty_answer_has_its_columns(program: tuple[str, ...], squall: Squall) -> None:
    Path("x.ntt").write_text("")
    assert squall(*program, "--sink", "out.parquet")[0] == 0
    assert parquet.read_table("out.parquet").column_names == ["time", "room", "d", "since"]
    assert squall(*program, "--sink", "out.parquet", "--output", "changes")[0] == 0
    assert parquet.read_table("out.parquet").column_names == ["time", "change", "room", "d", "since"]


def test_changes_are_a_column(program: tuple[str, ...], squall: Squall) -> None:
    arguments = ("--window", "RANGE 1s", "--output", "changes", "--sink", "out.parquet")
    assert squall(*program, *arguments)[0] == 0
    assert {"insert", "delete"} == set(parquet.read_table("out.parquet")["change"].to_pylist())


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (("--format", "csv-values"), "there is no format `csv-values` any more", "write `csv`"),
        (("--format", "tsv-values"), "there is no format `tsv-values` any more", "`tsv-terms`"),
        (("--format", "parquet"), "is a format of files", "--sink out.parquet"),
        (("--sink", "out.parquet.gz"), "would be compressed twice", "leave"),
        (("--sink", "no/out.parquet"), "there is no folder `no`", ""),
        (("--sink", "out.parquet", "--typed", "dd=long"), "there is no column `dd`", "did you mean `d`?"),
        (("--sink", "out.parquet", "--typed", "d=number"), "cannot have the type `number`", "types: string"),
        (("--sink", "out.parquet", "--typed", "d=long(3,1)"), "cannot have the type", "types: string"),
        (("--sink", "out.parquet", "--typed", "d=decimal(39,1)"), "cannot have the type", "at most 38 digits"),
        (("--sink", "out.parquet", "--typed", "d=decimal(3,4)"), "cannot have the type", "at most 38 digits"),
        (("--sink", "out.csv", "--typed", "d=long"), "is for Parquet files", "plain values anyway"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(
    options: tuple[str, ...], message: str, hint: str, program: tuple[str, ...], squall: Squall
) -> None:
    code, out, err = squall(*program, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert hint in err


@pytest.mark.parametrize("sink", ["out.parquet", "-?format=ndjson-values"])
def test_a_variable_called_time_is_refused_before_the_run(sink: str, program: tuple[str, ...], squall: Squall) -> None:
    Path("q.rq").write_text("SELECT ?time { ?time ?p ?o }")
    code, out, err = squall(*program, "--sink", sink)
    assert (code, out) == (2, "")
    assert "the variable `?time` of `q` has the name of a column of all outputs" in err


def test_a_run_that_resumes_continues_the_table(program: tuple[str, ...], squall: Squall) -> None:
    Path("x.ntt").write_text(DATA.splitlines(keepends=True)[0])
    durable = (*program, "--sink", "out.parquet", "--checkpoint", "cp")
    assert squall(*durable)[0] == 0
    assert parquet.read_table("out.parquet").schema.field("d").type == pyarrow.int64()
    Path("x.ntt").write_text(DATA)
    assert squall(*durable)[0] == 0
    assert parquet.read_table("out.parquet")["d"].to_pylist() == [21.0, 21.0, 20.5, -3.0]
    Path(".out.parquet.rows").write_text("")
    code, _, err = squall(*durable)
    assert code != 0
    assert "the rows of `out.parquet` are not what they were" in err


def test_an_interrupted_line_of_rows_is_none(tmp_path: Path) -> None:
    sink = ParquetSink("x.parquet", tmp_path / "x.parquet")
    sink.start()
    sink.write(solution(literal("1", XSD + "integer")))
    state = sink.snapshot()
    sink.write(solution(literal("x")))
    sink.close()
    with (tmp_path / ".x.parquet.rows").open("ab") as file:
        file.write(b"[1, ")
    again = ParquetSink("x.parquet", tmp_path / "x.parquet")
    again.start(resume=True)
    again.restore(state)
    again.write(solution(literal("2", XSD + "integer")))
    again.close()
    assert parquet.read_table(tmp_path / "x.parquet")["a"].to_pylist() == [1, 2]


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    sink = open_sink(f"{tmp_path}/x.parquet")
    tmp_path.rename(tmp_path.with_name("gone"))
    with pytest.raises(SinkError, match="cannot be written: No such file"):
        sink.start()
    with pytest.raises(UsageError, match="there is no folder"):
        open_sink(f"{tmp_path}/x.parquet")


@pytest.mark.parametrize(
    ("lexical", "datatype", "is_bare"),
    [
        ("20.5", "double", True), ("2.05E1", "float", True), ("-INF", "double", True), ("hot", "double", False),
        ("2024-02-29T10:00:00.5+01:00", "dateTime", True), ("2024-02-29", "date", True), ("PT1M30S", "duration", True),
        ("today", "date", False), ("5", "string", False), ("5", "byte", False),
    ],
)  # fmt: skip
def test_a_table_has_bare_values(lexical: str, datatype: str, is_bare: bool, tmp_path: Path) -> None:
    written(f"{tmp_path}/x?format=table", solution(literal(lexical, XSD + datatype)))
    cell = (tmp_path / "x").read_text().split("\n")[-3].strip()
    assert (cell == lexical) == is_bare
    assert cell == lexical or cell.startswith(f'"{lexical}"')


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["integer 9223372036854775807", "integer -9223372036854775808"], "int64"),
        (["integer 9223372036854775808"], "decimal128(38, 0)"),
        (["double 1.5", "integer 9007199254740992"], "double"),
        (["double 1.5", "integer 9007199254740993"], "string"),
        (["double 1.5", "decimal 0.1"], "string"),
        (["decimal 0." + "1" * 20, "integer " + "1" * 18], "decimal128(38, 20)"),
        (["decimal 0." + "1" * 20, "integer " + "1" * 19], "string"),
    ],
)
def test_the_bounds_of_types(values: list[str], type: str) -> None:
    terms = [literal(lexical, XSD + name) for name, lexical in (value.split() for value in values)]
    check_column(terms)
    column = TypedColumn("x")
    for term in terms:
        column.observe(term)
    assert str(column.array(terms).type) == type
