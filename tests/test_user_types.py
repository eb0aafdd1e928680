"""The Python examples of the pages are checked in a user's project, by `mypy --strict` and pyright."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import PAGES, ROOT, blocks

pytestmark = pytest.mark.more


def module_of(page: Path) -> str | None:
    """Returns the Python blocks of a page as one module, each at its line; None if it has none."""
    code = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python" and not block.rest:
            code += "\n" * (block.line - 1 - code.count("\n")) + block.text
    return code or None


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes a module for each page that has examples in Python into a folder."""
    folder = tmp_path_factory.mktemp("project")
    for page in PAGES:
        code = module_of(page)
        if code is not None:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


def test_the_examples_pass_mypy(project: Path) -> None:
    modules = sorted(path.name for path in project.glob("*.py"))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    command.append("--untyped-calls-exclude=apache_beam")
    process = subprocess.run(
        [*command, f"--cache-dir={project / '.cache'}", *modules],
        cwd=project,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_examples_pass_pyright(project: Path) -> None:
    pytest.importorskip("basedpyright", reason="pyright (basedpyright) is not installed")
    settings = {
        "include": ["."],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--level", "error", "--outputjson"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(process.stdout)
    errors = [
        f"{Path(entry['file']).name}:{entry['range']['start']['line'] + 1}: {entry['message']}"
        for entry in report["generalDiagnostics"]
        if Path(entry["file"]).parent == project.resolve()
    ]
    assert not errors, "\n".join(errors)
