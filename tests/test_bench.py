"""The benchmark's parts: data that never change, engines that agree, and a harness that measures what it says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import data
from tests.bench.child import derive, digest
from tests.bench.peers import PEERS
from tests.bench.watch import Failed, measure
from tests.bench.works import WORKS


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (lambda: data.sensors(1000), "8a38b32a1d40"),
        (data.platforms, "36643ec66403"),
        (lambda: data.university(1000), "99c0ebea6ede"),
        (data.hierarchy, "06c4b4db6faf"),
    ],
    ids=["sensors", "platforms", "university", "hierarchy"],
)
def test_data_are_the_same_everywhere(lines: Callable[[], Iterator[str]], expected: str) -> None:
    assert sha256("\n".join(lines()).encode()).hexdigest()[:12] == expected


def test_data_of_one_size_begin_those_of_a_larger_one() -> None:
    assert list(data.sensors(100)) == list(islice(data.sensors(1000), 100))
    assert len(list(data.university(1234))) == 1234


@pytest.mark.parametrize("work", WORKS)
def test_all_engines_agree(work: str, tmp_path: Path) -> None:
    WORKS[work].write(tmp_path, {"chain": 20, "tree": 100}.get(work, 400))
    files = WORKS[work].files(tmp_path)
    found = {run: digest(derive(run, WORKS[work], files)) for run in ("rete:iterator", "greedy:iterator", *PEERS)}
    first = found["rete:iterator"]
    assert int(first["outputs"]) > 0
    assert found == dict.fromkeys(found, first)


SPENDING = """
import json, time
print(json.dumps({"at": "start"}), flush=True)
held = bytearray(b"x") * 80_000_000
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
time.sleep(0.3)
print(json.dumps({"at": "end", "outputs": 7}), flush=True)
"""
IN_A_CHILD = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {SPENDING!r}]).returncode)"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="measures with Linux's /proc")
@pytest.mark.parametrize("code", [SPENDING, IN_A_CHILD], ids=["itself", "in a child"])
def test_a_run_is_measured(code: str, tmp_path: Path) -> None:
    measured = measure([sys.executable, "-c", code], tmp_path)
    assert measured.said == {"outputs": 7}
    assert 0.25 < measured.cpu < 1.5
    assert measured.wall >= 0.7
    assert measured.total > measured.wall
    assert 80e6 < measured.peak < 300e6


def test_a_failing_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="it is broken"):
        measure([sys.executable, "-c", "raise SystemExit('it is broken')"], tmp_path)
    with pytest.raises(Failed, match="exit code 0"):
        measure([sys.executable, "-c", ""], tmp_path)


def test_the_command_prints_and_keeps_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "figures.json"
    command = ["tree", "plans", "--size", "20", "--repeat", "1", "--peer", "pyoxigraph", "--json", str(kept)]
    assert bench.main(command) == 0
    rows = json.loads(kept.read_text())
    assert [row.get("run", row.get("planner")) for row in rows] == ["rete:iterator", "pyoxigraph", "greedy", "rete"]
    assert rows[0]["outputs"] == rows[1]["outputs"] > 0
    assert rows[1]["same"] is True
    assert rows[2]["nodes"] > rows[3]["nodes"]
    shown = capsys.readouterr().out
    assert "same answer" in shown
    assert "rete:iterator" in shown


def test_an_unknown_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bench.main(["tree", "--run", "rete:nothing"])
    assert caught.value.code == 2
    assert "no `nothing` among" in capsys.readouterr().err
