"""Expressions over a solution, and aggregates over several (SPARQL 1.1, section 18.5.1)."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction

from squall import functions
from squall.functions import values
from squall.functions.ordering import key
from squall.model import Aggregate, Call, Expression, Variable
from squall.rdf import XSD, Term, is_blank, literal
from squall.testing.oracle.base import Bindings, Instant, once


def evaluated(expression: Expression, solution: Bindings, instant: Instant, place: object = None) -> Term | bool | None:
    match expression:
        case Variable():
            return solution.get(expression, instant.given.get(expression))
        case Call(function=iri, arguments=arguments):
            function = functions.lookup(iri)
            argument_values = [evaluated(argument, solution, instant, place) for argument in arguments]
            clock = [instant.start((place, frozenset(solution.items())))] if function.timed else []
            return function.evaluate(*clock, *argument_values)
        case str():
            return expression


def term_of(expression: Expression, solution: Bindings, instant: Instant, place: object = None) -> Term | None:
    """Returns the term that an expression evaluates to, or None."""
    value = evaluated(expression, solution, instant, place)
    return Term(value) if isinstance(value, str) else None


def aggregated(aggregate: Aggregate, members: list[Bindings], instant: Instant) -> Term | None:
    """Returns the value of an aggregate over a group, or None."""
    # In one piece: a flat match, which reads as the definition of each aggregate.
    if aggregate.expression is None:
        return values.integer(len(once(members) if aggregate.distinct else members))
    terms = [term_of(aggregate.expression, solution, instant) for solution in members]
    if aggregate.distinct:
        terms = list(dict.fromkeys(terms))
    bound_terms = sorted((term for term in terms if term is not None), key=key)
    failed = len(bound_terms) < len(terms)
    match aggregate.kind:
        case "count":
            return values.integer(len(bound_terms))
        case "sample":
            return bound_terms[0] if bound_terms else None
        case "min":
            return bound_terms[0] if bound_terms and not failed else None
        case "max":
            return bound_terms[-1] if bound_terms and not failed else None
        case "group_concat":
            failed = failed or any(map(is_blank, bound_terms))
            return None if failed else literal(aggregate.separator.join(map(values.text, bound_terms)))
        case "sum":
            return _sum(terms)
        case "avg":
            return _average(terms)
        case kind:
            accumulator = functions.lookup_aggregate(kind).accumulator(separator=aggregate.separator)
            for term in terms:
                accumulator.add(term, 1)
            return accumulator.value()


_TYPES = ("integer", "decimal", "float", "double")
"""The numeric types, each promoted to those after it (SPARQL 1.1, section 17.3)."""


def _amount(term: Term | None) -> tuple[int, int | Decimal | float] | None:
    """Returns the type (a position in `_TYPES`) and the value of a number, or None for any other term."""
    number = None if term is None else values.number(term)
    if number is None:
        return None
    kind = "integer" if isinstance(number.value, int) else number.kind
    return _TYPES.index(kind), number.value


def _total(amounts: list[tuple[int, int | Decimal | float]]) -> tuple[int, Fraction | float]:
    """Returns the type and the exact sum, which is a float if it is INF, -INF or NaN."""
    kind = max((kind for kind, _ in amounts), default=0)
    beyond = [value for _, value in amounts if isinstance(value, float) and not math.isfinite(value)]
    return kind, sum(beyond) if beyond else sum((Fraction(value) for _, value in amounts), Fraction())


def _sum(terms: list[Term | None]) -> Term | None:
    amounts = [amount for amount in map(_amount, terms) if amount is not None]
    return _number(*_total(amounts)) if len(amounts) == len(terms) else None


def _average(terms: list[Term | None]) -> Term | None:
    amounts = [amount for amount in map(_amount, terms) if amount is not None]
    if not amounts or len(amounts) < len(terms):
        return None if terms else values.integer(0)
    kind, total = _total(amounts)
    return _number(max(kind, _TYPES.index("decimal")), total / len(amounts))


def _number(kind: int, value: Fraction | float) -> Term | None:
    """Returns the literal of a number, rounded once to its type; None if it has too many digits."""
    match _TYPES[kind]:
        case "integer":
            return values.representable(values.integer(int(value)))
        case "decimal":
            top, bottom = value.as_integer_ratio()
            return values.representable(values.decimal(values.ARITHMETIC.divide(Decimal(top), Decimal(bottom))))
        case "float":
            return _float(value)
        case _:
            return values.double(float(value))


def _float(value: Fraction | float) -> Term:
    """Returns the nearest xsd:float, with as few digits as distinguish it from all others."""
    single = _single(value) if isinstance(value, Fraction) else value
    numerals = (values.text(values.double(float(f"{single:.{digits}g}"))) for digits in range(1, 10))
    terms = [literal(numeral, XSD + "float") for numeral in numerals]
    return next((term for term in terms if values.number(term) == (single, "float")), terms[-1])


def _single(value: Fraction) -> float:
    """Returns the nearest number of single precision.

    The neighbours are tried as well, since the value was rounded to double precision first.
    """
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    near: list[float] = [struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (0, 1, -1)]
    return min(filter(math.isfinite, near), key=lambda candidate: abs(Fraction(candidate) - value))
