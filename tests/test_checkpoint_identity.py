"""The message about a checkpoint of another run names what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import squall
from squall.builders.local.checkpoint import CHECKPOINT_FILE
from squall.builders.local.job import build
from squall.builders.spark.store import META, _meaning, check_owner
from squall.contracts import Options, saved_planning
from squall.errors import BuilderError, SourceError
from squall.plan import Plan, Planning
from squall.plan.cardinality import Statistics
from squall.rdf import Event, iri, triple
from squall.streams import open_static
from tests.conftest import Squall

A, B = "[a: (?x <urn:p> ?y) -> (?x <urn:q> ?y)]", "[b: (?x <urn:p> ?y) (?y <urn:p> ?z) -> (?x <urn:r> ?z)]"
OTHER_B = "[b: (?x <urn:p> ?y) (?x <urn:p> ?z) -> (?x <urn:r> ?z)]"


STAR = "[star: (?x <urn:p> ?y) (?x <urn:r> ?z) (?x <urn:s> ?w) -> (?y <urn:t> ?w)]"
RARE_S = Statistics.of(
    [
        Event(0, tuple(triple(iri(f"urn:{n}"), iri(f"urn:{name}"), iri(f"urn:{n}")) for n in range(count)))
        for name, count in (("p", 9), ("r", 9), ("s", 1))
    ]
)


def planned(*rules: str, planner: str = "rete", statistics: Statistics | None = None) -> Plan:
    return squall.plan(squall.compile("\n".join(rules), lexer="jena"), planner, statistics=statistics)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (planned(A), "without rules `b`"),
        (planned(A, B, B.replace("b:", "c:").replace("urn:r", "urn:s")), "with rules `c`"),
        (planned(A, OTHER_B), "changed rules `b`"),
        (planned(B.replace("b:", "d:"), A), "without rules `b`; with rules `d`"),
        (planned(A, B, planner="greedy"), "its planner was `rete`"),
    ],
)
def test_the_changes_are_named(now: Plan, said: str, tmp_path: Path) -> None:
    (tmp_path / META).write_text(json.dumps(_meaning(planned(A, B))))
    check_owner(planned(A, B), tmp_path)
    with pytest.raises(BuilderError) as caught:
        check_owner(now, tmp_path)
    assert str(caught.value.message).endswith(f"is that of another run: {said}")
    assert ("`d` is only another name of `b`" in str(caught.value.hint)) is ("with rules `d`" in said)


@pytest.mark.fault("P10")
def test_another_plan_of_the_same_rules_resumes_in_process(tmp_path: Path) -> None:
    """P10 of the reported faults: only the statistics were others."""
    plans = [
        planned(A, STAR),
        planned(A, STAR, statistics=Statistics()),
        planned(A, STAR, statistics=RARE_S),
        planned(A, STAR, planner="greedy"),
    ]
    for plan in plans:
        list(squall.run(plan, [], options=Options(checkpoint=tmp_path)))


@pytest.mark.fault("P10")
def test_another_plan_of_the_same_rules_is_not_taken_for_changed_rules_by_spark(tmp_path: Path) -> None:
    """P10 of the reported faults: only the statistics were others."""
    (tmp_path / META).write_text(json.dumps(_meaning(planned(A, STAR))))
    check_owner(planned(A, STAR), tmp_path)
    check_owner(planned(A, STAR, statistics=Statistics()), tmp_path)
    with pytest.raises(BuilderError) as caught:
        check_owner(planned(A, STAR, statistics=RARE_S), tmp_path)
    by = f"planned by `rete` without statistics, now by `rete` with the statistics {RARE_S.digest}"
    assert str(caught.value.message).endswith(f"changed rules `star`; or only another plan of them ({by})")
    assert str(caught.value.hint).startswith("plan as that run did (`--planner`, `--statistics`, `--adapt`)")


@pytest.mark.fault("P10")
@pytest.mark.parametrize("builder", ["iterator", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])])
def test_a_run_that_resumes_is_planned_with_the_statistics_of_its_checkpoint(
    builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    """P10 of the reported faults."""
    monkeypatch.chdir(tmp_path)
    Path("star.jena").write_text(STAR)
    Path("in").mkdir()
    Path("in/1.ntt").write_text("1 <urn:a> <urn:p> <urn:b> .\n1 <urn:a> <urn:r> <urn:c> .\n")
    RARE_S.save("rare_s.json")
    Statistics().save("none.json")
    command = [
        "build",
        "star.jena",
        "--source",
        "in",
        "--sink",
        "out.ntt",
        "--checkpoint",
        "kept",
        "--builder",
        builder,
    ]
    assert squall(*command, "--statistics", "rare_s.json")[0] == 0
    explain = ("explain", "star.jena", "--builder", builder, "--stage", "pps")
    resumed = squall(*explain, "--checkpoint", "kept")
    new = (*explain, "--checkpoint", "nosuch")
    assert resumed[:2] == squall(*new, "--statistics", "rare_s.json")[:2]
    assert "planned with the statistics of its checkpoint" in resumed[2]
    assert squall(*new)[1] != resumed[1]
    Path("in/2.ntt").write_text("2 <urn:a> <urn:s> <urn:d> .\n")
    code, _, messages = squall(*command)
    assert code == 0
    assert "the run resumes, and is planned with the statistics of its checkpoint\n" in messages
    Path("in/3.ntt").write_text("3 <urn:a> <urn:s> <urn:e> .\n")
    code, _, messages = squall(*command, "--statistics", "none.json")
    assert code == 0
    if builder == "spark":
        expected = (
            "`--statistics none.json` is not used: a run that resumes is planned with the statistics of its checkpoint"
        )
        assert f"planner warning: {expected}\n" in messages
    else:
        assert "  1 change of the plan: at 2 from the plan of the checkpoint\n" in messages
        assert saved_planning(build, Path("kept")) == Planning(Statistics(), "rete", replaceable=True)
    assert Path("out.ntt").read_text() == "2 <urn:b> <urn:t> <urn:d> .\n3 <urn:b> <urn:t> <urn:e> .\n"
    code, _, messages = squall(*command, "--planner", "greedy")
    assert (code == 0) is (builder == "iterator")
    assert "is planned" not in messages


def test_a_run_that_resumes_is_planned_without_statistics_if_its_checkpoint_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("star.jena").write_text(STAR)
    Path("in.ntt").write_text("")
    RARE_S.save("rare_s.json")
    command = ["build", "star.jena", "--source", "in.ntt", "--sink", "out.ntt", "--checkpoint", "kept"]
    assert squall(*command)[0] == 0
    assert saved_planning(build, Path("kept")) == Planning(None, "rete", replaceable=True)
    assert squall(*command)[0] == 0
    assert saved_planning(build, Path("kept")) == Planning(None, "rete", replaceable=True)


def test_the_statistics_of_a_checkpoint(tmp_path: Path) -> None:
    assert saved_planning(build, tmp_path) is None
    list(squall.run(planned(STAR, statistics=RARE_S), [], options=Options(checkpoint=tmp_path)))
    assert saved_planning(build, tmp_path) == Planning(RARE_S, "rete")
    file = tmp_path / CHECKPOINT_FILE
    header, newline, checkpoints = file.read_text().partition("\n")
    values = json.loads(header)
    file.write_text(json.dumps(values | {"planning": {"statistics": {"all": 1}}}) + newline + checkpoints)
    with pytest.raises(BuilderError, match=r"the planning in the checkpoint .* is damaged"):
        saved_planning(build, tmp_path)
    assert saved_planning(squall.run, tmp_path) is None


ROOMS = "<urn:hall> <urn:r> <urn:house> .\n"


@pytest.mark.parametrize("builder", ["iterator", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])])
def test_other_static_data_are_refused(squall: Squall, tmp_path: Path, builder: str) -> None:
    """A run that resumes does not read static data again, so that it could not know what has changed."""
    if builder == "spark":
        pytest.importorskip("pyspark")
    (tmp_path / "in").mkdir()
    (tmp_path / "b.jena").write_text("[b: (?x <urn:p> ?y) (?y <urn:r> ?z) -> (?x <urn:q> ?z)]")
    rooms, folder = tmp_path / "rooms.nt", tmp_path / "house"
    folder.mkdir()

    def run(day: int, *statics: Path) -> tuple[int, str]:
        (tmp_path / "in" / f"{day}.nt").write_text(f"<urn:s{day}> <urn:p> <urn:hall> .\n")
        static = [argument for path in statics for argument in ("--static", str(path))]
        arguments = ("--sink", str(tmp_path / "out.nt"), "--checkpoint", str(tmp_path / "state"), "--builder", builder)
        code, _, messages = squall(
            "run", str(tmp_path / "b.jena"), "--source", str(tmp_path / "in"), *static, *arguments
        )
        return code, messages

    rooms.write_text(ROOMS)
    (folder / "1.nt").write_text(ROOMS.replace("hall", "cellar"))
    for day in (1, 2):
        assert run(day, rooms, folder)[0] == 0
    rooms.write_text(ROOMS + ROOMS.replace("hall", "attic"))
    code, messages = run(3, rooms, folder)
    assert code == 1
    assert f"that of another run: changed static data `{rooms}`" in messages
    assert "hint: give static data as they were: a run that resumes does not read them again; or start" in messages
    rooms.write_text(ROOMS)
    assert f"without static data `{folder}`" in run(3, rooms)[1]
    (folder / "2.nt").write_text(ROOMS)
    assert f"changed static data `{folder}`" in run(3, rooms, folder)[1]
    (folder / "2.nt").unlink()
    assert run(3, rooms, folder)[0] == 0
    outputs = (tmp_path / "out.nt").read_text().splitlines()
    assert sorted(outputs) == [f"<urn:s{day}> <urn:q> <urn:house> ." for day in (1, 2, 3)]


def test_static_data_that_are_gone_are_an_error_of_their_source(tmp_path: Path) -> None:
    file = tmp_path / "rooms.nt"
    file.write_text(ROOMS)
    static = open_static(str(file))
    file.unlink()
    plan = planned(A)
    with pytest.raises(SourceError, match=f"`{file}` cannot be read: No such file"):
        list(squall.run(plan, [], static=static, options=Options(checkpoint=tmp_path / "state")))
