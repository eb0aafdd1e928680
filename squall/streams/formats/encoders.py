"""Encoders: what turns the outputs of a run into the bytes of a format, and keeps what it has to know for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import ALWAYS, Atom, Boolean, Evaluated, Quad, Solution, Triple
from squall.streams.formats.evaluations import Answer, Evaluation, Gathering, answered, cells


class Encoder(Protocol):
    """One for each sink. Raises SinkError where the format cannot hold an output."""

    def begin(self, begun: bool, terminal: bool) -> None:
        """Begins anew. begun: there is something in the file already; terminal: somebody looks at it."""
        ...

    def write(self, output: Output) -> bytes: ...

    def end(self) -> bytes:
        """What completes the bytes so far. Others may follow."""
        ...

    def snapshot(self) -> Any:
        """What it keeps, as what JSON can hold."""
        ...

    def restore(self, state: Any) -> None:
        """Goes on with that, having begun anew."""
        ...


class Lines:
    """A line for each output, whatever was before it; `line` makes it."""

    def __init__(self, line: Callable[[Output], bytes]) -> None:
        self.write = line

    def begin(self, begun: bool, terminal: bool) -> None:
        pass

    def end(self) -> bytes:
        return b""

    def snapshot(self) -> None:
        return None

    def restore(self, state: Any) -> None:
        pass


_FACT = ("subject", "predicate", "object")


class Rows:
    """A table of all outputs, with the head before the first one; the others have to have the same columns."""

    def __init__(self, uri: str, row: Callable[[Iterable[str]], bytes]) -> None:
        self._uri = uri
        self._row = row
        self._headed = False
        self._columns: tuple[str, ...] | None = None
        """Those of the head, where they are known."""

    def begin(self, begun: bool, terminal: bool) -> None:
        self._headed = begun
        self._columns = self._columns if begun else None

    def write(self, output: Output) -> bytes:
        answer = answered(output)
        if isinstance(answer, Evaluated):
            return b""
        columns, values = _row_cells(answer)
        if self._headed and self._columns not in (None, columns):
            raise SinkError(
                f"`{self._uri}` cannot hold outputs with other columns than {', '.join(self._columns or ())}",
                hint="the format `ndjson` can",
            )
        head = b"" if self._headed else self._row(("time", "rule", *columns))
        self._headed, self._columns = True, columns
        time = "" if output.time == ALWAYS else str(output.time)
        return head + self._row((time, output.rule, *values))

    def end(self) -> bytes:
        return b""

    def snapshot(self) -> Any:
        return self._columns

    def restore(self, state: Any) -> None:
        self._columns = None if state is None else tuple(state)
        self._headed = state is not None


def _row_cells(answer: Answer) -> tuple[tuple[str, ...], Iterable[str]]:
    """The columns of an answer, and its cells: terms in N-Triples, so that nothing is lost. An atom's relation is the
    predicate, its arguments are the object."""
    if isinstance(answer, Triple):
        return _FACT, answer
    if isinstance(answer, Quad):
        return (*_FACT, "graph"), answer
    if isinstance(answer, Atom):
        return _FACT, ("", answer.relation, " ".join(answer.arguments))
    columns, values = cells(answer)
    return columns, (term or "" for term in values)


class EvaluationLines:
    """A line for each evaluation; `line` makes it."""

    def __init__(self, line: Callable[[Evaluation], bytes]) -> None:
        self._line = line
        self._gathering = Gathering()

    def begin(self, begun: bool, terminal: bool) -> None:
        self._gathering = Gathering()

    def write(self, output: Output) -> bytes:
        return b"".join(map(self._line, self._gathering.add(output)))

    def end(self) -> bytes:
        return b"".join(map(self._line, self._gathering.end()))

    def snapshot(self) -> Any:
        return self._gathering.snapshot()

    def restore(self, state: Any) -> None:
        self._gathering.restore(state)


class OneDocument(EvaluationLines):
    """A document, which holds one evaluation: a second one is refused as soon as it begins."""

    def __init__(self, uri: str, format: str, document: Callable[[Evaluation], bytes]) -> None:
        super().__init__(document)
        self._uri = uri
        self._format = format
        self._held: tuple[int, str] | None = None
        self._full = False

    def begin(self, begun: bool, terminal: bool) -> None:
        super().begin(begun, terminal)
        self._held, self._full = None, begun

    def write(self, output: Output) -> bytes:
        if self._full or self._held not in (None, (output.time, output.rule)):
            raise SinkError(
                f"`{self._uri}` holds one evaluation, as a document of the format `{self._format}` does",
                hint=f"a document for each: `--sink 'results-{{time}}-{{query}}.{self._format}'`; "
                "a line for each: the format `ndjson-evaluations`",
            )
        self._held = output.time, output.rule
        return self._kept(super().write(output))

    def end(self) -> bytes:
        return self._kept(super().end())

    def snapshot(self) -> Any:
        return {"held": self._held, "full": self._full, "outputs": super().snapshot()}

    def restore(self, state: Any) -> None:
        super().restore(state["outputs"])
        self._held = state["held"] and tuple(state["held"])
        self._full = state["full"]

    def _kept(self, document: bytes) -> bytes:
        self._full = self._full or bool(document)
        return document


def comment_line(output: Output, time: str = "") -> bytes:
    """The line, after its time, of what is no triple: an atom has no RDF serialisation, and so is a comment. Raises
    SinkError for what a query answers, and for a quad."""
    answer = answered(output)
    if isinstance(answer, Evaluated):
        return b""
    if isinstance(answer, Solution | Boolean):
        raise SinkError(
            "the solutions of a query are no triples",
            hint="write them as ndjson, csv or tsv: `--format ndjson`, or `--sink` with such an ending",
        )
    if isinstance(answer, Quad):
        raise SinkError("a triple in a named graph is no triple", hint="write quads: `--format nq`, `nqt` or `trig`")
    return f"# {time}{answer}\n".encode()
