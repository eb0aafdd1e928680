"""The line-based part of the Jena rule language: comments, ``@prefix`` and ``@include``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping

from squall.errors import LexerError, Origin
from squall.lexers.jena.tree import PREFIXES

IRI = re.compile(r'[^<>"{}|^`\\\x00-\x20]*')
_SURROGATE = re.compile("[\ud800-\udfff]")
_INCLUDED = re.compile(r"<([^<>]+)>\.?|([^<>]+?)\.?")


class Text:
    """The text of a program. Its line-based part (comments, ``@prefix``, ``@include``) is processed and blanked out."""

    def __init__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.name = name
        self.errors: list[LexerError] = []
        self.prefixes = {**PREFIXES, **(prefixes or {})}
        self.includes: list[tuple[str, Origin]] = []
        """The targets of includes as they are written, with their places."""
        self.starts = [0, *(feed.end() for feed in re.finditer("\n", text))]
        """The begins of lines for origins. A line feed ends a line."""
        if match := _SURROGATE.search(text):
            self.fail("half a character (a lone surrogate) cannot stand in a text", self.at(*match.span()))
            text = _SURROGATE.sub("\ufffd", text)
        self.rules = "".join(self._line(number, line) for number, line in enumerate(lines(text), 1))

    def origin(self, line: int, column: int, length: int = 1) -> Origin:
        return Origin(self.name, self.text, line, column, length)

    def at(self, start: int, end: int) -> Origin:
        """Returns the origin of the characters from `start` up to `end`."""
        line = bisect_right(self.starts, start)
        return Origin(self.name, self.text, line, start - self.starts[line - 1] + 1, end - start)

    def fail(self, message: str, origin: Origin, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, origin, hint))

    def _line(self, number: int, line: str) -> str:
        """Returns the line for the grammar. A blanked line is filled with noncharacters, so that all positions are
        kept.
        """
        start = line.lstrip()
        if not (line.startswith("#") or start.startswith(("//", "@prefix", "@include"))):
            return line
        origin = self.origin(number, len(line) - len(start) + 1, len(start.rstrip()))
        if not line.startswith("#") and start.startswith("@"):
            self._declare(start.split(), origin)
        ending = line[len(line.rstrip("\r\n")) :]
        return "\uffff" * (len(line) - len(ending)) + ending

    def _declare(self, words: list[str], origin: Origin) -> None:
        if words[0].startswith("@include"):
            self._include(words, origin)
        elif words[0] != "@prefix" or len(words) < 3:
            self.fail(f"`{' '.join(words)}` declares no prefix", origin, "write `@prefix ex: <http://example.org/>`")
        elif (namespace := _namespace(words[2])) is None:
            self.fail(f"`{words[2]}` is not an IRI", origin)
        elif self._ends(words, 3, "a prefix", origin):
            self.prefixes[words[1].removesuffix(":")] = namespace

    def _include(self, words: list[str], origin: Origin) -> None:
        match = _INCLUDED.fullmatch(words[1]) if len(words) > 1 else None
        if words[0] != "@include" or match is None:
            self.fail(f"`{' '.join(words)}` includes nothing", origin, "write `@include <file.rules>`")
        elif self._ends(words, 2, "what is included", origin):
            self.includes.append((match[1] or match[2], origin))

    def _ends(self, words: list[str], place: int, what: str, origin: Origin) -> bool:
        """Returns whether a declaration ends at this word. A dot and a comment may follow."""
        remaining_words = words[place + 1 :] if words[place : place + 1] == ["."] else words[place:]
        if not remaining_words or remaining_words[0].startswith(("#", "//")):
            return True
        self.fail(f"`{remaining_words[0]}` follows {what} on its line", origin, "a declaration has a line of its own")
        return False


def lines(text: str) -> list[str]:
    """Returns the lines with their ends: line feed, carriage return, or both. Other line separators of Unicode do not
    count.
    """
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _namespace(word: str) -> str | None:
    text = word[1:].partition(">")[0] if word.startswith("<") else word
    return text if IRI.fullmatch(text) else None
