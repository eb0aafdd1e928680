"""Bounds of size: what is larger is divided, or says in a comment why it is in one piece."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from radon.visitors import ComplexityVisitor  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]
MAX_METHODS, MAX_ATTRIBUTES = 20, 12
"""The bounds of a class in `builders/`."""
MAX_COMPLEXITY = 15
"""The bound of a function's cyclomatic complexity, unless a comment at its beginning says why it is larger."""


def large_classes(text: str) -> Iterator[str]:
    """Yields the classes of a module that are over the bounds."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
        attributes = {member.target.id for member in node.body if _is_field(member)}  # type: ignore[attr-defined]
        attributes |= {target.attr for method in methods for target in ast.walk(method) if _is_attribute(target)}  # type: ignore[attr-defined]
        if len(methods) > MAX_METHODS or len(attributes) > MAX_ATTRIBUTES:
            yield f"{node.name}: {len(methods)} methods, {len(attributes)} attributes"


def _is_field(member: ast.stmt) -> bool:
    return isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name)


def _is_attribute(target: ast.AST) -> bool:
    is_set = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
    return is_set and isinstance(target.value, ast.Name) and target.value.id == "self"  # type: ignore[attr-defined]


def complex_functions(text: str) -> Iterator[str]:
    """Yields the functions of a module that are over the bound and do not say why."""
    tree, lines = ast.parse(text), text.splitlines()
    definitions = {
        (node.name, node.lineno): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    visitor = ComplexityVisitor.from_ast(tree)
    for block in (*visitor.functions, *(method for part in visitor.classes for method in part.methods)):
        if block.complexity > MAX_COMPLEXITY and not _has_reason(definitions[block.name, block.lineno], lines):
            yield f"{block.name}: {block.complexity}"


def _has_reason(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> bool:
    """Returns whether there is a comment before the first statement of a function, or in its line."""
    has_docstring = ast.get_docstring(function) is not None
    first = function.body[1] if has_docstring else function.body[0]
    before = function.body[0].end_lineno or 0 if has_docstring else function.lineno
    return any("# " in line for line in lines[before : first.lineno])


@pytest.mark.more
def test_classes_of_builders_are_small() -> None:
    assert large_classes_of("builders") == []


def large_classes_of(folder: str) -> list[str]:
    return [f"{path}: {part}" for path in modules(folder) for part in large_classes(path.read_text())]


def modules(folder: str) -> list[Path]:
    paths = sorted(Path(ROOT, folder).rglob("*.py"))
    assert paths
    return paths


@pytest.mark.more
def test_functions_are_simple_or_say_why_not() -> None:
    folders = ("builders", "lexers", "planners", "squall", "translators")
    paths = [path for folder in folders for path in modules(folder)]
    assert [f"{path}: {part}" for path in paths for part in complex_functions(path.read_text())] == []


def test_what_is_over_the_bounds_is_found() -> None:
    methods = "".join(f"    def m{number}(self): self.a = 1\n" for number in range(21))
    fields = "".join(f"    f{number}: int\n" for number in range(12))
    assert [*large_classes(f"class C:\n{methods}")] == ["C: 21 methods, 1 attributes"]
    assert [*large_classes(f"class C:\n{fields}    def m(self): self.f0 = 1\n")] == []
    assert [*large_classes(f"class C:\n{fields}    def m(self): self.a = 1\n")] == ["C: 1 methods, 13 attributes"]
    branches = "".join(f"    if x == {number}: return\n" for number in range(15))
    assert [*complex_functions(f'def f(x):\n    """Docstring."""\n{branches}')] == ["f: 16"]
    assert [*complex_functions(f'def f(x):\n    """Docstring."""\n    # In one piece: a list.\n{branches}')] == []
    assert [*complex_functions(f"class C:\n  def f(x):\n{branches}".replace("\n    ", "\n      "))] == ["f: 16"]
