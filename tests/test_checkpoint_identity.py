"""The message about a checkpoint of another run names what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import squall
from squall.builders.spark.store import META, _meaning, check_owner
from squall.contracts import Options
from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.cardinality import Statistics
from squall.rdf import Event, iri, triple

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
@pytest.mark.parametrize("engine", ["in process", "spark"])
def test_another_plan_of_the_same_rules_is_not_taken_for_changed_rules(engine: str, tmp_path: Path) -> None:
    """P10 of the reported faults: only the statistics were others."""

    def resume(plan: Plan) -> None:
        if engine == "spark":
            check_owner(plan, tmp_path)
        else:
            list(squall.run(plan, [], options=Options(checkpoint=tmp_path)))

    if engine == "spark":
        (tmp_path / META).write_text(json.dumps(_meaning(planned(A, STAR))))
    resume(planned(A, STAR))
    resume(planned(A, STAR, statistics=Statistics()))
    with pytest.raises(BuilderError) as caught:
        resume(planned(A, STAR, statistics=RARE_S))
    by = f"planned by `rete` without statistics, now by `rete` with the statistics {RARE_S.digest}"
    assert str(caught.value.message).endswith(f"changed rules `star`; or only another plan of them ({by})")
    assert str(caught.value.hint).startswith("plan as that run did (`--planner`, `--statistics`)")
