"""Installs the example of a plug-in, and runs its language and its planner from the command line, and its own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "docs" / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Returns a folder with the plug-in's sources, and the environment of a Python in which it is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    # Building writes beside the sources.
    sources = shutil.copytree(PLUGIN, folder / "sources")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
    subprocess.run([*pip, "--no-deps", "--target", str(folder / "site"), str(sources)], check=True)
    return sources, {**os.environ, "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}"}


@pytest.mark.more
def test_its_language_and_planner_run_from_the_command_line(
    installed: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    _, environment = installed
    (tmp_path / "family.arrows").write_text("parent(X, Y), parent(Y, Z) => grandparent(X, Z)\n")
    (tmp_path / "family.nt").write_text(
        "<http://example.org/ann> <http://example.org/parent> <http://example.org/bob> .\n"
        "<http://example.org/bob> <http://example.org/parent> <http://example.org/cat> .\n"
    )
    arguments = ["build", "family.arrows", "--planner", "written", "--source", "family.nt"]
    command = [sys.executable, "-m", "squall", *arguments]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "<http://example.org/ann> <http://example.org/grandparent> <http://example.org/cat> .\n"


@pytest.mark.more
def test_squall_lists_it_with_where_it_comes_from(installed: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    _, environment = installed
    command = [sys.executable, "-m", "squall", "list"]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = [line for line in ran.stdout.splitlines() if "squall-example-plugin" in line]
    assert {name for name in ("arrows", "written") for line in lines if name in line} == {"arrows", "written"}


@pytest.mark.more
def test_its_own_tests_pass(installed: tuple[Path, dict[str, str]]) -> None:
    sources, environment = installed
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ran = subprocess.run(command, env=environment, cwd=sources, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
