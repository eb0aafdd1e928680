"""Processes that are killed at random moments and restarted write the same as one that is not killed.

Runs on Spark over files that it reads by itself are in tests/test_spark.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

import squall
from squall.functions.values import date_time
from squall.rdf import ALWAYS
from squall.streams import DeadLetterFile, open_source
from squall.streams.sources.files import Acknowledging
from tests import brokers
from tests.kafka_broker import PARTITIONS, KafkaBroker
from tests.live import Run
from tests.test_durable import PROGRAM, timed_lines

pytestmark = pytest.mark.more

PATIENCE = 300
KILLS = pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
LAST = """100000000 <http://example.org/last> <http://example.org/in> <http://example.org/last> .
200000000 <http://example.org/last> <http://example.org/note> <http://example.org/last> .
"""
"""An event so late that all windows have closed, and an event which shows that the instant of the first is complete."""
IS_LAST = "<http://example.org/last> <http://example.org/has> <http://example.org/Cold> ."
SEQUENCE = """PREFIX : <http://example.org/>
CONSTRUCT { ?room :has :Cold } WHERE {
  { { ?sensor :in ?room } NOT { ?sensor :reads ?value } WITHIN 250ms }
  OR { { ?sensor :in ?room } SEQ { ?sensor :reads ?value } SEQ { ?sensor :in ?room } WITHIN 2s }
}
"""
"""A pattern over time, which is open at most moments."""
TIMERS = """PREFIX : <http://example.org/>
PREFIX timer: <urn:x-squall:timer:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
INSERT { GRAPH <urn:x-squall:timers> { ?sensor timer:after "PT0.25S"^^xsd:duration } } WHERE { ?sensor :in ?room } ;
DELETE { GRAPH <urn:x-squall:timers> { ?sensor timer:after "PT0.25S"^^xsd:duration } . ?sensor :has :Cold }
WHERE { ?sensor :reads ?value } ;
DELETE { GRAPH <urn:x-squall:timers> { ?sensor timer:fired true } } INSERT { ?sensor :has :Cold }
WHERE { GRAPH <urn:x-squall:timers> { ?sensor timer:fired true } }
"""
"""Timers, one of which is set at most moments."""
PARTS = 4
"""The number of parts of the input for each start of a run."""


def ended(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and what it started, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Killed:
    """A run that is killed repeatedly while more input arrives.

    say: adds a part of the input. written: returns the output so far.
    """

    options: Sequence[str] = ("--checkpoint-interval", "20")
    program = "program.jena"
    text = PROGRAM
    window = "RANGE 300ms"

    def __init__(self, folder: Path, arguments: list[str], say: Callable[[int, str], None], written: Callable[[], str]):
        self.folder = folder
        self.say = say
        self.written = written
        self.checkpoint = folder / "kept"
        (folder / self.program).write_text(self.text)
        state = ["--checkpoint", str(self.checkpoint), *self.options, "--window", self.window]
        self.command = [sys.executable, "-m", "squall", "build", self.program, *arguments, *state]

    def holds(self, kills: int) -> None:
        """Asserts that the output is that of an undisturbed run over all of the input. No process outlives it."""
        with ExitStack() as self._processes:
            self._check(kills)

    def _check(self, kills: int) -> None:
        draw = random.Random(kills)
        texts = [timed_lines(30, number, first=300 * number) for number in range(PARTS * (kills + 1))]
        parts = enumerate((*texts, LAST))
        for _ in range(kills):
            self.kill(draw, list(islice(parts, PARTS)))
        self.end(list(parts))
        (self.folder / "all.ntt").write_text("".join((*texts, LAST)))
        system = squall.compile(self.folder / self.program, window=self.window)
        result, expected = Counter(self.written().splitlines()), Counter(undisturbed(self.folder, system))
        assert (expected - result, result - expected) == (Counter(), Counter())

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
            process = subprocess.Popen(
                self.command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.callback(ended, process)
        return process

    def kill(self, draw: random.Random, parts: Sequence[tuple[int, str]]) -> None:
        """Kills a process at some moment: while it starts, or while it works on what comes."""
        before, process = self._saved(), self.start()
        self.say(*parts[0])
        if draw.random() < 0.2:
            time.sleep(draw.random())
        else:
            self.wait(process, lambda: self._saved() != before)
        for part in parts[1:]:
            self.say(*part)
            time.sleep(draw.random() * 0.05)
        time.sleep(draw.random() * 0.1)
        assert process.poll() is None, self._log()
        ended(process)

    def end(self, parts: Sequence[tuple[int, str]]) -> None:
        """Lets a process come to the end of what there is, and ends it."""
        process = self.start()
        for part in parts:
            self.say(*part)
        self.wait(process, lambda: IS_LAST in self.written())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, self._log()

    def wait(self, process: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            assert process.poll() is None, self._log()
            assert time.monotonic() < end, self._log()
            time.sleep(0.01)

    def _saved(self) -> Any:
        """Returns a value that changes with each checkpoint of the run."""
        path = self.checkpoint / "checkpoint.jsonl"
        result = path.stat() if path.exists() else None
        return result and (result.st_ino, result.st_size)

    def _log(self) -> str:
        return (self.folder / "log").read_text()


class KilledByTime(Killed):
    """A process whose last outputs have to be emitted although no input follows."""

    options = ("--checkpoint-interval", "20ms")


class KilledInSequence(Killed):
    """A run of a pattern over time."""

    program = "program.ctsparql"
    text = SEQUENCE
    window = "LANDMARK"


class KilledWithTimers(Killed):
    """A run of updates that set timers."""

    program = "program.ru"
    text = TIMERS
    window = "ELEMENT"


class KilledOnSpark(Killed):
    """A run on Spark that is killed together with its JVM and its workers."""

    options = ("--builder", "spark", "--conf", "spark.master=local[2]", "--dead-letters", "lost.ndjson")

    def _saved(self) -> Any:
        return sum(1 for _ in (self.checkpoint / "commits").glob("[0-9]*.json"))


def undisturbed(folder: Path, system: squall.System) -> list[str]:
    """Returns the timed lines of an undisturbed run of a program in this process."""
    outputs = squall.build(squall.plan(system)).run(open_source(f"{folder}/all.ntt", DeadLetterFile()).batches())
    return [f"{'-infinity' if out.time == ALWAYS else out.time} {out.fact}" for out in outputs]


def appearing(folder: Path) -> Callable[[int, str], None]:
    """Returns a function that adds files to the folder of the source."""
    (folder / "in").mkdir()

    def say(number: int, text: str) -> None:
        draft = folder / "in" / f"{number:05}.tmp"
        draft.write_text(text)
        draft.rename(draft.with_suffix(".ntt"))

    return say


@KILLS
@pytest.mark.parametrize("killed", [Killed, KilledInSequence, KilledWithTimers])
def test_from_a_folder_into_a_file(tmp_path: Path, killed: type[Killed], kills: int) -> None:
    arguments = ["--source", "in?follow=yes&poll=10", "--sink", "out.ntt", "--dead-letters", "lost.ndjson"]
    killed(tmp_path, arguments, appearing(tmp_path), lambda: (tmp_path / "out.ntt").read_text()).holds(kills)
    lines = (tmp_path / "lost.ndjson").read_text().splitlines()
    assert len(lines) == len({*lines}) == (tmp_path / "all.ntt").read_text().count("broken")


def entries(client: Any, key: str) -> str:
    """Returns the messages of a stream as lines."""
    return "\n".join(entry[b"data"].decode() for _, entry in client.xrange(key))


def entering(client: Any) -> Callable[[int, str], None]:
    """Returns a function that adds lines to the Redis stream of the source, an entry each."""

    def say(number: int, text: str) -> None:
        for line in text.splitlines():
            client.xadd("in", {"data": line})

    return say


@KILLS
@pytest.mark.parametrize("group", ["", "&group=g&consumer=c"])
def test_from_redis_to_redis(tmp_path: Path, broker: brokers.Broker, kills: int, group: str) -> None:
    redis = pytest.importorskip("redis")
    place = f"redis://127.0.0.1:{broker.port}"
    with redis.Redis("127.0.0.1", broker.port) as client:
        arguments = ["--source", f"{place}/in?format=ntt&from=first{group}", "--sink", f"{place}/out?format=ntt"]
        Killed(tmp_path, arguments, entering(client), lambda: entries(client, "out")).holds(kills)


@pytest.fixture
def mqtt_broker(tmp_path: Path) -> Iterator[brokers.Broker]:
    yield from brokers.mosquitto(tmp_path).running()


def published(broker: brokers.Broker) -> Callable[[int, str], None]:
    """Returns a function that publishes lines, a message each. The session of the run, which gets them, exists."""
    client = pytest.importorskip("paho.mqtt.client")
    publish = pytest.importorskip("paho.mqtt.publish")
    source = open_source(f"mqtt://127.0.0.1:{broker.port}/in?format=ntt&client=c")
    with Run(source):
        pass
    cast(Acknowledging, source).close()

    def say(number: int, text: str) -> None:
        messages = [{"topic": "in", "payload": line, "qos": 1} for line in text.splitlines()]
        publish.multiple(messages, "127.0.0.1", broker.port, protocol=client.MQTTv5)

    return say


@pytest.mark.parametrize(
    ("killed", "kills"),
    [
        (Killed, 5),
        pytest.param(Killed, 50, marks=pytest.mark.slow),
        pytest.param(KilledOnSpark, 3, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_from_mqtt_into_a_file(tmp_path: Path, mqtt_broker: brokers.Broker, killed: type[Killed], kills: int) -> None:
    """What the broker sends again after a kill is neither output again nor late."""
    say = published(mqtt_broker)
    arguments = ["--source", f"mqtt://127.0.0.1:{mqtt_broker.port}/in?format=ntt&client=c", "--sink", "out.ntt"]
    ledger = [] if killed is KilledOnSpark else ["--dead-letters", "lost.ndjson"]
    killed(tmp_path, [*arguments, *ledger], say, lambda: (tmp_path / "out.ntt").read_text()).holds(kills)
    dead_letters = [json.loads(entry) for entry in (tmp_path / "lost.ndjson").read_text().splitlines()]
    assert {entry["cause"] for entry in dead_letters} == {"malformed"}
    assert len(dead_letters) == (tmp_path / "all.ntt").read_text().count("broken")


@contextmanager
def kafka_sink() -> Iterator[tuple[str, Callable[[], str]]]:
    """Returns the address of a Kafka topic, and a function that reads its committed messages as lines."""
    confluent = pytest.importorskip("confluent_kafka")
    with KafkaBroker().running() as cluster, closing(confluent.Consumer(cluster.settings("reader"))) as consumer:
        consumer.assign([confluent.TopicPartition("out", number, 0) for number in range(PARTITIONS)])
        read: list[str] = []

        def written() -> str:
            read.extend(message.value().decode() for message in consumer.consume(1000, 0.1))
            return "\n".join(read)

        yield f"kafka://127.0.0.1:{cluster.port}/out?format=ntt", written


@KILLS
def test_from_a_folder_to_kafka(tmp_path: Path, kills: int) -> None:
    """The sink uses transactions."""
    with kafka_sink() as (sink, written):
        arguments = ["--source", "in?follow=yes&poll=10", "--sink", sink]
        KilledByTime(tmp_path, arguments, appearing(tmp_path), written).holds(kills)


@KILLS
def test_from_a_file_that_grows_into_a_compressed_one(tmp_path: Path, kills: int) -> None:
    """The input grows by pieces that end at any byte."""
    (tmp_path / "in.ntt").touch()

    def say(number: int, text: str) -> None:
        for begin in range(0, len(text), 1000):
            with (tmp_path / "in.ntt").open("a") as file:
                file.write(text[begin : begin + 1000])

    def written() -> str:
        """Returns the complete parts of the file."""
        data, text = (tmp_path / "out.ntt.gz").read_bytes(), b""
        while data:
            part = zlib.decompressobj(wbits=31)
            result = part.decompress(data)
            text, data = (text + result, part.unused_data) if part.eof else (text, b"")
        return text.decode()

    arguments = ["--source", "in.ntt?follow=yes&poll=10", "--sink", "out.ntt.gz", "--dead-letters", "lost.ndjson"]
    Killed(tmp_path, arguments, say, written).holds(kills)
    lines = (tmp_path / "lost.ndjson").read_text().splitlines()
    assert len(lines) == len({*lines}) == (tmp_path / "all.ntt").read_text().count("broken")


ON_SPARK = [("", "out.ntt", 50), ("&group=g&consumer=c", "out.ntt", 20), ("", "redis", 20), ("", "kafka", 20)]
"""The consumer of the source, the sink, and the number of kills in the slow tests: each kill costs a start of Spark."""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("group", "sink", "kills"),
    [(*ON_SPARK[1][:2], 1), *(pytest.param(*way, marks=pytest.mark.slow) for way in ON_SPARK)],
)
def test_from_redis_on_spark(tmp_path: Path, broker: brokers.Broker, kills: int, group: str, sink: str) -> None:
    """Workers read the stream by themselves, unless it is a group's: its entries are acknowledged when a batch that has
    them is committed."""
    pytest.importorskip("pyspark")
    redis = pytest.importorskip("redis")
    place = f"redis://127.0.0.1:{broker.port}"
    with redis.Redis("127.0.0.1", broker.port) as client, kafka_sink() as (topic, messages):
        ends: dict[str, tuple[str, Callable[[], str]]] = {
            "out.ntt": ("out.ntt", lambda: (tmp_path / "out.ntt").read_text()),
            "redis": (f"{place}/out?format=ntt", lambda: entries(client, "out")),
            "kafka": (topic, messages),
        }
        to, result = ends[sink]

        def is_acknowledged() -> bool:
            """Returns true if the group exists, which the run creates, and nothing of it is pending."""
            return any(info["name"] == b"g" and not info["pending"] for info in client.xinfo_groups("in"))

        def written() -> str:
            return result() if not group or is_acknowledged() else ""

        arguments = ["--source", f"{place}/in?format=ntt&from=first{group}", "--sink", to]
        KilledOnSpark(tmp_path, arguments, entering(client), written).holds(kills)
    lines = (tmp_path / "lost.ndjson").read_text().splitlines()
    assert len(lines) == len({*lines}) == (tmp_path / "all.ntt").read_text().count("broken")


QUINTUPLES = """@prefix : <http://example.org/>.
[(?x :partOf ?y) (?y :partOf ?z) -> (?x :partOf ?z)]
"""


def quintuples(size: int) -> str:
    """Returns lines of `.nt5`, by their begins: parts that are replaced, so that most intervals are open at a time."""
    draw = random.Random(size)
    lines = []
    for number in range(size):
        part = draw.randrange(40)
        begin, end = number * 1000, (number + draw.randrange(1, 60)) * 1000
        times = [date_time(begin)] if number % 50 == 7 else [date_time(begin), date_time(end)]
        names = (f"<http://example.org/{name}>" for name in (f"p{part}", "partOf", f"p{part + draw.randrange(1, 4)}"))
        lines.append(f"{' '.join((*names, *times))} .\n")
    return "".join(lines)


@KILLS
def test_quintuples_from_a_file_into_a_file(tmp_path: Path, kills: int) -> None:
    """A run that ends by itself is killed while intervals are open, each time after it has saved something."""
    draw, checkpoint = random.Random(kills), tmp_path / "kept"
    (tmp_path / "parts.jena").write_text(QUINTUPLES)
    (tmp_path / "in.nt5").write_text(quintuples(200 * kills))
    command = [sys.executable, "-m", "squall", "build", "parts.jena", "--source", "in.nt5?valid=time"]
    command += ["--output", "changes"]
    state = ["--checkpoint", str(checkpoint), "--checkpoint-interval", "20"]
    interrupted = [*command, "--sink", "out.nt5", *state]
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    subprocess.run([*command, "--sink", "all.nt5"], cwd=tmp_path, env=environment, check=True)

    def saved() -> object:
        return sorted((path.name, path.stat().st_size) for path in checkpoint.rglob("*") if path.is_file())

    killed = 0
    for _ in range(kills):
        before, end = saved() if checkpoint.exists() else None, time.monotonic() + PATIENCE
        with subprocess.Popen(interrupted, cwd=tmp_path, env=environment, start_new_session=True) as process:
            while process.poll() is None and (not checkpoint.exists() or saved() == before):
                assert time.monotonic() < end
                time.sleep(0.005)
            time.sleep(draw.random() * 0.05)
            killed += process.poll() is None
            ended(process)
    assert killed
    subprocess.run(interrupted, cwd=tmp_path, env=environment, check=True)
    expected = (tmp_path / "all.nt5").read_text().splitlines()
    assert expected
    assert Counter((tmp_path / "out.nt5").read_text().splitlines()) == Counter(expected)
