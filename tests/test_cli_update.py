"""The command `squall update`: its input and output, its messages, and its atomicity."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Squall

ROOT = Path(__file__).parent.parent
PREFIX = "PREFIX : <http://example.org/>\n"
PEOPLE = "@prefix : <http://example.org/> .\n:ann :parent :bob . :bob :parent :cat .\n"
TURNED = """\
<http://example.org/bob> <http://example.org/child> <http://example.org/ann> .
<http://example.org/cat> <http://example.org/child> <http://example.org/bob> .
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "people.ttl": PEOPLE,
        "log.trig": "@prefix : <http://example.org/> .\n:log { :ann :seen :bob }\n",
        "turn.ru": PREFIX + "DELETE { ?a :parent ?b } INSERT { ?b :child ?a } WHERE { ?a :parent ?b }",
        "log.ru": PREFIX + "INSERT { GRAPH :log { ?a :seen ?b } } WHERE { ?a ?p ?b }",
        "create.ru": PREFIX + "CREATE GRAPH :log ; CREATE GRAPH :log",
        "load.ru": PREFIX + "LOAD <people.ttl> ; LOAD :log",
        "nothing.ru": "",
        "broken.ru": PREFIX + "INSERT DATA { :a :p }",
        "unknown.ru": PREFIX + "DELETE WHERE { ?s ?p ?o } ;\nINSERT DATA { ex:a :p :b }",
        "query.rq": "SELECT * { ?s ?p ?o }",
        "typo.ru": PREFIX + "INSERT { ?room :p ?y } WHERE { ?rooms :p ?y }",
        "dirty.nt": "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> b .\n",
        "events.ntt": "1 <urn:a> <urn:p> <urn:b> .\n",
        "blank.trig": "_:g { <urn:a> <urn:p> <urn:b> }",
    }.items():
        Path(name).write_text(text)


@pytest.fixture
def squall(squall: Squall) -> Squall:
    """Runs the command in this process."""
    return partial(squall, "update")


def test_the_data_set_goes_to_standard_output_and_the_summary_to_standard_error(squall: Squall) -> None:
    code, out, err = squall("turn.ru", "--data", "people.ttl")
    assert (code, out) == (0, TURNED)
    assert err == "2 triples inserted, 2 deleted; 2 in the default graph, 0 in 0 named graphs\n"


def test_requests_are_applied_one_after_the_other(squall: Squall) -> None:
    log = "<http://example.org/{}> <http://example.org/seen> <http://example.org/{}> <http://example.org/log> .\n"
    code, out, _ = squall("turn.ru", "log.ru", "--data", "people.ttl", "--data", "log.trig")
    expected = log.format("ann", "bob") + log.format("bob", "ann") + log.format("cat", "bob")
    assert (code, out) == (0, TURNED + expected)


def test_graphs_by_name_are_data_and_documents(squall: Squall) -> None:
    code, out, _ = squall("load.ru", "--graph", "http://example.org/log=people.ttl")
    assert code == 0
    assert len(out.splitlines()) == 4
    assert out.count(" <http://example.org/log> .") == 2


@pytest.mark.parametrize("name", ["out.nq", "out.trig", "out.jsonld", "out.ttl", "out.nt", "out.trig.gz"])
def test_written_data_can_be_read(squall: Squall, name: str) -> None:
    assert squall("turn.ru", "--data", "people.ttl", "--output", name)[:2] == (0, "")
    assert squall("nothing.ru", "--data", name)[:2] == (0, TURNED)
    assert (Path(name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_the_format_by_name(squall: Squall) -> None:
    assert squall("log.ru", "--data", "people.ttl", "--output", "out.txt", "--format", "trig")[0] == 0
    assert "<http://example.org/log> {" in Path("out.txt").read_text()


def test_the_output_is_no_request(squall: Squall) -> None:
    Path("add.ru").write_text("INSERT DATA { <urn:a> <urn:p> <urn:b> }")
    code, _, err = squall("add.ru", "--output", "./add.ru", "--format", "nt")
    assert code == 2
    assert "`./add.ru` is a request as well as the output" in err
    assert Path("add.ru").read_text().startswith("INSERT")


def test_the_output_may_be_an_input(squall: Squall) -> None:
    Path("people.ttl").chmod(0o640)
    for _ in range(2):
        assert squall("turn.ru", "--data", "people.ttl", "--output", "people.ttl")[0] == 0
    assert squall("nothing.ru", "--data", "people.ttl")[1] == TURNED
    assert Path("people.ttl").stat().st_mode & 0o777 == 0o640
    assert not [path for path in Path().iterdir() if "tmp" in path.name]


@pytest.mark.more
def test_standard_input() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "squall", "update", "turn.ru", "--data", "-?format=ttl.gz"]
    outputs = subprocess.run(
        command, input=gzip.compress(PEOPLE.encode()), capture_output=True, env=environment, check=True
    )
    assert outputs.stdout.decode() == TURNED


def test_empty_graphs_are_reported(squall: Squall) -> None:
    Path("empty.ru").write_text(PREFIX + "CLEAR NAMED ; CREATE GRAPH :new")
    code, out, err = squall("empty.ru", "--data", "log.trig", "--format", "nt")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "0 triples inserted, 1 deleted; 0 in the default graph, 0 in 2 named graphs",
        "  <http://example.org/log> is empty, which the output cannot hold",
        "  <http://example.org/new> is empty, which the output cannot hold",
    ]


def test_warnings_are_printed_and_do_not_stop(squall: Squall) -> None:
    code, out, err = squall("typo.ru")
    assert (code, out) == (0, "")
    assert err.startswith("""\
typo.ru:2:10: translation warning: `?room` is in the template, but nothing binds it
2 | INSERT { ?room :p ?y } WHERE { ?rooms :p ?y }
  |          ^^^^^^^^^^^
hint: did you mean `?rooms`?
""")


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("create.ru", "create.ru:2:21: update error: there is a graph <http://example.org/log> already\n"
         "2 | CREATE GRAPH :log ; CREATE GRAPH :log\n"
         "  |                     ^^^^^^^^^^^^^^^^^\n"
         "hint: `CREATE SILENT` leaves it as it is\n"),
        ("load.ru", "load.ru:2:21: update error: the graph <http://example.org/log> is not loaded from there\n"
         "2 | LOAD <people.ttl> ; LOAD :log\n"
         "  |                     ^^^^^^^^^\n"
         "hint: download it, and name its file: `--graph http://example.org/log=FILE`\n"),
        ("log.ru --data people.ttl --format ttl", "sink error: the format `ttl` has no named graphs\n"
         "hint: formats that do: nq, trig, jsonld\n"),
    ],
)  # fmt: skip
def test_a_request_that_fails_writes_nothing(squall: Squall, arguments: str, message: str) -> None:
    Path("out.nq").write_text("before")
    assert squall(*arguments.split(), "--output", "out.nq") == (1, "", message)
    assert Path("out.nq").read_text() == "before"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("broken.ru", "broken.ru:2:21: syntax error: `}` cannot stand here\n"
         "2 | INSERT DATA { :a :p }\n"
         "  |                     ^\n"
         "hint: expected "),
        ("unknown.ru", "unknown.ru:3:15: syntax error: "),
        ("query.rq", "query.rq:1:1: translation error: `SELECT` is no update\n"),
        ("nowhere.ru", "usage error: the request `nowhere.ru` does not exist\n"),
        ("turn.ru --data nowhere.ttl", "source error: `nowhere.ttl` cannot be read: No such file or directory\n"),
        ("turn.ru --data .?format=nt", "source error: `.` cannot be read: Is a directory\n"),
        ("turn.ru --data dirty.nt", "source error: dirty.nt:2: "),
        ("turn.ru --data people.ttl?format=nt", "source error: people.ttl:1: "),
        ("turn.ru --data turn.ru", "usage error: the format of `turn.ru` cannot be inferred from its name\n"),
        ("turn.ru --data people.ttl?format=foo", "usage error: there is no format `foo`\n"),
        ("turn.ru --data people.ttl?window=x", "usage error: `people.ttl?window=x` has the unknown option `window`\n"),
        ("turn.ru --data events.ntt", "usage error: `events.ntt` is timed: it is no data set\n"),
        ("turn.ru --data kafka:topic", "usage error: `kafka:topic` is neither a file nor standard input (`-`)\n"),
        ("turn.ru --data blank.trig", "source error: `blank.trig` has a graph whose name is a blank node\n"),
        ("turn.ru --data -?format=nt --data -?format=nq", "usage error: standard input (`-`) can be read once only\n"),
        ("turn.ru --graph people.ttl", "usage error: `--graph people.ttl` is not IRI=FILE\n"),
        ("turn.ru --graph g=people.ttl", "usage error: `g` cannot name a graph: it is no absolute IRI\n"),
        ("turn.ru --graph urn:g=log.trig --graph urn:g=x", "usage error: `--graph` says twice what <urn:g> is\n"),
        ("turn.ru --graph urn:g=log.trig", "usage error: `log.trig` has named graphs, and cannot be one\n"),
        ("turn.ru --output out.foo", "usage error: the format of `out.foo` cannot be inferred from its name\n"
         "hint: name it: `--format nq`\n"),
        ("turn.ru --output out.ntt", "usage error: a data set cannot be written as `ntt`\n"
         "hint: formats: nt, nq, ttl, trig, jsonld\n"),
        ("turn.ru --format nquads", "usage error: a data set cannot be written as `nquads`\n"),
        ("turn.ru --output nowhere/out.nq", "usage error: `nowhere/out.nq` cannot be written: "),
        ("", "Usage: squall update [OPTIONS] REQUEST...\n"),
    ],
)  # fmt: skip
def test_an_error_is_reported_before_anything_starts(squall: Squall, arguments: str, message: str) -> None:
    before = sorted(Path().iterdir())
    code, out, err = squall(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert sorted(Path().iterdir()) == before


def test_the_errors_of_all_requests_are_reported_at_once(squall: Squall) -> None:
    code, _, err = squall("broken.ru", "turn.ru", "query.rq", "nowhere.ru")
    assert code == 2
    assert [line.split(":")[0] for line in err.splitlines() if " error: " in line] == [
        "usage error", "broken.ru", "query.rq",
    ]  # fmt: skip


@pytest.mark.more
def test_a_reader_that_has_enough_is_no_error() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    triples = "".join(f"<urn:a> <urn:p> <urn:{number}> .\n" for number in range(20_000))
    Path("many.nt").write_text(triples)
    command = [sys.executable, "-m", "squall", "update", "nothing.ru", "--data", "many.nt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        assert isinstance(running.stdout, io.BufferedReader)
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(120) == 0
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()
