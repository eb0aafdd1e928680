"""The finding ``schema-cycle``: classes, or properties, that are all a part of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from squall.checking.findings import INFO, Finding
from squall.model import Construct, Pattern, System, Variable, rules
from squall.model.graphs import components
from squall.rdf import Term
from squall.rdf.vocabulary import TYPE
from squall.reasoning.schema import Schema


def cycles(system: System, schema: Schema | None) -> Iterator[Finding]:
    """Yields a finding for each cycle of the schema of the entailment, of an ontology, or of a specialised rule set.

    Args:
        system: The system of the programs.
        schema: The schema of the entailment, if there is one.
    """
    for cycle in () if schema is None else schema.cycles:
        yield _finding("schema", cycle)
    backgrounds = [part for part in (system, *system.subsystems) if part.is_background]
    owner = "schema" if system.fixed_schema is not None else "ontology"
    for cycle in (cycle for part in backgrounds for cycle in _cycles_of_rules(part)):
        yield _finding(owner, cycle)


def _finding(owner: str, cycle: list[Term]) -> Finding:
    return Finding("schema-cycle", INFO, f"the {owner} makes {', '.join(cycle[:-1])} and {cycle[-1]} the same")


def _cycles_of_rules(rule_set: System) -> Iterator[list[Term]]:
    """Yields the cycles of rules by which each member of a class is one of another, and the same of properties."""
    for graph in _inclusions(rule_set):
        yield from sorted(sorted(part) for part in components(graph) if len(part) > 1)


def _inclusions(rule_set: System) -> tuple[dict[Term, set[Term]], dict[Term, set[Term]]]:
    """Returns the classes that rules include in others, and the properties."""
    classes: defaultdict[Term, set[Term]] = defaultdict(set)
    properties: defaultdict[Term, set[Term]] = defaultdict(set)
    for rule in rules(rule_set):
        match rule:
            case System(
                joinables=(Pattern(predicate=str() as below, object=first) as body,),
                predicates=(),
                consequences=(Construct(template=(Pattern(predicate=str() as above, object=second) as head,)),),
            ) if body.subject == head.subject and isinstance(body.subject, Variable):
                if below == above == TYPE and not isinstance(first, Variable) and not isinstance(second, Variable):
                    classes[first].add(second)
                    classes.setdefault(second, set())
                elif TYPE not in (below, above) and first == second and isinstance(first, Variable):
                    properties[below].add(above)
                    properties.setdefault(above, set())
    return classes, properties
