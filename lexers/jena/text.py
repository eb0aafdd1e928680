"""The line-based part of the Jena rule language: comments, ``@prefix``, ``@include`` and squall's ``@source``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from operator import itemgetter

from squall.errors import LexerError, Origin
from squall.lexers.jena.tree import PREFIXES, SCHEMES, StreamSource
from squall.lexers.prefixes import declaration_hint

IRI = re.compile(r'[^<>"{}|^`\\\x00-\x20]*')
_SURROGATE = re.compile("[\ud800-\udfff]")
_INCLUDED = re.compile(r"<([^<>]+)>\.?|([^<>]+?)\.?")
_SOURCE_WORDS = re.compile(
    r"<(?P<iri>[^<>]*)>|\[(?P<window>[^\[\]]*)\]|(?P<comment>#.*|//.*)|(?P<word>[^\s\[\],<>]+)|\S"
)
_SOURCE_HINT = "write `@source <http://example.org/stream> [RANGE 10s]`, or `@source *` for all streams"


class Text:
    """The text of a program. Its line-based part (comments and declarations) is processed and blanked out."""

    def __init__(
        self,
        text: str,
        name: str,
        prefixes: Mapping[str, str] | None = None,
        sources: tuple[StreamSource, ...] = (),
    ) -> None:
        self.text = text
        self.name = name
        self.errors: list[LexerError] = []
        self.prefixes = {**PREFIXES, **(prefixes or {})}
        self.includes: list[tuple[str, Origin]] = []
        """The targets of includes as they are written, with their places."""
        self.sources: list[tuple[int, tuple[StreamSource, ...]]] = [(0, sources)]
        """The streams that rules read, each with the line from which on they do."""
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
        if not (line.startswith("#") or start.startswith(("//", "@prefix", "@include", "@source"))):
            return line
        origin = self.origin(number, len(line) - len(start) + 1, len(start.rstrip()))
        if not line.startswith("#") and start.startswith("@"):
            self._declare(start.split(), origin)
        ending = line[len(line.rstrip("\r\n")) :]
        return "\uffff" * (len(line) - len(ending)) + ending

    def _declare(self, words: list[str], origin: Origin) -> None:
        if words[0].startswith("@include"):
            self._include(words, origin)
        elif words[0].startswith("@source"):
            self._source(origin)
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

    def sources_of_line(self, line: int) -> tuple[StreamSource, ...]:
        """Returns the streams that a rule, or an include, in this line reads."""
        return self.sources[bisect_right(self.sources, line, key=itemgetter(0)) - 1][1]

    def _source(self, origin: Origin) -> None:
        """Reads a directive ``@source``: streams, each with a window in brackets or without; or ``*``."""
        sources: list[StreamSource] = []
        all_streams = False
        for kind, text, place in self._source_words(origin):
            stream = self._stream(kind, text, place)
            if stream is not None:
                sources.append(stream)
            elif kind == "window" and sources and not sources[-1].window and text.strip():
                sources[-1] = replace(sources[-1], window=text.strip())
            elif kind == "word" and text == "*":
                all_streams = True
            else:
                self.fail(f"`{place.words}` is no stream", place, _SOURCE_HINT)
                return
        if all_streams == bool(sources):
            message = "`*` is all streams" if sources else "`@source` names no stream"
            self.fail(message, origin, _SOURCE_HINT)
            return
        self.sources.append((origin.line, tuple(sources)))

    def _source_words(self, origin: Origin) -> Iterator[tuple[str, str, Origin]]:
        """Yields the kind, the text and the place of each word of a directive ``@source``, without commas, a dot at the
        end, and a comment."""
        matches = _SOURCE_WORDS.finditer(origin.words, len("@source"))
        words = list(takewhile(lambda match: match.lastgroup != "comment", matches))
        for match in words:
            kind = match.lastgroup or "other"
            text = match[match.lastgroup or 0]
            if kind == "word" and match is words[-1]:
                text = text.removesuffix(".")
            if match[0] != "," and (text or kind != "word"):
                yield kind, text, self.origin(origin.line, origin.column + match.start(), len(match[0]))

    def _stream(self, kind: str, text: str, place: Origin) -> StreamSource | None:
        """Returns the stream of a word, or None if it names none."""
        if kind == "iri" and text and IRI.fullmatch(text):
            return StreamSource(text, origin=place)
        return StreamSource(self._expanded(text, place), origin=place) if kind == "word" and ":" in text else None

    def _expanded(self, name: str, origin: Origin) -> str:
        prefix, _, local = name.partition(":")
        if prefix in self.prefixes:
            return self.prefixes[prefix] + local
        if prefix not in SCHEMES:
            declaration = f"@prefix {prefix}: <http://example.org/>"
            hint = declaration_hint(prefix, self.prefixes, declaration, "http://example.org/")
            self.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return name

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
