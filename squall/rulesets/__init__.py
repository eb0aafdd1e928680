"""Rule sets that come with squall, by name, as files in squall's own languages."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from squall.errors import UsageError, near

_FOLDER = files(__name__)


def names() -> tuple[str, ...]:
    """The names of the rule sets, in alphabetical order."""
    found = (Path(entry.name) for entry in _FOLDER.iterdir())
    return tuple(sorted(file.stem for file in found if file.suffix == ".jena"))


def path(name: str) -> Path:
    """The file of a rule set, as a program to give to `squall.compile` or ``squall build``.

    Raises UsageError where there is none of that name.
    """
    if name not in names():
        raise UsageError(f"there is no rule set `{name}`", hint=near(name, names()) or f"there is {', '.join(names())}")
    with as_file(_FOLDER / f"{name}.jena") as file:  # squall is never imported from a zip file: the file stays
        return file
