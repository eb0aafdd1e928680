"""Physical plans as values: their texts, their data, and the jobs of a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.builders.distributed.io.records import WorkerStep
from squall.builders.distributed.plan.broadcast import broadcast_candidates, closure_inputs
from squall.builders.distributed.plan.partitioning import partitioning_through
from squall.builders.distributed.plan.physical_plan import Job, PhysicalPlan, physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits, BatchSizes, for_batch, strategy_of
from squall.model import Construct, Pattern, Source, System, Variable
from squall.model.reports import Report
from squall.plan import Input, Node, Plan
from squall.plan.operators import Union, Update
from squall.rdf import iri
from squall.testing import stream
from squall.testing.strategies import ALL, systems
from tests import in_memory
from tests.conftest import Squall
from tests.laws import PLANNERS, examples, hold

PREFIX = "@prefix : <http://example.org/>.\n"
JOIN = "[r: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)]"
NONLINEAR = "[a: (?x :p ?y) -> (?x :r ?y)] [b: (?x :r ?y) (?y :s ?z) (?z :r ?w) -> (?x :r ?w)]"
NEGATED = "[a: (?x :p ?y) noValue(?x :q ?y) -> (?x :r ?y)] [b: (?x :r ?y) (?y :r ?z) (?z :s ?x) -> (?x :r ?z)]"


def planned(rules: str, window: str = "RANGE 10s", **changes: Any) -> Plan:
    system = squall.compile(PREFIX + rules, lexer="jena", window=window)
    return squall.plan(replace(system, **changes))


def shown(physical: PhysicalPlan | str) -> str:
    """Returns the text of a physical plan, with the nodes numbered in the order in which it names them."""
    numbers: dict[str, str] = {}
    return re.sub(r"-[0-9a-f]{10}", lambda match: numbers.setdefault(match[0], f"{len(numbers) + 1}"), str(physical))


def test_a_plan_of_one_job() -> None:
    assert (
        shown(physical_plan(planned(JOIN)))
        == """\
strategy: stages; one task processes a small batch, from its sources to its outputs
sources
  lines are parsed where they are read
  then, row by row: scan1, match2, match3
stage 1
  pipeline of 1
    join4 grouped by [1] = [0]
  then, row by row: construct5
end
    sink6 grouped by [0]"""
    )


def test_a_recursion_is_a_job_that_is_repeated() -> None:
    text = shown(physical_plan(planned(NONLINEAR)))
    assert "stage 1, iterated until no rows move\n" in text
    assert text.endswith("""
jobs of a batch
  1. sources
  2. stage 1, until no rows move
  3. end""")


def test_broadcast_inputs_are_in_every_task() -> None:
    plan = planned(JOIN)
    broadcast_inputs = frozenset(list(broadcast_candidates(plan))[:1])
    physical = physical_plan(plan, broadcast_inputs)
    assert re.search(r"join4 with all rows of input [12] in every task, the others by ", shown(physical))
    exchanges = [entry["exchange"] for stage in physical.as_data()["stages"] for entry in stage["inputs"]]
    assert sorted(exchanges) == ["broadcast", "hash"]


JOBS = pytest.mark.parametrize(
    ("rules", "changes", "jobs"),
    [
        (JOIN, {}, ["sources, stage 1, end"]),
        (JOIN, {"output": "rstream"}, ["sources", "stage 1, end"]),
        (JOIN, {"output": "rstream", "report": Report("change")}, ["sources", "stage 1", "what has changed", "end"]),
        (NONLINEAR, {}, ["sources", "stage 1, until no rows move", "end"]),
        (NEGATED, {}, ["sources", "stage 1", "stage 2, until no rows move", "end"]),
    ],
)


@JOBS
def test_jobs_end_where_the_driver_needs_a_report(rules: str, changes: dict[str, Any], jobs: list[str]) -> None:
    physical = physical_plan(planned(rules, **changes))
    assert [str(job) for job in physical.jobs] == jobs
    assert physical.as_data()["jobs"] == jobs
    assert [number for job in physical.jobs for number in job.stages] == [stage.number for stage in physical.stages]


@JOBS
def test_an_engine_of_one_job_iterates_nothing(rules: str, changes: dict[str, Any], jobs: list[str]) -> None:
    physical = physical_plan(planned(rules, **changes), in_one_job=True)
    stages = ", ".join(f"stage {stage.number}" for stage in physical.stages)
    assert physical.as_data()["jobs"] == [f"sources, {stages}, end"]
    assert not any(stage.recursive for stage in physical.stages)
    exchanges = {entry["exchange"] for stage in physical.as_data()["stages"] for entry in stage["inputs"]}
    assert ("single" in exchanges) is any("until no rows move" in job for job in jobs)


@examples(150)
@pytest.mark.parametrize("planner", PLANNERS)
def test_no_plan_of_an_engine_of_one_job_has_iterations(planner: str, many: int) -> None:
    def law(system: System) -> None:
        assert not any(stage.recursive for stage in physical_plan(squall.plan(system, planner), in_one_job=True).stages)

    hold(law, many, system=systems(features=ALL))


def test_rows_in_one_task_stay_there_behind_a_union() -> None:
    union = Node("union", Union(), (Input("a"), Input("b")))
    assert partitioning_through(union, ()) == ()
    assert partitioning_through(union, (0,)) is None


SMALL = stream("1 :a :p :b\n1 :b :q :c\n1 :b :r :c\n1 :b :s :a\n2 :c :s :b\n3 :c :p :d\n3 :d :s :c\n4 :z :p :z")


def executed(jobs: Sequence[Sequence[str]]) -> list[str]:
    """Returns the jobs that an engine ran, each given as the names of its steps, in the words of the physical plan."""
    names = [[re.sub(", an iteration.*", ", until no rows move", step) for step in steps] for steps in jobs]
    texts = [", ".join(step.replace(" and the ", ", ") for step in steps if step != "wake-up") for steps in names]
    return [text for text, _ in groupby(texts)]


@JOBS
def test_the_jobs_of_the_plan_are_those_that_an_engine_runs(
    rules: str, changes: dict[str, Any], jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, ran = ["sources"], []
    shuffle, run = in_memory.MemoryEngine.shuffle, in_memory.MemoryEngine.run

    def noted_shuffle(self: Any, records: Any, step: WorkerStep, broadcast_stages: Collection[int] = ()) -> Any:
        steps.append(step.__name__)
        return shuffle(self, records, step, broadcast_stages)

    def noted_run(self: Any, records: Any) -> Any:
        ran.append([*steps])
        steps.clear()
        return run(self, records)

    monkeypatch.setattr(in_memory.MemoryEngine, "shuffle", noted_shuffle)
    monkeypatch.setattr(in_memory.MemoryEngine, "run", noted_run)
    assert in_memory.run(planned(rules, **changes), [SMALL])
    assert executed(ran) == jobs


@pytest.mark.spark
@pytest.mark.more
@pytest.mark.usefixtures("always_by_levels", "in_tasks")
@JOBS
def test_the_jobs_of_the_plan_are_those_that_spark_runs(
    rules: str, changes: dict[str, Any], jobs: list[str], spark_jobs: list[str]
) -> None:
    assert list(squall.build(planned(rules, **changes), "spark").run([SMALL]))
    assert executed([re.findall(r"MapInArrow (.*?)\(", text)[::-1] for text in spark_jobs]) == jobs


X, Y = map(Variable, "xy")
BODY, COPY = (Pattern(X, iri("urn:p"), Y),), (Construct((Pattern(X, iri("urn:q"), Y),)),)
LOOP = (Construct((Pattern(X, iri("urn:q"), X),)),)
MADE = System("made", joinables=BODY, consequences=COPY, reentrant=False)
DERIVED = System(
    subsystems=(
        System(subsystems=(MADE,), stream="urn:made", output="rstream"),
        System("read", (Source("urn:made"),), (Pattern(X, iri("urn:q"), Y),), consequences=LOOP, output="rstream"),
    )
)


@pytest.mark.parametrize(
    ("plan", "note", "unread", "read"),
    [
        (planned(JOIN), "; one task processes a small batch, from its sources to its outputs", "unshuffled", "by jobs"),
        (planned(NONLINEAR), "; one task processes a small batch, from its sources to its outputs", "unshuffled",
         "collected"),
        (planned(JOIN, output="rstream"), "; one task processes a small batch, behind its sources", "read first",
         "collected"),
        (squall.plan(DERIVED), "", "read first", "by jobs"),
    ],
    ids=["one job", "recursion", "snapshots", "derived snapshots"],
)  # fmt: skip
def test_which_small_batches_one_task_processes(plan: Plan, note: str, unread: str, read: str) -> None:
    physical = physical_plan(plan)
    limits = BatchLimits(max_single_task_rows=10, max_single_task_bytes=5)
    assert str(physical).startswith(f"strategy: stages{note}\nsources\n")
    assert for_batch(physical.strategy, limits, BatchSizes(10, 5)) == unread
    assert for_batch(physical.strategy, limits, BatchSizes(11, 5)) == "read first"
    assert for_batch(physical.strategy, limits, BatchSizes(10, 6)) == "read first"
    assert for_batch(physical.strategy, limits, BatchSizes(11)) == "by jobs"
    if len(physical.jobs) > 1:
        assert for_batch(physical.strategy, limits, BatchSizes(10)) == read


def test_a_larger_state_may_be_in_one_task_where_workers_cache_it() -> None:
    strategy = strategy_of(planned(JOIN))
    limits = BatchLimits(max_single_task_rows=10, max_single_task_bytes=5, max_single_task_state_rows=20)
    assert for_batch(strategy, limits, BatchSizes(20, 5)) == "unshuffled"
    assert for_batch(strategy, limits, BatchSizes(21, 5)) == "read first"
    assert for_batch(strategy, replace(limits, max_single_task_rows=0), BatchSizes(0, 5)) == "read first"


def test_a_plan_as_a_whole() -> None:
    delete = "PREFIX : <http://example.org/> DELETE { ?x :p ?y } WHERE { ?x :p ?y . ?x :q ?z }"
    plan = squall.plan(squall.compile(delete, lexer="sparql"))
    physical = physical_plan(plan)
    assert shown(physical) == "strategy: shards; update1 inserts or deletes facts"
    (update,) = (node.id for node in plan.nodes if isinstance(node.op, Update))
    assert physical.as_data() == {
        "strategy": "shards",
        "why": [{"node": update, "what": "inserts or deletes facts"}],
    }


@pytest.mark.parametrize("rules", [JOIN, NONLINEAR, NEGATED])
def test_physical_plans_are_compared_by_value(rules: str) -> None:
    plan = planned(rules)
    assert physical_plan(plan) == physical_plan(planned(rules))
    assert physical_plan(plan) != physical_plan(planned(rules, "RANGE 11s"))
    candidates = broadcast_candidates(plan)
    assert not candidates or physical_plan(plan, frozenset(candidates)) != physical_plan(plan)


def test_a_job_of_a_closure_needs_no_iteration() -> None:
    """Its steps are in every task, so no rows move."""
    plan = planned("[a: (?x :p ?y) -> (?x :r ?y)] [b: (?x :r ?y) (?y :r ?z) -> (?x :r ?z)]", window="RANGE 10s")
    closure = physical_plan(plan, closure_inputs(plan))
    assert closure.jobs == (Job(reads_sources=True, stages=tuple(range(1, len(closure.stages) + 1)), outputs=True),)


@pytest.mark.parametrize("builder", ["spark", pytest.param("beam", marks=pytest.mark.beam)])
def test_explain_prints_it_as_json(builder: str, squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "join.jena").write_text(PREFIX + JOIN)
    code, out, err = squall(
        "explain", f"{tmp_path}/join.jena", "--builder", builder, "--stage", "job", "--format", "json"
    )
    assert code == 0, err
    data = json.loads(out)
    assert [entry["exchange"] for entry in data["stages"][0]["inputs"]] == ["hash", "hash", "local", "local"]
    assert data["jobs"] == ["sources, stage 1, end"]
