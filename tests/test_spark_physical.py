"""Spark's physical plans of a job, as `squall explain --stage physical` shows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.model import Report
from squall.model.profiles import apply_profile
from squall.plan import Plan
from squall.testing import stream
from tests.conftest import Squall

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.more]

HEAD = "@prefix : <http://example.org/>.\n"
GRANDPARENTS = HEAD + "(?a :parent ?b) (?b :parent ?c) -> (?a :grandparent ?c)."
ORPHANS = HEAD + "(?a :parent ?b) (?b :parent ?c) noValue(?c, :gone) -> (?a :grandparent ?c)."
ANCESTORS = HEAD + "(?a :parent ?b) -> (?a :ancestor ?b). (?a :parent ?b) (?b :ancestor ?c) -> (?a :ancestor ?c)."
LITTLE = ["# Up to 16,777,216 bytes of files, where the state is small", "job 1: all in one task"]
LEVELS = "job 2: stage 1, then stage 2, then stage 3 and the end"


def planned(text: str, **how: Any) -> Plan:
    return squall.plan(squall.compile(text, lexer="jena", **how))


def physical(plan: Plan) -> str:
    return squall.build(plan, "spark").physical()  # type: ignore[attr-defined, no-any-return]


def heads(text: str) -> list[str]:
    """Returns the lines of the plan that name squall's steps."""
    return [line for line in text.splitlines() if line.startswith(("job", "#"))]


def test_a_plan_without_iterations_is_one_job_with_named_steps() -> None:
    text = physical(planned(GRANDPARENTS))
    assert heads(text) == [*LITTLE, "# More", "job 1: sources, then stage 1, then stage 2, then end"]
    names = re.findall(r"(?:MapInArrow|^\(1\)) (.*?)(?:\(| PythonRDD)", text, re.MULTILINE)
    assert names == ["all in one task", "end", "stage 2", "stage 1", "sources"]
    shuffles = re.findall(r"Exchange hashpartitioning\(.*bucket#", text)
    assert len(shuffles) == 3, "one before each level, one before the end"


def test_a_negation_takes_no_job_of_its_own() -> None:
    much = "job 1: sources, then stage 1, then stage 2, then stage 3 and the end"
    assert heads(physical(planned(ORPHANS))) == [*LITTLE, "# More", much]


def test_small_and_large_batches_have_different_jobs() -> None:
    text = physical(planned(ANCESTORS))
    few = ["job 1: sources", "job 2: all stages and the end"]
    many = ["job 1: sources", "job 2: stage 1, an iteration", "job 3: end"]
    little = [line.replace("16,777,216", "268,435,456") for line in LITTLE]  # rounds are more work
    assert heads(text) == [*little, "# Up to 50,000 rows, with the state", *few, "# More", *many]
    assert text.count("Exchange SinglePartition") == 1, "few rows go to one task"


def test_a_snapshot_on_change_has_a_job_that_detects_changes() -> None:
    system = squall.compile(GRANDPARENTS, lexer="jena")
    text = physical(squall.plan(apply_profile(system, output="rstream", report=Report("change"))))
    assert heads(text)[-2:] == ["job 3: what has changed", "job 4: end"]


@pytest.mark.parametrize(("deleted", "tasks"), [("?y ?p ?x", 1), ("?x ?p ?y", 2)])
def test_a_plan_that_runs_as_a_whole_is_one_step(deleted: str, tasks: int) -> None:
    update = f"DELETE {{ {deleted} }} WHERE {{ ?x ?p ?y, ?x }}"
    text = physical(squall.plan(squall.compile(update, lexer="sparql")))
    step = "the plan as a whole" + (f", in {tasks} tasks" if tasks > 1 else "")
    little = "# Up to 16,777,216 bytes of files"
    assert heads(text) == [little, f"job 1: {step}", "# More", "job 1: sources", f"job 2: {step}"]
    result = re.findall(rf"^\({tasks}\) the plan as a whole (Python|Union)RDD", text, re.MULTILINE)
    assert result == ["Python" if tasks == 1 else "Union"] * 2, "each reads what it processes"


def test_an_ordered_scan_is_a_step_before_the_stages() -> None:
    text = physical(planned(GRANDPARENTS, window="TRIPLES 5"))
    assert heads(text)[:2] == LITTLE
    assert heads(text)[-1].startswith("job 1: sources, then ordered scan, then stage 1, then ")


@pytest.mark.usefixtures("always_by_levels")
def test_the_plans_are_those_of_the_jobs_that_run(spark_jobs: list[str]) -> None:
    plan = squall.plan(apply_profile(squall.compile(ORPHANS, lexer="jena"), output="rstream"))
    printed = physical(plan)
    facts = stream("1 :a :parent :b\n2 :b :parent :c\n3 :d :gone :yes")
    assert list(squall.build(plan, "spark", Options()).run([facts]))
    assert heads(printed) == ["job 1: sources", LEVELS]
    steps = r"MapInArrow (.*?)\(|(Exchange \w+)"
    assert [re.findall(steps, text) for text in spark_jobs] == [
        re.findall(steps, text) for text in re.split(r"^job \d.*\n", printed, flags=re.MULTILINE)[1:]
    ]


def test_the_command_line_shows_them(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "family.jena").write_text(GRANDPARENTS)
    code, out, _ = squall("explain", str(tmp_path / "family.jena"), "--builder", "spark", "--stage", "physical")
    assert code == 0
    assert heads(out)[-1] == "job 1: sources, then stage 1, then stage 2, then end"
