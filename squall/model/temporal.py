"""Windows over what patterns match, facts that rules derive among them, and facts that hold at a time of their own.

Each of these maps the validity of the solutions of a system to other intervals: docs/semantics.md, "Windows in
bodies". Sources: the window operators of LARS (Beck, Dao-Tran and Eiter, LARS: A Logic-Based Framework for
Analytic Reasoning over Streams, Artificial Intelligence 261, 2018), and the metric operators of DatalogMTL (Brandt et
al., JAIR 62, 2018), of which `Dilate` is the diamond and `Erode` the box over [0, length].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.model.patterns import Variable

if TYPE_CHECKING:
    from squall.model.systems import System


@dataclass(frozen=True)
class Temporal:
    """The solutions of a system, as a set, over other intervals than those over which they hold (a JoinableComponent).

    Attributes:
        system: The system.
        origin: The place in the program's text.
    """

    system: System
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Dilate(Temporal):
    """The solutions that have held at some instant of the last `length` ms (diamond).

    Attributes:
        length: Integer ms, 0 or more. The instant `length` ms ago counts.
        step: 0, or the distance (integer ms) of the instants at which the window moves. In between it stays as it is.
    """

    length: int
    step: int = 0


@dataclass(frozen=True)
class Erode(Temporal):
    """The solutions that have held at all instants of the last `length` ms (box).

    The attributes are those of `Dilate`.
    """

    length: int
    step: int = 0


@dataclass(frozen=True)
class At(Temporal):
    """The solutions that have held at some instant of the last `length` ms, with each such instant.

    Attributes:
        variable: The variable of the instant: an xsd:integer in units of `tick`.
        length: As in `Dilate`. An instant counts until the tick that begins `length` ms after it has passed.
        tick: The unit of time (integer ms). Instants are multiples of it.
        step: As in `Dilate`.
    """

    variable: Variable
    length: int
    tick: int = 1
    step: int = 0


@dataclass(frozen=True)
class Schedule(Temporal):
    """The solutions of a system at the time that one of their variables holds, if they have held by then.

    Attributes:
        time: The variable: an xsd:integer in units of `tick`. A solution with another value is left out.
        tick: The unit of time, and how long a solution holds then (integer ms).
    """

    time: Variable
    tick: int = 1
