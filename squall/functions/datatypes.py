"""Values of literals, for the rule sets: membership in datatypes, and literals with equal values.

Sources: RDF 1.1 Semantics, section 7; OWL 2 Profiles, table 8. The values are those of `squall.functions.rif.spaces`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from squall.functions import SAME_VALUE, Builtin, Function, Mode
from squall.functions.rif.spaces import SPACES, Value, value
from squall.functions.texts import Plain
from squall.functions.values import integer_text
from squall.rdf import LANG_STRING, RDFS, Term, iri, iri_text, is_iri, is_literal, literal, parts

OWN = "urn:x-squall:datatypes:"
"""The namespace of these functions."""

Maybe = Term | None

_NO_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""The characters that no string has (XML 1.0, production 2)."""


def _is_tagged(value: Value) -> bool:
    return isinstance(value.value, Plain) and bool(value.value.language)


KNOWN = {**SPACES, LANG_STRING: _is_tagged}
"""Tests whether a value is one of a datatype, by its IRI: those of RIF (and so OWL 2 RL), and rdf:langString."""


@lru_cache(maxsize=65536)
def _denoted(term: Term) -> Value | None:
    """Returns the value of a literal; None for other terms, ill-typed literals, and datatypes that are not known."""
    denoted = value(term)
    if denoted is not None and isinstance(denoted.value, Plain) and _NO_CHARACTERS.search(denoted.value.text):
        return None
    return denoted


def is_ill_typed(term: Term) -> bool:
    """Returns whether a literal of a known datatype is ill-typed."""
    return parts(term).datatype in KNOWN and _denoted(term) is None


def is_value_of(term: Term, datatype: str) -> bool:
    """Returns whether a literal denotes a value of a datatype (an IRI). Of one that is not known, those do that are
    written as one."""
    if is_ill_typed(term):
        return False
    denoted = _denoted(term)
    if denoted is None or datatype not in KNOWN:
        return datatype in (parts(term).datatype, RDFS + "Literal")
    return KNOWN[datatype](denoted)


def _is_value_of(term: Maybe, datatype: Maybe) -> bool:
    if term is None or datatype is None or not is_literal(term) or not is_iri(datatype):
        return False
    return is_value_of(term, iri_text(datatype))


def _is_no_value_of(term: Maybe, datatype: Maybe) -> bool:
    if term is None or datatype is None or not is_literal(term) or not is_iri(datatype):
        return False
    return {iri_text(datatype), parts(term).datatype} <= KNOWN.keys() and not is_value_of(term, iri_text(datatype))


def _is_ill_typed(term: Maybe) -> bool:
    return term is not None and is_literal(term) and is_ill_typed(term)


def _differ(left: Maybe, right: Maybe) -> bool:
    left_value, right_value = (None if term is None else _denoted(term) for term in (left, right))
    return left_value is not None and right_value is not None and left_value != right_value


def _not_identical(left: Maybe, right: Maybe) -> bool:
    return left is not None and right is not None and left != right


def _datatype(term: Maybe) -> Maybe:
    return iri(parts(term).datatype) if term is not None and is_literal(term) else None


def _value(term: Maybe) -> Maybe:
    """Normalizes numbers: equal ones of xsd:decimal are one value, such as 1.0 and 1."""
    term_value = None if term is None else _denoted(term)
    if term_value is None:
        return None
    kind, denoted = term_value
    if kind == "decimal" and isinstance(denoted, int | Decimal):
        denoted = _fraction_text(denoted)
    return literal(f"{kind} {denoted}", OWN + "value")


def _comparable(term: Maybe) -> Maybe:
    return _value(term) or term


def _fraction_text(value: int | Decimal) -> str:
    numerator, denominator = value.as_integer_ratio()
    return integer_text(numerator) if denominator == 1 else f"{integer_text(numerator)}/{integer_text(denominator)}"


NOT_IDENTICAL = OWN + "notIdentical"
"""The IRI of the test that two terms differ."""


def _test(name: str, body: Callable[..., bool], count: int, doc: str) -> tuple[Function, Builtin]:
    function = Function(OWN + name, body, count, count, truth=True, doc=doc)
    return function, Builtin(name, "jena", count, count, test=function.iri, doc=doc)


def _computed(name: str, body: Callable[..., Maybe], doc: str) -> tuple[Function, Builtin]:
    function = Function(OWN + name, body, 1, 1, doc=doc)
    return function, Builtin(name, "jena", 2, 2, modes=(Mode(-1, function.iri),), same=SAME_VALUE, doc=doc)


FUNCTIONS: tuple[Function | Builtin, ...] = (
    *_test("isValueOf", _is_value_of, 2, "the literal's value is one of the datatype"),
    *_test("isNoValueOf", _is_no_value_of, 2, "the literal's value is none of the datatype, and both are known"),
    *_test("isIllTyped", _is_ill_typed, 1, "the literal's form is none of its datatype, which is a known one"),
    *_test("differInValue", _differ, 2, "the two are literals of known datatypes and have different values"),
    *_test("notIdentical", _not_identical, 2, "the two are different terms"),
    *_computed("datatypeOf", _datatype, "the datatype of a literal"),
    *_computed("valueOf", _value, "a literal that is the same for all that have one value; no value for the others"),
    *_computed("comparableOf", _comparable, "the same; a node without a value itself"),
)
"""The functions of the entry point `datatypes` of the group ``squall.functions``."""
