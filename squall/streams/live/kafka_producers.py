"""Producers of Kafka messages: idempotent ones, and transactional ones for the deliveries of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from squall.errors import SinkError
from squall.streams.live.kafka_clients import POLL_S, create_client, error_text

_MIN_TRANSACTION_TIMEOUT_MS = 1000
"""The shortest timeout of a transaction that librdkafka accepts."""
_FENCED_ERRORS = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
_TRANSIENT_ERRORS = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
"""Errors of a consumer that are transient. Errors of producers have the attribute `retriable`."""

Headers = dict[str, str] | None


class KafkaTarget(Protocol):
    """The sink whose messages a producer sends."""

    uri: str
    topic: str
    retry: int
    request_timeout: float

    def retry_until_done(self, attempt: Callable[[], object]) -> None: ...
    def fail(self, why: object) -> NoReturn: ...


class IdempotentProducer:
    """A producer that writes each message exactly once during its lifetime (the idempotent producer)."""

    def __init__(self, sink: KafkaTarget, settings: dict[str, Any]) -> None:
        limit = {"message.timeout.ms": sink.retry, "enable.idempotence": True}
        self.client: Any = create_client(Producer, {**limit, **settings}, sink.uri)
        self._sink = sink
        self._failure: KafkaError | None = None

    def send(self, data: bytes, headers: Headers) -> None:
        try:
            self._produce(data, headers)
        except KafkaException as error:
            self._sink.fail(error_text(error))
        self._check()

    def flush(self) -> None:
        """Returns when all messages have been written. Raises SinkError if one cannot be."""
        self.client.flush()  # returns at the latest when the messages time out
        self._check()

    def _produce(self, data: bytes, headers: Headers) -> None:
        """Queues a message. Raises KafkaException."""
        while True:
            try:
                self.client.produce(self._sink.topic, data, headers=headers, on_delivery=self._on_delivery)
                break
            except BufferError:  # backpressure: the broker is slower than the run
                self.client.poll(POLL_S)
        self.client.poll(0)

    def _on_delivery(self, error: KafkaError | None, _: Any) -> None:
        self._failure = self._failure or error

    def _check(self) -> None:
        if self._failure is not None:
            self._sink.fail(self._failure.str())


class TransactionalProducer(IdempotentProducer):
    """A producer that writes each delivery of a checkpoint as one transaction.

    Consumers with ``isolation.level=read_committed`` get each delivery exactly once. The transaction also commits the
    number of the delivery, as an offset of a consumer group of its own. A producer that resumes with the same name
    first aborts open transactions of others and fences these off (``init_transactions``). Then it reads the number of
    the last committed delivery. (KIP-98, KIP-447.) The constructor raises SinkError if the cluster does not support it.
    """

    def __init__(self, sink: KafkaTarget, settings: dict[str, Any], name: str) -> None:
        self._name = f"squall-{name}"
        limit = {"transaction.timeout.ms": max(sink.retry, _MIN_TRANSACTION_TIMEOUT_MS)}
        super().__init__(sink, {**limit, **settings, "transactional.id": self._name})
        self._number = 0
        self._is_duplicate = False
        """Whether an earlier run has committed the current delivery."""
        self._waiting: list[tuple[bytes, Headers]] = []
        try:
            self._request(self.client.init_transactions)
            self._committed, self._group = self._last({**settings, "group.id": self._name})
        except KafkaException as error:
            hint = "with `transactional=no` an output may be there twice after a crash"
            raise SinkError(f"`{sink.uri}` allows no transactions: {error_text(error)}", hint=hint) from error

    def begin(self, number: int) -> None:
        """Begins the delivery of a number. Raises SinkError if a later one has been committed."""
        if number < self._committed:
            conflict = f"it has had delivery {self._committed} of the checkpoint, which is at {number}"
            self._sink.fail(f"{conflict}: another run has gone on from there")
        self._number, self._is_duplicate = number, number == self._committed

    def send(self, data: bytes, headers: Headers) -> None:
        if not self._is_duplicate:
            self._waiting.append((data, headers))

    def flush(self) -> None:
        """Commits the messages in a transaction. Raises SinkError if that fails."""
        messages, self._waiting = self._waiting, []
        if messages:
            self._sink.retry_until_done(lambda: self._attempt(messages))

    def _attempt(self, messages: list[tuple[bytes, Headers]]) -> str | None:
        """Attempts a transaction. Returns the problem if it may succeed later, or None."""
        self._failure = None
        number = TopicPartition(self._sink.topic, 0, self._number)
        try:
            self.client.begin_transaction()
            for message in messages:
                self._produce(*message)
            self._request(lambda timeout: self.client.send_offsets_to_transaction([number], self._group, timeout))
            self._request(self.client.commit_transaction)
        except KafkaException as error:
            return self._abort(error)
        return None

    def _abort(self, why: KafkaException) -> str:
        """Aborts a transaction, and returns the problem if another attempt may succeed.

        Raises:
            SinkError: It may not, or a message failed, which the library has retried long enough.
        """
        failed, error = self._failure, why.args[0]
        if error.code() in _FENCED_ERRORS:
            self._sink.fail("another run goes on with the checkpoint")
        if not error.fatal():
            try:
                self._request(self.client.abort_transaction)
            except KafkaException as other:
                self._sink.fail(error_text(other))
        if failed is not None or not error.txn_requires_abort():
            self._sink.fail((failed or error).str())
        return error_text(why)

    def _last(self, settings: dict[str, Any]) -> tuple[int, Any]:
        """Returns the number of the last committed delivery (0 if there is none), and the metadata of its group."""
        consumer = create_client(Consumer, {**settings, "isolation.level": "read_committed"}, self._sink.uri)
        deliveries: list[int] = []

        def ask(timeout: float) -> None:
            (place,) = consumer.committed([TopicPartition(self._sink.topic, 0)], timeout)
            if place.error is not None:
                raise KafkaException(place.error)
            deliveries.append(place.offset)

        try:
            self._request(ask, _TRANSIENT_ERRORS)
            return max(deliveries[-1], 0), consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def _request(self, request: Callable[[float], None], transient: Collection[int] = ()) -> None:
        """Repeats a request until it succeeds. Raises KafkaException for an error that is not transient."""

        def attempt() -> str | None:
            try:
                request(self._sink.request_timeout)
            except KafkaException as error:
                if not error.args[0].retriable() and error.args[0].code() not in transient:
                    raise
                return error_text(error)
            return None

        self._sink.retry_until_done(attempt)
