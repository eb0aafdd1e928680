"""Rule sets that read one stream, beside patterns that read nothing of what they derive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall.errors import TranslatorWarning
from squall.model import AtomPattern, FactPattern, Pattern, System, rules
from squall.model.fact_shapes import derived_shapes, overlaps, shape
from squall.model.sources import GRAPH, GRAPH_EXISTS
from squall.model.walk import walk

_HINT = (
    "name no stream in the address of the rule set: then each pattern reads the closure of its own stream or window; "
    "or read the default graph (`FROM STREAM`)"
)


def unseen_conclusions(program: System, rule_sets: Iterable[System]) -> Iterator[TranslatorWarning]:
    """Yields a warning if a pattern might match what rule sets derive, but reads a window, stream or graph alone.

    What such a rule set derives is in the default graph.

    Args:
        program: The program.
        rule_sets: The rule sets (and ontologies) that read a stream of their own.
    """
    shapes = {conclusion for rule_set in rule_sets for rule in rules(rule_set) for conclusion in derived_shapes(rule)}
    for pattern in _patterns_of_streams(program):
        subject, predicate, object = pattern.slots[-3:]
        triple = shape(Pattern(subject, predicate, object))
        if any(overlaps(conclusion, triple) for conclusion in shapes):
            message = "this pattern reads a window, stream or graph by name, and nothing of what the rule sets derive"
            yield TranslatorWarning(message, pattern.origin, _HINT)
            return


def _patterns_of_streams(program: System) -> Iterator[FactPattern]:
    """Yields the patterns of triples whose sources do not have derived facts."""
    for part in (part for rule in rules(program) for part in walk(rule) if isinstance(part, System)):
        if part.name == GRAPH_EXISTS or any(source.reads_derived_facts for source in part.sources):
            continue
        for joinable in part.joinables:
            match joinable:
                case Pattern():
                    yield joinable
                case AtomPattern(relation=relation) if relation == GRAPH:
                    yield joinable
