"""Finds stages, functions, sources and sinks by name, through entry points: ours come in by the door that others' do.

A checkout that is not installed has the same entry points: they are read from its ``setup.cfg``.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

from squall.errors import PluginError, UsageError, did_you_mean

LEXERS = "squall.lexers"
TRANSLATORS = "squall.translators"
PLANNERS = "squall.planners"
BUILDERS = "squall.builders"
FUNCTIONS = "squall.functions"
SOURCES = "squall.sources"
SINKS = "squall.sinks"
CHECKS = "squall.checks"
GROUPS = (LEXERS, TRANSLATORS, PLANNERS, BUILDERS, FUNCTIONS, SOURCES, SINKS, CHECKS)

_OURS = "squall"
_CHECKOUT = Path(__file__).parent.parent / "setup.cfg"


class Place(NamedTuple):
    """Where a plug-in comes from: the distribution that brings it (name and version), and the object (module:name)."""

    distribution: str
    object: str


class _Plugin(NamedTuple):
    entry: EntryPoint
    distribution: str
    version: str


def names(group: str) -> tuple[str, ...]:
    """The names of a group's plug-ins, sorted. Nothing is imported."""
    return tuple(sorted(_registered(group, tuple(sys.path))))


def load(group: str, name: str) -> Any:
    """The plug-in's object. Raises PluginError where the name is unknown, where two distributions claim it, and where
    a dependency is missing. Any other error in the plug-in's module is a defect of it and propagates."""
    plugin = _find(group, name)
    with dependencies(group, name):
        return plugin.entry.load()


def where(group: str, name: str) -> Place:
    """Where a plug-in comes from. Raises PluginError as `load` does; imports nothing."""
    plugin = _find(group, name)
    return Place(f"{plugin.distribution} {plugin.version}", plugin.entry.value.split(" ")[0])


@contextmanager
def dependencies(group: str, name: str) -> Iterator[None]:
    """Turns a missing dependency of the plug-in, met within, into a PluginError that says what to install.

    A missing module of the plug-in's own package is a defect of it: that error propagates.
    """
    plugin = _find(group, name)
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing == plugin.entry.module.partition(".")[0]:
            raise
        raise PluginError(
            f"the {kind(group)} `{name}` needs `{missing}`, which is not installed",
            hint=f"pip install '{_requirement(plugin, missing)}'",
        ) from error


def by_extension(path: str | Path) -> str:
    """The name of the lexer whose language has the ending of this file's name.

    Raises UsageError where no lexer, or more than one, has it. A lexer that cannot be loaded for want of a dependency
    is heard of only if no other one has the ending.
    """
    ending = Path(path).name
    found: list[str] = []
    known: set[str] = set()
    unusable: list[PluginError] = []
    for name in names(LEXERS):
        try:
            extensions = load(LEXERS, name).extensions
        except PluginError as error:
            unusable.append(error)
            continue
        known.update(extensions)
        if ending.endswith(tuple(extensions)):
            found.append(name)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"`{path}` may be in {_listed(found)}", hint="say which with --lexer")
    if unusable:
        raise unusable[0]
    raise UsageError(
        f"the language of `{path}` cannot be inferred from its name",
        hint=f"known endings: {', '.join(sorted(known))}; or name the language with --lexer",
    )


def _find(group: str, name: str) -> _Plugin:
    registered = _registered(group, tuple(sys.path))
    if name not in registered:
        available = ", ".join(f"`{known}`" for known in sorted(registered)) or "none"
        raise PluginError(
            f"there is no {kind(group)} `{name}`", hint=did_you_mean(name, registered) or f"there are: {available}"
        )
    claims = registered[name]
    if len({plugin.entry.value for plugin in claims}) > 1:
        claimed = " and ".join(f"`{plugin.distribution}` ({plugin.entry.value})" for plugin in claims)
        raise PluginError(f"the {kind(group)} `{name}` is claimed twice: by {claimed}", hint="uninstall one of them")
    return claims[0]


@cache
def _registered(group: str, path: tuple[str, ...]) -> dict[str, tuple[_Plugin, ...]]:
    """The claims on each name of a group. `path` is ``sys.path``: what is added to it is seen."""
    found: dict[str, tuple[_Plugin, ...]] = {}
    for plugin in (*_of_checkout(group), *_installed(group)):
        found[plugin.entry.name] = (*found.get(plugin.entry.name, ()), plugin)
    return found


def _installed(group: str) -> Iterator[_Plugin]:
    for entry in importlib.metadata.entry_points(group=group):
        distribution = entry.dist
        if distribution is None:
            continue
        # The metadata of an editable installation may be older than the checkout it points to.
        if distribution.name != _OURS or _checkout() is None:
            yield _Plugin(entry, distribution.name, distribution.version)


def _of_checkout(group: str) -> Iterator[_Plugin]:
    config = _checkout()
    if config is None:
        return
    for line in config.get("options.entry_points", group, fallback="").strip().splitlines():
        name, _, value = line.partition("=")
        yield _Plugin(EntryPoint(name.strip(), value.strip(), group), _OURS, config.get("metadata", "version"))


@cache
def _checkout() -> configparser.ConfigParser | None:
    """The ``setup.cfg`` beside this package, if the package lies in a checkout."""
    config = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    config.read(_CHECKOUT, encoding="utf-8")
    return config if config.get("metadata", "name", fallback="") == _OURS else None


def _requirement(plugin: _Plugin, missing: str) -> str:
    extras = plugin.entry.extras
    return f"{plugin.distribution}[{','.join(extras)}]" if extras else missing


def kind(group: str) -> str:
    """What a group's plug-ins are, in one word."""
    return group.removeprefix("squall.").removesuffix("s")


def _listed(found: list[str]) -> str:
    return " or ".join(f"`{name}`" for name in found)
