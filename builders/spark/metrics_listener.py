"""Node metrics of a run for Spark's listeners, as an observed metric of a second query.

A micro-batch runs jobs of its own inside ``foreachBatch``, and the progress of the run's query does not report what
these observe. So the metrics go into a folder of the checkpoint, file by file, which another query reads.
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
"""The observed metric: a row with the number of the batch and, for each active node of the plan by its id, its `rows`
and `seconds` so far (`squall.plan.node_metrics.NodeMetric`)."""
SCHEMA = "batch long, rows map<string, long>, seconds map<string, double>"
FOLDER = "figures"


class Reporter:
    """Writes the metrics of a run's nodes; inside the context `at_work`, a query reads them."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self.spark = spark
        self.store = store

    def tell(self, batch: int, metrics: PlanMetrics) -> None:
        """Writes the metrics of the nodes up to and including a batch."""
        rows = {id: figure.rows for id, figure in metrics.items()}
        seconds = {id: figure.seconds for id, figure in metrics.items() if figure.seconds is not None}
        self.store.write({"batch": batch, "rows": rows, "seconds": seconds}, FOLDER, f"{batch}.json")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Runs the query, which has reported everything at the end. It first deletes the files of an earlier run."""
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
