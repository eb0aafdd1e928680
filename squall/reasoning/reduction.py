"""Reduction of rules: what derives nothing new is left out.

A rule with one conclusion is *redundant* if it concludes a part of its own body, or if a more general rule concludes
the same of a part of its body (theta-subsumption; G. Plotkin, A Note on Inductive Generalization, 1970).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from squall import functions
from squall.functions.datatypes import NOT_IDENTICAL
from squall.model.consequences import Construct
from squall.model.deadlines import is_pure
from squall.model.expressions import Bind, Call, Filter, Predicate
from squall.model.fact_shapes import Shapes, shape
from squall.model.patterns import AtomPattern, FactPattern, Variable
from squall.model.systems import System
from squall.rdf import Term
from squall.reasoning.binding_times import heads, is_helper
from squall.reasoning.substitution import Substitution, matches, matching, substituted, with_canonical_names


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


def with_evaluated_constants(rule: System) -> System | None:
    """Returns a plain rule whose expressions of constants are evaluated; None if it derives nothing."""
    values: dict[Variable, Term] = {}
    remaining: dict[Predicate, None] = {}
    for predicate in rule.predicates:
        match current := substituted(predicate, values):
            case Filter(expression=Call(function=function, arguments=(first, second))) if (
                function == NOT_IDENTICAL and first == second
            ):
                return None
            case Filter(expression=Call() as test) if _is_known(test) and functions.lookup(test.function).truth:
                if not _result(test):
                    return None
            case Bind(variable=variable, expression=Call() as call) if _is_known(call):
                value = _result(call)
                if not isinstance(value, str):
                    return None
                values[variable] = Term(value)
            case _:
                remaining[current] = None
    result: System = substituted(replace(rule, predicates=tuple(remaining)), values)
    return result


def _is_known(call: Call) -> bool:
    """Returns whether a call has one value in any run: its arguments are terms."""
    return all(isinstance(argument, str) for argument in call.arguments) and is_pure(call, in_any_run=True)


def _result(call: Call) -> object:
    return functions.lookup(call.function).evaluate(*call.arguments)


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
        decided = with_evaluated_constants(replace(rule, joinables=tuple(dict.fromkeys(rule.joinables))))
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
        _has_predicates(general.predicates, special.predicates, candidate)
        for candidate in matches(patterns(general), patterns(special), values)
    )


def _has_predicates(general: Sequence[Predicate], special: Sequence[Predicate], values: Substitution) -> bool:
    """Returns whether each of some predicates is one of others, where variables have names of others."""
    if not general:
        return True
    first: Predicate = substituted(general[0], values)
    if first in special:
        return _has_predicates(general[1:], special, values)
    return isinstance(first, Bind) and any(
        _has_predicates(general[1:], special, {**values, first.variable: candidate.variable})
        for candidate in special
        if isinstance(candidate, Bind) and replace(candidate, variable=first.variable) == first
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
