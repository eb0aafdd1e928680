"""The command ``squall map``: proposes a mapping for data that are not RDF."""

from __future__ import annotations

import click
import cloup

from squall.cli import completers, messages
from squall.cli.options import QUIET, VERBOSE, Command
from squall.wording import counted


@cloup.command("map", cls=Command)
@cloup.argument("file", metavar="FILE", shell_complete=completers.files)
@cloup.option_group(
    "Output",
    cloup.option("--sample", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="How many "
                 "records are read."),
    cloup.option("--format", "format", type=click.Choice(["short", "rml"]), default="short", show_default=True,
                 help="The short form, or RML in Turtle."),
    QUIET, VERBOSE,
)  # fmt: skip
def map_(file: str, sample: int, format: str) -> None:
    """Propose a mapping for the records of FILE: JSON, lines of JSON, or CSV. It goes to standard output.

    What looks like an identity becomes a subject, what looks like a time the event time; numbers, IRIs, nested objects
    and arrays are recognised. Read what is proposed, and change the names. FILE has options as a source has them.

    \b
    Examples:
      squall map readings.ndjson > readings.map
      squall map 'readings.csv?separator=;' --sample 100
      sensors | head -50 | squall map '-?format=ndjson' --format rml > readings.ttl
      squall check readings.map --source readings.ndjson
      squall run alarm.rq --source 'readings.ndjson?map=readings.map'
    """
    from squall.streams import address
    from squall.streams.mappings.proposal import FORMATS, propose
    from squall.streams.mappings.shapes import sample_of

    place = address.parse(file, "stdin")
    place.only("format", "header", "separator")
    records = sample_of(place, sample)
    proposal = propose(records)
    click.echo(FORMATS[format](proposal), nl=False)
    messages.note(
        f"{counted(len(records.records), 'record')} read; check the mapping: `squall check FILE --source {file}`"
    )
