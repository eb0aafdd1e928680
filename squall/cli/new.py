"""The command ``squall new``: a starting project, with a program, a small stream, and a test that passes.

The programs and their cases are files in ``projects``, in a folder for each language.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click
import cloup

from squall.cli.options import Command
from squall.errors import UsageError

_PROJECTS = files("squall.cli") / "projects"
_LANGUAGES = sorted(folder.name for folder in _PROJECTS.iterdir())
_WORDS = {
    "ontology": "ontology derives",
    "patterns": "patterns match",
    "queries": "queries answer",
    "rules": "rules derive",
}
"""What programs do, by the names of their files."""
_STREAM = "http://example.org/readings"
"""The stream that queries name."""

_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_READINGS = "".join(
    f'{time} <http://example.org/{room}> <http://example.org/degrees> "{degrees}"^^<{_INTEGER}> .\n'
    for time, room, degrees in ((1000, "hall", 21), (2000, "attic", 34), (3000, "hall", 31))
)

_TEST = '''"""Holds what the {words} against the cases in {stem}.case."""

from pathlib import Path

import pytest
from squall.testing import assert_outputs, cases

CASES = cases.load(Path(__file__).with_name("{stem}.case"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_{stem}(case: cases.Case) -> None:
    for language, program in case.programs:
        assert_outputs(program, case.events, case.expected, case.static, lexer=language, output=case.output)
'''

_README = """# {name}

    {run:60} # what follows, and when
    {check:60} # what may be wrong with the {stem}
    {explain:60} # their plan
    {test:60} # needs pip install 'squall[test]'

| file | what it is |
| --- | --- |
| `{program}` | the {stem} |
| `readings.ntt` | a small stream: on each line a time (ms) and a statement |
| `tests/{stem}.case` | events, and the outputs that they must give |
| `tests/test_{stem}.py` | the test that runs these cases |
"""


def _files(language: str, name: str) -> dict[str, str]:
    """Returns the texts of the files of a project in a language, with a name, by their paths."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in (_PROJECTS / language).iterdir()}
    (case,) = (file for file in texts if file.endswith(".case"))
    (program,) = texts.keys() - {case}
    stem = Path(program).stem
    source = f"{_STREAM}=readings.ntt" if "@:readings" in texts[case] else "readings.ntt"
    commands = {
        "run": f"squall run {program} --source {source} --timed",
        "check": f"squall check {program}",
        "explain": f"squall explain {program}",
        "test": "pytest",
    }
    return {
        "README.md": _README.format(name=name, program=program, stem=stem, **commands),
        program: texts[program],
        "readings.ntt": _READINGS,
        f"tests/{case}": texts[case],
        f"tests/test_{stem}.py": _TEST.format(stem=stem, words=_WORDS[stem]),
    }


@cloup.command(cls=Command)
@cloup.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@cloup.option(
    "--language", type=click.Choice(_LANGUAGES), default="jena", show_default=True,
    help="The language of the program.",
)  # fmt: skip
def new(folder: Path, language: str) -> None:
    """Write a starting project into a new folder NAME: a program, a small stream, and a test of the program.

    \b
    Example:
      squall new alarm
      cd alarm
      squall run rules.jena --source readings.ntt --timed
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"`{folder}` exists already", hint="name a folder that is new, or empty")
        for place, text in _files(language, folder.resolve().name).items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            click.echo(path)
    except OSError as error:
        raise UsageError(f"`{folder}` cannot be written: {error.strerror}") from error
