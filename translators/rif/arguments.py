"""Arguments of what is defined outside, where rules conclude equations: each may be replaced by what is equal to it.

Facts are copied for all that is equal (`squall.translators.rif.equality`), so that a variable of a pattern has each of
these values where it stands first. A data value is the same by any name; any other constant is looked up, since it is
equal to itself as well. Anything else gives two alternatives, as it is or replaced: a variable that is computed or
stands a second time, or a term that is made.

Where rules are asked for equations, the terms of which they are asked occur as well, and by what is equal in them they
are equal to others: there the arguments of a term that is made are not replaced, only what is External in them.

Source: first-order logic's axioms of congruence; RIF-BLD, section 3.2 (what is External is a function of the domain).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import product, repeat
from typing import Any

from squall.errors import TranslatorError
from squall.functions.rif.spaces import SPACES
from squall.lexers.rif import tree
from squall.model import Variable
from squall.translators.rif.conditions import MOST, Fresh, Leaf, Literal

Conjunction = Sequence[Literal]


def replacements(
    conjunction: Conjunction, fresh: Fresh, demanded: Collection[Variable] | None
) -> Iterator[tuple[Literal, ...]]:
    """The conjunctions of which one has to hold for this one to hold. Raises TranslatorError where there are too many.

    asked: where rules are asked for equations, the variables to which questions give their values, as patterns do.
    """
    dry_run = _Replacing(conjunction, repeat(False), fresh, demanded)
    dry_run.conjunction()
    if 2**dry_run.count > MOST:
        origin = next(literal.formula.origin for literal in conjunction if _has_external(literal.formula))
        hint = "compute one thing after another, in rules of their own: here equations are concluded"
        raise TranslatorError(f"what is External here has more than {MOST} ways to replace arguments", origin, hint)
    for choices in product((False, True), repeat=dry_run.count):
        yield _Replacing(conjunction, choices, fresh, demanded).conjunction()


def lifted(
    conclusions: Iterable[tree.Atomic], names: Mapping[str, Variable], fresh: Fresh
) -> tuple[tuple[tree.Atomic, ...], dict[str, Variable], tuple[Literal, ...]]:
    """Conclusions in which variables stand for what is External, all variables, and the equations that give them their
    values."""
    variables = dict(names)
    equations: list[tree.Equal] = []

    def computed(external: tree.External) -> tree.Var:
        variable = fresh()
        variables[variable.name] = variable
        variable_node = tree.Var(variable.name, origin=external.origin)
        equations.append(tree.Equal(variable_node, external, origin=external.origin))
        return variable_node

    new_conclusions = tuple(_mapped(conclusion, computed) for conclusion in conclusions)
    return new_conclusions, variables, tuple(Literal(conclusion, variables) for conclusion in equations)


def _mapped(part: Any, change: Callable[[tree.External], Any]) -> Any:
    """A formula or a term with all that is External in it changed, but for what is inside of that."""
    if isinstance(part, tree.External):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_mapped(child, change) for child in part)
    if isinstance(part, tree.Term | Leaf):
        inner = {
            child.name: getattr(part, child.name) for child in fields(part) if child.name not in ("meta", "origin")
        }
        return replace(part, **{name: _mapped(value, change) for name, value in inner.items()})
    return part


class _Replacing:
    """Replaces arguments by choices: whether the next one that gives alternatives is replaced."""

    def __init__(
        self, conjunction: Conjunction, choices: Iterable[bool], fresh: Fresh, demanded: Collection[Variable] | None
    ) -> None:
        self.given = conjunction
        self.inside = demanded is None
        self.choices = iter(choices)
        self.fresh = fresh
        self.count = 0
        self.open = {
            literal.names[part.name]
            for literal in conjunction
            if _is_pattern(literal)
            for part in tree.parts(literal.formula, outside=False)
            if isinstance(part, tree.Var)
        }.union(demanded or ())
        """The variables of patterns that have not stood in an argument yet."""
        self.equations: list[Literal] = []

    def conjunction(self) -> tuple[Literal, ...]:
        """All formulas, with the equations by which arguments are replaced."""
        literals = []
        for literal in self.given:
            names = dict(literal.names)
            formula = _mapped(literal.formula, partial(self._external, names=names))
            literals.append(Literal(formula, names, literal.concluded))
        return (*literals, *self.equations)

    def _external(self, external: tree.External, names: dict[str, Variable]) -> tree.External:
        arguments = tuple(self._argument(argument, names) for argument in external.content.arguments)
        return replace(external, content=replace(external.content, arguments=arguments))

    def _argument(self, term: tree.Term, names: dict[str, Variable]) -> tree.Term:
        match term:
            case tree.Const(space=space) if space in SPACES:
                return term
            case tree.Const():
                return self._replaced(term, names)
            case tree.Var(name=name) if names[name] in self.open:
                self.open.remove(names[name])
                return term
            case tree.Expr() | tree.List() if not self.inside:
                term = _mapped(term, partial(self._external, names=names))
            case tree.Expr(arguments=arguments):
                term = replace(
                    term, arguments=tuple(self._argument(inner_argument, names) for inner_argument in arguments)
                )
            case tree.List(items=items, rest=rest):
                items = tuple(self._argument(inner_argument, names) for inner_argument in items)
                term = replace(term, items=items, rest=None if rest is None else self._argument(rest, names))
            case tree.External():
                term = self._external(term, names)
        self.count += 1
        return self._replaced(term, names) if next(self.choices) else term

    def _replaced(self, term: tree.Term, names: dict[str, Variable]) -> tree.Var:
        """A variable for what is equal to a term by what rules conclude."""
        variable = self.fresh()
        names[variable.name] = variable
        equal = tree.Equal(term, tree.Var(variable.name), origin=term.origin)
        self.equations.append(Literal(equal, names, concluded=True))
        return tree.Var(variable.name, origin=term.origin)


def _is_pattern(literal: Literal) -> bool:
    return literal.concluded or not isinstance(literal.formula, tree.Equal | tree.External)


def _has_external(part: tree.Node) -> bool:
    return any(isinstance(node, tree.External) for node in tree.parts(part))
