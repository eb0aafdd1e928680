"""The check ``never-fires``: rules that wait for facts which no source brings and no rule derives."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, Rule
from squall.model import (
    ARRIVAL,
    GRAPH,
    AtomPattern,
    Construct,
    Exists,
    FactPattern,
    Insert,
    Joinable,
    Pattern,
    SequenceJoin,
    Source,
    System,
    Temporal,
    Union,
)
from squall.model.unbounded_state import pattern_text
from squall.rdf import DEFAULT_STREAM, TUPLE, Term, is_iri
from squall.rdf.similar_terms import near_terms
from squall.rdf.vocabulary import TYPE

MAX_NAMES = 5
"""A hint names so many terms of the data."""


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each rule that never has a solution, at the pattern that never matches.

    Streams and static data may bring anything, with these exceptions: atoms other than quintuples, streams that the
    program derives itself, streams that are not given where others are, and predicates and classes that are not in a
    sample of the data.
    """
    firing = _Firing(program)
    for rule in program.rules:
        reading = firing.missing(rule.system)
        if reading is not None and not is_internal(rule.system):
            yield firing.finding(rule, reading)


def is_internal(rule: System) -> bool:
    """Returns whether a rule derives facts that only other rules read."""
    return all(isinstance(consequence, Construct) and consequence.internal for consequence in rule.consequences)


class _Firing:
    """The rules that may ever fire: the least set of rules that need only facts of sources, or of rules of the set."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inserts = any(
            isinstance(consequence, Insert) for rule in program.rules for consequence in rule.system.consequences
        )
        self.fires: set[int] = set()
        waiting = list(enumerate(program.rules))
        while waiting:
            firing = {number for number, rule in waiting if self.missing(rule.system) is None}
            self.fires |= firing
            waiting = [consequence for consequence in waiting if consequence[0] not in firing] if firing else []

    def missing(self, part: System) -> Reading | None:
        """Returns a pattern that a part needs and that never matches, or None."""
        if part.grouping is not None and not part.grouping.keys:
            return None  # it has a solution also of nothing
        subqueries = [subpart.system for subpart in part.predicates if isinstance(subpart, Exists) and subpart.wanted]
        missing_readings = (self._missing_in(subpart, part.sources) for subpart in (*part.joinables, *subqueries))
        return next((reading for reading in missing_readings if reading is not None), None)

    def _missing_in(self, part: Joinable, sources: tuple[Source, ...]) -> Reading | None:
        match part:
            case System():
                return self.missing(part)
            case SequenceJoin(left=left, right=right):
                return self.missing(left) or self.missing(right)
            case Temporal(system=system):
                return self.missing(system)
            case Union(branches=branches):
                missing = [self.missing(branch) for branch in branches]
                return None if None in missing or not missing else missing[0]
            case Pattern() | AtomPattern():
                reading = Reading(part, sources)
                return None if self._is_fed(reading) else reading

    def _is_fed(self, reading: Reading) -> bool:
        return self._reason(reading) is None or any(maker.rule in self.fires for maker in self.program.makers(reading))

    def _reason(self, reading: Reading) -> str | None:
        """Returns why no stream and no data bring what a pattern matches, or None if they may."""
        # In one piece: reasons, the first that holds.
        program, pattern, present = self.program, reading.pattern, self.program.present
        if isinstance(pattern, AtomPattern) and not _may_arrive(pattern):
            return "streams and data bring triples only"
        streams = {source.stream for source in reading.sources}
        if streams <= program.own_streams and not (program.graphs and reading.of_graphs):
            return f"the program makes {_streams(streams)} itself"
        if (
            present is not None
            and not self.inserts
            and not any(reading.reads(stream, program.graphs) for stream in present)
        ):
            return f"no source brings {_streams(streams)}"
        predicate = pattern.predicate if isinstance(pattern, Pattern) else None
        if isinstance(predicate, str) and program.statistics and not program.statistics.counts(predicate).triples:
            return f"the data that were counted have no {predicate}"
        class_ = _class_of(pattern)
        if class_ is not None and program.classes is not None and class_ not in program.classes:
            return f"the data that were counted have no instance of {class_}"
        return None

    def finding(self, rule: Rule, reading: Reading) -> Finding:
        """Returns the finding about a rule and the pattern that never matches."""
        reading = self._in_program(reading)
        waiting = [f"`{self.program.rules[maker.rule].name}`" for maker in self.program.makers(reading)]
        reason = (
            f"only rules that never fire make it: {', '.join(dict.fromkeys(waiting))}"
            if waiting
            else "no rule makes it"
        )
        lacking = f"{pattern_text(reading.pattern)}: {self._reason(reading)}, and {reason}"
        message = f"`{rule.name}` never fires, for want of {lacking}"
        return Finding("never-fires", WARNING, message, reading.pattern.origin or rule.origin, self._hint(reading))

    def _in_program(self, reading: Reading) -> Reading:
        """Returns the pattern that is missing in the end, where a translator invented a relation and its rules."""
        visited = set[Reading]()
        while reading not in visited:
            visited.add(reading)
            makers = [self.program.rules[maker.rule].system for maker in self.program.makers(reading)]
            lacking = [self.missing(maker) for maker in makers if is_internal(maker)]
            reading = next((missing for missing in lacking if missing is not None), reading)
        return reading

    def _hint(self, reading: Reading) -> str | None:
        """Returns a hint with names that are spelt like a missing one."""
        pattern, program = reading.pattern, self.program
        if isinstance(pattern, AtomPattern):
            return near_terms(pattern.relation, program.relations)
        counted_predicates = (
            [name for name, _ in program.statistics.predicates if is_iri(name)] if program.statistics else []
        )
        class_ = _class_of(pattern)
        if class_ is not None:
            return near_terms(class_, program.classes or ()) or _present("classes", program.classes or ())
        predicate = pattern.predicate
        if not isinstance(predicate, str):
            return None
        return near_terms(predicate, (*program.predicates, *counted_predicates)) or _present(
            "predicates", counted_predicates
        )


def _may_arrive(pattern: AtomPattern) -> bool:
    """Returns whether streams bring what a pattern matches: arrivals, graphs, and triples with their times
    (`squall.streams.formats.quintuples`)."""
    return pattern.relation in (GRAPH, ARRIVAL) or (pattern.relation == TUPLE and len(pattern.arguments) in (4, 5))


def _present(kind: str, terms: Collection[Term]) -> str | None:
    """Returns a hint that names terms of the data, or None if there are none."""
    names = sorted(terms)
    more = ", ..." if len(names) > MAX_NAMES else ""
    return f"{kind} of the data: {', '.join(names[:MAX_NAMES])}{more}" if names else None


def _class_of(pattern: FactPattern) -> Term | None:
    """Returns the class whose instances a pattern matches, if it is one of them."""
    is_typing = isinstance(pattern, Pattern) and pattern.predicate == TYPE
    return pattern.slots[2] if is_typing and isinstance(pattern.slots[2], str) else None


def _streams(names: set[str]) -> str:
    texts = [f"the stream <{name}>" if name else DEFAULT_STREAM for name in sorted(names)]
    return " and ".join(texts)
