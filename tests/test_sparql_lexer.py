"""The lexers of SPARQL, C-SPARQL and RSP-QL: text to tree, tree to text, and the messages of refused texts."""

from __future__ import annotations

import string
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall import plugins
from squall.contracts import Lexer
from squall.errors import Errors, LexerError, SquallError, single_errors
from squall.lexers import cqels, csparql, ctsparql, epsparql, rspql, sparql, sparqlstream, strider
from squall.lexers.sparql import tree as q
from squall.model import Variable
from squall.model.windows import FirstTriple
from squall.rdf import RDF, XSD, Term, iri, literal
from squall.rdf.iris import resolved
from tests.laws import examples_of

GOLDEN = Path(__file__).parent / "golden" / "errors"
LEXERS = {
    ".rq": sparql.lexer, ".ru": sparql.lexer, ".csparql": csparql.lexer, ".rspql": rspql.lexer, ".cqels": cqels.lexer,
    ".sparqlstream": sparqlstream.lexer, ".strider": strider.lexer, ".ctsparql": ctsparql.lexer,
    ".epsparql": epsparql.lexer,
}  # fmt: skip
PREFIX = "PREFIX : <urn:>\n"
A, B, C, D, S, T = map(Variable, "abcdst")
P, Q, R = (iri(f"urn:{name}") for name in "pqr")
ONE = literal("1", XSD + "integer")


def read(text: str, lexer: sparql.SparqlLexer = sparql.lexer) -> Any:
    """Returns the only query or operation of a text."""
    (statement,) = lexer(PREFIX + text, "test").statements
    return statement.body


def where(pattern: str) -> tuple[q.Element, ...]:
    """Returns the elements of a group."""
    elements: tuple[q.Element, ...] = read(f"ASK {{ {pattern} }}").where.elements
    return elements


def triples(pattern: str) -> list[tuple[object, object, object]]:
    (block,) = where(pattern)
    assert isinstance(block, q.TriplesBlock)
    return [(triple.subject, triple.predicate, triple.object) for triple in block.triples]


def expression(text: str) -> q.Expression:
    (result,) = where(f"FILTER ({text})")
    assert isinstance(result, q.Filter)
    return result.expression


def messages(text: str, lexer: sparql.SparqlLexer = sparql.lexer) -> list[str]:
    with pytest.raises((LexerError, Errors)) as caught:
        lexer(PREFIX + text, "test")
    assert isinstance(caught.value, SquallError)
    return [error.message for error in single_errors(caught.value)]


@pytest.mark.parametrize(("ending", "lexer"), LEXERS.items())
def test_they_are_lexers(ending: str, lexer: sparql.SparqlLexer) -> None:
    assert isinstance(lexer, Lexer)
    (language,) = plugins.extensions()[ending]
    assert plugins.load(plugins.LEXERS, language) is lexer


# Terms and triples


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("<urn:x>", iri("urn:x")),
        (":x", iri("urn:x")),
        (":", iri("urn:")),
        (":a.b:c%20", iri("urn:a.b:c%20")),
        (r":a\,b\~", iri("urn:a,b~")),
        (":1", iri("urn:1")),
        (":é", iri("urn:é")),
        ("true", literal("true", XSD + "boolean")),
        ("FALSE", literal("false", XSD + "boolean")),
        ("1", ONE),
        ("-01", literal("-01", XSD + "integer")),
        ("+1.5", literal("+1.5", XSD + "decimal")),
        (".5", literal(".5", XSD + "decimal")),
        ("1e0", literal("1e0", XSD + "double")),
        ("1.E-3", literal("1.E-3", XSD + "double")),
        ("'a'", literal("a")),
        ('"a\'b"@en-GB', literal("a'b", language="en-gb")),
        ("'1'^^:t", literal("1", "urn:t")),
        ("'1' ^^ <urn:t>", literal("1", "urn:t")),
        (r"'\t\b\n\r\f\\\"\''", literal("\t\b\n\r\f\\\"'")),
        ("'''a\n'b'' \\' c'''", literal("a\n'b'' ' c")),
        ('""', literal("")),
        ("''''''", literal("")),
        ('""" """', literal(" ")),
        (r"'\u00e9\U0001F600'", literal("é😀")),
        (r"'\\u0041'", literal(r"\u0041")),
        (r"<urn:\u0041>", iri("urn:A")),
        (r"\u003Aab", iri("urn:ab")),
        ("()", iri(RDF + "nil")),
        ("?x", Variable("x")),
        ("$x1", Variable("x1")),
        ("_:x", Variable("_:x")),
        ("[ ]", Variable("_:b0")),
    ],
)
def test_terms(text: str, term: Term | Variable) -> None:
    assert triples(f"?s :p {text}") == [(S, P, term)]
    assert triples(f"?s :p {text}.") == [(S, P, term)]


def test_predicates_and_objects_are_shared() -> None:
    expected = [(S, P, A), (S, P, B), (S, iri(RDF + "type"), C)]
    assert triples("?s :p ?a, ?b ; a ?c ; .") == expected
    assert triples("?s :p ?a . ?s :p ?b . ?s a ?c") == expected


def test_lists_and_blank_nodes_are_triples() -> None:
    first, remainder, nil = (iri(RDF + name) for name in ("first", "rest", "nil"))
    item, two, three = (Variable(f"_:b{number}") for number in (1, 2, 3))
    assert triples("_:b0 :p (?a [ :q ?b ])") == [
        (item, first, A), (item, remainder, two), (three, Q, B), (two, first, three), (two, remainder, nil),
        (Variable("_:b0"), P, item),
    ]  # fmt: skip
    assert triples("_:b0.b :p _:b0. [ :p ?a ]")[1] == (Variable("_:b1"), P, A)
    assert triples("[ :p ?a ]") == [(Variable("_:b0"), P, A)]
    assert triples("[] :p ?a") == [(Variable("_:b0"), P, A)]


def test_a_blank_node_of_a_template_is_a_term_of_its_own() -> None:
    query = read("CONSTRUCT { _:x :p [] } WHERE { _:x :q ?a }")
    assert query.template == (q.QuadPattern(Term("_:x"), P, Term("_:b0")),)
    assert query.where.elements[0].triples == (q.TriplePattern(Variable("_:x"), Q, A),)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (":p", P),
        ("(:p)", P),
        ("^:p", q.Inverse(P)),
        ("^(^:p)", q.Inverse(q.Inverse(P))),
        (":p/:q/:r", q.Steps((P, Q, R))),
        ("(:p/:q)/:r", q.Steps((q.Steps((P, Q)), R))),
        (":p|:q/^:r", q.Alternative((P, q.Steps((Q, q.Inverse(R)))))),
        (":p*", q.Repeat(P, "*")),
        (":p+", q.Repeat(P, "+")),
        (":p? ", q.Repeat(P, "?")),
        ("^:p*", q.Inverse(q.Repeat(P, "*"))),
        ("(:p|:q)+", q.Repeat(q.Alternative((P, Q)), "+")),
        ("((:p)*)+", q.Repeat(q.Repeat(P, "*"), "+")),
        ("!:p", q.Negated((P,))),
        ("!^:p", q.Negated((), (P,))),
        ("!(:p|^:q|a)", q.Negated((P, iri(RDF + "type")), (Q,))),
        ("!()", q.Negated(())),
    ],
)
def test_paths(text: str, path: q.Path) -> None:
    assert triples(f"?s {text} ?t") == [(S, path, T)]


def test_a_prefix_holds_from_its_declaration_on() -> None:
    text = (
        "PREFIX x: <urn:one:> BASE <http://example.org/a/> PREFIX y: <b/> PREFIX x: <urn:two:> ASK { x:a y:c <../d> }"
    )
    (statement,) = sparql.lexer(text, "test").statements
    assert statement.base == "http://example.org/a/"
    assert str(statement.body.where) == "{\n  <urn:two:a> <http://example.org/a/b/c> <http://example.org/d> .\n}"  # type: ignore[union-attr]


def test_a_base_may_be_given() -> None:
    (statement,) = replace(sparql.lexer, base="http://example.org/a/b")("ASK FROM <c> {}", "test").statements
    assert isinstance(statement.body, q.AskQuery)
    assert statement.body.dataset == (q.From(iri("http://example.org/a/c")),)


@pytest.mark.parametrize(
    ("reference", "due"),
    [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"), ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
        ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
        ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
    ],
)  # fmt: skip
def test_iris_are_resolved_as_rfc_3986_has_it(reference: str, due: str) -> None:
    assert resolved(reference, "http://a/b/c/d;p?q") == due  # its section 5.4
    assert resolved(reference, "") == reference


# Expressions


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("?a || ?b && ?c || ?d", "(?a || (?b && ?c) || ?d)"),
        ("(?a || ?b) || ?c", "((?a || ?b) || ?c)"),
        ("!?a = ?b", "((! ?a) = ?b)"),
        ("?a < ?b&&?c>?d", "((?a < ?b) && (?c > ?d))"),
        ("?a + ?b * ?c - ?d", "((?a + (?b * ?c)) - ?d)"),
        ("?a - ?b - ?c", "((?a - ?b) - ?c)"),
        ("?a / ?b / ?c", "((?a / ?b) / ?c)"),
        ("?a -1", "(?a - 1)"),
        ("?a+1*2 = 3", "((?a + (1 * 2)) = 3)"),
        ("?a - -1", "(?a - -1)"),
        ("-?a", "(- ?a)"),
        ("- 1", "(- 1)"),
        ("-1", "(-1)"),
        ("?a IN (1, :p)", "(?a IN (1, <urn:p>))"),
        ("?a not in ()", "(?a NOT IN ())"),
        ("if(bound(?a), coalesce(), uri('x'))", '(IF(BOUND(?a), COALESCE(), IRI("x")))'),
        ("isUri(?a)", "(ISIRI(?a))"),
        ("regex # why\n (?a, 'b', 'i')", '(REGEX(?a, "b", "i"))'),
        (":p()", "(<urn:p>())"),
        (":p(distinct ?a, 1.5)", "(<urn:p>(DISTINCT ?a, 1.5))"),
        ("not exists { ?a :p 1e0 }", "(NOT EXISTS {\n  ?a <urn:p> 1e0 .\n})"),
        ("'1'^^<http://www.w3.org/2001/XMLSchema#integer>", "(1)"),
        ("'x'^^<http://www.w3.org/2001/XMLSchema#integer>", '("x"^^<http://www.w3.org/2001/XMLSchema#integer>)'),
    ],
)
def test_expressions(text: str, printed: str) -> None:
    assert str(q.Filter(expression(text))) == f"FILTER {printed}"


def test_a_filter_needs_no_brackets_around_a_call() -> None:
    assert where("FILTER regex(?a, 'b')") == where("FILTER (regex(?a, 'b'))")
    assert where("FILTER EXISTS {} FILTER :p(?a)") == where("FILTER (EXISTS {}) FILTER (:p(?a))")


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("count(*)", q.Aggregate("COUNT")),
        ("COUNT(DISTINCT *)", q.Aggregate("COUNT", None, True)),
        ("Sum(?a + 1)", q.Aggregate("SUM", q.Call("+", (A, ONE)))),
        ("group_concat(distinct ?a)", q.Aggregate("GROUP_CONCAT", A, True)),
        ("group_concat(?a; separator='\\n')", q.Aggregate("GROUP_CONCAT", A, separator="\n")),
        ("sample('x')", q.Aggregate("SAMPLE", literal("x"))),
    ],
)
def test_aggregates(text: str, aggregate: q.Aggregate) -> None:
    assert read(f"SELECT ({text} AS ?n) {{}}").items == (q.SelectItem(Variable("n"), aggregate),)


# Queries and updates


def test_elements_of_a_group() -> None:
    result = where(
        "?a :p ?b FILTER (?a) ?b :p ?c { ?a :q ?b } UNION {} {} OPTIONAL {} MINUS {} GRAPH ?g {} GRAPH :g {} "
        "SERVICE SILENT :s {} BIND (1 AS ?d) VALUES ?x { 1 UNDEF } VALUES (?y ?z) { (:p 'a'@en) } VALUES () { () }"
    )
    kinds = [type(item) for item in result]
    assert kinds == [
        q.TriplesBlock, q.Filter, q.TriplesBlock, q.Union, q.Group, q.Optional, q.Minus, q.Graph, q.Graph, q.Service,
        q.Bind, q.Values, q.Values, q.Values,
    ]  # fmt: skip
    assert result[-3:] == (
        q.Values((Variable("x"),), ((ONE,), (None,))),
        q.Values((Variable("y"), Variable("z")), ((P, literal("a", language="en")),)),
        q.Values((), ((),)),
    )


def test_modifiers() -> None:
    query = read(
        "SELECT REDUCED ?a (?b AS ?e) FROM :p FROM NAMED :q { } "
        "GROUP BY ?a (?c + 1 AS ?b) STR(?d) HAVING (?a > 1) :p(?b) "
        "ORDER BY ?a DESC(?b) (?b) OFFSET 2 LIMIT 1 VALUES ?a { 1 }"
    )
    assert query.items == (q.SelectItem(A), q.SelectItem(Variable("e"), B))
    assert (query.quantifier, query.dataset) == ("REDUCED", (q.From(P), q.FromNamed(Q)))
    group = (q.GroupCondition(A), q.GroupCondition(q.Call("+", (C, ONE)), B), q.GroupCondition(q.Call("STR", (D,))))
    having = (q.Call(">", (A, ONE)), q.Call(P, (B,)))
    order = (q.OrderCondition(A), q.OrderCondition(B, descending=True), q.OrderCondition(B))
    assert query.modifiers == q.Modifiers((), group, having, order, 1, 2)
    assert query.values == q.Values((A,), ((ONE,),))


def test_the_other_forms_of_query() -> None:
    assert read("ASK {}") == q.AskQuery(q.Group())
    assert read("DESCRIBE :p ?a") == q.DescribeQuery((P, A))
    assert read("DESCRIBE * WHERE {}") == q.DescribeQuery(None, q.Group())
    short = read("CONSTRUCT WHERE { ?a :p ?b }")
    assert short == read("CONSTRUCT { ?a :p ?b } WHERE { ?a :p ?b }")
    assert read("CONSTRUCT { GRAPH ?g { ?a :p ?b } } {}").template == (q.QuadPattern(A, P, B, Variable("g")),)
    (sub,) = read("SELECT * { SELECT ?a { } LIMIT 1 }").where.elements
    assert sub == q.SubSelect(q.SelectQuery((q.SelectItem(A),), q.Group(), modifiers=q.Modifiers(limit=1)))


def test_updates() -> None:
    text = """PREFIX : <urn:>
        INSERT DATA { :p :q 1 GRAPH :r { :q :r 1 . :r :p 1 } } ;
        delete where { ?a :p ?b . GRAPH ?g { ?a :q ?b } } ;
        WITH :r DELETE { ?a :p ?b } INSERT { GRAPH :p { ?b :p ?a } } USING :p USING NAMED :q WHERE { ?a :p ?b } ;
        PREFIX x: <urn:> LOAD SILENT x:p INTO GRAPH :q ; CLEAR ALL ; DROP SILENT GRAPH :p ; CREATE GRAPH :p ;
        ADD :p TO GRAPH :q ; MOVE DEFAULT TO :q ; COPY SILENT :p TO DEFAULT ; DELETE DATA { :p :q 1 } ;
    """
    bodies = [statement.body for statement in sparql.lexer(text, "test").statements]
    pattern, inner = q.TriplePattern(A, P, B), q.TriplePattern(A, Q, B)
    graph = Variable("g")
    assert bodies == [
        q.InsertData((q.QuadPattern(P, Q, ONE), q.QuadPattern(Q, R, ONE, R), q.QuadPattern(R, P, ONE, R))),
        q.Modify(
            (q.QuadPattern(A, P, B), q.QuadPattern(A, Q, B, graph)),
            (),
            q.Group((q.TriplesBlock((pattern,)), q.Graph(graph, q.Group((q.TriplesBlock((inner,)),))))),
        ),
        q.Modify(
            (q.QuadPattern(A, P, B),),
            (q.QuadPattern(B, P, A, P),),
            q.Group((q.TriplesBlock((pattern,)),)),
            R,
            (q.From(P), q.FromNamed(Q)),
        ),
        q.Load(P, Q, silent=True),
        q.Manage("CLEAR", "ALL"),
        q.Manage("DROP", P, silent=True),
        q.Manage("CREATE", P),
        q.Transfer("ADD", P, Q),
        q.Transfer("MOVE", "DEFAULT", Q),
        q.Transfer("COPY", P, "DEFAULT", silent=True),
        q.DeleteData((q.QuadPattern(P, Q, ONE),)),
    ]


def test_queries_may_stand_between_updates() -> None:
    program = sparql.lexer("INSERT { ?a ?b ?c } WHERE {} ; SELECT * {} ; BASE <urn:x> ASK {} ;", "test")
    assert [type(statement.body) for statement in program.statements] == [q.Modify, q.SelectQuery, q.AskQuery]
    assert [statement.base for statement in program.statements] == ["", "", "urn:x"]


def test_an_empty_text_is_an_update_of_no_operations() -> None:
    assert sparql.lexer("# nothing\n", "test") == q.Program(())
    assert messages("", csparql.lexer)


def test_the_variables_in_scope() -> None:
    (group,) = where(
        "{ ?a :p [] FILTER (?x) MINUS { ?y :p 1 } GRAPH ?b { OPTIONAL { ?c :p ?a } } "
        "BIND (?z AS ?d) { SELECT (?e AS ?s) { ?e :p ?f } } VALUES ?t { 1 } }"
    )
    assert q.in_scope(group) == (A, B, C, D, S, T)
    assert q.shown(read("SELECT * { ?b :p ?a } VALUES ?c { 1 }")) == (B, A, C)


# Streams


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("FROM STREAM :p [RANGE 10s STEP 5s]", q.FromStream(P, q.TimeRange(10_000, 5000))),
        ("FROM STREAM :p [ range 10 S  step 5000 Ms ]", q.FromStream(P, q.TimeRange(10_000, 5000))),
        ("from stream :p[RANGE 1m TUMBLING]", q.FromStream(P, q.TimeRange(60_000, 60_000))),
        ("FROM STREAM :p [RANGE 5s STEP 3s ORIGIN 1s]", q.FromStream(P, q.TimeRange(5000, 3000, 1000))),
        ("FROM STREAM :p [RANGE 5s TUMBLING ORIGIN FIRST]", q.FromStream(P, q.TimeRange(5000, 5000, FirstTriple()))),
        ("FROM STREAM :p [RANGE 1h]", q.FromStream(P, q.TimeRange(3_600_000))),
        ("FROM STREAM :p [RANGE P1DT0.5S]", q.FromStream(P, q.TimeRange(86_400_500))),
        ("FROM NAMED STREAM :p [RANGE TRIPLES 10]", q.FromStream(P, q.CountRange(10), named=True)),
        ("FROM STREAM :p [TRIPLES 10 TUMBLING]", q.FromStream(P, q.CountRange(10, 10))),
        ("FROM STREAM :p [RANGE 10m TRIPLES 5]", q.FromStream(P, q.CountRange(5, length=600_000))),
        ("FROM STREAM :p [SESSION 30m]", q.FromStream(P, q.SessionRange(1_800_000))),
        ("FROM STREAM :p [session 5s by Subject]", q.FromStream(P, q.SessionRange(5000, "SUBJECT"))),
        ("FROM STREAM :p [SESSION PT5S BY OBJECT ON CHANGE]", q.FromStream(P, q.SessionRange(5000, "OBJECT", True))),
        ("FROM STREAM :session [SESSION 5s on\nchange]",
         q.FromStream(iri("urn:session"), q.SessionRange(5000, is_open=True))),
        ("FROM STREAM <http://example.org/step?range=1s> [RANGE 1d # a day\n]",
         q.FromStream(iri("http://example.org/step?range=1s"), q.TimeRange(86_400_000))),
        ("FROM STREAM :step [RANGE 1s]", q.FromStream(iri("urn:step"), q.TimeRange(1000))),
        ("FROM STREAM :p", q.FromStream(P)),
        ("FROM :p", q.From(P)),
    ],
)  # fmt: skip
def test_streams_of_c_sparql(text: str, clause: q.DatasetClause) -> None:
    assert read(f"SELECT * {text} {{}}", csparql.lexer).dataset == (clause,)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("ON :p [RANGE PT10S STEP PT5S]", q.TimeRange(10_000, 5000)),
        ("ON STREAM :p [range PT1H]", q.TimeRange(3_600_000)),
        ("ON :p [RANGE 10 STEP 2]", q.TimeRange(10, 2)),
        ("ON :p [RANGE 10s STEP 2s]", q.TimeRange(10_000, 2000)),
        ("ON :p [RANGE P1D]", q.TimeRange(86_400_000)),
        ("ON :p [RANGE PT5S STEP PT3S ORIGIN PT1S]", q.TimeRange(5000, 3000, 1000)),
        ("ON :p [RANGE PT5S ORIGIN FIRST]", q.TimeRange(5000, None, FirstTriple())),
        ("ON :p [ELEMENTS 10]", q.CountRange(10)),
        ("ON :p [ELEMENTS 10 STEP 2]", q.CountRange(10, 2)),
        ("ON :p [FROM NOW-PT2H TO NOW-PT1H STEP PT1M]", q.PastRange(7_200_000, 3_600_000, 60_000)),
        ("[RANGE 5 s, SLIDE 1s] ON STREAM :p", q.TimeRange(5000, 1000)),
        ("ON :p [RANGE PT5S TRIPLES 7]", q.CountRange(7, length=5000)),
        ("ON :p [SESSION PT30M]", q.SessionRange(1_800_000)),
        ("ON :p [SESSION PT5S BY SUBJECT ON CHANGE]", q.SessionRange(5000, "SUBJECT", True)),
        ("[SESSION 5s BY OBJECT] ON STREAM :p", q.SessionRange(5000, "OBJECT")),
    ],
)
def test_windows_of_rsp_ql(text: str, window: q.Range) -> None:
    query = read(f"SELECT * FROM NAMED WINDOW :w {text} {{ WINDOW ?w {{ ?a :p ?b }} WINDOW :w {{}} }}", rspql.lexer)
    assert query.dataset == (q.FromWindow(iri("urn:w"), P, window),)
    assert [(type(element), element.name) for element in query.where.elements] == [
        (q.Window, Variable("w")),
        (q.Window, iri("urn:w")),
    ]


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (":p [RANGE 10s]", q.TimeRange(10_000)),
        (":p [RANGE 1h30m SLIDE 5 s]", q.TimeRange(5_400_000, 5000)),
        (":p [RANGE 10s TUMBLING]", q.TimeRange(10_000, 10_000)),
        (":p [RANGE 5s SLIDE 3s ORIGIN FIRST]", q.TimeRange(5000, 3000, FirstTriple())),
        (":p [TRIPLES 5]", q.CountRange(5)),
        (":p [now]", q.TimeRange(1)),
        (":p [RANGE 1m TRIPLES 5]", q.CountRange(5, length=60_000)),
        (":p [SESSION 1h30m BY SUBJECT]", q.SessionRange(5_400_000, "SUBJECT")),
        ("[SESSION 5s ON CHANGE] :p", q.SessionRange(5000, "", True)),
        (":p [ALL]", None),
        (":p [RANGE UNBOUNDED]", None),
        ("[RANGE 10s] :p", q.TimeRange(10_000)),
    ],
)
def test_streams_inside_of_patterns(text: str, window: q.TimeRange | q.CountRange | q.SessionRange | None) -> None:
    where = read(f"SELECT * {{ ?a :p ?c STREAM {text} {{ ?a :p ?b }} }}", cqels.lexer).where
    assert where.elements[1] == q.StreamWindow(P, window, q.Group((q.TriplesBlock((q.TriplePattern(A, P, B),)),)))


def test_a_stream_inside_of_a_pattern_may_be_a_variable() -> None:
    query = read("SELECT * { STREAM ?a [NOW] {} { STREAM :p [ALL] { ?b :p ?c } } }", cqels.lexer)
    assert [window.name for window in q.stream_windows(query)] == [A, P]
    assert q.shown(query) == (A, B, C)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("[NOW - 10 S]", q.PastRange(10_000, 0)),
        ("[NOW-10 S SLIDE 5 S]", q.PastRange(10_000, 0, 5000)),
        ("[FROM NOW - 10 MINUTES TO NOW STEP 1 MINUTE]", q.PastRange(600_000, 0, 60_000)),
        ("[FROM NOW - 1 DAY TO NOW - 2 HOURS STEP 30 min]", q.PastRange(86_400_000, 7_200_000, 1_800_000)),
        ("[NOW - 500 ms TO NOW]", q.PastRange(500, 0)),
        ("[NOW-2 MONTH SLIDE 1 week]", q.PastRange(60 * 86_400_000, 0, 7 * 86_400_000)),
        ("[NOW-1 Year TO NOW-3 MONTHS]", q.PastRange(365 * 86_400_000, 90 * 86_400_000)),
        ("[NOW-1 y TO NOW-1 HRS STEP 2 Minutes]", q.PastRange(365 * 86_400_000, 3_600_000, 120_000)),
        ("[NOW-5 S SLIDE 3 S ORIGIN 1 S]", q.PastRange(5000, 0, 3000, 1000)),
        ("[TRIPLES 5 SLIDE 2]", q.CountRange(5, 2)),
        ("[RANGE 10 minutes TRIPLES 5]", q.CountRange(5, length=600_000)),
        ("[SESSION 30 minutes BY SUBJECT]", q.SessionRange(1_800_000, "SUBJECT")),
        ("[SESSION 5 S ON CHANGE]", q.SessionRange(5000, "", True)),
    ],
)
def test_windows_of_sparqlstream(text: str, window: q.Range) -> None:
    query = read(f"SELECT * FROM NAMED STREAM :p {text} FROM STREAM :q {text} {{}}", sparqlstream.lexer)
    assert query.dataset == (q.FromStream(P, window, named=True), q.FromStream(Q, window))


@pytest.mark.parametrize(
    ("lexer", "text", "registration"),
    [
        (csparql.lexer, "PREFIX : <urn:> REGISTER QUERY q1 AS ASK {}", q.Registration("QUERY", "q1")),
        (csparql.lexer, "register stream q as PREFIX : <urn:> ASK {}", q.Registration("STREAM", "q")),
        (csparql.lexer, "REGISTER QUERY Select AS SELECT * {}", q.Registration("QUERY", "Select")),
        (csparql.lexer, "REGISTER QUERY q COMPUTED EVERY 1m AS ASK {}", q.Registration("QUERY", "q", 60_000)),
        (csparql.lexer, "REGISTER QUERY q compute every 5 s AS ASK {}", q.Registration("QUERY", "q", 5000)),
        (csparql.lexer, "REGISTER QUERY q COMPUTED EVERY PT1S AS ASK {}", q.Registration("QUERY", "q", 1000)),
        (rspql.lexer, "PREFIX : <urn:> REGISTER RStream :o AS ASK {}", q.Registration("RSTREAM", "<urn:o>")),
        (rspql.lexer, "REGISTER DSTREAM <o> AS ASK {}", q.Registration("DSTREAM", "<o>")),
        (rspql.lexer, "REGISTER STREAM <o> AS CONSTRUCT ISTREAM {} {}", q.Registration("ISTREAM", "<o>")),
        (rspql.lexer, "REGISTER STREAM <o> AS SELECT DSTREAM * {}", q.Registration("DSTREAM", "<o>")),
        (rspql.lexer, "ASK {}", None),
        (sparqlstream.lexer, "SELECT RSTREAM ?a {}", q.Registration("RSTREAM", "")),
        (sparqlstream.lexer, "CONSTRUCT ISTREAM {} {}", q.Registration("ISTREAM", "")),
        (rspql.lexer, "REGISTER Changes <o> AS ASK {}", q.Registration("CHANGES", "<o>")),
        (rspql.lexer, "REGISTER STREAM changes AS SELECT * {}", q.Registration("STREAM", "changes")),
        (sparqlstream.lexer, "SELECT CHANGES ?changes {}", q.Registration("CHANGES", "")),
    ],
)
def test_registrations(lexer: sparql.SparqlLexer, text: str, registration: q.Registration | None) -> None:
    assert lexer(text, "test").statements[0].registration == registration


def test_timestamps() -> None:
    text = "FILTER (timestamp(?a) < timestamp(?b :s) && timestamp(?c {}) < TimeStamp(?a, :p, ?b) && ?timestamp) "
    (result,) = read(f"ASK {{ {text} }}", csparql.lexer).where.elements
    engine = iri("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
    before = q.Call("<", (q.Timestamp(A), q.Timestamp(B, iri("urn:s"))))
    after = q.Call("<", (q.Timestamp(C, q.Group()), q.Call(engine, (A, P, B))))
    assert result.expression == q.Call("&&", (before, after, Variable("timestamp")))


def test_the_older_aggregates() -> None:
    text = "SELECT * {} AGGREGATE { (?n, count, {?a, ?b}) (?d, SUM(?c), ?a) FILTER (?n > 1) } AGGREGATE {} LIMIT 1"
    first = q.AggregateClause(
        (
            q.Addition(Variable("n"), q.Aggregate("COUNT"), (A, B)),
            q.Addition(D, q.Aggregate("SUM", C), (A,)),
        ),
        (q.Filter(q.Call(">", (Variable("n"), ONE))),),
    )
    assert read(text, csparql.lexer).modifiers == q.Modifiers((first, q.AggregateClause(())), limit=1)


# Places, and what is refused


def test_places_are_those_of_the_text() -> None:
    query = read("SELECT (?a + 1 AS\n ?b)\nWHERE {\n ?a :\\u0070 1 ;\n  :q 2 , 3 .\n}")
    (block,) = query.where.elements
    assert [str(item.origin) for item in (query, *query.items, block, *block.triples)] == [
        "test:2:1", "test:2:8", "test:5:2", "test:5:2", "test:6:3", "test:6:10",
    ]  # fmt: skip
    assert block.triples[0].origin.excerpt == "5 |  ?a :\\u0070 1 ;\n  |  ^^^^^^^^^^^^"
    assert query.items[0].expression.origin.length == len("?a + 1")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark(line_end: str) -> None:
    text = line_end.join(["\ufeffASK # why {", "{ ?a <urn:p> ?b .", "  FILTER (?x > ) }"])
    with pytest.raises(LexerError, match=r"test:3:16: syntax error: `\)` cannot stand here"):
        sparql.lexer(text, "test")


@pytest.mark.parametrize(
    "program", sorted(path for ending in LEXERS for path in GOLDEN.glob(f"*{ending}")), ids=lambda path: path.name
)
def test_messages(program: Path) -> None:
    with pytest.raises((LexerError, Errors)) as caught:
        LEXERS[program.suffix](program.read_text(encoding="utf-8"), program.name)
    assert f"{caught.value}\n" == program.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?a (1 AS ?a) {}",
        "SELECT (1 AS ?a) { ?a :p ?b }",
        "SELECT ?a { ?a :p ?b } GROUP BY (?b AS ?a)",
        "SELECT * { SELECT ?a { ?a :p ?b } GROUP BY ?b }",
        "SELECT (?a AS ?c) { ?a :p ?b } HAVING (COUNT(*) > 1)",
        "ASK { { SELECT ?a { ?a :p ?b } } BIND (1 AS ?a) }",
        "ASK { OPTIONAL { ?a :p ?b } BIND (1 AS ?a) }",
        "ASK { FILTER EXISTS { ?a :p ?b BIND (1 AS ?a) } }",
        "ASK { _:a :p 1 BIND (1 AS ?b) _:a :p 2 }",
        "ASK { _:a :p 1 FILTER NOT EXISTS { _:a :p 2 } }",
        "ASK {} GROUP BY (COUNT(*) AS ?a)",
        "ASK { BIND (COUNT(*) AS ?a) }",
        "INSERT DATA { GRAPH ?g { :p :p :p } }",
        "DELETE WHERE { [] :p ?a }",
        "CONSTRUCT WHERE { ?a :p/:q ?b }",
        "CONSTRUCT WHERE { ?a :p ?b FILTER (?b) }",
        "ASK { ?a :p ?b",
        "ASK { ?a :p ?b }}",
        "ASK { ?a :p 'b }",
        "ASK { ?a :p [ }",
        "ASK { () }",
        "ASK { ?a ?b/:p ?c }",
        "ASK { FILTER bound(1) }",
        "ASK { FILTER bound() }",
        "ASK { BIND (NOW(1) AS ?a) }",
        "ASK { FILTER (SEPARATOR(?a)) }",
        "SELECT (MIN(*) AS ?a) {}",
        "SELECT (MIN(?a; SEPARATOR = ',') AS ?b) {}",
        "ASK { ?a x:p ?b }",
        "ASK { ?a :p <a b> }",
        "ASK { ?a :p \\uD800 }",
        "ASK { VALUES (?a ?b) { (1 2 3) } }",
        "SELECT {}",
        "SELECT ?a, ?b {}",
        "CREATE DEFAULT",
        "INSERT { ?a :p ?b }",
        "REGISTER QUERY q AS ASK {}",
        "ASK { WINDOW :w {} }",
    ],
)
def test_invalid_queries_are_refused(text: str) -> None:
    assert messages(text)


@pytest.mark.parametrize(
    ("text", "lexer"),
    [
        ("SELECT * FROM STREAM :p [RANGE 10] {}", csparql.lexer),
        ("SELECT * FROM STREAM :p [RANGE 1s STEP] {}", csparql.lexer),
        ("SELECT * FROM STREAM :p [RANGE 0s] {}", csparql.lexer),
        ("SELECT * FROM STREAM :p [RANGE TRIPLES 0] {}", csparql.lexer),
        ("SELECT * {} AGGREGATE { (?n, COUNT(SUM(?a)), ?a) }", csparql.lexer),
        ("SELECT * { ?n :p ?a } AGGREGATE { (?n, COUNT, ?a) }", csparql.lexer),
        ("SELECT * {} AGGREGATE { FILTER (COUNT(*) > 1) }", csparql.lexer),
        ("INSERT DATA {}", csparql.lexer),
        ("ASK {} ; ASK {}", csparql.lexer),
        ("SELECT * FROM WINDOW :w ON :p [RANGE 10s] {}", rspql.lexer),
        ("SELECT * FROM NAMED WINDOW :w ON :p [RANGE PT] {}", rspql.lexer),
        ("SELECT * FROM NAMED WINDOW :w ON :p [RANGE PT0.0001S] {}", rspql.lexer),
        ("SELECT * FROM NAMED WINDOW :w ON :p [RANGE P1M] {}", rspql.lexer),
        ("SELECT * FROM NAMED WINDOW :w ON :p [FROM NOW-PT1S TO NOW-PT1S] {}", rspql.lexer),
        ("SELECT * FROM STREAM :p [NOW-5s] {}", cqels.lexer),
        ("SELECT * { STREAM :p { ?a :p ?b } }", cqels.lexer),
        ("SELECT * { STREAM :p [RANGE 0s] { ?a :p ?b } }", cqels.lexer),
        ("SELECT * { STREAM :p [RANGE 5ns] { ?a :p ?b } }", cqels.lexer),
        ("SELECT * FROM STREAM :p [RANGE 5s] {}", sparqlstream.lexer),
        ("SELECT * FROM STREAM :p [NOW-5s TO NOW-5s] {}", sparqlstream.lexer),
        ("SELECT * FROM STREAM :p [NOW-5 moons] {}", sparqlstream.lexer),
        ("SELECT * FROM STREAM :p [NOW-5] {}", sparqlstream.lexer),
        ("SELECT * FROM STREAM :p [RANGE 5 months STEP 1s] {}", csparql.lexer),
        ("SELECT RSTREAM * {}", csparql.lexer),
    ],
)
def test_invalid_stream_queries_are_refused(text: str, lexer: sparql.SparqlLexer) -> None:
    assert messages(text, lexer)


def test_lenient_syntax_is_accepted() -> None:
    for text in (
        "SELECT ?a (COUNT(?b) AS ?n) (?n + 1 AS ?m) { ?a :p ?b } GROUP BY ?a HAVING (?b > 1) ORDER BY SUM(?b)",
        "SELECT (1 AS ?a) { MINUS { ?a :p ?b } FILTER (?a) }",
        "SELECT ?a ?a { ?a :p ?b }",
        "ASK { _:a :p 1 FILTER (true) _:a :p 2 }",
        "ASK { BIND (?a AS ?b) ?b :p ?c }",
        "CONSTRUCT { _:a :p ?a } { _:a :q ?a }",
        "INSERT { _:a :p ?a } WHERE { _:a :q ?a }",
    ):
        read(text)


def test_each_unknown_prefix_is_reported_once() -> None:
    assert messages("ASK { x:a y:b x:c }") == ["the prefix `x:` is not declared", "the prefix `y:` is not declared"]


def test_deep_brackets_are_refused() -> None:
    assert read(f"ASK {'{' * 90}{'}' * 90}")
    assert messages(f"ASK {'{' * 101}") == ["brackets are nested deeper than 100"]
    assert messages(f"ASK {{ FILTER {'(' * 2000}") == ["brackets are nested deeper than 100"]


# The tree as text

EXAMPLES = [
    "BASE <http://example.org/> SELECT DISTINCT * FROM <a> { <b> <c> 'd' } LIMIT 0 OFFSET 0",
    "BASE <http://example.org/> SELECT (IRI('x') AS ?x) {}",
    "SELECT ?a { ?a <urn:p>/^<urn:q>*|!(a|^a) [ a (1 2.0 'x'@en) ] } ORDER BY DESC(?a) ASC(1+1)",
    "SELECT REDUCED ?a ?a { } HAVING (?a > 1) STR(?a) VALUES (?a ?b) { (1 UNDEF) }",
    "SELECT (GROUP_CONCAT(DISTINCT ?b; SEPARATOR = ', ') AS ?l) { ?a ?b ?c } GROUP BY ?a (STR(?c) AS ?d) (?c) STR(?c)",
    "ASK { { SELECT * { } LIMIT 1 } }",
    "INSERT DATA { <urn:a> <urn:b> _:c } ; DELETE DATA { GRAPH <urn:g> { <urn:a> a 1 } } ; COPY DEFAULT TO <urn:g>",
    "CONSTRUCT { GRAPH ?g { ?a ?b _:c } ?a ?b [] } WHERE { GRAPH ?g { ?a ?b ?c } SERVICE ?s { } }",
    "DESCRIBE ?a <urn:b> FROM NAMED <urn:g> WHERE { ?a ?b 'line\\nbreak\\u0085\\u2028' }",
    "INSERT { } WHERE { } ; DELETE { ?a ?b ?c } USING <urn:g> WHERE { ?a ?b ?c } ; CLEAR SILENT DEFAULT ; LOAD <urn:x>",
]  # fmt: skip


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_printed_example_is_read_as_the_same_tree(text: str) -> None:
    program = sparql.lexer(text, "test")
    assert sparql.lexer(str(program), "test") == program


C_SPARQL = """
    REGISTER STREAM q COMPUTED EVERY 1500ms AS
    SELECT * FROM <a> FROM NAMED STREAM <b> [RANGE 90s] FROM STREAM <c> [TRIPLES 5] FROM STREAM <d>
    { FILTER (timestamp(?a <b>) > timestamp(?c {})) }
    AGGREGATE { (?n, COUNT, {?a ?b}) (?m, AVG(DISTINCT ?c), ?a) FILTER (?n < ?m) }
"""
RSP_QL = """
    REGISTER DSTREAM <q> AS
    SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT0.5S STEP P1DT1H] FROM NAMED WINDOW <v> ON <s> [ELEMENTS 5 STEP 2]
    FROM NAMED WINDOW <u> ON <s> [FROM NOW-PT2M TO NOW-PT0.001S]
    { WINDOW <w> { GRAPH ?g { ?a ?b ?c } } WINDOW ?w {} }
"""


CQELS_QL = """
    REGISTER STREAM <q> AS CONSTRUCT { ?a ?b ?c } FROM <g>
    { STREAM <s> [RANGE 1h SLIDE 500ms] { ?a ?b ?c OPTIONAL { ?c ?b ?d } } STREAM ?s [NOW] {} STREAM <t> [TRIPLES 3] {}
      OPTIONAL { STREAM <t> [ALL] { ?a ?b _:c } } GRAPH ?g { ?a ?b ?c } }
"""
STRIDER = """
    STREAMING { WINDOW [1 Minute] SLIDE [10 Seconds] BATCH [1500 ms] }
    REGISTER { QUERYID [Q1] REASONING [U,SM] SPARQL [
      BASE <urn:b> PREFIX : <urn:> SELECT ?a { ?a :p [ :q ?b ] } LIMIT 3 ] }
    REGISTER { QUERYID [Q2] SPARQL [ CONSTRUCT { ?a ?b ?c } FROM <urn:g> { ?a ?b ?c VALUES ?a { <x> } } ] }
"""
CT_SPARQL = """
    REGISTER STREAM <q> AS
    CONSTRUCT { ?a ?b ?c } FROM STREAM <s> FROM NAMED STREAM <t>
    { NOT { ?x ?y ?z } WITHIN 90s { ?a ?b ?c } AS ?e NOT { ?n ?n ?n } CONTAINING {} strict SEQ
        { GRAPH <t> { ?a ?b _:d } } AFTER 5s BEFORE 1h WHEN (?a > ?c) EACH SEQ {} AS ?f
        NOT { ?a ?a ?a } WITHIN P1D WITHIN 36h consume by ?a
      AND NOT { { {} SEQ {} WITHIN 1500ms } AS ?g last seq {} reuse } or { ?o ?o ?o } AS ?g AND {}
      . { ?a ?b 1 } UNION {} { ?a ?b 2 }
      FILTER (start(?e) < 5 && metby(?e, ?f) || !(duration(?f) = 7)) }
"""
EP_SPARQL = """
    CONSTRUCT { ?a ?b ?c } FROM STREAM <s> FROM NAMED STREAM <t> WHERE { ?a ?b ?c FILTER(getstarttime() > ?c) } SEQ
        { GRAPH <t> { ?a ?b _:d } } equals { { { {} } union {} OptionalEquals {} } OPTIONALSEQ {} FILTER(1 > 2) } AND {}
    FILTER(getDURATION() < 5 || ?b = 3) FILTER(!BOUND(?a)) ORDER BY getENDTIME()
"""
EVENTS_OF_RSP_QL = """
    SELECT (metBy(?a, ?b) AS ?m) FROM NAMED WINDOW <w> ON <s> [RANGE PT5S] WHERE {
        match every ?a seq first (last (?a) seq ?b within PT1.5S Reuse) within 5 Consume By ?a . ?x ?y ?z
        EVENT ?a on <w> { ?a ?b ?c OPTIONAL { event ?b ON <s> {} MATCH ?b } } MATCH ?a MATCH (?b) }
"""
EVENTS_OF_CQELS_QL = """
    SELECT (metBy(?a, ?b) AS ?m) FROM STREAM <s> [NOW] FROM STREAM <t> FROM STREAM <u> [RANGE 5s STEP 1s]
    FROM STREAM <v> [TRIPLES 5] FROM STREAM <w> [ALL] { ?a ?b ?c
        FILTER SEQ(?a ; not ?b; ?a) FILTER(seq (?a;?b) && ?a = start(?b)) }
"""
SPARQL_STREAM = """
    SELECT DSTREAM DISTINCT ?a FROM NAMED STREAM <s> [FROM NOW - 2 MINUTES TO NOW - 1 SECOND STEP 1 S]
    FROM STREAM <s> [NOW - 5 S] FROM STREAM <t> [TRIPLES 5] { GRAPH <s> { ?a ?b ?c } }
"""


@pytest.mark.parametrize(
    ("lexer", "text"),
    [
        (csparql.lexer, C_SPARQL),
        (rspql.lexer, RSP_QL),
        (rspql.lexer, EVENTS_OF_RSP_QL),
        (cqels.lexer, CQELS_QL),
        (cqels.lexer, EVENTS_OF_CQELS_QL),
        (sparqlstream.lexer, SPARQL_STREAM),
        (strider.lexer, STRIDER),
        (ctsparql.lexer, CT_SPARQL),
        (epsparql.lexer, EP_SPARQL),
    ],
)
def test_a_printed_query_of_streams_is_read_as_the_same_tree(lexer: sparql.SparqlLexer, text: str) -> None:
    program = lexer(text, "test")
    assert lexer(str(program), "test") == program


@given(st.integers(1, 10**9))
def test_lengths_of_time_are_printed_exactly(milliseconds: int) -> None:
    clause = q.FromWindow(P, Q, q.TimeRange(milliseconds))
    assert read(f"ASK {clause} {{}}", rspql.lexer).dataset == (clause,)


_NAMES = st.text(string.ascii_letters + string.digits + "_é", min_size=1, max_size=3)
_VARIABLES = st.builds(Variable, _NAMES)
_IRIS = st.builds(iri, st.text(string.ascii_letters + string.digits + ":/?#[]@!$&'()*+,;=.~-_%é", max_size=8))
_TEXTS = st.text("ab'\"\\\n\r\t\u0085\u2028é😀u0041?<>", max_size=8)
_LITERALS = st.one_of(
    st.builds(literal, _TEXTS),
    st.builds(literal, _TEXTS, language=st.sampled_from(["en", "de-at-1996"])),
    st.builds(
        literal,
        st.sampled_from(["1", "-1", "+1.5", ".5", "1.", "1e0", "-.5E3", "true", "TRUE", "", "x"]),
        st.sampled_from([XSD + name for name in ("integer", "decimal", "double", "boolean", "date")]),
    ),
)
_TERMS = _IRIS | _LITERALS
_NODES = _IRIS | _VARIABLES
_PATHS: st.SearchStrategy[q.Path] = st.recursive(
    _IRIS | st.builds(q.Negated, st.lists(_IRIS, max_size=2).map(tuple), st.lists(_IRIS, max_size=2).map(tuple)),
    lambda paths: st.one_of(
        st.builds(q.Inverse, paths),
        st.builds(q.Repeat, paths, st.sampled_from("*+?")),
        st.builds(q.Steps, st.lists(paths, min_size=2, max_size=3).map(tuple)),
        st.builds(q.Alternative, st.lists(paths, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


def _calls(inner: st.SearchStrategy[q.Expression]) -> st.SearchStrategy[q.Expression]:
    def call(names: list[str], least: int, most: int) -> st.SearchStrategy[q.Call]:
        arguments = st.lists(inner, min_size=least, max_size=most).map(tuple)
        return st.builds(q.Call, st.sampled_from(names), arguments)

    return st.one_of(
        call(["||", "&&"], 2, 3),
        call(["=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"], 2, 2),
        call(["+", "-", "!"], 1, 1),
        call(["IN", "NOT IN"], 1, 3),
        call(["IF", "REPLACE"], 3, 3),
        call(["CONCAT", "COALESCE"], 0, 2),
        st.builds(q.Call, _IRIS, st.lists(inner, min_size=1, max_size=2).map(tuple), st.booleans()),
        st.builds(q.Call, _IRIS),
    )


_EXPRESSIONS: st.SearchStrategy[q.Expression] = st.recursive(_TERMS | _VARIABLES, _calls, max_leaves=6)


@st.composite
def _groups(draw: st.DrawFn) -> q.Group:
    """Draws a group whose blank nodes are each in one block, and which binds names that occur nowhere else."""
    numbers = count()

    def node() -> q.Slot:
        return draw(_TERMS | _VARIABLES | st.just(Variable(f"_:n{next(numbers)}")))

    def block() -> q.TriplesBlock:
        verbs = draw(st.lists(_PATHS | _VARIABLES, min_size=1, max_size=2))
        return q.TriplesBlock(tuple(q.TriplePattern(node(), verb, node()) for verb in verbs))

    def element(depth: int) -> q.Element:
        result = draw(st.integers(0, 10 if depth else 4))
        match result:
            case 0 | 1:
                return block()
            case 2:
                return q.Filter(draw(_EXPRESSIONS))
            case 3:
                return q.Bind(draw(_EXPRESSIONS), Variable(f"bound_{next(numbers)}"))
            case 4:
                row = draw(st.tuples(st.none() | _TERMS, st.none() | _TERMS))
                return q.Values((Variable("x"), Variable("y")), (row, row))
            case 5:
                return q.Union((group(depth - 1), group(depth - 1)))
            case 6:
                return q.Optional(group(depth - 1)) if draw(st.booleans()) else q.Minus(group(depth - 1))
            case 7:
                return q.Graph(draw(_IRIS | _VARIABLES), group(depth - 1))
            case 8:
                return q.Service(draw(_IRIS | _VARIABLES), group(depth - 1), draw(st.booleans()))
            case 9:
                return q.Filter(q.Exists(group(depth - 1)) if draw(st.booleans()) else q.NotExists(group(depth - 1)))
            case _:
                return group(depth - 1)

    def group(depth: int) -> q.Group:
        elements: list[q.Element] = []
        for _ in range(draw(st.integers(0, 3))):
            item = element(depth)
            beside = elements and isinstance(elements[-1], q.TriplesBlock) and isinstance(item, q.TriplesBlock)
            elements += [] if beside else [item]
        return q.Group(tuple(elements))

    return group(2)


_MODIFIERS = st.builds(
    q.Modifiers,
    order=st.lists(st.builds(q.OrderCondition, _EXPRESSIONS, st.booleans()), max_size=2).map(tuple),
    limit=st.none() | st.integers(0, 9),
    offset=st.none() | st.integers(0, 9),
)
_QUADS = st.lists(st.builds(q.QuadPattern, _NODES, _NODES, _TERMS | _VARIABLES, st.none() | _NODES), max_size=3).map(
    tuple
)
_QUERIES = st.one_of(
    st.builds(
        q.SelectQuery,
        st.none() | st.lists(st.builds(q.SelectItem, _VARIABLES), min_size=1, max_size=2).map(tuple),
        _groups(),
        st.sampled_from(["", "DISTINCT", "REDUCED"]),
        st.lists(st.builds(q.From, _IRIS) | st.builds(q.FromNamed, _IRIS), max_size=2).map(tuple),
        _MODIFIERS,
    ),
    st.builds(q.ConstructQuery, _QUADS, _groups(), modifiers=_MODIFIERS),
    st.builds(q.Modify, _QUADS, _QUADS, _groups(), st.none() | _IRIS),
)


@settings(max_examples=examples_of(120), deadline=None)
@given(st.lists(_QUERIES, min_size=1, max_size=2))
def test_a_printed_tree_is_read_as_the_same_tree(bodies: list[q.Query | q.Operation]) -> None:
    program = q.Program(tuple(map(q.Statement, bodies)))
    again = sparql.lexer(str(program), "test")
    assert again == program
    assert hash(again) == hash(program)


_PIECES = st.sampled_from([
    "SELECT", "*", "?a", "{", "}", "(", ")", "[", "]", ".", ";", ",", "'x'", '"', "<urn:p>", "_:b", "FILTER",
    "OPTIONAL", "GROUP BY", "COUNT(?a)", "AS", "1", "-1", "+", "a", "^", "/", "|", "!", "<", "INSERT", "DELETE", "DATA",
    "WHERE", "GRAPH", "VALUES", "UNDEF", "LIMIT", "#", "\n", "\\u0041", "\\", "FROM STREAM", "RANGE 1s", "NOW",
    "STREAM <urn:s>", "WINDOW", "REGISTER", "NOT EXISTS", "x", "ASK", "ASK {", "?a <urn:p> ?b", "BIND (?a AS ?b)",
])  # fmt: skip


@settings(max_examples=examples_of(300), deadline=None)
@given(st.lists(_PIECES, max_size=15).map(" ".join), st.sampled_from([*LEXERS.values()]))
def test_any_text_is_read_or_refused(text: str, lexer: sparql.SparqlLexer) -> None:
    try:
        program = lexer(text, "test")
    except (LexerError, Errors):
        return
    assert lexer(str(program), "test") == program


@pytest.mark.fault("S4")
@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("?a<?b&&?b>?a", "`<?b&&?b>` is an IRI, which cannot stand here"),
        ("?a<=5&&?b>3", "`<=5&&?b>` is an IRI, which cannot stand here"),
        ('?a = "x"@en--rtl', "`@en--rtl`: base directions of texts (RDF 1.2) are not supported"),
        ("?a < ?b&&?b > ?a && ?a<5 && ?b>=3", ""),
    ],
)
def test_the_longest_token_counts(condition: str, message: str) -> None:
    """S4 of the reported faults (SPARQL 1.1, section 19.8): two comparisons without blanks were read as such."""
    text = f"SELECT ?a {{ ?a :p ?b FILTER({condition}) }}"
    if not message:
        assert read(text)
        return
    with pytest.raises(LexerError) as caught:
        read(text)
    assert caught.value.message == message
