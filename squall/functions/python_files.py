"""Python files that register functions and aggregates: ``squall run --import FILE.py``."""

from __future__ import annotations

import sys
import tokenize
import traceback
from pathlib import Path
from types import ModuleType

from squall.errors import Origin, SquallError, UsageError


def load(path: Path) -> None:
    """Runs a Python file, whose decorators register functions and aggregates for this process.

    No module is left behind that could be imported. So Spark and Beam send the functions themselves to their workers,
    with what they use of the file, and not the name of a module that workers do not have.

    Raises:
        UsageError: The file cannot be read, is no Python, or raises an exception.
    """
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"`--import {path}` cannot be read: {error.strerror}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"`--import {path}` cannot be read: {error}", hint="save it in UTF-8") from error
    module = ModuleType(f"squall-import:{path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # decorators of classes look it up
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        reason, hint = f"{type(error).__name__}: {error}", None
        if isinstance(error, SquallError):
            reason, hint = error.message, error.hint
        elif isinstance(error, SyntaxError):
            reason = str(error.msg)
        raise UsageError(f"`--import {path}` fails: {reason}", _origin(error, path, text), hint) from error
    finally:
        del sys.modules[module.__name__]


def _origin(error: Exception, path: Path, text: str) -> Origin | None:
    """Returns the place in a file from which an exception comes; None if it has none there."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return Origin(str(path), text, error.lineno or 1, error.offset or 1)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if not frames or frames[-1].lineno is None:
        return None
    line, begin, end = frames[-1].lineno, frames[-1].colno or 0, frames[-1].end_colno or 0
    is_one_line = frames[-1].end_lineno == line
    return Origin(str(path), text, line, begin + 1, end - begin if is_one_line else 1)
