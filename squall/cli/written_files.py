"""The files that ``squall run`` writes: opening one empties it, so none may be one that the run reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from squall.errors import UsageError


def check_written_files(written: Mapping[str, str | Path | None], read: Mapping[str, Iterable[str | Path]]) -> None:
    """Checks that each file that is written is no file that is read, in no folder that is read, and written once.

    Args:
        written: The path or address of each file that is written, by what it is (``the sink``). None: there is none.
        read: The paths or addresses of what is read, by what they are (``a source``).

    Raises:
        UsageError: A file is both.
    """
    inputs = [(role, path) for role, places in read.items() for place in places if (path := _path(place))]
    outputs: list[tuple[str, Path]] = []
    for role, place in written.items():
        path = None if place is None else _path(place)
        if path is None or _is_device(path):
            continue
        for other_role, other in (*inputs, *outputs):
            if _is_same(path, other):
                raise UsageError(f"`{place}` is {other_role} as well as {role}")
        for other_role, other in inputs:
            if os.path.isdir(other) and _is_same(path.parent, other):
                raise UsageError(f"`{place}` is {role}, in a folder that is {other_role}")
        outputs.append((role, path))


def _path(place: str | Path) -> Path | None:
    """Returns the path of a file or folder; None for what is none, such as the address of a broker."""
    from squall.streams import address

    if isinstance(place, Path):
        return place
    parsed = address.source(place)
    return Path(parsed.path) if parsed.scheme == "file" else None


# The functions of `os.path` answer False for a name that is too long; the methods of a path raise OSError for it.


def _is_device(path: Path) -> bool:
    """Returns whether something is at a path that is neither file nor folder: a device or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _is_same(first: Path, second: Path) -> bool:
    """Returns whether two paths name one file, which need not exist yet."""
    if os.path.exists(first) and os.path.exists(second):
        return first.samefile(second)
    return first.name == second.name and os.path.isdir(first.parent) and _is_same(first.parent, second.parent)
