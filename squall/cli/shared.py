"""What the commands share: exit codes, and the arguments that more than one of them takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import click

from squall.errors import UsageError

FAILED, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes: the run failed; the program or the arguments are wrong; it was interrupted. 0: done."""

PROGRAMS = click.argument("programs", nargs=-1, required=True, metavar="PROGRAM...")
LEXER = click.option("--lexer", metavar="NAME", help="The programs' language [default: by the file's ending].")
RULES = click.option("--rules", multiple=True, metavar="NAME", help="A rule set (rhodf, rdfs, rdfs-axioms, datatypes, "
                     "owl2rl) whose conclusions the programs read; without a program it is run itself.")  # fmt: skip
PROFILE = click.option("--profile", default="default", show_default=True, metavar="NAME", help="As another engine has "
                       "it: csparql, cqels, rspql, jena or squall2013.")  # fmt: skip
WINDOW = click.option("--window", default="", metavar="WINDOW", help="Through which streams without a window of their "
                      "own are read: RANGE 10s, RANGE 10s STEP 5s, RANGE 10s TUMBLING, TRIPLES 100, TRIPLES 9 STEP 3."
                      )  # fmt: skip


def check_files(programs: Sequence[str]) -> None:
    """With a lexer named, the Python interface takes a text; the command line takes files alone. Raises UsageError."""
    for program in programs:
        if not Path(program).is_file():
            raise UsageError(f"the program `{program}` does not exist")


class _Printing(logging.Handler):
    """Writes what the rules of a program print to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(record.getMessage(), err=True)


def show_prints() -> None:
    """Has what rules print (the logger ``squall.print``) shown from now on, unless somebody else listens to it."""
    logger = logging.getLogger("squall.print")
    if not logger.handlers:
        logger.setLevel(logging.INFO)
        logger.addHandler(_Printing())
