"""DataFrames of the user's own as sources (docs/spark.md, "DataFrames")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from squall.errors import SourceError
from squall.rdf import ALWAYS, Event
from squall.streams.formats.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES = {"subject": "string", "predicate": "string", "object": "string", "time": "bigint or timestamp"}


class FrameSource:
    """A batch or streaming DataFrame as a source, for the builder `spark` alone.

    Its columns are ``subject``, ``predicate`` and ``object`` (terms in N-Triples), ``time`` (integer ms, or a
    timestamp), and ``graph`` if it likes (a term; null: the default graph); others are passed over. A row that is no
    triple in that form is malformed, and goes to the ledger, with what a column ``lost`` says of it.

    frame: the DataFrame. stream: the IRI of the stream that it brings. name: what messages call it, and what makes its
    blank nodes its own. Raises SourceError where a column is missing or of another type.
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
        self.reading = Reading()
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
        """Whether its rows say what is the matter with them (`squall.builders.spark.datasource`)."""

    @property
    def format(self) -> str:
        """The format of its lines."""
        return "nqt" if self.graphs else "ntt"

    def batches(self) -> Iterator[Sequence[Event]]:
        """Raises SourceError: nothing is brought to this process."""
        raise SourceError(f"`{self.uri}` is read by Spark alone", hint="use the builder `spark`")

    def lines(self) -> DataFrame:
        """Its rows as lines of its format, each with its partition. A null leaves out what makes the line one, and what
        has a line end in it, which no line can have, begins as none does."""
        time = "unix_millis(time)" if self.timestamps else "time"
        cells = ["subject", "predicate", "object", *(["graph"] if self.graphs else []), "'.'"]
        cells += ["if(subject is null, '# ' || lost, null)"] if self.tells else []
        line = f"concat_ws(' ', {time}, {', '.join(cells)})"
        value = f"if(contains({line}, char(10)), '. ' || translate({line}, char(10), ' '), {line}) as value"
        return self.frame.selectExpr(value, "'' as file", "cast(spark_partition_id() as long) as block")
