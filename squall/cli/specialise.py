"""The command ``squall specialise``: the rules that a rule set becomes with an ontology."""

from __future__ import annotations

import click
import cloup

from squall.cli import completers, messages
from squall.cli.options import (
    IMPORT,
    LENIENT,
    PREFIX,
    PREFIXES,
    QUIET,
    RULES,
    VERBOSE,
    Command,
    check_files,
    prefixes_of,
)
from squall.cli.programs import system_writer
from squall.errors import UsageError
from squall.wording import counted


@cloup.command(cls=Command)
@cloup.argument("ontologies", nargs=-1, required=True, metavar="ONTOLOGY...", shell_complete=completers.files)
@cloup.option_group(
    "Program",
    RULES,
    cloup.option(
        "--for", "programs", multiple=True, metavar="PROGRAM", shell_complete=completers.files,
        help="Write only the rules whose conclusions this program can read.",
    ),
    LENIENT,
    PREFIX,
    PREFIXES,
    IMPORT,
)  # fmt: skip
@cloup.option_group(
    "Output",
    cloup.option("--format", "format", default="jena", show_default=True, metavar="NAME",
                 shell_complete=completers.names("jena", "rif", "rifps", "text", "json"), help="The language of the "
                 "rules (jena, rif, rifps), or text or json for the translated system."),
    QUIET, VERBOSE,
)  # fmt: skip
def specialise(
    ontologies: tuple[str, ...],
    rules: tuple[str, ...],
    programs: tuple[str, ...],
    lenient: bool,
    prefixes: tuple[str, ...],
    prefix_files: tuple[str, ...],
    format: str,
) -> None:
    """Write the rules that rule sets become with the classes and properties of ONTOLOGYs, which are data in RDF.

    Over data they derive what the rule sets derive of the ontology and the data. Blank nodes become IRIs.

    \b
    Examples:
      squall specialise zoo.ttl --rules rhodf                         rules for the classes of the zoo
      squall specialise zoo.ttl --rules owl2rl --for animals.rq       those that a query needs
      squall specialise zoo.ttl --rules my.jena --format text
      squall run query.csparql --rules owl2rl --specialise --schema zoo.ttl    without a file of rules
    """
    from squall.compiling import specialised_rules
    from squall.model import rules as rules_of

    if not rules:
        raise UsageError("no rule set is given", hint="name one: `--rules rhodf`, or a file of rules")
    check_files(programs)
    write = system_writer(format)
    system, report = specialised_rules(ontologies, rules, programs, prefixes_of(prefixes, prefix_files), lenient)
    for number, line in enumerate(report.lines()):
        (messages.detail if number else messages.note)(line)
    messages.note(f"{counted(len(list(rules_of(system))), 'rule')} written")
    click.echo(write(system).removesuffix("\n"))
