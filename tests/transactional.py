"""A small, strict model of a Kafka cluster with transactions, behind the interface of confluent-kafka's clients.

It keeps what has been written by open, aborted and committed transactions apart, takes offsets with the transaction
that has them, and fences off who has been replaced, as KIP-98 and KIP-447 say. A topic has one partition. At each call
something may go wrong, and the process may die: see `Fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from types import SimpleNamespace
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException


class Died(BaseException):
    """The process has been killed."""


class Fault(Enum):
    """What happens at a call of the client."""

    NOTHING = "all goes well"
    DIES_BEFORE = "the process dies, and the cluster has not heard of it"
    DIES_AFTER = "the process dies, and the cluster has done it"
    DIES_WITHIN = "the process dies, and of a commit it is decided, but not seen yet; else the same"
    REQUEST_LOST = "no answer in time: it was not done"
    ANSWER_LOST = "no answer in time: it was done"
    ABORTED = "the transaction cannot go on, and has to be aborted"
    FATAL = "nothing more can be done with this client"
    REFUSED = "a message does not arrive, however often it is sent"
    TOO_LARGE = "a message is none that can be sent"
    FULL = "there is no room for more messages, or what is asked for is not settled"


class State(Enum):
    OPEN = "open"
    DECIDED = "to be committed"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transaction:
    """A transaction that holds the messages that were sent in it."""

    def __init__(self) -> None:
        self.state = State.OPEN
        self.offsets: dict[str, int] = {}


class Cluster:
    """A cluster whose `faults` say what happens at each call, in turn. After that, all calls succeed."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults = iter(faults)
        self.calls = 0
        self.log: list[tuple[Transaction, bytes, dict[str, str]]] = []
        self.offsets: dict[str, int] = {}
        self.epochs: dict[str, int] = {}
        self.last: dict[str, Transaction] = {}
        """The last transaction of each transactional id."""

    def fault(self) -> Fault:
        self.calls += 1
        return next(self.faults, Fault.NOTHING)

    def committed(self) -> list[tuple[bytes, dict[str, str]]]:
        """Returns what a consumer with ``isolation.level=read_committed`` gets: nothing behind an open transaction."""
        results = []
        for transaction, data, headers in self.log:
            if transaction.state in (State.OPEN, State.DECIDED):
                break
            if transaction.state is State.COMMITTED:
                results.append((data, headers))
        return results

    def commit(self, transaction: Transaction) -> None:
        transaction.state = State.COMMITTED
        self.offsets |= transaction.offsets

    def settle(self, name: str) -> None:
        """Ends the last transaction of a transactional id, as far as that has not been done."""
        last = self.last.pop(name, None)
        if last is not None and last.state is State.DECIDED:
            self.commit(last)
        elif last is not None and last.state is State.OPEN:
            last.state = State.ABORTED

    def producer(self, settings: dict[str, Any]) -> Producer:
        return Producer(self, settings)

    def consumer(self, settings: dict[str, Any]) -> Consumer:
        return Consumer(self, settings)


class Client:
    def __init__(self, cluster: Cluster, settings: dict[str, Any]) -> None:
        self.cluster = cluster
        self.settings = settings

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})


class Producer(Client):
    """With a ``transactional.id`` all that it does is checked; without one it writes nothing."""

    def __init__(self, cluster: Cluster, settings: dict[str, Any]) -> None:
        super().__init__(cluster, settings)
        self.name: str = settings.get("transactional.id", "")
        self.epoch = 0
        self.is_ready = False
        self.now: Transaction | None = None
        self.must_abort = False
        self.fatal = False
        self.reports: list[Callable[[KafkaError, None], None]] = []
        """Callbacks that report the delivery of the transaction's messages."""

    # What the sink calls

    def init_transactions(self, timeout: float) -> None:
        def do() -> None:
            self.cluster.settle(self.name)
            self.epoch = self.cluster.epochs[self.name] = self.cluster.epochs.get(self.name, 0) + 1

        assert self.name
        assert not self.is_ready
        self._call(do, is_abortable=False)
        self.is_ready = True

    def begin_transaction(self) -> None:
        """Begins a transaction, which concerns the client alone."""
        self._check()
        assert self.is_ready
        assert self.now is None
        self.now = Transaction()
        self.cluster.last[self.name] = self.now

    def produce(self, topic: str, data: bytes, headers: dict[str, str], on_delivery: Any) -> None:
        def do() -> None:
            self.cluster.log.append((self._open(), data, headers))

        fault = self.cluster.fault()
        if fault is Fault.FULL:
            raise BufferError
        if fault in (Fault.REQUEST_LOST, Fault.ANSWER_LOST):  # librdkafka's own business
            fault = Fault.NOTHING
        if fault is Fault.TOO_LARGE:
            _fail(KafkaError.MSG_SIZE_TOO_LARGE)
        if fault is Fault.REFUSED:
            self.must_abort = True
            on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT, "Message timed out"), None)
            return
        self._call(do, fault=fault)
        self.reports.append(on_delivery)

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self) -> None:
        assert not self.name, "a commit does that"

    def send_offsets_to_transaction(self, offsets: list[Any], group: str, timeout: float) -> None:
        def do() -> None:
            self._open().offsets[group] = offsets[0].offset

        assert [(offset.topic, offset.partition) for offset in offsets] == [("t", 0)]
        self._call(do)

    def commit_transaction(self, timeout: float) -> None:
        def do() -> None:
            if self.now is not None:
                self.cluster.commit(self._open())
            self.now = None
            self.reports.clear()

        self._call(do, within=self._decide)

    def abort_transaction(self, timeout: float) -> None:
        def do() -> None:
            if self.now is not None and self.now.state is State.OPEN:
                self.now.state = State.ABORTED
            self.now, self.must_abort = None, False
            for report in self.reports:  # what has not been heard of is given up
                report(KafkaError(KafkaError._PURGE_QUEUE), None)
            self.reports.clear()

        self.must_abort = False
        self._call(do, is_abortable=False)

    # What becomes of it

    def _decide(self) -> None:
        self._open().state = State.DECIDED

    def _open(self) -> Transaction:
        assert self.now is not None
        assert self.now.state is State.OPEN
        return self.now

    def _call(
        self,
        do: Callable[[], None],
        is_abortable: bool = True,
        within: Callable[[], None] | None = None,
        fault: Fault | None = None,
    ) -> None:
        fault = fault or self.cluster.fault()
        if fault is Fault.DIES_BEFORE:
            raise Died
        self._check()
        if fault is Fault.FATAL:
            self.fatal = True
            self._check()
        if fault is Fault.ABORTED and is_abortable:
            self.must_abort = True
            self._check()
        if fault is Fault.DIES_WITHIN:
            (within or do)()
            raise Died
        if fault is not Fault.REQUEST_LOST:
            do()
        if fault is Fault.DIES_AFTER:
            raise Died
        if fault in (Fault.REQUEST_LOST, Fault.ANSWER_LOST):
            _fail(KafkaError._TIMED_OUT, retriable=True)

    def _check(self) -> None:
        """Checks whether the producer can do anything at all."""
        if self.epoch > 0 and self.cluster.epochs[self.name] != self.epoch:
            self.fatal = True
            _fail(KafkaError._FENCED, fatal=True)
        if self.fatal:
            _fail(KafkaError._FATAL, fatal=True)
        if self.must_abort:
            _fail(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True)


class Consumer(Client):
    """Asks for the offset of its group."""

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        assert self.settings["isolation.level"] == "read_committed"
        fault = self.cluster.fault()
        if fault in (Fault.DIES_BEFORE, Fault.DIES_WITHIN, Fault.DIES_AFTER):
            raise Died
        if fault in (Fault.REQUEST_LOST, Fault.ANSWER_LOST):
            _fail(KafkaError._TIMED_OUT)
        if fault is Fault.FATAL:
            _fail(KafkaError.GROUP_AUTHORIZATION_FAILED)
        if fault is Fault.FULL:
            error = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)
            return [SimpleNamespace(offset=-1001, error=error)]
        return [SimpleNamespace(offset=self.cluster.offsets.get(self.settings["group.id"], -1001), error=None)]

    def consumer_group_metadata(self) -> str:
        return str(self.settings["group.id"])

    def close(self) -> None:
        pass


def _fail(code: int, **what: bool) -> NoReturn:
    raise KafkaException(KafkaError(code, KafkaError(code).str(), **what))
