"""The command `squall check`: its output formats and exit codes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Squall

PREFIX = "@prefix : <http://example.org/>.\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "good.jena": "[r: (?a :p ?b) (?b :q ?c) -> (?a :r ?c)]",
        "product.jena": "[r: (?a :p ?b) (?c :q ?d) -> (?a :r ?c)]",
        "idle.jena": "[r: (?a :p ?b) sum(?b, 1, ?c) -> (?a :r ?b)]",
        "wrong.jena": "[r: (?a :p ?b) -> ('x' :r ?b)]\n[s: (?a :p ?b) nothing(?a) -> (?a :r ?b)]",
        "again.jena": "[again: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)]",
    }.items():
        Path(name).write_text(PREFIX + text)
    Path("join.csparql").write_text(
        "PREFIX : <http://example.org/> SELECT * FROM STREAM :s WHERE { ?x :p ?y . ?y :q ?z }"
    )


@pytest.fixture
def squall(squall: Squall) -> Squall:
    """Runs the command in this process."""
    return partial(squall, "check")


def test_no_findings(squall: Squall) -> None:
    assert squall("good.jena", "--strict") == (0, "", "nothing found\n")


def test_warnings_go_to_standard_output_and_their_number_to_standard_error(squall: Squall) -> None:
    code, out, err = squall("product.jena", "idle.jena")
    assert (code, err) == (0, "1 warning, 1 info\n")
    assert (
        out
        == """\
product.jena:2:16: cross-product warning: `r` joins each solution of `(?a :p ?b)` with each of `(?c :q ?d)`: they have \
no variable in common
2 | [r: (?a :p ?b) (?c :q ?d) -> (?a :r ?c)]
  |                ^^^^^^^^^^
hint: let them share a variable, compare their values, or say each in a rule or query of its own

idle.jena:2:16: unused-value info: `?c` gets a value that nothing uses
2 | [r: (?a :p ?b) sum(?b, 1, ?c) -> (?a :r ?b)]
  |                ^^^^^^^^^^^^^^
hint: leave it out, or name it `?_c` if it is there to ask whether there is a value
"""
    )


def test_exit_codes(squall: Squall) -> None:
    assert squall("product.jena", "--strict")[0] == 1
    assert squall("idle.jena", "--strict")[0] == 0
    assert squall("wrong.jena")[0] == squall("wrong.jena", "--strict")[0] == 2
    assert squall("nowhere.jena")[0] == 2


def test_all_errors_are_reported(squall: Squall) -> None:
    _, out, err = squall("wrong.jena", "product.jena")
    results = [line.partition(": ")[0] for line in out.splitlines() if "translation error" in line]
    assert results == ["wrong.jena:2:20", "wrong.jena:3:16"]
    assert err == "2 errors\n"


def test_what_is_ignored_is_counted_and_does_not_fail(squall: Squall) -> None:
    assert squall("product.jena", "--ignore", "cross-product", "--strict") == (0, "", "nothing found; 1 ignored\n")
    assert squall("product.jena", "--ignore", "unread", "--strict")[0] == 1
    assert squall("wrong.jena", "--ignore", "translation")[0] == 2


def test_programs_are_checked_together(squall: Squall) -> None:
    code, out, _ = squall("good.jena", "again.jena", "--strict")
    assert code == 1
    assert out.startswith("again.jena:2:1: duplicate-rule warning: `again` is the same rule as `r` (good.jena:2:1)\n")


@pytest.mark.more
def test_conclusions_of_rule_sets_count_and_have_no_findings(squall: Squall) -> None:
    Path("types.jena").write_text(f"{PREFIX}[r: (?x rdf:typ :C) (?x rdfs:subClassOf ?d) -> (?x :is ?d)]")
    code, out, err = squall("types.jena", "--rules", "rdfs", "--rules", "owl2rl")
    assert (code, err) == (0, "1 warning\n")
    assert out.startswith("types.jena:2:5: unknown-term warning")
    Path("count.jena").write_text(f"{PREFIX}[r: (?x :p ?n) noValue(?x rdf:type :C) addOne(?n ?m) -> (?x :q ?m)]")
    Path("makes.jena").write_text(f"{PREFIX}[s: (?x :q ?n) -> (?x :p ?n) (:q rdfs:range :C)]")
    assert squall("count.jena")[0] == squall("makes.jena")[0] == 0
    assert "endless-recursion" in squall("count.jena", "makes.jena")[1]
    code, out, _ = squall("count.jena", "makes.jena", "--rules", "rdfs")
    assert code == 2
    assert "rule `r` negates what depends on it: `r` -> " in out
    assert "no rule set `rdf`" in squall("good.jena", "--rules", "rdf")[2]


def test_the_profile_says_what_can_be_put_in_order(squall: Squall) -> None:
    Path("first.jena").write_text(f"{PREFIX}[r: (?x :p ?y) noValue(:a :b) -> (:a :b ?x)]")
    assert squall("first.jena")[0] == 2
    assert squall("first.jena", "--profile", "jena") == (0, "", "nothing found\n")
    assert "no profile `jenna`" in squall("first.jena", "--profile", "jenna")[2]


def test_documents_that_programs_import(squall: Squall) -> None:
    Path("main.rifps").write_text("Document(Import(<http://e.org/other>))", encoding="utf-8")
    Path("other.rifps").write_text("Document(Group(<urn:a>[<urn:p> -> <urn:b>]))", encoding="utf-8")
    assert squall("main.rifps")[0] == 2
    assert squall("main.rifps", "--graph", "http://e.org/other=other.rifps") == (0, "", "nothing found\n")


def test_the_language_may_be_named(squall: Squall) -> None:
    Path("good.txt").write_text(Path("good.jena").read_text())
    assert squall("good.txt", "--lexer", "jena")[0] == 0
    code, _, err = squall("good.txt")
    assert code == 2
    assert "cannot be inferred from its name" in err


STREAM = "http://example.org/s=s.ntt"


def test_sources_and_windows(squall: Squall) -> None:
    Path("s.ntt").touch()
    assert squall("join.csparql")[2] == "1 warning\n"
    assert squall("join.csparql", "--window", "RANGE 1s")[2] == "nothing found\n"
    assert squall("join.csparql", "--source", f"{STREAM}?window=RANGE 1s")[2] == "nothing found\n"
    assert squall("join.csparql", "--source", STREAM)[2] == "1 warning\n"
    assert squall("join.csparql", "--static", STREAM)[2] == "nothing found\n"
    code, out, _ = squall("join.csparql", "--source", "other=s.ntt")
    assert code == 2
    assert out.startswith("join.csparql:1:41: not-given error: the stream <http://example.org/s> is not given")
    assert "window-gaps warning" in squall("good.jena", "--window", "RANGE 1s STEP 2s")[1]
    assert "window-gaps warning" in squall("good.jena", "--source", "s.ntt?window=TRIPLES 2 STEP 3")[1]
    assert squall("good.jena", "--window", "RANGE 1")[0] == 2


@pytest.mark.parametrize("option", ["--source", "--static", "--graph"])
@pytest.mark.parametrize("path", ["missing.nt", "missing/", "file:missing.nt"])
def test_a_path_that_does_not_exist_is_an_error(option: str, path: str, squall: Squall) -> None:
    code, out, err = squall("good.jena", option, f"http://example.org/g={path}")
    assert (code, out) == (2, "")
    assert err.startswith(f"source error: `{path.removeprefix('file:')}` cannot be read: No such file")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("s.nt", "1 warning"),
        ("s.nt.gz", "1 warning"),
        ("-?format=ttl", "1 warning"),
        ("s.trig", "nothing found"),
        ("-?format=nq", "nothing found"),
        ("http://example.org/g=s.nt", "nothing found"),
        ("folder/", "nothing found"),
    ],
)
def test_formats_that_may_bring_named_graphs(source: str, found: str, squall: Squall) -> None:
    Path("folder").mkdir()
    for name in ("s.nt", "s.nt.gz", "s.trig"):
        Path(name).touch()
    Path("graph.rq").write_text("SELECT * { GRAPH <http://example.org/g> { ?x ?p ?y } }")
    code, _, err = squall("graph.rq", "--source", source)
    assert (code, err) == (0, f"{found}\n")


def test_statistics(squall: Squall) -> None:
    empty = {"triples": 0, "subjects": 0, "objects": 0, "values": []}
    Path("counted.json").write_text(json.dumps({"all": empty, "predicates": []}))
    code, out, _ = squall("good.jena", "--statistics", "counted.json", "--strict")
    assert code == 1
    assert "never-fires warning: `r` never fires, for want of `(?a :p ?b)`: the data that were counted have no" in out
    assert squall("good.jena", "--statistics", "good.jena")[0] == 2


# For programs


def test_json(squall: Squall) -> None:
    code, out, err = squall("product.jena", "--format", "json", "--window", "RANGE 1s STEP 2s")
    assert (code, err) == (0, "2 warnings\n")
    assert json.loads(out) == {
        "findings": [
            {
                "code": "window-gaps",
                "severity": "warning",
                "message": "the window `RANGE 1s STEP 2s` leaves gaps: what comes between its steps is never seen",
                "place": None,
                "hint": "let the step be no longer than the range",
            },
            {
                "code": "cross-product",
                "severity": "warning",
                "message": "`r` joins each solution of `(?a :p ?b)` with each of `(?c :q ?d)`: they have no variable "
                "in common",
                "place": {"file": "product.jena", "line": 2, "column": 16, "length": 10},
                "hint": "let them share a variable, compare their values, or say each in a rule or query of its own",
            },
        ],
        "summary": {"error": 0, "warning": 2, "info": 0},
    }
    assert json.loads(squall("good.jena", "--format", "json")[1]) == {
        "findings": [],
        "summary": {"error": 0, "warning": 0, "info": 0},
    }


def test_json_of_a_program_that_is_refused(squall: Squall) -> None:
    code, out, _ = squall("wrong.jena", "--format", "json")
    assert code == 2
    assert json.loads(out)["summary"] == {"error": 2, "warning": 0, "info": 0}


def test_sarif(squall: Squall) -> None:
    code, out, _ = squall("product.jena", "idle.jena", "--format", "sarif", "--window", "RANGE 1s STEP 2s")
    log: dict[str, Any] = json.loads(out)
    (run,) = log["runs"]
    assert (code, log["version"]) == (0, "2.1.0")
    assert run["tool"]["driver"]["rules"] == [{"id": "window-gaps"}, {"id": "cross-product"}, {"id": "unused-value"}]
    gaps, product, idle = run["results"]
    assert [item["level"] for item in (gaps, product, idle)] == ["warning", "warning", "note"]
    assert "locations" not in gaps
    assert product["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "product.jena"},
                "region": {"startLine": 2, "startColumn": 16, "endColumn": 26},
            }
        }
    ]
    assert product["message"]["text"].endswith("in a rule or query of its own)")


@pytest.mark.parametrize(
    ("source", "found"),
    [("x.ntt", True), ("x.nqt", False), ("x.trig.gz", False), ("-?format=nt", True), ("-?format=nq", False)],
)
def test_a_graph_may_be_in_what_a_source_brings_if_its_format_has_graphs(
    squall: Squall, source: str, found: bool
) -> None:
    Path("graph.rq").write_text("SELECT ?x { GRAPH <urn:g> { ?x <urn:p> ?y } }")
    for name in ("x.ntt", "x.nqt", "x.trig.gz"):
        Path(name).touch()
    assert ("never-fires" in squall("graph.rq", "--source", source)[1]) is found
