"""What patterns read: streams through windows, graphs, and when triples came (SourceProviders)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from squall.model.patterns import UNNAMED
from squall.model.windows import LANDMARK, CountWindow, EmptyWindow, Window
from squall.rdf import ALWAYS, WORKING, XSD, Atom, Event, Fact, Term, Triple, iri, iri_text, literal


@dataclass(frozen=True)
class Source:
    """The potential to read a stream through a window (a SourceProvider), or all of them.

    iri: the stream; ``""`` names the default graph: all streams and static data.
    window: says when what is read is valid; of the default graph, for streams that have no window of their own.
    windows: of the default graph, the streams that have one.
    removals: whether the stream may carry removals (`squall.rdf.Event.removed`).
    apart: whether static data in a named graph are in that graph alone, as in the data set of SPARQL.
    """

    is_plain: ClassVar[bool] = True
    """Whether patterns read facts as streams bring them."""
    begins: ClassVar[int] = 0
    """How many cells stand in front of a triple in the row of what is read of it (`seen`)."""
    iri: str = ""
    window: Window = LANDMARK
    windows: tuple[tuple[str, Window], ...] = ()
    removals: bool = False
    apart: bool = field(default=False, kw_only=True)

    @property
    def all_windows(self) -> tuple[Window, ...]:
        """Every window through which something may be read."""
        return (self.window, *(window for _, window in self.windows))

    def window_of(self, stream: str) -> Window:
        """The window through which a stream is read."""
        return LANDMARK if stream == WORKING else dict(self.windows).get(stream, self.window)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        """Whether it reads anything of a stream, or (`static`) of the static data that belong to it. graph: what is in
        the named graph of this name (a term's text), and not in the default graph."""
        if static and graph and self.apart:
            return bool(self.iri) and self.iri == iri_text(graph)
        return self.iri in ("", stream) and self._is_open(stream)

    def counts(self, stream: str) -> bool:
        """Whether it reads a stream, or some of its graphs, through a window of triples, which counts them all."""
        return self.iri in ("", stream) and isinstance(self.window_of(stream), CountWindow)

    def counts_as(self, other: Source, stream: str) -> bool:
        """Whether it counts the triples of a stream as another source does: through the same window of them."""
        return self.counts(stream) and other.counts(stream) and self.window_of(stream) == other.window_of(stream)

    def step_of(self, stream: str) -> int:
        """By how many triples at a time the window moves on through which it counts a stream; 0: it does not count."""
        window = self.window_of(stream)
        return window.step if isinstance(window, CountWindow) and self.counts(stream) else 0

    def hears(self, event: Event) -> bool:
        """Whether an event has to do with what it reads: it reads some of it, or counts it."""
        return self.reads(event.stream, event.graph, event.is_static) or self.counts(event.stream)

    def _is_open(self, stream: str) -> bool:
        """Whether a stream has a window through which anything is seen."""
        return not (stream and isinstance(self.window_of(stream), EmptyWindow))

    def alone(self, stream: str) -> Source:
        """The same, of one stream of those that it reads."""
        return replace(self, iri=stream, window=self.window_of(stream), windows=(), removals=False)

    @property
    def stream(self) -> str:
        """The stream that it reads, if it reads one alone."""
        return self.iri

    @property
    def derives(self) -> bool:
        """Whether what rules derive is read, too."""
        return self.iri == ""

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "", made: bool = False) -> tuple[Fact, ...]:
        """What patterns read of a fact, of a stream that brings it at a time (integer ms), in a named graph or none.
        made: the program makes the stream: what it has at `ALWAYS` is no static data."""
        return (fact,)


@dataclass(frozen=True)
class Graph(Source):
    """The named graph of an IRI: what the stream of this name brings, and what others bring in a named graph of this
    name, each through the window of its stream.

    within: of this stream only what it brings in a named graph of this name.
    """

    within: str = field(default="", kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        if not self._is_open(stream):
            return False
        named = bool(graph) and iri_text(graph) == self.iri
        if self.within:
            return named and stream == self.within
        return named or (stream == self.iri and not (static and graph))

    def counts(self, stream: str) -> bool:
        return self.within in ("", stream) and isinstance(self.window_of(stream), CountWindow)

    def alone(self, stream: str) -> Source:
        within = "" if stream == self.iri else stream
        return replace(self, window=self.window_of(stream), windows=(), removals=False, within=within)

    @property
    def stream(self) -> str:
        return self.within or self.iri

    @property
    def derives(self) -> bool:
        return False


GRAPH = iri("urn:x-squall:graph")
"""The relation of what `Graphs` reads."""


@dataclass(frozen=True)
class Graphs(Source):
    """The triples of named graphs, each with the name: a triple ``s p o`` of the stream ``g`` is read as the atom
    ``GRAPH(g, s, p, o)``, in the window of that stream, and if the stream brings it in the named graph ``h``, as
    ``GRAPH(h, s, p, o)``, too. Static data are in one graph: the one in which they are, or else that of their stream.

    What has no name is not there: the default stream, and what rules derive.
    only: ``graphs``: a stream itself is no graph, those that it brings are; ``streams``: only streams themselves are,
    each with all that is in it.
    """

    is_plain: ClassVar[bool] = False
    begins: ClassVar[int] = 2
    only: Literal["", "graphs", "streams"] = field(default="", kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        named = (stream not in UNNAMED and self.only != "graphs") or (bool(graph) and self.only != "streams")
        return named and self.iri in ("", stream) and self._is_open(stream)

    @property
    def derives(self) -> bool:
        return False

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "", made: bool = False) -> tuple[Fact, ...]:
        if not isinstance(fact, Triple):
            return ()
        if self.only == "streams":
            return (Atom(GRAPH, (iri(stream), *fact)),)
        names = _names(stream, graph, time == ALWAYS and not made)
        return tuple(Atom(GRAPH, (name, *fact)) for name in (names[-1:] if self.only else names))


def _names(stream: str, graph: str, static: bool = False) -> tuple[Term, ...]:
    """The names of the graphs that something is in."""
    own = (Term(graph),) if graph else ()
    return own if stream in UNNAMED or (static and graph) else tuple(dict.fromkeys((iri(stream), *own)))


CAME = iri("urn:x-squall:came")
"""The relation of what `Arrivals` reads."""


@dataclass(frozen=True)
class Arrivals(Source):
    """The triples of streams, each with where and when it came: a triple ``s p o`` that the stream ``g`` brings at the
    time ``t`` is read as the atom ``CAME(g, t, s, p, o)``, in the window of that stream. ``t`` is an xsd:integer of
    milliseconds since the epoch; of the default stream, ``g`` is the empty string. What comes in a named graph is read
    with the name of that, too.

    What never came is not there: static data, and what rules derive.
    """

    is_plain: ClassVar[bool] = False
    begins: ClassVar[int] = 3

    @property
    def derives(self) -> bool:
        return False

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "", made: bool = False) -> tuple[Fact, ...]:
        if time == ALWAYS or not isinstance(fact, Triple):
            return ()
        names = _names(stream, graph)
        if stream in UNNAMED:
            names = (literal(""), *names)
        return tuple(Atom(CAME, (name, literal(str(time), XSD + "integer"), *fact)) for name in names)
