"""Events that always hold, with which streams begin: they are static data."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

import squall
from squall.builders.distributed.io.ingest import drop_late_events
from squall.builders.distributed.io.records import DeadLetter
from squall.contracts import Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import ALWAYS, Columns, Event, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source
from squall.streams.sources.reader_threads import static_prefix
from squall.testing.check import Losses
from tests.conftest import Squall
from tests.test_time import Fixed, Scripted, t

OPEN = "[r: (?x <http://example.org/p> ?y) noValue(?y <http://example.org/closes> ?x) -> (?x <urn:open> ?y)]"
"""Each instant of it has to be complete."""
ALWAYS_LINE = "-infinity <http://example.org/a> <http://example.org/p> <http://example.org/o> .\n"
LATER_LINE = "5 <http://example.org/b> <http://example.org/p> <http://example.org/o> .\n"


def plan() -> Plan:
    return squall.plan(squall.compile(OPEN, lexer="jena"))


def event(subject: str, time: int = ALWAYS) -> Event:
    return Event(time, (t(subject),))


def subjects(outputs: Iterator[Output]) -> list[tuple[str, int]]:
    return [(str(out.fact[0])[-2], out.time) for out in outputs]


@pytest.mark.parametrize("checkpoint", [(), ("--checkpoint", "checkpoint")], ids=["", "with checkpoints"])
@pytest.mark.parametrize(("lines", "count"), [(ALWAYS_LINE + LATER_LINE, 2), (ALWAYS_LINE, 1)])
def test_a_file_begins_with_what_always_holds(
    lines: str,
    count: int,
    checkpoint: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    squall: Squall,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("open.jena").write_text(OPEN)
    Path("events.ntt").write_text(lines)
    code, _, messages = squall("build", "open.jena", "--source", "events.ntt", "--sink", "out.ntt", *checkpoint)
    assert code == 0
    assert "late" not in messages
    assert [line.split()[0] for line in Path("out.ntt").read_text().splitlines()] == ["-infinity", "5"][:count]


def test_several_files_and_columns_begin_with_it(tmp_path: Path) -> None:
    (tmp_path / "one.ntt").write_text(LATER_LINE)
    (tmp_path / "two.ntt").write_text(ALWAYS_LINE + LATER_LINE)
    sources = Sources([open_source(str(tmp_path / name)) for name in ("one.ntt", "two.ntt")])
    assert subjects(squall.build(plan()).run(sources)) == [("a", ALWAYS), ("b", 5)]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
@pytest.mark.parametrize("of_files", [False, True], ids=["batches", "files"])
def test_a_run_resumes_behind_what_always_holds(of_files: bool, taken: int, tmp_path: Path) -> None:
    """The checkpoint after the start has the rest of the batch from which it was read."""
    events = [event(f"{number}", time) for number, time in enumerate((ALWAYS, ALWAYS, 1, 2))]
    times = ["-infinity", "-infinity", "1", "2"]
    lines = (f"{time} {' '.join(map(str, fact))} .\n" for time, (_, (fact,), *_) in zip(times, events, strict=True))
    (tmp_path / "events.ntt").write_text("".join(lines))

    def outputs() -> Generator[Output, None, None]:
        batches = Sources([open_source(str(tmp_path / "events.ntt"))]) if of_files else [events]
        result = squall.build(plan(), options=Options(checkpoint=tmp_path / "checkpoint")).run(batches)
        assert isinstance(result, Generator)
        return result

    before = outputs()
    list(islice(before, taken))
    before.close()
    expected = [("0", ALWAYS), ("1", ALWAYS), ("2", 1), ("3", 2)]
    after = subjects(outputs())
    assert after == (expected if taken < 3 else expected[2:])


def test_it_is_not_waited_for_beside_live_sources() -> None:
    live = Scripted()
    outputs = squall.build(plan()).run(Sources([Fixed([event("a"), event("b", 5)]), live]))
    assert subjects(islice(outputs, 1)) == [("a", ALWAYS)]
    live.say(6)
    live.end()
    assert subjects(outputs) == [("b", 5), ("e", 6)]


@pytest.mark.parametrize("builder", ["iterator", pytest.param("beam", marks=pytest.mark.beam)])
def test_what_always_holds_is_late_when_events_come_one_by_one(builder: str) -> None:
    losses = Losses()
    outputs = squall.build(plan(), builder, Options(ledger=losses)).run(iter([[event("a")], [event("b", 5)]]))
    assert subjects(outputs) == [("b", 5)]
    assert losses.found == [("late", f"-infinity {t('a')}")]


def test_the_dead_letter_says_where_such_facts_belong(tmp_path: Path) -> None:
    ledger = DeadLetterFile()
    assert subjects(squall.build(plan(), options=Options(ledger=ledger)).run(iter([[event("a")]]))) == []
    reason = "what always holds is late when the run has begun: give it as static data"
    assert list(ledger.first.values()) == [(None, reason)]
    dead_letters: list[DeadLetter] = []
    assert list(drop_late_events([[event("a")]], dead_letters.append, ALWAYS + 1)) == [[]]
    assert [(letter.reason, letter.text) for letter in dead_letters] == [(reason, f"-infinity {t('a')}")]


@pytest.mark.spark
@pytest.mark.more
def test_on_spark_it_is_read_before_live_sources_without_a_checkpoint_and_late_with_one(tmp_path: Path) -> None:
    for checkpoint, expected in (
        (None, [("a", ALWAYS), ("b", 5), ("e", 6)]),
        (tmp_path / "kept", [("b", 5), ("e", 6)]),
    ):
        live = Scripted()
        live.say(6)
        live.end()
        losses = Losses()
        job = squall.build(plan(), "spark", Options(ledger=losses, checkpoint=checkpoint))
        assert subjects(job.run(Sources([Fixed([event("a"), event("b", 5)]), live]))) == expected
        assert losses.found == ([("late", f"-infinity {t('a')}")] if checkpoint else [])


def test_the_error_without_a_ledger_says_so() -> None:
    with pytest.raises(BuilderError, match="an event that always holds comes when the run has begun"):
        list(squall.build(plan()).run(iter([[event("a")]])))


def test_columns_stay_columns_behind_static_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for static events in front of columns makes no events of them."""
    static = [Event(ALWAYS, (Triple(iri("urn:a"), iri("urn:p"), iri("urn:b")),))]
    columns = Columns.of([Event(1, (Triple(iri("urn:a"), iri("urn:p"), iri("urn:c")),))])
    monkeypatch.setattr(Columns, "__getitem__", None)
    assert static_prefix(iter([static, columns])) == (static, columns)
    assert static_prefix(iter([columns])) == ([], columns)
