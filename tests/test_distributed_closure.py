"""Distributed transitive closure: the steps are broadcast, and each task derives the paths of its start nodes."""

from __future__ import annotations

from random import Random

import pytest

import squall
from squall.builders.distributed.io.engine import NodeMetrics
from squall.builders.distributed.plan.broadcast import closure_inputs
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.spark import build
from squall.contracts import Options
from squall.model import Source
from squall.model.windows import LANDMARK, SlidingWindow, Window
from squall.plan import Input, Node, Plan
from squall.plan.operators import Construct, Distinct, Join, Match, Scan, Sink, TransitiveClosure
from squall.plan.validation import check
from squall.rdf import iri
from squall.testing import stream
from tests import in_memory

P, Q, R = (iri(f"http://example.org/{name}") for name in "pqr")
RULES = """
@prefix : <http://example.org/>.
[t: (?x :p ?y) (?y :p ?z) -> (?x :p ?z)]
[o: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)]
"""
EVENTS = stream("".join(f"{n} :n{n * 7 % 40} :p :n{n * 7 % 40 + 1}\n{n} :n{n} :q :m{n % 3}\n" for n in range(40)))


def plan_of(window: Window = LANDMARK) -> Plan:
    return squall.plan(squall.compile(RULES, lexer="jena", window=window))


def by_hand(*columns: tuple[int, ...]) -> Plan:
    """Returns the plan of ``(?x p ?y)``, closed, ``(?y q ?z) -> (?x r ?z)``: paths are joined by their end."""
    return check(
        Plan(
            (
                Node("read", Scan(Source())),
                Node("steps", Match((0, P, 1)), (Input("read"),)),
                Node("paths", TransitiveClosure(), (Input("steps", ()),)),
                Node("ends", Match((0, Q, 1)), (Input("read"),)),
                Node("join", Join(((1, 0),), (0, 3)), (Input("paths", columns[0]), Input("ends", columns[1]))),
                Node("emit", Construct((0, R, 1), rules=("r",)), (Input("join"),)),
                Node("set", Distinct(3), (Input("emit", (0,)),)),
                Node("end", Sink(), (Input("set", (0,)),)),
            )
        )
    )


@pytest.mark.parametrize("window", [LANDMARK, SlidingWindow(20)], ids=["no window", "RANGE 20"])
def test_each_path_is_derived_by_one_task(window: Window) -> None:
    plan = plan_of(window)
    node_metrics = NodeMetrics(plan)
    batches = [EVENTS[at : at + 16] for at in range(0, len(EVENTS), 16)]
    workers = in_memory.Workers(Random(1), failure_rate=0)
    outputs = in_memory.run(
        plan, batches, node_metrics=node_metrics, workers=workers, broadcast_inputs=closure_inputs(plan)
    )
    job = squall.build(plan, options=Options(measure=True))
    assert sorted(outputs) == sorted(job.run(batches))
    ((closure, _),) = closure_inputs(plan)
    in_process = job.node_metrics()[closure].rows  # type: ignore[attr-defined]
    assert node_metrics.by_node()[closure].rows == in_process > 50


@pytest.mark.parametrize("columns", [((1,), (0,)), ((), ())], ids=["moved", "in one place"])
def test_paths_are_partitioned_by_their_start(columns: tuple[tuple[int, ...], ...]) -> None:
    plan = by_hand(*columns)
    outputs = in_memory.run(plan, [EVENTS[:30], EVENTS[30:]], broadcast_inputs=closure_inputs(plan))
    assert sorted(outputs) == sorted(squall.build(plan).run([EVENTS]))
    assert len(physical_plan(plan, closure_inputs(plan)).stages) == 3


def test_joins_on_the_start_of_paths_need_no_shuffle() -> None:
    plan = plan_of()
    assert len(physical_plan(plan, closure_inputs(plan)).stages) == len(physical_plan(plan).stages) - 1
    ((closure, _),) = closure_inputs(plan)
    assert f"{closure} (a single task: all its rows have to meet)" in str(physical_plan(plan))
    assert f"{closure} with all steps in every task, the pairs by [0]" in build(plan, Options()).describe()
