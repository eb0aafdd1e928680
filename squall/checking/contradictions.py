"""The check ``never-true`` for tests of one value that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

from squall.checking.conditions import JENA, conjuncts
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, systems
from squall.errors import Origin
from squall.functions.sparql.names import test_iri
from squall.functions.values import number
from squall.model import Call, Expression, Filter, System, Variable

SIGNS = {
    f"{JENA}lessThan": "<", f"{JENA}le": "<=", f"{JENA}greaterThan": ">", f"{JENA}ge": ">=", f"{JENA}equal": "=",
    test_iri("less-than"): "<", test_iri("less-than-or-equal"): "<=", test_iri("greater-than"): ">",
    test_iri("greater-than-or-equal"): ">=", test_iri("equals"): "=",
}  # fmt: skip
"""The comparisons of numbers, by their functions."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each comparison with a number that excludes an earlier one of the same variable in the
    same body.
    """
    for rule in program.rules:
        for system in systems(rule):
            limits_by_variable: dict[Variable, list[_Limit]] = {}
            for limit in _limits(system):
                excluded = next(
                    (earlier for earlier in limits_by_variable.get(limit.variable, ()) if not limit.meets(earlier)),
                    None,
                )
                if excluded is not None:
                    message = f"`{limit.origin.words}` is never true where `{excluded.origin.words}` is"
                    yield Finding(
                        "never-true", WARNING, message, limit.origin, f"no number passes both ({excluded.origin})"
                    )
                limits_by_variable.setdefault(limit.variable, []).append(limit)


class _Limit(NamedTuple):
    """A limit that a test sets to the value of a variable: a comparison with a number."""

    variable: Variable
    sign: str
    number: Fraction
    origin: Origin

    def meets(self, other: _Limit) -> bool:
        """Returns whether some number is within both limits."""
        if "=" in (self.sign, other.sign):
            exact, range_limit = (self, other) if self.sign == "=" else (other, self)
            return range_limit.holds(exact.number)
        if self.sign[0] == other.sign[0]:
            return True
        lower, upper = (self, other) if self.sign[0] == ">" else (other, self)
        return lower.number < upper.number or (lower.number == upper.number and lower.sign + upper.sign == ">=<=")

    def holds(self, value: Fraction) -> bool:
        """Returns whether a number is within the limit."""
        if self.sign[-1] == "=" and value == self.number:
            return True
        return (self.sign[0] == "<" and value < self.number) or (self.sign[0] == ">" and value > self.number)


def _limits(system: System) -> Iterator[_Limit]:
    for predicate in system.predicates:
        for call in conjuncts(predicate.expression) if isinstance(predicate, Filter) else ():
            if call.function in SIGNS and call.origin is not None:
                yield from _limit(call, SIGNS[call.function], call.origin)


def _limit(call: Call, sign: str, origin: Origin) -> Iterator[_Limit]:
    first, second = call.arguments
    for variable, constant, turned in ((first, second, sign), (second, first, _MIRRORED[sign])):
        value = fraction(constant)
        if isinstance(variable, Variable) and value is not None:
            yield _Limit(variable, turned, value, origin)


def fraction(expression: Expression) -> Fraction | None:
    """Returns the number that a constant denotes, if it is finite."""
    value = number(expression) if isinstance(expression, str) else None
    if value is None or (isinstance(value.value, float) and not isfinite(value.value)):
        return None
    return Fraction(value.value)
