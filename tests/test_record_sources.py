"""Sources of records with a mapping: JSON, lines of JSON and CSV, on every source with a format and every builder."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.builders.distributed.io.ingest import document_of, is_readable_by_workers
from squall.builders.distributed.io.parsing import Document, lines_parser
from squall.contracts import Options
from squall.errors import BuilderError, SourceError, SquallError, UsageError
from squall.rdf import Event, Triple, statement_count, term
from squall.sparql_update.datasets import read as read_dataset
from squall.streams import DeadLetterFile, Source, Sources, open_source, open_static
from squall.streams.formats import BY_NAME
from squall.streams.formats.limits import ReadLimits
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, decode
from squall.streams.live.messages import Message
from squall.streams.live.messages import read as read_message
from squall.streams.mappings import short_form
from squall.streams.mappings.model import Records
from tests.in_memory import cut, run_anyhow

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
MAP = f"PREFIX ex: <{E}>\n" + '{ "s": ?s, "d": ?d, "t": ?t } => { ex:{?s} ex:d ?d ; a ex:S } AT ?t\n'
UNTIMED = f"PREFIX ex: <{E}>\n" + '{ "s": ?s, "d": ?d } => { ex:{?s} ex:d ?d }\n'
RML = f"""@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
<#m> rml:logicalSource [ rml:source "x" ; rml:referenceFormulation ql:CSV ] ;
  rr:subjectMap [ rr:template "{E}{{s}}" ] ;
  rr:predicateObjectMap [ rr:predicate <{E}d> ; rr:objectMap [ rml:reference "d" ] ] .
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.map").write_text(MAP)
    Path("u.map").write_text(UNTIMED)
    Path("m.ttl").write_text(RML)


def events_of(uri: str, ledger: DeadLetterFile | None = None) -> list[Event]:
    return [event for batch in open_source(uri, ledger).batches() for event in batch if event.facts]


def lines_of(uri: str, ledger: DeadLetterFile | None = None) -> list[str]:
    """Returns the statements of a source in short: the time, and the terms without the namespace."""
    return [
        f"{event.time} {' '.join(str(part).replace(E, '') for part in fact)}"
        for event in events_of(uri, ledger)
        for fact in event.facts
    ]


class Ledger(DeadLetterFile):
    """A ledger that keeps the lines and reasons of dead letters."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[tuple[int | None, str]] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        super().record(cause, source, line, reason, text)
        self.reasons.append((line, reason))


# Formats


def test_each_format_makes_events_of_its_records() -> None:
    Path("x.json").write_text('{\n "s": "a", "d": 1.50,\n "t": 1000}')
    Path("x.ndjson").write_text('{"s": "a", "d": 1.50, "t": 1000}\r\n\n{"t": "1970-01-01T00:00:02Z", "s": 7}')
    Path("x.csv").write_text('t,s,d\r\n1000,"a ""b"",\n c",1.5\r\n\r\n2000,e,\r\n')
    Path("y.tsv").write_text("1000\ta\t1.5\n")
    one_half = f'"1.5"^^<{XSD}double>'
    assert lines_of("x.json?map=m.map") == [
        f"1000 <a> <d> {one_half}",
        "1000 <a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <S>",
    ]
    assert lines_of("x.ndjson?map=m.map")[0::2] == [
        f"1000 <a> <d> {one_half}",
        "2000 <7> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <S>",
    ]
    assert lines_of("x.csv?map=m.map")[0::2] == [
        '1000 <a%20%22b%22%2C%0A%20c> <d> "1.5"',
        "2000 <e> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <S>",
    ]
    assert lines_of("y.tsv?format=csv&separator=tab&header=t,s,d&map=m.map")[0] == '1000 <a> <d> "1.5"'


def test_times_come_from_the_mapping_the_address_or_the_source() -> None:
    Path("x.ndjson").write_text('{"s": "a", "d": 1, "at": {"unix": 1.2345}}\n')
    assert [event.time for event in events_of("x.ndjson?map=u.map")] == [0]
    assert [event.time for event in events_of("x.ndjson?map=u.map&time=500")] == [500]
    assert [event.time for event in events_of("x.ndjson?map=u.map&time=at.unix")] == [1]
    assert [event.time for event in events_of("x.ndjson?map=u.map&time=$.at.unix&unit=s")] == [1234]
    Path("x.csv").write_text("s,d,when it was\na,1,2024-02-29T24:00:00+01:00\n")
    (event,) = events_of("x.csv?map=u.map&time=when it was")
    assert event.time == 1709247600000


def test_times_of_elements_make_an_event_for_each() -> None:
    text = (
        f'PREFIX ex: <{E}> {{ "id": ?s, "obs": [ {{ "v": ?v, "t": ?t }} ] }} => {{ ex:{{?s}} ex:v ?v }} AT ?t SECONDS'
    )
    Path("obs.map").write_text(text)
    Path("x.json").write_text('{"id": "a", "obs": [{"v": 2, "t": 9}, {"v": 1, "t": 3}, {"v": 5, "t": 9}]}')
    assert [(event.time, len(event.facts)) for event in events_of("x.json?map=obs.map")] == [(3000, 1), (9000, 2)]


def test_graphs_blank_nodes_and_compressed_files() -> None:
    Path("g.map").write_text(f'PREFIX ex: <{E}> {{ "g": ?g, "n": ?n }} => {{ GRAPH ex:{{?g}} {{ _:{{?n}} ex:p ?n }} }}')
    Path("x.ndjson.gz").write_bytes(gzip.compress(b'{"g": "h", "n": "a b"}\n{"g": "h", "n": "a b"}\n'))
    first, second = events_of("x.ndjson.gz?map=g.map")
    assert first == second
    assert first.graph == f"<{E}h>"
    subject = first.facts[0][0]
    assert str(subject).startswith("_:ba_20b.")
    assert events_of("x.ndjson.gz?map=g.map&stream=urn:s")[0].stream == "urn:s"


def test_static_data_datasets_folders_and_messages_have_mappings() -> None:
    Path("in").mkdir()
    Path("in/1.csv").write_text("s,d\na,1\n")
    Path("in/2.csv").write_text("d,s\n2,b\n")
    facts = {Triple(*map(term, (f"<{E}{name}>", f"<{E}d>", f'"{value}"'))) for name, value in (("a", 1), ("b", 2))}
    assert {fact for event in open_static("in?map=u.map") for fact in event.facts} == facts
    assert {fact for event in events_of("in?map=m.ttl") for fact in event.facts} == facts
    assert {fact for event in events_of("in?format=csv&map=u.map") for fact in event.facts} == facts
    assert read_dataset("in/2.csv?map=u.map").default < facts
    Path("in/3.csv").write_text("s,d\na\n")
    with pytest.raises(SourceError, match="2: the row has 1 values, and there are 2 columns"):
        read_dataset("in/3.csv?map=u.map")
    source: Any = open_source("ws://localhost:1/?format=csv&map=u.map&header=s,d")
    batches = read_message(
        Message(b"a,1\r\nb,2", "ws", "message 1"), source.format, source.settings, DeadLetterFile(), ReadProgress()
    )
    assert {fact for batch in batches for event in batch for fact in event.facts} == facts
    Path("x.csv").write_text("s,d,t\na,1,1\n")
    with pytest.raises(UsageError, match="is timed: it cannot be static"):
        open_static("x.csv?map=m.map")


SOURCES = [
    "tcp://localhost:1?format=ndjson", "unix:/x?format=ndjson", "http://localhost:1/x.json", "ws://localhost:1/?format=json",
    "mqtt://localhost:1/t?format=json", "redis://localhost:1/k?format=json", "kafka://localhost:1/t?format=json",
]  # fmt: skip


@pytest.mark.parametrize("uri", SOURCES)
def test_live_sources_have_the_option(uri: str) -> None:
    for module, scheme in (("paho", "mqtt"), ("redis", "redis"), ("confluent_kafka", "kafka")):
        if uri.startswith(scheme):
            pytest.importorskip(module)
    mark = "&" if "?" in uri else "?"
    source: Any = open_source(f"{uri}{mark}map=m.map")
    assert source.settings.records.mapping == short_form.read(MAP, "m.map")
    assert source.timed
    with pytest.raises(UsageError) as error:
        open_source(f"{uri}{mark}map=none.map")
    assert "the mapping `none.map` cannot be read: No such file" in error.value.message


def test_a_server_serves_json_to_a_polling_source(tmp_path: Path) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"s": "a", "d": 1, "t": 5}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source: Any = open_source(f"http://127.0.0.1:{server.server_port}/x?format=json&map=m.map&poll=1")
        events = next(batch for batch in source.batches() if batch)
        source.stop()
        server.shutdown()
    assert [event.time for event in events] == [5]


def test_standard_input_has_it() -> None:
    command = [sys.executable, "-c", "import sys; from squall.streams import open_source\n"
               "print([e.time for b in open_source('-?format=ndjson&map=m.map').batches() for e in b])"]  # fmt: skip
    result = subprocess.run(command, input=b'{"s": "a", "t": 3}\n', capture_output=True, check=True, cwd=os.getcwd(),
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert result.stdout == b"[3]\n"


@pytest.mark.parametrize("data", [b"", b" \r\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["x.json", "x.ndjson", "x.csv"])
def test_nothing_is_no_record(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    ledger = Ledger()
    assert not lines_of(f"{name}?map=u.map", ledger)
    assert not ledger.reasons


# Dead letters


def test_a_record_that_cannot_be_used_is_a_dead_letter_with_its_place() -> None:
    good = '{"s": "a", "d": 1, "t": 1}'
    bad = {
        "it is no JSON: Expecting ',' delimiter (column 11)": '{"s": "a" "d"}',
        "it is no JSON: Extra data (column 3)": "1 2",
        "it is no JSON that can be read: `NaN` is no value of JSON": '{"s": NaN}',
        "it has half of a character: \\ud800": '{"s": "\\ud800", "t": 1}',
        "the record, or the element of an array, is an array, and no object": "[]",
        "the field `s` is missing, which the subject needs": '{"t": 1}',
        "the field `s` is an array, and has no text: write `s[*]` for its elements": '{"s": [1], "t": 1}',
        "the field `d` is an object, and has no text": '{"s": "a", "d": {}, "t": 1}',
        "the field `t` is missing, which has the time": '{"s": "a", "t": null}',
        "the field `t`: `soon` is no time": '{"s": "a", "t": "soon"}',
        "the field `t`: `1e300` is no time": '{"s": "a", "t": 1e300}',
        "the field `t`: `true` is no time": '{"s": "a", "t": true}',
        "the field `t`: `-infinity` is no time": '{"s": "a", "t": "-infinity"}',
        "the number `1e400` is too large for xsd:double": '{"s": "a", "d": 1e400, "t": 1}',
        "it is no UTF-8: byte 8 is 0xff": '{"s": "\udcff"}',
    }
    Path("x.ndjson").write_bytes("\n".join([good, *bad.values(), good]).encode("utf-8", "surrogateescape"))
    ledger = Ledger()
    assert len(lines_of("x.ndjson?map=m.map", ledger)) == 4
    assert ledger.reasons == list(enumerate(bad, 2))
    assert ledger.counts == {("malformed", "x.ndjson"): len(bad)}


def test_rows_that_cannot_be_used() -> None:
    rows = {
        2: ("a", "the row has 1 values, and there are 3 columns"),
        3: ("a,1,2,3", "the row has 4 values, and there are 3 columns"),
        4: ('"a\nb"c,1,2', "it is no CSV: ',' expected after '\"'"),
        6: (",1,2", "the field `s` is missing, which the subject needs"),
        7: ("a,1,", "the field `t` is missing, which has the time"),
        8: ("\udcff,1,2", "it is no UTF-8: there is the byte 0xff"),
        9: ('a,1,"2', "a text in quotes is never closed"),
    }
    text = "s,d,t\n" + "\n".join(row for row, _ in rows.values())
    Path("x.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    ledger = Ledger()
    assert not lines_of("x.csv?map=m.map", ledger)
    assert ledger.reasons == [(line, reason) for line, (_, reason) in rows.items()]


def test_typed_values_are_checked() -> None:
    Path("typed.map").write_text(
        f'PREFIX ex: <{E}> PREFIX xsd: <{XSD}> {{ "s": ?s, "d": ?d, "w": ?w }} => '
        "{ ex:{?s} ex:d ?d^^xsd:double ; ex:w ?w^^xsd:dateTime ; ex:l ?s@en ; ex:u IRI(?s) }"
    )
    Path("x.csv").write_text("s,d,w\nurn:a,2.50,2024-01-01T00:00:00\nurn:b,x,\nurn:c,,today\nd,,\n")
    ledger = Ledger()
    assert lines_of("x.csv?map=typed.map", ledger) == [
        f'0 <urn%3Aa> <d> "2.50"^^<{XSD}double>', '0 <urn%3Aa> <l> "urn:a"@en',
        "0 <urn%3Aa> <u> <urn:a>", f'0 <urn%3Aa> <w> "2024-01-01T00:00:00"^^<{XSD}dateTime>',
    ]  # fmt: skip
    assert [reason for _, reason in ledger.reasons] == [
        "the field `d`: `x` is no xsd:double",
        "the field `w`: `today` is no xsd:dateTime",
        "the field `s`: `d` is no absolute IRI",
    ]


def test_a_document_that_is_no_json_says_where() -> None:
    Path("x.json").write_text('{"s": "a",\n "t" 1}')
    ledger = Ledger()
    assert not lines_of("x.json?map=m.map", ledger)
    assert ledger.reasons == [(None, "it is no JSON: Expecting ':' delimiter (line 2, column 6)")]
    Path("y.json").write_text('{"s": "a", "t": 1}\n{"s": "a", "t": 1}')
    lines_of("y.json?map=m.map", ledger)
    assert "is it `format=ndjson`?" in ledger.first["malformed", "y.json"][1]


def test_the_header_of_what_is_no_file_is_checked_when_it_comes() -> None:
    settings = Settings("csv", "", 0, records=Records(short_form.read(UNTIMED, "u.map")))
    ledger = Ledger()
    reading = ReadProgress()
    assert not [*decode(io.BytesIO(b"sensor,d\na,1"), "x", BY_NAME["csv"], settings, ledger, reading)]
    assert "the document has no column `s`" in ledger.reasons[0][1]
    assert reading.is_unreadable
    ledger = Ledger()
    assert not [*decode(io.BytesIO(b"\xff,d\na,1"), "x", BY_NAME["csv"], settings, ledger, reading)]
    assert ledger.reasons == [(1, "the header: it is no UTF-8: there is the byte 0xff; nothing of x is read")]


@pytest.mark.parametrize("name", ["json", "ndjson", "csv"])
def test_records_without_a_mapping_are_no_statements(name: str) -> None:
    ledger = DeadLetterFile()
    assert not [*decode(io.BytesIO(b"{}"), "x", BY_NAME[name], Settings(name, "", 0), ledger, ReadProgress())]
    assert "need a mapping: `map=FILE`" in ledger.first["malformed", "x"][1]


# Options


@pytest.mark.parametrize(
    ("uri", "message", "hint"),
    [
        ("x.csv", "`x.csv` is not RDF, and needs a mapping", "`format=csv&map=FILE`"),
        ("x.nt?map=m.map", "`map=m.map` in `x.nt?map=m.map` is for records, and not for RDF", "leave `map` out"),
        ("x.csv?map=u.map&format=nt", "is for records, and not for RDF", "`avro` or `parquet`"),
        ("x.csv?map=bad.map", "`x.csv` has no column `sensr`", "did you mean `sensor`?"),
        ("x.csv?map=nested.map", "`nested.map` has the path `a.b`, and rows of CSV have columns alone", "column"),
        ("x.csv?map=array.map", "`array.map` has the path `a`, and rows of CSV have columns alone", "column"),
        ("x.csv?map=number.map", "`number.map` compares a column with `5`, which no text equals", 'write `"5"`'),
        ("x.ndjson?map=m.ttl", "the mapping `m.ttl` is for CSV (`rml:referenceFormulation`), and not for JSON", ""),
        ("x.ndjson?map=m.map&header=a", "`header` in `x.ndjson?map=m.map&header=a` is for CSV", "leave it out"),
        ("x.ndjson?map=m.map&separator=;", "is for CSV", "leave it out"),
        ("x.csv?map=u.map&separator=ab", "`separator=ab` in", "separator=tab"),
        ("x.csv?map=u.map&header=s,d,s", "has `s` twice", "its own name"),
        ("twice.csv?map=u.map", "`twice.csv` has twice the column `s`", ""),
        ("x.ndjson?map=m.map&time=t", "has the time twice", "leave `time` out"),
        ("x.ndjson?map=u.map&unit=s", "`unit` in", "add `time=FIELD`"),
        ("x.ndjson?map=u.map&time=t&unit=d", "`unit=d` in", "units: `ms` and `s`"),
        ("x.ndjson?map=u.map&time=a..b", "`a..b` is not supported from `..b` on", ""),
        ("x.nt?unit=s", "`unit` in `x.nt?unit=s` is for records with a mapping", "add `map=FILE`"),
        (
            "mixed?map=m.map",
            "`mixed?map=m.map` has CSV and records of other formats, which have no mapping in common",
            "divide",
        ),
        ("x.json?map=latin.map", "the mapping `latin.map` cannot be read: it is not UTF-8", ""),
        ("x.json?map=http://example.org/m", "the mapping `http://example.org/m` is no file", "map=FILE"),
        ("tcp://localhost:1?format=ndjson.gz&map=m.map", "cannot be compressed", "format=ndjson"),
        ("x.csv?map=u.map&follow=yes&format=json", "cannot be followed", ""),
    ],
)
def test_errors_say_what_to_do(uri: str, message: str, hint: str) -> None:
    Path("mixed").mkdir()
    for name, text in {
        "x.csv": "sensor,s,d\na,b,c\n", "x.nt": "", "x.ndjson": "", "x.json": "{}", "twice.csv": "s,s,d\n",
        "bad.map": UNTIMED.replace('"s"', '"sensr"'),
        "nested.map": f'PREFIX ex: <{E}> {{ "a": {{ "b": ?s }} }} => {{ ex:{{?s}} a ex:S }}',
        "array.map": f'PREFIX ex: <{E}> {{ "s": ?s, "a": [ ?b ] }} => {{ ex:{{?s}} ex:b ?b }}',
        "number.map": f'PREFIX ex: <{E}> {{ "s": ?s, "d": 5 }} => {{ ex:{{?s}} a ex:S }}',
        "mixed/a.csv": "s,d\n", "mixed/b.json": "{}",
    }.items():  # fmt: skip
        Path(name).write_text(text)
    Path("latin.map").write_bytes(b"\xff")
    with pytest.raises(SquallError) as error:
        open_source(uri)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_a_missing_column_is_named_at_its_place_in_the_mapping() -> None:
    Path("x.csv").write_text("sensor,degrees\n")
    with pytest.raises(SquallError) as error:
        open_source("x.csv?map=u.map")
    assert "u.map:2:3: usage error: `x.csv` has no column `s`" in str(error.value)
    assert "u.map:2:12: usage error: `x.csv` has no column `d`" in str(error.value)


# Cuts of the input


def settings_of(records: Records, chunk_bytes: int) -> Settings:
    return replace(Settings("", "", 0, records=records), limits=ReadLimits(chunk_bytes=chunk_bytes))


VALUES = st.sampled_from(["a", "b c", 'q"', "l\nm", "c\rd", "é", "x,y", "", "7"])


@given(
    st.lists(st.lists(VALUES, min_size=2, max_size=3), max_size=8), st.integers(1, 40), st.booleans(), st.integers(0, 9)
)
def test_rows_are_those_of_the_csv_module_however_they_are_cut(
    rows: list[list[str]], chunk_bytes: int, has_bom: bool, resumed_after: int
) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["s", "d"], *rows])
    data = (b"\xef\xbb\xbf" if has_bom else b"") + file.getvalue().encode()
    expected = [tuple(row) for row in rows if len(row) == 2 and row[0]]
    settings = settings_of(Records(short_form.read(UNTIMED, "u.map")), chunk_bytes)
    settings = replace(settings, limits=replace(settings.limits, chunk_bytes=chunk_bytes))
    ledger, place = DeadLetterFile(), DocumentPosition()
    pairs: list[tuple[str, str]] = []

    def take(batches: Any, most: int | None) -> None:
        for number, batch in enumerate(batches, 1):
            pairs.extend((str(fact[0]), str(fact[2])) for event in batch for fact in event.facts)
            if number == most:
                break

    take(
        decode(io.BytesIO(data), "x", BY_NAME["csv"], settings, ledger, ReadProgress(), place=place), resumed_after or 1
    )
    before = replace(place)
    take(decode(io.BytesIO(data), "x", BY_NAME["csv"], settings, ledger, ReadProgress(), place=before), None)
    full = [(f"<{E}{_encoded(s)}>", _quoted(d)) for s, d in expected if d]
    assert pairs == full
    assert ledger.total("malformed") == len(rows) - len(expected)


def _encoded(text: str) -> str:
    from urllib.parse import quote

    return "".join(quote(letter, safe="") if letter.isascii() else letter for letter in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


LINES = st.sampled_from(
    [b'{"s": "a", "d": 1, "t": 5}', b'{"s": "b", "t": 6}', b'{"s": "c", "t": 7} {}', b"", b"[1", b"2]", b"1,2",
     b'{"s":"\xc3\xa9","t":7}',
     b'"\\ud83d\\ude00"', b'{"s": "\\ud83d\\ude00", "t": 9}', b"\xff", b'{"s": "\\ud83d", "t": 9}']
)  # fmt: skip


@given(st.lists(LINES, max_size=9), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(1, 64), st.booleans())
def test_lines_of_json_are_read_one_by_one(
    lines: Sequence[bytes], end: bytes, chunk_bytes: int, is_timed: bool
) -> None:
    """What a block has besides makes no difference to a line, nor does the end of lines."""
    records = Records(short_form.read(MAP if is_timed else UNTIMED, "m.map"))

    def read(data: bytes, chunk_bytes: int = 1 << 17) -> tuple[list[tuple[Any, ...]], int]:
        ledger = DeadLetterFile()
        settings = settings_of(records, chunk_bytes)
        batches = decode(io.BytesIO(data), "x", BY_NAME["ndjson"], settings, ledger, ReadProgress())
        facts = [(event.time, *fact) for batch in batches for event in batch for fact in event.facts]
        return facts, ledger.total("malformed")

    parts = [read(line) for line in lines]
    assert read(end.join(lines), chunk_bytes) == (
        [fact for facts, _ in parts for fact in facts],
        sum(count for _, count in parts),
    )


# Builders

QUERY = f"CONSTRUCT {{ ?s <{E}hot> ?d }} {{ ?s <{E}d> ?d FILTER(?d > 7) }}"


def write_records(count: int = 40) -> None:
    lines = [json.dumps({"s": f"s{number % 7}", "d": number % 10, "t": 1000 * number}) for number in range(count)]
    lines[5] = '{"s": "x"}'
    lines[9] = "{"
    Path("x.ndjson").write_text("\n".join(lines) + "\n")
    rows = [f"s{number % 7},{number % 10},{1000 * number}" for number in range(count)]
    rows[9] = "x"
    Path("x.csv").write_text("s,d,t\n" + "\n".join(rows) + "\n")


def answers(builder: str, uri: str, **options: Any) -> tuple[list[str], int]:
    query = QUERY.replace("?d > 7", f"<{XSD}integer>(?d) > 7")
    ledger = DeadLetterFile()
    job = squall.build(squall.plan(squall.compile(query, lexer="sparql")), builder, Options(ledger=ledger, **options))
    outputs = job.run(Sources([open_source(uri, ledger)]))
    return sorted(f"{output.time} {output.fact}" for output in outputs), ledger.total("malformed")


@pytest.mark.parametrize("uri", ["x.ndjson?map=m.map", "x.csv?map=m.map"])
@pytest.mark.parametrize(
    "builder",
    ["iterator", pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
     pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])],
)  # fmt: skip
def test_builders_agree(builder: str, uri: str) -> None:
    write_records()
    outputs, malformed = answers(builder, uri)
    numbers = [number for number in range(40) if number % 10 > 7 and number != 9]
    quoted = f'"{{}}"^^<{XSD}integer>' if "json" in uri else '"{}"'
    expected = {(number % 7, number % 10): 1000 * number for number in reversed(numbers)}
    assert outputs == sorted(
        f"{time} <{E}s{subject}> <{E}hot> {quoted.format(value)} ." for (subject, value), time in expected.items()
    )
    assert malformed == (2 if "json" in uri else 1)


@pytest.mark.parametrize("seed", range(3))
def test_the_toy_engine_agrees_on_what_workers_parse(seed: int) -> None:
    write_records()
    source: Any = open_source("x.ndjson?map=m.map", Ledger())
    lines = Path("x.ndjson").read_text().splitlines()
    batch = pyarrow.record_batch(
        [lines, ["file:///x.ndjson"] * len(lines), [0] * len(lines), [0] * len(lines)],
        names=["value", "file", "block", "source"],
    )
    events = [event for part in lines_parser([document_of(source)])([batch], None, 0) for event in part.events]
    query = QUERY.replace("?d > 7", f"<{XSD}integer>(?d) > 7")
    plan = squall.plan(squall.compile(query, lexer="sparql"))
    outputs = run_anyhow(plan, cut(events, [5 * seed, 20]), (), seed)
    assert sorted(f"{output.time} {output.fact}" for output in outputs) == answers("iterator", "x.ndjson?map=m.map")[0]


def test_workers_get_the_mapping_and_not_its_path() -> None:
    write_records()
    ledger = Ledger()
    source: Any = open_source("x.ndjson?map=m.map", ledger)
    assert is_readable_by_workers(source)
    assert not is_readable_by_workers(open_source("x.csv?map=m.map"))
    document = document_of(source)
    Path("m.map").unlink()
    lines = Path("x.ndjson").read_text().splitlines()
    batch = pyarrow.record_batch(
        [lines, ["file:///x.ndjson"] * len(lines), [0] * len(lines), [0] * len(lines)],
        names=["value", "file", "block", "source"],
    )
    (parsed,) = lines_parser([document])([batch], None, 0)
    events = [event for part in source.batches() for event in part]
    assert parsed.statements == statement_count(parsed.events) == 76
    assert [*parsed.events] == events
    assert [(letter.line, letter.reason) for letter in parsed.lost] == ledger.reasons
    assert [line for line, _ in ledger.reasons] == [6, 10]


def test_workers_parse_messages_by_the_mapping() -> None:
    source: Any = open_source("ws://localhost:1/?format=json&map=m.map&stream=urn:s")
    document = Document("t", "urn:s", "json", messages=True, records=source.settings.records)
    Path("m.map").unlink()
    messages = [b'{"s": "a", "d": 1, "t": 5}', b"{", b'{"s": "b", "t": 6}']
    batch = pyarrow.record_batch(
        [messages, ["t[0]"] * 3, [7, 8, 9], [0] * 3], names=["value", "file", "block", "source"]
    )
    parsed = list(lines_parser([document])([batch], None, 0))
    assert [(event.time, event.stream, len(event.facts)) for part in parsed for event in part.events] == [
        (5, "urn:s", 2), (6, "urn:s", 1),
    ]  # fmt: skip
    assert [letter.reason for part in parsed for letter in part.lost] == [
        "offset 8: it is no JSON: Expecting property name enclosed in double quotes (line 1, column 2)"
    ]


# Checkpoints


def test_another_mapping_under_a_checkpoint_is_refused() -> None:
    write_records()
    assert answers("iterator", "x.ndjson?map=m.map", checkpoint="cp")[0]
    Path("m.map").write_text(MAP.replace("ex:d ?d", "ex:e ?d"))
    with pytest.raises(BuilderError) as error:
        answers("iterator", "x.ndjson?map=m.map", checkpoint="cp")
    assert "changed mappings `x.ndjson?map=m.map`" in error.value.message
    Path("m.map").write_text(f"# only a comment\n{MAP}")
    assert answers("iterator", "x.ndjson?map=m.map", checkpoint="cp") == ([], 2)  # nothing is read again


def test_a_followed_csv_file_is_read_on() -> None:
    Path("x.csv").write_text('s,d,t\na,1,1\nb,"2')
    source: Any = open_source("x.csv?map=m.map&follow=yes&poll=5", DeadLetterFile())
    times: list[int] = []

    def read() -> None:
        for batch in source.batches():
            times.extend(event.time for event in batch if event.facts)
            if len(times) == 1:
                with open("x.csv", "a") as file:
                    file.write('3",2\nc,4,5')
            if len(times) == 2:
                source.stop()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(10)
    assert times == [1, 2]
    offset = source.current_offset()
    with open("x.csv", "a") as file:
        file.write("\n")
    resumed: Source = open_source("x.csv?map=m.map", DeadLetterFile())
    resumed.resume(offset)  # type: ignore[attr-defined]
    assert [event.time for batch in resumed.batches() for event in batch if event.facts] == [5]
