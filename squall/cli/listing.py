"""The command ``squall list``: what there is to choose from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from squall import __version__


@click.command("list")
def list_() -> None:
    """List what there is to choose from.

    Lexers, translators, planners, builders, sources, sinks, rule sets and functions, each with where it comes from.
    """
    from squall import plugins, rulesets

    rows = [
        (plugins.kind(group), name, *plugins.where(group, name))
        for group in plugins.GROUPS
        if group != plugins.FUNCTIONS
        for name in plugins.names(group)
    ]
    sets = [("rule set", name, f"squall {__version__}", f"squall.rulesets:{name}") for name in rulesets.names()]
    _table(("kind", "name", "from", "object"), [*rows, *sets, *_functions()])


def _functions() -> Iterator[tuple[str, str, str, str]]:
    from squall import plugins
    from squall.functions import Function

    for name in plugins.names(plugins.FUNCTIONS):
        place = plugins.where(plugins.FUNCTIONS, name)
        for entry in plugins.load(plugins.FUNCTIONS, name):
            if isinstance(entry, Function):
                yield "function", entry.iri, *place


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; lines of tab-separated fields otherwise."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
