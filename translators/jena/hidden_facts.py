"""Hidden facts: facts that rules read but that the answer leaves out.

These are facts with nodes that `hide` names, and facts with functors. A rule that derives such facts, or may derive
them, is split. One rule derives facts for other rules only, and others with the same body derive facts of the answer.

Rules may also derive which nodes are hidden. Then one rule derives the answer from all that the others have derived. A
rule that looks once at the absence of a fact must not look again for the answer.
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
"""The relation of the nodes that rules derive to be hidden."""

CANDIDATE = iri("urn:x-squall:jena:made")
"""The relation of derived facts, which are in the answer if none of their nodes is hidden."""

_CANDIDATE_FACT = Pattern(Variable("subject"), Variable("predicate"), Variable("object"))


@dataclass
class HiddenNodes:
    """The nodes that a program hides.

    Attributes:
        nodes: The nodes that are always hidden.
        derives: Whether rules derive further `HIDDEN` nodes.
        functors: Whether the program has functors.
    """

    nodes: dict[Term, None] = field(default_factory=dict)
    derives: bool = False
    functors: bool = False

    def split(self, rule: System) -> Iterator[System]:
        """Yields the rules for a rule, some of which derive facts of the answer.

        Raises:
            TranslatorError: The rule inserts facts that may be hidden. Inserted facts stay, so that they are in the
                answer.
        """
        # In one piece: the cases of one rule, from the simplest on.
        for consequence in rule.consequences:
            if isinstance(consequence, Insert) and any(self._may_hide(fact) for fact in consequence.template):
                hint = "a rule that removes cannot make facts that are hidden"
                raise TranslatorError(f"the rule `{rule.name}` makes what `hide` hides", rule.origin, hint)
        if self.derives:
            yield replace(rule, consequences=tuple(map(_with_candidates, rule.consequences)))
            return
        compound_variables = {
            consequence.variable
            for consequence in rule.predicates
            if isinstance(consequence, Bind) and _is_built(consequence.expression)
        }
        tests: dict[tuple[Predicate, ...] | None, list[Pattern]] = {}
        for fact in _facts(rule):
            tests.setdefault(self._tests(fact, compound_variables), []).append(fact)
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

    def answer_rules(self) -> tuple[System, ...]:
        """Returns the rule that derives the answer, if rules derive which nodes are hidden."""
        if not self.derives:
            return ()
        skolem_atom = AtomPattern(CANDIDATE, _CANDIDATE_FACT.slots)
        tests = self._tests(_CANDIDATE_FACT, ())
        rule = System(
            "hide",
            joinables=(skolem_atom,),
            predicates=tests or (),
            consequences=(Construct((_CANDIDATE_FACT,)),),
            reentrant=False,
        )
        return (rule,)

    def _may_hide(self, fact: Pattern) -> bool:
        return self.derives or any(slot in self.nodes or (self.nodes and _varies(slot)) for slot in fact.slots)

    def _tests(self, fact: Pattern, compound_variables: Collection[Variable]) -> tuple[Predicate, ...] | None:
        """Returns the predicates that hold if a fact is in the answer. None means that it never is."""
        if any(slot in self.nodes for slot in fact.slots):
            return None
        if self.functors and (fact.object in compound_variables or _is_built(fact.object)):
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


def _with_candidates(consequence: Consequence) -> Consequence:
    """Returns a consequence that derives facts for other rules only, with the candidates for the answer."""
    if not isinstance(consequence, Construct) or consequence.internal:
        return consequence
    marks = tuple(AtomPattern(CANDIDATE, fact.slots) for fact in consequence.template if isinstance(fact, Pattern))
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
