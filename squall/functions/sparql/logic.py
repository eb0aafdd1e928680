"""Conditions and choices: effective boolean value, three-valued logic, BOUND, IF, COALESCE, IN.

Source: SPARQL 1.1, sections 17.2 and 17.4.1. Arguments come evaluated, with None for an error: nothing has effects.
"""

from __future__ import annotations

from functools import lru_cache

from squall.functions import Function
from squall.functions.sparql.names import FALSE, OWN, SPARQL, TRUE, Maybe, Members, defined, test_iri, truth
from squall.functions.sparql.operands import equal
from squall.functions.values import BOOLEAN, NUMERIC, boolean, number
from squall.rdf import LANG_STRING, XSD_STRING, Term, is_literal, parts


@lru_cache(maxsize=65536)
def _of_term(term: Term) -> bool | None:
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if datatype in (XSD_STRING, LANG_STRING):
        return lexical != ""
    if datatype == BOOLEAN:
        return boolean(term) or False
    if datatype not in NUMERIC:
        return None
    numeric = number(term)
    return numeric is not None and numeric.is_truthful


def effective(term: Maybe) -> bool | None:
    """Returns the effective boolean value of a term (section 17.2.2); None is a type error."""
    return None if term is None else _of_term(term)


def ebv(term: Maybe) -> bool:
    """Returns whether a term's effective boolean value is true."""
    return term is not None and _of_term(term) is True


def _not(term: Maybe) -> Maybe:
    value = effective(term)
    return None if value is None else FALSE if value else TRUE


def _not_ebv(term: Maybe) -> bool:
    return term is not None and _of_term(term) is False


def _and(*terms: Maybe) -> Maybe:
    """Returns False if an operand is false, else an error if there is one."""
    truths = [effective(term) for term in terms]
    return FALSE if False in truths else None if None in truths else TRUE


def _or(*terms: Maybe) -> Maybe:
    """Returns True if an operand is true, else an error if there is one."""
    truths = [effective(term) for term in terms]
    return TRUE if True in truths else None if None in truths else FALSE


def _all(*truths: bool) -> bool:
    return all(truths)


def _any(*truths: bool) -> bool:
    return any(truths)


def _bound(term: Maybe) -> Term:
    return FALSE if term is None else TRUE


def _is_bound(term: Maybe) -> bool:
    return term is not None


def _if(condition: Maybe, then: Maybe, otherwise: Maybe) -> Maybe:
    value = effective(condition)
    return None if value is None else then if value else otherwise


def _coalesce(*terms: Maybe) -> Maybe:
    return next((term for term in terms if term is not None), None)


def _among(term: Maybe, options: tuple[Maybe, ...]) -> bool | None:
    """Returns whether a term equals one of the options; an error if it equals none, and a comparison is an error."""
    matches = [equal(term, option) for option in options]
    return True if True in matches else None if None in matches else False


def _in(term: Maybe, *options: Maybe) -> Maybe:
    return truth(_among(term, options))


def _is_in(term: Maybe, *options: Maybe) -> bool:
    return _among(term, options) is True


def _not_in(term: Maybe, *options: Maybe) -> Maybe:
    return _not(_in(term, *options))


def _is_not_in(term: Maybe, *options: Maybe) -> bool:
    return _among(term, options) is False


def _is_unbound(term: Maybe) -> bool:
    return term is None


def _compatible(left: Maybe, right: Maybe) -> bool:
    return left is None or right is None or left == right


def _meet(*terms: Maybe) -> bool:
    return any(left is not None and right is not None for left, right in zip(terms[::2], terms[1::2], strict=False))


def _boolean(value: bool) -> Term:
    return TRUE if value else FALSE


EBV = Function(OWN + "ebv", ebv, 1, 1, truth=True, doc="the effective boolean value is true")
BOOLEAN_OF = Function(OWN + "boolean", _boolean, 1, 1, doc="the term of what a test says")
BOUND = test_iri("bound")
COALESCE = SPARQL + "coalesce"
UNBOUND = Function(OWN + "unbound", _is_unbound, 1, 1, truth=True, doc="the variable is not bound")
COMPATIBLE = Function(OWN + "compatible", _compatible, 2, 2, truth=True, doc="the same term, or one is unbound")
MEET = Function(OWN + "meet", _meet, 0, None, truth=True, doc="both of some pair are bound")

MEMBERS: Members = (
    EBV,
    BOOLEAN_OF,
    UNBOUND,
    COMPATIBLE,
    MEET,
    *defined("!", "logical-not", _not, 1, 1, "not", test=_not_ebv),
    *defined("&&", "logical-and", _and, 2, None, "and; false if one is false, whatever the others", test=_all),
    *defined("||", "logical-or", _or, 2, None, "or; true if one is true, whatever the others", test=_any),
    *defined("BOUND", "bound", _bound, 1, 1, "the variable is bound", test=_is_bound, strict=True),
    *defined("IF", "if", _if, 3, 3, "the second if the first is true, the third if it is false"),
    *defined("COALESCE", "coalesce", _coalesce, 0, None, "the first that is no error"),
    *defined("IN", "in", _in, 1, None, "the first equals one of the others", test=_is_in, compares=True),
    *defined(
        "NOT IN", "not-in", _not_in, 1, None, "the first equals none of the others", test=_is_not_in, compares=True
    ),
)
