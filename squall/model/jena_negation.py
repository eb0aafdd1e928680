"""Rules that look at what is not there once, when they fire (the profile ``jena``): no rule then depends on all that
others derive, so that nothing has to be stratified.

Such a rule becomes three. One notes, as an update does, that it has fired for what its patterns have matched; one
concludes for as long as that is noted and the patterns hold; one forgets what was noted when they hold no longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from squall.model import (
    Bind,
    Call,
    Construct,
    Delete,
    Insert,
    Optional,
    Pattern,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    Without,
    is_update,
    rebuilt,
    variables,
    visible,
)
from squall.model.windows import EmptyWindow
from squall.rdf import NOTES, XSD, iri, literal
from squall.rdf.compounds import BUILD, TAKE_APART

FIRED = iri("urn:x-squall:fired")
"""The predicate of what is noted: of each rule the solutions for which it has fired, each as one term."""


def fired(system: System) -> System:
    """The system with such rules, in all of its parts. Updates stay as they are: they look when they act."""
    changed = _fired(system, count(1))
    return system if changed == system else _apart(changed)


def _fired(system: System, numbers: Iterator[int]) -> System:
    found: list[System] = []
    for one in system.subsystems:
        inner = _fired(one, numbers)
        found += _rules(inner, next(numbers)) if _looks(inner) else [inner]
    changed = replace(system, subsystems=tuple(found))
    if not _looks(changed):
        return changed
    parts = _rules(replace(changed, subsystems=(), documents=(), streams=()), next(numbers))
    bare = replace(changed, joinables=(), predicates=(), consequences=(), subsystems=(*parts, *changed.subsystems))
    return bare


def _looks(rule: System) -> bool:
    """Whether a rule makes facts and looks at what is not there, or counts what is."""
    makes = any(isinstance(one, Construct) for one in rule.consequences)
    return makes and rule.reentrant and not is_update(rule) and any(map(_needs_all, rule.predicates)) and _binds(rule)


def _binds(rule: System) -> bool:
    """Whether all that a rule makes facts of is bound: a rule with optional parts or unions goes on looking."""
    optional = any(isinstance(one, Optional) and one.system.grouping is None for one in rule.predicates)
    return not optional and not any(isinstance(one, Union) for one in rule.joinables)


def _needs_all(predicate: object) -> bool:
    return isinstance(predicate, Without) or (isinstance(predicate, Optional) and predicate.system.grouping is not None)


def _rules(rule: System, number: int) -> list[System]:
    """What fires, what concludes, and what forgets."""
    matched = tuple(dict.fromkeys(name for joinable in rule.joinables for name in variables(joinable)))
    known = tuple(dict.fromkeys((*matched, *_made(rule))))
    noted = _noted(number, known)
    (note,) = noted.joinables
    assert isinstance(note, Pattern)
    before = _noted(
        number, tuple(one if one in matched else Variable(f"{one.name} before") for one in known), " before"
    )
    made = Bind(_TOKEN, Call(BUILD, (note.subject, *known)))
    predicates = (*rule.predicates, Without((before,)), made)
    fires = replace(rule, predicates=predicates, consequences=(Insert((note,), iri(NOTES)),))
    concludes = replace(rule, joinables=(*rule.joinables, noted), predicates=())
    forgets = System(
        rule.name,
        sources=rule.sources,
        joinables=(noted,),
        predicates=(Without(rule.joinables),),
        consequences=(Delete((note,), iri(NOTES)),),
        origin=rule.origin,
    )
    return [fires, concludes, forgets] if rule.joinables else [fires, concludes]


_TOKEN = Variable("fired")


def _noted(number: int, known: tuple[Variable, ...], more: str = "") -> System:
    """What joins these variables with the solutions for which a rule has fired."""
    name, token = iri(f"urn:x-squall:fired:{number}"), Variable(_TOKEN.name + more)
    taken = TableFunction(known, TAKE_APART, (token, name, literal(str(len(known)), XSD + "integer")))
    return System(sources=(Source(NOTES),), joinables=(Pattern(name, FIRED, token),), predicates=(taken,))


def _made(rule: System) -> Iterator[Variable]:
    """The variables of what a rule makes."""
    bound = set(visible(rule))
    for one in rule.consequences:
        if isinstance(one, Construct):
            slots = [slot for fact in one.template for slot in fact.slots]
            yield from (slot for slot in slots if isinstance(slot, Variable) and slot in bound)


def _apart(part: Any) -> Any:
    """The part with default graphs that do not have what is noted."""
    if isinstance(part, Source):
        return part if part.iri else replace(part, windows=tuple(sorted((*part.windows, (NOTES, EmptyWindow())))))
    return rebuilt(part, _apart)
