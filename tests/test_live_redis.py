"""Redis Streams as source and sink, with redis-server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from squall.errors import SinkError, SourceError, UsageError
from squall.rdf import Event
from squall.streams import DeadLetterFile, Sources, open_sink, open_source
from squall.streams.sinks.outbox import IdempotentSink
from squall.streams.sources.reordering import resume
from tests import brokers
from tests.live import PATIENCE, Run, example, line, output, times

pytest.importorskip("redis")

from redis.client import Pipeline
from redis.exceptions import ConnectionError

from squall.streams.live.redis_streams import RedisSource


def at(broker: brokers.Broker, rest: str) -> str:
    return f"redis://127.0.0.1:{broker.port}/{rest}"


def opened(broker: brokers.Broker, rest: str, ledger: DeadLetterFile | None = None) -> RedisSource:
    source: object = open_source(at(broker, rest), ledger)
    assert isinstance(source, RedisSource)
    return source


def say(redis: Any, *payloads: bytes) -> list[str]:
    return [redis.xadd("k", {"data": payload}).decode() for payload in payloads]


def test_entries_are_messages(broker: brokers.Broker, redis: Any) -> None:
    ledger = DeadLetterFile()
    with Run(opened(broker, "k?format=ntt", ledger)) as run:
        say(redis, line(1) + line(2), b"nonsense\n" + line(3))
        redis.xadd("k", {"other": "x"})
        say(redis, line(4))
        assert run.until(1, 2, 3, 4) == [1, 2, 3, 4]
    assert ledger.counts == {("malformed", f"redis://127.0.0.1:{broker.port}/k"): 2}


def test_a_range_of_positions_can_be_read_again(broker: brokers.Broker, redis: Any) -> None:
    say(redis, line(1), line(2) + line(3))
    source = opened(broker, "k?format=ntt&from=first&buffer=2")
    end = source.latest()
    say(redis, line(4))
    (part,) = source.splits_of(source.beginning(), end)
    assert [times(batch) for batch in source.read_split(part)] == [[1, 2, 3]]
    assert [times(batch) for batch in opened(broker, "k?format=ntt&buffer=1").read_split(part)] == [[1], [2, 3]]
    assert [times(batch) for item in source.splits_of(end, source.latest()) for batch in source.read_split(item)] == [
        [4]
    ]
    new = opened(broker, "k?format=ntt")
    assert new.beginning() == new.latest() == source.latest()
    assert new.splits_of(new.beginning(), new.latest()) == []


def test_trimmed_entries_are_dead_letters(broker: brokers.Broker, redis: Any) -> None:
    first, second, third = say(redis, line(1), line(2), line(3))
    redis.xdel("k", second)
    ledger = DeadLetterFile()
    source = opened(broker, "k?format=ntt", ledger)
    assert [times(batch) for part in source.splits_of(first, third) for batch in source.read_split(part)] == [[3]]
    assert ledger.counts == {("lost", at(broker, "k")): 1}
    assert [times(batch) for part in source.splits_of(second, third) for batch in source.read_split(part)] == [[3]]
    assert ledger.total("lost") == 1


def test_a_part_is_waited_for_while_there_is_no_connection(broker: brokers.Broker, redis: Any) -> None:
    (entry,) = say(redis, line(1))
    source = opened(broker, "k?format=ntt&from=first")
    broker.kill()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(source.latest)
        broker.start()
        assert result.result(PATIENCE) == entry
    broker.kill()
    with pytest.raises(SourceError, match="cannot be read"):
        opened(broker, "k?format=ntt&retry=1").latest()


def test_where_reading_begins(broker: brokers.Broker, redis: Any) -> None:
    first, _ = say(redis, line(1), line(2))
    for begin, expected in (("first", [1, 2, 3]), (first, [2, 3]), ("new", [3])):
        with Run(opened(broker, f"k?format=ntt&from={begin}")) as run:
            if begin == "first":
                say(redis, line(3))
            if begin == "new":
                say(redis, line(3))
            assert run.until(3) == expected


def test_it_can_be_read_again_from_a_position(broker: brokers.Broker, redis: Any) -> None:
    say(redis, *map(line, range(10)))
    source = opened(broker, "k?format=ntt&from=first&buffer=4")
    batches = source.batches()
    assert times(list(next(batches))) == [0, 1, 2, 3]
    again = opened(broker, "k?format=ntt&from=first&buffer=4")
    again.seek(source.position())
    assert times(list(next(again.batches()))) == [4, 5, 6, 7]


def test_entries_deleted_before_they_are_read_are_counted(broker: brokers.Broker, redis: Any) -> None:
    names, ledger = say(redis, *map(line, range(5))), DeadLetterFile()
    redis.xdel("k", names[2])
    source = opened(broker, "k?format=ntt", ledger)
    source.seek(names[1])
    assert times(list(next(source.batches()))) == [3, 4]
    assert ledger.total("lost") == 1


def interrupted(source: RedisSource) -> list[Event]:
    """Returns the first batch of a run that is killed while it processes it."""
    batches = iter(Sources([source]))
    events = list(next(batches))
    batches.close()  # type: ignore[attr-defined]
    return events


def test_a_group_receives_unprocessed_messages_again(broker: brokers.Broker, redis: Any) -> None:
    say(redis, *map(line, range(6)))
    address = "k?format=ntt&group=g&consumer=c&from=first&buffer=2"
    assert times(interrupted(opened(broker, address))) == [0, 1]
    with Run(opened(broker, address)) as run:
        assert run.until(*range(6)) == list(range(6))
    assert redis.xpending("k", "g")["pending"] == 0
    say(redis, line(6))
    with Run(opened(broker, address)) as run:
        assert run.until(6) == [6]


@pytest.mark.more
def test_consumers_of_a_group_share_its_entries(broker: brokers.Broker, redis: Any) -> None:
    address = "k?format=ntt&group=g&from=first&buffer=1&consumer="
    item, other = (opened(broker, address + name) for name in "ab")
    with Run(item) as first, Run(other) as second:
        say(redis, *map(line, range(20)))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: [first.when(lambda: len(first.seen) + len(second.seen) == 20)])
        second.when(lambda: True)
        while len(first.seen) + len(second.seen) < 20:
            second.when(lambda: True)
    assert sorted(first.seen + second.seen) == list(range(20))


@pytest.mark.parametrize("group", ["", "&group=g"])
def test_a_server_that_is_killed_is_connected_to_again(broker: brokers.Broker, redis: Any, group: str) -> None:
    with Run(opened(broker, f"k?format=ntt{group}")) as run:
        say(redis, line(1))
        run.until(1)
        broker.kill()
        broker.start()
        say(redis, line(2))
        assert run.until(2) == [1, 2]


def test_an_unreachable_server_is_an_error_in_the_end(broker: brokers.Broker) -> None:
    with Run(opened(broker, "k?format=ntt&retry=200")) as run:
        broker.kill()
        with pytest.raises(SourceError, match="refused"):
            run.end()
        run.failed = True


def test_a_key_of_another_type_is_an_error(broker: brokers.Broker, redis: Any) -> None:
    redis.set("k", "text")
    with pytest.raises(SourceError, match="WRONGTYPE"):
        list(opened(broker, "k?format=nt&from=first").batches())


@pytest.mark.parametrize("begin", ["new", "first", "1-0", "first&group=g"])
def test_no_server_is_an_error_at_once(begin: str) -> None:
    source = open_source(f"redis://127.0.0.1:{brokers.free_port()}/k?format=nt&from={begin}")
    with pytest.raises(SourceError, match="refused"), Run(source) as run:
        run.end()


def test_a_sink_adds_what_a_source_reads(broker: brokers.Broker, redis: Any) -> None:
    with closing(open_sink(at(broker, "k?format=ntt&maxlen=1000000"))) as sink:
        sink.start()
        for number in range(1200):
            sink.write(output(number))
    with Run(opened(broker, "k?format=ntt&from=first")) as run:
        assert run.until(1199) == list(range(1200))
    assert redis.xlen("k") == 1200


def test_a_sink_resumes_when_the_server_is_back(broker: brokers.Broker, redis: Any) -> None:
    with ThreadPoolExecutor(1) as pool, closing(open_sink(at(broker, "k?format=ntt"))) as sink:
        sink.start(prompt=True)
        sink.write(output(1))
        broker.kill()
        written = pool.submit(sink.write, output(2))
        broker.start()
        written.result(PATIENCE)
    assert redis.xlen("k") == 2


def test_what_a_group_gives_again_is_passed_over_behind_a_position(broker: brokers.Broker, redis: Any) -> None:
    names = say(redis, *map(line, range(6)))
    address = "k?format=ntt&group=g&consumer=c&from=first&buffer=4"
    interrupted(opened(broker, address))
    again = opened(broker, address)
    again.seek(names[2])
    with Run(again) as run:
        assert run.until(3, 4, 5) == [3, 4, 5]
    assert redis.xpending("k", "g")["pending"] == 0


def test_the_start_offset_is_fixed_before_the_first_read(broker: brokers.Broker, redis: Any) -> None:
    say(redis, line(1))
    sources = Sources([opened(broker, "k?format=ntt")])
    sources.track_offsets((), 200)
    say(redis, line(2))
    again = opened(broker, "k?format=ntt")
    resume(again, sources.current_offsets()[0]["source"])
    say(redis, line(3))
    with Run(again) as run:
        assert run.until(2, 3) == [2, 3]
    broker.kill()
    with pytest.raises(SourceError, match="refused"):
        Sources([opened(broker, "k?format=ntt")]).track_offsets((), 200)


def test_a_repeated_delivery_is_added_once(broker: brokers.Broker, redis: Any) -> None:
    """Only the missing part of the delivery is added."""
    for name, number, count in (("n", 1, 3), ("n", 1, 5), ("n", 1, 2), ("n", 2, 2), ("m", 2, 1)):
        with closing(open_sink(at(broker, "k?format=ntt"))) as sink:
            sink.start()
            cast(IdempotentSink, sink).begin_delivery(name, number)
            for place in range(count):
                sink.write(output(10 * number + place))
    results = [int(entry[b"data"].split()[0]) for _, entry in redis.xrange("k")]
    assert results == [10, 11, 12, 13, 14, 20, 21, 20]


def test_a_delivery_that_meets_a_lost_connection_is_added_once(
    broker: brokers.Broker, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has executed the command, and its reply does not arrive."""
    execute, dead_letters = Pipeline.execute, [ConnectionError()]

    def executed(self: Any) -> Any:
        answer = execute(self)
        if dead_letters:
            raise dead_letters.pop()
        return answer

    monkeypatch.setattr(Pipeline, "execute", executed)
    with closing(open_sink(at(broker, "k?format=ntt"))) as sink:
        sink.start()
        cast(IdempotentSink, sink).begin_delivery("n", 1)
        sink.write(output(1))
    assert not dead_letters
    assert redis.xlen("k") == 1


def test_a_sink_without_a_server_is_an_error(broker: brokers.Broker, redis: Any) -> None:
    with pytest.raises(SinkError, match="refused"):
        open_sink(f"redis://127.0.0.1:{brokers.free_port()}/k").start()
    redis.set("k", "text")
    sink = open_sink(at(broker, "k"))
    sink.start(prompt=True)
    with pytest.raises(SinkError, match="WRONGTYPE"):
        sink.write(output(1))


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("redis://host?format=nt", "names no stream"),
        ("redis://host/k?format=nt&consumer=c", "without a group"),
        ("redis://host/k?format=nt&db=x", "not a whole number"),
        ("redis://host/k?format=nt&db=-1", "too small"),
        ("redis://host/k?format=nt&from=last", "`from=last` in .* is neither new, nor first, nor the name of an entry"),
    ],
)
def test_an_invalid_address_is_reported(uri: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(uri)


@pytest.mark.more
def test_the_example_of_the_page_runs(broker: brokers.Broker, tmp_path: Path) -> None:
    brokers.program("redis-cli")
    replaced = {"localhost": f"127.0.0.1:{broker.port}", "redis-cli ": f"redis-cli -p {broker.port} "}
    example("redis.sh", tmp_path, brokers.environment(), **replaced)
