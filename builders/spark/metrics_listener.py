"""What the nodes of a run have done so far, for listeners of Spark: an observed metric of a query beside its own.

A micro-batch is worked off by jobs of its own, inside ``foreachBatch``, and of what these observe the progress of the
run's query tells nothing. So the figures go into a folder of the checkpoint, file by file, which another query reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from squall.builders.spark.store import Store, pattern_of
from squall.plan.node_metrics import PlanMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

METRIC = "squall"
"""The observed metric: a row with the number of the batch, and for each node of the plan that has done something its
`rows` and `seconds` so far (`squall.plan.node_metrics.NodeMetric`), by its id."""
SCHEMA = "batch long, rows map<string, long>, seconds map<string, double>"
FOLDER = "figures"


class Reporter:
    """Tells the figures of a run's nodes; while it is `at_work`, a query reads them."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self.spark = spark
        self.store = store

    def tell(self, batch: int, metrics: PlanMetrics) -> None:
        """What the nodes have done up to a batch, that included."""
        rows = {id: figure.rows for id, figure in metrics.items()}
        seconds = {id: figure.seconds for id, figure in metrics.items() if figure.seconds is not None}
        self.store.write({"batch": batch, "rows": rows, "seconds": seconds}, FOLDER, f"{batch}.json")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The query is there, and at the end has told all. What an earlier run has left is gone."""
        self.store.delete(FOLDER)
        self.store.path(FOLDER).mkdir()
        query = self._query()
        try:
            yield
            query.processAllAvailable()
        finally:
            query.stop()

    def _query(self) -> StreamingQuery:
        from pyspark.sql import functions as f

        reader = self.spark.readStream.schema(SCHEMA).option("cleanSource", "delete")
        files = reader.json(pattern_of(self.store.uri(FOLDER)))
        latest = (f.max_by(name, "batch").alias(name) for name in ("rows", "seconds"))
        metrics = files.observe(METRIC, f.max("batch").alias("batch"), *latest)
        writer = metrics.writeStream.format("noop").queryName(f"squall-{self.store.run()}-nodes")
        # A name that begins with `_` is none of the files that are read.
        writer = writer.option("checkpointLocation", self.store.uri(FOLDER, "_spark"))
        return writer.trigger(processingTime="1 second").start()
