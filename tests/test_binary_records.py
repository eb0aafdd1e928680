"""Records of Avro and Parquet through a mapping: as sources of all kinds, with dead letters, and there and back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastavro
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import squall as squall_api
from squall.errors import PluginError, SquallError, UsageError
from squall.functions.python_values import to_python, to_term
from squall.rdf import Event, Term
from squall.streams import DeadLetterFile, Source, open_source
from squall.streams.formats import BY_NAME
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, decode
from squall.streams.live.messages import Message, read
from squall.streams.mappings import short_form
from squall.streams.mappings.model import Records

Squall = Callable[..., tuple[int, str, str]]

PLAIN = 'PREFIX : <urn:> { "s": ?s, "d": ?d, "t": ?t } => { :{?s} :d ?d } AT ?t'
NESTED = 'PREFIX : <urn:> { "s": ?s, "in": { "tags": [ { "n": ?n } ] }, "t": ?t } => { :{?s} :n ?n } AT ?t'
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "s", "type": ["null", "string"]},
        {"name": "d", "type": ["null", "double"]},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
ROWS: list[dict[str, Any]] = [
    {"s": "a", "d": 20.5, "t": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    {"s": None, "d": 1.0, "t": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)},
    {"s": "b", "d": None, "t": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)},
    {"s": "b", "d": 21.0, "t": datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.map").write_text(PLAIN)
    return tmp_path


def write(path: str, rows: Sequence[dict[str, Any]] = ROWS, schema: Any = SCHEMA, **options: Any) -> None:
    if path.endswith(".parquet"):
        parquet.write_table(pyarrow.Table.from_pylist([*rows]), path, **options)
        return
    with open(path, "wb") as file:
        fastavro.writer(file, schema, rows, **options)


def events_of(uri: str, ledger: DeadLetterFile | None = None) -> list[Event]:
    source: Source = open_source(uri, ledger or DeadLetterFile())
    return [event for batch in source.batches() for event in batch]


def lines_of(uri: str, ledger: DeadLetterFile | None = None) -> list[str]:
    return [f"{event.time} {fact}" for event in events_of(uri, ledger) for fact in event.facts]


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_records_become_triples(name: str) -> None:
    write(name)
    ledger = DeadLetterFile("lost.ndjson")
    double = "^^<http://www.w3.org/2001/XMLSchema#double> ."
    assert lines_of(f"{name}?map=m.map", ledger) == [
        f'1000 <urn:a> <urn:d> "20.5"{double}', f'3000 <urn:b> <urn:d> "21.0"{double}',
    ]  # fmt: skip
    ledger.close()
    (dead_letter,) = map(json.loads, Path("lost.ndjson").read_text().splitlines())
    assert dead_letter["reason"] == "record 2: the field `s` is missing, which the subject needs"
    assert (dead_letter["source"], dead_letter["cause"], dead_letter["line"]) == (name, "malformed", None)
    assert '"d": "1.0"' in dead_letter["text"]


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_nested_records(name: str) -> None:
    Path("n.map").write_text(NESTED)
    rows = [{"s": "a", "in": {"tags": [{"n": 1}, {"n": 2}]}, "t": 5}, {"s": "b", "in": {"tags": []}, "t": 6}]
    tag = {"type": "record", "name": "Tag", "fields": [{"name": "n", "type": "int"}]}
    inner = {"type": "record", "name": "In", "fields": [{"name": "tags", "type": {"type": "array", "items": tag}}]}
    fields = [{"name": "s", "type": "string"}, {"name": "in", "type": inner}, {"name": "t", "type": "long"}]
    write(name, rows, {"type": "record", "name": "R", "fields": fields})
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer> ."
    assert lines_of(f"{name}?map=n.map") == [f'5 <urn:a> <urn:n> "{number}"{integer}' for number in (1, 2)]


def test_values_have_their_datatypes() -> None:
    values = {
        "decimal": Decimal("20.50"), "boolean": True,
        "date": date(2024, 2, 29), "dayTimeDuration": timedelta(seconds=90),
        "dateTime": datetime(2024, 2, 29, 10, tzinfo=UTC), "hexBinary": b"\n\xff", "double": float("inf"), "integer": 7,
    }  # fmt: skip
    pattern = ", ".join(f'"{name}": ?v{number}' for number, name in enumerate(values))
    triples = " . ".join(f":s :{name} ?v{number}" for number, name in enumerate(values))
    Path("v.map").write_text(f"PREFIX : <urn:> {{ {pattern} }} => {{ {triples} }}")
    write("x.parquet", [values])
    (event,) = events_of("x.parquet?map=v.map")
    facts = {str(fact[1]): Term(str(fact[-1])) for fact in event.facts}
    assert facts["<urn:decimal>"] == '"20.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    for name, value in values.items():
        assert facts[f"<urn:{name}>"].endswith(f"XMLSchema#{name}>")
        assert to_python(facts[f"<urn:{name}>"]) == value


def test_values_that_python_has_no_type_for() -> None:
    """Files that pandas writes have nanoseconds, which pyarrow reads as values of pandas."""
    table = pyarrow.table(
        {
            "at": pyarrow.array([1_000_000_000_000_000_001, 1_000_000_000_000_000_000], pyarrow.timestamp("ns", "UTC")),
            "zoned": pyarrow.array([0, 3600], pyarrow.timestamp("s", "Europe/Vienna")),
            "took": pyarrow.array([1, 10**9], pyarrow.duration("ns")),
        }
    )
    parquet.write_table(table, "x.parquet")
    Path("v.map").write_text(
        'PREFIX : <urn:> { "at": ?at, "zoned": ?z, "took": ?took } => { :s :at ?at ; :z ?z ; :took ?took } AT ?at'
    )
    texts = [line.partition("^^")[0] for line in lines_of("x.parquet?map=v.map")]
    assert texts == [
        '1000000000000 <urn:s> <urn:at> "2001-09-09T01:46:40.000000001Z"',
        '1000000000000 <urn:s> <urn:took> "PT0.000000001S"',
        '1000000000000 <urn:s> <urn:z> "1970-01-01T00:00:00Z"',
        '1000000000000 <urn:s> <urn:at> "2001-09-09T01:46:40Z"',
        '1000000000000 <urn:s> <urn:took> "PT1S"',
        '1000000000000 <urn:s> <urn:z> "1970-01-01T01:00:00Z"',
    ]


def test_a_record_with_a_value_that_no_mapping_reads_is_a_dead_letter() -> None:
    attributes = pyarrow.array([{"a": {1: 2}}, {"a": {}}], pyarrow.struct({"a": pyarrow.map_("int64", "int64")}))
    parquet.write_table(pyarrow.table({"s": ["x", "y"], "m": attributes}), "x.parquet")
    Path("v.map").write_text('PREFIX : <urn:> { "s": ?s, "m": { "a": { "k": ?k } } } => { :{?s} a :T ; :k ?k }')
    ledger = DeadLetterFile("lost.ndjson")
    lines = lines_of("x.parquet?map=v.map", ledger)
    ledger.close()
    assert [line.split()[1] for line in lines] == ["<urn:y>"]
    (dead_letter,) = map(json.loads, Path("lost.ndjson").read_text().splitlines())
    assert dead_letter["reason"] == "record 1: it has the key `1`, which is no text"


VALUES = {
    "decimal": (st.decimals(-1000, 1000, places=2), pyarrow.decimal128(9, 2)),
    "double": (st.floats(allow_nan=False), pyarrow.float64()),
    "at": (st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), pyarrow.timestamp("us", "Europe/Vienna")),
    "local": (st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), pyarrow.timestamp("us")),
    "day": (st.dates(), pyarrow.date32()),
    "took": (st.timedeltas(timedelta(-9), timedelta(9)), pyarrow.duration("us")),
    "bytes": (st.binary(max_size=3), pyarrow.binary()),
    "list": (st.lists(st.decimals(0, 9, places=1), max_size=2), pyarrow.list_(pyarrow.decimal128(3, 1))),
}


@given(st.lists(st.fixed_dictionaries({name: st.none() | values for name, (values, _) in VALUES.items()}), max_size=4))
def test_a_table_has_the_same_terms_as_a_file_and_as_a_source(rows: list[dict[str, Any]]) -> None:
    table = pyarrow.Table.from_pylist(rows, pyarrow.schema([(name, type) for name, (_, type) in VALUES.items()]))
    pattern = ", ".join(f'"{name}": {"[ ?list ]" if name == "list" else f"?{name}"}' for name in VALUES)
    mapping = f"PREFIX : <urn:> {{ {pattern} }} => {{ {' . '.join(f':s :{name} ?{name}' for name in VALUES)} }}"
    with TemporaryDirectory() as folder:
        parquet.write_table(table, f"{folder}/x.parquet")
        Path(folder, "v.map").write_text(mapping)
        facts = [fact for event in events_of(f"{folder}/x.parquet?map={folder}/v.map") for fact in event.facts]
    assert facts == [fact for event in squall_api.from_dataframe(table, mapping) for fact in event.facts]
    for fact in facts:
        term = Term(str(fact[-1]))
        if term.endswith("decimal>"):
            assert term == to_term(to_python(term)), "the lexical form is that of the value"


ROW = st.fixed_dictionaries(
    {
        "s": st.text("abc/é ", min_size=1, max_size=3),
        "i": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        "f": st.one_of(st.none(), st.floats(allow_nan=False)),
        "b": st.one_of(st.none(), st.booleans()),
        "x": st.one_of(
            st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
        ),
        "at": st.one_of(st.none(), st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1))),
    }
)
FIELDS = ("i", "f", "b", "x", "at")
ROUND_TRIP = (
    f'PREFIX : <urn:> {{ "n": ?n, "s": ?s, {", ".join(f"{json.dumps(name)}: ?{name}" for name in FIELDS)} }} '
    f"=> {{ :{{?n}} :s ?s ; {' ; '.join(f':{name} ?{name}' for name in FIELDS)} }} AT ?n"
)
QUERY = (
    "PREFIX : <urn:> SELECT * { ?r :s ?s " + " ".join(f"OPTIONAL {{ ?r :{name} ?{name} }}" for name in FIELDS) + " }"
)


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_records_to_triples_to_typed_rows(format: str, squall: Squall) -> None:
    """What is read of a file is written to another one with the same types and values."""
    Path("r.map").write_text(ROUND_TRIP)
    Path("q.rq").write_text(QUERY)
    types: dict[str, Any] = {"n": "long", "s": "string", "i": "long", "f": "double", "b": "boolean", "x": "string"}
    at = {"type": "long", "logicalType": "timestamp-micros"}
    avro = [{"name": name, "type": ["null", type]} for name, type in {**types, "at": at}.items()]

    @given(st.lists(ROW, min_size=1, max_size=5))
    def law(rows: list[dict[str, Any]]) -> None:
        with TemporaryDirectory() as folder:
            records = [
                {"n": number, **row, "at": row["at"] and row["at"].replace(tzinfo=UTC)}
                for number, row in enumerate(rows)
            ]
            path, out = f"{folder}/x.{format}", f"{folder}/out.parquet"
            if format == "parquet":
                schema = pyarrow.schema(
                    [("n", "int64"), ("s", "string"), ("i", "int64"), ("f", "double"), ("b", "bool"), ("x", "string"),
                     ("at", pyarrow.timestamp("us", "UTC"))]
                )  # fmt: skip
                parquet.write_table(pyarrow.Table.from_pylist(records, schema), path)
            else:
                write(path, records, {"type": "record", "name": "R", "fields": avro})
            code, _, err = squall("run", "q.rq", "--source", f"{path}?map=r.map", "--sink", out, "--quiet")
            assert code == 0, err
            table = parquet.read_table(out).to_pylist()
        assert [{name: row[name] for name in ("s", *FIELDS)} for row in table] == [
            {name: record[name] for name in ("s", *FIELDS)} for record in records
        ]

    law()


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_reading_resumes_behind_the_records_that_were_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squall.streams.formats.binary_records._RECORDS_PER_BATCH", 3)
    write(name, [{"s": f"s{number}", "d": 1.0, "t": datetime.fromtimestamp(number, UTC)} for number in range(10)])
    whole = events_of(f"{name}?map=m.map")
    for batch_count in range(5):
        first: Any = open_source(f"{name}?map=m.map", DeadLetterFile())
        batches = first.batches()
        events = [event for _ in range(batch_count) for event in next(batches, ())]
        offset = first.current_offset()
        batches.close()
        second: Any = open_source(f"{name}?map=m.map", DeadLetterFile())
        second.resume(offset)
        assert events + [event for batch in second.batches() for event in batch] == whole
    assert len(whole) == 10


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_files_that_are_cut_off_or_of_another_format_are_dead_letters(name: str) -> None:
    write(name, ROWS * 50)
    data = Path(name).read_bytes()
    for content in (data[: len(data) // 2], b"<urn:a> <urn:b> <urn:c> .\n", b"Obj\1", b"\0" * 40):
        Path(name).write_bytes(content)
        ledger = DeadLetterFile("lost.ndjson")
        events_of(f"{name}?map=m.map", ledger)
        ledger.close()
        reasons = [json.loads(line)["reason"] for line in Path("lost.ndjson").read_text().splitlines()]
        assert f"it is no {name[2:].title()} that can be read: " in reasons[-1]
    Path(name).write_bytes(b"")
    ledger = DeadLetterFile()
    assert not events_of(f"{name}?map=m.map", ledger)
    assert not ledger.counts


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_unknown_fields_are_errors_with_near_misses(name: str, squall: Squall) -> None:
    write(name)
    Path("w.map").write_text(PLAIN.replace('"s"', '"ss"'))
    kind = "column" if name == "x.parquet" else "field"
    with pytest.raises(UsageError, match=rf"w.map:1:19: .*`{name}` has no {kind} `ss`") as error:
        open_source(f"{name}?map=w.map")
    assert error.value.hint == "did you mean `s`?"
    Path("in").mkdir()
    write(f"in/{name}")
    with pytest.raises(UsageError, match=f"has no {kind} `ss`"):
        open_source("in?map=w.map")
    ledger = DeadLetterFile("lost.ndjson")
    settings = Settings(name[2:], "", 0, records=Records(short_form.read(Path("w.map").read_text(), "w.map")))
    data = io.BytesIO(Path(name).read_bytes())
    assert not [*decode(data, "topic", BY_NAME[name[2:]], settings, ledger, ReadProgress(), place=DocumentPosition())]
    ledger.close()
    assert f"the document has no {kind} `ss` (did you mean `s`?)" in Path("lost.ndjson").read_text()
    _, out, err = squall("check", "w.map", "--source", name)
    assert "unknown-field" in out + err


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_folders_standard_input_and_static_data(name: str, squall: Squall) -> None:
    Path("in").mkdir()
    write(f"in/1{name}")
    write(f"in/2{name}", [{**ROWS[0], "t": datetime(1970, 1, 1, 0, 0, 9, tzinfo=UTC)}])
    assert len(lines_of("in?map=m.map")) == 3
    Path("u.map").write_text(PLAIN.replace(" AT ?t", ""))
    Path("q.rq").write_text("SELECT ?d { ?s <urn:d> ?d } ORDER BY ?d")
    code, out, err = squall("run", "q.rq", "--static", f"in/1{name}?map=u.map", "--format", "csv")
    assert (code, out.split()) == (0, ["time,d", ",20.5", ",21.0"]), err


@pytest.mark.parametrize(
    "builder", ["iterator", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
                pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more])],
)  # fmt: skip
def test_all_builders_read_them(builder: str, squall: Squall) -> None:
    Path("q.rq").write_text("SELECT ?s ?d { ?s <urn:d> ?d }")
    for name in ("x.avro", "x.parquet"):
        write(name)
        arguments = ("--source", f"{name}?map=m.map", "--sink", f"{name}.csv", "--builder", builder)
        code, _, err = squall("run", "q.rq", *arguments)
        assert code == 0, err
        assert "1 malformed" in err
        assert Path(f"{name}.csv").read_text().split() == ["time,s,d", "1000,urn:a,20.5", "3000,urn:b,21.0"]


@pytest.mark.parametrize("name", ["x.avro", "x.parquet"])
def test_a_mapping_is_proposed(name: str, squall: Squall) -> None:
    write(name)
    code, out, err = squall("map", name, "--quiet")
    assert code == 0, err
    Path("new.map").write_text(out)
    assert '"d"' in out
    assert "AT ?t" in out
    assert squall("check", "new.map", "--source", name)[0] == 0
    Path(name).write_bytes(b"nothing")
    code, _, err = squall("map", name)
    assert code != 0
    assert "has no record that can be read: it is no" in err


# Messages of Avro


def message_events(data: bytes, ledger: DeadLetterFile) -> list[Event]:
    mapping = short_form.read(PLAIN, "m.map")
    settings = Settings("avro", "", 0, longest=1 << 20, records=Records(mapping, schema=json.dumps(SCHEMA)))
    message = Message(data, "mqtt://host/t", "message 1")
    return [event for batch in read(message, BY_NAME["avro"], settings, ledger, ReadProgress()) for event in batch]


def encoded(row: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, SCHEMA, row)
    return file.getvalue()


def test_a_message_is_a_single_record_of_a_schema() -> None:
    ledger = DeadLetterFile("lost.ndjson")
    (event,) = message_events(encoded(ROWS[0]), ledger)
    assert (event.time, len(event.facts)) == (1000, 1)
    for data in (encoded(ROWS[0])[:-1], encoded(ROWS[0]) + b"x", b"\0\0\0\0\1" + encoded(ROWS[0]), encoded(ROWS[1])):
        assert not message_events(data, ledger)
    ledger.close()
    reasons = [json.loads(line)["reason"] for line in Path("lost.ndjson").read_text().splitlines()]
    assert [reason.split(";")[0][:40] for reason in reasons][:2] == [
        "message 1: it is no Avro that can be rea", "message 1: it is no record of the schema",
    ]  # fmt: skip
    assert "the wire format of Confluent, with the number of a schema in front, is not supported" in reasons[2]
    assert reasons[3] == "message 1: the field `s` is missing, which the subject needs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format=avro&map=w.map&schema=s.avsc", "`s.avsc` has no field `ss`"),
        ("format=avro&map=m.map&schema=no.avsc", "the schema `no.avsc` cannot be read: No such file"),
        ("format=avro&map=m.map&schema=m.map", "`m.map` is no schema of Avro"),
        ("format=avro&map=m.map&schema=int.avsc", "`int.avsc` is no schema of records"),
        ("format=avro&map=m.map&schema=unknown.avsc", "`unknown.avsc` is no schema of Avro"),
        ("format=json&map=m.map&schema=s.avsc", "is for records of Avro"),
        ("format=nt&schema=s.avsc", "is for records with a mapping"),
        ("format=avro", "the format `avro` is not RDF, and needs a mapping"),
        ("format=avro&map=m.map&separator=;", "is for CSV"),
    ],
)
def test_wrong_options_are_refused(options: str, message: str) -> None:
    Path("s.avsc").write_text(json.dumps(SCHEMA))
    Path("int.avsc").write_text('"int"')
    Path("unknown.avsc").write_text('{"type": "record", "name": "x", "fields": [{"name": "a", "type": "what"}]}')
    Path("w.map").write_text(PLAIN.replace('"s"', '"ss"'))
    with pytest.raises(SquallError, match=message):
        open_source(f"mqtt://host/topic?{options}")


def test_a_checkpoint_belongs_to_a_schema() -> None:
    from squall.streams.static_data import mapping_digest

    mapping = short_form.read(PLAIN, "m.map")
    digests = {
        mapping_digest(Settings("avro", "", 0, records=Records(mapping, schema=text))) for text in ("", "a", "b")
    }
    assert len(digests) == 3


@pytest.mark.parametrize(("name", "library"), [("avro", "fastavro"), ("parquet", "pyarrow")])
def test_a_missing_library_has_a_hint(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(f"x.{name}")
    monkeypatch.setattr("squall.streams.formats.find_spec", lambda _: None)
    with pytest.raises(PluginError, match=rf"the format `{name}` needs `{library}`.*\n.*squall\[{name}\]"):
        open_source(f"x.{name}?map=m.map")
