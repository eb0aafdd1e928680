"""The command line: a module for each command.

Nothing heavy is imported before it is needed, so that ``squall --help`` is quick.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from squall import __version__
from squall.cli.build import build
from squall.cli.check import check
from squall.cli.explain import explain
from squall.cli.listing import list_
from squall.cli.new import new
from squall.cli.running import leave_quietly
from squall.cli.shared import INTERRUPTED, WRONG
from squall.cli.update import update
from squall.errors import SquallError


def main() -> NoReturn:
    """Runs the command line. Errors that the user can mend are printed as they are, without a traceback."""
    try:
        command.main(prog_name="squall", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG)
    except SquallError as error:
        click.echo(str(error), err=True)
        sys.exit(WRONG)
    except BrokenPipeError:
        leave_quietly()
    sys.exit(0)


_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_HELP)
@click.version_option(__version__, message="squall %(version)s")
def command() -> None:
    """Run rules and continuous queries over streams of RDF.

    \b
    Begin with a small project that works:
      squall new alarm
    Derive what follows from a file, as N-Triples on standard output:
      squall build family.jena --source people.ttl
    Rules over a live stream of timed statements, with data that always hold:
      sensors | squall build alarm.jena --source '-?format=ntt' --static rooms.ttl --timed
    Following a folder, safe to kill and start again:
      squall build alarm.jena --source 'in/?follow=yes' --sink alarms.nt --checkpoint state/
    See what is wrong with a program, what is made of it, and what there is to choose from:
      squall check alarm.jena
      squall explain alarm.jena
      squall list
    Apply a request of SPARQL Update once:
      squall update correct.ru --data people.nq --output people.nq

    Exit codes: 0 done, 1 the run failed, 2 the program or the arguments are wrong.
    """


for _one in (build, check, explain, list_, new, update):
    command.add_command(_one)
command.add_command(build, "run")
