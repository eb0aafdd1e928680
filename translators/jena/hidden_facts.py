"""What rules read, and what is left out of the answer: facts with nodes that `hide` names, and those with functors.

A rule that makes such facts, or may make them, is split: what it makes is for other rules only, and what is in the
answer is made by others of the same body. Where rules say what is hidden, one rule makes the answer, from all that the
others have made: a rule that looks once at what is not there must not look again for the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from squall.errors import TranslatorError
from squall.functions.jena import function_iri
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Consequence,
    Construct,
    Expression,
    Filter,
    Insert,
    NotExists,
    Pattern,
    Predicate,
    System,
    Variable,
)
from squall.rdf import Term, iri
from squall.rdf.compounds import BUILD, LIMIT, is_compound

HIDDEN = iri("urn:x-squall:jena:hidden")
"""The relation of nodes that are hidden where something else holds."""

MADE = iri("urn:x-squall:jena:made")
"""The relation of the nodes of facts that rules have made, which are in the answer if nothing in them is hidden."""

_MADE = Pattern(Variable("subject"), Variable("predicate"), Variable("object"))


@dataclass
class Hiding:
    """What a program hides.

    nodes: whatever else holds. derives: whether rules say of further nodes that they are `HIDDEN`. functors: whether
    there are functors.
    """

    nodes: dict[Term, None] = field(default_factory=dict)
    derives: bool = False
    functors: bool = False

    def split(self, rule: System) -> Iterator[System]:
        """The rule as several, of which some make what is answered.

        Raises TranslatorError for a rule that inserts what may be hidden: that stays, so it is in the answer.
        """
        for consequence in rule.consequences:
            if isinstance(consequence, Insert) and any(self._may_hide(fact) for fact in consequence.template):
                hint = "a rule that removes cannot make facts that are hidden"
                raise TranslatorError(f"the rule `{rule.name}` makes what `hide` hides", rule.origin, hint)
        if self.derives:
            yield replace(rule, consequences=tuple(map(_marked, rule.consequences)))
            return
        built = {
            consequence.variable
            for consequence in rule.predicates
            if isinstance(consequence, Bind) and _is_built(consequence.expression)
        }
        tests: dict[tuple[Predicate, ...] | None, list[Pattern]] = {}
        for fact in _facts(rule):
            tests.setdefault(self._tests(fact, built), []).append(fact)
        if set(tests) <= {()}:
            yield rule
            return
        visible_facts, inside = (
            tests.pop((), []),
            tuple(fact for tested_facts in tests.values() for fact in tested_facts),
        )
        constructs = (Construct(tuple(visible_facts)),) if visible_facts else ()
        yield replace(rule, consequences=(*constructs, Construct(inside, internal=True)))
        for test_predicates, tested_facts in tests.items():
            if test_predicates is not None:
                predicates, consequences = (*rule.predicates, *test_predicates), (Construct(tuple(tested_facts)),)
                yield replace(rule, predicates=predicates, consequences=consequences)

    def answers(self) -> tuple[System, ...]:
        """The rule that makes the answer, where rules say what is hidden."""
        if not self.derives:
            return ()
        skolem_atom = AtomPattern(MADE, _MADE.slots)
        tests = self._tests(_MADE, ())
        rule = System(
            "hide",
            joinables=(skolem_atom,),
            predicates=tests or (),
            consequences=(Construct((_MADE,)),),
            reentrant=False,
        )
        return (rule,)

    def _may_hide(self, fact: Pattern) -> bool:
        return self.derives or any(slot in self.nodes or (self.nodes and _varies(slot)) for slot in fact.slots)

    def _tests(self, fact: Pattern, built: Collection[Variable]) -> tuple[Predicate, ...] | None:
        """What has to hold for a fact to be in the answer; None: it never is."""
        if any(slot in self.nodes for slot in fact.slots):
            return None
        if self.functors and (fact.object in built or _is_built(fact.object)):
            return None
        predicates: list[Predicate] = []
        for slot in fact.slots:
            if isinstance(slot, Variable):
                predicates += [Filter(Call(_NOT_EQUAL, (slot, node))) for node in self.nodes]
            if self.derives:
                predicates.append(NotExists((AtomPattern(HIDDEN, (slot,)),)))
        if self.functors and isinstance(fact.object, Variable):
            predicates.append(Filter(Call(_NOT_FUNCTOR, (fact.object,))))
        return tuple(predicates)


def _marked(consequence: Consequence) -> Consequence:
    """What a rule makes, for other rules only, with what the answer is made from."""
    if not isinstance(consequence, Construct) or consequence.internal:
        return consequence
    marks = tuple(AtomPattern(MADE, fact.slots) for fact in consequence.template if isinstance(fact, Pattern))
    return replace(consequence, template=(*consequence.template, *marks), internal=True)


def _facts(rule: System) -> Iterator[Pattern]:
    for consequence in rule.consequences:
        if isinstance(consequence, Construct) and not consequence.internal:
            yield from (fact for fact in consequence.template if isinstance(fact, Pattern))


def _varies(slot: Term | Variable) -> bool:
    return isinstance(slot, Variable)


def _is_built(expression: Expression) -> bool:
    match expression:
        case Call(function=function, arguments=arguments):
            return function == BUILD or (function == LIMIT and _is_built(arguments[1]))
        case str():
            return is_compound(expression)
        case _:
            return False


_NOT_EQUAL = function_iri("notEqual")
_NOT_FUNCTOR = function_iri("notFunctor")
