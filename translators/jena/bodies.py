"""The body of a Jena rule: its joinables, and its built-ins as predicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count

from squall import functions
from squall.errors import Origin, SquallError, TranslatorError
from squall.functions import SAME_VALUE
from squall.lexers import jena as tree
from squall.model import (
    Bind,
    Call,
    Filter,
    Joinable,
    NotExists,
    Pattern,
    Predicate,
    Select,
    Slot,
    System,
    Variable,
)
from squall.rdf import Term, is_literal
from squall.translators.common import (
    CompoundTerm,
    Scope,
    TermPattern,
    find_builtin,
    flatten_compounds,
    lower_call,
    term_expression,
)
from squall.translators.jena import counting, lists
from squall.translators.jena.hidden_facts import HiddenNodes
from squall.translators.jena.terms import term_pattern, variables, variables_of
from squall.translators.valid_time import windowed


@dataclass
class Notes:
    """The errors, warnings and findings of a whole program while its rules are translated.

    Attributes:
        errors: The errors.
        warnings: The warnings.
        hidden: The nodes that the answer leaves out.
        list_relations: The relations of lists that rules read, each with the streams whose lists it has (none: all).
    """

    errors: list[TranslatorError] = field(default_factory=list)
    warnings: list[SquallError] = field(default_factory=list)
    hidden: HiddenNodes = field(default_factory=HiddenNodes)
    list_relations: dict[Term, tuple[tree.StreamSource, ...]] = field(default_factory=dict)

    def fail(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        """Records an error."""
        self.errors.append(TranslatorError(message, origin, hint))


class Body:
    """The body of a rule under construction. Errors are recorded in its notes.

    Attributes:
        matched: The variables that joinables bind. Calls bind the others in the scope.
        call_variables: The variables in calls.
        elements: The patterns as they match facts, by the positions of their clauses in the rule.
        hides: The nodes that are hidden where the body holds.
        sources: The streams that its patterns read. Without any, they read all.
    """

    def __init__(self, scope: Scope, notes: Notes, sources: tuple[tree.StreamSource, ...] = ()) -> None:
        self.scope = scope
        self.notes = notes
        self.sources = sources
        self.joinables: tuple[Joinable, ...] = ()
        self.predicates: tuple[Predicate, ...] = ()
        self.elements: dict[int, Pattern] = {}
        self.hides: tuple[Slot, ...] = ()
        self.matched: frozenset[Variable] = frozenset()
        self.call_variables: frozenset[Variable] = frozenset()
        self.clauses: tuple[tree.Clause, ...] = ()
        self._numbers = count(1)

    def continued(self, scope: Scope) -> Body:
        """Returns a copy of the body for a rule in the head, which continues it with the scope's variables."""
        copied = copy(self)
        copied.elements = {}
        copied.hides = ()
        copied.scope = scope
        return copied

    def add(self, clauses: tuple[tree.Clause, ...], removed_places: Sequence[int]) -> None:
        """Adds clauses: first all patterns, then the calls, in the order of the text.

        Args:
            clauses: The clauses.
            removed_places: The positions of the patterns whose facts the head removes.
        """
        self.clauses += clauses
        for place, clause in enumerate(clauses):
            if isinstance(clause, tree.Pattern):
                self._match(clause, place, place in removed_places)
            elif isinstance(clause, tree.Rule):
                hint = "write what it says as a rule of its own"
                self.notes.fail("a rule cannot be in the body of a rule", clause.origin, hint)
        self.predicates += self.calls(clauses, self._call)

    def fresh(self) -> Variable:
        """Returns a variable whose name no variable of a program can have."""
        return Variable(f"any {next(self._numbers)}")

    # Patterns

    def _match(self, pattern: tree.Pattern, place: int, is_removed: bool) -> None:
        """Joins a pattern. One with a functor becomes a part of its own, which is joined by the variables in the
        functor.
        """
        if pattern.window is not None and is_removed:
            hint = "remove a fact that a pattern without a window matches"
            self.notes.fail("what a window has seen may be over, and cannot be removed", pattern.window.origin, hint)
        tests: list[Predicate] = []
        parts = [self._joined(term_pattern(node), tests) for node in pattern.nodes]
        inside: list[Predicate] = []
        parts = [
            self._by_value(match_part, inside) if is_removed or isinstance(match_part, CompoundTerm) else match_part
            for match_part in parts
        ]
        self.notes.hidden.functors |= any(isinstance(match_part, CompoundTerm) for match_part in parts)
        slots, unfolding = flatten_compounds(parts, self.fresh)
        matched = Pattern(slots[0], slots[1], slots[2], origin=pattern.origin)
        self.elements[place] = matched
        joinable: Joinable = matched
        if unfolding or inside:
            joinable = System(joinables=(matched,), predicates=(*unfolding, *inside))
        if pattern.window is not None:
            names = {variable for match_part in (*parts, *slots) for variable in variables(match_part)}
            joinable = self._windowed(joinable, tuple(sorted(names, key=str)), pattern.window)
        self.joinables += (joinable,)
        self.predicates += tuple(tests)
        self.matched |= {variable for match_part in (*parts, *slots) for variable in variables(match_part)}
        self.scope.bind(variables_of(*pattern.variable_nodes))

    def _windowed(self, part: Joinable, names: tuple[Variable, ...], window: tree.PatternWindow) -> Joinable:
        """Returns the solutions of a pattern through a window, or with their times."""
        for variable in window.variables:
            if self.scope.is_bound(variable) or variable in names:
                hint = "give the time a name of its own, and compare the two"
                self.notes.fail(f"`{variable}` has a value already", window.origin, hint)
        self.matched |= {*window.variables}
        inner = System(joinables=(part,), consequences=(Select(names),), origin=window.origin)
        return windowed(inner, window.mode, window.length or 0, window.step, window.variables, window.origin)

    def _joined(self, term: TermPattern, tests: list[Predicate]) -> TermPattern:
        """Returns the term with new variables for those that calls bind, since literals in patterns match by value."""
        if isinstance(term, CompoundTerm):
            return replace(term, arguments=tuple(self._joined(argument, tests) for argument in term.arguments))
        if isinstance(term, Variable) and self.scope.is_bound(term) and term not in self.matched:
            return self._same_as(term, tests)
        return term

    def _by_value(self, term: TermPattern, tests: list[Predicate]) -> TermPattern:
        """Returns the term with variables for its literals, which are compared by value."""
        if isinstance(term, CompoundTerm):
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
        """Returns the predicates of the calls among clauses, in the order of the text. Errors are recorded."""
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
        builtin = find_builtin(call.name, functions.builtins("jena"), len(call.nodes), "body", call.origin)
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
        self.call_variables |= set(variables_of(*call.nodes))
        return predicates

    def lowered(self, builtin: functions.Builtin, call: tree.Call) -> list[Predicate]:
        """Returns the predicates of a call of a function.

        Raises:
            TranslatorError: The call cannot be translated.
        """
        predicates: list[Predicate] = []
        slots = self.slots(call, predicates)
        for place in lists.PLACES.get(builtin.name, ()):
            self.check_bound(slots[place], builtin.name, call.origin)
            list_part, slots[place] = self.listed(slots[place], predicates)
            self.joinables += (list_part,)
        return [*predicates, *lower_call(builtin, slots, self.scope, call.origin)]

    def hide(self, call: tree.Call) -> None:
        """Records the nodes that a call hides. They are hidden at all times if the call depends on nothing else.

        Raises:
            TranslatorError: A variable is unbound.
        """
        alone = all(isinstance(clause, tree.Call) and clause.name == "hide" for clause in self.clauses)
        for node in call.nodes:
            slot = term_pattern(node)
            if isinstance(slot, CompoundTerm | Call):
                raise TranslatorError(f"`{node}` cannot be hidden", node.origin, "functors are in no answer anyway")
            self.check_bound(slot, call.name, node.origin)
            if alone and isinstance(slot, str):
                self.notes.hidden.nodes[slot] = None
            else:
                self.notes.hidden.derives = True
                self.hides += (slot,)

    def slots(self, call: tree.Call, binds: list[Predicate]) -> list[Slot]:
        """Returns the arguments of a call. Functors are bound to variables first.

        Raises:
            TranslatorError: A variable in a functor is unbound.
        """
        for node in call.nodes:
            if isinstance(node.value, tree.Functor):
                for variable in variables_of(node):
                    self.check_bound(variable, str(node), node.origin)
        return [self.value(term_pattern(node), binds) for node in call.nodes]

    def check_bound(self, slot: Slot, name: str, origin: Origin | None) -> None:
        """Checks that a slot is bound.

        Raises:
            TranslatorError: It is an unbound variable.
        """
        if not self.scope.is_bound(slot):
            hint = "bind it in a pattern of the body"
            raise TranslatorError(f"`{slot}` is not bound where `{name}` needs it", origin, hint)

    def value(self, term: TermPattern, binds: list[Predicate]) -> Slot:
        """Returns the slot of a term whose variables are bound: itself, or a variable for the value of a functor."""
        self.notes.hidden.functors |= isinstance(term, CompoundTerm)
        expression = term_expression(term, self.scope.rule)
        if not isinstance(expression, Call):
            return expression
        variable = self.fresh()
        binds.append(Bind(variable, expression))
        self.scope.bind([variable])
        return variable

    def listed(self, slot: Slot, tests: list[Predicate]) -> tuple[Joinable, Variable]:
        """Returns the joinable for the list that begins at a node, and the variable of its members."""
        node = self._same_as(slot, tests) if isinstance(slot, Variable) and slot not in self.matched else slot
        members = self.fresh()
        self.scope.bind([members])
        relation = lists.relation(" ".join(map(str, self.sources)))
        self.notes.list_relations[relation] = self.sources
        return lists.pattern(node, members, relation), members

    def _no_value(self, call: tree.Call) -> NotExists:
        """Returns a negation that holds if no triple matches. Variables that are unbound here are wildcards, even if
        bound later.
        """
        inside: list[Predicate] = []
        pattern_parts = [self._wild(term_pattern(node)) for node in call.nodes]
        pattern_parts = [
            self._by_value(pattern_part, inside) if isinstance(pattern_part, CompoundTerm) else pattern_part
            for pattern_part in pattern_parts
        ]
        slots, unfolding = flatten_compounds(
            [*pattern_parts, self.fresh()] if len(pattern_parts) == 2 else pattern_parts, self.fresh
        )
        pattern = Pattern(slots[0], slots[1], slots[2], origin=call.origin)
        part = System(joinables=(pattern,), predicates=(*unfolding, *inside))
        return NotExists((part if unfolding else pattern,), origin=call.origin)

    def _wild(self, term: TermPattern) -> TermPattern:
        if isinstance(term, CompoundTerm):
            return replace(term, arguments=tuple(map(self._wild, term.arguments)))
        return self.fresh() if isinstance(term, Variable) and not self.scope.is_bound(term) else term
