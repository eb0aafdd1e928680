"""Rule sets in front of queries that have windows or streams of their own: an instance of the rules for each.

A pattern under a rule set has the solutions that it has in the closure of what its sources hold, with the static schema
(SPARQL 1.1 Entailment Regimes; docs/rulesets.md). One instance of the rules derives the facts of one closure: atoms of
relations of its own, so that they meet no others. See docs/decisions/0067-rule-sets-and-windows.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from squall.errors import TranslatorWarning
from squall.functions.sparql.names import SPARQL, test_iri
from squall.model.consequences import Construct
from squall.model.expressions import Call, Filter, Negation
from squall.model.fact_shapes import Shape, derived_shapes, overlaps, shape
from squall.model.patterns import AtomPattern, Pattern, Slot, Variable
from squall.model.reading import rules, warnings
from squall.model.rewriting import map_parts
from squall.model.slicing import slice_rules
from squall.model.sources import BACKGROUND, GRAPH, GRAPH_EXISTS, EntailedDataset, Source
from squall.model.systems import System
from squall.model.walk import Part, walk
from squall.rdf import Term, iri, iri_text, literal
from squall.rdf.compounds import IS_RDF
from squall.rdf.vocabulary import LIST_CELLS, OF_INDIVIDUALS, SCHEMA_NAMESPACES, TYPE, is_of_schema

Sources = tuple[Source, ...]
_SUBJECT, _PREDICATE, _OBJECT = (Variable(f"entailed {part}") for part in ("subject", "predicate", "object"))
_ANY_TRIPLE = Pattern(_SUBJECT, _PREDICATE, _OBJECT)


def with_entailment_by_window(system: System) -> System:
    """Returns the system with an instance of its rule sets for each data set that its programs read.

    If all programs read the streams that the rule sets read, there is one instance, which has the facts in place of
    atoms. In front of queries alone it reads the default graph, as they do: nothing of the named graphs of static data.
    Rules whose facts no program reads are left out (`slice_rules`).

    Args:
        system: The system, with all windows. Its rule sets are the subsystems that are background knowledge.
    """
    rule_sets = tuple(part for part in system.subsystems if part.is_background)
    programs = tuple(part for part in system.subsystems if not part.is_background)
    if not rule_sets or not programs:
        return system
    programs = tuple(_with_warning(program) for program in programs)
    notes = tuple(chain.from_iterable(map(warnings, rule_sets)))  # what is left out of an ontology, for one
    rule_sets = slice_rules(rule_sets, programs)
    has_rules = any(True for rule_set in rule_sets for _ in rules(rule_set))
    if not has_rules:
        return replace(system, subsystems=programs, warnings=(*system.warnings, *notes))
    entailed = _with_closures(system, rule_sets, programs)
    return replace(entailed, warnings=(*entailed.warnings, *(note for note in notes if note not in warnings(entailed))))


def _with_closures(system: System, rule_sets: tuple[System, ...], programs: tuple[System, ...]) -> System:
    """Returns the system in which programs read the closures of rule sets: of one instance, if they can share it."""
    own_sources = {_plain(rule.sources) for rule_set in rule_sets for rule in rules(rule_set) if rule.joinables}
    read_sources = _read_sources(programs)
    if set(map(_plain, read_sources)) <= own_sources:
        if read_sources and all(source.sparql_dataset for sources in read_sources for source in sources):
            rule_sets = tuple(map(_over_dataset, rule_sets))
        return replace(system, subsystems=(*rule_sets, *programs))
    closures = _Closures()
    rewritten = [closures.rewritten(program) for program in programs]
    instances = [rule for closure in closures.by_sources.values() for rule in closure.instance(rule_sets)]
    return replace(system, subsystems=(System(subsystems=tuple(instances)), *rewritten))


def _read_sources(programs: Sequence[System]) -> set[Sources]:
    """Returns the sources of the parts of programs that read triples."""
    systems = (part for part in _parts(programs) if isinstance(part, System) and part.name != GRAPH_EXISTS)
    return {part.sources for part in systems if _reads_triples(part)}


def _parts(programs: Sequence[System]) -> Iterator[Part]:
    return (part for program in programs for rule in rules(program) for part in walk(rule))


def _with_warning(program: System) -> System:
    """Returns the program with a warning if it has patterns of any graph, which read no closure."""
    pattern = next(
        (part for part in _parts([program]) if isinstance(part, AtomPattern) and part.relation == GRAPH), None
    )
    if pattern is None:
        return program
    message = "patterns inside of any graph (`GRAPH ?g`) read what it holds, without what the rule sets derive"
    warning = TranslatorWarning(message, pattern.origin, "name the graph, the stream or the window")
    return replace(program, warnings=(*program.warnings, warning))


def _plain(sources: Sources) -> Sources:
    """Returns the sources without what does not matter for which facts of streams they read."""
    return tuple(replace(source, removals=False, sparql_dataset=False) for source in sources)


def _over_dataset(part: Any) -> Any:
    """Returns the part of a rule set that reads the default graph of SPARQL in place of all facts."""
    if type(part) is Source and not part.iri:
        return EntailedDataset(window=part.window, windows=part.windows, removals=part.removals, sparql_dataset=True)
    return map_parts(part, _over_dataset)


def _reads_triples(system: System) -> bool:
    negated = [joinable for part in system.predicates if isinstance(part, Negation) for joinable in part.joinables]
    return all(source.is_plain for source in system.sources) and any(
        isinstance(joinable, Pattern) for joinable in (*system.joinables, *negated)
    )


class _Closures:
    """The closures that programs read, by the sources whose facts are closed."""

    def __init__(self) -> None:
        self.by_sources: dict[Sources, _Closure] = {}

    def rewritten(self, system: System) -> System:
        """Returns a system whose patterns read closures in place of the facts of their sources."""
        if system.name == GRAPH_EXISTS or not _reads_triples(system):
            rewritten: System = map_parts(system, self._part)
            return rewritten
        sources = system.sources
        closure = self.by_sources.setdefault(sources, _Closure(len(self.by_sources) + 1, sources))
        is_rule = all(source.iri == "" and not source.sparql_dataset for source in sources)
        relations = closure.generalized if is_rule else closure.valid
        if not any(source.reads_derived_facts for source in sources):
            sources = (*sources, BACKGROUND)
        inside = partial(self._inside, relations=relations)
        return replace(
            system,
            sources=sources,
            joinables=tuple(map(inside, system.joinables)),
            predicates=tuple(map(inside, system.predicates)),
            subsystems=tuple(map(self.rewritten, system.subsystems)),
        )

    def _part(self, part: Any) -> Any:
        return self.rewritten(part) if isinstance(part, System) else map_parts(part, self._part)

    def _inside(self, part: Any, relations: _Relations) -> Any:
        """Returns a joinable or predicate of a system whose patterns read the facts of a closure."""
        match part:
            case Pattern():
                return relations.atom(part)
            case System():
                return self.rewritten(part)
            case _:
                return map_parts(part, partial(self._inside, relations=relations))


@dataclass
class _Relations:
    """Two relations of the triples of a closure, and what is read of them.

    A pattern with a constant predicate reads the relation with the name. One with a variable reads a relation that has
    all triples of the closure, so that the other one depends on triples of the predicates that are read, and no others:
    what a rule negates must not follow from its own conclusion.

    Attributes:
        name: An IRI, without brackets.
        predicates: The constant predicates that are read.
        reads_all: Whether patterns with a variable as predicate read it.
    """

    name: str
    predicates: dict[Term, None] = field(default_factory=dict)
    reads_all: bool = False

    def atom(self, pattern: Pattern) -> AtomPattern:
        """Returns the pattern that reads the relations in place of triples."""
        if isinstance(pattern.predicate, str):
            self.predicates[pattern.predicate] = None
            return self.head(pattern)
        self.reads_all = True
        return AtomPattern(self.all, pattern.slots, exact=pattern.exact, origin=pattern.origin)

    def head(self, pattern: Pattern) -> AtomPattern:
        """Returns the atom of a triple in the relation with the name."""
        return AtomPattern(iri(self.name), pattern.slots, exact=pattern.exact, origin=pattern.origin)

    @property
    def all(self) -> Term:
        return iri(f"{self.name}:all")


class _Closure:
    """The closure of the facts of some sources.

    Attributes:
        sources: The sources.
        generalized: Its triples, as rules read them: the subject may be a literal.
        valid: Those that are RDF, as queries read them.
    """

    def __init__(self, number: int, sources: Sources) -> None:
        self.sources = sources
        self.generalized = _Relations(f"urn:x-squall:closure:{number}")
        self.valid = _Relations(f"urn:x-squall:entailed:{number}")

    def instance(self, rule_sets: Sequence[System]) -> Iterator[System]:
        """Yields the rules that derive the closure."""
        derived = {
            conclusion for rule_set in rule_sets for rule in rules(rule_set) for conclusion in derived_shapes(rule)
        }
        yield from self._valid_triples(derived)
        yield from (self._of_closure(rule) for rule_set in rule_sets for rule in rules(rule_set))
        yield from self._given_triples()  # of what the rules before read

    def _of_closure(self, rule: System) -> System:
        """Returns a rule of a rule set that reads and derives the triples of the closure."""
        heads = tuple(
            replace(part, template=tuple(map(self._head, part.template)), internal=True)
            for part in rule.consequences
            if isinstance(part, Construct)
        )
        body: System = self._body(rule)
        return replace(body, consequences=heads)

    def _head(self, template: Pattern | AtomPattern) -> AtomPattern:
        return self.generalized.head(template) if isinstance(template, Pattern) else self._own_relation(template)

    def _body(self, part: Any) -> Any:
        match part:
            case Pattern():
                return self.generalized.atom(part)
            case AtomPattern():
                return self._own_relation(part)
            case System():
                return replace(
                    part,
                    sources=(BACKGROUND,),
                    joinables=tuple(map(self._body, part.joinables)),
                    predicates=tuple(map(self._body, part.predicates)),
                )
            case _:
                return map_parts(part, self._body)

    def _own_relation(self, atom: AtomPattern) -> AtomPattern:
        """Returns an atom of a relation of the rule set as one of this closure."""
        return replace(atom, relation=iri(f"{iri_text(atom.relation)}:{self.generalized.name}"))

    def _valid_triples(self, derived: Collection[Shape]) -> Iterator[System]:
        """Yields the rules that derive the RDF triples among those of the closure.

        Args:
            derived: The shapes of what the rules derive. The triples of another predicate are those of the sources
                and the schema, which need not pass through the relation that the rules read.
        """
        patterns = [Pattern(_SUBJECT, predicate, _OBJECT) for predicate in self.valid.predicates]
        if self.valid.reads_all:
            patterns.append(_ANY_TRIPLE)
        for pattern in patterns:
            is_rdf = Filter(Call(IS_RDF, pattern.slots))
            if any(overlaps(conclusion, shape(pattern)) for conclusion in derived):
                yield _rule(self.generalized.atom(pattern), self.valid.atom(pattern), (BACKGROUND,), (is_rdf,))
            else:
                yield from self._of_sources(pattern, self.valid.atom(pattern), (is_rdf,))

    def _given_triples(self) -> Iterator[System]:
        """Yields the rules that add what the sources hold, and the static schema, to the closure."""
        patterns = [Pattern(_SUBJECT, predicate, _OBJECT) for predicate in self.generalized.predicates]
        if self.generalized.reads_all:
            all_triples = self.generalized.atom(_ANY_TRIPLE)
            yield _rule(self.generalized.head(_ANY_TRIPLE), all_triples, (BACKGROUND,))
            patterns.append(_ANY_TRIPLE)
        for pattern in patterns:
            yield from self._of_sources(pattern, self.generalized.atom(pattern))

    def _of_sources(self, pattern: Pattern, head: AtomPattern, tests: tuple[Filter, ...] = ()) -> Iterator[System]:
        """Yields the rules that derive an atom of each triple of a pattern in the sources and the static schema."""
        yield _rule(pattern, head, self.sources, tests)
        if not any(source.reads_derived_facts for source in self.sources):
            for schema, schema_tests in _schema(pattern.predicate):
                head_of_schema = replace(head, arguments=schema.slots)
                yield _rule(schema, head_of_schema, (BACKGROUND,), (*tests, *schema_tests))


def _rule(body: Pattern | AtomPattern, head: AtomPattern, sources: Sources, tests: tuple[Filter, ...] = ()) -> System:
    """Returns the rule that derives an atom, which is no part of the answer, from each fact that passes some tests."""
    return System("entailed", sources, (body,), tests, consequences=(Construct((head,), internal=True),))


def _schema(predicate: Slot) -> Iterator[tuple[Pattern, tuple[Filter, ...]]]:
    """Yields patterns, with tests, of the triples of a predicate (a variable: of any) that describe classes and
    properties: in the terms of RDFS and OWL, or as the cells of lists. What these say of individuals is left out.
    """
    if isinstance(predicate, Variable):
        for namespace in SCHEMA_NAMESPACES:
            yield _ANY_TRIPLE, _is_schema_term(_PREDICATE, namespace)
        for term in (TYPE, *LIST_CELLS):
            yield from _schema(term)
    elif predicate == TYPE:
        for namespace in SCHEMA_NAMESPACES:
            yield Pattern(_SUBJECT, TYPE, _OBJECT), _is_schema_term(_OBJECT, namespace)
    elif predicate in LIST_CELLS or is_of_schema(predicate):
        yield Pattern(_SUBJECT, predicate, _OBJECT), ()


def _is_schema_term(slot: Slot, namespace: str) -> tuple[Filter, ...]:
    """Returns the tests that a term is one of a namespace by which schemas are described (`is_of_schema`)."""
    begins = Call(test_iri("strstarts"), (Call(f"{SPARQL}str", (slot,)), literal(namespace)))
    exclusions = (Call(test_iri("not-equals"), (slot, term)) for term in sorted(OF_INDIVIDUALS))
    return tuple(map(Filter, (begins, *exclusions)))
