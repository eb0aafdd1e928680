"""The Jena rule language: text to a tree that prints as text.

Source: Jena's page on inference, "Rule syntax", and, where it is silent or wrong, the parser in ``rulesys/Rule.java``.
docs/languages/jena.md describes the language as it is read here.
"""

from __future__ import annotations

from dataclasses import dataclass

from squall.errors import raise_all
from squall.lexers.jena.tree import PREFIXES, Call, Clause, Functor, Instead, Node, Pattern, Program, Rule, renamed

__all__ = [
    "PREFIXES",
    "Call",
    "Clause",
    "Functor",
    "Instead",
    "JenaLexer",
    "Node",
    "Pattern",
    "Program",
    "Rule",
    "lexer",
    "renamed",
]


@dataclass(frozen=True)
class JenaLexer:
    """The lexer of the Jena rule language."""

    def __call__(self, text: str, name: str) -> Program:
        """The tree of a program, and of what it includes: files relative to that of the text, which is its `name`.

        Raises LexerError, or Errors with all that are found.
        """
        from squall.lexers.jena.including import Including

        included = Including(text, name)
        program = Program(tuple(included.rules), name, tuple(included.instead))
        raise_all(included.errors, partial=program)
        return program

    @staticmethod
    def written(program: Program) -> str:
        """The text of a tree: that of what it includes as well, and without prefixes."""
        return str(program)


lexer = JenaLexer()
