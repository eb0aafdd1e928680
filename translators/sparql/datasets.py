"""The datasets of queries: graphs, streams with windows, and documents.

Sources: SPARQL 1.1 Query, section 13; Barbieri et al., "C-SPARQL: a continuous query language for RDF data streams"
(IJSC 4(1), 2010); RSP-QL by the W3C RDF Stream Processing Community Group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import GRAPH, AtomPattern, FactPattern, Graph, Graphs, Pattern, Slot, Source, Variable
from squall.model.sources import BACKGROUND
from squall.model.windows import (
    LANDMARK,
    BoundedCountWindow,
    CountWindow,
    ElementWindow,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    Window,
)
from squall.rdf import Term, iri_text
from squall.translators.sparql.state import Notes

Windowing = q.FromStream | q.FromStreams | q.FromWindow | q.StreamWindow
"""The elements that have a window in brackets."""

DEFAULT = Source(sparql_dataset=True)
"""The default graph of a query without dataset clauses: all streams, derived facts, and static data in no
named graph."""


@dataclass(frozen=True)
class ActiveDataset:
    """The dataset that patterns read at some point of a query, with its active graph.

    Attributes:
        sources: The active graph, as a union of sources.
        graphs: The named graphs. None means any named graph, if the query has no dataset clauses.
        graph_sources: The sources that may contain further named graphs, for names that are not in `graphs`.
        windows: The named windows (RSP-QL).
        bound_outside: The variables that are bound outside of an EXISTS.
        graph: The variable of the graph's name, if the patterns are over each of all graphs.
        unbound_graph: The variable of ``GRAPH ?g`` around the patterns, if it has no value inside.
        window: The window of named graphs that the query does not declare.
    """

    sources: tuple[Source, ...] = (DEFAULT,)
    graphs: Mapping[Term, Source] | None = None
    graph_sources: tuple[Source, ...] = ()
    windows: Mapping[Term, Source] | None = None
    bound_outside: frozenset[Variable] = frozenset()
    graph: Variable | None = None
    unbound_graph: Variable | None = None
    window: Window = LANDMARK

    def with_sources(self, *sources: Source) -> ActiveDataset:
        """Returns the dataset with another active graph."""
        return replace(self, sources=sources, graph=None)

    def of_window(self, source: Source) -> ActiveDataset:
        """Returns the dataset with a window as its active graph, and with the window's named graphs."""
        return replace(self, sources=(source,), graph_sources=(source,), graph=None)

    def of_graph(self, graph: Term) -> ActiveDataset | None:
        """Returns the dataset with the graph of this name as its active graph, or None if there is none."""
        name = iri_text(graph)
        if self.graphs is None:
            return self.with_sources(Graph(name, self.window))
        if graph in self.graphs:
            return self.with_sources(self.graphs[graph])
        return (
            self.with_sources(*(Graph(name, source.window, within=source.iri) for source in self.graph_sources))
            if self.graph_sources
            else None
        )

    @property
    def every_graph(self) -> tuple[Source, ...]:
        """All existing graphs, except for those that the dataset names."""
        inside = tuple(Graphs(source.iri, source.window, only="graphs") for source in self.graph_sources)
        return (Graphs(window=self.window),) if self.graphs is None else inside

    def with_graphs(self, graph: Variable, graphs: tuple[Source, ...]) -> ActiveDataset:
        """Returns the dataset with each of these graphs as its active graph."""
        return replace(self, sources=graphs, graph=graph)

    @property
    def graph_key(self) -> tuple[Variable, ...]:
        """The variable that identifies the graph of a solution, if there is one."""
        return () if self.graph is None else (self.graph,)

    def pattern(self, subject: Slot, predicate: Slot, object: Slot, origin: Origin | None = None) -> FactPattern:
        """Returns the pattern for a triple of the active graph."""
        if self.graph is None:
            return Pattern(subject, predicate, object, exact=True, origin=origin)
        return AtomPattern(GRAPH, (self.graph, subject, predicate, object), exact=True, origin=origin)

    def inside_of(self, graph: Variable) -> ActiveDataset:
        """Returns the dataset inside of ``GRAPH ?g``, where the variable has no value."""
        return replace(self, unbound_graph=graph)

    def within_exists(self, variables: Iterable[Variable]) -> ActiveDataset:
        """Returns the dataset inside of an EXISTS in which these variables are bound."""
        return replace(self, bound_outside=self.bound_outside.union(variables))

    @property
    def uncorrelated(self) -> ActiveDataset:
        """The dataset inside of a subquery, which is evaluated by itself."""
        return replace(self, bound_outside=frozenset())

    @property
    def derived(self) -> Source:
        """The source of facts that rules derive from the active graph."""
        return DEFAULT if self.sources == (DEFAULT,) else BACKGROUND

    @property
    def is_stepped(self) -> bool:
        """Whether a window moves by steps."""
        named_sources = [*(self.graphs or {}).values(), *(self.windows or {}).values()]
        windows = [window for source in (*self.sources, *named_sources) for window in source.all_windows]
        return any(read_window.is_stepped for read_window in windows)


ALL = ActiveDataset()
WITHOUT_STREAMS = ActiveDataset((BACKGROUND,), {}, (BACKGROUND,))
"""The dataset around stream windows: static data that are in no graph, and the named graphs of static data."""


def clauses(statement: q.Statement) -> tuple[q.DatasetClause, ...]:
    """Returns the dataset clauses of a statement."""
    match statement.body:
        case q.Modify(using=using):
            return using
        case q.InsertData() | q.DeleteData() | q.Load() | q.Manage() | q.Transfer():
            return ()
        case query:
            return query.dataset


def of_query(query: q.Query, notes: Notes) -> ActiveDataset:
    """Returns the dataset of a query. Errors in its clauses are recorded.

    If its pattern has stream windows (CQELS-QL), no other streams are in its default graph.
    """
    if not query.dataset and q.stream_windows(query):
        return WITHOUT_STREAMS
    if not q.reads_by_name(query):
        _warn_of_unread_names(query.dataset, notes)
    reads = dataset(query.dataset, notes)
    return _at_instants(reads) if q.time_patterns(query) else reads


def _at_instants(reads: ActiveDataset) -> ActiveDataset:
    """Returns a dataset that has what arrives at an instant, for a query with a pattern over time."""

    def read(source: Source) -> Source:
        return source if source.window.is_empty else replace(source, window=ElementWindow())

    return replace(
        reads,
        sources=tuple(map(read, reads.sources)),
        graphs=None if reads.graphs is None else {name: read(source) for name, source in reads.graphs.items()},
        graph_sources=tuple(map(read, reads.graph_sources)),
        window=ElementWindow(),
    )


def _warn_of_unread_names(clauses: Iterable[q.DatasetClause], notes: Notes) -> None:
    """Warns of each named graph, stream and window of a query whose patterns all read the default graph."""
    for clause in clauses:
        match clause:
            case q.FromNamed(graph=name, whole=False):
                hint = f"read it by `GRAPH {name} {{ ... }}`, or have it in the default graph: `FROM {name}`"
                notes.warn(f"nothing reads the named graph {name}", clause.origin, hint)
            case q.FromStream(stream=name, named=True):
                hint = f"read it by `GRAPH {name} {{ ... }}`, or have it in the default graph: `FROM STREAM {name}`"
                notes.warn(f"nothing reads the named stream {name}", clause.origin, hint)
            case q.FromWindow(name=name):
                notes.warn(f"nothing reads the window {name}", clause.origin, f"read it by `WINDOW {name} {{ ... }}`")


def dataset(clauses: Iterable[q.DatasetClause], notes: Notes) -> ActiveDataset:
    """Returns the dataset of some clauses. Errors are recorded."""
    default: list[Source] = []
    graph_sources: list[Source] = []
    graphs: dict[Term, Source] = {}
    windows: dict[Term, Source] = {}
    clauses = tuple(clauses)
    for clause in clauses:
        match clause:
            case q.From(graph=graph):
                default.append(Graph(iri_text(graph)))
            case q.FromNamed(graph=graph, whole=whole):
                graphs[graph] = Graph(iri_text(graph))
                graph_sources += [] if whole else [graphs[graph]]
            case q.FromStream(stream=stream, named=named):
                read = _stream(clause, notes)
                graph_sources.append(read)
                if named:
                    graphs[stream] = read
                else:
                    default.append(read)
            case q.FromStreams(range=range):
                read = Source("", window(range, clause, notes), sparql_dataset=True)
                graph_sources.append(read)
                default.append(read)
            case q.FromWindow(name=name, stream=stream, range=range):
                if name in windows:
                    hint = "give each window a name of its own"
                    notes.fail(f"the window {name} is declared twice", clause.origin, hint)
                windows[name] = Source(iri_text(stream), window(range, clause, notes))
    if not clauses:
        return ALL
    background = () if any(isinstance(clause, q.FromStreams) for clause in clauses) else (BACKGROUND,)
    return ActiveDataset((*dict.fromkeys(default), *background), graphs, tuple(dict.fromkeys(graph_sources)), windows)


def _stream(clause: q.FromStream, notes: Notes) -> Source:
    read_window = LANDMARK if clause.range is None else window(clause.range, clause, notes)
    return Source(iri_text(clause.stream), read_window)


def window(range: q.Range, clause: Windowing, notes: Notes) -> Window:
    """Returns the window of a range in brackets.

    A window without a step is continuous, except that in RSP-QL its step is its size.
    """
    is_stepped = isinstance(clause, q.FromWindow)
    match range:
        case q.TimeRange(size=size, step=step, grid_origin=grid_origin):
            if step is None:
                return HoppingWindow(size, size, grid_origin) if is_stepped else SlidingWindow(size)
            _check_gaps(size, step, clause, notes)
            return HoppingWindow(size, step, grid_origin)
        case q.SessionRange(gap=gap, key=key, is_open=is_open):
            session = SessionWindow(gap, key)
            return session.while_open() if is_open else session
        case q.CountRange(size=size, length=int(length)):
            return BoundedCountWindow(size, length=length)
        case q.CountRange(size=size, step=step):
            _check_gaps(size, step or 1, clause, notes)
            return CountWindow(size, step or 1)
        case q.PastRange(begin=begin, end=end, step=step, grid_origin=grid_origin):
            size = begin - end
            if step is None and not is_stepped:
                return SlidingWindow(size, end)
            _check_gaps(size, step or size, clause, notes)
            return HoppingWindow(size, step or size, grid_origin, delay=end)


def _check_gaps(size: int, step: int, clause: Windowing, notes: Notes) -> None:
    if step > size:
        notes.warn("the window leaves gaps: its step is longer than its range", clause.origin)
