"""The order of joins: which two of a body's parts are joined first, for all bodies of the program together.

Every tree of joins is taken apart and put together again, by joining in each step the two of its parts that cost least,
until one is left (Fegaras 1998, "A new heuristic for optimizing large queries": bushy trees, no search). What a join
costs are the rows that go in and come out, by statistics or by guesses about patterns (`squall.plan.cardinality`);
divided by the number of bodies that could begin with the same join, because they share it. Of costs that differ little,
the join that is nearer to the sources is taken: the longest way of a row through the plan gets shorter. Parts without a
variable in common are joined last."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from squall.plan import Node, Plan
from squall.plan.cardinality import Profile, Statistics, join_profile, profiles
from squall.plan.operators import Join, Project
from squall.planners.passes.rewrite import Rewrite

Names = tuple[int, ...]
"""The variable in each column: numbers, local to a tree."""
On = tuple[tuple[int, int], ...]


def order_joins(plan: Plan, statistics: Statistics | None = None) -> Plan:
    """The plan with its joins in a better order."""
    return _Ordering(plan, statistics).result()


class _Part(NamedTuple):
    """Some of a tree's leaves, joined. kind: which rows these are, the same in all trees."""

    kind: int
    names: Names


@dataclass
class _Tree:
    """What is left to be joined of a body. root: the names of the columns that it has to have in the end."""

    node: Node
    root: Names
    parts: list[_Part]


class _Kind(NamedTuple):
    """Rows that a part may be: a leaf (a node of the old plan), or the natural join of two others."""

    profile: int
    depth: int = 0
    leaf: str = ""
    of: tuple[int, int, On] = (0, 0, ())
    keep: Names = ()
    cost: float = 0.0


@dataclass
class _Kinds:
    """All kinds of rows, each once."""

    all: list[_Kind] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    profiles: list[Profile] = field(default_factory=list)
    """All profiles, each once: patterns that differ in a constant mostly have the same."""
    numbers_of: dict[Profile, int] = field(default_factory=dict)
    joined: dict[tuple[int, int, On], tuple[int, Names, float]] = field(default_factory=dict)
    """For the profiles of two parts, and what they are joined on: the profile of the join, what it keeps, its cost."""

    def leaf(self, id: str, profile: Profile) -> int:
        if id not in self.numbers:
            self.numbers[id] = len(self.all)
            self.all.append(_Kind(self.number(profile), leaf=id))
        return self.numbers[id]

    def number(self, profile: Profile) -> int:
        if profile not in self.numbers_of:
            self.numbers_of[profile] = len(self.profiles)
            self.profiles.append(profile)
        return self.numbers_of[profile]

    def join(self, left: _Part, right: _Part, on: On) -> _Part:
        """The natural join of two parts, given as `_pair` gives them."""
        key = (left.kind, right.kind, on)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.all)
            self.all.append(self._kind(key))
        return _Part(number, (*left.names, *[name for name in right.names if name not in left.names]))

    def _kind(self, key: tuple[int, int, On]) -> _Kind:
        left, right, on = self.all[key[0]], self.all[key[1]], key[2]
        alike = (left.profile, right.profile, on)
        if alike not in self.joined:
            self.joined[alike] = self._joined(*alike)
        profile, keep, cost = self.joined[alike]
        return _Kind(profile, 1 + max(left.depth, right.depth), "", key, keep, cost)

    def _joined(self, left_kind: int, right_kind: int, on: On) -> tuple[int, Names, float]:
        left, right = self.profiles[left_kind], self.profiles[right_kind]
        width, joined_columns = len(left.distinct), {column for _, column in on}
        keep = (
            *range(width),
            *(width + column for column in range(len(right.distinct)) if column not in joined_columns),
        )
        profile = join_profile(left, right, on, keep)
        return self.number(profile), keep, left.rows + right.rows + profile.rows


def _pair(left: _Part, right: _Part) -> tuple[_Part, _Part, On]:
    """Two parts the one way round or the other, that which comes first, and what their join is on."""
    if right.kind < left.kind:
        left, right = right, left
    on = _shared(left.names, right.names)
    if left.kind == right.kind and (turned := _shared(right.names, left.names)) < on:
        return right, left, turned
    return left, right, on


def _shared(left: Names, right: Names) -> On:
    return tuple([(left.index(name), column) for column, name in enumerate(right) if name in left])


class _Ordering(Rewrite):
    def __init__(self, plan: Plan, statistics: Statistics | None) -> None:
        super().__init__(plan)
        roots = [place for place, node in enumerate(plan.nodes) if self.is_root(node)]
        self.profiles = profiles(plan, statistics, until=max(roots, default=0))
        self.kinds = _Kinds()
        self.made: dict[int, str] = {}
        trees = [self.tree(plan.nodes[place]) for place in roots]
        self.order(trees)
        trees_by_id = {tree.node.id: tree for tree in trees}
        for node in plan.nodes:
            if node.id in trees_by_id:
                self.new[node.id] = self.rooted(trees_by_id[node.id])
            elif not isinstance(node.op, Join):
                self.keep(node)

    def is_root(self, node: Node) -> bool:
        """Whether a join is the last of a tree: something else reads it."""
        if not isinstance(node.op, Join):
            return False
        readers = (self.plan.by_id[id].op for id, _ in self.plan.consumers[node.id])
        return not all(isinstance(op, Join) for op in readers)

    # Trees

    def tree(self, node: Node) -> _Tree:
        """The leaves of a join, with their columns named by variable."""
        leaves: list[tuple[str, list[int]]] = []
        same: dict[int, int] = {}
        root = self._leaves(node, leaves, same)
        parts = [
            _Part(self.kinds.leaf(id, self.profiles[id]), tuple([_first(name, same) for name in names]))
            for id, names in leaves
        ]
        return _Tree(node, tuple([_first(name, same) for name in root]), parts)

    def _leaves(self, node: Node, leaves: list[tuple[str, list[int]]], same: dict[int, int]) -> list[int]:
        """The name of each column of a node; what a join makes equal is noted in `same`."""
        if not isinstance(node.op, Join):
            begin = len(same)
            names = [*range(begin, begin + self.plan.widths[node.id])]
            same.update((name, name) for name in names)
            leaves.append((node.id, names))
            return names
        left, right = (self._leaves(self.plan.by_id[edge.node], leaves, same) for edge in node.inputs)
        for left_column, right_column in node.op.on:
            first, second = sorted((_first(left[left_column], same), _first(right[right_column], same)))
            same[second] = first
        inner_leaves = [*left, *right]
        return [inner_leaves[column] for column in node.op.keep]

    # Order

    def order(self, trees: list[_Tree]) -> None:
        """Joins two parts of each tree at a time, all trees in step, until each is one."""
        left = [tree for tree in trees if len(tree.parts) > 1]
        while left:
            choices = [list(self.choices(tree)) for tree in left]
            votes = Counter(kind for candidates in choices for kind in {part.kind for part, _ in candidates})
            for tree, candidates in zip(left, choices, strict=True):
                part, (left_place, right_place) = min(
                    candidates, key=lambda choice: self.rank(choice[0], choice[1], votes)
                )
                remaining_parts = [
                    part for place, part in enumerate(tree.parts) if place not in (left_place, right_place)
                ]
                tree.parts = [part, *remaining_parts]
            left = [tree for tree in left if len(tree.parts) > 1]

    def choices(self, tree: _Tree) -> Iterator[tuple[_Part, tuple[int, int]]]:
        """The joins of two parts of a tree, with the places of these; of parts that share nothing only if none do."""
        places = [
            (left_place, right_place) for right_place in range(len(tree.parts)) for left_place in range(right_place)
        ]
        names = [frozenset(part.names) for part in tree.parts]
        connected = [
            (left_place, right_place)
            for left_place, right_place in places
            if not names[left_place].isdisjoint(names[right_place])
        ]
        for left_place, right_place in connected or places:
            yield self.kinds.join(*_pair(tree.parts[left_place], tree.parts[right_place])), (left_place, right_place)

    def rank(self, part: _Part, places: tuple[int, int], votes: Counter[int]) -> tuple[object, ...]:
        kind = self.kinds.all[part.kind]
        cost = kind.cost / votes[part.kind]
        return (round(math.log2(cost + 1)), kind.depth, cost, places)

    # The new plan

    def rooted(self, tree: _Tree) -> str:
        """The tree in its new order, its columns as they were."""
        (part,) = tree.parts
        rows = self.make(part.kind)
        if part.names == tree.root:
            return rows
        return self.add(Project(tuple(part.names.index(name) for name in tree.root)), rows)

    def make(self, number: int) -> str:
        """The node of rows of this kind."""
        if number not in self.made:
            kind = self.kinds.all[number]
            left, right, on = kind.of
            id = self.new[kind.leaf] if kind.leaf else self.add(Join(on, kind.keep), self.make(left), self.make(right))
            self.made[number] = id
        return self.made[number]


def _first(name: int, same: dict[int, int]) -> int:
    """The least of the names that are the same as this one."""
    while same[name] != name:
        name = same[name]
    return name
