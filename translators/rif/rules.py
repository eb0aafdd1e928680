"""The rules of RIF documents as systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from squall.errors import Origin, SquallError, TranslatorError, TranslatorWarning, raise_all, single_errors
from squall.lexers.rif import tree
from squall.model import AtomPattern, Construct, System, Variable
from squall.model.walk import walk
from squall.translators.rif import entailment, equality, magic_sets
from squall.translators.rif.arguments import lift_externals, replacements
from squall.translators.rif.clauses import Clause
from squall.translators.rif.conditions import FreshVariables, Literal, alternatives, undeclared_variables
from squall.translators.rif.direct import restrict_to_individuals
from squall.translators.rif.entailment import DIRECT
from squall.translators.rif.imports import Closure
from squall.translators.rif.terms import SUBCLASS, Constants, document_key
from squall.translators.rif.windows import first_window


@dataclass(frozen=True)
class _Rule:
    """A rule of a document: its name, variables, conclusions and optional condition."""

    name: str
    variables: tuple[tree.Var, ...]
    conclusions: tuple[tree.Atomic, ...]
    condition: tree.Formula | None
    constants: Constants
    origin: Origin | None


class Rules:
    """The systems of all rules, and of the entailments of ``##``, ``=`` and the profile of imported data."""

    def __init__(self, closure: Closure, errors: list[SquallError]) -> None:
        self.closure = closure
        self.errors = errors
        self.warnings: list[TranslatorWarning] = []
        self.rules = [rule for document in closure.documents for rule in _rules(document)]
        conclusions = [conclusion for rule in self.rules for conclusion in rule.conclusions]
        self.equality = closure.profile == DIRECT or any(
            isinstance(conclusion, tree.Equal) for conclusion in conclusions
        )

    def systems(self) -> list[System]:
        """Returns one system for each rule and alternative of its condition, and the rules that derive demands.

        Errors and warnings are recorded.
        """
        transformed, errors = self._transform(equations=False)
        if transformed.equations:
            transformed, errors = self._transform(equations=True)
        self.errors += errors
        self.errors += {str(error): error for clause in transformed.clauses for error in clause.errors}.values()
        self.warnings += transformed.warnings
        if self.errors:
            return []
        systems = [clause.system() for clause in transformed.clauses]
        systems += entailment.systems(self.closure.profile)
        if any(SUBCLASS in _relations(clause) for clause in systems):
            systems += entailment.subclasses()
        equations = equality.systems(systems, transformed.equations) if self.equality else ()
        return [*systems, *equations, *entailment.ontology_rules(self.closure.ontologies)]

    def _transform(self, equations: bool) -> tuple[magic_sets.DemandResult, list[SquallError]]:
        """Returns all clauses, and errors of rules without clauses.

        Args:
            equations: Whether equations are demanded.
        """
        clauses: list[Clause] = []
        errors: list[SquallError] = []
        for rule in self.rules:
            try:
                rule_clauses = (clause for clause in self._clauses(rule, equations) if clause.body.is_satisfiable)
                clauses += (
                    map(restrict_to_individuals, rule_clauses) if self.closure.profile == DIRECT else rule_clauses
                )
            except SquallError as error:
                errors += single_errors(error)
        return magic_sets.demand_transformation(clauses, self.equality), errors

    def _clauses(self, rule: _Rule, equations: bool) -> Iterator[Clause]:
        names = {variable.name: Variable(variable.name) for variable in rule.variables}
        formulas = rule.conclusions if rule.condition is None else (*rule.conclusions, rule.condition)
        declared = frozenset(names)
        raise_all([error for formula in formulas for error in undeclared_variables(formula, declared)])
        fresh = FreshVariables()
        conjunctions: list[tuple[Literal, ...]] = [()]
        if rule.condition is not None:
            conjunctions = alternatives(rule.condition, names, fresh, self.equality)
        conclusions, names, computed = (
            lift_externals(rule.conclusions, names, fresh) if self.equality else (rule.conclusions, names, ())
        )
        for conjunction in conjunctions:
            window = first_window([literal.formula for literal in conjunction])
            if window is not None and self.equality:
                hint = "derive what it reads by a rule in a program of its own, which runs beside this one"
                raise TranslatorError("windows cannot stand beside rules that conclude `=`", window.origin, hint)
            clause = Clause(
                rule.name, conclusions, (*conjunction, *computed), names, rule.constants, fresh, rule.origin
            )
            if self.equality:
                demanded = clause.unbound if equations else None
                yield from (
                    replace(clause, conjunction=variable)
                    for variable in replacements(clause.conjunction, fresh, demanded)
                )
            else:
                yield clause


def _relations(system: System) -> set[str]:
    facts = (
        fact for construct in system.consequences if isinstance(construct, Construct) for fact in construct.template
    )
    return {part.relation for part in (*walk(system), *facts) if isinstance(part, AtomPattern)}


def _rules(document: tree.Document) -> Iterator[_Rule]:
    constants = Constants(document_key(document))
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
