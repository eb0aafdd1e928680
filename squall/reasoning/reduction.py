"""Reduction of rules: what derives nothing new is left out.

A rule with one conclusion is *redundant* if it concludes a part of its own body, or if a more general rule concludes
the same of a part of its body (theta-subsumption; G. Plotkin, A Note on Inductive Generalization, 1970).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from squall import functions
from squall.functions.datatypes import NOT_IDENTICAL
from squall.model.consequences import Construct
from squall.model.expressions import Call, Filter
from squall.model.fact_shapes import Shapes, shape
from squall.model.patterns import AtomPattern, FactPattern
from squall.model.systems import System
from squall.rdf import Term
from squall.reasoning.binding_times import heads, is_helper
from squall.reasoning.substitution import matches, matching, substituted, with_canonical_names


def with_single_heads(rule: System) -> Iterator[System]:
    """Yields a rule once for each of its conclusions."""
    for consequence in rule.consequences:
        assert isinstance(consequence, Construct)
        for head in dict.fromkeys(consequence.template):
            yield replace(rule, consequences=(replace(consequence, template=(head,)),))


def is_tautology(rule: System) -> bool:
    """Returns whether a rule with one conclusion concludes a part of its body."""
    head = next(heads(rule))
    return any(type(part) is type(head) and replace(part, exact=head.exact) == head for part in patterns(rule))


def patterns(rule: System) -> tuple[FactPattern, ...]:
    """Returns the patterns of a plain rule."""
    return cast(tuple[FactPattern, ...], rule.joinables)


def with_decided_filters(rule: System) -> System | None:
    """Returns a plain rule without the filters that are true of constants; None if one is false."""
    undecided = []
    for predicate in rule.predicates:
        value = _truth(predicate.expression) if isinstance(predicate, Filter) else None
        if value is False:
            return None
        if value is None and predicate not in undecided:
            undecided.append(predicate)
    return replace(rule, predicates=tuple(undecided))


def _truth(test: Call) -> bool | None:
    """Returns whether a test is true, or None if it depends on variables."""
    function = functions.lookup(test.function)
    if test.function == NOT_IDENTICAL and test.arguments[0] == test.arguments[1]:
        return False
    if not all(isinstance(argument, str) for argument in test.arguments) or not function.pure or function.timed:
        return None
    return bool(function.evaluate(*cast(tuple[Term, ...], test.arguments)))


class Rules:
    """A set of plain rules with one conclusion each, none of which is redundant beside the others."""

    def __init__(self) -> None:
        self._rules: dict[int, System] = {}
        self._constants: list[frozenset[Term]] = []
        """The constants of each rule. A more general rule has a part of them."""
        self._by_first_pattern: Shapes[int] = Shapes()
        self._by_pattern: Shapes[int] = Shapes()

    def __iter__(self) -> Iterator[System]:
        return iter(list(self._rules.values()))

    def add(self, rule: System) -> System | None:
        """Adds a rule. Returns it with canonical names, or None if it is redundant.

        Rules that the new one makes redundant are removed.
        """
        decided = with_decided_filters(replace(rule, joinables=tuple(dict.fromkeys(rule.joinables))))
        if decided is None or is_tautology(decided):
            return None
        canonical = with_canonical_names(decided)
        constants = _constants(canonical)
        shapes = dict.fromkeys(map(shape, patterns(canonical)))
        for pattern_shape in shapes:
            for number in self._by_first_pattern.overlapping(pattern_shape):
                if self._constants[number] <= constants and self._subsumes(number, canonical):
                    return None
        for number in list(self._by_pattern.overlapping(next(iter(shapes)))):
            other = self._rules.get(number) if constants <= self._constants[number] else None
            if other is not None and subsumes(canonical, other):
                del self._rules[number]
        number = len(self._constants)
        self._constants.append(constants)
        self._rules[number] = canonical
        self._by_first_pattern.add(next(iter(shapes)), number)
        for pattern_shape in shapes:
            self._by_pattern.add(pattern_shape, number)
        return canonical

    def _subsumes(self, number: int, special: System) -> bool:
        return number in self._rules and subsumes(self._rules[number], special)


def _constants(rule: System) -> frozenset[Term]:
    parts = (*patterns(rule), *heads(rule))
    relations = (part.relation for part in parts if isinstance(part, AtomPattern))
    return frozenset((*relations, *(slot for part in parts for slot in part.slots if isinstance(slot, str))))


def subsumes(general: System, special: System) -> bool:
    """Returns whether a plain rule derives all that another one derives, by fewer premises.

    Both have one conclusion.
    """
    if len(general.joinables) > len(special.joinables) or len(general.predicates) > len(special.predicates):
        return False
    if general.sources != special.sources:
        return False
    values = matching(next(heads(general)), next(heads(special)), {})
    if values is None:
        return False
    return any(
        set(substituted(general, candidate).predicates) <= set(special.predicates)
        for candidate in matches(patterns(general), patterns(special), values)
    )


def derivable(rules: Iterable[System], generic_rules: Iterable[System]) -> list[System]:
    """Returns plain rules without those that read a helper which no rule derives.

    Args:
        rules: The rules.
        generic_rules: Rules of other kinds, which may derive helpers as well.
    """
    remaining = list(rules)
    while True:
        conclusions: Shapes[None] = Shapes()
        for rule in (*remaining, *generic_rules):
            for head in heads(rule):
                if is_helper(head):
                    conclusions.add(shape(head), None)
        supported = [rule for rule in remaining if all(_is_supported(part, conclusions) for part in patterns(rule))]
        if len(supported) == len(remaining):
            return remaining
        remaining = supported


def _is_supported(pattern: FactPattern, conclusions: Shapes[None]) -> bool:
    return not is_helper(pattern) or any(True for _ in conclusions.overlapping(shape(pattern)))
