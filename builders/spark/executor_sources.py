"""The choice of the live source that Spark's executors read; the driver reads and spools all others.

A run keeps the choice that it begins with, because the offsets in Spark's checkpoint mean nothing to another reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from squall.builders.distributed.io.parsing import Document
from squall.builders.spark import kafka
from squall.builders.spark.store import READS, Store
from squall.errors import BuilderError
from squall.rdf import Event
from squall.streams import Source, Sources, open_source
from squall.streams.clock import EventClock
from squall.streams.live.messages import MessageSource
from squall.streams.sources.files import Splittable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONNECTOR, _SQUALL = "connector", "squall"
"""The reader of a source: Spark's connector for Kafka, or a data source of squall's own."""


class ExecutorSource(NamedTuple):
    """The source that executors read.

    Attributes:
        source: the source; None: there is none.
        by: the name of its reader.
        begin: the position at which it begins, where squall decides that.
    """

    source: Source | None = None
    by: str = ""
    begin: str = ""

    def document(self) -> Document:
        """Returns how to parse its lines."""
        assert self.source is not None
        if self.by == _CONNECTOR:
            return kafka.document_of(cast(kafka.Topic, self.source))
        return Document(self.source.uri, spooled=True)

    def lines(self, spark: SparkSession) -> DataFrame:
        """Returns its lines as a stream, with their positions."""
        assert self.source is not None
        if self.by == _CONNECTOR:
            return kafka.lines(spark, cast(kafka.Topic, self.source))
        from squall.builders.spark.datasource import LineSource

        spark.dataSource.register(LineSource)
        documents = json.dumps(dict(cast(Any, self.source).settings.documents))
        reader = spark.readStream.format(LineSource.name()).option("begin", self.begin).option("documents", documents)
        return reader.load(self.source.uri)


def chosen(spark: SparkSession, store: Store, batches: Iterable[Sequence[Event]]) -> ExecutorSource:
    """Returns the choice that the run has begun with, or else makes one.

    Raises:
        BuilderError: the run has begun with a reader or a source that is not there now.
        SourceError: the source cannot be reached.
    """
    saved_source = store.read(READS)
    if saved_source is None:
        source_choice = _possible(spark, batches) if isinstance(batches, Sources) else ExecutorSource()
        store.write(
            {
                "source": source_choice.source and source_choice.source.uri,
                "by": source_choice.by,
                "begin": source_choice.begin,
            },
            READS,
        )
        return source_choice
    uri, by, begin = saved_source["source"], saved_source["by"], saved_source["begin"]
    if uri is None:
        return ExecutorSource()
    if by == _CONNECTOR and not kafka.is_there(spark):
        hint = "start it with the connector that it was begun with (`spark.jars.packages`), or from a new checkpoint"
        raise BuilderError(f"`{uri}` was read by Spark's connector for Kafka, which is not there", hint=hint)
    sources = batches.sources if isinstance(batches, Sources) else ()
    if [source.uri for source in sources] != [uri]:
        raise BuilderError(
            f"the checkpoint `{store.root}` is that of another source: {uri}",
            hint="a run that has changed starts from a new checkpoint: name another folder, or remove this one",
        )
    return ExecutorSource(sources[0], by, begin)


def _possible(spark: SparkSession, batches: Sources) -> ExecutorSource:
    """Chooses a source; Spark's own connector comes first."""
    topic = kafka.possible(spark, batches.sources)
    if topic is not None:
        return ExecutorSource(topic, _CONNECTOR)
    if len(batches.sources) == 1 and isinstance(batches.clock, EventClock):
        (source,) = batches.sources
        if _is_apart(source):
            return ExecutorSource(source, _SQUALL, _beginning(source.uri))
    return ExecutorSource()


def _is_apart(source: Source) -> bool:
    """Returns whether any process can read the source by its address in the same way: a broker's log, without a
    consumer group, which nothing reorders."""
    if not isinstance(source, MessageSource):
        return False
    if source.settings.context or source.settings.records is not None:  # other machines may not have its file
        return False
    return isinstance(source, Splittable) and not getattr(source, "group", "")


def _beginning(uri: str) -> str:
    """Returns the first position of a source. A mistyped address is reported at once, as in process."""
    source = open_source(uri)
    assert isinstance(source, MessageSource)
    source.retry = 0
    with closing(cast(Splittable, source)) as divisible:
        divisible.latest()
        return divisible.beginning()
