"""The syntax tree of a LARS program, which prints as text of the language. Prefixes are resolved.

Sources: Beck, Eiter and Folie, Ticker: A System for Incremental ASP-based Stream Reasoning, TPLP 17, 2017, for the
syntax; Beck, Dao-Tran and Eiter, LARS, Artificial Intelligence 261, 2018, for its meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from squall.errors import Origin
from squall.model import Variable
from squall.rdf import XSD, Term, is_literal, parts

Mode = Literal["in", "always", "at"]
"""How a window looks at an atom: whether it holds somewhere in it, everywhere in it, or when."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
ANONYMOUS = "_"
"""The name of the variables that are all different."""


@dataclass(frozen=True)
class Length:
    """A length of time: a number of units.

    Attributes:
        number: The number.
        unit: The unit: ``ms``, ``s``, ``m`` or ``h``; ``""`` for ticks of the program.
    """

    number: int
    unit: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.number} {self.unit}".rstrip()


@dataclass(frozen=True)
class Window:
    """A window behind an atom.

    Attributes:
        length: How far it reaches back. None: it is a window of tuples.
        tuples: The number of its tuples, or None.
        step: The distance of the instants at which it moves, or None.
        mode: How it looks at the atom.
        variable: The variable of the time, if the mode is ``at``.
    """

    length: Length | None
    tuples: int | None = None
    step: Length | None = None
    mode: Mode = "in"
    variable: Variable | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        words = {"in": "in", "always": "always in", "at": f"at {self.variable and self.variable.name} in"}
        size = f"# {self.tuples}" if self.tuples is not None else str(self.length)
        return f"{words[self.mode]} [{size}{f' step {self.step}' if self.step else ''}]"


@dataclass(frozen=True)
class Operation:
    """A sum, difference, product or quotient."""

    sign: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        right = f"({self.right})" if isinstance(self.right, Operation) else _text(self.right)
        low = self.sign in "*/" and isinstance(self.left, Operation) and self.left.sign in "+-"
        return f"({self.left}) {self.sign} {right}" if low else f"{_text(self.left)} {self.sign} {right}"


Value = Variable | Term
Expression = Variable | Term | Operation


@dataclass(frozen=True)
class Atom:
    """An atom, ``relation(arguments)``."""

    relation: Term
    arguments: tuple[Value, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(_text, self.arguments))})" if self.arguments else self.relation


@dataclass(frozen=True)
class Comparison:
    """A comparison of two expressions. ``=`` gives a variable that has no value yet the other value."""

    sign: str
    left: Expression
    right: Expression
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_text(self.left)} {self.sign} {_text(self.right)}"


@dataclass(frozen=True)
class Condition:
    """A condition of a body: an atom or a conjunction, perhaps through a window, perhaps negated; or a comparison.

    Attributes:
        parts: The atoms and comparisons.
        window: The window, or None for now.
        negated: Whether it has to be false.
        grouped: Whether the parts are in parentheses.
    """

    parts: tuple[Atom | Comparison, ...]
    window: Window | None = None
    negated: bool = False
    grouped: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        parts = ", ".join(map(str, self.parts))
        text = f"({parts})" if self.grouped else parts
        return f"{'not ' if self.negated else ''}{text}{f' {self.window}' if self.window else ''}"


@dataclass(frozen=True)
class Rule:
    """A rule, or a fact if it has no body.

    Attributes:
        head: What it derives.
        time: The time at which the head holds, in ticks. None: whenever the body holds.
        body: The conditions.
    """

    head: Atom
    time: Expression | None = None
    body: tuple[Condition, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        time = "" if self.time is None else f" at {_text(self.time)}"
        body = f" :- {', '.join(map(str, self.body))}" if self.body else ""
        return f"{self.head}{time}{body}."


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        rules: Its rules, in order.
        tick: The unit of time, or None for 1 ms.
        name: The name of the text.
    """

    rules: tuple[Rule, ...]
    tick: Length | None = None
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        tick = "" if self.tick is None else f"@tick {self.tick}.\n"
        return tick + "".join(f"{rule}\n" for rule in self.rules)


def _text(expression: Expression) -> str:
    if isinstance(expression, Variable):
        return ANONYMOUS if expression.name.startswith(ANONYMOUS + " ") else expression.name
    if isinstance(expression, str) and is_literal(expression):
        lexical, datatype, _ = parts(expression)
        if _NUMBER.fullmatch(lexical) and datatype == XSD + ("decimal" if "." in lexical else "integer"):
            return lexical
    return str(expression)
