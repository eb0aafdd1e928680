"""Clauses: RIF rules with one alternative of their condition each, and their systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from squall.errors import Origin, SquallError, TranslatorError
from squall.functions.rif.names import FUNC
from squall.lexers.rif import tree
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Consequence,
    Construct,
    FactPattern,
    Joinable,
    NotExists,
    Pattern,
    Predicate,
    Slot,
    System,
    Variable,
)
from squall.rdf.compounds import BUILD, JOIN
from squall.rdf.vocabulary import TYPE
from squall.translators.common import term_expression, with_nesting_limit
from squall.translators.rif.conditions import Body, FreshVariables, Literal, UnsafeRule, unbound_variables, unsafe_rule
from squall.translators.rif.terms import (
    EQUAL,
    SUBCLASS,
    Constants,
    Terms,
    is_hidden,
    ordered_arguments,
    with_argument_names,
)


@dataclass(frozen=True)
class Clause:
    """A rule, or one alternative of it.

    Attributes:
        names: The variables of its conclusions by name.
        unless: Facts that suppress the clause where they hold.
        partial: Whether formulas without a value are left out of the condition, instead of being errors.
        problem: A further error of the clause.
    """

    name: str
    conclusions: tuple[tree.Atomic, ...]
    conjunction: tuple[Literal, ...]
    names: Mapping[str, Variable]
    constants: Constants
    fresh: FreshVariables
    origin: Origin | None = None
    unless: tuple[Literal, ...] = ()
    partial: bool = False
    problem: SquallError | None = None

    @cached_property
    def body(self) -> Body:
        """The condition, as far as it could be translated."""
        body = Body(self.constants, self.fresh)
        body.add(self.conjunction)
        return body

    @cached_property
    def errors(self) -> list[SquallError]:
        """The errors of the clause. Those of the conclusions are only looked for if the condition has none."""
        if self.problem:
            return [self.problem]
        errors = self.body.errors if self.partial else [*self.body.errors, *self.body.unsafe_rule()]
        return errors or self._head.errors

    @property
    def is_unsafe(self) -> bool:
        """Whether the only errors are that variables are unbound."""
        return bool(self.errors) and all(isinstance(error, UnsafeRule) for error in self.errors)

    @property
    def unbound(self) -> set[Variable]:
        """The variables of the conclusions that the condition does not bind."""
        parts = (
            part for conclusion in self.conclusions for part in tree.parts(conclusion) if isinstance(part, tree.Var)
        )
        return {self.names[part.name] for part in parts if part.name in self.names} - self.body.bound

    @cached_property
    def _head(self) -> _Head:
        return _Head(self)

    def _patterns(self, conjunction: Sequence[Literal]) -> tuple[Joinable, ...]:
        body = Body(self.constants, self.fresh)
        body.add(conjunction)
        return tuple(body.joinables)

    def system(self) -> System:
        """Returns the system of a clause without errors."""
        negations = (NotExists(self._patterns((negated,))) for negated in self.unless)
        predicates = (_with_limit(negated, self.name) for negated in (*self.body.predicates, *self._head.predicates))
        return System(
            self.name,
            joinables=tuple(self.body.joinables),
            predicates=(*predicates, *negations),
            consequences=self._head.consequences,
            origin=self.origin,
        )


def _with_limit(predicate: Predicate, rule: str) -> Predicate:
    """Returns a predicate with a nesting limit, if it constructs a term as a conclusion may."""
    expression = predicate.expression if isinstance(predicate, Bind) else None
    if isinstance(predicate, Bind) and isinstance(expression, Call) and expression.function in _TERM_CONSTRUCTORS:
        return replace(predicate, expression=with_nesting_limit(expression, rule))
    return predicate


_TERM_CONSTRUCTORS = {BUILD, JOIN, *(FUNC + name for name in ("make-list", "append", "concatenate", "insert-before"))}
"""The functions whose terms may be longer than their arguments, or contain them."""


class _Head:
    """The conclusions of a clause, over its condition."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.bound = clause.body.bound
        self.terms = Terms(clause.constants, clause.names)
        self.predicates: list[Predicate] = []
        self.errors: list[SquallError] = []
        self.consequences = tuple(self._consequences())

    def _consequences(self) -> Iterator[Consequence]:
        facts: list[FactPattern] = []
        internal: list[FactPattern] = []
        for conclusion in self.clause.conclusions:
            try:
                for fact in self._facts(conclusion):
                    is_internal = isinstance(fact, AtomPattern) and is_hidden(fact.relation)
                    (internal if is_internal else facts).append(fact)
            except TranslatorError as error:
                self.errors.append(error)
        if facts or not internal:
            yield Construct(tuple(facts))
        if internal:
            yield Construct(tuple(internal), internal=True)

    def _facts(self, conclusion: tree.Atomic) -> Iterator[FactPattern]:
        origin = conclusion.origin
        match conclusion:
            case tree.Atom():
                relation = with_argument_names(self.terms.constants.term(conclusion.op), conclusion.names)
                yield AtomPattern(relation, self._slots(ordered_arguments(conclusion)), origin=origin)
            case tree.Frame(object=about, slots=slots):
                for attribute, value in slots:
                    yield self._triple(self._slots((about, attribute, value)), origin)
            case tree.Member(instance=instance, cls=cls):
                left, right = self._slots((instance, cls))
                yield self._triple((left, TYPE, right), origin)
            case tree.Subclass(sub=sub, sup=sup):
                yield AtomPattern(SUBCLASS, self._slots((sub, sup)), origin=origin)
            case tree.Equal(left=first, right=second):
                yield AtomPattern(EQUAL, self._slots((first, second)), origin=origin)

    def _triple(self, slots: Sequence[Slot], origin: Origin | None) -> Pattern:
        subject, predicate, object = slots
        if isinstance(predicate, str) and predicate[0] != "<":
            raise TranslatorError(
                f"`{predicate}` cannot be an attribute of a conclusion", origin, "it has to be an IRI"
            )
        if isinstance(subject, str) and subject[0] == '"':
            hint = "it would be no RDF triple: say it by a relation, `p(a b)`"
            raise TranslatorError(f"`{subject}` cannot have attributes in a conclusion", origin, hint)
        return Pattern(subject, predicate, object, origin=origin)

    def _slots(self, terms: Sequence[tree.Term]) -> tuple[Slot, ...]:
        return tuple(self._slot(term) for term in terms)

    def _slot(self, term: tree.Term) -> Slot:
        part = self.terms.term_pattern(term)
        for missing in unbound_variables(part, self.bound):
            raise unsafe_rule(missing, term.origin)
        value = term_expression(part, self.clause.name)
        if not isinstance(value, Call):
            return value
        variable = self.clause.fresh()
        self.predicates.append(Bind(variable, value))
        return variable
