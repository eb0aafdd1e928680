"""The registry of functions, the values of literals, and the functions of Jena's built-ins."""

from __future__ import annotations

import logging
import pickle
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall import functions, plugins
from squall.errors import BuilderError, PluginError, TranslatorError
from squall.functions import Builtin, Function, Mode, jena, values
from squall.functions.jena import function_iri
from squall.rdf import ALWAYS, RDFS, XSD, Event, Term, Triple, blank, iri, is_iri, literal, parts
from squall.rdf import term as any_term
from squall.testing import assert_as_oracle, assert_outputs, run


def of(value: str | int | float, datatype: str = "") -> Term:
    """Returns a literal: of a number, or of a text and the local name of an XSD type."""
    if isinstance(value, int):
        return literal(str(value), XSD + (datatype or "int"))
    if isinstance(value, float):
        return literal(repr(value), XSD + (datatype or "double"))
    return literal(value, XSD + datatype if datatype else None)


def call(name: str, *arguments: Any) -> Any:
    return functions.lookup(function_iri(name)).evaluate(*arguments)


X, B = iri("urn:x"), blank("b")


# Values


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (of(5), of("05", "integer")),
        (of(5), of("5.0", "decimal")),
        (of(5, "byte"), of("+5", "unsignedLong")),
        (of("1", "float"), of("1.0E0", "float")),
        (of("16777217", "float"), of("16777216", "float")),
        (of("1e999", "double"), of("INF", "double")),
        (of("NaN", "double"), of("NaN", "double")),
        (of("true", "boolean"), of("1", "boolean")),
        (of("2000-01-01T00:00:00Z", "dateTime"), of("2000-01-01T00:00:00", "dateTime")),
        (of("2000-01-01T00:00:00Z", "dateTime"), of("2000-01-01T01:30:00.000+01:30", "dateTime")),
        (of("1999-12-31T24:00:00Z", "dateTime"), of("2000-01-01T00:00:00Z", "dateTimeStamp")),
        (of("12000-01-01T00:00:00Z", "dateTime"), of("11999-12-31T23:00:00-01:00", "dateTime")),
        (of("2000-01-01", "date"), of("2000-01-01Z", "date")),
        (of("P1Y", "duration"), of("P12M", "duration")),
        (of("P1D", "duration"), of("PT24H", "dayTimeDuration")),
        (of("-P1Y", "yearMonthDuration"), of("-P12M", "duration")),
        (Term('"a"@en-GB'), Term('"a"@EN-gb')),
        (of("a"), of("a", "string")),
    ],
)
def test_same_values(left: Term, right: Term) -> None:
    assert values.value_key(left) == values.value_key(right)
    assert values.same(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (of(5), of("5")),
        (of(5), of("5", "float")),
        (of("5", "float"), of("5", "double")),
        (of("0.0", "double"), of("-0.0", "double")),
        (of("1", "boolean"), of(1)),
        (of("300", "byte"), of(300)),
        (of("-1", "nonNegativeInteger"), of(-1)),
        (of("x", "int"), of("x", "integer")),
        (of(" 5 ", "int"), of(5)),
        (of("\u0665", "int"), of(5)),
        (of("1.5", "integer"), of("1.5", "decimal")),
        (of("9" * 10_001, "integer"), of("0" + "9" * 10_001, "integer")),
        (iri("a"), of("a")),
        (iri("a"), of("<a>")),
        (of("a"), Term('"a"@en')),
        (Term('"a"@en'), Term('"a"@de')),
        (of("2001-02-29", "date"), of("2001-03-01", "date")),
        (of("2000-01-01T00:00:00.001Z", "dateTime"), of("2000-01-01T00:00:00.0010000001Z", "dateTime")),
        (of("2000-01-01T24:00:01Z", "dateTime"), of("2000-01-02T00:00:01Z", "dateTime")),
        (of("2000-01-01", "date"), of("2000-01-01T00:00:00Z", "dateTime")),
        (of("P1M", "duration"), of("P30D", "duration")),
        (of("P1D", "duration"), of("-P1D", "duration")),
        (of("1D", "duration"), of("P1D", "duration")),
    ],
)
def test_different_values(left: Term, right: Term) -> None:
    assert values.value_key(left) != values.value_key(right)
    assert not values.same(left, right)


@given(st.integers(), st.integers())
def test_integers_are_ordered_as_numbers(left: int, right: int) -> None:
    expected = (left > right) - (left < right)
    assert values.compare(of(left, "integer"), of(f"{right}.0", "decimal")) == expected


@given(st.floats(), st.floats())
def test_doubles_are_ordered_as_numbers(left: float, right: float) -> None:
    order = values.compare(values.double(left), values.double(right))
    assert order == (None if left != left or right != right else (left > right) - (left < right))


@given(st.floats())
def test_a_double_is_printed_and_read_without_loss(value: float) -> None:
    printed = values.number(values.double(value))
    assert printed is not None
    assert repr(printed.value) == repr(value)


@pytest.mark.parametrize(
    ("value", "printed"),
    [(3.5, "3.5"), (0.0, "0.0"), (-0.0, "-0.0"), (1e7, "1.0E7"), (123456789.0, "1.23456789E8"), (0.0001, "1.0E-4"),
     (9999999.0, "9999999.0"), (float("inf"), "INF"), (float("-inf"), "-INF"), (float("nan"), "NaN")],
)  # fmt: skip
def test_doubles_are_printed_as_java_prints_them(value: float, printed: str) -> None:
    assert values.double(value) == of(printed, "double")


def test_numbers_of_different_kinds_are_ordered() -> None:
    assert values.compare(of("1.5", "decimal"), of("1.25", "float")) == 1
    assert values.compare(of(10**400, "integer"), of("INF", "double")) == 0
    assert values.compare(of(1), of("1")) is None
    assert values.compare(of("a"), of("b")) is None


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (of("2000-03-04T20:00:00Z", "dateTime"), of("2000-03-04T20:00:00.5Z", "dateTime")),
        (of("2000-03-04T23:00:00+05:00", "dateTime"), of("2000-03-04T20:00:00Z", "dateTime")),
        (of("-0001-01-01T00:00:00Z", "dateTime"), of("0001-01-01T00:00:00Z", "dateTime")),
        (of("2000-03-04", "date"), of("2000-03-05", "date")),
        (of("1973", "gYear"), of("1974", "gYear")),
        (of("10:00:00", "time"), of("10:00:00-01:00", "time")),
        (of("--02-29", "gMonthDay"), of("--03-01", "gMonthDay")),
    ],
)
def test_instants_are_ordered(less: Term, more: Term) -> None:
    assert values.compare(less, more) == -1
    assert values.compare(more, less) == 1


def test_invalid_instants_have_no_order() -> None:
    assert values.compare(of("1973", "date"), of("1974-01-01", "date")) is None
    assert values.compare(of("2000-01-01", "date"), of("2000-01-01T00:00:00Z", "dateTime")) is None


@given(st.integers(-(10**14), 10**15))
def test_a_time_is_printed_as_the_instant_that_it_is(milliseconds: int) -> None:
    result = values.instant(values.date_time(milliseconds))
    assert result is not None
    assert result.seconds * 1000 + int(result.fraction.ljust(3, "0")) == milliseconds


@given(st.integers(), st.decimals(allow_nan=False, allow_infinity=False, places=5))
def test_printed_numbers_are_terms(whole: int, exact: Decimal) -> None:
    for result in (values.integer(whole), values.decimal(exact)):
        assert any_term(result) == result
    value = values.number(values.decimal(exact))
    assert value is not None
    assert value.value == exact


# Jena's built-ins


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("equal", (of(1), of("1.0", "float")), True),
        ("equal", (of("a"), of("a")), True),
        ("equal", (iri("a"), of("a")), False),
        ("equal", (of("NaN", "double"), of("NaN", "double")), False),
        ("equal", (None, X), False),
        ("notEqual", (None, X), True),
        ("notEqual", (of(1), of("01", "integer")), False),
        ("lessThan", (of(1), of("1.5", "decimal")), True),
        ("lessThan", (of("a"), of("b")), False),
        ("greaterThan", (of("a"), of("b")), False),
        ("le", (of("a"), of("a")), False),
        ("ge", (of("a"), of("a")), False),
        ("le", (of(1), of(1)), True),
        ("ge", (of(2), None), False),
        ("bound", (X, B), True),
        ("bound", (X, None), False),
        ("unbound", (None, None), True),
        ("unbound", (X, None), False),
        ("isLiteral", (of(1),), True),
        ("isLiteral", (None,), False),
        ("notLiteral", (X,), True),
        ("notLiteral", (None,), True),
        ("isBNode", (B,), True),
        ("isBNode", (None,), False),
        ("notBNode", (X,), True),
        ("notBNode", (None,), True),
        ("isDType", (of(5, "integer"), iri(XSD + "byte")), True),
        ("isDType", (of(500, "integer"), iri(XSD + "byte")), False),
        ("isDType", (of("1.0", "decimal"), iri(XSD + "int")), False),
        ("isDType", (of("a"), iri(XSD + "string")), True),
        ("isDType", (of("a", "token"), iri(XSD + "string")), True),
        ("isDType", (of("a"), iri(XSD + "NCName")), True),
        ("isDType", (of("a b"), iri(XSD + "NCName")), False),
        ("isDType", (of(" a"), iri(XSD + "token")), False),
        ("isDType", (of("P1D", "dayTimeDuration"), iri(XSD + "duration")), True),
        ("isDType", (of("P1D", "duration"), iri(XSD + "dayTimeDuration")), True),
        ("isDType", (of("P1D", "duration"), iri(XSD + "yearMonthDuration")), False),
        ("isDType", (of("one day", "duration"), iri(XSD + "duration")), False),
        ("isDType", (of("2001-01-01T00:00:00Z", "dateTime"), iri(XSD + "dateTimeStamp")), True),
        ("isDType", (of("2001-01-01T00:00:00", "dateTime"), iri(XSD + "dateTimeStamp")), False),
        ("isDType", (of("2001-01-01T00:00:00Z", "dateTimeStamp"), iri(XSD + "dateTime")), True),
        ("isDType", (of(5), iri(XSD + "string")), False),
        ("isDType", (of("x", "int"), iri(RDFS + "Literal")), False),
        ("isDType", (of("2001-02-29", "date"), iri(RDFS + "Literal")), False),
        ("isDType", (B, iri(XSD + "int")), True),
        ("isDType", (X, iri(RDFS + "Literal")), False),
        ("isDType", (of(5), of("int")), False),
        ("notDType", (None, iri(XSD + "int")), True),
        ("notDType", (of(5), iri(XSD + "int")), False),
        ("sum", (of(2), of(3)), of(5)),
        ("sum", (of(2**31 - 1), of(1)), of(2**31, "long")),
        ("sum", (of(-(2**31)), of(-1)), of(-(2**31) - 1, "long")),
        ("sum", (of(2**63 - 1, "long"), of(1)), of(2**63, "integer")),
        ("sum", (of(2), of("0.5", "float")), of("2.5", "double")),
        ("sum", (of("0.1", "decimal"), of("0.2", "decimal")), of("0.3", "decimal")),
        ("sum", (of("a"), of(1)), None),
        ("sum", (None, of(1)), None),
        ("sum", (of(1), X), None),
        ("difference", (of(2), of(3)), of(-1)),
        ("product", (of("1e300", "double"), of("1e300", "double")), of("INF", "double")),
        ("product", (of("1.5", "decimal"), of(2)), of("3", "decimal")),
        ("quotient", (of(7), of(2)), of(3)),
        ("quotient", (of(-7), of(2)), of(-3)),
        ("quotient", (of(7), of(0)), None),
        ("quotient", (of("1", "decimal"), of(8)), of("0.125", "decimal")),
        ("quotient", (of("1", "decimal"), of(0)), None),
        ("quotient", (of("7", "double"), of(2)), of("3.5", "double")),
        ("quotient", (of("-7", "double"), of(0)), of("-INF", "double")),
        ("quotient", (of("0", "double"), of(0)), of("NaN", "double")),
        ("addOne", (of(4),), of(5)),
        ("addOne", (of("4", "double"),), None),
        ("subtractOne", (of(5),), of(4)),
        ("min", (of(1), of("1.0", "float")), of(1)),
        ("max", (of(1), of("1.0", "float")), of("1.0", "float")),
        ("min", (of(2), of("1.5", "decimal")), of("1.5", "decimal")),
        ("max", (of(2), of("1.5", "decimal")), of(2)),
        ("min", (of("a"), of("b")), None),
        ("max", (of("2000-01-01", "date"), of("2001-01-01", "date")), of("2001-01-01", "date")),
        ("strConcat", (), of("")),
        ("strConcat", (of("a\n"), iri("urn:x"), of(1), blank("b")), of("a\nurn:x1b")),
        ("strConcat", (of("a"), None), None),
        ("uriConcat", (of("http://e.org/"), of(1)), iri("http://e.org/1")),
        ("uriConcat", (of("http://e.org/a b"),), None),
        ("regex", (of("abc"), of("b")), False),
        ("regex", (of("abc"), of(".*b.*")), True),
        ("regex", (X, of(".*")), False),
        ("regex", (of("abc"), of("(")), False),
        ("regex", (of("a.c"), of(r"\Qa.c\E")), True),
        ("regex", (of("abc"), of(r"\Qa.c\E")), False),
        ("regex", (of("\u0665"), of(r"\d")), False),
        ("regex", (of("e"), of("[a-z&&[aeiou]]")), True),
        ("regexGroup", (of(2), of("foo bar"), of("(.*) (b(.)?.*)")), of("bar")),
        ("regexGroup", (of(1), of("b"), of("(a)?b")), of("")),
        ("regexGroup", (of(2), of("b"), of("(a)?b")), None),
        ("regexGroup", (of(1), of("c"), of("(a)?b")), None),
        ("now", (1234,), of("1970-01-01T00:00:01.234Z", "dateTime")),
        ("now", (ALWAYS,), of("1970-01-01T00:00:00Z", "dateTime")),
        ("sameValueAs", (of(1), of("1", "float")), False),
        ("sameValueAs", (of(1), of("01", "integer")), True),
    ],
)  # fmt: skip
def test_built_ins(name: str, arguments: tuple[Any, ...], result: object) -> None:
    assert call(name, *arguments) == result


def test_a_skolem_node_depends_on_its_arguments_alone() -> None:
    result = call("makeSkolem", X, of(42))
    assert result == call("makeSkolem", X, of(42))
    other_items = [(of("urn:x"), of(42)), (X, of("42")), (X, of(42, "long")), (X,), (X, of(42), None)]
    assert len({result, *(call("makeSkolem", *arguments) for arguments in other_items)}) == 6
    assert call("makeSkolem", of("foo")) != call("makeSkolem", Term('"foo"@en'))


def test_a_temporary_node_depends_on_its_call_and_the_bindings() -> None:
    result = call("makeTemp", of(1), of("key 1"), X, B)
    assert result == call("makeTemp", of(1), of("key 1"), X, B)
    other_items = [(of(2), of("key 1"), X, B), (of(1), of("key 2"), X, B), (of(1), of("key 1"), B, X)]
    assert result not in {call("makeTemp", *arguments) for arguments in other_items}
    assert any_term(result) == result


def test_print_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "squall.print"):
        assert call("print", X, None, of("a")) is True
    assert caplog.messages == ['<urn:x> ? "a"']


SLOW_MATCH = (of("a" * 60 + "b"), of("(a|aa)+$"))


def test_a_regular_expression_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(BuilderError, match=re.escape("`(a|aa)+$` took more than 0.1 s")):
        jena.full_match(*SLOW_MATCH, seconds=0.1)


@pytest.mark.more
def test_a_match_may_take_five_seconds() -> None:
    with pytest.raises(BuilderError, match=re.escape("`(a|aa)+$` took more than 5 s")):
        call("regex", *SLOW_MATCH)


_NUMBERS = [of(0), of(-1), of("1e308", "double"), of("NaN", "float"), of("0.1", "decimal")]
_ANY = [None, X, B, *_NUMBERS, of("x", "int"), of("(")]
_OF_TERMS = [
    function
    for function in jena.FUNCTIONS
    if isinstance(function, Function) and function.iri not in (function_iri("now"), function_iri("regexGroup"))
]


@given(st.sampled_from(_OF_TERMS), st.data())
def test_no_built_in_fails_whatever_the_terms(function: Function, data: st.DataObject) -> None:
    count = data.draw(st.integers(function.least, function.most or function.least + 2))
    result = function.evaluate(*(data.draw(st.sampled_from(_ANY)) for _ in range(count)))
    if function.truth:
        assert isinstance(result, bool)
    else:  # A relative IRI is a term here, but none of N-Triples.
        assert result is None or (isinstance(result, str) and (is_iri(result) or any_term(result) == result))


# The registry


@pytest.mark.usefixtures("empty_registry")
def test_every_built_in_refers_to_functions_that_exist() -> None:
    result = functions.builtins("jena")
    for builtin in result.values():
        for used in (builtin.test, builtin.same, *(mode.function for mode in builtin.modes)):
            assert used is None or functions.lookup(used).doc
    assert {"sum", "noValue", "table"} <= set(result)
    assert functions.builtins("no such language") == {}


def test_an_unknown_function_is_refused_with_what_is_near() -> None:
    with pytest.raises(PluginError, match="did you mean `urn:x-squall:jena:lessThan`"):
        functions.lookup(function_iri("lesThan"))


@pytest.mark.usefixtures("empty_registry")
def test_a_function_of_ones_own() -> None:
    @functions.function("half")
    def half(term: Term | None) -> Term | None:
        """half of an integer"""
        result = None if term is None else values.number(term)
        return of(int(result.value) // 2) if result else None

    result = functions.lookup(functions.OWN + "half")
    assert (result.evaluate(of(4)), result.least, result.most, result.doc) == (of(2), 1, 1, "half of an integer")
    spelled = functions.builtins("jena")["half"]
    assert (spelled.least, spelled.most, spelled.modes) == (2, 2, (Mode(-1, result.iri),))
    assert set(functions.own()) == {result, spelled}


@pytest.mark.usefixtures("empty_registry")
def test_a_vectorised_function_is_called_for_many_solutions_at_once() -> None:
    """It is called once for equal arguments. A function around another one is called with the results of the inner
    one."""
    terms: list[list[Term | None]] = []

    @functions.function("http://example.org/f#length", languages=("jena",), vectorised=True)
    def lengths(texts: list[Term | None]) -> list[Term | None]:
        terms.append(texts)
        outputs = [None if text is None else parts(text).lexical for text in texts]
        return [None if text in (None, "none") else of(len(text)) for text in outputs]

    @functions.function("http://example.org/f#even", truth=True, languages=("jena",), vectorised=True)
    def even(numbers: list[Term | None]) -> list[bool]:
        return [number is not None and int(parts(number).lexical) % 2 == 0 for number in numbers]

    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?t) length(?t ?n) even(?n) -> (?x :q ?n)]"
    inputs = [("a", "ab"), ("b", "abc"), ("c", "none"), ("d", "ab"), ("e", "abcd")]
    event = Event(
        1, tuple(Triple(iri(f"urn:{name}"), iri("http://example.org/p"), literal(text)) for name, text in inputs)
    )
    system = squall.compile(rule, lexer="jena")
    outputs = list(squall.run(squall.plan(system), [event]))
    assert {(out.fact.subject, out.fact.object) for out in outputs if isinstance(out.fact, Triple)} == {
        (iri("urn:a"), of(2)), (iri("urn:d"), of(2)), (iri("urn:e"), of(4)),
    }  # fmt: skip
    assert [set(texts) for texts in terms] == [set(map(literal, ("ab", "abc", "abcd", "none")))]
    assert len(terms[0]) == 4
    assert_as_oracle(system, outputs, [event])
    query = """PREFIX : <http://example.org/> PREFIX f: <http://example.org/f#>
        SELECT ?x { ?x :p ?t BIND (f:length(STR(f:length(?t))) AS ?n) FILTER (f:even(f:length(?t) + ?n)) }"""
    query_system = squall.compile(query, lexer="sparql")
    answers = list(squall.run(squall.plan(query_system), [event]))
    assert len(answers) == 1
    assert_as_oracle(query_system, answers, [event])


@pytest.mark.usefixtures("empty_registry")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT (SUM(f:length(?t)) AS ?n) { ?x :p ?t }",
        "SELECT ?x (MAX(f:length(?t)) AS ?n) (GROUP_CONCAT(STR(f:length(?t))) AS ?m) { ?x :p ?t } GROUP BY ?x",
        "SELECT ?x ?u { ?x :p ?t OPTIONAL { ?x :p ?u FILTER (f:length(?t) > 1) } }",
    ],
)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_aggregates_and_joins_use_batch_calls(query: str, planner: str) -> None:
    terms: list[list[Term | None]] = []

    @functions.function("http://example.org/f#length", vectorised=True)
    def lengths(texts: list[Term | None]) -> list[Term | None]:
        terms.append(texts)
        return [None if text is None else of(len(parts(text).lexical)) for text in texts]

    inputs = [("a", "abc"), ("b", "d"), ("c", "abc"), ("c", "fg")]
    event = Event(
        1, tuple(Triple(iri(f"urn:{name}"), iri("http://example.org/p"), literal(text)) for name, text in inputs)
    )
    prefixes = "PREFIX : <http://example.org/> PREFIX f: <http://example.org/f#> "
    system = squall.compile(prefixes + query, lexer="sparql")
    outputs = list(squall.run(squall.plan(system, planner), [event]))
    assert [set(texts) for texts in terms] == [set(map(literal, ("abc", "d", "fg")))] * query.count("f:length")
    assert_as_oracle(system, outputs, [event])


@pytest.mark.usefixtures("empty_registry")
@pytest.mark.parametrize(
    ("results", "error", "message"),
    [([], ValueError, "gave 0 results, not 1"), ([5], TypeError, "gives a term"), (None, TypeError, "not iterable")],
)
def test_what_a_vectorised_function_gives_is_checked(results: Any, error: type[Exception], message: str) -> None:
    functions.function("wrong", vectorised=True)(lambda texts: results)
    rule = "@prefix : <http://example.org/>.\n[r: (?x :p ?t) wrong(?t ?n) -> (?x :q ?n)]"
    with pytest.raises(error, match=message) as caught:
        run(rule, "1 :a :p 1")
    assert caught.value.__notes__[0] == "in 1 calls at once of the function <urn:x-squall:own:wrong>"


@pytest.mark.usefixtures("empty_registry")
def test_what_cannot_be_vectorised_is_refused() -> None:
    with pytest.raises(PluginError, match="it takes no argument"):
        functions.function("none", vectorised=True)(list)
    with pytest.raises(PluginError, match="it takes the time"):
        functions.function("late", timed=True, vectorised=True)(lambda time, texts: texts)
    with pytest.raises(PluginError, match="it is not pure"):
        functions.function("log", pure=False, vectorised=True)(lambda texts: texts)


@pytest.mark.usefixtures("empty_registry")
def test_a_function_of_ones_own_may_be_called_in_several_ways() -> None:
    @functions.function("prefixed")
    def prefixed(name: Term, title: Term) -> Term:
        return of(f"{parts(title).lexical} {parts(name).lexical}")

    @functions.mode("prefixed", 1)
    def title_of(name: Term, term: Term) -> Term | None:
        return of(parts(term).lexical.removesuffix(f" {parts(name).lexical}"))

    @functions.mode("prefixed", 0)
    def name_of(title: Term, term: Term) -> Term | None:
        return of(parts(term).lexical.removeprefix(f"{parts(title).lexical} "))

    rules = """@prefix : <http://example.org/> .
        [whole: (?x :name ?n) (?x :title ?t) prefixed(?n ?t ?w) -> (?x :whole ?w)]
        [title: (?x :name ?n) (?x :called ?w) prefixed(?n ?t ?w) -> (?x :title ?t)]
        [name: (?x :titled ?t) (?x :called ?w) prefixed(?n ?t ?w) -> (?x :name ?n)]
        [right: (?x :name ?n) (?x :title ?t) (?x :called ?w) prefixed(?n ?t ?w) -> (?x :is :right)]
    """
    events = '1 :a :name "Ann"\n1 :a :called "Dr Ann"\n2 :b :titled "Mr"\n2 :b :called "Mr Bob"'
    assert_outputs(
        rules,
        events,
        '1 :a :title "Dr"\n1 :a :whole "Dr Ann"\n1 :a :is :right\n2 :b :name "Bob"\n2 :b :title "Mr"\n'
        '2 :b :whole "Mr Bob"\n2 :b :is :right',
        lexer="jena",
    )
    with pytest.raises(TranslatorError, match="`\\?t` is not bound where `prefixed` needs it"):
        squall.compile("[(?x <urn:p> ?n) prefixed(?n ?t ?w) -> (?x <urn:q> ?w)]", lexer="jena")


@pytest.mark.usefixtures("empty_registry")
def test_a_mode_that_does_not_fit_is_refused() -> None:
    functions.function("twice")(lambda term: term)
    with pytest.raises(PluginError, match="there is no function of one's own `twicce` in `jena`\nhint: did you mean"):
        functions.mode("twicce", 0)(lambda term: term)
    with pytest.raises(PluginError, match=r"a mode of `twice` takes all .*\nhint: `twice` has 2 arguments"):
        functions.mode("twice", 0)(lambda item, other: item)
    with pytest.raises(PluginError, match="there is no function of one's own `sum` in `jena`"):
        functions.mode("sum", 0)(lambda item, other: item)


@pytest.mark.usefixtures("empty_registry")
@pytest.mark.parametrize("value", [5, "plain", [of(1)], True])
def test_a_function_of_ones_own_that_gives_no_term_is_a_defect(value: object) -> None:
    functions.function("broken")(lambda term: value)
    with pytest.raises(TypeError, match=r"a function gives a term .* not ") as caught:
        run("[r: (?x <urn:p> ?y) broken(?y ?z) -> (?x <urn:q> ?z)]", "1 :a <urn:p> :b")
    assert caught.value.__notes__ == ["in the function <urn:x-squall:own:broken> of (<http://example.org/b>)"]


@pytest.mark.usefixtures("empty_registry")
def test_a_function_of_ones_own_in_a_head() -> None:
    terms: list[Term] = []

    @functions.function("tell", truth=True, pure=False, where="head")
    def tell(term: Term) -> bool:
        terms.append(term)
        return True

    (out,) = run("[r: (?x <urn:p> ?y) -> (?x <urn:q> ?y) tell(?y)]", "1 :a <urn:p> :b")
    assert isinstance(out.fact, Triple)
    assert terms == [out.fact.object]
    with pytest.raises(TranslatorError, match="`tell` cannot be in the body of a rule"):
        squall.compile("[(?x <urn:p> ?y) tell(?y) -> (?x <urn:q> ?y)]", lexer="jena")


@pytest.mark.usefixtures("empty_registry")
def test_a_test_of_ones_own_with_an_iri_for_a_language_of_ones_own() -> None:
    @functions.function("http://example.org/f#near", truth=True, timed=True, pure=False, languages=["mine"])
    def near(time: int, *terms: Term | None) -> bool:
        return time > 0

    result = functions.lookup("http://example.org/f#near")
    assert (result.least, result.most, result.truth, result.timed, result.pure) == (0, None, True, True, False)
    assert functions.builtins("mine")["near"].test == result.iri
    assert "near" not in functions.builtins("jena")


@pytest.mark.usefixtures("empty_registry")
def test_one_may_redefine_ones_own_function_but_not_a_librarys() -> None:
    functions.register(Function("urn:mine", int, 0, 0), Builtin("mine", "jena", 0, 0))
    functions.register(Function("urn:mine", str, 0, 0))
    assert functions.lookup("urn:mine").body is str
    with pytest.raises(PluginError, match="redefines `sum`"):
        functions.register(Builtin("sum", "jena", 0, 0))


def test_a_defect_of_a_function_names_function_and_arguments() -> None:
    broken = Function("urn:broken", lambda term: 1 / 0, 1, 1)
    with pytest.raises(ZeroDivisionError) as caught:
        broken.evaluate(X)
    assert caught.value.__notes__ == ["in the function <urn:broken> of (<urn:x>)"]


@pytest.mark.usefixtures("empty_registry")
def test_a_library_that_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(group: str, name: str) -> object:
        raise PluginError(f"the function `{name}` needs `something`, which is not installed")

    monkeypatch.setattr(plugins, "load", load)
    with pytest.raises(PluginError, match="needs `something`"):
        functions.builtins("jena")


def test_modes_say_which_arguments_are_computed() -> None:
    groups = Mode(2, "urn:f", inputs=(0, 1), repeats=True)
    assert (list(groups.targets(4)), groups.arguments(4), list(groups.targets(2))) == ([2, 3], (0, 1), [])
    last = Mode(-1, "urn:f")
    assert (list(last.targets(3)), last.arguments(3)) == ([2], (0, 1))


def test_errors_of_functions_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(BuilderError("slow", hint="faster")))
    assert str(error) == "build error: slow\nhint: faster"
