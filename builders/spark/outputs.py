"""What a batch has to tell, on its way to the driver: files that the tasks write in order, and that the driver merges.

So no Spark job puts outputs in order, and the driver holds a few rows of each file, however many there are.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import pyarrow
from pyarrow import compute, parquet

from squall.builders.distributed.addressing import DELIVER
from squall.builders.distributed.messages import ANSWERS, ARROW, ROW, Message, Step, to_arrow

ORDER = ("start", "node", "bucket", "weight", "row")
"""The columns by which answers are told, one after the other."""
_GROUP = 10_000
"""How many answers are read at a time."""
_MOST = 500_000
"""So many answers of a task are a file: it holds no more of them."""


def answering(step: Step, folder: Path) -> Step:
    """The step, its answers in files of the folder, which messages name in their place. What an attempt has written
    that fails later, or comes second, is named by nobody."""

    def answered(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        answers: list[pyarrow.RecordBatch] = []
        count = 0
        for batch in step(batches):
            mine = compute.and_(compute.equal(batch["kind"], ROW), compute.equal(batch["level"], DELIVER))
            if mine.true_count:
                answers.append(batch.filter(mine))
                count += mine.true_count
            if mine.false_count:
                yield batch.filter(compute.invert(mine))
            if count >= _MOST:
                yield from _named(answers, folder)
                answers, count = [], 0
        if answers:
            yield from _named(answers, folder)

    answered.__name__ = step.__name__
    return answered


def _named(answers: list[pyarrow.RecordBatch], folder: Path) -> Iterator[pyarrow.RecordBatch]:
    """Writes answers into a file, in order: the message that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{uuid.uuid4().hex}.parquet"
    ordered = pyarrow.Table.from_batches(answers, ARROW).sort_by([(column, "ascending") for column in ORDER])
    parquet.write_table(ordered, folder / name, row_group_size=_GROUP)
    yield from to_arrow([Message(ANSWERS, 0, 0, 0, 0, name, 0, 0, 0)])


def merged(paths: Iterable[Path]) -> Iterator[tuple[int, int, str]]:
    """(time, number of the operation node, row) of the answers in files, in the order in which they are told."""
    return map(itemgetter(0, 1, -1), heapq.merge(*map(_read, paths)))


def _read(path: Path) -> Iterator[tuple[int, int, int, int, str]]:
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(_GROUP, columns=ORDER):
            yield from zip(*(batch.column(name).to_pylist() for name in ORDER), strict=True)
