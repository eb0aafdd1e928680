"""Group graph patterns, by the algebra of SPARQL 1.1 Query, section 18.2.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from squall.errors import Origin, did_you_mean
from squall.functions.sparql.tables import TABLE
from squall.lexers.sparql import tree as q
from squall.model import (
    AtomPattern,
    Bind,
    Filter,
    Graphs,
    Joinable,
    Minus,
    Optional,
    Pattern,
    Predicate,
    Select,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    visible,
)
from squall.rdf import XSD, Term, iri, iri_text, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body, empty, existence, graph_names
from squall.translators.sparql.datasets import ActiveDataset, window
from squall.translators.sparql.events import EventPatterns
from squall.translators.sparql.expressions import Expressions, used_variables
from squall.translators.sparql.paths import Paths
from squall.translators.sparql.state import State

_GRAPH_HINT = "write the condition behind the braces of GRAPH, or run with the profile `instans`, where it has one"


class Patterns:
    """Translates the patterns of a statement."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.expressions = Expressions(state, self)
        self.paths = Paths(state)
        self.time_patterns = EventPatterns(state, self)

    def group(self, group: q.Group, reads: ActiveDataset) -> System:
        """Returns the solutions of a group as a part. Its filters apply to the whole group, wherever they
        are written."""
        body = self.body(group, reads)
        alone = body.joinables[0] if len(body.joinables) == 1 and not body.predicates else None
        return alone if isinstance(alone, System) else body.system(origin=group.origin)

    def body(self, group: q.Group, reads: ActiveDataset) -> Body:
        """Returns the solutions of a group as a body that can be extended."""
        body, filters = self._elements(group, reads)
        for filter in filters:
            self.check_bound(filter.expression, filter.origin, body)
            self.expressions.filter(filter.expression, body)
        return body

    def _elements(self, group: q.Group, reads: ActiveDataset) -> tuple[Body, list[q.Filter]]:
        body = Body(reads)
        filters: list[q.Filter] = []
        for element in group.elements:
            if isinstance(element, q.Filter):
                filters.append(element)
            elif isinstance(element, q.TimePattern):
                body.join(self.time_patterns.match(element, group, body.reads))
            else:
                self._element(element, body)
        body.bind_graph()
        return body, filters

    def _element(self, element: q.Element, body: Body) -> None:
        # In one piece: a flat match, the translation of each element.
        match element:
            case q.TriplesBlock(triples=triples):
                for triple in triples:
                    self.paths.triple(triple, body)
            case q.Optional(group=group):
                body.bind_graph()
                self._optional(group, body)
            case q.Minus(group=group, origin=origin):
                body.bind_graph()
                inner = Body(body.reads, [self.group(group, body.reads)])
                joinables = (inner.system(),) if inner.predicates else tuple(inner.joinables)
                body.add(Minus(joinables, origin, ignored=body.reads.graph_key))
            case q.Bind(expression=expression, variable=variable):
                body.bind_graph()
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
            case q.Service(name=name, origin=origin):
                message = "`SERVICE` is not supported: a run asks no other servers"
                self.state.notes.fail(message, origin, _service_hint(name))
            case q.Filter() | q.TimePattern() | q.Event() | q.Match():
                raise AssertionError("their place is in `_elements`, or a pattern over time is in their place")

    def sub_select(self, query: q.SelectQuery, reads: ActiveDataset) -> System:
        """Returns the solutions of a subquery."""
        raise NotImplementedError

    def check_bound(self, expression: q.Expression, origin: Origin | None, *bodies: Body) -> None:
        """Warns of variables of an expression that are unbound in every solution of the bodies."""
        bound_names = {name for body in bodies for name in (*body.variables, *body.reads.bound_outside)}
        for name, place in used_variables(expression, origin):
            if name not in bound_names:
                if any(name == body.reads.unbound_graph for body in bodies):
                    message, hint = f"`{name}` has no value inside of `GRAPH {name}`, but behind it", _GRAPH_HINT
                else:
                    message = f"`{name}` never has a value here: nothing binds it"
                    suggestion = did_you_mean(str(name), [str(bound_name) for bound_name in bound_names])
                    hint = suggestion or "bind it by a pattern, BIND or VALUES before"
                self.state.notes.warn(message, place, hint)

    def bind(self, variable: Variable, expression: q.Expression, body: Body) -> Bind:
        """Returns a `Bind` of an expression's value. The variable is unbound if there is none."""
        value = self.expressions.value(expression, body)
        return Bind(variable, value, keep_unbound=not isinstance(value, str))

    def _optional(self, group: q.Group, body: Body) -> None:
        """Adds a left join, with the group's own filters as its condition (section 18.2.2.6)."""
        inner, filters = self._elements(group, body.reads)
        for filter in filters:
            self.check_bound(filter.expression, filter.origin, body, inner)
        condition, exists = self.expressions.pair([filter_.expression for filter_ in filters], body, inner)
        body.add(Optional(inner.system(origin=group.origin), condition, exists))

    # Graphs and windows

    def _graph(self, graph: q.Graph, reads: ActiveDataset) -> System | Union:
        if isinstance(graph.name, Variable):
            return self._any_graph(graph, graph.name, reads)
        if graph.name in (reads.windows or {}) and graph.name not in (reads.graphs or {}):
            hint = f"did you mean `WINDOW {graph.name}`?"
            self.state.notes.warn(f"{graph.name} is a window, and `GRAPH` reads a named graph", graph.origin, hint)
        graph_reads = reads.of_graph(graph.name)
        if graph_reads is None:
            return empty(q.in_scope(graph))
        part = self.group(graph.group, graph_reads)
        is_declared = reads.graphs is not None and graph.name in reads.graphs
        if is_declared or self._needs_triple(part, graph_reads.sources):
            return part
        return Body(graph_reads, [part, existence(graph_reads.sources)]).system(origin=graph.origin)

    def _needs_triple(self, part: Joinable, sources: tuple[Source, ...]) -> bool:
        """Returns whether each solution of a part needs a triple of these sources."""
        match part:
            case Union(branches=branches):
                return all(self._needs_triple(branch, sources) for branch in branches)
            case System(grouping=grouping, joinables=joinables):
                if grouping is not None and not grouping.keys:
                    return False  # no solutions are a group as well
                reads_graph = part.sources == sources and any(isinstance(joinable, Pattern) for joinable in joinables)
                return reads_graph or any(self._needs_triple(joinable, sources) for joinable in joinables)
            case AtomPattern(relation=relation):  # of a path, whose pairs are nodes of triples
                return any(rule.sources == sources for rule in self._relation_rules(relation))
            case _:
                return False

    def _relation_rules(self, relation: Term) -> Iterator[System]:
        """Yields the rules of a path's relation, and of the relations that these read."""
        pending, visited = [relation], set[Term]()
        while pending:
            name = pending.pop()
            if name not in visited:
                visited.add(name)
                for rule in self.state.relations.get(name, ()):
                    yield rule
                    pending += [part.relation for part in rule.joinables if isinstance(part, AtomPattern)]

    def _any_graph(self, graph: q.Graph, name: Variable, reads: ActiveDataset) -> System | Union:
        """Returns a pattern over each graph: those that the dataset names, then all others."""
        is_in_scope = self.state.is_graph_in_scope and name not in q.assigned(graph.group)
        reads = reads if is_in_scope else reads.inside_of(name)
        if reads.graphs is None:
            return self._each(graph.group, name, reads, reads.every_graph, is_in_scope)
        parts = [
            self._at(
                replace(graph, group=q.substituted(graph.group, name, name_iri)) if is_in_scope else graph,
                name_iri,
                reads.with_sources(source),
            )
            for name_iri, source in reads.graphs.items()
        ]
        if reads.graph_sources:
            each = self._each(graph.group, name, reads, reads.every_graph, is_in_scope)
            other_graphs = Body(reads, [each])
            if reads.graphs:
                other_graphs.add(Filter(calls.condition(calls.call("NOT IN", (name, *reads.graphs)))))
            parts.append(other_graphs.system(origin=graph.origin))
        return _union(parts, graph)

    def _each(
        self,
        group: q.Group,
        name: Variable,
        reads: ActiveDataset,
        graphs: tuple[Source, ...],
        is_in_scope: bool = False,
    ) -> System:
        """Returns a pattern over each of the existing graphs, with the variable bound to the graph's name (section
        18.6).

        The variable is unbound inside of the pattern itself, unless it is in scope there.
        """
        graph = self.state.fresh("graph") if name in q.mentioned(group) and not is_in_scope else name
        within = reads.with_graphs(graph, graphs)
        part = self.group(group, within)
        if graph == name:
            return part
        names = Body(within, [graph_names(name, within.sources)])
        names.add(Bind(graph, name))
        return Body(within, [part, names.system()]).system(origin=group.origin)

    def _window(self, window: q.Window, reads: ActiveDataset) -> System | Union:
        windows = reads.windows or {}
        if isinstance(window.name, str) and window.name not in windows:
            hint = f"add `FROM NAMED WINDOW {window.name} ON <stream> [RANGE PT10S]`"
            self.state.notes.fail(f"there is no window {window.name}", window.origin, hint)
        names = [name for name in windows if isinstance(window.name, Variable) or name == window.name]
        return _union([self._at(window, name, reads.of_window(windows[name])) for name in names], window)

    def _stream_window(self, element: q.StreamWindow, reads: ActiveDataset) -> System:
        """Returns a pattern over a stream, or over each stream if its name is a variable (CQELS-QL)."""
        read_window = reads.window if element.range is None else window(element.range, element, self.state.notes)
        if isinstance(element.name, Variable):
            return self._each(element.group, element.name, reads, (Graphs(window=read_window, only="streams"),))
        return self.group(element.group, reads.of_window(Source(iri_text(element.name), read_window)))

    def _at(self, element: q.Graph | q.Window, name: Term, reads: ActiveDataset) -> System:
        """Returns a pattern over one of the named sources. A variable is bound to its name (section 18.6)."""
        part = self.group(element.group, reads)
        if isinstance(element.name, str):
            return part
        body = Body(reads, [part])
        if element.name in visible(part) or element.name in reads.bound_outside:
            body.join(System(predicates=(Bind(element.name, name),), consequences=(Select((element.name,)),)))
        else:
            body.add(Bind(element.name, name))
        return body.system(origin=element.origin)


def _union(parts: Sequence[System], element: q.Graph | q.Window) -> System | Union:
    if not parts:
        return empty(q.in_scope(element))
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


# VALUES


def values(element: q.Values) -> System | Union:
    """Returns the solutions of VALUES (section 18.2.2.1). Rows that bind the same variables form one table."""
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
    """Yields the predicates that give the rows, one tuple for each branch of a union."""
    if len(rows) == 1 or not names:
        for row in rows:
            yield tuple(Bind(name, term) for name, term in zip(names, row, strict=True))
    else:
        width = literal(str(len(names)), XSD + "integer")
        yield (TableFunction(names, TABLE.iri, (width, *(term for row in rows for term in row))),)


def _service_hint(name: q.Slot) -> str:
    """Returns the hint how to do without a service: by a named graph, which a file has."""
    graph = name if isinstance(name, str) else iri("http://example.org/data")
    address = iri_text(graph)
    return (
        f"save its data in a file, and write `GRAPH {graph} {{ ... }}`: with `FROM NAMED {graph}` "
        f"and `--graph {address}=FILE`, or with `--static '{address}=FILE'`"
    )
