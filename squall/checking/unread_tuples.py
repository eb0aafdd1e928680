"""The check ``unread-tuples``: facts with times, as data, that no rule reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from squall.checking.findings import Finding, as_findings
from squall.checking.program import Program
from squall.errors import TranslatorWarning
from squall.model import AtomPattern, System, rules
from squall.model.walk import walk
from squall.rdf import TUPLE
from squall.streams.address import source as address_of

_HINT = (
    "let them hold over their intervals, for all languages{}valid=time`; or read them by a rule of HFC or RIF "
    "(docs/streams.md, Quintuples)"
)
_EACH_FILE = ", where a source is a file or standard input, and all of it is there: "
"""What a source has to be. Of others, and of folders, the triples have no order by which they hold."""


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each source whose quintuples become tuples, if no rule reads any."""
    for warning in unread_tuples(program.system, program.tuples):
        yield from as_findings(warning, "unread-tuples")


def unread_tuples(system: System, addresses: Iterable[str]) -> Iterator[TranslatorWarning]:
    """Yields a warning for each address whose quintuples become tuples, if no rule reads any.

    Args:
        system: The system.
        addresses: The addresses of sources and static data with quintuples as data.
    """
    if any(isinstance(part, AtomPattern) and part.relation == TUPLE for rule in rules(system) for part in walk(rule)):
        return
    for address in addresses:
        message = f"no rule reads the facts of `{address}` that have a begin or an end: they are tuples"
        option = f": `{address}{'&' if '?' in address else '?'}" if _may_hold(address) else f"{_EACH_FILE}`"
        yield TranslatorWarning(message, hint=_HINT.format(option))


def _may_hold(uri: str) -> bool:
    """Returns whether the triples of a source may hold over their intervals: it has their order."""
    place = address_of(uri)
    is_document = place.scheme in ("file", "stdin") and not os.path.isdir(place.path)
    return is_document and not any(place.get(option) for option in ("follow", "time", "lateness"))
