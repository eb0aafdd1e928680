"""How queries are told: the R2S operator and the report policy that their registration and windows ask for."""

from __future__ import annotations

from typing import NamedTuple

from squall.lexers.sparql import tree as q
from squall.model import CLOSE, Report
from squall.translators.sparql.datasets import clauses, dataset
from squall.translators.sparql.state import Notes

CHANGE = Report("change")


class Told(NamedTuple):
    """The R2S operator, when the answer is evaluated, and whether what is told is a stream that others may read."""

    output: str
    report: Report
    is_stream: bool


def told(statement: q.Statement) -> Told:
    """How a query is told: as it says (RSP-QL, SPARQLStream); what is new (CQELS-QL); else whole, if it is evaluated at
    steps or periods, or has an order, then whenever it changes; else what is new (C-SPARQL without a step, SPARQL)."""
    registration = statement.registration
    streams = registration is not None and registration.kind != "QUERY"
    is_stream = streams and isinstance(statement.body, q.ConstructQuery | q.DescribeQuery)
    report = CLOSE if registration is None or registration.period is None else Report("periodic", registration.period)
    if registration is not None and registration.kind in ("ISTREAM", "DSTREAM", "RSTREAM"):
        return Told(registration.kind.lower(), report, is_stream)
    if q.stream_windows(statement.body):
        return Told("istream", report, is_stream)
    is_stepped = dataset(clauses(statement), Notes()).is_stepped
    if is_stepped or report != CLOSE:
        return Told("rstream", report, is_stream)
    return Told("rstream", CHANGE, is_stream) if _is_ordered(statement) else Told("istream", CLOSE, is_stream)


def _is_ordered(statement: q.Statement) -> bool:
    body = statement.body
    return isinstance(body, q.SelectQuery) and bool(body.modifiers.order)
