"""The memory of this process, and sizes of memory as text."""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from squall.errors import UsageError

_PREFIXES = "kMGT"
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<prefix>[kmgt])(?P<binary>i?)b", re.IGNORECASE)
_STATM = "/proc/self/statm"
_MEMORY_MAX = "/sys/fs/cgroup/memory.max"
_MAX_BYTES_OF_STATM = 128


class ResidentMemory:
    """The resident set size of this process: what it holds in main memory."""

    def __init__(self) -> None:
        self._file = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC) if os.path.exists(_STATM) else None
        self._page_size = resource.getpagesize()

    def bytes(self) -> int:
        """Returns the size in bytes. Where the system does not say it, that is the largest size so far."""
        if self._file is not None:
            return int(os.pread(self._file, _MAX_BYTES_OF_STATM, 0).split()[1]) * self._page_size
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)


def machine_memory() -> int:
    """Returns the main memory of this machine, or of its container if that may use less (cgroups v2), in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        return min(memory, int(Path(_MEMORY_MAX).read_text(encoding="ascii")))
    return memory


def release_memory() -> None:
    """Gives free memory back to the system, as far as the allocators can: what is in use lies between it."""
    import ctypes  # takes half a megabyte itself

    gc.collect()
    with suppress(AttributeError, OSError):  # only the C library of GNU has it
        ctypes.CDLL(None).malloc_trim(0)


def parse_size(text: str) -> int:
    """Returns the bytes that a text such as ``4GB``, ``1.5 GiB`` or ``500MB`` names.

    Raises:
        UsageError: It is no such text.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"`{text}` is no size of memory", hint="write a number with its unit: `500MB`, `4GB`, `4GiB`")
    base = 1024 if match["binary"] else 1000
    return int(float(match["number"]) * base ** (_PREFIXES.lower().index(match["prefix"].lower()) + 1))


def size_text(size: int) -> str:
    """Returns a number of bytes as text, with three digits: ``1.05 GB``."""
    value, unit = float(size), "B"
    for prefix in _PREFIXES:
        if value < 1000:
            break
        value, unit = value / 1000, f"{prefix}B"
    return f"{value:.3g} {unit}"
