"""The check ``unread-tuples``: facts with times, as data, that no rule reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall.checking.findings import Finding, as_findings
from squall.checking.program import Program
from squall.errors import TranslatorWarning
from squall.model import AtomPattern, System, rules
from squall.model.walk import walk
from squall.rdf import TUPLE

_HINT = (
    "let them hold over their intervals, for all languages: `{}valid=time`; or read them by a rule of HFC or RIF "
    "(docs/streams.md, Quintuples)"
)


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
        option = f"{address}{'&' if '?' in address else '?'}"
        yield TranslatorWarning(message, hint=_HINT.format(option))
