"""The nodes of Jena rules as slots and compound terms: functors, numbers, and the names of variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote

from squall.functions.values import number
from squall.lexers import jena as tree
from squall.model import Variable
from squall.rdf import iri
from squall.translators.common import CompoundTerm, TermPattern

FUNCTORS = "urn:x-squall:jena:functor:"
"""The prefix of the IRI of a functor's name."""


def term_pattern(node: tree.Node) -> TermPattern:
    """Returns the term of a node. A functor is a compound term with the IRI of its name."""
    if isinstance(node.value, tree.Functor):
        return CompoundTerm(
            iri(FUNCTORS + quote(node.value.name, safe="")), tuple(map(term_pattern, node.value.arguments))
        )
    return node.value


def variables(term: TermPattern) -> Iterator[Variable]:
    """Yields the variables of a term from left to right, with repetitions."""
    if isinstance(term, CompoundTerm):
        for inner in term.parts:
            yield from variables(inner)
    elif isinstance(term, Variable):
        yield term


def variables_of(*nodes: tree.Node) -> list[Variable]:
    """Returns the variables of nodes from left to right, with repetitions."""
    return [variable for node in nodes for variable in variables(term_pattern(node))]


def integer_of(node: tree.Node) -> int | None:
    """Returns the integer value of a node, or None."""
    numeric = number(node.value) if isinstance(node.value, str) else None
    return numeric.value if numeric and isinstance(numeric.value, int) else None


def rename_apart(
    rule: tree.Rule, outer_variables: Collection[Variable], used: Collection[Variable], fresh: Callable[[], Variable]
) -> tree.Rule:
    """Returns a rule in a head with new names for its own variables that the outer rule uses for something else."""
    names: dict[Variable, Variable] = {}

    def name(variable: Variable) -> Variable:
        if variable in outer_variables or variable not in used:
            return variable
        return names.setdefault(variable, fresh())

    return tree.rename_variables(rule, name)
