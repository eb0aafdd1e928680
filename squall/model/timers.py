"""Timers that a program sets wrongly, as far as its text says it."""

from __future__ import annotations

from collections.abc import Iterator

from squall.errors import SquallError, TranslatorError, did_you_mean
from squall.functions.timers import AT, FIRED, NAMESPACE, SETTING, TIMERS, due_time
from squall.model.consequences import Construct, Insert
from squall.model.patterns import Pattern
from squall.model.reading import rules
from squall.model.systems import System
from squall.rdf import iri_text


def timer_errors(system: System) -> Iterator[SquallError]:
    """Yields an error for each template of a timer that can never fire (docs/semantics.md, Timers).

    It is derived and not inserted, is not inserted into the graph of timers, has a predicate that there is not, or a
    constant that is no time.
    """
    for rule in rules(system):
        for consequence in rule.consequences:
            if isinstance(consequence, Construct | Insert):
                for template in consequence.template:
                    if isinstance(template, Pattern) and (problem := _problem(consequence, template)) is not None:
                        message, hint = problem
                        yield TranslatorError(f"`{rule.name}` {message}", template.origin or rule.origin, hint)


def _problem(consequence: Construct | Insert, template: Pattern) -> tuple[str, str | None] | None:
    """Returns what is wrong with a template, and a hint."""
    predicate, value = template.predicate, template.object
    if not isinstance(predicate, str) or not iri_text(predicate).startswith(NAMESPACE):
        return None
    if predicate not in (*SETTING, FIRED):
        names = [iri_text(name) for name in (*SETTING, FIRED)]
        return f"has {predicate}, which no timer has", did_you_mean(iri_text(predicate), names)
    if predicate == FIRED:
        return None
    hint = f"write `INSERT {{ GRAPH <{TIMERS}> {{ ... }} }} WHERE`, or test `NOW() >= ?time` where it is read"
    if isinstance(consequence, Construct):
        return "derives a timer, which only updates set", hint
    if not isinstance(consequence.graph, str) or iri_text(consequence.graph) != TIMERS:
        return f"sets a timer in another graph than <{TIMERS}>", hint
    if isinstance(value, str):
        try:
            due_time(predicate, value, 0)
        except ValueError as error:
            kind = "an xsd:dateTime" if predicate == AT else 'a duration, as in `"PT5S"^^xsd:dayTimeDuration`'
            return f"sets a timer that never fires: {error}", f"write {kind}"
    return None
