"""The project's language: retired words stay out of code, messages and pages, and locals are named by nouns.

docs/glossary.md has the words that are used instead. What is allowed nevertheless is listed here, with the reason.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("squall", "lexers", "translators", "planners", "builders", "tests", "docs")
LINKS = {"lexers", "translators", "planners", "builders"}

RETIRED_PHRASES = re.compile(
    r"\b(told|tellings?|way of telling|tells? (?:it|them|what|whether|how|when)|work(?:s|ed) off|made streams?"
    r"|taken in turn|goes? on where it was|lies? together|where (?:it|they|rows) lies?|spread to all|hand(?:s|ed)? on"
    r"|goes to all tasks|taken back|whole instants?|hot keys?|sieved?)\b",
    re.IGNORECASE,
)
"""Phrases of the project's own that have a standard term."""

RETIRED_NAMES = re.compile(
    r"(?:^|_)(told|telling|tellings|lying|leaving|taking|asking|standings|parcels?|replicas|turns"
    r"|superstep|supersteps)(?:_|$)",
    re.IGNORECASE,
)
"""Words that are no part of a name in code."""

PARTICIPLES = {
    "found", "made", "told", "known", "one", "kept", "came", "others", "rest", "there", "its", "theirs", "given",
    "asked", "taken", "seen", "gone", "left_over", "said", "wanted", "due", "held", "shown", "chosen", "done", "named",
    "whole", "lost",
}  # fmt: skip
"""Names that say how something came about, not what it is."""

ALLOWED_PHRASES: dict[str, str] = {
    "tests/test_vocabulary.py": "it lists them",
    "docs/glossary.md": "it says which words are retired",
    "CHANGELOG.md": "it may name what was renamed",
}
"""Files in which retired words may stand, and why."""


REMAINING = frozenset((Path(__file__).parent / "vocabulary_remaining.txt").read_text(encoding="utf-8").split())
"""Files that have not been rewritten yet. The list may only get shorter."""


def files(ending: str) -> Iterator[Path]:
    """Yields the files of the project with an ending, each once."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob(f"*{ending}")):
            if not LINKS.intersection(path.relative_to(ROOT).parts[1:2]) or folder != "squall":
                yield path
    yield from sorted(ROOT.glob(f"*{ending}"))


PYTHON = [path for path in files(".py") if "__pycache__" not in path.parts]
PAGES = list(files(".md"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the comments and texts of a Python file, or the lines of a page, with their line numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(token.string.splitlines(), token.start[0])


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the names that a Python file defines, with their line numbers."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def locals_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the locals and parameters of each function of a Python file, each name once, with its line number."""
    for function in ast.walk(parsed(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            lines: dict[str, int] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    lines.setdefault(node.id, node.lineno)
                elif isinstance(node, ast.arg):
                    lines.setdefault(node.arg, node.lineno)
            yield from ((line, name) for name, line in lines.items())


def findings(matches: Iterator[tuple[Path, int, str]]) -> list[str]:
    return [f"{name_of(path)}:{line}: {word}" for path, line, word in matches]


@pytest.mark.more
def test_no_retired_phrase_is_in_code_or_pages() -> None:
    assert not findings(
        (path, line, match[0])
        for path in (*PYTHON, *PAGES)
        if name_of(path) not in ALLOWED_PHRASES and name_of(path) not in REMAINING
        for line, text in prose(path)
        for match in RETIRED_PHRASES.finditer(text)
    )


@pytest.mark.more
def test_no_name_has_a_retired_word() -> None:
    assert not findings(
        (path, line, name)
        for path in PYTHON
        if name_of(path) not in REMAINING
        for line, name in names(path)
        if RETIRED_NAMES.search(name)
    )


def test_no_module_has_a_retired_name() -> None:
    retired = {name_of(path) for path in PYTHON if RETIRED_NAMES.search(path.stem)}
    assert not retired - REMAINING


@pytest.mark.more
def test_locals_are_named_by_nouns() -> None:
    """At most three in a hundred may be named by a participle or a pronoun."""
    every = [(path, line, name) for path in PYTHON for line, name in locals_of(path)]
    bad = [(path, line, name) for path, line, name in every if name in PARTICIPLES]
    assert len(bad) <= 0.03 * len(every), findings(iter(bad))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_lines_of_pages_wrap(path: Path) -> None:
    """Lines of prose have at most 120 characters; tables, code, links and pictures may be longer."""
    fenced, long = False, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif (
            len(line) > 120 and not fenced and not line.lstrip().startswith(("|", "<", "[", "![")) and "](" not in line
        ):
            long.append(number)
    assert long == [] or name_of(path) in REMAINING
