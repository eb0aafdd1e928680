"""The pass `order_joins`: decides which two joinables of a body are joined first, for all bodies of a program together.

Each tree of joins is split into its leaves. Each step joins the two parts with the least cost, until one part remains
(Fegaras 1998, "A new heuristic for optimizing large queries": bushy trees, no search). The cost of a join is the number
of rows that go in and come out, by statistics or by guesses about patterns (`squall.plan.cardinality`). It is divided
by the number of bodies that could start with the same join, because they share it.

If costs differ little, the join that is nearer to the sources wins, which shortens the longest path of a row through
the plan. Parts without a shared variable are joined last; of these, parts first that a test of equality compares
(`squall.planners.passes.join_by_equality`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from squall.plan import Node, Plan
from squall.plan.cardinality import Profile, Statistics, join_profile, profiles
from squall.plan.operators import Join, Project, columns_of
from squall.planners.passes.join_by_equality import equality_tests
from squall.planners.passes.rewrite import Rewrite

Names = tuple[int, ...]
"""The variable of each column, as a number that is local to a tree."""
JoinKeys = tuple[tuple[int, int], ...]
MAX_PAIRED_PARTS = 48
"""Of a tree with more parts, only so many are compared with each other."""
MAX_COST = 1e300
"""Higher costs, up to infinity, count as this one."""


def order_joins(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """Returns the plan with its joins in a better order."""
    return _JoinOrdering(plan, statistics).result()


class _JoinedPart(NamedTuple):
    """Some leaves of a tree, joined.

    Attributes:
        relation: The number of the relation, which is the same in all trees.
        names: The variables of its columns.
    """

    relation: int
    names: Names


_Candidate = tuple[_JoinedPart, tuple[int, int]]
"""A join of two parts of a tree, with their positions."""


@dataclass
class _JoinTree:
    """The part of a body that remains to be joined.

    Attributes:
        node: The last join of the tree.
        root: The variables of the columns that the result has to have.
        parts: The parts.
        compared: The variables of both sides of each test of equality that all rows of the body have to pass.
    """

    node: Node
    root: Names
    parts: list[_JoinedPart]
    compared: Sequence[tuple[frozenset[int], frozenset[int]]] = ()


class _Relation(NamedTuple):
    """The rows of a part: a leaf (a node of the old plan), or the natural join of two relations."""

    profile: int
    depth: int = 0
    leaf: str = ""
    of: tuple[int, int, JoinKeys] = (0, 0, ())
    keep: Names = ()
    cost: float = 0.0


@dataclass
class _RelationTable:
    """All relations, each once."""

    all: list[_Relation] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    profiles: list[Profile] = field(default_factory=list)
    """All profiles, each once. Patterns that differ in a constant usually have the same profile."""
    numbers_of: dict[Profile, int] = field(default_factory=dict)
    joined: dict[tuple[int, int, JoinKeys], tuple[int, Names, float]] = field(default_factory=dict)
    """The profile, kept columns and cost of a join, by the profiles of its inputs and the join keys."""

    def leaf(self, id: str, profile: Profile) -> int:
        if id not in self.numbers:
            self.numbers[id] = len(self.all)
            self.all.append(_Relation(self.number(profile), leaf=id))
        return self.numbers[id]

    def number(self, profile: Profile) -> int:
        if profile not in self.numbers_of:
            self.numbers_of[profile] = len(self.profiles)
            self.profiles.append(profile)
        return self.numbers_of[profile]

    def join(self, left: _JoinedPart, right: _JoinedPart, on: JoinKeys) -> _JoinedPart:
        """Returns the natural join of two parts, which are in the order of `_canonical_pair`."""
        key = (left.relation, right.relation, on)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.all)
            self.all.append(self._kind(key))
        return _JoinedPart(number, (*left.names, *[name for name in right.names if name not in left.names]))

    def _kind(self, key: tuple[int, int, JoinKeys]) -> _Relation:
        left, right, on = self.all[key[0]], self.all[key[1]], key[2]
        key_of_profiles = (left.profile, right.profile, on)
        if key_of_profiles not in self.joined:
            self.joined[key_of_profiles] = self._join_estimate(*key_of_profiles)
        profile, keep, cost = self.joined[key_of_profiles]
        return _Relation(profile, 1 + max(left.depth, right.depth), "", key, keep, cost)

    def _join_estimate(self, left_kind: int, right_kind: int, on: JoinKeys) -> tuple[int, Names, float]:
        left, right = self.profiles[left_kind], self.profiles[right_kind]
        width, joined_columns = len(left.distinct), {column for _, column in on}
        keep = (
            *range(width),
            *(width + column for column in range(len(right.distinct)) if column not in joined_columns),
        )
        profile = join_profile(left, right, on, keep)
        return self.number(profile), keep, left.rows + right.rows + profile.rows


def _canonical_pair(left: _JoinedPart, right: _JoinedPart) -> tuple[_JoinedPart, _JoinedPart, JoinKeys]:
    """Returns two parts in a canonical order, and the keys of their join."""
    if right.relation < left.relation:
        left, right = right, left
    on = _shared(left.names, right.names)
    if left.relation == right.relation and (turned := _shared(right.names, left.names)) < on:
        return right, left, turned
    return left, right, on


def _shared(left: Names, right: Names) -> JoinKeys:
    return tuple([(left.index(name), column) for column, name in enumerate(right) if name in left])


def _pairs(count: int) -> list[tuple[int, int]]:
    """Returns the pairs of two of so many positions."""
    return [(left_place, right_place) for right_place in range(count) for left_place in range(right_place)]


def _connected_pairs(parts: Sequence[_JoinedPart]) -> list[tuple[int, int]]:
    """Returns the positions of each two parts that share a variable."""
    names = [frozenset(part.names) for part in parts]
    return [(left, right) for left, right in _pairs(len(parts)) if not names[left].isdisjoint(names[right])]


def _compared_pairs(tree: _JoinTree) -> list[tuple[int, int]]:
    """Returns the positions of each two parts that a test of equality compares."""
    names = [frozenset(part.names) for part in tree.parts[:MAX_PAIRED_PARTS]]
    return [
        (left, right)
        for left, right in _pairs(len(names))
        if any(
            (first <= names[left] and second <= names[right]) or (first <= names[right] and second <= names[left])
            for first, second in tree.compared
        )
    ]


class _JoinOrdering(Rewrite):
    def __init__(self, plan: Plan, statistics: Statistics | None) -> None:
        super().__init__(plan)
        roots = [place for place, node in enumerate(plan.nodes) if self.is_root(node)]
        self.profiles = profiles(plan, statistics, until=max(roots, default=0))
        self.relations = _RelationTable()
        self.nodes: dict[int, str] = {}
        trees = [self.tree(plan.nodes[place]) for place in roots]
        self.order(trees)
        trees_by_id = {tree.node.id: tree for tree in trees}
        for node in plan.nodes:
            if node.id in trees_by_id:
                self.new_ids[node.id] = self.rebuilt(trees_by_id[node.id])
            elif not isinstance(node.op, Join):
                self.keep(node)

    def is_root(self, node: Node) -> bool:
        """Returns whether a join is the last of a tree: another operator reads it."""
        if not isinstance(node.op, Join):
            return False
        readers = (self.plan.by_id[id].op for id, _ in self.plan.consumers[node.id])
        return not all(isinstance(op, Join) for op in readers)

    # Trees

    def tree(self, node: Node) -> _JoinTree:
        """Returns the leaves of a join tree, with their columns named by variable."""
        leaves: list[tuple[str, list[int]]] = []
        equal_to: dict[int, int] = {}
        root = self._leaves(node, leaves, equal_to)
        parts = [
            _JoinedPart(
                self.relations.leaf(id, self.profiles[id]), tuple([_representative(name, equal_to) for name in names])
            )
            for id, names in leaves
        ]
        names = tuple([_representative(name, equal_to) for name in root])
        return _JoinTree(node, names, parts, [*self.compared(node, names)])

    def compared(self, node: Node, root: Names) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yields the variables of both sides of each test of equality that all rows of a tree have to pass."""
        for call in equality_tests(self.plan, node.id):
            first, second = (frozenset(root[column] for column in columns_of(side)) for side in call.arguments)
            if first and second:
                yield first, second

    def _leaves(self, node: Node, leaves: list[tuple[str, list[int]]], equal_to: dict[int, int]) -> list[int]:
        """Returns the name of each column of a node. Names that a join makes equal are recorded in `equal_to`."""
        if not isinstance(node.op, Join):
            begin = len(equal_to)
            names = [*range(begin, begin + self.plan.widths[node.id])]
            equal_to.update((name, name) for name in names)
            leaves.append((node.id, names))
            return names
        left, right = (self._leaves(self.plan.by_id[edge.node], leaves, equal_to) for edge in node.inputs)
        for left_column, right_column in node.op.on:
            first, second = sorted(
                (_representative(left[left_column], equal_to), _representative(right[right_column], equal_to))
            )
            equal_to[second] = first
        inner_leaves = [*left, *right]
        return [inner_leaves[column] for column in node.op.keep]

    # Order

    def order(self, trees: list[_JoinTree]) -> None:
        """Joins two parts of each tree at a time, all trees in parallel, until each is one part."""
        unfinished_trees = [tree for tree in trees if len(tree.parts) > 1]
        while unfinished_trees:
            choices = [list(self.choices(tree)) for tree in unfinished_trees]
            votes = Counter(
                relation for candidates in choices for relation in {part.relation for part, _ in candidates}
            )
            for tree, candidates in zip(unfinished_trees, choices, strict=True):
                part, (left_place, right_place) = min(
                    self.bounded(candidates, votes), key=lambda choice: self.rank(choice[0], choice[1], votes)
                )
                remaining_parts = [
                    part for place, part in enumerate(tree.parts) if place not in (left_place, right_place)
                ]
                tree.parts = [part, *remaining_parts]
            unfinished_trees = [tree for tree in unfinished_trees if len(tree.parts) > 1]

    def choices(self, tree: _JoinTree) -> Iterator[_Candidate]:
        """Yields the joins of two parts of a tree, with the positions of these.

        Parts without a shared variable are only joined if all parts are such, first those that are compared. Of a tree
        with very many parts, only the first ones are paired, as long as some of them share a variable: the pairs of all
        would take cubic time.
        """
        pairs = _connected_pairs(tree.parts[:MAX_PAIRED_PARTS]) or _connected_pairs(tree.parts)
        pairs = pairs or _compared_pairs(tree) or _pairs(min(len(tree.parts), MAX_PAIRED_PARTS))
        for left_place, right_place in pairs:
            yield (
                self.relations.join(*_canonical_pair(tree.parts[left_place], tree.parts[right_place])),
                (left_place, right_place),
            )

    def bounded(self, candidates: Sequence[_Candidate], votes: Counter[int]) -> list[_Candidate]:
        """Returns the joins that sharing may make worthwhile.

        A join that outputs more rows than it reads may be many times larger than estimated. It outputs at most as many
        as the cheapest join of the body, for each body that shares it.
        """
        cheapest, _ = min(candidates, key=lambda choice: self.relations.all[choice[0].relation].cost)
        return [
            (part, places)
            for part, places in candidates
            if part == cheapest
            or self.rows(part) <= max(self.input_rows(part), self.rows(cheapest) * votes[part.relation])
        ]

    def rows(self, part: _JoinedPart) -> float:
        """Returns the estimated number of rows of a part."""
        return self.relations.profiles[self.relations.all[part.relation].profile].rows

    def input_rows(self, part: _JoinedPart) -> float:
        """Returns the estimated number of rows that the last join of a part reads."""
        return self.relations.all[part.relation].cost - self.rows(part)

    def rank(self, part: _JoinedPart, places: tuple[int, int], votes: Counter[int]) -> tuple[object, ...]:
        """Returns the rank of a join: the cheapest first, among equal costs the one with the fewest rows.

        Among costs that differ little, two copies of one relation are joined last: the pairs of its rows that agree are
        the more, the more unequal its groups are, which no guess knows.
        """
        relation = self.relations.all[part.relation]
        cost = relation.cost / votes[part.relation]
        left, right, on = relation.of
        return (
            round(math.log2(min(cost, MAX_COST) + 1)), relation.depth, left == right, cost, self.rows(part), -len(on),
            places,
        )  # fmt: skip

    # The new plan

    def rebuilt(self, tree: _JoinTree) -> str:
        """Returns the tree in its new order, with its columns as they were."""
        (part,) = tree.parts
        rows = self.node_of(part.relation)
        if part.names == tree.root:
            return rows
        return self.add(Project(tuple(part.names.index(name) for name in tree.root)), rows)

    def node_of(self, number: int) -> str:
        """Returns the node of a relation."""
        if number not in self.nodes:
            relation = self.relations.all[number]
            left, right, on = relation.of
            id = (
                self.new_ids[relation.leaf]
                if relation.leaf
                else self.add(Join(on, relation.keep), self.node_of(left), self.node_of(right))
            )
            self.nodes[number] = id
        return self.nodes[number]


def _representative(name: int, equal_to: dict[int, int]) -> int:
    """Returns the least of the names that are equal to this one."""
    while equal_to[name] != name:
        name = equal_to[name]
    return name
