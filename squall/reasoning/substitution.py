"""Substitutions: terms and variables in place of the variables of rules, and the unifiers of patterns.

Terms have no parts here, so a unifier is found slot by slot (J. W. Lloyd, Foundations of Logic Programming, 1987,
section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from squall.model.consequences import Construct
from squall.model.expressions import Bind, Call, Filter, TableFunction
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.reading import variables
from squall.model.systems import System
from squall.rdf import is_literal
from squall.reasoning.binding_times import bound_by, heads

Substitution = Mapping[Variable, Slot]


def substituted(part: Any, values: Substitution) -> Any:
    """Returns a part of a plain rule with values in place of its variables.

    A literal in place of a variable of a pattern matches by term, as variables do.
    """
    # In one piece: a case for each part of a plain rule.
    match part:
        case Variable():
            return values.get(part, part)
        case Pattern() | AtomPattern():
            return _pattern(part, values)
        case Call(arguments=arguments):
            return replace(part, arguments=tuple(substituted(argument, values) for argument in arguments))
        case Filter(expression=expression):
            return replace(part, expression=substituted(expression, values))
        case Bind(variable=variable, expression=expression):
            variable = cast(Variable, values.get(variable, variable))
            return replace(part, variable=variable, expression=substituted(expression, values))
        case TableFunction(variables=names, arguments=arguments):
            names = tuple(cast(Variable, values.get(name, name)) for name in names)
            return replace(part, variables=names, arguments=tuple(substituted(item, values) for item in arguments))
        case Construct(template=template):
            return replace(part, template=tuple(_pattern(pattern, values) for pattern in template))
        case System():
            return replace(
                part,
                joinables=tuple(substituted(joinable, values) for joinable in part.joinables),
                predicates=tuple(substituted(predicate, values) for predicate in part.predicates),
                consequences=tuple(substituted(consequence, values) for consequence in part.consequences),
            )
        case _:
            return part


def _pattern(pattern: FactPattern, values: Substitution) -> FactPattern:
    slots = tuple(values.get(slot, slot) if isinstance(slot, Variable) else slot for slot in pattern.slots)
    if slots == pattern.slots:
        return pattern
    gets_literal = any(
        isinstance(new, str) and is_literal(new) and new != old for new, old in zip(slots, pattern.slots, strict=True)
    )
    exact = pattern.exact or gets_literal
    if isinstance(pattern, Pattern):
        subject, predicate, object = slots
        return replace(pattern, subject=subject, predicate=predicate, object=object, exact=exact)
    return replace(pattern, arguments=slots, exact=exact)


def variables_of(rule: System) -> Iterator[Variable]:
    """Yields the variables of a plain rule, with repetitions."""
    for pattern in (*rule.joinables, *heads(rule)):
        yield from variables(pattern)
    for predicate in rule.predicates:
        yield from bound_by(predicate)


def renamed(rule: System, number: int) -> System:
    """Returns a plain rule whose variables have names of their own."""
    names: Substitution = {name: Variable(f"{name.name}~{number}") for name in variables_of(rule)}
    result: System = substituted(rule, names)
    return result


def with_canonical_names(rule: System) -> System:
    """Returns a plain rule whose variables are numbered in the order of its text."""
    order = {name: Variable(f"v{number}") for number, name in enumerate(dict.fromkeys(variables_of(rule)))}
    result: System = substituted(rule, order)
    return result


def unifier(left: FactPattern, right: FactPattern) -> dict[Variable, Slot] | None:
    """Returns the most general substitution under which two patterns are equal, or None if there is none."""
    if type(left) is not type(right) or len(left.slots) != len(right.slots):
        return None
    if isinstance(left, AtomPattern) and isinstance(right, AtomPattern) and left.relation != right.relation:
        return None
    values: dict[Variable, Slot] = {}
    for left_slot, right_slot in zip(left.slots, right.slots, strict=True):
        first, second = _value(left_slot, values), _value(right_slot, values)
        if first == second:
            continue
        if isinstance(first, Variable):
            values[first] = second
        elif isinstance(second, Variable):
            values[second] = first
        else:
            return None
    return {variable: _value(variable, values) for variable in values}


def _value(slot: Slot, values: Substitution) -> Slot:
    while isinstance(slot, Variable) and slot in values:
        slot = values[slot]
    return slot


def matching(general: FactPattern, special: FactPattern, values: Substitution) -> dict[Variable, Slot] | None:
    """Returns a substitution, extended so that it makes one pattern equal to another; None if there is none."""
    if type(general) is not type(special) or len(general.slots) != len(special.slots):
        return None
    if isinstance(general, AtomPattern) and isinstance(special, AtomPattern) and general.relation != special.relation:
        return None
    if general.exact != special.exact and any(isinstance(slot, str) and is_literal(slot) for slot in general.slots):
        return None
    extended = dict(values)
    for slot, value in zip(general.slots, special.slots, strict=True):
        if isinstance(slot, Variable):
            if extended.setdefault(slot, value) != value:
                return None
        elif slot != value:
            return None
    return extended


def matches(
    general: Sequence[FactPattern], special: Sequence[FactPattern], values: Substitution
) -> Iterator[Substitution]:
    """Yields the substitutions that make each of some patterns equal to one of others."""
    if not general:
        yield values
        return
    for candidate in special:
        extended = matching(general[0], candidate, values)
        if extended is not None:
            yield from matches(general[1:], special, extended)
