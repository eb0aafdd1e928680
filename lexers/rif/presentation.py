"""The lexer of RIF's presentation syntax (RIF-BLD, section 2.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from squall.errors import raise_all
from squall.lexers.rif import tree
from squall.lexers.text import Text


@dataclass(frozen=True)
class PresentationLexer:
    """The lexer of RIF's presentation syntax."""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> tree.Document:
        """Parses a document, which may use the prefixes from outside.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        source = Text(text.removeprefix("\ufeff"), name)
        document = _read(source, "document", prefixes or {})
        raise_all(source.errors)
        assert isinstance(document, tree.Document)
        return replace(document, name=name)

    @staticmethod
    def written(document: tree.Document) -> str:
        """Returns the text of a tree in this syntax."""
        return str(document)


lexer = PresentationLexer()


def condition(text: str, name: str, prefixes: Mapping[str, str] | None = None) -> tree.Formula:
    """Parses a condition that stands alone.

    Args:
        text: The condition.
        name: The name of the text.
        prefixes: The prefixes that it may use, since it declares none.

    Raises:
        LexerError: There is an error.
        Errors: There are several errors.
    """
    source = Text(text, name)
    formula = _read(source, "formula", prefixes or {})
    raise_all(source.errors)
    return cast("tree.Formula", formula)


def prefixes(text: str) -> dict[str, str]:
    """Returns the prefixes that a document declares, by a search in its text."""
    return dict(re.findall(r"\bPrefix\s*\(\s*(\w*)\s+<([^<>]*)>\s*\)", text))


def _read(source: Text, start: str, prefixes: Mapping[str, str]) -> tree.Node | None:
    from squall.lexers.rif.building import build
    from squall.lexers.rif.reading import read

    raise_all(source.errors)
    parsed = read(source, start)
    return None if parsed is None else build(parsed, source, prefixes)
