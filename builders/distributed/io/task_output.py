"""Task output: files that tasks write themselves and report by name to the driver.

So no job of the engine's own writes or sorts anything. Each attempt of a task writes under names that nobody else uses.
Only files that are reported count, so those of attempts that fail later, or come second, have no effect.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

import pyarrow
from pyarrow import compute

from squall.builders.distributed.io.engine import Files, Folder, Read, Write
from squall.builders.distributed.io.records import ARROW, ROW, STORED, OutputFile, RecordFile, WorkerStep, to_arrow
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.rdf import FOREVER

_OUTPUTS = ROW, OUTPUT_STAGE
"""The type and stage of outputs."""
OUTPUT_ORDER = ("start", "node", "spans", "row")
"""The columns by which outputs are ordered."""
FILE_LIST = "files.json"
"""The file that lists the valid files of its folder."""
MAX_ROWS_PER_FILE = 500_000
"""A task writes a file when it has so many rows, and so holds no more."""
_OUTPUT_COLUMNS = ("start", "node", "row")
"""The columns of an output that the driver yields. Its position among other outputs is not one of them."""
RecordGroup = tuple[str, int]
"""A record type and a stage."""


def with_output_files(step: WorkerStep, write: Write, max_rows: int = MAX_ROWS_PER_FILE) -> WorkerStep:
    """Returns the step, which writes its outputs to files, each in order, and reports their names. max_rows: it writes
    a file when it has so many."""
    return _with_files(step, lambda type, stage: (type, stage) == _OUTPUTS, partial(_output_file, write), max_rows)


def with_record_files(step: WorkerStep, files: Files, folder: Folder) -> WorkerStep:
    """Returns the step, which writes the records that are to be stored to files of a folder, by type and stage, and
    reports these."""
    writers = {type: files.writer((*folder, type)) for type in STORED}
    return _with_files(step, lambda type, stage: type in writers, partial(_record_file, writers))


def over_files(step: WorkerStep, read: Read, files: Sequence[Folder]) -> WorkerStep:
    """Returns the step, applied to the records in files of the store."""

    def of_files(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from step(chain.from_iterable(map(read, files)))

    of_files.__name__ = step.__name__
    return of_files


def _with_files(
    step: WorkerStep,
    is_stored: Callable[[str, int], bool],
    write_file: Callable[[RecordGroup, pyarrow.Table], OutputFile | RecordFile],
    max_rows: int = MAX_ROWS_PER_FILE,
) -> WorkerStep:
    """Returns the step, with one record in place of those that it writes to a file."""

    def with_files(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        unwritten: dict[RecordGroup, list[pyarrow.RecordBatch]] = {}
        sizes: dict[RecordGroup, int] = {}
        for batch in step(batches):
            for group, part in _by_group(batch):
                if not is_stored(*group):
                    yield part
                    continue
                unwritten.setdefault(group, []).append(part)
                sizes[group] = sizes.get(group, 0) + compute.sum(part["many"]).as_py()
                if sizes[group] >= max_rows:
                    yield from to_arrow([write_file(group, _table(unwritten.pop(group)))])
                    del sizes[group]
        yield from to_arrow(write_file(group, _table(parts)) for group, parts in unwritten.items())

    with_files.__name__ = step.__name__
    return with_files


def _by_group(batch: pyarrow.RecordBatch) -> Iterator[tuple[RecordGroup, pyarrow.RecordBatch]]:
    groups = dict.fromkeys(zip(batch["kind"].to_pylist(), batch["level"].to_pylist(), strict=True))
    for type, stage in groups:
        is_member = compute.and_(compute.equal(batch["kind"], type), compute.equal(batch["level"], stage))
        yield (type, stage), batch if len(groups) == 1 else batch.filter(is_member)


def _table(batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.Table:
    return pyarrow.Table.from_batches(batches, ARROW)


def _output_file(write: Write, _: RecordGroup, outputs: pyarrow.Table) -> OutputFile:
    return OutputFile(write(outputs.sort_by([(column, "ascending") for column in OUTPUT_ORDER])))


def _record_file(writers: Mapping[str, Write], group: RecordGroup, records: pyarrow.Table) -> RecordFile:
    type, stage = group
    ends = compute.filter(records["end"], compute.less(records["end"], FOREVER))
    end = FOREVER if len(ends) == 0 else compute.max(ends).as_py()
    start, rows = compute.max(records["start"]).as_py(), compute.sum(records["many"]).as_py()
    return RecordFile(f"{type} {writers[type](records)}", stage, rows, start, end)


# What the driver reads


def read_outputs(read: Read, files: Sequence[Folder]) -> Iterator[tuple[int, int, str]]:
    """Yields (time, number of the sink node, row) of the outputs in files, merged into their order. Of each file one
    batch is in memory."""
    if len(files) == 1:  # which is in order
        return _rows(read(files[0]), _OUTPUT_COLUMNS)
    return map(itemgetter(0, 1, -1), heapq.merge(*(_rows(read(file), OUTPUT_ORDER) for file in files)))


def _rows(batches: Iterable[pyarrow.RecordBatch], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


# The files that count of a folder


def write_file_list(store: Files, folder: Folder, files: Iterable[RecordFile]) -> None:
    """Writes the list of a folder's files: type, stage and name of each."""
    store.write([(file.type, file.stage, file.name) for file in files], *folder, FILE_LIST)


def read_file_list(store: Files, folder: Folder) -> list[tuple[str, int, str]]:
    """Returns the list of a folder's files."""
    return [(type, stage, name) for type, stage, name in store.read(*folder, FILE_LIST) or ()]


def files_of(store: Files, folders: Iterable[Folder], types: Collection[str], stages: Collection[int]) -> list[Folder]:
    """Returns the files of some folders that hold records of some types and stages."""
    return [
        (*folder, type, name)
        for folder in folders
        for type, stage, name in read_file_list(store, folder)
        if type in types and stage in stages
    ]
