"""Live sources that Spark's executors read by themselves, with offsets in Spark's checkpoint: as the driver would, and
only what that is true of. (Kafka by Spark's connector: tests/test_spark_kafka.py.)"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.errors import BuilderError, SourceError
from squall.streams import DeadLetterFile, Sources, open_source
from squall.streams.clock import WallClock
from squall.streams.live import base
from tests import brokers, live
from tests.live import line

pytest.importorskip("pyspark")
pytest.importorskip("redis")
from squall.builders.spark import executor_sources, session
from squall.builders.spark.store import Store

pytestmark = [pytest.mark.spark, pytest.mark.more]
SEEN = "[seen: (?s ?p ?o) -> (?s <urn:seen> ?o)]"
PAIRS = "[pair: (?a <urn:p> ?b) (?b <urn:p> ?c) -> (?a <urn:pp> ?c)]"
"""A rule whose conclusions depend on which triples are the last ones."""


def at(broker: brokers.Broker, options: str = "&from=first") -> str:
    return f"redis://127.0.0.1:{broker.port}/k?format=ntt{options}"


def say(redis: Any, *payloads: bytes) -> None:
    for payload in payloads:
        redis.xadd("k", {"data": payload})


def ended(builder: str, program: str, address: str, count: int, options: Options) -> list[tuple[int, str]]:
    """Returns the outputs of a run that is stopped after a number of them."""
    plan = squall.plan(squall.compile(program, lexer="jena", window="TRIPLES 2" if program is PAIRS else "RANGE 1h"))
    return live.ended(plan, builder, address, count, options)


def offsets(kept: Path) -> list[str]:
    """Returns the offsets of the source in Spark's checkpoint, batch by batch."""
    results = sorted((kept / "spark" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().splitlines()[-1])["position"] for path in results]


@pytest.mark.parametrize("cut", ["", "&buffer=2"])
def test_it_is_what_the_driver_would_read(broker: brokers.Broker, redis: Any, tmp_path: Path, cut: str) -> None:
    """This holds however the input is cut into micro-batches: late and malformed statements, and the scope of blank
    nodes."""
    node = b"5 _:b <urn:p> _:b .\n"
    say(redis, line(1) + line(2) + node, line(4), b"nonsense\n" + line(6) + b"\xff", b"", node, node, line(7))
    dead_letters = [tmp_path / "lost0", tmp_path / "lost1"]
    ledgers = [DeadLetterFile(path) for path in dead_letters]
    address = at(broker, f"&from=first{cut}")
    local = ended("iterator", SEEN, address, 5, Options(ledger=ledgers[0]))
    existing_items = ended("spark", SEEN, address, 5, Options(ledger=ledgers[1], checkpoint=tmp_path / "kept"))
    assert existing_items == local
    for ledger in ledgers:
        ledger.close()
    lines = [sorted(path.read_text().splitlines()) for path in dead_letters]
    assert lines[0] == lines[1]
    assert sorted(json.loads(item)["cause"] for item in lines[0]) == ["late"] * 3 + ["malformed"] * 2
    newest = redis.xinfo_stream("k")["last-generated-id"].decode()
    assert offsets(tmp_path / "kept")[-1] == newest
    assert (len(offsets(tmp_path / "kept")) >= 3) == bool(cut)
    assert not (tmp_path / "kept" / "spool" / "events").exists()


def test_facts_count_in_their_order(broker: brokers.Broker, redis: Any, tmp_path: Path) -> None:
    """Facts of one time have an order as well: a window of two triples holds the last two."""
    names = "adbcabdcdabcadcb"
    message = [f"{9 + number // 2} <urn:{a}> <urn:p> <urn:{b}> .\n" for number, (a, b) in enumerate(pairwise(names))]
    say(redis, *(text.encode() for text in message))
    say(redis, b"99 <urn:a> <urn:q> <urn:b> .\n")  # until then an instant may go on
    (tmp_path / "in.ntt").write_text("".join(message))
    local = ended("iterator", PAIRS, f"{tmp_path}/in.ntt", 0, Options())
    assert len(local) > 4
    options = Options(checkpoint=tmp_path / "kept")
    assert ended("spark", PAIRS, at(broker, "&from=first&buffer=3"), len(local), options) == local


def test_a_run_resumes_from_the_checkpoint(broker: brokers.Broker, redis: Any, tmp_path: Path) -> None:
    say(redis, line(1))
    options, address = Options(checkpoint=tmp_path / "kept"), at(broker, "")
    store = Store(tmp_path / "kept")
    begun = executor_sources.chosen(session(), store, Sources([open_source(address)]))
    say(redis, line(2), line(3))
    assert begun.begin < redis.xinfo_stream("k")["last-generated-id"].decode()
    assert [time for time, _ in ended("spark", SEEN, address, 2, options)] == [2, 3], "what is new is so since then"
    say(redis, line(4))
    assert [time for time, _ in ended("spark", SEEN, address, 1, options)] == [4]
    for other in (at(broker), at(broker, "&group=g")):
        with pytest.raises(BuilderError, match="is that of another source"):
            ended("spark", SEEN, other, 1, options)


def test_a_mistyped_address_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request: list[float] = []

    def none(seconds: float) -> Iterator[float]:
        request.append(seconds)
        return iter(())

    monkeypatch.setattr(base, "delays", none)
    with pytest.raises(SourceError, match="cannot be read"):
        ended("spark", SEEN, "redis://127.0.0.1:1/k?format=ntt&from=first", 1, Options())
    assert request == [0], "seconds for which it is tried again"


@pytest.mark.parametrize(
    ("addresses", "wall", "is_direct"),
    [
        (["redis://h/k?format=ttl&window=RANGE 5s&stream=urn:s&idle=9&buffer=9"], False, True),
        (["kafka://me:secret@h/t?format=ntt&security.protocol=SSL"], False, True),
        (["redis://h/k?format=ntt"], True, False),
        (["redis://h/k?format=ntt&group=g"], False, False),
        (["kafka://h/t?format=ntt&group=g"], False, False),
        (["redis://h/k?format=ntt&lateness=5s"], False, False),
        (["redis://h/k?format=nt&time=urn:at"], False, False),
        (["redis://h/k?format=ntt", "redis://h/l?format=ntt"], False, False),
        (["mqtt://h/x?format=ntt"], False, False),
        (["tcp://h:1?format=ntt"], False, False),
        (["in.ntt"], False, False),
    ],
)
def test_sources_that_the_driver_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: list[str], wall: bool, is_direct: bool
) -> None:
    (tmp_path / "in.ntt").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executor_sources, "_beginning", lambda _: "begin")
    spark = session()
    store = Store(tmp_path / "kept")
    sources = Sources([open_source(address) for address in addresses], WallClock() if wall else None)
    result = executor_sources.chosen(spark, store, sources)
    assert result == (
        executor_sources.ExecutorSource(sources.sources[0], "squall", "begin")
        if is_direct
        else executor_sources.ExecutorSource()
    )
    monkeypatch.setattr(executor_sources, "_is_apart", lambda _: not is_direct)
    assert executor_sources.chosen(spark, store, sources) == result, "as it has begun"


def test_partitions_of_kafka(tmp_path: Path) -> None:
    """Each partition is read in its order. A micro-batch has no more than the buffer, with a share of each
    partition."""
    pytest.importorskip("confluent_kafka")
    from squall.streams.live.kafka import KafkaSource
    from tests.test_live_kafka import Cluster

    cluster = Cluster()
    cluster.say(*map(line, range(1, 7)), partition=0)
    cluster.say(*map(line, range(1, 3)), partition=1)
    address = cluster.at("t?format=ntt&from=first&buffer=4")
    source = open_source(address)
    assert isinstance(source, KafkaSource)
    begin, full_result = source.beginning(), json.loads(source.latest())
    limited = json.loads(source.latest(begin))
    assert {item: behind for item, behind in limited.items() if behind} == {"0": 3, "1": 1}
    assert {item: behind for item, behind in full_result.items() if behind} == {"0": 6, "1": 2}
    source.close()
    options = Options(checkpoint=tmp_path / "kept", ledger=DeadLetterFile())
    result = ended("spark", SEEN, cluster.at("t?format=ntt&from=first"), 6, options)
    assert {time for time, _ in result} == {1, 2, 3, 4, 5, 6}
    assert json.loads(offsets(tmp_path / "kept")[-1]) == full_result
