"""Redis Streams and Kafka as Python data sources of Spark (`squall.builders.spark.datasource`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.streams import DeadLetterFile, Sources
from tests import brokers
from tests.live import line, output
from tests.test_docs import ROOT, blocks

pytest.importorskip("pyspark")
pytest.importorskip("redis")
from pyspark.errors import AnalysisException

from squall.builders.spark.datasource import EventSource
from squall.spark import FrameSource, session, to_dataframe

pytestmark = [pytest.mark.spark, pytest.mark.more]
FOUND = "PREFIX : <http://example.org/> SELECT ?s ?o { ?s :p ?o }"


@pytest.fixture(scope="module")
def spark() -> Any:
    spark = session()
    spark.dataSource.register(EventSource)
    return spark


def at(broker: brokers.Broker, options: str = "?format=ntt&from=first") -> str:
    return f"redis://127.0.0.1:{broker.port}/k{options}"


def say(redis: Any, *payloads: bytes) -> None:
    for payload in payloads:
        redis.xadd("k", {"data": payload})


def rows(*times: int) -> list[tuple[Any, ...]]:
    return [(time, *output(time).fact, None, None) for time in times]


@pytest.mark.more
def test_a_batch_query_reads_the_existing_entries(spark: Any, broker: brokers.Broker, redis: Any) -> None:
    say(redis, line(1) + line(2), b"nonsense\n", line(3))
    frame = spark.read.format("squall").load(at(broker))
    assert frame.dtypes[0] == ("time", "bigint")
    assert frame.columns == ["time", "subject", "predicate", "object", "graph", "lost"]
    good, bad = frame.where("lost is null"), frame.where("lost is not null")
    assert [tuple(row) for row in good.collect()] == rows(1, 2, 3)
    (dead_letters,) = bad.collect()
    assert dead_letters[:5] == (None,) * 5
    assert dead_letters["lost"].startswith(f"malformed: {at(broker, '')}: entry ")
    assert dead_letters["lost"].endswith(": nonsense")


@pytest.mark.more
def test_a_stream_with_its_positions_in_the_checkpoint_of_the_query(
    spark: Any, broker: brokers.Broker, redis: Any, tmp_path: Path
) -> None:
    def go() -> list[list[tuple[Any, ...]]]:
        """Lets the query go as far as it can; what it has found so far, batch by batch."""
        writer = spark.readStream.format("squall").load(at(broker)).writeStream.outputMode("append")
        writer = writer.foreachBatch(lambda batch, _: results.append([tuple(row) for row in batch.collect()]))
        query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
        try:
            query.processAllAvailable()
            say(redis, line(10 * len(results)))
            query.processAllAvailable()
        finally:
            query.stop()
        return results

    results: list[list[tuple[Any, ...]]] = []
    say(redis, line(1), line(2))
    assert go() == [rows(1, 2), rows(10)]
    say(redis, line(3))
    assert go() == [rows(1, 2), rows(10), rows(3), rows(30)]


def test_partitions_of_kafka_are_read_apart(spark: Any) -> None:
    pytest.importorskip("confluent_kafka")
    from tests.test_live_kafka import Cluster

    cluster = Cluster()
    cluster.say(line(1), line(2), partition=0)
    cluster.say(line(3), partition=1)
    frame = spark.read.format("squall").load(cluster.at("t?format=ntt&from=first"))
    assert frame.rdd.getNumPartitions() == 2
    assert sorted(tuple(row) for row in frame.collect()) == rows(1, 2, 3)


@pytest.mark.more
def test_it_is_a_source_of_programs(spark: Any, broker: brokers.Broker, redis: Any) -> None:
    say(redis, line(1) + line(2), b"nonsense\n", line(3))
    plan = squall.plan(squall.compile(FOUND, lexer="sparql"))
    ledger = DeadLetterFile()
    frame = spark.read.format("squall").load(at(broker))
    result = to_dataframe(plan, Sources([FrameSource(frame, name="k")]), options=Options(ledger=ledger))
    assert sorted(map(tuple, result.selectExpr("unix_millis(time)", "s").collect())) == [
        (1, "http://example.org/1"), (2, "http://example.org/2"), (3, "http://example.org/3")
    ]  # fmt: skip
    assert ledger.counts == {("malformed", "k"): 1}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mqtt://localhost/x?format=nt", "what lies between two of its positions cannot be read again"),
        ("redis://localhost/k?format=rdfp", "takes statements back"),
        ("redis://localhost/k?format=nt&group=g", "`group` in .* means nothing to a data source"),
        ("redis://localhost/k?format=nt&lateness=1s", "`lateness` in .* means nothing to a data source"),
        ("redis://localhost/k?format=nt&window=RANGE 1s", "`window` in .* means nothing to a data source"),
        ("http://example.org/s=redis://localhost/k?format=nt", "`stream` in .* means nothing to a data source"),
        ("redis://localhost/k?format=nt&time=<urn:t>", "what lies between two of its positions cannot be read again"),
        ("redis://localhost/k", "does not say its format"),
    ],
)
def test_unsuitable_sources_are_refused(spark: Any, uri: str, message: str) -> None:
    with pytest.raises(AnalysisException, match=message):
        spark.readStream.format("squall").load(uri)


def test_an_address_is_needed(spark: Any) -> None:
    with pytest.raises(AnalysisException, match="`squall` needs an address"):
        spark.readStream.format("squall").load()


@pytest.mark.more
def test_example_of_docs(spark: Any, broker: brokers.Broker, redis: Any) -> None:
    (script,) = (
        block.text for block in blocks((ROOT / "docs" / "spark.md").read_text()) if block.rest == "readings.py"
    )
    assert "//localhost/readings" in script
    say(redis, line(1))
    names = {"spark": spark}
    exec(script.replace("//localhost/readings", f"//127.0.0.1:{broker.port}/k"), names)
    query = names["readings"].writeStream.format("memory").queryName("readings").start()
    try:
        query.processAllAvailable()
        assert [tuple(row) for row in spark.table("readings").collect()] == rows(1)
    finally:
        query.stop()
