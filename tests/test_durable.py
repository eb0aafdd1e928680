"""Runs in process that are saved: cut off anywhere they go on as if they had not been, whatever they read and write.

A run that nobody takes outputs from any more leaves behind what a killed one does: nothing is saved or flushed at its
end. Processes that are really killed are in tests/test_kills.py.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pyarrow import parquet

import squall
from squall.builders.local import checkpoint
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.contracts import Interval, Options, Output
from squall.errors import BuilderError, PluginError, SinkError, SourceError
from squall.model import System
from squall.rdf import ALWAYS, Columns, Event, iri, statement_count
from squall.streams import DeadLetterFile, Sink, Sources, open_sink, open_source
from squall.streams.dead_letters import DeferredLedger
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.reading import ReadProgress
from squall.streams.sinks.outbox import Outbox
from squall.streams.sources.files import risk_of
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests.conftest import Squall
from tests.laws import PLANNERS, examples, hold
from tests.limits import open_limited
from tests.live import output

EACH = Interval(statements=1)


class Kept:
    """A sink that is cut back like a file."""

    uri = "kept"

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def snapshot(self, last: bool = False) -> Any:
        return len(self.outputs)

    def restore(self, saved: Any) -> None:
        del self.outputs[saved:]


@examples(25)
@pytest.mark.parametrize("planner", PLANNERS)
def test_an_interrupted_run_resumes(planner: str, many: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """This holds for every program, whether the log is rewritten each time or only appended to."""

    def law(
        system: System, events: list[Event], facts: list[Event], cuts: list[int], ends: list[int], least: int
    ) -> None:
        tuning = Tuning(min_log_growth=least)
        plan, folder, sink = squall.plan(system, planner), tmp_path_factory.mktemp("run"), Kept()
        places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
        batches = [events[begin:end] for begin, end in pairwise(places)]
        for end in (*ends, None):
            options = Options(checkpoint=folder, sink=sink, checkpoint_interval=EACH)
            with closing(IteratorJob(plan, options, tuning).run(list(batches), facts)) as outputs:  # type: ignore[type-var]
                for number, output in enumerate(outputs):
                    sink.outputs.append(output)
                    if number == end:
                        break
        full_result = squall.build(plan, options=Options()).run(batches, facts)
        assert Counter(out[:2] for out in sink.outputs) == Counter(out[:2] for out in full_result)
        assert_as_oracle(system, sink.outputs, events, facts)

    data = {"events": event_streams(features=ALL), "facts": static_data(features=ALL)}
    cuts, ends = st.lists(st.integers(0, 12), max_size=4), st.lists(st.integers(0, 9), max_size=3)
    hold(law, many, system=systems(features=ALL), cuts=cuts, ends=ends, least=st.sampled_from([-1, 1 << 20]), **data)


# What runs read

PROGRAM = """@prefix : <http://example.org/> .
[hot: (?s :reads ?v) greaterThan(?v, 30) -> (?s :is :Hot)]
[cold: (?s :in ?r) noValue(?s :is :Hot) -> (?r :has :Cold)]
[alike: (?s :reads ?v) (?t :reads ?v) notEqual(?s, ?t) -> (?s :like ?t)]
"""
XSD = "http://www.w3.org/2001/XMLSchema#"


def statement(draw: random.Random) -> str:
    sensor = f"<http://example.org/s{draw.randrange(9)}>"
    if draw.random() < 0.2:
        return f"{sensor} <http://example.org/in> <http://example.org/r{draw.randrange(3)}> ."
    return f'{sensor} <http://example.org/reads> "{draw.randrange(60)}"^^<{XSD}integer> .'


def timed_lines(count: int, seed: int, disorder: int = 0, first: int = 0) -> str:
    """Returns timed N-Triples, some of whose lines are malformed."""
    draw = random.Random(seed)
    lines = (f"{first + n * 10 - draw.randrange(disorder + 1)} {statement(draw)}" for n in range(count))
    return "".join(f"{line}\n" if draw.random() > 0.05 else f"broken {line}\n" for line in lines)


def described(count: int, seed: int) -> str:
    """Returns Turtle in which statements about a subject state its time."""
    draw = random.Random(seed)
    text = "@prefix : <http://example.org/> .\n"
    for number in range(count):
        subject, words = statement(draw).split(" ", 1)
        text += f"{subject} {words[:-2]} ; :at {number * 10} ; :note [ :of _:n{number % 3} ] .\n"
        text += ":who :says <<( :this :is :not )>> .\n" * (number % 7 == 0)
    return text


def patches(count: int, seed: int) -> str:
    draw, lines, existing = random.Random(seed), [], []
    for n in range(count):
        lines += [f'H time "{n * 10}" .', "TX ."]
        existing.append(statement(draw))
        lines.append(f"A {existing[-1]}")
        if draw.random() < 0.4:
            lines.append(f"D {existing.pop(draw.randrange(len(existing)))}")
        lines += ["nonsense", draw.choice(("TA .", "TC ."))] if draw.random() < 0.3 else ["TC ."]
    return "\n".join((*lines, f"A {statement(draw)}"))


class Setting:
    """A folder with what a run reads, in which it is started again and again."""

    def __init__(
        self,
        folder: Path,
        addresses: Sequence[str],
        program: str = PROGRAM,
        lateness: int = 0,
        limits: ReadLimits = DEFAULT_LIMITS,
    ) -> None:
        self.folder = folder
        self.limits = limits
        self.addresses = addresses
        self.lateness = lateness
        self.system = squall.compile(program, lexer="jena", window="RANGE 300ms", removals="rdfp" in addresses[0])
        self.ledgers: list[DeadLetterFile] = []
        self.tuning = DEFAULT_TUNING

    def run(self, sink: Sink, ledger: Path, kept: Path | None, end: int | None = None, stops: bool = False) -> int:
        """Returns the number of outputs. end: after so many the run is abandoned, or stopped."""
        resume = kept is not None and kept.exists()
        dead_letters = DeadLetterFile(ledger, append=resume)
        own = [DeferredLedger(dead_letters) for _ in self.addresses]
        opened = [
            open_limited(uri, self.limits, mine, self.lateness) for uri, mine in zip(self.addresses, own, strict=True)
        ]
        sources = Sources(opened, ledgers=own)
        options = Options(checkpoint=kept, ledger=dead_letters, sink=sink, checkpoint_interval=Interval(statements=40))  # type: ignore[arg-type]
        outputs = IteratorJob(squall.plan(self.system), options, self.tuning).run(sources)
        with closing(dead_letters), closing(sink):
            sink.start(resume)
            count = 0
            for output in outputs:
                sink.write(output)
                count += 1
                if count == end and stops:
                    assert sources.is_stoppable
                    sources.stop()
                elif count == end:
                    outputs.close()  # type: ignore[attr-defined]
                    break
        self.statements = sum(source.reading.statements for source in opened)
        self.ledgers.append(dead_letters)
        return count

    def holds(self, format: str = "ntt", seed: int = 1) -> None:
        """Runs that are left alone or stopped after some outputs, one after the other, write what one does that is
        not."""
        draw = random.Random(seed)
        (full_result, lost_of_whole), (sink, dead_letters) = (
            (self.folder / a, self.folder / b) for a, b in (("w", "lw"), ("s", "ls"))
        )
        count = self.run(open_sink(f"{full_result}?format={format}"), lost_of_whole, self.folder / "kept-w")
        statements = self.statements
        assert count > 100
        for end in (*(draw.randrange(1, count // 4) for _ in range(6)), None):
            stops = draw.random() < 0.5
            outputs = self.run(open_sink(f"{sink}?format={format}"), dead_letters, self.folder / "kept", end, stops)
            assert outputs < count  # none of them comes to the end of what there is by itself
        assert lines(sink) == lines(full_result)
        assert lines(dead_letters) == lines(lost_of_whole)
        assert lines(dead_letters) or "?time=" in self.addresses[0] or "&time=" in self.addresses[0]
        assert self.ledgers[-1].counts == self.ledgers[0].counts
        assert self.statements == statements


def lines(path: Path) -> list[str]:
    """Returns the lines of a file, sorted, and with the solutions of each evaluation sorted: lines of one time have no
    order."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        return sorted(map(str, parquet.read_table(path).to_pylist()))
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    return sorted(map(ordered, text.splitlines()))


def ordered(line: str) -> str:
    if not line.startswith("{"):
        return line
    entry = json.loads(line)
    entry.get("results", {}).get("bindings", []).sort(key=str)
    return json.dumps(entry)


SMALL_BLOCKS = ReadLimits(chunk_bytes=1000, statements_per_block=17)
"""With these, a small file has many batches."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", ["ntt", "ntt.gz", "trig", "ndjson-evaluations", "csv", "table", "parquet"])
def test_a_sink_resumes(tmp_path: Path, format: str) -> None:
    (tmp_path / "a.ntt").write_text(timed_lines(600, 1))
    Setting(tmp_path, [f"{tmp_path}/a.ntt"], limits=SMALL_BLOCKS).holds(format)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_sink_that_is_not_what_it_was_is_an_error(tmp_path: Path, ending: str) -> None:
    """The sink is not padded to its former length."""
    (tmp_path / "a.ntt").write_text(timed_lines(60, 1))
    setting, path = Setting(tmp_path, [f"{tmp_path}/a.ntt"]), tmp_path / f"s.ntt{ending}"
    setting.run(open_sink(str(path)), tmp_path / "ls", tmp_path / "kept")
    path.unlink()
    with pytest.raises(SinkError, match=r"is not the file that it was: \d+ bytes of it had been"):
        setting.run(open_sink(str(path)), tmp_path / "ls", tmp_path / "kept")


def test_a_dead_letter_file_that_was_moved_away_resumes(tmp_path: Path) -> None:
    (tmp_path / "a.ntt").write_text("broken\n")
    setting, dead_letters = Setting(tmp_path, [f"{tmp_path}/a.ntt"]), tmp_path / "ls"
    setting.run(open_sink(f"{tmp_path}/s.ntt"), dead_letters, tmp_path / "kept")
    dead_letters.unlink()
    with (tmp_path / "a.ntt").open("a") as file:
        file.write("also\n")
    setting.run(open_sink(f"{tmp_path}/s.ntt"), dead_letters, tmp_path / "kept")
    assert [json.loads(line)["text"] for line in dead_letters.read_text().splitlines()] == ["also"]


SOURCES = {
    "lines": (["a.ntt"], 0),
    "compressed": (["a.ntt.gz"], 0),
    "disorder": (["a.ntt?lateness=100ms"], 80),
    "several": (["a.ntt", "b.ntt"], 0),
    "several in disorder": (["a.ntt?lateness=50ms", "b.ntt.gz?lateness=100ms"], 90),
    "a document": (["a.ttl?time=http://example.org/at"], 0),
    "a document in disorder": (["a.ttl?time=http://example.org/at&lateness=1s", "b.ntt"], 0),
    "a patch": (["a.rdfp"], 0),
    "a folder": (["in"], 0),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("names", "disorder"), SOURCES.values(), ids=SOURCES.keys())
def test_a_source_resumes(tmp_path: Path, names: list[str], disorder: int) -> None:
    for number, name in enumerate(("a.ntt", "b.ntt")):
        text = timed_lines(500, number, disorder)
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.ttl").write_text(described(400, 1))
    (tmp_path / "a.rdfp").write_text(patches(400, 1))
    (tmp_path / "in").mkdir()
    for number in range(6):
        text = timed_lines(100, number).replace("\n", f"\n{number}0", 100)
        (tmp_path / "in" / f"{number}.ntt").write_text(timed_lines(100, number, first=1000 * number))
    Setting(tmp_path, [f"{tmp_path}/{name}" for name in names], limits=SMALL_BLOCKS).holds()


def test_a_growing_folder_resumes(tmp_path: Path) -> None:
    """Files that come between runs, also before the names of others."""
    (tmp_path / "in").mkdir()
    parts = [timed_lines(60, number, first=1000 * number) for number in range(6)]
    (tmp_path / "whole.ntt").write_text("".join(parts))
    full_result, grown = (Setting(tmp_path, [f"{tmp_path}/{name}"]) for name in ("whole.ntt", "in"))
    full_result.run(open_sink(f"{tmp_path}/w.ntt"), tmp_path / "lw", None)
    for name, text in zip("fedcba", parts, strict=True):
        (tmp_path / "in" / f"{name}.ntt").write_text(text)
        grown.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")
    assert lines(tmp_path / "s.ntt") == lines(tmp_path / "w.ntt")


def test_lines_that_are_added_to_a_file_are_read_by_the_next_run(tmp_path: Path) -> None:
    setting = Setting(tmp_path, [f"{tmp_path}/a.ntt"], lateness=100)
    late = "5 <http://example.org/s1> <http://example.org/in> <http://example.org/r1> .\n"
    for number in range(3):
        part = late * (number > 0) + timed_lines(60, number, first=1000 * number)
        with (tmp_path / "a.ntt").open("a") as file:
            file.write(part)
        setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")
    setting.run(open_sink(f"{tmp_path}/w.ntt"), tmp_path / "lw", None)
    assert lines(tmp_path / "s.ntt") == lines(tmp_path / "w.ntt")
    assert lines(tmp_path / "ls") == lines(tmp_path / "lw")


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("now", ["", "1000 <urn:a> <urn:b> <urn:cd> .\n" * 200])
def test_a_file_that_is_another_one_is_not_read_on(tmp_path: Path, ending: str, now: str) -> None:
    path, setting = tmp_path / f"a.ntt{ending}", Setting(tmp_path, [f"{tmp_path}/a.ntt{ending}"])

    def write(text: str) -> None:
        path.write_bytes(gzip.compress(text.encode()) if ending else text.encode())

    write(timed_lines(60, 1))
    setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")
    write(now)
    with pytest.raises(SourceError, match="is not what it was when"):
        setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")


# The file


def kept(folder: Path, program: str = PROGRAM, tuning: Tuning = DEFAULT_TUNING, **options: Any) -> list[Output]:
    """Returns the outputs of a small run with a checkpoint in a folder."""
    plan = squall.plan(squall.compile(program, lexer="jena", window="RANGE 1s"))
    events = [
        event for batch in open_source(str(folder.parent / "a.ntt"), DeadLetterFile()).batches() for event in batch
    ]
    job = IteratorJob(
        plan, Options(checkpoint=folder, checkpoint_interval=EACH, ledger=DeadLetterFile(), **options), tuning
    )
    return list(job.run([[event] for event in events]))


def head_of(folder: Path) -> checkpoint.Owner:
    head = json.loads((folder / checkpoint.CHECKPOINT_FILE).read_bytes().split(b"\n")[0])
    return checkpoint.Owner(*(head[name] for name in checkpoint.Owner._fields))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.ntt").write_text(timed_lines(12, 1))
    return tmp_path / "kept"


@pytest.mark.more
def test_a_checkpoint_that_was_cut_off_does_not_count(folder: Path) -> None:
    """Whichever byte of the last checkpoint is missing, the one before it counts."""
    full_result = kept(folder)
    path = folder / checkpoint.CHECKPOINT_FILE
    data = path.read_bytes()
    ends = [
        place
        for place in range(len(data))
        if data[place:].startswith(b"\n") and data[:place].split(b"\n")[-1].isdigit()
    ]
    assert len(ends) > 5
    for length in (ends[-3], *range(ends[-3] + 2, ends[-2] + 1, 7), ends[-2]):
        path.write_bytes(data[: length + 1])
        places = [data[:end].count(b'"watermark"') for end in ends if end <= length]
        with closing(checkpoint.Checkpoint(folder, head_of(folder))) as found:
            found.load()
            assert found.last is not None
            assert found.last.offsets == json.loads(data[: ends[places[-1] - 1]].split(b"\n")[-2])["offsets"]
        path.write_bytes(data[: length + 1])
        assert {*kept(folder)} <= {*full_result}
        path.write_bytes(data)


def test_a_checkpoint_that_is_damaged_does_not_count(folder: Path) -> None:
    kept(folder)
    path = folder / checkpoint.CHECKPOINT_FILE
    *_, before, _ = (line for line in path.read_text().splitlines() if line.startswith('{"watermark"'))
    path.write_text(path.read_text()[::-1].replace('0:"nigeb"', '7:"nigeb"', 1)[::-1])
    with closing(checkpoint.Checkpoint(folder, head_of(folder))) as found:
        found.load()
        assert found.last == checkpoint.Progress(**json.loads(before))


@pytest.mark.parametrize("least", [-1, 1 << 20])
def test_where_there_is_no_room_the_checkpoint_before_counts(folder: Path, least: int) -> None:
    """This holds both where lines are appended and where the file is rewritten."""
    tuning = Tuning(min_log_growth=least)
    sink, full_result = Kept(), kept(folder.with_name("whole"), tuning=tuning)
    room = (folder.with_name("whole") / checkpoint.CHECKPOINT_FILE).stat().st_size - 200

    def take() -> None:
        for item in kept_by(folder, sink, tuning):
            sink.outputs.append(item)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(BuilderError, match=r"the checkpoint .* cannot be saved: File too large"):
            take()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    take()
    assert sorted(sink.outputs) == sorted(full_result)


@pytest.mark.parametrize("least", [-1, 1 << 20])
def test_what_counts_is_on_disk_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Outputs are durable before their checkpoint, a draft before it is renamed, and that before acknowledgement."""
    steps: list[str] = []
    fsync, replace, acknowledge = os.fsync, Path.replace, Sources.acknowledge

    def synced(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def replaced(draft: Path, target: Path) -> Path:
        assert draft.read_bytes().splitlines()[-1].isdigit()  # the sum of all that is in it
        steps.append("renamed")
        return replace(draft, target)

    def acknowledged(sources: Sources) -> None:
        steps.append("acknowledged")
        acknowledge(sources)

    (tmp_path / "a.ntt").write_text(timed_lines(300, 1))
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(Sources, "acknowledge", acknowledged)
    setting = Setting(tmp_path, [f"{tmp_path}/a.ntt"], limits=SMALL_BLOCKS)
    setting.tuning = Tuning(min_log_growth=least)
    setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")
    *saved, end = [item.strip() for item in " ".join(steps).split("acknowledged")]
    outputs = "s.ntt ls" if steps[0] == "s.ntt" else "ls s.ntt"
    anew, appended = f"{outputs} checkpoint.jsonl.tmp renamed kept", f"{outputs} checkpoint.jsonl"
    assert (saved[0], end) == (anew, "")
    assert {*saved} == {anew, appended}
    assert (saved.count(anew) > 1) == (least < 0)


class CheckpointProbe:
    """A source that checks at each acknowledgement that the checkpoint has its offset."""

    uri = "probe"
    live: bool = False
    removals: bool = False
    size: int | None = None
    idle: int = 0
    earliest: int = ALWAYS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reading = ReadProgress()
        self.reached = ""
        self.notifications: list[str] = []

    def batches(self) -> Iterator[Sequence[Event]]:
        for batch in open_source(str(self.folder.parent / "a.ntt"), DeadLetterFile()).batches():
            for number, event in enumerate(batch):
                self.reached = f"position {number}"
                yield [event]

    def position(self) -> str:
        return self.reached

    def seek(self, position: str) -> None:
        raise NotImplementedError

    def acknowledge(self, position: str) -> None:
        assert not self.notifications or self.notifications[-1] != "closed"
        assert f'"{position}"' in (self.folder / checkpoint.CHECKPOINT_FILE).read_text()
        self.notifications.append(position)

    def close(self) -> None:
        self.notifications.append("closed")


def test_a_source_gets_acknowledgements_of_checkpoints(folder: Path) -> None:
    source = CheckpointProbe(folder)
    options = Options(checkpoint=folder, checkpoint_interval=Interval(statements=3), ledger=DeadLetterFile())
    job = squall.build(squall.plan(squall.compile(PROGRAM, lexer="jena")), options=options)
    list(job.run(Sources([source])))
    assert len(source.notifications) > 3
    assert source.notifications[-2:] == [source.reached, "closed"]


def test_a_checkpoint_belongs_to_a_program(folder: Path) -> None:
    kept(folder)
    other = PROGRAM.replace("30", "31").replace("[alike", "[like").replace("(?s :in ?r)", "(?s :at ?r)")
    with pytest.raises(BuilderError) as caught:
        kept(folder, other)
    assert "that of another run: without rules `alike`; with rules `like`; changed rules" in caught.value.message
    assert "`hot`" in caught.value.message
    assert "`cold`" in caught.value.message
    assert "`like` is only another name of `alike`" in str(caught.value.hint)
    kept(folder)


def test_a_checkpoint_belongs_to_its_sources_and_sink(tmp_path: Path) -> None:
    (tmp_path / "a.ntt").write_text(timed_lines(12, 1))
    setting = Setting(tmp_path, [f"{tmp_path}/a.ntt"])
    setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")
    with pytest.raises(BuilderError, match=r"without sinks `.*s\.ntt`; with sinks `.*t\.ntt`"):
        setting.run(open_sink(f"{tmp_path}/t.ntt"), tmp_path / "ls", tmp_path / "kept")
    setting.addresses = [f"{tmp_path}/a.ntt", f"{tmp_path}/a.ntt?stream=urn:s"]
    with pytest.raises(BuilderError, match=r"another run: with sources `.*a\.ntt\?stream=urn:s`"):
        setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ("ab", "ba", "another run: sources in another order"),
        ("aa", "a", r"another run: without sources `.*a\.ntt #2`"),
        ("a", "aa", r"another run: with sources `.*a\.ntt #2`"),
    ],
)
def test_where_a_source_stands_is_its_own(tmp_path: Path, before: str, now: str, message: str) -> None:
    for number, name in enumerate("ab"):
        (tmp_path / f"{name}.ntt").write_text(timed_lines(12, number))

    def run(names: str) -> None:
        setting = Setting(tmp_path, [f"{tmp_path}/{name}.ntt" for name in names])
        setting.run(open_sink(f"{tmp_path}/s.ntt"), tmp_path / "ls", tmp_path / "kept")

    run(before)
    run(before)
    with pytest.raises(BuilderError, match=message):
        run(now)


def test_a_checkpoint_is_one_runs_at_a_time(folder: Path) -> None:
    kept(folder)
    with (
        closing(checkpoint.Checkpoint(folder, head_of(folder))),
        pytest.raises(BuilderError, match="is in use by another run"),
    ):
        kept(folder)
    kept(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format":1,"identity":{}}\n', "has the format 1"),
        ("", "holds no complete checkpoint"),
        ("nonsense\n", "holds no complete checkpoint"),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(folder: Path, text: str, message: str) -> None:
    folder.mkdir()
    (folder / checkpoint.CHECKPOINT_FILE).write_text(text)
    with pytest.raises(BuilderError, match=message):
        kept(folder)


def test_a_folder_of_something_else_is_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / "meta.json").touch()
    with pytest.raises(BuilderError, match=r"holds something else: `meta\.json`"):
        kept(folder)


@pytest.mark.more
def test_the_file_stays_small(folder: Path) -> None:
    """The file has no expired rows when it has been rewritten: then it has some 30,000 bytes. It is when it has come to
    twice as many and the least growth."""
    (folder.parent / "a.ntt").write_text(timed_lines(3000, 1))
    kept(folder, tuning=Tuning(min_log_growth=20_000))
    assert (folder / checkpoint.CHECKPOINT_FILE).stat().st_size < 2 * 32_000 + 20_000 + 2_000


def test_statistics_do_not_keep_the_fast_way_for_large_instants(folder: Path) -> None:
    """A snapshot dataflow does not record its changes of state (docs/decisions/0030-durable-runs.md), so a run with a
    checkpoint has none."""
    plan = squall.plan(squall.compile("[(?a <urn:p> ?b) -> (?b <urn:p> ?a)]", lexer="jena"))
    job: Any = squall.build(plan, options=Options())
    durable: Any = squall.build(plan, options=Options(checkpoint=folder))
    assert job.snapshot_dataflow is not None
    assert durable.snapshot_dataflow is None


# Sinks that cannot be cut back


class Posted:
    """A sink of messages that tells those that it gets twice, as who reads them may. fails: it is gone behind so
    many."""

    uri = "posted"

    def __init__(self, there: dict[str, Output], fails: int | None = None) -> None:
        self.there = there
        self.fails = fails
        self.calls: list[str] = []
        self.delivery = ""
        self.number = 0

    def begin_delivery(self, name: str, number: int) -> None:
        self.delivery, self.number = f"{name}-{number}", 0

    def finish(self) -> None:
        self.calls.append("finish")

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        pass

    def write(self, output: Output) -> None:
        if self.fails == len(self.calls):
            raise ConnectionError
        self.number += 1
        name = f"{self.delivery}-{self.number}"
        self.calls.append(name)
        assert self.there.setdefault(name, output) == output

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        self.calls.append("close")


def test_an_outbox_hands_on_what_a_checkpoint_has(folder: Path) -> None:
    existing_items: dict[str, Output] = {}
    (folder.parent / "a.ntt").write_text(timed_lines(80, 1))
    full_result = kept(folder.parent / "whole")
    for fails in (0, 1, 3, 8, None):
        sink = Posted(existing_items, fails)
        outbox = Outbox(sink)
        outbox.start()
        try:
            for output in kept_by(folder, outbox):
                outbox.write(output)
        except ConnectionError:
            continue
        finally:
            outbox.close()
        assert sink.calls[-3:] == ["finish", "flush", "close"]
    assert Counter(existing_items.values()) == Counter(full_result)
    again = Posted(existing_items)
    assert list(kept_by(folder, Outbox(again))) == []
    assert {"finish", "flush"} >= {*again.calls}


def test_what_is_incomplete_waits_for_the_next_run(tmp_path: Path) -> None:
    """An incomplete instant is buffered as long as the sources have not ended."""
    path, first, *other_items = tmp_path / "out", *(output(1)._replace(rule=rule) for rule in "aba")

    def opened() -> Outbox:
        box = Outbox(open_sink(f"{path}?format=ndjson-evaluations"))
        box.start()
        return box

    with closing(opened()) as box:
        box.write(first)
        box.snapshot()
        assert box.commit()
        saved = json.loads(json.dumps(box.snapshot()))
    assert path.read_text() == ""
    with closing(opened()) as box:
        box.restore(saved)
        for other in other_items:
            box.write(other)
        box.snapshot(last=True)
        box.commit()
    document = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(item["query"], len(item["results"]["bindings"])) for item in document] == [("a", 2), ("b", 1)]


def kept_by(folder: Path, sink: Any, tuning: Tuning = DEFAULT_TUNING) -> Any:
    plan = squall.plan(squall.compile(PROGRAM, lexer="jena", window="RANGE 1s"))
    events = [
        event for batch in open_source(str(folder.parent / "a.ntt"), DeadLetterFile()).batches() for event in batch
    ]
    options = Options(checkpoint=folder, checkpoint_interval=EACH, ledger=DeadLetterFile(), sink=sink)
    return IteratorJob(plan, options, tuning).run([[event] for event in events])


# The command line


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.jena").write_text("@prefix : <http://example.org/> .\n[(?a :p ?b) -> (?b :q ?a)]")
    Path("a.nt").write_text("<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n")


@pytest.mark.usefixtures("_here")
def test_standard_output_has_each_output_once(squall: Squall) -> None:
    arguments = ("build", "p.jena", "--source", "a.nt", "--checkpoint", "kept")
    first, again = squall(*arguments), squall(*arguments)
    assert first[:2] == (0, "<http://example.org/b> <http://example.org/q> <http://example.org/a> .\n")
    assert again[:2] == (0, "")
    assert "1 statement read, 1 output," in first[2]
    assert "1 statement read, 0 outputs" in again[2]


@pytest.mark.usefixtures("_here")
def test_a_draft_is_no_checkpoint(squall: Squall) -> None:
    """A new run begins, and replaces the former content of the sink."""
    Path("kept").mkdir()
    Path("kept", f"{checkpoint.CHECKPOINT_FILE}.tmp").write_text("{")
    Path("out.nt").write_text("before\n")
    assert squall("build", "p.jena", "--source", "a.nt", "--sink", "out.nt", "--checkpoint", "kept")[0] == 0
    assert Path("out.nt").read_text() == "<http://example.org/b> <http://example.org/q> <http://example.org/a> .\n"


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("pipe?format=nt", "`pipe?format=nt`: events since the last checkpoint are lost if the run is killed"),
        ("pipe?format=nt&lateness=1s", "`pipe?format=nt&lateness=1s`: events since the last checkpoint are"),
        ("a.nt", ""),
        ("a.nt?lateness=1s", ""),
    ],
)
def test_what_may_be_lost_is_warned_of(squall: Squall, address: str, said: str) -> None:
    os.mkfifo("pipe")
    writer = os.open("pipe", os.O_RDWR)
    os.write(writer, Path("a.nt").read_bytes())
    threading.Timer(0.3, os.close, [writer]).start()
    code, _, err = squall("build", "p.jena", "--source", address, "--checkpoint", "kept")
    assert code == 0
    assert err.splitlines()[0].startswith(f"source warning: {said}" if said else "1 statement read")


RISKS = {
    "redis://localhost/k?format=nt": "",
    "kafka://localhost/t?format=nt": "",
    "mqtt://localhost/t?format=nt&client=c": "",
    "mqtt://localhost/t?format=nt&client=c&qos=0": "lost",
    "mqtt://localhost/t?format=nt": "lost",
    "http://localhost/?format=nt": "events since the last checkpoint are requested again",
    "ws://localhost/?format=nt": "lost",
    "tcp://localhost:1?format=nt": "lost",
}


def test_what_comes_as_columns_counts_by_its_triples() -> None:
    terms = [iri("urn:x:a")] * 3
    columns = Columns([1, 2], [2, 1], terms, terms, terms, "")
    assert statement_count(columns) == statement_count(list(columns)) == 3


@pytest.mark.parametrize(("address", "said"), RISKS.items())
def test_what_a_protocol_may_lose(address: str, said: str) -> None:
    with suppress(PluginError):  # the extra is not installed
        risk = risk_of(open_source(address))
        assert said in risk
        assert bool(said) == bool(risk)


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--checkpoint-interval", "1s"), "`--checkpoint-interval` goes with `--checkpoint`"),
        (
            ("--checkpoint", "kept", "--checkpoint-interval", "0"),
            "at least one statement has to be between two checkpoints",
        ),
        (("--checkpoint", "kept", "--checkpoint-interval", "0s"), "`--checkpoint-interval 0s` is too short"),
        (("--checkpoint", "kept", "--checkpoint-interval", "often"), "often"),
        (("--checkpoint", "p.jena"), "`p.jena` cannot be used: it is no folder"),
    ],
)
def test_wrong_arguments(squall: Squall, arguments: tuple[str, ...], message: str) -> None:
    """The sink is not changed."""
    Path("out.nt").write_text("before\n")
    code, out, err = squall("build", "p.jena", "--source", "a.nt", "--sink", "out.nt", *arguments)
    assert out == ""
    assert code == 2
    assert Path("out.nt").read_text() == "before\n"
    assert message in err
    assert not Path("kept").exists()
