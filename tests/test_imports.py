"""The import graph of the package: no module is in an import cycle, and no folder imports one of a higher layer.

Imports inside of functions count as well. Only imports under ``if TYPE_CHECKING`` do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from squall.model.graphs import components

ROOT = Path(__file__).parent.parent
STAGES = ("lexers", "translators", "planners", "builders")
"""The folders at the top that are packages of squall by links."""

LAYERS: tuple[tuple[str, ...], ...] = (
    ("squall.errors", "squall.wording"),
    ("squall.plugins",),
    ("squall.rdf",),
    ("squall.functions",),
    ("squall.model",),
    ("squall.rulesets",),
    ("squall.plan",),
    ("squall.contracts",),
    ("squall.streams", "squall.lexers"),
    ("squall.process",),
    ("squall.translators",),
    ("squall.planners",),
    ("squall.builders", "squall.builders.runtime"),
    ("squall.builders.local",),
    ("squall.builders.distributed",),
    ("squall.builders.spark", "squall.builders.spark_daemon", "squall.builders.beam"),
    ("squall.compiling", "squall.arguments", "squall.reasoning", "squall.results", "squall.asynchronous"),
    ("squall.explain", "squall.observe"),
    ("squall",),
    ("squall.sparql_update", "squall.checking", "squall.beam", "squall.spark"),
    ("squall.testing",),
    ("squall.cli",),
    ("squall.__main__",),
)
"""The layers, lowest first. A module belongs to the longest name that it begins with. ``squall`` itself is the API."""

FORBIDDEN = {
    "squall.builders": ("squall.lexers", "squall.translators", "squall.planners"),
    "squall.planners": ("squall.lexers", "squall.translators"),
}
"""Folders that must not import others, though these are in a lower layer."""


@cache
def modules() -> dict[str, Path]:
    """Returns the files of the package by module name."""
    result = {}
    for top in ("squall", *STAGES):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[0] == "squall" and len(parts) > 1 and parts[1] in STAGES:
                continue  # the same files behind a link
            name = ".".join(parts if parts[0] == "squall" else ("squall", *parts)).removesuffix(".__init__")
            result[name] = path
    return result


@cache
def imports(module: str) -> frozenset[str]:
    """Returns the modules of the package that a module imports anywhere, but not under ``if TYPE_CHECKING``."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    return frozenset(name for name in _imported(tree) if name in modules() and name != module)


def _imported(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for statement in child.orelse:
                    yield from _imported(statement)
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(source), names=names):
                inner = [f"{source}.{alias.name}" for alias in names]
                yield from (name if name in modules() else source for name in inner)
            case _:
                yield from _imported(child)


def layer(module: str) -> int:
    """Returns the layer of a module by number."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for number, names in enumerate(LAYERS):
            if name in names and (name != "squall" or module == "squall"):
                return number
    raise AssertionError(f"{module} is in no layer: add its folder to LAYERS")


def initialised(module: str) -> set[str]:
    """Returns the modules whose code runs when a module is imported first: what it imports, and the packages that
    these are in, as far as it is not in them itself."""
    packages = {name for target in imports(module) for name in _ancestors(target)}
    return {*imports(module), *packages.difference((module, *_ancestors(module)))}


def _ancestors(module: str) -> Iterator[str]:
    while module := module.rpartition(".")[0]:
        yield module


def test_no_import_cycles() -> None:
    graph = {module: sorted(initialised(module)) for module in modules()}
    cycles = [sorted(part) for part in components(graph) if len(part) > 1]
    assert cycles == []


def test_no_folder_imports_a_higher_layer() -> None:
    upwards = [(module, name) for module in modules() for name in imports(module) if layer(name) > layer(module)]
    assert sorted(upwards) == []


@pytest.mark.parametrize(("folder", "others"), FORBIDDEN.items())
def test_stages_do_not_import_each_other(folder: str, others: tuple[str, ...]) -> None:
    inside = (module for module in modules() if module == folder or module.startswith(f"{folder}."))
    assert sorted((module, name) for module in inside for name in imports(module) if name.startswith(others)) == []
