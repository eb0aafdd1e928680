"""The command ``squall check``: errors in programs, and what their authors hardly meant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import cloup

from squall.cli import completers, messages
from squall.cli.inputs import check_exist, format_of, with_tuples
from squall.cli.options import (
    FAILED,
    FILE,
    GRAPH,
    LEXER,
    MEANING,
    QUIET,
    REQUIRED_PROGRAMS,
    VERBOSE,
    WINDOW,
    WRONG,
    Command,
    check_files,
    prefixes_of,
    source_option,
    static_option,
)
from squall.cli.programs import Semantics, schema_triples
from squall.errors import UsageError

if TYPE_CHECKING:
    from squall.checking import Finding


@cloup.command(cls=Command)
@REQUIRED_PROGRAMS
@cloup.option_group(
    "Program",
    LEXER,
    cloup.option(
        "--rules",
        multiple=True,
        metavar="NAME",
        shell_complete=completers.rule_sets,
        help="A rule set (rdfs, owl2rl, ...) whose conclusions the programs read; its own rules are not checked.",
    ),
    *MEANING,
)
@cloup.option_group(
    "Input",
    source_option("A stream, as in `squall run`. Its name and window count; it is not read."),
    static_option(
        "Data that always hold. Their name counts, for --entailment what they say of classes, and of "
        "owl:sameAs for --same-as."
    ),
    GRAPH,
    cloup.option(
        "--statistics",
        type=FILE,
        metavar="FILE",
        help="The data are like those that `squall run --collect-statistics` counted: no others are expected.",
    ),
)
@cloup.option_group("Time", WINDOW)
@cloup.option_group(
    "Findings",
    cloup.option("--format", "format", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True,
                 help="Text, JSON for programs, or SARIF for editors and code review."),
    cloup.option("--ignore", "ignored", multiple=True, metavar="CODE", help="Leave out warnings and infos of this "
                 "code."),
    cloup.option("--strict", is_flag=True, help="Exit code 1 for a warning."),
    QUIET, VERBOSE,
)  # fmt: skip
def check(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    entailment: str,
    same_as: str | None,
    same_as_answers: str,
    schemas: tuple[str, ...],
    schema_changes: str,
    specialise: bool,
    lenient: bool,
    lexer: str | None,
    prefixes: tuple[str, ...],
    prefix_files: tuple[str, ...],
    sources: tuple[str, ...],
    statics: tuple[str, ...],
    graphs: tuple[str, ...],
    window: str,
    profile: str,
    statistics: Path | None,
    format: str,
    ignored: tuple[str, ...],
    strict: bool,
) -> None:
    """Check PROGRAMs that run together for errors, and for what their authors hardly meant. Nothing is run.

    A file *.map, or one in RML, is a mapping of records: it is checked with a sample of the files of each --source.

    Errors are what makes `squall run` refuse them. Warnings: rules that never fire, joins that compare nothing, state
    that grows for ever, endless recursion, tests that decide nothing, duplicate rules, misspelt names. Findings go to
    standard output, their number to standard error.

    Exit codes: 0 no error, 1 a warning with --strict, 2 an error, or the arguments are wrong.

    \b
    Examples:
      squall check alarm.jena
      squall check rules.jena query.csparql --source 'obs=readings.ntt?window=RANGE 10s'
      squall check alarm.jena --strict --ignore cross-product
      squall check query.csparql --rules rdfs
      squall check alarm.jena --format json
      squall check readings.map --source readings.ndjson
    """
    from squall import streams
    from squall.checking import lint
    from squall.checking.mappings import is_mapping
    from squall.streams.sources import documents

    check_files(programs)
    if any(map(is_mapping, programs)):
        _report(_of_mappings(programs, sources), format, ignored, strict)
    named_documents = dict(map(documents.place, graphs))
    check_exist([*sources, *statics, *named_documents.values()])
    namespaces = prefixes_of(prefixes, prefix_files)
    semantics = Semantics(
        sources,
        window,
        None,
        None,
        profile,
        namespaces,
        entailment,
        schemas,
        statics,
        named_documents,
        specialise=specialise,
    )
    findings = lint(
        *programs,
        lexer=lexer,
        rules=rules,
        window=window,
        windows=streams.windows(sources),
        streams=_names(sources) if sources or statics else None,
        static=_names(statics) or (),
        graphs=_may_bring_graphs((*sources, *statics)),
        statistics=statistics,
        documents=named_documents,
        profile=profile,
        prefixes=namespaces,
        entailment=entailment,
        schema=partial(schema_triples, semantics=semantics),
        lenient=lenient,
        specialise=specialise,
        same_as=same_as,
        same_as_answers=same_as_answers,
        schema_changes=schema_changes,
        tuples=with_tuples((*sources, *statics)),
    )
    _report(findings, format, ignored, strict)


def _of_mappings(paths: Sequence[str], sources: Sequence[str]) -> Sequence[Finding]:
    """Returns the findings of mappings, with samples of files of records."""
    from squall.checking.mappings import is_mapping, lint_mapping
    from squall.streams import address

    if programs := [path for path in paths if not is_mapping(path)]:
        raise UsageError(f"`{programs[0]}` is a program, and no mapping", hint="check programs and mappings one by one")
    places = [address.source(uri) for uri in sources]
    return [finding for path in paths for finding in lint_mapping(path, places)]


def _report(findings: Sequence[Finding], format: str, ignored: Sequence[str], strict: bool) -> NoReturn:
    """Shows findings, and ends the process with the exit code for them."""
    from squall.checking import ERROR, WARNING
    from squall.checking.reports import FORMATS, summary

    visible_findings = [finding for finding in findings if finding.severity == ERROR or finding.code not in ignored]
    if visible_findings or format != "text":
        click.echo(FORMATS[format](visible_findings))
    left_out = f"; {len(findings) - len(visible_findings)} ignored" if len(findings) > len(visible_findings) else ""
    messages.note(f"{summary(visible_findings)}{left_out}")
    severities = {finding.severity for finding in visible_findings}
    sys.exit(WRONG if ERROR in severities else FAILED if strict and WARNING in severities else 0)


def _names(uris: Sequence[str]) -> frozenset[str] | None:
    """Returns the IRIs of the streams of sources; None if one is a plug-in's, whose streams are not known yet."""
    from squall.streams import address

    places = [address.source(uri) for uri in uris]
    if all(place.scheme in ("file", "stdin") for place in places):
        return frozenset(place.get("stream") for place in places)
    return None


def _may_bring_graphs(uris: Sequence[str]) -> bool:
    """Returns whether a source may have a format for named graphs. A folder may have any format."""
    from squall.streams import address

    formats = (format_of(address.source(uri)) for uri in uris)
    return any(format is None or format.syntax.supports_datasets for format in formats)
