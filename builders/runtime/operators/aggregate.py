"""Aggregates of a group: those of the registry of functions, maintained incrementally."""

from __future__ import annotations

from squall.functions import lookup_aggregate
from squall.functions.aggregation import Accumulator
from squall.plan.operators import Aggregate


def accumulator(aggregate: Aggregate) -> Accumulator:
    """Returns an empty accumulator for an aggregate.

    Raises PluginError if there is no such aggregate, and BuilderError if it counts distinct solutions: it receives
    values, not solutions.
    """
    return lookup_aggregate(aggregate.kind).accumulator(
        of_solutions=aggregate.expression is None, distinct=aggregate.distinct, separator=aggregate.separator
    )
