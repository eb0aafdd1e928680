"""Faults that users ran into in programs and their windows: each input as it was, and what is right.

Each docstring names the entry in the list of faults for which the test stands.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import squall
from squall.checking import lint
from squall.errors import SquallError, UsageError
from squall.model import warnings
from squall.model.windows import CountWindow, SlidingWindow, milliseconds, parse_window
from squall.plan.operators import Scan
from squall.rdf import RDF, Boolean
from squall.streams import DeadLetterFile, address, open_static
from squall.streams.sources.documents import check_streams
from tests.conftest import Squall

MANY = "1" * 5000
QUERY = "SELECT ?s { ?s ?p ?o }"


def windows(text: str, language: str) -> list[object]:
    """Returns the windows that the plan of a query reads through."""
    plan = squall.plan(squall.compile(text, lexer=language))
    return [node.op.source.window for node in plan.nodes if isinstance(node.op, Scan)]


@pytest.mark.fault("H1")
@pytest.mark.parametrize("text", [f"RANGE {MANY}s", f"RANGE 1s STEP {MANY}s", f"TRIPLES {MANY}", f"RANGE {'9' * 18}d"])
def test_a_window_too_large_is_an_error(text: str) -> None:
    """H1."""
    with pytest.raises(UsageError, match="too large"):
        parse_window(text)


@pytest.mark.fault("H1")
def test_a_length_of_time_too_large_is_an_error() -> None:
    """H1."""
    with pytest.raises(UsageError, match="too large"):
        milliseconds(f"{MANY}s")
    with pytest.raises(UsageError, match="names no server"):
        address.parse(f"mqtt://host:{MANY}/a", "stdin").endpoint(1883)


@pytest.mark.fault("H1")
@pytest.mark.parametrize(
    ("language", "clause"),
    [
        ("csparql", f"FROM STREAM <http://ex/s> [RANGE {MANY}s STEP 1s]"),
        ("csparql", f"FROM STREAM <http://ex/s> [RANGE {'9' * 18}d STEP 1s]"),
        ("csparql", f"FROM STREAM <http://ex/s> [TRIPLES {MANY}]"),
        ("rspql", f"FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> [RANGE PT{MANY}S]"),
        ("rspql", f"FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> [RANGE {MANY}]"),
        ("sparqlstream", f"FROM STREAM <http://ex/s> [NOW - {MANY} S]"),
    ],
)
def test_a_window_of_a_query_that_is_too_large_is_an_error(language: str, clause: str) -> None:
    """H1."""
    register = "REGISTER QUERY q AS " if language == "csparql" else ""
    with pytest.raises(squall.SquallError, match=r"digits|too large|not a length"):
        squall.compile(f"{register}SELECT ?s {clause} WHERE {{ ?s ?p ?o }}", lexer=language)


@pytest.mark.fault("H1")
def test_numbers_of_hundreds_of_digits_are_checked() -> None:
    """H1."""
    query = f"SELECT * {{ ?s ?p ?t FILTER(?t > 1{'9' * 400} && ?t < 5) }} LIMIT {MANY}"
    assert "error" not in {item.severity for item in lint(query, lexer="sparql")}


@pytest.mark.fault("S5")
def test_the_unit_hr_and_now_alone_are_windows_of_sparqlstream() -> None:
    """S5."""
    stream = "FROM STREAM <http://ex/s>"
    assert windows(f"SELECT ?s {stream} [NOW - 2 HR] WHERE {{ ?s ?p ?o }}", "sparqlstream") == windows(
        f"SELECT ?s {stream} [NOW - 2 HOURS] WHERE {{ ?s ?p ?o }}", "sparqlstream"
    )
    assert SlidingWindow(1) in windows(f"SELECT ?s {stream} [NOW] WHERE {{ ?s ?p ?o }}", "sparqlstream")


@pytest.mark.fault("S19")
@pytest.mark.parametrize("service", ["<http://ep/sparql>", "SILENT <http://ep/sparql>", "?where"])
def test_the_refusal_of_service_names_a_remedy_that_works(service: str, squall: Squall, tmp_path: Path) -> None:
    pattern = "{{ ?s <urn:q> ?a {} {{ ?a <urn:p> ?o }} }}"
    with pytest.raises(SquallError) as caught:
        windows(f"SELECT ?o {pattern.format(f'SERVICE {service}')}", "sparql")
    hint = str(caught.value.hint)
    (graph,) = set(re.findall(r"(?:GRAPH|FROM NAMED) <([^>]*)>", hint))
    assert graph == ("http://example.org/data" if "?" in service else "http://ep/sparql")
    assert f"`--graph {graph}=FILE`" in hint
    assert f"`--static '{graph}=FILE'`" in hint
    (tmp_path / "data.nt").write_text('<urn:a> <urn:p> "x" .')
    (tmp_path / "events.nt").write_text("<urn:s> <urn:q> <urn:a> .")
    replaced = pattern.format(f"GRAPH <{graph}>")
    for clause, options in ((f"FROM NAMED <{graph}>", ("--static", "--graph")), ("", ("--source", "--static"))):
        (tmp_path / "query.rq").write_text(f"SELECT ?o {clause} {replaced}")
        events, data = options
        arguments = events, f"{tmp_path}/events.nt", data, f"{graph}={tmp_path}/data.nt"
        assert squall("run", f"{tmp_path}/query.rq", *arguments, "--format", "srcsv")[1].split() == ["o", "x"]


WINDOW_ON = "FROM NAMED WINDOW <urn:w> ON <urn:s>"


@pytest.mark.fault("S18")
@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        (f"SELECT ?s {WINDOW_ON} [RANGE 10 STEP 2] {{}}", ["10", "2"]),
        (f"SELECT ?s {WINDOW_ON} [RANGE 10s STEP 2] {{}}", ["2"]),
        (f"SELECT ?s {WINDOW_ON} [RANGE PT10S] {{}}", []),
        (f"SELECT ?s {WINDOW_ON} [RANGE 10 ms STEP PT1S ORIGIN 7] {{}}", ["7"]),
        (f"SELECT ?s {WINDOW_ON} [FROM NOW-30 TO NOW-20 STEP 5] {{}}", ["30", "20", "5"]),
        (f"SELECT ?s {WINDOW_ON} [ELEMENTS 10 STEP 2] {{}}", []),
        (
            f"REGISTER STREAM <urn:o> COMPUTED EVERY 500 AS CONSTRUCT {{ ?s ?p ?o }} {WINDOW_ON} [RANGE 1s] {{}}",
            ["500"],
        ),
    ],
)
def test_a_length_of_time_without_a_unit_is_a_warning(text: str, lengths: list[str]) -> None:
    body = text.replace("{}", "{ WINDOW <urn:w> { ?s ?p ?o } }")
    messages = [item for item in squall.compile(body, lexer="rspql").warnings if "has no unit: it is" in item.message]
    assert sorted(item.message.split("`")[1] for item in messages) == sorted(lengths)
    for item in messages:
        assert item.origin is not None
        assert item.origin.length == len(item.message.split("`")[1])
        assert "ms`, or `" in str(item.hint)


@pytest.mark.fault("S18")
@pytest.mark.parametrize(
    ("language", "clause"),
    [
        ("csparql", "SELECT ?s FROM STREAM <urn:s> [RANGE 10 STEP 2] WHERE { ?s ?p ?o }"),
        ("csparql", "SELECT ?s FROM STREAM <urn:s> [RANGE 10s STEP 2] WHERE { ?s ?p ?o }"),
        ("cqels", "SELECT ?s WHERE { STREAM <urn:s> [RANGE 10] { ?s ?p ?o } }"),
        ("sparqlstream", "SELECT ?s FROM STREAM <urn:s> [NOW - 10] WHERE { ?s ?p ?o }"),
    ],
)
def test_other_languages_and_options_ask_for_a_unit(language: str, clause: str) -> None:
    with pytest.raises(squall.SquallError, match="a unit of time"):
        squall.compile(clause, lexer=language)
    for window in ("RANGE 10", "RANGE 10s STEP 2", "RANGE 10s STEP 2s ORIGIN 1"):
        with pytest.raises(UsageError, match="is not a window"):
            parse_window(window)


DOTS = "http://ex/a/./b/../c"
IN_DATA = {
    "nt": f"<{DOTS}> <urn:p> 1 .".replace(" 1 ", ' "1" '),
    "ttl": f"@base <http://ex/x/> . <{DOTS}> <urn:p> 1 .",
    "trig": f"@base <http://ex/x/> . <urn:g> {{ <{DOTS}> <urn:p> 1 }} <{DOTS}> <urn:p> 1 .",
    "rdf": f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:u="urn:" xml:base="http://ex/x/">'
    f'<rdf:Description rdf:about="{DOTS}"><u:p>1</u:p></rdf:Description></rdf:RDF>',
    "jsonld": f'{{"@context": {{"@base": "http://ex/x/"}}, "@id": "{DOTS}", "urn:p": 1}}',
}
WITH_BASE = {
    "sparql": "SELECT ?y {{ <{iri}> <urn:p> ?y }}",
    "csparql": "REGISTER QUERY q AS SELECT ?y FROM STREAM <urn:s> [RANGE 1s STEP 1s] WHERE {{ <{iri}> <urn:p> ?y }}",
    "rspql": "SELECT ?y FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S] "
    "WHERE {{ WINDOW <urn:w> {{ <{iri}> <urn:p> ?y }} }}",
    "cqels": "SELECT ?y WHERE {{ STREAM <urn:s> [RANGE 1s] {{ <{iri}> <urn:p> ?y }} }}",
    "sparqlstream": "SELECT ?y FROM STREAM <urn:s> [NOW - 1 S] WHERE {{ <{iri}> <urn:p> ?y }}",
}


@pytest.mark.fault("S3")
@pytest.mark.parametrize("language", WITH_BASE)
def test_an_absolute_iri_is_the_same_with_and_without_a_base(language: str) -> None:
    """S3."""
    text = WITH_BASE[language].format(iri=DOTS)
    system = squall.compile(text, lexer=language)
    for base in ("http://ex/x/", DOTS):
        assert squall.compile(f"BASE <{base}> {text}", lexer=language).subsystems == system.subsystems
    assert DOTS in str(squall.plan(system))


@pytest.mark.fault("S3")
@pytest.mark.parametrize("format", IN_DATA)
@pytest.mark.parametrize("base", ["", "BASE <http://ex/y/> "])
def test_a_query_finds_an_absolute_iri_as_the_data_have_it(format: str, base: str, tmp_path: Path) -> None:
    """S3."""
    (tmp_path / f"data.{format}").write_text(IN_DATA[format])
    events = list(open_static(str(tmp_path / f"data.{format}"), DeadLetterFile()))
    query = f"{base}ASK {{ ?x <urn:p> ?y FILTER(?x = <{DOTS}> && ?x = IRI('{DOTS}')) }}"
    plan = squall.plan(squall.compile(query, lexer="sparql"))
    assert [out.fact for out in squall.run(plan, [], static=events, of=Boolean)] == [Boolean(True)]


@pytest.mark.fault("S3")
def test_absolute_iris_of_rif_stay_as_they_are() -> None:
    """S3."""
    rule = f"Group(Forall ?y (<urn:a>[<urn:q> -> ?y] :- <{DOTS}>[<urn:p> -> ?y]))"
    xml = explained(rule)
    for base, text, language in (
        ("Base(<http://ex/x/>) ", f"Document({{}}{rule})", "rifps"),
        (' xml:base="http://ex/x/"', xml, "rif"),
    ):
        assert squall.parse(text.format(base), language)[1] == squall.parse(text.format(""), language)[1]


def explained(group: str) -> str:
    """Returns a document of RIF in XML, with a place for its base."""
    from squall.lexers.rif.exchange import lexer as xml
    from squall.lexers.rif.presentation import lexer

    written = xml.written(lexer(f"Document({group})", "x"))
    return written.replace("{", "{{").replace("}", "}}").replace("<Document", "<Document{}", 1)


@pytest.mark.fault("S12")
def test_a_window_declared_twice_is_an_error() -> None:
    """S12."""
    window = "FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> [RANGE PT{}S]"
    with pytest.raises(squall.SquallError, match="declared twice"):
        squall.compile(
            f"SELECT ?s {window.format(1)} {window.format(2)} WHERE {{ WINDOW <http://ex/w> {{ ?s ?p ?o }} }}",
            lexer="rspql",
        )


@pytest.mark.fault("S12", "P7")
@pytest.mark.parametrize(
    ("language", "clause", "thing", "reading"),
    [
        ("sparql", "FROM NAMED <http://ex/g>", "named graph <http://ex/g>", "GRAPH <http://ex/g>"),
        ("csparql", "FROM NAMED STREAM <http://ex/s> [RANGE 1s STEP 1s]", "named stream <http://ex/s>", "GRAPH ?g"),
        ("sparqlstream", "FROM NAMED STREAM <http://ex/s> [NOW - 1 S]", "named stream <http://ex/s>", "GRAPH ?g"),
        ("rspql", "FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> [RANGE PT1S]", "window <http://ex/w>", "WINDOW ?w"),
    ],
)
def test_a_named_graph_that_nothing_reads_is_a_warning(language: str, clause: str, thing: str, reading: str) -> None:
    """The kind of S12 and P7: queries of SPARQLStream's engine have no `GRAPH`, and would answer nothing, silently."""
    query = f"SELECT ?s {clause} WHERE {{ {{}} {{ ?s ?p ?o }} }}"
    assert [warning.message for warning in warnings(squall.compile(query, lexer=language))] == [
        f"nothing reads the {thing}"
    ]
    assert not warnings(squall.compile(query.replace("{ ?s", f"{reading} {{ ?s"), lexer=language))


@pytest.mark.fault("S12")
def test_a_graph_with_the_name_of_a_window_is_a_warning() -> None:
    """S12."""
    window = "FROM NAMED WINDOW <http://ex/w> ON <http://ex/s> [RANGE PT1S]"
    system = squall.compile(f"SELECT ?s {window} WHERE {{ GRAPH <http://ex/w> {{ ?s ?p ?o }} }}", lexer="rspql")
    assert [warning.hint for warning in warnings(system)] == ["did you mean `WINDOW <http://ex/w>`?"]


@pytest.mark.fault("S16")
def test_sparql_is_an_ending_of_queries(tmp_path: Path) -> None:
    """S16."""
    (tmp_path / "all.sparql").write_text(QUERY)
    assert squall.compile(tmp_path / "all.sparql") is not None


@pytest.mark.fault("P8")
def test_data_in_place_of_a_program_are_recognised(squall: Squall, tmp_path: Path) -> None:
    """P8."""
    (tmp_path / "data.ntt").write_text("1000 <http://ex/a> <http://ex/p> <http://ex/o> .\n")
    (tmp_path / "q.rq").write_text(QUERY)
    code, _, errors = squall("run", str(tmp_path / "q.rq"), str(tmp_path / "data.ntt"))
    assert code == 2
    assert "data.ntt` has data, and no program" in errors
    assert f"`--source {tmp_path}/data.ntt`" in errors


@pytest.mark.fault("S6")
@pytest.mark.parametrize("stream", ["http://ex/s", "http://ex/s?x=1&y=2", "http://ex/s%20t", "file:///s", "urn:s=1"])
def test_the_hint_for_a_missing_stream_is_an_address_of_it(stream: str) -> None:
    """S6."""
    system = squall.compile(
        f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{stream}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}", lexer="csparql"
    )
    with pytest.raises(UsageError) as caught:
        check_streams(system, [""])
    place = address.source(str(caught.value.hint).split("'")[1])
    assert (place.get("stream"), place.path) == (stream, "FILE")


@pytest.mark.fault("S17")
@pytest.mark.parametrize("subject", ["<< ?a <http://ex/p> ?b >>", "<<( ?a <http://ex/p> ?b )>>", "<<?a ?p ?b>>"])
def test_a_triple_in_a_triple_is_refused_by_its_name(subject: str) -> None:
    """S17."""
    with pytest.raises(squall.SquallError, match=r"RDF 1\.2"):
        squall.compile(f"SELECT ?s {{ {subject} <http://ex/q> ?s }}", lexer="sparql")


@pytest.mark.fault("J2")
def test_an_unknown_built_in_has_a_hint_how_to_supply_it() -> None:
    """J2."""
    with pytest.raises(squall.SquallError, match=r"squall\.functions"):
        squall.compile("[r: (?x <http://ex/p> ?y) companyLookup(?y, ?z) -> (?x <http://ex/q> ?z)]", lexer="jena")


@pytest.mark.fault("H1")
def test_counts_of_18_digits_are_windows() -> None:
    """H1."""
    assert parse_window(f"TRIPLES {'9' * 18}") == CountWindow(10**18 - 1, 1)
