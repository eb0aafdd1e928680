"""The formats of evaluations: other libraries read what is written, and evaluations are distinguished."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pyoxigraph
import pytest
import rdflib.query
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import QueryResultsFormat, RdfFormat

from squall.contracts import Output
from squall.errors import SinkError, UsageError
from squall.rdf import (
    ALWAYS,
    XSD,
    Atom,
    Boolean,
    Evaluated,
    Quad,
    Solution,
    Term,
    Triple,
    iri,
    is_blank,
    is_iri,
    literal,
    parts,
    term,
)
from squall.streams import FileSink, open_sink, parse_lines
from squall.streams.formats.evaluations import Answered, Evaluation, EvaluationCollector, evaluation, stream_iri
from squall.streams.formats.graphs import TriGEncoder, timed_quad
from squall.streams.formats.results import json_line, srcsv, srj, srtsv, srx
from squall.streams.formats.tables import TextTableEncoder

E = "http://example.org/"


def out(answer: Answered, time: int = 5, rule: str = "q") -> Output:
    return Output(cast(Any, answer), time, rule)


def sol(rule: str = "q", time: int = 5, **values: str | None) -> Output:
    return out(
        Solution(tuple(values), tuple(None if value is None else Term(value) for value in values.values())), time, rule
    )


def a_triple(name: str) -> Triple:
    return Triple(iri(E + name), iri(E + "p"), literal("x"))


def write(uri: str | Path, *outputs: Output, resume: bool = False) -> None:
    with closing(open_sink(str(uri))) as sink:
        sink.start(resume)
        for output in outputs:
            sink.write(output)


# Documents

LEGAL = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
TEXTS = st.text(LEGAL | st.sampled_from("\t\n\r\"\\<>&' \x85\u2028"), max_size=6)
IRIS = st.sampled_from([E + "a", "https://example.org/b?x=1&y#z", E + "ä", "urn:x:1"]).map(iri)
BLANKS = st.sampled_from(["_:b0", "_:b1.af"]).map(Term)
LITERALS = st.one_of(
    st.builds(literal, TEXTS),
    st.builds(literal, TEXTS, language=st.sampled_from(["en", "de-at"])),
    st.builds(literal, TEXTS, datatype=st.just("urn:d")),
).map(term)
TERMS = st.none() | IRIS | BLANKS | LITERALS


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    names = draw(st.lists(st.sampled_from(["a", "b_1", "ähm", "x"]), unique=True, min_size=1))
    rows = draw(st.lists(st.tuples(*(TERMS for _ in names)), max_size=4))
    return evaluation(draw(st.integers()), draw(TEXTS), [Solution(tuple(names), row) for row in rows], names)


def rows(found: Evaluation) -> list[list[Term | None]]:
    return [[row.get(name) for name in found.names] for row in found.bindings]


def by_pyoxigraph(document: bytes, format: QueryResultsFormat) -> tuple[list[str], list[list[Term | None]]]:
    result = pyoxigraph.parse_query_results(document, format)
    assert isinstance(result, pyoxigraph.QuerySolutions)
    values = [[None if value is None else term(value) for value in solution] for solution in result]
    return [variable.value for variable in result.variables], values


def by_rdflib(document: bytes, format: str) -> tuple[list[str], list[list[Term | None]]]:
    tree = rdflib.query.Result.parse(io.BytesIO(document), format=format)
    names = [str(variable) for variable in tree.vars or ()]
    values = [[binding.get(rdflib.Variable(name)) for name in names] for binding in tree.bindings]
    # A term of rdflib's becomes canonical in a second step.
    return names, [[None if value is None else term(term(value)) for value in row] for row in values]


def unlabelled(table: Iterable[Sequence[Term | None]]) -> list[list[Term | None]]:
    """Returns rows without the labels of blank nodes, because some parsers change them."""
    return [[Term("_:") if value is not None and is_blank(value) else value for value in row] for row in table]


@given(evaluations())
def test_json_is_read_back(found: Evaluation) -> None:
    assert by_pyoxigraph(srj(found), QueryResultsFormat.JSON) == (list(found.names), rows(found))
    assert by_rdflib(srj(found), "json") == (list(found.names), rows(found))
    assert by_pyoxigraph(json_line(found), QueryResultsFormat.JSON) == (list(found.names), rows(found))
    assert json_line(found).count(b"\n") == 1


@given(evaluations())
def test_xml_is_read_back(found: Evaluation) -> None:
    assert by_pyoxigraph(srx(found), QueryResultsFormat.XML) == (list(found.names), rows(found))
    names, values = by_rdflib(srx(found), "xml")
    assert names == list(found.names)
    assert unlabelled(values) == unlabelled(rows(found))


@given(evaluations())
def test_tsv_is_read_back(found: Evaluation) -> None:
    assert by_pyoxigraph(srtsv(found), QueryResultsFormat.TSV) == (list(found.names), rows(found))


@given(evaluations())
def test_csv_has_the_bare_values(found: Evaluation) -> None:
    names, *values = csv.reader(io.StringIO(srcsv(found).decode(), newline=""))
    assert names == list(found.names)
    assert values == [["" if value is None else bare(value) for value in row] for row in rows(found)]


def bare(value: Term) -> str:
    if is_iri(value):
        return value[1:-1]
    return value if is_blank(value) else parts(value).lexical


SAMPLE = evaluation(
    5,
    "q",
    [
        Solution(("a", "b"), (iri(E + "a"), term(literal('x\t"y"', language="en")))),
        Solution(("a", "b"), (Term("_:b"), None)),
    ],
)


def test_rdflib_reads_tables() -> None:
    assert by_rdflib(srtsv(SAMPLE), "tsv") == (["a", "b"], rows(SAMPLE))
    tree = rdflib.query.Result.parse(io.BytesIO(srcsv(SAMPLE)), format="csv")
    assert tree.vars == [rdflib.Variable("a"), rdflib.Variable("b")]
    (first, last) = tree.bindings
    assert list(first.values()) == [rdflib.URIRef(E + "a"), rdflib.Literal('x\t"y"')]
    assert [type(value) for value in last.values()] == [rdflib.BNode]


def test_what_documents_look_like() -> None:
    assert srcsv(SAMPLE) == b'a,b\r\nhttp://example.org/a,"x\t""y"""\r\n_:b,\r\n'
    assert srtsv(SAMPLE) == b'?a\t?b\n<http://example.org/a>\t"x\\t\\"y\\""@en\n_:b\t\n'
    head = '{"head": {"vars": ["a", "b"], "link": ["urn:x-squall:evaluation:q:5"]}, "results": {"bindings": [{'
    assert srj(SAMPLE).decode().startswith(head)
    assert b'<head><variable name="a"/><variable name="b"/><link href="urn:x-squall:evaluation:q:5"/></head>' in srx(
        SAMPLE
    )
    line = json.loads(json_line(SAMPLE))
    assert list(line) == ["time", "query", "head", "results"]
    assert (line["time"], line["query"]) == (5, "q")
    assert line["results"]["bindings"][1] == {"a": {"type": "bnode", "value": "b"}}


@pytest.mark.parametrize("value", [True, False])
def test_booleans(value: bool) -> None:
    result = evaluation(5, "q", [Boolean(value)])
    for document, format, name in ((srj, QueryResultsFormat.JSON, "json"), (srx, QueryResultsFormat.XML, "xml")):
        assert bool(pyoxigraph.parse_query_results(document(result), format)) is value
        assert rdflib.query.Result.parse(io.BytesIO(document(result)), format=name).askAnswer is value
    assert json.loads(json_line(result)) == {"time": 5, "query": "q", "head": {}, "boolean": value}
    assert bool(Boolean(value)) is value
    assert str(Boolean(value)) == str(value).lower()


@pytest.mark.parametrize("format", ["srcsv", "srtsv"])
def test_tables_have_no_booleans(format: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"no form for a boolean\n.*`srj`"):
        write(tmp_path / f"out.{format}", out(Boolean(True)))


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\uffff"])
def test_what_xml_cannot_hold(character: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=rf"U\+{ord(character):04X}\n.*`srj`"):
        write(tmp_path / "out.srx", sol(a=literal(f"x{character}")))


def test_static_facts_have_no_time() -> None:
    assert json.loads(json_line(evaluation(ALWAYS, "q", [])))["time"] is None


# Evaluations

ROW = Solution(("a",), (iri(E + "a"),))
OUTPUTS = st.builds(
    Output,
    st.sampled_from([ROW, a_triple("s"), Atom(iri(E + "r"), (iri(E + "a"),))]),
    st.integers(0, 3),
    st.sampled_from(["q", "r"]),
    st.just(""),
)


@given(st.lists(OUTPUTS).map(lambda result: sorted(result, key=lambda item: item.time)))
@example([])
def test_every_output_is_in_the_one_evaluation_of_its_time_and_query(outputs: list[Output]) -> None:
    gathering = EvaluationCollector()
    result = [item for output in outputs for item in gathering.add(output)] + gathering.end()
    assert [item.time for item in result] == sorted(item.time for item in result)
    assert len({(item.time, item.query) for item in result}) == len(result)
    for item in result:
        same = [
            output.fact
            for output in outputs
            if (output.time, output.rule) == (item.time, item.query) and not isinstance(output.fact, Evaluated)
        ]
        assert item == evaluation(item.time, item.query, same)
    assert sum(len(item.bindings) for item in result) == len(outputs)


def test_an_evaluation_is_complete_when_its_end_is_marked() -> None:
    gathering = EvaluationCollector()
    assert gathering.add(out(ROW)) == []
    assert gathering.add(out(ROW, rule="r")) == []
    assert gathering.add(out(Evaluated(("a",)))) == [evaluation(5, "q", [ROW])]
    assert gathering.add(out(Evaluated(("a", "b")), rule="none")) == [Evaluation(5, "none", ("a", "b"), is_answer=True)]
    assert gathering.end() == [evaluation(5, "r", [ROW])]
    assert gathering.end() == []


def test_facts_are_solutions_as_well() -> None:
    result = evaluation(0, "r", [a_triple("s"), Atom(iri("urn:r"), (iri("urn:a"), literal("x")))])
    assert result.names == ("subject", "predicate", "object", "relation", "argument1", "argument2")
    assert [list(row) for row in result.bindings] == [list(result.names[:3]), list(result.names[3:])]


def test_a_line_for_each_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    write(
        f"{path}?format=ndjson-evaluations",
        sol(a="<urn:1>"),
        sol("r", a="<urn:2>"),
        sol(a="<urn:3>"),
        sol(time=6, a="<urn:4>"),
        out(Evaluated(("a",)), 7),
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    text = [(line["time"], line["query"], len(line["results"]["bindings"])) for line in lines]
    assert text == [(5, "q", 2), (5, "r", 1), (6, "q", 1), (7, "q", 0)]
    assert lines[3]["head"] == {"vars": ["a"]}


@pytest.mark.parametrize("format", ["srj", "srx", "srcsv", "srtsv"])
@pytest.mark.parametrize("second", [sol(time=6, a="<urn:1>"), sol("r", a="<urn:1>")])
def test_a_document_holds_one_evaluation(format: str, second: Output, tmp_path: Path) -> None:
    path = tmp_path / f"out.{format}"
    first = [sol(a="<urn:1>"), sol(a="<urn:2>")]
    with pytest.raises(SinkError, match=rf"holds one evaluation(.|\n)*'results-{{time}}-{{query}}.{format}'"):
        write(path, *first, second)
    alone = tmp_path / f"alone.{format}"
    write(alone, *first)
    assert path.read_bytes() == alone.read_bytes()
    with pytest.raises(SinkError, match="holds one evaluation"):
        write(alone, first[0], resume=True)
    assert path.read_bytes() == alone.read_bytes()


TABLE_FORMATS = ("ndjson", "ndjson-values", "csv", "tsv", "csv-terms", "tsv-terms")


@pytest.mark.parametrize("format", ["nt", "ntt", "nq", "nqt", *TABLE_FORMATS])
def test_that_an_evaluation_is_complete_is_no_line(format: str, tmp_path: Path) -> None:
    names = ("a",) if format in TABLE_FORMATS else ()  # of a query with variables there is a result set
    write(f"{tmp_path}/out.{format}?format={format}", out(Evaluated(names)))
    assert (tmp_path / f"out.{format}").read_bytes() == b""


def test_booleans_in_lines(tmp_path: Path) -> None:
    for format, text in {
        "ndjson": '{"time": 5, "rule": "q", "boolean": true}\n',
        "csv": "time,rule,boolean\r\n5,q,true\r\n",
        "tsv": "time\trule\tboolean\n5\tq\ttrue\n",
        "csv-terms": "time,rule,boolean\r\n5,q,true\r\n",
        "ndjson-values": '{"time": 5, "rule": "q", "boolean": true}\n',
    }.items():
        write(f"{tmp_path}/out.{format}?format={format}", out(Boolean(True)))
        assert (tmp_path / f"out.{format}").read_bytes().decode() == text


@pytest.mark.fault("S7")
@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("csv", ["time,rule,a,b", '5,q,urn:a,"2,""0"" \\', '"', "5,q,_:n,", "7,q,20,x"]),
        ("tsv", ["time\trule\ta\tb", '5\tq\turn:a\t2,"0" \\\\\\n', "5\tq\t_:n\t", "7\tq\t20\tx"]),
    ],
)
def test_plain_values_with_times(format: str, lines: list[str], tmp_path: Path) -> None:
    answers = (
        Output(Solution(("a", "b"), (iri("urn:a"), literal('2,"0" \\\n'))), 5, "q"),
        Output(Solution(("a", "b"), (Term("_:n"), None)), 5, "q"),
        Output(Evaluated(("a", "b")), 5, "q"),
        Output(Solution(("a", "b"), (literal("20", XSD + "integer"), literal("x", language="en"))), 7, "q"),
    )
    write(f"{tmp_path}/out?format={format}", *answers)
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == lines


@pytest.mark.fault("S7")
@pytest.mark.parametrize(
    ("answer", "row"),
    [
        (Boolean(True), "true"),
        (Triple(iri("urn:s"), iri("urn:p"), literal("5", XSD + "byte")), "urn:s,urn:p,5"),
        (Quad(iri("urn:s"), iri("urn:p"), literal("5"), iri("urn:g")), "urn:s,urn:p,5,urn:g"),
        (Atom(iri("urn:r"), (iri("urn:a"), literal("b"))), ",urn:r,urn:a b"),
    ],
)
def test_plain_values_of_facts_and_booleans(answer: Answered, row: str, tmp_path: Path) -> None:
    write(f"{tmp_path}/out?format=csv", out(answer))
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines()[1] == f"5,q,{row}"


def test_a_sink_is_truncated_to_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    sink = open_sink(f"{path}?format=ndjson-evaluations")
    assert isinstance(sink, FileSink)
    with closing(sink):
        sink.start()
        sink.write(sol(a="<urn:1>"))
        mark = sink.position()
        assert path.stat().st_size == mark > 0
        sink.write(sol(time=6, a="<urn:2>"))
        sink.truncate(mark)
        sink.write(sol(time=7, a="<urn:3>"))
    assert [json.loads(line)["time"] for line in path.read_text().splitlines()] == [5, 7]


# Graphs

TRIPLES = st.builds(Triple, IRIS | BLANKS, IRIS, IRIS | BLANKS | LITERALS)
RULES = st.sampled_from(["r", "a rule, 2", E + "out", "ä{b}"])
TIMES = st.sampled_from([ALWAYS, -1, 0, 1500, 253402300800000])
MADE = st.lists(st.builds(Output, TRIPLES, TIMES, RULES, st.just("")), max_size=8).map(
    lambda found: sorted(found, key=lambda one: one.time)
)


def encoded(format: str, outputs: Iterable[Output], folder: Path) -> bytes:
    write(f"{folder}/out.{format}?format={format}", *outputs)
    return (folder / f"out.{format}").read_bytes()


@given(MADE)
def test_timed_quads_are_read_back(made: list[Output]) -> None:
    lines = [timed_quad(output) for output in made]
    plain = [Output(Triple(*(Term("_:") if is_blank(item) else item for item in output.fact)), *output[1:])
             for output in made if isinstance(output.fact, Triple)]  # fmt: skip
    result, bad = parse_lines(lines, "d", timed=True, format="nq")
    assert not bad
    triples = [(time, Triple(*fact[:3])) for time, fact in result]
    assert [(time, *unlabelled([fact])[0]) for time, fact in triples] == [(item.time, *item.fact) for item in plain]
    graphs = [fact.graph for _, fact in result if isinstance(fact, Quad)]
    assert graphs == [stream_iri(output.rule) for output in made]
    quads = pyoxigraph.parse(b"".join(line.split(b" ", 1)[1] for line in lines), format=RdfFormat.N_QUADS)
    assert [term(cast(Any, quad.graph_name)) for quad in quads] == [stream_iri(output.rule) for output in made]


@given(MADE)
def test_trig_has_a_graph_for_each_evaluation(made: list[Output]) -> None:
    trig = TriGEncoder()
    text = b"".join([*map(trig.write, made), trig.end()])
    quads = list(pyoxigraph.parse(text, format=RdfFormat.TRIG))
    inside = [quad for quad in quads if not isinstance(quad.graph_name, pyoxigraph.DefaultGraph)]
    assert [term(quad.object) for quad in inside if not isinstance(quad.object, pyoxigraph.BlankNode)] == [
        output.fact.object for output in made if isinstance(output.fact, Triple) and not is_blank(output.fact.object)
    ]
    graphs = {quad.graph_name for quad in inside}
    assert len(graphs) == len({(output.time, output.rule) for output in made})
    timed = {quad.subject: quad for quad in quads if quad not in inside}
    assert set(timed) == {graph for graph in graphs if not cast(Any, graph).value.endswith(":-infinity")}


def test_what_graphs_look_like(tmp_path: Path) -> None:
    results = [out(a_triple("a"), ALWAYS, "r"), out(a_triple("b"), 1500, E + "out"), out(Atom(iri("urn:r"), ()), 1500)]
    body = '<http://example.org/p> "x"'
    assert encoded("nqt", results, tmp_path).decode() == (
        f"-infinity <http://example.org/a> {body} <urn:x-squall:rule:r> .\n"
        f"1500 <http://example.org/b> {body} <http://example.org/out> .\n"
        "# 1500 <urn:r>() .\n"
    )
    name = "<urn:x-squall:evaluation:http%3A%2F%2Fexample.org%2Fout:1500>"
    assert encoded("trig", results, tmp_path).decode() == (
        "<urn:x-squall:evaluation:r:-infinity> {\n"
        f"<http://example.org/a> {body} .\n"
        "}\n"
        f"{name} <http://www.w3.org/ns/prov#generatedAtTime> "
        '"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        f"{name} {{\n"
        f"<http://example.org/b> {body} .\n"
        "# <urn:r>() .\n"
        "}\n"
    )


def test_a_graph_is_closed_at_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "out.trig"
    sink = open_sink(str(path))
    assert isinstance(sink, FileSink)
    with closing(sink):
        sink.start()
        sink.write(out(a_triple("a"), 5, "r"))
        mark = sink.position()
        sink.write(out(a_triple("b"), 5, "r"))
        sink.truncate(mark)
        sink.write(out(a_triple("c"), 5, "r"))
    quads = list(pyoxigraph.parse(path.read_bytes(), format=RdfFormat.TRIG))
    assert [str(quad.subject) for quad in quads if str(quad.object) == '"x"'] == [iri(E + "a"), iri(E + "c")]


def test_an_empty_graph(tmp_path: Path) -> None:
    text = encoded("trig", [out(Evaluated(()), 0, "r")], tmp_path)
    assert text.endswith(b"<urn:x-squall:evaluation:r:0> {\n}\n")
    (quad,) = pyoxigraph.parse(text, format=RdfFormat.TRIG)
    assert str(quad.predicate) == "<http://www.w3.org/ns/prov#generatedAtTime>"


# Tables


def table(*outputs: Output, terminal: bool = False) -> str:
    tables = TextTableEncoder()
    tables.begin(False, terminal)
    return b"".join([*map(tables.write, outputs), tables.end()]).decode()


def test_a_table_for_each_evaluation() -> None:
    text = table(
        sol(time=ALWAYS, a=f"<{E}s>", b=None),
        sol(time=1500, a=f"<{E}s>", b=literal("[red]\x1b[1m", language="en")),
        sol(time=1500, a=f"<{E}s2>", b=literal("5", "http://www.w3.org/2001/XMLSchema#int")),
        sol(time=1600, a=literal("-5", XSD + "integer"), b=literal("2.50", XSD + "decimal")),
        sol(time=1600, a=literal("true", XSD + "boolean"), b=literal("1E3", XSD + "double")),
        sol(time=1600, a=literal("five", XSD + "integer"), b=literal("1", XSD + "boolean")),
        out(Boolean(False), 2000, "ask"),
        out(Evaluated(("a",)), 3000),
    )
    assert text == (
        "prefix : <http://example.org/>\n"
        "\n"
        "always  q\n"
        "  a    b\n"
        " ────────\n"
        "  :s\n"
        "\n"
        "prefix : <http://example.org/>\n"
        "prefix xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        "\n"
        "1500 (1970-01-01T00:00:01.5Z)  q\n"
        "  a     b\n"
        " ───────────────────────────\n"
        '  :s    "[red]\\u001B[1m"@en\n'
        '  :s2   "5"^^xsd:int\n'
        "\n"
        "prefix xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        "\n"
        "1600 (1970-01-01T00:00:01.6Z)  q\n"
        "  a                     b\n"
        " ────────────────────────────────────────\n"
        "  -5                    2.50\n"
        "  true                  1E3\n"
        '  "five"^^xsd:integer   "1"^^xsd:boolean\n'
        "\n"
        "2000 (1970-01-01T00:00:02Z)  ask\n"
        "  false\n"
        "\n"
        "3000 (1970-01-01T00:00:03Z)  q\n"
        "  nothing\n"
        "\n"
    )


def test_evaluations_with_the_same_columns_share_a_table() -> None:
    text = table(out(a_triple("a"), 0, "one"), out(a_triple("b"), 0, "two"), sol(time=0, a="<urn:a>"))
    assert text == (
        "prefix : <http://example.org/>\n"
        "\n"
        "0 (1970-01-01T00:00:00Z)\n"
        "  rule   subject   predicate   object\n"
        " ─────────────────────────────────────\n"
        '  one    :a        :p          "x"\n'
        '  two    :b        :p          "x"\n'
        "\n"
        "0 (1970-01-01T00:00:00Z)  q\n"
        "  a\n"
        " ─────────\n"
        "  <urn:a>\n"
        "\n"
    )


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    long = sol(a=literal("x" * 100))
    assert max(map(len, table(long).splitlines())) > 100
    text = table(long, terminal=True)
    assert "\x1b[" in text
    assert text.count("x") >= 100
    assert not any("x" * 30 in line for line in text.splitlines())


def test_tables_begin_anew(tmp_path: Path) -> None:
    sink = open_sink(f"{tmp_path}/out.txt?format=table")
    assert isinstance(sink, FileSink)
    with closing(sink):
        sink.start()
        sink.write(sol(a=f"<{E}s>"))
        sink.truncate(0)
        sink.write(sol(a=f"<{E}t>"))
    assert (tmp_path / "out.txt").read_text() == table(sol(a=f"<{E}t>"))


# A file for each evaluation


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in sorted(folder.iterdir())}


def test_a_file_for_each_evaluation(tmp_path: Path) -> None:
    outputs = (sol(time=ALWAYS, a="<urn:0>"), sol(a="<urn:1>"), sol("r s/t", a="<urn:2>"), sol(a="<urn:3>"))
    write(tmp_path / "x-{time}-{query}.srcsv", *outputs)
    assert files(tmp_path) == {
        "x-always-q.srcsv": "a\r\nurn:0\r\n",
        "x-5-q.srcsv": "a\r\nurn:1\r\nurn:3\r\n",
        "x-5-r%20s%2Ft.srcsv": "a\r\nurn:2\r\n",
    }


def test_a_file_for_each_time(tmp_path: Path) -> None:
    result = (out(a_triple("a"), 5, "r"), out(a_triple("b"), 5, "s"), out(a_triple("c"), 6, "r"))
    write(tmp_path / "{time}.nt.gz", *result)
    assert {path.name for path in tmp_path.iterdir()} == {"5.nt.gz", "6.nt.gz"}
    again = [gzip.decompress((tmp_path / name).read_bytes()).decode() for name in ("5.nt.gz", "6.nt.gz")]
    assert again == [f"{result[0].fact}\n{result[1].fact}\n", f"{result[2].fact}\n"]


def test_two_queries_at_one_time_need_two_names(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"x-5.srj` holds one evaluation(.|\n)*{query}"):
        write(tmp_path / "x-{time}.srj", sol(a="<urn:1>"), sol("r", a="<urn:2>"))
    assert files(tmp_path) == {}


def test_a_file_is_complete_when_time_advances(tmp_path: Path) -> None:
    (tmp_path / "x-5.srcsv").write_text("old")
    with closing(open_sink(f"{tmp_path}/x-{{time}}.srcsv")) as sink:
        sink.start()
        sink.write(sol(a="<urn:1>"))
        assert files(tmp_path) == {"x-5.srcsv": "old"}
        sink.write(sol(time=6, a="<urn:2>"))
        assert files(tmp_path) == {"x-5.srcsv": "a\r\nurn:1\r\n"}
    assert list(files(tmp_path)) == ["x-5.srcsv", "x-6.srcsv"]


def test_a_file_is_there_when_its_evaluation_is_complete(tmp_path: Path) -> None:
    with closing(open_sink(f"{tmp_path}/{{query}}-{{time}}.srcsv")) as sink:
        sink.start()
        sink.write(out(Evaluated(("a",))))
        assert files(tmp_path) == {"q-5.srcsv": "a\r\n"}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("no/{time}.srj", "there is no folder `no`"),
        ("{time}/x.srj", "there is no folder"),
        ("{time}.foo", "cannot be inferred from its name"),
        ("{time}.srj?format=foo", "cannot be written as `foo`"),
    ],
)
def test_a_pattern_that_cannot_be_written(
    uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        open_sink(uri)


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "5.srj").mkdir()
    with pytest.raises(SinkError, match=r"5.srj` cannot be written: Is a directory"):
        write(tmp_path / "{time}.srj", sol(a="<urn:1>"))
    assert [path.name for path in tmp_path.iterdir()] == ["5.srj"]


def test_a_folder_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with closing(open_sink(f"{tmp_path}/{{time}}.nt")) as sink:
        sink.start()
        sink.write(out(a_triple("a"), 5, "r"))
        sink.write(out(a_triple("b"), 6, "r"))
        assert list(files(tmp_path)) == ["5.nt"]


# Quads

QUADS = [
    out(Quad(iri(E + "a"), iri(E + "p"), literal("x"), iri(E + "g"))),
    out(a_triple("b")),
    out(Quad(iri(E + "c"), iri(E + "p"), literal("x"), iri(E + "g")), 6),
]


def test_quads_are_written_in_their_graph(tmp_path: Path) -> None:
    assert encoded("nq", QUADS, tmp_path).decode() == (
        f'<{E}a> <{E}p> "x" <{E}g> .\n<{E}b> <{E}p> "x" .\n<{E}c> <{E}p> "x" <{E}g> .\n'
    )


def test_timed_quads_have_their_own_graph_or_that_of_their_query(tmp_path: Path) -> None:
    timed = [line.split(" ", 1) for line in encoded("nqt", QUADS, tmp_path).decode().splitlines()]
    assert [time for time, _ in timed] == ["5", "5", "6"]
    assert [quad.rsplit(" ", 2)[-2] for _, quad in timed] == [f"<{E}g>", "<urn:x-squall:rule:q>", f"<{E}g>"]


def test_trig_has_quads_in_their_graph_and_says_when(tmp_path: Path) -> None:
    text = encoded("trig", QUADS, tmp_path)
    results = [(str(quad.graph_name), quad.subject.value) for quad in pyoxigraph.parse(text, RdfFormat.TRIG)]
    assert [subject for graph, subject in results if graph == f"<{E}g>"] == [E + "a", E + "c"]
    assert [subject for graph, subject in results if graph == "DEFAULT"].count(E + "g") == 2


def test_rows_and_lines_of_quads_name_the_graph(tmp_path: Path) -> None:
    assert encoded("csv-terms", QUADS[:1], tmp_path).decode().split() == [
        "time,rule,subject,predicate,object,graph",
        f'5,q,<{E}a>,<{E}p>,"""x""",<{E}g>',
    ]
    line = json.loads(encoded("ndjson", QUADS[:1], tmp_path))
    assert line["graph"] == {"type": "uri", "value": E + "g"}
    document = json.loads(encoded("srj", QUADS[:1], tmp_path))
    assert document["head"]["vars"] == ["subject", "predicate", "object", "graph"]


@pytest.mark.parametrize("format", ["nt", "ntt"])
def test_triples_cannot_hold_quads(format: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="a triple in a named graph is no triple"):
        encoded(format, QUADS[:1], tmp_path)
