"""Numbers of thousands of digits: in data, programs and results of all languages, and what is too long to be one.

Python refuses to convert integers of more than 4,300 digits.
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

import squall
from squall.errors import BuilderError
from squall.functions import functions
from squall.functions.ordering import key, sortable
from squall.functions.values import MAX_NUMBER_LENGTH, decimal, integer, integer_of, integer_text, number
from squall.rdf import ALWAYS, XSD, Event, Solution, Term, Triple, iri, literal, parts
from squall.testing import assert_as_oracle, run

pytestmark = pytest.mark.fault("S13")

NINES = "9" * 5000
ONE_MORE = "1" + "0" * 5000
LONGEST = "9" * MAX_NUMBER_LENGTH
P = iri("urn:p")


def of(lexical: str, kind: str = "integer") -> Term:
    return literal(lexical, XSD + kind)


def facts(*values: Term) -> list[Event]:
    return [Event(ALWAYS, tuple(Triple(iri(f"urn:s{place}"), P, value) for place, value in enumerate(values)))]


def answers(query: str, *values: Term) -> list[dict[str, Term | None]]:
    """Returns the solutions of a query over triples with the predicate `urn:p`, one for each value."""
    plan = squall.plan(squall.compile(query, lexer="sparql"))
    outputs = squall.run(plan, [], static=facts(*values), of=Solution)
    return [dict(zip(out.fact.names, out.fact.values, strict=True)) for out in outputs]


@pytest.mark.parametrize("digits", ["0", "-7", "+5", "9" * 640, "-" + "9" * 641, NINES, f"-{NINES}", "0" * 5000 + "7"])
def test_digits_are_converted_both_ways(digits: str) -> None:
    value = integer_of(digits)
    assert integer_of(integer_text(value)) == value
    assert integer_text(value) == digits.lstrip("+0") or not value or digits.startswith("0")
    assert integer_of(digits) + 1 == integer_of(integer_text(value + 1))


def test_a_number_has_ten_thousand_characters_at_most() -> None:
    assert number(of(LONGEST)) == number(integer(10**MAX_NUMBER_LENGTH - 1))
    for lexical, kind in ((LONGEST + "9", "integer"), (f"0.{LONGEST}", "decimal"), (f"{LONGEST}.5", "double")):
        assert number(of(lexical, kind)) is None


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("?x + 1", of(ONE_MORE)), ("-?x", of(f"-{NINES}")), ("?x - ?x", of("0")),
        ("?x = ?x + 0", of("true", "boolean")),
        ("?x < ?x + 1", of("true", "boolean")), ("?x > 1.5", of("true", "boolean")),
        ("?x > 1e300", of("true", "boolean")), ("xsd:integer(STR(?x))", of(NINES)), ("STR(?x)", literal(NINES)),
        ("xsd:decimal(?x + 1)", of(ONE_MORE, "decimal")), ("xsd:double(?x)", of("INF", "double")),
        ("xsd:float(?x)", of("INF", "float")), ("ABS(-?x)", of(NINES)), ("ROUND(?x)", of(NINES)),
        ("STRLEN(STR(?x * 10))", of("5001")), ("?x * ?x", integer((10**5000 - 1) ** 2)), ("?x * ?x * 10", None),
        ("(?x * ?x) / ?x > 0", of("true", "boolean")), (f"{LONGEST} + 0", of(LONGEST)), (f"{LONGEST} + 1", None),
        (f"{LONGEST}9 + 1", None), (f"xsd:integer('{LONGEST}9')", None), ("1.5 * ?x / ?x", of("1.5", "decimal")),
    ],
)  # fmt: skip
def test_expressions_of_sparql(expression: str, result: Term | None) -> None:
    prologue = f"PREFIX xsd: <{XSD}> "
    (solution,) = answers(f"{prologue}SELECT ({expression} AS ?y) {{ ?s <urn:p> ?x }}", of(NINES))
    assert solution.get("y") == result


def test_rules_of_jena_and_rif_compute_with_them() -> None:
    rules = """
    [(?s <urn:p> ?x) sum(?x 1 ?y) -> (?s <urn:sum> ?y)]
    [(?s <urn:p> ?x) product(?x ?x ?y) product(?y ?y ?z) -> (?s <urn:product> ?z)]
    [(?s <urn:p> ?x) greaterThan(?x 5) addOne(?x ?y) -> (?s <urn:next> ?y)]
    """
    outputs = run(squall.compile(rules, lexer="jena"), [], facts(of(NINES)))
    assert {(out.fact.predicate, out.fact.object) for out in outputs} == {
        ("<urn:sum>", of(ONE_MORE)), ("<urn:next>", of(ONE_MORE)),
    }  # fmt: skip
    rif = """Document(Prefix(func <http://www.w3.org/2007/rif-builtin-function#>)
      Group(Forall ?s ?x (?s[<urn:sum> -> External(func:numeric-add(?x 1))] :- ?s[<urn:p> -> ?x])
            Forall ?s ?x (?s[<urn:q> -> External(func:numeric-integer-divide(?x 1))] :- ?s[<urn:p> -> ?x])))"""
    outputs = run(squall.compile(rif, lexer="rifps"), [], facts(of(NINES)))
    assert {(out.fact.predicate, out.fact.object) for out in outputs} == {
        ("<urn:sum>", of(ONE_MORE)), ("<urn:q>", of(NINES)),
    }  # fmt: skip


def test_a_literal_of_a_program_is_the_value_of_the_data() -> None:
    assert answers(f"SELECT ?s {{ ?s <urn:p> {NINES} }}", of(NINES)) == [{"s": iri("urn:s0")}]
    assert answers(f"SELECT ?s {{ ?s <urn:p> ?x FILTER(?x = 0{NINES}) }}", of(NINES)) == [{"s": iri("urn:s0")}]


@pytest.mark.parametrize(
    ("values", "total"),
    [((of(NINES), of("1")), of(ONE_MORE)), ((of(LONGEST), of("1")), None), ((of(LONGEST + "9"),), None)],
)
def test_aggregates(values: tuple[Term, ...], total: Term | None) -> None:
    query = "SELECT (SUM(?x) AS ?sum) (MAX(?x) AS ?max) (AVG(?x) AS ?mean) { ?s <urn:p> ?x }"
    (solution,) = answers(query, *values)
    assert solution.get("sum") == total
    system = squall.compile(query, lexer="sparql")
    assert_as_oracle(system, run(system, [], facts(*values)), [], facts(*values))


ORDERED = [
    of(f"-{LONGEST[1:]}"), of(f"-{NINES}"), of(f"-{NINES[1:]}", "decimal"), of("-5"),
    of(f"-0.{'0' * 5500}1", "decimal"),
    of(f"0.{'0' * 9900}1", "decimal"), of(f"0.{'0' * 5500}1", "decimal"), of(f"0.{'0' * 4998}1", "decimal"),
    of("1E-300", "double"), of("5"), of("1E300", "double"), of("1" + "0" * 4999), of(NINES), of(ONE_MORE),
    of(LONGEST), of("INF", "double"),
]  # fmt: skip


def test_the_order_of_numbers_and_that_of_their_texts() -> None:
    for first, second in itertools.pairwise(ORDERED):
        assert key(first) < key(second)
        assert sortable(first) < sortable(second)
    texts = [sortable(term) for term in ORDERED]
    assert not [1 for first, second in itertools.permutations(texts, 2) if second.startswith(first)]


def test_equal_numbers_have_the_same_place_and_value() -> None:
    value = decimal(number(of(NINES, "decimal")).value)  # type: ignore[union-attr, arg-type]
    assert parts(value).lexical == NINES
    assert sortable(of(NINES)).split("\x01")[0] == sortable(of(NINES, "decimal")).split("\x01")[0]


@pytest.mark.parametrize("value", [of(NINES), of(f"-{LONGEST[1:]}"), of(f"{NINES}.{NINES[2:]}", "decimal")])
def test_no_function_of_one_number_raises(value: Term) -> None:
    own = (function for function in functions() if not function.iri.startswith("urn:test:"))
    for function in own:
        if function.least == function.most == 1 and ":sparql:table" not in function.iri:
            with suppress(BuilderError):
                function.evaluate(*((0, value) if function.timed else (value,)))


def test_values_are_counted_once_however_they_are_written() -> None:
    same = of(NINES), of(NINES, "decimal"), of(f"{NINES}.0", "decimal"), of("1.50", "decimal"), of("1.5", "decimal")
    rule = "[(?s <urn:p> ?x) countLiteralValues(?s <urn:p> ?n) -> (?s <urn:count> ?n)]"
    together = [Event(ALWAYS, tuple(Triple(iri("urn:s"), P, value) for value in same))]
    (output,) = run(squall.compile(rule, lexer="jena"), [], together)
    assert parts(output.fact.object).lexical == "2"
