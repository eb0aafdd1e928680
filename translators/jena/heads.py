"""The head of a Jena rule: the consequences for each solution of its body."""

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
from squall.translators.common import find_builtin, is_predicate, is_subject, unbound_head_variable
from squall.translators.jena import lists
from squall.translators.jena.bodies import Body
from squall.translators.jena.hidden_facts import HIDDEN
from squall.translators.jena.terms import integer_of, term_pattern, variables_of

_HINTS = ("table", "tableAll")
"""The built-ins that control tabling in backward chaining. No answer depends on them."""
_REMOVALS = ("remove", "drop")


class Head:
    """The head of a rule over its body."""

    def __init__(self, rule: tree.Rule, name: str, body: Body) -> None:
        self.rule = rule
        self.name = name
        self.body = body
        self.notes = body.notes
        self.unbound: set[Variable] = set()
        """The unbound variables that have a warning already."""

    def systems(self) -> Iterator[System]:
        """Yields the systems of the head, without the rules in it. A head with only hints has none."""
        removed_patterns = tuple(
            self.body.elements[place] for place in removals(self.rule) if place in self.body.elements
        )
        calls = self.body.calls(self.rule.head, self._call)
        binds: list[Predicate] = []
        template = self._template(binds)
        if not self.rule.head or not all(map(_has_own_system, self.rule.head)):
            deletions = (Delete(removed_patterns),) if removed_patterns else ()
            facts = _facts(template, removed_patterns) if template or not removed_patterns else ()
            yield self._system((*calls, *binds), (*deletions, *facts))
        for slot in self.body.hides:
            yield self._system((), (Construct((AtomPattern(HIDDEN, (slot,)),), internal=True),))
        for clause in self.rule.head:
            if isinstance(clause, tree.Call) and clause.name in lists.HEADS and not self.notes.errors:
                yield self._list_member_system(clause, removed_patterns)

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
        builtin = find_builtin(call.name, functions.builtins("jena"), len(call.nodes), "head", call.origin)
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
        """Checks that each number is the position of a pattern in the body, from 0. Built-ins count, too."""
        for node in call.nodes:
            place, body = integer_of(node), self.rule.body
            if place is None or not 0 <= place < len(body):
                hint = f"the body has {len(body)} clauses, from 0; built-ins count, too"
                raise TranslatorError(f"`{node}` is not the number of a pattern", node.origin, hint)
            if not isinstance(body[place], tree.Pattern):
                hint = "patterns count from 0, and built-ins count, too"
                raise TranslatorError(f"`{body[place]}` is no pattern that could be removed", node.origin, hint)

    # Facts

    def _template(self, binds: list[Predicate]) -> tuple[Pattern, ...]:
        """Returns the facts. The predicates that bind their functors are added to `binds`."""
        facts = [clause for clause in self.rule.head if isinstance(clause, tree.Pattern)]
        for fact in facts:
            self._check_fact(fact)
        return tuple(self._fact(fact, binds) for fact in facts if self._all_bound(fact))

    def _check_fact(self, fact: tree.Pattern) -> None:
        subject, predicate = fact.subject, fact.predicate
        if fact.window is not None:
            hint = "windows are on patterns of the body"
            self.notes.fail("a fact that a rule derives has no window", fact.window.origin, hint)
        if isinstance(subject.value, str) and not is_subject(subject.value):
            self.notes.fail(f"the literal {subject} cannot be the subject of a fact", subject.origin)
        if isinstance(predicate.value, str) and not is_predicate(predicate.value):
            hint = "it has to be an IRI"
            self.notes.fail(f"`{predicate}` cannot be the predicate of a fact", predicate.origin, hint)

    def _all_bound(self, fact: tree.Pattern) -> bool:
        """Returns whether all variables of a fact are bound. If not, there is a warning."""
        missing = [
            (variable, node)
            for node in fact.nodes
            for variable in variables_of(node)
            if not self.body.scope.is_bound(variable)
        ]
        for variable, node in missing:
            if variable not in self.unbound:
                error = unbound_head_variable(variable, node.origin, self.body.scope.bound)
                message = f"{error.message}: this fact is never derived"
                self.notes.warnings.append(TranslatorWarning(message, error.origin, error.hint))
            self.unbound.add(variable)
        return not missing

    def _fact(self, fact: tree.Pattern, binds: list[Predicate]) -> Pattern:
        slots = [self.body.value(term_pattern(node), binds) for node in fact.nodes]
        return Pattern(slots[0], slots[1], slots[2], origin=fact.origin)

    # Lists

    def _list_member_system(self, call: tree.Call, removed_patterns: tuple[Pattern, ...]) -> System:
        """Returns the system that states something of each member of a list, or of each pair of members."""
        head, predicates = lists.HEADS[call.name], list[Predicate]()
        slots = self.body.slots(call, predicates)
        list_part, members = self.body.listed(slots[head.place], predicates)
        compute, fact = head.of(slots, members, self.body.fresh)
        return self._system((*predicates, compute), _facts((fact,), removed_patterns), list_part)


def removals(rule: tree.Rule) -> list[int]:
    """Returns the positions in the body of the patterns whose facts a head removes."""
    calls = [clause for clause in rule.head if isinstance(clause, tree.Call) and clause.name in _REMOVALS]
    places = [integer_of(node) for call in calls for node in call.nodes]
    return list(dict.fromkeys(place for place in places if place is not None))


def _has_own_system(clause: tree.Clause) -> bool:
    """Returns whether a clause of a head has no consequence, or has systems of its own."""
    if isinstance(clause, tree.Call):
        return clause.name in (*_HINTS, "hide", *lists.HEADS)
    return isinstance(clause, tree.Rule)


def _facts(template: tuple[Pattern, ...], removed_patterns: tuple[Pattern, ...]) -> tuple[Consequence, ...]:
    """Returns the consequences that derive facts. Facts of a rule that removes are inserted: they outlive
    its solution."""
    return (Insert(template) if removed_patterns else Construct(template),)
