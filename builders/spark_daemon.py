"""The daemon process that forks Spark's Python workers, in a session of our own: it makes them start faster.

Spark has workers import PySpark from the zip file that comes with it, so that each process compiles it anew. If the
same PySpark is installed beside it as files, the daemon uses these. It imports what squall's workers need before it
forks them, except what starts threads, as PyArrow does. (This module is not in the package `squall.builders.spark`,
which loads everything that a driver needs.)
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO


def without_archives(path: list[str]) -> list[str]:
    """Removes from an import path the zip files whose contents another entry has as files."""
    return [entry for entry in path if not (entry.endswith(".zip") and str(_above(entry)) in path)]


def _above(archive: str) -> Path | None:
    """Returns the folder that holds the PySpark to which a zip file belongs: pyspark/python/lib/pyspark.zip."""
    *_, folder = Path(archive).parents[:3]
    return folder.parent if folder.name == "pyspark" and (folder / "__init__.py").exists() else None


sys.path[:] = without_archives(sys.path)

from pyspark import daemon  # noqa: E402

import squall.builders.runtime.dataflow  # noqa: E402
import squall.builders.runtime.serde  # noqa: E402
import squall.streams.formats.reading  # noqa: E402, F401
from squall.process.gc_tuning import calm_collector  # noqa: E402

Main = Callable[[BinaryIO, BinaryIO], None]
"""The function of a worker, which reads its task from one file and writes the result to another."""


def ending_with_java(main: Main, exit_process: Callable[[int], object] = os._exit) -> Main:
    """Returns the function of a worker that ends its process silently if Java has closed the connection.

    Java does so when a run is stopped in the middle of a task. The daemon of Spark would write a traceback.
    """

    def run(infile: BinaryIO, outfile: BinaryIO) -> None:
        try:
            main(infile, outfile)
        finally:
            try:
                outfile.flush()
            except ConnectionError:
                exit_process(0)

    return run


def with_silent_end(worker: Callable[..., int]) -> Callable[..., int]:
    """Returns the daemon's function for a forked worker, whose module is imported only after the fork."""

    def run(*arguments: Any) -> int:
        _end_silently(next((name for name in sys.argv[1:2] if name.startswith("pyspark")), "pyspark.worker"))
        return worker(*arguments)

    return run


@cache
def _end_silently(name: str) -> None:
    """Changes the `main` of a module of workers, once in each process."""
    module: Any = importlib.import_module(name)
    module.main = ending_with_java(module.main)


if __name__ == "__main__":
    daemon.worker = with_silent_end(daemon.worker)
    calm_collector()
    gc.freeze()  # what all workers have in common is not looked through in each of them
    daemon.manager()
