"""Class expressions and data ranges as parts of rules: conditions of a body, or conclusions of a head.

A rule derives the members of a superclass from those of a subclass. OWL 2 RL says which expressions may be either
(OWL 2 Profiles, section 4.2): those that are conditions or conclusions of rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, product
from typing import Any

from squall.functions.datatypes import OWN
from squall.functions.jena import function_iri
from squall.lexers.owl import tree
from squall.model import (
    AtomPattern,
    Call,
    Construct,
    FactPattern,
    Filter,
    Joinable,
    NotExists,
    Pattern,
    Predicate,
    Slot,
    System,
    Variable,
    map_parts,
)
from squall.rdf import OWL, Term, iri, literal
from squall.rdf.vocabulary import TYPE
from squall.rulesets import VIOLATED_BY

SAME = iri(OWL + "sameAs")
UNDECIDED = iri("urn:x-squall:owl:undecided")
"""The relation of members of a union of classes that are known to be in none of them, and the union as text."""

_REMEDIES = {
    "superclass": "rules conclude what individuals are, not that there are others, nor that one of several cases holds",
    "subclass": "rules conclude nothing from what is not stated",
    "property": "a rule needs a property with a name of its own",
}


@dataclass(frozen=True)
class Body:
    """Conditions of a rule. Each binding says that a variable is this individual."""

    joinables: tuple[Joinable, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    bindings: tuple[tuple[Variable, Term], ...] = ()

    def __and__(self, other: Body) -> Body:
        """Returns the conjunction. Two individuals for one variable have to be the same one."""
        own = dict(self.bindings)
        new = {name: term for name, term in other.bindings if own.setdefault(name, term) == term}
        same = tuple(Pattern(own[name], SAME, term) for name, term in other.bindings if name not in new)
        joinables = tuple(dict.fromkeys((*self.joinables, *other.joinables, *same)))
        return Body(joinables, (*self.predicates, *other.predicates), tuple(own.items()))


@dataclass(frozen=True)
class Head:
    """A conclusion of a rule, and the conditions that come with it.

    Attributes:
        template: The fact that follows.
        body: The further conditions.
        rule: The name of the rule, if the expression gives it one.
    """

    template: FactPattern
    body: Body = Body()
    rule: str = ""


@dataclass(frozen=True)
class Issue:
    """A part of an axiom that is not in OWL 2 RL where it stands, and the remedy."""

    text: str
    remedy: str


@dataclass
class Expressions:
    """Makes bodies and heads of expressions. What OWL 2 RL does not have there is left out, and recorded.

    Attributes:
        definitions: Data ranges by the names of the datatypes that are defined by them.
        has_cases: Whether a superclass may be a union: then what is in none of its classes is `UNDECIDED`.
        keeps_apart: Whether an individual in a datatype is a violation, as in the direct semantics.
        issues: What is left out.
    """

    definitions: Mapping[Term, tree.Expression] = field(default_factory=dict)
    has_cases: bool = False
    keeps_apart: bool = False
    issues: list[Issue] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def fresh(self) -> Variable:
        """Returns a new variable."""
        return Variable(f"y{next(self._numbers)}")

    def pattern(self, property: tree.Property, subject: Slot, object: Slot) -> Pattern:
        """Returns the pattern of a property."""
        if property.name in _UNIVERSAL:
            self.refuse(str(property), "property")
        ends = (object, subject) if property.inverse else (subject, object)
        return Pattern(ends[0], property.name, ends[1])

    def refuse(self, part: str, position: str) -> None:
        """Records a part that is not in OWL 2 RL: as a ``subclass``, ``superclass`` or ``property``."""
        self.issues.append(Issue(f"`{shortened(part)}` cannot be a {position}", _REMEDIES[position]))

    # Bodies

    def bodies(self, expression: tree.Expression, slot: Slot) -> list[Body]:
        """Returns the alternative conditions that a slot is in an expression."""
        match expression:
            case tree.Class(name=name) if name != tree.THING:
                return [Body((Pattern(slot, TYPE, name),))]
            case tree.Datatype(name=name):
                return self._in_datatype(name, slot)
            case tree.Intersection(members=members):
                return self._conjunctions(self.bodies(member, slot) for member in members)
            case tree.Union(members=members) if not tree.is_data_range(expression):
                return [body for member in members for body in self.bodies(member, slot)]
            case tree.OneOf(members=members) if not tree.is_data_range(expression):
                return [_is(slot, member) for member in members]
            case tree.Some(property=property, filler=filler):
                value = self.fresh()
                related = Body((self.pattern(property, slot, value),))
                return [related & body for body in self.filler_bodies(filler, value)]
            case tree.HasValue(property=property, value=value):
                return [Body((self.pattern(property, slot, value),))]
        self.refuse(str(expression), "subclass")
        return []

    def filler_bodies(self, filler: tree.Expression | None, slot: Slot) -> list[Body]:
        """Returns the conditions that a value is in a filler; none, in one alternative, if it may be anything."""
        return [Body()] if filler is None or filler == tree.Class(tree.THING) else self.bodies(filler, slot)

    def _conjunctions(self, alternatives: Iterable[list[Body]]) -> list[Body]:
        conjunctions = []
        for bodies in product(*alternatives):
            conjunction = Body()
            for body in bodies:
                conjunction &= body
            conjunctions.append(conjunction)
        return conjunctions

    def _in_datatype(self, name: Term, slot: Slot) -> list[Body]:
        if name in self.definitions:
            return self.bodies(self.definitions[name], slot)
        return [Body(predicates=(Filter(Call(OWN + "isValueOf", (slot, name))),))]

    # Heads

    def heads(self, expression: tree.Expression, slot: Slot) -> list[Head]:
        """Returns what follows for a slot that is in an expression."""
        match expression:
            case tree.Class(name=name):
                return self._in_class(name, slot)
            case tree.Datatype(name=name):
                return self._of_datatype(name, slot)
            case tree.Intersection(members=members):
                return [head for member in members for head in self.heads(member, slot)]
            case tree.Union(members=members) if self.has_cases and not tree.is_data_range(expression):
                return self._undecided(expression, members, slot)
            case tree.Complement(operand=operand) if not tree.is_data_range(operand):
                return [violation("cls-com", slot, body) for body in self.bodies(operand, slot)]
            case tree.All(property=property, filler=filler):
                value = self.fresh()
                related = Body((self.pattern(property, slot, value),))
                return [
                    replace(head, body=related & head.body, rule=head.rule or "cls-avf")
                    for head in self.heads(filler, value)
                ]
            case tree.HasValue(property=property, value=value):
                return [Head(self.pattern(property, slot, value), rule="cls-hv1")]
            case tree.Cardinality(bound="Max", count=0 | 1):
                return self._at_most(expression, slot)
        self.refuse(str(expression), "superclass")
        return []

    def _in_class(self, name: Term, slot: Slot) -> list[Head]:
        if name == tree.NOTHING:
            return [violation("cls-nothing2", slot)]
        return [] if name == tree.THING else [Head(Pattern(slot, TYPE, name))]

    def _of_datatype(self, name: Term, slot: Slot) -> list[Head]:
        """Returns the violations of a value that has to be in a datatype."""
        if name in self.definitions:
            return self.heads(self.definitions[name], slot)
        no_value = Body(predicates=(Filter(Call(OWN + "isNoValueOf", (slot, name))),))
        violations = [violation("dt-not-type", slot, no_value)]
        if self.keeps_apart:
            no_literal = Body(predicates=(Filter(Call(function_iri("notLiteral"), (slot,))),))
            violations.append(violation("data-value", slot, no_literal))
        return violations

    def _undecided(self, union: tree.Union, members: Iterable[tree.Expression], slot: Slot) -> list[Head]:
        none = Body()
        for member in members:
            for body in self.bodies(member, slot):
                none &= Body(predicates=(_not(body),))
        return [Head(AtomPattern(UNDECIDED, (slot, literal(str(union)))), none)]

    def _at_most(self, expression: tree.Cardinality, slot: Slot) -> list[Head]:
        property, filler = expression.property, expression.filler
        qualified, of_all = "" if filler is None else "q", filler == tree.Class(tree.THING)
        values = [self.fresh() for _ in range(expression.count + 1)]
        related = [
            [Body((self.pattern(property, slot, value),)) & body for body in self.filler_bodies(filler, value)]
            for value in values
        ]
        bodies = self._conjunctions(related)
        if expression.count:
            rule = f"cls-max{qualified}c{4 if of_all else 3 if qualified else 2}"
            return [self.same(property, values[0], values[1], body, rule) for body in bodies]
        return [violation(f"cls-max{qualified}c{2 if of_all else 1}", slot, body) for body in bodies]

    def same(self, property: tree.Property, first: Slot, second: Slot, body: Body, rule: str) -> Head:
        """Returns that two values of a property are the same: a violation if they are literals that differ."""
        if property.is_data:
            differ = Filter(Call(OWN + "differInValue", (first, second)))
            return violation("eq-diff1", first, body & Body(predicates=(differ,)))
        return Head(Pattern(first, SAME, second), body & Body(predicates=(differ_in_name(first, second),)), rule)


_UNIVERSAL = {iri(OWL + name) for name in ("topObjectProperty", "bottomObjectProperty", "topDataProperty",
                                           "bottomDataProperty")}  # fmt: skip


def violation(rule: str, slot: Slot, body: Body = Body()) -> Head:
    """Returns that a slot violates a rule."""
    return Head(Pattern(iri(f"urn:x-squall:{rule}"), VIOLATED_BY, slot), body, rule)


def differ_in_name(first: Slot, second: Slot) -> Filter:
    """Returns the test that two terms are different ones."""
    return Filter(Call(OWN + "notIdentical", (first, second)))


def _is(slot: Slot, individual: Term) -> Body:
    if isinstance(slot, Variable):
        return Body(bindings=((slot, individual),))
    return Body() if slot == individual else Body((Pattern(slot, SAME, individual),))


def _not(body: Body) -> Predicate:
    """Returns the negation of a condition."""
    if body.bindings:
        return differ_in_name(*body.bindings[0])
    if not body.predicates:
        return NotExists(body.joinables)
    return NotExists((System(joinables=body.joinables, predicates=body.predicates),))


def system(name: str, body: Body, head: Head) -> System:
    """Returns the rule of a body and a head, with the name that the head gives it, if any."""
    whole = body & head.body
    bound: dict[Variable, Term] = dict(whole.bindings)

    def substituted(part: Any) -> Any:
        return bound.get(part, part) if isinstance(part, Variable) else map_parts(part, substituted)

    is_helper = isinstance(head.template, AtomPattern)
    return System(
        head.rule or name,
        joinables=substituted(whole.joinables),
        predicates=substituted(whole.predicates),
        consequences=(Construct((substituted(head.template),), internal=is_helper),),
    )


def shortened(text: str) -> str:
    """Returns a text in functional-style syntax with the names of IRIs only, and at most 120 characters of it."""
    names = _IRI.sub(lambda match: f":{match[1]}" if match[1] else match[0], text)
    return names if len(names) <= 120 else f"{names[:117]}..."


_IRI = re.compile(r"<[^<>]*?[/#:]([^<>/#:]*)>")
