"""Entailment by rewriting: each pattern becomes the union of the patterns from which its solutions follow.

Under the regimes of `squall.reasoning.schema` a conclusion about individuals follows from one triple about individuals
and the schema. So a pattern under entailment is a union of plain patterns, without recursion. Its solutions hold for as
long as that triple does, whatever the window, stream or graph that the pattern reads.

Source: R. Rosati and others call this *query rewriting* (DL-Lite; Calvanese et al., Journal of Automated Reasoning
2007); for streams: X. Ren et al., StriderR (BigData 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from squall.errors import TranslatorError, raise_all
from squall.model.consequences import Construct, Select
from squall.model.expressions import Bind, Call, Filter, Predicate, Union
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.reading import variables
from squall.model.rewriting import map_parts
from squall.model.sources import ARRIVAL, BACKGROUND, GRAPH, GRAPH_EXISTS, Arrivals, Occurrences, Source
from squall.model.systems import Joinable, System
from squall.rdf import Term, Triple, iri, is_iri
from squall.rdf.compounds import IS_RDF
from squall.rdf.vocabulary import TYPE
from squall.reasoning.names import misspelt_names, names_in
from squall.reasoning.regimes import names_regime_within
from squall.reasoning.schema import PROPERTY, RESOURCE, SUBPROPERTY, Reading, Schema, is_axiom
from squall.reasoning.templates import derived_templates, open_heads

_RELATION = "urn:x-squall:schema:"
SUPERCLASSES, SUPERPROPERTIES, INVERSES, SUBJECT_TYPES, OBJECT_TYPES, TRIPLES = (
    iri(_RELATION + name)
    for name in ("superclasses", "superproperties", "inverses", "subject-types", "object-types", "triples")
)
"""The relations with what the schema says, where a pattern leaves its class or property open."""


class _Branch(NamedTuple):
    """A pattern from which solutions of a pattern under entailment follow.

    Attributes:
        triple: The subject, predicate and object.
        table: A relation that is joined with it, and its arguments.
        predicates: What is applied to the solutions of both.
    """

    triple: tuple[Slot, Slot, Slot]
    table: tuple[Term, tuple[Slot, ...]] | None = None
    predicates: tuple[Predicate, ...] = ()


def with_entailment(system: System, schema: Schema, default: str) -> System:
    """Returns the system in which each pattern has the solutions that it has under entailment.

    Args:
        system: The system, with all windows.
        schema: The schema, closed under the entailment regime.
        default: The regime of programs that name none: that of the schema, or another if they have no entailment.

    Raises:
        TranslatorError: A rule derives schema triples.
    """
    raise_all(list(_refusals(system)))
    rewriting = _Rewriting(schema)
    rewritten: System = rewriting.program(system, default)
    axioms = [_axioms(relation, rows) for relation in rewriting.tables if (rows := rewriting.table(relation))]
    return System(subsystems=(*axioms, rewritten), fixed_schema=schema.fixed(rewriting.sources))


def _refusals(system: System) -> Iterator[TranslatorError]:
    """Yields an error for each rule that derives schema triples: the schema has to be known before the run."""
    for rule, template in derived_templates([system]):
        if _is_axiom(template):
            message = f"`{rule.name}` derives what a schema says, which has to be known before the run"
            yield TranslatorError(message, template.origin or rule.origin, _RULE_SET_HINT)


_RULE_SET_HINT = "leave the entailment out, and use a rule set: it reads what rules derive"


def _is_axiom(template: Pattern) -> bool:
    """Returns whether a template names a predicate by which schemas are described, or a class of properties."""
    predicate, object = template.predicate, template.object
    return isinstance(predicate, str) and is_axiom(Triple(predicate, predicate, Term(str(object))))


def _axioms(relation: Term, rows: Iterable[tuple[Term, ...]]) -> System:
    """Returns the rule that derives the facts of a relation from nothing."""
    template = tuple(AtomPattern(relation, row) for row in sorted(rows))
    return System("schema", consequences=(Construct(template, internal=True),))


def _with_own_occurrences(part: Any, regime: str) -> Any:
    """Returns the part of a program whose patterns over time have streams of their own: the steps of other programs
    may have the same patterns, without entailment."""
    part = map_parts(part, partial(_with_own_occurrences, regime=regime))
    if isinstance(part, Occurrences):
        return replace(part, iri=f"{part.iri}/{regime}")
    if isinstance(part, System) and part.internal and part.stream:
        return replace(part, stream=f"{part.stream}/{regime}")
    return part


class _Rewriting:
    """The rewriting of one program, with a schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.tables: dict[Term, None] = {}
        """The relations that are read."""
        self.schema_triples: set[Triple] = set()
        """The schema triples that patterns read."""
        self.sources: dict[Source, None] = {}
        """The sources of patterns that have entailment."""
        self._variable_count = 0

    def program(self, system: System, regime: str) -> System:
        """Returns a system of programs. The patterns of each have entailment if its regime is that of the schema."""
        regime = system.entailment or regime
        if names_regime_within(system):
            return replace(system, subsystems=tuple(self.program(part, regime) for part in system.subsystems))
        if regime != self.schema.regime:
            return system
        names = names_in(self.schema.triples)
        notes = (*misspelt_names(system, names, "schema"), *open_heads([system], _RULE_SET_HINT))
        warnings = (*system.warnings, *notes)
        rewritten: System = _with_own_occurrences(self.system(system), regime)
        return replace(rewritten, warnings=warnings)

    def table(self, relation: Term) -> set[tuple[Term, ...]]:
        """Returns the facts of a relation."""
        schema = self.schema
        if relation == TRIPLES:
            return set(self.schema_triples)
        if relation == SUPERCLASSES:
            pairs = ((name, above) for name in schema.classes for above in schema.superclasses(name))
            return {(name, above) for name, above in pairs if name != above}
        if relation == SUPERPROPERTIES:
            return {(name, above) for name, above in self._superproperties(inverse=False) if name != above}
        if relation == INVERSES:
            return set(self._superproperties(inverse=True))
        inverse = relation == OBJECT_TYPES
        return {(name, type) for name in schema.properties for type in schema.types(Reading(name, inverse))}

    def _superproperties(self, inverse: bool) -> Iterator[tuple[Term, Term]]:
        """Yields properties, each with those that follow from it, as they are or inversely."""
        for name in self.schema.properties:
            for above, is_inverse in self.schema.superproperties(name):
                if is_inverse == inverse and is_iri(above):
                    yield name, above

    def system(self, part: Any) -> Any:
        """Returns a part of a system with patterns under entailment. Joinables are those of the nearest system."""
        if not isinstance(part, System):
            return map_parts(part, self.system)
        if part.name == GRAPH_EXISTS:
            return part

        def inside(inner: Any) -> Any:
            match inner:
                case Pattern():
                    return self.entailed(inner, part.sources)
                case AtomPattern(relation=relation) if relation in (GRAPH, ARRIVAL):
                    return self.entailed(inner, part.sources)
                case System():
                    return self.system(inner)
                case AtomPattern():
                    return inner
                case _:
                    return map_parts(inner, inside)

        return replace(
            part,
            joinables=tuple(map(inside, part.joinables)),
            predicates=tuple(map(inside, part.predicates)),
            subsystems=tuple(map(self.system, part.subsystems)),
        )

    def entailed(self, pattern: FactPattern, sources: tuple[Source, ...]) -> Joinable:
        """Returns what has the solutions of a pattern of triples under entailment.

        Args:
            pattern: A pattern of triples, or of triples with their graph or arrival.
            sources: The sources that it reads.
        """
        self.sources |= dict.fromkeys(sources)
        *prefix, subject, predicate, object = pattern.slots
        triple = (subject, predicate, object)
        branches = list(dict.fromkeys(self._branches(triple)))
        systems = [self._branch_system(branch, pattern, sources) for branch in branches]
        if not any(isinstance(source, Arrivals) for source in sources):
            systems += self._schema_system(pattern, triple, sources, prefix)
        if branches == [_Branch(triple)] and len(systems) == 1:
            return pattern
        return System(
            f"what entails {' '.join(map(str, pattern.slots))}",
            sources,
            (Union(tuple(systems)),),
            distinct=True,
            consequences=(Select(tuple(dict.fromkeys(variables(pattern)))),),
            origin=pattern.origin,
        )

    def _branch_system(self, branch: _Branch, pattern: FactPattern, sources: tuple[Source, ...]) -> System:
        slots = (*pattern.slots[:-3], *branch.triple)
        body: FactPattern = replace(pattern, **(
            {"arguments": slots} if isinstance(pattern, AtomPattern)
            else dict(zip(("subject", "predicate", "object"), slots, strict=True))
        ))  # fmt: skip
        joinables: tuple[Joinable, ...] = (body,)
        if branch.table is not None:
            relation, arguments = branch.table
            joinables += (self._table_system(relation, arguments),)
        selection = Select(tuple(dict.fromkeys(variables(pattern))))
        return System("", sources, joinables, branch.predicates, consequences=(selection,))

    def _table_system(self, relation: Term, arguments: tuple[Slot, ...]) -> System:
        self.tables[relation] = None
        atom = AtomPattern(relation, arguments, exact=True)
        return System("", (BACKGROUND,), (atom,), consequences=(Select(tuple(dict.fromkeys(variables(atom)))),))

    def _schema_system(
        self, pattern: FactPattern, triple: tuple[Slot, Slot, Slot], sources: tuple[Source, ...], prefix: list[Slot]
    ) -> Iterator[System]:
        """Yields what has the solutions of a pattern in the closed schema, if there are any."""
        matching = {fact for fact in self.schema.closure if _fits(fact, triple)}
        if not matching:
            return
        self.schema_triples |= matching
        joinables: tuple[Joinable, ...] = (self._table_system(TRIPLES, triple),)
        if prefix:  # in each graph that has triples
            joinables += (AtomPattern(GRAPH, (*prefix, self._variable(), self._variable(), self._variable())),)
        selection = Select(tuple(dict.fromkeys(variables(pattern))))
        yield System("", sources, joinables, consequences=(selection,))

    def _variable(self) -> Variable:
        self._variable_count += 1
        return Variable(f"entailed {self._variable_count}")

    # The triples from which a triple follows

    def _branches(self, triple: tuple[Slot, Slot, Slot]) -> Iterator[_Branch]:
        subject, predicate, object = triple
        yield _Branch(triple)
        if isinstance(predicate, Variable):
            yield from self._of_any_property(subject, predicate, object)
        elif predicate == TYPE:
            yield from self._of_types(subject, object)
        else:
            yield from self._of_property(subject, predicate, object)

    def _of_property(self, subject: Slot, predicate: Term, object: Slot) -> Iterator[_Branch]:
        for property, inverse in sorted(self.schema.subproperties(Reading(predicate))):
            yield _read(subject, property, object, inverse)
        if predicate == SUBPROPERTY and self._is_rdfs:
            yield from self._of_same_property(subject, object)

    def _of_types(self, subject: Slot, object: Slot) -> Iterator[_Branch]:
        if isinstance(object, Variable):
            yield from self._of_any_type(subject, object)
            return
        classes = sorted(self.schema.subclasses(object))
        for property, inverse in sorted(self.schema.subproperties(Reading(TYPE))):
            for name in classes:
                yield _read(subject, property, name, inverse)
        for property, inverse in sorted(self.schema.ends(object)):
            yield _read(subject, property, self._variable(), inverse)
        if self._is_rdfs and RESOURCE in classes:
            yield from self._of_resources(subject)
        if self._is_rdfs and PROPERTY in classes:
            yield from self._of_used_property(subject)

    def _of_any_type(self, subject: Slot, object: Variable) -> Iterator[_Branch]:
        for property, inverse in sorted(self.schema.subproperties(Reading(TYPE))):
            yield _read(subject, property, object, inverse)
            below = self._variable()
            branch = _read(subject, property, below, inverse)
            yield branch._replace(table=(SUPERCLASSES, (below, object)))
        for relation, inverse in ((SUBJECT_TYPES, False), (OBJECT_TYPES, True)):
            any_property = self._variable()
            branch = _read(subject, any_property, self._variable(), inverse)
            yield branch._replace(table=(relation, (any_property, object)))
        if self._is_rdfs:
            for general in sorted(self.schema.superclasses(RESOURCE)):
                for branch in self._of_resources(_substituted(subject, object, general)):
                    yield _bound(branch, object, general)
            for general in sorted(self.schema.superclasses(PROPERTY)):
                for branch in self._of_used_property(_substituted(subject, object, general)):
                    yield _bound(branch, object, general)

    def _of_any_property(self, subject: Slot, predicate: Variable, object: Slot) -> Iterator[_Branch]:
        for relation, inverse in ((SUPERPROPERTIES, False), (INVERSES, True)):
            below = self._variable()
            branch = _read(subject, below, object, inverse)
            yield branch._replace(table=(relation, (below, predicate)))
        properties = (TYPE, SUBPROPERTY) if self._is_rdfs else (TYPE,)
        for property in properties:
            inner = _substituted(subject, predicate, property), property, _substituted(object, predicate, property)
            for branch in self._branches(inner):
                yield _bound(branch, predicate, property)

    # RDFS: what follows from the use of a term

    @property
    def _is_rdfs(self) -> bool:
        return self.schema.regime == "rdfs"

    def _of_resources(self, subject: Slot) -> Iterator[_Branch]:
        """Yields the triples in which a resource occurs (rdfs4a, rdfs4b; for predicates with rdfD2)."""
        first, second = self._variable(), self._variable()
        yield _read(subject, first, second, inverse=False)
        yield _read(subject, first, second, inverse=True)
        yield from self._of_used_property(subject)

    def _of_used_property(self, property: Slot) -> Iterator[_Branch]:
        """Yields the triples that entail one with a property (rdfD2)."""
        subject, object, below = self._variable(), self._variable(), self._variable()
        yield _Branch((subject, property, object))
        for relation in (SUPERPROPERTIES, INVERSES):
            yield _Branch((subject, below, object), (relation, (below, property)))

    def _of_same_property(self, subject: Slot, object: Slot) -> Iterator[_Branch]:
        """Yields the triples that entail a property, which is a subproperty of itself (rdfs6)."""
        property, equal = (object, subject) if isinstance(subject, Variable) else (subject, object)
        if property == equal:
            yield from self._of_used_property(property)
        elif isinstance(equal, Variable):
            yield from (_bound(branch, equal, property) for branch in self._of_used_property(property))


def _read(subject: Slot, property: Slot, object: Slot, inverse: bool) -> _Branch:
    """Returns the triple of a property, read from subject to object or, if inverse, from object to subject."""
    if inverse:
        return _Branch((object, property, subject), predicates=_no_literal(subject))
    return _Branch((subject, property, object))


def _no_literal(slot: Slot) -> tuple[Predicate, ...]:
    """Returns the test that what is in a slot may be the subject of a triple."""
    return (Filter(Call(IS_RDF, (slot, TYPE, RESOURCE))),) if isinstance(slot, Variable) else ()


def _bound(branch: _Branch, variable: Variable, value: Slot) -> _Branch:
    return branch._replace(predicates=(*branch.predicates, Bind(variable, value)))


def _substituted(slot: Slot, variable: Variable, value: Term) -> Slot:
    return value if slot == variable else slot


def _fits(fact: Triple, triple: tuple[Slot, Slot, Slot]) -> bool:
    """Returns whether a fact is a solution of a pattern."""
    values: dict[Slot, Term] = {}
    return all(
        values.setdefault(slot, term) == term if isinstance(slot, Variable) else slot == term
        for slot, term in zip(triple, fact, strict=True)
    )
