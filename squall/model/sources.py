"""Sources: the streams and graphs that patterns read, with their windows (SourceProviders)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from squall.model.patterns import UNNAMED
from squall.model.windows import EMPTY, LANDMARK, Window
from squall.rdf import ALWAYS, WORKING, XSD, Atom, Event, Fact, Term, Triple, iri, iri_text, literal
from squall.rdf.cliques import Cliques


@dataclass(frozen=True)
class Source:
    """A stream read through a window, or all streams (a SourceProvider).

    Attributes:
        iri: The stream. ``""`` names the default graph: all streams and static data.
        window: The window of the stream; of the default graph, the window of streams that have none of their own.
        windows: The streams of the default graph that have a window of their own.
        removals: Whether the stream may carry removals (`squall.rdf.Event.removed`).
        sparql_dataset: Whether static data in a named graph are in that graph alone, as in a SPARQL dataset.
        cliques: The terms that are read as one, if any: facts have the representatives, or (`Cliques.keeps_terms`)
            their own terms. Names of graphs stay.
    """

    is_plain: ClassVar[bool] = True
    """Whether patterns read facts as streams bring them, but for representatives."""
    prefix_width: ClassVar[int] = 0
    """The number of cells in front of the triple in a row of this source (`facts_read`)."""
    iri: str = ""
    window: Window = LANDMARK
    windows: tuple[tuple[str, Window], ...] = ()
    removals: bool = False
    sparql_dataset: bool = field(default=False, kw_only=True)
    cliques: Cliques | None = field(default=None, kw_only=True, repr=False)

    @property
    def all_windows(self) -> tuple[Window, ...]:
        """Every window through which the source may read something."""
        return (self.window, *(window for _, window in self.windows))

    @property
    def follows_links(self) -> bool:
        """Whether what streams say of owl:sameAs changes how the source is read."""
        return self.cliques is not None and self.cliques.may_change

    def window_of(self, stream: str) -> Window:
        """Returns the window through which a stream is read."""
        return LANDMARK if stream == WORKING else dict(self.windows).get(stream, self.window)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        """Returns whether the source reads anything of a stream.

        Args:
            stream: The IRI of the stream.
            graph: The name (a term's text) of the named graph in which the facts are, or ``""`` for the default graph.
            static: Whether the facts are static data that belong to the stream.
        """
        if static and graph and self.sparql_dataset:
            return bool(self.iri) and self.iri == iri_text(graph)
        return self.iri in ("", stream) and self._is_open(stream)

    @property
    def is_sequential(self) -> bool:
        """Whether a window of the source depends on all that a stream brings, and on its order."""
        return any(window.is_sequential for window in self.all_windows)

    def follows(self, stream: str) -> bool:
        """Returns whether the source reads a stream, or some of its graphs, through a window that depends on all that
        the stream brings (`squall.model.windows.Window.is_sequential`)."""
        return self.iri in ("", stream) and self.window_of(stream).is_sequential

    def follows_as(self, other: Source, stream: str) -> bool:
        """Returns whether two sources follow a stream through the same window."""
        return self.follows(stream) and other.follows(stream) and self.window_of(stream) == other.window_of(stream)

    def has_sequential_instants(self, stream: str) -> bool:
        """Returns whether the instants at which the content of the stream changes depend on all that it brings."""
        return self.follows(stream) and self.window_of(stream).has_sequential_instants

    def is_affected_by(self, event: Event) -> bool:
        """Returns whether an event may change what the source reads: the source reads some of it, or follows it."""
        return self.reads(event.stream, event.graph, event.is_static) or self.follows(event.stream)

    def _is_open(self, stream: str) -> bool:
        """Returns whether a stream has a window that is not the empty one."""
        return not (stream and self.window_of(stream).is_empty)

    def for_stream(self, stream: str) -> Source:
        """Returns the source restricted to one of the streams that it reads."""
        return replace(self, iri=stream, window=self.window_of(stream), windows=(), removals=False)

    def names_of(self, term: Term) -> tuple[Term, ...]:
        """Returns the terms of facts that the source reads as a term."""
        return (term,) if self.cliques is None or self.cliques.keeps_terms else self.cliques.clique(term)

    @property
    def stream(self) -> str:
        """The stream that it reads, if it reads only one."""
        return self.iri

    @property
    def reads_derived_facts(self) -> bool:
        """Whether the source also reads the facts that rules derive."""
        return self.iri == ""

    @property
    def reads_generalized_triples(self) -> bool:
        """Whether derived triples that are none in RDF are read as well: by rules, and not by queries (SPARQL 1.1
        Entailment Regimes, section 3.1)."""
        return not self.sparql_dataset

    def facts_read(
        self, fact: Fact, stream: str, time: int, graph: str = "", derived: bool = False
    ) -> tuple[Fact, ...]:
        """Returns the facts that patterns read of a fact of a stream.

        Args:
            fact: The fact.
            stream: The stream that brings it.
            time: When it arrives (integer ms).
            graph: The named graph in which it is, or ``""``.
            derived: Whether the stream is a derived one, whose facts at `ALWAYS` are not static data.
        """
        fact_read = fact if self.cliques is None else self.cliques.fact(fact)
        return () if fact_read is None else (fact_read,)


BACKGROUND = Source("", EMPTY, sparql_dataset=True)
"""Derived facts, and static data that belong to no stream: a part of every default graph."""


@dataclass(frozen=True)
class EntailedDataset(Source):
    """The default graph of a SPARQL dataset, as the rules of a rule set in front of queries read it."""

    @property
    def reads_generalized_triples(self) -> bool:
        return True


@dataclass(frozen=True)
class Graph(Source):
    """The named graph of an IRI.

    It has what the stream of this name brings, and what other streams bring in a named graph of this name, each through
    the window of its stream.

    Attributes:
        within: If given, the graph has only what this stream brings in a named graph of this name.
    """

    within: str = field(default="", kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        if not self._is_open(stream):
            return False
        in_graph = bool(graph) and iri_text(graph) == self.iri
        if self.within:
            return in_graph and stream == self.within
        return in_graph or (stream == self.iri and not (static and graph))

    def follows(self, stream: str) -> bool:
        return self.within in ("", stream) and self.window_of(stream).is_sequential

    def for_stream(self, stream: str) -> Source:
        within = "" if stream == self.iri else stream
        return replace(self, window=self.window_of(stream), windows=(), removals=False, within=within)

    @property
    def stream(self) -> str:
        return self.within or self.iri

    @property
    def reads_derived_facts(self) -> bool:
        return False


GRAPH = iri("urn:x-squall:graph")
"""The relation of the facts that `Graphs` reads."""
GRAPH_EXISTS = "graph exists"
"""The name of a part with one solution, without variables, while a named graph has triples."""


@dataclass(frozen=True)
class Graphs(Source):
    """The triples of named graphs, each with the name of its graph.

    A triple ``s p o`` of the stream ``g`` is read as the atom ``GRAPH(g, s, p, o)``, in the window of that stream. If
    the stream brings it in the named graph ``h``, it is also read as ``GRAPH(h, s, p, o)``. Static data are in one
    graph: the named graph in which they are, or else that of their stream. The default stream and derived facts have no
    graph name, so this source does not read them.

    Attributes:
        only: ``graphs``: a stream itself is not a graph, only the graphs that it brings are. ``streams``: only the
            streams themselves are graphs, each with all that is in it.
    """

    is_plain: ClassVar[bool] = False
    prefix_width: ClassVar[int] = 2
    only: Literal["", "graphs", "streams"] = field(default="", kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        has_name = (stream not in UNNAMED and self.only != "graphs") or (bool(graph) and self.only != "streams")
        return has_name and self.iri in ("", stream) and self._is_open(stream)

    @property
    def reads_derived_facts(self) -> bool:
        return False

    def facts_read(
        self, fact: Fact, stream: str, time: int, graph: str = "", derived: bool = False
    ) -> tuple[Fact, ...]:
        names = _names(stream, graph, time == ALWAYS and not derived)
        if self.only:
            names = (iri(stream),) if self.only == "streams" else names[-1:]
        triples = super().facts_read(fact, stream, time) if isinstance(fact, Triple) else ()
        return tuple(Atom(GRAPH, (name, *triple)) for triple in triples for name in names)


@dataclass(frozen=True)
class Occurrences(Source):
    """The atoms of a derived stream, each with its time.

    An atom ``R(x, ...)`` that the stream brings at the time ``t`` is read as ``R(t, x, ...)``, in the window of the
    stream. ``t`` is an xsd:integer of milliseconds since the epoch. Triples, and what the stream has at `ALWAYS`, are
    not read.
    """

    is_plain: ClassVar[bool] = False
    prefix_width: ClassVar[int] = 1

    @property
    def reads_derived_facts(self) -> bool:
        return False

    def facts_read(
        self, fact: Fact, stream: str, time: int, graph: str = "", derived: bool = False
    ) -> tuple[Fact, ...]:
        if time == ALWAYS or isinstance(fact, Triple):
            return ()
        facts = super().facts_read(fact, stream, time)
        return tuple(
            Atom(atom.relation, (time_term(time), *atom.arguments)) for atom in facts if isinstance(atom, Atom)
        )


def time_term(time: int) -> Term:
    """Returns the xsd:integer with which patterns read a time (integer ms)."""
    return literal(str(time), XSD + "integer")


def _names(stream: str, graph: str, static: bool = False) -> tuple[Term, ...]:
    """Returns the names of the graphs that a fact is in."""
    own = (Term(graph),) if graph else ()
    return own if stream in UNNAMED or (static and graph) else tuple(dict.fromkeys((iri(stream), *own)))


ARRIVAL = iri("urn:x-squall:came")
"""The relation of the facts that `Arrivals` reads."""


@dataclass(frozen=True)
class Arrivals(Source):
    """The triples of streams, each with its stream and its arrival time.

    A triple ``s p o`` that the stream ``g`` brings at the time ``t`` is read as the atom ``ARRIVAL(g, t, s, p, o)``, in
    the window of that stream. ``t`` is an xsd:integer of milliseconds since the epoch. Of the default stream, ``g`` is
    the empty string. A triple in a named graph is also read with the name of that graph. Static data and derived facts
    never arrived, so this source does not read them.
    """

    is_plain: ClassVar[bool] = False
    prefix_width: ClassVar[int] = 3

    @property
    def reads_derived_facts(self) -> bool:
        return False

    def facts_read(
        self, fact: Fact, stream: str, time: int, graph: str = "", derived: bool = False
    ) -> tuple[Fact, ...]:
        if time == ALWAYS or not isinstance(fact, Triple):
            return ()
        names = _names(stream, graph)
        if stream in UNNAMED:
            names = (literal(""), *names)
        arrival = time_term(time)
        triples = super().facts_read(fact, stream, time)
        return tuple(Atom(ARRIVAL, (name, arrival, *triple)) for triple in triples for name in names)
