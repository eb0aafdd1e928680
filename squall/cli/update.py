"""The command ``squall update``: requests of SPARQL Update, applied once to the data set that files make."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squall.cli.shared import FAILED
from squall.errors import SquallError, UsageError, raise_all, single_errors

if TYPE_CHECKING:
    from squall.lexers.sparql.tree import Program
    from squall.sparql_update.datasets import Dataset


@click.command()
@click.argument("requests", nargs=-1, required=True, metavar="REQUEST...")
@click.option("--data", "data", multiple=True, metavar="FILE", help="What is updated: triples in the default graph, "
              "quads where they say.")  # fmt: skip
@click.option("--graph", "graphs", multiple=True, metavar="IRI=FILE", help="A named graph; also where LOAD finds the "
              "document of this IRI.")  # fmt: skip
@click.option("--output", default="-", metavar="FILE", help="Where the whole data set goes then; it may be one of the "
              "files that were read [default: standard output].")  # fmt: skip
@click.option("--format", "format", metavar="NAME", help="nt, nq, ttl, trig or jsonld [default: by the file's "
              "ending, nq on standard output].")  # fmt: skip
def update(
    requests: tuple[str, ...], data: tuple[str, ...], graphs: tuple[str, ...], output: str, format: str | None
) -> None:
    """Apply REQUESTs of SPARQL 1.1 Update once, one after the other.

    They are done as a whole: after an error nothing is written. Nothing is fetched for LOAD: it reads files, by path
    or by what --graph says. (As standing rules over streams, `squall build` runs updates.)

    \b
    Files by ending: .nt .nq .ttl .trig .rdf .jsonld, each also with .gz
      --data people.trig
      --data '-?format=nq'                      standard input
      --graph http://example.org/staff=staff.ttl

    \b
    Examples:
      squall update correct.ru --data people.ttl --format ttl
      squall update correct.ru --data people.nq --output people.nq
      squall update load.ru --output store.trig.gz
    """
    from squall.sparql_update import datasets
    from squall.streams.sinks import check_writable
    from squall.streams.sources.documents import place

    target = datasets.writable(output, format)
    if output != "-":
        check_writable(Path(output))
    programs = _programs(requests)
    named = [place(text) for text in graphs]
    dataset = _dataset(data, named)
    try:
        changed = _updated(dataset, programs, dict(named))
        document = datasets.encoded(changed, target)
        if output == "-":
            sys.stdout.buffer.write(document)
            sys.stdout.flush()
        else:
            datasets.write(document, output)
    except SquallError as error:
        click.echo(str(error), err=True)
        sys.exit(FAILED)
    click.echo(_summary(dataset, changed), err=True)


def _programs(requests: Sequence[str]) -> list[Program]:
    """The trees of the requests. Warnings are printed; errors are told of all of them at once."""
    from squall import sparql_update

    programs: list[Program] = []
    errors: list[SquallError] = []
    for request in requests:
        try:
            program = sparql_update.parse(Path(request))
            for warning in sparql_update.check(program):
                click.echo(str(warning), err=True)
            programs.append(program)
        except SquallError as error:
            errors += single_errors(error)
    raise_all(errors)
    return programs


def _dataset(data: Sequence[str], named: Sequence[tuple[str, str]]) -> Dataset:
    from squall.sparql_update.datasets import Dataset, read
    from squall.streams import address

    files = [*data, *(file for _, file in named)]
    if sum(address.parse(file, "stdin").path == "-" for file in files) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    _check_names([name for name, _ in named])
    dataset = Dataset()
    for file in data:
        dataset |= read(file)
    for name, file in named:
        dataset |= _graph(name, file)
    return dataset


def _check_names(names: Sequence[str]) -> None:
    from squall.rdf.iris import is_absolute

    for place, name in enumerate(names):
        if not is_absolute(name):
            raise UsageError(f"`{name}` cannot name a graph: it is no absolute IRI")
        if name in names[:place]:
            raise UsageError(f"`--graph` says twice what <{name}> is")


def _graph(name: str, file: str) -> Dataset:
    from squall.rdf import iri
    from squall.sparql_update.datasets import Dataset, read

    found = read(file)
    if found.named:
        raise UsageError(f"`{file}` has named graphs, and cannot be one", hint="give it by `--data`")
    return Dataset(named={iri(name): found.default})


def _updated(dataset: Dataset, programs: Sequence[Program], documents: Mapping[str, str]) -> Dataset:
    from squall.sparql_update import apply_update

    for program in programs:
        dataset = apply_update(dataset, program, documents)
    return dataset


def _summary(before: Dataset, after: Dataset) -> str:
    """What was changed, what there is now, and what no file tells of."""
    old, new = set(before.quads()), set(after.quads())
    default, named = len(after.default), len(after.named)
    there = (
        f"{default:,} in the default graph, {len(new) - default:,} in {named:,} named graph{'s' if named != 1 else ''}"
    )
    lines = [f"{len(new - old):,} triples inserted, {len(old - new):,} deleted; {there}"]
    lines += [
        f"  {name} is empty, which the output does not tell" for name in sorted(after.named) if not after.named[name]
    ]
    return "\n".join(lines)
