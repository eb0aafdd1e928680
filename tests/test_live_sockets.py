"""TCP and UNIX sockets as sources and sinks, over the loopback."""

from __future__ import annotations

import json
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.contracts import Output
from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import Event, iri, triple
from squall.streams import DeadLetterFile, Sources, open_sink, open_source
from squall.streams.address import parse
from squall.streams.dead_letters import DeferredLedger
from squall.streams.live.socket_sinks import SocketSink
from squall.streams.live.sockets import SocketSource
from squall.streams.sources.reordering import TimedByProperty
from tests.laws import examples_of
from tests.live import wait

P = iri("http://example.org/p")


def line(number: int) -> bytes:
    return f"{number} <http://example.org/{number}> {P} <http://example.org/o> .\n".encode()


def times(events: list[Event]) -> list[int]:
    return [event.time for event in events if event.facts]


def all_of(source: SocketSource) -> list[Event]:
    return [event for batch in source.batches() for event in batch]


def opened(uri: str, ledger: DeadLetterFile | None = None) -> SocketSource:
    source = open_source(uri, ledger)
    assert isinstance(source, SocketSource)
    return source


def limited(uri: str, ledger: DeadLetterFile, max_unit_bytes: int) -> SocketSource:
    return SocketSource(parse(uri, "-"), ledger, max_unit_bytes=max_unit_bytes)


@contextmanager
def serving(*scripts: Callable[[socket.socket], None]) -> Iterator[int]:
    """Starts a server on a port of its own, which has a script for each connection."""

    def serve() -> None:
        for script in scripts:
            connection, _ = server.accept()
            with connection:
                script(connection)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(20)
        process = pool.submit(serve)
        yield server.getsockname()[1]
        process.result(20)


def test_a_server_is_read_until_it_ends() -> None:
    with serving(lambda connection: connection.sendall(line(1) + b"nonsense\n" + line(2))) as port:
        ledger = DeadLetterFile()
        source = opened(f"s=tcp://localhost:{port}?format=ntt", ledger)
        events = all_of(source)
        assert times(events) == [1, 2]
        assert {event.stream for event in events} == {"s"}
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}
    assert source.reading.statements == 2
    assert source.reading.bytes == len(line(1)) * 2 + 9


def test_a_refused_connection_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SourceError, match="refused"):
        all_of(opened(f"tcp://127.0.0.1:{port}?format=nt"))


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Broken:
    """A line and half of one; then, when the line has been read, the connection is reset."""

    def __init__(self) -> None:
        self.read = threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        connection.sendall(line(1) + line(2)[:20])
        assert self.read.wait(20)
        resets(connection)


def test_a_broken_connection_is_restored_and_half_a_line_is_counted() -> None:
    broken, ledger = Broken(), DeadLetterFile()
    with serving(broken, lambda connection: connection.sendall(line(3))) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=ntt", ledger)
        batches = source.batches()
        assert times(list(next(batches))) == [1]
        broken.read.set()
        assert [event.time for batch in batches for event in batch] == [3]
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}


@pytest.mark.parametrize("stops", [False, True])
def test_half_a_message_is_none(stops: bool) -> None:
    """A message is dropped if the connection breaks, or if reading stops in the middle of it. The end of a stream ends
    its last message."""
    statement, read, process = line(1)[2:], threading.Event(), threading.Event()

    def breaks(connection: socket.socket) -> None:
        connection.sendall(statement + b"MESSAGE\n" + statement)
        read.wait(20)
        process.wait(20) if stops else resets(connection)

    ledger = DeadLetterFile()
    again = [] if stops else [lambda item: item.sendall(statement + b"MESSAGE\n" + statement)]
    with serving(breaks, *again) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=nt-messages&time=1", ledger)
        batches = source.batches()
        result = times(list(next(batches)))
        if stops:
            source.stop()
        read.set()
        result += [time for batch in batches for time in times(list(batch))]
        process.set()
    assert result == [1] * (1 if stops else 3)
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}


def test_an_unreachable_server_is_an_error_in_the_end() -> None:
    broken = Broken()
    with serving(broken) as port:
        batches = opened(f"tcp://127.0.0.1:{port}?format=ntt&retry=250", DeadLetterFile()).batches()
        assert times(list(next(batches))) == [1]
        broken.read.set()
    with pytest.raises(SourceError, match="refused"):
        list(batches)


def test_a_server_that_ends_is_reconnected_if_requested() -> None:
    with serving(lambda item: item.sendall(line(1)), lambda item: item.sendall(line(2))) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=ntt&reconnect=yes")
        batches = source.batches()
        assert [times(list(next(batches))), times(list(next(batches)))] == [[1], [2]]
        source.stop()
        assert list(batches) == []


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("nt-messages", line(1)[2:] + b"MESSAGE\n"),
        ("trig-messages", b"<urn:a:g> { " + line(1)[2:] + b"} @message .\n"),
        ("rdfp", b"TX .\nA " + line(1)[2:] + b"TC .\n"),
    ],
)
def test_a_message_is_delivered_when_it_is_complete(format: str, message: bytes) -> None:
    history = threading.Event()

    def send(connection: socket.socket) -> None:
        connection.sendall(message)
        history.wait(20)

    with serving(send) as port:
        batches = (batch for batch in opened(f"tcp://127.0.0.1:{port}?format={format}&time=7").batches() if batch)
        (event,) = next(batches)
        history.set()
        assert event.time == 7
        assert list(batches) == []


def test_blank_nodes_are_those_of_a_connection() -> None:
    node = b"_:a <http://example.org/p> _:a .\n"
    with serving(lambda item: item.sendall(node), lambda item: item.sendall(node + node)) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=nt&reconnect=yes")
        batches = source.batches()
        subjects = {fact[0] for _ in range(2) for event in next(batches) for fact in event.facts}
        source.stop()
    assert len(subjects) == 2


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def reading(source: SocketSource, pool: ThreadPoolExecutor) -> Callable[[], list[Event]]:
    """Lets a source listen in a thread, and returns functions that wait for its end and for its events. What to call to
    wait for its end, and for its events."""
    process = pool.submit(all_of, source)
    assert source.bound.wait(20)
    return lambda: process.result(20)


@pytest.mark.parametrize("unix", [False, True])
def test_those_who_connect_are_listened_to(unix: bool, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    place = f"unix:{tmp_path / 'socket'}" if unix else "tcp://:0"
    source = opened(f"{place}?listen=yes&connections=2&format=ntt")
    events = reading(source, pool)
    connections = [connected(source.place.where if unix else ("127.0.0.1", source.port)) for _ in range(2)]
    for number, item in enumerate(connections):
        item.sendall(line(number))
    for item in connections:
        item.close()
    assert sorted(times(events())) == [0, 1]
    assert not (tmp_path / "socket").exists()


def connected(where: str | tuple[str, int]) -> socket.socket:
    if isinstance(where, tuple):
        return socket.create_connection(where, 20)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(where)
    return connection


def test_stopping_outputs_received_events(pool: ThreadPoolExecutor) -> None:
    source = opened("tcp://:0?listen=yes&format=ntt")
    batches = source.batches()
    first = pool.submit(next, batches)
    assert source.bound.wait(20)
    with connected(("127.0.0.1", source.port)) as connection:
        connection.sendall(line(1))
        assert times(list(first.result(20))) == [1]
        source.stop()
        assert list(batches) == []


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    first, second = (opened(f"unix:{path}?listen=yes&format=nt") for _ in range(2))
    events = reading(first, pool)
    with pytest.raises(SourceError, match="in use"):
        list(second.batches())
    first.stop()
    assert events() == []


def test_who_sends_too_fast_has_to_wait(pool: ThreadPoolExecutor) -> None:
    """Nobody reads: the sender gets no further than the buffers in between allow."""
    source = opened("tcp://:0?listen=yes&format=ntt", DeadLetterFile())
    batches = source.batches()
    first = pool.submit(next, batches)
    assert source.bound.wait(20)
    with connected(("127.0.0.1", source.port)) as connection:
        connection.settimeout(1)
        connection.sendall(line(1))
        first.result(20)
        sent = 0
        with suppress(TimeoutError):
            while sent < 1 << 30:
                sent += connection.send(line(2) * 1000)
        assert sent < 100 << 20
        source.stop()
        assert sum(len(event.facts) for batch in batches for event in batch) <= sent // len(line(2))


ENDLESS = 2_000_000  # bytes: more than what is sent and received at a time


@pytest.mark.parametrize("format", ["ntt", "nt", "nqt"])
def test_a_line_that_is_too_long_is_counted_and_skipped(format: str, tmp_path: Path) -> None:
    first, last = (line(n) if format != "nt" else line(n)[2:] for n in (1, 2))
    ledger = DeadLetterFile(tmp_path / "ledger")
    with serving(lambda item: item.sendall(first + b"<" * ENDLESS + b"\n\n" + last + b"nonsense\n")) as port:
        source = limited(f"tcp://127.0.0.1:{port}?format={format}", ledger, 100_000)
        assert [event.facts[0][0][-2] for event in all_of(source)] == ["1", "2"]
        assert source.reading.statements == 2
    ledger.close()
    emitted, nonsense = map(json.loads, (tmp_path / "ledger").read_text().splitlines())
    assert emitted["line"] == 2
    assert emitted["reason"] == "the line is longer than 100000 bytes"
    assert emitted["text"] == "<" * 500
    assert nonsense["line"] == 5


def test_an_endless_line_takes_little_memory() -> None:
    def send(connection: socket.socket) -> None:
        for _ in range(1000):
            connection.sendall(b"<" * 100_000)

    with serving(send) as port:
        ledger = DeadLetterFile()
        source = limited(f"tcp://127.0.0.1:{port}?format=ntt", ledger, 100_000)
        tracemalloc.start()
        assert all_of(source) == []
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert source.reading.bytes == 100_000_000
    assert peak < 5_000_000
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}


RDF = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="'
OPEN = {
    "ttl": (b"<urn:a:s> <urn:a:p> 1 .\n", b"# "),
    "trig": (b"<urn:a:s> <urn:a:p> 1 .\n", b"# "),
    "rdf": (RDF + b'urn:a:s"><rdf:value>1</rdf:value></rdf:Description>', b"<!-- "),
    "jsonld": (b'[{"@id": "urn:a:s", "urn:a:p": 1}, ', b'{"@id": "'),
}
"""The beginning of a document: a statement, and the beginning of one that never ends."""


@pytest.mark.parametrize("format", OPEN)
def test_a_document_delivers_complete_statements_and_drops_endless_ones(format: str) -> None:
    history, (begin, endless) = threading.Event(), OPEN[format]

    def send(connection: socket.socket) -> None:
        connection.sendall(begin)
        history.wait(20)
        with suppress(OSError):  # it is not read any further
            connection.sendall(endless + b"x" * ENDLESS)

    with serving(send) as port:
        ledger = DeadLetterFile()
        source = limited(f"tcp://127.0.0.1:{port}?format={format}&time=7", ledger, 100_000)
        batches = (batch for batch in source.batches() if batch)
        (event,) = next(batches)
        history.set()
        assert [fact[0] for fact in event.facts] == ["<urn:a:s>"]
        assert list(batches) == []
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}
    assert source.reading.bytes < ENDLESS


@pytest.mark.parametrize("format", ["ttl", "trig"])
def test_a_document_may_arrive_in_pieces(format: str) -> None:
    text = b"@prefix : <urn:a:> .\n" + b"".join(b":s%d :p [ :q %d ] , 'caf\xc3\xa9' .\n" % (n, n) for n in range(300))

    def send(connection: socket.socket) -> None:
        for begin in range(0, len(text), 7):
            connection.sendall(text[begin : begin + 7])

    with serving(send) as port:
        ledger = DeadLetterFile()
        events = all_of(opened(f"tcp://127.0.0.1:{port}?format={format}", ledger))
    facts = [fact for event in events for fact in event.facts]
    nodes = {fact[2] for fact in facts if fact[1] == "<urn:a:p>" and fact[2][0] == "_"}
    assert len(facts) == 900
    assert len(nodes) == 300
    assert nodes == {fact[0] for fact in facts if fact[1] == "<urn:a:q>"}
    assert not ledger.counts
    assert not {thread.name for thread in threading.enumerate()} & {"parses"}


def test_a_transaction_that_is_too_long_is_a_dead_letter() -> None:
    rows = [b"A " + line(n % 10)[2:] for n in range(1000)]
    text = b"TX .\n" + b"".join(rows) + b"TC .\nTX .\n" + rows[0] + b"TC .\n" + rows[1] + b"".join(rows)
    with serving(lambda item: item.sendall(text)) as port:
        ledger = DeadLetterFile()
        source = limited(f"tcp://127.0.0.1:{port}?format=rdfp", ledger, 10_000)
        (event,) = all_of(source)
    assert event.facts == (triple(iri("http://example.org/0"), P, iri("http://example.org/o")),)
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 2001}


def test_an_endless_description_of_one_subject_takes_no_memory() -> None:
    time = b'<urn:a:t> "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
    message = b'<urn:a:p> "x" .\n'
    text = b"<urn:a:1> " + time + (b"<urn:a:2> " + message) * 1000 + b"<urn:a:2> " + time + b"<urn:a:3> " + time
    with serving(lambda item: item.sendall(text)) as port:
        ledger = DeadLetterFile()
        lines = opened(f"tcp://127.0.0.1:{port}?format=nt", ledger)
        source = TimedByProperty(lines, ledger, iri("urn:a:t"), max_characters=1000)
        results = [fact[0] for batch in source.batches() for event in batch for fact in event.facts]
    assert results == ["<urn:a:1>", "<urn:a:3>"]
    assert source.reading.statements == 2
    assert ledger.counts == {("malformed", source.uri): 1001}


def test_dead_letters_are_recorded_while_the_stream_is_idle() -> None:
    """This also holds where the source has a ledger of its own, which waits for the run to read it."""
    history, total = threading.Event(), DeadLetterFile()

    def send(connection: socket.socket) -> None:
        connection.sendall(b"nonsense\n" * 10)
        history.wait(20)

    with serving(send) as port:
        own = DeferredLedger(total)
        sources = Sources([open_source(f"tcp://127.0.0.1:{port}?format=ntt", own, 1000)], ledgers=[own])
        batches = iter(sources)
        with ThreadPoolExecutor(1) as pool:
            remainder = pool.submit(list, batches)
            wait(lambda: total.total("malformed") == 10)
            history.set()
            assert remainder.result(20) == []


@settings(max_examples=examples_of(50), deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5), st.sampled_from(["nt", "nqt", "rdfp", "ttl", "jsonld", "rdf"]))
def test_any_input_is_read_or_counted(pieces: list[bytes], format: str) -> None:
    def send(connection: socket.socket) -> None:
        with suppress(OSError):  # a document that is broken is not read any further
            for piece in pieces:
                connection.sendall(piece)

    with serving(send) as port:
        ledger = DeadLetterFile()
        source = opened(f"tcp://127.0.0.1:{port}?format={format}", ledger)
        all_of(source)
        assert source.reading.bytes == sum(map(len, pieces)) or ledger.counts


def outputs(*numbers: int) -> list[Output]:
    return [Output(triple(iri(f"http://example.org/{n}"), P, iri("http://example.org/o")), n, "rule") for n in numbers]


@pytest.mark.parametrize("prompt", [False, True])
def test_a_sink_writes_to_a_listener(prompt: bool, pool: ThreadPoolExecutor) -> None:
    source = opened("tcp://:0?listen=yes&connections=1&format=ntt")
    events = reading(source, pool)
    with closing(open_sink(f"tcp://127.0.0.1:{source.port}?format=ntt")) as sink:
        sink.start(prompt=prompt)
        for output in outputs(1, 2):
            sink.write(output)
    assert times(events()) == [1, 2]


@pytest.mark.parametrize("before", [0, 1])
def test_a_sink_reconnects_and_repeats_failed_writes(before: int) -> None:
    """Earlier output may be lost, and is counted."""
    chunks: list[bytes] = []
    begun, removals = threading.Event(), threading.Event()

    def refuse(connection: socket.socket) -> None:
        assert begun.wait(20)
        resets(connection)
        connection.close()
        removals.set()

    def take(connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            chunks.append(file.read())

    with serving(refuse, take) as port, closing(open_sink(f"tcp://127.0.0.1:{port}?format=ntt")) as sink:
        assert isinstance(sink, SocketSink)
        sink.ledger = ledger = DeadLetterFile()
        sink.start(prompt=True)
        for output in outputs(*range(before)):
            sink.write(output)
        begun.set()
        assert removals.wait(20)
        for output in outputs(1, 2, 3):
            sink.write(output)
        sink.close()
    assert chunks[0].endswith(line(3))
    assert ledger.counts == ({("lost", sink.uri): 1} if before or not chunks[0].startswith(line(1)) else {})


def test_a_sink_without_a_listener_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SinkError, match="refused"):
        open_sink(f"tcp://127.0.0.1:{port}?format=nt").start()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("tcp://host?format=nt", "names no server"),
        ("tcp://host:99999?format=nt", "names no server"),
        ("unix:?format=nt", "names no socket"),
        ("tcp://host:1", "does not say its format"),
        ("tcp://host:1?format=nt.gz", "cannot be compressed"),
        ("tcp://host:1?format=nt&listen=yes&reconnect=yes", "listens"),
        ("tcp://host:1?format=nt&connections=2", "does not listen"),
        ("tcp://host:1?format=nt&foo=2", "unknown option `foo`"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


def test_sockets_are_merged_in_the_order_of_time_with_windows_and_lateness_as_files_are(
    pool: ThreadPoolExecutor,
) -> None:
    with (
        serving(lambda item: item.sendall(line(3) + line(1) + line(9))) as first,
        serving(lambda item: item.sendall(line(2) + line(4))) as second,
    ):
        uris = [f"a=tcp://127.0.0.1:{first}?format=ntt&lateness=5ms", f"b=tcp://127.0.0.1:{second}?format=ntt"]
        events = [event for batch in Sources([open_source(uri) for uri in uris]) for event in batch]
    assert times(events) == [1, 2, 3, 4, 9]
