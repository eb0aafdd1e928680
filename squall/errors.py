"""Errors with a place, a caret and a hint: one class per stage, and a carrier for all errors of a program at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath
from typing import Any


@dataclass(frozen=True)
class Origin:
    """Where something is written: a name for the text, the text, and a place in it (line and column from 1)."""

    name: str
    text: str = field(repr=False)
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"

    @property
    def words(self) -> str:
        """The text at the place, on its line; ``""`` for a place in XML, where an element begins."""
        lines = _lines(self.text)
        line = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        text = line[self.column - 1 :][: self.length].strip()
        return "" if _ELEMENT.fullmatch(text) else text

    @property
    def excerpt(self) -> str:
        """The line, with carets under the place. Of a long line it is the part around the place."""
        lines = _lines(self.text)
        line = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        start = max(0, min(self.column - 1 - MAX_EXCERPT_CHARACTERS // 2, len(line) - MAX_EXCERPT_CHARACTERS))
        excerpt = line[start : start + MAX_EXCERPT_CHARACTERS].replace("\t", " ")
        before, after = "... " if start else "", " ..." if start + MAX_EXCERPT_CHARACTERS < len(line) else ""
        at = self.column - 1 - start
        carets = "^" * max(1, min(self.length, len(excerpt) - at))
        margin = f"{self.line} | "
        return f"{margin}{before}{excerpt}{after}\n{' ' * (len(margin) - 2)}| {' ' * (len(before) + at)}{carets}"


MAX_EXCERPT_CHARACTERS = 200
"""At most this much of a line is shown, in characters."""

_ELEMENT = re.compile(r"<[\w:.-]+")


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """Returns the lines of a text, cached for its next error. A line feed ends a line."""
    return [line.rstrip("\r") for line in text.split("\n")]


class SquallError(Exception):
    """An error that the user can fix. It prints as message, place, excerpt and hint.

    Attributes:
        stage: The stage that raises it.
        severity: ``error``, ``warning`` or ``info``.
        partial: For a lexer, the tree of what it could read, so that errors in that are reported as well; else None.
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
    """Formats a message of some kind (``syntax error``) with its place, the line there, and a hint."""
    place = f"{origin}: " if origin else ""
    lines = [f"{place}{kind}: {message}"]
    if origin:
        lines.append(origin.excerpt)
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


class UsageError(SquallError):
    """An argument is wrong: a source, a sink, an option."""

    stage = "usage"


class ArgumentError(UsageError, ValueError):
    """An argument of a Python function is not what it has to be."""


class PluginError(SquallError):
    """A stage, function, source or sink cannot be found or loaded."""

    stage = "plug-in"


class LexerError(SquallError):
    """The text is not in the language."""

    stage = "syntax"


class TranslatorError(SquallError):
    """The text is well formed but means nothing that can be run."""

    stage = "translation"


class TranslatorWarning(SquallError):
    """A program can be run, but may not do what its author meant. It is not raised: see `squall.model.warnings`."""

    stage = "translation"
    severity = "warning"


class TranslatorInfo(TranslatorWarning):
    """A program does what its author meant, and could say it better. It is reported as warnings are."""

    severity = "info"


class PlannerError(SquallError):
    """A system cannot be planned, or a plan breaks the rules of `squall.plan.validation.check`."""

    stage = "planning"


class BuilderError(SquallError):
    """This builder cannot run a plan, or a run failed for a reason that the user can fix."""

    stage = "build"


class UpdateError(SquallError):
    """An operation of an update cannot be done. Nothing of its request is applied."""

    stage = "update"


class SourceError(SquallError):
    """A source does not exist or cannot be read, or, with ``--strict``, has a malformed statement."""

    stage = "source"


class SinkError(SquallError):
    """A sink cannot be written."""

    stage = "sink"


class Errors(SquallError):
    """All errors of one or several programs, in the order of their texts."""

    def __init__(self, errors: Sequence[SquallError]) -> None:
        names = list(dict.fromkeys(error.origin.name for error in errors if error.origin))
        self.errors = tuple(sorted(errors, key=lambda error: _position(error, names)))
        super().__init__(f"{len(self.errors)} errors")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.errors))


def _position(error: SquallError, names: Sequence[str]) -> tuple[int, int, int]:
    origin = error.origin
    return (names.index(origin.name), origin.line, origin.column) if origin else (-1, 0, 0)


def single_errors(error: SquallError) -> tuple[SquallError, ...]:
    """Returns the single errors of an error."""
    return error.errors if isinstance(error, Errors) else (error,)


def raise_all(errors: Sequence[SquallError], partial: Any = None) -> None:
    """Raises the one error, or `Errors` if there are several. It does nothing if there are none."""
    if errors:
        error = errors[0] if len(errors) == 1 else Errors(errors)
        error.partial = partial
        raise error


def file_name(name: str) -> str:
    """Returns the name of a program's file, without folder and extension; ``""`` for the name of a text, ``<text>``."""
    return "" if name.startswith("<") else PurePath(name).stem


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Returns the hint "did you mean ...?" if a known word is spelt like this one."""
    import difflib

    close = difflib.get_close_matches(word, sorted(candidates), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else None


def install_hint(requirement: str) -> str:
    """Returns the hint that says how to install a requirement such as ``squall[spark]``."""
    extra = requirement.removeprefix("squall")
    in_checkout = f" (in a checkout: pip install '.{extra}')" if extra != requirement else ""
    return f"pip install '{requirement}'{in_checkout}"
