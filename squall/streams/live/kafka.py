"""Kafka (confluent-kafka, which is librdkafka): topics as sources, alone or in a consumer group, and as sinks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from types import MappingProxyType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.live.base import ConnectionLost
from squall.streams.live.kafka_clients import (
    POLL_S,
    REQUEST_TIMEOUT_S,
    create_client,
    error_text,
    partitions_of,
    servers_and_topic,
    settings_of,
)
from squall.streams.live.kafka_producers import IdempotentProducer, TransactionalProducer
from squall.streams.live.messages import IDENTITY, Message, MessageSink, MessageSource

_FIRST, _BEHIND = 0, 1
"""Indexes into the watermark offsets of a partition: of its first message, and behind its last one."""
_BEGIN = {"first": _FIRST, "new": _BEHIND}


class KafkaSource(MessageSource):
    """``kafka://host:port,host:port/topic``: the messages of all partitions of a topic.

    ``group``: the consumers of a group share the partitions, and an offset is committed when the messages before it
    have been processed. Without a group the source is replayable from a position, which is the offsets by partition.
    ``from`` (``new`` or ``first``): where to begin if there is no offset. A batch has at most ``buffer`` messages, and
    about as many are fetched ahead. Options with a dot in their name are settings of librdkafka
    (``security.protocol=SSL``).

    Attributes:
        option_names: The names of the options that the address has.
        place: The topic, for messages to people.
        request_timeout: How many seconds the cluster has to answer a request.
    """

    options = ("buffer", "group", "from")
    risk = ""

    def __init__(
        self, address: Address, ledger: DeadLetterLedger, time: int = 0, *, request_timeout: float = REQUEST_TIMEOUT_S
    ) -> None:
        self.request_timeout = request_timeout
        self.option_names = frozenset(dict(address.options))
        settings, address = settings_of(address)
        super().__init__(address, ledger, time)
        self.hosts, self.topic = servers_and_topic(address)
        self.place = self.uri.partition("?")[0]
        self.group = address.get("group")
        self.begin = address.get("from", "new")
        if self.begin not in _BEGIN:
            raise UsageError(f"`from={self.begin}` in `{self.uri}` is neither new nor first")
        self._settings = {
            "queued.min.messages": self.buffer,
            **settings,
            "group.id": self.group or "squall",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest" if self.begin == "first" else "latest",
            "error_cb": self._on_error,
        }
        self._begin = _BEGIN[self.begin]
        self._offsets: dict[int, int] = {}
        """The offsets of the next messages, by partition."""
        self._covered: dict[int, int] = {}
        """The offsets, by partition, up to which messages have been output: by an earlier run, or before the group gave
        the partition to another consumer."""
        self._committed = ""
        self._down = threading.Event()
        self._consumer: Any = None
        self._is_open = False

    def receive(self) -> Iterator[Sequence[Event]]:
        self._open()
        yield ()
        unreachable_since: float | None = None
        while not self.stopped.is_set():
            if messages := self._messages():
                yield self._batch(messages)
            unreachable_since = self._unreachable(unreachable_since) if self._down.is_set() else None

    def seek(self, position: str) -> None:
        """Begins behind a position (`squall.streams.sources.files.Replayable`).

        The cluster knows the offsets of a group. Messages that it delivers again are skipped.
        """
        self._covered = {int(partition): offset for partition, offset in json.loads(position).items()}
        if not self.group:
            self.reached, self._offsets = position, dict(self._covered)

    def current_offset(self) -> str:
        """Returns the offsets by partition (`squall.streams.sources.files.Resumable`).

        Before anything has been read, the cluster is asked where the partitions begin or end.
        """
        if not self.group:
            try:
                self._open()
            except ConnectionLost as error:
                raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
            return self.reached
        offsets = self._covered_offsets()
        return json.dumps(offsets) if offsets else ""

    def resume(self, current_offset: str) -> None:
        if current_offset:
            self.seek(current_offset)

    def beginning(self) -> str:
        """Returns the position at which reading begins (`squall.streams.sources.files.Splittable`)."""
        return self._bounds(self._begin)

    def latest(self, begin: str = "") -> str:
        """Returns the position behind all messages; if ``buffer`` is given, of each partition its share of that."""
        end = self._bounds(_BEHIND)
        if not (begin and self.is_limited):
            return end
        begin_offsets, end_offsets = json.loads(begin), json.loads(end)
        sizes = {partition: behind - begin_offsets.get(partition, 0) for partition, behind in end_offsets.items()}
        rate = min(1, self.buffer / (sum(sizes.values()) or 1))
        return json.dumps(
            {partition: begin_offsets.get(partition, 0) + ceil(size * rate) for partition, size in sizes.items()}
        )

    def splits_of(self, begin: str, end: str) -> list[str]:
        begin_offsets = json.loads(begin)
        ranges = (
            (int(partition), begin_offsets.get(partition, 0), behind) for partition, behind in json.loads(end).items()
        )
        return [json.dumps(split) for split in ranges if split[1] < split[2]]

    def read_split(self, split: str) -> Iterator[Sequence[Event]]:
        partition, offset, end = json.loads(split)
        consumer = self._connected({"auto.offset.reset": "earliest", "enable.partition.eof": True})
        self.retry_while_lost(partial(self._check_gone, partition, offset))
        consumer.assign(self._assignment({partition: offset}))
        limit = time.monotonic() + self.retry / 1000
        while offset < end:
            batch = consumer.consume(self.buffer, POLL_S)
            messages = self._usable(batch)
            if batch:  # may be the end of the partition: transaction markers may follow the last message
                offset = max(message.offset() + (message.error() is None) for message in batch)
                limit = time.monotonic() + self.retry / 1000
            elif time.monotonic() > limit:
                raise SourceError(f"`{self.uri}` cannot be read: nothing came up to offset {end} of {partition}")
            yield self.events([self._message(message) for message in messages if message.offset() < end])

    def acknowledge(self, position: str) -> None:
        """Acknowledges what is before a position (`squall.streams.sources.files.Acknowledging`)."""
        self._committed = position
        if self.group:
            self._commit(asynchronous=True)

    def close(self) -> None:
        if self._consumer is None:
            return
        if self.group and self._committed:
            self._commit(asynchronous=False)
        self._consumer.close()

    def _commit(self, asynchronous: bool) -> None:
        """Commits the offsets of this consumer's partitions. Another consumer may be further ahead in the others."""
        mine = {place.partition for place in self._consumer.assignment()}
        offsets = {
            int(partition): offset
            for partition, offset in json.loads(self._committed).items()
            if int(partition) in mine
        }
        if offsets:
            with suppress(KafkaException):  # then the messages are delivered again
                self._consumer.commit(offsets=self._assignment(offsets), asynchronous=asynchronous)

    def _on_revoke(self, _: Any, places: Sequence[TopicPartition]) -> None:
        self._covered = self._covered_offsets()
        for place in places:
            self._offsets.pop(place.partition, None)

    def _covered_offsets(self) -> dict[int, int]:
        """Returns the offsets up to which messages have been output, also of partitions that others read now."""
        offsets = dict(self._covered)
        for partition, offset in self._offsets.items():
            offsets[partition] = max(offset, offsets.get(partition, 0))
        return offsets

    def _open(self) -> None:
        """Begins to consume, if it has not begun. Raises ConnectionLost."""
        if not self._is_open:
            self._consume(self._partitions())
            self._is_open = True

    def _connected(self, settings: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """Returns the consumer. If there is none, creates it, with additional settings."""
        if self._consumer is None:
            self._consumer = create_client(Consumer, {**self._settings, **settings}, self.uri)
        return self._consumer

    def _consume(self, partitions: Sequence[int]) -> None:
        if self.group:
            self._consumer.subscribe([self.topic], on_revoke=self._on_revoke)
            return
        for partition in partitions:
            if partition in self._offsets:
                self._check_gone(partition, self._offsets[partition])
            else:
                self._offsets[partition] = self._watermarks(partition)[self._begin]
        self._consumer.assign(self._assignment(self._offsets))
        self.reached = json.dumps(self._offsets)

    def _bounds(self, side: int) -> str:
        """Returns the position at which the partitions begin or end."""
        return self.retry_while_lost(
            lambda: json.dumps({partition: self._watermarks(partition)[side] for partition in self._partitions()})
        )

    def _partitions(self) -> list[int]:
        return partitions_of(self._connected(), self.topic, self.request_timeout)

    def _watermarks(self, partition: int) -> tuple[int, int]:
        """Returns the offsets of the first message, and behind the last one. Raises ConnectionLost."""
        place = TopicPartition(self.topic, partition)
        try:
            offsets: tuple[int, int] = self._consumer.get_watermark_offsets(place, self.request_timeout)
        except KafkaException as error:
            raise ConnectionLost(error_text(error)) from error
        return offsets

    def _check_gone(self, partition: int, offset: int) -> None:
        """Records messages from an offset on that the cluster no longer has as a dead letter."""
        first = self._watermarks(partition)[_FIRST]
        if offset < first:
            reason = f"the messages from offset {offset} to {first - 1} are no longer there"
            self.ledger.record("lost", self._name(partition), None, reason, "")

    def _assignment(self, offsets: dict[Any, int]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, int(partition), offset) for partition, offset in offsets.items()]

    def _messages(self) -> list[Any]:
        first = self._consumer.poll(POLL_S)
        return self._usable([] if first is None else [first, *self._consumer.consume(self.buffer - 1, 0)])

    def _usable(self, messages: Sequence[Any]) -> list[Any]:
        """Returns the messages without errors. Raises SourceError for an error that is not transient."""
        for message in messages:
            error = message.error()
            if error is not None and not error.retriable() and error.code() != KafkaError._PARTITION_EOF:
                raise SourceError(f"`{self.uri}` cannot be read: {error.str()}")
        return [message for message in messages if message.error() is None]

    def _batch(self, messages: Sequence[Any]) -> list[Event]:
        for message in messages:
            self._offsets[message.partition()] = message.offset() + 1
        self.reached = json.dumps(self._offsets)
        return self.events(
            [
                self._message(message)
                for message in messages
                if message.offset() >= self._covered.get(message.partition(), 0)
            ]
        )

    def _message(self, message: Any) -> Message:
        return Message(message.value() or b"", self._name(message.partition()), f"offset {message.offset()}")

    def _name(self, partition: int) -> str:
        return f"{self.place}[{partition}]"

    def _on_error(self, error: KafkaError) -> None:
        """Is called by librdkafka while it is polled. The library connects again by itself."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down.set()

    def _unreachable(self, since: float | None) -> float | None:
        """Returns since when (seconds, monotonic) no broker has answered. Raises SourceError if that is too long."""
        now = time.monotonic()
        try:
            self._consumer.list_topics(self.topic, POLL_S)
        except KafkaException as error:
            if now - (since or now) > self.retry / 1000:
                raise SourceError(f"`{self.uri}` cannot be read: {error_text(error)}") from error
            return since or now
        self._down.clear()
        return None


class KafkaSink(MessageSink):
    """``kafka://host:port,host:port/topic``: a message for each output or evaluation.

    The idempotent producer writes each message exactly once while the run lasts. With a checkpoint, the header
    ``squall-id`` is unique for each message, and the outputs of a checkpoint are one transaction. So consumers of
    committed messages get each exactly once. With ``transactional=no`` there are no transactions, and messages may be
    duplicated after a crash. Options with a dot in their name are settings of librdkafka.
    """

    options = ("transactional",)

    def __init__(self, address: Address, *, request_timeout: float = REQUEST_TIMEOUT_S) -> None:
        self.request_timeout = request_timeout
        self._settings, address = settings_of(address)
        super().__init__(address)
        self.hosts, self.topic = servers_and_topic(address)
        self.transactional = address.flag("transactional", "yes")
        if "transactional.id" in self._settings:
            hint = "with a checkpoint there are transactions without it; their names begin with `squall-`"
            raise UsageError(f"`transactional.id` in `{self.uri}` is squall's to say", hint=hint)
        self._producer: Any = None

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self._producer = IdempotentProducer(self, self._settings)
        try:
            partitions_of(self._producer.client, self.topic, self.request_timeout)
        except (ConnectionLost, SourceError) as error:
            self.fail(error)

    def begin_delivery(self, name: str, number: int) -> None:
        super().begin_delivery(name, number)
        if self.transactional:
            if not isinstance(self._producer, TransactionalProducer):
                self._producer = TransactionalProducer(self, self._settings, name)
            self._producer.begin(number)

    def send(self, data: bytes) -> None:
        self._producer.send(data, {IDENTITY: self.identity} if self.identity else None)

    def flush(self) -> None:
        self._producer.flush()

    def disconnect(self) -> None:
        self._producer = None
