"""Checkpoints of earlier formats: a run resumes from them with exactly the outputs of a run without interruption.

`tests/data/checkpoints/local/format-N` has a checkpoint of each format that can be read, as the version of that time
wrote it, and its dead letters. The run had read 40 of the statements of `readings.ntt`. `expected.txt` has all outputs.
`complete-instants` is of `solutions.rq`, with the window `RANGE 2s STEP 1s`, whose outputs `solutions.txt` has.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import squall
from squall.builders.local import checkpoint, format_5
from squall.builders.local.migration import KINDS, same_state_kinds
from squall.builders.runtime.operators.distinct import DeadlineOperator, TimeDependentOperator
from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.output import AppendOnlySolutionOutput, OutputOperator
from squall.builders.runtime.operators.state import Stateful
from squall.contracts import Interval, Options
from squall.errors import BuilderError
from squall.plan import operators as ops
from squall.plan.fingerprint import ID_PREFIXES, STABLE_NAMES, stable_id
from squall.streams import DeadLetterFile, Sources, open_source

DATA = Path(__file__).parent / "data" / "checkpoints"
FORMATS = ["format-5", "format-6"]
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


@pytest.fixture(params=FORMATS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a copy of a checkpoint beside its input the working directory."""
    stored = DATA / "local" / request.param
    (tmp_path / "checkpoint").mkdir()
    shutil.copy(stored / "checkpoint.jsonl", tmp_path / "checkpoint")
    shutil.copy(stored / "dead-letters.jsonl", tmp_path)
    shutil.copy(DATA / "readings.ntt", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resume(sink: CountedSink, programs: Sequence[Path] = PROGRAMS, window: str = "RANGE 2s") -> None:
    """Resumes the run to its end."""
    plan = squall.plan(squall.compile(*programs, window=window))
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


def stored_header(folder: Path) -> dict[str, Any]:
    with (folder / "checkpoint" / checkpoint.CHECKPOINT_FILE).open(encoding="utf-8") as file:
        return dict(json.loads(file.readline()))


@pytest.mark.parametrize("folder", FORMATS, indirect=True)
def test_a_run_resumes_from_each_format(folder: Path) -> None:
    sink = CountedSink()
    resume(sink)
    expected = (DATA / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert 0 < sink.count < len(expected)
    assert sorted(sink.outputs) == sorted(expected[sink.count :])
    letters = [json.loads(line) for line in Path("dead-letters.jsonl").read_text(encoding="utf-8").splitlines()]
    broken = [line for line in Path("readings.ntt").read_text(encoding="utf-8").splitlines() if "broken" in line]
    assert [letter["text"] for letter in letters if letter["cause"] == "malformed"] == broken
    assert stored_header(folder)["format"] == checkpoint.FORMAT


@pytest.mark.parametrize("folder", ["complete-instants"], indirect=True)
@pytest.mark.usefixtures("folder")
def test_a_query_resumes_that_had_waited_for_complete_instants() -> None:
    """Its last instant was buffered, and solutions of later steps of the window were waiting. Such a query outputs at
    once now."""
    sink = CountedSink()
    resume(sink, [DATA / "solutions.rq"], "RANGE 2s STEP 1s")
    expected = (DATA / "solutions.txt").read_text(encoding="utf-8").splitlines()
    assert 0 < sink.count < len(expected)
    assert sorted(sink.outputs) == sorted(expected[sink.count :])


@pytest.mark.parametrize("folder", ["format-5"], indirect=True)
def test_a_killed_migration_is_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays until the first checkpoint of the new format is complete."""
    content = (folder / "checkpoint" / checkpoint.CHECKPOINT_FILE).read_bytes()

    class Killed(Exception):
        pass

    def fail(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "_append", fail)
        with pytest.raises(Killed):
            resume(CountedSink())
    assert (folder / "checkpoint" / checkpoint.CHECKPOINT_FILE).read_bytes() == content
    sink = CountedSink()
    resume(sink)
    expected = (DATA / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(sink.outputs) == sorted(expected[sink.count :])


@pytest.mark.parametrize("folder", ["format-6"], indirect=True)
@pytest.mark.parametrize(
    ("number", "reason"), [(checkpoint.FORMAT + 1, "a newer version of squall wrote it"), (4, "an older version")]
)
def test_an_unknown_format_is_refused(folder: Path, number: int, reason: str) -> None:
    path = folder / "checkpoint" / checkpoint.CHECKPOINT_FILE
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('{"format":6,', f'{{"format":{number},'), encoding="utf-8")
    with pytest.raises(BuilderError, match=f"has the format {number}: {reason}") as caught:
        resume(CountedSink())
    assert caught.value.hint is not None
    assert "resume with the version that wrote it" in caught.value.hint


@pytest.mark.parametrize("folder", ["format-5"], indirect=True)
def test_the_states_of_format_5_get_the_names_of_this_version(folder: Path) -> None:
    converted = format_5.converted_header(stored_header(folder))
    resume(CountedSink())
    stored = stored_header(folder)
    assert converted["identity"] == stored["identity"]
    assert same_state_kinds(converted["state_kinds"], stored["state_kinds"])


def test_names_of_format_5() -> None:
    assert format_5.converted_key("read3") == "scan3"
    assert format_5.converted_key("deliver-0b4d4ab2b8/instants") == "sink-0b4d4ab2b8/report-times"
    assert format_5.converted_key("distinct-0b4d4ab2b8") == "distinct-0b4d4ab2b8"
    assert format_5.converted_key("/working") == "/inserted"
    star = "Star Shape(widths=(2, 1), on=((0,), (0,)), keep=(0, 1))"
    assert format_5.converted_state_kind(star) == "multiway-join ((2, 1), ((0,), (0,)), (0, 1))"
    assert format_5.converted_state_kind("end GrowingDeliver Deliver() forgets") == (
        "sink append-only-output Deliver() without state"
    )


def test_every_operator_has_a_stable_prefix() -> None:
    """A node's id is in checkpoints, so it must not depend on the name of a class."""
    kinds = set(ops.Operator.__args__)
    assert set(ID_PREFIXES) == kinds
    assert len(set(ID_PREFIXES.values())) == len(kinds)
    previous = {name: prefix for prefix, name in format_5.ID_PREFIXES.items()}
    for kind, prefix in ID_PREFIXES.items():
        assert stable_id(f"{prefix}-0123456789") == f"{previous.get(prefix, prefix)}-0123456789"
        assert stable_id(f"{prefix}12") == f"{STABLE_NAMES.get(kind, kind.__name__).lower()}12"


def test_every_operator_state_has_a_kind() -> None:
    """Kinds are in checkpoints, and not the names of classes."""

    def leaves(kind: type[Stateful]) -> set[type[Stateful]]:
        return {kind}.union(*(leaves(sub) for sub in kind.__subclasses__() if sub.__module__.startswith("squall.")))

    assert set(KINDS) == leaves(Stateful) - {Stateful, EventTimeOperator}
    alike = {DeadlineOperator: TimeDependentOperator, AppendOnlySolutionOutput: OutputOperator}
    """Operators whose states hold the same as those of others."""
    other_kinds = {operator: kind for operator, kind in KINDS.items() if operator not in alike}
    assert all(KINDS[operator] == KINDS[other] for operator, other in alike.items())
    assert len(set(other_kinds.values())) == len(other_kinds)
    assert set(format_5.STATE_KINDS.values()) == set(KINDS.values())
