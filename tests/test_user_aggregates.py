"""Aggregates that users write: their registration, their calls in queries, and the values of changing groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall import functions
from squall.builders.runtime.operators.aggregate import accumulator
from squall.errors import LexerError, PluginError, SquallError, TranslatorError
from squall.functions.values import integer
from squall.model import Aggregate, Call, Grouping, Pattern, Select, Source, System, Variable
from squall.model.windows import SlidingWindow
from squall.plan import operators as ops
from squall.rdf import Term, blank, iri, literal, parts
from squall.rdf.compounds import BUILD, compound
from squall.testing import assert_as_oracle, assert_outputs, run, stream

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}>\n"
X, Y, M, V = map(Variable, "xymv")

ONE, TWO, SIX, TEXT = integer(1), integer(2), integer(6), literal("x")


def exact(term: Term) -> Fraction:
    return Fraction(parts(term).lexical)


@functions.aggregate(EX + "median")
def median(numbers: list[Term]) -> Term | None:
    """The lower median."""
    return sorted(numbers, key=exact)[(len(numbers) - 1) // 2] if numbers else None


@functions.aggregate(EX + "variance")
class Variance:
    """The variance of numbers, in which a failing value leaves a half-made change behind."""

    def __init__(self) -> None:
        self.count = 0
        self.total = self.squares = Fraction(0)

    def add(self, term: Term) -> None:
        self.count += 1
        self.total += exact(term)
        self.squares += exact(term) ** 2

    def remove(self, term: Term) -> None:
        self.count -= 1
        self.total -= exact(term)
        self.squares -= exact(term) ** 2

    def result(self) -> Term | None:
        return literal(str(self.squares / self.count - (self.total / self.count) ** 2)) if self.count else None


@functions.aggregate(EX + "spread")
class Spread:
    """The difference of the greatest and the least number, by a class without `remove`."""

    def __init__(self) -> None:
        self.numbers: list[Fraction] = []

    def add(self, term: Term) -> None:
        self.numbers.append(exact(term))

    def result(self) -> Term:
        return literal(str(max(self.numbers) - min(self.numbers)))


@functions.aggregate(EX + "weighted")
def weighted(numbers: list[Term], weights: list[Term]) -> Term | None:
    """The weighted average."""
    pairs = [(exact(number), exact(weight)) for number, weight in zip(numbers, weights, strict=True)]
    return literal(str(sum(number * weight for number, weight in pairs) / sum(weight for _, weight in pairs)))


@functions.aggregate(EX + "dot")
class Dot:
    """The sum of the products of two or three numbers."""

    def __init__(self) -> None:
        self.total = Fraction(0)

    def add(self, first: Term, second: Term, third: Term = ONE) -> None:
        self.total += exact(first) * exact(second) * exact(third)

    def remove(self, first: Term, second: Term, third: Term = ONE) -> None:
        self.total -= exact(first) * exact(second) * exact(third)

    def result(self) -> Term:
        return literal(str(self.total))


@functions.aggregate(EX + "listed")
def listed(terms: list[Term]) -> Term:
    return literal(" ".join(parts(term).lexical for term in terms))


@functions.aggregate(EX + "python")
def python_value(terms: list[Term]) -> object:
    return len(terms)


def value_of(name: str, *changes: tuple[Term | None, int], distinct: bool = False) -> Term | None:
    """Returns the value of an aggregate after changes, each of which is an instant of its own."""
    group = accumulator(ops.Aggregate(EX + name, ops.Column(0), distinct))
    value = group.value()
    for term, weight in changes:
        group.add(term, weight)
        value = group.value()
    return value


PAIR = compound(functions.user_aggregates.ARGUMENTS, (TWO, SIX))


@pytest.mark.parametrize(
    ("name", "changes", "value"),
    [
        ("median", [], None),
        ("median", [(SIX, 1), (ONE, 1), (TWO, 1)], TWO),
        ("median", [(SIX, 1), (ONE, 1), (SIX, 1), (SIX, -2)], ONE),
        ("median", [(SIX, 1), (None, 1)], None),
        ("median", [(SIX, 1), (None, 1), (None, -1)], SIX),
        ("median", [(SIX, 1), (TEXT, 1)], None),
        ("median", [(SIX, 1), (TEXT, 1), (TEXT, -1)], SIX),
        ("variance", [(ONE, 3), (TWO, 1)], literal("3/16")),
        ("variance", [(ONE, 3), (SIX, 1), (TWO, 1), (SIX, -1)], literal("3/16")),
        ("variance", [(ONE, 1), (ONE, -1)], None),
        ("variance", [(ONE, 3), (TEXT, 1), (TWO, 1)], None),
        ("variance", [(ONE, 3), (TEXT, 1), (TWO, 1), (TEXT, -1)], literal("3/16")),
        ("variance", [(ONE, 3), (None, 1), (TWO, 1), (None, -1)], literal("3/16")),
        ("spread", [], None),
        ("spread", [(ONE, 1), (SIX, 1)], literal("5")),
        ("spread", [(ONE, 1), (SIX, 1), (TWO, 1), (SIX, -1)], literal("1")),
        ("spread", [(ONE, 1), (SIX, 1), (ONE, -1), (SIX, -1)], None),
        ("dot", [], literal("0")),
        ("dot", [(PAIR, 2)], literal("24")),
        ("dot", [(PAIR, 2), (PAIR, -1)], literal("12")),
        ("dot", [(PAIR, 1), (None, 1)], None),
        ("dot", [(ONE, 1)], None),
        ("listed", [(TEXT, 1), (SIX, 2), (ONE, 1)], literal("1 6 6 x")),
        ("listed", [(TEXT, 1), (SIX, 2), (ONE, 1), (TWO, 1), (SIX, -1)], literal("1 2 6 x")),
        ("python", [(ONE, 1)], None),
    ],
)
def test_the_value_of_a_group(name: str, changes: list[tuple[Term | None, int]], value: Term | None) -> None:
    assert value_of(name, *changes) == value


@pytest.mark.parametrize(("name", "value"), [("variance", "25/4"), ("median", parts(ONE).lexical), ("spread", "5")])
def test_distinct_values_count_once(name: str, value: str) -> None:
    result = value_of(name, (ONE, 2), (ONE, 1), (SIX, 1), (TWO, 1), (TWO, -1), distinct=True)
    assert result is not None
    assert parts(result).lexical == value


TERMS = st.sampled_from([ONE, TWO, SIX, integer(-3), TEXT, blank("b"), None])


@pytest.mark.parametrize("name", ["median", "variance", "spread"])
@given(st.lists(TERMS, max_size=8), st.data(), st.booleans())
def test_changes_agree_with_computing_anew(
    name: str, terms: list[Term | None], data: st.DataObject, distinct: bool
) -> None:
    removed_terms = data.draw(st.lists(st.sampled_from(terms), max_size=4, unique=True)) if terms else []
    changes = [*((term, 1) for term in terms), *((term, -terms.count(term)) for term in removed_terms)]
    remaining_terms = sorted((term for term in terms if term not in removed_terms), key=repr)
    anew = value_of(name, *((term, 1) for term in remaining_terms), distinct=distinct)
    assert value_of(name, *changes, distinct=distinct) == anew


@pytest.mark.parametrize(("name", "kind"), [("median", "ValueError"), ("python", "TypeError")])
def test_why_there_is_no_value_is_logged_once(
    name: str, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions.user_aggregates, "_logged_errors", set())
    with caplog.at_level(logging.WARNING, "squall.aggregates"):
        assert value_of(name, (TEXT, 1), (TEXT, 1)) is None
    (record,) = caplog.records
    assert f"the aggregate <{EX}{name}> has no value where it fails, as here: {kind}: " in record.getMessage()


# Registration


@pytest.fixture
def no_new_aggregates() -> Iterator[None]:
    before = set(functions.own())
    yield
    assert set(functions.own()) == before


class NoResult:
    def add(self, term: Term) -> None: ...


class NoValues:
    def add(self) -> None: ...
    def result(self) -> None: ...


class Unlike:
    def add(self, term: Term) -> None: ...
    def remove(self) -> None: ...
    def result(self) -> None: ...


@pytest.mark.usefixtures("no_new_aggregates")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (NoResult, "the aggregate `NoResult` has no method `result`"),
        (NoValues, "the aggregate <urn:x-squall:own:mine> takes no values"),
        (lambda: None, "the aggregate <urn:x-squall:own:mine> takes no values"),
        (Unlike, "the methods `add` and `remove` of <urn:x-squall:own:mine> take different arguments"),
    ],
)
def test_what_is_no_aggregate_is_refused(body: functions.Body, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        functions.aggregate("mine")(body)


def test_an_aggregate_has_the_arguments_of_its_body() -> None:
    arities = {name: functions.lookup_aggregate(EX + name) for name in ("median", "variance", "weighted", "dot")}
    assert {name: (each.least, each.most) for name, each in arities.items()} == {
        "median": (1, 1), "variance": (1, 1), "weighted": (2, 2), "dot": (2, 3)
    }  # fmt: skip
    assert arities["median"].doc == "The lower median."


def test_names_that_do_not_exist() -> None:
    with pytest.raises(PluginError, match=r"there is no aggregate <http://example\.org/mediam>") as caught:
        functions.lookup_aggregate(EX + "mediam")
    assert "median" in str(caught.value.hint)
    with pytest.raises(PluginError, match="is an aggregate, and no function"):
        functions.lookup(EX + "median")


# Queries


DATA = "1 :a :p 1, 2, 6 ; :w 2\n2 :b :p 4 ; :w 3\n3 :b :p 5, :c"


@pytest.mark.parametrize(
    ("query", "solutions"),
    [
        ("SELECT ?x (:median(?y) AS ?m) { ?x :p ?y } GROUP BY ?x", "1 ?x=:a ?m=2\n2 ?x=:b ?m=4\n3 ?x=:b ?m="),
        (
            "SELECT (:spread(?y) AS ?s) (COUNT(?y) AS ?n) { ?x :p ?y FILTER(ISNUMERIC(?y)) }",
            'always ?s= ?n=0\n1 ?s="5" ?n=3\n2 ?s="5" ?n=4\n3 ?s="5" ?n=5',
        ),
        (
            "SELECT ?x (:variance(DISTINCT ?y - ?y) AS ?v) { ?x :p ?y } GROUP BY ?x",
            '1 ?x=:a ?v="0"\n2 ?x=:b ?v="0"\n3 ?x=:b ?v=',
        ),
        (
            "SELECT ?x (:weighted(?y, ?w) AS ?m) (:dot(?y, ?w) AS ?d) (:dot(DISTINCT ?w, ?w, 2) AS ?e) "
            "{ ?x :p ?y ; :w ?w FILTER(ISNUMERIC(?y)) } GROUP BY ?x",
            '1 ?x=:a ?m="3" ?d="18" ?e="8"\n2 ?x=:b ?m="4" ?d="12" ?e="18"\n3 ?x=:b ?m="9/2" ?d="27" ?e="18"',
        ),
        ("SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING (:median(?y) > 3)", "2 ?x=:b"),
        (
            "SELECT ?x (STR(:median(?y)) AS ?m) { ?x :p ?y } GROUP BY ?x ORDER BY DESC(:median(?y)) LIMIT 1",
            '1 ?x=:a ?m="2"\n2 ?x=:b ?m="4"\n3 ?x=:a ?m="2"',
        ),
        ("SELECT ?m { { SELECT (:median(?y) AS ?m) { :b :p ?y } GROUP BY ?x } }", "2 ?m=4\n3 ?m="),
        ("SELECT (:median(?z) AS ?m) (:dot(?y, ?z) AS ?d) { ?x :p ?y }", 'always ?m= ?d="0"\n1 ?m= ?d='),
        ("CONSTRUCT { ?x :m ?m } { SELECT ?x (:median(?y) AS ?m) { ?x :p ?y } GROUP BY ?x }", "1 :a :m 2\n2 :b :m 4"),
    ],
)
def test_queries(query: str, solutions: str) -> None:
    system = squall.compile(PREFIX + query, lexer="sparql")
    assert_outputs(system, DATA, solutions)
    assert_as_oracle(system, run(system, DATA), stream(DATA))


WINDOWED = "1 :a :p 6\n3 :a :p 1\n5 :a :p 2\n9 :a :p 2"


@pytest.mark.parametrize(
    ("language", "query"),
    [
        (
            "csparql",
            "REGISTER QUERY q AS SELECT ?x (:median(?y) AS ?m) (:variance(?y) AS ?v) "
            "FROM STREAM :s [RANGE 5ms STEP 5ms] { ?x :p ?y } GROUP BY ?x",
        ),
        (
            "csparql",
            "REGISTER QUERY q AS SELECT DISTINCT ?x ?m ?v FROM STREAM :s [RANGE 5ms STEP 5ms] { ?x :p ?y } "
            "AGGREGATE { (?m, :median(?y), {?x}) } AGGREGATE { (?v, :variance(?y), {?x}) }",
        ),
        (
            "rspql",
            "REGISTER RSTREAM :q AS SELECT ?x (:median(?y) AS ?m) (:variance(?y) AS ?v) "
            "FROM NAMED WINDOW :w ON :s [RANGE PT0.005S STEP PT0.005S] { WINDOW :w { ?x :p ?y } } GROUP BY ?x",
        ),
        (
            "cqels",
            "SELECT ?x (:median(?y) AS ?m) (:variance(?y) AS ?v) "
            "{ STREAM :s [RANGE 5ms SLIDE 5ms] { ?x :p ?y } } GROUP BY ?x",
        ),
    ],
)
def test_windows(language: str, query: str) -> None:
    system = squall.compile(PREFIX + query, lexer=language)
    events = WINDOWED.replace(" :a", " @:s :a")
    assert_outputs(system, events, '5 ?x=:a ?m=1 ?v="25/4"\n10 ?x=:a ?m=2 ?v="0"', output="rstream")
    assert_as_oracle(system, run(system, events), stream(events))


def test_a_graph_without_values_has_the_value_of_none() -> None:
    query = "SELECT ?g ?d ?m { GRAPH ?g { SELECT (:dot(?y, ?y) AS ?d) (:median(?y) AS ?m) { ?x :q ?y } } }"
    system = squall.compile(PREFIX + query, lexer="sparql")
    events = "1 @:s :a :p 1\n2 @:s :a :q 3"
    assert_outputs(system, events, '1 ?g=:s ?d="0" ?m=\n2 ?g=:s ?d="9" ?m=3')
    assert_as_oracle(system, run(system, events), stream(events))


def test_a_sliding_window_retracts_values() -> None:
    grouping = Grouping((X,), (Aggregate(M, EX + "median", Y), Aggregate(V, EX + "variance", Y)))
    source = Source(window=SlidingWindow(5))
    part = System("q", (source,), (Pattern(X, iri(EX + "p"), Y),), grouping=grouping, consequences=(Select((M, V)),))
    assert_outputs(part, WINDOWED, '1 ?m=6 ?v="0"\n3 ?m=1 ?v="25/4"\n5 ?m=2 ?v="14/3"\n6 ?m=1 ?v="1/4"\n8 ?m=2 ?v="0"')
    assert_as_oracle(part, run(part, WINDOWED), stream(WINDOWED))


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
    ],
)
def test_aggregates_are_sent_to_workers(builder: str) -> None:
    @functions.aggregate("urn:test:ends")
    def ends(values: list[Term]) -> Term:
        return literal(f"{len(values)} {parts(values[0]).lexical} {parts(values[-1]).lexical}")

    @functions.aggregate("urn:test:length")
    class Length:
        def __init__(self) -> None:
            self.length = 0

        def add(self, value: Term, factor: Term) -> None:
            self.length += len(parts(value).lexical) * int(parts(factor).lexical)

        def remove(self, value: Term, factor: Term) -> None:
            self.length -= len(parts(value).lexical) * int(parts(factor).lexical)

        def result(self) -> Term:
            return literal(str(self.length))

    query = """SELECT ?x (<urn:test:ends>(?y) AS ?e) (<urn:test:length>(DISTINCT ?y, 2) AS ?l)
        FROM NAMED WINDOW :w ON :s [RANGE PT0.005S STEP PT0.002S] { WINDOW :w { ?x :p ?y } } GROUP BY ?x"""
    events = '1 @:s :a :p "x", "yy"\n2 @:s :b :p "zzz"\n6 @:s :a :p "u"\n9 @:s :a :q "v"'
    due = """
        2 ?x=:a ?e="2 x yy" ?l="6"
        4 ?x=:a ?e="2 x yy" ?l="6"
        4 ?x=:b ?e="1 zzz zzz" ?l="6"
        6 ?x=:a ?e="2 x yy" ?l="6"
        6 ?x=:b ?e="1 zzz zzz" ?l="6"
        8 ?x=:a ?e="1 u u" ?l="2"
        10 ?x=:a ?e="1 u u" ?l="2"
    """
    assert_outputs(PREFIX + query, events, due, lexer="rspql", builder=builder)


def test_values_of_several_arguments_in_a_system() -> None:
    pair = Call(BUILD, (functions.user_aggregates.ARGUMENTS, Y, Y))
    grouping = Grouping((), (Aggregate(M, EX + "dot", pair),))
    system = System("q", joinables=(Pattern(X, iri(EX + "p"), Y),), grouping=grouping, consequences=(Select((M,)),))
    assert_outputs(system, "1 :a :p 1, 3", 'always ?m="0"\n1 ?m="10"')


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT (:mediam(?y) AS ?m) { ?x :p ?y } GROUP BY ?x", TranslatorError, "there is no function .*mediam>"),
        ("SELECT (:median(?y, 1) AS ?m) { ?x :p ?y }", TranslatorError, "median> does not take 2 arguments"),
        ("SELECT (:median() AS ?m) { ?x :p ?y }", TranslatorError, "median> does not take 0 arguments"),
        ("SELECT (:weighted(?y) AS ?m) { ?x :p ?y }", TranslatorError, "weighted> does not take 1 argument\n"),
        ("SELECT ?x { ?x :p ?y FILTER(:median(?y) > 1) }", LexerError, "the aggregate .*median>` cannot be here"),
        ("SELECT (:median(SUM(?y)) AS ?m) { ?x :p ?y }", LexerError, "an aggregate cannot be in another one"),
        ("SELECT (SUM(:dot(?y, ?y)) AS ?m) { ?x :p ?y }", LexerError, "an aggregate cannot be in another one"),
        ("SELECT ?y (:median(?y) AS ?m) { ?x :p ?y }", LexerError, r"`\?y` is neither in an aggregate nor"),
        ("SELECT (:weighted(?y, ?x) + ?y AS ?m) { ?x :p ?y }", LexerError, r"`\?y` is neither in an aggregate nor"),
    ],
)
def test_queries_that_are_refused(query: str, error: type[SquallError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        squall.compile(PREFIX + query, lexer="sparql")
    assert "mediam" not in query or "median" in str(caught.value.hint)


def test_an_aggregate_clause_names_an_aggregate() -> None:
    query = "REGISTER QUERY q AS SELECT ?m { ?x :p ?y } AGGREGATE { (?m, :mediam(?y), {?x}) }"
    with pytest.raises(LexerError, match=r"there is no aggregate <http://example\.org/mediam>") as caught:
        squall.compile(PREFIX + query, lexer="csparql")
    assert "median" in str(caught.value.hint)


def test_a_system_with_an_aggregate_that_does_not_exist_has_no_plan() -> None:
    grouping = Grouping((), (Aggregate(M, "medium", Y),))
    system = System("q", joinables=(Pattern(X, iri(EX + "p"), Y),), grouping=grouping, consequences=(Select((M,)),))
    with pytest.raises(PluginError, match="there is no aggregate `medium`"):
        squall.plan(system)
