"""Iterations of a pattern over time: runs of its occurrences, and what is measured of them.

A run is the fold of a sequence (`squall.model.Iteration`): it has the keys, its times, the number of its occurrences,
and a variable for each value that a longer run is computed from. Sources: quantifiers and MEASURES of MATCH_RECOGNIZE
(ISO/IEC 19075-5:2021, sections 4.5 and 4.7), and Kleene closure of event patterns (Agrawal et al., Efficient Pattern
Matching over Event Streams, SIGMOD 2008, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from squall.errors import Origin
from squall.functions.consumption import JOINED
from squall.functions.values import integer
from squall.model import (
    Between,
    Bind,
    Call,
    Expression,
    Filter,
    Iteration,
    Select,
    System,
    Union,
    Variable,
    map_parts,
)
from squall.translators.sparql import calls

_PREVIOUS = "previous "
MEASURES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
"""The kinds of measures."""


@dataclass(frozen=True)
class Measure:
    """A value that is computed from a run, as an aggregate of SPARQL is from a group.

    MIN and MAX compare by `<`: what it cannot compare has neither.

    Attributes:
        variable: The variable of the value.
        kind: One of `MEASURES`.
        expression: The expression of the variables of an occurrence; None counts occurrences (COUNT).
    """

    variable: Variable
    kind: str
    expression: Expression | None = None


def previous_of(name: Variable) -> Variable:
    """Returns the variable with the value in the occurrence before, in the condition of an iteration."""
    return Variable(_PREVIOUS + name.name)


class Run:
    """The variables of a run, and the system that finds the runs.

    Args:
        keys: The variables that all occurrences of a run have the same values of.
        measures: What is computed from a run.
        number: A number by which the variables differ from those of other iterations.
        member: The variable of the occurrences of steps that an occurrence is made of, if they are known.
    """

    def __init__(
        self, keys: tuple[Variable, ...], measures: tuple[Measure, ...], number: int, member: Variable | None = None
    ) -> None:
        self.keys = keys
        self.measures = measures
        self.number = number
        self.start, self.end, self.count = (Variable(f"{word} {number}") for word in ("start", "end", "count"))
        self.member = member
        self.members = None if member is None else Variable(f"members {number}")
        self.previous: dict[Variable, Variable] = {}
        """The variable of the value in the last occurrence, for the variables that the condition compares."""

    def of_next(self, part: Any) -> Any:
        """Returns a part of an occurrence as one of the next occurrence, which has other variables but for the keys."""
        return self._renamed(part, "next")

    def compared(self, condition: Call) -> Call:
        """Returns a condition, over the variables of a run and of the next occurrence."""

        def placed(part: Any) -> Any:
            if not isinstance(part, Variable):
                return map_parts(part, placed)
            if not part.name.startswith(_PREVIOUS):
                return self.of_next(part)
            name = Variable(part.name.removeprefix(_PREVIOUS))
            return name if name in self.keys else self.previous.setdefault(name, self._variable(part.name))

        result: Call = placed(condition)
        return result

    def runs(
        self,
        member: System,
        times: tuple[Variable, Variable],
        bounds: tuple[int, int | None],
        condition: Call | None,
        is_consecutive: bool,
        origin: Origin | None,
    ) -> System:
        """Returns a part with all runs: their keys, measures and times.

        Args:
            member: The part with the occurrences.
            times: Their begin and end.
            bounds: The least number of occurrences in a run, and the greatest, or None.
            condition: The condition, as `compared` returns it, or None.
            is_consecutive: Whether no other occurrence with the same keys is between two of a run.
            origin: The place of the pattern.
        """
        (least, most), (start, end) = bounds, times
        folds, own = self._folds(times), (self.start, self.end, self.count, self.members)
        state = (*self.keys, *folds)
        left = System(
            sources=(),
            joinables=(member,),
            predicates=tuple(Bind(name, value, keep_unbound=name not in own) for name, (value, _) in folds.items()),
            consequences=(Select(state),),
        )
        between = []
        if is_consecutive:
            other = self._renamed(member, "between")
            own_times = [self._renamed(time, "between") for time in times]
            shown = Select(tuple(dict.fromkeys((*self.keys, *own_times))))
            between.append(Between(System(sources=(), joinables=(other,), consequences=(shown,)), *own_times))
        longer = Iteration(
            left,
            self.of_next(member),
            self.end,
            self.of_next(start),
            self.of_next(end),
            condition=condition,
            between=tuple(between),
            origin=origin,
            values=tuple((name, value) for name, (_, value) in folds.items() if value is not None),
            again=None if most is None else self._compares("<", most),
        )
        if most == 1:
            runs = left
        elif least > 1:
            runs = System(sources=(), joinables=(longer,))
        else:
            runs = System(
                sources=(),
                joinables=(Union((left, System(sources=(), joinables=(longer,), consequences=(Select(state),)))),),
            )
        tests = [Filter(self._compares(">=", least))] if least > 2 else []
        binds = [Bind(measure.variable, self._value(measure), keep_unbound=True) for measure in self.measures]
        names = (*self.keys, *(measure.variable for measure in self.measures), self.start, self.end)
        shown = Select(names if self.members is None else (*names, self.members))
        return System(sources=(), joinables=(runs,), predicates=(*tests, *binds), consequences=(shown,))

    def _folds(self, times: tuple[Variable, Variable]) -> dict[Variable, tuple[Expression, Expression | None]]:
        """Returns for each variable of a run but its keys its value for one occurrence, and that for a longer run.

        The latter is over the variables of the run and of the next occurrence; None is the value of the run.
        """
        start, end = times
        folds: dict[Variable, tuple[Expression, Expression | None]] = {
            self.start: (start, None),
            self.end: (end, self.of_next(end)),
            self.count: (integer(1), calls.call("+", (self.count, integer(1)))),
        }
        if self.member is not None and self.members is not None:
            folds[self.members] = (self.member, calls.by_iri(JOINED.iri, (self.members, self.of_next(self.member))))
        for name, variable in self.previous.items():
            folds[variable] = (name, self.of_next(name))
        for measure in self.measures:
            if measure.expression is not None:
                folds[self._state(measure)] = self._fold(measure, measure.expression)
        return folds

    def _fold(self, measure: Measure, value: Expression) -> tuple[Expression, Expression | None]:
        so_far, next_value = self._state(measure), self.of_next(value)
        match measure.kind:
            case "COUNT":
                return _is_bound(value), calls.call("+", (so_far, _is_bound(next_value)))
            case "SUM" | "AVG":
                return calls.call("+", (integer(0), value)), calls.call("+", (so_far, next_value))
            case "MIN":
                return value, calls.call("IF", (calls.call("<", (next_value, so_far)), next_value, so_far))
            case "MAX":
                return value, calls.call("IF", (calls.call("<", (so_far, next_value)), next_value, so_far))
            case "FIRST":
                return value, None
            case "LAST":
                return value, next_value
        raise AssertionError(measure.kind)

    def _value(self, measure: Measure) -> Expression:
        """Returns the value of a measure, over the variables of a run."""
        if measure.expression is None:
            return self.count
        so_far = self._state(measure)
        return calls.call("/", (so_far, self.count)) if measure.kind == "AVG" else so_far

    def _compares(self, comparison: str, number: int) -> Call:
        return calls.condition(calls.call(comparison, (self.count, integer(number))))

    def _state(self, measure: Measure) -> Variable:
        return self._variable(f"{measure.kind} {measure.variable.name}")

    def _renamed(self, part: Any, role: str) -> Any:
        def changed(inner: Any) -> Any:
            if not isinstance(inner, Variable):
                return map_parts(inner, changed)
            return inner if inner in self.keys else self._variable(f"{role} {inner.name}")

        return changed(part)

    def _variable(self, name: str) -> Variable:
        return Variable(f"{name} in {self.number}")


def _is_bound(value: Expression) -> Call:
    """Returns 1 for an expression that has a value, and 0 for another one."""
    number = calls.call("IF", (calls.call("SAMETERM", (value, value)), integer(1), integer(0)))
    return calls.call("COALESCE", (number, integer(0)))
