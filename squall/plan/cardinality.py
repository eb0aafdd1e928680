"""Statistics of data, and how many rows the nodes of a plan make of such data (estimates after Selinger et al., "Access
path selection in a relational database management system", SIGMOD 1979)."""

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
from squall.model import CAME, GRAPH
from squall.plan import Plan
from squall.plan import operators as ops
from squall.rdf import RDF, Atom, Event, Fact, Term, iri
from squall.rdf.row_tags import mark_of, relation_mark

MOST = 100
"""Of so many objects of each predicate, the most frequent ones, it is known how often they occur."""
FUNCTIONAL = iri("http://www.w3.org/2002/07/owl#FunctionalProperty")
TYPE = iri(RDF + "type")


@dataclass(frozen=True)
class Counts:
    """How many triples there are of a predicate, and how many different subjects and objects they have. values: the
    most frequent objects, each with the number of its triples."""

    triples: float
    subjects: float
    objects: float
    values: tuple[tuple[Term, float], ...] = ()

    def of_object(self, value: Term) -> float:
        """How many triples have this object: as counted, or like the average of those that are not."""
        known = dict(self.values)
        if value in known:
            return known[value]
        return max(self.triples - sum(known.values()), 0) / max(self.objects - len(known), 1)


NOTHING = Counts(0, 0, 0)


class Source(Protocol):
    """What estimates are made from."""

    def counts(self, predicate: Term | None) -> Counts:
        """The counts of a predicate (an atom's relation, marked with ``@``); None: of all triples."""
        ...


@dataclass(frozen=True)
class Statistics:
    """Counts of a sample of data: of all triples, and of each predicate. Of an atom's relation (marked with ``@``) it
    is known how many there are, and how many different first and last arguments they have."""

    all: Counts = NOTHING
    predicates: tuple[tuple[Term, Counts], ...] = ()

    @classmethod
    def of(cls, events: Iterable[Event]) -> Statistics:
        """Counts the different facts of events."""
        rows = {_row(fact) for event in events for fact in event.facts}
        by_predicate: dict[Term, list[tuple[Term, Term]]] = {}
        for predicate, subject, value in rows:
            by_predicate.setdefault(predicate, []).append((subject, value))
        triples = [(subject, value) for predicate, subject, value in rows if predicate[0] != "@"]
        return cls(_counted(triples, 0), tuple((one, _counted(by_predicate[one])) for one in sorted(by_predicate)))

    def counts(self, predicate: Term | None) -> Counts:
        return self.all if predicate is None else self._by_predicate.get(predicate, NOTHING)

    @cached_property
    def _by_predicate(self) -> dict[Term, Counts]:
        return dict(self.predicates)

    def save(self, path: str | Path) -> None:
        """Writes the statistics as JSON."""
        Path(path).write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Statistics:
        """Statistics as `save` writes them. Raises UsageError if the file is none."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            predicates = tuple((Term(name), _loaded(counts)) for name, counts in found["predicates"])
            return cls(_loaded(found["all"]), predicates)
        except OSError as error:
            raise UsageError(f"the statistics `{path}` cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"`{path}` has no statistics: {error}", hint="`squall build --collect-statistics` writes them"
            ) from error


def _row(fact: Fact) -> tuple[Term, Term, Term]:
    """The predicate or relation, and the two ends."""
    if isinstance(fact, Atom):
        ends = (fact.arguments[0], fact.arguments[-1]) if fact.arguments else (Term(""), Term(""))
        return (relation_mark(fact.relation), *ends)
    return fact.predicate, fact.subject, fact.object


def _counted(pairs: Sequence[tuple[Term, Term]], most: int = MOST) -> Counts:
    values = Counter(value for _, value in pairs)
    frequent = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
    return Counts(len(pairs), len({subject for subject, _ in pairs}), len(values), tuple(frequent))


def _loaded(counts: Mapping[str, Any]) -> Counts:
    values = tuple((Term(value), float(count)) for value, count in counts["values"])
    return Counts(float(counts["triples"]), float(counts["subjects"]), float(counts["objects"]), values)


@dataclass(frozen=True)
class Guess:
    """What is taken for granted of data that nobody has counted. Constants make a pattern selective, objects more than
    subjects; ``rdf:type`` has many triples of few objects (heuristics 1 and 4 of Tsialiamanis et al., EDBT 2012).

    functional: predicates that have one object for each subject.
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
    """How many rows a node makes, and how many different values each column of them has."""

    rows: float
    distinct: tuple[float, ...] = ()

    def with_rows(self, rows: float) -> Profile:
        """As many rows as this, of such values."""
        return Profile(rows, tuple(min(rows, count) for count in self.distinct))

    def of(self, columns: Iterable[int | None]) -> Profile:
        """Of rows of these columns."""
        return Profile(self.rows, tuple(1.0 if column is None else self.distinct[column] for column in columns))


def estimates(plan: Plan, statistics: Statistics | None = None) -> dict[str, float]:
    """How many rows each node makes, by its id, if all of the data that the statistics are of held together. Without
    statistics: guesses that are good for nothing but to be compared with each other."""
    return {id: profile.rows for id, profile in profiles(plan, statistics).items()}


def profiles(plan: Plan, statistics: Statistics | None = None, until: int | None = None) -> dict[str, Profile]:
    """The profile of each node, or of the first `until` of them. What rules derive counts from one round of theirs,
    recursive or not."""
    if statistics is None:
        return _round(plan, Guess(functional(plan)), {}, until)
    return _round(plan, statistics, _round(plan, statistics, _round(plan, statistics, {})), until)


def functional(plan: Plan) -> frozenset[Term]:
    """The predicates that the program itself says to be functional (``-> (p rdf:type owl:FunctionalProperty)``)."""
    emits = (node.op.template for node in plan.nodes if isinstance(node.op, ops.Construct))
    return frozenset(cells[0] for cells in emits if cells[1:] == (TYPE, FUNCTIONAL) and not isinstance(cells[0], int))


def _round(plan: Plan, source: Source, derived: Mapping[str, Profile], until: int | None = None) -> dict[str, Profile]:
    found: dict[str, Profile] = {}
    for node in plan.nodes[:until]:
        if isinstance(node.op, ops.Match):
            made = [edge.node for edge in node.inputs if not isinstance(plan.by_id[edge.node].op, ops.Scan)]
            found[node.id] = matched(node.op.cells, source, [derived[id] for id in made if id in derived])
        else:
            found[node.id] = _profile(node.op, [found[edge.node] for edge in node.inputs], source)
    return found


def _profile(op: ops.Operator, inputs: Sequence[Profile], source: Source) -> Profile:
    match op:
        case ops.Scan():
            every = source.counts(None)
            return Profile(every.triples, (every.subjects, every.triples, every.objects, 1.0))
        case ops.Unit():
            return Profile(1.0)
        case ops.Match(cells=cells):
            return matched(cells, source)
        case ops.Join(on=on, keep=keep):
            return joined(inputs[0], inputs[1], on, keep)
        case ops.LeftJoin(on=on, keep=keep):
            pairs = joined(inputs[0], inputs[1], on, keep)
            return pairs.with_rows(max(pairs.rows, inputs[0].rows))
        case ops.AntiJoin(on=on):
            return inputs[0].with_rows(inputs[0].rows * max(1 - _covered(inputs[0], inputs[1], on), 0.1))
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
            return together(inputs)
        case ops.Distinct(by=by):
            bag = together(inputs)
            return bag.with_rows(min(bag.rows, prod(bag.distinct[:by])))
        case ops.Group(keys=keys, aggregates=aggregates):
            kept = inputs[0].of(keys)
            rows = min(inputs[0].rows, prod(kept.distinct)) if keys else 1.0
            return Profile(rows, (*kept.distinct, *(rows,) * len(aggregates))).with_rows(rows)
        case ops.Slice(limit=limit, keys=keys):
            most = inputs[0].rows if limit is None else limit * prod(inputs[0].of(keys).distinct)
            return inputs[0].with_rows(min(most, inputs[0].rows))
        case ops.TransitiveClosure():
            left, right = inputs[0].distinct
            return Profile(min(left * right, inputs[0].rows * 10), (left, right))
        case ops.Update():
            return Profile(inputs[0].rows, (inputs[0].rows,) * 4)
        case ops.Construct(template=cells):
            made = (inputs[0].distinct[cell] if isinstance(cell, int) else 1.0 for cell in cells)
            return Profile(inputs[0].rows, (*made, 1.0))
        case ops.Select(columns=columns):
            return Profile(inputs[0].rows, (1.0, *inputs[0].of(columns).distinct, 1.0))
        case ops.DerivedStream():  # facts of the stream: of quads, the triples
            return together([one.of(range(len(one.distinct) - 4, len(one.distinct))) for one in inputs])
        case ops.Sink():
            return Profile(sum(one.rows for one in inputs))


def matched(cells: Sequence[ops.Cell], source: Source, made: Iterable[Profile] = ()) -> Profile:
    """Of the rows that a `Match` of these cells finds in data, and in facts that rules have made."""
    found = [_read(cells, source), *(_fitting(cells, one) for one in made if len(one.distinct) == len(cells) + 1)]
    return together(found)


def together(inputs: Sequence[Profile]) -> Profile:
    """Of the rows of all inputs, whose values are taken to be different ones."""
    columns = zip(*(one.distinct for one in inputs), strict=True)
    return Profile(sum(one.rows for one in inputs), tuple(sum(counts) for counts in columns))


def _read(cells: Sequence[ops.Cell], source: Source) -> Profile:
    """Of the facts of a source that fit the cells."""
    mark = mark_of(cells)
    if mark is None or mark in _PLACED:
        return _placed(cells, source)
    counts = source.counts(mark)
    ends = (1.0, counts.subjects, *(counts.triples for _ in cells[2:-1]), counts.objects)
    return _fitting(cells, Profile(counts.triples, (*ends[: len(cells)], 1.0)))


_PLACED = (relation_mark(GRAPH), relation_mark(CAME))
"""The relations of triples with where, and when, they came: these stand behind the name of the relation."""
_NAMES = 10.0
"""So many streams and graphs are taken to be."""


def _placed(cells: Sequence[ops.Cell], source: Source) -> Profile:
    """Of triples, and of what tells where and when they came."""
    place, (subject, predicate, value) = cells[:-3], cells[-3:]
    counts = source.counts(predicate if isinstance(predicate, str) else None)
    constant = value.term if isinstance(value, ops.Value) else value
    rows = counts.of_object(constant) if isinstance(constant, str) else counts.triples
    kinds = 1.0 if isinstance(predicate, str) else max(counts.triples / 10_000, 1.0)
    told = (1.0, _NAMES, counts.triples)[: len(place)]
    every = Profile(rows, (*told, counts.subjects, kinds, counts.objects, 1.0)).with_rows(rows)
    return _fitting((*place, subject, predicate, None if isinstance(constant, str) else value), every)


def _fitting(cells: Sequence[ops.Cell], facts: Profile) -> Profile:
    """Of those facts that fit the cells: the constants are any of the values, repeated columns agree by chance."""
    rows, columns = facts.rows, dict[int, float]()
    for cell, distinct in zip(cells, facts.distinct, strict=False):
        if isinstance(cell, int) and cell not in columns:
            columns[cell] = distinct
        elif cell is not None:
            rows /= max(distinct, columns.get(cell, 1.0) if isinstance(cell, int) else 1.0, 1.0)
    return Profile(rows, tuple(min(rows, columns[column]) for column in sorted(columns)))


def joined(left: Profile, right: Profile, on: Sequence[tuple[int, int]], keep: Sequence[int]) -> Profile:
    """Of the rows of a join: each value of the side that has fewer is taken to be on the other side too."""
    agreeing = prod(max(left.distinct[one], right.distinct[other], 1.0) for one, other in on)
    distinct = [*left.distinct, *right.distinct]
    for one, other in on:
        distinct[one] = distinct[len(left.distinct) + other] = min(left.distinct[one], right.distinct[other])
    rows = left.rows * right.rows / agreeing
    return Profile(rows, tuple(min(rows, distinct[column]) for column in keep))


def _covered(left: Profile, right: Profile, on: Sequence[tuple[int, int]]) -> float:
    """The share of left rows that agree with a right one."""
    if not on:
        return min(right.rows, 1.0)
    values = (prod(side.distinct[pair[number]] for pair in on) for number, side in enumerate((left, right)))
    lefts, rights = (max(min(count, side.rows), 1e-9) for count, side in zip(values, (left, right), strict=True))
    return min(rights / lefts, 1.0)


def selectivity(expression: ops.Invoke) -> float:
    """The share of rows for which an expression is true: a tenth where it asks for equality, else a third."""
    return 0.1 if expression.function.lower().endswith("equal") and "not" not in expression.function.lower() else 1 / 3
