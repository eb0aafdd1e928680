"""The daemon process that forks Spark's Python workers, in a session of our own: it makes them start faster.

Spark has workers import PySpark from the zip file that comes with it, so that each process compiles it anew. It also
puts a Java archive on their import path, whose directory each task reads again. If the same PySpark is installed beside
them as files, the daemon uses these. It imports what squall's workers need before it forks them, except what starts
threads, as PyArrow does. (This module is not in the package `squall.builders.spark`, which loads all that a driver
needs.)
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO


def archives(path: Sequence[str]) -> list[str]:
    """Returns the archives of an import path whose Python modules another entry has as files."""
    return [entry for entry in path if entry.endswith((".zip", ".jar")) and str(_above(entry)) in path]


def _above(archive: str) -> Path | None:
    """Returns the folder that holds the PySpark to which an archive belongs: pyspark/python/lib/pyspark.zip, or
    pyspark/jars/spark-core.jar.
    """
    folders = (folder for folder in Path(archive).parents[:3] if (folder / "__init__.py").exists())
    return next((folder.parent for folder in folders if folder.name == "pyspark"), None)


def forget(entries: Sequence[str]) -> None:
    """Removes entries from the import path, with the importers that read them and the packages that have been found
    there.

    An importer of an archive reads its whole directory whenever caches are invalidated, which a worker does for each
    task.
    """
    sys.path[:] = [entry for entry in sys.path if entry not in entries]
    for name, module in list(sys.modules.items()):
        places = list(getattr(module, "__path__", ()))
        if places and all(place.startswith(tuple(entries)) for place in places):
            del sys.modules[name]
    for place in [place for place in sys.path_importer_cache if place.startswith(tuple(entries))]:
        del sys.path_importer_cache[place]


forget(archives(sys.path))

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
