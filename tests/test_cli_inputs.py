"""The command line refuses options of addresses, files and times that it could only ignore or misread."""

from __future__ import annotations

from pathlib import Path

import pytest

from squall.errors import UsageError
from squall.streams import open_sink, open_source
from squall.streams.sources.documents import place
from tests.conftest import Squall

NAMES = ("window", "format", "stream", "time", "lateness", "idle", "follow")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.jena").write_text("[r: (?x <urn:p> ?y) -> (?x <urn:q> ?y)]")
    Path("data.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    Path("data.unknown").write_text("<urn:a> <urn:p> <urn:b> .\n")
    Path("select.rq").write_text("SELECT ?a WHERE { ?a <urn:p> ?b }")
    Path("other.rq").write_text("SELECT ?b WHERE { ?a <urn:p> ?b }")
    Path("ask.rq").write_text("ASK { ?a <urn:p> ?b }")


@pytest.mark.parametrize("name", NAMES)
def test_an_option_without_a_value_is_no_default(name: str) -> None:
    for address in (f"data.nt?{name}=", f"data.nt?{name}", f"s=data.nt?idle=5&{name}="):
        with pytest.raises(UsageError, match=f"the option `{name}` in .* has no value"):
            open_source(address)


@pytest.mark.parametrize("address", ["out.nt?format=", "-?format=", "tcp://127.0.0.1:1?retry="])
def test_nor_is_it_in_a_sink(address: str) -> None:
    with pytest.raises(UsageError, match="has no value"):
        open_sink(address)


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("given", [("--source", "data.nt?window=RANGE 1s STEP 3s"), ("--window", "RANGE 1s STEP 3s")])
def test_windows_that_are_given_warn_of_gaps(command: str, given: tuple[str, str], squall: Squall) -> None:
    code, _, messages = squall(command, "copy.jena", "--source", "s=data.nt", *given)
    assert code == 0
    assert messages.count("leaves gaps: its step is longer than its range") == 1


def test_a_year_is_no_time(squall: Squall) -> None:
    code, _, messages = squall("run", "copy.jena", "--source", "data.nt", "--now", "2020")
    assert code == 2
    assert "`--now 2020` looks like a year" in messages
    assert "2020-01-01" in messages
    for time in ("02020", "2020-01-01", "20200"):
        assert squall("run", "copy.jena", "--source", "data.nt", "--now", time)[0] == 0


@pytest.mark.parametrize("format", ["csv", "tsv", "csv-terms", "tsv-terms"])
@pytest.mark.parametrize("programs", [("select.rq", "other.rq"), ("select.rq", "ask.rq")])
def test_a_table_has_one_header(format: str, programs: tuple[str, str], squall: Squall) -> None:
    code, out, messages = squall("run", *programs, "--source", "data.nt", "--format", format)
    assert (code, out) == (2, "")
    assert "have different columns, and a table has one header" in messages
    assert squall("run", *programs, "--source", "data.nt", "--sink", f"out-{{time}}-{{query}}?format={format}")[0] == 0
    assert squall("run", "select.rq", "copy.jena", "--source", "data.nt", "--format", format)[0] == 0


GRAPHS = "CONSTRUCT { GRAPH ?s { ?s <urn:k> ?o } } { ?s ?p ?o }"
BOTH = "CONSTRUCT { ?s <urn:k> ?o . GRAPH ?s { ?s <urn:k> ?o } } { ?s ?p ?o }"


@pytest.mark.parametrize(
    ("programs", "sink", "message"),
    [
        (("select.rq", "other.rq"), "{time}.csv", "`other` and `select` have different columns"),
        (("select.rq", "ask.rq"), "{time}?format=tsv", "`ask` and `select` have different columns"),
        (("copy.jena", "graphs.rq"), "out.csv", "`graphs` and `r` have different columns"),
        (("copy.jena", "graphs.rq"), "{time}.csv", "`graphs` and `r` have different columns"),
        (("both.rq",), "{time}-{query}.csv", "`both` makes triples and quads"),
        (("select.rq", "other.rq"), "{time}.srj", "`other` and `select` need a document of `srj` each"),
        (("select.rq", "ask.rq"), "-?format=srx", "`ask` and `select` need a document of `srx` each"),
        (("select.rq",), "{time}.rdfp", "the answers of `select` are no triples"),
        (("graphs.rq",), "{time}.nt", "`graphs` makes triples in graphs"),
    ],
)
def test_a_document_that_cannot_hold_the_outputs_is_refused_before_the_run(
    programs: tuple[str, ...], sink: str, message: str, squall: Squall
) -> None:
    Path("graphs.rq").write_text(GRAPHS)
    Path("both.rq").write_text(BOTH)
    code, out, messages = squall("run", *programs, "--source", "data.nt", "--sink", sink)
    assert (code, out) == (2, "")
    assert message in messages


@pytest.mark.parametrize(
    ("programs", "sink"),
    [
        (("select.rq", "other.rq", "copy.jena", "graphs.rq"), "{time}-{query}.csv"),
        (("select.rq", "both.rq"), "{time}.csv"),
        (("select.rq", "ask.rq"), "{time}-{query}.srj"),
        (("graphs.rq",), "out.csv"),
    ],
)
def test_a_document_that_can_hold_the_outputs_is_written(programs: tuple[str, ...], sink: str, squall: Squall) -> None:
    Path("graphs.rq").write_text(GRAPHS)
    Path("both.rq").write_text(BOTH)
    code, _, messages = squall("run", *programs, "--source", "data.nt", "--sink", sink)
    assert code == 0, messages
    assert ("left out" in messages) == ("both.rq" in programs)


@pytest.mark.parametrize("command", ["run", "explain", "check"])
@pytest.mark.parametrize("graph", ["http://example.org/x=nosuch", "http://example.org/x=nosuch?format=nt"])
def test_the_file_of_a_graph_has_to_be_there(command: str, graph: str, squall: Squall) -> None:
    code, _, messages = squall(command, "copy.jena", "--graph", graph)
    assert code == 2
    assert "`nosuch` cannot be read: No such file or directory" in messages


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("http://example.org/x=g.nt", ("http://example.org/x", "g.nt")),
        ("<http://example.org/x>=g.nt", ("http://example.org/x", "g.nt")),
        ("http://example.org/x=g.txt?format=nt", ("http://example.org/x", "g.txt?format=nt")),
        ("http://example.org/?a=b=g.nt", ("http://example.org/?a=b", "g.nt")),
        ("http://example.org/?a=b&c=d=g.txt?format=nt", ("http://example.org/?a=b&c=d", "g.txt?format=nt")),
        ("http://example.org/a=b?c=d=g.nt", ("http://example.org/a=b?c=d", "g.nt")),
    ],
)
def test_the_iri_and_the_file_of_a_graph(text: str, pair: tuple[str, str]) -> None:
    assert place(text) == pair


@pytest.mark.parametrize("text", ["http://example.org/x", "=g.nt", "http://example.org/x="])
def test_what_is_no_graph(text: str) -> None:
    with pytest.raises(UsageError, match="is not IRI=FILE"):
        place(text)


def test_the_file_of_a_graph_may_have_a_format(squall: Squall) -> None:
    Path("from.rq").write_text("SELECT ?a FROM <http://example.org/x> WHERE { ?a <urn:p> ?b }")
    code, out, _ = squall("run", "from.rq", "--graph", "http://example.org/x=data.unknown?format=nt", "--format", "tsv")
    assert code == 0
    assert "urn:a" in out
