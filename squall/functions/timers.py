"""Timers as data: facts that updates insert into the graph ``urn:x-squall:timers``, and when they fire.

Updates set and cancel them as they change any other fact (docs/semantics.md, Timers).
"""

from __future__ import annotations

from squall.functions.temporal import later
from squall.functions.values import date_time, duration, instant, point
from squall.rdf import ALWAYS, FOREVER, XSD, Term, Triple, iri, literal

TIMERS = "urn:x-squall:timers"
"""The stream of the graph of timers."""
NAMESPACE = "urn:x-squall:timer:"
AT, AFTER, FIRED = (iri(f"{NAMESPACE}{name}") for name in ("at", "after", "fired"))
SETTING = (AT, AFTER)
"""The predicates of facts that set a timer."""


def sets_timer(stream: str | None, predicate: object) -> bool:
    """Returns whether the insertion of a fact with a predicate into the graph of a stream sets a timer."""
    return stream == TIMERS and predicate in SETTING


def fired(timer: Triple) -> Triple:
    """Returns the fact that replaces a timer when it fires."""
    return Triple(timer.subject, FIRED, literal("true", XSD + "boolean"))


def due_time(predicate: Term, value: Term, set_at: int) -> int:
    """Returns when a timer fires, in integer ms: at the first ms that is not earlier than its time.

    Args:
        predicate: One of `SETTING`.
        value: Its object: of ``at`` an xsd:dateTime, which is in UTC if it names no zone; of ``after`` a duration.
        set_at: The time from which the duration counts (integer ms).

    Raises:
        ValueError: The value is neither, or the time is beyond those of a run. Its text says what is wrong.
    """
    if predicate == AT:
        due = instant(value)
        if due is None or due.family != "dateTime":
            raise ValueError(f"`{value}` is no xsd:dateTime")
    else:
        length, begin = duration(value), point(date_time(set_at))
        if length is None:
            raise ValueError(f"`{value}` is no duration")
        moment = None if begin is None else later(begin, length)
        due = None if moment is None else instant(moment)
    if due is not None:
        time = due.seconds * 1000 + int(f"{due.fraction}000"[:3]) + bool(due.fraction[3:])
        if ALWAYS < time < FOREVER:
            return time
    raise ValueError(f"`{value}` is beyond the times of a run")
