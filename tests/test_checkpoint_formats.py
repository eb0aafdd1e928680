"""The format of checkpoints: a run resumes from a stored one with exactly the outputs of a run without interruption.

`tests/data/checkpoints/local/format-N` has a checkpoint of the present format, and its dead letters. The run had read
40 of the statements of `readings.ntt`. `expected.txt` has all outputs.
"""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.builders.local import checkpoint
from squall.builders.runtime.operators.delta_index import StoresInputs
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.state import Stateful, TimedOperator
from squall.contracts import Interval, Options
from squall.errors import BuilderError
from squall.plan import operators as ops
from squall.plan.fingerprint import ID_PREFIXES, STABLE_NAMES, stable_id
from squall.streams import DeadLetterFile, Sources, open_source

DATA = Path(__file__).parent / "data" / "checkpoints"
PROGRAMS = sorted((DATA / "program").iterdir())


class CountedSink:
    """A sink whose outputs before the checkpoint are not there any more, only their number."""

    uri = "collected"

    def __init__(self) -> None:
        self.count = 0
        self.outputs: list[str] = []

    def snapshot(self, last: bool = False) -> Any:
        return self.count + len(self.outputs)

    def restore(self, state: Any) -> None:
        self.count = state


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a copy of a checkpoint beside its input the working directory."""
    stored = DATA / "local" / f"format-{checkpoint.FORMAT}"
    (tmp_path / "checkpoint").mkdir()
    shutil.copy(stored / "checkpoint.jsonl", tmp_path / "checkpoint")
    shutil.copy(stored / "dead-letters.jsonl", tmp_path)
    shutil.copy(DATA / "readings.ntt", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resume(sink: CountedSink) -> None:
    """Resumes the run to its end."""
    plan = squall.plan(squall.compile(*PROGRAMS, window="RANGE 2s"))
    with closing(DeadLetterFile(Path("dead-letters.jsonl"), append=True)) as ledger:
        options = Options(
            checkpoint=Path("checkpoint"),
            sink=sink,
            ledger=ledger,
            checkpoint_interval=Interval(statements=10),
        )
        source = open_source("http://example.org/readings=readings.ntt?lateness=300ms", ledger)
        for output in squall.build(plan, options=options).run(Sources([source])):
            sink.outputs.append(f"{output.time}\t{output.rule}\t{output.fact}")


@pytest.mark.usefixtures("folder")
def test_a_run_resumes_from_a_stored_checkpoint() -> None:
    sink = CountedSink()
    resume(sink)
    expected = (DATA / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert 0 < sink.count < len(expected)
    assert sorted(sink.outputs) == sorted(expected[sink.count :])
    letters = [json.loads(line) for line in Path("dead-letters.jsonl").read_text(encoding="utf-8").splitlines()]
    broken = [line for line in Path("readings.ntt").read_text(encoding="utf-8").splitlines() if "broken" in line]
    assert [letter["text"] for letter in letters if letter["cause"] == "malformed"] == broken


@pytest.mark.parametrize(
    ("number", "reason"),
    [(checkpoint.FORMAT + 1, "a newer version of squall wrote it"), (checkpoint.FORMAT - 1, "an older version")],
)
def test_an_unknown_format_is_refused(folder: Path, number: int, reason: str) -> None:
    path = folder / "checkpoint" / checkpoint.CHECKPOINT_FILE
    text = path.read_text(encoding="utf-8")
    present = f'{{"format":{checkpoint.FORMAT},'
    assert text.startswith(present)
    path.write_text(text.replace(present, f'{{"format":{number},', 1), encoding="utf-8")
    with pytest.raises(BuilderError, match=f"has the format {number}: {reason}") as caught:
        resume(CountedSink())
    assert caught.value.hint is not None
    assert "resume with the version that wrote it" in caught.value.hint


def test_every_operator_has_a_stable_prefix() -> None:
    """A node's id is in checkpoints, so it must not depend on the name of a class."""
    kinds = set(ops.Operator.__args__)
    assert set(ID_PREFIXES) == kinds
    assert len(set(ID_PREFIXES.values())) == len(kinds)
    for kind, prefix in ID_PREFIXES.items():
        for number in ("-0123456789", "12"):
            assert stable_id(f"{prefix}{number}") == f"{STABLE_NAMES.get(kind, kind.__name__).lower()}{number}"


def test_the_kinds_of_operator_states_never_change() -> None:
    """Kinds are in checkpoints, and not the names of classes. Only states that hold the same have the same kind."""

    def leaves(kind: type[Stateful]) -> set[type[Stateful]]:
        return {kind}.union(*(leaves(sub) for sub in kind.__subclasses__() if sub.__module__.startswith("squall.")))

    abstract = {Stateful, StoresInputs, TimedOperator, EventTimeOperator}
    assert {state.__name__: state.kind for state in leaves(Stateful) - abstract} == {
        "ScanOperator": "scan", "JoinOperator": "join", "AntiJoinOperator": "anti-join",
        "LeftJoinOperator": "left-join", "MultiwayJoinOperator": "multiway-join",
        "AppendOnlyDistinct": "append-only-distinct", "RetractableDistinct": "retractable-distinct",
        "DRedDistinct": "dred-distinct", "TimeDependentOperator": "time-dependent",
        "DeadlineOperator": "time-dependent",
        "TransitiveClosureOperator": "transitive-closure", "GroupOperator": "group", "SliceOperator": "slice",
        "SequenceJoinOperator": "sequence-join",
        "IterationOperator": "iteration", "ConsumeOperator": "consume", "GateOperator": "gate",
        "UpdateOperator": "update", "InsertedFacts": "inserted-facts", "Links": "links",
        "TemporalOperator": "temporal", "DilateOperator": "temporal", "ErodeOperator": "temporal",
        "AtOperator": "temporal", "ScheduleOperator": "temporal",
        "DerivedStreamOperator": "derived-stream",
        "OccurrenceStreamOperator": "derived-stream",
        "OutputOperator": "output", "AppendOnlySolutionOutput": "output", "AppendOnlyOutput": "append-only-output",
        "DiffedState": "snapshot",
    }  # fmt: skip
