"""What hands messages to Kafka: one by one, or what is delivered together as a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from squall.errors import SinkError
from squall.streams.live.kafka_clients import BLOCK, TIMEOUT, made, said

_SHORTEST = 1000  # ms that a transaction may take, at least: librdkafka takes no less
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
_PASSING = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
"""What a consumer may say that is not so for long; producers tell by themselves (`retriable`)."""

Headers = dict[str, str] | None


class Sink(Protocol):
    """The sink for which messages are sent."""

    uri: str
    topic: str
    retry: int

    def retry_until_done(self, attempt: Callable[[], object]) -> None: ...
    def fail(self, why: object) -> NoReturn: ...


class Each:
    """Each message is written once, for as long as the producer is there (the idempotent one)."""

    def __init__(self, sink: Sink, settings: dict[str, Any]) -> None:
        limit = {"message.timeout.ms": sink.retry, "enable.idempotence": True}
        self.client: Any = made(Producer, {**limit, **settings}, sink.uri)
        self._sink = sink
        self._failure: KafkaError | None = None

    def send(self, data: bytes, headers: Headers) -> None:
        try:
            self._produce(data, headers)
        except KafkaException as error:
            self._sink.fail(said(error))
        self._check()

    def flush(self) -> None:
        """Comes back when all has been written. Raises SinkError."""
        self.client.flush()  # ends at the latest when the messages are too old
        self._check()

    def _produce(self, data: bytes, headers: Headers) -> None:
        """Raises KafkaException."""
        while True:
            try:
                self.client.produce(self._sink.topic, data, headers=headers, on_delivery=self._on_delivery)
                break
            except BufferError:  # it is full: the broker is slower than the run
                self.client.poll(BLOCK)
        self.client.poll(0)

    def _on_delivery(self, error: KafkaError | None, _: Any) -> None:
        self._failure = self._failure or error

    def _check(self) -> None:
        if self._failure is not None:
            self._sink.fail(self._failure.str())


class Transactions(Each):
    """The deliveries of one name, which have ascending numbers: each is there once, for those who read what has been
    committed (``isolation.level=read_committed``).

    A delivery is a transaction, which also commits its number, as an offset of a group that is the name's own. Who goes
    on with the name first ends what others have begun by it and fences them off (``init_transactions``), and then asks
    for the number of the last delivery that is there. (KIP-98, KIP-447.) Raises SinkError where that cannot be had.
    """

    def __init__(self, sink: Sink, settings: dict[str, Any], name: str) -> None:
        self._name = f"squall-{name}"
        limit = {"transaction.timeout.ms": max(sink.retry, _SHORTEST)}
        super().__init__(sink, {**limit, **settings, "transactional.id": self._name})
        self._number = 0
        self._is_there = False
        """Whether the delivery has been committed by an earlier run."""
        self._waiting: list[tuple[bytes, Headers]] = []
        try:
            self._ask(self.client.init_transactions)
            self._committed, self._group = self._last({**settings, "group.id": self._name})
        except KafkaException as error:
            hint = "with `transactional=no` an output may be there twice after a crash"
            raise SinkError(f"`{sink.uri}` allows no transactions: {said(error)}", hint=hint) from error

    def begin(self, number: int) -> None:
        """What is sent from now on is the delivery of that number. Raises SinkError where there are later ones."""
        if number < self._committed:
            conflict = f"it has had delivery {self._committed} of the checkpoint, which is at {number}"
            self._sink.fail(f"{conflict}: another run has gone on from there")
        self._number, self._is_there = number, number == self._committed

    def send(self, data: bytes, headers: Headers) -> None:
        if not self._is_there:
            self._waiting.append((data, headers))

    def flush(self) -> None:
        """Commits what has been sent. Raises SinkError."""
        messages, self._waiting = self._waiting, []
        if messages:
            self._sink.retry_until_done(lambda: self._attempt(messages))

    def _attempt(self, messages: list[tuple[bytes, Headers]]) -> str | None:
        """What is in the way of a transaction, and may not be later."""
        self._failure = None
        number = TopicPartition(self._sink.topic, 0, self._number)
        try:
            self.client.begin_transaction()
            for message in messages:
                self._produce(*message)
            self._ask(lambda timeout: self.client.send_offsets_to_transaction([number], self._group, timeout))
            self._ask(self.client.commit_transaction)
        except KafkaException as error:
            return self._abort(error)
        return None

    def _abort(self, why: KafkaException) -> str:
        """Ends a transaction in which something went wrong: what that was, if it may go well another time. A message
        that failed has been tried for long enough."""
        failed, error = self._failure, why.args[0]
        if error.code() in _FENCED:
            self._sink.fail("another run goes on with the checkpoint")
        if not error.fatal():
            try:
                self._ask(self.client.abort_transaction)
            except KafkaException as other:
                self._sink.fail(said(other))
        if failed is not None or not error.txn_requires_abort():
            self._sink.fail((failed or error).str())
        return said(why)

    def _last(self, settings: dict[str, Any]) -> tuple[int, Any]:
        """The number of the last delivery that is there (0: there is none), and the group that has it."""
        consumer = made(Consumer, {**settings, "isolation.level": "read_committed"}, self._sink.uri)
        deliveries: list[int] = []

        def ask(timeout: float) -> None:
            (place,) = consumer.committed([TopicPartition(self._sink.topic, 0)], timeout)
            if place.error is not None:
                raise KafkaException(place.error)
            deliveries.append(place.offset)

        try:
            self._ask(ask, _PASSING)
            return max(deliveries[-1], 0), consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def _ask(self, request: Callable[[float], None], passing: Collection[int] = ()) -> None:
        """Makes a request until it is answered. Raises KafkaException where making it again is of no use."""

        def attempt() -> str | None:
            try:
                request(TIMEOUT)
            except KafkaException as error:
                if not error.args[0].retriable() and error.args[0].code() not in passing:
                    raise
                return said(error)
            return None

        self._sink.retry_until_done(attempt)
