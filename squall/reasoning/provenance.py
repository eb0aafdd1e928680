"""owl:sameAs with provenance: patterns are joined by what terms name, and answers have the terms that matched.

A variable of a rule has the representative of its clique, so that joins, negation and groups are those over
representatives (`squall.reasoning.same_as`). Beside it, each pattern binds a variable of its own to the term of the
fact; of these *carriers* the first is what answers, derived facts and functions get. Sources deliver facts as they
come. docs/semantics.md has the meaning.

Source: X. Ren, O. Curé, H. Naacke and G. Xiao, StriderR: Massive and distributed RDF graph stream reasoning (BigData
2017).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import NamedTuple

from squall import functions
from squall.errors import TranslatorError, raise_all
from squall.functions.same_as import REPRESENTATIVE
from squall.functions.sparql.names import OWN, SPARQL
from squall.functions.sparql.tables import TABLE
from squall.model.consequences import Consequence, Construct, Delete, Insert, Select
from squall.model.expressions import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Grouping,
    Negation,
    Optional,
    Predicate,
    Slice,
    TableFunction,
    Union,
)
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.reading import rules, variables, visible
from squall.model.sequences import SequenceJoin
from squall.model.sources import ARRIVAL, GRAPH, GRAPH_EXISTS, Source
from squall.model.systems import Joinable, System
from squall.model.temporal import Temporal
from squall.model.walk import walk
from squall.rdf import Term, Triple
from squall.rdf.cliques import SAME_AS, Cliques
from squall.rdf.compounds import BUILD
from squall.reasoning.same_as import COMPARING, PLAIN_NAMESPACES, may_name, open_heads, refusals
from squall.reasoning.schema import is_axiom

_NAME_COUNTS = {GRAPH: 1, ARRIVAL: 2}
"""The relations of which the first arguments name graphs or times, and how many do. No clique has these."""


class _Carrier(NamedTuple):
    """A variable that has the term which a pattern matched.

    Attributes:
        variable: The variable.
        is_certain: Whether it is bound in every solution.
        gives_way: Whether it has a representative for want of a term that matched: other carriers go before it.
    """

    variable: Variable
    is_certain: bool = True
    gives_way: bool = False


class _Carriers(dict[Variable, tuple[_Carrier, ...]]):
    """The carriers of the variables of a part, in the order of its text."""

    def add(self, others: Mapping[Variable, tuple[_Carrier, ...]], is_certain: bool = True) -> None:
        """Adds carriers behind those that there are, which are bound in every solution only if `is_certain`."""
        for name, carriers in others.items():
            added = (carrier._replace(is_certain=carrier.is_certain and is_certain) for carrier in carriers)
            self[name] = tuple(dict.fromkeys((*self.get(name, ()), *added)))

    def with_others(self, others: Mapping[Variable, tuple[_Carrier, ...]]) -> _Carriers:
        result = _Carriers(self)
        result.add(others)
        return result

    def needed(self, name: Variable) -> list[_Carrier]:
        """Returns the carriers of which the first that is bound has the term of a variable."""
        needed = []
        for carrier in sorted(self.get(name, ()), key=lambda carrier: carrier.gives_way):
            needed.append(carrier)
            if carrier.is_certain:
                break
        return needed

    def term(self, name: Variable) -> Expression:
        """Returns the expression for the term of a variable."""
        names = tuple(carrier.variable for carrier in self.needed(name))
        if len(names) < 2:
            return names[0] if names else name
        return Call(SPARQL + "coalesce", names)


def with_provenance(system: System, cliques: Cliques, as_sets: bool) -> System:
    """Returns the system in which patterns are joined by cliques, but for patterns of owl:sameAs itself.

    Args:
        system: The system, with all windows.
        cliques: The cliques.
        as_sets: Whether the solutions of each pattern are a set: an entailment regime gives a pattern the solutions
            that it has by any name of its constants, so that a union over the names has them several times.

    Raises:
        TranslatorError: A program derives owl:sameAs, or deletes.
    """
    raise_all(list(refusals(system)))
    rewritten = _Rewriting(cliques, as_sets, _name_positions(system)).program(system)
    return replace(rewritten, warnings=(*system.warnings, *open_heads(system)))


def all_names(schema: Iterable[Triple], cliques: Cliques) -> Iterator[Triple]:
    """Yields what a schema says of classes and properties, by all names of each."""
    for triple in schema:
        if is_axiom(triple):
            yield from (Triple(*terms) for terms in product(*map(cliques.clique, map(cliques.representative, triple))))
        else:
            yield triple


def _name_positions(system: System) -> frozenset[tuple[Term, int]]:
    """Returns the arguments of relations that name graphs: those that rules derive of names of graphs."""
    positions = {(relation, place) for relation, count in _NAME_COUNTS.items() for place in range(count)}
    while True:
        derived = {position for rule in rules(system) for position in _derived_positions(rule, positions)}
        if derived <= positions:
            return frozenset(positions)
        positions |= derived


def _derived_positions(rule: System, positions: set[tuple[Term, int]]) -> Iterator[tuple[Term, int]]:
    atoms = (part for part in walk(rule) if isinstance(part, AtomPattern))
    places = ((atom, place, slot) for atom in atoms for place, slot in enumerate(atom.arguments))
    names = {slot for atom, place, slot in places if (atom.relation, place) in positions}
    for consequence in rule.consequences:
        for template in consequence.template if isinstance(consequence, Construct) else ():
            if isinstance(template, AtomPattern):
                yield from (
                    (template.relation, place) for place, slot in enumerate(template.arguments) if slot in names
                )


def _compared_variables(part: object) -> Iterator[Variable]:
    """Yields the variables of a rule in each place where it matters which clique they have."""
    # In one piece: a case for each part in which terms are compared.
    match part:
        case Pattern() | AtomPattern():
            yield from (slot for slot in part.slots if isinstance(slot, Variable))
        case Bind(variable=variable, expression=expression):
            yield variable
            yield from (expression,) if isinstance(expression, Variable) else _compared_variables(expression)
        case TableFunction(variables=names, arguments=arguments):
            yield from names
            yield from _compared_variables(arguments)
        case Aggregate(expression=expression):
            yield from (expression,) if isinstance(expression, Variable) else _compared_variables(expression)
        case Grouping(keys=keys, aggregates=aggregates):
            yield from keys
            yield from _compared_variables(aggregates)
        case Call(arguments=arguments):
            if _takes_representatives(part.function):
                yield from (argument for argument in arguments if isinstance(argument, Variable))
            yield from _compared_variables(arguments)
        case tuple():
            for inner in part:
                yield from _compared_variables(inner)
        case Construct() | Insert() | Delete() | Select() | Source() | Variable():
            return
        case _ if is_dataclass(part):
            for part_field in fields(part):
                yield from _compared_variables(getattr(part, part_field.name))


def _takes_representatives(function: str) -> bool:
    """Returns whether a function compares terms, or builds terms of them: it depends on what they name."""
    if function in COMPARING or function == BUILD:
        return True
    return not function.startswith(PLAIN_NAMESPACES) and functions.lookup(function).nests


class _Expressions:
    """Expressions over the terms that matched.

    Args:
        cliques: The cliques.
    """

    def __init__(self, cliques: Cliques) -> None:
        self.cliques = cliques

    def expression(self, expression: Expression, carriers: _Carriers) -> Expression:
        """Returns an expression over the terms that matched, in which terms are compared by what they name."""
        match expression:
            case Variable():
                return carriers.term(expression)
            case Call():
                return self.call(expression, carriers)
            case _:
                return expression

    def call(self, call: Call, carriers: _Carriers) -> Call:
        inside = self.named if _takes_representatives(call.function) else self.expression
        return replace(call, arguments=tuple(inside(argument, carriers) for argument in call.arguments))

    def named(self, expression: Expression, carriers: _Carriers) -> Expression:
        """Returns an expression whose value is a representative."""
        match expression:
            case Variable():
                return expression
            case Call():
                value = self.call(expression, carriers)
                return self.representative(value) if may_name(expression) else value
            case _:
                return self.cliques.representative(Term(expression))

    def representative(self, expression: Expression) -> Call:
        return Call(REPRESENTATIVE, (self.cliques.term, expression))

    def names(self, slot: Slot) -> tuple[Slot, ...]:
        """Returns the names of a constant; of a variable, itself."""
        return (slot,) if isinstance(slot, Variable) else self.cliques.clique(self.cliques.representative(slot))


class _Rewriting:
    """The rewriting of a system."""

    def __init__(self, cliques: Cliques, as_sets: bool, name_positions: frozenset[tuple[Term, int]]) -> None:
        self._over = _Expressions(cliques)
        self.as_sets = as_sets
        self.name_positions = name_positions
        self._single_use: frozenset[Variable] = frozenset()
        """The variables of the rule that are compared with no other term: they need no representative."""
        self._own_variables: set[Expression] = set()

    def program(self, system: System) -> System:
        """Returns a program, a rule or a query."""
        subsystems = tuple(map(self.program, system.subsystems))
        rewritten = self._rule(system) if system.consequences else system
        return replace(rewritten, subsystems=subsystems)

    def _rule(self, rule: System) -> System:
        parts = (rule.joinables, rule.predicates, rule.grouping, rule.slice)
        counts = Counter(_compared_variables(parts))
        self._single_use = frozenset(name for name, count in counts.items() if count == 1)
        body, carriers = self._body(rule, None)
        if any(isinstance(consequence, Select) for consequence in rule.consequences):
            return self._query(rule, body, carriers)
        slots = dict.fromkeys(slot for part in rule.consequences for slot in _slots(part))
        binds, terms = self._terms((slot for slot in slots if isinstance(slot, Variable)), carriers)
        predicates = body.predicates if rule.grouping is not None else (*body.predicates, *binds)
        consequences = tuple(_with_slots(part, terms) for part in rule.consequences)
        return replace(body, predicates=predicates, consequences=consequences, slice=self._slice(rule.slice, carriers))

    def _query(self, query: System, body: System, carriers: _Carriers) -> System:
        """Returns a query whose answer has the terms that matched.

        Args:
            query: The query as it is.
            body: The query over representatives and carriers.
            carriers: The carriers of the body.
        """
        order = query.slice.order if query.slice is not None else ()
        selected = (name for part in query.consequences if isinstance(part, Select) for name in part.variables)
        sorted_by = (name for key in order for name in variables(key.expression))
        names = tuple(dict.fromkeys((*selected, *sorted_by)))
        binds, terms = self._terms((name for name in names if name in carriers), carriers)
        of_terms = tuple(Bind(name, term, keep_unbound=True) for name, term in terms.items() if name != term)
        if not of_terms:
            return body
        inner = System(
            query.name, body.sources, body.joinables, (*body.predicates, *binds), body.grouping,
            consequences=(Select(tuple(dict.fromkeys(terms.values()))),),
        )  # fmt: skip
        return replace(query, joinables=(inner,), predicates=of_terms, grouping=None)

    def _slice(self, slice: Slice | None, carriers: _Carriers) -> Slice | None:
        if slice is None:
            return None
        order = (replace(key, expression=self._over.expression(key.expression, carriers)) for key in slice.order)
        return replace(slice, order=tuple(order))

    def _terms(self, names: Iterable[Variable], carriers: _Carriers) -> tuple[list[Bind], dict[Variable, Variable]]:
        """Returns a variable with the term of each variable, and what binds those that there are not yet."""
        binds: list[Bind] = []
        terms: dict[Variable, Variable] = {}
        for name in names:
            term = carriers.term(name)
            if term != name and term not in self._own_variables:
                binds.append(Bind(self._variable(name), term, keep_unbound=True))
                term = binds[-1].variable
            assert isinstance(term, Variable)
            terms[name] = term
        return binds, terms

    def _body(self, system: System, outer: _Carriers | None) -> tuple[System, _Carriers]:
        """Returns a rule or a part with its joinables, predicates and groups rewritten, and its carriers.

        Args:
            system: The rule or part.
            outer: The carriers around it that it sees, in EXISTS.
        """
        carriers = _Carriers()
        joinables: list[Joinable] = []
        for joinable in system.joinables:
            rewritten, added = self._joinable(joinable, system.sources, outer)
            joinables.append(rewritten)
            carriers.add(added)
        predicates = [part for each in system.predicates for part in self._predicate(each, system, carriers, outer)]
        body = replace(system, joinables=tuple(joinables), predicates=tuple(predicates))
        if system.grouping is None:
            return body, carriers
        scope = carriers.with_others(outer or {})
        aggregates = tuple(self._aggregate(part, scope) for part in system.grouping.aggregates)
        of_groups = _Carriers()
        for name in (*system.grouping.keys, *(part.variable for part in aggregates)):
            of_groups[name] = (_Carrier(name, is_certain=False, gives_way=True),)
        return replace(body, grouping=replace(system.grouping, aggregates=aggregates)), of_groups

    def _aggregate(self, aggregate: Aggregate, carriers: _Carriers) -> Aggregate:
        expression = aggregate.expression
        if expression is None or isinstance(expression, Variable):
            return aggregate
        return replace(aggregate, expression=self._over.named(expression, carriers))

    # Joinables

    def _joinable(
        self, joinable: Joinable, sources: tuple[Source, ...], outer: _Carriers | None
    ) -> tuple[Joinable, _Carriers]:
        match joinable:
            case Pattern() | AtomPattern():
                return self._pattern(joinable, sources)
            case Union():
                return self._union(joinable, outer)
            case SequenceJoin():
                raise TranslatorError(
                    "a sequence cannot be read by owl:sameAs with provenance",
                    joinable.origin,
                    "run it with `--same-as representative`",
                )
            case Temporal():
                raise TranslatorError(
                    "a window in the body of a rule cannot be read by owl:sameAs with provenance",
                    joinable.origin,
                    "run it with `--same-as representative`",
                )
            case System():
                return self._part(joinable, outer)

    def _part(self, part: System, outer: _Carriers | None) -> tuple[System, _Carriers]:
        """Returns a part of a rule whose visible variables have carriers that are visible, too."""
        if part.name == GRAPH_EXISTS:
            return part, _Carriers()
        body, carriers = self._body(part, None if _is_closed(part) else outer)
        ordered = replace(body, slice=self._slice(part.slice, carriers))
        selection = next((item for item in part.consequences if isinstance(item, Select)), None)
        if selection is None:
            return ordered, carriers
        binds, terms = self._terms((name for name in selection.variables if name in carriers), carriers)
        names = tuple(dict.fromkeys((*selection.variables, *terms.values())))
        closed = replace(ordered, predicates=(*ordered.predicates, *binds), consequences=(Select(names),))
        return closed, _Carriers({name: (_joint(term, carriers.needed(name)),) for name, term in terms.items()})

    def _union(self, union: Union, outer: _Carriers | None) -> tuple[Union, _Carriers]:
        """Returns a union whose branches have the term of a variable in the same carrier."""
        branches = [self._part(branch, outer) for branch in union.branches]
        names = dict.fromkeys(name for _, carriers in branches for name in carriers)
        shared = {name: self._variable(name) for name in names if any(own.term(name) != name for _, own in branches)}
        result = _Carriers()
        for name in names:
            needed = [own.needed(name) for _, own in branches]
            carrier = _joint(shared.get(name, name), [each for carriers in needed for each in carriers])
            is_certain = all(carriers and carriers[-1].is_certain for carriers in needed)
            result[name] = (carrier._replace(is_certain=is_certain),)
        return Union(tuple(_with_carriers(branch, own, shared) for branch, own in branches)), result

    def _pattern(self, pattern: FactPattern, sources: tuple[Source, ...]) -> tuple[Joinable, _Carriers]:
        """Returns what has the solutions of a pattern by each name of its constants, with representatives."""
        slots = list(pattern.slots)
        predicates: list[Predicate] = []
        gives_way = isinstance(pattern, Pattern) and pattern.predicate == SAME_AS
        compared = [place for place, slot in enumerate(slots) if self._is_compared(pattern, place, slot)]
        carriers = _Carriers()
        for place, slot in enumerate(slots):
            if isinstance(slot, Variable) and place not in compared:
                carriers[slot] = (_Carrier(slot, gives_way=gives_way),)
        for place in compared:
            name = slots[place]
            assert isinstance(name, Variable)
            slots[place] = term = self._variable(name)
            representative = self._over.representative(term)
            if name in carriers:
                predicates.append(Filter(Call(OWN + "sameTerm", (name, representative))))
            else:
                predicates.append(Bind(name, representative))
                carriers[name] = (_Carrier(term, gives_way=gives_way),)
        joinable = self._by_each_name(pattern, slots, sources)
        if joinable == pattern:
            return pattern, carriers
        label = f"what is {' '.join(map(str, pattern.slots))}"
        return System(label, sources, (joinable,), tuple(predicates), origin=pattern.origin), carriers

    def _is_compared(self, pattern: FactPattern, place: int, slot: Slot) -> bool:
        """Returns whether a slot has a variable whose clique matters."""
        is_variable = isinstance(slot, Variable) and slot not in self._single_use
        return is_variable and not self._has_name(pattern, place)

    def _by_each_name(self, pattern: FactPattern, slots: Sequence[Slot], sources: tuple[Source, ...]) -> Joinable:
        """Returns a pattern of other variables, or the union of the patterns by the names of its constants."""
        names = [
            (slot,) if self._has_name(pattern, place) else self._over.names(slot) for place, slot in enumerate(slots)
        ]
        variants = [_of_slots(pattern, choice) for choice in product(*names)]
        if len(variants) == 1:
            return variants[0]
        shown = Select(tuple(dict.fromkeys(slot for slot in slots if isinstance(slot, Variable))))
        branches = Union(tuple(System("", sources, (variant,), consequences=(shown,)) for variant in variants))
        return System("", sources, (branches,), distinct=True, consequences=(shown,)) if self.as_sets else branches

    def _has_name(self, pattern: FactPattern, place: int) -> bool:
        """Returns whether an argument of an atom names a graph."""
        return isinstance(pattern, AtomPattern) and (pattern.relation, place) in self.name_positions

    # Predicates

    def _predicate(
        self, predicate: Predicate, system: System, carriers: _Carriers, outer: _Carriers | None
    ) -> Iterator[Predicate]:
        """Yields a predicate over representatives and the terms that matched, and adds what carries the terms it binds.

        Args:
            predicate: The predicate.
            system: The rule or part that it belongs to.
            carriers: The carriers of what is in front of it.
            outer: The carriers around the part, in EXISTS. They have what is in place of a variable.
        """
        scope = _Carriers(outer or {}).with_others(carriers)
        match predicate:
            case Filter(expression=expression):
                yield Filter(self._over.call(expression, scope))
            case Bind():
                yield from self._bind(predicate, scope, carriers)
            case TableFunction():
                yield from self._table(predicate, scope, carriers)
            case Negation(joinables=joinables):
                inner = tuple(self._joinable(part, system.sources, outer)[0] for part in joinables)
                yield replace(predicate, joinables=inner)
            case Optional(system=part, condition=condition, exists=exists):
                rewritten, added = self._part(part, outer)
                inside = scope.with_others(added)
                tests = tuple(replace(test, system=self._part(test.system, inside)[0]) for test in exists)
                test = None if condition is None else self._over.call(condition, inside)
                yield replace(predicate, system=rewritten, condition=test, exists=tests)
                carriers.add(added, is_certain=False)
            case Exists(system=part):
                yield replace(predicate, system=self._part(part, scope)[0])

    def _bind(self, bind: Bind, scope: _Carriers, carriers: _Carriers) -> Iterator[Predicate]:
        name, expression = bind.variable, bind.expression
        if isinstance(expression, Variable):
            yield bind
            carriers.add({name: tuple(scope.needed(expression)) or (_Carrier(expression, is_certain=False),)})
            return
        value = expression if isinstance(expression, str) else self._over.call(expression, scope)
        needs_name = may_name(expression) or (isinstance(value, str) and len(self._over.names(Term(value))) > 1)
        is_plain = name in self._single_use or not needs_name
        term = name if is_plain else self._variable(name)
        yield replace(bind, variable=term, expression=value)
        if not is_plain:
            yield replace(bind, expression=self._over.representative(term))
        carriers.add({name: (_Carrier(term, is_certain=not bind.keep_unbound),)})

    def _table(self, table: TableFunction, scope: _Carriers, carriers: _Carriers) -> Iterator[Predicate]:
        """Yields a table function, and the representatives of its results. What else matched goes before them."""
        arguments = tuple(self._over.expression(argument, scope) for argument in table.arguments)
        is_plain = table.function == TABLE.iri and all(
            isinstance(term, str) and len(self._over.names(Term(term))) == 1 for term in arguments
        )
        terms = {
            name: name if is_plain or name in self._single_use else self._variable(name) for name in table.variables
        }
        yield replace(table, variables=tuple(terms.values()), arguments=arguments)
        for name, term in terms.items():
            if term != name:
                yield Bind(name, self._over.representative(term), keep_unbound=True)
        carriers.add({name: (_Carrier(term, is_certain=False),) for name, term in terms.items()})

    def _variable(self, name: Variable) -> Variable:
        variable = Variable(f"{name.name} {len(self._own_variables) + 1}")
        self._own_variables.add(variable)
        return variable


def _joint(variable: Variable, carriers: Sequence[_Carrier]) -> _Carrier:
    """Returns the carrier of the first term that some carriers have."""
    is_certain = bool(carriers) and carriers[-1].is_certain
    return _Carrier(variable, is_certain, all(carrier.gives_way for carrier in carriers))


def _is_closed(part: System) -> bool:
    """Returns whether a part is evaluated by itself, and does not see the variables around it."""
    is_modified = part.grouping is not None or part.slice is not None or part.distinct
    return is_modified or any(isinstance(consequence, Select) for consequence in part.consequences)


def _with_carriers(branch: System, carriers: _Carriers, shared: Mapping[Variable, Variable]) -> System:
    """Returns a branch of a union in which the carriers of the union have the terms of its own."""
    binds = tuple(
        Bind(shared[name], carriers.term(name), keep_unbound=not carriers.needed(name)[-1].is_certain)
        for name in carriers
        if name in shared
    )
    if not binds:
        return branch
    if not _is_closed(branch):
        return replace(branch, predicates=(*branch.predicates, *binds))
    own = {carrier.variable for name in carriers for carrier in carriers[name]} - {*carriers}
    names = (*(name for name in visible(branch) if name not in own), *(bind.variable for bind in binds))
    return System("", branch.sources, (branch,), binds, consequences=(Select(names),))


def _slots(consequence: Consequence) -> Iterator[Slot]:
    """Yields the slots of what a rule derives or inserts."""
    if isinstance(consequence, Construct | Insert):
        yield from (slot for template in consequence.template for slot in template.slots)
    if isinstance(consequence, Insert) and consequence.graph is not None:
        yield consequence.graph


def _with_slots(consequence: Consequence, terms: Mapping[Variable, Variable]) -> Consequence:
    """Returns what a rule derives or inserts, with other variables."""

    def slot(old: Slot) -> Slot:
        return terms.get(old, old) if isinstance(old, Variable) else old

    match consequence:
        case Construct(template=template):
            return replace(consequence, template=tuple(_of_slots(part, map(slot, part.slots)) for part in template))
        case Insert(template=patterns, graph=graph):
            changed = tuple(_triple(part, map(slot, part.slots)) for part in patterns)
            return replace(consequence, template=changed, graph=None if graph is None else slot(graph))
        case _:
            return consequence


def _of_slots(pattern: FactPattern, slots: Iterable[Slot]) -> FactPattern:
    """Returns a pattern with other slots."""
    return replace(pattern, arguments=tuple(slots)) if isinstance(pattern, AtomPattern) else _triple(pattern, slots)


def _triple(pattern: Pattern, slots: Iterable[Slot]) -> Pattern:
    subject, predicate, object = slots
    return replace(pattern, subject=subject, predicate=predicate, object=object)
