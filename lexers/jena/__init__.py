"""The Jena rule language: text to a tree that prints as text.

Source: Jena's page on inference, "Rule syntax", and, where it is silent or wrong, the parser in ``rulesys/Rule.java``.
docs/languages/jena.md describes the language as it is read here.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from squall.errors import LexerError, Origin, raise_all
from squall.lexers.jena.tree import PREFIXES, Call, Clause, Functor, Node, Pattern, Program, Rule

__all__ = ["PREFIXES", "Call", "Clause", "Functor", "JenaLexer", "Node", "Pattern", "Program", "Rule", "lexer"]


@dataclass(frozen=True)
class JenaLexer:
    """The lexer of the Jena rule language."""

    extensions: tuple[str, ...] = (".jena", ".rules", ".rule")

    def __call__(self, text: str, name: str) -> Program:
        """The tree of a program. Raises LexerError, or Errors with all that are found."""
        from squall.lexers.jena.reading import Reader
        from squall.lexers.jena.text import Text

        source = Text(text.removeprefix("\ufeff"), name)
        rules = tuple(Reader(source).rules())
        raise_all(source.errors, partial=Program(_sound(rules, source.errors), name))
        return Program(rules, name)


def _sound(rules: Sequence[Rule], errors: Sequence[LexerError]) -> tuple[Rule, ...]:
    """The rules in which no error lies: each reaches as far as the next one."""
    wrong = sorted(_position(error.origin) for error in errors)
    starts = [*(_position(rule.origin) for rule in rules), (sys.maxsize, 0)]
    before = [bisect_left(wrong, start) for start in starts]
    return tuple(rule for rule, first, last in zip(rules, before, before[1:], strict=False) if first == last)


def _position(origin: Origin | None) -> tuple[int, int]:
    return (origin.line, origin.column) if origin else (0, 0)


lexer = JenaLexer()
