"""MQTT as source and sink, with mosquitto."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from squall.contracts import Output
from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import Event
from squall.streams import DeadLetterFile, Sources, open_sink, open_source
from squall.streams.address import Address, parse
from squall.streams.sinks.outbox import IdempotentSink
from tests import brokers
from tests.live import PATIENCE, Run, example, line, output, times, wait

pytest.importorskip("paho.mqtt.client")

from paho.mqtt import publish, subscribe
from paho.mqtt.enums import MQTTProtocolVersion

from squall.streams.live.mqtt import MqttSink, MqttSource


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[brokers.Broker]:
    yield from brokers.mosquitto(tmp_path).running()


def at(broker: brokers.Broker, path: str) -> str:
    return f"mqtt://127.0.0.1:{broker.port}/{path}"


def opened(broker: brokers.Broker, path: str, ledger: DeadLetterFile | None = None) -> MqttSource:
    source: object = open_source(at(broker, path), ledger)
    assert isinstance(source, MqttSource)
    return source


def say(broker: brokers.Broker, *payloads: bytes, topic: str = "t/1", qos: int = 1) -> None:
    messages = [{"topic": topic, "payload": payload, "qos": qos} for payload in payloads]
    publish.multiple(messages, "127.0.0.1", broker.port)


def test_what_a_topic_brings_is_read_message_by_message(broker: brokers.Broker) -> None:
    ledger = DeadLetterFile()
    source = opened(broker, "t/+?format=ntt&stream=s", ledger)
    with Run(source) as run:
        say(broker, line(1) + line(2), b"nonsense\n" + line(3), b"\xff\x00", line(4), topic="t/x")
        assert run.until(1, 2, 3, 4) == [1, 2, 3, 4]
    assert ledger.counts == {("malformed", f"mqtt://127.0.0.1:{broker.port}/t/x"): 2}
    assert source.reading.statements == 4


def test_messages_are_documents_of_their_own(broker: brokers.Broker) -> None:
    source = opened(broker, "t/1?format=ttl&time=5")
    with ThreadPoolExecutor(1) as pool:
        batches = source.batches()
        first = pool.submit(next, batches)
        assert source.connected.wait(PATIENCE)
        say(broker, b"_:a <http://example.org/p> 1 .", b"_:a <http://example.org/p> 2 .")
        events = list(first.result(PATIENCE))
        while sum(len(event.facts) for event in events) < 2:
            events += next(batches)
        source.stop()
        source.close()
    assert {event.time for event in events} == {5}
    subjects = {fact[0] for event in events for fact in event.facts}
    assert len(subjects) == 2


def interrupted(source: MqttSource, broker: brokers.Broker, *payloads: bytes, qos: int = 1) -> list[Event]:
    """Returns the first batch of a run that is killed while it processes it."""
    with ThreadPoolExecutor(1) as pool:
        batches = iter(Sources([source]))
        first = pool.submit(next, batches)
        assert source.connected.wait(PATIENCE)
        if payloads:
            say(broker, *payloads, qos=qos)
        events = list(first.result(PATIENCE))
        batches.close()  # type: ignore[attr-defined]
        return events


@pytest.mark.parametrize("qos", [1, 2])
def test_a_named_client_receives_unprocessed_messages_again(broker: brokers.Broker, qos: int) -> None:
    path = f"t/1?format=ntt&client=c&qos={qos}"
    assert times(interrupted(opened(broker, path), broker, line(1), qos=qos)) == [1]
    say(broker, line(2), qos=qos)
    source = opened(broker, path)
    with Run(source) as run:
        assert run.until(1, 2) == [1, 2]
        wait(lambda: not source._unacknowledged)
    say(broker, line(3))
    with Run(opened(broker, path)) as run:
        assert run.until(3) == [3]


@pytest.mark.fault("H5")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_checkpoint_has_and_comes_again_is_a_duplicate(broker: brokers.Broker, qos: int) -> None:
    """A process is killed when its checkpoint is on disk and the broker has no acknowledgement yet."""
    path = f"t/1?format=ntt&client=c&qos={qos}"
    publish.single("t/1", line(1), 1, retain=True, hostname="127.0.0.1", port=broker.port)
    killed = opened(broker, path)
    assert times(interrupted(killed, broker)) == [1]
    state = json.loads(json.dumps(killed.current_offset()))
    say(broker, line(2), qos=qos)
    source = opened(broker, path)
    source.resume(state)
    with Run(source) as run:
        assert run.until(2) == [2]
        wait(lambda: not source._unacknowledged)
        state = source.current_offset()
    resumed = opened(broker, path)
    resumed.resume(state)
    with Run(resumed) as run:
        say(broker, line(3), qos=qos)
        assert run.until(3) == [3]


@pytest.mark.fault("H5")
def test_what_comes_again_on_a_new_connection_is_a_duplicate() -> None:
    """A packet of the same identifier, topic and content is one, unless the session is a new one."""
    first = (b"\x20\x03\0\0\0", _published(b"\x32", b"\0\x07", line(1)))
    again = (b"\x20\x03\x01\0\0", *(_published(b"\x3a", b"\0" + bytes([mid]), line(1)) for mid in (7, 8)),
             _published(b"\x3a", b"\0\x07", line(2)))  # fmt: skip
    fresh = (b"\x20\x03\0\0\0", _published(b"\x3a", b"\0\x07", line(2)), _published(b"\x32", b"\0\x09", line(3)))

    def answer() -> None:
        for packets in (first, again, fresh):
            with server.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(b"".join(packets))
                connection.recv(1000)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        address = parse(f"mqtt://127.0.0.1:{server.getsockname()[1]}/t/1?format=ntt&client=c", "-")
        with Run(MqttSource(address, DeadLetterFile(), close_timeout=0)) as run:
            assert run.until(3) == [1, 1, 2, 2, 3]


def test_processed_messages_are_acknowledged_while_others_are_unread() -> None:
    """The broker sends more than the run reads, and reads the acknowledgements after the run has ended."""
    accepted, more = b"\x20\x03\0\0\0", _published(b"\x30", b"", line(2)) * 20_000

    def answer() -> bytes:
        with server.accept()[0] as connection:
            connection.recv(1000)
            connection.sendall(accepted + _published(b"\x32", b"\0\x07", line(1)))
            assert worked_off.wait(PATIENCE)
            with suppress(BlockingIOError):
                connection.setblocking(False)
                connection.sendall(more)
            ending.set()
            time.sleep(0.3)  # a run that does not wait is gone by now
            connection.settimeout(PATIENCE)
            return b"".join(iter(lambda: connection.recv(1000), b""))

    worked_off, ending = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        message = pool.submit(answer)
        address = parse(f"mqtt://127.0.0.1:{server.getsockname()[1]}/t/1?format=ntt&client=c", "-")
        source = MqttSource(address, DeadLetterFile(), close_timeout=PATIENCE)
        batches = iter(Sources([source]))
        assert times(next(batches)) == [1]
        worked_off.set()
        assert ending.wait(PATIENCE)
        next(batches)
        batches.close()  # type: ignore[attr-defined]
        assert message.result(PATIENCE).endswith(b"\x40\x02\0\x07\xe0\0")


def _published(kind: bytes, identifier: bytes, payload: bytes) -> bytes:
    """Returns a message of a broker (section 3.3 of the specification)."""
    remainder = b"\0\x03t/1" + identifier + b"\0" + payload
    assert len(remainder) < 128
    return kind + bytes([len(remainder)]) + remainder


def test_a_broker_that_is_killed_is_connected_to_again(broker: brokers.Broker) -> None:
    with Run(opened(broker, "t/1?format=ntt")) as run:
        say(broker, line(1))
        run.until(1)
        broker.kill()
        broker.start()
        while 3 not in run.seen:
            say(broker, line(3))
            run.when(lambda: True)
        assert run.seen[0] == 1


def test_an_unreachable_broker_is_an_error_in_the_end(broker: brokers.Broker) -> None:
    with Run(opened(broker, "t/1?format=ntt&retry=200")) as run:
        broker.kill()
        with pytest.raises(SourceError, match="refused"):
            run.end()
        run.failed = True


def test_no_broker_is_an_error_at_once() -> None:
    with pytest.raises(SourceError, match="refused"):
        list(open_source(f"mqtt://127.0.0.1:{brokers.free_port()}/t?format=nt").batches())


@contextmanager
def pretending(*answers: bytes) -> Iterator[int]:
    """Returns the port of a server that sends no more than this to each client, whenever the client sends something."""

    def answer() -> None:
        with server.accept()[0] as connection:
            for data in answers:
                connection.recv(1000)
                connection.sendall(data)
            event.wait(PATIENCE)

    event = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        yield server.getsockname()[1]
        event.set()


def silent(port: int) -> Address:
    return parse(f"mqtt://127.0.0.1:{port}/t?format=nt", "-")


def test_what_does_not_answer_is_an_error() -> None:
    with pretending() as port, pytest.raises(SourceError, match="the broker does not answer"):
        list(MqttSource(silent(port), DeadLetterFile(), connect_timeout=0.2).batches())
    with pretending() as port, pytest.raises(SinkError, match="the broker does not answer"):
        MqttSink(silent(port), connect_timeout=0.2).start()


def test_a_refused_login_is_reported() -> None:
    refused = b"\x20\x03\0\x87\0"
    with pretending(refused) as port, pytest.raises(SourceError, match="Not authorized"):
        list(open_source(f"mqtt://127.0.0.1:{port}/t?format=nt").batches())
    with pretending(refused) as port, pytest.raises(SinkError, match="Not authorized"):
        open_sink(f"mqtt://127.0.0.1:{port}/t").start()


def test_a_name_that_somebody_else_has_is_an_error() -> None:
    accepted, subscribed, taken_over = b"\x20\x03\0\0\0", b"\x90\x04\0\x01\0\0", b"\xe0\x02\x8e\0"
    with (
        pretending(accepted, subscribed + taken_over) as port,
        pytest.raises(SourceError, match="another client has taken over its name"),
        Run(open_source(f"mqtt://127.0.0.1:{port}/t?format=nt&client=c")) as run,
    ):
        run.end()


def test_messages_in_flight_are_bounded(broker: brokers.Broker) -> None:
    """A run that processes its first batch receives no more messages than fit into the buffer, and drops none of QoS
    1."""
    ledger = DeadLetterFile()
    source = opened(broker, "t/1?format=ntt&buffer=5", ledger)
    with ThreadPoolExecutor(1) as pool:
        batches = iter(Sources([source]))
        first = pool.submit(next, batches)
        assert source.connected.wait(PATIENCE)
        say(broker, *(line(number) for number in range(100)))
        result = times(first.result(PATIENCE))
        while len(result) < 100:
            batch = times(next(batches))
            assert len(batch) <= 10  # the broker may be a step ahead of the acknowledgements
            result += batch
        batches.close()  # type: ignore[attr-defined]
    assert result == list(range(100))
    assert not ledger.counts


def test_dropped_messages_are_counted(broker: brokers.Broker) -> None:
    ledger = DeadLetterFile()
    source = opened(broker, "t/1?format=ntt&buffer=5&qos=0", ledger)
    with ThreadPoolExecutor(1) as pool:
        batches = iter(Sources([source]))
        first = pool.submit(next, batches)
        assert source.connected.wait(PATIENCE)
        say(broker, line(0))
        result = times(first.result(PATIENCE))
        say(broker, *(line(number) for number in range(1, 100)), qos=0)
        while len(result) + ledger.total("dropped") < 100:
            result += times(next(batches))
        batches.close()  # type: ignore[attr-defined]
    assert len(result) + ledger.total("dropped") == 100
    assert ledger.counts.keys() <= {("dropped", f"mqtt://127.0.0.1:{broker.port}/t/1")}


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_sink_publishes_what_a_source_reads(broker: brokers.Broker, qos: int) -> None:
    with Run(opened(broker, f"t/out?format=ntt&qos={qos}")) as run:
        with closing(open_sink(at(broker, f"t/out?format=ntt&qos={qos}"))) as sink:
            sink.start()
            for number in range(50):
                sink.write(output(number))
        assert run.until(*range(50)) == list(range(50))


_V5 = MQTTProtocolVersion.MQTTv5


def test_a_message_has_a_deduplication_key(broker: brokers.Broker) -> None:
    with closing(open_sink(at(broker, "t/out?format=ntt&retain=yes"))) as sink:
        sink.start()
        cast(IdempotentSink, sink).begin_delivery("n", 7)
        sink.write(output(1))
    message = subscribe.simple("t/out", hostname="127.0.0.1", port=broker.port, protocol=_V5)
    assert message.properties.UserProperty == [("squall-id", "n-7-1")]


def test_a_sink_resumes_when_the_broker_is_back(broker: brokers.Broker) -> None:
    with closing(open_sink(at(broker, "t/out?format=ntt&retain=yes"))) as sink:
        sink.start()
        sink.write(output(1))
        broker.kill()
        sink.write(output(2))
        broker.start()
    with Run(opened(broker, "t/out?format=ntt")) as run:
        assert run.until(2) == [2]


def test_a_message_is_an_evaluation_in_formats_of_these(broker: brokers.Broker) -> None:
    from paho.mqtt import subscribe

    with ThreadPoolExecutor(1) as pool:
        with closing(open_sink(at(broker, "t/out?format=srj&retain=yes"))) as sink:
            sink.start()
            for item in (output(1), output(1), output(2)):
                sink.write(Output(*item))
        message = pool.submit(subscribe.simple, "t/out", 1, hostname="127.0.0.1", port=broker.port).result(PATIENCE)
    assert message.payload.count(b'"subject": {') == 1


def test_a_sink_without_a_broker_is_an_error() -> None:
    with pytest.raises(SinkError, match="refused"):
        open_sink(f"mqtt://127.0.0.1:{brokers.free_port()}/t").start()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mqtt://host?format=nt", "names no topic"),
        ("mqtt://host/t?format=nt&qos=3", "not 0, 1 or 2"),
        ("mqtt://host/t?format=nt&buffer=0", "too small"),
        ("mqtt://host/t?format=nt&reconnect=yes", "unknown option"),
        ("mqtt://host/a/%23/b?format=nt", "wildcard in its topic that is no level"),
        ("mqtt://host/a+/b?format=nt", "wildcard in its topic that is no level"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


@pytest.mark.parametrize(("uri", "message"), [("mqtt://host/t/#", "wildcard"), ("mqtt://h/t?format=csv", "cannot be")])
def test_an_invalid_address_of_a_sink_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_sink(uri)


@pytest.mark.more
def test_the_example_of_the_page_runs(broker: brokers.Broker, tmp_path: Path) -> None:
    brokers.program("mosquitto_pub")
    port = str(broker.port)
    replaced = {"localhost": f"127.0.0.1:{port}", "_sub ": f"_sub -p {port} ", "_pub ": f"_pub -p {port} "}
    example("mqtt.sh", tmp_path, brokers.environment(), **replaced)


@pytest.mark.more
def test_the_tutorial_runs(broker: brokers.Broker, tmp_path: Path) -> None:
    """The test runs the live stream of the tutorial; the rest of it runs with the other pages."""
    brokers.program("mosquitto_sub")
    port = str(broker.port)
    replaced = {"localhost": f"127.0.0.1:{port}", "_sub ": f"_sub -p {port} ", "_pub ": f"_pub -p {port} "}
    example("live.sh", tmp_path, brokers.environment(), "tutorial.md", "alarm/rules.jena", **replaced)
