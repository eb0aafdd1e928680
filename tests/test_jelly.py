"""Jelly as a format of sources and sinks, in exchange with other libraries."""

from __future__ import annotations

import io
import re
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.contracts import Output
from squall.errors import PluginError, SinkError, SourceError
from squall.rdf import Atom, Event, Quad, Term, Triple, iri, literal
from squall.sparql_update import datasets
from squall.streams import DeadLetterFile, open_sink, open_source, open_static
from tests import live, test_durable
from tests import test_live_http as live_http
from tests.laws import examples_of
from tests.limits import open_limited
from tests.test_live_sockets import resets, serving

pytest.importorskip("pyjelly")

import rdflib
from pyjelly import jelly as messages
from pyjelly.integrations.generic import parse
from pyjelly.serialize.ioutils import write_delimited

from squall.streams.formats import BY_NAME, jelly
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.reading import ReadProgress, Settings, decode

E = "http://example.org/"
TRIPLE = Triple(iri(E + "a"), iri(E + "p"), literal("x"))
NUMBER = Triple(iri(E + "a"), iri("urn:p"), Term('"5"^^<http://www.w3.org/2001/XMLSchema#integer>'))
QUAD = Quad(Term("_:b1"), iri(E + "p"), Term('"a\\nb"@en'), iri(E + "g"))
NESTED = Quad(iri("urn:p"), iri(E + "p"), Term("_:b1"), Term("_:b1"))
STATEMENTS = (TRIPLE, NUMBER, QUAD, NESTED, TRIPLE)


def out(fact: Any, time: int = 1) -> Output:
    return Output(fact, time, "rule")


def write(path: Path, *facts: Any, resume: bool = False) -> Path:
    with closing(open_sink(str(path))) as sink:
        sink.start(resume)
        for fact in facts:
            sink.write(out(fact))
    return path


def read(path: Path | str, ledger: DeadLetterFile | None = None, limits: ReadLimits = DEFAULT_LIMITS) -> list[Event]:
    return [event for batch in open_limited(str(path), limits, ledger).batches() for event in batch]


def statements(events: Sequence[Event]) -> list[str]:
    return numbered(" ".join((*map(str, fact), event.graph)).rstrip() for event in events for fact in event.facts)


def expected(*facts: tuple[str, ...]) -> list[str]:
    return numbered(map(" ".join, facts))


def numbered(statements: Iterable[str]) -> list[str]:
    """Returns the statements with labels of blank nodes replaced by numbers, in the order of their occurrence."""
    existing: dict[str, str] = {}
    return [
        re.sub(r"_:\S+", lambda label: existing.setdefault(label[0], f"_:{len(existing)}"), statement)
        for statement in statements
    ]


@pytest.mark.parametrize("name", ["x.jelly", "x.jelly.gz"])
def test_written_statements_are_read_again(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, *STATEMENTS)
    assert statements(read(path)) == expected(*STATEMENTS)


def test_names_are_written_once(tmp_path: Path) -> None:
    facts = [Triple(iri(f"{E}{number}"), iri(E + "temperature"), literal("x")) for number in range(100)]
    data = write(tmp_path / "x.jelly", *facts).read_bytes()
    assert data.count(b"temperature") == 1
    assert len(data) < 3000


def test_more_names_than_a_table_holds_are_read_again(tmp_path: Path) -> None:
    facts = [
        Triple(iri(f"urn:{n % 7}/{n}"), iri(f"{E}{n % 200}#p"), Term(f'"x"^^<urn:t{n % 50}>')) for n in range(9000)
    ]
    assert statements(read(write(tmp_path / "x.jelly", *facts))) == expected(*facts)


def test_appended_statements_are_read(tmp_path: Path) -> None:
    """A resumed run appends to its file in this way: its reader need not know the names of the first part."""
    write(tmp_path / "x.jelly", TRIPLE, QUAD, NUMBER)
    path = write(tmp_path / "x.jelly", NUMBER, QUAD, TRIPLE, resume=True)
    assert statements(read(path)) == expected(TRIPLE, QUAD, NUMBER, NUMBER, QUAD, TRIPLE)


@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")
def test_other_libraries_read_the_output(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jelly", TRIPLE, NUMBER, QUAD)
    result = rdflib.Dataset()
    result.parse(data=path.read_bytes(), format="jelly")
    quads = {tuple(part.n3() for part in quad if part is not None) for quad in result.quads()}
    assert len(quads) == 3
    assert {quad[3] for quad in quads} == {"<urn:x-rdflib:default>", f"<{E}g>"}
    assert {quad[2] for quad in quads} == {'"x"', NUMBER.object, '"""a\nb"""@en'}
    with path.open("rb") as file:
        assert len([*parse.parse_jelly_flat(file)]) == 3


@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")
@pytest.mark.parametrize("kind", [rdflib.Graph, rdflib.Dataset])
def test_what_others_write_is_read(tmp_path: Path, kind: type[rdflib.Graph]) -> None:
    """The streams are one of triples, with prefixes, and one of quads."""
    graph = kind()
    graph.bind("e", E)
    text = f'<{E}a> <{E}p> "x", 5 ; <urn:q> [ <urn:q> "y"@en ] .'
    graph.parse(data=text, format="turtle")
    graph.serialize(tmp_path / "x.jelly", format="jelly")
    events = datasets.read(f"{tmp_path}/x.jelly")
    facts = events.default.union(*events.named.values())
    assert len(facts) == 4
    assert {TRIPLE, *facts} == facts


def graphs(*rows: Any) -> bytes:
    """Returns a stream of graphs. This physical type states the name of a graph in front of its triples."""
    options = {"physical_type": messages.PHYSICAL_STREAM_TYPE_GRAPHS, "max_name_table_size": 8, "version": 1}
    frame = messages.RdfStreamFrame(rows=[{"options": options}, {"name": {"value": "urn:a:b"}}, *rows])
    return bytes(frame.SerializeToString())


IT = {"name_id": 1}
SAID = {"triple": {"s_iri": IT, "p_iri": IT, "o_literal": {"lex": "x"}}}


def test_a_stream_of_graphs_is_read(tmp_path: Path) -> None:
    rows = [{"graph_start": {"g_iri": IT}}, SAID, {"graph_end": {}}, {"graph_start": {"g_default_graph": {}}}, SAID]
    (tmp_path / "x.jelly").write_bytes(graphs(*rows))
    assert statements(read(tmp_path / "x.jelly")) == ['<urn:a:b> <urn:a:b> "x" <urn:a:b>', '<urn:a:b> <urn:a:b> "x"']


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"triple": {"s_iri": IT, "p_iri": IT, "o_triple_term": SAID["triple"]}}], "triple terms"),
        ([{"triple": {"s_iri": {"name_id": 7}, "p_iri": IT, "o_iri": IT}}], "invalid resolved index 7"),
        ([{"name": {"value": "a b"}}, {"triple": {"s_iri": {"name_id": 3}, "p_iri": IT, "o_iri": IT}}], "IRI"),
        ([{"triple": {"s_literal": {"lex": "x"}, "p_iri": IT, "o_iri": IT}}], ""),
        ([{}], ""),
    ],
)
def test_a_frame_that_is_broken_is_counted(tmp_path: Path, rows: list[Any], reason: str) -> None:
    """The contents of all earlier frames are output."""
    (tmp_path / "x.jelly").write_bytes(delimited(graphs(SAID), graphs(*rows), graphs(SAID)))
    ledger = DeadLetterFile(tmp_path / "lost")
    assert len(read(tmp_path / "x.jelly", ledger)) == 1
    ledger.close()
    (lines,) = (tmp_path / "lost").read_text().splitlines()
    assert reason in lines
    assert "is left out (" in lines


def delimited(*frames: bytes) -> bytes:
    written = io.BytesIO()
    for frame in frames:
        write_delimited(messages.RdfStreamFrame.FromString(frame), written)
    return written.getvalue()


def test_an_incomplete_frame_is_counted(tmp_path: Path) -> None:
    data = write(tmp_path / "x.jelly", *STATEMENTS).read_bytes()
    for cut in (1, 5):
        (tmp_path / "x.jelly").write_bytes(data[:-cut])
        ledger = DeadLetterFile()
        assert statements(read(tmp_path / "x.jelly", ledger)) == expected(*STATEMENTS[:-1])
        assert ledger.counts == {("malformed", f"{tmp_path}/x.jelly"): 1}


def test_a_frame_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    data = write(tmp_path / "x.jelly", TRIPLE, Triple(TRIPLE.subject, TRIPLE.predicate, literal("x" * 2000)))
    for content in (data.read_bytes(), b"\xff" * 100, graphs({"name": {"value": "x" * 2000}})):
        data.write_bytes(content)
        ledger = DeadLetterFile()
        assert len(read(data, ledger, ReadLimits(max_unit_bytes=1000))) <= 1
        assert ledger.counts == {("malformed", str(data)): 1}


@settings(max_examples=examples_of(300), deadline=None)
@given(st.data())
def test_any_input_is_read_or_counted(data: st.DataObject) -> None:
    """Some bytes of a valid stream are changed."""
    full_result = bytearray(b"".join(map(jelly.FrameEncoder().write, map(out, STATEMENTS))))
    for place in data.draw(st.lists(st.integers(0, len(full_result) - 1), max_size=3)):
        full_result[place] = data.draw(st.integers(0, 255))
    ledger, reading = DeadLetterFile(), ReadProgress()
    expectation = Settings("jelly", "", 0)
    results = list(decode(io.BytesIO(bytes(full_result)), "x", BY_NAME["jelly"], expectation, ledger, reading))
    assert reading.statements == sum(len(event.facts) for batch in results for event in batch)
    assert ledger.counts.keys() <= {("malformed", "x")}


def test_times_are_those_of_the_address_or_of_a_property(tmp_path: Path) -> None:
    at = Triple(TRIPLE.subject, iri(E + "at"), Term('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    path = write(tmp_path / "x.jelly", TRIPLE, at)
    assert {event.time for event in read(f"{path}?time=5")} == {5}
    assert [(event.time, len(event.facts)) for event in read(f"{path}?time={E}at")] == [(7, 2)]
    assert {fact for event in open_static(str(path)) for fact in event.facts} == {TRIPLE, at}


def test_a_frame_that_is_alone_is_read_alone() -> None:
    """Such a frame is the first of a new connection, or a message of a broker."""
    frames = jelly.FrameEncoder(alone=True)
    for fact in STATEMENTS:
        for data in (frames.write(out(fact)), jelly.of_outputs([out(fact)])):
            (result,) = (item for some in jelly.statements(io.BytesIO(data), "") for item in some)
            assert numbered([" ".join(result)]) == expected(fact)
    joined = b"".join(frames.write(out(fact)) for fact in STATEMENTS)
    assert sum(map(len, jelly.statements(io.BytesIO(joined), ""))) == len(STATEMENTS)


def test_a_reconnected_source_reads_on_from_its_position() -> None:
    chunks: list[bytes] = []
    event = threading.Event()

    def refuse(connection: socket.socket) -> None:
        connection.recv(1)
        resets(connection)
        connection.close()
        event.set()

    def take(connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            chunks.append(file.read())

    with serving(refuse, take) as port, closing(open_sink(f"tcp://127.0.0.1:{port}?format=jelly")) as sink:
        sink.start(prompt=True)
        sink.write(out(TRIPLE))
        assert event.wait(20)
        for fact in (TRIPLE, TRIPLE, QUAD):
            sink.write(out(fact))
        sink.close()
    results = [item for some in jelly.statements(io.BytesIO(chunks[0]), "") for item in some]
    assert numbered(map(" ".join, results[-2:])) == expected(TRIPLE, QUAD)


def test_a_request_names_its_content_type() -> None:
    with live_http.serving(live_http.status(200)) as server, closing(open_sink(server.at("?format=jelly"))) as sink:
        sink.start()
        sink.write(out(TRIPLE))
        ((_, headers, body),) = server.asked
    assert headers["Content-Type"] == "application/x-jelly-rdf"
    with live_http.serving(live_http.status(200, body)) as server:
        source = server.opened("?format=jelly&time=3&poll=1")
        with live.Run(source) as run:
            run.until(3)
    assert "application/x-jelly-rdf" in server.asked[0][1]["Accept"]


def test_events_of_a_server_are_text() -> None:
    with live_http.serving(live_http.stream(b"data: x\n\n")) as server, pytest.raises(SourceError, match="not Jelly"):
        list(server.opened("?format=jelly").batches())


@pytest.mark.more
def test_a_killed_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run reads Jelly and writes it."""
    (tmp_path / "a.ttl").write_text(test_durable.described(400, 1))
    facts = [fact for event in open_static(f"{tmp_path}/a.ttl", DeadLetterFile()) for fact in event.facts]
    write(tmp_path / "a.jelly", *facts)
    lines = test_durable.lines

    def written(path: Path) -> list[str]:
        return sorted(statements(read(f"{path}?format=jelly"))) if path.name in "ws" else lines(path)

    monkeypatch.setattr(test_durable, "lines", written)
    addresses = [f"{tmp_path}/a.jelly?time={E}at"]
    test_durable.Setting(tmp_path, addresses, limits=test_durable.SMALL_BLOCKS).holds("jelly")


def test_invalid_statements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="triples and quads"):
        write(tmp_path / "x.jelly", Atom(iri(E + "r"), (TRIPLE.subject,)))


def test_the_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.jelly").touch()
    monkeypatch.setitem(sys.modules, "pyjelly", None)
    for opening in (open_source, open_sink):
        for uri in (f"{tmp_path}/x.jelly", f"{tmp_path}/x?format=jelly"):
            (tmp_path / "x").touch()
            with pytest.raises(PluginError, match="needs `pyjelly`") as caught:
                opening(uri)
            assert "squall[jelly]" in str(caught.value)
    with pytest.raises(PluginError, match="needs `pyjelly`"):
        open_sink("http://localhost/?format=jelly")
