"""Time limits of functions, since patterns in untrusted programs may take exponential time."""

from __future__ import annotations

from squall.errors import BuilderError

REGEX_SECONDS = 5.0
"""The time that one match of a regular expression may take, in seconds."""


def too_slow(pattern: str, text: str, seconds: float) -> BuilderError:
    """Returns the error that ends a run if a match takes longer. A result would depend on the machine."""
    return BuilderError(
        f"the regular expression `{pattern}` took more than {seconds:g} s on {text[:80]}",
        hint="nested repetitions such as `(a+)+` take exponential time: write it without, or with possessive `++`",
    )
