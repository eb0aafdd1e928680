"""How much of a source is read and parsed at a time, and how long a unit of it may be."""

from __future__ import annotations

from dataclasses import dataclass

from squall.streams.formats import MAX_UNIT_BYTES


@dataclass(frozen=True)
class ReadLimits:
    """The limits of reading. The statements of well-formed input do not depend on them, up to the longest unit.

    Attributes:
        chunk_bytes: The number of bytes that are read at a time. The objects parsed from them should fit the
            processor's caches.
        statements_per_block: The number of statements of a complete document that are output at a time.
        max_unit_bytes: The most bytes of a message of a log, or of a frame of Jelly.
        min_bytes_for_process: The number of bytes still to read from which on a process of its own is worth its cost
            (`squall.streams.sources.reader_process`).
        process_start_timeout: The seconds to wait, after each block, for that process to have started.
    """

    chunk_bytes: int = 1 << 17
    statements_per_block: int = 10_000
    max_unit_bytes: int = MAX_UNIT_BYTES
    min_bytes_for_process: int = 1 << 26
    process_start_timeout: float = 0.0


DEFAULT_LIMITS = ReadLimits()
