"""Tests of a time that is bound to a variable (``now(?n) ge(?n, ?deadline)``) become tests of the time itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from squall import functions
from squall.functions.deadlines import moves_time, time_operands
from squall.model.expressions import Bind, Call, Expression, Filter, Predicate
from squall.model.patterns import FactPattern, Variable
from squall.model.reading import variables
from squall.model.rewriting import map_fields, map_parts
from squall.model.systems import System

_FIELDS_WITH_TESTS = ("joinables", "predicates", "grouping", "slice", "subsystems")
"""The fields of a system in which there may be tests."""


def with_deadlines(system: System) -> System:
    """Returns a system in which tests compare the time itself, where they compare a variable bound to it.

    Such a test is true from a deadline on, or until it, rather than decided once (`squall.functions.deadlines`). It
    moves in front of the binding, so that the variable has the time since which the solution passes the test.
    """
    rewritten = map_fields(system, _FIELDS_WITH_TESTS, _rewritten_part)
    predicates = _rewritten(rewritten.predicates)
    return rewritten if predicates == rewritten.predicates else replace(rewritten, predicates=predicates)


def _rewritten_part(part: Any) -> Any:
    if isinstance(part, System):
        return with_deadlines(part)
    return part if isinstance(part, FactPattern) else map_parts(part, _rewritten_part)


def _rewritten(predicates: Sequence[Predicate]) -> tuple[Predicate, ...]:
    result: list[Predicate] = []
    for predicate in predicates:
        place = len(result)
        if isinstance(predicate, Filter):
            place, predicate = _before_binding(predicate, result)
        result.insert(place, predicate)
    return tuple(result)


def _before_binding(test: Filter, earlier: Sequence[Predicate]) -> tuple[int, Filter]:
    """Returns a test of the time itself with its place among the earlier predicates; or the test at its own place, if
    it is no test of a deadline, or needs what they bind.
    """
    bindings = [part for part in earlier if isinstance(part, Bind)]
    times = {part.variable: part.expression for part in bindings if moves_time(part.expression)}
    arguments = tuple(_substituted(argument, times) for argument in test.expression.arguments)
    direct = replace(test, expression=replace(test.expression, arguments=arguments))
    needed_variables = set(variables(direct.expression))
    place = len(earlier)
    if direct == test or time_operands(direct.expression) is None:
        return place, test
    while place and _may_follow(earlier[place - 1], needed_variables):
        place -= 1
    return place, direct


def _may_follow(predicate: Predicate, needed_variables: set[Variable]) -> bool:
    """Returns whether a predicate may also come behind a test that needs some variables."""
    match predicate:
        case Bind(variable=variable, expression=expression):
            return variable not in needed_variables and (moves_time(expression) or is_pure(expression))
        case Filter(expression=expression):
            return is_pure(expression) or time_operands(expression) is not None
        case _:
            return False


def is_pure(expression: Expression, in_any_run: bool = False) -> bool:
    """Returns whether the value of an expression depends on its arguments alone, and has no side effect.

    Args:
        expression: The expression.
        in_any_run: Whether the value has to be the same in any run, so that no seed may decide it.
    """
    if not isinstance(expression, Call):
        return True
    function = functions.lookup(expression.function)
    is_constant = function.pure and not function.timed and not (in_any_run and function.seeded is not None)
    return is_constant and all(is_pure(argument, in_any_run) for argument in expression.arguments)


def _substituted(expression: Expression, values: dict[Variable, Expression]) -> Expression:
    if isinstance(expression, Variable):
        return values.get(expression, expression)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_substituted(part, values) for part in expression.arguments))
    return expression
