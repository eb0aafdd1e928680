"""Compilation: reads programs by path or by text and translates them to systems, gathering all errors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from squall import plugins
from squall.errors import SquallError, UsageError, single_errors
from squall.model import System
from squall.model.query_names import with_unique_names
from squall.plugins import PluginWarning


class Program(NamedTuple):
    """A program's text, a name for it, and the name of its language."""

    text: str
    name: str
    language: str


def combine(
    programs: Sequence[Program],
    rules: Sequence[str],
    errors: list[SquallError],
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    prefixes: Mapping[str, str] | None = None,
) -> System:
    """Returns one system of several programs and rule sets, in which each reads what the rules of all derive.

    The rule sets are part of the answer only if there is no program.

    Args:
        programs: The programs.
        rules: The names of the rule sets.
        errors: A list to which errors are added; see `translate_program`.
        documents: See `translate_program`.
        profile: See `translate_program`.
        prefixes: See `translate_program`. Rule sets do not use them.

    Raises:
        UsageError: There is no rule set of a name.
    """
    systems = [_rule_set(name, bool(programs), errors) for name in rules]
    own_systems = [translate_program(program, errors, documents, profile, prefixes) for program in programs]
    systems += with_unique_names(own_systems, errors)
    return systems[0] if len(systems) == 1 else System(subsystems=tuple(systems))


def _rule_set(name: str, has_programs: bool, errors: list[SquallError]) -> System:
    from squall import rulesets

    return rulesets.prepared(translate_program(read_program(rulesets.path(name)), errors), has_programs)


def translate_program(
    program: Program,
    errors: list[SquallError],
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    prefixes: Mapping[str, str] | None = None,
) -> System:
    """Returns the system of one program.

    Args:
        program: The program.
        errors: A list to which errors are added: those of the text, and those of what could be read of it nevertheless.
        documents: The files of documents that it imports, by IRI, for translators that take them.
        profile: The name of the profile (`squall.model.profiles`), for translators that take it.
        prefixes: Prefixes from outside, for lexers and translators that take them.
    """
    parse = parser(program, prefixes)
    translate: Callable[..., System] = plugins.load(plugins.TRANSLATORS, program.language)
    keywords = _accepted(translate, {"documents": documents or {}, "profile": profile, "prefixes": prefixes or {}})
    try:
        tree = parse()
    except SquallError as error:
        errors += single_errors(error)
        tree = error.partial
    if tree is None:
        return System()
    try:
        return translate(tree, **keywords)
    except SquallError as error:
        errors += single_errors(error)
        return System()


def parser(program: Program, prefixes: Mapping[str, str] | None = None) -> Callable[[], Any]:
    """Returns a function that parses a program. It warns of a language that takes no prefixes, if there are any."""
    text, name, language = program
    lex: Callable[..., Any] = plugins.load(plugins.LEXERS, language)
    keywords = _accepted(lex, {"prefixes": prefixes} if prefixes else {})
    if prefixes and not keywords:
        message = f"the language `{language}` takes no prefixes from outside: they do not hold in `{name}`"
        warnings.warn(PluginWarning(message), stacklevel=2)
    return partial(lex, text, name, **keywords)


def _accepted(stage: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments that a stage has parameters for."""
    parameters = signature(stage).parameters
    return {name: value for name, value in arguments.items() if name in parameters}


def read_program(program: str | Path, lexer: str | None = None) -> Program:
    """Reads a program by its path, or (with `lexer`) takes its text.

    Raises:
        UsageError: There is no such file, or no language for it.
    """
    if lexer is not None and isinstance(program, str) and not os.path.isfile(program):
        return Program(program, "<text>", lexer)
    path = Path(program)
    if not os.path.isfile(path):
        raise UsageError(f"the program `{program}` does not exist", hint="to compile a text, name its `lexer`")
    language = lexer or _language(path)
    try:
        return Program(path.read_text(encoding="utf-8"), str(path), language)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the program `{path}` cannot be read: {error}") from error


def _language(path: Path) -> str:
    """Returns the language of a program by its ending. Raises UsageError, for data with the way to give them."""
    try:
        return plugins.by_extension(path)
    except UsageError:
        from squall.streams.formats import of_path

        if of_path(str(path)) is None:
            raise
        hint = f"data are a source: `--source {path}`, or `--static {path}` if they always hold"
        raise UsageError(f"`{path}` has data, and no program", hint=hint) from None
