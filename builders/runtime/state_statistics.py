"""Statistics of data by the rows of the patterns of a plan.

They are those of the rows that a dataflow has stored for its joins, as they are now, or of the rows of a sample of what
comes next. In a window these are the triples in it. So the statistics follow the stream, and counting them costs
nothing between two looks at the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from random import Random
from typing import NamedTuple

from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.replanning import stored_inputs
from squall.builders.runtime.zset import Delta
from squall.plan import Plan
from squall.plan.cardinality import MAX_FREQUENT_VALUES, Counts, DefaultCounts, Statistics, functional, selectivity
from squall.plan.operators import Cell, Distinct, Filter, Match, Project
from squall.rdf import Term

SAMPLED_ROWS = 2000
"""The number of rows of each pattern that are looked at."""


class _Pattern(NamedTuple):
    """A pattern whose rows are stored.

    Attributes:
        predicate: Its predicate.
        subject, value: Its other cells.
        columns: For each column of the stored rows the number that the cells have for it.
        share: The estimated share of the matching triples that filters let through.
    """

    predicate: Term
    subject: Cell
    value: Cell
    columns: tuple[int | None, ...]
    share: float


class _Column(NamedTuple):
    """The estimated number of distinct values of a column, the most frequent ones, and the pairs of equal ones."""

    distinct: float
    values: tuple[tuple[Term, float], ...]
    pairs: float


class Sample(NamedTuple):
    """A sample of the rows of a node that are valid together.

    Attributes:
        rows: The rows.
        scale: The number of rows for which one of them stands.
    """

    rows: Sequence[Delta]
    scale: float


def state_statistics(dataflow: Dataflow, watermark: int) -> Statistics:
    """Returns the statistics of the triples that are valid at the watermark (integer ms), or of those that are valid
    later if there are none.

    What is valid together is joined. Rows of a window that has not been evaluated yet meet none of those of the one
    before, so that counting both would make joins look more expensive than they are.

    Predicates whose triples are not stored have the counts that are assumed without statistics. What rules derive is
    counted with the rest.
    """
    stored = {
        id: _sample(list(operator.stored(port)), watermark) for id, (operator, port) in stored_inputs(dataflow).items()
    }
    return statistics_of(dataflow.plan, dict(_together(stored, watermark)))


def statistics_of(plan: Plan, samples: Mapping[str, Sample], fallback: Statistics | None = None) -> Statistics:
    """Returns the statistics of the triples of which a plan has rows.

    Args:
        plan: The plan.
        samples: Samples of the rows of nodes, by the node. What is no row of a single pattern is left out.
        fallback: The statistics of predicates without samples. None: those that are assumed without statistics.
    """
    source = DefaultCounts(functional(plan)) if fallback is None else fallback
    counts = {predicate: source.counts(predicate) for predicate in _predicates(plan)}
    of_objects: dict[Term, dict[Term, float]] = {}
    for id, sample in samples.items():
        pattern = _pattern(plan, id)
        if pattern is None:
            continue
        live = len(sample.rows) * sample.scale
        if isinstance(pattern.subject, int) and isinstance(pattern.value, int | None):
            counts[pattern.predicate] = _counts(pattern, sample.rows, live)
        elif isinstance(pattern.subject, int | None) and isinstance(pattern.value, str):
            of_objects.setdefault(pattern.predicate, {})[pattern.value] = live / pattern.share
    for predicate, by_object in of_objects.items():
        counts[predicate] = _with_values(counts[predicate], by_object)
    statistics = Statistics(_total(counts), tuple(sorted(counts.items())), with_derived=True)
    return Statistics.of_data(statistics.data)  # the numbers as a checkpoint reads them


def _together(stored: Mapping[str, Sample], watermark: int) -> Iterator[tuple[str, Sample]]:
    """Yields each node, and a sample of its rows that are valid at the watermark; of all rows if there are none."""
    has_present = any(row[-3] <= watermark for sample in stored.values() for row in sample.rows)
    for id, sample in stored.items():
        yield id, sample._replace(rows=[row for row in sample.rows if row[-3] <= watermark or not has_present])


def _total(counts: Mapping[Term, Counts]) -> Counts:
    """Returns the counts of all triples together, without those of relations."""
    triples = [count for predicate, count in counts.items() if predicate[0] != "@"]
    return Counts(*(sum(getattr(count, name) for count in triples) for name in ("triples", "subjects", "objects")))


def _sample(rows: Sequence[Delta], watermark: int) -> Sample:
    """Returns a sample of the rows that are valid at the watermark or later."""
    sampled = rows if len(rows) <= SAMPLED_ROWS else Random(0).sample(rows, SAMPLED_ROWS)
    return Sample([row for row in sampled if row[-2] > watermark], len(rows) / max(len(sampled), 1))


def _predicates(plan: Plan) -> set[Term]:
    """Returns the predicates and relations that the patterns of a plan name."""
    cells = (
        cell for node in plan.nodes if isinstance(node.op, Match) for cell in (node.op.cells[0], node.op.cells[-2])
    )
    return {cell for cell in cells if isinstance(cell, str)}


def _pattern(plan: Plan, id: str) -> _Pattern | None:
    """Returns the pattern of which a node outputs the rows, if it has a predicate."""
    node, share = plan.by_id[id], 1.0
    columns: list[int | None] = [*range(plan.widths[id])]
    while not isinstance(node.op, Match):
        if isinstance(node.op, Project):
            projected = node.op.columns
            columns = [None if column is None else projected[column] for column in columns]
        elif isinstance(node.op, Filter):
            share *= selectivity(node.op.expression)
        elif not isinstance(node.op, Distinct) or len(node.inputs) > 1:
            return None
        node = plan.by_id[node.inputs[0].node]
    match node.op.cells:
        case (subject, str(predicate), value):
            return _Pattern(predicate, subject, value, tuple(columns), share)
        case _:
            return None


def _counts(pattern: _Pattern, sample: Sequence[Delta], live: float) -> Counts:
    """Returns the counts of a predicate by a sample of the rows of a pattern that leaves the ends of triples open."""
    triples = live / pattern.share
    ends = [_column(pattern, cell, sample, triples) for cell in (pattern.subject, pattern.value)]
    subjects, objects = (end or _Column(triples, (), 0) for end in ends)
    return Counts(triples, subjects.distinct, objects.distinct, objects.values, subjects.pairs, objects.pairs)


def _column(pattern: _Pattern, cell: Cell, sample: Sequence[Delta], rows: float) -> _Column | None:
    """Returns what a sample says of the column of a cell, or None if the rows do not have it."""
    if not sample or not isinstance(cell, int) or cell not in pattern.columns:
        return None
    place = pattern.columns.index(cell)
    sizes = Counter(row[place] for row in sample)
    scale = rows / len(sample)
    # The guaranteed-error estimator (Charikar, Chaudhuri, Motwani and Narasayya, "Towards estimation error guarantees
    # for distinct values", PODS 2000): values that came once stand for many others.
    single = sum(size == 1 for size in sizes.values())
    distinct = sqrt(max(scale, 1)) * single + len(sizes) - single
    frequent = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:MAX_FREQUENT_VALUES]
    equal = sum(size * (size - 1) for size in sizes.values())
    return _Column(distinct, tuple((value, size * scale) for value, size in frequent), equal * scale**2 + rows)


def _with_values(counts: Counts, by_object: Mapping[Term, float]) -> Counts:
    """Returns counts in which some objects have so many triples."""
    values = tuple(sorted(({**dict(counts.values), **by_object}).items()))
    other_triples = max(counts.triples - sum(dict(counts.values).get(value, 0.0) for value in by_object), 0.0)
    return replace(counts, triples=max(other_triples, sum(by_object.values())), values=values)
