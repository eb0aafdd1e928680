"""The head of a Jena rule: what is made of each solution of its body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall import functions
from squall.errors import TranslatorError, TranslatorWarning
from squall.lexers import jena as tree
from squall.model import (
    AtomPattern,
    Consequence,
    Construct,
    Delete,
    Insert,
    Joinable,
    Pattern,
    Predicate,
    System,
    Variable,
)
from squall.translators.common import find, is_predicate, is_subject, unsafe
from squall.translators.jena import lists
from squall.translators.jena.bodies import Body
from squall.translators.jena.hidden_facts import HIDDEN
from squall.translators.jena.terms import part, variables_of, whole

_HINTS = ("table", "tableAll")
"""They say how goals are kept while chaining backward: no answer depends on them."""
_REMOVALS = ("remove", "drop")


class Head:
    """A rule's head over its body."""

    def __init__(self, rule: tree.Rule, name: str, body: Body) -> None:
        self.rule = rule
        self.name = name
        self.body = body
        self.notes = body.notes
        self.unbound: set[Variable] = set()
        """The variables that were told of: nothing binds them."""

    def systems(self) -> Iterator[System]:
        """The systems of what the head says, without the rules in it. None if it has hints only."""
        removed_patterns = tuple(
            self.body.elements[place] for place in removals(self.rule) if place in self.body.elements
        )
        calls = self.body.calls(self.rule.head, self._call)
        binds: list[Predicate] = []
        template = self._template(binds)
        if not self.rule.head or not all(map(_is_apart, self.rule.head)):
            deletions = (Delete(removed_patterns),) if removed_patterns else ()
            facts = _facts(template, removed_patterns) if template or not removed_patterns else ()
            yield self._system((*calls, *binds), (*deletions, *facts))
        for slot in self.body.hides:
            yield self._system((), (Construct((AtomPattern(HIDDEN, (slot,)),), internal=True),))
        for clause in self.rule.head:
            if isinstance(clause, tree.Call) and clause.name in lists.HEADS and not self.notes.errors:
                yield self._of_members(clause, removed_patterns)

    def _system(
        self, predicates: Iterable[Predicate], consequences: tuple[Consequence, ...], *joinables: Joinable
    ) -> System:
        return System(
            self.name,
            joinables=(*self.body.joinables, *joinables),
            predicates=(*self.body.predicates, *predicates),
            consequences=consequences,
            origin=self.rule.origin,
        )

    def _call(self, call: tree.Call) -> list[Predicate]:
        builtin = find(call.name, functions.builtins("jena"), len(call.nodes), "head", call.origin)
        if call.name in _REMOVALS:
            self._check_removal(call)
            return []
        if call.name == "hide":
            self.body.hide(call)
            return []
        if call.name in _HINTS:
            return []
        for node in call.nodes:
            for variable in variables_of(node):
                self.body.check_bound(variable, call.name, node.origin)
        return [] if call.name in lists.HEADS else self.body.lowered(builtin, call)

    def _check_removal(self, call: tree.Call) -> None:
        """Each number has to be the place of a pattern in the body, from 0; built-ins count, too."""
        for node in call.nodes:
            place, body = whole(node), self.rule.body
            if place is None or not 0 <= place < len(body):
                hint = f"the body has {len(body)} clauses, from 0; built-ins count, too"
                raise TranslatorError(f"`{node}` is not the number of a pattern", node.origin, hint)
            if not isinstance(body[place], tree.Pattern):
                hint = "patterns count from 0, and built-ins count, too"
                raise TranslatorError(f"`{body[place]}` is no pattern that could be removed", node.origin, hint)

    # Facts

    def _template(self, binds: list[Predicate]) -> tuple[Pattern, ...]:
        """The facts, and what binds the functors in them."""
        facts = [clause for clause in self.rule.head if isinstance(clause, tree.Pattern)]
        for fact in facts:
            self._check_fact(fact)
        return tuple(self._fact(fact, binds) for fact in facts if self._is_made(fact))

    def _check_fact(self, fact: tree.Pattern) -> None:
        subject, predicate = fact.subject, fact.predicate
        if isinstance(subject.value, str) and not is_subject(subject.value):
            self.notes.fail(f"the literal {subject} cannot be the subject of a fact", subject.origin)
        if isinstance(predicate.value, str) and not is_predicate(predicate.value):
            hint = "it has to be an IRI"
            self.notes.fail(f"`{predicate}` cannot be the predicate of a fact", predicate.origin, hint)

    def _is_made(self, fact: tree.Pattern) -> bool:
        """Whether all variables of a fact are bound. Of one that is not there is a warning."""
        missing = [
            (variable, node)
            for node in fact.nodes
            for variable in variables_of(node)
            if not self.body.scope.knows(variable)
        ]
        for variable, node in missing:
            if variable not in self.unbound:
                error = unsafe(variable, node.origin, self.body.scope.bound)
                message = f"{error.message}: this fact is never made"
                self.notes.warnings.append(TranslatorWarning(message, error.origin, error.hint))
            self.unbound.add(variable)
        return not missing

    def _fact(self, fact: tree.Pattern, binds: list[Predicate]) -> Pattern:
        slots = [self.body.value(part(node), binds) for node in fact.nodes]
        return Pattern(slots[0], slots[1], slots[2], origin=fact.origin)

    # Lists

    def _of_members(self, call: tree.Call, removed_patterns: tuple[Pattern, ...]) -> System:
        """What is said of each member of a list, or of each two of them."""
        head, predicates = lists.HEADS[call.name], list[Predicate]()
        slots = self.body.slots(call, predicates)
        list_part, members = self.body.listed(slots[head.place], predicates)
        compute, fact = head.of(slots, members, self.body.fresh)
        return self._system((*predicates, compute), _facts((fact,), removed_patterns), list_part)


def removals(rule: tree.Rule) -> list[int]:
    """The places in the body of what a head removes."""
    calls = [clause for clause in rule.head if isinstance(clause, tree.Call) and clause.name in _REMOVALS]
    places = [whole(node) for call in calls for node in call.nodes]
    return list(dict.fromkeys(place for place in places if place is not None))


def _is_apart(clause: tree.Clause) -> bool:
    """Whether a clause of a head says nothing, or says it by systems of its own."""
    if isinstance(clause, tree.Call):
        return clause.name in (*_HINTS, "hide", *lists.HEADS)
    return isinstance(clause, tree.Rule)


def _facts(template: tuple[Pattern, ...], removed_patterns: tuple[Pattern, ...]) -> tuple[Consequence, ...]:
    """What a rule makes: that of a rule that removes stays, though its solution is gone."""
    return (Insert(template) if removed_patterns else Construct(template),)
