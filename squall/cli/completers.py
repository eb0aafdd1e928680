"""Completers of arguments and options: paths, and names of languages, builders, rule sets, profiles and formats.

A shell asks for candidates by running ``squall`` with the variable ``_SQUALL_COMPLETE``. Names are read from metadata,
so that no engine and no grammar is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes paths."""
    return [CompletionItem(incomplete, type="file")]


def uris(group: str) -> Completer:
    """Returns a completer of addresses: paths, and the schemes of the plug-ins of a group (sources or sinks)."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from squall import plugins

        schemes = (f"{name}:" for name in plugins.names(group) if name not in ("stdin", "stdout", "file"))
        return [CompletionItem(incomplete, type="file"), *_matching(schemes, incomplete)]

    return complete


def plugin_names(group: str) -> Completer:
    """Returns a completer of the names of a group's plug-ins, with their descriptions."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from squall import plugins

        return [
            CompletionItem(name, help=plugins.description(group, name))
            for name in plugins.names(group)
            if name.startswith(incomplete)
        ]

    return complete


def rule_sets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of rule sets."""
    from squall import rulesets

    return _matching(rulesets.names(), incomplete)


def profiles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of profiles."""
    from squall.model import profiles

    return [
        CompletionItem(profile.name, help=profile.about)
        for profile in profiles.PROFILES
        if profile.name.startswith(incomplete)
    ]


def output_formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of formats of outputs."""
    from squall.streams.formats import output_formats

    return _matching(output_formats.NAMES, incomplete)


def names(*candidates: str) -> Completer:
    """Returns a completer of fixed names."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _matching(candidates, incomplete)

    return complete


def _matching(candidates: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in candidates if name.startswith(incomplete)]
