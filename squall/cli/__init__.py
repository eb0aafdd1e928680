"""The command line: a module for each command.

Nothing heavy is imported before it is needed, so that ``squall --help`` is quick.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import click
import cloup

from squall import __version__
from squall.cli import messages
from squall.cli.build import build
from squall.cli.check import check
from squall.cli.completion import completion
from squall.cli.explain import explain
from squall.cli.listing import list_
from squall.cli.map import map_
from squall.cli.new import new
from squall.cli.options import INTERRUPTED, WRONG
from squall.cli.running import ExitAtOnce, leave_quietly
from squall.cli.specialise import specialise
from squall.cli.update import update
from squall.errors import SquallError


def main(exit_process: Callable[[int], NoReturn] = os._exit) -> NoReturn:
    """Runs the command line. It prints errors that the user can fix without a traceback, and exits with a code.

    Args:
        exit_process: Ends the process at once after a signal.
    """
    messages.reset()
    with warnings.catch_warnings():
        warnings.showwarning = messages.show_warning
        try:
            command.main(prog_name="squall", standalone_mode=False, color=messages.colour())
        except click.exceptions.Abort:  # its cause has what was in progress
            _end_at_once(exit_process, INTERRUPTED)
        except click.ClickException as error:
            error.show()
            sys.exit(WRONG)
        except SquallError as error:
            messages.error(error)
            sys.exit(WRONG)
        except BrokenPipeError:
            leave_quietly()
        except ExitAtOnce as exit:
            _end_at_once(exit_process, exit.end.code)
    sys.exit(0)


def _end_at_once(exit_process: Callable[[int], NoReturn], code: int) -> NoReturn:
    """Ends the process after a signal: it neither frees its memory nor waits for threads, which takes long."""
    atexit._run_exitfuncs()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    exit_process(code)


_SETTINGS = cloup.Context.settings(
    show_subcommand_aliases=True,
    help_option_names=["-h", "--help"],
    formatter_settings=cloup.HelpFormatter.settings(
        max_width=100,
        theme=cloup.HelpTheme(
            invoked_command=cloup.Style(bold=True),
            heading=cloup.Style(bold=True, underline=True),
            col1=cloup.Style(fg=cloup.Color.cyan),
        ),
    ),
)


@cloup.group(context_settings=_SETTINGS)
@click.version_option(__version__, message="squall %(version)s")
def command() -> None:
    """Run rules and continuous queries over streams of RDF.

    \b
    Begin with a small project that works:
      squall new alarm
    Derive what follows from a file, as N-Triples on standard output:
      squall run family.jena --source people.ttl
    Rules over a live stream of timed statements, with static data:
      sensors | squall run alarm.jena --source '-?format=ntt' --static rooms.ttl --timed
    Follow a folder; the run may be killed, and resumes from its checkpoint:
      squall run alarm.jena --source 'in/?follow=yes' --sink alarms.nt --checkpoint state/
    Check a program, look at its plan, and see what there is to choose from:
      squall check alarm.jena
      squall explain alarm.jena
      squall list
    Apply a request of SPARQL Update once:
      squall update correct.ru --data people.nq --output people.nq

    Exit codes: 0 success, 1 the run failed, 2 the program or the arguments are wrong.
    """


command.section("Run programs", build, update)
command.section("Understand programs", check, explain, specialise)
command.section("Get started", new, map_, list_, completion)
