"""The checks ``unused-value`` and ``misspelt-variable``: variables that nothing reads, or that look like another
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator

from squall.checking.findings import INFO, WARNING, Finding
from squall.checking.program import Program, Rule, is_silent, mentions, origin_of, readings
from squall.checking.spelling import is_slip
from squall.errors import Origin
from squall.model import Bind, Call, Variable
from squall.model.unbounded_state import pattern_text
from squall.model.walk import walk


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each computed value that is never used, and for each variable that looks like a typing
    error.

    Such a variable occurs once in a rule and is spelt almost like another one. A name that begins with ``_`` is
    intended.
    """
    used = frozenset(origin for rule in program.rules for origin in _used(rule))
    for rule in program.rules:
        counts = Counter(name for name in mentions(rule.system) if not is_silent(name))
        once = {name for name, count in counts.items() if count == 1}
        yield from _values(rule, once, used)
        yield from _misspelt(rule, once, [name for name in counts if name not in once])


def _values(rule: Rule, once: set[Variable], used: Container[Origin]) -> Iterator[Finding]:
    for part in _computed(rule):
        if part.variable in once and (_origin(part) is None or _origin(part) not in used):
            hint = f"leave it out, or name it `?_{part.variable.name}` if it is there to ask whether there is a value"
            message = f"`{part.variable}` gets a value that nothing uses"
            yield Finding("unused-value", INFO, message, _origin(part) or rule.origin, hint)


def _used(rule: Rule) -> Iterator[Origin]:
    """Yields the origins of values that are used. One rule of a text may be several rules here."""
    counts = Counter(mentions(rule.system))
    for part in _computed(rule):
        if counts[part.variable] > 1 and (origin := _origin(part)) is not None:
            yield origin


def _computed(rule: Rule) -> Iterator[Bind]:
    return (part for part in walk(rule.system) if isinstance(part, Bind) and isinstance(part.expression, Call))


def _origin(part: Bind) -> Origin | None:
    """Returns where a value was written. Several values may come from one call."""
    return origin_of(part.expression)


def _misspelt(rule: Rule, once: set[Variable], other_names: list[Variable]) -> Iterator[Finding]:
    for reading in readings(rule.system):
        for slot in reading.pattern.slots:
            if isinstance(slot, Variable) and slot in once:
                suggestions = [f"`{other}`" for other in other_names if is_slip(slot.name, other.name)]
                if suggestions:
                    message = f"`{slot}` occurs here only, in {pattern_text(reading.pattern)}"
                    hint = f"did you mean {' or '.join(suggestions)}? If not, name it `?_{slot.name}`"
                    origin = reading.pattern.origin or rule.origin
                    yield Finding("misspelt-variable", WARNING, message, origin, hint)
