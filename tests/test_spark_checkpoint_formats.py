"""The format of checkpoints on Spark: a run resumes from a stored one with the outputs of a run without interruption.

`tests/data/checkpoints/spark/format-N.zip` has a checkpoint of the present format, written after `first.ntt`, and its
sink. `expected.ndjson` has the outputs of one run over both files.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from squall.builders.spark.store import FORMAT
from tests.conftest import Squall

DATA = Path(__file__).parent / "data" / "checkpoints" / "spark"

pytestmark = [pytest.mark.spark, pytest.mark.more]


def unpack(number: int, folder: Path) -> None:
    """Unpacks a checkpoint; Spark's log of its source has the path of the folder in which it was written."""
    with zipfile.ZipFile(DATA / f"format-{number}.zip") as archive:
        archive.extractall(folder)
    for path in (folder / "checkpoint" / "spark" / "sources").rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace("@ROOT@", str(folder)))
    (folder / "in").mkdir()
    (folder / "in" / "1.ntt").write_text((DATA / "first.ntt").read_text())
    (folder / "in" / "2.ntt").write_text((DATA / "rest.ntt").read_text())


def resume(squall: Squall) -> tuple[int, str, str]:
    programs = map(str, sorted((DATA / "program").iterdir()))
    return squall(
        "run", *programs, "--builder", "spark", "--source", "http://example.org/readings=in", "--window", "RANGE 2s",
        "--sink", "out.ndjson", "--checkpoint", "checkpoint", "--conf", "spark.squall.maxSingleTaskRows=0",
    )  # fmt: skip


def test_a_run_resumes_from_a_stored_checkpoint(
    squall: Squall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unpack(FORMAT, tmp_path)
    before = Path("out.ndjson").read_text().splitlines()
    code, _, err = resume(squall)
    assert code == 0, err
    outputs = Path("out.ndjson").read_text().splitlines()
    expected = (DATA / "expected.ndjson").read_text().splitlines()
    assert 0 < len(before) < len(expected)
    assert outputs[: len(before)] == before
    assert sorted(outputs) == sorted(expected)
    assert json.loads(Path("checkpoint/meta.json").read_text())["format"] == FORMAT


@pytest.mark.parametrize(("number", "reason"), [(FORMAT + 1, "a newer version"), (FORMAT - 1, "an older version")])
def test_an_unknown_format_is_refused(
    number: int, reason: str, squall: Squall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unpack(FORMAT, tmp_path)
    meta = Path("checkpoint/meta.json")
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"format": number}))
    code, _, err = resume(squall)
    assert code == 2
    assert f"has the format {number}: {reason} of squall wrote it" in err
