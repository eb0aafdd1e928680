"""The command ``squall completion``: the script by which a shell completes `squall` commands."""

from __future__ import annotations

import click
import cloup
from click.shell_completion import get_completion_class

from squall.cli.options import Command

SHELLS = ("bash", "zsh", "fish")
"""The shells that have a script."""


@cloup.command(cls=Command)
@cloup.argument("shell", type=click.Choice(SHELLS), help="The shell.")
def completion(shell: str) -> None:
    """Print the script that completes `squall` commands in a shell.

    It completes commands, options, files, languages, planners, builders, rule sets, profiles and formats.

    \b
    Examples:
      squall completion bash > ~/.local/share/bash-completion/completions/squall
      squall completion zsh > ~/.zfunc/_squall           with ~/.zfunc in $fpath, before compinit
      squall completion fish > ~/.config/fish/completions/squall.fish
      eval "$(squall completion bash)"                   for this shell only
    """
    script = get_completion_class(shell)
    assert script is not None
    root = click.get_current_context().find_root()
    click.echo(script(root.command, {}, "squall", "_SQUALL_COMPLETE").source())
