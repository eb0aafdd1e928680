"""Files of messages: what tasks leave behind, and what a batch has to tell, which the driver merges out of them.

So Spark neither writes nor puts in order (docs/decisions/0043-one-job.md), and the driver holds a few rows of each
file, however many there are.
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

from squall.builders.distributed.io.task_output import ORDER

_TOLD = ("start", "node", "row")
"""What is told of an answer: where it comes among others is not."""
_GROUP = 10_000
"""How many messages are read at a time."""


def write(folder: Path, messages: pyarrow.Table) -> str:
    """Writes a file of messages into a folder: its name, which no other one has."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{uuid.uuid4().hex}.parquet"
    parquet.write_table(messages, folder / name, row_group_size=_GROUP)
    return name


def merged(paths: Iterable[Path]) -> Iterator[tuple[int, int, str]]:
    """(time, number of the operation node, row) of the answers in files, in the order in which they are told."""
    files = list(paths)
    if len(files) == 1:  # which is in order
        return _read(files[0], _TOLD)
    return map(itemgetter(0, 1, -1), heapq.merge(*(_read(path, ORDER) for path in files)))


def batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
    """What is in such a file, some at a time. columns: those that are wanted, if not all are."""
    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(_GROUP, columns=columns)


def _read(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for batch in batches(path, columns):
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
