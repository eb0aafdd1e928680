"""TCP and UNIX sockets as sources and sinks, over the loopback."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import Event, iri, triple
from squall.stages import Output
from squall.streams import LedgerFile, Sources, open_sink, open_source
from squall.streams.live import sockets
from squall.streams.live.socket_sinks import SocketSink
from squall.streams.live.sockets import SocketSource

P = iri("http://example.org/p")


def line(number: int) -> bytes:
    return f"{number} <http://example.org/{number}> {P} <http://example.org/o> .\n".encode()


def times(events: list[Event]) -> list[int]:
    return [event.time for event in events if event.facts]


def all_of(source: SocketSource) -> list[Event]:
    return [event for batch in source.batches() for event in batch]


def opened(uri: str, ledger: LedgerFile | None = None) -> SocketSource:
    source = open_source(uri, ledger)
    assert isinstance(source, SocketSource)
    return source


@contextmanager
def serving(*scripts: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server on a port of its own, which has a script for each connection."""

    def serve() -> None:
        for script in scripts:
            connection, _ = server.accept()
            with connection:
                script(connection)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(20)
        done = pool.submit(serve)
        yield server.getsockname()[1]
        done.result(20)


def test_a_server_is_read_until_it_ends() -> None:
    with serving(lambda connection: connection.sendall(line(1) + b"nonsense\n" + line(2))) as port:
        ledger = LedgerFile()
        source = opened(f"s=tcp://localhost:{port}?format=ntt", ledger)
        events = all_of(source)
        assert times(events) == [1, 2]
        assert {event.stream for event in events} == {"s"}
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}
    assert source.reading.statements == 2
    assert source.reading.bytes == len(line(1)) * 2 + 9


def test_nobody_who_listens_is_an_error_at_once() -> None:
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


def test_a_connection_that_breaks_is_made_again_and_half_a_line_is_counted() -> None:
    broken, ledger = Broken(), LedgerFile()
    with serving(broken, lambda connection: connection.sendall(line(3))) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=ntt", ledger)
        batches = source.batches()
        assert times(list(next(batches))) == [1]
        broken.read.set()
        assert [times(list(batch)) for batch in batches] == [[3]]
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}


@pytest.mark.parametrize("stops", [False, True])
def test_half_a_message_is_none(stops: bool) -> None:
    """Where the connection breaks, or is read no further; the end of a stream is that of its last message."""
    statement, read, done = line(1)[2:], threading.Event(), threading.Event()

    def breaks(connection: socket.socket) -> None:
        connection.sendall(statement + b"MESSAGE\n" + statement)
        read.wait(20)
        done.wait(20) if stops else resets(connection)

    ledger = LedgerFile()
    again = [] if stops else [lambda one: one.sendall(statement + b"MESSAGE\n" + statement)]
    with serving(breaks, *again) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=nt-messages&time=1", ledger)
        batches = source.batches()
        found = times(list(next(batches)))
        if stops:
            source.stop()
        read.set()
        found += [time for batch in batches for time in times(list(batch))]
        done.set()
    assert found == [1] * (1 if stops else 3)
    assert ledger.counts == {("malformed", f"{source.uri}#1"): 1}


def test_a_server_that_stays_away_is_an_error_in_the_end() -> None:
    broken = Broken()
    with serving(broken) as port:
        batches = opened(f"tcp://127.0.0.1:{port}?format=ntt&retry=250").batches()
        assert times(list(next(batches))) == [1]
        broken.read.set()
    with pytest.raises(SourceError, match="refused"):
        list(batches)


def test_a_server_that_ends_is_connected_to_again_if_that_is_asked_for() -> None:
    with serving(lambda one: one.sendall(line(1)), lambda one: one.sendall(line(2))) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=ntt&reconnect=yes")
        batches = source.batches()
        assert [times(list(next(batches))), times(list(next(batches)))] == [[1], [2]]
        source.stop()
        assert list(batches) == []


@pytest.mark.parametrize(
    ("format", "told"),
    [
        ("nt-messages", line(1)[2:] + b"MESSAGE\n"),
        ("trig-messages", b"<urn:a:g> { " + line(1)[2:] + b"} @message .\n"),
        ("rdfp", b"TX .\nA " + line(1)[2:] + b"TC .\n"),
    ],
)
def test_a_message_is_handed_on_when_its_end_is_there(format: str, told: bytes) -> None:
    seen = threading.Event()

    def send(connection: socket.socket) -> None:
        connection.sendall(told)
        seen.wait(20)

    with serving(send) as port:
        batches = opened(f"tcp://127.0.0.1:{port}?format={format}&time=7").batches()
        (event,) = next(batches)
        seen.set()
        assert event.time == 7
        assert list(batches) == []


def test_blank_nodes_are_those_of_a_connection() -> None:
    node = b"_:a <http://example.org/p> _:a .\n"
    with serving(lambda one: one.sendall(node), lambda one: one.sendall(node + node)) as port:
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
    """Lets a source listen in a thread. What to call to wait for its end, and for its events."""
    done = pool.submit(all_of, source)
    assert source.bound.wait(20)
    return lambda: done.result(20)


@pytest.mark.parametrize("unix", [False, True])
def test_those_who_connect_are_listened_to(unix: bool, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    place = f"unix:{tmp_path / 'socket'}" if unix else "tcp://:0"
    source = opened(f"{place}?listen=yes&connections=2&format=ntt")
    events = reading(source, pool)
    connections = [connected(source.place.where if unix else ("127.0.0.1", source.port)) for _ in range(2)]
    for number, one in enumerate(connections):
        one.sendall(line(number))
    for one in connections:
        one.close()
    assert sorted(times(events())) == [0, 1]
    assert not (tmp_path / "socket").exists()


def connected(where: str | tuple[str, int]) -> socket.socket:
    if isinstance(where, tuple):
        return socket.create_connection(where, 20)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(where)
    return connection


def test_stopping_hands_on_what_has_come(pool: ThreadPoolExecutor) -> None:
    source = opened("tcp://:0?listen=yes&format=ntt")
    batches = source.batches()
    first = pool.submit(next, batches)
    assert source.bound.wait(20)
    with connected(("127.0.0.1", source.port)) as connection:
        connection.sendall(line(1))
        assert times(list(first.result(20))) == [1]
        source.stop()
        assert list(batches) == []


def test_a_socket_that_was_left_behind_is_taken_over_and_one_in_use_is_not(
    pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
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
    """Nobody takes what comes: the sender gets no further than what fits into the buffers in between."""
    source = opened("tcp://:0?listen=yes&format=ntt")
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


def test_a_line_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "LONGEST", 1000)
    ledger = LedgerFile()

    def endless(connection: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection.sendall(b"<" * 900)

    with serving(endless) as port:
        source = opened(f"tcp://127.0.0.1:{port}?format=ntt", ledger)
        assert times(all_of(source)) == []
    assert ledger.counts["malformed", f"{source.uri}#1"] >= 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5), st.sampled_from(["nt", "nqt", "rdfp", "ttl", "jsonld", "rdf"]))
def test_whatever_comes_is_read_or_counted(pieces: list[bytes], format: str) -> None:
    def send(connection: socket.socket) -> None:
        with suppress(OSError):  # a document that is broken is not read any further
            for piece in pieces:
                connection.sendall(piece)

    with serving(send) as port:
        ledger = LedgerFile()
        source = opened(f"tcp://127.0.0.1:{port}?format={format}", ledger)
        all_of(source)
        assert source.reading.bytes == sum(map(len, pieces)) or ledger.counts


def outputs(*numbers: int) -> list[Output]:
    return [Output(triple(iri(f"http://example.org/{n}"), P, iri("http://example.org/o")), n, "rule") for n in numbers]


@pytest.mark.parametrize("prompt", [False, True])
def test_a_sink_writes_to_whoever_listens(prompt: bool, pool: ThreadPoolExecutor) -> None:
    source = opened("tcp://:0?listen=yes&connections=1&format=ntt")
    events = reading(source, pool)
    with closing(open_sink(f"tcp://127.0.0.1:{source.port}?format=ntt")) as sink:
        sink.start(prompt=prompt)
        for output in outputs(1, 2):
            sink.write(output)
    assert times(events()) == [1, 2]


@pytest.mark.parametrize("before", [0, 1])
def test_a_sink_connects_again_and_writes_anew_what_was_refused(before: int) -> None:
    """What was sent before may be lost, and is counted."""
    taken: list[bytes] = []
    begun, gone = threading.Event(), threading.Event()

    def refuse(connection: socket.socket) -> None:
        assert begun.wait(20)
        resets(connection)
        connection.close()
        gone.set()

    def take(connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            taken.append(file.read())

    with serving(refuse, take) as port, closing(open_sink(f"tcp://127.0.0.1:{port}?format=ntt")) as sink:
        assert isinstance(sink, SocketSink)
        sink.ledger = ledger = LedgerFile()
        sink.start(prompt=True)
        for output in outputs(*range(before)):
            sink.write(output)
        begun.set()
        assert gone.wait(20)
        for output in outputs(1, 2, 3):
            sink.write(output)
        sink.close()
    assert taken[0].endswith(line(3))
    assert ledger.counts == ({("lost", sink.uri): 1} if before or not taken[0].startswith(line(1)) else {})


def test_a_sink_to_nobody_is_an_error() -> None:
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
def test_what_is_wrong_with_an_address_is_said(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


def test_sockets_are_merged_in_the_order_of_time_with_windows_and_lateness_as_files_are(
    pool: ThreadPoolExecutor,
) -> None:
    with (
        serving(lambda one: one.sendall(line(3) + line(1) + line(9))) as first,
        serving(lambda one: one.sendall(line(2) + line(4))) as second,
    ):
        uris = [f"a=tcp://127.0.0.1:{first}?format=ntt&lateness=5ms", f"b=tcp://127.0.0.1:{second}?format=ntt"]
        events = [event for batch in Sources([open_source(uri) for uri in uris]) for event in batch]
    assert times(events) == [1, 2, 3, 4, 9]
