"""Generated SPARQL queries over small data sets with named graphs, some of which do not exist: `squall.run` over static
data, `squall.sparql_update`, pyoxigraph and rdflib agree.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import pyoxigraph
import pytest
import rdflib
from hypothesis import strategies as st

import squall
from squall.rdf import ALWAYS, Event, Term, Triple, iri, term
from squall.sparql_update import apply_update
from squall.sparql_update.datasets import Dataset
from squall.testing import isomorphic
from tests.laws import PLANNERS, examples, hold
from tests.test_sparql_differential import (
    HEADS,
    LITERALS,
    NODES,
    PREDICATES,
    PREFIX,
    WITHOUT_TRIPLES,
    Fragment,
    Query,
    _plain,
    _resolved,
    groups,
    query_store,
)

pytestmark = pytest.mark.hypothesis  # `make test-more` runs all examples
EX = "http://example.org/"
NAMES = (":a", ":h")
"""Names of graphs, one of which is a node as well."""
ABSENT = ":none"
"""The name of a graph that no data set has."""

quads = st.lists(
    st.tuples(
        st.sampled_from((*NAMES, "")),
        st.sampled_from(NODES),
        st.sampled_from(PREDICATES),
        st.sampled_from((*NODES, *LITERALS)),
    ),
    min_size=2,
    max_size=9,
    unique=True,
)


class Clauses(NamedTuple):
    """The data set of a query: the graphs of its default graph, and named graphs. Some do not exist."""

    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    def text(self, keyword: str) -> str:
        """Returns the clauses with the keyword of queries (``FROM``) or of updates (``USING``)."""
        default = [f"{keyword} {name}" for name in self.default]
        return " ".join([*default, *(f"{keyword} NAMED {name}" for name in self.named)])


def clauses_of(names: Sequence[str]) -> st.SearchStrategy[Clauses]:
    graphs = st.lists(st.sampled_from(names), max_size=2, unique=True).map(tuple)
    return st.one_of(st.just(Clauses()), st.builds(Clauses, graphs, graphs))


Data = Sequence[tuple[str, str, str, str]]
"""Triples after the names of their graphs; ``""`` is the default graph."""
BLANK_HEADS = (("CONSTRUCT { _:b :of ?x . _:b :and ?y }", ""), ("CONSTRUCT { ?x :has [ :value ?y ] }", ""))
GRAPH_HEADS = (*HEADS, ("SELECT DISTINCT ?g2 ?y", ""), ("SELECT ?g2 (COUNT(*) AS ?n)", "GROUP BY ?g2"))
DISTINCT_HEADS = (
    ("SELECT DISTINCT *", ""),
    ("SELECT DISTINCT ?g2 ?y", ""),
    ("SELECT DISTINCT ?y (STR(?x) AS ?s) (?y + 1 AS ?t)", ""),
    ("CONSTRUCT { :this :has ?x }", ""),
    ("ASK", ""),
)
RESULT = "urn:result"
VARIABLES = (*"xyzstnmlw", *(f"{letter}{depth}" for letter in "gbn" for depth in range(4)))
"""The names of variables that queries may have."""


def queries(heads: Sequence[tuple[str, str]], pattern: st.SearchStrategy[str]) -> st.SearchStrategy[Query]:
    drawn = st.builds(lambda ends, group: Query(ends[0], group, ends[1]), st.sampled_from(heads), pattern)
    return drawn.filter(_has_new_names)


def _has_new_names(query: Query) -> bool:
    """Returns whether the names behind ``AS`` in the head are new, as they have to be."""
    names = re.findall(r"AS (\?\w+)\)", query.head)
    return not set(names).intersection(re.findall(r"\?\w+", query.group))


def by_graph(data: Data) -> dict[str, tuple[Triple, ...]]:
    """Returns the triples of each graph by its IRI."""
    result: dict[str, list[Triple]] = defaultdict(list)
    for name, *parts in data:
        result[f"{EX}{name[1:]}" if name else ""].append(Triple(*map(_resolved, parts)))
    return {name: tuple(facts) for name, facts in result.items()}


def built(query: Query, data: Data, clauses: Clauses, planner: str) -> Counter[object]:
    """Returns the answers of the query over static data; a graph that it names in its clauses is a document."""
    text = query.text(clauses.text("FROM"))
    if any(clauses):
        static = [Event(ALWAYS, facts, name) for name, facts in by_graph(data).items() if name]
    else:
        static = [Event(ALWAYS, facts, graph=iri(name) if name else "") for name, facts in by_graph(data).items()]
    outputs = squall.run(squall.plan(squall.compile(text, lexer="sparql"), planner), [], static=static)
    return Counter(map(_plain, (output.fact for output in outputs)))


def updated(query: Query, data: Data, clauses: Clauses, planner: str) -> Counter[object]:
    """Returns the answers of the query as an update inserts them into a graph: a blank node for each solution."""
    graphs = by_graph(data)
    dataset = Dataset(frozenset(graphs.pop("", ())), {iri(name): frozenset(facts) for name, facts in graphs.items()})
    kind, _, template = query.head.partition(" ")
    pattern = query.group
    if kind == "SELECT":
        cells = " ; ".join(f"<urn:v:{name}> ?{name}" for name in VARIABLES)
        template, pattern = f"{{ [] a <{RESULT}> ; {cells} }}", f"{{ {query.head} WHERE {query.group} {query.tail} }}"
    elif kind == "ASK":
        template = f"{{ <{RESULT}> a <{RESULT}> }}"
    request = f"{PREFIX} INSERT {{ GRAPH <{RESULT}> {template} }} {clauses.text('USING')} WHERE {pattern}"
    result = apply_update(dataset, request, planner=planner).named.get(iri(RESULT), frozenset())
    match kind:
        case "SELECT":
            return _solutions(result)
        case "ASK":
            return Counter([bool(result)])
        case _:
            return Counter(result)


def _solutions(triples: Iterable[Triple]) -> Counter[object]:
    """Returns the solutions that an update has written, one for each subject."""
    rows: dict[Term, set[tuple[str, Term]]] = defaultdict(set)
    for subject, predicate, value in triples:
        if predicate.startswith("<urn:v:"):
            rows[subject].add((predicate[7:-1], value))
        else:
            rows.setdefault(subject, set())
    return Counter(map(frozenset, rows.values()))


def n_quads(data: Data) -> str:
    return "".join(
        f"{fact} <{name}> .\n" if name else f"{fact} .\n"
        for name, facts in by_graph(data).items()
        for fact in (" ".join(fact) for fact in facts)
    )


MERGED = ":merged"


def in_pyoxigraph(query: Query, data: Data, clauses: Clauses) -> Counter[object]:
    """Returns the answers of pyoxigraph, which counts a triple once for each graph of ``FROM`` that has it: they are
    merged beforehand."""
    if clauses.default:
        triples = [(subject, predicate, value) for name, subject, predicate, value in data if name in clauses.default]
        data = [*data, *((MERGED, *triple) for triple in dict.fromkeys(triples))]
        clauses = Clauses((MERGED,), clauses.named)
    store = pyoxigraph.Store()
    store.load(n_quads(data).encode(), pyoxigraph.RdfFormat.N_QUADS)
    return query_store(store, _without_absent_graphs(query, data, clauses))


def _without_absent_graphs(query: Query, data: Data, clauses: Clauses) -> str:
    """Returns the query such that patterns of graphs that do not exist have no solutions. Other engines evaluate some
    of these patterns over an empty graph, against the specification (SPARQL 1.1, section 18.6).
    """
    existing = set(clauses.named) if any(clauses) else {name for name, *_ in data}

    def begin(match: re.Match[str]) -> str:
        return match[0] if match[1] in existing else f"{match[0]} FILTER (1 = 2)"

    return re.sub(r"GRAPH (:\w+) \{", begin, query.text(clauses.text("FROM")))


def in_rdflib(query: Query, data: Data) -> Counter[object]:
    store = rdflib.Dataset()
    store.parse(data=n_quads(data), format="nquads")
    result = store.query(_without_absent_graphs(query, data, Clauses()))
    if result.type == "ASK":
        return Counter([bool(result.askAnswer)])
    if result.type == "CONSTRUCT":
        return Counter({Triple(*map(_term, fact)): 1 for fact in result.graph or ()})
    return Counter(frozenset((str(name), _term(value)) for name, value in row.items()) for row in result.bindings)


def _term(value: rdflib.term.Node) -> Term:
    return term(value.n3())


QUERIES = Fragment(names=(*NAMES, ABSENT), elements=(*Fragment().elements, "BIND"))
ANY_GRAPHS = QUERIES._replace(names=(*QUERIES.names, "?x"))
"""What is drawn where both sides are ours: a variable of graphs may be mentioned within its graph."""


@st.composite
def rdflib_patterns(draw: st.DrawFn) -> str:
    """Draws a pattern that rdflib evaluates as the specification says. It has

    * no VALUES, which raise an error without rows, and bind wrongly in OPTIONAL;
    * no aggregates: GROUP BY over no solution has one;
    * no `IN` with an unbound variable, which is an error even where another element is equal;
    * no property paths: `!^:p` is an error.

    Joins lose duplicates, so `DISTINCT_HEADS` go with these patterns. A triple of a template with a literal as its
    subject is not left out.
    """
    fragment = Fragment(
        names=QUERIES.names,
        elements=("OPTIONAL", "MINUS", "UNION", "group", "DISTINCT", "BIND"),
        conditions=("=", "!=", "<", "bound", "!bound", "literal", "exists", "not exists"),
    )
    return draw(groups(2, fragment))


DATASET: Data = (
    ("", ":a", ":p", ":b"),
    ("", ":b", ":p", ":h"),
    (":a", ":a", ":p", ":c"),
    (":a", ":c", ":p", ":h"),
    (":h", ":c", ":q", ":a"),
    (":h", ":a", ":p", ":c"),
    (":h", ":b", ":p", ":a"),
)
IN_GRAPH = "{ GRAPH ?g2 { ?x :p ?y } }"
CHOSEN = [
    ("the default graph has no named graph", "{ ?x :p ?y }", Clauses(), 2),
    ("it is the union of all FROM", "{ ?x :p ?y }", Clauses((":a", ":h")), 3),
    ("a graph of FROM that does not exist is empty", "{ ?x :p ?y }", Clauses((ABSENT,)), 0),
    ("without FROM it is empty", "{ ?x :p ?y }", Clauses(named=(":a",)), 0),
    ("GRAPH reads each named graph", IN_GRAPH, Clauses(), 4),
    ("of FROM NAMED if there is one", IN_GRAPH, Clauses(named=(":h", ABSENT)), 2),
    ("and none if there is FROM only", IN_GRAPH, Clauses((":h",)), 0),
    ("a graph of FROM is not named", "{ GRAPH :a { ?x :p ?y } }", Clauses((":a",), (":h",)), 0),
    (
        "a graph that does not exist has no solution",
        f"{{ GRAPH {ABSENT} {{ OPTIONAL {{ ?x :p ?y }} }} }}",
        Clauses(),
        0,
    ),
    ("nor one that FROM NAMED leaves out", "{ GRAPH :a { OPTIONAL { ?x :none ?y } } }", Clauses(named=(":h",)), 0),
    ("a graph without a match has", "{ GRAPH :a { OPTIONAL { ?x :none ?y } } }", Clauses(), 1),
    ("each graph has", "{ GRAPH ?g2 { OPTIONAL { ?x :none ?y } } }", Clauses(), 2),
    ("MINUS is within each graph", "{ GRAPH ?g2 { ?x :p ?y MINUS { ?z :q ?x } } }", Clauses(), 3),
    ("a path is within each graph", "{ GRAPH ?g2 { :a :p+ ?y } }", Clauses(), 3),
    ("a join is over the graphs", "{ GRAPH ?g2 { ?x :p ?y } GRAPH ?g1 { ?y :p ?z } }", Clauses(), 4),
    ("EXISTS has the name of the graph", "{ ?x :p ?g2 FILTER EXISTS { GRAPH ?g2 { ?y :q :a } } }", Clauses(), 1),
    (
        "and that of FROM NAMED",
        "{ GRAPH :a { ?x :p ?g2 } FILTER EXISTS { GRAPH ?g2 { ?y :q :a } } }",
        Clauses(named=(":a", ":h")),
        1,
    ),
    ("a subquery of EXISTS is in the graph", "{ GRAPH ?g2 { ?x :p ?y FILTER EXISTS { ?z :q ?w } } }", Clauses(), 2),
]
"""What SPARQL 1.1 says of datasets (sections 13 and 18.6), each with a pattern and the number of its solutions."""


@pytest.mark.fault("S1")
@pytest.mark.parametrize(
    ("group", "clauses", "count"), [entry[1:] for entry in CHOSEN], ids=[entry[0] for entry in CHOSEN]
)
def test_the_dataset_of_a_query(group: str, clauses: Clauses, count: int) -> None:
    """The laws below seldom draw both sides of each rule."""
    query = Query("SELECT *", group, "")
    expected = in_pyoxigraph(query, DATASET, clauses)
    assert expected.total() == count
    for planner in PLANNERS:
        assert built(query, DATASET, clauses, planner) == updated(query, DATASET, clauses, planner) == expected


@pytest.mark.fault("T4")
@pytest.mark.parametrize(
    ("group", "count"),
    [
        ("{ GRAPH ?g2 { ?x :p ?y FILTER (?g2 = :a) } }", 0),
        ("{ GRAPH ?g2 { ?x :p ?y MINUS { ?z :q ?w } } }", 4),
        ("{ GRAPH ?g2 { ?x :p ?y BIND (STR(?g2) AS ?s) FILTER (BOUND(?s)) } }", 0),
    ],
)
def test_the_name_of_the_graph_has_no_value_inside(group: str, count: int) -> None:
    """Section 18.6; pyoxigraph binds it."""
    query = Query("SELECT *", group, "")
    for planner in PLANNERS:
        answers = built(query, DATASET, Clauses(), planner)
        assert answers == updated(query, DATASET, Clauses(), planner)
        assert answers.total() == count


@examples(60)
def test_updates_have_the_solutions_of_queries(many: int) -> None:
    def law(query: Query, data: Data, clauses: Clauses, planner: str) -> None:
        answers, inserted = (answers_of(query, data, clauses, planner) for answers_of in (built, updated))
        if query.head in dict(BLANK_HEADS):
            assert isomorphic(cast(Counter[Triple], answers).elements(), cast(Counter[Triple], inserted).elements())
        else:
            assert answers == inserted

    graph = st.tuples(st.sampled_from(ANY_GRAPHS.names), st.sampled_from(WITHOUT_TRIPLES))
    in_graph = graph.map(lambda parts: f"{{ GRAPH {parts[0]} {parts[1]} }}")
    pattern = st.one_of(groups(2, ANY_GRAPHS), groups(2, ANY_GRAPHS), in_graph)
    hold(
        law,
        many,
        query=queries((*GRAPH_HEADS, *BLANK_HEADS), pattern),
        data=quads,
        clauses=clauses_of((*NAMES, ABSENT)),
        planner=st.sampled_from(PLANNERS),
    )


@examples(60)
def test_answers_over_datasets_are_those_of_pyoxigraph(many: int) -> None:
    def law(query: Query, data: Data, clauses: Clauses, planner: str) -> None:
        assert built(query, data, clauses, planner) == in_pyoxigraph(query, data, clauses)

    hold(
        law,
        many,
        query=queries(GRAPH_HEADS, groups(2, QUERIES)),
        data=quads,
        clauses=clauses_of((*NAMES, ABSENT)),
        planner=st.sampled_from(PLANNERS),
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib calls what it deprecates
@examples(60)
def test_answers_over_datasets_are_those_of_rdflib(many: int) -> None:
    """Without clauses of a data set: rdflib fetches the graphs that they name."""

    def law(query: Query, data: Data) -> None:
        assert built(query, data, Clauses(), "rete") == in_rdflib(query, data)

    hold(law, many, query=queries(DISTINCT_HEADS, rdflib_patterns()), data=quads)
