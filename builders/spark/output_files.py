"""Parquet files of records that tasks write themselves; the driver merges the outputs in them.

So Spark neither writes nor sorts outputs (docs/decisions/0043-one-job.md), and the driver buffers only a few rows of
each file, however many files there are.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from squall.builders.distributed.io.task_output import OUTPUT_ORDER
from squall.builders.spark.disk_errors import disk_errors

_OUTPUT_COLUMNS = ("start", "node", "row")
"""The columns of an output that the driver yields. Its position among other outputs is not one of them."""
ROWS_PER_GROUP = 10_000
"""The number of records in a row group, and in a batch that is read."""


def write(folder: Path, messages: pyarrow.Table, rows_per_group: int = ROWS_PER_GROUP) -> str:
    """Writes records into a new file of a folder, in row groups, and returns its name, which is unique.

    Raises:
        BuilderError: The file system refuses.
    """
    name = f"{uuid.uuid4().hex}.parquet"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(messages, folder / name, row_group_size=rows_per_group)
    return name


def merged(paths: Iterable[Path], rows_per_batch: int = ROWS_PER_GROUP) -> Iterator[tuple[int, int, str]]:
    """Yields (time, number of the sink node, row) of the outputs in files, merged into output order.

    Args:
        paths: the files.
        rows_per_batch: the outputs of each file that are in memory.
    """
    files = list(paths)
    if len(files) == 1:  # which is in order
        return _read(files[0], _OUTPUT_COLUMNS, rows_per_batch)
    return map(itemgetter(0, 1, -1), heapq.merge(*(_read(path, OUTPUT_ORDER, rows_per_batch) for path in files)))


def batches(
    path: Path, columns: Sequence[str] | None = None, rows_per_batch: int = ROWS_PER_GROUP
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the record batches of a file, a row group at a time.

    Args:
        path: the file.
        columns: the columns to read; None: all.
        rows_per_batch: the most records of a batch.
    """
    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(rows_per_batch, columns=columns)


def _read(path: Path, columns: Sequence[str], rows_per_batch: int) -> Iterator[tuple[Any, ...]]:
    for batch in batches(path, columns, rows_per_batch):
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
