"""Plans that run in a single task on Spark because each instant decides the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

import squall
from squall.builders.distributed.io.records import WorkerError
from squall.builders.distributed.plan.strategy import strategy_of
from squall.errors import BuilderError
from squall.model import Construct, Delete, Pattern, Source, System, Variable
from squall.model.windows import CountWindow
from squall.rdf import Event, Triple, iri
from tests import in_memory
from tests.file_by_file import PREFIX, file_by_file

X, Y = map(Variable, "xy")
P, Q = iri("urn:p"), iri("urn:q")
BODY = (Pattern(X, P, Y),)
COPY = (Construct((Pattern(X, Q, Y),)),)
RULE = "[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]"

LOOP = (Construct((Pattern(X, Q, X),)),)
MADE = System(subsystems=(System("m", joinables=BODY, consequences=COPY, reentrant=False),), stream="urn:s")
UPDATING = System("r", joinables=BODY, consequences=(Delete((Pattern(Y, P, X),)),))
ORDERED = {
    "reads through the window TRIPLES 5": squall.compile(RULE, lexer="jena", window=CountWindow(5)),
    "reads a stream that carries removals": squall.compile(RULE, lexer="jena", removals=True),
    "derives a stream that is read again": System(
        subsystems=(
            MADE,
            System("r", (Source("urn:s"),), (Pattern(X, Q, Y),), consequences=LOOP),
        )
    ),
}
"""A program that an engine without tasks for ordered scans runs in one task."""


def test_the_reason_for_a_single_task_is_given() -> None:
    pytest.importorskip("pyspark")
    described = squall.build(squall.plan(UPDATING), "spark").describe()  # type: ignore[attr-defined]
    assert described.startswith("strategy: single task; ")
    assert " inserts or deletes facts; " in described


def test_other_plans_are_distributed() -> None:
    assert strategy_of(squall.plan(squall.compile(RULE, lexer="jena"))).is_staged
    assert strategy_of(squall.plan(squall.compile(RULE, lexer="jena")), in_one_job=True).is_staged


@pytest.mark.parametrize(("what", "system"), ORDERED.items(), ids=list(ORDERED))
def test_plans_that_need_the_order_of_facts_run_in_a_single_task(what: str, system: System) -> None:
    plan = squall.plan(system)
    reason = strategy_of(plan, in_one_job=True).reasons[0]
    assert reason.what == what
    assert strategy_of(plan).is_staged


def test_updates_that_do_not_terminate_are_an_error() -> None:
    """The error is the same as in process, with its hint."""
    text = """
    DELETE { ?x <urn:p> ?y } INSERT { ?x <urn:q> ?y } WHERE { ?x <urn:p> ?y } ;
    DELETE { ?x <urn:q> ?y } INSERT { ?x <urn:p> ?y } WHERE { ?x <urn:q> ?y }
    """
    plan = squall.plan(squall.compile(text, lexer="sparql"))
    with pytest.raises(BuilderError, match="after 20 steps without an event") as caught, WorkerError.retold():
        in_memory.run(plan, [[Event(1, (Triple(iri("urn:a"), P, iri("urn:b")),))]], max_update_steps=20)
    assert "`max_update_steps` in the options" in (caught.value.hint or "")


# On Spark, file by file

UPDATES = f"""{PREFIX}
DELETE {{ ?room :says ?what }} INSERT {{ ?room :has ?what }} WHERE {{ ?room :says ?what }} ;
INSERT {{ ?room :is :full }} WHERE {{ ?room :has :much }} ;
DELETE {{ ?room :is :full }} WHERE {{ ?room :has :nothing ; :is :full }}
"""


@pytest.mark.more
@pytest.mark.spark
def test_a_single_task_on_spark_agrees_with_the_iterator_builder(tmp_path: Path) -> None:
    """Spark reads file by file and is restarted in between. The whole state is written now and then."""
    pytest.importorskip("pyspark")
    plan = squall.plan(squall.compile(UPDATES, lexer="sparql"))
    assert not strategy_of(plan).is_staged
    result, expected = file_by_file(plan, tmp_path)
    assert result
    assert result == expected
