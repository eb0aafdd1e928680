"""Negation that is evaluated once, when a rule fires (the profile ``jena``).

A rule then does not depend on all that others derive, so that nothing has to be stratified. Such a rule becomes three.
The first records, as an update does, that it has fired for what its patterns have matched. The second concludes for as
long as that record is there and the patterns hold. The third deletes the record when they hold no longer.
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
    Negation,
    NotExists,
    Optional,
    Pattern,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    is_update,
    map_parts,
    variables,
    visible,
)
from squall.model.windows import EmptyWindow
from squall.rdf import NOTES, XSD, iri, literal
from squall.rdf.compounds import BUILD, DECOMPOSE

FIRED_PREDICATE = iri("urn:x-squall:fired")
"""The predicate of the records: for each rule the solutions for which it has fired, each as one term."""


def evaluate_negation_once(system: System) -> System:
    """Returns the system with such rules, in all of its parts. Updates stay as they are: they look when they act."""
    rewritten = _rewrite(system, count(1))
    return system if rewritten == system else _without_records(rewritten)


def _rewrite(system: System, numbers: Iterator[int]) -> System:
    subsystems: list[System] = []
    for subsystem in system.subsystems:
        inner = _rewrite(subsystem, numbers)
        subsystems += _three_rules(inner, next(numbers)) if _is_negating(inner) else [inner]
    rewritten = replace(system, subsystems=tuple(subsystems))
    if not _is_negating(rewritten):
        return rewritten
    parts = _three_rules(replace(rewritten, subsystems=(), documents=(), streams=()), next(numbers))
    bare = replace(rewritten, joinables=(), predicates=(), consequences=(), subsystems=(*parts, *rewritten.subsystems))
    return bare


def _is_negating(rule: System) -> bool:
    """Returns whether a rule derives facts and either negates or aggregates."""
    makes = any(isinstance(consequence, Construct) for consequence in rule.consequences)
    return (
        makes
        and rule.reentrant
        and not is_update(rule)
        and any(map(_needs_all_facts, rule.predicates))
        and _body_binds_all(rule)
    )


def _body_binds_all(rule: System) -> bool:
    """Returns whether the body binds all that the rule derives facts of. A rule with optional parts or unions is not
    changed.
    """
    optional = any(isinstance(part, Optional) and part.system.grouping is None for part in rule.predicates)
    return not optional and not any(isinstance(part, Union) for part in rule.joinables)


def _needs_all_facts(predicate: object) -> bool:
    return isinstance(predicate, Negation) or (
        isinstance(predicate, Optional) and predicate.system.grouping is not None
    )


def _three_rules(rule: System, number: int) -> list[System]:
    """Returns the rules that fire, conclude, and delete the record."""
    body_variables = tuple(dict.fromkeys(name for joinable in rule.joinables for name in variables(joinable)))
    recorded_variables = tuple(dict.fromkeys((*body_variables, *_derived_variables(rule))))
    record_part = _record_part(number, recorded_variables)
    (record,) = record_part.joinables
    assert isinstance(record, Pattern)
    earlier_part = _record_part(
        number,
        tuple(
            variable if variable in body_variables else Variable(f"{variable.name} before")
            for variable in recorded_variables
        ),
        " before",
    )
    bind_token = Bind(_TOKEN, Call(BUILD, (record.subject, *recorded_variables)))
    predicates = (*rule.predicates, NotExists((earlier_part,)), bind_token)
    fires = replace(rule, predicates=predicates, consequences=(Insert((record,), iri(NOTES)),))
    concludes = replace(rule, joinables=(*rule.joinables, record_part), predicates=())
    forgets = System(
        rule.name,
        sources=rule.sources,
        joinables=(record_part,),
        predicates=(NotExists(rule.joinables),),
        consequences=(Delete((record,), iri(NOTES)),),
        origin=rule.origin,
    )
    return [fires, concludes, forgets] if rule.joinables else [fires, concludes]


_TOKEN = Variable("fired")


def _record_part(number: int, recorded_variables: tuple[Variable, ...], suffix: str = "") -> System:
    """Returns the part that joins these variables with the solutions for which a rule has fired."""
    name, token = iri(f"urn:x-squall:fired:{number}"), Variable(_TOKEN.name + suffix)
    decompose = TableFunction(
        recorded_variables, DECOMPOSE, (token, name, literal(str(len(recorded_variables)), XSD + "integer"))
    )
    return System(sources=(Source(NOTES),), joinables=(Pattern(name, FIRED_PREDICATE, token),), predicates=(decompose,))


def _derived_variables(rule: System) -> Iterator[Variable]:
    """Yields the variables of the facts that a rule derives."""
    bound = set(visible(rule))
    for consequence in rule.consequences:
        if isinstance(consequence, Construct):
            slots = [slot for fact in consequence.template for slot in fact.slots]
            yield from (slot for slot in slots if isinstance(slot, Variable) and slot in bound)


def _without_records(part: Any) -> Any:
    """Returns the part with default graphs that do not include the records."""
    if isinstance(part, Source):
        return part if part.iri else replace(part, windows=tuple(sorted((*part.windows, (NOTES, EmptyWindow())))))
    return map_parts(part, _without_records)
