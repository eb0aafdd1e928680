"""Runs the conformance suites that are at hand, and shows that the runner tells passed, failed and left out apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance import SUITES, Outcome, Stages, corpus, run
from tests.conformance.__main__ import counted, main

WHERE = corpus()


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize("suite", SUITES)
def test_suite(suite: str, planner: str) -> None:
    if not (WHERE / suite).is_dir():
        pytest.skip("conformance data not found: set SQUALL_CONFORMANCE")
    outcomes = list(run(suite, WHERE, Stages(planner=planner)))
    assert any(outcome.status == "passed" for outcome in outcomes)
    failed = [str(outcome) for outcome in outcomes if outcome.status == "failed"]
    assert not failed, "\n".join(failed)


def _iri(name: str) -> dict[str, str]:
    return {"iri": name}


def _entail(name: str, rules: str, expected: list[str]) -> dict[str, object]:
    data = [[_iri(term) for term in line.split()] for line in ("a p b", "b p c")]
    due = [[_iri(term) for term in line.split()] for line in expected]
    return {
        "id": name, "kind": "entail", "rules": rules, "schema": None, "data": data,
        "query": [None, _iri("q"), None], "expected": due,
    }  # fmt: skip


CASES = [
    _entail("right", "[r: (?x p ?y) (?y p ?z) -> (?x q ?z)]", ["a q c"]),
    _entail("missing", "[r: (?x p ?y) -> (?x r ?y)]", ["a q c"]),
    _entail("surplus", "[r: (?x p ?y) -> (?x q ?y)]", ["a q b"]),
    _entail("functor", "[r: (?x p ?y) -> (?x q f(?y))]", []),
    _entail("wrong", "[r: (?x p ?y -> (?x q ?y)]", []),
    {"id": "nowhere", "kind": "unheard of"},
]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A corpus of a few cases of our own."""
    folder = tmp_path / "jena-rules"
    folder.mkdir()
    (folder / "rule_engine_cases.json").write_text(json.dumps(CASES), encoding="utf-8")
    return tmp_path


def test_outcomes(small: Path) -> None:
    found = {outcome.case: outcome.status for outcome in run("jena-rules", small, Stages())}
    assert found == {
        "right": "passed", "missing": "failed", "surplus": "failed", "functor": "left out", "wrong": "failed",
        "nowhere": "left out",
    }  # fmt: skip


def test_the_command_line(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jena-rules", "--corpus", str(small), "--json", str(small / "out.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 3 failed, 2 left out"
    assert lines[0].startswith("failed: jena-rules missing: missing ['<a> <q> <c> .']")
    assert any(line.startswith("left out: jena-rules functor: the functor `f(...)` is not supported") for line in lines)
    assert len(lines) == len(CASES)
    assert len(json.loads((small / "out.json").read_text(encoding="utf-8"))) == len(CASES)


def test_exit_code_without_failures(small: Path) -> None:
    (small / "jena-rules" / "rule_engine_cases.json").write_text(json.dumps(CASES[:1]), encoding="utf-8")
    assert main(["--corpus", str(small)]) == 0


def test_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(tmp_path)]) == 2
    assert "conformance data not found" in capsys.readouterr().err


def test_count() -> None:
    outcomes = [Outcome("s", "c", "passed"), Outcome("s", "d", "left out", "why")]
    assert counted(outcomes) == "1 passed, 0 failed, 1 left out"
