"""``never-true``: tests of one value that exclude each other."""

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

_SIGNS = {
    f"{JENA}lessThan": "<", f"{JENA}le": "<=", f"{JENA}greaterThan": ">", f"{JENA}ge": ">=", f"{JENA}equal": "=",
    test_iri("less-than"): "<", test_iri("less-than-or-equal"): "<=", test_iri("greater-than"): ">",
    test_iri("greater-than-or-equal"): ">=", test_iri("equals"): "=",
}  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def check(program: Program) -> Iterator[Finding]:
    """A finding for each comparison of a variable with a number that no number passes which passes one before it, in
    the same body."""
    for rule in program.rules:
        for system in systems(rule):
            known: dict[Variable, list[_Limit]] = {}
            for one in _limits(system):
                other = next((before for before in known.get(one.variable, ()) if not one.meets(before)), None)
                if other is not None:
                    message = f"`{one.origin.words}` is never true where `{other.origin.words}` is"
                    yield Finding("never-true", WARNING, message, one.origin, f"no number passes both ({other.origin})")
                known.setdefault(one.variable, []).append(one)


class _Limit(NamedTuple):
    """What a test says of the value of a variable: how it compares with a number."""

    variable: Variable
    sign: str
    number: Fraction
    origin: Origin

    def meets(self, other: _Limit) -> bool:
        """Whether some number is within both limits."""
        if "=" in (self.sign, other.sign):
            one, that = (self, other) if self.sign == "=" else (other, self)
            return that.holds(one.number)
        if self.sign[0] == other.sign[0]:
            return True
        least, most = (self, other) if self.sign[0] == ">" else (other, self)
        return least.number < most.number or (least.number == most.number and least.sign + most.sign == ">=<=")

    def holds(self, value: Fraction) -> bool:
        """Whether a number is within the limit."""
        if self.sign[-1] == "=" and value == self.number:
            return True
        return (self.sign[0] == "<" and value < self.number) or (self.sign[0] == ">" and value > self.number)


def _limits(system: System) -> Iterator[_Limit]:
    for one in system.predicates:
        for call in conjuncts(one.expression) if isinstance(one, Filter) else ():
            if call.function in _SIGNS and call.origin is not None:
                yield from _limit(call, _SIGNS[call.function], call.origin)


def _limit(call: Call, sign: str, origin: Origin) -> Iterator[_Limit]:
    first, second = call.arguments
    for variable, constant, turned in ((first, second, sign), (second, first, _TURNED[sign])):
        value = _fraction(constant)
        if isinstance(variable, Variable) and value is not None:
            yield _Limit(variable, turned, value, origin)


def _fraction(expression: Expression) -> Fraction | None:
    """The number that a constant denotes, if it is finite."""
    found = number(expression) if isinstance(expression, str) else None
    return Fraction(found.value) if found is not None and isfinite(found.value) else None
