"""The arguments and options that several commands have, and the exit codes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import cloup

from squall import plugins
from squall.cli import completers, messages
from squall.errors import UsageError

FAILED, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes: the run failed; the program or the arguments are wrong; it was interrupted. 0: success."""

FILE = click.Path(path_type=Path)
F = TypeVar("F", bound=Callable[..., Any])


class Command(cloup.Command):
    """A command that refuses an option with one value if it is given more than once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
            for option, count in Counter(filter(_has_one_value, parameters)).items():
                if count > 1:
                    raise UsageError(
                        f"`{option.opts[0]}` is given {count} times", hint="it has one value: give it once"
                    )
        return super().parse_args(ctx, args)


def _has_one_value(parameter: click.Parameter) -> bool:
    is_counted = isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count)
    return isinstance(parameter, click.Option) and not parameter.multiple and not is_counted


PROGRAMS = cloup.argument("programs", nargs=-1, metavar="PROGRAM...", shell_complete=completers.files)
REQUIRED_PROGRAMS = cloup.argument(
    "programs", nargs=-1, required=True, metavar="PROGRAM...", shell_complete=completers.files
)
LEXER = cloup.option(
    "--lexer", metavar="NAME", shell_complete=completers.plugin_names(plugins.LEXERS),
    help="The programs' language.  [default: by the file's extension]",
)  # fmt: skip
RULES = cloup.option(
    "--rules", multiple=True, metavar="NAME|FILE", shell_complete=completers.rule_sets,
    help="A rule set (rhodf, inverse, rdfs, rdfs-axioms, datatypes, owl2rl, sameas, or a file of rules) whose "
    "conclusions programs read; NAME?stream=IRI&window=RANGE 10s reads one stream. Without a program the rule set "
    "itself is run.",
)  # fmt: skip
ENTAILMENT = cloup.option(
    "--entailment", default="none", show_default=True, metavar="REGIME",
    shell_complete=completers.names("none", "rhodf", "rdfs"),
    help="What patterns have besides what they read: what follows from it with the schema, by rhodf (subclasses, "
    "subproperties, domains, ranges, inverse, symmetric and equivalent terms) or rdfs.",
)  # fmt: skip
SCHEMA = cloup.option(
    "--schema", "schemas", multiple=True, metavar="URI", shell_complete=completers.uris(plugins.SOURCES),
    help="What is known before the run, besides static data: of classes and properties for --entailment and "
    "--specialise, of owl:sameAs for --same-as. All else in it is left out.",
)  # fmt: skip
SPECIALISE = cloup.option(
    "--specialise", is_flag=True,
    help="Evaluate what the rule sets read of the schema (--schema, --static) before the run; no source may change it.",
)  # fmt: skip
SAME_AS = cloup.option(
    "--same-as", metavar="WAY", shell_complete=completers.names("none", "axioms", "representative", "provenance"),
    help="How patterns treat owl:sameAs: none (as any property), axioms (what follows is derived), representative "
    "(the terms of a clique, known before the run, are read as the least of them) or provenance (they are joined as "
    "one, and answers have those that matched).  [default: none]",
)  # fmt: skip
SAME_AS_ANSWERS = cloup.option(
    "--same-as-answers", default="representatives", show_default=True, metavar="WHICH",
    shell_complete=completers.names("representatives", "members"),
    help="What answers have by --same-as representative: representatives, or each term (members).",
)  # fmt: skip
SCHEMA_CHANGES = cloup.option(
    "--schema-changes", type=click.Choice(["error", "dead-letters", "follow"]), default="error", show_default=True,
    help="What to do with a statement that would change the schema of --entailment, or the terms of --same-as. "
    "`follow` reads facts by what streams say of owl:sameAs as it comes.",
)  # fmt: skip
LENIENT = cloup.option(
    "--lenient", is_flag=True,
    help="Leave out with a warning what rules cannot express of an ontology; otherwise it is an error.",
)  # fmt: skip
PREFIX = cloup.option(
    "--prefix", "prefixes", multiple=True, metavar="NAME=IRI",
    help="A prefix that the programs may use; one that a program declares itself wins.",
)  # fmt: skip
PREFIXES = cloup.option(
    "--prefixes", "prefix_files", multiple=True, metavar="FILE", shell_complete=completers.files,
    help="A file that declares prefixes, by lines such as PREFIX ex: <http://example.org/>.",
)  # fmt: skip
PROFILE = cloup.option(
    "--profile", default="default", show_default=True, metavar="NAME", shell_complete=completers.profiles,
    help="Behave like another engine: csparql, cqels, rspql, jena, instans or squall2013.",
)  # fmt: skip


def _import(context: click.Context, parameter: click.Parameter, paths: Sequence[Path]) -> None:
    if paths and not context.resilient_parsing:
        from squall.functions import python_files

        for path in paths:
            python_files.load(path)


IMPORT = cloup.option(
    "--import", type=FILE, multiple=True, expose_value=False, callback=_import, metavar="FILE",
    shell_complete=completers.files,
    help="A Python file that registers functions and aggregates for the programs (docs/extending.md).",
)  # fmt: skip
MEANING = (
    ENTAILMENT,
    SAME_AS,
    SAME_AS_ANSWERS,
    SCHEMA,
    SCHEMA_CHANGES,
    SPECIALISE,
    LENIENT,
    PREFIX,
    PREFIXES,
    PROFILE,
    IMPORT,
)
"""What programs mean, for all commands that compile them for a run."""
GRAPH = cloup.option(
    "--graph", "graphs", multiple=True, metavar="IRI=FILE",
    help="The file of a graph that a program names (FROM), of a document that it imports, or of a context that JSON-LD "
    "names.",
)  # fmt: skip
CONTEXTS = cloup.option(
    "--contexts", "context_folders", multiple=True, metavar="FOLDER",
    help="A folder of JSON-LD contexts; its file `contexts.json` has the file of each IRI.",
)  # fmt: skip


def source_option(help: str) -> Callable[[F], F]:
    """Returns the option of streams, with what a command does with them as its help."""
    return _uris("--source", "sources", help)


def static_option(help: str) -> Callable[[F], F]:
    """Returns the option of static data, with what a command does with them as its help."""
    return _uris("--static", "statics", help)


def _uris(name: str, parameter: str, help: str) -> Callable[[F], F]:
    complete = completers.uris(plugins.SOURCES)
    return cloup.option(name, parameter, multiple=True, metavar="URI", shell_complete=complete, help=help)


WINDOW = cloup.option(
    "--window", default="", metavar="WINDOW",
    help="The window of streams that have none of their own: RANGE 10s, RANGE 10s STEP 5s, RANGE 10s TUMBLING, "
    "RANGE 10s STEP 5s ORIGIN 2s (or FIRST), TRIPLES 100, TRIPLES 9 STEP 3.  [default: unbounded]",
)  # fmt: skip
OUTPUT = cloup.option(
    "--output", type=click.Choice(["istream", "rstream", "dstream", "changes"]),
    help="Emit what is new, all that holds, what has ceased to hold, or what has ceased to hold and what is new.  "
    "[default: as the program says]",
)  # fmt: skip
REPORT = cloup.option(
    "--report", metavar="POLICY", shell_complete=completers.names("close", "change", "nonempty", "periodic:"),
    help="When windows report: close, change, nonempty or periodic:5s.  [default: close]",
)  # fmt: skip
PLANNER = cloup.option(
    "--planner", default="rete", show_default=True, metavar="NAME",
    shell_complete=completers.plugin_names(plugins.PLANNERS), help="The planner (`squall list planners`).",
)  # fmt: skip
BUILDER = cloup.option(
    "--builder", default="iterator", show_default=True, metavar="NAME",
    shell_complete=completers.plugin_names(plugins.BUILDERS), help="The engine (`squall list builders`).",
)  # fmt: skip
STATISTICS = cloup.option(
    "--statistics", type=FILE, metavar="FILE",
    help="Plan for data like those that `squall run --collect-statistics` counted.",
)  # fmt: skip
QUIET = cloup.option(
    "-q", "--quiet", is_flag=True, expose_value=False, is_eager=True, callback=messages.set_quiet,
    help="No progress and no summary: only errors, warnings, and what was lost.",
)  # fmt: skip
VERBOSE = cloup.option(
    "-v", "--verbose", is_flag=True, expose_value=False, is_eager=True, callback=messages.set_verbose,
    help="Say what happens; with an error, print the traceback of its cause.",
)  # fmt: skip


def prefixes_of(prefixes: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Returns the prefixes of ``--prefix``, and of the files of ``--prefixes``, which count less.

    Raises:
        UsageError: An option is no prefix and its IRI, a prefix stands for two IRIs, or a file cannot be read.
        LexerError: A file has something else than declarations of prefixes.
    """
    from squall.lexers.prefixes import as_prefixes, load

    from_files = _joined("--prefixes", (pair for file in files for pair in load(file).items()))
    return from_files | as_prefixes(_joined("--prefix", map(_prefix, prefixes)))


def _prefix(text: str) -> tuple[str, str]:
    name, equals, namespace = text.partition("=")
    if not equals:
        raise UsageError(f"`--prefix {text}` is not NAME=IRI", hint="write `--prefix ex=http://example.org/`")
    return name.removesuffix(":"), namespace.removeprefix("<").removesuffix(">")


def _joined(option: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    prefixes: dict[str, str] = {}
    for prefix, namespace in pairs:
        if prefixes.setdefault(prefix, namespace) != namespace:
            message = f"`{option}` gives `{prefix}:` two meanings: <{prefixes[prefix]}> and <{namespace}>"
            raise UsageError(message, hint="give it one")
    return prefixes


def check_files(programs: Sequence[str]) -> None:
    """Raises UsageError if a program is no file. (With a lexer named, the Python interface also takes a text.)"""
    from squall.compiling import is_file

    for program in programs:
        if not is_file(program):
            raise UsageError(f"the program `{program}` does not exist")


class _PrintHandler(logging.Handler):
    """Writes what the rules of a program print to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(record.getMessage(), err=True)


def show_prints() -> None:
    """Shows what rules print (the logger ``squall.print``) from now on, unless it has another handler."""
    logger = logging.getLogger("squall.print")
    if not logger.handlers:
        logger.setLevel(logging.INFO)
        logger.addHandler(_PrintHandler())
