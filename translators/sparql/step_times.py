"""The times of patterns: ``start(?step)``, ``before(?step, ?other)`` (CT-SPARQL), ``getDURATION()`` (EP-SPARQL).

Sources: J. Allen, Maintaining knowledge about temporal intervals (CACM 26(11), 1983); Anicic et al., EP-SPARQL: a
unified language for event processing and stream reasoning (WWW 2011), section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal

from squall.errors import Origin, did_you_mean
from squall.functions.intervals import CONVERSE, RELATIONS
from squall.functions.values import DAY_TIME, duration, number
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.datasets import MAX_DIGITS
from squall.model import Variable
from squall.rdf import XSD, Term, literal
from squall.translators.sparql import time_patterns
from squall.translators.sparql.state import State


def times(call: q.StepCall, names: Iterable[Variable], state: State) -> q.Expression:
    """Returns an expression of the variables of times for a function of steps.

    Args:
        call: The call.
        names: The variables that have a value where the call stands.
        state: The state, with the names of all steps.
    """
    visible_names = frozenset(names)
    if not call.steps:
        return _interval(call, visible_names, state)
    for step in call.steps:
        if step.name not in state.steps:
            suggestion = did_you_mean(str(step), [str(name) for name in state.steps.values()])
            forms = f"`{{ ... }} AS {step}` in CT-SPARQL, `SEQ({step} ; ...)` in CQELS-QL, `EVENT {step}` in RSP-QL"
            hint = suggestion or f"name it: {forms}"
            state.notes.fail(f"there is no step `{step}`", step.origin, hint)
            return Term('""')
        if time_patterns.start_of(step.variable) not in visible_names:
            hint = "write it behind the pattern, in the same group, or in the `WHEN` of a later step"
            state.notes.fail(f"the times of `{step}` are not known here", step.origin, hint)
            return Term('""')
    return _times(
        call.function,
        [(time_patterns.start_of(step.variable), time_patterns.end_of(step.variable)) for step in call.steps],
        call.origin,
    )


def _times(function: str, intervals: Sequence[tuple[Variable, Variable]], origin: Origin | None) -> q.Expression:
    (start, end), *others = intervals
    if not others:
        if function == "duration":
            return q.Call("-", (end, start), origin=origin)
        return start if function == "start" else end
    ((other_start, other_end),) = others
    converse = CONVERSE.get(function)
    if converse is not None:
        return _times(converse, [(other_start, other_end), (start, end)], origin)
    slots = {"s": start, "e": end, "S": other_start, "E": other_end}
    tests = tuple(q.Call(test[1], (slots[test[0]], slots[test[2]]), origin=origin) for test in RELATIONS[function])
    return tests[0] if len(tests) == 1 else q.Call("&&", tests, origin=origin)


# EP-SPARQL

PATTERN_OF_QUERY = Variable("the pattern of the query")
"""The name of the pattern of a query of EP-SPARQL."""
_MS = literal("PT0.001S", DAY_TIME)
_EPOCH = literal("1970-01-01T00:00:00Z", XSD + "dateTime")
_COMPARISONS = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""The comparisons, each with the one that means the same if its operands are exchanged."""


def _interval(call: q.StepCall, names: frozenset[Variable], state: State) -> q.Expression:
    """Returns the time of a pattern in whose group a call stands: an xsd:dateTime, or an xsd:dayTimeDuration."""
    own = (time_patterns.OWN_START, time_patterns.OWN_END)
    outermost = (time_patterns.start_of(PATTERN_OF_QUERY), time_patterns.end_of(PATTERN_OF_QUERY))
    times = next((pair for pair in (own, outermost) if pair[0] in names), None)
    if times is None:
        hint = "write it into the `FILTER` of the group of the pattern, outside of `OPTIONAL`, `EXISTS` and the like"
        state.notes.fail(f"the times of the pattern are not known here: `{call}`", call.origin, hint)
        return Term('""')
    start, end = times
    if call.function == "getDURATION":
        return _as_duration(q.Call("-", (end, start), origin=call.origin), call.origin)
    time = start if call.function == "getSTARTTIME" else end
    return q.Call("+", (_EPOCH, _as_duration(time, call.origin)), origin=call.origin)


def _as_duration(length: q.Expression, origin: Origin | None) -> q.Call:
    return q.Call("*", (_MS, length), origin=origin)


def with_duration(call: q.Call, state: State) -> q.Call:
    """Returns a comparison of ``getDURATION()`` and a constant with the constant as a duration: numbers are ms.

    An error is recorded for a constant that is no length of time.
    """
    comparison = _comparison(call)
    if comparison is None:
        return call
    _, constant = comparison
    if _milliseconds(constant) is None:
        hint = 'write days, hours, minutes and seconds, `"PT10S"^^xsd:duration`, or integer ms'
        state.notes.fail(f"`{constant}` is no length of time", call.origin, hint)
        return call
    if duration(constant) is not None:
        return call
    arguments = tuple(_as_duration(part, call.origin) if part == constant else part for part in call.arguments)
    return q.Call(call.function, arguments, origin=call.origin)


def greatest_duration(condition: q.Expression) -> int | None:
    """Returns the greatest length (integer ms) that a condition on ``getDURATION()`` allows, or None if it is another
    condition. It is less than 0 if none is allowed."""
    comparison = _comparison(condition)
    if comparison is None:
        return None
    sign, constant = comparison
    length = _milliseconds(constant)
    if length is None or sign not in ("<", "<=", "="):
        return None
    whole = int(length.to_integral_value(ROUND_FLOOR))
    return whole - 1 if sign == "<" and whole == length else whole


def _comparison(condition: q.Expression) -> tuple[str, Term] | None:
    """Returns the comparison of ``getDURATION()`` with a constant, or None."""
    match condition:
        case q.Call(function=sign, arguments=(q.StepCall(function="getDURATION"), str() as constant)):
            return (sign, Term(constant)) if sign in _COMPARISONS else None
        case q.Call(function=sign, arguments=(str() as constant, q.StepCall(function="getDURATION"))):
            return (_COMPARISONS[sign], Term(constant)) if sign in _COMPARISONS else None
    return None


def _milliseconds(constant: Term) -> Decimal | None:
    """Returns the length of time of a duration, or of a number of ms; None if it is no length, or too large."""
    length, value = duration(constant), number(constant)
    if length is not None:
        result = None if length.months else length.seconds * 1000
    elif value is not None and value.kind in ("integer", "decimal"):
        result = Decimal(value.value)
    else:
        return None
    return result if result is not None and abs(result) < 10**MAX_DIGITS else None
