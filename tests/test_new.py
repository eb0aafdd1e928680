"""The command `squall new` writes a working project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import squall as package
from squall import plugins
from squall.testing import assert_outputs, cases
from tests.conftest import Squall


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PROGRAMS = {
    "cqels": ("queries.cqels", "MAX", "MIN"),
    "csparql": ("queries.csparql", "MAX", "MIN"),
    "ctsparql": ("patterns.ctsparql", "1m", "1s"),
    "epsparql": ("patterns.epsparql", "PT1M", "PT1S"),
    "hfc": ("rules.hfc", "30", "40"),
    "jena": ("rules.jena", "30", "40"),
    "lars": ("rules.lars", "30", "40"),
    "owl": ("ontology.ofn", ":Place", ":Area"),
    "rif": ("rules.rif", "30", "40"),
    "rifps": ("rules.rifps", "30", "40"),
    "rspql": ("queries.rspql", "MAX", "MIN"),
    "sparql": ("queries.sparql", "30", "40"),
    "sparqlstream": ("queries.sparqlstream", "MAX", "MIN"),
    "strider": ("queries.strider", "MAX", "MIN"),
}
"""The program of each language, and a change by which its cases fail."""


@pytest.mark.more
def test_the_commands_of_the_readme_work(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = squall("new", "some/alarm")
    assert code == 0
    written = [str(path) for path in Path("some").rglob("*") if path.is_file()]
    assert sorted(out.splitlines()) == sorted(written)
    monkeypatch.chdir("some/alarm")
    readme = Path("README.md").read_text()
    assert readme.startswith("# alarm\n")
    assert {row.split("`")[1] for row in readme.splitlines() if row.startswith("| `")} == {
        path.split("alarm/")[1] for path in written if not path.endswith("README.md")
    }
    assert len(outputs(squall)) == 3
    process = outcome()
    assert process.returncode == 0, process.stdout
    assert "2 passed" in process.stdout
    text = Path("rules.jena").read_text()
    Path("rules.jena").write_text(text.replace("30", "40"))
    assert outcome().returncode == 1


def test_there_is_a_project_in_each_language() -> None:
    assert PROGRAMS.keys() == set(plugins.names(plugins.LEXERS))


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_project_holds_what_its_program_does(squall: Squall, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    program, part, other_part = PROGRAMS[language]
    assert squall("new", "alarm", "--language", language)[0] == 0
    monkeypatch.chdir("alarm")
    assert outputs(squall)
    hold_cases(program)
    text = Path(program).read_text()
    assert part in text
    Path(program).write_text(text.replace(part, other_part))
    with pytest.raises(AssertionError):
        hold_cases(program)


def outputs(squall: Squall) -> list[str]:
    """Executes the commands of the project's README, but for the tests, and returns the outputs of the run."""
    readme = Path("README.md").read_text()
    commands = [line.partition("#")[0].split() for line in readme.splitlines() if line.startswith("    ")]
    assert [command[:2] for command in commands] == [
        ["squall", "run"],
        ["squall", "check"],
        ["squall", "explain"],
        ["pytest"],
    ]
    (code, run, notes), check, explain = (squall(*command[1:]) for command in commands[:-1])
    assert code == check[0] == explain[0] == 0, (notes, check, explain)
    assert "warning" not in notes
    assert "warning" not in "".join(check[1:])
    return run.splitlines()


def hold_cases(program: str) -> None:
    """Holds the project's program against its cases, on the iterator."""
    for case in cases.load(Path("tests", program).with_suffix(".case")):
        for language, text in case.programs:
            assert_outputs(text, case.events, case.expected, case.static, lexer=language, output=case.output)


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
