"""A plan under construction: its nodes, and the rows of a node by variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from squall.errors import Origin, PlannerError
from squall.model import Variable
from squall.plan import Input, Node
from squall.plan.fingerprint import ID_PREFIXES, fingerprint, stable_id
from squall.plan.operators import Construct, Operator, Update

Identity = Callable[[Operator, tuple[str, ...]], str]
"""Returns the name of a node from its operator and its inputs. Two nodes with one name are one node."""


def digest(op: Operator, inputs: tuple[str, ...]) -> str:
    """Returns a name that is the same in every process for the same operator on the same inputs.

    The rules of an operator do not count, except for `Select`: each query has its own. Fields that `repr` does not show
    do not count either, nor do the names of classes (`squall.plan.fingerprint`).
    """
    text = "\n".join((fingerprint(op, with_rules=False), *map(stable_id, inputs)))
    return f"{ID_PREFIXES[type(op)]}-{sha256(text.encode()).hexdigest()[:10]}"


class Draft:
    """A plan under construction. Nodes with one identity are shared."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.nodes: dict[str, Node] = {}
        self.edges: dict[str, Input] = {}

    def add(self, op: Operator, *inputs: str, id: str | None = None) -> str:
        """Returns the id of a node, and adds it unless it exists.

        If it exists, a `Construct` or `Update` serves one rule more.

        Args:
            op: The operator.
            inputs: The ids of its inputs.
            id: The name of the node. None means its identity.
        """
        id = id or self.identity(op, inputs)
        existing = self.nodes.get(id)
        if existing is None:
            self.nodes[id] = Node(id, op, tuple([self._edge(input) for input in inputs]))
        elif existing.op is not op and existing.op != op:
            raise PlannerError(f"two different nodes are named `{id}`")
        elif isinstance(op, Construct | Update) and isinstance(existing.op, Construct | Update):
            merged = tuple(dict.fromkeys(existing.op.rules + op.rules))
            self.nodes[id] = replace(existing, op=replace(existing.op, rules=merged))
        return id

    def _edge(self, input: str) -> Input:
        """Returns the edge from a node. All readers share one object."""
        edge = self.edges.get(input)
        if edge is None:
            edge = self.edges[input] = Input(input)
        return edge

    def read_again(self, id: str, facts: Iterable[str]) -> None:
        """Adds feedback edges to a node, so that it reads the facts of other nodes again."""
        node = self.nodes[id]
        self.nodes[id] = replace(node, inputs=(*node.inputs, *(Input(fact, feedback=True) for fact in facts)))

    def keep(self, ends: Iterable[str]) -> None:
        """Drops all nodes that feed none of these."""
        reachable = set(ends)
        waiting = list(reachable)
        while waiting:
            for edge in self.nodes[waiting.pop()].inputs:
                if edge.node not in reachable:
                    reachable.add(edge.node)
                    waiting.append(edge.node)
        self.nodes = {id: node for id, node in self.nodes.items() if id in reachable}


@dataclass(frozen=True)
class Rows:
    """A node, with the variable that each of its columns holds.

    Attributes:
        node: The id of the node.
        names: The variables of the columns.
        nullable: The variables that may be unbound. One that has no column is never bound.
        origin: The place in the program's text.
    """

    node: str
    names: tuple[Variable, ...]
    nullable: frozenset[Variable] = frozenset()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables that have a column or may be unbound."""
        return self.nullable.union(self.names)

    @property
    def non_null(self) -> frozenset[Variable]:
        """The variables that are bound in every row."""
        return frozenset(self.names) - self.nullable
