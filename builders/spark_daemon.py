"""The daemon process that forks Spark's Python workers, in a session of our own: it makes them start faster.

Spark has workers import PySpark from the zip file that comes with it, so that each process compiles it anew. If the
same PySpark is installed beside it as files, the daemon uses these. It imports what squall's workers need before it
forks them, except what starts threads, as PyArrow does. (This module is not in the package `squall.builders.spark`,
which loads everything that a driver needs.)
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path


def without_archives(path: list[str]) -> list[str]:
    """Removes from an import path the zip files whose contents another entry has as files."""
    return [entry for entry in path if not (entry.endswith(".zip") and str(_above(entry)) in path)]


def _above(archive: str) -> Path | None:
    """Returns the folder that holds the PySpark to which a zip file belongs: pyspark/python/lib/pyspark.zip."""
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
