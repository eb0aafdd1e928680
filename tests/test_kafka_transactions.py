"""Each output that a checkpoint delivers to Kafka is visible exactly once to consumers of committed messages.

With a model of a cluster (tests/transactional.py), for which a run dies at each of its calls, or something else goes
wrong there; and over the wire, with a small broker (tests/kafka_broker.py). Processes that are killed are in
tests/test_kills.py. (The emulation in librdkafka does these things otherwise: decision 39.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from squall.contracts import Output
from squall.errors import SinkError, UsageError
from squall.rdf import ALWAYS, Evaluated
from squall.streams import open_sink
from squall.streams.sinks.outbox import Outbox
from tests.laws import examples_of
from tests.live import PATIENCE, output
from tests.test_durable import kept, kept_by, timed_lines

pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaException, TopicPartition

from squall.streams.live import kafka_producers, messages
from squall.streams.live.kafka import KafkaSink
from squall.streams.live.kafka_producers import TransactionalProducer
from tests.kafka_broker import PARTITIONS, KafkaBroker
from tests.transactional import Cluster, Died, Fault, State

FORMATS = st.sampled_from(["ntt", "ndjson-evaluations"])
Connect = Callable[[Cluster], Cluster]
DEATHS = (Fault.DIES_BEFORE, Fault.DIES_WITHIN, Fault.DIES_AFTER)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Makes a cluster the one that there is; what is tried again is tried three times, at once."""
    monkeypatch.setattr(messages, "delays", lambda seconds: repeat(0, 3))

    def to(cluster: Cluster) -> Cluster:
        monkeypatch.setattr(kafka_producers, "Producer", cluster.producer)
        monkeypatch.setattr(kafka_producers, "Consumer", cluster.consumer)
        return cluster

    return to


class Disk:
    """The contents of a checkpoint, which has the number of processed parts and the outbox."""

    done = 0
    outbox = ""


def opened(format: str = "ntt") -> Outbox:
    box = Outbox(open_sink(f"kafka://h/t?format={format}"))
    box.start()
    return box


def live(disk: Disk, parts: Sequence[Sequence[Output]], format: str) -> None:
    """Runs one process, which resumes from the disk."""
    box = opened(format)
    try:
        if disk.outbox:
            box.restore(json.loads(disk.outbox))
        while disk.done < len(parts):
            for part in parts[disk.done]:
                box.write(part)
            saved = box.snapshot(last=disk.done == len(parts) - 1)
            disk.outbox, disk.done = json.dumps(saved), disk.done + 1
            box.commit()
    except Died:
        raise
    except BaseException:
        with suppress(SinkError):
            box.close()
        raise
    box.close()


def lives(cluster: Cluster, parts: Sequence[Sequence[Output]], format: str) -> list[bytes]:
    """Returns the committed outputs after processes have failed one after the other, until one finishes."""
    disk = Disk()
    for _ in range(1000):
        try:
            live(disk, parts, format)
            break
        except (Died, SinkError):
            check(cluster)
    assert disk.done == len(parts)
    assert all(transaction.state in (State.ABORTED, State.COMMITTED) for transaction, *_ in cluster.log)
    check(cluster)
    return [data for data, _ in cluster.committed()]


def check(cluster: Cluster) -> None:
    """Checks that no message is there twice; messages have names."""
    names = [headers["squall-id"] for _, headers in cluster.committed()]
    assert len(names) == len({*names})


def outputs(counts: Sequence[int]) -> list[list[Output]]:
    """Returns as many outputs for each part, all of them different; some evaluations end within a part, others continue
    in the next."""
    numbers = iter(range(1000))
    results = [[output(next(numbers)) for _ in range(count)] for count in counts]
    for part in results[::2]:
        part += [Output(Evaluated(()), part[-1].time, "rule")] if part else []
    return results


@settings(deadline=None, max_examples=examples_of(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    faults=st.lists(st.sampled_from([*[Fault.NOTHING] * 6, *Fault]), max_size=60),
    format=FORMATS,
)
@example(
    counts=[0, 1, 0],
    faults=[Fault.NOTHING, Fault.NOTHING, Fault.DIES_BEFORE, Fault.FATAL],  # a resumed run that gets no producer
    format="ndjson-evaluations",
)
def test_output_is_exactly_once_with_any_failure(
    connect: Connect, counts: list[int], faults: list[Fault], format: str
) -> None:
    parts = outputs(counts)
    full_result = lives(connect(Cluster()), parts, format)
    assert len(full_result) >= (sum(counts) if format == "ntt" else 0)
    assert lives(connect(Cluster(faults)), parts, format) == full_result


@pytest.mark.sampled(3)
@pytest.mark.parametrize("death", DEATHS)
def test_a_run_that_dies_at_any_call(connect: Connect, tmp_path: Path, death: Fault) -> None:
    """The run has a checkpoint in process. For the next run, the offset is not settled at once."""
    (tmp_path / "a.ntt").write_text(timed_lines(12, 1))
    cluster = connect(Cluster())
    full_result = runs(tmp_path / "whole", cluster)
    results = sorted(
        f"{'-infinity' if out.time == ALWAYS else out.time} {out.fact}" for out in kept(tmp_path / "other")
    )
    assert sorted(data.decode() for data in full_result) == results
    for call in range(cluster.calls):
        dying = connect(Cluster(chain(repeat(Fault.NOTHING, call), [death, Fault.NOTHING, Fault.FULL])))
        assert runs(tmp_path / f"kept-{call}", dying) == full_result


def runs(folder: Path, cluster: Cluster) -> list[bytes]:
    """Returns the committed outputs after a run that may fail has been resumed."""
    for _ in range(2):
        box = opened()
        with suppress(Died):
            for item in kept_by(folder, box):
                box.write(item)
            box.close()
            break
    return [data for data, _ in cluster.committed()]


def test_who_has_been_replaced_writes_nothing(connect: Connect) -> None:
    cluster = connect(Cluster())
    old = opened()
    old.write(output(1))
    saved = old.snapshot()
    old.commit()
    old.write(output(2))
    late = old.snapshot()
    new = opened()
    new.restore(saved)
    with pytest.raises(SinkError, match="another run goes on with the checkpoint"):
        old.commit()
    new.write(output(2))
    new.snapshot()
    new.commit()
    assert len(cluster.committed()) == 2
    behind = opened()
    with pytest.raises(SinkError, match="it has had delivery 2 of the checkpoint, which is at 1"):
        behind.restore(saved)
    assert late["number"] == 2
    same = opened()
    same.restore(late)
    assert len(cluster.committed()) == 2


def test_checkpoints_do_not_know_of_each_other(connect: Connect) -> None:
    cluster = connect(Cluster())
    for number in range(3):
        box = opened()
        box.write(output(number))
        box.snapshot()
        box.commit()
        assert len(cluster.committed()) == number + 1


def test_what_a_broker_does_not_allow_is_an_error(connect: Connect) -> None:
    connect(Cluster([Fault.FATAL]))
    box = opened()
    box.snapshot()
    with pytest.raises(SinkError, match="allows no transactions") as failed:
        box.commit()
    assert "transactional=no" in str(failed.value.hint)


N, LOST, GONE, ABORTED = Fault.NOTHING, Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.ABORTED


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        ([LOST, GONE, LOST, N, Fault.FULL, GONE, N], ""),  # before a transaction
        ([N, N, Fault.FULL, N, N, LOST, GONE, N, LOST, GONE, N], ""),
        ([N, N, *[N, ABORTED, GONE, LOST, N] * 3], ""),
        ([N, N, *[N, N, N, ABORTED, N] * 4], "in an invalid state"),
        ([N, N, N, N, N, *[GONE] * 4], "Timed out"),
        ([N, N, Fault.REFUSED], "Message timed out"),
        ([N, N, N, Fault.TOO_LARGE, N], "Message size too large"),
        ([N, N, N, Fault.FATAL], "Fatal error"),
        ([N, N, N, ABORTED, Fault.FATAL], "Fatal error"),
    ],
)
def test_retriable_errors_are_retried(connect: Connect, faults: list[Fault], why: str) -> None:
    """They are retried as often as all else; other errors are not retried, since it would be useless. Two messages are
    a transaction."""
    cluster = connect(Cluster(faults))
    box = opened()
    box.write(output(1))
    box.write(output(2))
    box.snapshot()
    if why:
        with pytest.raises(SinkError, match=why):
            box.commit()
    else:
        box.commit()
    assert len(cluster.committed()) == (0 if why else 2)
    assert next(cluster.faults, None) is None


@pytest.mark.more
def test_who_has_been_replaced_writes_nothing_over_the_wire() -> None:
    """The test uses the real client; nobody sees the open transaction of a killed process."""
    with KafkaBroker().running() as cluster:
        uri = f"kafka://127.0.0.1:{cluster.port}/t?format=ntt"

        def sink(number: int) -> TransactionalProducer:
            result = TransactionalProducer(cast(KafkaSink, open_sink(uri)), cluster.settings(""), "name")
            result.begin(number)
            return result

        old = sink(1)
        old.send(b"1", None)
        old.flush()
        old.begin(2)
        old.client.begin_transaction()
        old.client.produce("t", b"2")
        old.client.flush()
        new = sink(2)
        with pytest.raises(KafkaException, match="fenced"):
            old.client.commit_transaction()
        old.send(b"2", None)
        with pytest.raises(SinkError, match="another run goes on with the checkpoint"):
            old.flush()
        new.send(b"2", None)
        new.flush()
        same = sink(2)
        same.send(b"2", None)
        same.flush()
        with pytest.raises(SinkError, match="which is at 1"):
            sink(1)
        with closing(Consumer(cluster.settings("reader"))) as reader:
            reader.assign([TopicPartition("t", number, 0) for number in range(PARTITIONS)])
            results = [item.value() for _ in range(2) for item in reader.consume(1, PATIENCE)]
            results += [item.value() for item in reader.consume(1, 1)]
        assert sorted(results) == [b"1", b"2"]
        assert sum(len(partition.aborted) for partition in cluster.topics["t"]) == 1


def test_without_transactions(connect: Connect) -> None:
    cluster = connect(Cluster())
    box = Outbox(open_sink("kafka://h/t?format=nt&transactional=no"))
    box.start()
    box.snapshot()
    box.commit()
    assert cluster.calls == 0
    with pytest.raises(UsageError, match="neither yes nor no"):
        open_sink("kafka://h/t?transactional=perhaps")
    with pytest.raises(UsageError, match="is squall's to say"):
        open_sink("kafka://h/t?transactional.id=mine")
