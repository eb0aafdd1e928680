"""The answer at an instant: the least model, and the solutions over it."""

from __future__ import annotations

from collections.abc import Sequence

from squall.model import Ask, Construct, FactPattern, OutputSpec, Pattern, Select, System, Variable
from squall.rdf import QUAD, Atom, Boolean, Fact, Quad, Solution, Triple, is_iri, is_literal
from squall.testing.oracle.base import Answer, Bindings, Instant, Names
from squall.testing.oracle.solutions import solutions_of


def model(
    strata: list[list[System]], instant: Instant, specs: Sequence[OutputSpec], inserted: dict[Fact, set[int]]
) -> list[Answer]:
    """Computes the least model, stratum by stratum, and the solutions over it, as the answer of each output spec. Facts
    that updates have inserted are part of the answer."""
    derived = dict(inserted)
    for stratum in strata:
        while _derive(stratum, instant, derived):
            pass
    return [_part(spec, instant, derived) for spec in specs]


def _part(spec: OutputSpec, instant: Instant, derived: dict[Fact, set[int]]) -> Answer:
    facts: dict[Fact | Quad, Names] = {}
    for fact, makers in derived.items():
        names = frozenset(spec.name or rule.name for rule in spec.rules if id(rule) in makers)
        if names and is_answer(fact):
            facts[_as_quad(fact)] = names
    return Answer(facts, tuple((item, rule.name) for rule in spec.rules for item in _answered(rule, instant)))


def _answered(rule: System, instant: Instant) -> list[Solution | Boolean]:
    """Returns the answers of a query in the order of its `Slice`, or else sorted by their text."""
    selects = [consequence.variables for consequence in rule.consequences if isinstance(consequence, Select)]
    asks = [consequence for consequence in rule.consequences if isinstance(consequence, Ask)]
    solutions = solutions_of(rule, instant) if selects or asks else []
    answers = [_selected(names, solution) for names in selects for solution in solutions]
    return [*(answers if rule.slice else sorted(answers, key=str)), *(Boolean(bool(solutions)) for _ in asks)]


def _as_quad(fact: Fact) -> Fact | Quad:
    """Returns the fact; an atom of the relation `QUAD` becomes the quad that it stands for."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        graph, subject, predicate, object = fact.arguments
        return Quad(subject, predicate, object, graph)
    return fact


def is_answer(fact: Fact) -> bool:
    """Returns whether a fact may be in an answer: an atom, or a valid RDF triple or quad. Rules also read generalized
    triples."""
    if isinstance(fact, Atom) and fact.relation == QUAD:
        return not is_literal(fact.arguments[0]) and is_answer(Triple(*fact.arguments[1:]))
    return isinstance(fact, Atom) or (not is_literal(fact.subject) and is_iri(fact.predicate))


def _selected(names: Sequence[Variable], solution: Bindings) -> Solution:
    return Solution(tuple(name.name for name in names), tuple(solution.get(name) for name in names))


def _derive(stratum: list[System], instant: Instant, derived: dict[Fact, set[int]]) -> bool:
    """Applies every rule once and returns whether that derived anything new. derived: facts, with the identities of the
    rules that derive them."""
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
    """Returns the facts of a rule's templates, each with its `Construct`."""
    constructs = [construct for construct in rule.consequences if isinstance(construct, Construct)]
    solutions = solutions_of(rule, instant) if constructs else []
    facts = [
        (construct, instance(template, solution))
        for solution in solutions
        for construct in constructs
        for template in construct.template
    ]
    return [(construct, fact) for construct, fact in facts if fact is not None]


def instance(template: FactPattern, solution: Bindings) -> Fact | None:
    """Returns the instantiated template; None if a variable of it is unbound (SPARQL 1.1, section 16.2)."""
    terms = [solution.get(slot) if isinstance(slot, Variable) else slot for slot in template.slots]
    bound = tuple(term for term in terms if term is not None)
    if len(bound) < len(terms):
        return None
    return Triple(*bound) if isinstance(template, Pattern) else Atom(template.relation, bound)
