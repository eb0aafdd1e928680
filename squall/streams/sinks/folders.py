"""Folders as sinks: a distributed builder itself writes its batches into them, as files of a format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from squall.contracts import Output
from squall.errors import SinkError

COLUMNS = ("parquet", "json", "csv")
"""The formats with a column for each variable."""


class FolderSink:
    """A folder as a sink (`squall.contracts.Folder`)."""

    def __init__(self, uri: str, path: Path, format: str, types: Mapping[str, str] | None = None) -> None:
        self.uri = uri
        self.path = path
        self.format = format
        self.types = types
        self.written = 0

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Does nothing."""

    def write(self, output: Output) -> None:
        """Raises SinkError: this builder does not write folders."""
        raise SinkError(
            f"`{self.uri}` is a folder, which this builder does not write", hint="name a file, or use `--builder spark`"
        )

    def close(self) -> None:
        """Does nothing."""
