"""Kafka as source and sink, over its real protocol: with the emulation of a cluster that librdkafka has built in.

It cannot be killed and started again at the same place: that is librdkafka's own business, and tested there.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import XSD
from squall.streams import DeadLetterFile, Sources, open_sink, open_source
from squall.streams.address import parse
from squall.streams.sinks import Flushable
from squall.streams.sinks.outbox import IdempotentSink
from squall.streams.sources.reordering import resume
from tests import brokers
from tests.conftest import Squall
from tests.live import PATIENCE, Run, example, line, output, times

pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, Producer, TopicPartition

from squall.streams.live.kafka import KafkaSink, KafkaSource


class Cluster:
    """A cluster of one broker, which has a producer."""

    def __init__(self) -> None:
        self.producer: Any = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored"})
        (broker,) = self.producer.list_topics("t", PATIENCE).brokers.values()
        self.server = f"{broker.host}:{broker.port}"

    def say(self, *payloads: bytes | None, partition: int = 0) -> None:
        for payload in payloads:
            self.producer.produce("t", payload, partition=partition)
        assert self.producer.flush(PATIENCE) == 0

    def at(self, rest: str) -> str:
        return f"kafka://{self.server}/{rest}"

    def opened(self, rest: str, ledger: DeadLetterFile | None = None) -> KafkaSource:
        source: object = open_source(self.at(rest), ledger)
        assert isinstance(source, KafkaSource)
        return source

    def read(self, count: int) -> list[Any]:
        """Returns a number of messages of the topic."""
        consumer = Consumer({"bootstrap.servers": self.server, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        messages = [message for _ in range(count) for message in consumer.consume(1, PATIENCE)]
        consumer.close()
        return messages

    def committed(self, group: str, partition: int = 0) -> int:
        consumer = Consumer({"bootstrap.servers": self.server, "group.id": group})
        (place,) = consumer.committed([TopicPartition("t", partition)], PATIENCE)
        consumer.close()
        return int(place.offset)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_messages_of_all_partitions_are_read(cluster: Cluster) -> None:
    ledger = DeadLetterFile()
    with Run(cluster.opened("t?format=ntt", ledger)) as run:
        cluster.say(line(1) + line(2), b"nonsense\n" + line(3), None)
        cluster.say(line(4), partition=1)
        assert sorted(run.until(1, 2, 3, 4)) == [1, 2, 3, 4]
    assert ledger.counts == {("malformed", f"kafka://{cluster.server}/t[0]"): 1}


def test_a_range_of_positions_can_be_read_again(cluster: Cluster) -> None:
    cluster.say(line(1), line(2) + line(3), None)
    cluster.say(line(4), partition=1)
    source = cluster.opened("t?format=ntt&from=first")
    begin, end = source.beginning(), source.latest()
    source.close()
    cluster.say(line(5))

    def read(begin: str, end: str) -> list[list[int]]:
        results = []
        for part in cluster.opened("t?format=ntt").splits_of(begin, end):
            with closing(cluster.opened("t?format=ntt&buffer=2")) as one:
                results.append([time for batch in one.read_split(part) for time in times(batch)])
        return results

    assert read(begin, end) == read(begin, end) == [[1, 2, 3], [4]]
    with closing(cluster.opened("t?format=ntt")) as new:
        assert read(end, new.latest()) == [[5]]
        assert new.beginning() == new.latest()
        assert new.splits_of(new.beginning(), new.latest()) == []


def test_where_reading_begins(cluster: Cluster) -> None:
    cluster.say(line(1))
    with Run(cluster.opened("t?format=ntt&from=new")) as run:
        cluster.say(line(2))
        assert run.until(2) == [2]
    with Run(cluster.opened("t?format=ntt&from=first")) as run:
        assert run.until(1, 2) == [1, 2]


def test_it_can_be_read_again_from_a_position(cluster: Cluster) -> None:
    cluster.say(*map(line, range(10)))
    source = cluster.opened("t?format=ntt&from=first&buffer=4")
    numbers: list[int] = []
    positions: dict[int, str] = {}
    for batch in source.batches():
        numbers += times(list(batch))
        positions[len(numbers)] = source.position()
        if len(numbers) == 10:
            source.stop()
    source.close()
    assert numbers == list(range(10))
    for count, position in positions.items():
        again = cluster.opened("t?format=ntt")
        again.seek(position)
        with Run(again) as run:
            if count < 10:
                assert run.until(9) == list(range(count, 10))


@pytest.mark.more
def test_a_group_receives_unprocessed_messages_again(cluster: Cluster) -> None:
    cluster.say(*map(line, range(6)))
    # The emulation lets a member in again only when the session of the one before is over.
    address = "t?format=ntt&group=g&from=first&buffer=2&session.timeout.ms=4000&heartbeat.interval.ms=200"
    batches = iter(Sources([cluster.opened(address)]))
    numbers: list[int] = []
    while len(numbers) < 4:
        before = len(numbers)
        numbers += times(list(next(batches)))
    batches.close()  # type: ignore[attr-defined]
    assert cluster.committed("g") == before
    with Run(cluster.opened(address)) as run:
        assert run.until(5) == list(range(before, 6))
    assert cluster.committed("g") == 6


@pytest.mark.more
def test_what_a_group_gives_again_is_passed_over_behind_a_position(cluster: Cluster) -> None:
    cluster.say(*map(line, range(6)))
    source = cluster.opened("t?format=ntt&group=g&from=first")
    source.seek('{"0": 3}')
    with Run(source) as run:
        assert run.until(3, 4, 5) == [3, 4, 5]
    assert cluster.committed("g") == 6


class _Received(NamedTuple):
    """A message that a consumer has received."""

    number: int
    place: int = 0

    def partition(self) -> int:
        return self.place

    def offset(self) -> int:
        return self.number

    def value(self) -> bytes:
        return line(self.number)


def test_a_group_keeps_the_offsets_of_partitions_that_it_gives_again() -> None:
    """A checkpoint has those of all partitions. Only those that this consumer reads are committed."""
    source = open_source("kafka://localhost/t?format=ntt&group=g")
    assert isinstance(source, KafkaSource)
    assert source.current_offset() == ""
    source.resume('{"0": 3, "1": 5}')
    assert times(source._batch([_Received(2), _Received(3)])) == [3]
    assert json.loads(source.current_offset()) == {"0": 4, "1": 5}
    assert json.loads(source.position()) == {"0": 4}
    source._on_revoke(None, [TopicPartition("t", 0)])
    assert times(source._batch([_Received(2), _Received(4, 1), _Received(5, 1)])) == [5]
    assert json.loads(source.current_offset()) == {"0": 4, "1": 6}
    assert times(source._batch([_Received(3), _Received(4)])) == [4]


def test_the_start_offset_is_fixed_before_the_first_read(cluster: Cluster) -> None:
    cluster.say(line(1))
    sources = Sources([cluster.opened("t?format=ntt")])
    sources.track_offsets((), 200)
    cluster.say(line(2))
    again = cluster.opened("t?format=ntt")
    resume(again, sources.current_offsets()[0]["source"])
    cluster.say(line(3))
    with Run(again) as run:
        assert run.until(2, 3) == [2, 3]
    sources.close()


@pytest.mark.parametrize("transactional", ["yes", "no"])
@pytest.mark.more
def test_a_message_has_a_deduplication_key(cluster: Cluster, transactional: str) -> None:
    for number in (7, 8):
        with closing(open_sink(cluster.at(f"t?format=ntt&transactional={transactional}"))) as sink:
            sink.start()
            cast(IdempotentSink, sink).begin_delivery("n", number)
            sink.write(output(number))
            cast(Flushable, sink).flush()
            cast(IdempotentSink, sink).begin_delivery("n", number + 2)
            sink.write(output(number + 2))
            sink.write(output(number + 4))
    with closing(open_sink(cluster.at("t?format=ntt"))) as sink:
        sink.start()
        sink.write(output(1))
    assert {item.value().split()[0]: item.headers() for item in cluster.read(7)} == {
        b"7": [("squall-id", b"n-7-1")],
        b"9": [("squall-id", b"n-9-1")],
        b"11": [("squall-id", b"n-9-2")],
        b"8": [("squall-id", b"n-8-1")],
        b"10": [("squall-id", b"n-10-1")],
        b"12": [("squall-id", b"n-10-2")],
        b"1": None,
    }


@pytest.mark.more
def test_a_run_with_a_checkpoint_commits_transactions(cluster: Cluster, tmp_path: Path, squall: Squall) -> None:
    (tmp_path / "p.jena").write_text("@prefix : <http://example.org/> .\n[(?a :p ?b) -> (?b :q ?a)]")
    for number in (1, 2):
        with (tmp_path / "a.ntt").open("ab") as file:
            file.write(line(number))
        arguments = ["--source", f"{tmp_path}/a.ntt", "--sink", cluster.at("t?format=nt")]
        code, _, result = squall("build", f"{tmp_path}/p.jena", *arguments, "--checkpoint", f"{tmp_path}/kept")
        assert code == 0, result
    results = sorted(item.value().split()[2] for item in cluster.read(2))  # they may be in several partitions
    assert results == [b"<http://example.org/1>", b"<http://example.org/2>"]


@pytest.mark.more
def test_a_message_that_is_too_large_is_an_error_in_a_transaction(cluster: Cluster) -> None:
    """The transaction is aborted, with its unsent messages; the next one is not."""
    with closing(open_sink(cluster.at("t?format=ntt&message.max.bytes=1000&linger.ms=1000"))) as sink:
        sink.start()
        cast(IdempotentSink, sink).begin_delivery("n", 1)
        sink.write(output(1))
        sink.write(output(1)._replace(fact=output(int("9" * 2000)).fact))
        with pytest.raises(SinkError, match="too large"):
            cast(Flushable, sink).flush()
        cast(IdempotentSink, sink).begin_delivery("n", 2)
        sink.write(output(2))
    assert [item.headers() for item in cluster.read(1)] == [[("squall-id", b"n-2-1")]]


def test_no_more_than_the_buffer_is_a_batch(cluster: Cluster) -> None:
    cluster.say(*map(line, range(50)))
    source = cluster.opened("t?format=ntt&from=first&buffer=7")
    numbers: list[int] = []
    for batch in source.batches():
        assert len(batch) <= 7
        numbers += times(list(batch))
        if len(numbers) == 50:
            source.stop()
    source.close()
    assert numbers == list(range(50))


@pytest.mark.more
def test_no_broker_is_an_error() -> None:
    address = parse(f"kafka://127.0.0.1:{brokers.free_port()}/t?format=nt", "-")
    with pytest.raises(SourceError, match="cannot be read"):
        list(KafkaSource(address, DeadLetterFile(), request_timeout=1).batches())
    with pytest.raises(SinkError, match="cannot be written"):
        KafkaSink(address, request_timeout=1).start()


def test_an_unreachable_broker_is_an_error_in_the_end() -> None:
    cluster = Cluster()
    with Run(cluster.opened("t?format=ntt&retry=500")) as run:
        cluster.producer = None  # the cluster ends with it
        with pytest.raises(SourceError, match="cannot be read"):
            run.end()
        run.failed = True


def test_a_sink_writes_what_a_source_reads(cluster: Cluster) -> None:
    with closing(open_sink(cluster.at("t?format=ntt&linger.ms=1"))) as sink:
        sink.start(prompt=True)
        for number in range(500):
            sink.write(output(number))
    with Run(cluster.opened("t?format=ntt&from=first")) as run:
        assert sorted(run.until(*range(500))) == list(range(500))


def test_what_a_broker_refuses_is_an_error(cluster: Cluster) -> None:
    sink = open_sink(cluster.at("t?format=nt&message.max.bytes=1000"))
    sink.start()
    long = output(1)._replace(fact=output(int("9" * 2000)).fact)
    with pytest.raises(SinkError, match="too large"):
        sink.write(long)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("kafka://host?format=nt", "names no topic"),
        ("kafka:topic?format=nt", "names no topic"),
        ("kafka://host/t?format=nt&from=5", "neither new nor first"),
        ("kafka://host/t?format=nt&groop=g", "unknown option"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


def test_settings_of_librdkafka(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match=r"no.such"):
        next(iter(cluster.opened("t?format=nt&no.such=1").batches()))


@pytest.mark.more
def test_the_example_of_the_page_runs(cluster: Cluster, tmp_path: Path) -> None:
    reading = f'1 <http://example.org/1> <http://example.org/reads> "35"^^<{XSD}integer> .'
    cluster.producer.produce("readings", reading)
    cluster.producer.flush(PATIENCE)
    example("kafka.sh", tmp_path, {}, **{"localhost:9092": cluster.server, "python ": f"{sys.executable} "})
