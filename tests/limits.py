"""Opens sources with limits of reading, such as very small blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from squall.contracts import DeadLetterLedger
from squall.streams import Source, open_source
from squall.streams.formats.limits import ReadLimits


def open_limited(uri: str, limits: ReadLimits, ledger: DeadLetterLedger | None = None, lateness: int = 0) -> Source:
    """Opens a source of bytes that reads within some limits."""
    source = open_source(uri, ledger, lateness)
    reader: Any = source
    while not hasattr(reader, "settings"):  # it repairs the order, or takes times from properties
        reader = reader.source
    reader.settings = replace(reader.settings, limits=limits)
    return source
