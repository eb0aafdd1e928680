"""The process that Spark forks its Python workers from, in a session of our own: one that is ready soon.

Spark has workers import PySpark out of the zip file that comes with it, so that each process compiles it anew. Where
the same PySpark lies beside it as files, these are taken. What squall's workers need is imported before they are
forked, as far as it starts no thread, which PyArrow does. (This module is not in the package `squall.builders.spark`,
which loads all that a driver needs.)
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path


def without_archives(path: list[str]) -> list[str]:
    """The places to import from, without those zip files whose contents another one of them has as files."""
    return [entry for entry in path if not (entry.endswith(".zip") and str(_above(entry)) in path)]


def _above(archive: str) -> Path | None:
    """The folder that holds the PySpark that a zip file belongs to: pyspark/python/lib/pyspark.zip."""
    *_, folder = Path(archive).parents[:3]
    return folder.parent if folder.name == "pyspark" and (folder / "__init__.py").exists() else None


sys.path[:] = without_archives(sys.path)

from pyspark.daemon import manager  # noqa: E402

import squall.builders.runtime.dataflow  # noqa: E402
import squall.builders.runtime.serde  # noqa: E402
import squall.streams.formats.reading  # noqa: E402, F401
from squall.process.gc_tuning import calm_collector  # noqa: E402

if __name__ == "__main__":
    calm_collector()
    gc.freeze()  # what all workers have in common is not looked through in each of them
    manager()
