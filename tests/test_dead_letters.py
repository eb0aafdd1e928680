"""Dead letters go to the ledger of their source, or else to that of the run, with every builder."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.contracts import Options
from squall.errors import SquallError
from squall.plan import Plan
from squall.streams import DeadLetterFile, Sources, open_source, open_static
from squall.streams.dead_letters import DeferredLedger, ledger_of

BUILDERS = [
    "iterator",
    pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.more)),
    pytest.param("beam", marks=pytest.mark.beam),
]
LINES = "1 <urn:a> <urn:p> <urn:b> .\nbroken\n2 <urn:c> <urn:p> <urn:d> .\n"
BROKEN = {"malformed": 1}


@pytest.fixture
def plan() -> Plan:
    return squall.plan(squall.compile("SELECT ?x WHERE { ?x <urn:p> ?y }", lexer="sparql"))


def kept(ledger: DeadLetterFile) -> dict[str, int]:
    return {cause: count for (cause, _), count in ledger.counts.items()}


def written(folder: Path, name: str) -> str:
    (folder / name).write_text(LINES)
    return str(folder / name)


def run(plan: Plan, builder: str, sources: Collection[Any], ledger: DeadLetterFile | None) -> int:
    """Returns the number of answers."""
    return len(list(squall.build(plan, builder, Options(ledger=ledger)).run(Sources([*sources]))))


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_source_may_have_its_own_ledger(plan: Plan, tmp_path: Path, builder: str) -> None:
    own, other, all = DeadLetterFile(), DeadLetterFile(), DeadLetterFile()
    sources = [open_source(written(tmp_path, "a.ntt"), own), open_source(written(tmp_path, "b.ntt"), other)]
    sources += [open_source(written(tmp_path, "c.ntt"))]
    assert run(plan, builder, sources, all) == 2
    assert [kept(ledger) for ledger in (own, other, all)] == [BROKEN] * 3
    assert [source for _, source in other.counts] == [str(tmp_path / "b.ntt")]


@pytest.mark.parametrize("builder", BUILDERS)
def test_it_is_enough_that_the_sources_have_one(plan: Plan, tmp_path: Path, builder: str) -> None:
    own = DeadLetterFile()
    assert run(plan, builder, [open_source(written(tmp_path, "a.ntt"), own)], None) == 2
    assert kept(own) == BROKEN


@pytest.mark.parametrize("builder", BUILDERS)
def test_without_a_ledger_dead_letters_are_errors(plan: Plan, tmp_path: Path, builder: str) -> None:
    with pytest.raises(SquallError, match=r"malformed: .*a\.ntt:2: `broken` is no time") as raised:
        run(plan, builder, [open_source(written(tmp_path, "a.ntt"))], None)
    assert raised.value.hint == "give a `ledger` that keeps dead letters"


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_the_driver_reads_goes_to_the_run(plan: Plan, tmp_path: Path, builder: str) -> None:
    """The driver reads a document, because it cannot be split."""
    (tmp_path / "a.trig").write_text("<urn:a> <urn:p> <urn:b> . <urn:c> <urn:p> ")
    all = DeadLetterFile()
    assert run(plan, builder, [open_source(str(tmp_path / "a.trig"))], all) == 1
    assert kept(all) == BROKEN


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_comes_too_late_does(plan: Plan, tmp_path: Path, builder: str) -> None:
    (tmp_path / "a.ntt").write_text("".join(f"{time} <urn:{time}> <urn:p> <urn:o> .\n" for time in (5, 9, 7, 1, 20)))
    all = DeadLetterFile()
    assert run(plan, builder, [open_source(str(tmp_path / "a.ntt"), lateness=3)], all) == 4
    assert kept(all) == {"late": 1}


def test_static_data_need_one(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("broken\n<urn:a> <urn:p> <urn:b> .\n")
    with pytest.raises(SquallError, match=r"malformed: .*a\.nt:1"):
        list(open_static(str(tmp_path / "a.nt")))
    ledger = DeadLetterFile()
    assert len(list(open_static(str(tmp_path / "a.nt"), ledger))) == 1
    assert kept(ledger) == BROKEN


class Empty(DeadLetterFile):
    """A ledger that is false as long as it has nothing, as a list is."""

    def __bool__(self) -> bool:
        return bool(self.counts)


def test_one_that_has_nothing_yet_is_one(tmp_path: Path) -> None:
    ledger = Empty()
    assert len(list(open_source(written(tmp_path, "a.ntt"), ledger).batches())) >= 1
    assert kept(ledger) == BROKEN


def test_a_forwarding_ledger_is_not_the_one_that_records() -> None:
    run, own = DeadLetterFile(), DeadLetterFile()

    class Given:
        ledger = DeferredLedger(DeferredLedger(own))

    assert ledger_of(Given(), run) is own
    assert ledger_of(object(), run) is run
    assert ledger_of(None, None) is None


def test_the_ledger_of_one_run_is_not_that_of_the_next(plan: Plan, tmp_path: Path) -> None:
    sources = Sources([open_source(written(tmp_path, "a.ntt"))])
    sources.set_ledger(DeadLetterFile())
    with pytest.raises(SquallError, match="malformed"):
        list(squall.build(plan).run(sources))
