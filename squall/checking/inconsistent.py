"""The check ``inconsistent`` for ontologies that contradict themselves or each other, without any data."""

from __future__ import annotations

from collections.abc import Iterator

import squall
from squall import rulesets
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program
from squall.errors import Origin
from squall.model import Construct, Pattern, Select, System, Variable, rules
from squall.rdf import Solution, Term, iri_text

_RULE, _WHO = Variable("rule"), Variable("who")


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each violation that follows from what the ontologies state of individuals."""
    ontology = _ontology(program)
    if all(rule.joinables for rule in rules(ontology)):
        return
    for rule, who in sorted(_violations(ontology)):
        name = iri_text(rule).rpartition(":")[2]
        hint = "everything follows from a contradiction: correct the axioms, or what is stated of individuals"
        message = f"the ontology is inconsistent: {who} violates `{name}`"
        yield Finding("inconsistent", WARNING, message, _origin(ontology, rule), hint)


def _ontology(program: Program) -> System:
    """Returns the programs that are background knowledge as one. Rule sets stand in front of them."""
    system = program.system
    systems = [system] if system.is_background else system.subsystems[-len(program.texts) :]
    ontologies = (part for part in systems if part.is_background)
    return System(subsystems=tuple(dict.fromkeys(rule for part in ontologies for rule in rules(part))))


def _violations(ontology: System) -> set[tuple[Term, Term]]:
    """Returns the rules that are violated without data, with what violates them."""
    silent = rulesets.prepared(ontology, background=True)
    query = System(joinables=(Pattern(_RULE, rulesets.VIOLATED_BY, _WHO),), consequences=(Select((_RULE, _WHO)),))
    outputs = squall.run(squall.plan(System(subsystems=(silent, query))), [], of=Solution)
    rows = (output.fact.values for output in outputs)
    return {(rule, who) for rule, who in rows if rule is not None and who is not None}


def _origin(ontology: System, violated: Term) -> Origin | None:
    """Returns the place of the axiom that is violated, if there is only one of its kind."""
    origins = {
        rule.origin
        for rule in rules(ontology)
        for part in rule.consequences
        if isinstance(part, Construct)
        for fact in part.template
        if fact.slots[:2] == (violated, rulesets.VIOLATED_BY)
    }
    return origins.pop() if len(origins) == 1 else None
