"""The directive ``@include`` of the Jena rule language, which puts the rules of other files in front of those of a
text.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from squall import rulesets
from squall.errors import LexerError, Origin
from squall.lexers.jena.reading import Reader
from squall.lexers.jena.text import Text
from squall.lexers.jena.tree import Rule, RuleSetSubstitution, StreamSource

RULE_SETS = {"rdfs": "rdfs", "owl": "owl2rl", "owlmini": "owl2rl", "owlmicro": "owl2rl"}
"""The rule sets of squall by the names that Jena has for its own, in lower case."""
EQUIVALENT = frozenset({"rdfs"})
"""The names for which squall's rule set has the same conclusions as Jena's."""

MAX_INCLUDE_DEPTH = 100
"""The deepest nesting of includes."""


class Includes:
    """Reads a text and all of its includes, each file once. A file that includes itself adds nothing.

    Prefixes hold in the file that declares them, those from outside in all files except rule sets of squall. The
    streams of a directive ``@source`` hold in the files that are included behind it, too.

    Attributes:
        rules: The rules, those of included files first.
        substitutions: The rule sets of Jena that were replaced by others.
        errors: The errors, each in its own file.
    """

    def __init__(self, text: str, name: str, prefixes: Mapping[str, str]) -> None:
        self.rules: list[Rule] = []
        self.substitutions: list[RuleSetSubstitution] = []
        self.errors: list[LexerError] = []
        self.seen = {_canonical_path(Path(name))}
        self._read(text, name, prefixes, (), 0)

    def _read(
        self, text: str, name: str, prefixes: Mapping[str, str], sources: tuple[StreamSource, ...], depth: int
    ) -> None:
        source = Text(text.removeprefix("\ufeff"), name, prefixes, sources)
        for target, origin in source.includes:
            rule_set = RULE_SETS.get(target.lower())
            if rule_set is not None and target.lower() not in EQUIVALENT:
                self.substitutions.append(RuleSetSubstitution(target, rule_set, origin))
            try:
                path = rulesets.path(rule_set) if rule_set else _path(target, name, origin)
                included_sources = source.sources_of_line(origin.line)
                self._include(path, {} if rule_set else prefixes, included_sources, origin, depth + 1)
            except LexerError as error:
                self.errors.append(error)
        reader = Reader(source)
        rules = list(reader.rules())
        self.rules += _rules_without_errors(rules, source.errors, reader) if source.errors else rules
        self.errors += source.errors

    def _include(
        self,
        path: Path,
        prefixes: Mapping[str, str],
        sources: tuple[StreamSource, ...],
        origin: Origin,
        depth: int,
    ) -> None:
        if depth > MAX_INCLUDE_DEPTH:
            raise LexerError(f"files include each other more than {MAX_INCLUDE_DEPTH} deep", origin)
        resolved = _canonical_path(path)
        try:
            if path.exists() and not path.is_file():
                raise LexerError(f"`{path}` cannot be read: it is no file", origin)
            text = "" if resolved in self.seen else path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LexerError(f"`{path}` cannot be read: {error}", origin) from error
        if resolved not in self.seen:
            self.seen.add(resolved)
            self._read(text, str(path), prefixes, sources, depth)


def _canonical_path(path: Path) -> Path:
    """Returns a path that identifies a file, whichever way it is named."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # what no file system has, or links that go round
        return path


def _path(target: str, name: str, origin: Origin) -> Path:
    """Returns the path of an include, relative to the file that names it.

    Raises:
        LexerError: The target is no file.
    """
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise LexerError(f"`{target}` is no file: {error}", origin) from error
    if parts.scheme not in ("", "file"):
        raise LexerError(f"`{target}` is no file", origin, "nothing is fetched: include a file of this machine")
    return Path(name).parent / (unquote(parts.path) if parts.scheme else target)


def _rules_without_errors(rules: Sequence[Rule], errors: Sequence[LexerError], reader: Reader) -> list[Rule]:
    """Returns the rules without an error. Each rule reaches up to the begin of the next one."""
    starts = [*(_position(reader.words.origin(word)) for word in reader.rule_starts), (sys.maxsize, 0)]
    wrong = {bisect_right(starts, _position(error.origin)) for error in errors}
    return [rule for rule in rules if bisect_right(starts, _position(rule.origin)) not in wrong]


def _position(origin: Origin | None) -> tuple[int, int]:
    return (origin.line, origin.column) if origin else (0, 0)
