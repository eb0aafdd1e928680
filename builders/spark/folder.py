"""Folder sink of Spark jobs: a subfolder for each batch, named by its number, which is written exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow

from squall.builders.distributed.io.records import WorkerError, from_arrow
from squall.builders.distributed.io.task_output import OUTPUT_ORDER
from squall.builders.runtime.serde import unpack_output
from squall.builders.spark import result_frame
from squall.builders.spark.store import Store
from squall.contracts import Folder, Output
from squall.errors import BuilderError, SquallError
from squall.plan import Plan
from squall.plan.answers import is_one_query
from squall.streams.formats.output_formats import CHANGES, line_function
from squall.streams.sinks.folders import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OWNER = "_owner.json"


def check(plan: Plan, folder: Folder) -> None:
    """Raises BuilderError if a folder's format cannot hold the outputs of a plan."""
    if folder.format in COLUMNS:
        result_frame.check_types(result_frame.shape(plan), folder.types or {})
    elif folder.types is not None:
        hint = f"formats that have: {', '.join(COLUMNS)}"
        raise BuilderError(f"the format `{folder.format}` has no columns to be typed", hint=hint)
    if any(op.output == "changes" for _, op in plan.sinks) and folder.format not in (*COLUMNS, *CHANGES):
        hint = f"formats that do: {', '.join((*COLUMNS, 'ndjson'))}"
        raise BuilderError(f"`{folder.format}` does not say whether an output is inserted or deleted", hint=hint)


class FolderWriter:
    """Writes the outputs of a job's batches into a folder.

    Args:
        plan: the plan of the job.
        folder: the sink.
        store: the files of the folder.
        run: the name of the run that owns the folder.

    Raises:
        BuilderError: the folder holds the output of another run, or something else.
    """

    def __init__(self, plan: Plan, folder: Folder, store: Store, run: str) -> None:
        self.plan = plan
        self.folder = folder
        self.store = store
        if store.names() and store.read(OWNER) != run:
            raise BuilderError(f"`{folder.path}` is not empty", hint="name another folder, or remove this one")
        store.write(run, OWNER)

    def write(self, outputs: DataFrame, number: int) -> None:
        """Writes the outputs of a batch. What an interrupted attempt has completed stays, since it would be the same
        again."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        name = f"batch-{number:09d}"
        if self.store.path(name).exists():
            return
        row_count = Observation()
        frame = self._frame(outputs).observe(row_count, f.count(f.lit(1)).alias("rows"))
        draft = f"_{name}"
        self.store.delete(draft)
        format = self.folder.format if self.folder.format in COLUMNS else "text"
        frame.write.format(format).option("header", format == "csv").save(self.store.uri(draft))
        self.store.rename((draft,), (name,))
        self.folder.written += row_count.get["rows"]

    def _frame(self, outputs: DataFrame) -> DataFrame:
        is_ordered = result_frame.is_ordered(self.plan)
        if is_ordered and len(outputs.inputFiles()) == 1:
            outputs = outputs.coalesce(1)  # so that nothing moves to be put in order
        if self.folder.format not in COLUMNS:
            return _lines(_sorted(outputs, is_ordered), line_function(self.folder.format, is_one_query(self.plan)))
        columns = result_frame.shape(self.plan)
        table = result_frame.frame(result_frame.numbered(outputs) if is_ordered else outputs, columns)
        types = {} if self.folder.types is None and self.folder.format == "csv" else self.folder.types
        return table if types is None else result_frame.typed(table, columns, types)


def _sorted(outputs: DataFrame, is_ordered: bool) -> DataFrame:
    """Sorts outputs: globally if they have an order, else within each file."""
    return outputs.orderBy(*OUTPUT_ORDER) if is_ordered else outputs.sortWithinPartitions(*OUTPUT_ORDER)


def _lines(outputs: DataFrame, line: Callable[[Output], bytes]) -> DataFrame:
    """Returns a line for each output."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            try:
                lines = [line(unpack_output(record.row, record.start)).decode() for record in from_arrow([batch])]
            except SquallError as error:
                raise WorkerError(error) from None
            yield pyarrow.RecordBatch.from_pydict({"value": [record.removesuffix("\n") for record in lines if record]})

    return outputs.mapInArrow(step, "value string")
