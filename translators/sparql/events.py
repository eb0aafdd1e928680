"""Patterns over time of EP-SPARQL, as occurrences: operators from left to right, with bounds that filters state.

docs/languages/epsparql.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import takewhile

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.model import Variable
from squall.model.windows import duration
from squall.translators.sparql import step_times, time_patterns
from squall.translators.sparql.expressions import conjuncts
from squall.translators.sparql.sequences import (
    EXAMPLE_OF_BOUND,
    Built,
    TimePatterns,
    divided,
    either,
)

_OWN = step_times.PATTERN_OF_QUERY

Completion = Callable[[Built, frozenset[Variable]], Built]
"""Applies the bound and the conditions of a group to a pattern. They may use further variables, which are unbound."""


class EventPatterns(TimePatterns):
    """Translates the pattern over time of a query: of CT-SPARQL as `TimePatterns` does, and of EP-SPARQL."""

    def _outermost(self, element: q.TimePattern, group: q.Group) -> Built:
        if not isinstance(element, q.EventPattern):
            return super()._outermost(element, group)
        bound = self._bound(group.elements)

        def complete(built: Built, further: frozenset[Variable]) -> Built:
            pattern = time_patterns.Within(self._bounded(built, bound, group.origin).pattern, None, _OWN)
            times = {time_patterns.start_of(_OWN), time_patterns.end_of(_OWN)}
            return replace(built, pattern=pattern, bound=built.bound | times)

        return self._events(element, bound, complete)

    def _inside(self, group: q.Group, name: q.StepName | None) -> Built:
        conditions = () if q.is_composite(group) else _timed_conditions(group)
        if not conditions:
            return super()._inside(group, name)
        step = q.Group(tuple(element for element in group.elements if element not in conditions), group.origin)
        built = self._bounded(self._step(step, None), self._bound(conditions), group.origin)
        return self._conditioned(built, conditions, group.origin, name)

    def _composite(self, group: q.Group, name: q.StepName | None) -> Built:
        element, conditions = divided(group)
        bound = self._bound(conditions)

        def complete(built: Built, further: frozenset[Variable]) -> Built:
            return self._conditioned(self._bounded(built, bound, group.origin), conditions, group.origin, name, further)

        if isinstance(element, q.EventPattern):
            return self._events(element, bound, complete)
        return complete(self._element(element), frozenset())

    # Operators

    def _events(self, element: q.EventPattern, bound: int | None, complete: Completion) -> Built:
        """Returns the pattern of an element, with the bound and the conditions of its group."""
        chain = element.chains[0].chain
        result = self._inside(chain.first.group, None)
        for operand in chain.links:
            assert isinstance(operand, q.Operand)
            following = self._inside(operand.to.group, None)
            if operand.operator != "UNION":
                self._check_pair(result, following, operand.origin)
            if operand.operator == "OPTIONALSEQ":
                if operand is not chain.links[-1]:
                    hint = f"give it braces of its own: `{{ {{ ... }} OPTIONALSEQ {{ ... }} {EXAMPLE_OF_BOUND} }}`"
                    self.state.notes.fail("`OPTIONALSEQ` is not the last operator here", operand.origin, hint)
                return self._optional(result, following, operand, bound, complete)
            result = _combined(result, following, operand)
        return complete(result, frozenset())

    def _optional(
        self, before: Built, following: Built, operand: q.Operand, bound: int | None, complete: Completion
    ) -> Built:
        """Returns a sequence, or its first part where no occurrence of the second one follows within the bound."""
        if bound is None:
            message = "`OPTIONALSEQ` has no bound: whether something ever follows is never certain"
            hint = f"state in its braces how long it may take: `{EXAMPLE_OF_BOUND}`"
            self.state.notes.fail(message, operand.origin, hint)
            return complete(before, following.variables)
        pair = complete(_combined(before, following, replace(operand, operator="SEQ")), frozenset())
        alone = complete(before, following.variables)
        ended = time_patterns.Followed(alone.pattern, following.pattern, bound)
        return either([pair, replace(alone, pattern=ended, least=before.least + bound)])

    # Bounds

    def _bounded(self, built: Built, bound: int | None, origin: Origin | None) -> Built:
        """Returns a pattern with a bound on its length (integer ms)."""
        if bound is None:
            return built
        if bound < 0:
            message = "this never occurs: no duration is less than 0"
            self.state.notes.fail(message, origin, "a longer duration in the `FILTER`")
        elif built.least > bound:
            message = (
                f"this never occurs: it takes {duration(built.least)} at least, and `getDURATION()` has to be less"
            )
            self.state.notes.fail(message, origin, "a longer duration in the `FILTER`")
        return replace(built, pattern=time_patterns.Within(built.pattern, max(bound, 0)))

    def _bound(self, elements: Iterable[q.Element]) -> int | None:
        """Returns the greatest length that the filters of a group allow its pattern (integer ms), or None."""
        bounds = []
        for element in elements:
            if isinstance(element, q.Filter):
                for conjunct in conjuncts(element.expression):
                    bound = step_times.greatest_duration(conjunct)
                    bounds += [] if bound is None else [bound]
        return min(bounds, default=None)


def _combined(left: Built, right: Built, operand: q.Operand) -> Built:
    """Returns the pattern of two parts and the operator between them."""
    match operand.operator:
        case "SEQ":
            pattern = time_patterns.Seq(left.pattern, right.pattern, "each", origin=operand.origin)
            return left.joined(right, pattern, left.least + 1 + right.least)
        case "AND":
            both = time_patterns.Both(left.pattern, right.pattern)
            return left.joined(right, both, max(left.least, right.least))
        case "UNION":
            return either([left, right])
        case "EQUALS":
            equals = time_patterns.Equals(left.pattern, right.pattern)
            return left.joined(right, equals, max(left.least, right.least))
        case _:
            optional = time_patterns.Equals(left.pattern, right.pattern, is_optional=True)
            joined = left.joined(right, optional, left.least)
            return replace(joined, bound=left.bound, unbound=joined.variables - left.bound)


def _timed_conditions(group: q.Group) -> tuple[q.Element, ...]:
    """Returns the filters of a step that use its times, with the binds at its end, and the filters that use these."""
    elements = [element for element in group.elements if not isinstance(element, q.Filter)]
    reversed_binds = takewhile(lambda element: isinstance(element, q.Bind), reversed(elements))
    binds = [bind for bind in reversed_binds if isinstance(bind, q.Bind)]
    if not any(_uses_times(bind.expression) for bind in binds):
        binds = []
    names = {bind.variable for bind in binds}

    def is_timed(element: q.Element) -> bool:
        match element:
            case q.Filter(expression=expression):
                return _uses_times(expression) or not names.isdisjoint(q.mentioned(expression))
            case _:
                return element in binds

    return tuple(filter(is_timed, group.elements))


def _uses_times(expression: q.Expression) -> bool:
    """Returns whether an expression has a function of times outside of groups."""
    match expression:
        case q.StepCall():
            return True
        case q.Call(arguments=arguments):
            return any(map(_uses_times, arguments))
        case _:
            return False
