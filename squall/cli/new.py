"""The command ``squall new``: a starting project, with a program, a small stream, and a test that passes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
import cloup

from squall.cli.options import Command
from squall.errors import UsageError

_RULES = """# Which rooms are too hot, and which are calm.

@prefix : <http://example.org/> .

[hot:  (?room :degrees ?d) greaterThan(?d, 30) -> (?room :is :Hot)]
[calm: (?room :degrees ?d) noValue(?room :is :Hot) -> (?room :is :Calm)]
"""

_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_READINGS = "".join(
    f'{time} <http://example.org/{room}> <http://example.org/degrees> "{degrees}"^^<{_INTEGER}> .\n'
    for time, room, degrees in ((1000, "hall", 21), (2000, "attic", 34), (3000, "hall", 31))
)

_CASE = """# a room is calm until it is hot
--- jena ../rules.jena
--- events
1000 :hall :degrees 21
3000 :hall :degrees 31
--- expect
1000 :hall :is :Calm
3000 :hall :is :Hot

# what was hot does not become calm
--- jena ../rules.jena
--- events
1000 :attic :degrees 34
2000 :attic :degrees 20
--- expect
1000 :attic :is :Hot
"""

_QUERIES = """# The highest reading of each room in the last ten seconds, and which rooms were hot: every five seconds.

STREAMING { WINDOW [10 Seconds] SLIDE [5 Seconds] }

REGISTER { QUERYID [highest] SPARQL [
  PREFIX : <http://example.org/>
  CONSTRUCT { ?room :highest ?highest }
  WHERE { SELECT ?room (MAX(?d) AS ?highest) WHERE { ?room :degrees ?d } GROUP BY ?room }
] }

REGISTER { QUERYID [hot] SPARQL [
  PREFIX : <http://example.org/>
  CONSTRUCT { ?room :is :Hot }
  WHERE { ?room :degrees ?d FILTER(?d > 30) }
] }
"""

_QUERIES_CASE = """# a room is hot in each window that holds a reading above 30 degrees
--- strider ../queries.strider
--- output rstream
--- events
1000 :hall :degrees 21
6000 :hall :degrees 31
16000 :hall :degrees 20
--- expect
5000 :hall :highest 21
10000 :hall :highest 31
10000 :hall :is :Hot
15000 :hall :highest 31
15000 :hall :is :Hot
20000 :hall :highest 20
25000 :hall :highest 20
"""

_TEST = '''"""Holds what the {what} against the cases in {stem}.case."""

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
    {test:60} # needs pip install 'squall[dev]'

| file | what it is |
| --- | --- |
| `{program}` | the {stem} |
| `readings.ntt` | a small stream: on each line a time (ms) and a statement |
| `tests/{stem}.case` | events, and the outputs that they must give |
| `tests/test_{stem}.py` | the test that runs these cases |
"""


class _Template(NamedTuple):
    """What is particular to the language of a project.

    Attributes:
        program: The name of the program's file.
        text: The program.
        case: Its case.
        what: What the program does, in words.
    """

    program: str
    text: str
    case: str
    what: str

    def files(self, name: str) -> dict[str, str]:
        """Returns the texts of the files of a project with a name, by their paths."""
        stem = Path(self.program).stem
        commands = {
            "run": f"squall run {self.program} --source readings.ntt --timed",
            "check": f"squall check {self.program}",
            "explain": f"squall explain {self.program}",
            "test": "pytest",
        }
        return {
            "README.md": _README.format(name=name, program=self.program, stem=stem, **commands),
            self.program: self.text,
            "readings.ntt": _READINGS,
            f"tests/{stem}.case": self.case,
            f"tests/test_{stem}.py": _TEST.format(stem=stem, what=self.what),
        }


_TEMPLATES = {
    "jena": _Template("rules.jena", _RULES, _CASE, "rules derive"),
    "strider": _Template("queries.strider", _QUERIES, _QUERIES_CASE, "queries answer"),
}


@cloup.command(cls=Command)
@cloup.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@cloup.option(
    "--language", type=click.Choice(list(_TEMPLATES)), default="jena", show_default=True,
    help="The language of the program: rules, or continuous queries over windows.",
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
        for place, text in _TEMPLATES[language].files(folder.resolve().name).items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            click.echo(path)
    except OSError as error:
        raise UsageError(f"`{folder}` cannot be written: {error.strerror}") from error
