"""Task output: files that tasks write themselves and report by name to the driver.

So no job of the engine's own writes or sorts anything. Each attempt of a task writes under names that nobody else uses.
Only files that are reported count, so those of attempts that fail later, or come second, have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import pyarrow
from pyarrow import compute

from squall.builders.distributed.io.engine import Files, Folder, Read
from squall.builders.distributed.io.records import (
    ARROW,
    ROW,
    STORED,
    OutputFile,
    RecordFile,
    WorkerStep,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.rdf import FOREVER

OUTPUT_ORDER = ("start", "node", "spans", "row")
"""The columns by which outputs are ordered."""
FILE_LIST = "files.json"
"""The file that lists the valid files of its folder."""
MAX_ROWS_PER_FILE = 500_000
"""A task writes a file when it has so many rows, and so holds no more."""
RecordGroup = tuple[str, int]
"""A record type and a stage."""
WriteFile = Callable[[RecordGroup, pyarrow.Table], str]
"""Writes the records of a group to a file, and returns its name."""


def with_output_files(step: WorkerStep, write_file: WriteFile, max_rows: int = MAX_ROWS_PER_FILE) -> WorkerStep:
    """Returns the step, which writes its outputs to files, each in order. max_rows: it writes a file when it has so
    many."""
    return _with_files(
        step,
        lambda kind, level: kind == ROW and level == OUTPUT_STAGE,
        partial(_output_file_record, write_file),
        max_rows,
    )


def with_record_files(step: WorkerStep, write_file: WriteFile) -> WorkerStep:
    """Returns the step, which writes the records that are to be stored to files, by type and stage."""
    return _with_files(step, lambda kind, level: kind in STORED, partial(_record_file_record, write_file))


def over_files(step: WorkerStep, read: Read, paths: Sequence[Folder]) -> WorkerStep:
    """Returns the step, applied to the records in files of the store."""

    def of_files(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from step(chain.from_iterable(read(file, None) for file in paths))

    of_files.__name__ = step.__name__
    return of_files


def _with_files(
    step: WorkerStep,
    is_left: Callable[[str, int], bool],
    leave: Callable[[RecordGroup, pyarrow.Table], OutputFile | RecordFile],
    max_rows: int = MAX_ROWS_PER_FILE,
) -> WorkerStep:
    """Returns the step, with one record in place of those that it writes to a file."""

    def left(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        boxes: dict[RecordGroup, list[pyarrow.RecordBatch]] = {}
        sizes: dict[RecordGroup, int] = {}
        for batch in step(batches):
            for place, part in _by_group(batch):
                if not is_left(*place):
                    yield part
                    continue
                boxes.setdefault(place, []).append(part)
                sizes[place] = sizes.get(place, 0) + compute.sum(part["many"]).as_py()
                if sizes[place] >= max_rows:
                    yield from to_arrow([leave(place, _table(boxes.pop(place)))])
                    del sizes[place]
        yield from to_arrow(leave(place, _table(box)) for place, box in boxes.items())

    left.__name__ = step.__name__
    return left


def _by_group(batch: pyarrow.RecordBatch) -> Iterator[tuple[RecordGroup, pyarrow.RecordBatch]]:
    places = dict.fromkeys(zip(batch["kind"].to_pylist(), batch["level"].to_pylist(), strict=True))
    for kind, level in places:
        mine = compute.and_(compute.equal(batch["kind"], kind), compute.equal(batch["level"], level))
        yield (kind, level), batch if len(places) == 1 else batch.filter(mine)


def _table(batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.Table:
    return pyarrow.Table.from_batches(batches, ARROW)


def _output_file_record(write_file: WriteFile, place: RecordGroup, answers: pyarrow.Table) -> OutputFile:
    name = write_file(place, answers.sort_by([(column, "ascending") for column in OUTPUT_ORDER]))
    return OutputFile(name)


def _record_file_record(write_file: WriteFile, place: RecordGroup, records: pyarrow.Table) -> RecordFile:
    type, stage = place
    ends = compute.filter(records["end"], compute.less(records["end"], FOREVER))
    end = FOREVER if len(ends) == 0 else compute.max(ends).as_py()
    start, rows = compute.max(records["start"]).as_py(), compute.sum(records["many"]).as_py()
    return RecordFile(f"{type} {write_file(place, records)}", stage, rows, start, end)


# What counts of a folder


def write_file_list(store: Files, folder: Folder, files: Iterable[RecordFile]) -> None:
    """Writes the list of a folder's files: type, stage and name of each."""
    store.write([(file.type, file.stage, file.name) for file in files], *folder, FILE_LIST)


def read_file_list(store: Files, folder: Folder) -> list[tuple[str, int, str]]:
    """Returns the list of a folder's files."""
    return [(kind, level, name) for kind, level, name in store.read(*folder, FILE_LIST) or ()]


def files_of(store: Files, kind: str, level: int, folders: Iterable[Folder]) -> list[Folder]:
    """Returns the files of some folders that hold records of one type and stage."""
    place = kind, level
    return [
        (*folder, kind, name) for folder in folders for *of, name in read_file_list(store, folder) if tuple(of) == place
    ]
