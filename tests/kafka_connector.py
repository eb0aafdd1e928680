"""A test double of Spark's Kafka connector, as a Python data source with the same options and columns.

It reads with librdkafka what the connector reads with Kafka's own client. An option that it does not know is an
error.
(The connector: https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

PATIENCE = 20.0
OPTIONS = {"kafka.bootstrap.servers", "subscribe", "kafka.isolation.level", "startingOffsets", "maxOffsetsPerTrigger"}


class Connector(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka_stand_in"  # Spark keeps the name `kafka` for the connector

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
            "timestampType int"
        )

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return Reader({name: str(value) for name, value in self.options.items()})


class Part(InputPartition):
    def __init__(self, number: int, begin: int, end: int) -> None:
        super().__init__((number, begin, end))


class Reader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        existing = {name.lower(): name for name in OPTIONS}
        self.options = {existing[name.lower()]: value for name, value in options.items()}
        assert self.options["kafka.isolation.level"] == "read_committed"

    def initialOffset(self) -> dict[str, int]:
        which = {"earliest": 0, "latest": 1}[self.options["startingOffsets"]]
        return {number: places[which] for number, places in self._watermarks().items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.get("maxOffsetsPerTrigger")
        return ReadMaxRows(int(most)) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else 1 << 60
        result = {}
        for number, (_, end) in self._watermarks().items():
            result[number] = min(end, start[number] + left)
            left -= result[number] - start[number]
        return result

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Part(int(item), start[item], end[item]) for item in end if end[item] > start[item]]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        number, begin, end = partition.value
        consumer = self._consumer()
        consumer.assign([TopicPartition(self.options["subscribe"], number, begin)])
        while begin < end:
            (message,) = consumer.consume(1, PATIENCE)
            begin = message.offset() + 1
            yield message.key(), message.value(), message.topic(), number, message.offset(), None, 0
        consumer.close()

    def _watermarks(self) -> dict[str, tuple[int, int]]:
        consumer, topic = self._consumer(), self.options["subscribe"]
        try:
            return {
                str(number): consumer.get_watermark_offsets(TopicPartition(topic, number), PATIENCE)
                for number in consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            }
        finally:
            consumer.close()

    def _consumer(self) -> Any:
        return Consumer({"bootstrap.servers": self.options["kafka.bootstrap.servers"], "group.id": "connector"})
