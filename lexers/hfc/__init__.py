"""The lexer of HFC's rules and queries over tuples: parses text to a tree that prints as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from squall.errors import raise_all
from squall.lexers.hfc.tree import Program
from squall.lexers.text import Text


@dataclass(frozen=True)
class HfcLexer:
    """The lexer of HFC."""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> Program:
        """Parses a program, which may use the prefixes from outside.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        from squall.lexers.hfc.building import build
        from squall.lexers.hfc.reading import read

        source = Text(text.removeprefix("\ufeff"), name)
        parsed = read(source)
        program = None if parsed is None else build(parsed, source, prefixes or {})
        raise_all(source.errors, partial=program)
        assert program is not None
        return program

    @staticmethod
    def written(program: Program) -> str:
        """Returns the text of a tree, without prefixes."""
        return str(program)


lexer = HfcLexer()
