"""The checks ``constant-test`` and ``never-true``: tests whose outcome does not depend on the data; and
``single-evaluation``: tests of the time that are not evaluated again while time passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from squall import functions
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, mentions, systems
from squall.errors import Origin
from squall.functions.deadlines import time_operands
from squall.functions.sparql.names import SPARQL, test_iri
from squall.functions.values import MAX_NUMBER_LENGTH
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    Expression,
    Filter,
    Insert,
    Iteration,
    Joinable,
    Pattern,
    SequenceJoin,
    System,
    Temporal,
    Union,
    Variable,
    visible,
)
from squall.model.stratification import is_time_dependent
from squall.rdf import XSD, literal, parts
from squall.rdf.compounds import LIMIT

JENA = "urn:x-squall:jena:"
_ORDERS = frozenset((
    *(f"{JENA}{name}" for name in ("lessThan", "greaterThan", "le", "ge")),
    *map(test_iri, ("less-than", "greater-than", "less-than-or-equal", "greater-than-or-equal")),
))  # fmt: skip
"""Tests that compare the order of two values."""
_IRREFLEXIVE = frozenset((
    *(f"{JENA}{name}" for name in ("lessThan", "greaterThan", "notEqual")),
    *map(test_iri, ("less-than", "greater-than", "not-equals")),
))  # fmt: skip
"""Tests that are never true of a value and itself."""
_OF_LITERALS = _ORDERS | {f"{JENA}isLiteral", f"{JENA}regex"} | frozenset(map(test_iri, (
    "isLiteral", "isNumeric", "regex", "contains", "strstarts", "strends",
)))  # fmt: skip
"""Tests that are never true if their first argument is not a literal."""
_AND = test_iri("logical-and")
_VARYING = frozenset(f"{SPARQL}{name}" for name in ("rand", "uuid", "struuid", "bnode")) | {f"{JENA}makeTemp"}
"""Functions that have another value for each solution."""
_NODES = frozenset((
    *(f"{JENA}{name}" for name in ("makeTemp", "makeSkolem", "uriConcat")),
    *(f"{SPARQL}{name}" for name in ("bnode", "uuid", "iri", "uri")),
))  # fmt: skip
"""Functions whose value is not a literal."""


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each test of constants alone, and for each that no value makes true.

    The latter compare something with itself, a subject (which is not a literal) as a number or text, or a value with a
    constant that nothing comes before or after.
    """
    plain = all(_is_plain(rule) for rule in program.rules)
    for rule in program.rules:
        for system in systems(rule):
            nodes = frozenset[Variable]().union(*map(_nodes, system.joinables)) if plain else frozenset()
            for predicate in system.predicates:
                if not isinstance(predicate, Filter):
                    continue
                if is_time_dependent(predicate.expression) and time_operands(predicate.expression) is None:
                    yield _single_evaluation(predicate.expression)
                for call in conjuncts(predicate.expression):
                    yield from _findings(call, nodes)


def _single_evaluation(call: Call) -> Finding:
    message = "the test of the time is evaluated once for a solution: at the time since which the solution holds"
    hint = "to have it change while time passes, compare the time itself with a value: `NOW() >= ?deadline`"
    return Finding("single-evaluation", WARNING, message, call.origin, hint)


def conjuncts(test: Call) -> Iterator[Call]:
    """Yields the tests that all have to be true for a test to be true."""
    if test.function == _AND:
        for argument in test.arguments:
            yield from conjuncts(argument) if isinstance(argument, Call) else ()
    else:
        yield test


def _findings(test: Call, nodes: frozenset[Variable]) -> Iterator[Finding]:
    if test.origin is None:
        return  # a translator made it up
    if not any(mentions(test)):
        if _is_constant(test):
            yield _constant(test.origin, _value(test))
    elif why := _why_never(test, nodes):
        hint = "nothing passes this test: leave it out, or compare what can be compared"
        yield Finding("never-true", WARNING, f"{_words(test.origin)} is never true: {why}", test.origin, hint)


def _words(origin: Origin) -> str:
    return f"`{origin.words}`" if origin.words else "this condition"


def _constant(origin: Origin, value: bool) -> Finding:
    if value:
        return Finding("constant-test", WARNING, f"{_words(origin)} is always true", origin, "leave it out")
    message = f"{_words(origin)} is never true: nothing ever passes it"
    return Finding("constant-test", WARNING, message, origin, "compare something that varies")


# Values of constants


def _is_constant(expression: Expression) -> bool:
    """Returns whether an expression without variables always has the same value."""
    if not isinstance(expression, Call):
        return True
    function = functions.lookup(expression.function)
    varies = function.timed or not function.pure or function in functions.own() or function.iri in _VARYING
    return not varies and all(map(_is_constant, expression.arguments))


def _value(expression: Expression) -> Any:
    if not isinstance(expression, Call):
        return expression
    return functions.lookup(expression.function).evaluate(*map(_value, expression.arguments))


# What is never true


def _why_never(test: Call, nodes: frozenset[Variable]) -> str | None:
    """Returns why a test is never true, or None if it may be."""
    first, *arguments = test.arguments
    if test.function in _IRREFLEXIVE and first == arguments[0]:
        return "it compares something with itself"
    if test.function in _OF_LITERALS:
        for argument in test.arguments if test.function in _ORDERS else (first,):
            if isinstance(argument, Variable) and argument in nodes:
                return f"`{argument}` is a subject or a predicate here, which a literal cannot be"
            if isinstance(argument, str) and argument[0] != '"':
                return f"{argument} is no literal"
    if test.function in _ORDERS:
        return next(
            (why for place, argument in enumerate(test.arguments) if (why := _why_incomparable(test, place, argument))),
            None,
        )
    return None


def _why_incomparable(test: Call, place: int, constant: Expression) -> str | None:
    """Returns why no value compares with a constant, or None if some may."""
    if not isinstance(constant, str) or parts(constant)[2]:
        return None
    function = functions.lookup(test.function)
    pairs = ((constant, value) if place == 0 else (value, constant) for value in (*_EXTREMES, constant))
    return None if any(function.evaluate(*pair) for pair in pairs) else f"nothing comes before or after {constant} so"


_FIRST_DAY, _LAST_DAY = "-999999999-01-01", "999999999-12-31"
_FIRST_CLOCK, _LAST_CLOCK = "00:00:00+14:00", "23:59:59.999999999-14:00"
_LONGEST = "9" * 90
_EXTREMES = tuple(
    literal(text, XSD + kind)
    for kind, texts in {
        "double": ("-INF", "INF"),
        "integer": (f"-{'9' * (MAX_NUMBER_LENGTH - 1)}", "9" * MAX_NUMBER_LENGTH),
        "string": ("", "\U0010ffff" * 9),
        "boolean": ("false", "true"),
        "dateTime": (f"{_FIRST_DAY}T{_FIRST_CLOCK}", f"{_LAST_DAY}T{_LAST_CLOCK}"),
        "date": (f"{_FIRST_DAY}+14:00", f"{_LAST_DAY}-14:00"),
        "time": (_FIRST_CLOCK, _LAST_CLOCK),
        "duration": (f"-P{_LONGEST}Y", f"P{_LONGEST}Y"),
        "yearMonthDuration": (f"-P{_LONGEST}Y", f"P{_LONGEST}Y"),
        "dayTimeDuration": (f"-P{_LONGEST}D", f"P{_LONGEST}D"),
        "gYear": ("-999999999+14:00", "999999999-14:00"),
        "gYearMonth": ("-999999999-01+14:00", "999999999-12-14:00"),
        "gMonth": ("--01+14:00", "--12-14:00"),
        "gMonthDay": ("--01-01+14:00", "--12-31-14:00"),
        "gDay": ("---01+14:00", "---31-14:00"),
    }.items()
    for text in texts
)
"""For each kind of values that have an order, the first and the last that a literal denotes, or nearly so
(`squall.functions.values`)."""


def _is_plain(rule: Rule) -> bool:
    """Returns whether no fact that a rule derives has a literal as its subject: rules might read such facts."""
    nodes = frozenset[Variable]().union(*map(_nodes, rule.system.joinables))
    nodes |= {
        pattern.variable
        for pattern in rule.system.predicates
        if isinstance(pattern, Bind) and _is_node(pattern.expression)
    }
    templates = [
        pattern
        for part in rule.system.consequences
        if isinstance(part, Construct | Insert)
        for pattern in part.template
    ]
    ends = [
        end for pattern in templates if isinstance(pattern, Pattern) for end in (pattern.subject, pattern.predicate)
    ]
    return all(end in nodes for end in ends if isinstance(end, Variable))


def _is_node(expression: Expression) -> bool:
    """Returns whether the value of an expression is an IRI or a blank node."""
    if isinstance(expression, Call) and expression.function == LIMIT:
        return _is_node(expression.arguments[1])
    return isinstance(expression, Call) and expression.function in _NODES


def _nodes(part: Joinable) -> frozenset[Variable]:
    """Returns the variables of a part that stand for subjects or predicates of triples in each of its solutions."""
    match part:
        case Pattern(subject=subject, predicate=predicate):
            return frozenset(end for end in (subject, predicate) if isinstance(end, Variable))
        case AtomPattern():
            return frozenset()
        case Union(branches=branches):
            return frozenset.intersection(*map(_nodes, branches)) if branches else frozenset()
        case Iteration(left=left, values=values):
            return _nodes(left).difference(name for name, _ in values)
        case SequenceJoin(left=left, right=right):
            return _nodes(left) | _nodes(right)
        case Temporal(system=system):
            return _nodes(system)
        case System(joinables=joinables):
            return frozenset(visible(part)).intersection(frozenset[Variable]().union(*map(_nodes, joinables)))
