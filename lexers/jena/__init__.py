"""The lexer of the Jena rule language: parses text to a tree that prints as text.

Sources: Jena's page on inference, "Rule syntax", and the parser in ``rulesys/Rule.java`` where the page is silent or
wrong. docs/languages/jena.md describes the language as it is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from squall.errors import raise_all
from squall.lexers.jena.tree import (
    PREFIXES,
    Call,
    Clause,
    Functor,
    Node,
    Pattern,
    PatternWindow,
    Program,
    Rule,
    RuleSetSubstitution,
    StreamSource,
    rename_variables,
)

__all__ = [
    "PREFIXES",
    "Call",
    "Clause",
    "Functor",
    "JenaLexer",
    "Node",
    "Pattern",
    "PatternWindow",
    "Program",
    "Rule",
    "RuleSetSubstitution",
    "StreamSource",
    "lexer",
    "rename_variables",
]


@dataclass(frozen=True)
class JenaLexer:
    """The lexer of the Jena rule language."""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> Program:
        """Parses a program and the files that it includes, which are relative to `name`, the path of the text. They
        may use the prefixes from outside.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        from squall.lexers.jena.including import Includes

        included = Includes(text, name, prefixes or {})
        program = Program(tuple(included.rules), name, tuple(included.substitutions))
        raise_all(included.errors, partial=program)
        return program

    @staticmethod
    def written(program: Program) -> str:
        """Returns the text of a tree. It has the included rules as well, and no prefixes."""
        return str(program)


lexer = JenaLexer()
