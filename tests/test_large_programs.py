"""Large programs: deep expressions, long rules, and work that grows with the text at most quadratically."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import squall
from squall.checking import lint
from squall.errors import PlannerError, UsageError
from squall.rdf import XSD, Event, iri, literal, triple
from tests import in_memory

SUM, CONDITIONS, OPTIONALS, UNIONS, PATTERNS, PATHS, VALUES = (
    "sum", "conditions", "optionals", "unions", "patterns", "paths", "values",
)  # fmt: skip
PREFIXES, FILTERS, BINDS, MINUS, NEGATIONS, RULES = "prefixes", "filters", "binds", "minus", "negations", "rules"
IN_A_ROW = (CONDITIONS, FILTERS, BINDS, OPTIONALS, MINUS, NEGATIONS)
TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    SUM: ("sparql", lambda n: f"SELECT ?s {{ ?x <urn:p> ?y BIND({' + '.join(['?y'] * n)} AS ?s) }}"),
    CONDITIONS: (
        "sparql",
        lambda n: f"SELECT ?y {{ ?x <urn:p> ?y FILTER({' && '.join(f'?y != -{k}' for k in range(1, n))}) }}",
    ),
    OPTIONALS: (
        "sparql",
        lambda n: f"SELECT ?y {{ ?x <urn:p> ?y {' '.join(f'OPTIONAL {{ ?x <urn:o{k}> ?z{k} }}' for k in range(n))} }}",
    ),
    UNIONS: (
        "sparql",
        lambda n: f"SELECT ?y {{ {' UNION '.join(f'{{ ?x <urn:p> ?y . ?x <urn:o{k}> ?z }}' for k in range(n))} }}",
    ),
    PATTERNS: ("jena", lambda n: f"[r: {' '.join(f'(?x <urn:p{k}> ?y{k})' for k in range(n))} -> (?x <urn:q> ?y0)]"),
    PATHS: ("sparql", lambda n: f"SELECT ?y {{ ?x {'/'.join(['<urn:p>'] * n)} ?y }}"),
    VALUES: ("sparql", lambda n: f"SELECT ?y {{ ?x <urn:p> ?y VALUES ?y {{ {' '.join(map(str, range(n)))} }} }}"),
    PREFIXES: (
        "sparql",
        lambda n: f"{' '.join(f'PREFIX p{k}: <urn:{k}>' for k in range(n))} SELECT ?y {{ ?x p{n - 1}: ?y }}",
    ),
    FILTERS: (
        "sparql",
        lambda n: f"SELECT ?y {{ ?x <urn:p> ?y {' '.join(f'FILTER(?y != -{k})' for k in range(n))} }}",
    ),
    BINDS: (
        "sparql",
        lambda n: f"SELECT ?y {{ ?x <urn:p> ?y {' '.join(f'BIND(?y + {k} AS ?z{k})' for k in range(n))} }}",
    ),
    MINUS: (
        "sparql",
        lambda n: f"SELECT ?y {{ ?x <urn:p> ?y {' '.join(f'MINUS {{ ?x <urn:o{k}> ?y }}' for k in range(n))} }}",
    ),
    NEGATIONS: (
        "sparql",
        lambda n: (
            f"SELECT ?y {{ ?x <urn:p> ?y {' '.join(f'FILTER NOT EXISTS {{ ?x <urn:o{k}> ?y }}' for k in range(n))} }}"
        ),
    ),
    RULES: ("jena", lambda n: " ".join(f"[(?x <urn:p{k}> ?y) -> (?x <urn:p{k + 1}> ?y)]" for k in range(n))),
}
ONE = Event(1, (triple(iri("urn:a"), iri("urn:p"), literal("1", XSD + "integer")),))


@pytest.mark.fault("S11")
@pytest.mark.parametrize("run", [squall.run, in_memory.run], ids=["iterator", "in memory"])
@pytest.mark.parametrize(("terms", "value"), [(200, "200"), (400, "400")])
def test_a_long_sum_is_evaluated(run: Callable[..., Any], terms: int, value: str) -> None:
    """S11 of the reported faults: Python could not compile so many nested calls, or printed them in vain."""
    language, text = TEXTS[SUM]
    system = squall.compile(text(terms), lexer=language)
    (output,) = list(run(squall.plan(system), [ONE] if run is squall.run else [[ONE]]))
    assert output.fact.values == (literal(value, XSD + "integer"),)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [CONDITIONS, OPTIONALS, UNIONS, VALUES])
def test_a_query_may_have_hundreds_of_parts(kind: str) -> None:
    language, text = TEXTS[kind]
    outputs = list(squall.run(squall.plan(squall.compile(text(250), lexer=language)), [ONE]))
    assert len(outputs) == (0 if kind == UNIONS else 1)


@pytest.mark.more
def test_a_rule_may_have_hundreds_of_patterns() -> None:
    language, text = TEXTS[PATTERNS]
    facts = tuple(triple(iri("urn:a"), iri(f"urn:p{number}"), iri("urn:b")) for number in range(150))
    outputs = list(squall.run(squall.plan(squall.compile(text(150), lexer=language)), [Event(1, facts)]))
    assert [output.fact.predicate for output in outputs] == [iri("urn:q")]


@pytest.mark.more
def test_an_expression_that_nests_too_deeply_is_refused() -> None:
    language, text = TEXTS[SUM]
    with pytest.raises(UsageError, match=r"(?s)too large: an expression nests too deeply.*hint: split it"):
        squall.plan(squall.compile(text(20_000), lexer=language), "greedy")


@pytest.mark.more
@pytest.mark.parametrize("planner", ["greedy", "rete"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (PATHS, "joins 2,000 patterns; at most 1,000 .*hint: derive"),
        (PATTERNS, "joins 2,000 patterns; at most 1,000 .*hint: derive"),
        *((kind, r"(1,999|2,000) conditions, .*; at most 1,000 .*hint: compare") for kind in IN_A_ROW),
    ],
)
def test_a_rule_with_too_many_parts_is_refused(kind: str, message: str, planner: str) -> None:
    language, text = TEXTS[kind]
    system = squall.compile(text(2000), lexer=language)
    with pytest.raises(PlannerError, match=f"(?s){message}"):
        squall.plan(system, planner)


@pytest.mark.more
@pytest.mark.parametrize("kind", [PATHS, OPTIONALS])
def test_check_reports_what_is_too_large_to_plan(kind: str) -> None:
    language, text = TEXTS[kind]
    (finding,) = lint(text(2000), lexer=language)
    assert "at most 1,000 can be planned" in finding.message


@pytest.mark.fault("H4")
@pytest.mark.more
@pytest.mark.parametrize("kind", TEXTS)
def test_the_work_for_a_program_grows_at_most_quadratically(kind: str) -> None:
    """H4 of the reported faults: it grew with the cube of the number of conditions and of patterns."""
    language, text = TEXTS[kind]
    few, many = (_calls(text(count), language) for count in (50, 100))
    assert many < 6 * few  # 8 times as many, if it grew with the cube


def _calls(text: str, language: str) -> int:
    """Returns how many functions are called to compile and plan a program."""
    squall.plan(squall.compile(text, lexer=language))  # what is loaded once
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        squall.plan(squall.compile(text, lexer=language))
    finally:
        sys.setprofile(None)
    return count
