"""RIF entailment in the tests of SPARQL 1.1: data that name rules by rif:usedWithProfile (rif04.ttl, for one).

The rules are premises of the W3C's tests for RIF, which are a suite of their own (`tests.conformance.rif_suite`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from squall.model import System
from squall.rdf import Event, Triple
from squall.streams.sources.documents import load
from tests.conformance import LeftOut, rif_suite

USED = "<http://www.w3.org/2007/rif#usedWithProfile>"


def rules(suite: Path, data: Iterable[Triple]) -> tuple[list[System], list[Event]]:
    """Returns the rules that data name, and the facts that these rules import.

    Args:
        suite: The folder of ``rif-w3c``.

    Raises:
        LeftOut: The folder does not exist, or rules cannot express an import.
    """
    systems: list[System] = []
    facts: list[Event] = []
    for document in _documents(suite, data):
        inputs = rif_suite.places(document.parent, document.parent.name)
        systems.append(rif_suite.compiled(document, inputs))
        facts += load(systems[-1], inputs)
    return systems, facts


def _documents(suite: Path, data: Iterable[Triple]) -> Iterator[Path]:
    for triple in data:
        if triple.predicate == USED:
            name = PurePosixPath(triple.subject.strip("<>")).name
            yield _premise(suite, name)


def _premise(suite: Path, name: str) -> Path:
    for path in suite.rglob(name):
        return path
    raise LeftOut(f"the rules are not at hand: {name} in {suite.name}")
