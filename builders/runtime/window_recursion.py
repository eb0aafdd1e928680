"""Recursion through windows: it goes on from instant to instant, also behind the end of the input.

There its facts may hold on for ever (``a :- a in [1 sec]``). So a recursion is followed for some instants. If it only
prolongs what is valid by then, this stays so; if it derives something else, that is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.operators.temporal import AtOperator, TemporalOperator
from squall.errors import BuilderError
from squall.rdf import ALWAYS, FOREVER

if TYPE_CHECKING:
    from squall.builders.runtime.dataflow import Dataflow

MAX_INSTANTS_AFTER_INPUT = 1000
"""For so many instants a recursion through windows is followed behind the end of the input."""


def follow(dataflow: Dataflow, component: Sequence[str], now: int) -> None:
    """Processes what begins to be valid in a recursion up to `now` (integer ms), one instant after the other."""
    operators = _recursive_operators(dataflow, component)
    instants = 0
    while operators and (time := min(op.next_time for op in operators.values())) <= now:
        instants += now >= FOREVER - 1
        if instants > MAX_INSTANTS_AFTER_INPUT:
            _check_growth(dataflow, component)
            for op in operators.values():
                op.prolong_for_ever()
        for id, op in operators.items():
            dataflow.emit(id, op.advance(time))
        dataflow.fixpoint(component)


def may_go_on(dataflow: Dataflow) -> bool:
    """Returns whether there may be work for as long as time passes: a recursion through windows, or times of facts."""
    lists_times = any(isinstance(op, AtOperator) for op in dataflow.timed_operators.values())
    return lists_times or any(_recursive_operators(dataflow, component) for component in dataflow.plan.components)


def last_time_of_growth(dataflow: Dataflow) -> int:
    """Returns the last time at which there is work as of now, in a run whose facts only hold on from then.

    Raises:
        BuilderError: A recursion derives something new, or the times of a fact are listed that holds for ever.
    """
    for component in dataflow.plan.components:
        _check_growth(dataflow, component)
    last_time = ALWAYS
    for op in dataflow.operators.values():
        if isinstance(op, AtOperator):
            op.check_ends()
        if isinstance(op, EventTimeOperator):
            last_time = max([last_time, *op.changes.times])
        elif isinstance(op, AppendOnlyOutput | TemporalOperator):
            last_time = max([last_time, *(start for start, _, _ in op.future)])
    return last_time


def _recursive_operators(dataflow: Dataflow, component: Sequence[str]) -> dict[str, TemporalOperator]:
    """Returns the operators on validity in a recursion."""
    if len(component) == 1 or not dataflow.timed_operators:
        return {}
    number = dataflow.component_of[component[0]]
    return {
        id: op
        for id, op in dataflow.timed_operators.items()  # few, where a recursion may have hundreds of nodes
        if isinstance(op, TemporalOperator) and dataflow.component_of[id] == number
    }


def _check_growth(dataflow: Dataflow, component: Sequence[str]) -> None:
    """Raises BuilderError if a recursion derives something new behind the end of the input, and not only again."""
    if not all(op.is_prolonged for op in _recursive_operators(dataflow, component).values()):
        nodes = dataflow.plan.by_id
        rules = sorted({rule for id in component for rule in getattr(nodes[id].op, "rules", ())})
        raise BuilderError(
            f"the recursion through windows of {', '.join(f'`{rule}`' for rule in rules)} goes on behind the end of "
            f"the input: it derives something at more than {MAX_INSTANTS_AFTER_INPUT} further instants",
            hint="let a condition of a rule say where that ends",
        )
