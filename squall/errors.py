"""Errors with a place, a caret and a hint: one class per stage, and a carrier for all of a program's errors at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Origin:
    """Where something was written: a name for the text, the text, and a place in it (line and column from 1)."""

    name: str
    text: str = field(repr=False)
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"

    @property
    def words(self) -> str:
        """What is written there, on its line; ``""`` of a place in XML, which is where an element begins."""
        lines = _lines(self.text)
        shown = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        found = shown[self.column - 1 :][: self.length].strip()
        return "" if _ELEMENT.fullmatch(found) else found

    @property
    def excerpt(self) -> str:
        """The line, or of a long one what is around the place, and carets under the place."""
        lines = _lines(self.text)
        whole = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        start = max(0, min(self.column - 1 - _LONG // 2, len(whole) - _LONG))
        shown = whole[start : start + _LONG].replace("\t", " ")
        before, after = "... " if start else "", " ..." if start + _LONG < len(whole) else ""
        at = self.column - 1 - start
        carets = "^" * max(1, min(self.length, len(shown) - at))
        margin = f"{self.line} | "
        return f"{margin}{before}{shown}{after}\n{' ' * (len(margin) - 2)}| {' ' * (len(before) + at)}{carets}"


_LONG = 200
"""How much is shown of a line, in characters."""

_ELEMENT = re.compile(r"<[\w:.-]+")


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """The lines of a text, kept for its next error: a long text may have many. A line feed ends a line."""
    return [line.rstrip("\r") for line in text.split("\n")]


class SquallError(Exception):
    """Something that the user can mend. Prints as message, place, excerpt and hint.

    partial: of a lexer, the tree of what it could read, so that the errors in that are told as well; None if there is
    none.
    """

    stage = "squall"
    severity = "error"
    partial: Any = None

    def __init__(self, message: str, origin: Origin | None = None, hint: str | None = None) -> None:
        super().__init__(message, origin, hint)
        self.message = message
        self.origin = origin
        self.hint = hint

    def __str__(self) -> str:
        return format_message(f"{self.stage} {self.severity}", self.message, self.origin, self.hint)


def format_message(kind: str, message: str, origin: Origin | None, hint: str | None) -> str:
    """A message of some kind (``syntax error``) as text: with its place, the line there, and a hint."""
    place = f"{origin}: " if origin else ""
    lines = [f"{place}{kind}: {message}"]
    if origin:
        lines.append(origin.excerpt)
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


class UsageError(SquallError):
    """The arguments are wrong: a source, a sink, an option."""

    stage = "usage"


class PluginError(SquallError):
    """A stage, function, source or sink could not be found or loaded."""

    stage = "plug-in"


class LexerError(SquallError):
    """The text is not in the language."""

    stage = "syntax"


class TranslatorError(SquallError):
    """The text is well formed but means nothing that can be run."""

    stage = "translation"


class TranslatorWarning(SquallError):
    """What can be run, but may not be what its author meant. It is not raised: see `squall.model.warnings`."""

    stage = "translation"
    severity = "warning"


class PlannerError(SquallError):
    """A system that cannot be planned, or a plan that breaks the rules of `squall.plan.validation.check`."""

    stage = "planning"


class BuilderError(SquallError):
    """A plan that this builder cannot run, or a run that failed for a reason the user can mend."""

    stage = "build"


class UpdateError(SquallError):
    """An operation of an update that cannot be done: nothing of its request is."""

    stage = "update"


class SourceError(SquallError):
    """A source that does not exist or cannot be read, or, with ``--strict``, a malformed statement."""

    stage = "source"


class SinkError(SquallError):
    """A sink that cannot be written."""

    stage = "sink"


class Errors(SquallError):
    """All errors of a program, or of several: of each in the order of its text."""

    def __init__(self, errors: Sequence[SquallError]) -> None:
        names = list(dict.fromkeys(error.origin.name for error in errors if error.origin))
        self.errors = tuple(sorted(errors, key=lambda error: _place(error, names)))
        super().__init__(f"{len(self.errors)} errors")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.errors))


def _place(error: SquallError, names: Sequence[str]) -> tuple[int, int, int]:
    origin = error.origin
    return (names.index(origin.name), origin.line, origin.column) if origin else (-1, 0, 0)


def single_errors(error: SquallError) -> tuple[SquallError, ...]:
    """The single errors of an error."""
    return error.errors if isinstance(error, Errors) else (error,)


def raise_all(errors: Sequence[SquallError], partial: Any = None) -> None:
    """Raises the one error, or `Errors` if there are several; does nothing if there are none."""
    if errors:
        error = errors[0] if len(errors) == 1 else Errors(errors)
        error.partial = partial
        raise error


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The hint "did you mean ...?" where something known is spelt like the word."""
    close = difflib.get_close_matches(word, sorted(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else None
