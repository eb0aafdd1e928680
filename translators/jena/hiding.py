"""What rules read, and what is left out of the answer: predicates that `hide` names, and functors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from squall.compounds import BUILD, LIMIT, is_compound
from squall.errors import TranslatorError
from squall.functions.jena import function_iri
from squall.lexers import jena as tree
from squall.rdf import Term, is_iri
from squall.system import Bind, Call, Construct, Expression, Insert, Pattern, Slot, System, Test, Variable


def hide(call: tree.Call, body: Sequence[tree.Clause], predicates: dict[Term, None]) -> None:
    """Notes the predicates that a call hides: those of the program, whatever else there is. Raises TranslatorError
    where that depends on other facts, or where it is no IRI."""
    if any(not isinstance(clause, tree.Call) or clause.name != "hide" for clause in body):
        raise TranslatorError("`hide` cannot depend on other facts", call.origin, "write `-> hide(...) .`")
    for node in call.nodes:
        if not isinstance(node.value, str) or not is_iri(node.value):
            raise TranslatorError(f"`{node}` is no predicate that can be hidden", node.origin, "name it by its IRI")
        predicates[node.value] = None


def hidden(rule: System, predicates: Collection[Term], functors: bool) -> Iterator[System]:
    """The rule as several: facts that have one of the predicates, or a functor as their object where there are
    functors, are for other rules only.

    Raises TranslatorError for a rule that inserts facts with a hidden predicate: they stay, so they are in the answer.
    """
    inserted = [fact for one in rule.consequences if isinstance(one, Insert) for fact in one.template]
    if any(fact.predicate in predicates or (predicates and _varies(fact.predicate)) for fact in inserted):
        hint = "a rule that removes cannot make facts that are hidden"
        raise TranslatorError(f"the rule `{rule.name}` makes what `hide` hides", rule.origin, hint)
    facts = [fact for one in rule.consequences if isinstance(one, Construct) for fact in _triples(one)]
    made = {one.variable for one in rule.predicates if isinstance(one, Bind) and _is_compound(one.expression)}
    tests: dict[tuple[Test, ...] | None, list[Pattern]] = {}
    for fact in facts:
        if fact.predicate in predicates or (functors and (fact.object in made or _is_compound(fact.object))):
            tests.setdefault(None, []).append(fact)
        else:
            tests.setdefault(tuple(_shown(fact, predicates, functors)), []).append(fact)
    if set(tests) <= {()}:
        yield rule
        return
    shown, inside = tests.pop((), []), [fact for found in tests.values() for fact in found]
    told = (Construct(tuple(shown)),) if shown else ()
    yield replace(rule, consequences=(*told, Construct(tuple(inside), internal=True)))
    for others, found in tests.items():
        if others is not None:
            yield replace(rule, predicates=(*rule.predicates, *others), consequences=(Construct(tuple(found)),))


def _triples(construct: Construct) -> Iterator[Pattern]:
    yield from (fact for fact in construct.template if isinstance(fact, Pattern))


def _varies(slot: Slot) -> bool:
    return isinstance(slot, Variable)


def _is_compound(expression: Expression) -> bool:
    match expression:
        case Call(function=function, arguments=arguments):
            return function == BUILD or (function == LIMIT and _is_compound(arguments[1]))
        case str():
            return is_compound(expression)
        case _:
            return False


def _shown(fact: Pattern, predicates: Collection[Term], functors: bool) -> Iterator[Test]:
    """The tests by which a fact is in the answer."""
    if isinstance(fact.predicate, Variable):
        yield from (Test(Call(_NOT_EQUAL, (fact.predicate, one))) for one in predicates)
    if functors and isinstance(fact.object, Variable):
        yield Test(Call(_NOT_FUNCTOR, (fact.object,)))


_NOT_EQUAL = function_iri("notEqual")
_NOT_FUNCTOR = function_iri("notFunctor")
