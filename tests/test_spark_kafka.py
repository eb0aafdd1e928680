"""Topics of Kafka that Spark reads by its connector: as the driver would, and only what that is true of.

There is no connector here, but a stand-in for it (tests/kafka_connector.py), which reads from librdkafka's emulation of
a cluster over its real protocol.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.errors import BuilderError
from squall.streams import DeadLetterFile, Sources, open_source
from tests import live
from tests.live import line

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")

from squall.builders.spark import executor_sources, kafka, session
from squall.builders.spark.store import Store
from tests.test_live_kafka import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.more]
SEEN = "[seen: (?s ?p ?o) -> (?s <urn:seen> ?o)]"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture(scope="module")
def spark() -> Any:
    return session()


@pytest.fixture
def connector(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a session that seems to have the connector."""
    from tests.kafka_connector import Connector

    assert not kafka.is_there(spark)
    spark.dataSource.register(Connector)
    monkeypatch.setattr(kafka, "FORMAT", Connector.name())
    monkeypatch.setattr(kafka, "CONNECTOR", "org.apache.spark.sql.SparkSession")
    assert kafka.is_there(spark)
    return spark


def ended(builder: str, address: str, count: int, options: Options) -> list[tuple[int, str]]:
    """Returns the outputs of a run that is stopped after a number of them."""
    return live.ended(squall.plan(squall.compile(SEEN, lexer="jena")), builder, address, count, options)


@pytest.mark.usefixtures("connector")
def test_what_the_connector_reads_is_what_the_driver_would(cluster: Cluster, tmp_path: Path) -> None:
    """Messages are documents: their blank nodes are their own, what is malformed in them costs itself only."""
    node = b"5 _:b <urn:p> _:b .\n"
    cluster.say(line(1) + line(2) + node, b"nonsense\n" + line(5) + b"\xff", None, node)
    dead_letters = [tmp_path / "lost0", tmp_path / "lost1"]
    ledgers = [DeadLetterFile(path) for path in dead_letters]
    address = cluster.at("t?format=ntt&from=first&window=RANGE 1h")
    local = ended("iterator", address, 5, Options(ledger=ledgers[0]))
    existing_items = ended("spark", address, 5, Options(ledger=ledgers[1]))
    assert existing_items == local
    assert len({fact for _, fact in existing_items}) == 5
    for ledger in ledgers:
        ledger.close()
    assert dead_letters[0].read_text() == dead_letters[1].read_text() != ""


@pytest.mark.usefixtures("connector")
def test_its_offsets_are_in_the_checkpoint(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A micro-batch has no more than the buffer. Without the connector, a run that has begun with it cannot resume."""
    cluster.say(*map(line, range(1, 6)))
    options, address = Options(checkpoint=tmp_path / "kept"), cluster.at("t?format=ntt&from=first&buffer=2")
    assert [time for time, _ in ended("spark", address, 5, options)] == [1, 2, 3, 4, 5]
    assert len(list((tmp_path / "kept" / "spark" / "offsets").glob("[0-9]*"))) >= 3
    assert not (tmp_path / "kept" / "spool" / "events").exists()
    cluster.say(*map(line, range(6, 8)))
    assert [time for time, _ in ended("spark", address, 2, options)] == [6, 7]
    with pytest.raises(BuilderError, match="is that of another source"):
        ended("spark", cluster.at("u?format=ntt"), 1, options)
    monkeypatch.setattr(kafka, "CONNECTOR", "org.example.None")
    with pytest.raises(BuilderError, match="was read by Spark's connector for Kafka, which is not there"):
        ended("spark", address, 1, options)


PLAIN = "kafka://h/t?format=ntt&stream=urn:s&from=first&buffer=9&idle=9&window=RANGE 5s"


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        ([PLAIN], ""),
        (["kafka://h/t?format=nt&time=5"], ""),
        (["in.ntt"], ""),
        ([PLAIN, "in.ntt"], "it has to be put in order with other sources"),
        ([f"{PLAIN}&lateness=5s"], "what it brings has to be put in order"),
        (["kafka://h/t?format=nt&time=urn:at"], "what it brings has to be put in order"),
        (["kafka://h/t?format=json&map=m.map"], ""),
        (["kafka://h/t?format=csv&header=a&map=m.map"], ""),
        (["kafka://h/t?format=ttl"], "`format=ttl` is no format of lines"),
        (["kafka://h/t?format=rdfp"], "`format=rdfp` is no format of lines"),
        ([f"{PLAIN}&group=g"], "`group` is said to librdkafka"),
        ([f"{PLAIN}&security.protocol=SSL"], "`security.protocol` is said to librdkafka"),
        ([f"{PLAIN}&retry=5"], "`retry` is said to librdkafka"),
        (["kafka://me:secret@h/t?format=ntt"], "its user and password are said to librdkafka"),
    ],
)
def test_what_the_connector_does_not_read(
    connector: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    addresses: list[str],
    why: str,
) -> None:
    (tmp_path / "in.ntt").touch()
    (tmp_path / "m.map").write_text('{ "a": ?a } => { <urn:a:{?a}> <urn:p> ?a }')
    monkeypatch.chdir(tmp_path)
    sources = [open_source(address) for address in addresses]
    store = Store(tmp_path / "kept")
    monkeypatch.setattr(executor_sources, "_beginning", lambda _: "begin")
    with caplog.at_level(logging.WARNING):
        result = executor_sources.chosen(connector, store, Sources(sources))
    assert (result.by == "connector") == (addresses[0].startswith("kafka") and not why)
    assert why in caplog.text
    assert bool(why) == ("is not read by Spark's connector" in caplog.text)
    assert "secret" not in caplog.text
    monkeypatch.setattr(kafka, "possible", None)
    assert executor_sources.chosen(connector, store, Sources(sources)) == result, "as it has begun"
