"""Node metrics in a file that belongs to one plan."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import UsageError
from squall.plan import Input, Node, Plan
from squall.plan.node_metrics import NodeMetric, PlanMetrics, load, save
from squall.plan.operators import Sink, Unit

PLAN = Plan((Node("u", Unit()), Node("end", Sink(), (Input("u"),))))
COUNTS = st.none() | st.integers(0, 10**12)
JOINS = st.none() | st.lists(st.text()).map(tuple)
AMOUNTS = st.none() | st.floats(0, allow_infinity=False)


@given(st.dictionaries(st.sampled_from(["u", "end"]), st.builds(NodeMetric, AMOUNTS, COUNTS, COUNTS, AMOUNTS, JOINS)))
def test_saved_metrics_are_loaded(figures: PlanMetrics) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save(figures, Path(folder) / "figures.json", PLAN)
        assert load(Path(folder) / "figures.json", PLAN) == figures


def test_metrics_of_unknown_nodes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    save({"u": NodeMetric(rows=1)}, path, PLAN)
    other = Plan((Node("v", Unit()), Node("end", Sink(), (Input("v"),))))
    with pytest.raises(UsageError, match="no node `u`"):
        load(path, other)
    with pytest.raises(UsageError, match="no node `u`"):
        save({"u": NodeMetric(rows=1)}, path, other)


def test_metrics_of_a_plan_with_the_same_ids_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    save({"u": NodeMetric(rows=1)}, path, PLAN)
    changed = replace(PLAN, nodes=(PLAN.nodes[0], replace(PLAN.nodes[1], op=Sink("rstream"))))
    with pytest.raises(UsageError, match="of another plan"):
        load(path, changed)
    assert load(path, replace(PLAN, planner="another name"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("\udcff", "not JSON"),
        ("[]", "does not hold"),
        ("{}", "does not hold"),
        ('{"plan": "", "nodes": [1]}', "does not hold"),
        ('{"plan": "", "nodes": {"u": 1}}', "does not hold"),
        ('{"plan": "", "nodes": {"u": {"rows": "many"}}}', "does not hold"),
        ('{"plan": "", "nodes": {"u": {"weight": 1}}}', "does not hold"),
        ('{"plan": "", "nodes": {"u": {"joins": "k"}}}', "does not hold"),
        ('{"plan": "", "nodes": {}}', "of another plan"),
    ],
)
def test_another_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=message) as caught:
        load(path, PLAN)
    assert "--profile-nodes" in str(caught.value)


def test_a_file_that_is_not_there_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none.json", PLAN)
    with pytest.raises(UsageError, match="cannot be written"):
        save({}, tmp_path / "none" / "figures.json", PLAN)
