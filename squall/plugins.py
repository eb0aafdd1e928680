"""The registry of plug-ins: stages, functions, sources, sinks and checks, found by name through entry points.

Squall's own parts are registered in the same way as those of other packages. A checkout that is not installed has the
same entry points: they are read from its ``setup.cfg``. Looking up names, file extensions and descriptions imports no
plug-in.
"""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

from squall.errors import PluginError, UsageError, did_you_mean, install_hint

LEXERS = "squall.lexers"
TRANSLATORS = "squall.translators"
PLANNERS = "squall.planners"
BUILDERS = "squall.builders"
FUNCTIONS = "squall.functions"
SOURCES = "squall.sources"
SINKS = "squall.sinks"
CHECKS = "squall.checks"
GROUPS = (LEXERS, TRANSLATORS, PLANNERS, BUILDERS, FUNCTIONS, SOURCES, SINKS, CHECKS)

EXTENSIONS = "squall.extensions"
"""The group of file extensions. An entry point's name is the extension with its dot, its value the language's name."""

HTML = "squall.html"
"""The group of what notebooks show of squall's own objects. An entry point's name is that of the kind of object, its
value a function from an object to HTML. It lets lower layers show themselves by functions of higher ones."""

INTERFACE = "squall.interface"
"""The group by which a package declares the version of the plug-in interface that it is written for.

An entry point's name is the version, its value the package. A package without one is taken to be written for ``v1``.
"""

INTERFACE_VERSION = "v1"
"""The version of the plug-in interface (`squall.contracts`, `squall.streams`, `squall.functions`) of this squall."""

_OURS = "squall"
_CHECKOUT = Path(__file__).parent.parent / "setup.cfg"


class PluginWarning(UserWarning):
    """A plug-in of another package cannot be loaded, and is left out."""


class Place(NamedTuple):
    """The origin of a plug-in.

    Attributes:
        distribution: The name and version of the distribution that brings it.
        object: The object that it names, as ``module:name``.
    """

    distribution: str
    object: str


class _Plugin(NamedTuple):
    entry: EntryPoint
    distribution: str
    version: str
    interface: str = INTERFACE_VERSION


def names(group: str) -> tuple[str, ...]:
    """Returns the names of a group's plug-ins in order. Nothing is imported."""
    return tuple(sorted(_registered(group, tuple(sys.path))))


def load(group: str, name: str) -> Any:
    """Loads a plug-in.

    Raises:
        PluginError: There is no such plug-in, two distributions claim its name, one of its dependencies is missing, it
            is written for another version of the plug-in interface, or it cannot be imported. (What is wrong with
            squall's own modules is raised as it is.)
    """
    plugin = _find(group, name)
    label = f"the {kind(group)} `{name}` of `{plugin.distribution} {plugin.version}`"
    if plugin.interface != INTERFACE_VERSION:
        raise PluginError(
            f"{label} is written for the plug-in interface {plugin.interface}; this squall has {INTERFACE_VERSION}",
            hint=f"install a version of `{plugin.distribution}` for {INTERFACE_VERSION}",
        )
    try:
        with dependencies(group, name):
            loaded = plugin.entry.load()
    except PluginError:
        raise
    except Exception as error:
        if plugin.distribution == _OURS:
            raise
        hint = f"update or uninstall `{plugin.distribution}`"
        raise PluginError(f"{label} cannot be loaded: {type(error).__name__}: {error}", hint=hint) from error
    if not (callable(loaded) or group == FUNCTIONS):
        raise PluginError(f"{label} is not callable, as a {kind(group)} has to be", hint="see docs/extending.md")
    return loaded


def load_all(group: str) -> dict[str, Any]:
    """Loads all plug-ins of a group, by name.

    A plug-in of another package that cannot be loaded is left out, with a `PluginWarning` that names the package.
    """
    loaded = {}
    for name in names(group):
        try:
            loaded[name] = load(group, name)
        except PluginError as error:
            leave_out(group, name, error)
    return loaded


def leave_out(group: str, name: str, error: Exception) -> None:
    """Warns that a plug-in of another package is left out because of an error.

    Raises:
        Exception: The error itself, if the plug-in is one of squall's own.
    """
    claims = _registered(group, tuple(sys.path))[name]
    packages = " and ".join(dict.fromkeys(f"`{plugin.distribution} {plugin.version}`" for plugin in claims))
    if any(plugin.distribution == _OURS for plugin in claims):
        raise error
    reason = error.message if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    text = reason if packages in reason else f"the {kind(group)} `{name}` of {packages}: {reason}"
    warnings.warn(PluginWarning(f"{text}; it is left out"), stacklevel=3)


def where(group: str, name: str) -> Place:
    """Returns where a plug-in comes from. It raises PluginError as `load` does, and imports nothing."""
    plugin = _find(group, name)
    return Place(f"{plugin.distribution} {plugin.version}", plugin.entry.value.split(" ")[0])


def description(group: str, name: str) -> str:
    """Returns the first sentence of the docstring of a plug-in, or of its module; ``""`` if there is none.

    The docstring is read from the source: only the packages that contain the module are imported.
    """
    entry = _find(group, name).entry
    try:
        spec = importlib.util.find_spec(entry.module)
        source = spec.loader.get_source(entry.module) if spec and spec.loader else None  # type: ignore[attr-defined]
        module = ast.parse(source or "")
    except Exception:  # a broken package has no description
        return ""
    named = (
        node for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == entry.attr
    )
    texts = [ast.get_docstring(node) for node in (*named, module)]
    text = next((text for text in texts if text), "")
    return _first_sentence(text)


def missing(group: str, name: str) -> tuple[str, ...]:
    """Returns the distributions that a plug-in's extra needs and that are not installed. Nothing is imported."""
    plugin = _find(group, name)
    return tuple(
        sorted(
            {
                requirement
                for extra in plugin.entry.extras
                for requirement in _needs(plugin.distribution, extra)
                if not _has(requirement)
            }
        )
    )


def interface(group: str, name: str) -> str:
    """Returns the version of the plug-in interface that a plug-in is written for. Nothing is imported."""
    return _find(group, name).interface


def requirement(group: str, name: str) -> str:
    """Returns what to install for a plug-in, such as ``squall[beam]``."""
    plugin = _find(group, name)
    return _requirement(plugin, plugin.distribution)


@contextmanager
def dependencies(group: str, name: str) -> Iterator[None]:
    """Turns a missing dependency of a plug-in into a PluginError that says what to install.

    A missing module of the plug-in's own package is a defect of it: that error propagates.
    """
    plugin = _find(group, name)
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if not module or module == plugin.entry.module.partition(".")[0]:
            raise
        raise PluginError(
            f"the {kind(group)} `{name}` needs `{module}`, which is not installed",
            hint=install_hint(_requirement(plugin, module)),
        ) from error


def extensions() -> dict[str, tuple[str, ...]]:
    """Returns the languages of each file extension, as packages declare them. Nothing is imported."""
    declared = _registered(EXTENSIONS, tuple(sys.path))
    return {
        extension: tuple(dict.fromkeys(plugin.entry.value for plugin in plugins))
        for extension, plugins in sorted(declared.items())
    }


def by_extension(path: str | Path) -> str:
    """Returns the name of the language that has the extension of this file's name.

    No lexer is loaded, unless several languages have the extension: then one that cannot be loaded is left out, with a
    `PluginWarning`.

    Raises:
        UsageError: No language has the extension, or several have.
    """
    filename = Path(path).name.lower()  # as with data, capitals do not matter
    by_suffix = extensions()
    languages = list(
        dict.fromkeys(
            name for suffix, claims in by_suffix.items() if filename.endswith(suffix.lower()) for name in claims
        )
    )
    if len(languages) > 1:
        languages = [name for name in languages if _is_usable(name)] or languages
    if len(languages) == 1:
        return languages[0]
    if languages:
        alternatives = " or ".join(f"`{name}`" for name in languages)
        raise UsageError(f"`{path}` may be in {alternatives}", hint="name the language with --lexer")
    raise UsageError(
        f"the language of `{path}` cannot be inferred from its name",
        hint=f"known endings: {', '.join(by_suffix)}; or name the language with --lexer",
    )


def _is_usable(language: str) -> bool:
    try:
        load(LEXERS, language)
    except PluginError as error:
        leave_out(LEXERS, language, error)
        return False
    return True


def _find(group: str, name: str) -> _Plugin:
    registered = _registered(group, tuple(sys.path))
    if name not in registered:
        available = ", ".join(f"`{candidate}`" for candidate in sorted(registered)) or "none"
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
    """Returns the claims on each name of a group. `path` is ``sys.path``, so that what is added to it is seen."""
    claims: dict[str, tuple[_Plugin, ...]] = {}
    for plugin in (*_of_checkout(group), *_installed(group, path)):
        claims[plugin.entry.name] = (*claims.get(plugin.entry.name, ()), plugin)
    return claims


def _installed(group: str, path: tuple[str, ...]) -> Iterator[_Plugin]:
    for entry in importlib.metadata.entry_points(group=group):
        distribution = entry.dist
        if distribution is None:
            continue
        # The metadata of an editable installation may be older than the checkout it points to.
        if distribution.name != _OURS or _checkout() is None:
            version = _interfaces(path).get(distribution.name, INTERFACE_VERSION)
            yield _Plugin(entry, distribution.name, distribution.version, version)


@cache
def _interfaces(path: tuple[str, ...]) -> dict[str, str]:
    """Returns the interface version that each distribution declares; this one's if it is among several."""
    versions: dict[str, str] = {}
    for entry in importlib.metadata.entry_points(group=INTERFACE):
        if entry.dist is not None and versions.get(entry.dist.name) != INTERFACE_VERSION:
            versions[entry.dist.name] = entry.name
    return versions


def _of_checkout(group: str) -> Iterator[_Plugin]:
    config = _checkout()
    if config is None:
        return
    for line in config.get("options.entry_points", group, fallback="").strip().splitlines():
        name, _, value = line.partition("=")
        yield _Plugin(EntryPoint(name.strip(), value.strip(), group), _OURS, config.get("metadata", "version"))


@cache
def _checkout() -> configparser.ConfigParser | None:
    """Returns the ``setup.cfg`` beside this package if the package lies in a checkout; else None."""
    config = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    config.read(_CHECKOUT, encoding="utf-8")
    return config if config.get("metadata", "name", fallback="") == _OURS else None


def _requirement(plugin: _Plugin, module: str) -> str:
    extras = plugin.entry.extras
    return f"{plugin.distribution}[{','.join(extras)}]" if extras else module


def _needs(distribution: str, extra: str) -> Iterator[str]:
    """Yields the distributions that an extra of a distribution requires."""
    config = _checkout() if distribution == _OURS else None
    if config is not None:
        requirements = config.get("options.extras_require", extra, fallback="").split("\n")
    else:
        marker = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
        requirements = [text for text in importlib.metadata.requires(distribution) or () if marker.search(text)]
    for text in requirements:
        if match := _REQUIREMENT.match(text.strip()):
            yield match[0]


_REQUIREMENT = re.compile(r"[\w.-]+")


@cache
def _has(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def kind(group: str) -> str:
    """Returns what a group's plug-ins are, in one word."""
    return group.removeprefix("squall.").removesuffix("s")


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return f"{sentence}." if stop else paragraph
