"""`squall.beam` and `squall.spark`: what users need of the engines in pipelines and jobs of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import squall

ENGINES = {"beam": ("apache_beam", "beam"), "spark": ("pyspark", "spark")}
"""The module that each needs, and its extra."""


def run(program: str) -> str:
    """Runs a program in a fresh interpreter, and returns what it prints."""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_importing_squall_imports_no_engine() -> None:
    program = (
        "import sys, squall; print(*{name.partition('.')[0] for name in sys.modules} & {'apache_beam', 'pyspark'})"
    )
    assert run(program).strip() == ""


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed_is_an_error_that_names_the_extra(name: str) -> None:
    module, extra = ENGINES[name]
    program = f"""
import sys
sys.modules[{module!r}] = None
import squall
for _ in range(2):
    try:
        squall.{name}
    except squall.SquallError as error:
        print(error)
"""
    text = run(program)
    assert text.count(f"needs `{module}`, which is not installed") == 2
    assert f"squall[{extra}]" in text


@pytest.mark.parametrize("name", ["beam", "spark"])
def test_names_of_the_engines(name: str) -> None:
    pytest.importorskip(ENGINES[name][0])
    module = getattr(squall, name)
    assert module.__name__ == f"squall.{name}"
    assert all(callable(getattr(module, member)) for member in module.__all__)


def test_squall_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="module `squall` has no attribute `flink`"):
        _ = squall.flink  # type: ignore[attr-defined]
