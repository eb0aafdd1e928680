"""The times of named steps (CT-SPARQL): ``start(?step)``, ``before(?step, ?other)``.

Source: J. Allen, Maintaining knowledge about temporal intervals (CACM 26(11), 1983).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from squall.errors import Origin, did_you_mean
from squall.lexers.sparql import tree as q
from squall.model import Variable
from squall.rdf import Term
from squall.translators.sparql import time_patterns
from squall.translators.sparql.state import State


def times(call: q.StepCall, names: Iterable[Variable], state: State) -> q.Expression:
    """Returns an expression of the variables of times for a function of steps.

    Args:
        call: The call.
        names: The variables that have a value where the call stands.
        state: The state, with the names of all steps.
    """
    visible_names = frozenset(names)
    for step in call.steps:
        if step.name not in state.steps:
            suggestion = did_you_mean(str(step), [str(name) for name in state.steps.values()])
            hint = suggestion or f"name a step: `{{ ... }} AS {step}`"
            state.notes.fail(f"there is no step `{step}`", step.origin, hint)
            return Term('""')
        if time_patterns.start_of(step.variable) not in visible_names:
            hint = "write it behind the pattern, in the same group, or in the `WHEN` of a later step"
            state.notes.fail(f"the times of `{step}` are not known here", step.origin, hint)
            return Term('""')
    return _times(
        call.function,
        [(time_patterns.start_of(step.variable), time_patterns.end_of(step.variable)) for step in call.steps],
        call.origin,
    )


def _times(function: str, intervals: Sequence[tuple[Variable, Variable]], origin: Origin | None) -> q.Expression:
    (start, end), *others = intervals
    if not others:
        if function == "duration":
            return q.Call("-", (end, start), origin=origin)
        return start if function == "start" else end
    ((other_start, other_end),) = others
    converse = _CONVERSE.get(function)
    if converse is not None:
        return _times(converse, [(other_start, other_end), (start, end)], origin)
    slots = {"s": start, "e": end, "S": other_start, "E": other_end}
    tests = tuple(q.Call(test[1], (slots[test[0]], slots[test[2]]), origin=origin) for test in _RELATIONS[function])
    return tests[0] if len(tests) == 1 else q.Call("&&", tests, origin=origin)


_RELATIONS: dict[str, tuple[str, ...]] = {
    "before": ("e<S",),
    "meets": ("s<S", "e=S", "e<E"),
    "overlaps": ("s<S", "S<e", "e<E"),
    "starts": ("s=S", "e<E"),
    "during": ("S<s", "e<E"),
    "finishes": ("S<s", "e=E"),
    "coincides": ("s=S", "e=E"),
}
"""Allen's relations of an interval [s, e] to another one [S, E]. Exactly one of the thirteen holds, also for
instants."""

_CONVERSE = {
    "after": "before",
    "metBy": "meets",
    "overlappedBy": "overlaps",
    "startedBy": "starts",
    "includes": "during",
    "finishedBy": "finishes",
}
