"""Long files are read by a separate process, with the same events."""

from __future__ import annotations

import gzip
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event, Triple, iri
from squall.streams import DeadLetterFile, FolderSource, open_source
from squall.streams.formats.limits import ReadLimits
from squall.streams.sources import files, reader_process
from squall.streams.sources.file_reading import ReadTask, read_file
from squall.streams.sources.files import FileSource
from tests.laws import examples_of
from tests.limits import open_limited

E = "http://example.org/"
LIMITS = ReadLimits(chunk_bytes=2000, min_bytes_for_process=0, process_start_timeout=60.0)
"""Every file counts as long and has many blocks, and the run waits for its reader process."""
LATE = iri(E + "late")
LINES = [
    f"{{time}} <{E}s{{n}}> <{E}p> <{E}o> .",
    f'{{time}} <{E}s{{n}}> <{E}q> "a \\u00e4" .',
    f"{{time}} _:b <{E}p> <{E}s{{n}}> .",
    "{time} nonsense",
    f"{{late}} <{E}s{{n}}> <{E}p> {LATE} .",
]


def text(kinds: Sequence[int]) -> str:
    """Returns timed lines of these kinds, in groups of a hundred."""
    lines = (
        LINES[kind].format(time=1000 + 100 * block + n // 3, late=1020, n=n)
        for block, kind in enumerate(kinds)
        for n in range(100)
    )
    return "".join(line + "\n" for line in lines)


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the reader processes that are started."""
    anys: list[Any] = []
    popen = subprocess.Popen

    def noted(arguments: list[str], **options: Any) -> Any:
        anys.append(popen(arguments, **options))
        return anys[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(reader_process, "_cores", lambda: 2)
    return anys


class Losses(list[Any]):
    """A dead-letter ledger in memory."""

    def record(self, *loss: Any) -> None:
        self.append(loss)


def opened(
    path: Path, mode: str, losses: DeadLetterLedger, wanted: Any = None, limits: ReadLimits = LIMITS
) -> FileSource | FolderSource:
    source = open_limited(f"{path}?ahead={mode}", limits, losses)
    assert isinstance(source, FileSource | FolderSource)
    source.wanted_predicates = wanted
    return source


def of_use(batch: Sequence[Event], wanted: Any) -> list[Any]:
    """Returns the facts of events, without those that a source may skip. Whether it does depends on the blocks."""
    return [
        (event.time, event.stream, fact)
        for event in batch
        for fact in cast(tuple[Triple, ...], event.facts)
        if wanted is None or fact.predicate in wanted or fact.object == LATE
    ]


def said(source: FileSource | FolderSource, losses: Losses) -> tuple[list[Any], list[Any]]:
    """Returns all events of a source, its dead letters and counts at the end, and its offset after each batch."""
    facts, places = list[Any](), list[Any]()
    for batch in source.batches():
        facts += of_use(batch, source.wanted_predicates)
        places.append(source.current_offset())
    return [facts, losses, source.current_offset(), source.reading], places


def compare(path: Path, wanted: Any = None, current_offset: Any = None, limits: ReadLimits = LIMITS) -> list[Any]:
    """Compares both ways of reading, and returns the offset of the source after each batch. All that it says is the
    same whoever reads it."""
    results = []
    for mode in ("no", "yes"):
        losses = Losses()
        source = opened(path, mode, losses, wanted, limits)
        if current_offset is not None:
            source.resume(current_offset)
        results.append(said(source, losses))
    (expected, _), (got, places) = results
    assert got == expected
    return places


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Reads in this process, in whole or in part."""
    anys: list[Any] = []

    def noted(task: ReadTask, *other_items: Any) -> Any:
        anys.append(task.place.offset)
        return read_file(task, *other_items)

    monkeypatch.setattr(files, "read_file", noted)
    return anys


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kinds", [[0] * 6, [0, 1, 2, 3, 4] * 2, [0, 4, 4, 0, 3]])
@pytest.mark.parametrize("wanted", [None, {iri(E + "q")}])
def test_events_do_not_depend_on_the_process(kinds: list[int], wanted: Any, tmp_path: Path, here: list[Any]) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text(kinds))
    assert len(compare(path, wanted)) > 3
    assert here == [0, 0]  # not again, behind what the other has read


@pytest.mark.more
@settings(max_examples=examples_of(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(range(len(LINES))), min_size=3), st.sampled_from(["p", "q"]), st.booleans())
def test_files_of_any_content(tmp_path: Path, kinds: list[int], predicate: str, ends: bool) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0, *kinds]) + ("" if ends else LINES[0].format(time=9000, n=0)))
    compare(path, {iri(E + predicate)})


@pytest.mark.more
def test_it_resumes_from_any_position(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0, 1, 3, 0, 4, 2]))
    for current_offset in compare(path)[::10]:
        assert compare(path, current_offset=current_offset)


@pytest.mark.more
def test_files_of_a_folder(tmp_path: Path, others: list[Any]) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.ntt").write_text(text([0, 3, 0]))
    (tmp_path / "d.nt").write_text(f"<{E}s> <{E}p> <{E}o> .\n" * 100)
    compare(tmp_path)
    assert len(others) == 3  # lines without times are parsed elsewhere anyway


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt.gz"
    path.write_bytes(gzip.compress(text([0, 1, 3, 4, 0]).encode()))
    assert len(compare(path)) > 3


def test_a_killed_process_does_not_change_the_events(tmp_path: Path, others: list[Any], here: list[Any]) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0, 1, 2, 3] + [4] * 100))
    expected, losses = {iri(E + "q")}, Losses()
    expectation, _ = said(opened(path, "no", losses, expected), losses)
    losses = Losses()
    source = opened(path, "yes", losses, expected)
    batches = source.batches()
    facts = []
    for number, batch in enumerate(batches):
        facts += of_use(batch, expected)
        if number == 20:
            others[0].kill()
            others[0].wait()
    assert [facts, losses, source.current_offset(), source.reading] == expectation
    assert here[:2] == [0, 0]
    assert here[2] > 0


@pytest.mark.more
def test_nor_one_that_is_killed_in_the_middle_of_what_it_sends(tmp_path: Path, others: list[Any]) -> None:
    """The blocks are so large that only a part of one fits into the pipe."""
    limits = replace(LIMITS, chunk_bytes=1 << 20)
    path = tmp_path / "a.ntt"
    path.write_text("".join(f"{n} <{E}s{n}> <{E}p> <{E}o> .\n" for n in range(100_000)))
    expected, _ = said(opened(path, "no", Losses(), limits=limits), Losses())
    source = opened(path, "yes", Losses(), limits=limits)
    facts = []
    for number, batch in enumerate(source.batches()):
        facts += of_use(batch, None)
        if number == 1:
            time.sleep(1)
            others[0].kill()
            others[0].wait()
    assert [facts, [], source.current_offset(), source.reading] == expected


def test_a_file_that_goes_is_an_error_as_ever(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0] * 4))
    batches = opened(path, "yes", Losses()).batches()
    next(batches)
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.ntt` cannot be read: No such file"):
        list(batches)
    assert not capfd.readouterr().err


def test_a_ledger_that_is_strict_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0, 0, 3]))
    with pytest.raises(SourceError, match=r"a\.ntt:201"):
        list(opened(path, "yes", DeadLetterFile(strict=True)).batches())


def test_stopping_leaves_no_process_behind(tmp_path: Path, others: list[Any]) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0] * 100))
    batches = opened(path, "yes", Losses()).batches()
    next(batches)
    next(batches)
    assert others[0].poll() is None
    batches.close()  # type: ignore[attr-defined]
    assert others[0].returncode == -signal.SIGKILL


def test_a_file_that_has_ended_before_it_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0]))
    compare(path, limits=replace(LIMITS, process_start_timeout=0.0))


def test_when_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: list[Any]) -> None:
    path = tmp_path / "a.ntt"
    path.write_text(text([0]))
    list(opened(path, "no", Losses()).batches())
    longer, as_long = (replace(LIMITS, min_bytes_for_process=path.stat().st_size + more) for more in (1, 0))
    list(opened(path, "yes", Losses(), limits=longer).batches())
    with monkeypatch.context() as patch:
        patch.setattr(reader_process, "_cores", lambda: 1)
        list(opened(path, "yes", Losses(), limits=as_long).batches())
    assert not others
    list(opened(path, "yes", Losses(), limits=as_long).batches())
    assert len(others) == 1


def test_an_invalid_ahead_option_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    path.write_text("")
    with pytest.raises(UsageError, match=r"`ahead=perhaps` in .* is neither yes nor no"):
        open_source(f"{path}?ahead=perhaps")
