"""Plans that one task runs as a whole on Spark, since they depend on the order of facts: which, and that they do."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import squall
from squall.builders.distributed.alone import alone
from squall.builders.distributed.messages import Failed
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import Event, Triple, iri
from squall.stages import Options, Output
from squall.streams import Sources, open_source
from squall.system import Construct, Delete, Pattern, Source, System, Variable
from squall.windows import Count
from tests import in_memory

X, Y = map(Variable, "xy")
P, Q = iri("urn:p"), iri("urn:q")
BODY = (Pattern(X, P, Y),)
COPY = (Construct((Pattern(X, Q, Y),)),)
RULE = "[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]"

WHY = {
    "reads through the window TRIPLES 5": squall.compile(RULE, lexer="jena", window=Count(5)),
    "reads a stream that carries removals": squall.compile(RULE, lexer="jena", removals=True),
    "inserts or deletes facts": System("r", joinables=BODY, consequences=(Delete(BODY),)),
    "makes a stream that is read again": System(
        subsystems=(
            System(subsystems=(System("m", joinables=BODY, consequences=COPY, reentrant=False),), stream="urn:s"),
            System("r", (Source("urn:s"),), (Pattern(X, Q, Y),), consequences=(Construct((Pattern(X, Q, X),)),)),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "system"), WHY.items(), ids=list(WHY))
def test_it_is_said_why_a_plan_has_one_task(what: str, system: System) -> None:
    pytest.importorskip("pyspark")
    described = squall.build(squall.plan(system), "spark").describe()  # type: ignore[attr-defined]
    assert described.startswith("a single task of ")
    assert described.endswith(what)


def test_other_plans_are_distributed() -> None:
    assert alone(squall.plan(squall.compile(RULE, lexer="jena"))) is None


def test_updates_that_do_not_come_to_rest_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as in process, with what to do about it."""
    text = """
    DELETE { ?x <urn:p> ?y } INSERT { ?x <urn:q> ?y } WHERE { ?x <urn:p> ?y } ;
    DELETE { ?x <urn:q> ?y } INSERT { ?x <urn:p> ?y } WHERE { ?x <urn:q> ?y }
    """
    monkeypatch.setattr(Options, "steps", 20)
    plan = squall.plan(squall.compile(text, lexer="sparql"))
    with pytest.raises(BuilderError, match="after 20 steps without an event") as caught, Failed.retold():
        in_memory.run(plan, [[Event(1, (Triple(iri("urn:a"), P, iri("urn:b")),))]])
    assert "`steps` in the options" in (caught.value.hint or "")


# On Spark, file by file

PREFIX = "PREFIX : <http://example.org/> "
UPDATES = f"""{PREFIX}
DELETE {{ ?room :says ?what }} INSERT {{ ?room :has ?what }} WHERE {{ ?room :says ?what }} ;
INSERT {{ ?room :is :full }} WHERE {{ ?room :has :much }} ;
DELETE {{ ?room :is :full }} WHERE {{ ?room :has :nothing ; :is :full }}
"""
QUERY = PREFIX + "SELECT ?what (COUNT(*) AS ?often) { ?room :says ?what } GROUP BY ?what ORDER BY ?what"
SAYS = Pattern(X, iri("http://example.org/says"), Y)
STREAM = System(
    subsystems=(
        System(
            subsystems=(
                System("m", (Source(),), (SAYS,), consequences=(Construct((Pattern(Y, P, X),)),), reentrant=False),
            ),
            stream="urn:s",
            output="rstream",
        ),
        System("r", (Source("urn:s", Count(4)),), (Pattern(Y, P, X),), consequences=(Construct((Pattern(X, Q, Y),)),)),
    ),
    output="dstream",
)
PROGRAMS = {
    "updates": squall.compile(UPDATES, lexer="sparql"),
    "the last three triples": replace(squall.compile(QUERY, lexer="sparql", window=Count(3)), output="rstream"),
    "a stream that is read again": STREAM,
}
WHAT = ("much", "little", "little", "nothing", "much", "much", "little", "nothing", "little", "much", "nothing", "much")
LINES = [
    (
        time // 2 + 10 * (time // 8),
        f"<http://example.org/room{time % 3}> <http://example.org/says> <http://example.org/{what}> .",
    )
    for time, what in enumerate(WHAT)
]


def write(folder: Path, number: int) -> None:
    """A file with four of the lines."""
    folder.mkdir(exist_ok=True)
    path = folder / f"part{number}.ntt"
    path.write_text("".join(f"{time} {line}\n" for time, line in LINES[4 * number : 4 * number + 4]))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def run(plan: Plan, folder: Path, builder: str, options: Options) -> list[tuple[int, str]]:
    outputs = squall.build(plan, builder, options).run(Sources([open_source(str(folder), options.ledger)]))
    return sorted((output.time, str(output.fact)) for output in outputs)


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    ["updates", *(pytest.param(name, marks=pytest.mark.slow) for name in list(PROGRAMS)[1:])],
)
def test_one_task_does_on_spark_what_the_iterator_builder_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File by file, and started again in between, the state written as a whole now and then."""
    pytest.importorskip("pyspark")
    from squall.builders.spark import FILES_PER_BATCH, session

    monkeypatch.setattr("squall.builders.distributed.alone.COMPACT", 2)
    plan = squall.plan(PROGRAMS[name])
    assert alone(plan) is not None
    options = Options(checkpoint=tmp_path / "checkpoint")
    session().conf.set(FILES_PER_BATCH, "1")
    found: list[tuple[int, str]] = []
    for numbers in ((0, 1), (2,)):
        for number in numbers:
            write(tmp_path / "in", number)
        found += run(plan, tmp_path / "in", "spark", options)
    session().conf.unset(FILES_PER_BATCH)
    assert found
    assert sorted(found) == run(plan, tmp_path / "in", "iterator", Options())


@pytest.mark.spark
def test_removals_are_spooled_for_spark(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    path = tmp_path / "in.rdfp"
    fact = "<http://example.org/a> <urn:p> <http://example.org/b>"
    rows = ['H time "1" .', f"A {fact} .", 'H time "4" .', f"D {fact} .", 'H time "6" .', f"A {fact} ."]
    path.write_text("".join(f"{row}\n" for row in rows))
    system = squall.compile(RULE, lexer="jena", removals=True)
    outputs: dict[str, list[Output]] = {}
    for builder in ("iterator", "spark"):
        plan = squall.plan(replace(system, output="dstream"))
        outputs[builder] = list(squall.build(plan, builder).run(Sources([open_source(str(path))])))
    assert [output.time for output in outputs["spark"]] == [4]
    assert outputs["spark"] == outputs["iterator"]
