"""The words of a text in the Jena rule language, and its grammar."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from squall.errors import Origin
from squall.lexers.jena.text import Text

if TYPE_CHECKING:
    from lark import Lark


class Words:
    """The words of a text by number, with their terminals and positions.

    They reach up to the end, or up to a quote that is never closed (`is_truncated`). All other text matches a terminal.
    """

    def __init__(self, text: Text) -> None:
        self.source = text
        self.kinds: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.is_truncated = False
        for match in _terminals().finditer(text.rules):
            kind = match.lastgroup
            if kind is None:
                break
            start, end = match.span(kind)
            if kind == "other":
                self.is_truncated = True
                text.fail("this text is never closed", text.at(start, end), f"end it with `{match[kind]}`")
                break
            self.kinds.append(kind)
            self.starts.append(start)
            self.ends.append(end)

    def __len__(self) -> int:
        return len(self.kinds)

    def text(self, word: int) -> str:
        return self.source.rules[self.starts[word] : self.ends[word]]

    def origin(self, word: int) -> Origin:
        return self.source.at(self.starts[word], self.ends[word])

    def line(self, word: int) -> int:
        return self.origin(word).line

    def begins_line(self, word: int) -> bool:
        """Returns whether a word stands in a later line than the one before."""
        return self.line(word) > self.line(word - 1)


@cache
def grammar() -> Lark:
    from lark import Lark

    text = files(__package__).joinpath("jena.lark").read_text(encoding="utf-8")
    return Lark(text, start="rule", parser="lalr", lexer="basic", propagate_positions=True)


@cache
def _terminals() -> re.Pattern[str]:
    """Returns the terminals of the grammar as one expression, in which ignored text may precede each of them.

    The name of a group is that of the terminal, or ``other`` for a character that matches none. At the end of a text no
    group matches.
    """
    parsed_grammar = grammar()
    by_priority = sorted(parsed_grammar.terminals, key=lambda terminal: -terminal.priority)
    named_groups = [
        f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})"
        for terminal in by_priority
        if terminal.name not in parsed_grammar.ignore_tokens
    ]
    ignored = "|".join(
        terminal.pattern.to_regexp() for terminal in by_priority if terminal.name in parsed_grammar.ignore_tokens
    )
    return re.compile(f"(?:{ignored})*(?:{'|'.join(named_groups)}|(?P<other>[\\s\\S])|$)")
