"""The depth of recursion that compiling and planning may need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from squall.errors import UsageError

MAX_RECURSION_DEPTH = 6000
"""The depth of calls in which a program is compiled and planned. The stack of a thread, of 8 MB, has room for it."""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allows deeper recursion within a context, for expressions with hundreds of terms and rules with hundreds of
    patterns.

    Raises:
        UsageError: The recursion is deeper still.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, MAX_RECURSION_DEPTH))
    try:
        yield
    except RecursionError as error:
        raise UsageError(
            "the program is too large: an expression nests too deeply, or a rule has too many patterns",
            hint="split it: bind parts of an expression to variables, derive intermediate facts by rules of their own",
        ) from error
    finally:
        sys.setrecursionlimit(limit)
