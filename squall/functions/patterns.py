"""The regular expressions of XPath: matches, and replacements.

Sources: XPath functions and operators, section 7.6; XSD part 2, appendix F. An expression is translated to one of the
package ``regex`` that matches the same, because that can stop a match that takes too long. elementpath translates as
well, but lets pass escapes that XPath does not have, gives ``\\w`` another meaning outside of brackets than inside, and
writes Unicode categories as lists of thousands of ranges.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from squall.functions.limits import REGEX_SECONDS, too_slow

if TYPE_CHECKING:
    import regex

NAME_START = ":A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
NAME_START += "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
NAME = f"{NAME_START}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"
_MEMBERS = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "s": r" \t\n\r",
    "S": "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f!-\U0010ffff",
    "w": r"\p{L}\p{M}\p{N}\p{S}",
    "W": r"\p{P}\p{Z}\p{C}",
    "i": NAME_START,
    "c": NAME,
}
"""The meaning of multi-character escapes between brackets."""
_NEGATED = {"I": NAME_START, "C": NAME}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_META = r"\|.?*+(){}-[]^$"
_FLAGS = frozenset("smixq")
_CATEGORY = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")
_QUANTIFIER = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??")
_LINE_START = r"(?:\A|(?<=\n)(?!\Z))"
_LINE_END = r"(?:(?=\n)|(?<!\n)\Z)"


class _Refused(Exception):
    """A text is no regular expression of XPath."""


class _Translation:
    """The translation of one regular expression.

    Attributes:
        at: The index of the next character.
        groups: The number of groups that have begun.
        open_: The numbers of the groups that have not ended.
    """

    def __init__(self, text: str, flags: str) -> None:
        self.text = text
        self.multiline = "m" in flags
        self.at = 0
        self.groups = 0
        self.open_: list[int] = []

    def translated(self) -> str:
        expression = "".join(self._pieces())
        if self.open_:
            raise _Refused("a group is not closed")
        return expression

    def _peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def _next(self) -> str:
        if self.at == len(self.text):
            raise _Refused("it ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def _pieces(self) -> Iterator[str]:
        while self.at < len(self.text):
            character = self._next()
            if character == "(":
                yield self._group()
            elif character == "|":
                yield character
            else:
                yield self._closed() if character == ")" else self._atom(character)
                yield self._quantifier()

    def _group(self) -> str:
        if self._peek() != "?":
            self.groups += 1
            self.open_.append(self.groups)
            return "("
        if self._peek(2) != "?:":
            raise _Refused("`(?` is followed by `:` only")
        self.at += 2
        self.open_.append(0)
        return "(?:"

    def _closed(self) -> str:
        if not self.open_:
            raise _Refused("`)` closes nothing")
        self.open_.pop()
        return ")"

    def _quantifier(self) -> str:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def _atom(self, character: str) -> str:
        match character:
            case ".":
                return "."
            case "^":
                return _LINE_START if self.multiline else r"(?:\A)"
            case "$":
                return _LINE_END if self.multiline else r"(?:\Z)"
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case _ if character in _META and character != "-":
                raise _Refused(f"`{character}` has nothing to work on")
            case _:
                return _one(character)

    def _escape(self) -> str:
        character = self._peek()
        if character.isdecimal() and character.isascii():
            return self._reference()
        if character in _NEGATED and character:
            self.at += 1
            return f"[^{_NEGATED[character]}]"
        return f"[{self._member(self._next())}]"

    def _reference(self) -> str:
        """Returns the longest number of a group that is closed; a group that took no part matches nothing, at no
        length."""
        digits = self._next()
        while self._peek().isdecimal() and int(digits + self._peek()) <= self.groups:
            digits += self._next()
        group = int(digits)
        if not 0 < group <= self.groups or group in self.open_:
            raise _Refused(f"there is no group {digits} before")
        return f"(?({group})\\{group}|)"

    def _member(self, character: str) -> str:
        """Returns the meaning of an escape between brackets."""
        if character in _MEMBERS:
            return _MEMBERS[character]
        if character in "pP":
            return self._property(character)
        return _one(_escaped(character))

    def _property(self, letter: str) -> str:
        end = self.text.find("}", self.at)
        if self._peek() != "{" or end < 0:
            raise _Refused(f"`\\{letter}` is followed by a category in braces")
        name = self.text[self.at + 1 : end]
        self.at = end + 1
        if _CATEGORY.fullmatch(name):
            return f"\\{letter}{{{name}}}"
        if not re.fullmatch("Is[A-Za-z0-9-]+", name):
            raise _Refused(f"there is no category `{name}`")
        return f"\\{letter}{{In{name[2:]}}}"

    def _class(self) -> str:
        """Translates a character class. A subtraction becomes a look-ahead."""
        negative = self._peek() == "^"
        self.at += negative
        members: list[str] = []
        without = ""
        while (character := self._next()) != "]" or not members:
            if character == "-" and self._peek() == "[" and members:
                self.at += 1
                without = f"(?!{self._class()})"
                if self._next() != "]":
                    raise _Refused("what is subtracted ends a class")
                break
            members.append(self._range(character))
        return f"(?:{without}[{'^' if negative else ''}{''.join(dict.fromkeys(members))}])"

    def _range(self, character: str) -> str:
        """Translates a character, an escape, or a range of characters."""
        if character in "[]":
            raise _Refused(f"`{character}` stands in brackets by itself")
        if character == "\\":
            character = self._next()
            if character in _NEGATED:
                return _rest(_NEGATED[character])
            if character in _MEMBERS or character in "pP":
                return self._member(character)
            character = _escaped(character)
        if self._peek() != "-" or self._peek(2) in ("-[", "-]"):
            return _one(character)
        self.at += 1
        last = self._next()
        last = _escaped(self._next()) if last == "\\" else last
        if last < character:
            raise _Refused(f"the range from `{character}` to `{last}` is empty")
        return f"{_one(character)}-{_one(last)}"


def _one(character: str) -> str:
    """Returns a character, escaped so that it is literal."""
    return character if character.isalnum() else f"\\U{ord(character):08x}"


def _escaped(character: str) -> str:
    """Returns the character of an escape."""
    if character in _CONTROLS:
        return _CONTROLS[character]
    if character not in _META:
        raise _Refused(f"there is no escape `\\{character}`")
    return character


@cache
def _rest(members: str) -> str:
    """Returns the characters that are not among these, for use between brackets."""
    import regex

    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    runs = regex.finditer(f"[^{members}]+", characters)
    return "".join(f"\\U{run.start():08x}-\\U{run.end() - 1:08x}" for run in runs)


def _without_blanks(pattern: str) -> str:
    """Returns the pattern as the flag x reads it: without white space, but for that in brackets."""
    pieces, depth, at = [], 0, 0
    for match in re.finditer(r"\\.|[\[\]]|[ \t\n\r]", pattern, re.DOTALL):
        depth += {"[": 1, "]": -1}.get(match[0], 0)
        if match[0] in " \t\n\r" and depth <= 0:
            pieces.append(pattern[at : match.start()])
            at = match.end()
    return "".join((*pieces, pattern[at:]))


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str) -> regex.Pattern[str] | str:
    """Returns the expression of the package ``regex``, or what is wrong with the pattern or the flags."""
    import regex

    if not _FLAGS.issuperset(flags):
        return f"the flags are some of s, m, i, x and q: not `{flags}`"
    try:
        if "q" in flags:
            source = regex.escape(pattern)
        else:
            source = _Translation(_without_blanks(pattern) if "x" in flags else pattern, flags).translated()
        mode = (regex.IGNORECASE if "i" in flags else 0) | (regex.DOTALL if "s" in flags else 0)
        return regex.compile(source, regex.VERSION0 | mode)
    except (_Refused, regex.error) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"


def matches(text: str, pattern: str, flags: str = "", *, seconds: float = REGEX_SECONDS) -> bool | None:
    """Returns whether the pattern matches somewhere; None if the pattern or the flags are malformed.

    Raises BuilderError if that takes more than so many seconds.
    """
    expression = compiled(pattern, flags)
    if isinstance(expression, str):
        return None
    try:
        return expression.search(text, timeout=seconds) is not None
    except TimeoutError as error:
        raise too_slow(pattern, text, seconds) from error


def replaced(
    text: str, pattern: str, replacement: str, flags: str = "", *, seconds: float = REGEX_SECONDS
) -> str | None:
    """Returns the text with all matches replaced; None if one of the arguments is malformed, or if the
    pattern matches the empty string. Raises BuilderError if that takes more than so many seconds."""
    expression = compiled(pattern, flags)
    if isinstance(expression, str) or expression.search("") is not None:
        return None
    pieces: list[str | int] | None = [replacement] if "q" in flags else _template(replacement, expression.groups)
    if pieces is None:
        return None
    try:
        return expression.sub(lambda match: _filled(pieces, match), text, timeout=seconds)
    except TimeoutError as error:
        raise too_slow(pattern, text, seconds) from error


def wrong(pattern: str, flags: str = "") -> str | None:
    """Returns a sentence that says what is wrong with a pattern and its flags."""
    expression = compiled(pattern, flags)
    return f"`{pattern}` is not a regular expression: {expression}" if isinstance(expression, str) else None


@lru_cache(maxsize=1024)
def _template(replacement: str, groups: int) -> list[str | int] | None:
    """Returns the texts and group numbers of a replacement (``$1`` is a group, a backslash takes ``$`` and itself
    literally); None if it is malformed."""
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        following = replacement[at + 1 : at + 2]
        if character == "$":
            end = _group_end(replacement, at + 1, groups)
            if end == at + 1:
                return None
            pieces.append(int(replacement[at + 1 : end]))
            at = end
            continue
        if character == "\\" and following not in ("\\", "$"):
            return None
        pieces.append(following if character == "\\" else character)
        at += 2 if character == "\\" else 1
    return pieces


def _group_end(replacement: str, start: int, groups: int) -> int:
    """Returns the index at which the number of a group ends: after one digit, or more if there is such a group."""
    end = start
    while replacement[end : end + 1].isdecimal() and (end == start or int(replacement[start : end + 1]) <= groups):
        end += 1
    return end


def _filled(pieces: list[str | int], match: regex.Match[str]) -> str:
    """Returns the text of a group; ``""`` if it took no part in the match, or does not exist."""
    return "".join(
        piece if isinstance(piece, str) else (match[piece] or "") if piece <= match.re.groups else ""
        for piece in pieces
    )
