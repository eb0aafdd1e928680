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
from squall.streams.live.base import Lost
from squall.streams.live.kafka_clients import BLOCK, TIMEOUT, made, partitions_of, place_of, said, settings_of
from squall.streams.live.kafka_producers import Each, Transactions
from squall.streams.live.messages import IDENTITY, Message, MessageSink, MessageSource

_FIRST, _BEHIND = 0, 1
"""The watermarks of a partition: of its first message, and behind its last one."""
_BEGIN = {"first": _FIRST, "new": _BEHIND}


class KafkaSource(MessageSource):
    """``kafka://host:port,host:port/topic``: the messages of all partitions of a topic.

    ``group``: partitions are shared by the consumers of a group, and offsets are committed when what is before them has
    been worked off. Without a group it can be read again from a position, which is the offsets by partition. ``from``:
    where to begin if nothing else says it: ``new`` or ``first``. ``buffer`` messages are a batch at most, and about as
    many are fetched ahead. Options with a dot in their name are settings of librdkafka (``security.protocol=SSL``).
    """

    options = ("buffer", "group", "from")
    risk = ""

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        self.given = frozenset(dict(address.options))
        """The options that the address has."""
        settings, address = settings_of(address)
        super().__init__(address, ledger, time)
        self.hosts, self.topic = place_of(address)
        self.place = self.uri.partition("?")[0]
        """The topic, as people know it."""
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
        """Of the message that comes next, by partition."""
        self._covered: dict[int, int] = {}
        """The offsets, by partition, up to which all has been worked off by an earlier run."""
        self._committed = ""
        self._down = threading.Event()
        self._consumer: Any = None
        self._is_open = False

    def receive(self) -> Iterator[Sequence[Event]]:
        self._open()
        yield ()
        lost_since: float | None = None
        while not self.stopped.is_set():
            if messages := self._messages():
                yield self._batch(messages)
            lost_since = self._gone(lost_since) if self._down.is_set() else None

    def seek(self, position: str) -> None:
        """See `squall.streams.sources.files.Replayable`; a group says itself where it is, but what it gives again is
        passed over."""
        self.reached = position
        self._covered = {int(partition): offset for partition, offset in json.loads(position).items()}
        if not self.group:
            self._offsets = dict(self._covered)

    def current_offset(self) -> str:
        """See `squall.streams.sources.files.Resumable`; the cluster says where partitions end, before anything is
        read."""
        if not self.group:
            try:
                self._open()
            except Lost as error:
                raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
        return self.reached

    def resume(self, current_offset: str) -> None:
        if current_offset:
            self.seek(current_offset)

    def beginning(self) -> str:
        """See `squall.streams.sources.files.Splittable`."""
        return self._bounds(self._begin)

    def latest(self, begin: str = "") -> str:
        """Where it is limited, of each partition its share of what is there."""
        end = self._bounds(_BEHIND)
        if not (begin and self.is_limited):
            return end
        begin_offsets, ends = json.loads(begin), json.loads(end)
        sizes = {partition: behind - begin_offsets.get(partition, 0) for partition, behind in ends.items()}
        rate = min(1, self.buffer / (sum(sizes.values()) or 1))
        return json.dumps(
            {partition: begin_offsets.get(partition, 0) + ceil(size * rate) for partition, size in sizes.items()}
        )

    def parts(self, begin: str, end: str) -> list[str]:
        begin_offsets = json.loads(begin)
        places = (
            (int(partition), begin_offsets.get(partition, 0), behind) for partition, behind in json.loads(end).items()
        )
        return [json.dumps(place) for place in places if place[1] < place[2]]

    def part(self, part: str) -> Iterator[Sequence[Event]]:
        partition, offset, end = json.loads(part)
        consumer = self._connected({"auto.offset.reset": "earliest", "enable.partition.eof": True})
        self.patiently(partial(self._check_gone, partition, offset))
        consumer.assign(self._assignment({partition: offset}))
        limit = time.monotonic() + self.retry / 1000
        while offset < end:
            batch = consumer.consume(self.buffer, BLOCK)
            messages = self._usable(batch)
            if batch:  # the end of the partition too: behind the last message there may be marks of transactions
                offset = max(message.offset() + (message.error() is None) for message in batch)
                limit = time.monotonic() + self.retry / 1000
            elif time.monotonic() > limit:
                raise SourceError(f"`{self.uri}` cannot be read: nothing came up to offset {end} of {partition}")
            yield self.events([self._message(message) for message in messages if message.offset() < end])

    def acknowledge(self, position: str) -> None:
        """See `squall.streams.sources.files.Acknowledging`."""
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
        """Of the partitions that are still this consumer's: somebody else may be further in the others."""
        mine = {place.partition for place in self._consumer.assignment()}
        offsets = {
            int(partition): offset
            for partition, offset in json.loads(self._committed).items()
            if int(partition) in mine
        }
        if offsets:
            with suppress(KafkaException):  # then they come again
                self._consumer.commit(offsets=self._assignment(offsets), asynchronous=asynchronous)

    def _on_revoke(self, _: Any, places: Sequence[TopicPartition]) -> None:
        for place in places:
            self._offsets.pop(place.partition, None)

    def _open(self) -> None:
        """Begins to consume, unless that has been done. Raises Lost."""
        if not self._is_open:
            self._begun(self._partitions())
            self._is_open = True

    def _connected(self, settings: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """The consumer, made with these settings besides if there was none."""
        if self._consumer is None:
            self._consumer = made(Consumer, {**self._settings, **settings}, self.uri)
        return self._consumer

    def _begun(self, partitions: Sequence[int]) -> None:
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
        """Where the partitions begin or end, as a position."""
        return self.patiently(
            lambda: json.dumps({partition: self._watermarks(partition)[side] for partition in self._partitions()})
        )

    def _partitions(self) -> list[int]:
        return partitions_of(self._connected(), self.topic)

    def _watermarks(self, partition: int) -> tuple[int, int]:
        """The offsets of the first message, and behind the last one. Raises Lost."""
        place = TopicPartition(self.topic, partition)
        try:
            offsets: tuple[int, int] = self._consumer.get_watermark_offsets(place, TIMEOUT)
        except KafkaException as error:
            raise Lost(said(error)) from error
        return offsets

    def _check_gone(self, partition: int, offset: int) -> None:
        """Messages from an offset on that are no longer there are lost."""
        first = self._watermarks(partition)[_FIRST]
        if offset < first:
            reason = f"the messages from offset {offset} to {first - 1} are no longer there"
            self.ledger.record("lost", self._name(partition), None, reason, "")

    def _assignment(self, offsets: dict[Any, int]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, int(partition), offset) for partition, offset in offsets.items()]

    def _messages(self) -> list[Any]:
        first = self._consumer.poll(BLOCK)
        return self._usable([] if first is None else [first, *self._consumer.consume(self.buffer - 1, 0)])

    def _usable(self, messages: Sequence[Any]) -> list[Any]:
        """The messages of what has come. Raises SourceError where there is an error that does not pass."""
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
        """Called by librdkafka while it is polled. It connects again by itself."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down.set()

    def _gone(self, since: float | None) -> float | None:
        """Since when (seconds, monotonic) no broker has answered. Raises SourceError if that is too long."""
        now = time.monotonic()
        try:
            self._consumer.list_topics(self.topic, BLOCK)
        except KafkaException as error:
            if now - (since or now) > self.retry / 1000:
                raise SourceError(f"`{self.uri}` cannot be read: {said(error)}") from error
            return since or now
        self._down.clear()
        return None


class KafkaSink(MessageSink):
    """``kafka://host:port,host:port/topic``: a message for each output or evaluation, each written once for as long as
    the run goes on (the idempotent producer).

    With a checkpoint its header ``squall-id`` tells it from all others, and what a checkpoint has to hand on is a
    transaction, so that it is there once for those who read what has been committed; ``transactional=no``: none are
    used, and it may be there twice after a crash. Options with a dot in their name are settings of librdkafka.
    """

    options = ("transactional",)

    def __init__(self, address: Address) -> None:
        self._settings, address = settings_of(address)
        super().__init__(address)
        self.hosts, self.topic = place_of(address)
        self.transactional = address.flag("transactional", "yes")
        if "transactional.id" in self._settings:
            hint = "with a checkpoint there are transactions without it; their names begin with `squall-`"
            raise UsageError(f"`transactional.id` in `{self.uri}` is squall's to say", hint=hint)
        self._to: Any = None

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self._to = Each(self, self._settings)
        try:
            partitions_of(self._to.client, self.topic)
        except (Lost, SourceError) as error:
            self.fail(error)

    def begin_delivery(self, name: str, number: int) -> None:
        super().begin_delivery(name, number)
        if self.transactional:
            if not isinstance(self._to, Transactions):
                self._to = Transactions(self, self._settings, name)
            self._to.begin(number)

    def send(self, data: bytes) -> None:
        self._to.send(data, {IDENTITY: self.identity} if self.identity else None)

    def flush(self) -> None:
        self._to.flush()

    def disconnect(self) -> None:
        self._to = None
