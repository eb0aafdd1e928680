"""Every example in README.md and docs/ runs, and gives what the page says it gives.

A page is read from top to bottom, in a folder of its own:

* a fence ``jena family.jena`` (any language, then a file name) puts the file there;
* a fence ``python`` is executed, in one namespace for the page; a ``text output`` after it is what it prints;
* a fence ``console`` holds commands after ``$ ``, each followed by its standard output, if that is to be compared;
* a fence ``sh`` is run as one script.

In outputs ``...`` stands for anything. Fences ``bash`` show what is typed in a checkout and are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
NOT_RUN = {"bash", "text", "jena", "mermaid", "ini"}

_FENCE = re.compile(r"^```(\w+)?[ ]*([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what follows the language on the fence, its text, and its first line's number."""

    language: str
    rest: str
    text: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        yield Block(found[1] or "", found[2].strip(), found[3], line)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with the output that is shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        yield command, output


def expect(want: str, got: str, where: str) -> None:
    same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    assert same, f"{where} shows\n{want}\nbut it gives\n{got}"


class Page:
    """A page at work in a folder."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""

    def run(self) -> None:
        for block in blocks(self.path.read_text()):
            self._block(block)

    def _block(self, block: Block) -> None:
        where = f"{self.path.relative_to(ROOT)}:{block.line}"
        match block.language, block.rest:
            case "python", "":
                self._python(block)
            case "console", "":
                for command, output in commands(block.text):
                    self._command(command, output, where)
            case "sh", "":
                self._command(block.text, "", where)
            case "text", "output":
                expect(block.text, self.printed, where)
            case _, "":
                assert block.language in NOT_RUN, f"{where}: a fence of the unknown language `{block.language}`"
            case _, name:
                (self.folder / name).write_text(block.text)

    def _python(self, block: Block) -> None:
        # Empty lines before it, so that a traceback gives the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(self.path), "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        self.printed = out.getvalue()

    def _command(self, command: str, output: str, where: str) -> None:
        ours = f'python() {{ \'{sys.executable}\' "$@"; }}; squall() {{ python -m squall "$@"; }}'
        script = f"set -o pipefail; {ours}; {command}"
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{where}: {command}{done.stdout}{done.stderr}"
        if output:
            expect(output, done.stdout, where)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Page(path, tmp_path).run()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    linked = [target for target, _ in _LINK.findall(path.read_text()) if "://" not in target]
    assert [target for target in linked if not (path.parent / target).exists()] == []


def test_the_picture_of_the_tutorial_is_of_its_rules(tmp_path: Path) -> None:
    """`squall explain rules.jena --format svg > docs/plan.svg` draws it anew."""
    import squall
    from squall import explain

    (rules,) = (one.text for one in blocks((ROOT / "docs/tutorial.md").read_text()) if one.rest == "alarm/rules.jena")
    (tmp_path / "rules.jena").write_text(rules)
    plan = squall.plan(squall.compile(tmp_path / "rules.jena"))
    assert explain.svg(plan, None).strip() == (ROOT / "docs/plan.svg").read_text().strip()


@pytest.mark.parametrize(
    "wrong",
    [
        "```python\nassert 1 == 2\n```\n",
        "```python\nprint(1)\n```\n\n```text output\n2\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ false\n```\n",
        "```pyhton\n1\n```\n",
    ],
)
def test_a_wrong_page_fails(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(wrong)
    with pytest.raises(AssertionError):
        Page(tmp_path / "page.md", tmp_path).run()


RIGHT = """
```text a.txt
one
```
```console
$ cat \\
  a.txt
o...e
$ true
```
```python
print(1)
```
```text output
1
```
"""


def test_a_right_page_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(RIGHT)
    page = Page(tmp_path / "page.md", tmp_path)
    page.run()
    assert page.printed == "1\n"
