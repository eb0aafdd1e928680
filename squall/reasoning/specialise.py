"""Specialisation of rule sets: partial evaluation by a schema that is known before the run.

The schema is closed under the rules. In each rule, the patterns that the schema alone can match are evaluated over the
closed schema; each of their solutions gives a rule without them, and what they bind decides tests. Rules that derive
nothing new are left out. See docs/decisions/0081-specialised-rule-sets.md.

Sources: N. Jones, C. Gomard and P. Sestoft, Partial Evaluation and Automatic Program Generation, 1993; the epsilon
network of S. Komazec, D. Cerri and D. Fensel, Sparkwave, DEBS 2012.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from squall.contracts import Options
from squall.errors import SquallError, TranslatorError, UsageError, raise_all
from squall.model.consequences import Construct, Select
from squall.model.expressions import Call, Filter, Predicate
from squall.model.fact_shapes import Shapes, overlaps, shape
from squall.model.fixed_schema import FixedSchema
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Variable
from squall.model.reading import rules, variables
from squall.model.rewriting import map_parts
from squall.model.sources import Source
from squall.model.systems import System
from squall.rdf import ALWAYS, Atom, Event, Fact, Solution, Term, Triple, iri, is_literal, literal
from squall.rdf.compounds import NO_SCHEMA
from squall.rdf.vocabulary import LIST_CELLS, TYPE, is_schema_triple
from squall.reasoning.binding_times import BindingTimes, bound_by, heads, is_plain, used_by, vocabulary
from squall.reasoning.equality import SAME, equalities_of, is_reflexive, reads_same, replaces_literals, with_identity
from squall.reasoning.reduction import (
    Rules,
    derivable,
    is_tautology,
    patterns,
    with_single_heads,
)
from squall.reasoning.substitution import renamed, substituted, unifier
from squall.reasoning.templates import derived_templates, is_open, open_heads
from squall.wording import counted

_DERIVED = iri("urn:x-squall:specialised:derived")
"""The relation of the triples that rules derive of the schema."""
MAX_RESOLVENTS = 200
"""The number of rules that are made for one rule set because data say something of classes and properties."""
MAX_PREMISES = 5
"""The number of patterns that such a rule may have."""
HINT = "leave out `--specialise`: then the rule set reads the schema while it runs"


@dataclass
class Report:
    """What became of the rules of some rule sets.

    Attributes:
        schema_size: The number of triples of the closed schema.
        instances: The number of rules that each rule became, by name.
        generic: The names of the rules that are as they were, each with the reason.
        unneeded: The names of the rules of which nothing is left, since the schema does not use them.
        has_equality: Whether the rules replace equal terms (owl:sameAs). If not, no source may state equality.
    """

    schema_size: int
    instances: Counter[str] = field(default_factory=Counter)
    generic: dict[str, str] = field(default_factory=dict)
    unneeded: tuple[str, ...] = ()
    has_equality: bool = True

    def lines(self) -> Iterator[str]:
        """Yields what became of the rules, in words."""
        count = counted(sum(self.instances.values()), "rule")
        yield f"rule sets specialised by a schema of {counted(self.schema_size, 'triple')}, which is fixed: {count}"
        yield from (f"`{name}` is as it was: {reason}" for name, reason in self.generic.items())
        if not self.has_equality:
            yield "without equality of individuals (owl:sameAs), which the schema does not state, and no source may"
        if self.unneeded:
            yield f"nothing is left of {', '.join(self.unneeded)}"


@dataclass(frozen=True)
class Specialised:
    """Rule sets that a schema specialised.

    Attributes:
        systems: The rule sets, in the order in which they were given.
        schema: What is fixed before the run.
        report: What became of the rules.
        warnings: What the authors of programs may not have meant.
    """

    systems: tuple[System, ...]
    schema: FixedSchema
    report: Report
    warnings: tuple[SquallError, ...] = ()


def specialised(
    rule_sets: Sequence[System], schema: Iterable[Triple], programs: Sequence[System] = (), has_guards: bool = True
) -> Specialised:
    """Returns rule sets that are specialised by a schema.

    Over data that say nothing of classes and properties they derive what the rule sets derive of the schema and the
    data. What is derived of the schema alone is a part of them. If neither the schema nor a rule states equality
    (owl:sameAs), it is fixed, too, and rules that replace equal terms are left out.

    Args:
        rule_sets: The rule sets.
        schema: The schema. What it says of individuals is left out.
        programs: The programs that read what the rule sets derive.
        has_guards: Whether rules end the run if they derive what the schema says.

    Raises:
        UsageError: Data would change the schema, by a rule of a rule set.
        TranslatorError: A rule of a program derives what the schema says.
    """
    all_triples = frozenset(schema)
    triples = frozenset(filter(is_schema_triple, all_triples))
    members = [rule for rule_set in rule_sets for rule in rules(rule_set)]
    heads_of_programs = [template for _, template in derived_templates(programs)]
    facts = [*heads_of_programs, *(Pattern(*triple) for triple in all_triples)]
    evaluation, residual = _without_equality(members, triples, facts)
    if evaluation is None:
        evaluation = _Evaluation(members, triples)
        residual = evaluation.residual_rules()
    raise_all(list(evaluation.refusals(programs)))
    by_sources: dict[tuple[Source, ...], int] = {}
    for number, rule_set in enumerate(rule_sets):
        for rule in rules(rule_set):
            by_sources.setdefault(rule.sources, number)
    by_set: defaultdict[int, list[System]] = defaultdict(list, {0: list(evaluation.axioms())})
    for rule in evaluation.guarded(residual) if has_guards else residual:
        by_set[by_sources.get(rule.sources, 0)].append(rule)
    systems = tuple(
        replace(rule_set, consequences=(), joinables=(), predicates=(), subsystems=tuple(by_set[number]))
        for number, rule_set in enumerate(rule_sets)
    )
    warnings = tuple(open_heads(programs, HINT))
    return Specialised(systems, evaluation.fixed_schema(), evaluation.report, warnings)


def _without_equality(
    members: Sequence[System], schema: frozenset[Triple], facts: Iterable[FactPattern]
) -> tuple[_Evaluation | None, list[System]]:
    """Returns the evaluation of rules under the assumption that each term is equal to itself only, with its rules.

    Args:
        members: The rules.
        schema: The schema triples.
        facts: What else may be a fact.

    Returns:
        None in place of the evaluation if a fact or a rule says otherwise, or no rule reads what is equal.
    """
    # In one piece: each condition under which equality is identity.
    equal = shape(Pattern(Variable("x"), SAME, Variable("y")))
    if any(isinstance(part, Pattern) and part.predicate == SAME for part in facts) or not any(map(reads_same, members)):
        return None, []
    has_values = any(map(replaces_literals, members))
    remaining = [rule for member in members if not replaces_literals(member) for rule in with_identity(member)]
    evaluation = _Evaluation(remaining, schema, has_values)
    evaluation.report.has_equality = False
    residual = evaluation.residual_rules()
    for rule in (*residual, *evaluation.others):
        for head in heads(rule):
            if overlaps(shape(head), equal) and not is_reflexive(rule, head):
                return None, []
    equalities = (fact for fact in evaluation.closure if isinstance(fact, Triple) and fact.predicate == SAME)
    return (evaluation, residual) if all(fact.subject == fact.object for fact in equalities) else (None, [])


class _Evaluation:
    """The partial evaluation of some rules over a schema.

    Args:
        rules: The rules.
        schema: The schema triples.
        has_values: Whether literals of the schema match those of the same value.
    """

    def __init__(self, rules: Sequence[System], schema: frozenset[Triple], has_values: bool = False) -> None:
        # In one piece: what is known before the run, in the order in which it follows.
        self.has_values = has_values
        self.times = BindingTimes(rules)
        self.plain = [single for rule in rules if is_plain(rule) for single in with_single_heads(rule)]
        self.others = [rule for rule in rules if not is_plain(rule)]
        self.schema = schema
        self.derived = frozenset(_evaluated([_recorded(rule) for rule in rules if is_plain(rule)], schema))
        triples = (Triple(*fact.arguments) for fact in self.derived if _is_record(fact))
        self.closure: frozenset[Fact] = schema.union(triples, (f for f in self.derived if not _is_record(f)))
        self.names = frozenset(term for triple in self.closure if isinstance(triple, Triple) for term in triple)
        self.static_patterns: set[FactPattern] = set()
        self.readers: Shapes[_Reader] = Shapes()
        self._numbers = count()
        self.report = Report(sum(isinstance(fact, Triple) for fact in self.closure))
        self.report.generic = {rule.name: _reason(rule) for rule in self.others}
        self.origin = rules[0].origin if rules else None
        self._internal = all(
            consequence.internal
            for rule in rules
            for consequence in rule.consequences
            if isinstance(consequence, Construct)
        )

    def fixed_schema(self) -> FixedSchema:
        """Returns what no source may change: what rules read of the schema."""
        predicates, classes = vocabulary(self.static_patterns)
        if not self.report.has_equality:
            predicates |= {SAME}
        closed = frozenset(fact for fact in self.closure if isinstance(fact, Triple))
        has_cells = any(isinstance(part, Pattern) and part.predicate in LIST_CELLS for part in self.static_patterns)
        return FixedSchema(
            predicates,
            classes,
            closed,
            cells=self.names if has_cells else frozenset(),
            notes=tuple(self.report.lines()),
        )

    def axioms(self) -> Iterator[System]:
        """Yields rules that derive the closed schema: one for each predicate, and one for each class."""
        groups: defaultdict[tuple[Term, ...], set[FactPattern]] = defaultdict(set)
        derived = {Triple(*fact.arguments) for fact in self.derived if _is_record(fact)}
        for fact in self.closure:
            if isinstance(fact, Triple):
                is_internal = self._internal or fact not in derived
                key = (fact.predicate, fact.object) if fact.predicate == TYPE else (fact.predicate,)
                groups[(Term(str(is_internal)), *key)].add(Pattern(*fact))
            elif isinstance(fact, Atom):
                groups[(Term("True"), fact.relation)].add(AtomPattern(fact.relation, fact.arguments))
        for (is_internal_text, *_), facts in sorted(groups.items()):
            template = tuple(sorted(facts, key=str))
            consequence = Construct(template, internal=is_internal_text == "True")
            yield System("schema", consequences=(consequence,), origin=self.origin)

    def residual_rules(self) -> list[System]:
        """Returns the rules that remain for data.

        Raises:
            UsageError: Data would change the schema.
        """
        # In one piece: a fixpoint of instances and resolvents, and what ends it.
        residual, combined = Rules(), Rules()
        of_data: Shapes[System] = Shapes()
        pending = [rule for rule in self.plain if rule.joinables]
        for rule in pending:
            combined.add(rule)
        resolvents = 0
        while pending:
            instances, readers = self._instances(pending)
            pairs = [(rule, reader) for reader in readers for rule in of_data.overlapping(shape(reader.pattern))]
            for reader in readers:
                self.static_patterns.add(reader.pattern)
                self.readers.add(shape(reader.pattern), reader)
            for rule in filter(None, map(residual.add, instances)):
                head = next(heads(rule))
                pairs += ((rule, reader) for reader in self._readers_of(head))
                of_data.add(shape(head), rule)
            pending = []
            for rule, reader in pairs:
                resolvent = self._resolvent(rule, reader)
                if resolvent is None or (resolvent := combined.add(resolvent)) is None:
                    continue
                pending.append(resolvent)
                resolvents += 1
                if resolvents > MAX_RESOLVENTS or len(resolvent.joinables) > MAX_PREMISES:
                    raise _data_change_schema(rule)
        for rule in self.others:
            for head in heads(rule):
                if is_open(head) or any(self._readers_of(head)):
                    raise _data_change_schema(rule)
        remaining = derivable(residual, self.others)
        self.report.instances = Counter(rule.name for rule in remaining)
        used = {*self.report.instances, *self.report.generic}
        self.report.unneeded = tuple(dict.fromkeys(rule.name for rule in self.plain if rule.name not in used))
        return [*remaining, *self.others]

    def refusals(self, programs: Sequence[System]) -> Iterator[TranslatorError]:
        """Yields an error for each rule of programs that derives what is read before the run."""
        for rule, template in derived_templates(programs):
            if any(self._readers_of(template)):
                message = f"`{rule.name}` derives what the schema says, which is fixed if rule sets are specialised"
                yield TranslatorError(message, template.origin or rule.origin, HINT)

    # The instances of rules over the closed schema

    def _instances(self, pending: Sequence[System]) -> tuple[list[System], list[_Reader]]:
        """Returns the instances of plain rules whose static patterns are evaluated, and what read these patterns.

        Rules without data are left out. An instance may have static patterns in its turn: the object of `rdf:type` may
        come to be a class of the schema's own language, and a term of a list a cell.
        """
        instances: list[System] = []
        readers: list[_Reader] = []
        names: frozenset[Term] = frozenset()
        while pending:
            queries: list[_Query] = []
            for rule in pending:
                static = self.times.static_patterns(rule, names)
                if static:
                    queries.append(_Query.of(rule, static))
                    readers += (_Reader(rule, pattern, next(self._numbers)) for pattern in static)
                elif rule.joinables and not self._is_known(next(heads(rule))):
                    instances.append(rule)
            pending = [instance for instance in self._solved(queries) if not is_tautology(instance)]
            names = self.names
        return instances, readers

    def _is_known(self, head: FactPattern) -> bool:
        """Returns whether a head is a fact of the closed schema."""
        if any(isinstance(slot, Variable) for slot in head.slots):
            return False
        fact = Triple(*head.slots) if isinstance(head, Pattern) else Atom(head.relation, head.slots)  # type: ignore[arg-type]
        return fact in self.closure

    def _solved(self, queries: Sequence[_Query]) -> Iterator[System]:
        """Yields the instances of rules, one for each solution of their static part."""
        systems = [query.system(str(number)) for number, query in enumerate(queries)]
        solutions: defaultdict[str, set[Solution]] = defaultdict(set)
        for name, solution in _answers(systems, self.closure):
            solutions[name].add(solution)
        for number, query in enumerate(queries):
            for solution in sorted(solutions[str(number)], key=str):
                values = {
                    Variable(name): value
                    for name, value in zip(solution.names, solution.values, strict=True)
                    if value is not None
                }
                instance: System = substituted(query.residual, values)
                yield _by_value(instance, query.residual) if self.has_values else instance

    # Rules by which data would change the schema

    def _readers_of(self, head: FactPattern) -> Iterator[_Reader]:
        """Yields the readers of what is known before the run that would read a head of data."""
        if not is_open(head):  # see `guarded`
            yield from (reader for reader in self.readers.overlapping(shape(head)) if self._is_of_schema(head))

    def _is_of_schema(self, head: FactPattern) -> bool:
        """Returns whether a head is of the schema if a static pattern matches it. Data have lists of their own."""
        if not (isinstance(head, Pattern) and head.predicate in LIST_CELLS and isinstance(head.subject, str)):
            return True
        return head.subject in self.names

    def _resolvent(self, rule: System, reader: _Reader) -> System | None:
        """Returns the rule that reads what a rule of data derives for the schema, with its premises in its place."""
        own = renamed(rule, reader.number)
        values = unifier(next(heads(own)), reader.pattern)
        if values is None or not self._is_of_schema(next(heads(rule))):
            return None
        further_joinables = tuple(part for part in reader.rule.joinables if part != reader.pattern)
        combined = replace(
            reader.rule,
            joinables=(*own.joinables, *further_joinables),
            predicates=(*own.predicates, *reader.rule.predicates),
        )
        resolvent: System = substituted(combined, values)
        return resolvent

    def guarded(self, residual: Sequence[System]) -> list[System]:
        """Returns rules with a test that what they derive does not change the schema, where it might.

        Rules that replace a term by an equal one are an exception: it has the consequences that it has by the rules for
        the other one. But two names of the schema that come to be equal change it.
        """
        equalities = equalities_of(residual)
        replacing = {id(rule) for equality in equalities for rule in equality.rules}
        guarded: list[System] = []
        for rule in residual:
            head = next(heads(rule))
            if isinstance(head, Pattern) and is_open(head) and id(rule) not in replacing:
                test = Filter(Call(NO_SCHEMA, (literal(rule.name), *head.slots)))
                rule = replace(rule, predicates=(*rule.predicates, test))
            guarded.append(rule)
        names = [name for name in self.names if not is_literal(name)]
        for number, equality in enumerate(equalities):
            guards = equality.guard(number, names, self.closure)
            guarded += [replace(guard, origin=self.origin) for guard in guards]
        return guarded


@dataclass(frozen=True, eq=False)
class _Reader:
    """A static pattern of a rule.

    Attributes:
        rule: The rule.
        pattern: The pattern.
        number: A number that no other reader has.
    """

    rule: System
    pattern: FactPattern
    number: int


@dataclass(frozen=True)
class _Query:
    """The static part of a rule, and what remains of it.

    Attributes:
        joinables: The static patterns.
        predicates: What they decide.
        names: The variables that are bound.
        residual: The rule without these.
    """

    joinables: tuple[FactPattern, ...]
    predicates: tuple[Predicate, ...]
    names: tuple[Variable, ...]
    residual: System

    @classmethod
    def of(cls, rule: System, static: Sequence[FactPattern]) -> _Query:
        bound = dict.fromkeys(name for pattern in static for name in variables(pattern))
        decided: list[Predicate] = []
        for predicate in rule.predicates:
            if used_by(predicate) <= bound.keys():
                decided.append(predicate)
                bound |= dict.fromkeys(bound_by(predicate))
        residual = replace(
            rule,
            joinables=tuple(joinable for joinable in rule.joinables if joinable not in static),
            predicates=tuple(predicate for predicate in rule.predicates if predicate not in decided),
        )
        return cls(tuple(static), tuple(decided), tuple(bound), residual)

    def system(self, name: str) -> System:
        """Returns the query for the solutions of the static part."""
        return System(name, (Source(),), self.joinables, self.predicates, consequences=(Select(self.names),))


def with_names_for_blanks(part: Any) -> Any:
    """Returns a part of a system with an IRI in place of each blank node (RDF 1.1 Concepts, section 3.5)."""
    if isinstance(part, str) and part.startswith("_:"):
        return iri(f"urn:x-squall:blank:{part[2:]}")
    return map_parts(part, with_names_for_blanks)


def _data_change_schema(rule: System) -> UsageError:
    message = f"the rule `{rule.name}` derives of data what the schema says, which is fixed if it is specialised"
    return UsageError(message, rule.origin, HINT)


def _by_value(instance: System, rule: System) -> System:
    """Returns an instance of a rule whose literals match by value, where the rule says no other."""
    pairs = zip(patterns(instance), patterns(rule), strict=True)
    return replace(instance, joinables=tuple(replace(new, exact=old.exact) for new, old in pairs))


def _reason(rule: System) -> str:
    """Returns why a rule is not specialised."""
    if not all(isinstance(part, Construct) for part in rule.consequences):
        return "it does not derive facts"
    if not all(isinstance(joinable, Pattern | AtomPattern) for joinable in rule.joinables):
        return "it has parts with sources, unions or selections of their own"
    return "it has negation, aggregates, or functions that depend on the time or the run"


# Evaluation before the run


def _recorded(rule: System) -> System:
    """Returns a rule whose facts are also outputs."""
    templates = tuple(heads(rule))
    records = tuple(AtomPattern(_DERIVED, head.slots) if isinstance(head, Pattern) else head for head in templates)
    return replace(
        rule,
        sources=(Source(),),
        consequences=(Construct(templates, internal=True), Construct(records)),
        reentrant=True,
    )


def _is_record(fact: Fact) -> bool:
    return isinstance(fact, Atom) and fact.relation == _DERIVED


def _evaluated(members: Sequence[System], facts: Iterable[Fact]) -> Iterator[Atom]:
    """Yields the atoms that rules derive of facts."""
    yield from (fact for _, fact in _outputs(members, facts) if isinstance(fact, Atom))


def _answers(queries: Sequence[System], facts: Iterable[Fact]) -> Iterator[tuple[str, Solution]]:
    """Yields the solutions of queries, each with the name of its query."""
    yield from ((name, fact) for name, fact in _outputs(queries, facts) if isinstance(fact, Solution))


def _outputs(members: Sequence[System], facts: Iterable[Fact]) -> Iterator[tuple[str, object]]:
    from squall.builders.local.job import build
    from squall.planners import greedy

    if members:
        job = build(greedy.plan(System(subsystems=tuple(members))), Options(seed=0))
        yield from ((out.rule, out.fact) for out in job.run([], [Event(ALWAYS, tuple(facts))]))
