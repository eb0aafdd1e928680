"""The built-ins of the Jena rule language.

Semantics: the built-in list in Jena's documentation of its inference support, and, where that is silent, the Java
classes of ``org.apache.jena.reasoner.rulesys.builtins``. Where Java would throw there is no value, and the solution is
dropped.
docs/languages/jena.md lists what differs from Jena, and why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b, md5
from typing import TYPE_CHECKING, Any

from squall.functions import SAME_VALUE, Builtin, Function, Mode
from squall.functions.datatypes import is_ill_typed
from squall.functions.join_keys import of_value, table_of
from squall.functions.limits import REGEX_SECONDS, too_slow
from squall.functions.texts import STRINGS
from squall.functions.values import (
    ARITHMETIC,
    DAY_TIME,
    DECIMAL,
    DURATION,
    INT,
    INTEGERS,
    LONG,
    YEAR_MONTH,
    Number,
    compare,
    date_time,
    decimal,
    divide_decimals,
    divide_floats,
    double,
    floating,
    integer_text,
    is_well_formed,
    number,
    representable,
    same,
    text,
)
from squall.rdf import ALWAYS, RDFS, XSD, Term, iri, iri_text, is_blank, is_iri, is_literal, literal, parts
from squall.rdf.compounds import derived_node, is_compound

if TYPE_CHECKING:
    import regex

_PRINT = logging.getLogger("squall.print")
_NOT_IN_IRI = frozenset('<>"{}|^`\\') | {chr(code) for code in range(0x21)}

Maybe = Term | None


def function_iri(name: str) -> str:
    """Returns the IRI of a Jena built-in's function."""
    return f"urn:x-squall:jena:{name}"


# Comparison


def _equal(left: Maybe, right: Maybe) -> bool:
    if left is None or right is None:
        return False
    order = compare(left, right)
    return order == 0 if _both_numbers(left, right) or order is not None else same(left, right)


def _both_numbers(left: Term, right: Term) -> bool:
    return number(left) is not None and number(right) is not None


def _not_equal(left: Maybe, right: Maybe) -> bool:
    return not _equal(left, right)


def _ordered(accepts: Callable[[int], bool]) -> Callable[[Maybe, Maybe], bool]:
    """Returns a test of the order of two values; it is false if they have none."""

    def test(left: Maybe, right: Maybe) -> bool:
        order = None if left is None or right is None else compare(left, right)
        return order is not None and accepts(order)

    return test


def _same(left: Maybe, right: Maybe) -> bool:
    return left is not None and right is not None and same(left, right)


# Arithmetic


def _numbers(left: Maybe, right: Maybe) -> tuple[Number, Number] | None:
    left_number = None if left is None else number(left)
    right_number = None if right is None else number(right)
    return (left_number, right_number) if left_number and right_number else None


def _arithmetic(
    integers: Callable[[int, int], int | None],
    decimals: Callable[[Decimal, Decimal], Decimal | None],
    floats: Callable[[float, float], float],
) -> Callable[[Maybe, Maybe], Maybe]:
    """Returns a function of two numbers: a double if one of them is a float or a double, exact otherwise."""

    def compute(left: Maybe, right: Maybe) -> Maybe:
        numbers = _numbers(left, right)
        if numbers is None:
            return None
        first, second = numbers
        if first.is_floating or second.is_floating:
            return double(floats(floating(first), floating(second)))
        if isinstance(first.value, int) and isinstance(second.value, int):
            integer_result = integers(first.value, second.value)
            return None if integer_result is None else representable(integer(integer_result))
        exact = decimals(Decimal(first.value), Decimal(second.value))
        return None if exact is None else representable(decimal(exact))

    return compute


def integer(value: int) -> Term:
    """Returns the literal of an integer: xsd:int, or xsd:long or xsd:integer if it is too large."""
    if INT[0] <= value <= INT[1]:
        return literal(str(value), XSD + "int")
    return literal(integer_text(value), XSD + ("long" if LONG[0] <= value <= LONG[1] else "integer"))


def _divide_integers(left: int, right: int) -> int | None:
    """Divides and truncates, as Java does. Returns None for a division by zero."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_sum = _arithmetic(int.__add__, ARITHMETIC.add, float.__add__)
_difference = _arithmetic(int.__sub__, ARITHMETIC.subtract, float.__sub__)
_product = _arithmetic(int.__mul__, ARITHMETIC.multiply, float.__mul__)
_quotient = _arithmetic(_divide_integers, divide_decimals, divide_floats)


def _step(by: int) -> Callable[[Maybe], Maybe]:
    def compute(value: Maybe) -> Maybe:
        operand = None if value is None else number(value)
        if operand is None or not isinstance(operand.value, int):
            return None
        return representable(integer(operand.value + by))

    return compute


def _least(left: Maybe, right: Maybe) -> Maybe:
    """Returns the lesser node with its datatype; the first of equals."""
    order = None if left is None or right is None else compare(left, right)
    return None if order is None else left if order <= 0 else right


def _greatest(left: Maybe, right: Maybe) -> Maybe:
    """Returns the greater node with its datatype; the second of equals."""
    order = None if left is None or right is None else compare(left, right)
    return None if order is None else left if order > 0 else right


# Text


def _joined(terms: tuple[Maybe, ...]) -> str | None:
    return None if None in terms else "".join(text(term) for term in terms if term is not None)


def _str_concat(*terms: Maybe) -> Maybe:
    text = _joined(terms)
    return None if text is None else literal(text)


def _uri_concat(*terms: Maybe) -> Maybe:
    """Returns the IRI of joined characters, or None if these are no IRI (N-Triples, IRIREF)."""
    text = _joined(terms)
    return None if text is None or not _NOT_IN_IRI.isdisjoint(text) else iri(text)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> regex.Pattern[str]:
    """Returns a Java regular expression; ``\\d \\w \\s`` mean ASCII, as in Java.

    Raises regex.error if it is none.
    """
    import regex

    pieces = pattern.split("\\Q")
    java = [pieces[0]]
    for piece in pieces[1:]:
        quoted, _, remainder = piece.partition("\\E")
        java += [regex.escape(quoted), remainder]
    return regex.compile("".join(java), regex.VERSION1 | regex.ASCII)


def full_match(value: Maybe, pattern: Maybe, *, seconds: float = REGEX_SECONDS) -> regex.Match[str] | None:
    """Returns the match of the whole text of a literal. Raises BuilderError if that takes more than so many seconds."""
    import regex

    if value is None or pattern is None or not is_literal(value) or not is_literal(pattern):
        return None
    try:
        return _compiled(text(pattern)).fullmatch(text(value), timeout=seconds)
    except regex.error:
        return None
    except TimeoutError as error:
        raise too_slow(text(pattern), value, seconds) from error


def _regex(value: Maybe, pattern: Maybe) -> bool:
    return full_match(value, pattern) is not None


def _regex_group(place: Term, value: Maybe, pattern: Maybe) -> Maybe:
    """Returns the text of a group, empty if the group took no part in the match."""
    match = full_match(value, pattern)
    group = int(text(place))
    return literal(match.group(group) or "") if match and group <= match.re.groups else None


def _check_regex(value: Maybe, pattern: Maybe) -> str | None:
    return _check_group(None, value, pattern)


def _check_group(place: Maybe, value: Maybe, pattern: Maybe) -> str | None:
    import regex

    if pattern is None or not is_literal(pattern):
        return None
    try:
        groups = _compiled(text(pattern)).groups
    except regex.error as error:
        return f"`{text(pattern)}` is not a regular expression: {error}"
    if place is not None and int(text(place)) > groups:
        return f"`{text(pattern)}` has no group {text(place)}"
    return None


# Kinds of terms


def _is_literal(term: Maybe) -> bool:
    return term is not None and term[0] == '"' and not is_compound(term)


def _not_literal(term: Maybe) -> bool:
    return term is None or term[0] != '"'


def _is_blank(term: Maybe) -> bool:
    return term is not None and term[0] == "_"


def _not_blank(term: Maybe) -> bool:
    return term is None or term[0] != "_"


_FAMILIES = (
    frozenset((*INTEGERS, DECIMAL)),
    frozenset(STRINGS),
    frozenset((DURATION, DAY_TIME, YEAR_MONTH)),
    frozenset((XSD + "dateTime", XSD + "dateTimeStamp")),
)
"""The datatypes that are derived from one another."""


def _is_well_formed(term: Term) -> bool:
    return is_literal(term) and is_well_formed(term) and not is_ill_typed(term)


def _is_of_type(term: Term, datatype: str) -> bool:
    """Returns whether a literal is one of a datatype (an IRI): well formed, and its form one of that type as well.

    Any well-formed literal may be of any type of its family: ``"5"^^xsd:integer`` is an xsd:byte.
    """
    if not _is_well_formed(term):
        return False
    lexical, own, _ = parts(term)
    is_related = any({own, datatype} <= family for family in _FAMILIES)
    return own == datatype or (is_related and _is_well_formed(literal(lexical, datatype)))


def _is_type(term: Maybe, datatype: Maybe) -> bool:
    if term is None or datatype is None or not is_iri(datatype):
        return False
    if is_blank(term):
        return True
    if iri_text(datatype) == RDFS + "Literal":
        return _is_well_formed(term)
    return _is_of_type(term, iri_text(datatype))


def _not_type(term: Maybe, datatype: Maybe) -> bool:
    return not _is_type(term, datatype)


def _bound(*terms: Maybe) -> bool:
    return None not in terms


def _unbound(*terms: Maybe) -> bool:
    return all(term is None for term in terms)


# New terms


def _keyed(terms: tuple[Maybe, ...]) -> bytes:
    """Returns a text that different terms never share. A line feed occurs in no term."""
    return "\n".join(term or "" for term in terms).encode()


def _make_temp(place: Term, call: Term, *values: Maybe) -> Term:
    """Returns a blank node that is the same for the same call of a rule with the same bindings, however often it is
    made."""
    return derived_node(f"t{blake2b(_keyed((place, call, *values)), digest_size=16).hexdigest()}", values)


def _make_skolem(*terms: Maybe) -> Term:
    """Returns a blank node that is the same for the same arguments, in any rule."""
    return derived_node(f"s{md5(_keyed(terms), usedforsecurity=False).hexdigest()}", terms)


def _now(time: int) -> Term:
    return date_time(0 if time == ALWAYS else time)


def _print(*terms: Maybe) -> bool:
    _PRINT.info("%s", " ".join("?" if term is None else term for term in terms))
    return True


def _test(name: str, body: Callable[..., bool], least: int, most: int | None, doc: str, **more: Any) -> Function:
    return Function(function_iri(name), body, least, most, truth=True, doc=doc, **more)


_VALUE_KEYS = table_of(function_iri("value-keys"), lambda term, is_left: (of_value(term),), "equal values")


def _comparison(name: str, body: Callable[..., bool], doc: str, **more: Any) -> Function:
    return _test(name, body, 2, 2, doc, compares=True, **more)


def _value(name: str, body: Callable[..., Maybe], least: int, most: int | None, doc: str, **more: Any) -> Function:
    return Function(function_iri(name), body, least, most, doc=doc, **more)


_TESTS = (
    _comparison(
        "equal",
        _equal,
        "the two are equal: numbers and instants by order, all else as the same value",
        join_keys=_VALUE_KEYS.iri,
    ),
    _comparison("notEqual", _not_equal, "the two are not equal; true if one is unbound"),
    _comparison("lessThan", _ordered(lambda order: order < 0), "the first is less: numbers or instants"),
    _comparison("greaterThan", _ordered(lambda order: order > 0), "the first is greater: numbers or instants"),
    _comparison("le", _ordered(lambda order: order <= 0), "the first is less or equal: numbers or instants"),
    _comparison("ge", _ordered(lambda order: order >= 0), "the first is greater or equal: numbers or instants"),
    _test("bound", _bound, 1, None, "all are bound"),
    _test("unbound", _unbound, 1, None, "all are unbound"),
    _test("isLiteral", _is_literal, 1, 1, "it is a literal"),
    _test("notLiteral", _not_literal, 1, 1, "it is no literal; true if unbound"),
    _test("isBNode", _is_blank, 1, 1, "it is a blank node"),
    _test("notBNode", _not_blank, 1, 1, "it is no blank node; true if unbound"),
    _test("isDType", _is_type, 2, 2, "it is a literal of the datatype, or a blank node"),
    _test("notDType", _not_type, 2, 2, "it is not of the datatype; true if unbound"),
    _test("regex", _regex, 2, 2, "the whole literal matches the pattern (Java syntax)", check=_check_regex),
)
_PRINTS = _test("print", _print, 0, None, "logs its arguments to the logger `squall.print`", pure=False)
_SAME = Function(SAME_VALUE, _same, 2, 2, truth=True, doc="the two terms are the same value", join_keys=_VALUE_KEYS.iri)

_BINARY = (
    _value("sum", _sum, 2, 2, "a + b"),
    _value("difference", _difference, 2, 2, "a - b"),
    _value("product", _product, 2, 2, "a * b"),
    _value("quotient", _quotient, 2, 2, "a / b, whole for integers; no value for integers by zero"),
    _value("min", _least, 2, 2, "the lesser of two numbers or instants"),
    _value("max", _greatest, 2, 2, "the greater of two numbers or instants"),
)
_JOINING = (
    _value("strConcat", _str_concat, 0, None, "the texts of the terms, joined, as a string"),
    _value("uriConcat", _uri_concat, 0, None, "the texts of the terms, joined, as an IRI"),
)
_ADD_ONE = _value("addOne", _step(1), 1, 1, "a + 1, of an integer")
_SUBTRACT_ONE = _value("subtractOne", _step(-1), 1, 1, "a - 1, of an integer (`addOne` backwards)")
_GROUP = _value("regexGroup", _regex_group, 3, 3, "a group of a match of the whole literal", check=_check_group)
_TEMP = _value(
    "makeTemp", _make_temp, 2, None, "a blank node of a call and the bindings of its rule", nests=True, seeded=1
)
_SKOLEM = _value("makeSkolem", _make_skolem, 0, None, "a blank node of the arguments", nests=True)
_NOW = _value("now", _now, 0, 0, "the time of the solution as an xsd:dateTime", timed=True)


def _spelled(name: str, least: int, most: int | None, *modes: Mode, test: str | None = None) -> Builtin:
    return Builtin(name, "jena", least, most, test=test, modes=modes, same=SAME_VALUE)


def _of(function: Function) -> str:
    return function.iri.rpartition(":")[2]


_BUILTINS = (
    *(_spelled(_of(test), test.least, test.most, test=test.iri) for test in _TESTS if _of(test) != "regex"),
    *(_spelled(_of(value), 3, 3, Mode(2, value.iri)) for value in _BINARY),
    *(_spelled(_of(value), 1, None, Mode(-1, value.iri)) for value in _JOINING),
    _spelled("addOne", 2, 2, Mode(1, _ADD_ONE.iri), Mode(0, _SUBTRACT_ONE.iri)),
    _spelled("regex", 2, None, Mode(2, _GROUP.iri, inputs=(0, 1), repeats=True), test=function_iri("regex")),
    _spelled("makeTemp", 1, None, Mode(0, _TEMP.iri, inputs=(), repeats=True, scoped=True)),
    _spelled("makeSkolem", 1, None, Mode(0, _SKOLEM.iri)),
    _spelled("now", 1, 1, Mode(0, _NOW.iri)),
    Builtin("print", "jena", 0, None, test=_PRINTS.iri, where="both"),
    Builtin("noValue", "jena", 2, 3),
    Builtin("table", "jena", 1, None, where="head"),
    Builtin("tableAll", "jena", 0, 0, where="head"),
)

FUNCTIONS: tuple[Function | Builtin, ...] = (
    *_TESTS,
    *_BINARY,
    *_JOINING,
    _PRINTS,
    _VALUE_KEYS,
    _SAME,
    _ADD_ONE,
    _SUBTRACT_ONE,
    _GROUP,
    _TEMP,
    _SKOLEM,
    _NOW,
    *_BUILTINS,
)
"""The functions of the entry point `jena` of the group ``squall.functions``."""
