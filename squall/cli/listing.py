"""The command ``squall list``: what there is to choose from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import click
import cloup

from squall import __version__, plugins
from squall.cli import messages
from squall.cli.options import Command
from squall.errors import PluginError

if TYPE_CHECKING:
    from squall.functions import Function
    from squall.functions.aggregation import AggregateFunction

_OURS = f"squall {__version__}"


class _Row(NamedTuple):
    """One thing to choose: its name, the package that brings it, what it needs or supports, and what it is."""

    name: str
    package: str
    note: str
    description: str


def _plugins(group: str) -> Iterator[_Row]:
    for name in plugins.names(group):
        package = plugins.where(group, name).distribution
        yield _Row(name, package, _note(group, name), plugins.description(group, name))


def _note(group: str, name: str) -> str:
    """Returns what is missing for a plug-in, if anything is."""
    if plugins.missing(group, name):
        return f"needs {plugins.requirement(group, name)}"
    interface = plugins.interface(group, name)
    return "" if interface == plugins.INTERFACE_VERSION else f"is for the plug-in interface {interface}"


def _languages() -> Iterator[_Row]:
    by_language: dict[str, list[str]] = {}
    for extension, languages in plugins.extensions().items():
        for language in languages:
            by_language.setdefault(language, []).append(extension)
    for row in _plugins(plugins.LEXERS):
        yield row._replace(note=row.note or " ".join(by_language.get(row.name, ())))


def _builders() -> Iterator[_Row]:
    from squall.contracts import capabilities_of

    for row in _plugins(plugins.BUILDERS):
        if row.note:
            yield row
            continue
        try:
            capabilities = capabilities_of(plugins.load(plugins.BUILDERS, row.name))
        except PluginError as error:
            yield row._replace(note=error.message)
            continue
        supported = [
            field.name.replace("_", " ") for field in fields(capabilities) if getattr(capabilities, field.name)
        ]
        yield row._replace(note=", ".join(supported))


def _rule_sets() -> Iterator[_Row]:
    from squall import rulesets

    for name in rulesets.names():
        yield _Row(name, _OURS, "", rulesets.description(name))


def _profiles() -> Iterator[_Row]:
    from squall.model.profiles import PROFILES

    for profile in PROFILES:
        yield _Row(profile.name, _OURS, "", profile.about)


def _formats() -> Iterator[_Row]:
    from squall.streams.formats import BY_NAME
    from squall.streams.formats.descriptions import DESCRIPTIONS
    from squall.streams.formats.output_formats import NAMES

    for name, description in DESCRIPTIONS.items():
        uses = [use for use, names in (("source", BY_NAME), ("sink", NAMES)) if name in names]
        yield _Row(name, _OURS, " and ".join(uses), description)


def _functions() -> Iterator[_Row]:
    from squall.functions import Function

    return _members_of_libraries(Function)


def _aggregates() -> Iterator[_Row]:
    from squall.functions.aggregation import AggregateFunction

    return _members_of_libraries(AggregateFunction)


def _members_of_libraries(kind: type[Function] | type[AggregateFunction]) -> Iterator[_Row]:
    for name, library in plugins.load_all(plugins.FUNCTIONS).items():
        package = plugins.where(plugins.FUNCTIONS, name).distribution
        for member in library:
            if isinstance(member, kind):
                yield _Row(member.iri, package, name, " ".join(member.doc.partition("\n\n")[0].split()))


KINDS: dict[str, tuple[str, Callable[[], Iterable[_Row]]]] = {
    "languages": ("language", _languages),
    "planners": ("planner", lambda: _plugins(plugins.PLANNERS)),
    "builders": ("builder", _builders),
    "rule-sets": ("rule set", _rule_sets),
    "profiles": ("profile", _profiles),
    "formats": ("format", _formats),
    "sources": ("source", lambda: _plugins(plugins.SOURCES)),
    "sinks": ("sink", lambda: _plugins(plugins.SINKS)),
    "checks": ("check", lambda: _plugins(plugins.CHECKS)),
    "aggregates": ("aggregate", _aggregates),
    "functions": ("function", _functions),
}
"""What can be listed: the plural that the command takes, the singular, and the rows."""


@cloup.command("list", cls=Command)
@cloup.argument("kind", required=False, type=click.Choice(list(KINDS)), help="What to list.")
def list_(kind: str | None) -> None:
    """List what there is to choose from, each with the package that brings it and a line of description.

    Without KIND all kinds are listed but aggregates and functions, of which there are hundreds. What needs a package
    that is not installed says so. On a terminal it is a table; else lines of tab-separated fields.

    \b
    Examples:
      squall list
      squall list languages
      squall list builders                    with what each of them supports
      squall list functions | grep -i date
    """
    if kind is not None:
        _table(("name", "package", "notes", "description"), list(KINDS[kind][1]()))
        return
    rows = [
        (singular, *row)
        for name, (singular, rows_of) in KINDS.items()
        if name not in ("aggregates", "functions")
        for row in (rows_of() if name != "builders" else _plugins(plugins.BUILDERS))
    ]
    _table(("kind", "name", "package", "notes", "description"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table on a terminal; lines of tab-separated fields otherwise."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(no_color=messages.colour() is False).print(table)
