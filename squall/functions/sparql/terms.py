"""Functions on RDF terms (SPARQL 1.1, section 17.4.2), and those that create terms: IRI, BNODE, UUID, RAND.

What has to be new for each solution depends on the seed of the run, the call, the solution, and the time since which
the solution holds (docs/decisions/0068-new-terms.md). Such a function takes a text that identifies the call first, to
which a run adds its seed (`squall.plan.seeds`), then what identifies the solution, and that time.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from squall.functions import Builtin, Function, Mode
from squall.functions.sparql.names import FALSE, LANGUAGE, OWN, SPARQL, TRUE, Maybe, Members, defined
from squall.functions.texts import is_language
from squall.functions.values import double, integer, number, text
from squall.rdf import (
    ALWAYS,
    LANG_STRING,
    XSD_STRING,
    Term,
    blank,
    iri,
    iri_text,
    is_blank,
    is_iri,
    is_literal,
    literal,
    parts,
)
from squall.rdf.iris import is_absolute, resolved


def _is_iri(term: Maybe) -> Maybe:
    return None if term is None else TRUE if is_iri(term) else FALSE


def _is_blank(term: Maybe) -> Maybe:
    return None if term is None else TRUE if is_blank(term) else FALSE


def _is_literal(term: Maybe) -> Maybe:
    return None if term is None else TRUE if is_literal(term) else FALSE


def _is_numeric(term: Maybe) -> Maybe:
    return None if term is None else TRUE if number(term) is not None else FALSE


def _test_iri(term: Maybe) -> bool:
    return term is not None and is_iri(term)


def _test_blank(term: Maybe) -> bool:
    return term is not None and is_blank(term)


def _test_literal(term: Maybe) -> bool:
    return term is not None and is_literal(term)


def _test_numeric(term: Maybe) -> bool:
    return term is not None and number(term) is not None


def _str(term: Maybe) -> Maybe:
    return None if term is None or is_blank(term) else literal(text(term))


def _lang(term: Maybe) -> Maybe:
    return None if term is None or not is_literal(term) else literal(parts(term).language)


def _datatype(term: Maybe) -> Maybe:
    return None if term is None or not is_literal(term) else iri(parts(term).datatype)


def simple(term: Maybe) -> str | None:
    """Returns the characters of a simple literal (an xsd:string); None of everything else."""
    if term is None or not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    return lexical if datatype == XSD_STRING else None


def _iri(term: Maybe, base: Maybe = None) -> Maybe:
    """Returns the IRI, made absolute by the base; None if that is impossible, or the result is no IRI."""
    if term is None:
        return None
    if is_iri(term):
        return term
    reference = simple(term)
    if reference is None:
        return None
    absolute = reference if base is None else resolved(reference, text(base))
    return iri(absolute) if is_absolute(absolute) else None


def _strdt(lexical: Maybe, datatype: Maybe) -> Maybe:
    characters = simple(lexical)
    if characters is None or datatype is None or not is_iri(datatype) or iri_text(datatype) == LANG_STRING:
        return None
    return literal(characters, iri_text(datatype))


def _strlang(lexical: Maybe, tag: Maybe) -> Maybe:
    characters, language = simple(lexical), simple(tag)
    if characters is None or language is None or not is_language(language):
        return None
    return literal(characters, None, language)


def _digest(kind: str, terms: tuple[Maybe, ...]) -> bytes:
    """Returns 16 bytes that depend on all terms. A line feed occurs in no term."""
    return blake2b("\n".join((kind, *(term or "" for term in terms))).encode(), digest_size=16).digest()


def _bnode(call: Term, *bindings: Maybe) -> Maybe:
    return blank(f"b{_digest('node', (call, *bindings)).hex()}")


def _bnode_of(call: Term, *bindings_and_label: Maybe) -> Maybe:
    """Returns the blank node of a label (the last argument) in a solution."""
    if simple(bindings_and_label[-1]) is None:
        return None
    return blank(f"b{_digest('label', (call, *bindings_and_label)).hex()}")


def _uuid_text(call: Term, bindings: tuple[Maybe, ...]) -> str:
    """Returns a UUID of version 4 (RFC 4122, section 4.4) whose bits are a digest."""
    value = int.from_bytes(_digest("uuid", (call, *bindings)), "big")
    value = value & ~(0xF << 76) | 4 << 76
    value = value & ~(3 << 62) | 2 << 62
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _uuid(call: Term, *bindings: Maybe) -> Maybe:
    return iri(f"urn:uuid:{_uuid_text(call, bindings)}")


def _struuid(call: Term, *bindings: Maybe) -> Maybe:
    return literal(_uuid_text(call, bindings))


def _rand(call: Term, *bindings: Maybe) -> Maybe:
    """Returns a double from 0 on, less than 1."""
    return double((int.from_bytes(_digest("rand", (call, *bindings)), "big") >> 75) / 2**53)


def _since(time: int) -> Term:
    return integer(time)


def _arrived(time: int, delay: Maybe) -> Maybe:
    milliseconds = None if time == ALWAYS or delay is None else _integer(delay)
    return None if milliseconds is None else integer(time - milliseconds)


@lru_cache
def _integer(term: Term) -> int | None:
    value = number(term)
    return value.value if value is not None and isinstance(value.value, int) else None


def _occurrence(*terms: Maybe) -> Term:
    """Returns a literal that different terms never share."""
    return literal(_digest("occurrence", terms).hex())


def _solution(*bindings: Maybe) -> Term:
    """Returns a literal that different solutions never share: ``COUNT(DISTINCT *)`` counts these."""
    return literal("\n".join(term or "" for term in bindings))


_SINCE_DOC = "the time in ms since which the solution holds"
SINCE = Function(OWN + "since", _since, 0, 0, timed=True, tells_always=True, doc=_SINCE_DOC)
_ARRIVED_DOC = "the time in ms since which the solution holds, less a delay; none if it always holds"
ARRIVED = Function(OWN + "arrived", _arrived, 1, 1, timed=True, tells_always=True, doc=_ARRIVED_DOC)
OCCURRENCE = Function(OWN + "occurrence", _occurrence, 0, None, doc="a literal that tells equal solutions apart")
_BNODE_DOC = "a blank node: of this call in this solution, or of the label in this solution"
_BNODE = Function(SPARQL + "bnode", _bnode, 1, None, seeded=0, doc="a blank node of a call in a solution")
_BNODE_OF = Function(
    OWN + "bnode", _bnode_of, 2, None, seeded=0, doc="a blank node of a label, in a solution of a query"
)
SOLUTION = Function(OWN + "solution", _solution, 0, None, doc="a literal that tells solutions apart")
_IRI_DOC = "the IRI of these characters, resolved against the base IRI of the query"

MEMBERS: Members = (
    *defined("ISIRI", "isIRI", _is_iri, 1, 1, "it is an IRI", test=_test_iri),
    *defined("ISURI", "isURI", _is_iri, 1, 1, "it is an IRI", test=_test_iri),
    *defined("ISBLANK", "isBlank", _is_blank, 1, 1, "it is a blank node", test=_test_blank),
    *defined("ISLITERAL", "isLiteral", _is_literal, 1, 1, "it is a literal", test=_test_literal),
    *defined("ISNUMERIC", "isNumeric", _is_numeric, 1, 1, "it is a well-formed number", test=_test_numeric),
    *defined("STR", "str", _str, 1, 1, "the characters of an IRI or literal"),
    *defined("LANG", "lang", _lang, 1, 1, "the language tag of a literal, empty if it has none"),
    *defined("DATATYPE", "datatype", _datatype, 1, 1, "the datatype of a literal"),
    *defined("IRI", "iri", _iri, 1, 2, _IRI_DOC),
    *defined("URI", "uri", _iri, 1, 2, _IRI_DOC),
    *defined("STRDT", "strdt", _strdt, 2, 2, "a literal of characters and a datatype"),
    *defined("STRLANG", "strlang", _strlang, 2, 2, "a literal of characters and a language tag"),
    _BNODE,
    _BNODE_OF,
    Builtin(
        "BNODE",
        LANGUAGE,
        0,
        1,
        modes=(Mode(-1, _BNODE.iri, scoped=True), Mode(-1, _BNODE_OF.iri, scoped=True)),
        doc=_BNODE_DOC,
    ),
    *defined("UUID", "uuid", _uuid, 0, 0, "an IRI `urn:uuid:...` of this call in this solution", scoped=True),
    *defined("STRUUID", "struuid", _struuid, 0, 0, "a UUID of this call in this solution", scoped=True),
    *defined("RAND", "rand", _rand, 0, 0, "a double in [0, 1) of this call in this solution", scoped=True),
    SOLUTION,
    SINCE,
    ARRIVED,
    OCCURRENCE,
)
