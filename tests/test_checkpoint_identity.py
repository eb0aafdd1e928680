"""The message about a checkpoint of another run names what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import squall
from squall.builders.spark.store import META, _meaning, check_owner
from squall.errors import BuilderError
from squall.plan import Plan

A, B = "[a: (?x <urn:p> ?y) -> (?x <urn:q> ?y)]", "[b: (?x <urn:p> ?y) (?y <urn:p> ?z) -> (?x <urn:r> ?z)]"
OTHER_B = "[b: (?x <urn:p> ?y) (?x <urn:p> ?z) -> (?x <urn:r> ?z)]"


def planned(*rules: str, planner: str = "rete") -> Plan:
    return squall.plan(squall.compile("\n".join(rules), lexer="jena"), planner)


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
