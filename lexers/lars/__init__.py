"""The lexer of LARS programs: parses Ticker's syntax to a tree that prints as text (docs/languages/lars.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from squall.errors import raise_all
from squall.lexers.lars.tree import Program
from squall.lexers.text import Text

__all__ = ["LarsLexer", "lexer"]


@dataclass(frozen=True)
class LarsLexer:
    """The lexer of LARS programs."""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> Program:
        """Parses a program, which may use the prefixes from outside.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        from squall.lexers.lars.building import build
        from squall.lexers.lars.reading import read

        source = Text(text.removeprefix("\ufeff"), name)
        raise_all(source.errors)
        parsed = read(source)
        program = None if parsed is None else build(parsed, source, prefixes or {})
        raise_all(source.errors)
        assert program is not None
        return replace(program, name=name)

    @staticmethod
    def written(program: Program) -> str:
        """Returns the text of a tree. It has no prefixes."""
        return str(program)


lexer = LarsLexer()
