"""The output of queries: the R2S operator and the report policy by their registration and windows."""

from __future__ import annotations

from typing import NamedTuple

from squall.lexers.sparql import tree as q
from squall.model import CLOSE, Report
from squall.translators.sparql.datasets import clauses, dataset
from squall.translators.sparql.state import Notes

CHANGE = Report("change")


class StatementOutput(NamedTuple):
    """The output specification of a statement.

    Attributes:
        output: The R2S operator.
        report: The report policy.
        is_stream: Whether the output is a derived stream that others may read.
    """

    output: str
    report: Report
    is_stream: bool


def output_of(statement: q.Statement) -> StatementOutput:
    """Returns the output specification of a query.

    One with a pattern over time has RSTREAM: matches are read when they end, at the only instant at which they hold.
    Others may state it (RSP-QL, SPARQLStream). CQELS-QL has ISTREAM. Otherwise a query that is evaluated at steps or
    periods has RSTREAM, and one with an order has RSTREAM whenever its answer changes. The rest (C-SPARQL without a
    step, SPARQL) has ISTREAM.
    """
    registration = statement.registration
    streams = registration is not None and registration.kind not in ("QUERY", "CHANGES")
    is_stream = streams and isinstance(statement.body, q.ConstructQuery | q.DescribeQuery)
    report = CLOSE if registration is None or registration.period is None else Report("periodic", registration.period)
    if q.time_patterns(statement.body):
        return StatementOutput("rstream", report, is_stream)
    if registration is not None and registration.kind in ("ISTREAM", "DSTREAM", "RSTREAM", "CHANGES"):
        return StatementOutput(registration.kind.lower(), report, is_stream)
    if q.stream_windows(statement.body):
        return StatementOutput("istream", report, is_stream)
    is_stepped = dataset(clauses(statement), Notes()).is_stepped
    if is_stepped or report != CLOSE:
        return StatementOutput("rstream", report, is_stream)
    return (
        StatementOutput("rstream", CHANGE, is_stream)
        if _is_ordered(statement)
        else StatementOutput("istream", CLOSE, is_stream)
    )


def check_changes(statement: q.Statement, notes: Notes) -> None:
    """Refuses the changes of a derived stream, which has no deletions (decision 101)."""
    registration = statement.registration
    if registration is None or registration.kind != "CHANGES" or not registration.name:
        return
    if isinstance(statement.body, q.ConstructQuery | q.DescribeQuery):
        hint = "leave the registration out, `CONSTRUCT CHANGES { ... }`; or name what the stream brings, `ISTREAM`"
        notes.fail("a stream that others may read has no deletions, as `CHANGES` has", registration.origin, hint)


def _is_ordered(statement: q.Statement) -> bool:
    body = statement.body
    return isinstance(body, q.SelectQuery) and bool(body.modifiers.order)
