"""The built-in ``countLiteralValues``, which counts literals that differ by value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from squall.errors import Origin
from squall.functions import SAME_VALUE, Builtin, Mode
from squall.functions.jena import function_iri
from squall.functions.jena_lists import COUNTED, VALUE
from squall.model import Aggregate, Call, Filter, Grouping, Optional, Pattern, Predicate, Slot, System, Variable
from squall.translators.common import Scope, lower_call


def predicates(
    slots: Sequence[Slot], scope: Scope, fresh: Callable[[], Variable], origin: Origin | None
) -> Iterator[Predicate]:
    """Yields the predicates that count the values of a property of a node, 0 included. Unbound arguments match
    anything.
    """
    bound_slots = [slot if scope.is_bound(slot) else fresh() for slot in slots[:2]]
    keys = tuple(dict.fromkeys(slot for slot in bound_slots if slot in slots and isinstance(slot, Variable)))
    value, number = fresh(), fresh()
    aggregate = Aggregate(number, "count", Call(VALUE, (value,)), distinct=True)
    part = System(
        joinables=(Pattern(bound_slots[0], bound_slots[1], value, origin=origin),),
        predicates=(Filter(Call(function_iri("isLiteral"), (value,))),),
        grouping=Grouping(keys, (aggregate,)),
        origin=origin,
    )
    yield Optional(part)
    scope.bind([number])
    yield from lower_call(_COUNT, (number, slots[2]), scope, origin)


_COUNT = Builtin("countLiteralValues", "jena", 2, 2, modes=(Mode(1, COUNTED),), same=SAME_VALUE)
