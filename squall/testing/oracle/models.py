"""What is answered at an instant: the least model, and the solutions over it."""

from __future__ import annotations

from collections.abc import Sequence

from squall.model import Ask, Construct, FactPattern, OutputSpec, Pattern, Select, System, Variable
from squall.rdf import QUAD, Atom, Boolean, Fact, Quad, Solution, Triple, is_iri, is_literal
from squall.testing.oracle.base import Answer, Bindings, Instant, Names
from squall.testing.oracle.solutions import solutions_of


def model(
    strata: list[list[System]], instant: Instant, told: Sequence[OutputSpec], inserted: dict[Fact, set[int]]
) -> list[Answer]:
    """The least model, stratum by stratum, and the solutions over it: what each way of telling has of it. What updates
    have inserted is answered, too."""
    derived = dict(inserted)
    for stratum in strata:
        while _derive(stratum, instant, derived):
            pass
    return [_part(telling, instant, derived) for telling in told]


def _part(telling: OutputSpec, instant: Instant, derived: dict[Fact, set[int]]) -> Answer:
    facts: dict[Fact | Quad, Names] = {}
    for fact, makers in derived.items():
        names = frozenset(telling.name or rule.name for rule in telling.rules if id(rule) in makers)
        if names and is_answer(fact):
            facts[_as_told(fact)] = names
    return Answer(facts, tuple((item, rule.name) for rule in telling.rules for item in _answered(rule, instant)))


def _answered(rule: System, instant: Instant) -> list[Solution | Boolean]:
    """What a query answers, in the order of its `Slice`, or else by its text."""
    selects = [one.variables for one in rule.consequences if isinstance(one, Select)]
    asks = [one for one in rule.consequences if isinstance(one, Ask)]
    solutions = solutions_of(rule, instant) if selects or asks else []
    found = [_selected(names, solution) for names in selects for solution in solutions]
    return [*(found if rule.slice else sorted(found, key=str)), *(Boolean(bool(solutions)) for _ in asks)]


def _as_told(fact: Fact) -> Fact | Quad:
    """The fact, one of the relation `QUAD` as what it stands for."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        graph, subject, predicate, object = fact.arguments
        return Quad(subject, predicate, object, graph)
    return fact


def is_answer(fact: Fact) -> bool:
    """Whether a fact may be answered: an atom, or a triple or quad as RDF has them. Rules read the others all the
    same."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        return not is_literal(fact.arguments[0]) and is_answer(Triple(*fact.arguments[1:]))
    return isinstance(fact, Atom) or (not is_literal(fact.subject) and is_iri(fact.predicate))


def _selected(names: Sequence[Variable], solution: Bindings) -> Solution:
    return Solution(tuple(name.name for name in names), tuple(solution.get(name) for name in names))


def _derive(stratum: list[System], instant: Instant, derived: dict[Fact, set[int]]) -> bool:
    """One round of every rule; whether it brought anything new. derived: facts, with the rules that make them, by
    identity."""
    grown = False
    for rule in stratum:
        for construct, fact in _instances(rule, instant):
            makers = derived.setdefault(fact, set())
            if not construct.internal and id(rule) not in makers:
                makers.add(id(rule))
                grown = True
            if rule.reentrant and fact not in instant.derived:
                instant.derived.add(fact)
                grown = True
    return grown


def _instances(rule: System, instant: Instant) -> list[tuple[Construct, Fact]]:
    """The facts that the templates of a rule make, each with what it is a template of."""
    made = [one for one in rule.consequences if isinstance(one, Construct)]
    solutions = solutions_of(rule, instant) if made else []
    facts = [(one, instance(template, each)) for each in solutions for one in made for template in one.template]
    return [(one, fact) for one, fact in facts if fact is not None]


def instance(template: FactPattern, solution: Bindings) -> Fact | None:
    """The template filled in; None where a variable of it is unbound (SPARQL 1.1, section 16.2)."""
    terms = [solution.get(slot) if isinstance(slot, Variable) else slot for slot in template.slots]
    bound = tuple(term for term in terms if term is not None)
    if len(bound) < len(terms):
        return None
    return Triple(*bound) if isinstance(template, Pattern) else Atom(template.relation, bound)
