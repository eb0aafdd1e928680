"""Windows (stream to relation, S2R): at which instants an event's facts are valid (docs/semantics.md, section 2).

A window is data, of a kind that is a subclass of `Window`. All other modules ask its attributes and methods, and not of
which kind it is; so a further kind is a class here. (The oracle has a definition of its own, and a kind whose content
depends on later facts needs an operator, as `CountWindow` has.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal

from squall.errors import UsageError
from squall.rdf import FOREVER, Fact, Term, Triple


class Window:
    """A window. Most give the validity of a fact from the time of its event alone.

    Attributes:
        expires: Whether facts come to an end by themselves.
        is_empty: Whether it never holds a fact.
        depends_on_later_facts: Whether what comes after a fact decides when it is valid. Such a window has no
            `validity`.
        is_retractable: Whether facts are read before it is known when they end, and are retracted then.
        counts_triples: Whether the end of a fact depends on how many triples come after it.
        has_sessions: Whether the content changes when nothing has come for some time.
        is_momentary: Whether it holds what arrives at an instant, at that instant only.
        is_static: Whether it holds the static data of a stream only.
    """

    expires: ClassVar[bool] = True
    is_empty: ClassVar[bool] = False
    depends_on_later_facts: ClassVar[bool] = False
    is_retractable: ClassVar[bool] = False
    counts_triples: ClassVar[bool] = False
    has_sessions: ClassVar[bool] = False
    is_momentary: ClassVar[bool] = False
    is_static: ClassVar[bool] = False

    @property
    def begins_with_event(self) -> bool:
        """Whether facts are valid from their event on, and not only later."""
        return False

    @property
    def offset(self) -> int | None:
        """By how much later than its event a fact begins to be valid (integer ms); None if that is not always the
        same."""
        return None

    @property
    def longest_age(self) -> int | None:
        """How old an event is at most while its facts are valid (integer ms); None if that has no bound, or if the
        window delays its facts or holds them until its next step."""
        return None

    @property
    def is_stepped(self) -> bool:
        """Whether the content changes by steps."""
        return False

    @property
    def leaves_gaps(self) -> bool:
        """Whether what comes between two steps is never seen."""
        return False

    @property
    def begins_at_first_triple(self) -> bool:
        """Whether the grid of its steps begins at the first triple of its stream."""
        return False

    @property
    def is_sequential(self) -> bool:
        """Whether what it holds depends on all that its stream brings, and on its order."""
        return self.depends_on_later_facts or self.begins_at_first_triple

    @property
    def mixes_subjects(self) -> bool:
        """Whether what it holds of a subject depends on facts of other subjects."""
        return self.is_sequential

    @property
    def has_sequential_instants(self) -> bool:
        """Whether the instants at which the content changes depend on all that its stream brings."""
        return self.begins_at_first_triple

    def validity(self, time: int) -> tuple[int, int]:
        """Returns over which interval a fact is valid, by the time of its event (integer ms)."""
        raise NotImplementedError

    def validities(self, times: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Returns since when, and until when, facts are valid, by the times of their events (integer ms), some at
        least."""
        starts, ends = zip(*map(self.validity, times), strict=True)
        return starts, ends

    def begun_at(self, first_time: int) -> Window:
        """Returns the window of a stream whose first triple came at a time (integer ms)."""
        return self

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        """Returns the instants (integer ms) at which the content may change because of an event.

        Args:
            time: The time of the event.
            fact_count: The number of its facts.
            position: What a window with sequential instants has to know of the stream before the event: how many
                triples came, or when the first one came. None: nothing has come.

        Returns:
            The instants, in order, and the position behind the event.
        """
        return self.validity(time), None

    def without_steps(self) -> Window:
        """Returns the window that changes with each event and at each end, if the steps are those of time."""
        return self

    def while_open(self) -> Window:
        """Returns the window as it is read before it closes."""
        return self

    def delayed_by(self, delay: int) -> Window:
        """Returns the window of what its stream brought some time ago (integer ms)."""
        raise NotImplementedError

    def as_in_csparql(self) -> Window:
        """Returns the window as the engine of C-SPARQL reads it: its grid begins at the first triple, and a number of
        triples is tumbling."""
        return self


@dataclass(frozen=True)
class Landmark(Window):
    """A landmark window, the default: a fact is valid at [t, infinity) from its event on."""

    expires: ClassVar[bool] = False

    @property
    def begins_with_event(self) -> bool:
        return True

    @property
    def offset(self) -> int:
        return 0

    def validity(self, time: int) -> tuple[int, int]:
        return time, FOREVER

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        return (time,), None

    def __str__(self) -> str:
        return "LANDMARK"


@dataclass(frozen=True)
class SlidingWindow(Window):
    """A sliding window: a fact is valid at [t, t + size), or later by `delay`. Both are integer ms."""

    size: int
    delay: int = 0

    @property
    def begins_with_event(self) -> bool:
        return not self.delay

    @property
    def offset(self) -> int:
        return self.delay

    @property
    def longest_age(self) -> int | None:
        return None if self.delay else self.size - 1

    def validity(self, time: int) -> tuple[int, int]:
        start = time + self.delay
        return start, start + self.size

    def validities(self, times: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        starts = [time + self.delay for time in times] if self.delay else times
        return starts, [start + self.size for start in starts]

    def delayed_by(self, delay: int) -> SlidingWindow:
        return SlidingWindow(self.size, self.delay + delay)

    def __str__(self) -> str:
        return f"RANGE {duration(self.size)}{_delayed(self.delay)}"


@dataclass(frozen=True)
class ElementWindow(Window):
    """What arrives at an instant, at that instant: a fact is valid at [t, t + 1), or later by `delay` (integer ms).

    A snapshot (rstream) is evaluated at the times of events only, and not when the window is empty again.
    """

    is_momentary: ClassVar[bool] = True
    delay: int = 0

    @property
    def begins_with_event(self) -> bool:
        return not self.delay

    @property
    def offset(self) -> int:
        return self.delay

    def validity(self, time: int) -> tuple[int, int]:
        return time + self.delay, time + self.delay + 1

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        return (time + self.delay,), None

    def delayed_by(self, delay: int) -> ElementWindow:
        return ElementWindow(self.delay + delay)

    def __str__(self) -> str:
        return f"ELEMENT{_delayed(self.delay)}"


@dataclass(frozen=True)
class FirstTriple:
    """The origin of a grid that begins at the time of the stream's first triple, rounded down to a multiple of `unit`
    (integer ms)."""

    unit: int = 1000


@dataclass(frozen=True)
class HoppingWindow(Window):
    """A hopping (stepped) window: its content changes only at the instants T = origin + k * step. All times are integer
    ms.

    The content at T is what came in [T - size, T). So a fact is valid from the first such instant after its event until
    the first one after t + size: this is a sliding window whose two ends are rounded up to the grid.

    Attributes:
        origin: An instant of the grid, or `FirstTriple`.
        closed: The content at T is what came in (T - size, T] instead.
        delay: All validity is later by this much.
    """

    size: int
    step: int
    origin: int | FirstTriple = 0
    closed: bool = False
    delay: int = 0

    @property
    def is_stepped(self) -> bool:
        return True

    @property
    def leaves_gaps(self) -> bool:
        return self.step > self.size

    @property
    def begins_at_first_triple(self) -> bool:
        return isinstance(self.origin, FirstTriple)

    def validity(self, time: int) -> tuple[int, int]:
        """Returns over which interval a fact is valid, by the time of its event. The origin has to be an instant."""
        return self.after(time + self.delay), self.after(time + self.delay + self.size)

    def after(self, time: int) -> int:
        """Returns the first instant of the grid after a time (at or after it, if `closed`)."""
        assert not isinstance(self.origin, FirstTriple), f"the grid of {self} has no origin yet"
        past = time - self.origin - (1 if self.closed else 0)
        return self.origin + (past // self.step + 1) * self.step

    def begun_at(self, first_time: int) -> HoppingWindow:
        """Returns the window of a stream whose first triple came at a time (integer ms). Its origin is an instant."""
        if not isinstance(self.origin, FirstTriple):
            return self
        return replace(self, origin=first_time // self.origin.unit * self.origin.unit)

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        if not self.begins_at_first_triple:
            return self.grid_instants(time), None
        if position is None and not fact_count:
            return (), None
        first_time = time if position is None else position
        return self.begun_at(first_time).grid_instants(time), first_time

    def grid_instants(self, time: int) -> Sequence[int]:
        """Returns the same where the origin is an instant: while a fact is valid, each step may bring others."""
        first, last = self.validity(time)
        return range(first, last + 1, self.step)

    def without_steps(self) -> Window:
        return SlidingWindow(self.size, self.delay)

    def while_open(self) -> Window:
        return OpenHoppingWindow(**{field.name: getattr(self, field.name) for field in fields(self)})

    def as_in_csparql(self) -> Window:
        return self if self.origin else replace(self, origin=FirstTriple())

    def __str__(self) -> str:
        moves = "TUMBLING" if self.size == self.step else f"STEP {duration(self.step)}"
        return f"RANGE {duration(self.size)} {moves}{origin_text(self.origin, duration)}{_delayed(self.delay)}"


@dataclass(frozen=True)
class OpenHoppingWindow(HoppingWindow):
    """A hopping window that is read before it closes: its content at T is what the oldest open window has so far.

    By RSP-QL's report policy *content change* that is what is reported at each arrival. A window that ends at the
    instant E of the grid is open over [E - size, E), and holds what came since E - size. (If `closed`, it is open over
    (E - size, E].) So a fact is valid from its event until the last window that was opened before it closes.
    """

    def validity(self, time: int) -> tuple[int, int]:
        """Returns over which interval a fact is valid, by the time of its event. The origin has to be an instant."""
        opened = self.after(time) - self.step
        start = time + self.delay
        return start, max(start, opened + self.size + self.delay + self.closed)

    def grid_instants(self, time: int) -> Sequence[int]:
        return self.validity(time)

    def __str__(self) -> str:
        return f"{super().__str__()} ON CHANGE"


@dataclass(frozen=True)
class CountWindow(Window):
    """The last `size` triples of the stream, in the order of arrival.

    Attributes:
        size: The number of triples.
        step: The content changes whenever this many further triples have arrived, and is then the last `size` triples.
            With a step of `size` the window is tumbling: it has `size` triples at a time, from when they are complete
            until the next ones are.
    """

    depends_on_later_facts: ClassVar[bool] = True
    is_retractable: ClassVar[bool] = True
    counts_triples: ClassVar[bool] = True
    size: int
    step: int = 1

    @property
    def is_stepped(self) -> bool:
        return self.step > 1

    @property
    def leaves_gaps(self) -> bool:
        return self.step > self.size

    @property
    def has_sequential_instants(self) -> bool:
        return self.is_stepped

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        if not self.is_stepped:
            return (time,), None
        before = position or 0
        after = before + fact_count
        return (time,) if after // self.step > before // self.step else (), after

    def latest_end(self, time: int) -> int:
        """Returns until when a fact is valid at most, by the time of its event (integer ms)."""
        return FOREVER

    def as_in_csparql(self) -> Window:
        return self if self.is_stepped else CountWindow(self.size, self.size)

    def __str__(self) -> str:
        moves = "" if self.step == 1 else " TUMBLING" if self.size == self.step else f" STEP {self.step}"
        return f"TRIPLES {self.size}{moves}"


@dataclass(frozen=True)
class BoundedCountWindow(CountWindow):
    """A sliding window that is bounded by number, too: of what came in the last `length` ms, the last `size` triples.

    So a fact is valid at [t, t + length), but no longer than until the `size`-th later triple of the stream comes. What
    the number drops earlier than its time is counted (`squall.builders.runtime.operators.count_window`).
    """

    length: int = field(kw_only=True)

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        return (time, time + self.length), None

    def latest_end(self, time: int) -> int:
        return time + self.length

    def as_in_csparql(self) -> Window:
        return self

    def __str__(self) -> str:
        return f"RANGE {duration(self.length)} TRIPLES {self.size}"


SessionKey = Literal["", "SUBJECT", "OBJECT"]
_NO_TERM = Term("")
SESSION_KEYS: Sequence[SessionKey] = ("SUBJECT", "OBJECT")


@dataclass(frozen=True)
class SessionWindow(Window):
    """A session window: its content at T is the sessions that close at T. All times are integer ms.

    Facts of a stream belong to one session while each comes less than `gap` after the one before. The session lasts
    from its first arrival until `gap` after the last one, [first, last + gap), and closes then. Its facts are valid at
    this instant, [last + gap, last + gap + 1). (Akidau et al., "The dataflow model", VLDB 2015, section 2.2.)

    Attributes:
        gap: The time without an arrival that closes a session.
        key: The slot of a fact by whose terms there are sessions of their own (`session_key`). ``""``: all facts of the
            stream have the same sessions.
    """

    depends_on_later_facts: ClassVar[bool] = True
    has_sessions: ClassVar[bool] = True
    gap: int
    key: SessionKey = ""

    @property
    def is_stepped(self) -> bool:
        return True

    @property
    def has_sequential_instants(self) -> bool:
        return True

    @property
    def mixes_subjects(self) -> bool:
        return self.key != "SUBJECT"

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        """Returns no instants: which one an event leads to is known when its session closes."""
        return (), None

    def session_key(self, fact: Fact) -> Term:
        """Returns the term by which a fact has its session: of an atom its first or last argument. Without a key it is
        empty."""
        if not self.key:
            return _NO_TERM
        terms = fact if isinstance(fact, Triple) else fact.arguments or (fact.relation,)
        return terms[0 if self.key == "SUBJECT" else -1]

    def close_time(self, last: int) -> int:
        """Returns when a session closes whose last fact came at a time (integer ms)."""
        return last + self.gap

    def without_steps(self) -> Window:
        return self.while_open()

    def while_open(self) -> Window:
        return OpenSessionWindow(self.gap, self.key)

    def __str__(self) -> str:
        return f"SESSION {duration(self.gap)}{f' BY {self.key}' if self.key else ''}"


@dataclass(frozen=True)
class OpenSessionWindow(SessionWindow):
    """A session window that is read while its sessions are open: a fact is valid from its event until its session
    closes, [t, last + gap)."""

    is_retractable: ClassVar[bool] = True

    @property
    def is_stepped(self) -> bool:
        return False

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        """Returns the time of the event. When its session closes is known then."""
        return (time,), None

    def __str__(self) -> str:
        return f"{super().__str__()} ON CHANGE"


class _NothingArrives(Window):
    """A window that never holds what its stream brings."""

    expires: ClassVar[bool] = False

    @property
    def begins_with_event(self) -> bool:
        return True

    def validity(self, time: int) -> tuple[int, int]:
        return time, time

    def change_instants(
        self, time: int, fact_count: int = 0, position: int | None = None
    ) -> tuple[Sequence[int], int | None]:
        return (), None


@dataclass(frozen=True)
class EmptyWindow(_NothingArrives):
    """The empty window of any stream.

    Through it the default graph has only what rules derive and static data that belong to no stream: the background of
    a query that names its streams.
    """

    is_empty: ClassVar[bool] = True

    def delayed_by(self, delay: int) -> EmptyWindow:
        return self

    def __str__(self) -> str:
        return "NOTHING"


@dataclass(frozen=True)
class StaticWindow(_NothingArrives):
    """The static data of a stream, without what arrives. Plans read steps of patterns over time through it."""

    is_static: ClassVar[bool] = True

    def __str__(self) -> str:
        return "STATIC"


LANDMARK = Landmark()
EMPTY = EmptyWindow()


MAX_DIGITS = 18
"""The number of digits that an amount of time, or a count, may have, so that it fits into 64 bits."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = r"(\d+)\s*(ms|s|m|h|d)"
_TIMED = re.compile(
    rf"\[?\s*RANGE\s+{_DURATION}(?:\s+(?:STEP\s+{_DURATION}|(TUMBLING))"
    rf"(?:\s+ORIGIN\s+(?:{_DURATION}|(FIRST)))?)?(?:\s+DELAY\s+{_DURATION})?\s*\]?",
    re.IGNORECASE,
)
_ELEMENT = re.compile(rf"\[?\s*ELEMENT(?:\s+DELAY\s+{_DURATION})?\s*\]?", re.IGNORECASE)
_SESSION = re.compile(
    rf"\[?\s*SESSION\s+{_DURATION}(?:\s+BY\s+({'|'.join(SESSION_KEYS)}))?(\s+ON\s+CHANGE)?\s*\]?", re.IGNORECASE
)
_BOUNDED = re.compile(rf"\[?\s*RANGE\s+{_DURATION}\s+TRIPLES\s+(\d+)\s*\]?", re.IGNORECASE)
_COUNT = re.compile(r"\[?\s*TRIPLES\s+(\d+)(?:\s+(?:STEP\s+(\d+)|(TUMBLING)))?\s*\]?", re.IGNORECASE)


def origin_text(origin: int | FirstTriple, length: Callable[[int], str]) -> str:
    """Returns the clause of a window that says where its grid begins; ``""`` for the default.

    Args:
        origin: An instant of the grid (integer ms), or `FirstTriple`.
        length: Formats integer ms as a duration.
    """
    if isinstance(origin, FirstTriple):
        return " ORIGIN FIRST"
    return f" ORIGIN {length(origin)}" if origin else ""


def _delayed(delay: int) -> str:
    return f" DELAY {duration(delay)}" if delay else ""


def duration(milliseconds: int) -> str:
    """Formats a length of time in the largest unit that is exact: ``10s``, ``1500ms``."""
    for unit, size in reversed(_UNITS.items()):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def milliseconds(text: str) -> int:
    """Parses a length of time such as ``10s`` or ``500 ms`` into integer ms (units: ms s m h d). Raises UsageError."""
    match = re.fullmatch(_DURATION, text.strip(), re.IGNORECASE)
    if not match:
        raise UsageError(f"`{text}` is not a length of time", hint="write a number and a unit: 500ms, 10s, 5m, 1h, 1d")
    return _length(*match.groups())


def parse_window(text: str) -> Window:
    """Parses a window.

    The forms are ``RANGE 10s``, ``RANGE 10s STEP 5s``, ``RANGE 1m TUMBLING``, ``TRIPLES 100``, ``TRIPLES 9 STEP 3``,
    ``TRIPLES 9 TUMBLING`` and ``LANDMARK``, in any letter case, with or without brackets. A ``RANGE`` window may have a
    delay: ``RANGE 10s DELAY 1h``. The grid of its steps may have an origin: ``RANGE 10s STEP 5s ORIGIN 2s`` has the
    instants 2 s, 7 s, ..., and ``RANGE 10s STEP 5s ORIGIN FIRST`` counts the steps from the second of the stream's
    first triple. ``ELEMENT`` has what arrives at an instant, and may have a delay as well. ``RANGE 10m TRIPLES 9`` has
    the last 9 triples of the last 10 minutes. ``SESSION 30m`` has the sessions that close, ``SESSION 30m BY SUBJECT``
    those of each subject, or ``BY OBJECT`` of each object, and ``ON CHANGE`` behind it those that are open. Units: ms s
    m h d.

    Raises:
        UsageError: The text is not a window.
    """
    stripped = text.strip()
    if stripped.upper() in ("", "LANDMARK"):
        return LANDMARK
    if match := _COUNT.fullmatch(stripped):
        size = _positive(_integer(match[1]), text)
        return CountWindow(size, size if match[3] else _positive(_integer(match[2] or "1"), text))
    if match := _BOUNDED.fullmatch(stripped):
        length = _positive(_length(match[1], match[2]), text)
        return BoundedCountWindow(_positive(_integer(match[3]), text), length=length)
    if match := _SESSION.fullmatch(stripped):
        gap, key = _positive(_length(match[1], match[2]), text), session_key(match[3])
        return (OpenSessionWindow if match[4] else SessionWindow)(gap, key)
    if match := _ELEMENT.fullmatch(stripped):
        return ElementWindow(_length(match[1], match[2]) if match[1] else 0)
    if match := _TIMED.fullmatch(stripped):
        return _timed_window(match, text)
    raise UsageError(
        f"`{text}` is not a window",
        hint="windows: RANGE 10s, RANGE 10s STEP 5s, RANGE 10s TUMBLING, RANGE 10s STEP 5s ORIGIN 2s, "
        "RANGE 10s DELAY 1h, RANGE 10s TRIPLES 100, ELEMENT, TRIPLES 100, TRIPLES 9 STEP 3, SESSION 30m, "
        "SESSION 30m BY SUBJECT, SESSION 30m ON CHANGE, LANDMARK",
    )


def _timed_window(match: re.Match[str], text: str) -> Window:
    size = _positive(_length(match[1], match[2]), text)
    delay = _length(match[9], match[10]) if match[9] else 0
    if not (match[3] or match[5]):
        return SlidingWindow(size, delay)
    step = size if match[5] else _positive(_length(match[3], match[4]), text)
    origin = FirstTriple() if match[8] else _length(match[6], match[7]) if match[6] else 0
    return HoppingWindow(size, step, origin, delay=delay)


def session_key(word: str | None) -> SessionKey:
    """Returns the key of sessions that a word behind ``BY`` names, in any letter case; None: no key."""
    return next((key for key in SESSION_KEYS if word is not None and key == word.upper()), "")


def as_window(window: str | Window) -> Window:
    """Returns a window, or parses its text (`parse_window`). Raises UsageError."""
    return parse_window(window) if isinstance(window, str) else window


def _length(number: str, unit: str) -> int:
    length = _integer(number) * _UNITS[unit.lower()]
    if length >= 10**MAX_DIGITS:
        raise UsageError(f"the length of time `{number}{unit}` is too large")
    return length


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise UsageError(f"the number `{digits[:MAX_DIGITS]}...` is too large", hint=f"up to {MAX_DIGITS} digits")
    return int(digits)


def _positive(number: int, text: str) -> int:
    if number <= 0:
        raise UsageError(f"the window `{text}` is empty", hint="its size, step and gap have to be more than 0")
    return number
