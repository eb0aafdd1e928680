"""``never-fires``: rules that wait for facts which nothing brings and no rule makes."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, Rule
from squall.checking.spelling import near_terms
from squall.model import (
    ARRIVAL,
    GRAPH,
    AtomPattern,
    Construct,
    Exists,
    FactPattern,
    Insert,
    Pattern,
    Source,
    System,
    Union,
)
from squall.model.unbounded_state import pattern_text
from squall.rdf import DEFAULT_STREAM, is_iri


def check(program: Program) -> Iterator[Finding]:
    """A finding for each rule that never has a solution, at the pattern that never finds anything.

    What streams and static data bring is not known: it may be anything, but for atoms, for streams that the program
    makes itself, for streams that are not given where others are, and for predicates that statistics do not know.
    """
    firing = _Firing(program)
    for rule in program.rules:
        reading = firing.missing(rule.system)
        if reading is not None and not is_internal(rule.system):
            yield firing.finding(rule, reading)


def is_internal(rule: System) -> bool:
    """Whether a rule makes facts that other rules alone read."""
    return all(isinstance(one, Construct) and one.internal for one in rule.consequences)


class _Firing:
    """Which rules may ever fire: the least set of which each needs only what is brought, or made by one of the set."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inserts = any(isinstance(one, Insert) for rule in program.rules for one in rule.system.consequences)
        self.fires: set[int] = set()
        rest = list(enumerate(program.rules))
        while rest:
            found = {number for number, rule in rest if self.missing(rule.system) is None}
            self.fires |= found
            rest = [one for one in rest if one[0] not in found] if found else []

    def missing(self, part: System) -> Reading | None:
        """A pattern without which a part has no solutions, and which finds nothing; None if there is none."""
        if part.grouping is not None and not part.grouping.keys:
            return None  # it has a solution also of nothing
        asked = [one.system for one in part.predicates if isinstance(one, Exists) and one.wanted]
        needed = (self._lacks(one, part.sources) for one in (*part.joinables, *asked))
        return next((found for found in needed if found is not None), None)

    def _lacks(self, part: FactPattern | Union | System, sources: tuple[Source, ...]) -> Reading | None:
        match part:
            case System():
                return self.missing(part)
            case Union(branches=branches):
                found = [self.missing(branch) for branch in branches]
                return None if None in found or not found else found[0]
            case Pattern() | AtomPattern():
                reading = Reading(part, sources)
                return None if self._is_fed(reading) else reading

    def _is_fed(self, reading: Reading) -> bool:
        return self._why(reading) is None or any(one.rule in self.fires for one in self.program.makers(reading))

    def _why(self, reading: Reading) -> str | None:
        """Why no stream and no data bring what a pattern finds; None: they may."""
        program, pattern, present = self.program, reading.pattern, self.program.present
        if isinstance(pattern, AtomPattern) and pattern.relation not in (GRAPH, ARRIVAL):
            return "streams and data bring triples only"
        named = {source.stream for source in reading.sources}
        if named <= program.own_streams and not (program.graphs and reading.of_graphs):
            return f"the program makes {_streams(named)} itself"
        if (
            present is not None
            and not self.inserts
            and not any(reading.reads(stream, program.graphs) for stream in present)
        ):
            return f"no source brings {_streams(named)}"
        predicate = pattern.predicate if isinstance(pattern, Pattern) else None
        if isinstance(predicate, str) and program.statistics and not program.statistics.counts(predicate).triples:
            return f"the data that were counted have no {predicate}"
        return None

    def finding(self, rule: Rule, reading: Reading) -> Finding:
        """What is to be said of a rule that lacks what a pattern finds."""
        reading = self._written(reading)
        waiting = [f"`{self.program.rules[maker.rule].name}`" for maker in self.program.makers(reading)]
        made = (
            f"only rules that never fire make it: {', '.join(dict.fromkeys(waiting))}"
            if waiting
            else "no rule makes it"
        )
        message = f"`{rule.name}` never fires, for want of {pattern_text(reading.pattern)}: {self._why(reading)}, and {made}"
        return Finding("never-fires", WARNING, message, reading.pattern.origin or rule.origin, self._hint(reading))

    def _written(self, reading: Reading) -> Reading:
        """What is lacking in the end, where a translator made up a relation, and the rules for it."""
        seen = set[Reading]()
        while reading not in seen:
            seen.add(reading)
            makers = [self.program.rules[one.rule].system for one in self.program.makers(reading)]
            lacking = [self.missing(maker) for maker in makers if is_internal(maker)]
            reading = next((found for found in lacking if found is not None), reading)
        return reading

    def _hint(self, reading: Reading) -> str | None:
        """What else there is that is spelt like it."""
        pattern, program = reading.pattern, self.program
        if isinstance(pattern, AtomPattern):
            return near_terms(pattern.relation, program.relations)
        counted = [name for name, _ in program.statistics.predicates if is_iri(name)] if program.statistics else []
        known = (*program.predicates, *counted)
        return near_terms(pattern.predicate, known) if isinstance(pattern.predicate, str) else None


def _streams(names: set[str]) -> str:
    told = [f"the stream <{name}>" if name else DEFAULT_STREAM for name in sorted(names)]
    return " and ".join(told)
