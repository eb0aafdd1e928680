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
from squall.builders.spark.inputs import heads
from squall.builders.spark.job import SparkJob
from squall.builders.spark.store import read_planning
from squall.contracts import Options, Output, Replanning
from squall.errors import BuilderError
from squall.model import System
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.plan.operators import Match
from squall.rdf import ALWAYS, Event, Triple, iri
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


def forward_run(
    system: System,
    folder: Path,
    events: list[Event],
    files: int,
    static: Sequence[Event] = (),
    min_gain: float = 1.5,
    **more: Any,
) -> tuple[SparkJob, list[Output]]:
    """Returns a job that looks ahead, and what it has output for so many files, one each micro-batch."""
    write(folder, events, files)
    replanning = Replanning(interval=100, min_gain=min_gain, max_share=1e9, backward=False, forward=True)
    options = Options(replan=replanning, conf=(ONE_FILE,) if files > 1 else (), **more)
    job = squall.build(squall.plan(system, replaceable=True), "spark", options)
    assert isinstance(job, SparkJob)
    return job, list(job.run(Sources([open_source(f"urn:s={folder}")]), static))


def plan_for_rare(system: System, rare: int) -> Plan:
    """Returns the plan for windows in which one of the predicates of `CHAIN` is rare."""
    statistics = Statistics.of(event._replace(time=0) for event in unstable((rare,), windows=1))
    return squall.plan(system, statistics=statistics, replaceable=True)


def first_join(plan: Plan) -> set[str]:
    """Returns the predicates that the first join of a plan reads."""
    join = next(node for node in plan.nodes if node.op.is_inner_join)
    nodes, predicates = [join], set()
    while nodes:
        node = nodes.pop()
        if isinstance(node.op, Match):
            predicates.add(str(node.op.cells[1]))
        else:
            nodes += (plan.by_id[edge.node] for edge in node.inputs)
    return predicates


@pytest.mark.more
@pytest.mark.parametrize("rare", [0, 3])
def test_a_run_begins_with_the_plan_for_a_sample_of_its_input(rare: int, tmp_path: Path) -> None:
    """Bounded input without a checkpoint is one batch."""
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((rare,), windows=8)
    job, outputs = forward_run(system, tmp_path / "in", events, 1)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert [change.watermark for change in job.plan_changes] == [ALWAYS]
    assert job.active_run is not None
    assert f"<urn:p{rare}>" in first_join(job.active_run.processor.plan) & first_join(plan_for_rare(system, rare))


@pytest.mark.more
def test_a_run_of_which_a_source_has_no_beginning_yet_keeps_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes of it may be frequent or rare."""
    monkeypatch.setattr("squall.builders.spark.run.heads", lambda inputs: list(heads(inputs))[1:])
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((0,), windows=8)
    job, outputs = forward_run(system, tmp_path / "in", events, 1)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert not job.plan_changes


@pytest.mark.more
def test_a_run_plans_each_large_batch_for_a_sample_of_it(tmp_path: Path) -> None:
    """In each phase another predicate is rare, and each phase is a batch."""
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((3, 0, 3), windows=6)
    job, outputs = forward_run(system, tmp_path / "in", events, 3)
    assert Counter(outputs) == Counter(squall.run(squall.plan(system), events))
    assert len(job.plan_changes) == 3
    assert job.plan_changes[0].watermark == ALWAYS < job.plan_changes[1].watermark < job.plan_changes[2].watermark
    assert job.refused_plan == ""


@pytest.mark.more
@pytest.mark.parametrize("killed_in", ["begin_with", "move"])
def test_a_run_that_looks_ahead_resumes(killed_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((3, 0), windows=6)
    sink, state = Lines(), tmp_path / "state"
    replace_plan = getattr(BatchProcessor, killed_in)

    def interrupted(self: BatchProcessor, plan: Plan, unseeded: Plan) -> None:
        replace_plan(self, plan, unseeded)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchProcessor, killed_in, interrupted)
        with pytest.raises(RuntimeError, match="killed"):
            forward_run(system, tmp_path / "in", events, 2, sink=sink, checkpoint=state)
    planning = read_planning(state)
    assert planning is not None
    assert planning.statistics is not None
    options = Options(sink=sink, conf=(ONE_FILE,), checkpoint=state)
    job = squall.build(squall.plan(system, replaceable=True), "spark", options)
    resumed = list(job.run(Sources([open_source(f"urn:s={tmp_path / 'in'}")])))
    expected = Counter(squall.run(squall.plan(system), events))
    assert not Counter(resumed) - expected
    if killed_in == "begin_with":
        assert Counter(resumed) == expected


@pytest.mark.more
@pytest.mark.parametrize("rare", [0, 2])
def test_static_data_count_in_the_first_plan_and_how_its_joins_run(rare: int, tmp_path: Path) -> None:
    """What a run counts of its static data for broadcasts is of the plan that it begins with: joins read patterns."""
    system = squall.compile(
        "[r: (?a <urn:p0> ?b) (?b <urn:in> ?c) (?c <urn:p2> ?d) -> (?a <urn:q> ?d)]", lexer="jena", window="RANGE 10s"
    )
    facts = tuple(Triple(iri(f"urn:n1-{number}"), iri("urn:in"), iri(f"urn:n2-{number}")) for number in range(9))
    events, static = unstable((rare,), windows=6), [Event(ALWAYS, facts)]
    folder = tmp_path / "in"
    job, outputs = forward_run(system, folder, events, 2, static, min_gain=0, checkpoint=tmp_path / "state")
    expected = Counter(squall.run(squall.plan(system), events, static=static))
    assert Counter(outputs) == expected
    assert expected
    assert job.plan_changes
    assert job.active_run is not None
    statistics = job.active_run.processor.plan.statistics
    options = Options(conf=(ONE_FILE,), checkpoint=tmp_path / "other")
    same = squall.build(squall.plan(system, statistics=statistics, replaceable=True), "spark", options)
    assert isinstance(same, SparkJob)
    assert Counter(same.run(Sources([open_source(f"urn:s={folder}")]), static)) == expected
    assert job.physical_plan() == same.physical_plan()
    assert job.physical_plan().broadcast_inputs


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
    code, _, messages = squall(*on_spark, "--adapt", "backward", "--adapt-interval", "100")
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
