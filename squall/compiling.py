"""Programs, by path or by text: read, and made into systems, with all their errors gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import NamedTuple, cast

from squall import plugins
from squall.contracts import Lexer
from squall.errors import SquallError, UsageError, single_errors
from squall.model import System


class Program(NamedTuple):
    """A text, a name for it, and the name of its language."""

    text: str
    name: str
    language: str


def combine(
    programs: Sequence[Program],
    rules: Sequence[str],
    errors: list[SquallError],
    documents: Mapping[str, str] | None = None,
) -> System:
    """One system of several programs and of rule sets, by name, in which each reads what the others derive. The rule
    sets are part of the answer only where there is no program. Errors and `documents`: see `translated`.

    Raises UsageError for a name that no rule set has.
    """
    systems = [_rule_set(name, bool(programs), errors) for name in rules]
    systems += [translated(program, errors, documents) for program in programs]
    return systems[0] if len(systems) == 1 else System(subsystems=tuple(systems))


def _rule_set(name: str, background: bool, errors: list[SquallError]) -> System:
    from squall import rulesets

    return rulesets.prepared(translated(read_program(rulesets.path(name)), errors), background)


def translated(program: Program, errors: list[SquallError], documents: Mapping[str, str] | None = None) -> System:
    """The system of one program. Its errors are gathered: of the text, and of what could be read of it nevertheless.

    documents: where the documents are that it imports, by IRI: for translators that take them.
    """
    text, name, language = program
    lex = cast(Lexer, plugins.load("squall.lexers", language))
    translate = cast(Callable[..., System], plugins.load("squall.translators", language))
    more = {"documents": documents or {}} if "documents" in signature(translate).parameters else {}
    try:
        tree = lex(text, name)
    except SquallError as error:
        errors += single_errors(error)
        tree = error.partial
    if tree is None:
        return System()
    try:
        return translate(tree, **more)
    except SquallError as error:
        errors += single_errors(error)
        return System()


def read_program(program: str | Path, lexer: str | None = None) -> Program:
    """A program by its path, or (with `lexer`) by its text. Raises UsageError: no such file, or no language of its."""
    if lexer is not None and isinstance(program, str) and not _names_file(program):
        return Program(program, "<text>", lexer)
    path = Path(program)
    if not path.is_file():
        raise UsageError(f"the program `{program}` does not exist", hint="to compile a text, name its `lexer`")
    language = lexer or plugins.by_extension(path)
    try:
        return Program(path.read_text(encoding="utf-8"), str(path), language)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the program `{path}` cannot be read: {error}") from error


def _names_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        return False
