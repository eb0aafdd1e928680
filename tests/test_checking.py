"""Each check: programs with a fault and their findings, and correct twins without a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import squall
from squall import functions, plugins, rulesets
from squall.checking import ERROR, INFO, SEVERITIES, WARNING, Finding, Program, checks, lint
from squall.checking.spelling import is_slip
from squall.contracts import Options
from squall.errors import BuilderError, Origin, UsageError
from squall.model import AtomPattern, Construct, Delete, Pattern, Report, Source, System, Variable
from squall.model.windows import CountWindow
from squall.plan.cardinality import Statistics
from squall.rdf import Event, iri, triple
from squall.testing.cases import load
from tests.test_cases import prefixed

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "check"
PREFIX = {
    "jena": "@prefix : <http://example.org/>.\n",
    "csparql": "PREFIX : <http://example.org/>\n",
    "rspql": "PREFIX : <http://example.org/>\n",
    "sparql": "PREFIX : <http://example.org/>\n",
    "rifps": "",
}
STREAM = "http://example.org/s"


def findings_of(text: str, lexer: str = "jena", **inputs: object) -> list[Finding]:
    """Returns the findings of a program that is given as text."""
    return list(lint(PREFIX[lexer] + text, lexer=lexer, **inputs))  # type: ignore[arg-type]


def codes(found: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in found]


def only(found: Sequence[Finding]) -> Finding:
    (finding,) = found
    return finding


# Faults and their twins: the code, how bad it is, what is pointed at, and a program that has not got the fault.

FAULTS = {
    "a join that compares nothing": (
        "cross-product", WARNING, "(?b :q ?y)",
        "[r: (?a :p ?x) (?b :q ?y) -> (?a :r ?b)]",
        "[r: (?a :p ?x) (?b :q ?x) -> (?a :r ?b)]",
    ),
    "a test that connects": (
        "cross-product", WARNING, "(?b :q ?y)",
        "[r: (?a :p ?x) (?b :q ?y) lessThan(?x, 3) lessThan(?y, 3) -> (?a :r ?b)]",
        "[r: (?a :p ?x) (?b :q ?y) lessThan(?x, ?y) -> (?a :r ?b)]",
    ),
    "a setting": (
        "cross-product", WARNING, "(?a :p ?x)",
        "[r: (?any :limit ?y) (?a :p ?x) -> (?a :limitedBy ?y)]",
        "[r: (:all :limit ?y) (?a :p ?x) -> (?a :limitedBy ?y)]",
    ),
    "numbers without end": (
        "endless-recursion", WARNING, "addOne(?n, ?m)",
        "[r: (?a :n ?n) addOne(?n, ?m) -> (?a :n ?m)]",
        "[r: (?a :n ?n) addOne(?n, ?m) -> (?a :next ?m)]",
    ),
    "numbers up to an end": (
        "endless-recursion", WARNING, "sum(?n, 2, ?m)",
        "[r: (?a :n ?n) (?a :k ?k) lessThan(?k, 9) sum(?n, 2, ?m) -> (?a :n ?m)]",
        "[r: (?a :n ?n) lessThan(?n, 9) sum(?n, 2, ?m) -> (?a :n ?m)]",
    ),
    "new nodes without end": (
        "endless-recursion", WARNING, "makeTemp(?b)",
        "[r: (?a a :P) makeTemp(?b) -> (?a :parent ?b)] [s: (?a :parent ?b) -> (?b a :P)]",
        "[r: (?a a :P) makeTemp(?b) -> (?a :parent ?b)] [s: (?a :parent ?b) -> (?b a :Q)]",
    ),
    "new nodes that no data know": (
        "endless-recursion", WARNING, "makeSkolem(?b, ?a)",
        "[r: (?a a :P) makeSkolem(?b, ?a) -> (?b a :P)]",
        "[r: (?a a :P) (?a :in ?place) makeSkolem(?b, ?a) -> (?b a :P)]",
    ),
    "functors without end": (
        "endless-recursion", WARNING, "[r: (?a :n ?n) -> (?a :n next(?n))]",
        "[r: (?a :n ?n) -> (?a :n next(?n))]",
        "[r: (?a :n ?n) -> (?a :m next(?n))] [s: (?a :m next(?n)) -> (?a :k ?n)]",
    ),
    "a value that goes round by another rule": (
        "endless-recursion", WARNING, "strConcat(?n, 'x', ?m)",
        "[r: (?a :n ?n) strConcat(?n, 'x', ?m) -> (?a :m ?m)] [s: (?a :m ?m) -> (?a :n ?m)]",
        "[r: (?a :n ?n) max(?n, 7, ?m) -> (?a :m ?m)] [s: (?a :m ?m) -> (?a :n ?m)]",
    ),
    "the same rule again": (
        "duplicate-rule", WARNING, "[s: (?v :q ?w) (?u :p ?v) -> (?u :r ?w)]",
        "[r: (?a :p ?b) (?b :q ?c) -> (?a :r ?c)] [s: (?v :q ?w) (?u :p ?v) -> (?u :r ?w)]",
        "[r: (?a :p ?b) (?b :q ?c) -> (?a :r ?c)] [s: (?v :q ?w) (?u :p ?w) -> (?u :r ?v)]",
    ),
    "a rule that asks for more": (
        "contained-rule", INFO, "[s: (?u :p ?v) (?u a :T) lessThan(?v, 3) -> (?u :r ?v)]",
        "[r: (?a :p ?b) lessThan(?b, 3) -> (?a :r ?b)] [s: (?u :p ?v) (?u a :T) lessThan(?v, 3) -> (?u :r ?v)]",
        "[r: (?a :p ?b) lessThan(?b, 2) -> (?a :r ?b)] [s: (?u :p ?v) (?u a :T) lessThan(?v, 3) -> (?u :r ?v)]",
    ),
    "a rule that says it of fewer": (
        "contained-rule", INFO, "[s: (?u :p :c) -> (?u a :T)]",
        "[r: (?a :p ?b) -> (?a a :T)] [s: (?u :p :c) -> (?u a :T)]",
        "[r: (?a :p ?b) -> (?a a :T)] [s: (?u :p :c) -> (?u a :U)]",
    ),
    "a test of constants": (
        "constant-test", WARNING, "greaterThan(5, 7)",
        "[r: (?a :p ?b) greaterThan(5, 7) -> (?a :r ?b)]",
        "[r: (?a :p ?b) greaterThan(?b, 7) -> (?a :r ?b)]",
    ),
    "something and itself": (
        "never-true", WARNING, "notEqual(?b, ?b)",
        "[r: (?a :p ?b) notEqual(?b, ?b) -> (?a :r ?b)]",
        "[r: (?a :p ?b) notEqual(?a, ?b) -> (?a :r ?b)]",
    ),
    "a subject as a number": (
        "never-true", WARNING, "lessThan(?a, 3)",
        "[r: (?a :p ?b) lessThan(?a, 3) -> (?b :r ?a)]".replace("?b :r ?a", "?a :r ?b"),
        "[r: (?a :p ?b) lessThan(?b, 3) -> (?a :r ?b)]",
    ),
    "what has no order": (
        "never-true", WARNING, "lessThan(?b, 'three')",
        "[r: (?a :p ?b) lessThan(?b, 'three') -> (?a :r ?b)]",
        "[r: (?a :p ?b) notEqual(?b, 'three') -> (?a :r ?b)]",
    ),
    "limits that exclude each other": (
        "never-true", WARNING, "lessThan(?b, 20)",
        "[r: (?a :p ?b) greaterThan(?b, 30) lessThan(?b, 20) -> (?a :r ?b)]",
        "[r: (?a :p ?b) greaterThan(?b, 20) lessThan(?b, 30) -> (?a :r ?b)]",
    ),
    "limits that meet in no number": (
        "never-true", WARNING, "ge(3.0, ?b)",
        "[r: (?a :p ?b) greaterThan(?b, 3) ge(3.0, ?b) -> (?a :r ?b)]",
        "[r: (?a :p ?b) ge(?b, 3) ge(3.0, ?b) -> (?a :r ?b)]",
    ),
    "a prefix for two namespaces": (
        "shadowed-prefix", WARNING, "@prefix : <http://example.org/2/>",
        "@prefix : <http://example.org/2/>.\n[r: (?a :p ?b) -> (?a :r ?b)]",
        "@prefix : <http://example.org/>.\n[r: (?a :p ?b) -> (?a :r ?b)]",
    ),
    "a well-known prefix": (
        "shadowed-prefix", WARNING, "@prefix xsd: <http://www.w3.org/2001/XMLSchema>",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema>.\n[r: (?a :p ?b) -> (?a :r ?b)]",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.\n[r: (?a :p ?b) -> (?a :r ?b)]",
    ),
    "no term of RDFS": (
        "unknown-term", WARNING, "(?a rdfs:subclassOf ?b)",
        "[r: (?a rdfs:subclassOf ?b) -> (?a :r ?b)]",
        "[r: (?a rdfs:subClassOf ?b) (?b rdf:_1 ?c) -> (?a :r ?c)]",
    ),
    "no datatype of XSD": (
        "unknown-term", WARNING, "(?a :p '5'^^xsd:intger)",
        "[r: (?a :p '5'^^xsd:intger) -> (?a :r :b)]",
        "[r: (?a :p '5'^^xsd:integer) (?a :q '5'^^<urn:mine>) (?b :in xsd:anyType) (?b :of ?a) -> (?a :r ?b)]",
    ),
    "a slip in a predicate": (
        "misspelt-predicate", WARNING, "(?a :haz ?b)",
        "[r: (?a :p ?b) -> (?a :has ?b)] [s: (?a :haz ?b) -> (?a :r ?b)]",
        "[r: (?a :p ?b) -> (?a :has ?b)] [s: (?a :gets ?b) -> (?a :r ?b)]",
    ),
    "a slip in a variable": (
        "misspelt-variable", WARNING, "(?rom :in ?house)",
        "[r: (?room :warm ?x) (?rom :in ?house) (?house :of ?x) (?room :big ?x) -> (?room :r ?house)]",
        "[r: (?room :warm ?x) (?_rom :in ?house) (?house :of ?x) (?room :big ?x) -> (?room :r ?house)]",
    ),
    "a value for nothing": (
        "unused-value", INFO, "sum(?b, 1, ?c)",
        "[r: (?a :p ?b) sum(?b, 1, ?c) -> (?a :r ?b)]",
        "[r: (?a :p ?b) sum(?b, 1, ?_c) -> (?a :r ?b)]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_with_its_place(name: str) -> None:
    code, severity, place, text, _ = FAULTS[name]
    finding = only(findings_of(text))
    assert (finding.code, finding.severity) == (code, severity)
    assert finding.origin is not None
    assert finding.origin.words == place
    assert finding.hint


@pytest.mark.parametrize("name", FAULTS)
def test_its_counterpart_has_no_finding(name: str) -> None:
    assert findings_of(FAULTS[name][-1]) == []


# What needs more than one line of rules


def test_facts_that_only_each_other_make() -> None:
    """A rule that reads atoms reads derived facts; each of these two rules waits for the other."""
    x, p, q = Variable("x"), iri("urn:p"), iri("urn:q")

    def rule(name: str, body: AtomPattern | Pattern, head: AtomPattern) -> System:
        return System(name, joinables=(body,), consequences=(Construct((head,)),))

    item, two = (
        rule("one", AtomPattern(p, (x,)), AtomPattern(q, (x,))),
        rule("two", AtomPattern(q, (x,)), AtomPattern(p, (x,))),
    )
    start = rule("start", Pattern(x, p, x), AtomPattern(p, (x,)))
    find = checks()["never-fires"]
    results = list(find(Program(System(subsystems=(item, two)))))
    assert [finding.message for finding in results] == [
        "`one` never fires, for want of `?x`: streams and data bring triples only, and only rules that never fire make "
        "it: `two`",
        "`two` never fires, for want of `?x`: streams and data bring triples only, and only rules that never fire make "
        "it: `one`",
    ]
    assert list(find(Program(System(subsystems=(item, two, start))))) == []


MADE = """\
REGISTER STREAM <http://example.org/made> AS
PREFIX : <http://example.org/>
CONSTRUCT { ?x :hot ?y } FROM STREAM :s [RANGE 1s] WHERE { ?x :reads ?y }
"""


@pytest.mark.parametrize(("reads", "found"), [(":cold", ["never-fires"]), (":hot", [])])
@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("read.csparql", "FROM STREAM :made [RANGE 1s] WHERE { ?x %s ?y }"),
        ("read.rspql", "FROM NAMED WINDOW :w ON :made [RANGE PT1S] WHERE { WINDOW :w { ?x %s ?y } }"),
    ],
)
def test_a_derived_stream_has_what_the_program_derives(
    name: str, query: str, reads: str, found: list[str], tmp_path: Path
) -> None:
    first, second = tmp_path / "made.csparql", tmp_path / name
    first.write_text(MADE)
    second.write_text(f"PREFIX : <http://example.org/> SELECT ?x {query % reads}")
    assert codes(lint(first, second, streams=[STREAM])) == found
    unknown = name.endswith("csparql")  # there may be data that belong to no stream
    assert codes(lint(first, second)) == ([] if unknown else found)


def test_graphs_that_no_source_brings() -> None:
    query = "SELECT ?x { GRAPH :g { ?x :p ?y } }"
    assert findings_of(query, "sparql") == []
    assert findings_of(query, "sparql", streams=["http://example.org/g"]) == []
    assert findings_of(query, "sparql", streams=[""], static=["http://example.org/g"]) == []
    assert findings_of(query, "sparql", streams=[""]) == []
    finding = only(findings_of(query, "sparql", streams=[""], graphs=False))
    assert (finding.code, finding.severity) == ("never-fires", WARNING)
    assert "no source brings the stream <http://example.org/g>" in finding.message


def test_graphs_that_a_source_may_bring_in_its_quads() -> None:
    query = "SELECT ?x { GRAPH :g { ?x :p ?y } }"
    assert findings_of(query, "sparql", streams=[""], graphs=True) == []


@pytest.mark.parametrize(("graph", "found"), [(":g", []), (":h", ["never-fires"])])
def test_graphs_that_a_stream_of_the_program_has(graph: str, found: list[str], tmp_path: Path) -> None:
    result = "CONSTRUCT { GRAPH :g { ?x :q ?y } } FROM STREAM :s [RANGE 1s] { ?x :p ?y }"
    prefix, (first, second) = "PREFIX : <http://example.org/>", (tmp_path / "made.csparql", tmp_path / "read.rq")
    first.write_text(f"{prefix} REGISTER STREAM :made AS {result}")
    second.write_text(f"{prefix} SELECT ?x {{ GRAPH {graph} {{ ?x :q ?y }} }}")
    assert codes(lint(first, second, streams=["http://example.org/s"], graphs=False)) == found


def test_inserted_facts_count_as_input() -> None:
    insert = "INSERT { GRAPH ?g { ?x :p ?y } } WHERE { ?x :in ?g ; :q ?y }"
    delete = "DELETE { ?x :q ?y } WHERE { GRAPH :g { ?x :p ?y } }"
    assert findings_of(f"{insert} ; {delete}", "sparql", streams=[""], graphs=False) == []
    assert codes(findings_of(delete, "sparql", streams=[""], graphs=False)) == ["never-fires"]


def test_predicates_that_were_not_counted() -> None:
    reads, at = iri("http://example.org/reads"), iri("urn:1")
    counted = Statistics.of([Event(0, (triple(at, reads, at),))])
    rules = (
        "[r: (?s :read ?x) -> (?s :r ?x)] [s: (?s :r ?x) (?s :reads ?x) -> (?x :t ?s)] [t: (?s :t ?x) -> (?s :u ?x)]"
    )
    first, second, third = findings_of(rules, statistics=counted)
    assert first.message == (
        "`r` never fires, for want of `(?s :read ?x)`: the data that were counted have no <http://example.org/read>, "
        "and no rule makes it"
    )
    assert first.hint == "did you mean `reads`?"
    assert second.message.endswith("and only rules that never fire make it: `r`")
    assert codes([first, second, third]) == ["never-fires"] * 3
    assert findings_of(rules.replace(":read ", ":reads "), statistics=counted) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("{ GRAPH :g { ?x :p ?y } } UNION { ?x :p ?y }", []),
        ("{ GRAPH :g { ?x :p ?y } } UNION { GRAPH :h { ?x :p ?y } }", ["never-fires"]),
        ("?x :q ?y OPTIONAL { GRAPH :g { ?x :p ?y } }", []),
        ("?x :q ?y FILTER NOT EXISTS { GRAPH :g { ?x :p ?y } }", []),
        ("?x :q ?y FILTER EXISTS { GRAPH :g { ?x :p ?y } }", ["never-fires"]),
        ("?x :q ?y { SELECT (COUNT(*) AS ?n) { GRAPH :g { ?x :p ?y } } }", []),
        ("?x :q ?y { SELECT ?x { GRAPH :g { ?x :p ?z } } }", ["never-fires"]),
    ],
)
def test_which_parts_a_query_cannot_do_without(body: str, found: list[str]) -> None:
    assert codes(findings_of(f"SELECT * {{ {body} }}", "sparql", streams=[], static=[""], graphs=False)) == found


def test_findings_about_paths_name_what_is_written() -> None:
    finding = only(findings_of("SELECT * { GRAPH :g { ?x :p+ ?y } }", "sparql", streams=[""], graphs=False))
    assert finding.origin is not None
    assert finding.message.startswith("`query` never fires, for want of `")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * { ?a :p ?x . ?b :q ?y }", ["cross-product"]),
        ("SELECT * { ?a :p ?x . ?b :q ?y FILTER (?x < ?y) }", []),
        ("SELECT * { ?a :p ?x . ?b :q ?y FILTER NOT EXISTS { ?a :near ?b } }", []),
        ("SELECT * { ?a :p ?x VALUES ?y { 1 2 } }", []),
        ("SELECT * { ?a :p ?x { SELECT (COUNT(*) AS ?n) { ?b :q ?y } } }", []),
        ("SELECT * { ?a :p ?x { SELECT ?b { ?b :q ?y } LIMIT 1 } }", []),
        ("SELECT * { ?a :p ?x { SELECT ?b { ?b :q ?y } } }", ["cross-product"]),
        ("SELECT * { ?a :p ?x { ?b :q ?y } UNION { ?b :r ?y } }", ["cross-product"]),
        ("SELECT * { ?a :p ?x { ?b :q ?y } UNION { ?a :r ?y } }", []),
        ("SELECT * { ?a :p ?x . :b :q :c }", []),
        ("SELECT * FROM NAMED <d> { ?a :p ?x GRAPH <d> { ?b :q ?y } }", []),
        ("SELECT * { ?a :p ?x FILTER EXISTS { ?b :q ?y . ?c :r ?z } }", ["cross-product"]),
        ("ASK { { ?a :p ?x } { ?b :p ?x } }", []),
    ],
)
def test_joins_of_queries(query: str, found: list[str]) -> None:
    assert codes(findings_of(query, "sparql")) == found


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("?y < 3", []),
        ("?y < <urn:a>", ["never-true"]),
        ("?x < 3", ["never-true"]),
        ("isLiteral(?x)", ["never-true"]),
        ("regex(?x, 'a')", ["never-true"]),
        ("regex(STR(?x), 'a')", []),
        ("?y > 'text'", []),
        ("?y > 'text'@en", []),
        ("?y < '2026-01-01'^^<http://www.w3.org/2001/XMLSchema#date>", []),
        ("?y < false", ["never-true"]),
        ("?y < true", []),
        ("?y < 'x'^^<urn:datatype>", ["never-true"]),
        (f"?y > 1{'0' * 400}", []),
        (f"?y < -1{'0' * 400}", []),
        ("?y > '12000-01-01T00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>", []),
        ("?y < '-12000-01-01'^^<http://www.w3.org/2001/XMLSchema#date>", []),
        ("?y < '00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#time>", []),
        ("?y > '23:59:59.9999Z'^^<http://www.w3.org/2001/XMLSchema#time>", []),
        ("?y > 'P99999Y'^^<http://www.w3.org/2001/XMLSchema#yearMonthDuration>", []),
        ("?y > 'P99999999D'^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>", []),
        ("?y > 'INF'^^<http://www.w3.org/2001/XMLSchema#double>", ["never-true"]),
        ("?y != ?y", ["never-true"]),
        ("?y = ?y", []),
        ("1 < 2", ["constant-test"]),
        ("2 < 1", ["constant-test"]),
        ("1/0 > 1", ["constant-test"]),
        ("RAND() < 0.5", []),
        ("NOW() > '2026-01-01T00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>", []),
        ("NOW() > ?y || ?y > 5", []),
        ("HOURS(NOW()) = 5", ["single-evaluation"]),
        ("?y > 1 && ?y < 1", ["never-true"]),
        ("?y > 1 && ?y <= 1", ["never-true"]),
        ("?y >= 1 && ?y <= 1", []),
        ("?y > 1 || ?y < 1", []),
        ("?y = 1 && ?y = 2", ["never-true"]),
        ("?y = 1 && ?y = 1.0", []),
        ("?y = 1 && 3 > ?y", []),
        ("?y = 1 && 3 < ?y", ["never-true"]),
        ("?y = 1 && 2 > 1", ["constant-test"]),
    ],
)
def test_conditions_of_queries(test: str, found: list[str]) -> None:
    assert codes(findings_of(f"SELECT * {{ ?x :p ?y FILTER ({test}) }}", "sparql")) == found


def test_rules_may_read_literals_as_subjects() -> None:
    """Facts that rules derive for rules may have literals as subjects, so that the check cannot be sure of them."""
    assert findings_of("[r: (?a :p ?b) lessThan(?a, 3) -> (?b :p ?a)]") == []


def test_a_condition_is_of_the_part_that_it_stands_in() -> None:
    query = "SELECT * {{ {{ ?x :p ?y FILTER (?y > 3) }} {} {{ ?x :q ?y FILTER (?y < 2) }} }}"
    assert findings_of(query.format("UNION"), "sparql") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * FROM STREAM :s { ?x :p ?y . ?y :q ?z }", ["unbounded-state"]),
        ("SELECT * FROM STREAM :s [RANGE 1s] { ?x :p ?y . ?y :q ?z }", []),
        ("SELECT * FROM STREAM :s [RANGE 1s STEP 2s] { ?x :p ?y }", ["translation"]),
    ],
)
def test_windows(query: str, found: list[str]) -> None:
    assert codes(findings_of(query, "csparql")) == found


def test_windows_from_outside() -> None:
    query = "SELECT * { ?x :p ?y . ?y :q ?z }"
    assert codes(findings_of(query, "sparql", streams=[STREAM])) == ["unbounded-state"]
    assert findings_of(query, "sparql", streams=[STREAM], windows={STREAM: "RANGE 1s"}) == []
    assert findings_of(query, "sparql", streams=[STREAM], window="RANGE 1s") == []
    assert findings_of(query, "sparql", streams=[], static=[STREAM]) == []
    gaps = only(findings_of(query, "sparql", window="RANGE 1s STEP 2s"))
    assert (gaps.code, gaps.origin) == ("window-gaps", None)
    assert gaps.message == "the window `RANGE 1s STEP 2s` leaves gaps: what comes between its steps is never seen"
    assert codes(findings_of(query, "sparql", windows={STREAM: "TRIPLES 2 STEP 3"})) == ["window-gaps"]
    assert findings_of(query, "sparql", window="TRIPLES 3 STEP 2") == []


def test_unread_hidden_facts_are_reported() -> None:
    x, p, q = Variable("x"), iri("urn:p"), iri("urn:q")
    hides = System(
        "hides", joinables=(Pattern(x, p, x),), consequences=(Construct((Pattern(x, q, x),), internal=True),)
    )
    reads = System("reads", joinables=(Pattern(x, q, x),), consequences=(Construct((Pattern(x, p, x),)),))
    find = checks()["unread"]
    finding = only(list(find(Program(hides))))
    assert finding.message == "`hides` makes `?x <urn:q> ?x`, which the answer does not show and no rule reads"
    assert list(find(Program(System(subsystems=(hides, reads))))) == []


def test_facts_that_are_hidden_by_their_predicate() -> None:
    hidden = "-> hide(:h).\n[r: (?a :p ?b) -> (?a :h ?b)]"
    finding = only(findings_of(hidden))
    assert (finding.code, finding.origin and finding.origin.words) == ("unread", "(?a :h ?b)")
    assert findings_of(f"{hidden} [s: (?a :h ?b) -> (?b :q ?a)]") == []


def test_facts_that_may_have_functors_are_visible_where_they_have_none() -> None:
    assert (
        findings_of("[r: (?a :p ?b) -> (?a :has point(?a, ?b)) (?a :q ?b)] [s: (?a :has point(?a, ?b)) -> (?b :q ?a)]")
        == []
    )


def test_queries_are_not_duplicates_where_each_has_an_answer_of_its_own(tmp_path: Path) -> None:
    query = "SELECT ?x FROM STREAM <urn:s> [RANGE 1s] { ?x <urn:p> ?y }"
    item, two = tmp_path / "one.csparql", tmp_path / "two.csparql"
    item.write_text(f"REGISTER QUERY one AS {query}")
    two.write_text(f"REGISTER QUERY two AS {query}")
    assert lint(item, two) == ()


def test_several_values_of_one_call_are_used_if_one_is() -> None:
    assert findings_of("[r: (?a :p ?b) regex(?b, '(.*) (.*)', ?c, ?d) -> (?a :r ?d)]") == []
    assert codes(findings_of("[r: (?a :p ?b) regex(?b, '(.*) (.*)', ?c, ?d) -> (?a :r ?b)]")) == ["unused-value"] * 2


def test_a_rule_may_make_lists_longer_without_an_end() -> None:
    rule = "Forall ?x ?y (<urn:p>(List(?y | {})) :- And(<urn:p>(?x) <urn:q>(?y)))"
    program = f"Document(Group(<urn:p>(List()) <urn:q>(1) {rule}))"
    assert codes(findings_of(program.format("?x"), "rifps")) == ["endless-recursion"]
    assert codes(findings_of(program.format("List(?y)"), "rifps")) != ["endless-recursion"]


def test_a_function_of_ones_own_may_make_new_terms() -> None:
    @functions.function("urn:squall-test:further")
    def further(value: object) -> object:
        return value

    rules = "[r: (?a :n ?n) further(?n, ?m) -> (?a :n ?m)]"
    assert codes(findings_of(rules)) == ["endless-recursion"]
    assert findings_of(rules.replace("(?a :n ?m)]", "(?a :m ?m)]")) == []


def test_recursion_that_depends_on_data_alone_is_not_reported() -> None:
    """The second rule may put any resource into the class: it is not certain that the new ones are in it."""
    kinds = "[s: (?a a ?c) (?c :under ?d) -> (?a a ?d)]"
    assert findings_of(f"[r: (?a a :P) makeTemp(?b) -> (?b a :Q)] {kinds}") == []


RIF = """\
Document(Prefix(ex <http://example.org/>) Prefix(func <http://www.w3.org/2007/rif-builtin-function#>)
Group(ex:a(1) Forall ?x (ex:b(External(func:numeric-add(?x 1))) :- ex:%s(?x)) Forall ?x (ex:c(?x) :- ex:%s(?x))))
"""


@pytest.mark.parametrize(
    ("reads", "copies", "found"),
    [("a", "b", []), ("b", "a", ["never-fires", "endless-recursion"]), ("a", "d", ["never-fires"])],
)
def test_rules_of_rif(reads: str, copies: str, found: list[str]) -> None:
    assert sorted(codes(findings_of(RIF % (reads, copies), "rifps"))) == sorted(found)


def test_places_in_xml_are_those_of_elements() -> None:
    place = Origin("x.rif", " <Atom>\n</Atom>", 1, 2, 5)
    assert place.words == ""
    atom = AtomPattern(iri("urn:r"), (Variable("x"),), origin=place)
    rule = System(
        "r", joinables=(atom,), consequences=(Construct((Pattern(Variable("x"), iri("urn:p"), iri("urn:q")),)),)
    )
    finding = only(list(checks()["never-fires"](Program(rule))))
    assert finding.message.startswith("`r` never fires, for want of `?x`: ")


def test_cycles_are_reported_by_the_names_of_their_rules() -> None:
    rules = "[r: (?a :n ?n) addOne(?n, ?m) -> (?a :m ?m)] [s: (?a :m ?m) -> (?a :o ?m)] [t: (?a :o ?m) -> (?a :n ?m)]"
    assert only(findings_of(rules)).message == (
        "`addOne` makes `?m` of what it made before, without end: `r` -> `s` -> `t` -> `r`"
    )


# Prefixes, in the words of each language


@pytest.mark.parametrize(
    ("lexer", "text"),
    [
        ("sparql", "PREFIX e: <urn:a:> SELECT * { ?x e:p ?y }"),
        (
            "sparql",
            "PREFIX e: <urn:a:> INSERT { ?x e:q ?y } WHERE { ?x e:p ?y } ;"
            "PREFIX e: <urn:a:> DELETE WHERE { ?x e:p ?y }",
        ),
        ("sparql", "PREFIX e: <urn:a:> # PREFIX e: <urn:b:>\nSELECT * { ?x e:p 'PREFIX e: <urn:b:>' }"),
        ("sparql", 'PREFIX e: <urn:a:> SELECT * { ?x e:p \'it\'\'s\', """PREFIX e: <urn:b:>""" }'.replace("''s", "")),
        (
            "jena",
            "@prefix e: <urn:a:>.\n# @prefix e: <urn:b:>.\n// @prefix e: <urn:c:>.\n[r: (?x e:p ?y) -> (?x e:q ?y)]",
        ),
        (
            "rifps",
            "Document(Prefix(e <urn:a:>) Prefix(f <urn:b:>)\nGroup(Forall ?x (?x[e:q -> 1] :- ?x[f:p -> 1])))",
        ),
        ("jena", "@prefix e: urn:a:\n@prefix e: <urn:a:>\n[r: (?x e:p ?y) -> (?x e:q ?y)]"),
    ],
)
def test_prefixes_that_say_one_thing(lexer: str, text: str) -> None:
    assert findings_of(text, lexer) == []


@pytest.mark.parametrize(
    ("lexer", "text", "place"),
    [
        ("sparql", "PREFIX e: <urn:a:> prefix e: <urn:b:> SELECT * { ?x e:p ?y }", (2, 20)),
        (
            "rifps",
            "Document(Prefix(e <urn:a:>)\n Prefix(e <urn:b:>) Group(Forall ?x (?x[e:q -> 1] :- ?x[e:p -> 1])))",
            (2, 2),
        ),
        ("csparql", "PREFIX rdf: <urn:rdf#> SELECT * FROM STREAM :s [RANGE 1s] { ?x rdf:p ?y }", (2, 1)),
        ("jena", "@prefix e: urn:a:\n  @prefix e: <urn:b:>\n[r: (?x e:p ?y) -> (?x e:q ?y)]", (3, 3)),
    ],
)
def test_prefixes_that_say_another(lexer: str, text: str, place: tuple[int, int]) -> None:
    finding = only(findings_of(text, lexer))
    assert finding.code == "shadowed-prefix"
    assert finding.origin is not None
    assert (finding.origin.line, finding.origin.column) == place


# Spelling


@pytest.mark.parametrize(
    ("name", "other"),
    [("haz", "has"), ("parnet", "parent"), ("paent", "parent"), ("parennt", "parent"), ("Parent", "parent"),
     ("arent", "parent"), ("pparent", "parent"), ("parenz", "parent"), ("parente", "parent")],
)  # fmt: skip
def test_slips(name: str, other: str) -> None:
    assert is_slip(name, other)
    assert is_slip(other, name)


@pytest.mark.parametrize(
    ("name", "other"),
    [("parent", "parent"), ("p", "q"), ("ab", "ac"), ("x1", "x2"), ("obId1", "obId2"), ("post", "post1"),
     ("started", "start"), ("ancestor", "descendant"), ("parent", "prasent"), ("obs'", "obs")],
)  # fmt: skip
def test_other_names(name: str, other: str) -> None:
    assert not is_slip(name, other)
    assert not is_slip(other, name)


# All that is wrong with a program


def test_a_program_that_is_refused_has_all_its_errors(tmp_path: Path) -> None:
    item, two = tmp_path / "one.jena", tmp_path / "two.jena"
    item.write_text("[r: (?a <urn:p> ?b) -> ('x' <urn:r> ?b)]\n[s: (?a <urn:p>) -> (?a <urn:r> ?a)]")
    two.write_text("[r: (?a <urn:p> ?b) (?x <urn:p> ?y) nothing(?a) -> (?a <urn:r> ?b)]")
    findings = lint(two, item)
    assert [(Path(finding.origin.name).stem, finding.code) for finding in findings if finding.origin] == [
        ("two", "translation"),
        ("one", "translation"),
        ("one", "syntax"),
    ]
    assert {finding.severity for finding in findings} == {ERROR}


def test_a_program_that_negates_what_depends_on_it() -> None:
    rules = "[r: (?a :p ?b) noValue(?a, :q) -> (?a :r ?b)]\n[s: (?a :r ?b) -> (?a :q ?b)]"
    finding = only(findings_of(rules))
    assert (finding.code, finding.severity) == ("not-stratified", ERROR)
    assert finding.message == "rule `r` negates what depends on it: `r` -> `s` -> `r`"
    assert finding.origin is not None
    assert finding.origin.words == "noValue(?a, :q)"


def test_a_stream_that_is_not_given() -> None:
    query = "SELECT * FROM STREAM :s [RANGE 1s] { ?x :p ?y }"
    assert codes(findings_of(query, "csparql", streams=["http://example.org/t"])) == ["not-given"]
    assert findings_of(query, "csparql", streams=[STREAM]) == []


def test_what_planners_refuse() -> None:
    x, p = Variable("x"), iri("urn:p")
    wrong = System("wrong", joinables=(Pattern(x, p, x),), consequences=(Construct((Pattern(Variable("y"), p, x),)),))
    from squall.checking import _refused

    assert [(item.code, item.message) for item in _refused(Program(System(subsystems=(wrong, wrong))))] == [
        ("planning", "the head of rule `wrong` has `?y`, which its body never binds")
    ] * 2


@pytest.mark.parametrize("update", ["INSERT { ?x :seen ?y }", "DELETE { ?x :q ?y }"])
@pytest.mark.parametrize("output_operator", ["RSTREAM", "ISTREAM"])
@pytest.mark.parametrize(
    "window", ["LANDMARK", "RANGE 4ms", "RANGE 4ms STEP 2ms", "RANGE 2ms STEP 2ms", "TRIPLES 2", "TRIPLES 2 STEP 2"]
)
def test_an_update_that_triggers_itself(window: str, output_operator: str, update: str, tmp_path: Path) -> None:
    first, second, result = tmp_path / "made.rspql", tmp_path / "act.ru", "http://example.org/made"
    query = f"REGISTER {output_operator} :made AS CONSTRUCT {{ ?x :q ?y }} {{ ?x :p ?y }}"
    first.write_text(f"PREFIX : <http://example.org/> {query}")
    second.write_text(f"PREFIX : <http://example.org/>\n{update} WHERE {{ ?x :q ?y }}")
    findings = lint(first, second, windows={result: window})
    plan = squall.plan(squall.compile(first, second, windows={result: window}))
    events = [Event(time, (triple(f"<urn:{time}>", "<http://example.org/p>", "<urn:b>"),)) for time in range(1, 4)]
    try:
        list(squall.run(plan, events, options=Options(max_update_steps=30)))
        assert findings == ()
    except BuilderError:
        assert codes(findings) == ["endless-update"]
        assert (findings[0].origin.name, findings[0].origin.line) == (str(second), 2)  # type: ignore[union-attr]


def test_output_on_change_does_not_trigger_an_update_again() -> None:
    x, p, q = Variable("x"), iri("urn:p"), iri("urn:q")
    system = System("made", joinables=(Pattern(x, p, x),), consequences=(Construct((Pattern(x, q, x),)),))
    results = []
    for report, read in ((Report("close"), q), (Report("change"), q), (Report("close"), p)):
        maker = System(subsystems=(system,), stream="urn:made", output="rstream", report=report)
        sources = (Source("urn:made", CountWindow(2, 2)),)
        update = System("act", sources, (Pattern(x, read, x),), consequences=(Delete((Pattern(x, p, x),)),))
        results.append(codes(list(checks()["endless-updates"](Program(System(subsystems=(maker, update)))))))
    assert results == [["endless-update"], [], []]


def test_no_program() -> None:
    with pytest.raises(UsageError, match="no program is given"):
        lint()


def test_recursion_is_followed_past_facts_of_other_lengths() -> None:
    result = findings_of("[r: (?x :p ?y) makeTemp(?t) hide(?t) -> (?y :p ?t)] [s: (?x :p ?y) -> (?y :q ?x)]")
    assert codes(result) == ["endless-recursion"]


def test_a_compound_term_is_reported_by_its_name() -> None:
    result = only(findings_of("[r: (?x :p ?y) -> (?x :p next(?y))]"))
    assert result.message == "`next` makes new terms of what it made before, without end: `r` -> `r`"


# No false alarms


def programs() -> Iterator[tuple[str, str, str]]:
    """Yields all programs of the cases: their name, language and text."""
    for path in sorted((HERE / "cases").rglob("*.case")):
        for case in load(path):
            for language, text in case.programs:
                yield f"{path.stem}: {case.title}", language, prefixed(language, text)


@pytest.mark.more
def test_the_cases_have_no_findings() -> None:
    findings = ((title, codes(lint(text, lexer=lexer))) for title, lexer, text in programs())
    assert {title: reported for title, reported in findings if reported} == {
        "traps: trap 19: a product gives each result once": ["cross-product"],
        "sequences: a sequence is of the nearest occurrence": ["unbounded-sequence"],
        "sequences: a difference drops what has occurred": ["unbounded-sequence"],
        "jena: a fact of which nothing binds a variable is never made": ["translation"],
        "jena: hidden nodes are in no answer, wherever they stand": ["unread"],
        "rif: rules that are not safe, or have no end, conclude what is asked of them": ["translation", "translation"],
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", rulesets.names())
def test_rule_sets_have_no_findings(name: str) -> None:
    assert lint(rulesets.path(name)) == ()


def test_the_demo_has_no_findings() -> None:
    assert lint(HERE.parent / "docs" / "demo" / "platforms.jena") == ()


# Patterns over time


@pytest.mark.parametrize(
    ("pattern", "stored"),
    [
        ("{ ?a :p 1 } SEQ { ?a :p 2 } WITHIN 1h", None),
        ("{ ?a :p 1 } SEQ { ?a :p 2 }", "{ ?a :p 1 }"),
        ("{ { ?a :p 1 } SEQ { ?a :p 2 } WITHIN 1h } AS ?x", None),
        ("{ { ?a :p 1 } SEQ { ?a :p 2 } WITHIN 1h } SEQ { ?a :p 3 }", "{ ?a :p 1 }"),
        ("{ { ?a :p 1 } SEQ { ?a :p 2 } } SEQ { ?a :p 3 } WITHIN 1h", None),
        ("{ ?a :p 1 } AND { ?a :p 2 }", "{ ?a :p 1 }"),
        ("{ { ?a :p 1 } AND NOT { ?a :p 2 } } WITHIN 1h", None),
        ("{ ?a :p 1 } OR { ?a :p 2 }", None),
        ("{ ?a :p 1 } NOT { ?a :p 2 } WITHIN 1h", None),
        ("NOT { ?a :p 2 } WITHIN 1h { ?a :p 1 }", None),
    ],
)
def test_patterns_over_time_that_are_not_bounded(pattern: str, stored: str | None) -> None:
    findings = lint(f"PREFIX : <http://example.org/>\nSELECT * FROM STREAM :s {{ {pattern} }}", lexer="ctsparql")
    assert [(finding.code, finding.origin and finding.origin.words) for finding in findings] == (
        [] if stored is None else [("unbounded-sequence", stored)]
    )


@pytest.mark.parametrize(
    ("where", "stored"),
    [
        ("{ ?a :p 1 } SEQ { ?a :p 2 } FILTER(getDURATION() < 5)", None),
        ("{ ?a :p 1 } SEQ { ?a :p 2 }", "{ ?a :p 1 }"),
        ("{ { { ?a :p 1 } SEQ { ?a :p 2 } FILTER(getDURATION() < 5) } SEQ { ?a :p 3 } }", "{ ?a :p 1 }"),
        ("{ ?a :p 1 } AND { ?a :p 2 }", "{ ?a :p 1 }"),
        ("{ ?a :p 1 } EQUALS { ?a :p 2 } UNION { ?a :p 3 }", None),
        ("{ ?a :p 1 } EQUALSOPTIONAL { ?a :p 2 }", None),
        ("{ ?a :p 1 } OPTIONALSEQ { ?a :p 2 } FILTER(getDURATION() < 5)", None),
        ("{ ?a :p 1 }", None),
    ],
)
def test_patterns_of_events_that_are_not_bounded(where: str, stored: str | None) -> None:
    findings = lint(f"PREFIX : <http://example.org/>\nSELECT * FROM STREAM :s WHERE {where}", lexer="epsparql")
    assert [(finding.code, finding.origin and finding.origin.words) for finding in findings] == (
        [] if stored is None else [("unbounded-sequence", stored)]
    )


@pytest.mark.parametrize(
    ("lexer", "pattern", "reasons"),
    [
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WITHIN 9s FILTER(before(?x, ?y))", []),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WITHIN 9s FILTER(before(?y, ?x))",
         ["`before(?y, ?x)`", "the place of `{ ?a :p 2 } AS ?y` in its sequence"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WHEN (end(?y) - end(?x) > 9000) WITHIN 9s",
         ["`end(?y) - end(?x) > 9000`"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WHEN (end(?y) - end(?x) >= 9000) WITHIN 9s", []),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y AFTER 5s WITHIN 9s FILTER(start(?x) + 5000 > end(?y))",
         ["`start(?x) + 5000 > end(?y)`"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y BEFORE 5s WITHIN 9s FILTER(start(?x) + 5000 < end(?y))",
         ["`start(?x) + 5000 < end(?y)`"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WITHIN 9s FILTER(start(?x) > 7 && end(?y) <= 7)",
         ["`start(?x) > 7`", "`end(?y) <= 7`"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WITHIN 9s FILTER(before(?y, ?x) || start(?x) > 7)", []),
        ("ctsparql", "{ { ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y } AS ?xy SEQ { ?a :p 3 } AS ?z WITHIN 9s "
         "FILTER(during(?z, ?xy))", ["`during(?z, ?xy)`"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } AS ?y WITHIN 9s AND { ?a :p 2 } AS ?y SEQ { ?a :p 1 } AS ?x "
         "WITHIN 9s", ["the place of `{ ?a :p 1 } AS ?x` in its sequence"]),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p 2 } WITHIN 9s AND { ?a :p 1 } AS ?x SEQ { ?a :p 3 } WITHIN 9s", []),
        ("ctsparql", "{ ?a :p 1 } AS ?x SEQ { ?a :p ?v } AS ?y WITHIN 9s FILTER(?v < ?a && ?a < ?v)", []),
        ("rspql", "EVENT ?x ON :w { ?a :p 1 } EVENT ?y ON :w { ?a :p 2 } MATCH ?x SEQ ?y WITHIN 9s . "
         "FILTER(after(?x, ?y))", ["`after(?x, ?y)`"]),
    ],
)  # fmt: skip
def test_patterns_over_time_whose_times_exclude_each_other(lexer: str, pattern: str, reasons: list[str]) -> None:
    stream = "FROM NAMED WINDOW :w ON :s [RANGE PT9S]" if lexer == "rspql" else "FROM STREAM :s"
    findings = [
        finding
        for finding in lint(f"PREFIX : <http://example.org/>\nSELECT * {stream} {{ {pattern} }}", lexer=lexer)
        if finding.code != "unbounded-sequence"
    ]
    assert [finding.code for finding in findings] == ["step-never-matches"] * bool(reasons)
    assert all(reason in finding.message for finding in findings for reason in reasons), findings


# How findings are reported


@pytest.mark.parametrize("program", sorted(GOLDEN.glob("*.*[!t]")), ids=lambda path: path.stem)
def test_golden(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden texts are rewritten if they are deleted and the test runs twice."""
    monkeypatch.chdir(GOLDEN)
    path = program.with_suffix(".txt")
    printed = "\n\n".join(map(str, lint(program.name))) + "\n"
    if not path.exists():
        path.write_text(printed, encoding="utf-8")
        pytest.fail(f"{path} was missing, and is written now")
    assert printed == path.read_text(encoding="utf-8")


def test_findings_are_in_the_order_of_the_text() -> None:
    result = findings_of(
        "[r: (?a :p ?b) (?c :q ?d) lessThan(1, 2) sum(?b, 1, ?e) -> (?a :r ?c)] [s: (?a rdf:typ ?b) -> (?b :r ?a)]"
    )
    assert codes(result) == ["cross-product", "constant-test", "unused-value", "unknown-term"]
    assert all(finding.severity in SEVERITIES for finding in result)


def test_every_check_comes_by_an_entry_point() -> None:
    folder = HERE.parent / "squall" / "checking"
    modules = {path.stem for path in folder.glob("*.py") if "\ndef check(program: Program)" in path.read_text()}
    assert {plugins.where(plugins.CHECKS, name).object for name in checks()} == {
        f"squall.checking.{module}:check" for module in modules
    }


def test_every_code_is_documented() -> None:
    """The codes of other stages, which have the names of the stages, are left out."""
    texts = [path.read_text(encoding="utf-8") for path in (HERE.parent / "squall" / "checking").glob("*.py")]
    existing = {
        code for text in texts for code in re.findall(r'(?:Finding|as_findings)\(\s*(?:\w+, )?"([a-z-]+)"', text)
    }
    existing |= {code for text in texts for code in re.findall(r'\("(not-[a-z]+)", lambda', text)}
    page = (HERE.parent / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| (?:error|warning|info) \|", page, re.MULTILINE)
    documented = {code.strip("` ") for row in rows for code in row.split(",")}
    assert documented - {"syntax", "translation", "planning"} == existing
