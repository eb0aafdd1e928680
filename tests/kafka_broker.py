"""A broker of Kafka with transactions, for tests: small, in this process, over the wire protocol of Kafka.

librdkafka's own emulation does not fence, and forgets the offsets of transactions; this does what KIP-98 says, and
little besides: one topic after the other springs into being, with two partitions, and nothing is checked but who may
write. Old versions of the protocol are all that it speaks (https://kafka.apache.org/protocol).
"""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

PARTITIONS = 2
FENCED, UNSUPPORTED = 47, 35  # error codes
_COMMIT, _ABORT = 1, 0
_TRANSACTIONAL, _CONTROL = 0x10, 0x20  # attributes of a batch


@dataclass
class Partition:
    """A partition of a topic. `batches` has batches of records, each with its first offset."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    behind: int = 0
    open: dict[int, int] = field(default_factory=dict)
    """The first offsets of open transactions, by producer."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """The aborted transactions: the producer, the first offset, and the offset of the marker."""

    def add(self, records: bytes) -> int:
        """Adds records, which are one batch, and returns the offset of the first."""
        attributes, last, _, _, producer = struct.unpack_from(">hiqqq", records, 21)
        first, self.behind = self.behind, self.behind + last + 1
        self.batches.append((first, struct.pack(">q", first) + records[8:]))
        if attributes & _TRANSACTIONAL and not attributes & _CONTROL:
            self.open.setdefault(producer, first)
        return first

    def end(self, producer: int, epoch: int, how: int) -> None:
        """Ends a transaction."""
        if (first := self.open.pop(producer, None)) is None:
            return
        mark = self.add(_mark(producer, epoch, how))
        if how == _ABORT:
            self.aborted.append((producer, first, mark))

    @property
    def stable(self) -> int:
        return min(self.open.values(), default=self.behind)


@dataclass
class Producing:
    """The state that the broker has for a transactional id."""

    id: int
    epoch: int = -1
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """The offsets of groups that the transaction is to commit."""


class KafkaBroker:
    def __init__(self) -> None:
        self.topics: dict[str, list[Partition]] = defaultdict(lambda: [Partition() for _ in range(PARTITIONS)])
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.producers: dict[str, Producing] = {}
        self.lock = threading.Lock()
        self.port = 0

    @contextmanager
    def running(self) -> Iterator[KafkaBroker]:
        """Listens on a loopback port of its own."""
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(ConnectionError):  # of who is killed
                    while len(size := self.rfile.read(4)) == 4:
                        request = self.rfile.read(*struct.unpack(">i", size))
                        answer = request[4:8] + broker.answer(request)
                        self.wfile.write(struct.pack(">i", len(answer)) + answer)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        with Server(("127.0.0.1", 0), Handler) as server:
            self.port = server.server_address[1]
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield self
            server.shutdown()

    def settings(self, group: str) -> dict[str, str]:
        """Returns the settings of a client."""
        return {"bootstrap.servers": f"127.0.0.1:{self.port}", "group.id": group}

    def answer(self, request: bytes) -> bytes:
        key, version, _ = struct.unpack_from(">hhi", request)
        read, write = Reader(request, 8), Writer()
        newest, handler = _APIS[key]
        read.text()
        if key == 1:
            time.sleep(0.005)  # who has all there is asks again and again
        with self.lock:
            if version == newest:
                handler(self, read, write)
            else:
                assert key == 18, "only of this one a client does not know the versions"
                write.add("hi", UNSUPPORTED, 0)
        return write.data

    # Requests, by their names in the protocol

    def api_versions(self, read: Reader, write: Writer) -> None:
        write.add("h", 0)
        write.each([*_APIS.items()], lambda api: write.add("hhh", api[0], 0, api[1][0]))

    def produce(self, read: Reader, write: Writer) -> None:
        name = read.text()
        read.take("hi")

        def partition(topic: str) -> None:
            (number,), records = read.take("i"), read.block()
            producer, epoch = struct.unpack_from(">qh", records, 43)
            error = self._fenced(name, producer, epoch) if name else 0
            first = -1 if error else self.topics[topic][number].add(records)
            write.add("ihqq", number, error, first, -1)

        self._by_partition(read, write, partition)
        write.add("i", 0)

    def fetch(self, read: Reader, write: Writer) -> None:
        *_, committed = read.take("iiiib")
        write.add("i", 0)

        def partition(topic: str) -> None:
            number, offset, _ = read.take("iqi")
            result = self.topics[topic][number]
            end = result.stable if committed else result.behind
            write.add("ihqq", number, 0, result.behind, result.stable)
            aborted = [item for item in result.aborted if committed and item[2] >= offset]
            write.each(aborted, lambda item: write.add("qq", *item[:2]))
            behind = [*(first for first, _ in result.batches[1:]), result.behind]
            batches = zip(result.batches, behind, strict=False)
            write.block(b"".join(data for (first, data), last in batches if last > offset and first < end))

        self._by_partition(read, write, partition)

    def list_offsets(self, read: Reader, write: Writer) -> None:
        read.take("i")

        def partition(topic: str) -> None:
            number, when = read.take("iq")
            write.add("ihqq", number, 0, -1, 0 if when == -2 else self.topics[topic][number].behind)

        self._by_partition(read, write, partition)

    def metadata(self, read: Reader, write: Writer) -> None:
        topics = [read.text() for _ in range(max(0, *read.take("i")))]
        write.add("ii", 0, 1).add("i", 1).text("127.0.0.1").add("i", self.port).text(None)
        write.text("test").add("i", 1)

        def topic(name: str) -> None:
            write.add("h", 0).text(name).add("b", 0)
            write.each(range(len(self.topics[name])), lambda n: write.add("hiiiiii", 0, n, 1, 1, 1, 1, 1))

        write.each(topics, topic)

    def find_coordinator(self, read: Reader, write: Writer) -> None:
        write.add("ih", 0, 0).text(None).add("i", 1).text("127.0.0.1").add("i", self.port)

    def init_producer_id(self, read: Reader, write: Writer) -> None:
        """Ends the transactions of earlier producers with that name, and fences them off."""
        name = read.text() or f"{len(self.producers)}"
        producer = self.producers.setdefault(name, Producing(1000 + len(self.producers)))
        self._end(producer, _ABORT)
        producer.epoch += 1
        write.add("ihqh", 0, 0, producer.id, producer.epoch)

    def add_partitions_to_txn(self, read: Reader, write: Writer) -> None:
        error = self._fenced(read.text(), *read.take("qh"))
        write.add("i", 0)
        self._by_partition(read, write, lambda _: write.add("ih", *read.take("i"), error))

    def add_offsets_to_txn(self, read: Reader, write: Writer) -> None:
        write.add("ih", 0, self._fenced(read.text(), *read.take("qh")))

    def txn_offset_commit(self, read: Reader, write: Writer) -> None:
        name, group = read.text(), read.text()
        error = self._fenced(name, *read.take("qh"))
        write.add("i", 0)

        def partition(topic: str) -> None:
            number, offset = read.take("iq")
            read.text()
            if not error:
                self.producers[name].offsets[group, topic, number] = offset
            write.add("ih", number, error)

        self._by_partition(read, write, partition)

    def end_txn(self, read: Reader, write: Writer) -> None:
        name = read.text()
        error = self._fenced(name, *read.take("qh"))
        (how,) = read.take("b")
        if not error:
            self._end(self.producers[name], how)
        write.add("ih", 0, error)

    def offset_fetch(self, read: Reader, write: Writer) -> None:
        group = read.text()

        def partition(topic: str) -> None:
            (number,) = read.take("i")
            write.add("iq", number, self.offsets.get((group, topic, number), -1)).text("").add("h", 0)

        self._by_partition(read, write, partition)

    # What they have in common

    def _fenced(self, name: str, producer: int, epoch: int) -> int:
        existing = self.producers[name]
        return 0 if (existing.id, existing.epoch) == (producer, epoch) else FENCED

    def _end(self, producer: Producing, how: int) -> None:
        for partitions in self.topics.values():
            for partition in partitions:
                partition.end(producer.id, producer.epoch, how)
        if how == _COMMIT:
            self.offsets |= producer.offsets
        producer.offsets = {}

    def _by_partition(self, read: Reader, write: Writer, one: Callable[[str], object]) -> None:
        """Answers a request for each partition of each topic."""

        def topic(name: str) -> None:
            write.text(name)
            write.each(range(*read.take("i")), lambda _: one(name))

        write.each(range(*read.take("i")), lambda _: topic(read.text()))


class Reader:
    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place

    def take(self, format: str) -> tuple[int, ...]:
        result = struct.unpack_from(f">{format}", self.data, self.place)
        self.place += struct.calcsize(f">{format}")
        return result

    def text(self) -> str:
        (length,) = self.take("h")
        return self._next(length).decode()

    def block(self) -> bytes:
        (length,) = self.take("i")
        return self._next(length)

    def _next(self, length: int) -> bytes:
        begin, self.place = self.place, self.place + max(0, length)
        return self.data[begin : self.place]


class Writer:
    def __init__(self) -> None:
        self.data = b""

    def add(self, format: str, *values: int) -> Writer:
        self.data += struct.pack(f">{format}", *values)
        return self

    def text(self, text: str | None) -> Writer:
        if text is None:
            return self.add("h", -1)
        self.add("h", len(text.encode()))
        return self._put(text.encode())

    def block(self, data: bytes) -> Writer:
        self.add("i", len(data))
        return self._put(data)

    def each(self, items: Any, write: Callable[[Any], object]) -> None:
        self.add("i", len(items))
        for item in items:
            write(item)

    def _put(self, data: bytes) -> Writer:
        self.data += data
        return self


def _mark(producer: int, epoch: int, how: int) -> bytes:
    """Returns the batch of one record that says how a transaction ended."""
    key, value = struct.pack(">hh", 0, how), struct.pack(">hi", 0, 0)
    record = b"\0\0\0" + _small(len(key)) + key + _small(len(value)) + value + b"\0"
    remainder = (
        struct.pack(">hiqqqhii", _TRANSACTIONAL | _CONTROL, 0, 0, 0, producer, epoch, -1, 1)
        + _small(len(record))
        + record
    )
    return struct.pack(">qiibI", 0, len(remainder) + 9, 0, 2, 0) + remainder


def _small(number: int) -> bytes:
    """Returns a number below 64 as a zigzag varint."""
    return bytes([number << 1])


_APIS: dict[int, tuple[int, Callable[[KafkaBroker, Reader, Writer], None]]] = {
    0: (3, KafkaBroker.produce),
    1: (4, KafkaBroker.fetch),
    2: (1, KafkaBroker.list_offsets),
    3: (4, KafkaBroker.metadata),
    9: (1, KafkaBroker.offset_fetch),
    10: (1, KafkaBroker.find_coordinator),
    18: (0, KafkaBroker.api_versions),
    22: (0, KafkaBroker.init_producer_id),
    24: (0, KafkaBroker.add_partitions_to_txn),
    25: (0, KafkaBroker.add_offsets_to_txn),
    26: (0, KafkaBroker.end_txn),
    28: (0, KafkaBroker.txn_offset_commit),
}
"""The newest supported version of each request, by its key."""
