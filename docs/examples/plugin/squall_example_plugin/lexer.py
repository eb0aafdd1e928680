"""Arrows: text to a tree that prints as text. ``parent(X, Y), parent(Y, Z) => grandparent(X, Z)``"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from squall.errors import LexerError, Origin, raise_all

_TOKEN = re.compile(r"(?P<arrow>=>)|(?P<word>[^\W_]\w*)|(?P<mark>[(),])|(?P<other>\S)")


@dataclass(frozen=True)
class Word:
    """A name; a variable if it begins with a capital."""

    text: str
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Atom:
    """``name(arguments)`` with one argument or two."""

    name: Word
    arguments: tuple[Word, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Rule:
    """``body => head``."""

    body: tuple[Atom, ...]
    head: tuple[Atom, ...]
    origin: Origin = field(compare=False, repr=False)

    def __str__(self) -> str:
        sides = (", ".join(map(str, atoms)) for atoms in (self.body, self.head))
        return " => ".join(sides).strip()


@dataclass(frozen=True)
class Program:
    """The rules of a text, in its order."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return "".join(f"{rule}\n" for rule in self.rules)


class _Arrows:
    """The lexer. Comments go from ``%`` to the end of the line."""

    def __call__(self, text: str, name: str) -> Program:
        """Returns the tree of a text. Raises LexerError, or Errors if several lines are wrong."""
        rules: list[Rule] = []
        errors: list[LexerError] = []
        for number, line in enumerate(text.splitlines(), 1):
            code = line.partition("%")[0]
            if code.strip():
                try:
                    rules.append(_Line(code, Origin(name, text, number, 1, len(code.rstrip()))).rule())
                except LexerError as error:
                    errors.append(error)
        raise_all(errors)
        return Program(tuple(rules))


class _Line:
    """One line, read word by word."""

    def __init__(self, line: str, origin: Origin) -> None:
        self.origin = origin
        self.tokens = list(_TOKEN.finditer(line))
        self.place = 0

    def rule(self) -> Rule:
        body = () if self._next() == "=>" else tuple(self._atoms())
        self._expect("=>")
        head = tuple(self._atoms())
        if self._next():
            raise self._error("the rule should end here")
        return Rule(body, head, self.origin)

    def _atoms(self) -> Iterator[Atom]:
        yield self._atom()
        while self._next() == ",":
            self._expect(",")
            yield self._atom()

    def _atom(self) -> Atom:
        name = self._word()
        self._expect("(")
        arguments = [self._word()]
        if self._next() == ",":
            self._expect(",")
            arguments.append(self._word())
        self._expect(")")
        return Atom(name, tuple(arguments))

    def _word(self) -> Word:
        if self.place == len(self.tokens) or self.tokens[self.place].lastgroup != "word":
            raise self._error("a name should stand here")
        text = self._next()
        origin = self._here()
        self.place += 1
        return Word(text, origin)

    def _expect(self, text: str) -> None:
        if self._next() != text:
            raise self._error(f"`{text}` should stand here")
        self.place += 1

    def _next(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def _here(self) -> Origin:
        """Returns the place of the next token, or the end of the line."""
        column = self.tokens[self.place].start() if self.place < len(self.tokens) else self.origin.length
        return Origin(self.origin.name, self.origin.text, self.origin.line, column + 1, max(1, len(self._next())))

    def _error(self, message: str) -> LexerError:
        return LexerError(message, self._here(), "a rule is `likes(X, Y), child(Y) => friend(Y, X)`")


lexer = _Arrows()
