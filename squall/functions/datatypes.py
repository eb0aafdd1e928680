"""What literals denote, for the rule sets: whether a value is one of a datatype, and which literals are one value.

Sources: XSD 1.1 part 2, section 3 (lexical forms and value spaces); RDF 1.1 Semantics, section 7; OWL 2 Profiles,
section 4.2 (the datatypes of OWL 2 RL) and table 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import lru_cache
from xml.etree.ElementTree import ParseError, canonicalize, fromstring

from squall.functions import SAME_VALUE, Builtin, Function, Mode
from squall.functions.values import (
    BOOLEAN,
    DECIMAL,
    INTEGERS,
    NUMERIC,
    Number,
    boolean,
    number,
    point,
    value_key,
)
from squall.rdf import LANG_STRING, RDF, RDFS, XSD, XSD_STRING, Term, iri_text, is_iri, is_literal, literal, parts

OWN = "urn:x-squall:datatypes:"
"""What the IRIs of these functions begin with."""

Maybe = Term | None

_NAME = r"[A-Za-z_\u00C0-\U000EFFFF][\w.\-\u00B7]*"
_NO_CHARACTERS = r"\x00-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF"
STRINGS = {
    XSD_STRING: re.compile(rf"[^{_NO_CHARACTERS}]*"),
    XSD + "normalizedString": re.compile(rf"[^{_NO_CHARACTERS}\t\n\r]*"),
    XSD + "token": re.compile(rf"([^{_NO_CHARACTERS}\t\n\r ]+( [^{_NO_CHARACTERS}\t\n\r ]+)*)?"),
    XSD + "language": re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*"),
    XSD + "Name": re.compile(r"[:A-Za-z_\u00C0-\U000EFFFF][\w.\-\u00B7:]*"),
    XSD + "NCName": re.compile(_NAME),
    XSD + "NMTOKEN": re.compile(r"[\w.\-\u00B7:]+"),
}
"""The string types, each with what its strings look like."""

_INSTANTS = {XSD + "dateTime", XSD + "dateTimeStamp"}
_BINARY = {
    XSD + "hexBinary": re.compile(r"([0-9A-Fa-f]{2})*"),
    XSD + "base64Binary": re.compile(r"((([A-Za-z0-9+/] ?){4})*(([A-Za-z0-9+/] ?){2}[AEIMQUYcgkosw048] ?=|"
                                     r"([A-Za-z0-9+/] ?)[AQgw] ?= ?=)?)?"),
}  # fmt: skip
_XML = RDF + "XMLLiteral"
_PLAIN = RDF + "PlainLiteral"
_ANY_URI = XSD + "anyURI"
KNOWN = frozenset({*NUMERIC, *STRINGS, *_INSTANTS, *_BINARY, _XML, _PLAIN, _ANY_URI, BOOLEAN, LANG_STRING})
"""The datatypes whose values are known: those of OWL 2 RL, and rdf:langString."""


def _is_xml(lexical: str) -> bool:
    try:
        fromstring(f"<x>{lexical}</x>")
    except ParseError:
        return False
    return True


@lru_cache(maxsize=65536)
def is_well_formed(term: Term) -> bool:
    """Whether a literal denotes a value, as far as its datatype is known."""
    lexical, datatype, _ = parts(term)
    if datatype in NUMERIC:
        return number(term) is not None
    if datatype in _INSTANTS:
        return point(term) is not None
    if datatype in STRINGS or datatype in _BINARY:
        return bool((STRINGS.get(datatype) or _BINARY[datatype]).fullmatch(lexical))
    if datatype == BOOLEAN:
        return boolean(term) is not None
    return datatype != _XML or _is_xml(lexical)


def is_value_of(term: Term, datatype: str) -> bool:
    """Whether the value of a literal is one of a datatype (an IRI). Of a datatype that is not known, those are that are
    written as one."""
    lexical, own, _ = parts(term)
    if not is_well_formed(term):
        return False
    if own == datatype or datatype == RDFS + "Literal":
        return True
    if own in STRINGS and datatype in STRINGS:
        return bool(STRINGS[datatype].fullmatch(lexical))
    if datatype == _PLAIN:
        return own in STRINGS or own == LANG_STRING
    if own in _INSTANTS and datatype in _INSTANTS:
        at = point(term)
        return at is not None and (at.zone is not None or datatype == XSD + "dateTime")
    return own in _EXACT and datatype in _EXACT and _fits(number(term), datatype)


_EXACT = {*INTEGERS, DECIMAL}


def _fits(value: Number | None, datatype: str) -> bool:
    """Whether a decimal is one of the values of an integer type, or of xsd:decimal."""
    if value is None or isinstance(value.value, float):
        return False
    if datatype == DECIMAL:
        return True
    least, most = INTEGERS[datatype]
    whole = value.value == int(value.value)
    return whole and (least is None or value.value >= least) and (most is None or value.value <= most)


def key(term: Term) -> Hashable:
    """What two literals share if and only if they are the same value. Ill-typed ones, and those of a datatype that is
    not known, are themselves."""
    lexical, datatype, _ = parts(term)
    if datatype in STRINGS and is_well_formed(term):
        return ("string", lexical)
    if datatype == _XML and is_well_formed(term):
        return (datatype, canonicalize(f"<x>{lexical}</x>"))
    if datatype in _BINARY and is_well_formed(term):
        return (datatype, lexical.upper() if datatype.endswith("hexBinary") else lexical.replace(" ", ""))
    if datatype in _INSTANTS:  # one instant in two time zones: equal, but not identical (XSD 1.1, section 2.2.2)
        return point(term) or term
    found = value_key(term)
    if isinstance(found, tuple) and len(found) == 2 and found[0] == "decimal":
        return ("decimal", Fraction(found[1]))
    return found


def _is_value_of(term: Maybe, datatype: Maybe) -> bool:
    if term is None or datatype is None or not is_literal(term) or not is_iri(datatype):
        return False
    return is_value_of(term, iri_text(datatype))


def _is_no_value_of(term: Maybe, datatype: Maybe) -> bool:
    if term is None or datatype is None or not is_literal(term) or not is_iri(datatype):
        return False
    known = KNOWN.issuperset((iri_text(datatype), parts(term).datatype))
    return known and not is_value_of(term, iri_text(datatype))


def _is_ill_typed(term: Maybe) -> bool:
    return term is not None and is_literal(term) and not is_well_formed(term)


def _differ(left: Maybe, right: Maybe) -> bool:
    if left is None or right is None or not is_literal(left) or not is_literal(right):
        return False
    known = all(parts(term).datatype in KNOWN and is_well_formed(term) for term in (left, right))
    return known and key(left) != key(right)


def _not_identical(left: Maybe, right: Maybe) -> bool:
    return left is not None and right is not None and left != right


def _datatype(term: Maybe) -> Maybe:
    return Term(f"<{parts(term).datatype}>") if term is not None and is_literal(term) else None


def _value(term: Maybe) -> Maybe:
    found = None if term is None or not is_literal(term) else key(term)
    return literal(" ".join(map(str, found)), OWN + "value") if isinstance(found, tuple) else None


def _test(name: str, body: Callable[..., bool], count: int, doc: str) -> tuple[Function, Builtin]:
    made = Function(OWN + name, body, count, count, truth=True, doc=doc)
    return made, Builtin(name, "jena", count, count, test=made.iri, doc=doc)


def _computed(name: str, body: Callable[..., Maybe], doc: str) -> tuple[Function, Builtin]:
    made = Function(OWN + name, body, 1, 1, doc=doc)
    return made, Builtin(name, "jena", 2, 2, modes=(Mode(-1, made.iri),), same=SAME_VALUE, doc=doc)


FUNCTIONS: tuple[Function | Builtin, ...] = (
    *_test("isValueOf", _is_value_of, 2, "the literal's value is one of the datatype"),
    *_test("isNoValueOf", _is_no_value_of, 2, "the literal's value is none of the datatype, and both are known"),
    *_test("isIllTyped", _is_ill_typed, 1, "the literal's form is none of its datatype, which is a known one"),
    *_test("differInValue", _differ, 2, "the two are literals of known datatypes and have different values"),
    *_test("notIdentical", _not_identical, 2, "the two are different terms"),
    *_computed("datatypeOf", _datatype, "the datatype of a literal"),
    *_computed("valueOf", _value, "a literal that is the same for all that have one value; no value for the others"),
)
"""What the entry point `datatypes` of the group ``squall.functions`` names."""
