"""The command ``squall check``: what is wrong with programs, and what their authors hardly meant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from squall.cli.shared import FAILED, LEXER, PROFILE, PROGRAMS, WINDOW, WRONG, check_files


@click.command()
@PROGRAMS
@click.option("--rules", multiple=True, metavar="NAME", help="A rule set (rdfs, owl2rl, ...) whose conclusions the "
              "programs read; nothing is said of its own rules.")  # fmt: skip
@LEXER
@click.option("--source", "sources", multiple=True, metavar="URI", help="A stream, as in `build`: its name and window "
              "count; it is not read.")  # fmt: skip
@click.option("--static", "statics", multiple=True, metavar="URI", help="Data that always hold: its name counts.")
@click.option(
    "--graph", "graphs", multiple=True, metavar="IRI=FILE", help="Where a document is that a program imports."
)
@WINDOW
@PROFILE
@click.option("--statistics", type=click.Path(path_type=Path), metavar="FILE", help="The data are like those that "
              "`build --collect-statistics` counted: no others are expected.")  # fmt: skip
@click.option("--format", "format", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True,
              help="For the eye, for programs, or for what shows findings beside the code.")  # fmt: skip
@click.option("--ignore", "ignored", multiple=True, metavar="CODE", help="Leave out warnings and infos of this code.")
@click.option("--strict", is_flag=True, help="Exit code 1 for a warning.")
def check(
    programs: tuple[str, ...],
    rules: tuple[str, ...],
    lexer: str | None,
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
    """Say what is wrong with PROGRAMs that run together, and what their authors hardly meant; nothing is run.

    Errors are what makes `squall build` refuse them. Warnings: rules that never fire, joins that compare nothing, state
    that grows for ever, recursion without end, tests that decide nothing, rules said twice, misspelt names. What is
    found goes to standard output, how much of it to standard error.

    Exit codes: 0 no error, 1 a warning with --strict, 2 an error, or the arguments are wrong.

    \b
    Examples:
      squall check alarm.jena
      squall check rules.jena query.csparql --source 'obs=readings.ntt?window=RANGE 10s'
      squall check alarm.jena --strict --ignore cross-product
      squall check query.csparql --rules rdfs
      squall check alarm.jena --format json
    """
    from squall import streams
    from squall.checking import ERROR, WARNING, lint
    from squall.checking.reports import FORMATS, summary
    from squall.streams.sources import documents

    check_files(programs)
    found = lint(
        *programs,
        lexer=lexer,
        rules=rules,
        window=window,
        windows=streams.windows(sources),
        streams=_names(sources) if sources or statics else None,
        static=_names(statics) or (),
        graphs=_may_bring_graphs((*sources, *statics)),
        statistics=statistics,
        documents=dict(map(documents.place, graphs)),
        profile=profile,
    )
    shown = [one for one in found if one.severity == ERROR or one.code not in ignored]
    if shown or format != "text":
        click.echo(FORMATS[format](shown))
    left_out = f"; {len(found) - len(shown)} ignored" if len(found) > len(shown) else ""
    click.echo(f"{summary(shown)}{left_out}", err=True)
    severities = {one.severity for one in shown}
    sys.exit(WRONG if ERROR in severities else FAILED if strict and WARNING in severities else 0)


def _names(uris: Sequence[str]) -> frozenset[str] | None:
    """The streams that sources bring, by IRI; None: a plug-in's are not known beforehand."""
    from squall.streams import address

    places = [address.source(uri) for uri in uris]
    if all(place.scheme in ("file", "stdin") for place in places):
        return frozenset(place.get("stream") for place in places)
    return None


def _may_bring_graphs(uris: Sequence[str]) -> bool:
    """Whether a source has a format for named graphs, as far as it can be told: a folder may have any."""
    from squall.streams import address, formats

    for place in map(address.source, uris):
        name = place.get("format")
        known = formats.named(name) if name else formats.of_path(place.path)
        if known is None or known[0].syntax.supports_datasets:
            return True
    return False
