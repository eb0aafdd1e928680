"""Options that sources of every kind have: a name for the stream, its window, and the property that says its time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.model import profiles
from squall.streams import Sources, open_source, windows
from squall.streams.sources.reordering import original
from tests import brokers
from tests.live import wait

E = "http://example.org/"
PROGRAM = f"[r: (?s <{E}p> ?v) -> (?s <{E}q> ?v)]"
MESSAGES = [
    f'<{E}s{at}> <{E}at> "{at}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n<{E}s{at}> <{E}p> "x" .\n'.encode()
    for at in (1000, 2000, 9000)
]

Feed = Callable[[Path], Any]
Said = tuple[str, Callable[[], object]]
"""The address of a source, with an option already, and a function that sends its messages when it has connected."""


def _nothing() -> None:
    """Does nothing: the messages are there already."""


@contextmanager
def _tcp(_: Path) -> Iterator[Said]:
    from tests.test_live_sockets import serving

    with serving(lambda connection: connection.sendall(b"".join(MESSAGES))) as port:
        yield f"tcp://127.0.0.1:{port}?format=nt", _nothing


@contextmanager
def _unix(folder: Path) -> Iterator[Said]:
    from tests.test_live_sockets import connected

    def send() -> None:
        with connected(f"{folder}/s") as connection:
            connection.sendall(b"".join(MESSAGES))

    yield f"unix:{folder}/s?format=nt&listen=yes", send


@contextmanager
def _pipe(folder: Path) -> Iterator[Said]:
    os.mkfifo(folder / "pipe")
    writer = os.open(folder / "pipe", os.O_RDWR)
    os.write(writer, b"".join(MESSAGES))
    yield f"{folder}/pipe?format=nt", _nothing
    os.close(writer)


@contextmanager
def _growing(folder: Path) -> Iterator[Said]:
    (folder / "a.nt").write_bytes(b"".join(MESSAGES))
    yield f"{folder}/a.nt?follow=yes&poll=10", _nothing


@contextmanager
def _folder(folder: Path) -> Iterator[Said]:
    (folder / "in").mkdir()
    for number, message in enumerate(MESSAGES):
        (folder / "in" / f"{number}.nt").write_bytes(message)
    yield f"{folder}/in?format=nt&follow=yes&poll=10", _nothing


@contextmanager
def _mqtt(folder: Path) -> Iterator[Said]:
    publish = pytest.importorskip("paho.mqtt.publish")
    for broker in brokers.mosquitto(folder).running():
        messages = [{"topic": "t", "payload": message, "qos": 1} for message in MESSAGES]
        say = partial(publish.multiple, messages, "127.0.0.1", broker.port)
        yield f"mqtt://127.0.0.1:{broker.port}/t?format=nt", say


@contextmanager
def _redis(folder: Path) -> Iterator[Said]:
    redis = pytest.importorskip("redis")
    for broker in brokers.redis(folder).running():
        with redis.Redis("127.0.0.1", broker.port) as client:
            for message in MESSAGES:
                client.xadd("k", {"data": message})
        yield f"redis://127.0.0.1:{broker.port}/k?format=nt&from=first", _nothing


@contextmanager
def _kafka(_: Path) -> Iterator[Said]:
    pytest.importorskip("confluent_kafka")
    from tests.test_live_kafka import Cluster

    cluster = Cluster()
    cluster.say(*MESSAGES)
    yield cluster.at("t?format=nt&from=first"), _nothing


@contextmanager
def _events(_: Path) -> Iterator[Said]:
    from tests.test_live_http import serving, status, stream

    events = [b"".join(b"data: %s\n" % line for line in message.splitlines()) + b"\n" for message in MESSAGES]
    with serving(stream(*events), status(204)) as server:
        yield server.at("?format=nt"), _nothing


@contextmanager
def _polled(_: Path) -> Iterator[Said]:
    from tests.test_live_http import serving, status

    with serving(*(status(200, message) for message in MESSAGES), status(204)) as server:
        yield server.at("?format=nt&poll=1"), _nothing


@contextmanager
def _websocket(_: Path) -> Iterator[Said]:
    pytest.importorskip("websockets")
    from tests.test_live_websocket import serving

    def script(connection: Any) -> None:
        for message in MESSAGES:
            connection.send(message)

    with serving(script) as port:
        yield f"ws://127.0.0.1:{port}/?format=nt", _nothing


FEEDS: list[Feed] = [
    _tcp, _unix, _pipe, _growing, _folder, _mqtt, _redis, _kafka, _events, _polled, _websocket,
]  # fmt: skip


@pytest.mark.parametrize("feed", FEEDS, ids=[feed.__name__ for feed in FEEDS])
def test_a_name_a_window_and_a_property_for_the_time(feed: Feed, tmp_path: Path) -> None:
    with feed(tmp_path) as (address, say):
        uri = f"obs={address}&time={E}at&window=RANGE 2s"
        source: Any = open_source(uri)
        sources = Sources([source])
        system = squall.compile(PROGRAM, lexer="jena", windows=windows([uri]))
        job = squall.build(squall.plan(profiles.apply_profile(system, output="dstream")))
        results: list[tuple[int, str]] = []
        run = threading.Thread(target=lambda: results.extend((out.time, str(out.fact[0])) for out in job.run(sources)))
        run.start()
        connected = getattr(original(source), "connected", None)
        wait(lambda: connected is None or connected.is_set())
        say()
        wait(lambda: source.reading.statements == 2 * len(MESSAGES))
        sources.stop()
        run.join(20)
    assert results == [(at + 2000, f"<{E}s{at}>") for at in (1000, 2000, 9000)]
