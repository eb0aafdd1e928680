"""The rules of RIF documents as systems: conditions as bodies, conclusions as what they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from squall.compounds import BUILD, JOIN
from squall.errors import Origin, SquallError, TranslatorError, each
from squall.functions.rif.names import FUNC
from squall.lexers.rif import tree
from squall.system import (
    AtomPattern,
    Bind,
    Call,
    Consequence,
    Construct,
    FactPattern,
    Pattern,
    Predicate,
    Slot,
    System,
    Variable,
)
from squall.translators.common import guarded, made
from squall.translators.rif import entailment, equality
from squall.translators.rif.arguments import lifted, replacements
from squall.translators.rif.conditions import (
    SUBCLASS,
    TYPE,
    Body,
    Fresh,
    Literal,
    alternatives,
    unknown,
    unsafe,
)
from squall.translators.rif.entailment import DIRECT
from squall.translators.rif.equality import EQUAL
from squall.translators.rif.imports import Closure
from squall.translators.rif.terms import Constants, Terms, key_of, named, ordered


@dataclass(frozen=True)
class _Rule:
    """A rule of a document: what it is called, its variables, conclusions, and its condition, if it has one."""

    name: str
    variables: tuple[tree.Var, ...]
    conclusions: tuple[tree.Atomic, ...]
    condition: tree.Formula | None
    constants: Constants
    origin: Origin | None


class Rules:
    """The systems of all rules, and of what the use of ``##`` and ``=`` and the profile of imported data entail."""

    def __init__(self, closure: Closure, errors: list[SquallError]) -> None:
        self.closure = closure
        self.errors = errors
        self.rules = [rule for document in closure.documents for rule in _rules(document)]
        conclusions = [one for rule in self.rules for one in rule.conclusions]
        self.equality = closure.profile == DIRECT or any(isinstance(one, tree.Equal) for one in conclusions)

    def systems(self) -> list[System]:
        """One system for each rule and alternative of its condition; errors are gathered."""
        made: list[System] = []
        for rule in self.rules:
            try:
                made += self._translated(rule)
            except SquallError as error:
                self.errors += each(error)
        if self.errors:
            return []
        made += entailment.systems(self.closure.profile)
        if any(SUBCLASS in _relations(one) for one in made):
            made += entailment.subclasses()
        return [*made, *equality.systems(made)] if self.equality else made

    def _translated(self, rule: _Rule) -> Iterator[System]:
        names = {one.name: Variable(one.name) for one in rule.variables}
        fresh = Fresh()
        found: list[tuple[Literal, ...]] = [()]
        if rule.condition is not None:
            found = alternatives(rule.condition, names, fresh, self.equality)
        if self.equality:
            conclusions, names, computed = lifted(rule.conclusions, names, fresh)
            rule = replace(rule, conclusions=conclusions)
            found = [one for conjunction in found for one in replacements((*conjunction, *computed), fresh)]
        errors: list[SquallError] = []
        for conjunction in found:
            body = Body(rule.constants, fresh)
            body.add(conjunction)
            if not body.possible:
                continue
            errors += body.errors
            head = _Head(rule, body, Terms(rule.constants, names))
            consequences = head.consequences()
            errors += head.errors if not body.errors else []
            yield System(
                rule.name,
                joinables=tuple(body.joinables),
                predicates=tuple(_limited(one, rule.name) for one in (*body.predicates, *head.predicates)),
                consequences=consequences,
                origin=rule.origin,
            )
        self.errors += list({str(error): error for error in errors}.values())


def _limited(predicate: Predicate, rule: str) -> Predicate:
    """What a condition makes, to be concluded, has the same limit as what is written in the conclusion."""
    found = predicate.expression if isinstance(predicate, Bind) else None
    if isinstance(predicate, Bind) and isinstance(found, Call) and found.function in _MAKERS:
        return replace(predicate, expression=guarded(found, rule))
    return predicate


_MAKERS = {BUILD, JOIN, *(FUNC + name for name in ("make-list", "append", "concatenate", "insert-before"))}
"""The functions whose terms may be longer than what they are made of, or nest it."""


def _relations(system: System) -> set[str]:
    parts = [
        *system.joinables,
        *(fact for one in system.consequences if isinstance(one, Construct) for fact in one.template),
    ]
    inner = [joinable for part in parts if isinstance(part, System) for joinable in part.joinables]
    return {part.relation for part in (*parts, *inner) if isinstance(part, AtomPattern)}


def _rules(document: tree.Document) -> Iterator[_Rule]:
    constants = Constants(key_of(document))
    for number, sentence in enumerate(_sentences(document.group), 1):
        variables: tuple[tree.Var, ...] = ()
        name = _name(sentence)
        inner: tree.Forall | tree.Implies | tree.Atomic | tree.And = sentence
        if isinstance(inner, tree.Forall):
            variables, inner = inner.variables, inner.formula
            name = name or _name(inner)
        condition = None
        if isinstance(inner, tree.Implies):
            condition, inner = inner.condition, inner.conclusion
        conclusions = cast("tuple[tree.Atomic, ...]", inner.formulas if isinstance(inner, tree.And) else (inner,))
        yield _Rule(name or f"rule{number}", variables, conclusions, condition, constants, sentence.origin)


def _sentences(group: tree.Group | None) -> Iterator[tree.Forall | tree.Implies | tree.Atomic]:
    for sentence in group.sentences if group else ():
        if isinstance(sentence, tree.Group):
            yield from _sentences(sentence)
        else:
            yield sentence


def _name(node: tree.Node) -> str:
    return node.meta.id.lexical if node.meta and node.meta.id else ""


class _Head:
    """The conclusions of a rule, over a body."""

    def __init__(self, rule: _Rule, body: Body, terms: Terms) -> None:
        self.rule = rule
        self.body = body
        self.terms = terms
        self.predicates: list[Predicate] = []
        self.errors: list[SquallError] = []

    def consequences(self) -> tuple[Consequence, ...]:
        facts: list[FactPattern] = []
        internal: list[FactPattern] = []
        for conclusion in self.rule.conclusions:
            try:
                for fact in self._facts(conclusion):
                    hidden = isinstance(fact, AtomPattern) and fact.relation in (SUBCLASS, EQUAL)
                    (internal if hidden else facts).append(fact)
            except TranslatorError as error:
                self.errors.append(error)
        told = [Construct(tuple(facts))] if facts or not internal else []
        return (*told, *([Construct(tuple(internal), internal=True)] if internal else []))

    def _facts(self, conclusion: tree.Atomic) -> Iterator[FactPattern]:
        origin = conclusion.origin
        match conclusion:
            case tree.Atom(op=op):
                relation = named(self.terms.constants.term(op), conclusion.names)
                yield AtomPattern(relation, self._slots(ordered(conclusion)), origin=origin)
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
        part = self.terms.part(term)
        for missing in unknown(part, self.body.bound):
            raise unsafe(missing, term.origin)
        value = made(part, self.rule.name)
        if not isinstance(value, Call):
            return value
        variable = self.body.fresh()
        self.predicates.append(Bind(variable, value))
        return variable
