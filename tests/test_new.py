"""The command `squall new` writes a working project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import squall as package
from tests.conftest import Squall


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("language", "program", "outputs", "passed"),
    [
        ("jena", "rules.jena", 3, "2 passed"),
        pytest.param("strider", "queries.strider", 8, "1 passed", marks=pytest.mark.more),
    ],
)
def test_the_commands_of_the_readme_work(
    squall: Squall, monkeypatch: pytest.MonkeyPatch, language: str, program: str, outputs: int, passed: str
) -> None:
    code, out, _ = squall("new", "some/alarm", "--language", language)
    assert code == 0
    written = [str(path) for path in Path("some").rglob("*") if path.is_file()]
    assert sorted(out.splitlines()) == sorted(written)
    monkeypatch.chdir("some/alarm")
    readme = Path("README.md").read_text()
    assert readme.startswith("# alarm\n")
    assert {row.split("`")[1] for row in readme.splitlines() if row.startswith("| `")} == {
        path.split("alarm/")[1] for path in written if not path.endswith("README.md")
    }
    commands = [line.partition("#")[0].split() for line in readme.splitlines() if line.startswith("    ")]
    assert [command[0] for command in commands] == ["squall", "squall", "squall", "pytest"]
    for command in commands[:-1]:
        code, out, err = squall(*command[1:])
        assert code == 0, err
        assert command[1] != "run" or len(out.splitlines()) == outputs
        assert command[1] != "check" or "warning" not in out + err
    process = outcome()
    assert process.returncode == 0, process.stdout
    assert passed in process.stdout
    text = Path(program).read_text()
    Path(program).write_text(text.replace("30", "40"))
    assert outcome().returncode == 1


def outcome() -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parent.parent)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_empty_folder_will_do(squall: Squall) -> None:
    Path("alarm").mkdir()
    assert squall("new", "alarm")[0] == 0
    assert Path("alarm/rules.jena").is_file()


def test_existing_files_are_not_overwritten(squall: Squall) -> None:
    Path("alarm").mkdir()
    Path("alarm/rules.jena").write_text("mine")
    Path("file").touch()
    for name in ("alarm", "file"):
        code, out, err = squall("new", name)
        assert (code, out) == (2, "")
        assert f"`{name}` exists already" in err
    assert [path.name for path in Path("alarm").iterdir()] == ["rules.jena"]
    assert Path("alarm/rules.jena").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_reported(squall: Squall) -> None:
    Path("file").touch()
    code, _, err = squall("new", "file/alarm")
    assert code == 2
    assert "`file/alarm` cannot be written: Not a directory" in err
