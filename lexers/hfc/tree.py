"""The tree of rules and queries of HFC. It prints as text of the language, with IRIs in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from squall.errors import Origin
from squall.model import Slot, Variable


def _lines(title: str, lines: Sequence[object]) -> str:
    return "".join((f"{title}\n" if lines else "", *(f"{line}\n" for line in lines)))


@dataclass(frozen=True)
class Tuple:
    """Terms on a line: a triple, or a triple with further arguments such as the times of its validity."""

    terms: tuple[Slot, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


@dataclass(frozen=True)
class Comparison:
    """Whether two terms are the same term (``==``), or not (``!=``)."""

    left: Slot
    right: Slot
    is_equal: bool
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.left} {'==' if self.is_equal else '!='} {self.right}"


@dataclass(frozen=True)
class Call:
    """A call of a function, by its name or by its IRI (in brackets)."""

    function: str
    arguments: tuple[Slot, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " ".join((self.function, *map(str, self.arguments)))


Test = Comparison | Call


@dataclass(frozen=True)
class Action:
    """A variable, and the call whose value it has."""

    variable: Variable
    call: Call
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.variable} = {self.call}"


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        name: Its name, without the dollar sign; ``""``: it has none.
    """

    name: str
    body: tuple[Tuple, ...]
    head: tuple[Tuple, ...]
    tests: tuple[Test, ...] = ()
    actions: tuple[Action, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        sections = _lines("@test", self.tests), _lines("@action", self.actions)
        return "".join((_name(self.name), _lines("", self.body).lstrip("\n"), _lines("->", self.head), *sections))


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        name: Its name, without the dollar sign; ``""``: it has none.
    """

    name: str
    variables: tuple[Variable, ...]
    distinct: bool
    body: tuple[Tuple, ...]
    tests: tuple[Test, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        selected = " ".join(("SELECT", *(("DISTINCT",) if self.distinct else ()), *map(str, self.variables)))
        return f"{_name(self.name)}{selected}\n{_lines('WHERE', self.body)}{_lines('FILTER', self.tests)}"


def _name(name: str) -> str:
    return f"${name}\n" if name else ""


@dataclass(frozen=True)
class Program:
    """A program: its rules and queries, in the order of the text. Its name, the path of its text, does not compare."""

    items: tuple[Rule | Query, ...]
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))
