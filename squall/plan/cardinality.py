"""Cardinality estimation: statistics of data, and how many rows the nodes of a plan output for such data.

The estimates follow Selinger et al., "Access path selection in a relational database management system", SIGMOD 1979.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Protocol

from squall.errors import UsageError
from squall.model import ARRIVAL, GRAPH
from squall.plan import Plan
from squall.plan import operators as ops
from squall.rdf import RDF, Atom, Event, Fact, Term, iri
from squall.rdf.row_tags import relation_tag, relation_tag_of

MAX_FREQUENT_VALUES = 100
"""Statistics count each of this many most frequent objects of a predicate."""
FUNCTIONAL = iri("http://www.w3.org/2002/07/owl#FunctionalProperty")
TYPE = iri(RDF + "type")


@dataclass(frozen=True)
class Counts:
    """The number of triples of a predicate, and of its distinct subjects and objects.

    Attributes:
        values: The most frequent objects, each with the number of its triples.
    """

    triples: float
    subjects: float
    objects: float
    values: tuple[tuple[Term, float], ...] = ()

    def of_object(self, value: Term) -> float:
        """Returns the number of triples with an object: as counted, or the average of the other objects."""
        counted = dict(self.values)
        if value in counted:
            return counted[value]
        return max(self.triples - sum(counted.values()), 0) / max(self.objects - len(counted), 1)


NO_COUNTS = Counts(0, 0, 0)


class Source(Protocol):
    """What estimates are computed from."""

    def counts(self, predicate: Term | None) -> Counts:
        """Returns the counts of a predicate (an atom's relation, tagged ``@``), or of all triples for None."""
        ...


@dataclass(frozen=True)
class Statistics:
    """Counts of a sample of data: of all triples, and of each predicate.

    For an atom's relation (tagged ``@``) they are the number of atoms, and of distinct first and last arguments.
    """

    all: Counts = NO_COUNTS
    predicates: tuple[tuple[Term, Counts], ...] = ()

    @classmethod
    def of(cls, events: Iterable[Event]) -> Statistics:
        """Counts the distinct facts of events."""
        rows = {_row(fact) for event in events for fact in event.facts}
        by_predicate: dict[Term, list[tuple[Term, Term]]] = {}
        for predicate, subject, value in rows:
            by_predicate.setdefault(predicate, []).append((subject, value))
        triples = [(subject, value) for predicate, subject, value in rows if predicate[0] != "@"]
        return cls(
            _count(triples, 0),
            tuple((predicate_name, _count(by_predicate[predicate_name])) for predicate_name in sorted(by_predicate)),
        )

    def counts(self, predicate: Term | None) -> Counts:
        return self.all if predicate is None else self._by_predicate.get(predicate, NO_COUNTS)

    @cached_property
    def _by_predicate(self) -> dict[Term, Counts]:
        return dict(self.predicates)

    def save(self, path: str | Path) -> None:
        """Writes the statistics as JSON."""
        Path(path).write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Statistics:
        """Loads statistics that `save` wrote. Raises UsageError if the file has none."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            predicates = tuple((Term(name), _load_counts(counts)) for name, counts in data["predicates"])
            return cls(_load_counts(data["all"]), predicates)
        except OSError as error:
            raise UsageError(f"the statistics `{path}` cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"`{path}` has no statistics: {error}", hint="`squall run --collect-statistics` writes them"
            ) from error


def _row(fact: Fact) -> tuple[Term, Term, Term]:
    """Returns the predicate or relation of a fact, and its two ends."""
    if isinstance(fact, Atom):
        ends = (fact.arguments[0], fact.arguments[-1]) if fact.arguments else (Term(""), Term(""))
        return (relation_tag(fact.relation), *ends)
    return fact.predicate, fact.subject, fact.object


def _count(pairs: Sequence[tuple[Term, Term]], max_values: int = MAX_FREQUENT_VALUES) -> Counts:
    values = Counter(value for _, value in pairs)
    frequent = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:max_values]
    return Counts(len(pairs), len({subject for subject, _ in pairs}), len(values), tuple(frequent))


def _load_counts(counts: Mapping[str, Any]) -> Counts:
    values = tuple((Term(value), float(count)) for value, count in counts["values"])
    return Counts(float(counts["triples"]), float(counts["subjects"]), float(counts["objects"]), values)


@dataclass(frozen=True)
class DefaultCounts:
    """The counts that are assumed for data without statistics.

    Constants make a pattern selective, objects more than subjects. ``rdf:type`` has many triples of few objects
    (heuristics 1 and 4 of Tsialiamanis et al., EDBT 2012).

    Attributes:
        functional: The predicates that have one object for each subject.
    """

    functional: frozenset[Term] = frozenset()

    def counts(self, predicate: Term | None) -> Counts:
        if predicate is None:
            return Counts(1_000_000, 100_000, 200_000)
        if predicate == TYPE:
            return Counts(100_000, 80_000, 4)
        return Counts(10_000, 10_000 if predicate in self.functional else 4_000, 5_000)


@dataclass(frozen=True)
class Profile:
    """The number of rows of a node, and of distinct values in each column."""

    rows: float
    distinct: tuple[float, ...] = ()

    def with_rows(self, rows: float) -> Profile:
        """Returns the profile of another number of rows with such values."""
        return Profile(rows, tuple(min(rows, count) for count in self.distinct))

    def of(self, columns: Iterable[int | None]) -> Profile:
        """Returns the profile of rows of these columns."""
        return Profile(self.rows, tuple(1.0 if column is None else self.distinct[column] for column in columns))


def estimates(plan: Plan, statistics: Statistics | None = None) -> dict[str, float]:
    """Estimates how many rows each node outputs, by id, if all data of the statistics held together.

    Without statistics the estimates are good only for comparison with each other.
    """
    return {id: profile.rows for id, profile in profiles(plan, statistics).items()}


def profiles(plan: Plan, statistics: Statistics | None = None, until: int | None = None) -> dict[str, Profile]:
    """Estimates the profile of each node, or of the first `until` of them.

    Facts that rules derive are counted from one iteration of the rules, recursive or not.
    """
    if statistics is None:
        return _iteration(plan, DefaultCounts(functional(plan)), {}, until)
    return _iteration(plan, statistics, _iteration(plan, statistics, _iteration(plan, statistics, {})), until)


def functional(plan: Plan) -> frozenset[Term]:
    """Returns the predicates that the program declares functional (``-> (p rdf:type owl:FunctionalProperty)``)."""
    emits = (node.op.template for node in plan.nodes if isinstance(node.op, ops.Construct))
    return frozenset(cells[0] for cells in emits if cells[1:] == (TYPE, FUNCTIONAL) and not isinstance(cells[0], int))


def _iteration(
    plan: Plan, source: Source, derived: Mapping[str, Profile], until: int | None = None
) -> dict[str, Profile]:
    profiles: dict[str, Profile] = {}
    for node in plan.nodes[:until]:
        if isinstance(node.op, ops.Match):
            derived_inputs = [edge.node for edge in node.inputs if not isinstance(plan.by_id[edge.node].op, ops.Scan)]
            profiles[node.id] = match_profile(
                node.op.cells, source, [derived[id] for id in derived_inputs if id in derived]
            )
        else:
            profiles[node.id] = _profile(node.op, [profiles[edge.node] for edge in node.inputs], source)
    return profiles


def _profile(op: ops.Operator, inputs: Sequence[Profile], source: Source) -> Profile:
    match op:
        case ops.Scan():
            counts = source.counts(None)
            return Profile(counts.triples, (counts.subjects, counts.triples, counts.objects, 1.0))
        case ops.Unit():
            return Profile(1.0)
        case ops.Match(cells=cells):
            return match_profile(cells, source)
        case ops.Join(on=on, keep=keep):
            return join_profile(inputs[0], inputs[1], on, keep)
        case ops.LeftJoin(on=on, keep=keep):
            pairs = join_profile(inputs[0], inputs[1], on, keep)
            return pairs.with_rows(max(pairs.rows, inputs[0].rows))
        case ops.AntiJoin(on=on):
            return inputs[0].with_rows(inputs[0].rows * max(1 - _matched_share(inputs[0], inputs[1], on), 0.1))
        case ops.ConstantFilter(column=column):
            return inputs[0].with_rows(inputs[0].rows / max(inputs[0].distinct[column], 1.0))
        case ops.Filter(expression=expression):
            return inputs[0].with_rows(inputs[0].rows * selectivity(expression))
        case ops.Extend():
            return Profile(inputs[0].rows, (*inputs[0].distinct, inputs[0].rows))
        case ops.TableFunction(results=results):
            return Profile(inputs[0].rows, (*inputs[0].distinct, *(inputs[0].rows,) * results))
        case ops.Project(columns=columns):
            return inputs[0].of(columns)
        case ops.Union():
            return union_profile(inputs)
        case ops.Distinct(by=by):
            bag = union_profile(inputs)
            return bag.with_rows(min(bag.rows, prod(bag.distinct[:by])))
        case ops.Group(keys=keys, aggregates=aggregates):
            key_profile = inputs[0].of(keys)
            rows = min(inputs[0].rows, prod(key_profile.distinct)) if keys else 1.0
            return Profile(rows, (*key_profile.distinct, *(rows,) * len(aggregates))).with_rows(rows)
        case ops.Slice(limit=limit, keys=keys):
            max_rows = inputs[0].rows if limit is None else limit * prod(inputs[0].of(keys).distinct)
            return inputs[0].with_rows(min(max_rows, inputs[0].rows))
        case ops.TransitiveClosure():
            left, right = inputs[0].distinct
            return Profile(min(left * right, inputs[0].rows * 10), (left, right))
        case ops.Update():
            return Profile(inputs[0].rows, (inputs[0].rows,) * 4)
        case ops.Construct(template=cells):
            cell_counts = (inputs[0].distinct[cell] if isinstance(cell, int) else 1.0 for cell in cells)
            return Profile(inputs[0].rows, (*cell_counts, 1.0))
        case ops.Select(columns=columns):
            return Profile(inputs[0].rows, (1.0, *inputs[0].of(columns).distinct, 1.0))
        case ops.DerivedStream():  # facts of the stream: of quads, the triples
            return union_profile([input.of(range(len(input.distinct) - 4, len(input.distinct))) for input in inputs])
        case ops.Sink():
            return Profile(sum(input.rows for input in inputs))


def match_profile(cells: Sequence[ops.Cell], source: Source, derived: Iterable[Profile] = ()) -> Profile:
    """Estimates the rows that a `Match` of these cells finds in data and in derived facts."""
    fitting = [
        _facts_profile(cells, source),
        *(_fitting_facts(cells, profile) for profile in derived if len(profile.distinct) == len(cells) + 1),
    ]
    return union_profile(fitting)


def union_profile(inputs: Sequence[Profile]) -> Profile:
    """Estimates the rows of all inputs. Their values are assumed to be distinct."""
    columns = zip(*(input.distinct for input in inputs), strict=True)
    return Profile(sum(input.rows for input in inputs), tuple(sum(counts) for counts in columns))


def _facts_profile(cells: Sequence[ops.Cell], source: Source) -> Profile:
    """Estimates the facts of a source that fit the cells."""
    tag = relation_tag_of(cells)
    if tag is None or tag in _PREFIXED_RELATIONS:
        return _prefixed_triples(cells, source)
    counts = source.counts(tag)
    ends = (1.0, counts.subjects, *(counts.triples for _ in cells[2:-1]), counts.objects)
    return _fitting_facts(cells, Profile(counts.triples, (*ends[: len(cells)], 1.0)))


_PREFIXED_RELATIONS = (relation_tag(GRAPH), relation_tag(ARRIVAL))
"""The relations of triples with their graph or arrival: these cells stand behind the name of the relation."""
_ASSUMED_GRAPHS = 10.0
"""The assumed number of streams and graphs."""


def _prefixed_triples(cells: Sequence[ops.Cell], source: Source) -> Profile:
    """Estimates triples, and triples with their graph or arrival, that fit the cells."""
    prefix, (subject, predicate, value) = cells[:-3], cells[-3:]
    counts = source.counts(predicate if isinstance(predicate, str) else None)
    constant = value.term if isinstance(value, ops.Value) else value
    rows = counts.of_object(constant) if isinstance(constant, str) else counts.triples
    predicates = 1.0 if isinstance(predicate, str) else max(counts.triples / 10_000, 1.0)
    prefix_counts = (1.0, _ASSUMED_GRAPHS, counts.triples)[: len(prefix)]
    profile = Profile(rows, (*prefix_counts, counts.subjects, predicates, counts.objects, 1.0)).with_rows(rows)
    return _fitting_facts((*prefix, subject, predicate, None if isinstance(constant, str) else value), profile)


def _fitting_facts(cells: Sequence[ops.Cell], facts: Profile) -> Profile:
    """Estimates the facts that fit the cells: constants are any of the values, and repeated columns agree by chance."""
    rows, columns = facts.rows, dict[int, float]()
    for cell, distinct in zip(cells, facts.distinct, strict=False):
        if isinstance(cell, int) and cell not in columns:
            columns[cell] = distinct
        elif cell is not None:
            rows /= max(distinct, columns.get(cell, 1.0) if isinstance(cell, int) else 1.0, 1.0)
    return Profile(rows, tuple(min(rows, columns[column]) for column in sorted(columns)))


def join_profile(left: Profile, right: Profile, on: Sequence[tuple[int, int]], keep: Sequence[int]) -> Profile:
    """Estimates the rows of a join: each value of the side with fewer values is assumed to be on the other side too."""
    agreeing = prod(
        max(left.distinct[left_column], right.distinct[right_column], 1.0) for left_column, right_column in on
    )
    distinct = [*left.distinct, *right.distinct]
    for left_column, right_column in on:
        distinct[left_column] = distinct[len(left.distinct) + right_column] = min(
            left.distinct[left_column], right.distinct[right_column]
        )
    rows = left.rows * right.rows / agreeing
    return Profile(rows, tuple(min(rows, distinct[column]) for column in keep))


def _matched_share(left: Profile, right: Profile, on: Sequence[tuple[int, int]]) -> float:
    """Estimates the share of left rows that agree with a right row."""
    if not on:
        return min(right.rows, 1.0)
    values = (prod(side.distinct[pair[number]] for pair in on) for number, side in enumerate((left, right)))
    lefts, rights = (max(min(count, side.rows), 1e-9) for count, side in zip(values, (left, right), strict=True))
    return min(rights / lefts, 1.0)


def selectivity(expression: ops.Invoke) -> float:
    """Estimates the share of rows for which an expression is true: a tenth for an equality, else a third."""
    return 0.1 if expression.function.lower().endswith("equal") and "not" not in expression.function.lower() else 1 / 3
