"""Nodes of two plans of one program that output the same rows, however the planner ordered the joins in front of them.

Joins, filters and projections that follow one another are one conjunctive query: its inputs, the columns that are
equal, the filters, and the output columns. The order of the joins is no part of it (Chandra and Merlin, "Optimal
implementation of conjunctive queries in relational data bases", STOC 1977; under bag semantics two such queries are
equivalent only if they are isomorphic). Other nodes are equivalent if their operators are equal and their inputs are
equivalent.

The comparison is sound, and not complete: nodes that it does not match may output the same rows, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from squall.plan import Node, Plan
from squall.plan.fingerprint import fingerprint
from squall.plan.operators import (
    Column,
    ConstantFilter,
    Construct,
    Expression,
    Extend,
    Filter,
    Invoke,
    Join,
    Project,
    Select,
    columns_of,
)

Class = int
"""The number of a class of equal columns of a conjunctive query."""


class RowDigests:
    """Digests of what the nodes of a plan compute: nodes with equal digests output the same rows.

    Feedback is left out: the digests of two plans of one program say this only if the facts that they read again are
    the same (`equivalent_nodes`).

    Args:
        nodes: The nodes by id. Nodes may be added later, inputs first.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self._digests: dict[str, str] = {}
        self._widths: dict[str, int] = {}

    def of(self, id: str) -> str:
        """Returns the digest of a node."""
        digest = self._digests.get(id)
        if digest is None:
            digest = self._digests[id] = _digest(self._text(self.nodes[id]))
        return digest

    def width(self, id: str) -> int:
        """Returns the number of columns of a node."""
        width = self._widths.get(id)
        if width is None:
            node = self.nodes[id]
            widths = [self.width(edge.node) for edge in node.inputs if not edge.feedback]
            width = self._widths[id] = len(node.op.copied(widths))
        return width

    def feedback(self, node: Node) -> list[str]:
        """Returns the digests of the facts that a node reads again."""
        return sorted(self.of(edge.node) for edge in node.inputs if edge.feedback)

    def query(self, node: Node) -> ConjunctiveQuery:
        """Returns the conjunctive query that ends in a node."""
        query = ConjunctiveQuery()
        query.output = query.add(self, node)
        return query

    def _text(self, node: Node) -> str:
        """Returns a text of what a node computes."""
        if is_conjunctive(node):
            query = self.query(node)
            if len(query.leaves) > 1:
                return query.text
        elif isinstance(node.op, Construct | Select):
            return self._text_of_outputs(node)
        inputs = [self.of(edge.node) for edge in node.inputs if not edge.feedback]
        if not node.op.join_keys:  # the inputs are one bag
            inputs.sort()
        return f"{fingerprint(node.op)} {' '.join(inputs)}"

    def _text_of_outputs(self, node: Node) -> str:
        """Returns a text of what a node outputs for each row of a conjunctive query, wherever its columns are."""
        steps, node = [node.op], self.nodes[node.inputs[0].node]
        while isinstance(node.op, Extend):
            steps, node = [node.op, *steps], self.nodes[node.inputs[0].node]
        query = self.query(node)
        width = len(query.output)
        columns = sorted({column for op in steps for column in op.reads([width]) if column < width})
        query.output = [query.output[column] for column in columns]
        unbound = query.class_count
        places = {c: unbound if rank is None else rank for c, rank in zip(columns, query.ranks, strict=True)}
        places |= {width + number: unbound + 1 + number for number in range(len(steps) - 1)}
        return f"{' '.join(fingerprint(op.over(places)) for op in steps)} {query.body}"


def is_conjunctive(node: Node) -> bool:
    """Returns whether a node may be a part of a conjunctive query."""
    return isinstance(node.op, Join | Project | ConstantFilter) or (isinstance(node.op, Filter) and not node.op.timed)


def equivalent_nodes(before: Plan, now: Plan) -> dict[str, tuple[str, ...]]:
    """Returns for nodes of a plan the nodes of another plan of the same program that output the same rows.

    Derived facts are taken to be the same where they are read again. A node that reads other facts again is left out,
    with all behind it. So are joins that only other joins read.

    Args:
        before: The other plan.
        now: The plan.
    """
    old_digests, new_digests = RowDigests(before.by_id), RowDigests(now.by_id)
    old_nodes: dict[str, list[Node]] = defaultdict(list)
    for node in _compared(before):
        old_nodes[old_digests.of(node.id)].append(node)
    matched: dict[str, tuple[str, ...]] = {}
    reads_others: list[str] = []
    for node in _compared(now):
        alike = old_nodes.get(new_digests.of(node.id), ())
        facts = new_digests.feedback(node)
        matched[node.id] = tuple(old_node.id for old_node in alike if old_digests.feedback(old_node) == facts)
        if alike and not matched[node.id]:
            reads_others.append(node.id)
    behind = set(reads_others)
    while reads_others:
        consumers = {id for id, _ in now.consumers[reads_others.pop()]} - behind
        behind |= consumers
        reads_others += consumers
    return {id: ids for id, ids in matched.items() if ids and id not in behind}


def _compared(plan: Plan) -> list[Node]:
    """Returns the nodes that are not only a part of larger conjunctive queries."""
    return [
        node
        for node in plan.nodes
        if not is_conjunctive(node)
        or any(not is_conjunctive(plan.by_id[consumer]) for consumer, _ in plan.consumers[node.id])
    ]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class _Leaf(NamedTuple):
    """An input of a conjunctive query: the digest of what it outputs, and the class of each column."""

    digest: str
    columns: tuple[Class, ...]


@dataclass
class ConjunctiveQuery:
    """Leaves that are joined, with filters over their columns.

    Attributes:
        leaves: The inputs.
        output: The class of each output column; None where it is unbound.
        filters: The filters, as expressions whose columns are classes.
        equal_to: For each column of the leaves, an earlier one that it equals, or itself.
    """

    leaves: list[_Leaf] = field(default_factory=list)
    output: list[Class | None] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)
    equal_to: list[Class] = field(default_factory=list)

    def add(self, digests: RowDigests, node: Node) -> list[Class | None]:
        """Adds a node with all joins, filters and projections in front of it; returns the class of each column."""
        op = node.op
        if isinstance(op, Join):
            left, right = (self.add(digests, digests.nodes[edge.node]) for edge in node.inputs)
            for left_column, right_column in op.on:
                self._unite(left[left_column], right[right_column])
            both = [*left, *right]
            return [both[column] for column in op.keep]
        if isinstance(op, Project):
            columns = self.add(digests, digests.nodes[node.inputs[0].node])
            return [None if column is None else columns[column] for column in op.columns]
        if isinstance(op, ConstantFilter) or (isinstance(op, Filter) and not op.timed):
            columns = self.add(digests, digests.nodes[node.inputs[0].node])
            call = op.expression if isinstance(op, Filter) else Invoke("=", (Column(op.column), op.term))
            self.filters.append(_over_classes(call, columns))
            return columns
        first = len(self.equal_to)
        self.equal_to += range(first, first + digests.width(node.id))
        self.leaves.append(_Leaf(digests.of(node.id), tuple(range(first, len(self.equal_to)))))
        return [*range(first, len(self.equal_to))]

    def _unite(self, left: Class | None, right: Class | None) -> None:
        assert left is not None, "what is unbound is not joined"
        assert right is not None
        first, second = sorted((self._class(left), self._class(right)))
        self.equal_to[second] = first

    def _class(self, column: Class) -> Class:
        """Returns the first of the columns that are equal to this one."""
        while self.equal_to[column] != column:
            column = self.equal_to[column]
        return column

    @cached_property
    def text(self) -> str:
        """A text that isomorphic queries share, except for some with leaves that look alike."""
        return f"{self.ranks} {self.body}"

    @property
    def class_count(self) -> int:
        """The number of classes of equal columns."""
        return len(self._form.numbers)

    @property
    def body(self) -> str:
        """The same without the order of the output columns."""
        return f"{self._form.leaves} {sorted(self._form.filters)}"

    @property
    def ranks(self) -> list[Class | None]:
        """The number of the class of each output column, which does not depend on the order of the columns."""
        return [None if column is None else self._form.numbers[self._class(column)] for column in self.output]

    @cached_property
    def _form(self) -> _Form:
        """The canonical form.

        Leaves and classes refine each other's colours (Weisfeiler and Leman). While some leaves still have one colour,
        one of them gets a colour of its own, and all are refined again.
        """
        # In one piece: each step takes the colours of the one before.
        classes = {column: self._class(column) for column in range(len(self.equal_to))}
        leaves = [_Leaf(leaf.digest, tuple([classes[column] for column in leaf.columns])) for leaf in self.leaves]
        filters = [_over_classes(call, classes) for call in self.filters]
        output = [None if column is None else classes[column] for column in self.output]
        uses = {column: str(output.count(column)) for column in classes.values()}
        colours = _refined(leaves, uses, [leaf.digest for leaf in leaves])
        if len(set(colours)) < len(colours):  # otherwise it does not matter which filters are in front of the node
            uses = {column: f"{use} {_filter_uses(column, filters)}" for column, use in uses.items()}
            colours = _refined(leaves, uses, colours)
        while alike := [colour for colour, count in Counter(colours).items() if count > 1]:
            colours[colours.index(min(alike))] += "*"
            colours = _refined(leaves, uses, colours)
        ordered = [leaf for _, leaf in sorted(zip(colours, leaves, strict=True))]
        numbers: dict[Class, Class] = {}
        for column in (column for leaf in ordered for column in leaf.columns):
            numbers.setdefault(column, len(numbers))
        return _Form(
            tuple((leaf.digest, tuple([numbers[column] for column in leaf.columns])) for leaf in ordered),
            frozenset(repr(_over_classes(call, numbers)) for call in filters),
            numbers,
        )


class _Form(NamedTuple):
    """A conjunctive query in canonical form, without its output.

    Attributes:
        leaves: The inputs.
        filters: The filters as texts.
        numbers: The canonical number of each class.
    """

    leaves: tuple[tuple[str, tuple[int, ...]], ...]
    filters: frozenset[str]
    numbers: Mapping[Class, int]


def _filter_uses(column: Class, filters: Sequence[Expression]) -> list[str]:
    """Returns how filters use a class, whatever the numbers of the others."""
    return sorted(
        repr(_over_classes(call, {other: int(other == column) for other in columns_of(call)}))
        for call in filters
        if column in columns_of(call)
    )


def _refined(leaves: Sequence[_Leaf], uses: Mapping[Class, str], colours: Sequence[str]) -> list[str]:
    """Returns finer colours of the leaves, until no further two of them differ."""
    colours, count = list(colours), 0
    while len(set(colours)) > count:
        count = len(set(colours))
        neighbours: dict[Class, list[str]] = {column: [] for column in uses}
        for leaf, colour in zip(leaves, colours, strict=True):
            for place, column in enumerate(leaf.columns):
                neighbours[column].append(f"{place} {colour}")
        of_classes = {column: _digest(f"{uses[column]} {sorted(near)}") for column, near in neighbours.items()}
        colours = [
            _digest(f"{colour} {[of_classes[column] for column in leaf.columns]}")
            for leaf, colour in zip(leaves, colours, strict=True)
        ]
    return colours


def _over_classes(expression: Expression, classes: Sequence[Class | None] | Mapping[Class, Class]) -> Expression:
    """Returns an expression over classes in place of columns."""
    match expression:
        case Column(index=index):
            column = classes[index]
            return None if column is None else Column(column)
        case Invoke(function=function, arguments=arguments):
            return Invoke(function, tuple([_over_classes(argument, classes) for argument in arguments]))
        case _:
            return expression
