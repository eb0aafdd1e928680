"""Runs the available conformance suites, and checks that the runner distinguishes the outcomes of a case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.rdf import XSD, iri, literal
from tests.conformance import (
    SUITES,
    Outcome,
    Stages,
    corpus,
    documented,
    made_up,
    place_of,
    run,
    w3c_update_suite,
)
from tests.conformance.__main__ import counted, main
from tests.conformance.evaluations import compare, timed_lines

WHERE = corpus()


LONG = {"csrbench", "jena-rules", "w3c-rdf-tests"}
"""The suites that take tens of seconds: one planner runs them, and both do in `make test-all`."""
LONGER = {"instans": 3, "jena-owl": 0, "lubm": 3, "owl1-wg-tests": 12, "owl2-tests": 12}
"""The suites that take minutes: one case in so many runs, with one planner (0: none), and all do in `make test-all`."""


def _runs(suite: str, planner: str) -> Iterator[Any]:
    """Yields the runs of a suite with a planner: each has the number of cases of which one runs."""
    every = LONGER.get(suite, 1)
    is_slow = planner == "greedy" and (suite in LONG or suite in LONGER)
    if every != 1:
        yield pytest.param(suite, planner, 1, marks=pytest.mark.slow)
    if every and not (is_slow and every > 1):
        yield pytest.param(suite, planner, every, marks=[pytest.mark.slow] if is_slow else [])


RUNS = [run for suite in SUITES for planner in ("greedy", "rete") for run in _runs(suite, planner)]


def outcomes_without_failure(suite: str, stages: Stages, every: int) -> list[Outcome]:
    """Runs one of so many cases of a suite. Some pass and none fails, or it is skipped where there are no data."""
    if not place_of(suite, WHERE).exists():
        pytest.skip("conformance data not found: set SQUALL_CONFORMANCE")
    outcomes = list(run(suite, WHERE, stages, every))
    assert any(outcome.status == "passed" for outcome in outcomes)
    failed = [str(outcome) for outcome in outcomes if outcome.status == "failed"]
    assert not failed, "\n".join(failed)
    return outcomes


@pytest.mark.more
@pytest.mark.parametrize(("suite", "planner", "every"), RUNS)
def test_suite(suite: str, planner: str, every: int) -> None:
    outcomes = outcomes_without_failure(suite, Stages(planner=planner), every)
    if every > 1:
        return
    page = documented.documented(documented.PAGE.read_text(encoding="utf-8"))
    hint = "python -m tests.conformance --docs"
    assert documented.counts_of(outcomes) == page[suite], f"docs/testing.md has other counts: {hint}"
    for sentence in (sentence for sentence in documented.SENTENCES if sentence.suite == suite):
        assert sentence.is_right(outcomes), f"docs/{sentence.page} does not say: {sentence.expected(outcomes)}"


@pytest.mark.fault("T3")
def test_the_number_of_updates() -> None:
    folder = place_of("w3c-rdf-tests", WHERE)
    if not folder.exists():
        pytest.skip("conformance data not found: set SQUALL_CONFORMANCE")
    text = " ".join((documented.PAGE.parent / "languages" / "sparql.md").read_text(encoding="utf-8").split())
    assert f"all of the W3C's {len(list(w3c_update_suite.cases(folder)))} tests of update evaluation pass" in text


@pytest.mark.fault("T3")
def test_the_page_has_a_row_for_each_suite() -> None:
    text = documented.PAGE.read_text(encoding="utf-8")
    rows = documented.documented(text)
    assert set(rows) == set(SUITES)
    assert documented.with_counts(text, rows) == text
    changed = documented.with_counts(text, {"cqels": (6, 0, 0)})
    assert documented.documented(changed) == rows | {"cqels": (6, 0, 0)}


def _iri(name: str) -> dict[str, str]:
    return {"iri": name}


def _entail(name: str, rules: str, expected: list[str]) -> dict[str, object]:
    data = [[_iri(term) for term in line.split()] for line in ("a p b", "b p c")]
    expectation = [[_iri(term) for term in line.split()] for line in expected]
    return {
        "id": name, "kind": "entail", "rules": rules, "schema": None, "data": data,
        "query": [None, _iri("q"), None], "expected": expectation,
    }  # fmt: skip


CASES = [
    _entail("right", "[r: (?x p ?y) (?y p ?z) -> (?x q ?z)]", ["a q c"]),
    _entail("missing", "[r: (?x p ?y) -> (?x r ?y)]", ["a q c"]),
    _entail("surplus", "[r: (?x p ?y) -> (?x q ?y)]", ["a q b"]),
    _entail("unbound", "[r: (?x q ?z) <- (?x p ?y)]", ["a q b"]),
    _entail("wrong", "[r: (?x p ?y -> (?x q ?y)]", []),
    {"id": "nowhere", "kind": "unheard of"},
]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Makes a corpus of a few cases of our own."""
    folder = tmp_path / "jena-rules"
    folder.mkdir()
    (folder / "rule_engine_cases.json").write_text(json.dumps(CASES), encoding="utf-8")
    return tmp_path


def test_outcomes(small: Path) -> None:
    results = {outcome.case: outcome.status for outcome in run("jena-rules", small, Stages())}
    assert results == {
        "right": "passed", "missing": "failed", "surplus": "failed", "unbound": "left out", "wrong": "failed",
        "nowhere": "left out",
    }  # fmt: skip


def test_the_command_line(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jena-rules", "--corpus", str(small), "--json", str(small / "out.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 3 failed, 2 left out, 0 known bad"
    assert lines[0].startswith("failed: jena-rules missing: missing ['<a> <q> <c> .']")
    assert any(line.startswith("left out: jena-rules unbound: `?z` is in the head, but nothing") for line in lines)
    assert len(lines) == len(CASES)
    assert len(json.loads((small / "out.json").read_text(encoding="utf-8"))) == len(CASES)


@pytest.mark.fault("T2")
def test_a_list_of_cases_that_cannot_be_read_fails(small: Path) -> None:
    (small / "jena-rules" / "rule_engine_cases.json").write_text("[{", encoding="utf-8")
    (outcome,) = run("jena-rules", small, Stages())
    assert (outcome.case, outcome.status) == ("the list of cases", "failed")


SYNTAX = [
    {"id": "refused", "dir": "sparql/x", "type": ["NegativeSyntaxTest11"], "action": ["bad.rq"]},
    {"id": "not refused", "dir": "sparql/x", "type": ["NegativeSyntaxTest11"], "action": ["good.rq"]},
    {"id": "read", "dir": "sparql/x", "type": ["PositiveSyntaxTest11"], "action": ["good.rq"]},
]
RIF = [
    {"id": "Unheard_of", "suite": "BLD_1", "dir": "case", "type": "NegativeSyntaxTest", "dialects": ["BLD"]},
    {"id": "Of_no_kind", "suite": "BLD_1", "dir": "case", "type": "StrangeTest", "dialects": ["BLD"]},
]
SCOPES = [{"id": "unheard of", "policy": "whenever"}]
EVENTS = [
    {
        "id": name,
        "query": "CONSTRUCT ?a has ?b WHERE { ?a gives ?b }",
        "events_in_order": [["x", "gives", "1"], ["y", "gives", "2"]],
        "expected_prolog": f"[stored_event(event(rdf({expected}),[_,_]))]",
    }
    for name, expected in (("right", "y,has,2"), ("wrong", "x,has,1"))
]
EVENTS += [
    {
        "id": name,
        "query": f"CONSTRUCT ?c has ?d WHERE {{ ?a gives ?b }} SEQ {{ ?e gives ?f }} FILTER ( {goals} )",
        "background_facts": ["rdf_store(y,likes,'z')"],
        "events_in_order": [["x", "gives", "1"], ["y", "gives", "2"], ["z", "gives", "3"]],
        "expected_prolog": f"[stored_event(event(rdf({expected}),[_,_]))]",
    }
    for name, goals, expected in (
        ("goals", "?b < ?f && write(?c) && rdf_store(?e,likes,?c) && ?d is (?f-?b)*10", "z,has,10"),
        ("another store", "rdf_store(?a,likes,?c) && ?d is ?f-?b", "z,has,1"),
        ("another bound", "?b > ?f && rdf_store(?e,likes,?c) && ?d is ?b", "z,has,1"),
        ("a goal", "stores(?e,likes,?c) && ?d is ?f", "z,has,2"),
    )
]
AVERAGES = {"tests": [{"id": "q", "query": "SELECT", "expected": [], "stream": {"urn:s": []}}]}
UNSEEN: dict[str, tuple[str, dict[str, object], dict[str, str]]] = {
    "w3c-rdf-tests": (
        "w3c-rdf-tests",
        {"index.json": SYNTAX, "bad.rq": "SELECT {", "good.rq": "SELECT * { ?a ?b ?c }"},
        {"refused": "passed", "not refused": "failed", "read": "passed"},
    ),
    "rif-w3c": (
        "rif-w3c",
        {"index.json": RIF, "case/Unheard_of-input.rifps": "Document ( Group ( ?x ) )"},
        {
            "BLD Unheard_of (rif)": "failed",
            "BLD Unheard_of (rifps)": "passed",
            "BLD Of_no_kind (rif)": "left out",
            "BLD Of_no_kind (rifps)": "left out",
        },
    ),
    "csrbench": ("csrbench", {"window_scopes.json": SCOPES}, {"unheard of": "left out"}),
    "ep-sparql-etalis": (
        "ep-sparql-etalis",
        {"ep_sparql_tests.json": EVENTS},
        {
            "right": "passed",
            "wrong": "failed",
            "goals": "passed",
            "another store": "passed",
            "another bound": "failed",
            "a goal": "left out",
        },
    ),
    "cqels": ("cqels", {"expected.json": AVERAGES}, {"q": "failed"}),
    "instans": (
        "instans",
        {
            "a/own.rq": "CONSTRUCT { ?x <urn:q> ?y } WHERE { ?x <urn:p> ?y }",
            "a/own.trig": "<urn:g> { <urn:a> <urn:p> <urn:b> }",
            "a/counted.rq": "SELECT ?x WHERE { ?x <urn:p> ?y }",
            "a/counted.ttl": "<urn:a> <urn:p> <urn:b> .",
            "a/counted.correct": "x\nurn:b\n",
        },
        {"a/counted.rq": "failed", "a/own.rq": "passed"},
    ),
    "yabench": ("yabench", {}, {}),
    "squall": ("squall", {"a.csparql": "no query"}, {"a.csparql": "failed"}),
}
"""Cases that no suite knows by name: the suite, the files of its folder, and the outcomes."""


@pytest.mark.fault("T2")
@pytest.mark.parametrize("name", UNSEEN)
def test_unseen_cases(name: str, tmp_path: Path) -> None:
    suite, files, expected = UNSEEN[name]
    (tmp_path / suite).mkdir()
    for place, content in files.items():
        path = tmp_path / suite / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert {outcome.case: outcome.status for outcome in run(suite, tmp_path, Stages())} == expected


def test_exit_code_without_failures(small: Path) -> None:
    (small / "jena-rules" / "rule_engine_cases.json").write_text(json.dumps(CASES[:1]), encoding="utf-8")
    assert main(["--corpus", str(small)]) == 0


def test_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(tmp_path)]) == 2
    assert "conformance data not found" in capsys.readouterr().err


def test_count() -> None:
    outcomes = [Outcome("s", "c", "passed"), Outcome("s", "d", "left out", "why")]
    assert counted(outcomes) == "1 passed, 0 failed, 1 left out, 0 known bad"


WINDOW = "FROM STREAM <urn:s> [RANGE {range_s}s STEP {step_s}s]"


@pytest.fixture
def counts(small: Path) -> Path:
    """Returns the corpus with counts of windows: those at 1000, 2000 and 3000 of a correct case, of a wrong one, and of
    one that is known to be wrong."""
    results = [
        {
            "id": f"c.{number}",
            "timestamps_ms": [500, 1000, 1500, 3000],
            "range_s": 2,
            "step_s": 1,
            "expected_counts": expected,
            "agrees_with_clean_semantics": agreement,
        }
        for number, expected, agreement in ((1, [1, 3, 2], "yes"), (2, [1, 3, 3], "yes"), (5, [1, 3, 3], None))
    ]
    folder = small / "csparql-engine"
    folder.mkdir()
    query = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?a ?b ?c }}"
    text = json.dumps({"query_template": query, "cases": results})
    (folder / "external_timestamp_window_counts.json").write_text(text, encoding="utf-8")
    return small


def test_counts_of_windows(counts: Path) -> None:
    results = {outcome.case: outcome.status for outcome in run("csparql-engine", counts, Stages())}
    assert results == {"c.1": "passed", "c.2": "failed", "c.5": "known bad"}


def test_a_line_for_each_suite(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(counts)]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "jena-rules: 1 passed, 3 failed, 2 left out, 0 known bad",
        "csparql-engine: 1 passed, 1 failed, 0 left out, 1 known bad",
        "2 passed, 4 failed, 2 left out, 1 known bad",
    ]


def test_evaluations_that_differ() -> None:
    item, other = [(literal("1", XSD + "integer"),)], [(literal("01", XSD + "int"),)]
    compare({1: item, 2: [*item, *item]}, {1: other, 2: [*other, *item]})
    for actual in ({1: item}, {1: item, 3: [*item, *item]}, {1: item, 2: item}, {1: [], 2: [*item, *item]}):
        with pytest.raises(AssertionError):
            compare(actual, {1: item, 2: [*item, *item]})


def test_a_stream_with_times(tmp_path: Path) -> None:
    path = tmp_path / "input.stream"
    path.write_text('<urn:s> <urn:p> <urn:o> "7" .\n\n<urn:s> <urn:p> 4.5^^<urn:t> "8" .\n<urn:s> <urn:p> "x" "9"\n')
    objects = [(time, fact.object) for time, fact in timed_lines(path)]
    assert objects == [(7, iri("urn:o")), (8, literal("4.5", "urn:t")), (9, literal("x"))]
    path.write_text("<urn:s> <urn:p> <urn:o> .")
    with pytest.raises(AssertionError, match="no triple with a time"):
        timed_lines(path)


def test_streams_made_up_for_a_query() -> None:
    text = "SELECT * FROM STREAM <urn:s> [RANGE 5s] FROM <urn:d> WHERE { ?x <urn:p> ?y FILTER NOT EXISTS { ?x a ?z } }"
    arriving, static = made_up.events(squall.compile(f"REGISTER QUERY q AS {text}", lexer="csparql"))
    assert [str(event.facts[0]) for event in arriving if event.time == 1000] == [
        '<urn:x:0> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        '<urn:x:0> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    ]
    assert [event.time for event in arriving] == [1000, 1000, 2000, 3000]
    assert {event.stream for event in arriving} == {"urn:s"}
    assert {event.stream for event in static} == {"urn:d"}
