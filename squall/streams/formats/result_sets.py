"""The statements of evaluations: facts as they are, and the answers of queries as result sets in RDF.

Source: the vocabulary of result sets of the W3C's RDF Data Access working group,
http://www.w3.org/2001/sw/DataAccess/tests/result-set#
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any

from squall.contracts import Output
from squall.errors import SinkError
from squall.functions.values import date_time
from squall.rdf import ALWAYS, Boolean, Evaluated, Quad, Solution, Term, Triple, iri, literal
from squall.streams.formats import Statement
from squall.streams.formats.evaluations import (
    Evaluation,
    EvaluationCollector,
    answer_of,
    evaluation_iri,
    time_text,
)

_RESULTS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_RESULT_SET, _RESULT_VARIABLE, _SOLUTION, _BINDING, _VARIABLE, _VALUE, _BOOLEAN, _INDEX = (
    iri(f"{_RESULTS}{name}")
    for name in ("ResultSet", "resultVariable", "solution", "binding", "variable", "value", "boolean", "index")
)
_TYPE = iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
GENERATED = iri("http://www.w3.org/ns/prov#generatedAtTime")
_XSD = "http://www.w3.org/2001/XMLSchema#"


def statements_of(evaluation: Evaluation) -> list[Statement]:
    """Returns the triples and quads of an evaluation; those of a result set if it is the answer of a query.

    Raises:
        SinkError: It has an atom, or facts beside the answer of a query.
    """
    if evaluation.is_answer:
        return list(_result_set(evaluation))
    statements: list[Statement] = []
    for row in evaluation.bindings:
        match row:
            case {"subject": s, "predicate": p, "object": o, "graph": g} if len(row) == 4:
                statements.append(Quad(s, p, o, g))
            case {"subject": s, "predicate": p, "object": o} if len(row) == 3:
                statements.append(Triple(s, p, o))
            case _:
                raise _not_only_statements(evaluation)
    return statements


def logged_statements(evaluation: Evaluation, retracting: Collection[str]) -> tuple[list[Statement], list[Statement]]:
    """Returns the triples and quads that an evaluation deletes, and those that it inserts.

    Args:
        evaluation: The evaluation.
        retracting: The rules and queries whose outputs have ceased to hold (``dstream``): these are deleted. Those of
            other queries are inserted, unless the outputs themselves say what they do (``changes``).

    Raises:
        SinkError: The evaluation has other things than triples and quads.
    """
    if evaluation.is_answer:
        raise _not_only_statements(evaluation)
    statements = statements_of(evaluation)
    default = "delete" if evaluation.query in retracting else "insert"
    changes = evaluation.changes or [default] * len(statements)
    deleted, inserted = (
        [statement for statement, change in zip(statements, changes, strict=True) if change == kind]
        for kind in ("delete", "insert")
    )
    return deleted, inserted


def _not_only_statements(evaluation: Evaluation) -> SinkError:
    hint = "the format `ndjson-evaluations` holds all"
    what = f"`{evaluation.query}`" if evaluation.query else "the program"
    return SinkError(f"{what} makes other things than triples and quads", hint=hint)


def _result_set(evaluation: Evaluation) -> Iterator[Triple]:
    """Yields the statements of a result set, whose IRI is that of the evaluation.

    The labels of its blank nodes depend on the query, the time and the solutions alone. Solutions without an order are
    sorted by their text, so that equal answers have equal result sets.
    """
    name = evaluation_iri(evaluation.time, evaluation.query)
    yield Triple(name, _TYPE, _RESULT_SET)
    if evaluation.time != ALWAYS:
        yield Triple(name, GENERATED, date_time(evaluation.time))
    if evaluation.boolean is not None:
        yield Triple(name, _BOOLEAN, literal(str(evaluation.boolean).lower(), f"{_XSD}boolean"))
    for variable in evaluation.names:
        yield Triple(name, _RESULT_VARIABLE, literal(variable))
    key = f"{time_text(evaluation.time)} {evaluation.query}"
    label = f"_:rs{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"
    rows = [
        [(variable, row[variable]) for variable in evaluation.names if variable in row] for row in evaluation.bindings
    ]
    for number, row in enumerate(rows if evaluation.is_ordered else sorted(rows), 1):
        solution = Term(f"{label}s{number}")
        yield Triple(name, _SOLUTION, solution)
        if evaluation.is_ordered:
            yield Triple(solution, _INDEX, literal(str(number), f"{_XSD}integer"))
        for place, (variable, value) in enumerate(row, 1):
            binding = Term(f"{solution}b{place}")
            yield Triple(solution, _BINDING, binding)
            yield Triple(binding, _VARIABLE, literal(variable))
            yield Triple(binding, _VALUE, value)


class ResultSets:
    """Replaces the answers of queries among outputs by the statements of result sets, one for each evaluation.

    Attributes:
        is_open: Whether there are answers of an evaluation that may not be complete.
    """

    def __init__(self, ordered: Collection[str] = ()) -> None:
        self._ordered = ordered
        self._answers = EvaluationCollector(ordered=ordered)
        self.is_open = False

    def add(self, output: Output) -> list[list[Output]]:
        """Adds an output. Returns the outputs of facts that are complete then: of each result set together, and the
        output itself if it is a fact."""
        evaluations = self._answers.advance(output.time)
        answer = answer_of(output)
        if isinstance(answer, Evaluated):
            is_answer = bool(answer.names) or output.rule in self._answers
        else:
            is_answer = isinstance(answer, Solution | Boolean)
        evaluations += self._answers.add(output) if is_answer else ()
        self.is_open = bool(self._answers)
        return [*map(_outputs_of, evaluations), *([] if is_answer else [[output]])]

    def end(self) -> list[list[Output]]:
        """Returns the outputs of result sets that are not known to be complete."""
        self.is_open = False
        return list(map(_outputs_of, self._answers.end()))

    def snapshot(self) -> Any:
        """Returns the buffered answers, as a JSON value."""
        return self._answers.snapshot()

    def restore(self, state: Any) -> None:
        """Restores the answers of a snapshot; None if nothing was buffered."""
        self._answers = EvaluationCollector(ordered=self._ordered)
        self._answers.restore(state or ())
        self.is_open = bool(self._answers)


def _outputs_of(evaluation: Evaluation) -> list[Output]:
    return [Output(statement, evaluation.time, evaluation.query) for statement in statements_of(evaluation)]
