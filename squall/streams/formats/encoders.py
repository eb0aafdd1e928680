"""Encoders, which turn the outputs of a run into the bytes of a format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import ALWAYS, Atom, Boolean, Evaluated, Quad, Solution, Term, Triple
from squall.streams.formats.evaluations import (
    Answer,
    Evaluation,
    EvaluationCollector,
    answer_of,
    cells,
    check_names,
    check_unchanging,
    common_columns,
    query_of,
)
from squall.streams.formats.result_sets import ResultSets


class Encoder(Protocol):
    """An encoder of one sink. Its methods raise SinkError if the format cannot express an output."""

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        """Begins anew.

        Args:
            begun: Whether the file has content already.
            terminal: Whether it is a terminal.
        """
        ...

    def write(self, output: Output) -> bytes:
        """Returns the bytes that an output completes."""
        ...

    def end(self) -> bytes:
        """Returns the bytes that complete the output so far. More may follow."""
        ...

    def snapshot(self) -> Any:
        """Returns the state of the encoder, as a JSON value."""
        ...

    def restore(self, state: Any) -> None:
        """Restores the state of a snapshot, after `begin`."""
        ...


class LineEncoder:
    """An encoder without state, which writes a line for each output."""

    def __init__(self, line: Callable[[Output], bytes]) -> None:
        self.write = line

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        pass

    def end(self) -> bytes:
        return b""

    def snapshot(self) -> None:
        return None

    def restore(self, state: Any) -> None:
        pass


class ResultSetEncoder:
    """An encoder of facts that writes the answers of queries as result sets, one for each evaluation.

    Args:
        encoder: The encoder of facts.
        ordered: The queries whose solutions have an order.
    """

    def __init__(self, encoder: Encoder, ordered: Collection[str] = ()) -> None:
        self._encoder = encoder
        self._ordered = ordered
        self._result_sets = ResultSets(ordered)

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._encoder.begin(has_content, is_terminal)
        self._result_sets = ResultSets(self._ordered)

    def write(self, output: Output) -> bytes:
        if type(output[0]) is Triple and not self._result_sets.is_open:  # most outputs
            return self._encoder.write(output)
        return self._written(self._result_sets.add(output))

    def end(self) -> bytes:
        return self._written(self._result_sets.end()) + self._encoder.end()

    def snapshot(self) -> Any:
        state = self._encoder.snapshot()
        return {"facts": state, "answers": self._result_sets.snapshot()} if self._result_sets.is_open else state

    def restore(self, state: Any) -> None:
        if isinstance(state, dict):
            self._result_sets.restore(state["answers"])
        self._encoder.restore(state["facts"] if isinstance(state, dict) else state)

    def _written(self, groups: Iterable[Iterable[Output]]) -> bytes:
        return b"".join(self._encoder.write(output) for group in groups for output in group)


FACT_COLUMNS = ("subject", "predicate", "object")


class TableEncoder:
    """An encoder of a table with a header. All outputs must have the same columns."""

    def __init__(
        self,
        uri: str,
        row: Callable[[Iterable[str]], bytes],
        value: Callable[[Term], str] | None = None,
        is_one_query: bool = False,
    ) -> None:
        """Initializes an encoder.

        Args:
            uri: The address of the sink, for messages.
            row: Encodes the cells of a row.
            value: Returns the text of a term in a cell; None: the term in N-Triples.
            is_one_query: Whether all outputs are answers of one query, so that there is no column ``rule``.
        """
        self._uri = uri
        self._is_one_query = is_one_query
        self._row = row
        self._value = value
        self._has_header = False
        self._columns: tuple[str, ...] | None = None
        """The columns of the header, if they are known."""

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._has_header = has_content
        self._columns = self._columns if has_content else None

    def write(self, output: Output) -> bytes:
        answer = answer_of(output)
        if isinstance(answer, Evaluated):
            return b""
        columns, values = _row_cells(answer, self._value)
        change = (output.change,) if output.change else ()
        columns = ("change", *columns) if change else columns
        if self._has_header and self._columns not in (None, columns):
            raise SinkError(
                f"`{self._uri}` cannot hold outputs with other columns than {', '.join(self._columns or ())}",
                hint="the format `ndjson` can",
            )
        head = b"" if self._has_header else self._header(columns, bool(change))
        self._has_header, self._columns = True, columns
        time = "" if output.time == ALWAYS else str(output.time)
        rule = () if self._is_one_query else (output.rule,)
        return head + self._row((time, *rule, *change, *values))

    def _header(self, columns: tuple[str, ...], has_change: bool) -> bytes:
        common, variables = common_columns(self._is_one_query, has_change), columns[has_change:]
        check_names(variables, common)
        return self._row((*common, *variables))

    def end(self) -> bytes:
        return b""

    def snapshot(self) -> Any:
        return self._columns

    def restore(self, state: Any) -> None:
        self._columns = None if state is None else tuple(state)
        self._has_header = state is not None


def _row_cells(answer: Answer, value: Callable[[Term], str] | None) -> tuple[tuple[str, ...], Iterable[str]]:
    """Returns the columns of an answer, and its cells: lossless terms in N-Triples, or what `value` makes of them.

    The relation of an atom is the predicate, its arguments are the object.
    """
    if isinstance(answer, Boolean):
        return ("boolean",), (str(answer),)
    text = value or str
    columns: tuple[str, ...]
    if isinstance(answer, Triple | Quad):
        columns = FACT_COLUMNS if isinstance(answer, Triple) else (*FACT_COLUMNS, "graph")
        return columns, answer if value is None else map(text, answer)
    if isinstance(answer, Atom):
        return FACT_COLUMNS, ("", text(answer.relation), " ".join(map(text, answer.arguments)))
    columns, values = cells(answer)
    return columns, ("" if term is None else text(term) for term in values)


class EvaluationEncoder:
    """An encoder that writes a line for each evaluation. Further arguments are those of `EvaluationCollector`."""

    def __init__(
        self,
        line: Callable[[Evaluation], bytes],
        query_of: Callable[[Output], str] = query_of,
        ordered: Collection[str] = (),
    ) -> None:
        self._line = line
        self._new_collector = partial(EvaluationCollector, query_of, ordered)
        self._collector = self._new_collector()

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._collector = self._new_collector()

    def write(self, output: Output) -> bytes:
        return b"".join(map(self._line, self._collector.add(output)))

    def end(self) -> bytes:
        return b"".join(map(self._line, self._collector.end()))

    def snapshot(self) -> Any:
        return self._collector.snapshot()

    def restore(self, state: Any) -> None:
        self._collector.restore(state)


class DocumentEncoder(EvaluationEncoder):
    """An encoder of a document with one evaluation. The first output of a second one is an error."""

    def __init__(self, uri: str, format: str, document: Callable[[Evaluation], bytes]) -> None:
        super().__init__(document)
        self._uri = uri
        self._format = format
        self._evaluation_key: tuple[int, str] | None = None
        self._full = False

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        super().begin(has_content, is_terminal)
        self._evaluation_key, self._full = None, has_content

    def write(self, output: Output) -> bytes:
        if self._full or self._evaluation_key not in (None, (output.time, output.rule)):
            raise SinkError(
                f"`{self._uri}` holds one evaluation, as a document of the format `{self._format}` does",
                hint=f"a document for each: `--sink 'results-{{time}}-{{query}}.{self._format}'`; "
                "a line for each: the format `ndjson-evaluations`; a row with its time for each answer: `csv`",
            )
        self._evaluation_key = output.time, output.rule
        return self._note_document(super().write(output))

    def end(self) -> bytes:
        return self._note_document(super().end())

    def snapshot(self) -> Any:
        return {"held": self._evaluation_key, "full": self._full, "outputs": super().snapshot()}

    def restore(self, state: Any) -> None:
        super().restore(state["outputs"])
        self._evaluation_key = state["held"] and tuple(state["held"])
        self._full = state["full"]

    def _note_document(self, document: bytes) -> bytes:
        self._full = self._full or bool(document)
        return document


def comment_line(output: Output, time: str = "") -> bytes:
    """Returns the line of an output that is no triple. An atom has no RDF serialisation, so it is a comment.

    Args:
        output: The output.
        time: Its time as text, with the space after it, or ``""``.

    Raises:
        SinkError: The output is the answer of a query, a quad, or one of `changes`.
    """
    check_unchanging(output)
    answer = answer_of(output)
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
