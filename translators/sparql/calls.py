"""How a translator composes the expressions of SPARQL: calls by name, calls by IRI, conditions, scopes.

An expression that is used as a *value* consists of functions that give terms, and None for an error; one that is used
as a *condition* (FILTER, HAVING, the condition of an OPTIONAL) is a test, for which an error is as good as false.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from squall.errors import Origin
from squall.functions import builtins, lookup
from squall.functions.sparql.logic import BOOLEAN_OF, EBV
from squall.functions.sparql.names import LANGUAGE, test_iri
from squall.functions.sparql.terms import SOLUTION
from squall.model import Call, Expression, Variable
from squall.rdf import literal

_SIGNS = {"+", "-"}
_JUNCTIONS = {test_iri("logical-and"), test_iri("logical-or")}


def call(
    name: str,
    arguments: Sequence[Expression] = (),
    *,
    scope: Sequence[Expression] = (),
    origin: Origin | None = None,
) -> Call:
    """The value of a function or operator by its name in upper case (``STRLEN``, ``NOT IN``, ``+`` with one argument
    or two).

    scope: see `scope`; of RAND, UUID, STRUUID and BNODE. IRI and URI take the base IRI as a second argument, if there
    is one. Raises KeyError where there is no such name.
    """
    builtin = builtins(LANGUAGE)[f"unary {name}" if name in _SIGNS and len(arguments) == 1 else name]
    mode = builtin.modes[min(len(arguments) - builtin.least, len(builtin.modes) - 1)]
    return by_iri(mode.function, (*scope, *arguments) if mode.scoped else arguments, origin=origin)


def by_iri(iri: str, arguments: Sequence[Expression] = (), *, origin: Origin | None = None) -> Call:
    """The value of a function by its IRI without brackets: a cast, a function of XPath's, one of the user's own.

    Raises PluginError where there is none.
    """
    call = Call(iri, tuple(map(value, arguments)), origin)
    return Call(BOOLEAN_OF.iri, (call,), origin) if lookup(iri).truth else call


def value(expression: Expression) -> Expression:
    """The expression as a value: of a test, the boolean that says what it says."""
    if isinstance(expression, Call) and lookup(expression.function).truth:
        return Call(BOOLEAN_OF.iri, (expression,), expression.origin)
    return expression


def condition(expression: Expression) -> Call:
    """The expression as a condition: true where its effective boolean value is."""
    if not isinstance(expression, Call):
        return Call(EBV.iri, (expression,))
    if lookup(expression.function).truth:
        return expression
    if expression.function == BOOLEAN_OF.iri and isinstance(expression.arguments[0], Call):
        return expression.arguments[0]
    test = _tests().get(expression.function)
    if test is None:
        return Call(EBV.iri, (expression,), expression.origin)
    arguments = map(condition, expression.arguments) if test in _JUNCTIONS else expression.arguments
    return Call(test, tuple(arguments), expression.origin)


def all_of(conditions: Sequence[Call]) -> Call | None:
    """The condition that all of these hold; None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return condition(call("&&", conditions))


@cache
def _tests() -> dict[str, str]:
    """The tests by the functions for which they stand."""
    return {builtin.modes[0].function: builtin.test for builtin in builtins(LANGUAGE).values() if builtin.test}


def scope(key: str, variables: Sequence[Variable]) -> tuple[Expression, ...]:
    """What makes a value new for each solution: a key, and what the variables are bound to.

    key: tells the call from all others of the program; for ``BNODE(label)`` the query or group in which equal labels
    mean equal nodes. variables: those of the solution, always in the same order.
    """
    return (literal(key), *variables)


def solution(variables: Sequence[Variable]) -> Call:
    """An expression that is different for different solutions: ``COUNT(DISTINCT *)`` is that of this one."""
    return Call(SOLUTION.iri, tuple(variables))
