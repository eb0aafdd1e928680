"""The occurrences that a match of a pattern over time is made of, as a term: what a match consumes.

The term is a literal with a JSON array, which has an array for each occurrence of a step, in the order of the text: its
time (integer ms), the name of the pattern of the step, and what it binds. `squall.model.Consumption` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from squall.functions import Function
from squall.functions.values import text
from squall.rdf import Term, literal

Member = tuple[int, tuple[str, ...], str]
"""An occurrence of a step: its time (integer ms), the terms that it binds, and the name of its pattern."""


def _member(pattern: Term | None, time: Term | None, *terms: Term | None) -> Term | None:
    if pattern is None or time is None:
        return None
    return literal(json.dumps([[int(text(time)), text(pattern), *terms]], ensure_ascii=False, separators=(",", ":")))


def _joined(*parts: Term | None) -> Term:
    return literal(f"[{','.join(text(part)[1:-1] for part in parts if part is not None)}]")


MEMBER = Function(
    "urn:x-squall:consumption:member", _member, 2, None, doc="an occurrence of a step, of its pattern, time and terms"
)
JOINED = Function(
    "urn:x-squall:consumption:joined", _joined, 0, None, doc="the occurrences of several parts of a match"
)
FUNCTIONS: tuple[Function, ...] = (MEMBER, JOINED)
"""The functions of the entry point `consumption` of the group ``squall.functions``."""


def members_of(term: str) -> tuple[Member, ...]:
    """Returns the occurrences that a term stands for, in the order of the text."""
    return tuple((time, tuple(terms), pattern) for time, pattern, *terms in json.loads(text(Term(term))))


def preference(start: int, members: Sequence[Member], steps: Sequence[str]) -> tuple[object, ...]:
    """Returns the sort key of a match, among those that end together: the first one has what several of them need.

    Args:
        start: When it begins (integer ms).
        members: The occurrences that it is made of.
        steps: The names of the patterns of steps, in the order of the text.
    """
    times, terms, patterns = zip(*members, strict=True)
    return start, times, [steps.index(pattern) for pattern in patterns], terms
