"""Cardinality estimation: statistics of data, and how many rows the nodes of a plan output for such data.

The estimates follow Selinger et al., "Access path selection in a relational database management system", SIGMOD 1979.
The join of a pattern with itself is estimated by the second moment of its columns: the sum of the squares of the group
sizes (Alon, Matias and Szegedy, "The space complexity of approximating the frequency moments", STOC 1996).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod, sqrt
from pathlib import Path
from typing import Any, Protocol

from squall.errors import UsageError
from squall.model import ARRIVAL, GRAPH
from squall.plan import Plan
from squall.plan import operators as ops
from squall.rdf import OWL, Atom, Event, Fact, Term, iri
from squall.rdf.row_tags import relation_tag, relation_tag_of
from squall.rdf.vocabulary import TYPE, is_of_schema

MAX_FREQUENT_VALUES = 100
"""Statistics count each of this many most frequent objects of a predicate."""
FUNCTIONAL = iri(OWL + "FunctionalProperty")


@dataclass(frozen=True)
class Counts:
    """The number of triples of a predicate, and of its distinct subjects and objects.

    Attributes:
        values: The most frequent objects, each with the number of its triples.
        subject_pairs: The number of ordered pairs of triples with the same subject, a triple with itself included. As
            for `object_pairs`, 0 stands for triples that are spread evenly.
        object_pairs: The number of ordered pairs of triples with the same object.
    """

    triples: float
    subjects: float
    objects: float
    values: tuple[tuple[Term, float], ...] = ()
    subject_pairs: float = 0
    object_pairs: float = 0

    def of_object(self, value: Term) -> float:
        """Returns the number of triples with an object: as counted, or the average of the other objects."""
        counted = dict(self.values)
        if value in counted:
            return counted[value]
        return max(self.triples - sum(counted.values()), 0) / max(self.objects - len(counted), 1)

    @property
    def subject_groups(self) -> Groups:
        """The triples in groups of the same subject."""
        return _groups(self.triples, self.subjects, self.subject_pairs)

    @property
    def object_groups(self) -> Groups:
        """The triples in groups of the same object."""
        return _groups(self.triples, self.objects, self.object_pairs)


NO_COUNTS = Counts(0, 0, 0)


@dataclass(frozen=True)
class Groups:
    """The number of groups of rows with the same values in some columns, and of the ordered pairs within them."""

    count: float
    pairs: float

    def __add__(self, other: Groups) -> Groups:
        """Returns both together, if they have no values in common."""
        return Groups(self.count + other.count, self.pairs + other.pairs)

    def __mul__(self, factor: float) -> Groups:
        return Groups(self.count * factor, self.pairs * factor)


def _groups(rows: float, count: float, pairs: float = 0) -> Groups:
    """Returns groups of rows: there are no fewer pairs than if all groups had the same size."""
    return Groups(count, max(pairs, rows, rows * rows / max(count, 1)))


class Source(Protocol):
    """What estimates are computed from."""

    def counts(self, predicate: Term | None) -> Counts:
        """Returns the counts of a predicate (an atom's relation, tagged ``@``), or of all triples for None."""
        ...

    @property
    def predicate_groups(self) -> PredicateGroups:
        """All triples in groups of the same predicate, alone and with the subject or the object."""
        ...


@dataclass(frozen=True)
class PredicateGroups:
    """All triples in groups of the same predicate, alone and with the same subject or object: sums over predicates."""

    alone: Groups
    with_subject: Groups
    with_object: Groups

    @classmethod
    def of(cls, predicates: Iterable[tuple[float, Counts]]) -> PredicateGroups:
        """Returns the groups of so many predicates with such counts each."""
        alone = with_subject = with_object = Groups(0, 0)
        for number, counts in predicates:
            alone += Groups(1, counts.triples**2) * number
            with_subject += counts.subject_groups * number
            with_object += counts.object_groups * number
        return cls(alone, with_subject, with_object)


@dataclass(frozen=True)
class Statistics:
    """Counts of a sample of data: of all triples, and of each predicate.

    For an atom's relation (tagged ``@``) they are the number of atoms, and of distinct first and last arguments.

    Attributes:
        all: The counts of all triples.
        predicates: Those of each predicate.
        with_derived: Whether facts that rules derive are counted, too.
    """

    all: Counts = NO_COUNTS
    predicates: tuple[tuple[Term, Counts], ...] = ()
    with_derived: bool = False

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
    def predicate_groups(self) -> PredicateGroups:
        return PredicateGroups.of((1, counts) for predicate, counts in self.predicates if predicate[0] != "@")

    @cached_property
    def _by_predicate(self) -> dict[Term, Counts]:
        return dict(self.predicates)

    @property
    def data(self) -> dict[str, Any]:
        """The statistics as a JSON value (`of_data`)."""
        values = asdict(self)
        return values if self.with_derived else {name: values[name] for name in ("all", "predicates")}

    @classmethod
    def of_data(cls, data: Any) -> Statistics:
        """Returns the statistics of a JSON value. Raises ValueError, KeyError or TypeError if it is none of them."""
        predicates = tuple((Term(name), _load_counts(counts)) for name, counts in data["predicates"])
        return cls(_load_counts(data["all"]), predicates, bool(data.get("with_derived", False)))

    def save(self, path: str | Path) -> None:
        """Writes the statistics as JSON."""
        Path(path).write_text(self._json, encoding="utf-8")

    @property
    def digest(self) -> str:
        """A short digest, which distinguishes these statistics from others."""
        return hashlib.sha256(self._json.encode()).hexdigest()[:8]

    @property
    def _json(self) -> str:
        return json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Statistics:
        """Loads statistics that `save` wrote. Raises UsageError if the file has none."""
        try:
            return cls.of_data(json.loads(Path(path).read_text(encoding="utf-8")))
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
    subjects, values = (Counter(pair[end] for pair in pairs) for end in (0, 1))
    frequent = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:max_values]
    return Counts(len(pairs), len(subjects), len(values), tuple(frequent), _equal_pairs(subjects), _equal_pairs(values))


def _equal_pairs(group_sizes: Mapping[Term, int]) -> int:
    return sum(size * size for size in group_sizes.values())


def _load_counts(counts: Mapping[str, Any]) -> Counts:
    values = tuple((Term(value), float(count)) for value, count in counts["values"])
    pairs = (float(counts.get(name, 0)) for name in ("subject_pairs", "object_pairs"))
    return Counts(float(counts["triples"]), float(counts["subjects"]), float(counts["objects"]), values, *pairs)


@dataclass(frozen=True)
class DefaultCounts:
    """The counts that are assumed for data without statistics.

    Constants make a pattern selective, objects more than subjects. ``rdf:type`` has many triples of few objects
    (heuristics 1 and 4 of Tsialiamanis et al., EDBT 2012). Only few of them say that something is a class or property
    of a schema.

    Attributes:
        functional: The predicates that have one object for each subject.
    """

    functional: frozenset[Term] = frozenset()

    def counts(self, predicate: Term | None) -> Counts:
        if predicate is None:
            return _ALL_TRIPLES
        if predicate == TYPE:
            return _TYPES
        if is_of_schema(predicate):
            return _SCHEMA_PREDICATE
        return _FUNCTIONAL_PREDICATE if predicate in self.functional else _ANY_PREDICATE

    @property
    def predicate_groups(self) -> PredicateGroups:
        return _PREDICATE_GROUPS


class _TypeCounts(Counts):
    """The counts of ``rdf:type``: few of its subjects are classes and properties."""

    def of_object(self, value: Term) -> float:
        return _SCHEMA_PREDICATE.subjects if is_of_schema(value) else super().of_object(value)


_SCHEMA_PREDICATE = Counts(20, 10, 10)
_TYPES = _TypeCounts(100_000, 80_000, 4)
_ANY_PREDICATE = Counts(10_000, 4_000, 5_000)
_FUNCTIONAL_PREDICATE = replace(_ANY_PREDICATE, subjects=_ANY_PREDICATE.triples)
_PREDICATE_GROUPS = PredicateGroups.of(((1, _TYPES), (90, _ANY_PREDICATE)))
_ALL_TRIPLES = Counts(1_000_000, 100_000, 200_000, object_pairs=_PREDICATE_GROUPS.with_object.pairs)


@dataclass(frozen=True)
class Profile:
    """The number of rows of a node, and of distinct values in each column.

    Attributes:
        groups: The groups of rows with the same values in some columns, as far as they are estimated: for the columns
            of a pattern, whose values depend on each other.
    """

    rows: float
    distinct: tuple[float, ...] = ()
    groups: tuple[tuple[tuple[int, ...], Groups], ...] = ()

    def with_rows(self, rows: float) -> Profile:
        """Returns the profile of another number of rows with such values."""
        return Profile(
            rows, tuple(min(rows, count) for count in self.distinct), self.groups if rows == self.rows else ()
        )

    def of(self, columns: Iterable[int | None]) -> Profile:
        """Returns the profile of rows of these columns."""
        return Profile(self.rows, tuple(1.0 if column is None else self.distinct[column] for column in columns))

    def groups_of(self, columns: Collection[int]) -> Groups:
        """Returns the groups of rows with the same values in some columns.

        Columns of which nothing else is estimated are independent of each other.
        """
        fitting = [group for group in self.groups if set(group[0]) <= set(columns)]
        group_columns, groups = max(fitting, key=lambda group: len(group[0]), default=((), Groups(1, self.rows**2)))
        combinations = prod(max(self.distinct[column], 1.0) for column in columns if column not in group_columns)
        return Groups(groups.count * combinations, max(groups.pairs / combinations, self.rows))


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
    if statistics.with_derived:
        return _iteration(plan, statistics, {}, until)
    return _iteration(plan, statistics, _iteration(plan, statistics, _iteration(plan, statistics, {})), until)


def join_cost(plan: Plan, statistics: Statistics) -> float:
    """Estimates the work of all joins of a plan: the number of rows that go in and come out."""
    rows = estimates(plan, statistics)
    joins = (node for node in plan.nodes if isinstance(node.op, ops.Join))
    return sum(rows[node.id] + sum(rows[edge.node] for edge in node.inputs) for node in joins)


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
    match op:  # one estimate for each operator: in one piece, since no two have anything in common
        case ops.Scan():
            counts = source.counts(None)
            return Profile(counts.triples, (counts.subjects, counts.triples, counts.objects, 1.0))
        case ops.Unit():
            return Profile(1.0)
        case ops.Match(cells=cells):
            return match_profile(cells, source)
        case ops.LeftJoin(on=on, keep=keep):
            matched = join_profile(inputs[0], inputs[1], on, keep)
            return matched.with_rows(max(matched.rows, inputs[0].rows))
        case ops.AntiJoin(on=on):
            return inputs[0].with_rows(inputs[0].rows * max(1 - _matched_share(inputs[0], inputs[1], on), 0.1))
        case op if keys := op.join_keys:
            whole = inputs[0]
            for key, side in [*zip(keys, inputs, strict=True)][1 : op.combines]:
                pairs, width = [*zip(keys[0], key, strict=True)], len(whole.distinct) + len(side.distinct)
                whole = join_profile(whole, side, pairs, range(width))
            return whole.of(op.copied([len(input.distinct) for input in inputs]))
        case ops.ConstantFilter(column=column):
            return inputs[0].with_rows(inputs[0].rows / max(inputs[0].distinct[column], 1.0))
        case ops.Filter(expression=expression):
            return inputs[0].with_rows(inputs[0].rows * selectivity(expression))
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
        case ops.Construct(template=cells):
            cell_counts = (inputs[0].distinct[cell] if isinstance(cell, int) else 1.0 for cell in cells)
            return Profile(inputs[0].rows, (*cell_counts, 1.0))
        case ops.Select(columns=columns):
            return Profile(inputs[0].rows, (1.0, *inputs[0].of(columns).distinct, 1.0))
        case ops.DerivedStream():  # facts of the stream: of quads, the triples
            return union_profile([input.of(range(len(input.distinct) - 4, len(input.distinct))) for input in inputs])
        case ops.Sink():
            return Profile(sum(input.rows for input in inputs))
        case _:  # a row for each row, whose new columns have a value for each
            rows, distinct = inputs[0].rows, inputs[0].distinct
            copied = op.copied([len(input.distinct) for input in inputs])
            return Profile(rows, tuple(rows if column is None else distinct[column] for column in copied))


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
    grouped = dict.fromkeys(group_columns for input in inputs for group_columns, _ in input.groups)
    groups = ((of, sum((input.groups_of(of) for input in inputs), Groups(0, 0))) for of in grouped)
    return Profile(sum(input.rows for input in inputs), tuple(sum(counts) for counts in columns), tuple(groups))


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
    constants = _constants(value)
    rows = sum(map(counts.of_object, constants)) if constants else counts.triples
    predicates = 1.0 if isinstance(predicate, str) else max(source.predicate_groups.alone.count, 1.0)
    prefix_counts = (1.0, _ASSUMED_GRAPHS, counts.triples)[: len(prefix)]
    profile = Profile(rows, (*prefix_counts, counts.subjects, predicates, counts.objects, 1.0)).with_rows(rows)
    fitting = _fitting_facts((*prefix, subject, predicate, None if constants else value), profile)
    share = fitting.rows / max(counts.triples, 1.0)
    groups = ((columns, of_all * share) for columns, of_all in _triple_groups(cells, counts, source))
    return replace(fitting, groups=tuple(groups))


def _constants(cell: ops.Cell) -> Sequence[Term]:
    """Returns the terms of which one fits a cell; none if it varies."""
    match cell:
        case ops.OneOf(terms=terms):
            return terms
        case ops.Value(term=term) | (str() as term):
            return (term,)
        case _:
            return ()


def _triple_groups(
    cells: Sequence[ops.Cell], counts: Counts, source: Source
) -> Iterator[tuple[tuple[int, ...], Groups]]:
    """Yields the groups of triples for the columns of subject, predicate and object, if no column is repeated.

    Args:
        cells: The cells of a pattern.
        counts: The counts of the triples with its predicate.
        source: What estimates are computed from.
    """
    subject, predicate, value = cells[-3:]
    grouped: list[tuple[tuple[ops.Cell, ...], Groups]] = [
        ((subject,), counts.subject_groups),
        ((value,), counts.object_groups),
    ]
    if isinstance(predicate, int):
        by_predicate = source.predicate_groups
        grouped += [
            ((predicate,), by_predicate.alone),
            ((subject, predicate), by_predicate.with_subject),
            ((predicate, value), by_predicate.with_object),
        ]
    columns = sorted(cell for cell in cells if isinstance(cell, int))
    if len(set(columns)) < len(columns):
        return
    for group_cells, groups in grouped:
        if all(isinstance(cell, int) for cell in group_cells):
            yield tuple(columns.index(cell) for cell in group_cells if isinstance(cell, int)), groups


def _fitting_facts(cells: Sequence[ops.Cell], facts: Profile) -> Profile:
    """Estimates the facts that fit the cells: constants are any of the values, and repeated columns agree by chance."""
    rows, columns = facts.rows, dict[int, float]()
    for cell, distinct in zip(cells, facts.distinct, strict=False):
        if isinstance(cell, int) and cell not in columns:
            columns[cell] = distinct
        elif isinstance(cell, ops.OneOf):
            rows *= min(len(cell.terms) / max(distinct, 1.0), 1.0)
        elif cell is not None:
            rows /= max(distinct, columns.get(cell, 1.0) if isinstance(cell, int) else 1.0, 1.0)
    return Profile(rows, tuple(min(rows, columns[column]) for column in sorted(columns)))


def join_profile(left: Profile, right: Profile, on: Sequence[tuple[int, int]], keep: Sequence[int]) -> Profile:
    """Estimates the rows of a join: each value of the side with fewer values is assumed to be on the other side too.

    A pattern that is joined with itself gives the pairs of its rows with the same values. On other columns of it, such
    as a subject and an object, these pairs are an upper bound (by the inequality of Cauchy and Schwarz). Each row
    agrees with itself at least.
    """
    columns = [left_column for left_column, _ in on], [right_column for _, right_column in on]
    agreeing = prod(
        max(left.distinct[left_column], right.distinct[right_column], 1.0) for left_column, right_column in on
    ) / max(_dependence(left, columns[0]), _dependence(right, columns[1]))
    distinct = [*left.distinct, *right.distinct]
    for left_column, right_column in on:
        distinct[left_column] = distinct[len(left.distinct) + right_column] = min(
            left.distinct[left_column], right.distinct[right_column]
        )
    rows = left.rows * right.rows / agreeing
    if left.groups and left == right:
        rows = sqrt(prod(left.groups_of(side).pairs for side in columns))
    elif left == right and columns[0] == columns[1]:
        rows = max(rows, left.rows)
    return Profile(rows, tuple(min(rows, distinct[column]) for column in keep))


def _dependence(profile: Profile, columns: Sequence[int]) -> float:
    """Returns how many times fewer values some columns have together than if they were independent."""
    if not profile.groups or len(columns) < 2:
        return 1.0
    independent = prod(max(profile.distinct[column], 1.0) for column in columns)
    return max(independent / max(profile.groups_of(columns).count, 1.0), 1.0)


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
