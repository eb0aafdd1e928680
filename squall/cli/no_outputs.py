"""Why a run has no outputs: it has no input, or nothing of its input matches the patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from squall.cli import messages
from squall.cli.programs import Semantics
from squall.errors import SquallError

if TYPE_CHECKING:
    from squall.plan import Plan
    from squall.rdf import Event

SAMPLE_EVENTS = 10_000
"""So many events of the input are read again and compared with the patterns."""


def warn_of_no_source(plan: Plan) -> None:
    """Warns of a plan that is run without any input, unless it constructs facts which hold without input."""
    from squall.plan.operators import Construct, Scan, Unit

    operators = {node.id: node.op for node in plan.nodes}
    without_input = {id for id, op in operators.items() if isinstance(op, Unit)}
    for node in plan.nodes:  # in the order of their inputs
        if node.inputs and all(edge.node in without_input for edge in node.inputs):
            without_input.add(node.id)
    has_axioms = any(isinstance(operators[id], Construct) for id in without_input)
    if any(isinstance(op, Scan) for op in operators.values()) and not has_axioms:
        messages.warning("no source is given: `--source FILE`, or `--source -` for standard input", "source")


def warn_of_unread_documents(plan: Plan, named: Collection[str], documents: Iterable[tuple[str, str]]) -> None:
    """Warns of the files of documents that a pattern in `GRAPH` seems to read, though no program names the document.

    Args:
        plan: The plan of the programs.
        named: The IRIs of the documents that programs name, and of the streams.
        documents: The IRI and the file of each document.
    """
    from squall.model.sources import Graph
    from squall.plan.operators import Scan

    sources = (node.op.source for node in plan.nodes if isinstance(node.op, Scan))
    graph_names = {source.iri for source in sources if isinstance(source, Graph)}
    for iri, file in documents:
        if iri in graph_names and iri not in named:
            remedy = f"add `FROM NAMED <{iri}>` to the query, or give the data in that graph, by `--static`"
            messages.warning(f"no program names <{iri}>, so `GRAPH` has nothing of `{file}`: {remedy}", "document")


def warn_of_unmatched(
    programs: Sequence[str],
    lexer: str | None,
    rules: Sequence[str],
    statics: Sequence[str],
    places: Mapping[str, str],
    semantics: Semantics,
) -> None:
    """Warns of rules and queries that wait for predicates and classes which the input does not have.

    The beginning of each file is read again. Nothing is said if a source cannot be read twice.

    Args:
        programs: The files of the programs.
        lexer: The name of their language, or None.
        rules: The names of rule sets.
        statics: The addresses of static data.
        places: The files of documents and contexts, by their IRIs.
        semantics: The sources, the profile and the prefixes.
    """
    from squall.checking import lint
    from squall.streams import windows

    try:
        sample = list(_sample((*statics, *semantics.sources), places))
    except SquallError:
        return
    if not sample:
        return
    findings = lint(
        *programs, lexer=lexer, rules=rules, window=semantics.window, windows=windows(semantics.sources),
        documents=places, profile=semantics.profile, sample=sample,
        prefixes=semantics.prefixes,
    )  # fmt: skip
    unmatched = [finding for finding in findings if finding.code == "never-fires"]
    if unmatched:
        messages.note(f"no outputs; of the first {SAMPLE_EVENTS:,} events of each input:")
    for finding in unmatched:
        messages.note(str(finding))


def _sample(addresses: Sequence[str], places: Mapping[str, str]) -> Iterator[Event]:
    """Yields the first events of each file; none if an input is no file, or may grow."""
    from squall.streams import DeadLetterFile, address, open_source

    if any(address.source(uri).scheme != "file" for uri in addresses):
        return
    sources = [open_source(uri, DeadLetterFile(), 0, places) for uri in addresses]
    if any(source.live for source in sources):
        return
    for source in sources:
        yield from islice(chain.from_iterable(source.batches()), SAMPLE_EVENTS)
