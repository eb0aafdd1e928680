"""The command ``squall new``: a starting project, with rules, a small stream, and a test that passes."""

from __future__ import annotations

from pathlib import Path

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

_TEST = '''"""Holds what the rules derive against the cases in rules.case."""

from pathlib import Path

import pytest
from squall.testing import assert_outputs, cases

CASES = cases.load(Path(__file__).with_name("rules.case"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_rules(case: cases.Case) -> None:
    for language, program in case.programs:
        assert_outputs(program, case.events, case.expected, case.static, lexer=language, output=case.output)
'''

_README = """# {name}

    squall run rules.jena --source readings.ntt --timed      # what follows, and when
    squall check rules.jena                                  # what may be wrong with the rules
    squall explain rules.jena                                # their plan
    pytest                                                   # needs pip install 'squall[dev]'

| file | what it is |
| --- | --- |
| `rules.jena` | the rules |
| `readings.ntt` | a small stream: on each line a time (ms) and a statement |
| `tests/rules.case` | events, and the outputs that they must give |
| `tests/test_rules.py` | the test that runs these cases |
"""

_FILES = {
    "README.md": _README,
    "rules.jena": _RULES,
    "readings.ntt": _READINGS,
    "tests/rules.case": _CASE,
    "tests/test_rules.py": _TEST,
}


@cloup.command(cls=Command)
@cloup.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
def new(folder: Path) -> None:
    """Write a starting project into a new folder NAME: rules, a small stream, and a test of the rules.

    \b
    Example:
      squall new alarm
      cd alarm
      squall run rules.jena --source readings.ntt --timed
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"`{folder}` exists already", hint="name a folder that is new, or empty")
        for place, text in _FILES.items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(name=folder.resolve().name) if text is _README else text, encoding="utf-8")
            click.echo(path)
    except OSError as error:
        raise UsageError(f"`{folder}` cannot be written: {error.strerror}") from error
