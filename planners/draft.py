"""A plan in the making: nodes named by a planner, and the rows that they stand for, by variable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from squall.errors import Origin, PlannerError
from squall.operators import Emit, Operator, Retract
from squall.plan import Input, Node
from squall.system import Variable

Identity = Callable[[Operator, tuple[str, ...]], str]
"""Names a node by its operator and its inputs; two nodes of one name are one node."""


def digest(op: Operator, inputs: tuple[str, ...]) -> str:
    """A name that is the same in every process for the same operator on the same inputs. Rules do not count, but for
    answers: each query has its own."""
    value = replace(op, rules=()) if isinstance(op, Emit | Retract) else op
    text = "\n".join((repr(value), *inputs))
    return f"{type(op).__name__.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


class Draft:
    """A plan in the making. What is added twice under one identity is shared."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.nodes: dict[str, Node] = {}

    def add(self, op: Operator, *inputs: str, id: str | None = None) -> str:
        """The id of the node, added unless it is there already (then an `Emit` or `Retract` serves one rule more).
        id: its name, where it has one."""
        id = id or self.identity(op, inputs)
        known = self.nodes.get(id)
        if known is None:
            self.nodes[id] = Node(id, op, tuple(map(Input, inputs)))
        elif known.op != op:
            raise PlannerError(f"two different nodes are named `{id}`")
        elif isinstance(op, Emit | Retract) and isinstance(known.op, Emit | Retract):
            merged = tuple(dict.fromkeys(known.op.rules + op.rules))
            self.nodes[id] = replace(known, op=replace(known.op, rules=merged))
        return id

    def read_again(self, id: str, facts: Iterable[str]) -> None:
        """Lets a node read the facts of others again."""
        node = self.nodes[id]
        self.nodes[id] = replace(node, inputs=(*node.inputs, *(Input(fact, feedback=True) for fact in facts)))

    def keep(self, ends: Iterable[str]) -> None:
        """Drops all nodes that feed none of these."""
        found = set(ends)
        waiting = list(found)
        while waiting:
            before = {edge.node for edge in self.nodes[waiting.pop()].inputs} - found
            found |= before
            waiting += before
        self.nodes = {id: node for id, node in self.nodes.items() if id in found}


@dataclass(frozen=True)
class Rows:
    """A node, with the variable that each of its columns holds.

    maybe: the variables that may be unbound. One that has no column at all never is bound.
    origin: where what they are the rows of was written.
    """

    node: str
    names: tuple[Variable, ...]
    maybe: frozenset[Variable] = frozenset()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def known(self) -> frozenset[Variable]:
        """All of the variables."""
        return self.maybe.union(self.names)
