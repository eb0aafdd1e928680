"""Construction of SPARQL expressions: calls by name, calls by IRI, conditions, and scopes.

An expression that is used as a *value* consists of functions that return terms, and None for an error. One that is used
as a *condition* (FILTER, HAVING, the condition of an OPTIONAL) is a test, in which an error is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from squall.errors import Origin
from squall.functions import builtins, lookup
from squall.functions.aggregation import AggregateFunction
from squall.functions.sparql.logic import BOOLEAN_OF, EBV
from squall.functions.sparql.names import LANGUAGE, test_iri
from squall.functions.sparql.terms import SOLUTION
from squall.functions.user_aggregates import ARGUMENTS
from squall.model import Call, Expression, Variable
from squall.rdf import literal
from squall.rdf.compounds import BUILD

_SIGNS = {"+", "-"}
_JUNCTIONS = {test_iri("logical-and"), test_iri("logical-or")}


def call(
    name: str,
    arguments: Sequence[Expression] = (),
    *,
    scope: Sequence[Expression] = (),
    origin: Origin | None = None,
) -> Call:
    """Returns the value of a function or operator by its name in upper case (``STRLEN``, ``NOT IN``, ``+``).

    Args:
        name: The name. ``+`` and ``-`` take one or two arguments.
        arguments: The arguments. IRI and URI take the base IRI as a second argument, if there is one.
        scope: The scope of RAND, UUID, STRUUID and BNODE (see `scope`).
        origin: The place of the call.

    Raises:
        KeyError: There is no such name.
    """
    builtin = builtins(LANGUAGE)[f"unary {name}" if name in _SIGNS and len(arguments) == 1 else name]
    mode = builtin.modes[min(len(arguments) - builtin.least, len(builtin.modes) - 1)]
    return by_iri(mode.function, (*scope, *arguments) if mode.scoped else arguments, origin=origin)


def by_iri(iri: str, arguments: Sequence[Expression] = (), *, origin: Origin | None = None) -> Call:
    """Returns the value of a function by its IRI without brackets: a cast, a function of XPath, or a user's function.

    Raises:
        PluginError: There is no such function.
    """
    call = Call(iri, tuple(map(value, arguments)), origin)
    return Call(BOOLEAN_OF.iri, (call,), origin) if lookup(iri).truth else call


def value(expression: Expression) -> Expression:
    """Returns the expression as a value. The value of a test is its boolean."""
    if isinstance(expression, Call) and lookup(expression.function).truth:
        return Call(BOOLEAN_OF.iri, (expression,), expression.origin)
    return expression


def condition(expression: Expression) -> Call:
    """Returns the expression as a condition, which is its effective boolean value."""
    if not isinstance(expression, Call):
        return Call(EBV.iri, (expression,))
    if lookup(expression.function).truth:
        return expression
    if expression.function == BOOLEAN_OF.iri and isinstance(expression.arguments[0], Call):
        return expression.arguments[0]
    test = lookup(expression.function).as_test or _tests().get(expression.function)
    if test is None:
        return Call(EBV.iri, (expression,), expression.origin)
    arguments = map(condition, expression.arguments) if test in _JUNCTIONS else expression.arguments
    return Call(test, tuple(arguments), expression.origin)


def all_of(conditions: Sequence[Call]) -> Call | None:
    """Returns the conjunction of the conditions, or None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return condition(call("&&", conditions))


@cache
def _tests() -> dict[str, str]:
    """Returns the tests by the functions that they replace."""
    return {builtin.modes[0].function: builtin.test for builtin in builtins(LANGUAGE).values() if builtin.test}


def scope(key: str, variables: Sequence[Variable]) -> tuple[Expression, ...]:
    """Returns the arguments by which a function gives a new value for each solution.

    Args:
        key: Identifies the call in the program. For ``BNODE(label)`` it identifies the query or group in which equal
            labels mean equal nodes.
        variables: The variables of the solution, always in the same order.
    """
    return (literal(key), *variables)


def aggregated(aggregate: AggregateFunction, arguments: Sequence[Expression]) -> Expression | None:
    """Returns the expression whose values an aggregate is given; None for ``*``, which has no argument."""
    if not aggregate.takes_compounds:
        return arguments[0] if arguments else None
    return Call(BUILD, (ARGUMENTS, *arguments))


def solution(variables: Sequence[Variable]) -> Call:
    """Returns an expression that differs between solutions: ``COUNT(DISTINCT *)`` counts its values."""
    return Call(SOLUTION.iri, tuple(variables))
