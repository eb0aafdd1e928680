"""The text of a program, and positions in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from squall.errors import LexerError, Origin

_CODEPOINT = re.compile(r"\\(?:\\|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_LINE_END = re.compile(r"\r\n|\r|\n")


class Text:
    """The text of a program in SPARQL or RIF.

    `text` is what the grammar reads: it has characters in place of codepoint escapes (SPARQL 1.1 Query, section 19.2).
    A backslash that is itself escaped begins no escape. Positions in it are translated to positions in the source.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.errors: list[LexerError] = []
        self.lines = [0, *(match.end() for match in _LINE_END.finditer(source))]
        self.shifts: list[tuple[int, int]] = [(0, 0)]
        self.text = "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        """Yields the text in pieces. `shifts` has the difference of the lengths of source and text from each position
        on.
        """
        end = shift = 0
        for match in _CODEPOINT.finditer(self.source):
            code = match[1] or match[2]
            if not code:
                continue
            yield self.source[end : match.start()]
            yield self._character(int(code, 16), match)
            end = match.end()
            shift += end - match.start() - 1
            self.shifts.append((end - shift, shift))
        yield self.source[end:]

    def _character(self, code: int, match: re.Match[str]) -> str:
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self.errors.append(LexerError(f"`{match[0]}` is no character", self._origin(*match.span())))
            return "\ufffd"
        return chr(code)

    def origin(self, start: int, end: int) -> Origin:
        """Returns the origin of a part of `text`."""
        return self._origin(self._source_position(start), self._source_position(end))

    def _source_position(self, place: int) -> int:
        return place + self.shifts[bisect_right(self.shifts, place, key=lambda pair: pair[0]) - 1][1]

    def _origin(self, start: int, end: int) -> Origin:
        line = bisect_right(self.lines, start)
        return Origin(self.name, self.source, line, start - self.lines[line - 1] + 1, max(1, end - start))

    def fail(self, message: str, origin: Origin, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, origin, hint))
