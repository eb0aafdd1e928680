"""Numbers and long texts in messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Returns a count with its noun, as in ``1 output`` or ``2,000 outputs``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def shortened(text: str) -> str:
    """Returns the beginning of a long text, or the text itself."""
    return text if len(text) < 80 else f"{text[:77]}..."
