"""What is in a Jena rule, as slots and as terms built of slots: functors, numbers, the names of variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote

from squall.functions.values import number
from squall.lexers import jena as tree
from squall.model import Variable
from squall.rdf import iri
from squall.translators.common import Built, Part

FUNCTORS = "urn:x-squall:jena:functor:"
"""What the IRI of a functor's name begins with."""


def part(node: tree.Node) -> Part:
    """What a node stands for. A functor is a compound term with the IRI of its name."""
    if isinstance(node.value, tree.Functor):
        return Built(iri(FUNCTORS + quote(node.value.name, safe="")), tuple(map(part, node.value.arguments)))
    return node.value


def variables(term: Part) -> Iterator[Variable]:
    """The variables in a part, left to right, repetitions included."""
    if isinstance(term, Built):
        for inner in term.parts:
            yield from variables(inner)
    elif isinstance(term, Variable):
        yield term


def variables_of(*nodes: tree.Node) -> list[Variable]:
    """The variables in nodes, left to right, repetitions included."""
    return [variable for node in nodes for variable in variables(part(node))]


def whole(node: tree.Node) -> int | None:
    """The integer that a node is; None if it is none."""
    numeric = number(node.value) if isinstance(node.value, str) else None
    return numeric.value if numeric and isinstance(numeric.value, int) else None


def renamed(
    rule: tree.Rule, outer_variables: Collection[Variable], used: Collection[Variable], fresh: Callable[[], Variable]
) -> tree.Rule:
    """A rule in a head with new names for those of its own variables that are used outside for something else."""
    names: dict[Variable, Variable] = {}

    def name(variable: Variable) -> Variable:
        if variable in outer_variables or variable not in used:
            return variable
        return names.setdefault(variable, fresh())

    return tree.renamed(rule, name)
