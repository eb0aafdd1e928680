"""The folder in which a Spark job keeps what must outlive it, through Hadoop's file systems; all workers must reach it.

meta.json               what the folder belongs to: the plan, the number of buckets
begin.json              what functions of time take for the time of what always holds (integer ms)
spark/                  Structured Streaming's own checkpoint: offsets and commits
spool/                  events that Spark cannot read by itself, as files that it can
runs/<n>/<step>/        batch n: the messages of each step, by kind and level (Parquet)
base/<n>/               the state after batch n, compacted
marks/<n>.json          the lengths of the sink and the ledger file before batch n
commits/<n>.json        batch n is done
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol


class Files(Protocol):
    """Files by paths: what a `Store` can do."""

    def exists(self, *parts: object) -> bool: ...
    def names(self, *parts: object) -> list[str]: ...
    def numbers(self, *parts: object) -> list[int]: ...
    def delete(self, *parts: object) -> None: ...
    def rename(self, old: Sequence[object], new: Sequence[object]) -> None: ...
    def write(self, value: object, *parts: object) -> None: ...
    def read(self, *parts: object) -> Any: ...


class Store:
    """Files by paths relative to a root. Small files are written beside their place and renamed, so that they are
    whole."""

    def __init__(self, jvm: Any, configuration: Any, root: str) -> None:
        self.jvm = jvm
        self.root = root.rstrip("/")
        path = jvm.org.apache.hadoop.fs.Path(self.root)
        self.files = path.getFileSystem(configuration)
        self.files.mkdirs(path)

    def uri(self, *parts: object) -> str:
        """The whole path of something in the folder."""
        return "/".join([self.root, *map(str, parts)])

    def _path(self, *parts: object) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(self.uri(*parts))

    def exists(self, *parts: object) -> bool:
        return bool(self.files.exists(self._path(*parts)))

    def names(self, *parts: object) -> list[str]:
        """The names in a folder, sorted; none if it is not there."""
        if not self.exists(*parts):
            return []
        return sorted(str(found.getPath().getName()) for found in self.files.listStatus(self._path(*parts)))

    def numbers(self, *parts: object) -> list[int]:
        """The numbers that the names in a folder begin with, ascending."""
        found = (name.partition(".")[0] for name in self.names(*parts))
        return sorted(int(name) for name in found if name.isdigit())

    def delete(self, *parts: object) -> None:
        self.files.delete(self._path(*parts), True)

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        """Gives a folder its final name, in one go; what had that name before is gone."""
        self.delete(*new)
        self.files.rename(self._path(*old), self._path(*new))

    def write(self, value: object, *parts: object) -> None:
        """Writes a value as JSON, all or nothing."""
        folder, name = parts[:-1], parts[-1]
        draft = (*folder, f"_{name}")
        stream = self.files.create(self._path(*draft), True)
        stream.write(bytearray(json.dumps(value).encode()))
        stream.close()
        self.files.delete(self._path(*parts), False)
        self.files.rename(self._path(*draft), self._path(*parts))

    def read(self, *parts: object) -> Any:
        """The value of a JSON file, or None if it is not there."""
        if not self.exists(*parts):
            return None
        path = self._path(*parts)
        length = self.files.getFileStatus(path).getLen()
        stream = self.files.open(path)
        try:
            return json.loads(bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(stream, length)))
        finally:
            stream.close()
