"""The command ``squall update``: requests of SPARQL Update, applied once to the data set that files make."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import cloup

from squall.cli import completers, messages
from squall.cli.inputs import places_of
from squall.cli.options import CONTEXTS, FAILED, IMPORT, PREFIX, PREFIXES, QUIET, VERBOSE, Command, prefixes_of
from squall.cli.written_files import check_written_files
from squall.errors import SquallError, UsageError, raise_all, single_errors
from squall.wording import counted

if TYPE_CHECKING:
    from squall.lexers.sparql.tree import Program
    from squall.sparql_update.datasets import Dataset


@cloup.command(cls=Command)
@cloup.argument("requests", nargs=-1, required=True, metavar="REQUEST...", shell_complete=completers.files)
@cloup.option_group("Program", PREFIX, PREFIXES, IMPORT)
@cloup.option_group(
    "Input",
    cloup.option(
        "--data",
        multiple=True,
        metavar="FILE",
        shell_complete=completers.files,
        help="The data set: triples go to the default graph, quads to their graphs.",
    ),
    cloup.option(
        "--graph",
        "graphs",
        multiple=True,
        metavar="IRI=FILE",
        help="A named graph; also the document of this IRI for LOAD, or the context that JSON-LD names.",
    ),
    CONTEXTS,
)
@cloup.option_group(
    "Output",
    cloup.option("--output", default="-", metavar="FILE", shell_complete=completers.files, help="Where the whole data "
                 "set goes; it may be one of the files that were read.  [default: standard output]"),
    cloup.option("--format", "format", metavar="NAME", shell_complete=completers.names("nt", "nq", "ttl", "trig",
                 "jsonld"), help="nt, nq, ttl, trig or jsonld.  [default: by the extension; nq on standard output]"),
    QUIET, VERBOSE,
)  # fmt: skip
def update(
    requests: tuple[str, ...],
    prefixes: tuple[str, ...],
    prefix_files: tuple[str, ...],
    data: tuple[str, ...],
    graphs: tuple[str, ...],
    context_folders: tuple[str, ...],
    output: str,
    format: str | None,
) -> None:
    """Apply REQUESTs of SPARQL 1.1 Update once, one after the other.

    They are applied as a whole: after an error nothing is written. LOAD fetches nothing: it reads files, by path
    or as --graph says. (`squall run` runs updates as standing rules over streams.)

    \b
    Files by extension: .nt .nq .ttl .trig .rdf .jsonld, also with .gz .bz2 .xz .zst
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
        check_written_files({"the output": output}, {"a request": requests})
        check_writable(Path(output))
    programs = _programs(requests, prefixes_of(prefixes, prefix_files))
    named = [place(text) for text in graphs]
    _check_names([name for name, _ in named])
    documents = places_of(graphs, context_folders)
    dataset = _dataset(data, named, documents)
    try:
        updated_graphs = _updated(dataset, programs, documents)
        document = datasets.encoded(updated_graphs, target)
        if output == "-":
            sys.stdout.buffer.write(document)
            sys.stdout.flush()
        else:
            datasets.write(document, output)
    except SquallError as error:
        messages.error(error)
        sys.exit(FAILED)
    messages.note(_summary(dataset, updated_graphs))


def _programs(requests: Sequence[str], prefixes: Mapping[str, str]) -> list[Program]:
    """Returns the trees of the requests, and prints warnings. It raises the errors of all of them at once."""
    from squall import sparql_update

    programs: list[Program] = []
    errors: list[SquallError] = []
    for request in requests:
        try:
            program = sparql_update.parse(Path(request), prefixes)
            for warning in sparql_update.check(program):
                messages.warning(warning)
            programs.append(program)
        except SquallError as error:
            errors += single_errors(error)
    raise_all(errors)
    return programs


def _dataset(data: Sequence[str], named: Sequence[tuple[str, str]], documents: Mapping[str, str]) -> Dataset:
    from squall.sparql_update.datasets import Dataset, read
    from squall.streams import address

    files = [*data, *(file for _, file in named)]
    if sum(address.parse(file, "stdin").path == "-" for file in files) > 1:
        raise UsageError("standard input (`-`) can be read once only")
    dataset = Dataset()
    for file in data:
        dataset |= read(file, documents=documents)
    for name, file in named:
        dataset |= _graph(name, file, documents)
    return dataset


def _check_names(names: Sequence[str]) -> None:
    from squall.rdf.iris import is_absolute

    for place, name in enumerate(names):
        if not is_absolute(name):
            raise UsageError(f"`{name}` cannot name a graph: it is no absolute IRI")
        if name in names[:place]:
            raise UsageError(f"`--graph` says twice what <{name}> is")


def _graph(name: str, file: str, documents: Mapping[str, str]) -> Dataset:
    from squall.rdf import iri
    from squall.sparql_update.datasets import Dataset, read

    dataset = read(file, documents=documents)
    if dataset.named:
        raise UsageError(f"`{file}` has named graphs, and cannot be one", hint="give it by `--data`")
    return Dataset(named={iri(name): dataset.default})


def _updated(dataset: Dataset, programs: Sequence[Program], documents: Mapping[str, str]) -> Dataset:
    from squall.sparql_update import apply_update

    for program in programs:
        dataset = apply_update(dataset, program, documents)
    return dataset


def _summary(before: Dataset, after: Dataset) -> str:
    """Returns what was changed, what there is now, and what the output cannot hold."""
    old, new = set(before.quads()), set(after.quads())
    default, named = len(after.default), len(after.named)
    inserted, deleted = counted(len(new - old), "triple"), f"{len(old - new):,}"
    graphs = counted(named, "named graph")
    lines = [
        f"{inserted} inserted, {deleted} deleted; {default:,} in the default graph, {len(new) - default:,} in {graphs}"
    ]
    lines += [
        f"  {name} is empty, which the output cannot hold" for name in sorted(after.named) if not after.named[name]
    ]
    return "\n".join(lines)
