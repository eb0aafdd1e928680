"""Group graph patterns, by the algebra of SPARQL 1.1 Query, section 18.2.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from squall.errors import Origin, did_you_mean
from squall.functions.sparql.tables import TABLE
from squall.lexers.sparql import tree as q
from squall.model import (
    Bind,
    Filter,
    Graphs,
    Minus,
    Optional,
    Predicate,
    Select,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    visible,
)
from squall.model.windows import LANDMARK
from squall.rdf import XSD, Term, iri_text, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body, empty, graph_names
from squall.translators.sparql.datasets import Reads, window
from squall.translators.sparql.expressions import Expressions, asked
from squall.translators.sparql.paths import Paths
from squall.translators.sparql.state import State


class Patterns:
    """Translates the patterns of a statement."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.expressions = Expressions(state, self)
        self.paths = Paths(state)

    def group(self, group: q.Group, reads: Reads) -> System:
        """The solutions of a group as a part. Its filters hold for the whole of it, wherever they stand."""
        body = self.body(group, reads)
        alone = body.joinables[0] if len(body.joinables) == 1 and not body.predicates else None
        return alone if isinstance(alone, System) else body.system(origin=group.origin)

    def body(self, group: q.Group, reads: Reads) -> Body:
        """The same, on its way to something larger."""
        body, filters = self._elements(group, reads)
        for filter in filters:
            self.check_bound(filter.expression, filter.origin, body)
            self.expressions.filter(filter.expression, body)
        return body

    def _elements(self, group: q.Group, reads: Reads) -> tuple[Body, list[q.Filter]]:
        body = Body(reads)
        filters: list[q.Filter] = []
        for element in group.elements:
            if isinstance(element, q.Filter):
                filters.append(element)
            else:
                self._element(element, body)
        body.ground()
        return body, filters

    def _element(self, element: q.Element, body: Body) -> None:
        match element:
            case q.TriplesBlock(triples=triples):
                for triple in triples:
                    self.paths.triple(triple, body)
            case q.Optional(group=group):
                body.ground()
                self._optional(group, body)
            case q.Minus(group=group, origin=origin):
                body.ground()
                inner = Body(body.reads, [self.group(group, body.reads)])
                joinables = (inner.system(),) if inner.predicates else tuple(inner.joinables)
                body.add(Minus(joinables, origin, ignored=body.reads.place))
            case q.Bind(expression=expression, variable=variable):
                body.ground()
                self.check_bound(expression, element.origin, body)
                body.add(self.bind(variable, expression, body))
            case q.Group():
                body.join(self.group(element, body.reads))
            case q.Union(branches=branches):
                body.join(Union(tuple(self.group(branch, body.reads) for branch in branches)))
            case q.Graph():
                body.join(self._graph(element, body.reads))
            case q.Window():
                body.join(self._window(element, body.reads))
            case q.StreamWindow():
                body.join(self._stream_window(element, body.reads))
            case q.Values():
                body.join(values(element))
            case q.SubSelect(query=query):
                body.join(self.sub_select(query, body.reads))
            case q.Service(origin=origin):
                hint = "fetch its data beforehand, and give them as a source"
                self.state.notes.fail("`SERVICE` is not supported: a run asks no other servers", origin, hint)
            case q.Filter():
                raise AssertionError("filters come after all other elements")

    def sub_select(self, query: q.SelectQuery, reads: Reads) -> System:
        """The solutions of a sub-query."""
        raise NotImplementedError

    def check_bound(self, expression: q.Expression, origin: Origin | None, *bodies: Body) -> None:
        """Warns of variables of an expression that have no value in any solution of the bodies."""
        bound_names = {name for body in bodies for name in (*body.variables, *body.reads.known)}
        for name, place in asked(expression, origin):
            if name not in bound_names:
                hint = (
                    did_you_mean(str(name), [str(bound_name) for bound_name in bound_names])
                    or "bind it by a pattern, BIND or VALUES before"
                )
                self.state.notes.warn(f"`{name}` never has a value here: nothing binds it", place, hint)

    def bind(self, variable: Variable, expression: q.Expression, body: Body) -> Bind:
        """An expression's value under a name; unbound where it has none."""
        value = self.expressions.value(expression, body)
        return Bind(variable, value, keep_unbound=not isinstance(value, str))

    def _optional(self, group: q.Group, body: Body) -> None:
        """A left join, with the group's own filters as its condition (section 18.2.2.6)."""
        inner, filters = self._elements(group, body.reads)
        for filter in filters:
            self.check_bound(filter.expression, filter.origin, body, inner)
        condition, exists = self.expressions.pair([filter_.expression for filter_ in filters], body, inner)
        body.add(Optional(inner.system(origin=group.origin), condition, exists))

    # Graphs and windows

    def _graph(self, graph: q.Graph, reads: Reads) -> System | Union:
        if isinstance(graph.name, Variable):
            return self._any_graph(graph, graph.name, reads)
        graph_reads = reads.of_graph(graph.name)
        return empty(q.in_scope(graph)) if graph_reads is None else self.group(graph.group, graph_reads)

    def _any_graph(self, graph: q.Graph, name: Variable, reads: Reads) -> System | Union:
        """A pattern over each graph: those that the data set names, then the others that there are."""
        if reads.graphs is None:
            return self._each(graph.group, name, reads, reads.every_graph)
        parts = [self._at(graph, name_iri, reads.of(source)) for name_iri, source in reads.graphs.items()]
        if reads.holding:
            other_graphs = Body(reads, [self._each(graph.group, name, reads, reads.every_graph)])
            if reads.graphs:
                other_graphs.add(Filter(calls.condition(calls.call("NOT IN", (name, *reads.graphs)))))
            parts.append(other_graphs.system(origin=graph.origin))
        return _together(parts, graph)

    def _each(self, group: q.Group, name: Variable, reads: Reads, graphs: tuple[Source, ...]) -> System:
        """A pattern over each graph of those that there are, with the variable bound to its name (section 18.6). In the
        pattern itself the variable has no value yet."""
        graph = self.state.fresh("graph") if name in q.mentioned(group) else name
        within = reads.of_each(graph, graphs)
        part = self.group(group, within)
        if graph == name:
            return part
        own = Body(within, [graph_names(name, within.sources)])
        own.add(Bind(graph, name))
        return Body(within, [part, own.system()]).system(origin=group.origin)

    def _window(self, window: q.Window, reads: Reads) -> System | Union:
        windows = reads.windows or {}
        if isinstance(window.name, str) and window.name not in windows:
            hint = f"add `FROM NAMED WINDOW {window.name} ON <stream> [RANGE PT10S]`"
            self.state.notes.fail(f"there is no window {window.name}", window.origin, hint)
        names = [name for name in windows if isinstance(window.name, Variable) or name == window.name]
        return _together([self._at(window, name, reads.of_window(windows[name])) for name in names], window)

    def _stream_window(self, element: q.StreamWindow, reads: Reads) -> System:
        """A pattern over a stream; a variable may be any of those that there are (CQELS-QL)."""
        read_window = LANDMARK if element.range is None else window(element.range, element, self.state.notes)
        if isinstance(element.name, Variable):
            return self._each(element.group, element.name, reads, (Graphs(window=read_window, only="streams"),))
        return self.group(element.group, reads.of_window(Source(iri_text(element.name), read_window)))

    def _at(self, element: q.Graph | q.Window, name: Term, reads: Reads) -> System:
        """A pattern over one of the named sources; a variable is bound to its name (section 18.6)."""
        part = self.group(element.group, reads)
        if isinstance(element.name, str):
            return part
        body = Body(reads, [part])
        if element.name in visible(part) or element.name in reads.known:
            body.join(System(predicates=(Bind(element.name, name),), consequences=(Select((element.name,)),)))
        else:
            body.add(Bind(element.name, name))
        return body.system(origin=element.origin)


def _together(parts: Sequence[System], element: q.Graph | q.Window) -> System | Union:
    if not parts:
        return empty(q.in_scope(element))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


# VALUES


def values(element: q.Values) -> System | Union:
    """The solutions that are written out (section 18.2.2.1). Rows that bind the same variables make one table."""
    tables: dict[tuple[Variable, ...], list[tuple[Term, ...]]] = {}
    for row in element.rows:
        bound = [(name, term) for name, term in zip(element.variables, row, strict=True) if term is not None]
        names = tuple(name for name, _ in bound)
        tables.setdefault(names, []).append(tuple(term for _, term in bound))
    tables_of = [predicates for names, rows in tables.items() for predicates in _tables(names, rows)]
    selected = (Select(element.variables),)
    parts = [System(predicates=predicates, consequences=selected, origin=element.origin) for predicates in tables_of]
    if not parts:
        return empty(element.variables)
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _tables(names: tuple[Variable, ...], rows: Sequence[tuple[Term, ...]]) -> Iterator[tuple[Predicate, ...]]:
    """What makes the rows, beside each other."""
    if len(rows) == 1 or not names:
        for row in rows:
            yield tuple(Bind(name, term) for name, term in zip(names, row, strict=True))
    else:
        width = literal(str(len(names)), XSD + "integer")
        yield (TableFunction(names, TABLE.iri, (width, *(term for row in rows for term in row))),)
