"""Outputs as quads: a graph for each stream (timed N-Quads) or for each evaluation (TriG).

Sources: the named graphs with ``prov:generatedAtTime`` of RDF Stream: Abstract Syntax and Semantics (W3C RDF Stream
Processing Community Group); PROV-O.
"""

from __future__ import annotations

from typing import Any

from squall.contracts import Output
from squall.functions.values import date_time
from squall.rdf import ALWAYS, Evaluated, Quad, Term, Triple
from squall.streams.formats.encoders import comment_line
from squall.streams.formats.evaluations import answer_of, check_unchanging, evaluation_iri, stream_iri, time_text

_GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"


def quad(output: Output) -> bytes:
    """Returns a line of N-Quads: a quad, or a triple of the default graph."""
    fact = output.fact
    is_statement = isinstance(fact, Triple | Quad) and not output.change
    return f"{fact}\n".encode() if is_statement else comment_line(output)


def timed_quad(output: Output) -> bytes:
    """Returns a line of timed N-Quads: the time, and a statement. The graph of a triple is the stream of its rule."""
    fact = output.fact
    time = time_text(output.time)
    check_unchanging(output)
    if isinstance(fact, Quad):
        return f"{time} {fact}\n".encode()
    if not isinstance(fact, Triple):
        return comment_line(output, f"{time} ")
    subject, predicate, object = fact
    return f"{time} {subject} {predicate} {object} {stream_iri(output.rule)} .\n".encode()


class TriGEncoder:
    """An encoder with a graph for each evaluation; quads have their own.

    The default graph has the time at which each graph was generated.
    """

    def __init__(self) -> None:
        self._open: tuple[int, Term] | None = None
        """The time and the name of the open graph, or None."""

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._open = None

    def write(self, output: Output) -> bytes:
        check_unchanging(output)
        fact = answer_of(output)
        if isinstance(fact, Evaluated):
            return self._graph(output) + self.end()
        if isinstance(fact, Quad):
            triple = Triple(fact.subject, fact.predicate, fact.object)
            return self._graph(output, fact.graph) + f"{triple}\n".encode()
        if not isinstance(fact, Triple):
            return comment_line(output)
        return self._graph(output) + f"{fact}\n".encode()

    def end(self) -> bytes:
        closed, self._open = b"" if self._open is None else b"}\n", None
        return closed

    def snapshot(self) -> Any:
        return self._open

    def restore(self, state: Any) -> None:
        self._open = state and tuple(state)

    def _graph(self, output: Output, graph: Term | None = None) -> bytes:
        """Returns the begin of a graph, or of the graph of the output's evaluation; ``b""`` if it is open."""
        name = evaluation_iri(output.time, output.rule) if graph is None else graph
        key = output.time, name
        if self._open == key:
            return b""
        closed, self._open = self.end(), key
        return closed + f"{_generated(name, output.time)}{name} {{\n".encode()


def _generated(graph: Term, time: int) -> str:
    """Returns the statement with the time of a graph; ``""`` for static data."""
    return "" if time == ALWAYS else f"{graph} {_GENERATED} {date_time(time)} .\n"
