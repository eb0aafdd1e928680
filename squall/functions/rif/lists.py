"""Functions and predicates of lists (DTB, section 4.11), which are compound terms (`squall.rdf.compounds`).

The first item has position 0; position -1 is the last. Items are the same if they are the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from squall.functions import Function, Mode
from squall.functions.rif.names import OWN, Domain, Maybe, Members, function, predicate
from squall.functions.rif.spaces import identity
from squall.functions.values import integer, number
from squall.rdf import Term
from squall.rdf.compounds import LIST, compound, parse_compound

Items = tuple[Term, ...]


def items(term: Term) -> Items | None:
    """Returns the items of a list; None for everything else."""
    parts = parse_compound(term)
    return parts.arguments if parts and parts.name == LIST else None


def _whole(term: Term) -> int | None:
    numeric = number(term)
    exact = numeric is not None and not numeric.is_floating and numeric.value == int(numeric.value)
    return int(numeric.value) if numeric is not None and exact else None


_LIST = Domain("list", items)
_POSITION = Domain("integer", _whole)
_ANY = Domain("any", lambda term: term)


def _list_of(items: Iterable[Term]) -> Term:
    return compound(LIST, tuple(items))


def _make(*items: Term) -> Term:
    return _list_of(items)


def _count(items: Items) -> Term:
    return integer(len(items))


def _is_list(term: Term) -> bool:
    return items(term) is not None


def _contains(items: Items, sought: Term) -> bool:
    key = identity(sought)
    return any(identity(item) == key for item in items)


def _members(term: Maybe) -> list[Items]:
    """Yields each item once, in a row of its own."""
    members = None if term is None else items(term)
    return [(item,) for item in _distinct(members or ())]


def _distinct(items: Iterable[Term]) -> Items:
    """Returns the items without duplicates; the first of equal ones stays."""
    distinct: dict[object, Term] = {}
    for item in items:
        distinct.setdefault(identity(item), item)
    return tuple(distinct.values())


def _place(items: Items, position: int, end: int) -> int | None:
    """Returns the position counted from the first; None if it is outside of the list."""
    place = position if position >= 0 else len(items) + position
    return place if 0 <= place < end else None


def _get(items: Items, position: int) -> Maybe:
    place = _place(items, position, len(items))
    return None if place is None else items[place]


def _sublist(items: Items, start: int, stop: int | None = None) -> Term:
    return _list_of(items[start:stop])


def _append(items: Items, *more: Term) -> Term:
    return _list_of((*items, *more))


def _concatenate(*lists: Items) -> Term:
    return _list_of(chain(*lists))


def _insert_before(items: Items, position: int, item: Term) -> Maybe:
    """Returns a position that may also be the end, which is after the last item."""
    place = _place(items, position, len(items) + 1)
    return None if place is None else _list_of((*items[:place], item, *items[place:]))


def _remove(items: Items, position: int) -> Maybe:
    place = _place(items, position, len(items))
    return None if place is None else _list_of((*items[:place], *items[place + 1 :]))


def _reverse(items: Items) -> Term:
    return _list_of(reversed(items))


def _index_of(items: Items, sought: Term) -> Term:
    key = identity(sought)
    return _list_of(integer(place) for place, item in enumerate(items) if identity(item) == key)


def _union(*lists: Items) -> Term:
    return _list_of(_distinct(chain(*lists)))


def _distinct_values(items: Items) -> Term:
    return _list_of(_distinct(items))


def _intersect(items: Items, *other_lists: Items) -> Term:
    keys = [_keys(other) for other in other_lists]
    return _list_of(item for item in items if all(identity(item) in key_set for key_set in keys))


def _except(items: Items, excluded_items: Items) -> Term:
    excluded = _keys(excluded_items)
    return _list_of(item for item in items if identity(item) not in excluded)


def _keys(items: Sequence[Term]) -> set[object]:
    return set(map(identity, items))


_MEMBERS_OF = Function(OWN + "members", _members, 1, 1, doc="the items of a list, each in a row of its own")

MEMBERS: Members = (
    _MEMBERS_OF,
    *predicate("is-list", (_ANY,), _is_list, "it is a list"),
    *predicate(
        "list-contains", (_LIST, _ANY), _contains, "the second is an item of the first, and computed from it",
        modes=(Mode(1, _MEMBERS_OF.iri, inputs=(0,), table=True),),
    ),
    *function("make-list", (_ANY,), _make, "the list of these items", least=0, repeats=True, nests=True),
    *function("count", (_LIST,), _count, "the number of items"),
    *function("get", (_LIST, _POSITION), _get, "the item at a position"),
    *function(
        "sublist", (_LIST, _POSITION, _POSITION), _sublist,
        "the items from a position on, and before another if there is one", least=2,
    ),
    *function(
        "append", (_LIST, _ANY), _append, "the list with further items at its end",
        least=1, repeats=True, nests=True,
    ),
    *function("concatenate", (_LIST,), _concatenate, "the items of all lists", least=0, repeats=True),
    *function(
        "insert-before", (_LIST, _POSITION, _ANY), _insert_before,
        "the list with an item put in at a position, or at its end", nests=True,
    ),
    *function("remove", (_LIST, _POSITION), _remove, "the list without the item at a position"),
    *function("reverse", (_LIST,), _reverse, "the items from the last to the first"),
    *function("index-of", (_LIST, _ANY), _index_of, "the positions of what is the same as the second"),
    *function("union", (_LIST,), _union, "the items of all lists, each once", least=0, repeats=True),
    *function("distinct-values", (_LIST,), _distinct_values, "the items, each once"),
    *function(
        "intersect", (_LIST,), _intersect, "the items of the first list that are in all others",
        least=1, repeats=True,
    ),
    *function("except", (_LIST, _LIST), _except, "the items of the first list that are not in the second"),
)  # fmt: skip
