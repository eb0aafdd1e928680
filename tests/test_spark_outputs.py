"""The outputs of tasks on Spark, which the driver reads from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pytest

from squall.builders.distributed.io import task_output
from squall.builders.distributed.io.engine import Folder, TaskReport
from squall.builders.distributed.io.records import (
    OUTPUT_FILE,
    ROW,
    STATE,
    WATERMARK,
    Answer,
    EventTimes,
    Instant,
    NodeOutput,
    OrderedFact,
    OutputFile,
    Record,
    RecordFile,
    Report,
    SourceCount,
    StateHandle,
    Watermark,
    WorkerStep,
    decode,
    encode,
    from_arrow,
    to_arrow,
)
from squall.builders.distributed.plan.buckets import OUTPUT_STAGE
from squall.builders.spark import output_files
from squall.rdf import ALWAYS, FOREVER
from tests.in_memory import MemoryFiles

PLACES = [place.encode() for place in ("", "?x", "?x\x1fa", "?x\x1f\uffff", "?x\x1f\U00010000")]


def answers(count: int, seed: int) -> list[Record]:
    draw = Random(seed)
    row = Record(ROW, OUTPUT_STAGE, 0, 0, 0, "", 0, FOREVER, 0)
    return [
        row._replace(node=draw.randrange(3), row=f"r{number}", start=time, spans=draw.choice(PLACES))
        for number, time in ((number, draw.randrange(count // 3)) for number in range(count))
    ]


def run_task(
    step: WorkerStep,
    folder: Path,
    max_rows: int = task_output.MAX_ROWS_PER_FILE,
    rows_per_group: int = output_files.ROWS_PER_GROUP,
) -> list[Record]:
    """Returns the records that a task without input outputs."""
    write = partial(output_files.write, folder, rows_per_group=rows_per_group)
    answering = task_output.with_output_files(step, write, max_rows)
    return list(from_arrow(answering(iter(()))))


def merged(folder: Path, names: Sequence[str]) -> list[tuple[int, int, str]]:
    return list(task_output.read_outputs(partial(output_files.read, folder), [(name,) for name in names]))


def of(*messages: Record) -> WorkerStep:
    def step(_: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for first in range(0, len(messages), 7):
            yield from to_arrow(messages[first : first + 7])

    return step


@pytest.mark.parametrize("count", [1, 3])
def test_answers_of_several_tasks_come_in_order(count: int, tmp_path: Path) -> None:
    """The answers of a single task come in order, too."""
    tasks = [answers(50, seed) for seed in range(count)]
    names = [message.row for task in tasks for message in run_task(of(*task), tmp_path / "outputs")]
    ordered = sorted(chain(*tasks), key=lambda item: (item.start, item.node, item.spans, item.row))
    results = merged(tmp_path / "outputs", names)
    assert results == [(item.start, item.node, item.row) for item in ordered]


def test_a_task_holds_no_more_than_so_many(tmp_path: Path) -> None:
    """The task then writes several files, each in order."""
    task = answers(50, seed=1)
    names = [message.row for message in run_task(of(*task), tmp_path, max_rows=20)]
    assert [len(merged(tmp_path, [name])) for name in names] == [21, 21, 8]
    ordered = sorted(task, key=lambda item: (item.start, item.node, item.spans, item.row))
    assert merged(tmp_path, names) == [(item.start, item.node, item.row) for item in ordered]


def test_other_records_pass_through(tmp_path: Path) -> None:
    state = Record(STATE, OUTPUT_STAGE, 1, 2, 3, "kept", 0, FOREVER, 1)
    row = Record(ROW, 4, 1, 2, 3, "row", 0, FOREVER, 1)
    (answer,) = answers(3, seed=0)[:1]
    *outputs, name = run_task(of(state, answer, row), tmp_path)
    assert outputs == [state, row]
    assert name.type == OUTPUT_FILE
    assert [path.name for path in tmp_path.iterdir()] == [name.row]
    assert run_task(of(state, row), tmp_path / "none") == [state, row]
    assert not (tmp_path / "none").exists()


def test_stored_records_are_in_files_by_type_and_stage() -> None:
    """The records that name the files say what is in them; all others are passed on."""
    rows = [Record(ROW, level, 1, 2, 0, "row", time, time + 5, 1, 3) for level in (1, 2) for time in (4, 7)]
    state = Record(STATE, 1, 1, 2, 0, "kept", 9, FOREVER, 1, 2)
    time = Record(WATERMARK, 0, 0, 0, 0, "", 8, ALWAYS, 0)
    store = MemoryFiles()
    put = task_output.with_record_files(of(*rows, time, state), store, ("step",))
    first, *files = list(from_arrow(put(iter(()))))
    assert first == time
    outputs = TaskReport.of([first, *files])
    assert (outputs.latest_time, outputs.row_count, outputs.latest_start, outputs.latest_end, outputs.state_rows) == (
        8,
        12,
        7,
        12,
        2,
    )
    stored = {(file.type, file.stage): store.read("step", file.type, file.name) for file in outputs.all(RecordFile)}
    assert stored == {(ROW, 1): rows[:2], (ROW, 2): rows[2:], (STATE, 1): [state]}


def test_unlisted_files_are_ignored() -> None:
    store = MemoryFiles()
    files = [RecordFile(f"{ROW} a", 1, 1), RecordFile(f"{STATE} b", 1, 1), RecordFile(f"{ROW} c", 2, 1)]
    task_output.write_file_list(store, ("runs", 0, "0000"), files)
    store.write([], "runs", 0, "0000", ROW, "of an attempt that failed")
    assert task_output.files_of(store, [("runs", 0, "0000"), ("runs", 1, "0000")], [ROW], [1]) == [
        ("runs", 0, "0000", ROW, "a")
    ]


def test_a_second_attempt_answers_under_another_name(tmp_path: Path) -> None:
    task = answers(10, seed=0)
    (first,), (second,) = (run_task(of(*task), tmp_path) for _ in range(2))
    assert first.row != second.row
    assert len(merged(tmp_path, [second.row])) == 10


def test_the_driver_holds_a_few_answers_of_each_file(tmp_path: Path) -> None:
    tasks = [of(*answers(100, seed)) for seed in range(3)]
    names = [message.row for task in tasks for message in run_task(task, tmp_path, rows_per_group=5)]
    before = pyarrow.total_allocated_bytes()
    rows_read = 0

    def counted(file: Folder) -> Iterator[pyarrow.RecordBatch]:
        nonlocal rows_read
        for batch in output_files.read(tmp_path, file, rows_per_batch=5):
            rows_read += len(batch)
            yield batch

    value = task_output.read_outputs(counted, [(name,) for name in names])
    assert len(list(islice(value, 10))) == 10
    assert rows_read <= 10 + 5 * len(names), "no more than one batch of each file is ahead"
    assert pyarrow.total_allocated_bytes() - before < 100_000
    assert len(list(value)) == 290


@pytest.mark.parametrize(
    "record",
    [
        Answer("text", 3, b"place"),
        OrderedFact(4, 5, 6, "row", 7, 8, 9),
        EventTimes(2, "3 4"),
        Watermark(3, 4),
        SourceCount(1, 20),
        Instant("subject", 2, 3),
        NodeOutput(4, 5, -1),
        StateHandle(1, "1/3 handle", 7),
        OutputFile("name"),
        RecordFile("due name", 2, 3, 4, 5),
    ],
    ids=lambda record: type(record).__name__,
)
def test_records_are_decoded_as_they_were_encoded(record: Any) -> None:
    (moved,) = from_arrow(to_arrow([record]))
    assert moved == encode(record)
    assert decode(moved, type(record)) == record
    assert TaskReport.of([moved]).records == ((record,) if isinstance(record, Report) else ())
