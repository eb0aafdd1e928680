"""Jena rules to a Translated Production System: every rule runs forward, whichever way its arrow points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import PurePath

from squall import functions
from squall.errors import Origin, TranslatorError, raise_all
from squall.lexers import jena as tree
from squall.system import Construct, Pattern, Predicate, Slot, System, Variable, Without
from squall.translators.common import Scope, find, is_predicate, is_subject, lower, unsafe

_HINTS_FOR_PLANNERS = ("table", "tableAll")
"""They say how goals are kept while chaining backward: no answer depends on them."""

_LISTS = "lists are not supported yet"
_NOT_YET = {
    "remove": "rules cannot remove facts yet",
    "drop": "rules cannot remove facts yet",
    "hide": "all that rules derive is in the answer",
    "makeInstance": "use `makeSkolem`, which gives the same blank node for the same arguments",
    "isFunctor": "functors are not supported yet",
    "notFunctor": "functors are not supported yet",
    "countLiteralValues": "counting is not supported yet",
    "assertDisjointPairs": _LISTS,
    "listContains": _LISTS,
    "listNotContains": _LISTS,
    "listEntry": _LISTS,
    "listLength": _LISTS,
    "listEqual": _LISTS,
    "listNotEqual": _LISTS,
    "listMapAsObject": _LISTS,
    "listMapAsSubject": _LISTS,
}
"""Jena's other built-ins, and what to know instead."""


def translator(program: tree.Program) -> System:
    """The system of a program: one subsystem per rule, each read by all.

    A rule is known by the name it was given, else by its position: ``rule1``, ``rule2``. Raises TranslatorError, or
    Errors with all of the program's errors.
    """
    errors: list[TranslatorError] = []
    rules = [_Rule(rule, f"rule{place}", errors).translated() for place, rule in enumerate(program.rules, 1)]
    raise_all(errors)
    return System(name=PurePath(program.name).stem, subsystems=tuple(rule for rule in rules if rule))


class _Rule:
    """One rule on its way; what is wrong with it is added to `errors`."""

    def __init__(self, rule: tree.Rule, position: str, errors: list[TranslatorError]) -> None:
        self.rule = rule
        self.name = rule.name or position
        self.errors = errors
        self.scope = Scope(partial(_key, rule), self.name)
        self.wildcards = 0

    def translated(self) -> System | None:
        """None for a rule that says nothing: its head has hints for planners only."""
        joinables = tuple(self._patterns(self.rule.body))
        for pattern in joinables:
            self.scope.bind(pattern.slots)
        predicates = [*self._calls(self.rule.body, self._body_call)]
        template = tuple(self._patterns(self.rule.head))
        predicates += self._calls(self.rule.head, self._head_call)
        if self.rule.head and all(_is_hint(clause) for clause in self.rule.head):
            return None
        self._check_head()
        return System(
            self.name,
            joinables=joinables,
            predicates=tuple(predicates),
            consequences=(Construct(template),),
            origin=self.rule.origin,
        )

    def _patterns(self, clauses: tuple[tree.Clause, ...]) -> Iterator[Pattern]:
        for clause in clauses:
            if isinstance(clause, tree.Pattern):
                subject, predicate, object = map(self._slot, clause.nodes)
                yield Pattern(subject, predicate, object, clause.origin)
            elif isinstance(clause, tree.Rule):
                hint = "write it as a rule of its own, whose body has this rule's body as well"
                self._fail("a rule inside a rule is not supported yet", clause.origin, hint)

    def _slot(self, node: tree.Node) -> Slot:
        match node.value:
            case tree.Functor(name=name, arguments=arguments):
                hint = "say the same with a property for each argument"
                self._fail(f"the functor `{name}(...)` is not supported yet", node.origin, hint)
                # One error is enough for what the functor would have bound.
                self.scope.bind([inner.value for inner in arguments if isinstance(inner.value, Variable)])
                return Variable("")
            case value:
                return value

    def _calls(
        self, clauses: tuple[tree.Clause, ...], translate: Callable[[tree.Call], Iterator[Predicate]]
    ) -> Iterator[Predicate]:
        """The predicates of the calls among the clauses, in written order, errors collected."""
        for clause in clauses:
            if isinstance(clause, tree.Call):
                try:
                    yield from translate(clause)
                except TranslatorError as error:
                    self.errors.append(error)
                    # One error is enough for what this call would have bound.
                    self.scope.bind([node.value for node in clause.nodes if isinstance(node.value, Variable)])

    def _body_call(self, call: tree.Call) -> Iterator[Predicate]:
        builtin = self._find(call, "body")
        slots = tuple(self._slot(node) for node in call.nodes)
        if builtin.name == "noValue":
            yield self._no_value(slots, call.origin)
        else:
            yield from lower(builtin, slots, self.scope, call.origin)

    def _head_call(self, call: tree.Call) -> Iterator[Predicate]:
        builtin = self._find(call, "head")
        if not _is_hint(call):
            yield from lower(builtin, tuple(self._slot(node) for node in call.nodes), self.scope, call.origin)

    def _find(self, call: tree.Call, where: str) -> functions.Builtin:
        known = functions.builtins("jena")
        if call.name in _NOT_YET and call.name not in known:
            raise TranslatorError(f"the built-in `{call.name}` is not supported yet", call.origin, _NOT_YET[call.name])
        return find(call.name, known, len(call.nodes), where, call.origin)

    def _no_value(self, slots: tuple[Slot, ...], origin: Origin | None) -> Without:
        """No triple fits. What is not bound here, or left out, is a wildcard, even if it is bound later."""
        given = (slot if self.scope.knows(slot) else self._wildcard() for slot in slots)
        subject, predicate, *rest = given
        return Without((Pattern(subject, predicate, rest[0] if rest else self._wildcard(), origin),), origin)

    def _wildcard(self) -> Variable:
        """A variable with a name that no variable of a text can have."""
        self.wildcards += 1
        return Variable(f"any {self.wildcards}")

    def _check_head(self) -> None:
        for clause in self.rule.head:
            if isinstance(clause, tree.Pattern):
                self._check_fact(clause)

    def _check_fact(self, fact: tree.Pattern) -> None:
        for node in fact.nodes:
            if isinstance(node.value, Variable) and not self.scope.knows(node.value):
                self.errors.append(unsafe(node.value, node.origin, self.scope.bound))
                self.scope.bind([node.value])
        subject, predicate = fact.subject, fact.predicate
        if not isinstance(subject.value, tree.Functor) and not is_subject(subject.value):
            self._fail(f"the literal {subject} cannot be the subject of a fact", subject.origin)
        if not isinstance(predicate.value, tree.Functor) and not is_predicate(predicate.value):
            self._fail(f"`{predicate}` cannot be the predicate of a fact", predicate.origin, "it has to be an IRI")

    def _fail(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        self.errors.append(TranslatorError(message, origin, hint))


def _is_hint(clause: tree.Clause) -> bool:
    return isinstance(clause, tree.Call) and clause.name in _HINTS_FOR_PLANNERS


def _key(rule: tree.Rule) -> str:
    """A digest of the rule without its name, its arrow's direction and the names of its variables."""
    text = str(replace(rule.canonical, name=None, backward=False))
    return blake2b(text.encode(), digest_size=16).hexdigest()
