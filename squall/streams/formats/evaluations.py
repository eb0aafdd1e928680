"""Evaluations: the outputs of one query or rule at one instant, gathered from single outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import (
    ALWAYS,
    XSD_STRING,
    Atom,
    Boolean,
    Evaluated,
    Fact,
    Quad,
    Solution,
    Term,
    Triple,
    iri,
    iri_text,
    is_blank,
    is_iri,
    parts,
    term,
)
from squall.streams.formats.event_json import as_json, output_of

Answer = Fact | Quad | Solution | Boolean
Answered = Answer | Evaluated


def answer_of(output: Output) -> Answered:
    """Returns the fact, answer or mark that an output carries."""
    return output.fact


@dataclass(frozen=True)
class Evaluation:
    """The answer of a query or rule at one time.

    Attributes:
        time: Integer ms, or `squall.rdf.ALWAYS`.
        query: The name of the query or rule.
        names: The variables, bound or not.
        bindings: The values of the bound variables, for each solution. A triple is a solution with ``subject``,
            ``predicate`` and ``object``; an atom one with ``relation``, ``argument1`` ...
        boolean: The answer of an ASK query, None for others.
        changes: For each of the bindings ``insert`` or ``delete``, if the R2S operator is `changes`; then a boolean is
            a binding of ``boolean``.
        is_answer: Whether it is the answer of a SELECT or an ASK, and not facts.
        is_ordered: Whether the solutions have an order.
    """

    time: int
    query: str
    names: tuple[str, ...] = ()
    bindings: tuple[dict[str, Term], ...] = ()
    boolean: bool | None = None
    changes: tuple[str, ...] = ()
    is_answer: bool = False
    is_ordered: bool = False


class Declarations(NamedTuple):
    """What a program declares of its outputs, for formats that write it.

    Attributes:
        retracting: The rules and queries whose outputs have ceased to hold (``dstream``).
        ordered: The queries whose solutions are output in an order at each instant (``ORDER BY``, ``rstream``).
        columns: The columns of all outputs in a table, if they are the same: ``change`` for `changes`, and the
            variables. ``()``: they are not known.
        is_one_query: Whether all outputs are answers of one query, so that a table needs no column ``rule``.
    """

    retracting: Collection[str] = ()
    ordered: Collection[str] = ()
    columns: tuple[str, ...] = ()
    is_one_query: bool = False


NO_DECLARATIONS = Declarations()


def check_unchanging(output: Output) -> None:
    """Raises SinkError if an output says whether it begins or ends to hold, for formats that cannot say it."""
    if output.change:
        raise SinkError(CHANGES_PROBLEM, hint=CHANGES_HINT)


CHANGES_PROBLEM = "the format does not say whether an output is inserted or deleted (`changes`)"
CHANGES_HINT = "write facts as a log of changes, `rdfp` or `ru`; or each output as a line: `ndjson`, `csv` or `tsv`"


def query_of(output: Output) -> str:
    """Returns the query to whose evaluation an output belongs. Raises SinkError for one of `changes`."""
    check_unchanging(output)
    return output.rule


def query_of_change(output: Output) -> str:
    """Returns the query to whose evaluation an output belongs, be it one of `changes` or not."""
    return output.rule


def query_in_log(output: Output) -> str:
    """Returns the query to whose evaluation an output belongs in a log: all changes of an instant are one."""
    return "" if output.change else output.rule


class EvaluationCollector:
    """Gathers outputs, in the order of time, to evaluations.

    An evaluation is complete when there is an output of a later time, or an `Evaluated` of the query.

    Args:
        query_of: Returns the query to whose evaluation an output belongs.
        ordered: The queries whose solutions have an order.
    """

    def __init__(self, query_of: Callable[[Output], str] = query_of, ordered: Collection[str] = ()) -> None:
        self._query_of = query_of
        self._ordered = ordered
        self._time = ALWAYS
        self._outputs: dict[str, list[Output]] = {}

    def add(self, output: Output) -> list[Evaluation]:
        """Adds an output, and returns the evaluations that are complete then."""
        evaluations = self.advance(output.time)
        answer = answer_of(output)
        if isinstance(answer, Evaluated):
            evaluations.append(self._evaluation(output.rule, self._outputs.pop(output.rule, ()), answer.names))
        else:
            self._outputs.setdefault(self._query_of(output), []).append(output)
        return evaluations

    def advance(self, time: int) -> list[Evaluation]:
        """Removes and returns the evaluations that are complete since there is an output of a time (integer ms)."""
        evaluations = self.end() if time != self._time else []
        self._time = time
        return evaluations

    def __contains__(self, query: str) -> bool:
        """Returns whether there is an incomplete evaluation of a query."""
        return query in self._outputs

    def __len__(self) -> int:
        """Returns the number of incomplete evaluations."""
        return len(self._outputs)

    def snapshot(self) -> list[Any]:
        """Returns the outputs of incomplete evaluations, as a JSON value."""
        return [as_json(output) for outputs in self._outputs.values() for output in outputs]

    def restore(self, state: Sequence[Any]) -> None:
        """Restores the outputs of a snapshot."""
        for output in map(output_of, state):
            self.add(output)

    def end(self) -> list[Evaluation]:
        """Removes and returns the evaluations that are not known to be complete."""
        evaluations = [self._evaluation(query, outputs) for query, outputs in self._outputs.items()]
        self._outputs = {}
        return evaluations

    def _evaluation(self, query: str, outputs: Sequence[Output], names: Iterable[str] = ()) -> Evaluation:
        answers = [answer for answer in map(answer_of, outputs) if not isinstance(answer, Evaluated)]
        changes = [output.change for output in outputs if output.change]
        return evaluation(self._time, query, answers, names, changes, query in self._ordered)


def evaluation(
    time: int,
    query: str,
    answers: Iterable[Answer],
    names: Iterable[str] = (),
    changes: Sequence[str] = (),
    is_ordered: bool = False,
) -> Evaluation:
    """Returns the evaluation with some answers.

    Args:
        time: Integer ms, or `squall.rdf.ALWAYS`.
        query: The name of the query or rule.
        answers: The answers.
        names: Its first variables. Others of the answers follow.
        changes: For each answer ``insert`` or ``delete``, or nothing at all.
        is_ordered: Whether the solutions have an order.
    """
    variables = dict.fromkeys(names)
    bindings: list[dict[str, Term]] = []
    boolean: bool | None = None
    is_answer = bool(variables)
    for answer in answers:
        is_answer = is_answer or isinstance(answer, Solution | Boolean)
        if isinstance(answer, Boolean) and not changes:
            boolean = answer.value
            continue
        columns, values = cells(answer)
        variables.update(dict.fromkeys(columns))
        bindings.append({name: value for name, value in zip(columns, values, strict=True) if value is not None})
    return Evaluation(time, query, tuple(variables), tuple(bindings), boolean, tuple(changes), is_answer, is_ordered)


def cells(answer: Answer) -> tuple[tuple[str, ...], Sequence[Term | None]]:
    """Returns the columns of an answer in a table, and its values."""
    match answer:
        case Solution(names=names, values=values):
            return names, values
        case Triple():
            return ("subject", "predicate", "object"), answer
        case Quad():
            return ("subject", "predicate", "object", "graph"), answer
        case Boolean():
            return ("boolean",), (Term(str(answer)),)
        case Atom(relation=relation, arguments=arguments):
            return ("relation", *(f"argument{number + 1}" for number in range(len(arguments)))), (relation, *arguments)


def check_names(names: tuple[str, ...], common: tuple[str, ...]) -> None:
    """Raises SinkError if a variable has the name of one of the columns that all outputs have."""
    for name in common:
        if name in names:
            hint = f"give it another name: `SELECT (?{name} AS ?{name}Value)`"
            raise SinkError(f"the variable `?{name}` has the name of a column of all outputs", hint=hint)


def common_columns(is_one_query: bool, has_change: bool) -> tuple[str, ...]:
    """Returns the columns of all outputs in a table. No variable may have the name of one of them."""
    return ("time", *(() if is_one_query else ("rule",)), *(("change",) if has_change else ()))


def time_text(time: int) -> str:
    """Formats a time as in timed N-Triples: integer ms, or ``-infinity``."""
    return "-infinity" if time == ALWAYS else str(time)


def evaluation_iri(time: int, query: str) -> Term:
    """Returns the IRI of an evaluation in graphs and documents, which has the query's name and the time."""
    return iri(f"urn:x-squall:evaluation:{quote(query, safe='')}:{time_text(time)}")


@lru_cache(maxsize=4096)
def stream_iri(query: str) -> Term:
    """Returns the IRI of the stream of the outputs of a query or rule: its name, if that is an absolute IRI."""
    try:
        return term(iri(query))
    except ValueError:
        return iri(f"urn:x-squall:rule:{quote(query, safe='')}")


def described(value: Term) -> tuple[str, str, dict[str, str]]:
    """Returns the kind and text of a term, and the datatype or language of a literal, for JSON and XML."""
    if is_iri(value):
        return "uri", iri_text(value), {}
    if is_blank(value):
        return "bnode", value[2:], {}
    lexical, datatype, language = parts(value)
    if language:
        return "literal", lexical, {"xml:lang": language}
    return "literal", lexical, {} if datatype == XSD_STRING else {"datatype": datatype}


def link_of(evaluation: Evaluation) -> str:
    """Returns the link in the head of a document, which says the time of the evaluation."""
    return iri_text(evaluation_iri(evaluation.time, evaluation.query))
