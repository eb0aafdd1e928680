"""Parquet files of records that tasks write and read themselves, and the driver as well.

So Spark neither writes nor sorts outputs (docs/decisions/0043-one-job.md), and the driver buffers only a few rows of
each file, however many files there are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow
from pyarrow import parquet

from squall.builders.distributed.io.engine import Folder
from squall.builders.spark.disk_errors import disk_errors

ROWS_PER_GROUP = 10_000
"""The number of records in a row group, and in a batch that is read."""


def write(folder: Path, records: pyarrow.Table, rows_per_group: int = ROWS_PER_GROUP) -> str:
    """Writes records into a new file of a folder, in row groups, and returns its name, which is unique.

    Raises:
        BuilderError: The file system refuses.
    """
    name = f"{uuid.uuid4().hex}.parquet"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(records, folder / name, row_group_size=rows_per_group)
    return name


def read(root: Path, file: Folder, rows_per_batch: int = ROWS_PER_GROUP) -> Iterator[pyarrow.RecordBatch]:
    """Yields the record batches of a file under a root folder, a row group at a time.

    Args:
        root: the folder.
        file: the parts of the file's path in there.
        rows_per_batch: the most records of a batch.
    """
    with parquet.ParquetFile(Path(root, *map(str, file))) as records:
        yield from records.iter_batches(rows_per_batch)
