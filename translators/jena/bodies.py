"""The body of a Jena rule: what is joined, and the predicates that its built-ins are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count

from squall import functions
from squall.errors import Origin, SquallError, TranslatorError
from squall.functions import SAME_VALUE
from squall.lexers import jena as tree
from squall.model import Bind, Call, Filter, Joinable, NotExists, Pattern, Predicate, Slot, System, Variable
from squall.rdf import is_literal
from squall.translators.common import Built, Part, Scope, find, lower, made, unfolded
from squall.translators.jena import counting, lists
from squall.translators.jena.hidden_facts import Hiding
from squall.translators.jena.terms import part, variables, variables_of


@dataclass
class Notes:
    """What is noted of a whole program while its rules are translated.

    hiding: what is left out of the answer. has_lists: whether a rule asks for members of lists.
    """

    errors: list[TranslatorError] = field(default_factory=list)
    warnings: list[SquallError] = field(default_factory=list)
    hiding: Hiding = field(default_factory=Hiding)
    has_lists: bool = False

    def fail(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        """Notes an error."""
        self.errors.append(TranslatorError(message, origin, hint))


class Body:
    """What a rule's body says so far; what is wrong with it is noted.

    matched: the variables that joinables bind; others in the scope are bound by calls. asked: those in calls.
    elements: the patterns as they match facts, by their places in the clauses of the rule. hides: the nodes that are
    hidden where the body holds.
    """

    def __init__(self, scope: Scope, notes: Notes) -> None:
        self.scope = scope
        self.notes = notes
        self.joinables: tuple[Joinable, ...] = ()
        self.predicates: tuple[Predicate, ...] = ()
        self.elements: dict[int, Pattern] = {}
        self.hides: tuple[Slot, ...] = ()
        self.matched: frozenset[Variable] = frozenset()
        self.asked: frozenset[Variable] = frozenset()
        self.clauses: tuple[tree.Clause, ...] = ()
        self._numbers = count(1)

    def continued(self, scope: Scope) -> Body:
        """The same so far, for a rule in the head: it goes on from here, with what the scope knows."""
        copied = copy(self)
        copied.elements = {}
        copied.hides = ()
        copied.scope = scope
        return copied

    def add(self, clauses: tuple[tree.Clause, ...], removed_places: Sequence[int]) -> None:
        """Adds clauses: all patterns, and then the calls, in the order written. removed: the places of those patterns
        whose facts a head removes."""
        self.clauses += clauses
        for place, clause in enumerate(clauses):
            if isinstance(clause, tree.Pattern):
                self._match(clause, place, place in removed_places)
            elif isinstance(clause, tree.Rule):
                hint = "write what it says as a rule of its own"
                self.notes.fail("a rule cannot be in the body of a rule", clause.origin, hint)
        self.predicates += self.calls(clauses, self._call)

    def fresh(self) -> Variable:
        """A variable with a name that no variable of a text can have."""
        return Variable(f"any {next(self._numbers)}")

    # Patterns

    def _match(self, pattern: tree.Pattern, place: int, is_removed: bool) -> None:
        """Joins a pattern. One with a functor is a part of its own, so that it is joined by the variables in that."""
        tests: list[Predicate] = []
        parts = [self._joined(part(node), tests) for node in pattern.nodes]
        inside: list[Predicate] = []
        parts = [
            self._by_value(match_part, inside) if is_removed or isinstance(match_part, Built) else match_part
            for match_part in parts
        ]
        self.notes.hiding.functors |= any(isinstance(match_part, Built) for match_part in parts)
        slots, unfolding = unfolded(parts, self.fresh)
        matched = Pattern(slots[0], slots[1], slots[2], origin=pattern.origin)
        self.elements[place] = matched
        joinable = System(joinables=(matched,), predicates=(*unfolding, *inside)) if unfolding or inside else matched
        self.joinables += (joinable,)
        self.predicates += tuple(tests)
        self.matched |= {variable for match_part in (*parts, *slots) for variable in variables(match_part)}
        self.scope.bind(variables_of(*pattern.nodes))

    def _joined(self, term: Part, tests: list[Predicate]) -> Part:
        """The part with other variables for those that calls bind: literals in patterns match by value."""
        if isinstance(term, Built):
            return replace(term, arguments=tuple(self._joined(argument, tests) for argument in term.arguments))
        if isinstance(term, Variable) and self.scope.knows(term) and term not in self.matched:
            return self._same_as(term, tests)
        return term

    def _by_value(self, term: Part, tests: list[Predicate]) -> Part:
        """The part with variables for its literals, which are compared by value."""
        if isinstance(term, Built):
            return replace(term, arguments=tuple(self._by_value(argument, tests) for argument in term.arguments))
        return self._same_as(term, tests) if isinstance(term, str) and is_literal(term) else term

    def _same_as(self, slot: Slot, tests: list[Predicate]) -> Variable:
        variable = self.fresh()
        tests.append(Filter(Call(SAME_VALUE, (variable, slot))))
        return variable

    # Calls

    def calls(
        self, clauses: Sequence[tree.Clause], translate: Callable[[tree.Call], Iterable[Predicate]]
    ) -> tuple[Predicate, ...]:
        """The predicates of the calls among clauses, in written order; errors are noted."""
        predicates: list[Predicate] = []
        for clause in clauses:
            if isinstance(clause, tree.Call):
                try:
                    predicates += translate(clause)
                except TranslatorError as error:
                    self.notes.errors.append(error)
                    # One error is enough for what this call would have bound.
                    self.scope.bind(variables_of(*clause.nodes))
        return tuple(predicates)

    def _call(self, call: tree.Call) -> list[Predicate]:
        builtin = find(call.name, functions.builtins("jena"), len(call.nodes), "body", call.origin)
        predicates: list[Predicate] = []
        match builtin.name:
            case "noValue":
                predicates.append(self._no_value(call))
            case "hide":
                self.hide(call)
            case "countLiteralValues":
                predicates += counting.predicates(self.slots(call, predicates), self.scope, self.fresh, call.origin)
            case _:
                predicates += self.lowered(builtin, call)
        self.asked |= set(variables_of(*call.nodes))
        return predicates

    def lowered(self, builtin: functions.Builtin, call: tree.Call) -> list[Predicate]:
        """The predicates of a call of a function. Raises TranslatorError."""
        predicates: list[Predicate] = []
        slots = self.slots(call, predicates)
        for place in lists.PLACES.get(builtin.name, ()):
            self.check_bound(slots[place], builtin.name, call.origin)
            list_part, slots[place] = self.listed(slots[place], predicates)
            self.joinables += (list_part,)
        return [*predicates, *lower(builtin, slots, self.scope, call.origin)]

    def hide(self, call: tree.Call) -> None:
        """Notes what a call hides: at all times, if it depends on nothing else. Raises TranslatorError for a variable
        without a value."""
        alone = all(isinstance(clause, tree.Call) and clause.name == "hide" for clause in self.clauses)
        for node in call.nodes:
            slot = part(node)
            if isinstance(slot, Built | Call):
                raise TranslatorError(f"`{node}` cannot be hidden", node.origin, "functors are in no answer anyway")
            self.check_bound(slot, call.name, node.origin)
            if alone and isinstance(slot, str):
                self.notes.hiding.nodes[slot] = None
            else:
                self.notes.hiding.derives = True
                self.hides += (slot,)

    def slots(self, call: tree.Call, binds: list[Predicate]) -> list[Slot]:
        """The arguments of a call; functors are bound to variables first. Raises TranslatorError where a variable in
        one has no value."""
        for node in call.nodes:
            if isinstance(node.value, tree.Functor):
                for variable in variables_of(node):
                    self.check_bound(variable, str(node), node.origin)
        return [self.value(part(node), binds) for node in call.nodes]

    def check_bound(self, slot: Slot, name: str, origin: Origin | None) -> None:
        """Raises TranslatorError for a variable without a value."""
        if not self.scope.knows(slot):
            hint = "bind it in a pattern of the body"
            raise TranslatorError(f"`{slot}` is not bound where `{name}` needs it", origin, hint)

    def value(self, term: Part, binds: list[Predicate]) -> Slot:
        """The slot of a part whose variables are bound: itself, or what a functor is."""
        self.notes.hiding.functors |= isinstance(term, Built)
        expression = made(term, self.scope.rule)
        if not isinstance(expression, Call):
            return expression
        variable = self.fresh()
        binds.append(Bind(variable, expression))
        self.scope.bind([variable])
        return variable

    def listed(self, slot: Slot, tests: list[Predicate]) -> tuple[Joinable, Variable]:
        """What joins a node with the list that it begins, and the variable of its members."""
        node = self._same_as(slot, tests) if isinstance(slot, Variable) and slot not in self.matched else slot
        members = self.fresh()
        self.scope.bind([members])
        self.notes.has_lists = True
        return lists.pattern(node, members), members

    def _no_value(self, call: tree.Call) -> NotExists:
        """No triple fits. What is not bound here, or left out, is a wildcard, even if it is bound later."""
        inside: list[Predicate] = []
        pattern_parts = [self._wild(part(node)) for node in call.nodes]
        pattern_parts = [
            self._by_value(pattern_part, inside) if isinstance(pattern_part, Built) else pattern_part
            for pattern_part in pattern_parts
        ]
        slots, unfolding = unfolded(
            [*pattern_parts, self.fresh()] if len(pattern_parts) == 2 else pattern_parts, self.fresh
        )
        pattern = Pattern(slots[0], slots[1], slots[2], origin=call.origin)
        own = System(joinables=(pattern,), predicates=(*unfolding, *inside))
        return NotExists((own if unfolding else pattern,), origin=call.origin)

    def _wild(self, term: Part) -> Part:
        if isinstance(term, Built):
            return replace(term, arguments=tuple(map(self._wild, term.arguments)))
        return self.fresh() if isinstance(term, Variable) and not self.scope.knows(term) else term
