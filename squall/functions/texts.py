"""Literals of characters or octets: strings and the types that XSD derives from them, rdf:PlainLiteral, binary data.

Sources: XSD 1.1 part 2, sections 3.3.15, 3.3.16, 3.4.1 to 3.4.7 and 4.3.6 (white space); XML 1.0, productions 4 to 7;
rdf:PlainLiteral (second edition), section 2.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from squall.functions.patterns import NAME, NAME_START
from squall.rdf import LANG_STRING, RDF, XSD, XSD_STRING, Term, is_literal, literal, parts

PLAIN_LITERAL = RDF + "PlainLiteral"
HEX, BASE64 = XSD + "hexBinary", XSD + "base64Binary"

_BLANKS = str.maketrans("\t\n\r", "   ")
_LANGUAGE = "[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*"
_NAME = f"[{NAME_START}][{NAME}]*"
_NO_COLON = "[^:]*"
_NMTOKEN = f"[{NAME}]+"


def preserve_white_space(text: str) -> str:
    """Normalizes white space as xsd:string: it stays."""
    return text


def blanks(text: str) -> str:
    """Normalizes white space as xsd:normalizedString: each character is a blank."""
    return text.translate(_BLANKS)


def collapsed(text: str) -> str:
    """Normalizes white space as xsd:token: single blanks between words."""
    return " ".join(filter(None, blanks(text).split(" ")))


class Facets(NamedTuple):
    """The conditions of a type derived from xsd:string: its white space, and its patterns.

    These are compiled when the first string is looked at, which takes longer than to import all of this.
    """

    space: Callable[[str], str]
    patterns: tuple[str, ...] = ()

    def admits(self, text: str) -> bool:
        """Returns whether a string is in the value space."""
        return self.space(text) == text and all(re.fullmatch(pattern, text) for pattern in self.patterns)


STRINGS = {
    XSD_STRING: Facets(preserve_white_space),
    XSD + "normalizedString": Facets(blanks),
    XSD + "token": Facets(collapsed),
    XSD + "language": Facets(collapsed, (_LANGUAGE,)),
    XSD + "Name": Facets(collapsed, (_NAME,)),
    XSD + "NCName": Facets(collapsed, (_NAME, _NO_COLON)),
    XSD + "NMTOKEN": Facets(collapsed, (_NMTOKEN,)),
}
"""xsd:string and the types derived from it, except those of lists and of complete documents."""


class Plain(NamedTuple):
    """A value of rdf:PlainLiteral; a string has the language ``""``."""

    text: str
    language: str


@lru_cache(maxsize=65536)
def plain(term: Term) -> Plain | None:
    """Returns the string or the text in a language that a literal denotes, whichever type says so; None for everything
    else."""
    if not is_literal(term):
        return None
    lexical, datatype, language = parts(term)
    if datatype == LANG_STRING:
        return Plain(lexical, language.lower())
    if datatype == PLAIN_LITERAL:
        return _tagged(lexical)
    facets = STRINGS.get(datatype)
    return Plain(lexical, "") if facets and facets.admits(lexical) else None


def _tagged(lexical: str) -> Plain | None:
    text, at, language = lexical.rpartition("@")
    return Plain(text, language.lower()) if at and (not language or is_language(language)) else None


def is_language(text: str) -> bool:
    """Returns whether a text has the form of a language tag (xsd:language)."""
    return re.fullmatch(_LANGUAGE, text) is not None


def characters(term: Term) -> str | None:
    """Returns the string that a literal denotes, of xsd:string or a type derived from it; None for everything else."""
    plain_literal = plain(term)
    return plain_literal.text if plain_literal and not plain_literal.language else None


def plain_literal(value: Plain) -> Term:
    """Returns the literal of a string or of a text in a language."""
    return literal(value.text, None, value.language or None)


_HEX = re.compile("([0-9a-fA-F]{2})*")
_BASE64 = re.compile("([A-Za-z0-9+/] ?)*(= ?){0,2}")


@lru_cache(maxsize=4096)
def octets(term: Term) -> bytes | None:
    """Returns the octets of a literal of xsd:hexBinary or xsd:base64Binary; None for everything else."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype == HEX:
        return bytes.fromhex(lexical) if _HEX.fullmatch(lexical) else None
    if datatype != BASE64 or not _BASE64.fullmatch(lexical) or lexical.endswith(" "):
        return None
    try:
        data = base64.b64decode(lexical.replace(" ", ""), validate=True)
    except binascii.Error:
        return None
    # Bits that belong to no octet are zero (section 3.3.16.2).
    return data if base64.b64encode(data).decode() == lexical.replace(" ", "") else None


def octets_literal(value: bytes, datatype: str) -> Term:
    """Returns the literal of octets in its canonical form. datatype: `HEX` or `BASE64`."""
    digits = value.hex().upper() if datatype == HEX else base64.b64encode(value).decode()
    return literal(digits, datatype)
