"""The error of a checkpoint folder that cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from squall.errors import BuilderError


@contextmanager
def disk_errors(folder: Path | str) -> Iterator[None]:
    """Raises BuilderError if the file system refuses what is written into a folder within the context."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise BuilderError(f"the checkpoint cannot be saved in `{folder}`: {reason}") from error
