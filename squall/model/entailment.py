"""Rule sets in front of queries that have windows or streams of their own: an instance of the rules for each.

A pattern under a rule set has the solutions that it has in the closure of what its sources hold, with the static schema
(SPARQL 1.1 Entailment Regimes; docs/rulesets.md). One instance of the rules derives the facts of one
closure: atoms of a relation of its own, so that they meet no others. See docs/decisions/0067-rule-sets-and-windows.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from squall.errors import TranslatorWarning
from squall.functions.sparql.names import SPARQL, test_iri
from squall.model.consequences import Construct
from squall.model.expressions import Call, Filter
from squall.model.patterns import AtomPattern, Pattern, Slot, Variable
from squall.model.reading import rules
from squall.model.rewriting import map_parts
from squall.model.sources import GRAPH, GRAPH_EXISTS, Source
from squall.model.systems import System
from squall.model.windows import EMPTY
from squall.rdf import OWL, RDF, RDFS, Term, iri, iri_text, literal
from squall.rdf.compounds import IS_RDF

Sources = tuple[Source, ...]
BACKGROUND = Source("", EMPTY, sparql_dataset=True)
"""Static data in no named graph, and derived facts."""
_TRIPLE = (Variable("entailed s"), Variable("entailed p"), Variable("entailed o"))
_TYPE = iri(RDF + "type")
_LISTS = (iri(RDF + "first"), iri(RDF + "rest"))


def with_entailment_by_window(system: System, rule_set_count: int) -> System:
    """Returns the system with an instance of its rule sets for each data set that its programs read.

    If all programs read what the rule sets read, the system stays as it is.

    Args:
        system: The system, with all windows. Its first subsystems are the rule sets.
        rule_set_count: The number of rule sets.
    """
    if not rule_set_count or len(system.subsystems) <= rule_set_count:
        return system
    rule_sets, programs = system.subsystems[:rule_set_count], system.subsystems[rule_set_count:]
    programs = tuple(_with_warnings(program) for program in programs)
    own_sources = {_plain(rule.sources) for rule_set in rule_sets for rule in rules(rule_set) if rule.joinables}
    read_sources = {sources for program in programs for sources in _sources_read(program)}
    if {_plain(sources) for sources in read_sources} <= own_sources:
        return replace(system, subsystems=(*rule_sets, *programs))
    closures = _Closures()
    rewritten = [closures.rewritten(program) for program in programs]
    instances = [rule for sources in closures.numbers for rule in closures.instance(sources, rule_sets)]
    return replace(system, subsystems=(System(subsystems=tuple(instances)), *rewritten))


def _with_warnings(program: System) -> System:
    """Returns the program with a warning for each pattern of any graph, which reads no closure."""
    patterns = dict.fromkeys(_graph_patterns(program))
    message = "patterns inside of any graph (`GRAPH ?g`) read what it holds, without what the rule sets derive"
    hint = "name the graph, the stream or the window"
    new_warnings = [TranslatorWarning(message, pattern.origin, hint) for pattern in patterns]
    return replace(program, warnings=(*program.warnings, *new_warnings[:1]))


def _graph_patterns(part: Any) -> Iterator[AtomPattern]:
    """Yields the patterns of the facts of all graphs."""
    if isinstance(part, AtomPattern) and part.relation == GRAPH:
        yield part
    for inner in _inner_parts(part):
        yield from _graph_patterns(inner)


def _plain(sources: Sources) -> Sources:
    """Returns the sources without what does not matter for which facts of streams they read."""
    return tuple(replace(source, removals=False, sparql_dataset=False) for source in sources)


def _sources_read(part: Any) -> Iterator[Sources]:
    """Yields the sources of each part that reads triples."""
    if isinstance(part, System) and part.name != GRAPH_EXISTS and _reads_triples(part):
        yield part.sources
    for inner in _inner_parts(part):
        yield from _sources_read(inner)


def _inner_parts(part: Any) -> list[Any]:
    inner_parts: list[Any] = []

    def note(inner: Any) -> Any:
        inner_parts.append(inner)
        return inner

    map_parts(part, note)
    return inner_parts


def _reads_triples(system: System) -> bool:
    negated = [joinable for part in system.predicates for joinable in getattr(part, "joinables", ())]
    return all(source.is_plain for source in system.sources) and any(
        isinstance(joinable, Pattern) for joinable in (*system.joinables, *negated)
    )


class _Closures:
    """The closures that patterns read, each of the facts of some sources.

    Attributes:
        numbers: The number of each closure.
    """

    def __init__(self) -> None:
        self.numbers: dict[Sources, int] = {}

    # Programs

    def rewritten(self, system: System) -> System:
        """Returns a system whose patterns read closures in place of the facts of their sources."""
        if system.name == GRAPH_EXISTS or not _reads_triples(system):
            rewritten: System = map_parts(system, self._part)
            return rewritten
        sources = system.sources
        is_rule = all(source.iri == "" and not source.sparql_dataset for source in sources)
        relation = self._relation(sources, "closure" if is_rule else "entailed")
        if not any(source.reads_derived_facts for source in sources):
            sources = (*sources, BACKGROUND)
        return replace(
            system,
            sources=sources,
            joinables=tuple(self._inside(joinable, relation) for joinable in system.joinables),
            predicates=tuple(self._inside(predicate, relation) for predicate in system.predicates),
            subsystems=tuple(map(self.rewritten, system.subsystems)),
        )

    def _part(self, part: Any) -> Any:
        return self.rewritten(part) if isinstance(part, System) else map_parts(part, self._part)

    def _inside(self, part: Any, relation: Term) -> Any:
        """Returns a joinable or predicate of a system whose patterns read the facts of a relation."""
        match part:
            case Pattern():
                return AtomPattern(relation, part.slots, exact=part.exact, origin=part.origin)
            case System():
                return self.rewritten(part)
            case _:
                return map_parts(part, lambda inner: self._inside(inner, relation))

    def _relation(self, sources: Sources, kind: str) -> Term:
        number = self.numbers.setdefault(sources, len(self.numbers) + 1)
        return iri(f"urn:x-squall:{kind}:{number}")

    # Rule sets

    def instance(self, sources: Sources, rule_sets: Sequence[System]) -> Iterator[System]:
        """Yields the rules of the closure of some sources."""
        closure, entailed = self._relation(sources, "closure"), self._relation(sources, "entailed")
        yield _copy(sources, closure)
        if not any(source.reads_derived_facts for source in sources):
            yield from _schema(closure)
        for rule in (rule for rule_set in rule_sets for rule in rules(rule_set)):
            body = tuple(_as_atoms(joinable, closure) for joinable in rule.joinables)
            predicates = tuple(_as_atoms(predicate, closure) for predicate in rule.predicates)
            heads = tuple(
                replace(part, template=tuple(_as_atoms(head, closure) for head in part.template), internal=True)
                for part in rule.consequences
                if isinstance(part, Construct)
            )
            yield replace(rule, sources=(BACKGROUND,), joinables=body, predicates=predicates, consequences=heads)
        is_rdf = Filter(Call(IS_RDF, _TRIPLE))
        yield _derive(System("entailed", (BACKGROUND,), (AtomPattern(closure, _TRIPLE),), (is_rdf,)), entailed)


def _as_atoms(part: Any, closure: Term) -> Any:
    """Returns a part of a rule whose triples are atoms of a closure, and whose relations are those of this closure."""
    match part:
        case Pattern():
            return AtomPattern(closure, part.slots, exact=part.exact, origin=part.origin)
        case AtomPattern(relation=relation):
            return replace(part, relation=iri(f"{iri_text(relation)}:{iri_text(closure)}"))
        case System():
            return replace(map_parts(part, lambda inner: _as_atoms(inner, closure)), sources=(BACKGROUND,))
        case _:
            return map_parts(part, lambda inner: _as_atoms(inner, closure))


def _derive(body: System, relation: Term) -> System:
    """Returns the rule that derives an atom of a relation for each triple of a body."""
    return replace(body, consequences=(Construct((AtomPattern(relation, _TRIPLE),), internal=True),))


def _copy(sources: Sources, relation: Term) -> System:
    return _derive(System("entailed", sources, (Pattern(*_TRIPLE),)), relation)


def _schema(relation: Term) -> Iterator[System]:
    """Yields the rules that add the schema to a closure: what static data say in the terms of RDFS and OWL."""
    _, predicate, value = _TRIPLE
    pattern = Pattern(*_TRIPLE)
    for namespace in (RDFS, OWL):
        for term, fixed in ((predicate, None), (value, _TYPE)):
            triple = pattern if fixed is None else replace(pattern, predicate=fixed)
            yield _schema_rule(triple, (_begins(term, namespace),), relation)
    for fixed in _LISTS:
        yield _schema_rule(replace(pattern, predicate=fixed), (), relation)


def _schema_rule(pattern: Pattern, tests: tuple[Filter, ...], relation: Term) -> System:
    head = AtomPattern(relation, pattern.slots)
    return System("schema", (BACKGROUND,), (pattern,), tests, consequences=(Construct((head,), internal=True),))


def _begins(slot: Slot, namespace: str) -> Filter:
    """Returns the test that an IRI begins with a namespace."""
    return Filter(Call(test_iri("strstarts"), (Call(f"{SPARQL}str", (slot,)), literal(namespace))))
