"""The spool of the Spark builder: each event and dead letter exactly once, and acknowledgements of sources."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from squall.builders.local.replay import ReplayedBatches
from squall.builders.spark.settings import DEFAULT_TUNING, SparkTuning
from squall.builders.spark.spool import Spool, file_of, numbers, publish, write_lines
from squall.errors import BuilderError
from squall.rdf import Event
from squall.streams import DeadLetterFile, Sources, open_source
from squall.streams.dead_letters import DeferredLedger
from tests.live import threads, wait
from tests.test_live import Acknowledged, event

TIMES = (1, 2, 4, 3, 5, 5, 4, 6)
"""The times of events, of which two are late."""
BROKEN = (2, 5)
"""The events that malformed input follows."""


AT_ONCE = SparkTuning(spool_interval=0)
"""A spool interval for which each batch is a file of its own."""


class Log(Acknowledged):
    """A live source of single events that can be read again from any of them. It goes on when the last one is in the
    spool of a folder, or there are errors."""

    def __init__(
        self, ledger: DeferredLedger, times: Sequence[int], folder: Path, errors: Sequence[BaseException]
    ) -> None:
        super().__init__([[event(time, f"n{number}at")] for number, time in enumerate(times)])
        self.ledger = ledger
        self.folder = folder
        self.errors = errors

    def seek(self, position: str) -> None:
        self.reached = position

    def batches(self) -> Iterator[Sequence[Event]]:
        for number in range(int(self.reached or 0), len(self.given)):
            if number in BROKEN:
                self.ledger.record("malformed", self.uri, number, "it is broken", "")
            self.reached = str(number + 1)
            existing = len(spooled(self.folder))
            yield self.given[number]
            end = time.monotonic() + 20
            while not self.errors and len(spooled(self.folder)) == existing:
                assert time.monotonic() < end
                time.sleep(0.001)


def spooled(folder: Path) -> list[Any]:
    """Returns the events of the spool, without their origins."""
    files = sorted((folder / "spool" / "events").glob("[!_]*"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def go(
    folder: Path, keeps: bool = True, times: Sequence[int] = TIMES, tuning: SparkTuning = DEFAULT_TUNING
) -> tuple[Log, Spool, list[BaseException]]:
    """Spools what a log has."""
    errors: list[BaseException] = []
    ledger = DeferredLedger(DeadLetterFile(strict=True))
    source = Log(ledger, times, folder, errors)
    spool = Spool(folder, Sources([source], ledgers=[ledger]), keeps, errors.append, tuning)
    spool.start()
    while not spool.join(20):
        pass
    return source, spool, errors


class Cut(Exception):
    """The run is cut off."""


def cut_at(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes renaming of files fail after a number of times."""
    left = iter(range(place))

    def cut(existing: Callable[..., Path]) -> Callable[..., Path]:
        def named(path: Path, name: Path) -> Path:
            if next(left, None) is None:
                raise Cut
            return existing(path, name)

        return named

    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, cut(getattr(Path, name)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", range(1, 9))
def test_each_event_and_each_loss_is_spooled_once(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are three runs, and the first two are interrupted."""
    go(tmp_path / "whole", tuning=AT_ONCE)
    expected = spooled(tmp_path / "whole")
    assert [item["cause"] for item in expected if isinstance(item, dict)] == ["malformed", "late", "malformed", "late"]
    for name in range(2):
        with monkeypatch.context() as patched:
            cut_at(place - name, patched)
            with suppress(Cut):
                _, _, errors = go(tmp_path / "cut", tuning=AT_ONCE)
                assert isinstance(errors[0], Cut)
    assert spooled(tmp_path / "cut") != expected
    _, _, errors = go(tmp_path / "cut", tuning=AT_ONCE)
    assert errors == []
    assert spooled(tmp_path / "cut") == expected
    assert not list((tmp_path / "cut").rglob("_*"))


@pytest.mark.parametrize("keeps", [False, True])
def test_sources_get_acknowledgements_of_processed_files(keeps: bool, tmp_path: Path) -> None:
    source, spool, errors = go(tmp_path, keeps, tuning=AT_ONCE)
    files = sorted((tmp_path / "spool" / "events").iterdir())
    assert errors == [] == source.acknowledged
    spool.acknowledge(int(files[0].stem) - 1)
    assert source.acknowledged == []
    spool.acknowledge(int(files[0].stem))
    assert source.acknowledged == [str(sum("malformed" not in line for line in files[0].read_text().splitlines()))]
    spool.acknowledge()
    assert source.acknowledged[-1] == "8"
    spool.close()
    assert source.closed


def test_events_spooled_by_an_earlier_run_are_acknowledged(tmp_path: Path) -> None:
    go(tmp_path)
    source, spool, _ = go(tmp_path)
    assert source.handed == 0
    spool.acknowledge(int(max((tmp_path / "spool" / "events").iterdir()).stem))
    assert source.acknowledged == ["8"]


def test_sources_of_another_name_are_refused(tmp_path: Path) -> None:
    go(tmp_path)
    (tmp_path / "a.nt").touch()
    with pytest.raises(BuilderError, match="is that of other sources: test:"):
        Spool(tmp_path, Sources([open_source(f"{tmp_path}/a.nt")]), True, print)


def test_events_from_python_are_replayed(tmp_path: Path) -> None:
    events = [event(time) for time in range(1, 6)]
    for count in (3, 5):
        Spool(tmp_path, ReplayedBatches([events[:2], events[2:count]]), True, print).write()
    assert [time for time, *_ in spooled(tmp_path)] == [1, 2, 3, 4, 5]


def test_read_errors_are_reported(tmp_path: Path) -> None:
    _, spool, errors = go(tmp_path, times=())
    assert errors == []
    spool.close()

    def events() -> Iterator[list[Event]]:
        yield [event(1)]
        raise OSError("the sensor has gone")

    base_exceptions: list[BaseException] = []
    other = Spool(tmp_path / "other", ReplayedBatches(events()), True, base_exceptions.append)
    other.start()
    assert other.join(20)
    assert list(map(str, base_exceptions)) == ["the sensor has gone"]
    assert len(spooled(tmp_path / "other")) == 1


def test_a_spool_that_is_closed_takes_nothing_more(tmp_path: Path) -> None:
    """However fast events come, no thread is left that reads, writes or waits for more."""

    def events() -> Iterator[list[Event]]:
        while not stopped.is_set():
            yield [event(1)]

    stopped = threading.Event()
    spool = Spool(tmp_path, ReplayedBatches(events()), False, print)
    spool.start()
    wait(lambda: len(spooled(tmp_path)) > DEFAULT_TUNING.max_prefetched_batches)
    assert threads("reads sources", "spools") == {"reads sources", "spools"}
    spool.close()
    wait(lambda: not threads("reads sources", "spools"))
    stopped.set()


def test_spark_reads_the_spool_file_by_file(tmp_path: Path) -> None:
    """Spark reads it as a data source whose offsets are numbers of files. The tasks of a batch are of about the same
    size."""
    pytest.importorskip("pyspark")
    from pyspark.sql.streaming.datasource import ReadMaxFiles

    from squall.builders.spark.spool_source import SpoolSource

    def reader(last: int, most: int = 0) -> Any:
        options = {"last": last, "most": most, "tasks": 2, "least": 1, "share": 1 << 20}
        return SpoolSource(
            {"path": str(tmp_path), **{name: str(value) for name, value in options.items()}}
        ).streamReader("")

    def write(number: int, *lines: str) -> None:
        draft = write_lines(file_of(tmp_path, number), lines)
        assert draft is not None
        assert first.latestOffset({"file": number - 1}) == {"file": number - 1}, "it does not count yet"
        publish(draft)

    def read(begin: int, end: int) -> list[list[tuple[str, int]]]:
        """Returns what each task reads: the names of files, and the number of lines."""
        parts = first.partitions({"file": begin}, {"file": end})
        rows = [[row for batch in first.read(part) for row in batch.to_pylist()] for part in parts]
        return [[(Path(row["file"]).name, row["value"].count("\n") + 1) for row in result] for result in rows]

    first = reader(0)
    assert first.initialOffset() == {"file": 0}
    for number in (1, 2, 3):
        write(number, *(json.dumps([number, "ü"]) for _ in range(number)))
    assert first.latestOffset({"file": 1}) == first.latestOffset() == {"file": 3}
    assert first.latestOffset({"file": 0}, ReadMaxFiles(2)) == {"file": 2}
    assert reader(0, most=2).getDefaultReadLimit() == ReadMaxFiles(2)
    item, two, three = (f"{number:012}.json" for number in (1, 2, 3))
    assert sorted(chain(*read(0, 3))) == [(item, 1), (two, 2), (three, 3)]
    assert len(read(0, 3)) == 2
    assert read(3, 3) == []
    first.commit({"file": 2})
    assert numbers(tmp_path) == [3]
    assert sum(count for _, count in chain(*read(2, 3))) == 3, "a batch is planned again"
    first.commit({"file": 3})
    begin = time.monotonic()
    assert reader(3).latestOffset({"file": 3}) == {"file": 3}, "all of them may be gone"
    assert time.monotonic() - begin > 0.05, "nobody asks all the time"
    write(4, "[]")
    assert reader(3).latestOffset({"file": 3}) == {"file": 4}
    with pytest.raises(FileNotFoundError):
        first.partitions({"file": 2}, {"file": 4})
