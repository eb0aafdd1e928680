"""Live sources on Spark: when they are told what has been worked off, and what is said of those that forget.

What lies between is in tests/test_spool.py, processes that are killed are in tests/test_kills.py.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import squall
from squall.rdf import Event
from squall.stages import Options
from squall.streams import Sources
from tests.conftest import Squall
from tests.test_live import Acknowledged, timeline

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

SEEN = "@prefix : <http://example.org/>.\n[seen: (?s :at ?v) -> (?s :seen ?v)]"


class Steps(Acknowledged):
    """Says something when what it said before has been worked off. log: who was told what, in order."""

    def __init__(self, batches: Sequence[Sequence[Event]], commits: Path) -> None:
        super().__init__(batches)
        self.commits = commits
        self.log: list[tuple[str, int]] = []
        self.heard = threading.Semaphore()

    def note(self, what: str) -> None:
        self.log.append((what, len(list(self.commits.glob("[0-9]*.json")))))

    def batches(self) -> Iterator[Sequence[Event]]:
        for batch in super().batches():
            assert self.heard.acquire(timeout=100)
            yield batch

    def acknowledge(self, position: str) -> None:
        super().acknowledge(position)
        self.note("acknowledged")
        self.heard.release()


def test_sources_are_told_of_a_batch_that_counts(tmp_path: Path) -> None:
    """Its outputs are made to last before."""
    source = Steps(timeline(1, 2, 3), tmp_path / "kept" / "commits")
    sources = Sources([source])
    sources.settle = lambda: source.note("settled")
    plan = squall.plan(squall.compile(SEEN, lexer="jena"))
    job = squall.build(plan, "spark", Options(checkpoint=tmp_path / "kept"))
    for output in job.run(sources):
        source.note(f"output {output.time}")
    first = [("settled", 0)]  # of the batch of what holds always
    steps = [one for n in (1, 2, 3) for one in ((f"output {n}", n), ("settled", n), ("acknowledged", n + 1))]
    assert source.log[: len(first + steps)] == first + steps
    assert source.acknowledged == ["1", "2", "3"]
    assert len(list((tmp_path / "kept" / "spool" / "events").iterdir())) < 3, "what is worked off is not kept"
    assert source.closed


def test_what_cannot_be_read_again_is_said(tmp_path: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seen.jena").write_text(SEEN)
    os.mkfifo("pipe")
    writer = threading.Thread(
        target=lambda: Path("pipe").write_text("1 <urn:a> <http://example.org/at> <urn:b> .\nbroken\n")
    )
    writer.start()
    kept = ["--checkpoint", "kept", "--ledger", "lost.ndjson", "--builder", "spark"]
    code, _, said = squall("build", "seen.jena", "--source", "pipe?format=ntt", "--sink", "out.ntt", *kept)
    writer.join()
    assert code == 0, said
    assert "source warning: `pipe?format=ntt`: what it brought since the last checkpoint is lost" in said
    assert Path("out.ntt").read_text() == "1 <urn:a> <http://example.org/seen> <urn:b> .\n"
    assert len(Path("lost.ndjson").read_text().splitlines()) == 1
