"""``--import FILE.py``: functions and aggregates of one's own on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from squall.errors import UsageError
from squall.functions import python_files
from tests.conftest import Squall

E = "http://example.org/"
CODE = f"""from __future__ import annotations

import statistics
from dataclasses import dataclass

from squall import functions
from squall.rdf import Term, literal, parts


@dataclass
class Scale:
    factor: float
    zero: float

    def of(self, value: float) -> float:
        return value * self.factor + self.zero


FAHRENHEIT = Scale(1.8, 32)


def number(term: Term) -> float:
    return float(parts(term).lexical)


@functions.function("{E}own/fahrenheit")
def fahrenheit(celsius: Term) -> Term:
    return literal(f"{{FAHRENHEIT.of(number(celsius)):g}}")


@functions.aggregate("{E}own/median")
def median(values: list[Term]) -> Term | None:
    return literal(f"{{statistics.median(map(number, values)):g}}") if values else None
"""
PROLOGUE = f"PREFIX : <{E}> PREFIX own: <{E}own/> "
QUERY = PROLOGUE + "SELECT (own:median(?f) AS ?middle) { ?x :celsius ?c BIND (own:fahrenheit(?c) AS ?f) } GROUP BY ?x"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_registry: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(CODE)
    Path("q.rq").write_text(QUERY)
    Path("r.jena").write_text(f"@prefix : <{E}>.\n[r: (?x :celsius ?c) fahrenheit(?c ?f) -> (?x :fahrenheit ?f)]")
    Path("u.ru").write_text(PROLOGUE + "INSERT { ?x :f ?f } WHERE { ?x :celsius ?c BIND (own:fahrenheit(?c) AS ?f) }")
    Path("in.nt").write_text("".join(f'<{E}hall> <{E}celsius> "{celsius}" .\n' for celsius in (19, 20, 27)))


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
    ],
)
def test_a_run_has_the_functions_of_a_file(builder: str, squall: Squall) -> None:
    """Workers have them as well, although they cannot import the file."""
    arguments = "--import", "own.py", "--source", "in.nt", "--builder", builder
    code, out, _ = squall("run", "q.rq", *arguments, "--format", "srcsv")
    assert (code, out.split()) == (0, ["middle", "68"])
    code, out, _ = squall("run", "r.jena", *arguments)
    assert code == 0
    assert sorted(line.split('"')[1] for line in out.splitlines()) == ["66.2", "68", "80.6"]
    assert not [name for name in sys.modules if "own.py" in name]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("check", "q.rq", "r.jena"), ""),
        (("explain", "q.rq"), "median($"),
        (("update", "u.ru", "--data", "in.nt"), f'<{E}hall> <{E}f> "66.2"'),
        (("specialise", "in.nt", "--rules", "r.jena"), "fahrenheit"),
    ],
)
def test_each_command_that_compiles_has_the_option(arguments: tuple[str, ...], expected: str, squall: Squall) -> None:
    code, out, err = squall(*arguments, "--import", "own.py")
    assert code == 0, err
    assert expected in out


def test_several_files_and_none(squall: Squall) -> None:
    function, aggregate = CODE.split("@functions.aggregate")
    Path("own.py").write_text(function)
    Path("other.py").write_text(CODE.partition("@functions.function")[0] + "@functions.aggregate" + aggregate)
    assert squall("run", "q.rq", "--import", "own.py", "--import", "other.py", "--source", "in.nt")[0] == 0


def test_a_function_that_is_missing_names_the_option(squall: Squall) -> None:
    code, _, err = squall("run", "q.rq", "--source", "in.nt")
    assert code == 2
    assert "there is no function" in err
    assert "`--import FILE.py`" in err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (CODE.replace("1.8", "1.8 * unknown"), "own.py:19:26: usage error: `--import own.py` fails: NameError: "),
        ("def f(:\n", "own.py:1:7: usage error: `--import own.py` fails: invalid syntax\n1 | def f(:\n  |       ^"),
        ("\nimport not_there\n", "own.py:2:1: usage error: `--import own.py` fails: ModuleNotFoundError: "),
        (
            "from squall import functions\n@functions.function('x', vectorised=True)\ndef f() -> None: ...\n",
            "own.py:2:2: usage error: `--import own.py` fails: the function <urn:x-squall:own:x> cannot be vectorised",
        ),
        ("import json\njson.loads('')\n", "own.py:2:1: usage error: `--import own.py` fails: JSONDecodeError: "),
        ("# coding: klingon\n", "`--import own.py` cannot be read: unknown encoding"),
        (b"x = '\xff'\n", "`--import own.py` cannot be read: "),
        (b"x = '\0'\n", "`--import own.py` fails: "),
        (None, "`--import own.py` cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_file_is_reported_with_its_place(
    code: str | bytes | None, message: str, squall: Squall
) -> None:
    Path("own.py").unlink()
    if code is not None:
        Path("own.py").write_bytes(code.encode() if isinstance(code, str) else code)
    exit_code, _, err = squall("run", "q.rq", "--import", "own.py", "--source", "in.nt")
    assert exit_code == 2
    assert message in err
    assert "Traceback" not in err


def test_an_import_that_fails_leaves_no_module() -> None:
    Path("own.py").write_text("1 / 0")
    before = set(sys.modules)
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        python_files.load(Path("own.py"))
    assert set(sys.modules) == before
