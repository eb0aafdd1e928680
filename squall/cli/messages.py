"""What the command line says on standard error: errors, warnings and notes, in colour where the terminal has it."""

from __future__ import annotations

import os
import traceback
import warnings
from dataclasses import dataclass
from typing import TextIO

import click

from squall.errors import SquallError, UsageError, single_errors
from squall.plugins import PluginWarning


@dataclass
class _Verbosity:
    quiet: bool = False
    verbose: bool = False


_VERBOSITY = _Verbosity()
"""How much this run says. Messages are also written after the context of a command has ended, as errors are."""


def reset() -> None:
    """Sets how much is said to the default."""
    _VERBOSITY.quiet = _VERBOSITY.verbose = False


def set_quiet(context: click.Context, parameter: click.Parameter, is_set: bool) -> None:
    """Is the callback of ``--quiet``."""
    _VERBOSITY.quiet |= is_set
    _check()


def set_verbose(context: click.Context, parameter: click.Parameter, is_set: bool) -> None:
    """Is the callback of ``--verbose``."""
    _VERBOSITY.verbose |= is_set
    _check()


def _check() -> None:
    if _VERBOSITY.quiet and _VERBOSITY.verbose:
        raise UsageError("`--quiet` and `--verbose` exclude each other")


def is_quiet() -> bool:
    """Returns whether progress and summaries are left out."""
    return _VERBOSITY.quiet


def colour() -> bool | None:
    """Returns False if colour is switched off (NO_COLOR, or a dumb terminal), else None: where there is a terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def error(failure: SquallError) -> None:
    """Prints an error, or each of several. With ``--verbose`` the traceback of its cause follows."""
    _say("\n\n".join(_styled(single, "red") for single in single_errors(failure)))
    if _VERBOSITY.verbose and failure.__cause__ is not None:
        _say("".join(traceback.format_exception(failure.__cause__)).rstrip("\n"))


def warning(text: SquallError | str, kind: str = "") -> None:
    """Prints a warning: a `SquallError` of that severity, or a text of some kind such as ``source``. An info is not
    printed with ``--quiet``."""
    if isinstance(text, SquallError) and text.severity == "info":
        note(_styled(text, "cyan"))
        return
    _say(_styled(text, "yellow") if isinstance(text, SquallError) else f"{_label(f'{kind} warning', 'yellow')}: {text}")


def note(text: str) -> None:
    """Prints what a user wants to know of a run that goes well; not with ``--quiet``."""
    if not _VERBOSITY.quiet:
        _say(text)


def loss(text: str) -> None:
    """Prints what was lost, also with ``--quiet``."""
    _say(text)


def detail(text: str) -> None:
    """Prints what happens inside of a run; with ``--verbose`` only."""
    if _VERBOSITY.verbose:
        _say(click.style(text, dim=True))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Prints a warning of Python's `warnings`: one of a plug-in as ours, any other as Python does."""
    if issubclass(category, PluginWarning):
        warning(str(message), "plug-in")
    else:
        _say(warnings.formatwarning(message, category, filename, lineno).rstrip("\n"))


def _say(text: str) -> None:
    click.echo(text, err=True, color=colour())


def _label(text: str, color: str) -> str:
    return click.style(text, fg=color, bold=True)


def _styled(failure: SquallError, color: str) -> str:
    """Returns the text of an error or a warning, with its kind, carets and hint in colour."""
    kind = f"{failure.stage} {failure.severity}"
    lines = str(failure).split("\n")
    lines[0] = lines[0].replace(f"{kind}: ", f"{_label(kind, color)}: ", 1)
    if failure.origin:
        excerpt = 1 + failure.message.count("\n")
        for place in range(excerpt, min(excerpt + 2, len(lines))):
            head, bar, carets = lines[place].rpartition("| ")
            if bar and carets.strip() and not carets.strip("^ "):
                lines[place] = head + bar + _label(carets, color)
    if failure.hint:
        lines = [f"{click.style('hint', fg='cyan')}{line[4:]}" if line.startswith("hint: ") else line for line in lines]
    return "\n".join(lines)
