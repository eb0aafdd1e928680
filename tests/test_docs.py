"""Every example in README.md and docs/ runs, and gives what the page says it gives.

A page is read from top to bottom, in a folder of its own:

* a fence ``jena family.jena`` (any language, then a file name) puts the file there;
* a fence ``python`` is executed, in one namespace for the page; a ``text output`` after it is what it prints;
* a fence ``console`` holds commands after ``$ ``, each followed by its standard output, if that is to be compared;
* a fence ``sh`` is run as one script.

Pages that start Spark or Beam carry that marker. Links of all Markdown files, with their anchors, are followed without
network.

In outputs ``...`` stands for anything. Fences ``bash`` show what is typed in a checkout and are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
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

from squall import plugins

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BESIDE_DOCS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = sorted([*BESIDE_DOCS, *ROOT.glob("docs/**/*.md")])
MODULES = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for folder in ("squall", "lexers", "translators", "planners", "builders", "tests", "docs")
    for path in [*ROOT.glob(f"{folder}/**/*.py"), *ROOT.glob(f"{folder}/**/*.lark")]
]
NO_MODULES = {*plugins.GROUPS, plugins.EXTENSIONS, plugins.HTML, plugins.INTERFACE, "squall.aggregates", "squall.print"}
"""Dotted names that are entry-point groups, or a logger."""
NOT_RUN = {"bash", "text", "jena", "mermaid", "ini"}

_FENCE = re.compile(r"^```(\w+)?[ ]*([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)|^\[[^\]]+\]: (\S+?)(#\S+)?$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block, which has a language, the text behind the language on the fence, a content, and the number of its
    first line."""

    language: str
    rest: str
    text: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield Block(match[1] or "", match[2].strip(), match[3], line)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a console block, with the output that the page shows for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        yield command, output


def expect(want: str, got: str, where: str) -> None:
    same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    assert same, f"{where} shows\n{want}\nbut it gives\n{got}"


class Page:
    """A page at work in a folder."""

    def __init__(self, path: Path, folder: Path, root: Path = ROOT) -> None:
        self.path = path
        self.root = root
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""

    def run(self) -> None:
        for block in blocks(self.path.read_text()):
            self._block(block)

    def _block(self, block: Block) -> None:
        where = f"{self.path.relative_to(self.root)}:{block.line}"
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
        process = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"{where}: {command}{process.stdout}{process.stderr}"
        if output:
            expect(output, process.stdout, where)


LONG_PAGES = {
    "architecture.md", "beam.md", "check.md", "cli.md", "durable.md", "extending.md", "index.md", "iterator.md",
    "live.md", "reading.md", "rulesets.md", "semantics.md", "spark.md", "streams.md", "tutorial.md",
    "planning.md", "gallery/access-log.md", "gallery/digital-twin.md", "gallery/iot-alarm.md",
    "gallery/sessions.md", "gallery/unit-tests.md", "gallery/valid-time.md",
    "guides/data-that-are-not-rdf.md", "guides/from-c-sparql.md", "guides/from-flink-sql.md",
    "guides/from-jena-rules.md", "guides/ontology-over-a-stream.md", "guides/patterns-over-time.md",
    "languages/ctsparql.md", "languages/epsparql.md", "languages/jena.md", "languages/owl.md",
    "languages/rif-builtins.md", "languages/rif.md", "languages/sequences.md", "languages/sparql.md",
}  # fmt: skip
"""Pages whose examples take seconds; they run in `make test-more`."""
SLOW_PAGES = {"gallery/backfill-on-spark.md"}
"""Pages whose examples take a minute or more."""


def markers(path: Path) -> list[pytest.MarkDecorator]:
    """Returns the markers of the engines that the examples of a page start, and `more` or `slow` if they take long."""
    code = "".join(block.text for block in blocks(path.read_text()) if block.language in ("python", "console", "sh"))
    engines = {
        "spark": r"builder spark|squall\.builders\.spark|\"spark\"\)",
        "beam": r"builder beam|squall\.builders\.beam|\"beam\"\)",
    }
    page = path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else ""
    marks = [getattr(pytest.mark, engine) for engine, pattern in engines.items() if re.search(pattern, code)]
    if page in SLOW_PAGES:
        return [*marks, pytest.mark.slow]
    return [*marks, pytest.mark.more] if page in LONG_PAGES else marks


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=markers(path), id=str(path.relative_to(ROOT))) for path in PAGES]
)
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Page(path, tmp_path).run()


def without_fences(text: str) -> str:
    return _FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub and the site make them."""
    result: set[str] = set()
    for heading in _HEADING.findall(without_fences(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = next(number for number in range(1000) if (f"{slug}-{number}" if number else slug) not in result)
        result.add(f"{slug}-{number}" if number else slug)
    return result


def broken_links(path: Path) -> list[str]:
    """Yields the relative links of a page that lead to no file, or to no heading of a page."""
    broken = []
    for inline, fragment, reference, reference_fragment in _LINK.findall(without_fences(path.read_text())):
        target, anchor = inline or reference, fragment or reference_fragment
        if ":" in target:
            continue
        file = path.parent / target if target else path
        if not file.exists() or (anchor and anchor[1:] not in anchors(file.read_text())):
            broken.append(f"{target}{anchor}")
    return broken


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


def test_the_navigation_of_the_site_has_all_pages() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    pages = {page for page in pages if not page.startswith(("decisions/0", "examples/"))}
    assert {page for page in pages if not re.search(rf"(?:: |- ){re.escape(page)}$", navigation, re.MULTILINE)} == set()


@pytest.mark.more
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="`make site` installs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "site/index.html").exists()


def test_the_list_of_decisions_has_all_of_them_by_their_titles() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"^\| \[(\d+)\]\((\S+)\) \| (.+?) \|", (folder / "README.md").read_text(), re.MULTILINE)
    assert [file for _, file, _ in listed] == sorted(path.name for path in folder.glob("[0-9]*.md"))
    for number, file, title in listed:
        assert (folder / file).read_text().startswith(f"# {int(number):04}: {title}\n"), file


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_modules_that_a_page_names_exist(path: Path) -> None:
    """A path may be short: `operators/join.py` is the one file that ends so."""
    paths = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|lark))`", without_fences(path.read_text())))
    assert sorted(name for name in paths if not any(module.endswith(f"/{name}") for module in MODULES)) == []


def resolves(name: str) -> bool:
    """Returns whether a dotted name is that of a module, or of something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all(hasattr(value, part) and (value := getattr(value, part)) is not None for part in parts[length:])
    return False


@pytest.mark.parametrize(
    "path", [path for path in PAGES if "decisions" not in path.parts], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_dotted_names_of_a_page_exist(path: Path) -> None:
    names = set(re.findall(r"`(squall(?:\.\w+)+)", without_fences(path.read_text()))) - NO_MODULES
    assert sorted(name for name in names if not resolves(name)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A title, with `code`\n\n## The same\n\n## The same\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#a-title-with-code) [c](#here) [d](other.md#the-same-1) [e](https://x.y/z#a)\n"
        "[f](nowhere.md) [g](other.md#no-such) [h](#no-such)\n\n[i]: other.md#neither\n"
    )
    assert broken_links(page) == ["nowhere.md", "other.md#no-such", "#no-such", "other.md#neither"]


def test_the_picture_of_the_tutorial_is_of_its_rules(tmp_path: Path) -> None:
    """`squall explain rules.jena --format svg > docs/plan.svg` draws it again."""
    import squall
    from squall import explain

    (rules,) = (
        block.text for block in blocks((ROOT / "docs/tutorial.md").read_text()) if block.rest == "alarm/rules.jena"
    )
    (tmp_path / "rules.jena").write_text(rules)
    plan = squall.plan(squall.compile(tmp_path / "rules.jena"))
    assert explain.svg(plan, None).strip() == (ROOT / "docs/plan.svg").read_text().strip()


def test_the_picture_of_the_readme_has_the_operators_of_its_plan(tmp_path: Path) -> None:
    """docs/fire.svg is drawn by hand, for people who look at it for ten seconds."""
    import squall

    (rules,) = (block.text for block in blocks((ROOT / "README.md").read_text()) if block.rest == "fire.jena")
    (tmp_path / "fire.jena").write_text(rules)
    plan = squall.plan(squall.compile(tmp_path / "fire.jena", window="RANGE 10s"))
    drawn = re.findall(r'class="name"[^>]*>([^<]+)<', (ROOT / "docs/fire.svg").read_text())
    assert sorted(drawn) == sorted(type(node.op).__name__ for node in plan.nodes)


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
def test_a_wrong_page_fails(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(wrong)
    with pytest.raises(AssertionError):
        Page(tmp_path / "page.md", tmp_path, tmp_path).run()


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


def test_a_right_page_passes(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(RIGHT)
    page = Page(tmp_path / "page.md", tmp_path, tmp_path)
    page.run()
    assert page.printed == "1\n"
