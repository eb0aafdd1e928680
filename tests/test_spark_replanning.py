"""Runs on Spark that replace their plan between two micro-batches, and resume with the plan that they had."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import squall
from squall.builders.spark.batch_processor import BatchProcessor
from squall.builders.spark.job import SparkJob
from squall.builders.spark.store import read_planning
from squall.contracts import Options, Replanning
from squall.errors import BuilderError
from squall.model import System
from squall.plan import Plan
from squall.rdf import Event, Triple, iri
from squall.streams import Sources, open_source
from tests.conftest import Squall
from tests.test_replanning import CHAIN, unstable

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

ONE_FILE = ("spark.squall.maxFilesPerTrigger", "1")


def write(folder: Path, events: list[Event], files: int) -> None:
    """Writes events into so many files of a folder, in the order of time."""
    folder.mkdir()
    size = -(-len(events) // files)
    for number in range(files):
        part = events[number * size : (number + 1) * size]
        path = folder / f"{number:02d}.ntt"
        path.write_text("".join(f"{event.time} {' '.join(map(str, event.facts[0]))} .\n" for event in part))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


class Lines:
    """A sink in memory that can be cut back."""

    uri = "lines"

    def __init__(self) -> None:
        self.outputs: list[Any] = []

    def position(self) -> int:
        return len(self.outputs)

    def truncate(self, position: int) -> None:
        del self.outputs[position:]


MARK = "INSERT { ?a <urn:marked> ?b } WHERE { ?a <urn:p0> ?b }"
LAST = "DELETE { ?a <urn:last> ?c } INSERT { ?a <urn:last> ?b } WHERE { ?a <urn:p0> ?b OPTIONAL { ?a <urn:last> ?c } }"
STAR = "SELECT ?a ?b ?c { ?a <urn:p0> ?b . ?a <urn:p1> ?b . ?a <urn:p2> ?c . ?a <urn:p3> ?c }"


def star(events: list[Event]) -> list[Event]:
    """Returns events in which the subjects of all predicates are the same, and the values as well."""

    def moved(triple: Triple) -> Triple:
        return Triple(iri(f"urn:n{triple.subject[-2:-1]}"), triple.predicate, iri(f"urn:m{triple.object[-2:-1]}"))

    return [event._replace(facts=tuple(map(moved, cast(Iterable[Triple], event.facts)))) for event in events]


@pytest.mark.more
@pytest.mark.parametrize(
    ("division", "texts"),
    [("stages", (CHAIN,)), ("single task", (CHAIN, MARK)), ("shards", (STAR, LAST))],
)
def test_a_run_replaces_its_plan_and_resumes(
    division: str, texts: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is interrupted behind a move, before anything else is stored."""
    parts = [
        squall.compile(text, lexer="csparql")
        if text is CHAIN
        else squall.compile(text, lexer="sparql", window="RANGE 10s")
        for text in texts
    ]
    system, events = System(subsystems=tuple(parts)), unstable((3, 0, 3), windows=4)
    if division == "shards":
        events = star(events)
    sink = Lines()
    replanning = Replanning(interval=100, max_share=1e9, min_gain=0 if division == "shards" else 1.5)
    options = Options(checkpoint=tmp_path / "state", replan=replanning, conf=(ONE_FILE,), sink=sink)

    def run(options: Options) -> SparkJob:
        job = squall.build(squall.plan(system, replaceable=True), "spark", options)
        assert isinstance(job, SparkJob)
        for output in job.run(Sources([open_source(f"urn:s={tmp_path / 'in'}")])):
            sink.outputs.append(output)
        return job

    write(tmp_path / "in", events, 12)
    move = BatchProcessor.move

    def interrupted(self: BatchProcessor, plan: Plan, unseeded: Plan) -> None:
        move(self, plan, unseeded)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchProcessor, "move", interrupted)
        with pytest.raises(RuntimeError, match="killed"):
            run(options)
    planning = read_planning(tmp_path / "state")
    assert planning is not None
    assert planning.statistics is not None
    assert planning.replaceable
    job = run(options)
    assert job.physical_plan().strategy.division == division
    assert job.plan_changes
    assert all(change.gain is not None and change.gain >= replanning.min_gain for change in job.plan_changes)
    assert job.refused_plan == ""
    assert Counter(sink.outputs) == Counter(squall.run(squall.plan(system), events))


@pytest.mark.more
def test_the_summary_says_that_the_plan_has_changed(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "chain.csparql").write_text(f"REGISTER QUERY chain AS {CHAIN}")
    events = unstable((3, 0), windows=4)
    write(tmp_path / "in", events, 8)
    command = ("run", str(tmp_path / "chain.csparql"), "--source", f"urn:s={tmp_path / 'in'}")
    _, expected, _ = squall(*command, "--format", "ndjson")
    on_spark = (
        *command, "--sink", str(tmp_path / "out.ndjson"), "--checkpoint", str(tmp_path / "state"), "--builder", "spark",
        "--conf", "=".join(ONE_FILE),
    )  # fmt: skip
    code, _, messages = squall(*on_spark, "--adapt", "--adapt-interval", "100")
    assert code == 0, messages
    assert "of the plan: at " in messages
    assert "that was estimated to cost" in messages
    assert squall(*on_spark)[0] == 0  # the plan is that of the checkpoint
    outputs = (tmp_path / "out.ndjson").read_text().splitlines()
    assert sorted(outputs) == sorted(expected.splitlines())


def test_what_cannot_adapt_is_refused() -> None:
    system = squall.compile(CHAIN, lexer="csparql")
    plan = squall.plan(system, replaceable=True)
    replanning = Replanning()
    for refused, options, message in (
        (squall.plan(system), Options(replan=replanning), "the run cannot replace its plan"),
        (plan, Options(replan=replanning, measure=True), "the metrics of nodes are those of one plan"),
        (plan, Options(replan=replanning, run_as_one_batch=True), "one batch has one plan"),
    ):
        with pytest.raises(BuilderError, match=message):
            squall.build(refused, "spark", options)
