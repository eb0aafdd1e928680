"""Topics of Kafka that Spark reads by its own connector, where that is on the class path.

Its executors read them, and the offsets are in Spark's checkpoint. Tasks parse each message as the in-process builder
does.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from squall.builders.distributed.io.parsing import Document
from squall.streams import Source
from squall.streams.formats import Format
from squall.streams.formats.reading import Settings
from squall.streams.mappings.model import without_places
from squall.streams.mappings.options import OPTIONS
from squall.streams.sources.reordering import original

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("squall")

FORMAT = "kafka"
CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_SUPPORTED = {"format", "stream", "time", "window", "idle", "from", "buffer", *OPTIONS}
"""The options with the same meaning for every reader."""


@runtime_checkable
class Topic(Protocol):
    """The interface of `squall.streams.live.kafka.KafkaSource`, whose library may be missing. option_names: the options
    of its address."""

    uri: str
    hosts: str
    topic: str
    place: str
    begin: str
    buffer: int
    format: Format
    settings: Settings
    option_names: Collection[str]


def is_there(spark: SparkSession) -> bool:
    """Returns whether the session has the connector."""
    return bool(spark._jvm.org.apache.spark.util.Utils.classIsLoadable(CONNECTOR))  # type: ignore[union-attr]


def document_of(topic: Topic) -> Document:
    """Returns how to parse its messages."""
    settings = topic.settings
    return Document(
        topic.place,
        settings.stream,
        topic.format.name,
        settings.time,
        messages=True,
        documents=settings.documents,
        records=None if settings.records is None else without_places(settings.records),
    )


def lines(spark: SparkSession, topic: Topic) -> DataFrame:
    """Returns its messages as a stream, each with its partition as the file, and its offset there."""
    from pyspark.sql import functions as f

    reader = spark.readStream.format(FORMAT).option("kafka.bootstrap.servers", topic.hosts)
    reader = reader.option("subscribe", topic.topic).option("kafka.isolation.level", "read_committed")
    reader = reader.option("startingOffsets", "earliest" if topic.begin == "first" else "latest")
    if "buffer" in topic.option_names:
        reader = reader.option("maxOffsetsPerTrigger", topic.buffer)
    place = f.format_string(f"{topic.place.replace('%', '%%')}[%d]", "partition")
    return reader.load().select(
        f.coalesce("value", f.lit(b"")).alias("value"), place.alias("file"), f.col("offset").alias("block")
    )


def possible(spark: SparkSession, sources: Sequence[Source]) -> Source | None:
    """Returns the source that the connector can read as it would be read in process; logs why it cannot."""
    topics = [source for source in sources if isinstance(original(source), Topic)]
    if not topics or not is_there(spark):
        return None
    for source in topics:
        why = _hindrance(source, sources)
        if not why:
            return source
        logger.warning("`%s` is not read by Spark's connector: %s", source.uri, why)
    return None


def _hindrance(source: Source, sources: Sequence[Source]) -> str:
    """Returns why the connector cannot read a topic; "": it can."""
    if not isinstance(source, Topic):
        return "what it brings has to be put in order, or gets its times from what it says"
    if len(sources) > 1:
        return "it has to be put in order with other sources"
    is_supported = source.format.lines or source.format.records
    if not is_supported or source.format.removals or source.format.messages:
        return f"`format={source.format.name}` is no format of lines"
    if "@" in source.hosts:
        return "its user and password are said to librdkafka"
    unsupported = sorted({*source.option_names} - _SUPPORTED)
    return f"`{unsupported[0]}` is said to librdkafka" if unsupported else ""
