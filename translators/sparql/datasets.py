"""What the patterns of a query read: its data set, of graphs, streams through windows, and documents.

Source: SPARQL 1.1 Query, section 13; Barbieri et al., "C-SPARQL: a continuous query language for RDF data streams"
(IJSC 4(1), 2010); RSP-QL as the W3C RDF Stream Processing Community Group has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import GRAPH, AtomPattern, FactPattern, Graph, Graphs, Pattern, Slot, Source, Variable
from squall.model.windows import EMPTY, LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.rdf import Term, iri_text
from squall.translators.sparql.state import Notes

Windowing = q.FromStream | q.FromWindow | q.StreamWindow
"""What has a window in brackets."""

DEFAULT = Source(sparql_dataset=True)
"""The default graph of a query that says nothing of its data set: all streams, what rules derive, and static data that
are in no named graph."""
BACKGROUND = Source("", EMPTY, sparql_dataset=True)
"""What rules derive, and static data that belong to no stream: a part of every default graph."""


@dataclass(frozen=True)
class Reads:
    """What patterns read at some place of a query.

    sources: their default graph, the union of these. graphs: the named graphs; None: any that is named, where a query
    says nothing of its data set. holding: what may have further named graphs in it, which count if `graphs` has none of
    their name. windows: the named windows (RSP-QL). known: variables that have a value already, in EXISTS. graph: what
    holds the name of the graph, where the patterns are over each of all that there are.
    """

    sources: tuple[Source, ...] = (DEFAULT,)
    graphs: Mapping[Term, Source] | None = None
    holding: tuple[Source, ...] = ()
    windows: Mapping[Term, Source] | None = None
    known: frozenset[Variable] = frozenset()
    graph: Variable | None = None

    def of(self, *sources: Source) -> Reads:
        """The same data set, seen from a graph of it."""
        return replace(self, sources=sources, graph=None)

    def of_window(self, source: Source) -> Reads:
        """The same data set, seen from a window, whose named graphs it has besides."""
        return replace(self, sources=(source,), holding=(source,), graph=None)

    def of_graph(self, graph: Term) -> Reads | None:
        """The same data set, seen from the graph of this name; None: it has none."""
        name = iri_text(graph)
        if self.graphs is None:
            return self.of(Graph(name))
        if graph in self.graphs:
            return self.of(self.graphs[graph])
        return (
            self.of(*(Graph(name, source.window, within=source.iri) for source in self.holding))
            if self.holding
            else None
        )

    @property
    def every_graph(self) -> tuple[Source, ...]:
        """All graphs that there are, but for those that the data set names."""
        inside = tuple(Graphs(source.iri, source.window, only="graphs") for source in self.holding)
        return (Graphs(),) if self.graphs is None else inside

    def of_each(self, graph: Variable, graphs: tuple[Source, ...]) -> Reads:
        """The same data set, seen from each of these graphs."""
        return replace(self, sources=graphs, graph=graph)

    @property
    def place(self) -> tuple[Variable, ...]:
        """What tells apart where solutions were found: the variable of the graph, if there is one."""
        return () if self.graph is None else (self.graph,)

    def pattern(self, subject: Slot, predicate: Slot, object: Slot, origin: Origin | None = None) -> FactPattern:
        """What finds a triple here."""
        if self.graph is None:
            return Pattern(subject, predicate, object, exact=True, origin=origin)
        return AtomPattern(GRAPH, (self.graph, subject, predicate, object), exact=True, origin=origin)

    def inside(self, variables: Iterable[Variable]) -> Reads:
        """The same data set, seen from an EXISTS among these variables."""
        return replace(self, known=self.known.union(variables))

    @property
    def alone(self) -> Reads:
        """The same data set, seen from what is evaluated by itself, a sub-query: nothing around it is known there."""
        return replace(self, known=frozenset())

    @property
    def derived(self) -> Source:
        """Where what rules derive of these is read."""
        return DEFAULT if self.sources == (DEFAULT,) else BACKGROUND

    @property
    def is_stepped(self) -> bool:
        """Whether a window moves by steps."""
        named_sources = [*(self.graphs or {}).values(), *(self.windows or {}).values()]
        windows = [window for source in (*self.sources, *named_sources) for window in source.all_windows]
        return any(
            isinstance(read_window, HoppingWindow) or (isinstance(read_window, CountWindow) and read_window.step > 1)
            for read_window in windows
        )


ALL = Reads()
INSIDE = Reads((BACKGROUND,), {}, (BACKGROUND,))
"""Around windows of streams: no stream, static data that are in no graph, and the named graphs of static data."""


def clauses(statement: q.Statement) -> tuple[q.DatasetClause, ...]:
    """What a statement says of its data set."""
    match statement.body:
        case q.Modify(using=using):
            return using
        case q.InsertData() | q.DeleteData() | q.Load() | q.Manage() | q.Transfer():
            return ()
        case query:
            return query.dataset


def of_query(query: q.Query, notes: Notes) -> Reads:
    """The data set of a query. If it has streams inside of its pattern (CQELS-QL), no others are in its default graph.
    What is wrong with its clauses is noted."""
    if not query.dataset and q.stream_windows(query):
        return INSIDE
    return dataset(query.dataset, notes)


def dataset(clauses: Iterable[q.DatasetClause], notes: Notes) -> Reads:
    """The data set of some clauses. What is wrong with them is noted."""
    default: list[Source] = []
    holding: list[Source] = []
    graphs: dict[Term, Source] = {}
    windows: dict[Term, Source] = {}
    clauses = tuple(clauses)
    for clause in clauses:
        match clause:
            case q.From(graph=graph):
                default.append(Graph(iri_text(graph)))
            case q.FromNamed(graph=graph, whole=whole):
                graphs[graph] = Graph(iri_text(graph))
                holding += [] if whole else [graphs[graph]]
            case q.FromStream(stream=stream, named=named):
                read = _stream(clause, notes)
                holding.append(read)
                if named:
                    graphs[stream] = read
                else:
                    default.append(read)
            case q.FromWindow(name=name, stream=stream, range=range):
                windows[name] = Source(iri_text(stream), window(range, clause, notes))
    if not clauses:
        return ALL
    return Reads((*dict.fromkeys(default), BACKGROUND), graphs, tuple(dict.fromkeys(holding)), windows)


def _stream(clause: q.FromStream, notes: Notes) -> Source:
    read_window = LANDMARK if clause.range is None else window(clause.range, clause, notes)
    return Source(iri_text(clause.stream), read_window)


def window(range: q.Range, clause: Windowing, notes: Notes) -> Window:
    """The window of what is written in brackets. One without a step is continuous; in RSP-QL its step is its size."""
    is_stepped = isinstance(clause, q.FromWindow)
    match range:
        case q.TimeRange(size=size, step=step):
            if step is None:
                return HoppingWindow(size, size) if is_stepped else SlidingWindow(size)
            _check_gaps(size, step, clause, notes)
            return HoppingWindow(size, step)
        case q.CountRange(size=size, step=step):
            _check_gaps(size, step or 1, clause, notes)
            return CountWindow(size, step or 1)
        case q.PastRange(begin=begin, end=end, step=step):
            size = begin - end
            if step is None and not is_stepped:
                return SlidingWindow(size, end)
            _check_gaps(size, step or size, clause, notes)
            return HoppingWindow(size, step or size, delay=end)


def _check_gaps(size: int, step: int, clause: Windowing, notes: Notes) -> None:
    if step > size:
        notes.warn("the window leaves gaps: its step is longer than its range", clause.origin)
