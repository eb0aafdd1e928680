"""Equality in specialised rule sets: rules that replace a term by an equal one, and rules without any equality.

Rules that replace equal terms derive triples of any predicate, so that they might change a schema that is fixed. But a
term that is equal to a name of the schema has the same consequences by the rules for that name, since its triples are
also triples of the name. What must not come about is that two names of the schema are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from squall.functions.datatypes import NOT_IDENTICAL
from squall.model.consequences import Construct, Select
from squall.model.expressions import Call, Filter, NotExists
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.sources import BACKGROUND
from squall.model.systems import System
from squall.rdf import OWL, Atom, Fact, Term, Triple, iri
from squall.rdf.compounds import SAME_NAMES
from squall.reasoning.binding_times import heads, is_plain
from squall.reasoning.reduction import patterns, with_evaluated_constants
from squall.reasoning.substitution import substituted, unifier
from squall.reasoning.templates import is_open
from squall.rulesets import VARIANT

SAME = iri(OWL + "sameAs")
_RELATION = "urn:x-squall:specialised:"
_LEFT, _RIGHT = Variable("left of equality"), Variable("right of equality")
_ALL_POSITIONS = frozenset(range(3))


def with_identity(rule: System) -> Iterator[System]:
    """Yields a rule in which equal terms are one, unless its tests show that it derives nothing then."""
    while is_plain(rule):
        pairs = (part for part in patterns(rule) if isinstance(part, Pattern) and part.predicate == SAME)
        pattern = next((part for part in pairs if part.subject != part.object), None)
        if pattern is None:
            decided = with_evaluated_constants(rule)
            if decided is None:
                return
            rule = replace(decided, joinables=tuple(dict.fromkeys(decided.joinables)))
            break
        values = unifier(pattern, replace(pattern, subject=pattern.object))
        if values is None:
            return
        rule = substituted(rule, values)
    yield rule


def reads_same(rule: System) -> bool:
    """Returns whether a rule has a pattern of owl:sameAs."""
    return any(isinstance(part, Pattern) and part.predicate == SAME for part in rule.joinables)


def replaces_literals(rule: System) -> bool:
    """Returns whether a rule puts a literal in place of another one of the same value."""
    return any(isinstance(part, AtomPattern) and part.relation == VARIANT for part in rule.joinables)


def is_reflexive(rule: System, head: FactPattern) -> bool:
    """Returns whether what a rule derives says of no term that it is equal to another one."""
    values = unifier(head, Pattern(_LEFT, SAME, _RIGHT))
    if values is None or not is_plain(rule):
        return values is None
    instance: System = substituted(rule, values)
    result = next(heads(instance))
    return result.slots[0] == result.slots[-1] or with_evaluated_constants(instance) is None


@dataclass(frozen=True)
class Equality:
    """The rules that replace a term by an equal one.

    Attributes:
        pattern: A pattern of equal terms; the one that is replaced comes first.
        rules: The rules, by the position in a triple at which they replace a term.
    """

    pattern: FactPattern
    by_position: dict[int, System]

    @property
    def rules(self) -> tuple[System, ...]:
        return tuple(self.by_position.values())

    def guard(self, number: int, names: Collection[Term], facts: Iterable[Fact]) -> Iterator[System]:
        """Yields the rules that end a run in which names of the schema come to be equal to each other.

        If predicates are not replaced, no name of the schema may be equal to any other term.

        Args:
            number: A number that no other equality has.
            names: The names of the schema.
            facts: The closed schema. What is equal by it is so by its rules.
        """
        schema_name, equal = iri(f"{_RELATION}names:{number}"), iri(f"{_RELATION}equal:{number}")
        yield _facts(schema_name, sorted((name,) for name in names))
        yield _facts(equal, sorted(self._pairs(facts)))
        pair = self._with(_LEFT, _RIGHT)
        ends = (_LEFT, _RIGHT) if self.by_position.keys() >= _ALL_POSITIONS else (_LEFT,)
        of_schema = _selection(ends, *(AtomPattern(schema_name, (end,)) for end in ends))
        yield System(
            "schema",
            self.rules[0].sources,
            (pair, of_schema),
            (
                NotExists((_selection((_LEFT, _RIGHT), AtomPattern(equal, (_LEFT, _RIGHT))),)),
                Filter(Call(SAME_NAMES, (_LEFT, _RIGHT))),
            ),
            consequences=(Construct((Pattern(_RIGHT, _LEFT, _LEFT),), internal=True),),  # it is never derived
        )

    def _with(self, left: Slot, right: Slot) -> FactPattern:
        if isinstance(self.pattern, AtomPattern):
            return replace(self.pattern, arguments=(left, right))
        return replace(self.pattern, subject=left, object=right)

    def _pairs(self, facts: Iterable[Fact]) -> Iterator[tuple[Term, ...]]:
        for fact in facts:
            if isinstance(self.pattern, AtomPattern):
                if isinstance(fact, Atom) and fact.relation == self.pattern.relation:
                    yield fact.arguments
            elif isinstance(fact, Triple) and fact.predicate == self.pattern.predicate:
                yield fact.subject, fact.object


def _facts(relation: Term, rows: Iterable[tuple[Term, ...]]) -> System:
    """Returns the rule that derives the facts of a relation from nothing. An empty one has a fact of no use."""
    template = tuple(AtomPattern(relation, row) for row in rows) or (AtomPattern(iri(f"{relation[1:-1]}:none"), ()),)
    return System("schema", consequences=(Construct(template, internal=True),))


def _selection(names: tuple[Variable, ...], *atoms: AtomPattern) -> System:
    return System("", (BACKGROUND,), atoms, consequences=(Select(names),))


def equalities_of(rules: Iterable[System]) -> list[Equality]:
    """Returns the equalities by which rules replace terms as subjects and as objects, and perhaps as predicates."""
    by_relation: defaultdict[Term, dict[int, System]] = defaultdict(dict)
    pairs: dict[Term, FactPattern] = {}
    for rule in rules:
        for position, relation, pair in _replacements(rule):
            by_relation[relation][position] = rule
            pairs[relation] = pair
    return [
        Equality(pairs[relation], positions)
        for relation, positions in by_relation.items()
        if positions.keys() >= {0, 2}
    ]


def _replacements(rule: System) -> Iterator[tuple[int, Term, FactPattern]]:
    """Yields the position at which a rule replaces a term, with the relation and the pattern of equal terms."""
    head = next(heads(rule))
    if len(rule.joinables) != 2 or not isinstance(head, Pattern) or not is_open(head):
        return
    for equal, triple in (patterns(rule), patterns(rule)[::-1]):
        relation = equal.relation if isinstance(equal, AtomPattern) else equal.predicate
        if not isinstance(triple, Pattern) or len(equal.slots) not in (2, 3) or not isinstance(relation, str):
            continue
        old, new = equal.slots[0], equal.slots[-1]
        if len({*triple.slots, new}) != 4 or not all(map(_spares_equality, rule.predicates, [triple] * 9)):
            continue
        for position in range(3):
            expected = (*triple.slots[:position], new, *triple.slots[position + 1 :])
            if triple.slots[position] == old and head.slots == expected:
                yield position, relation, equal


def _spares_equality(predicate: object, triple: Pattern) -> bool:
    """Returns whether a test only says that triples of equality stay as they are."""
    return predicate == Filter(Call(NOT_IDENTICAL, (triple.predicate, SAME)))
