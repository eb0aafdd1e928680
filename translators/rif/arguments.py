"""Congruence of external functions: if rules conclude equations, each argument may be replaced by an equal term.

Facts are copied for all equal terms (`squall.translators.rif.equality`), so that a variable of a pattern already has
each of these values where it first occurs. A data value has no other names. Any other constant is looked up, since it
is equal to itself as well. Anything else gives two alternatives, unchanged or replaced: a computed variable, a second
occurrence, or a constructed term.

If equations are demanded (`squall.translators.rif.magic_sets`), the demanded terms occur in equations as well, and are
equal to others by their parts. Then the arguments of a constructed term are not replaced, except those of External
terms in it.

Sources: first-order logic's axioms of congruence; RIF-BLD, section 3.2 (an External is a function of the domain).
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
from squall.translators.rif.conditions import MAX_ALTERNATIVES, AtomicFormula, FreshVariables, Literal

Conjunction = Sequence[Literal]


def replacements(
    conjunction: Conjunction, fresh: FreshVariables, demanded: Collection[Variable] | None
) -> Iterator[tuple[Literal, ...]]:
    """Yields the conjunctions of which one has to hold for this one to hold.

    Args:
        conjunction: The conjunction.
        fresh: Returns a new variable.
        demanded: If equations are demanded, the variables that demands bind, as patterns do.

    Raises:
        TranslatorError: There are too many alternatives.
    """
    dry_run = _ArgumentReplacement(conjunction, repeat(False), fresh, demanded)
    dry_run.conjunction()
    if 2**dry_run.count > MAX_ALTERNATIVES:
        origin = next(literal.formula.origin for literal in conjunction if _has_external(literal.formula))
        hint = "compute one thing after another, in rules of their own: here equations are concluded"
        raise TranslatorError(
            f"what is External here has more than {MAX_ALTERNATIVES} ways to replace arguments", origin, hint
        )
    for choices in product((False, True), repeat=dry_run.count):
        yield _ArgumentReplacement(conjunction, choices, fresh, demanded).conjunction()


def lift_externals(
    conclusions: Iterable[tree.Atomic], names: Mapping[str, Variable], fresh: FreshVariables
) -> tuple[tuple[tree.Atomic, ...], dict[str, Variable], tuple[Literal, ...]]:
    """Returns conclusions with variables for their External terms, all variables, and the equations that bind them."""
    variables = dict(names)
    equations: list[tree.Equal] = []

    def computed(external: tree.External) -> tree.Var:
        variable = fresh()
        variables[variable.name] = variable
        variable_node = tree.Var(variable.name, origin=external.origin)
        equations.append(tree.Equal(variable_node, external, origin=external.origin))
        return variable_node

    new_conclusions = tuple(_map_externals(conclusion, computed) for conclusion in conclusions)
    return new_conclusions, variables, tuple(Literal(conclusion, variables) for conclusion in equations)


def _map_externals(part: Any, change: Callable[[tree.External], Any]) -> Any:
    """Returns a formula or a term in which each outermost External is changed."""
    if isinstance(part, tree.External):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_map_externals(child, change) for child in part)
    if isinstance(part, tree.Term | AtomicFormula):
        inner = {
            child.name: getattr(part, child.name) for child in fields(part) if child.name not in ("meta", "origin")
        }
        return replace(part, **{name: _map_externals(value, change) for name, value in inner.items()})
    return part


class _ArgumentReplacement:
    """Replaces arguments by choices: each choice is whether the next argument with alternatives is replaced."""

    def __init__(
        self,
        conjunction: Conjunction,
        choices: Iterable[bool],
        fresh: FreshVariables,
        demanded: Collection[Variable] | None,
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
        """The variables of patterns that have not occurred in an argument yet."""
        self.equations: list[Literal] = []

    def conjunction(self) -> tuple[Literal, ...]:
        """Returns all formulas, with the equations by which arguments are replaced."""
        literals = []
        for literal in self.given:
            names = dict(literal.names)
            formula = _map_externals(literal.formula, partial(self._external, names=names))
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
                term = _map_externals(term, partial(self._external, names=names))
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
        """Returns a variable for the terms that rules conclude to be equal to a term."""
        variable = self.fresh()
        names[variable.name] = variable
        equal = tree.Equal(term, tree.Var(variable.name), origin=term.origin)
        self.equations.append(Literal(equal, names, concluded=True))
        return tree.Var(variable.name, origin=term.origin)


def _is_pattern(literal: Literal) -> bool:
    return literal.concluded or not isinstance(literal.formula, tree.Equal | tree.External)


def _has_external(part: tree.Node) -> bool:
    return any(isinstance(node, tree.External) for node in tree.parts(part))
