"""A DataFrame of the user's own as a source (docs/spark.md, "DataFrames")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from squall.builders.distributed.io.records import WorkerError
from squall.errors import ArgumentError, SourceError
from squall.rdf import ALWAYS, Event
from squall.streams.dead_letters import DeadLetterFile
from squall.streams.formats.reading import ReadProgress
from squall.streams.sources.dataframes import RowLedger, RowReader
from squall.streams.sources.frame_columns import BLOCK_ROWS, arrow_values

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

_TYPES = {"subject": "string", "predicate": "string", "object": "string", "time": "bigint or timestamp"}


class FrameSource:
    """A batch or streaming DataFrame as a source, for the builder `spark` only.

    Its columns are ``subject``, ``predicate`` and ``object`` (terms in N-Triples), ``time`` (integer ms, or a
    timestamp), and optionally ``graph`` (a term; null: the default graph). Other columns are ignored. A row that is no
    triple in that form is malformed and becomes a dead letter, with the reason in the column ``lost``, if there is one.

    Args:
        frame: the DataFrame.
        stream: the IRI of the stream that it feeds.
        name: its name in messages, which also keeps its blank nodes apart.

    Raises:
        SourceError: a column is missing or has another type.
    """

    earliest: int = ALWAYS
    size: int | None = None
    idle: int = 0
    removals: bool = False

    def __init__(self, frame: DataFrame, stream: str = "", name: str = "DataFrame") -> None:
        self.frame = frame
        self.stream = stream
        self.uri = name
        self.live = bool(frame.isStreaming)
        self.reading = ReadProgress()
        types = dict(frame.dtypes)
        for column, allowed in _TYPES.items():
            if types.get(column) not in allowed.split(" or "):
                actual = f"it is {types[column]}" if column in types else f"there are {', '.join(types)}"
                raise SourceError(f"`{name}` needs a column `{column}` of type {allowed}: {actual}")
        if types.get("graph", "string") != "string":
            raise SourceError(f"the column `graph` of `{name}` is {types['graph']}, not string")
        self.timestamps = types["time"] == "timestamp"
        self.graphs = "graph" in types
        self.tells = types.get("lost") == "string"
        """Whether its rows may be dead letters with a reason (`squall.builders.spark.datasource`)."""

    @property
    def format(self) -> str:
        """The format of its lines."""
        return "nqt" if self.graphs else "ntt"

    def batches(self) -> Iterator[Sequence[Event]]:
        """Raises SourceError: this process does not read the source."""
        raise SourceError(f"`{self.uri}` is read by Spark alone", hint="use the builder `spark`")

    def lines(self) -> DataFrame:
        """Returns its rows as lines of its format, each with its partition. A null makes the line malformed. So does a
        line feed in a cell, which no line can contain."""
        time = "unix_millis(time)" if self.timestamps else "time"
        cells = ["subject", "predicate", "object", *(["graph"] if self.graphs else []), "'.'"]
        cells += ["if(subject is null, '# ' || lost, null)"] if self.tells else []
        line = f"concat_ws(' ', {time}, {', '.join(cells)})"
        value = f"if(contains({line}, char(10)), '. ' || translate({line}, char(10), ' '), {line}) as value"
        return self.frame.selectExpr(value, "'' as file", "cast(spark_partition_id() as long) as block")


_STATEMENTS = "time long, subject string, predicate string, object string, graph string, lost string"
"""The columns of a row for each statement, or for each dead letter, which has a text in `lost` alone."""


def mapped_source(frame: DataFrame, reader: RowReader, strict: bool) -> MappedSource:
    """Returns the rows of a DataFrame as a source, which executors map to statements (see `squall.from_dataframe`).

    Args:
        frame: the DataFrame, batch or streaming.
        reader: what makes triples of its rows.
        strict: whether the first row that cannot be used is an error.

    Raises:
        ArgumentError: its rows have no times.
    """
    if not reader.is_timed and reader.time is None:
        hint = "name the column of the time: `time=`; data that always hold: `static=` of `frame.toPandas()`"
        raise ArgumentError(f"the rows of `{reader.name}` have no time", hint=hint)
    used = frame.select(*(f"`{name}`" for name in reader.names)) if reader.names else frame
    step = partial(_statement_batches, reader, strict)
    return MappedSource(used.mapInArrow(step, _STATEMENTS), reader.stream, reader.name)


class MappedSource(FrameSource):
    """A DataFrame whose rows are mapped. Rows that cannot be used end no run.

    Attributes:
        dead_letters: The counts of rows that cannot be used, where the run has no ledger.
    """

    def __init__(self, frame: DataFrame, stream: str, name: str) -> None:
        super().__init__(frame, stream, name)
        self.dead_letters = DeadLetterFile()
        self.ledger = RowLedger(self.dead_letters)


def _statement_batches(
    reader: RowReader, strict: bool, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the statements of batches of rows, and the rows that are dead letters."""
    import pyarrow

    text = pyarrow.string()
    types = [pyarrow.int64(), text, text, text, text, text]
    names = [column.partition(" ")[0] for column in _STATEMENTS.split(", ")]
    for batch in batches:
        for rows in _rows_of_blocks(reader, strict, batch):
            columns = zip(*rows, strict=True) if rows else [()] * len(types)
            arrays = [pyarrow.array(column, type) for column, type in zip(columns, types, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=names)


def _rows_of_blocks(reader: RowReader, strict: bool, batch: pyarrow.RecordBatch) -> Iterator[list[tuple[Any, ...]]]:
    for first in range(0, batch.num_rows, BLOCK_ROWS):
        rows = batch.slice(first, BLOCK_ROWS)
        names = reader.names or batch.schema.names[:1]
        events, bad = reader.events({name: arrow_values(rows.column(name)) for name in names})
        if bad and strict:
            raise WorkerError(SourceError(f"{reader.name}: {bad[0][1]}", hint=f"the row is: {bad[0][2]}"))
        statements: list[tuple[Any, ...]] = [
            (event.time, *fact, event.graph or None, None) for event in events for fact in event.facts
        ]
        lost = ((None, None, None, None, None, f"{text} # {reason}") for _, reason, text in bad)
        yield [*statements, *lost]


def check_input(batches: Any, static: Any) -> None:
    """Checks that the input of a job is neither a DataFrame nor a single source. Raises ArgumentError."""
    for value in (batches, static):
        if is_frame(value):
            hint = "make it a source: `Sources([FrameSource(frame)])`, of `squall.streams` and `squall.builders.spark`"
            raise ArgumentError("a DataFrame is given where events are", hint=hint)
        if isinstance(value, FrameSource):
            raise ArgumentError("a single source is given where events are", hint="write `Sources([source])`")


def is_frame(value: Any) -> bool:
    """Returns whether something is a DataFrame of Spark, classic or of Spark Connect."""
    return type(value).__name__ == "DataFrame" and type(value).__module__.startswith("pyspark.sql")
