"""Casts to all datatypes of RIF, and ``pred:iri-string`` (DTB, section 4.4; XPath functions and operators, section 17).

Those that SPARQL has, too, are the same functions: `squall.functions.sparql.casts`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from squall.functions import Function, Mode
from squall.functions.rif.names import OWN, Domain, Maybe, Members, predicate, spelled
from squall.functions.rif.spaces import ANY_URI, DATE_TIME_STAMP, SPACES
from squall.functions.rif.xml import XML_LITERAL, xml
from squall.functions.sparql import casts
from squall.functions.texts import (
    BASE64,
    HEX,
    PLAIN_LITERAL,
    STRINGS,
    characters,
    collapsed,
    octets,
    octets_literal,
    plain,
    plain_literal,
)
from squall.functions.values import point, text
from squall.rdf import XSD, XSD_STRING, Term, iri, iri_text, is_iri, is_literal, literal, parts
from squall.rdf.iris import is_absolute


def _derived(datatype: str, term: Term) -> Maybe:
    """Returns the cast to a type derived from xsd:string: it applies its white space first, then its patterns."""
    text = casts.as_string(term)
    if text is None:
        return None
    facets = STRINGS[datatype]
    normalized = facets.space(text)
    return literal(normalized, datatype) if facets.admits(normalized) else None


def _any_uri(term: Term) -> Maybe:
    text = characters(term)
    if text is not None:
        return literal(collapsed(text), ANY_URI)
    return term if is_literal(term) and parts(term).datatype == ANY_URI else None


def _binary(datatype: str, term: Term) -> Maybe:
    text = characters(term)
    data = octets(term if text is None else literal(collapsed(text), datatype))
    return None if data is None else octets_literal(data, datatype)


def _stamp(term: Term) -> Maybe:
    stamp = _DATE_TIME.body(term)
    at = None if stamp is None else point(stamp)
    return literal(text(stamp), DATE_TIME_STAMP) if at is not None and at.zone is not None else None


def _plain(term: Term) -> Maybe:
    literal_text = plain(term)
    if literal_text is not None:
        return plain_literal(literal_text)
    text = casts.as_string(term)
    return None if text is None else literal(text)


def _xml(term: Term) -> Maybe:
    text = characters(term)
    result = term if text is None else literal(text, XML_LITERAL)
    return None if xml(result) is None else result


_SHARED = {member.iri: member for member in casts.MEMBERS}
_DATE_TIME = _SHARED[XSD + "dateTime"]
_OWN: dict[str, Callable[[Term], Maybe]] = {
    **{datatype: partial(_derived, datatype) for datatype in STRINGS if datatype != XSD_STRING},
    ANY_URI: _any_uri,
    HEX: partial(_binary, HEX),
    BASE64: partial(_binary, BASE64),
    DATE_TIME_STAMP: _stamp,
    PLAIN_LITERAL: _plain,
    XML_LITERAL: _xml,
}


def _cast(datatype: str, body: Callable[[Term], Maybe]) -> Function:
    def cast(term: Maybe) -> Maybe:
        return None if term is None else body(term)

    return Function(datatype, cast, 1, 1, doc=f"cast to {datatype.rpartition('#')[2]}")


_MADE = tuple(_cast(datatype, body) for datatype, body in _OWN.items())
_BY_IRI = _SHARED | {member.iri: member for member in _MADE}


_IRI = Domain("IRI", lambda term: iri_text(term) if is_iri(term) else None)
_STRING = Domain("string", characters)


def _iri_of(term: Maybe) -> Maybe:
    text = None if term is None else characters(term)
    return iri(text) if text is not None and is_absolute(text) else None


def _string_of(term: Maybe) -> Maybe:
    return literal(iri_text(term)) if term is not None and is_iri(term) else None


_IRI_OF = Function(OWN + "iri-of-string", _iri_of, 1, 1, doc="the IRI that a string is (`pred:iri-string` computed)")
_STRING_OF = Function(OWN + "string-of-iri", _string_of, 1, 1, doc="the characters of an IRI, a string")

MEMBERS: Members = (
    *_MADE,
    *(spelled(_BY_IRI[datatype]) for datatype in SPACES),
    _IRI_OF,
    _STRING_OF,
    *predicate(
        "iri-string", (_IRI, _STRING), str.__eq__,
        "the string is the characters of the IRI; either is computed from the other",
        modes=(Mode(0, _IRI_OF.iri, inputs=(1,)), Mode(1, _STRING_OF.iri, inputs=(0,))),
    ),
)  # fmt: skip
