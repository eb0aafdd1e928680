"""``@include`` of the Jena rule language: the rules of other files in front of those of a text."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from squall import rulesets
from squall.errors import LexerError, Origin
from squall.lexers.jena.reading import Reader
from squall.lexers.jena.text import Text
from squall.lexers.jena.tree import Instead, Rule

RULE_SETS = {"rdfs": "rdfs", "owl": "owl2rl", "owlmini": "owl2rl", "owlmicro": "owl2rl"}
"""The names that Jena knows, in small letters, and our rule sets that are read for them."""
ALIKE = frozenset({"rdfs"})
"""Those of the names by which ours concludes what Jena's does."""

MOST_DEEP = 100
"""How deep files may include others."""


class Including:
    """Reads a text and all that it includes, each file once: a file that includes itself adds nothing.

    rules: what was read, of included files first. instead: the rule sets of Jena for which others of ours were read.
    errors: what is wrong with any of them, each in its own file. Prefixes hold in the file that declares them.
    """

    def __init__(self, text: str, name: str) -> None:
        self.rules: list[Rule] = []
        self.instead: list[Instead] = []
        self.errors: list[LexerError] = []
        self.seen = {_whole(Path(name))}
        self._read(text, name, 0)

    def _read(self, text: str, name: str, depth: int) -> None:
        source = Text(text.removeprefix("\ufeff"), name)
        for target, origin in source.includes:
            own = RULE_SETS.get(target.lower())
            if own is not None and target.lower() not in ALIKE:
                self.instead.append(Instead(target, own, origin))
            try:
                self._include(rulesets.path(own) if own else _path(target, name, origin), origin, depth + 1)
            except LexerError as error:
                self.errors.append(error)
        reader = Reader(source)
        rules = list(reader.rules())
        self.rules += _sound(rules, source.errors, reader) if source.errors else rules
        self.errors += source.errors

    def _include(self, path: Path, origin: Origin, depth: int) -> None:
        if depth > MOST_DEEP:
            raise LexerError(f"files include each other more than {MOST_DEEP} deep", origin)
        resolved = _whole(path)
        try:
            if path.exists() and not path.is_file():
                raise LexerError(f"`{path}` cannot be read: it is no file", origin)
            text = "" if resolved in self.seen else path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LexerError(f"`{path}` cannot be read: {error}", origin) from error
        if resolved not in self.seen:
            self.seen.add(resolved)
            self._read(text, str(path), depth)


def _whole(path: Path) -> Path:
    """A path by which a file is known, whichever way it is named."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # what no file system has, or links that go round
        return path


def _path(target: str, name: str, origin: Origin) -> Path:
    """The file that is meant: relative to the file that names it. Raises LexerError."""
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise LexerError(f"`{target}` is no file: {error}", origin) from error
    if parts.scheme not in ("", "file"):
        raise LexerError(f"`{target}` is no file", origin, "nothing is fetched: include a file of this machine")
    return Path(name).parent / (unquote(parts.path) if parts.scheme else target)


def _sound(rules: Sequence[Rule], errors: Sequence[LexerError], reader: Reader) -> list[Rule]:
    """The rules in which no error lies: each reaches as far as the next one that begins, sound or not."""
    starts = [*(_position(reader.words.origin(word)) for word in reader.begun), (sys.maxsize, 0)]
    wrong = {bisect_right(starts, _position(error.origin)) for error in errors}
    return [rule for rule in rules if bisect_right(starts, _position(rule.origin)) not in wrong]


def _position(origin: Origin | None) -> tuple[int, int]:
    return (origin.line, origin.column) if origin else (0, 0)
