"""Generated SPARQL queries over small graphs and windows of streams: both planners agree with pyoxigraph."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import pyoxigraph
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import squall
from squall.rdf import ALWAYS, Boolean, Event, Solution, Term, Triple, term
from tests.laws import examples_of

PREFIX = "PREFIX : <http://example.org/>\n"
NODES = (":a", ":b", ":c")
LITERALS = ("1", "2", '"x"')
PREDICATES = (":p", ":q")
VARIABLES = ("?x", "?y", "?z")

BUT = ("!:p", "!(:p|:q)", "!^:p", "!(:p|^:q)")
MARK = re.compile(r"\)[?*+]")
"""The end of a path that is repeated."""

subjects = st.sampled_from((*VARIABLES, *VARIABLES, *NODES))
objects = st.sampled_from((*VARIABLES, *VARIABLES, *NODES, *LITERALS))
variables = st.sampled_from(VARIABLES)


class Fragment(NamedTuple):
    """What drawn patterns may have.

    Attributes:
        names: The names of graphs that patterns may read; without any they read the default graph. With names patterns
            may also read `graph_variable(depth)`, which nothing within a graph mentions: there it has no value by the
            specification (SPARQL 1.1, section 18.6), but has one in other engines.
        elements: The kinds of elements of groups, besides triples and graphs.
        conditions: The kinds of conditions.
    """

    names: tuple[str, ...] = ()
    elements: tuple[str, ...] = ("path", "VALUES", "OPTIONAL", "MINUS", "UNION", "group", "COUNT", "DISTINCT")
    conditions: tuple[str, ...] = ("=", "!=", "<", "bound", "!bound", "in", "literal", "exists", "not exists")


DEFAULT_GRAPH = Fragment()


@st.composite
def paths(draw: st.DrawFn, depth: int = 2, inside: bool = False) -> str:
    """Draws a property path.

    Args:
        inside: Whether the path is within a repeated one, where it matters whether there is a path, and not how many
            there are. Of alternatives, pyoxigraph counts solutions once, and it repeats repeated paths between nodes
            of the graph only.
    """
    kinds = ["plain"] * 3 + (["inverse", "steps", "but", "either" if inside else "mark"] if depth else [])
    inner = paths(depth - 1, inside)
    match draw(st.sampled_from(kinds)):
        case "inverse":
            return f"^({draw(inner)})"
        case "steps":
            return f"({draw(inner)}/{draw(inner)})"
        case "either":
            return f"({draw(inner)}|{draw(inner)})"
        case "mark":
            return f"({draw(paths(depth - 1, True))}){draw(st.sampled_from('?*+'))}"
        case "but":
            return draw(st.sampled_from(BUT[: 3 + inside]))
        case _:
            return draw(st.sampled_from(PREDICATES))


@st.composite
def triples(draw: st.DrawFn, fragment: Fragment) -> str:
    predicates = st.sampled_from(PREDICATES)
    predicate = draw(st.one_of(predicates, predicates, variables, *([paths()] if "path" in fragment.elements else [])))
    if MARK.search(predicate):  # a constant end need not be in the graph, which pyoxigraph asks for here and there
        return f"{draw(variables)} {predicate} {draw(variables)} ."
    return f"{draw(subjects)} {predicate} {draw(objects)} ."


@st.composite
def conditions(draw: st.DrawFn, depth: int, fragment: Fragment = DEFAULT_GRAPH) -> str:
    items = st.sampled_from((*VARIABLES, graph_variable(depth))) if fragment.names else variables
    item, other = draw(items), draw(st.one_of(items, st.sampled_from((*NODES, *LITERALS))))
    kinds = [kind for kind in fragment.conditions if depth or "exists" not in kind]
    match draw(st.sampled_from([*kinds, "and", "or"] if depth else kinds)):
        case "bound":
            return f"BOUND({item})"
        case "!bound":
            return f"!BOUND({item})"
        case "in":
            return f"{item} IN (:a, 1, {other})"
        case "literal":
            return f"ISLITERAL({item})"
        case "exists":
            return f"EXISTS {draw(patterns(depth, fragment))}"
        case "not exists":
            return f"NOT EXISTS {draw(patterns(depth, fragment))}"
        case "and":
            return f"({draw(conditions(depth - 1, fragment))} && {draw(conditions(depth - 1, fragment))})"
        case "or":
            return f"({draw(conditions(depth - 1, fragment))} || {draw(conditions(depth - 1, fragment))})"
        case sign:
            return f"({item} {sign} {other})"


@st.composite
def patterns(draw: st.DrawFn, depth: int, fragment: Fragment) -> str:
    """Draws a group of triples, which pyoxigraph evaluates in EXISTS as the specification says."""
    statements = draw(st.lists(triples(fragment), min_size=1, max_size=2))
    group = f"{{ {' '.join(statements)} }}"
    has_graph: bool = bool(fragment.names) and draw(st.booleans())
    return f"{{ GRAPH {draw(graph_names(depth, fragment))} {group} }}" if has_graph else group


@st.composite
def groups(draw: st.DrawFn, depth: int = 2, fragment: Fragment = DEFAULT_GRAPH) -> str:
    """Draws a group in which groups are nested `depth` deep."""
    elements = draw(st.lists(elements_of(depth, fragment), min_size=1, max_size=3))
    if "BIND" in fragment.elements and draw(st.booleans()):
        elements.append(f"BIND ({draw(variables)} AS ?b{depth})")
    if draw(st.booleans()):
        elements.append(f"FILTER ({draw(conditions(depth, fragment))})")
    return f"{{ {' '.join(elements)} }}"


def graph_variable(depth: int) -> str:
    """Returns the variable of graphs that groups of a depth read."""
    return f"?g{depth}"


def graph_names(depth: int, fragment: Fragment) -> st.SearchStrategy[str]:
    return st.sampled_from((*fragment.names, graph_variable(depth)))


def elements_of(depth: int, fragment: Fragment) -> st.SearchStrategy[str]:
    plain = [triples(fragment), triples(fragment), *([tables()] if "VALUES" in fragment.elements else [])]
    return st.one_of(*plain, *(nested(depth, fragment) if depth else ()))


def nested(depth: int, fragment: Fragment) -> Sequence[st.SearchStrategy[str]]:
    """Returns the strategies of groups in a group of a depth."""
    inner = groups(depth - 1, fragment)
    graph = st.tuples(graph_names(depth, fragment), inner).map(lambda parts: f"GRAPH {parts[0]} {parts[1]}")
    kinds = {
        "OPTIONAL": inner.map(lambda group: f"OPTIONAL {group}"),
        "MINUS": inner.map(lambda group: f"MINUS {group}"),
        "UNION": st.tuples(inner, inner).map(" UNION ".join),
        "group": inner,
        "COUNT": inner.map(lambda group: f"{{ SELECT ?x (COUNT(?y) AS ?n{depth - 1}) {group} GROUP BY ?x }}"),
        "DISTINCT": inner.map(lambda group: f"{{ SELECT DISTINCT ?y ?z {group} }}"),
    }
    strategies = [strategy for kind, strategy in kinds.items() if kind in fragment.elements]
    return [*strategies, *([graph, graph, graph] if fragment.names else ())]


@st.composite
def tables(draw: st.DrawFn) -> str:
    cells = st.sampled_from((*NODES, "1", "UNDEF"))
    rows = draw(st.lists(st.tuples(cells, cells), max_size=3))
    first, second = draw(st.permutations(VARIABLES))[:2]
    return f"VALUES ({first} {second}) {{ {' '.join(f'({left} {right})' for left, right in rows)} }}"


class Query(NamedTuple):
    """A query as three texts: the part before its pattern, the pattern, and the part after it."""

    head: str
    group: str
    tail: str = ""

    def text(self, dataset: str = "") -> str:
        return f"{PREFIX}{self.head} {dataset} WHERE {self.group} {self.tail}"


HEADS = (
    ("SELECT *", ""),
    ("SELECT DISTINCT ?x ?y", ""),
    ("SELECT ?y (STR(?x) AS ?s) (?y + 1 AS ?t)", ""),
    ("SELECT ?x (COUNT(*) AS ?n) (COUNT(DISTINCT ?y) AS ?m) (MIN(?z) AS ?l)", "GROUP BY ?x"),
    ("SELECT (SUM(?y) AS ?s) (COUNT(?x) AS ?n)", "HAVING (COUNT(*) >= 0)"),
    ("CONSTRUCT { ?x :made ?y . ?y :back ?x }", ""),
    ("ASK", ""),
)
queries = st.builds(lambda ends, group: Query(ends[0], group, ends[1]), st.sampled_from(HEADS), groups())

graphs = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from((*NODES, *LITERALS))),
    min_size=2,
    max_size=9,
)


def ours(query: str, data: Sequence[Triple], planner: str) -> Counter[object]:
    plan = squall.plan(squall.compile(query, lexer="sparql"), planner)
    outputs = squall.run(plan, [], static=[Event(ALWAYS, tuple(data))])
    return Counter(_plain(out.fact) for out in outputs)


def _plain(fact: object) -> object:
    match fact:
        case Solution(names=names, values=values):
            return frozenset((name, value) for name, value in zip(names, values, strict=True) if value is not None)
        case Boolean(value=value):
            return value
        case _:
            return fact


def theirs(query: str, data: Sequence[Triple]) -> Counter[object]:
    store = pyoxigraph.Store()
    store.load("\n".join(map(str, data)).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    return query_store(store, query)


def query_store(store: pyoxigraph.Store, query: str) -> Counter[object]:
    """Returns the answers of a query over a store of pyoxigraph, as those of `_plain`."""
    result = store.query(query)
    if isinstance(result, pyoxigraph.QueryBoolean):
        return Counter([bool(result)])
    if isinstance(result, pyoxigraph.QueryTriples):
        return Counter({Triple(term(item.subject), term(item.predicate), term(item.object)): 1 for item in result})
    names = [variable.value for variable in result.variables]
    return Counter(
        frozenset((name, term(value)) for name, value in zip(names, row, strict=True) if value is not None)
        for row in result
    )


def _resolved(name: str) -> Term:
    if name.startswith(":"):
        return Term(f"<http://example.org/{name[1:]}>")
    return Term(name) if name.startswith('"') else Term(f'"{name}"^^<http://www.w3.org/2001/XMLSchema#integer>')


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries, graph=graphs)
def test_answers_are_those_of_another_engine(planner: str, query: Query, graph: list[tuple[str, str, str]]) -> None:
    data = [Triple(*map(_resolved, triple)) for triple in dict.fromkeys(graph)]
    assert ours(query.text(), data, planner) == theirs(query.text(), data)


NAMES = (":a", ":b", ":h")
"""Names of graphs, some of which are nodes as well."""
quads = st.lists(
    st.tuples(
        st.sampled_from((*NAMES, *NAMES, "")),
        st.sampled_from(NODES),
        st.sampled_from(PREDICATES),
        st.sampled_from((*NODES, *LITERALS)),
    ),
    min_size=2,
    max_size=9,
)


WITHOUT_TRIPLES = (
    "{}",
    "{ BIND (1 AS ?x) }",
    "{ VALUES ?x { 1 2 } }",
    "{ OPTIONAL { ?x :p ?y } }",
    "{ FILTER NOT EXISTS { ?x :p ?y } }",
    "{ ?x (:p|:q)+ ?y }",
    "{ {} UNION { ?x :p ?y } }",
    "{ SELECT (COUNT(*) AS ?n) { ?x :p ?y } }",
    "{ SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x }",
)
"""Groups that may have solutions over an empty graph, and some that have none."""


def ours_of_graphs(query: str, data: Sequence[tuple[str, Triple]], planner: str) -> Counter[object]:
    plan = squall.plan(squall.compile(query, lexer="sparql"), planner)
    outputs = squall.run(plan, [], static=[Event(ALWAYS, (fact,), graph) for graph, fact in data])
    return Counter(_plain(out.fact) for out in outputs)


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries, graph=quads, name=st.sampled_from(("?g", "?g", "?x")), outside=st.booleans())
def test_an_unnamed_dataset_has_the_existing_graphs(
    planner: str, query: Query, graph: list[tuple[str, str, str, str]], name: str, outside: bool
) -> None:
    """If the graphs are named one by one, the answers are those of the W3C's tests."""
    data = [
        (f"http://example.org/{item[1:]}" if item else "", Triple(*map(_resolved, remainder)))
        for item, *remainder in graph
    ]
    group = f"{{ {'?y ?q ?z . ' if outside else ''}GRAPH {name} {query.group} }}"
    wrapped = Query(query.head, group, query.tail)
    dataset = "".join(f" FROM NAMED <{item}>" for item in dict.fromkeys(item for item, _ in data if item))
    # The default graph is all there is where it is not named, and nothing but what has no name elsewhere.
    data = [*data, *(("", fact) for item, fact in data if item)] if outside else data
    assume(dataset)
    assert ours_of_graphs(wrapped.text(), data, planner) == ours_of_graphs(wrapped.text(dataset), data, planner)
    alone = Query("SELECT *", f"{{ GRAPH {name} {query.group} }}")
    assert ours_of_graphs(alone.text(), data, planner) == graph_by_graph(name[1:], query.group, data)


@pytest.mark.fault("S1")
@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    group=st.one_of(groups(), st.sampled_from(WITHOUT_TRIPLES)), graph=quads, name=st.sampled_from((*NAMES, ":none"))
)
def test_a_graph_that_does_not_exist_has_no_solutions(
    planner: str, group: str, graph: list[tuple[str, str, str, str]], name: str
) -> None:
    """S1 of the reported faults: without a triple the pattern of a graph had solutions (SPARQL 1.1, section 18.6)."""
    data = [
        (f"http://example.org/{item[1:]}" if item else "", Triple(*map(_resolved, remainder)))
        for item, *remainder in graph
    ]
    facts = list(dict.fromkeys(fact for item, fact in data if item == f"http://example.org/{name[1:]}"))
    expected = theirs(Query("SELECT *", group).text(), facts) if facts else Counter[object]()
    query = Query("SELECT *", f"{{ GRAPH {name} {group} }}")
    assert ours_of_graphs(query.text(), data, planner) == expected
    optional = Query("SELECT *", f"{{ VALUES ?w {{ 1 }} OPTIONAL {{ GRAPH {name} {group} }} }}")
    row = ("w", _resolved("1"))
    solutions = Counter({solution | {row}: count for solution, count in expected.items()})  # type: ignore[operator]
    assert ours_of_graphs(optional.text(), data, planner) == (solutions or Counter([frozenset([row])]))
    exists = Query("ASK", f"{{ FILTER NOT EXISTS {{ GRAPH {name} {group} }} }}")
    assert ours_of_graphs(exists.text(), data, planner) == Counter([not expected])


@pytest.mark.parametrize(("name", "count"), [(":a", 1), (":none", 0)])
@pytest.mark.parametrize("path", [":b :p* :b", "?x :p? :b", ":b (:p|:q)* ?x"])
def test_a_path_of_length_zero_needs_a_graph(path: str, name: str, count: int) -> None:
    """The terms of such a path need not be nodes of the graph (section 18.4), but the graph has to exist."""
    data = [("http://example.org/a", Triple(*map(_resolved, (":a", ":p", ":c"))))]
    query = Query("SELECT *", f"{{ GRAPH {name} {{ {path} }} }}")
    assert ours_of_graphs(query.text(), data, "rete").total() == count


def graph_by_graph(name: str, group: str, data: Sequence[tuple[str, Triple]]) -> Counter[object]:
    """Returns the solutions of a pattern over each graph, joined with the name of the graph (SPARQL 1.1, section
    18.6)."""
    expected: Counter[object] = Counter()
    for graph in {datum for datum, _ in data if datum}:
        facts = list(dict.fromkeys(fact for datum, fact in data if datum == graph))
        for solution, many in theirs(Query("SELECT *", group).text(), facts).items():
            assert isinstance(solution, frozenset)
            if dict(solution).get(name) in (None, f"<{graph}>"):
                expected[solution | {(name, f"<{graph}>")}] += many
    return expected


RANGE, STEP = 4000, 2000

events = st.lists(
    st.tuples(
        st.integers(0, 9000),
        st.sampled_from(NODES),
        st.sampled_from(PREDICATES),
        st.sampled_from((*NODES, *LITERALS)),
    ),
    max_size=7,
)


@pytest.mark.parametrize("planner", ["greedy", "rete"])
@settings(max_examples=examples_of(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries, stream=events)
def test_answers_at_each_step_are_those_of_its_window(
    planner: str, query: Query, stream: list[tuple[int, str, str, str]]
) -> None:
    assume(" ." in query.group)  # what has no patterns has no instants
    timed = sorted((time, Triple(*map(_resolved, triple))) for time, *triple in stream)
    result = stepped(query, [Event(time, (fact,), "urn:s") for time, fact in timed], planner)
    for end in range(STEP, 9000 + RANGE + STEP + 1, STEP):
        window = list(dict.fromkeys(fact for time, fact in timed if end - RANGE <= time < end))
        if window or result[end]:
            assert result[end] == theirs(query.text(), window), end


def stepped(query: Query, events: Sequence[Event], planner: str) -> dict[int, Counter[object]]:
    """Returns the answers of the query over a window, by the instants of its steps."""
    text = query.text(f"FROM STREAM <urn:s> [RANGE {RANGE}ms STEP {STEP}ms]")
    plan = squall.plan(squall.compile(text, lexer="csparql"), planner)
    results: dict[int, Counter[object]] = defaultdict(Counter)
    for out in squall.run(plan, events):
        results[out.time][_plain(out.fact)] += 1
    return results
