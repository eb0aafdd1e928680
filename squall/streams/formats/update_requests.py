"""Outputs as SPARQL updates: a request for each evaluation, which a store applies to have the answer.

A request deletes what has ceased to hold, and then inserts what has become true (``DELETE DATA``, ``INSERT DATA``:
SPARQL 1.1 Update, section 3.1). Requests one after another are one request, so that a file of them can be applied as
well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from squall.errors import SinkError
from squall.rdf import Quad, is_blank
from squall.streams.formats import Statement
from squall.streams.formats.evaluations import Evaluation, time_text
from squall.streams.formats.result_sets import logged_statements


def update_request(evaluation: Evaluation, retracting: Collection[str] = ()) -> bytes:
    """Returns an evaluation as a SPARQL update, with its time in a comment; ``b""`` if it is empty.

    Args:
        evaluation: The evaluation.
        retracting: As for `squall.streams.formats.result_sets.logged_statements`.

    Raises:
        SinkError: The evaluation has other things than triples and quads, or a blank node: ``DELETE DATA`` has none
            (section 3.1.2), and in ``INSERT DATA`` each request would create another one (section 3.1.1).
    """
    deleted, inserted = logged_statements(evaluation, retracting)
    operations = [*_operation("DELETE", deleted), *_operation("INSERT", inserted)]
    return "".join((f"# {time_text(evaluation.time)}\n", *operations)).encode() if operations else b""


def _operation(verb: str, statements: Iterable[Statement]) -> Iterator[str]:
    """Yields the operation on some statements, if there are any."""
    by_graph = sorted(statements, key=_graph)
    if by_graph:
        yield f"{verb} DATA {{\n{''.join(_blocks(by_graph))}}} ;\n"


def _blocks(statements: Iterable[Statement]) -> Iterator[str]:
    for graph, group in groupby(statements, key=_graph):
        triples = "".join(map(_line, group))
        yield f"GRAPH {graph} {{\n{triples}}}\n" if graph else triples


def _graph(statement: Statement) -> str:
    return statement.graph if isinstance(statement, Quad) else ""


def _line(statement: Statement) -> str:
    if any(map(is_blank, statement)):
        hint = "the program can give it an IRI (`IRI`, `UUID`); `rdfp` and `ndjson` keep the labels of blank nodes"
        raise SinkError(f"an update of a store cannot name the blank node of `{statement}`", hint=hint)
    subject, predicate, object = statement[:3]
    return f"{subject} {predicate} {object} .\n"
