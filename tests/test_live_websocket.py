"""WebSocket as source and sink, with the server of the library."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from squall.errors import SinkError, SourceError, UsageError
from squall.streams import DeadLetterFile, open_sink, open_source
from squall.streams.sinks import ReportsDeadLetters
from tests import brokers
from tests.live import PATIENCE, Run, line, output

pytest.importorskip("websockets.sync.server")

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from squall.streams.live.websocket import WebSocketSource

Script = Callable[[ServerConnection], None]


@contextmanager
def serving(*scripts: Script) -> Iterator[int]:
    """Starts a server with a script for each connection; the last script serves all further ones. Nothing is
    compressed, since a great amount of compressed data would fit into the buffers."""
    left = list(scripts)

    def handle(connection: ServerConnection) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(connection)

    with serve(handle, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join(PATIENCE)


def opened(port: int, rest: str, ledger: DeadLetterFile | None = None) -> WebSocketSource:
    source: object = open_source(f"ws://127.0.0.1:{port}/{rest}", ledger)
    assert isinstance(source, WebSocketSource)
    return source


def test_messages_of_a_server_are_read_until_it_closes() -> None:
    ledger = DeadLetterFile()

    def script(connection: ServerConnection) -> None:
        assert connection.recv() == "more"
        assert connection.request is not None
        assert connection.request.path == "/x?a=b"
        assert connection.request.headers["X-Key"] == "k"
        connection.send(line(1).decode())
        connection.send(line(2) + line(3))
        connection.send(b"\xff nonsense")

    with serving(script) as port:
        source = opened(port, "x?format=ntt&send=more&query.a=b&header.X-Key=k", ledger)
        with Run(source) as run:
            assert run.end() == [1, 2, 3]
    assert ledger.counts == {("malformed", source.uri): 1}


def test_a_broken_connection_is_restored() -> None:
    def breaks(connection: ServerConnection) -> None:
        connection.send(line(1).decode())
        connection.close(1012, "restarts")

    last: Script = lambda connection: connection.send(line(2).decode())  # noqa: E731
    with serving(breaks, last) as port, Run(opened(port, "?format=ntt")) as run:
        assert run.end() == [1, 2]
    with serving(last) as port, Run(opened(port, "?format=ntt&reconnect=yes")) as run:
        run.when(lambda: run.seen[:2] == [2, 2])


@pytest.mark.more
def test_who_sends_too_fast_has_to_wait() -> None:
    sent = 0
    waits = threading.Event()

    def floods(connection: ServerConnection) -> None:
        nonlocal sent
        try:
            for _ in range(100_000):
                connection.send(line(1) * 1000)
                sent += 1
        except ConnectionClosed:
            pass
        waits.set()

    with serving(floods) as port:
        source = opened(port, "?format=ntt")
        batches = source.batches()
        next(batches)
        assert not waits.wait(0.5)  # nobody takes what it sends
        assert sent < 1000
        source.stop()
        assert sum(1 for _ in batches) <= 1
        assert waits.wait(PATIENCE)


def test_no_server_is_an_error_at_once() -> None:
    address = f"ws://127.0.0.1:{brokers.free_port()}/?format=nt"
    with pytest.raises(SourceError, match="refused"):
        list(open_source(address).batches())
    with pytest.raises(SinkError, match="refused"):
        open_sink(address).start()


@pytest.mark.parametrize("takes_leave", [True, False])
def test_a_sink_sends_what_a_server_takes_and_connects_again(takes_leave: bool) -> None:
    """Messages that may not have arrived, since the server vanished without a reply, are counted."""
    batch_items: list[str | bytes] = []
    closed = threading.Event()

    def once(connection: ServerConnection) -> None:
        batch_items.append(connection.recv())
        connection.close() if takes_leave else connection.socket.shutdown(socket.SHUT_RDWR)
        closed.set()

    def take(connection: ServerConnection) -> None:
        batch_items.extend(connection)

    with serving(once, take) as port, closing(open_sink(f"ws://127.0.0.1:{port}/?format=ntt")) as sink:
        assert isinstance(sink, ReportsDeadLetters)
        sink.ledger = ledger = DeadLetterFile()
        sink.start()
        sink.write(output(1))
        assert closed.wait(PATIENCE)
        sink.write(output(2))
        sink.write(output(3))
    full_result = [line(number).decode().rstrip() for number in (1, 2, 3)]
    assert batch_items == full_result or (ledger.counts and set(batch_items) <= set(full_result))
    assert ledger.counts == ({} if takes_leave else {("lost", sink.uri): 1})


def test_binary_formats_are_sent_as_binary_messages() -> None:
    pytest.importorskip("pyjelly")
    batch_items: list[str | bytes] = []

    def take(connection: ServerConnection) -> None:
        batch_items.extend(connection)

    with serving(take) as port, closing(open_sink(f"ws://127.0.0.1:{port}/?format=jelly")) as sink:
        sink.start()
        sink.write(output(1))
    (message,) = batch_items
    with serving(lambda connection: connection.send(message)) as port, Run(opened(port, "?format=jelly&time=7")) as run:
        assert run.end() == [7]


def test_an_invalid_address_is_reported() -> None:
    with pytest.raises(UsageError, match="unknown option"):
        open_source("ws://host/?format=nt&token=1")
