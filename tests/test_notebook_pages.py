"""The notebooks of the documentation run, by nbmake, and show what they show in the documentation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbmake", reason="`pip install nbmake` runs notebooks")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.more

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the texts that the cells of a notebook show, each with the number of its cell."""
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        for output in cell.get("outputs", ()):
            yield number, "".join(output.get("text", ()) or output.get("data", {}).get("text/plain", ()))


def executed(path: Path, folder: Path) -> tuple[Path, Any]:
    """Runs a copy of a notebook in a folder of its own, and returns it with the finished process."""
    copy = Path(shutil.copy(path, folder))
    command = [sys.executable, "-m", "pytest", "--nbmake", "--overwrite", "-p", "no:cacheprovider", "-q", copy.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return copy, process


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_the_same(path: Path, tmp_path: Path) -> None:
    copy, process = executed(path, tmp_path)
    assert process.returncode == 0, process.stdout + process.stderr
    shown = dict(texts(path))
    again = dict(texts(copy))
    assert shown
    assert {number: again[number] for number, text in shown.items() if text} == {
        number: text for number, text in shown.items() if text
    }


def test_a_notebook_with_an_error_fails(tmp_path: Path) -> None:
    notebook = json.loads(NOTEBOOKS[0].read_text())
    notebook["cells"][-2]["source"] = "1 / 0"
    notebook["cells"] = [cell for cell in notebook["cells"][-2:] if cell["cell_type"] == "code"]
    wrong = tmp_path / "wrong.ipynb"
    wrong.write_text(json.dumps(notebook))
    (tmp_path / "run").mkdir()
    _, process = executed(wrong, tmp_path / "run")
    assert process.returncode == 1
    assert "ZeroDivisionError" in process.stdout


def test_the_documentation_has_all_notebooks() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name}" not in navigation] == []
