"""The built-ins of the Jena rule language over lists and compounds, and those that count.

A list of RDF reaches them as the term of its members (`squall.rdf.compounds`), which rules derive
(`squall.translators.jena.lists`). Semantics: as for `squall.functions.jena`.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from hashlib import blake2b, md5

from squall.functions import SAME_VALUE, Builtin, Function, Mode
from squall.functions.jena import function_iri, integer
from squall.functions.values import decimal, integer_text, number, same, text, value_key
from squall.rdf import Term, literal
from squall.rdf.compounds import LIST, derived_node, is_compound, parse_compound

Maybe = Term | None

HAS_NOT = function_iri("listHasNotTerm")
MEMBERS_OF = function_iri("listMembers")
PAIRS_OF = function_iri("listPairs")
VALUE = function_iri("value")
COUNTED = function_iri("counted")


def _members(list_term: Maybe) -> tuple[Term, ...] | None:
    """Returns the members of a list; None: it is none."""
    parts = parse_compound(list_term) if list_term is not None else None
    return parts.arguments if parts is not None and parts.name == LIST else None


def _contains(list_term: Maybe, term: Maybe) -> bool:
    members = _members(list_term)
    return members is not None and term is not None and any(same(member, term) for member in members)


def _contains_not(list_term: Maybe, term: Maybe) -> bool:
    members = _members(list_term)
    return members is not None and term is not None and not any(same(member, term) for member in members)


def _has_not(list_term: Maybe, term: Maybe) -> bool:
    members = _members(list_term)
    return members is not None and term not in members


def _values(list_term: Maybe) -> Counter[object] | None:
    members = _members(list_term)
    return None if members is None else Counter(map(value_key, members))


def _equal(left: Maybe, right: Maybe) -> bool:
    values = _values(left)
    return values is not None and values == _values(right)


def _equal_not(left: Maybe, right: Maybe) -> bool:
    left_values, right_values = _values(left), _values(right)
    return left_values is not None and right_values is not None and left_values != right_values


def _entry(list_term: Maybe, place: Maybe) -> Maybe:
    members, index = _members(list_term), number(place) if place is not None else None
    if members is None or index is None or not isinstance(index.value, int):
        return None
    return members[index.value] if 0 <= index.value < len(members) else None


def _length(list_term: Maybe) -> Maybe:
    members = _members(list_term)
    return None if members is None else integer(len(members))


def _rows(list_term: Maybe) -> list[tuple[Term, ...]]:
    return [(member,) for member in dict.fromkeys(_members(list_term) or ())]


def _pairs(list_term: Maybe) -> list[tuple[Term, ...]]:
    members = list(dict.fromkeys(_members(list_term) or ()))
    return [(left, right) for left in members for right in members if not same(left, right)]


def _is_functor(term: Maybe) -> bool:
    return term is not None and is_compound(term)


def _not_functor(term: Maybe) -> bool:
    return not _is_functor(term)


def _make_instance(*terms: Maybe) -> Term:
    """Returns a blank node that is the same for the same node, property and class, in any rule."""
    key = "\n".join(("instance", *(term or "" for term in terms)))
    return derived_node(f"s{md5(key.encode(), usedforsecurity=False).hexdigest()}", terms)


def _value(term: Maybe) -> Maybe:
    """Returns a text that equal values share, and by which literals are distinguished when they are counted."""
    return None if term is None else literal(blake2b(_key_text(term).encode(), digest_size=16).hexdigest())


def _key_text(term: Term) -> str:
    numeric = number(term)
    if numeric is None or numeric.is_floating:
        return repr(value_key(term))
    digits = integer_text(numeric.value) if isinstance(numeric.value, int) else text(decimal(Decimal(numeric.value)))
    return f"('decimal', Decimal('{digits}'))" if "." in digits else f"('decimal', {digits})"


def _counted(value: Maybe) -> Maybe:
    count = None if value is None else number(value)
    return integer(count.value) if count is not None and isinstance(count.value, int) else integer(0)


_LENGTH = Function(function_iri("listLength"), _length, 1, 1, doc="how many members a list has")
_ENTRY = Function(function_iri("listEntry"), _entry, 2, 2, doc="the member of a list at a place, from 0")
_INSTANCE = Function(
    function_iri("makeInstance"), _make_instance, 2, 3, nests=True, doc="a blank node of a node, a property and a class"
)
_TESTS = tuple(
    Function(function_iri(name), body, count, count, truth=True, doc=doc)
    for name, body, count, doc in (
        ("listContains", _contains, 2, "the list has a member of this value"),
        ("listNotContains", _contains_not, 2, "it is a list, and has no member of this value"),
        ("listEqual", _equal, 2, "the lists have the same values as often, in any order"),
        ("listNotEqual", _equal_not, 2, "both are lists, and not equal"),
        ("isFunctor", _is_functor, 1, "it is built of terms"),
        ("notFunctor", _not_functor, 1, "it is not built of terms; true if unbound"),
    )
)

FUNCTIONS: tuple[Function | Builtin, ...] = (
    *_TESTS,
    _LENGTH,
    _ENTRY,
    _INSTANCE,
    Function(HAS_NOT, _has_not, 2, 2, truth=True, doc="it is a list, and has not this member"),
    Function(MEMBERS_OF, _rows, 1, 1, doc="the members of a list, each as a row"),
    Function(PAIRS_OF, _pairs, 1, 1, doc="each two members of a list of different values, in both orders, as a row"),
    Function(VALUE, _value, 1, 1, doc="a text that literals of equal values share"),
    Function(COUNTED, _counted, 1, 1, doc="a number as Jena has it; 0 if unbound"),
    *(Builtin(test.iri.rpartition(":")[2], "jena", test.least, test.most, test=test.iri) for test in _TESTS),
    Builtin("listLength", "jena", 2, 2, modes=(Mode(1, _LENGTH.iri),), same=SAME_VALUE),
    Builtin("listEntry", "jena", 3, 3, modes=(Mode(2, _ENTRY.iri),), same=SAME_VALUE),
    Builtin("makeInstance", "jena", 3, 4, modes=(Mode(-1, _INSTANCE.iri),), same=SAME_VALUE),
    # The translator gives these their meaning.
    Builtin("countLiteralValues", "jena", 3, 3),
    Builtin("listMapAsObject", "jena", 3, 3, where="head"),
    Builtin("listMapAsSubject", "jena", 3, 3, where="head"),
    Builtin("assertDisjointPairs", "jena", 1, 1, where="head"),
    Builtin("remove", "jena", 1, None, where="head"),
    Builtin("drop", "jena", 1, None, where="head"),
    Builtin("hide", "jena", 1, None, where="both"),
)
"""The functions of the entry point `jena-lists` of the group ``squall.functions``."""
