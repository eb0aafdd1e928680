"""squall's settings of Spark: their values, and errors for misspelt names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.errors import UsageError
from squall.plan import Plan
from squall.rdf import Event
from squall.streams import Sources, open_source
from squall.testing import stream
from tests.conftest import Squall, spark_set

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

from squall.builders.spark import (  # noqa: E402
    MAX_BROADCAST_ROWS,
    MAX_CACHED_STATE_ROWS,
    MAX_FILES_PER_TRIGGER,
    MAX_SINGLE_TASK_BYTES,
    MAX_SINGLE_TASK_ROWS,
    SKEW_THRESHOLD,
)
from squall.builders.spark.settings import Settings, settings  # noqa: E402
from squall.spark import to_dataframe  # noqa: E402

FIELDS = {
    MAX_FILES_PER_TRIGGER: "max_files_per_trigger",
    MAX_SINGLE_TASK_ROWS: "max_single_task_rows",
    MAX_SINGLE_TASK_BYTES: "max_single_task_bytes",
    MAX_CACHED_STATE_ROWS: "max_cached_state_rows",
    MAX_BROADCAST_ROWS: "max_broadcast_rows",
}


@pytest.fixture
def plan() -> Plan:
    return squall.plan(squall.compile("SELECT ?x WHERE { ?x <urn:p> ?y }", lexer="sparql"))


def test_those_of_spark_are_no_concern_of_ours() -> None:
    assert settings([("spark.master", "local"), ("spark.squal.x", "1")]) == Settings()


@pytest.mark.parametrize("name", FIELDS)
def test_a_count_is_a_whole_number(name: str) -> None:
    assert settings([(name, "7"), (name, " ")]) == Settings(**{FIELDS[name]: 7}), "an empty one is none"
    assert settings([(name, "7"), (name, "0")]) == Settings(**{FIELDS[name]: 0}), "the later one wins"
    for wrong in ("many", "-1", "1.5", "16m"):
        with pytest.raises(UsageError, match=f"`{name}` cannot be `{wrong}`"):
            settings([(name, wrong)])


def test_a_share_is_between_0_and_1() -> None:
    assert settings([(SKEW_THRESHOLD, "0.25")]).hot_key_share(8) == 0.25
    assert settings([(SKEW_THRESHOLD, "0")]).hot_key_share(8) == 0, "none is hot"
    assert settings([]).hot_key_share(8) == 1 / 16, "half of what is a task's"
    for wrong in ("half", "-0.1", "1.1", "nan"):
        with pytest.raises(UsageError, match=f"`{SKEW_THRESHOLD}` cannot be `{wrong}`"):
            settings([(SKEW_THRESHOLD, wrong)])


def test_a_misspelt_setting_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"squall has no setting `spark\.squall\.singleTaskRow`") as raised:
        settings([("spark.squall.singleTaskRow", "0")])
    assert f"`{MAX_SINGLE_TASK_ROWS}`" in str(raised.value.hint)


def test_it_is_one_before_spark_is_started(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "x.rq").write_text("SELECT ?x WHERE { ?x <urn:p> ?y }")
    (tmp_path / "in.nt").write_text("")
    arguments = ["build", str(tmp_path / "x.rq"), "--builder", "spark", "--source", str(tmp_path / "in.nt")]
    code, _, error = squall(*arguments, "--conf", "spark.squall.maxCachedStaterows=0")
    assert code == 2
    assert f"did you mean `{MAX_CACHED_STATE_ROWS}`" in error


def test_of_a_session_it_is_one_where_a_run_begins(plan: Plan) -> None:
    with spark_set("spark.squall.workersRows", "0"), pytest.raises(UsageError, match="no setting"):
        list(squall.build(plan, "spark").run([[]]))


def test_a_dataframe_is_refused_with_it(plan: Plan) -> None:
    with pytest.raises(UsageError, match="no setting"):
        to_dataframe(plan, [[]], options=Options(conf=(("spark.squall.rows", "0"),)))


def test_those_of_a_run_hold_on_a_session_that_is_there(
    plan: Plan, tmp_path: Path, spark_jobs: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The micro-batches are those of the run's own setting, which overrides that of the session."""
    for number in range(3):
        (tmp_path / f"{number}.nt").write_text(f"<urn:{number}> <urn:p> <urn:o> .\n")
    with spark_set(MAX_FILES_PER_TRIGGER, "2"):
        result: Any = squall.build(plan, "spark", Options(conf=((MAX_FILES_PER_TRIGGER, "1"),)))
        assert len(list(result.run(Sources([open_source(str(tmp_path))])))) == 3
    assert len(spark_jobs) == 3, "a micro-batch for each file"
    assert not caplog.records, "nothing is passed over"


def test_no_limit_is_none(plan: Plan, spark_jobs: list[str]) -> None:
    facts: list[Event] = stream("1 :a <urn:p> :b\n2 :b <urn:p> :c")
    options = Options(conf=((MAX_FILES_PER_TRIGGER, "0"),))
    assert len(list(squall.build(plan, "spark", options).run([facts]))) == 2
    assert len(spark_jobs) == 1


def test_one_task_runs_a_recursion_over_a_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the bound is set, sixteen times as much; where nothing is shuffled in a recursion, on a cluster, or with
    little memory, as much as ever."""
    from squall.builders.distributed.plan.stages import Stage
    from squall.builders.spark import settings as module

    plain, recursive = ([Stage(1, (), (), is_iterated, False, False)] for is_iterated in (False, True))
    for memory, expected in ((24 << 30, 2 << 30), (1 << 30, 256 << 20)):
        monkeypatch.setattr(module, "machine_memory", lambda memory=memory: memory)
        assert settings([]).single_task_bytes(recursive, local=True) == expected
        assert settings([]).single_task_bytes(recursive, local=False) == 16 << 20
        assert settings([]).single_task_bytes(plain, local=True) == 16 << 20
        assert settings([(MAX_SINGLE_TASK_BYTES, "100")]).single_task_bytes(recursive, local=True) == 1600
        assert settings([(MAX_SINGLE_TASK_BYTES, "0")]).single_task_bytes(recursive, local=True) == -1
