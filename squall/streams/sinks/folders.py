"""Sinks that are folders: a builder that runs elsewhere writes its batches there by itself, as files of a format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from squall.contracts import Output
from squall.errors import SinkError

COLUMNS = ("parquet", "json", "csv")
"""The formats that have a column for each variable."""


class FolderSink:
    """See `squall.contracts.Folder`."""

    def __init__(self, uri: str, path: Path, format: str, types: Mapping[str, str] | None = None) -> None:
        self.uri = uri
        self.path = path
        self.format = format
        self.types = types
        self.written = 0

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Nothing is to be opened."""

    def write(self, output: Output) -> None:
        """Raises SinkError: what is handed on one by one is written to a file."""
        raise SinkError(
            f"`{self.uri}` is a folder, which this builder does not write", hint="name a file, or use `--builder spark`"
        )

    def close(self) -> None:
        """Nothing is open."""
