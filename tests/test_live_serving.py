"""Sinks that others connect to, and connections that are made safe by TLS."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from squall.contracts import Output
from squall.errors import SinkError, SourceError, UsageError
from squall.streams import DeadLetterFile, open_sink, open_source
from squall.streams.live.serving import ServingSink, Subscriber
from tests.live import PATIENCE, Run, example, line, output

SCHEMES = ["tcp", "unix", "http", "ws"]


@contextmanager
def listening(uri: str, ledger: DeadLetterFile | None = None) -> Iterator[ServingSink]:
    """Yields a sink to which clients can connect, although it may not have started yet."""
    if uri.startswith("ws"):
        pytest.importorskip("websockets")
    sink: Any = open_sink(uri)
    assert isinstance(sink, ServingSink)
    sink.ledger = ledger or DeadLetterFile()
    bound, listen = threading.Event(), sink.listen

    def listened() -> None:
        listen()
        bound.set()

    sink.listen = listened  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(sink.start)
        assert bound.wait(PATIENCE)
        yield sink
        started.result(PATIENCE)
        sink.close()


def address(scheme: str, folder: Path, **options: object) -> str:
    place = f"unix:{folder}/s" if scheme == "unix" else f"{scheme}://127.0.0.1:0/x" if scheme != "tcp" else "tcp://:0"
    return f"{place}?{'&'.join(f'{name}={value}' for name, value in {'listen': 'yes', **options}.items())}"


def reader(sink: Any, options: str = "format=ntt") -> Any:
    """Returns the source that reads what a sink serves."""
    place, _, _ = sink.uri.partition("?")
    return open_source(f"{place.replace(':0', f':{sink.port}', 1) if hasattr(sink, 'port') else place}?{options}")


def connected(sink: Any, count: int = 1) -> None:
    with sink._changed:
        assert sink._changed.wait_for(lambda: sink._count >= count, PATIENCE)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_connections_receive_the_output(scheme: str, tmp_path: Path) -> None:
    with listening(address(scheme, tmp_path, format="ntt", connections=2)) as sink:
        with Run(reader(sink)) as first, Run(reader(sink)) as second:
            connected(sink, 2)
            sink.write(output(1))
            assert first.until(1) == second.until(1)
            with Run(reader(sink)) as late:
                connected(sink, 3)
                sink.write(output(2))
                assert late.until(2) == [2]
                assert first.until(2) == [1, 2]
            for run in (first, second):
                run.source.stop()
        sink.flush()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scheme", ["tcp", "unix", "ws"])
def test_who_reads_gets_all_up_to_the_end(scheme: str, tmp_path: Path) -> None:
    """Nothing is written before the reader has connected, and the connection stays open until it has received
    everything."""
    with ThreadPoolExecutor(1) as pool, listening(address(scheme, tmp_path, format="ntt", connections=1)) as sink:
        run = pool.submit(lambda: [event.time for batch in reader(sink).batches() for event in batch])
        connected(sink)
        for time in range(5000):
            sink.write(output(time))
        sink.close()
        assert run.result(PATIENCE) == list(range(5000))


@pytest.mark.parametrize("format", ["nt-messages", "jelly", "jelly-messages", "rdfp"])
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_messages_are_separated(scheme: str, format: str, tmp_path: Path) -> None:
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    sends = "nt" if (scheme, format) == ("ws", "nt-messages") else format
    with listening(address(scheme, tmp_path, format=format, connections=1)) as sink:
        source = reader(sink, f"format={sends}&time=7")
        with Run(source) as run:
            connected(sink)
            for time in (7, 8, 9):
                sink.write(output(time))
            run.when(lambda: source.reading.statements >= 2)
            source.stop()


def stalled(sink: Any) -> socket.socket:
    """Returns a client that connects, and reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.connect(("127.0.0.1", sink.port))
    connected(sink)
    return connection


def many() -> Iterator[Output]:
    """Yields more outputs than fit into the buffers between two processes."""
    yield from map(output, range(200_000))


def test_who_takes_nothing_gets_nothing_more_and_it_is_counted(tmp_path: Path) -> None:
    ledger = DeadLetterFile(tmp_path / "lost")
    with listening("tcp://:0?listen=yes&format=ntt&buffer=100&wait=0", ledger) as sink, stalled(sink) as connection:
        for item in many():
            sink.write(item)
            if ledger.counts:
                break
        connection.settimeout(PATIENCE)
        batch_items = b""
        while data := connection.recv(1 << 20):
            batch_items += data
    ledger.close()
    ((cause, source),) = ledger.counts
    assert (cause, source) == ("dropped", sink.uri)
    counted = ledger.counts[cause, source]
    assert 100 < counted < 300
    assert batch_items.count(b"\n") + counted >= item.time + 1
    assert "buffer=100" in (tmp_path / "lost").read_text().splitlines()[0]


@pytest.mark.more
def test_a_run_that_is_faster_waits() -> None:
    with listening("tcp://:0?listen=yes&format=ntt&buffer=10") as sink, stalled(sink) as connection:
        written = 0

        def write() -> None:
            nonlocal written
            for item in many():
                sink.write(item)
                written += 1

        with ThreadPoolExecutor(1) as pool:
            process = pool.submit(write)
            waits, before = 0, -1
            while waits < 5:  # nothing goes on, since nobody takes anything
                waits = waits + 1 if written == before else 0
                before = written
                threading.Event().wait(0.05)
            assert not process.done()
            with connection.makefile("rb") as file:
                for _ in range(200_000):
                    assert file.readline()
            process.result(PATIENCE)
    assert not sink.ledger.counts  # type: ignore[attr-defined]


def test_unsent_outputs_of_a_broken_connection_are_counted() -> None:
    ledger = DeadLetterFile()
    with listening("tcp://:0?listen=yes&format=ntt", ledger) as sink:
        connection = stalled(sink)
        for time in range(5000):
            sink.write(output(time))
            if time == 4000:
                connection.close()
    assert {cause for cause, _ in ledger.counts} <= {"lost"}
    assert sum(ledger.counts.values()) > 0


def test_a_reader_is_settled_when_all_has_been_sent() -> None:
    item = Subscriber("", 2, lambda: None)
    assert item.wait_until_sent(0)
    assert item.put(b"a", 0)
    assert not item.wait_until_sent(0)
    assert item.take() == [b"a"]
    assert not item.wait_until_sent(0)  # it is being sent
    with ThreadPoolExecutor(1) as pool:
        batch_items = pool.submit(item.take)
        assert item.wait_until_sent(PATIENCE)
        item.end()
        assert batch_items.result(PATIENCE) == []
    assert item.put(b"b", 0)  # there is nobody who might want it
    assert item.close() == []


def test_other_paths_have_nothing() -> None:
    for scheme, message in (("ws", "404"), ("http", "404")):
        with listening(f"{scheme}://127.0.0.1:0/x?listen=yes&format=nt") as sink:
            place = f"{scheme}://127.0.0.1:{sink.port}/y?format=nt"  # type: ignore[attr-defined]
            with pytest.raises(SourceError, match=message):
                list(open_source(place).batches())


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("tcp://:1?listen=yes&format=srx", "have no end on a connection"),
        ("tcp://:1?listen=yes&format=csv", "cannot be written as `csv`"),
        ("tcp://:1?listen=yes&retry=1", "it does not connect"),
        ("tcp://:1?listen=yes&tls=yes", "no certificate to show"),
        ("tcp://:1?listen=yes&tls=yes&cert=nowhere", "`nowhere` cannot be used"),
        ("tcp://:1?listen=yes&cert=x", "has `cert`, and does not use TLS"),
        ("tcp://:1?wait=1", "unknown option `wait`"),
        ("unix:s?tls=yes", "does not leave this machine"),
        ("http://:1/?listen=yes&format=jelly", "not Jelly"),
        ("http://me:secret@:1/?listen=yes", "asks nobody for a password"),
        ("https://:1/?listen=yes", "no certificate to show"),
        ("http://host/?ca=x", "`https:`"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    if "jelly" in uri:
        pytest.importorskip("pyjelly")
    with pytest.raises(UsageError) as caught:
        open_sink(uri)
    assert message in str(caught.value)


def test_an_address_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for scheme in ("tcp", "http", "ws"):
            sink = open_sink(f"{scheme}://127.0.0.1:{server.getsockname()[1]}?listen=yes&format=nt")
            with pytest.raises(SinkError, match="in use"):
                sink.start()
            sink.close()


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes certificates, each of which goes back to itself."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl, which makes certificates for these tests")
    folder = tmp_path_factory.mktemp("certificates")

    def made(name: str) -> Path:
        path = folder / f"{name}.pem"
        if not path.exists():
            new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2"]
            results = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
            files = ["-keyout", f"{folder}/{name}.key", "-out", str(path)]
            subprocess.run(["openssl", "req", "-x509", *new, *results, *files], check=True, capture_output=True)
        return path

    return made


def shown(certificate: Path) -> str:
    return f"cert={certificate}&key={certificate.with_suffix('.key')}"


Certificates = Callable[[str], Path]


def test_a_source_is_served_by_tls(certificates: Certificates) -> None:
    mine, other_items = certificates("mine"), certificates("theirs")
    ledger = DeadLetterFile()
    source: Any = open_source(f"tcp://127.0.0.1:0?listen=yes&tls=yes&format=ntt&ca={other_items}&{shown(mine)}", ledger)
    with Run(source) as run:
        place = f"tcp://127.0.0.1:{source.port}?tls=yes&format=ntt&ca={mine}"
        with closing(open_sink(f"{place}&{shown(other_items)}")) as sink:
            sink.start()
            sink.write(output(1))
        run.until(1)
        assert not ledger.counts  # it was said that this is the end
        with socket.create_connection(("127.0.0.1", source.port)) as other:
            other.sendall(line(2))
            with suppress(OSError):  # it may receive the reason
                while other.recv(100):
                    pass
        with pytest.raises(SinkError, match="certificate"):
            open_sink(f"tcp://127.0.0.1:{source.port}?tls=yes&format=ntt").start()
        run.source.stop()
    assert run.seen == [1]
    assert ledger.counts["lost", source.uri] >= 1


def test_an_unannounced_end_is_a_broken_connection(certificates: Certificates) -> None:
    mine = certificates("mine")
    import ssl

    ledger = DeadLetterFile()
    source: Any = open_source(f"tcp://:0?listen=yes&tls=yes&format=ntt&connections=1&{shown(mine)}", ledger)
    with Run(source) as run:
        context = ssl.create_default_context(cafile=str(mine))
        plain = socket.create_connection(("127.0.0.1", source.port))
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as safe:
            safe.sendall(line(1))
            run.until(1)
        assert run.end() == [1]
    assert ledger.counts == {("lost", f"{source.uri}#1"): 1}


@pytest.mark.parametrize(("scheme", "options"), [("tcp", "&tls=yes"), ("wss", ""), ("https", "")])
def test_readers_are_served_by_tls(scheme: str, options: str, certificates: Certificates) -> None:
    mine = certificates("mine")
    place = f"{scheme}://127.0.0.1:0" + ("/x" if scheme != "tcp" else "")
    with listening(f"{place}?listen=yes&format=ntt&connections=1{options}&{shown(mine)}") as sink:
        with pytest.raises(SourceError, match=r"(?i)certificate"):
            list(reader(sink, f"format=ntt{options}").batches())
        with Run(reader(sink, f"format=ntt{options}&ca={mine}")) as run:
            connected(sink)
            sink.write(output(1))
            run.until(1)
            run.source.stop()


def test_requests_are_posted_by_tls(certificates: Certificates) -> None:
    from tests import test_live_http as http

    mine = certificates("mine")
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(mine, mine.with_suffix(".key"))
    with http.serving(http.status(200), tls=context) as server:
        sink = open_sink(f"https://127.0.0.1:{server.port}/?format=ntt&ca={mine}")
        with closing(sink):
            sink.start()
            sink.write(output(1))
    assert [body for *_, body in server.asked] == [line(1).rstrip()]


@pytest.mark.more
@pytest.mark.parametrize("name", ["serve.sh", "tls.sh", "ws.sh"])
def test_the_examples_of_the_page_run(name: str, tmp_path: Path) -> None:
    if name == "tls.sh" and shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    if name == "ws.sh":
        pytest.importorskip("websockets")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    example(name, tmp_path, {}, **{":9000": f":{port}"})
