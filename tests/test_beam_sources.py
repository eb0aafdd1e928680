"""Redis Streams as sources of users' own Beam pipelines (`squall.beam.ReadEvents`)."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any, ClassVar

import pytest

from squall.errors import UsageError
from tests import brokers
from tests.live import line, output
from tests.test_docs import ROOT, blocks

pytest.importorskip("redis")
pytestmark = [pytest.mark.beam, pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")]


def at(broker: brokers.Broker, options: str = "?format=ntt&from=first") -> str:
    return f"redis://127.0.0.1:{broker.port}/k{options}"


def say(redis: Any, *payloads: bytes) -> None:
    for payload in payloads:
        redis.xadd("k", {"data": payload})


class Enough(Exception):
    """Ends a pipeline."""


class Found:
    """A collector of the results of a pipeline in this process: rows with their event times."""

    rows: ClassVar[list[tuple[Any, float]]] = []

    @classmethod
    def take(cls, row: Any, at: Any = None) -> None:
        cls.rows.append((row, float(at)))


def go(uri: str, last: int | None, **inputs: Any) -> list[tuple[Any, float]]:
    """Returns the rows of a source up to a time, or all rows if it is None."""
    import apache_beam as beam

    from squall.beam import ReadEvents

    Found.rows = []

    class Take(beam.DoFn):  # type: ignore[misc]
        def process(self, row: Any, at: Any = beam.DoFn.TimestampParam) -> None:
            Found.take(row, at)
            if last is not None and row.time == last:
                raise Enough

    pipeline = beam.Pipeline(runner="FnApiRunner")
    read = pipeline | ReadEvents(uri, **inputs)
    if last is None:
        read = read | beam.Reshuffle()  # where rows are encoded, and live ones would not come through
    _ = read | beam.ParDo(Take())
    with nullcontext() if last is None else pytest.raises(RuntimeError, match="Enough"):
        pipeline.run()
    return Found.rows


def rows(*times: int) -> list[tuple[Any, ...]]:
    return [(time, *output(time).fact, None, None) for time in times]


def test_a_bounded_read_reads_the_existing_entries(broker: brokers.Broker, redis: Any) -> None:
    say(redis, line(1) + line(2), b"nonsense\n", line(3))
    result = go(at(broker), None, now=True)
    assert [tuple(row) for row, _ in result if row.lost is None] == rows(1, 2, 3)
    assert [time for row, time in result if row.lost is None] == [0.001, 0.002, 0.003]
    (dead_letters,) = [row for row, _ in result if row.lost is not None]
    assert dead_letters[:5] == (None,) * 5
    assert dead_letters.lost.startswith(f"malformed: {at(broker, '')}: entry ")


def test_an_unbounded_read_reads_entries_as_they_arrive(
    broker: brokers.Broker, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("squall.builders.beam.sources.bundle_of", lambda pipeline: 0.1)
    say(redis, line(1))

    def more() -> None:
        for number in range(2, 6):
            while len(Found.rows) < number - 1:
                if ended.wait(0.01):
                    return
            ended.wait(0.3)  # some bundles that bring nothing
            say(redis, line(number))

    ended = threading.Event()
    feeder = threading.Thread(target=more)
    feeder.start()
    try:
        result = go(at(broker), 5)
    finally:
        ended.set()
        feeder.join()
    assert [tuple(row) for row, _ in result] == rows(1, 2, 3, 4, 5)


@pytest.mark.more
def test_topics_have_their_partitions_read_apart() -> None:
    pytest.importorskip("confluent_kafka")
    from tests.test_live_kafka import Cluster

    cluster = Cluster()
    cluster.say(line(1), line(3))
    cluster.say(line(2), partition=1)
    uri = cluster.at("t?format=ntt&from=first")
    assert sorted(tuple(row) for row, _ in go(uri, None, now=True)) == rows(1, 2, 3)
    cluster.say(line(4), partition=1)
    assert sorted(tuple(row) for row, _ in go(uri, 4)) == rows(1, 2, 3, 4)


def test_a_deferred_remainder_begins_after_the_last_entry_read() -> None:
    from squall.builders.beam.sources import _Tracker

    tracker = _Tracker(("0-0", None))
    assert tracker.try_split(0.5) is None
    assert tracker.try_claim("3-0")
    assert tracker.try_split(0) == (("0-0", "3-0"), ("3-0", None))
    assert not tracker.try_claim("4-0")
    tracker.check_done()
    with pytest.raises(ValueError, match="behind 3-0"):
        _Tracker(("3-0", None)).check_done()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mqtt://localhost/x?format=nt", "what lies between two of its positions cannot be read again"),
        ("redis://localhost/k?format=rdfp", "takes statements back"),
        ("redis://localhost/k?format=nt&group=g", "`group` in .* means nothing to `ReadEvents`"),
        ("redis://localhost/k?format=nt&lateness=1s", "`lateness` in .* means nothing to `ReadEvents`"),
    ],
)
def test_what_it_does_not_read_is_refused(uri: str, message: str) -> None:
    from squall.beam import ReadEvents

    with pytest.raises(UsageError, match=message):
        ReadEvents(uri)


def test_example_of_docs(broker: brokers.Broker, redis: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = (block.text for block in blocks((ROOT / "docs" / "beam.md").read_text()) if block.rest == "readings.py")
    assert "//localhost/readings" in script
    say(redis, line(1), b"nonsense")
    exec(script.replace("//localhost/readings", f"//127.0.0.1:{broker.port}/k"), {})
    assert capsys.readouterr().out == "1 <http://example.org/1>\n"
