"""Binding times: which patterns of rules the schema alone can match, and what is known before the run.

A pattern is *static* if only triples that describe classes and properties match it, or facts that follow from these
alone. What binds its variables is known before the run. All other patterns are *dynamic*.

Source: N. Jones, C. Gomard and P. Sestoft, Partial Evaluation and Automatic Program Generation, 1993, chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from squall.model.consequences import Construct
from squall.model.deadlines import is_pure
from squall.model.expressions import Bind, Call, Filter, Predicate, TableFunction
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Variable
from squall.model.reading import variables
from squall.model.systems import System
from squall.rdf import Term
from squall.rdf.vocabulary import LIST_CELLS, TYPE, is_of_schema
from squall.rulesets import HELPER


def is_plain(rule: System) -> bool:
    """Returns whether a rule can be evaluated in part: patterns, functions without side effects, and facts as heads."""
    # In one piece: each condition, in a line of its own.
    if rule.grouping or rule.slice or rule.subsystems or rule.stream or rule.output or rule.report:
        return False
    if not all(isinstance(part, Construct) for part in rule.consequences):
        return False
    if not all(source.is_plain for source in rule.sources):
        return False
    if not all(isinstance(joinable, Pattern | AtomPattern) for joinable in rule.joinables):
        return False
    in_patterns = {name for joinable in rule.joinables for name in variables(joinable)}
    return all(_is_plain_predicate(predicate, in_patterns) for predicate in rule.predicates)


def _is_plain_predicate(predicate: Predicate, in_patterns: Set[Variable]) -> bool:
    match predicate:
        case Filter(expression=expression):
            return is_pure(expression, in_any_run=True)
        case Bind(variable=variable, expression=expression, keep_unbound=False):
            return variable not in in_patterns and is_pure(expression, in_any_run=True)
        case TableFunction(variables=names, function=function, arguments=arguments):
            return in_patterns.isdisjoint(names) and is_pure(Call(function, arguments), in_any_run=True)
        case _:
            return False


def bound_by(predicate: Predicate) -> tuple[Variable, ...]:
    """Returns the variables to which a predicate of a plain rule gives values."""
    match predicate:
        case Bind(variable=variable):
            return (variable,)
        case TableFunction(variables=names):
            return names
        case _:
            return ()


def used_by(predicate: Predicate) -> set[Variable]:
    """Returns the variables that a predicate of a plain rule needs."""
    match predicate:
        case Filter(expression=expression) | Bind(expression=expression):
            return set(variables(expression))
        case TableFunction(arguments=arguments):
            return {name for argument in arguments for name in variables(argument)}
        case _:
            return set()


def heads(rule: System) -> Iterator[FactPattern]:
    """Yields the templates of the facts that a rule derives."""
    for consequence in rule.consequences:
        if isinstance(consequence, Construct):
            yield from consequence.template


def is_helper(pattern: FactPattern) -> bool:
    """Returns whether a pattern is one of a relation whose facts only rules derive."""
    return isinstance(pattern, AtomPattern) and pattern.relation.startswith(HELPER)


class BindingTimes:
    """The binding times of the patterns of some rules.

    Args:
        rules: The rules.

    Attributes:
        dynamic_relations: The relations of helpers that do not follow from the schema alone.
    """

    def __init__(self, rules: Sequence[System]) -> None:
        self.dynamic_relations: set[Term] = set()
        is_plain_by_rule = [(rule, is_plain(rule)) for rule in rules]
        size = -1
        while size != len(self.dynamic_relations):
            size = len(self.dynamic_relations)
            for rule, plain in is_plain_by_rule:
                if not (plain and len(self.static_patterns(rule)) == len(rule.joinables)):
                    self.dynamic_relations |= {head.relation for head in heads(rule) if isinstance(head, AtomPattern)}

    def static_patterns(self, rule: System, names: Set[Term] = frozenset()) -> list[FactPattern]:
        """Returns the static patterns of a plain rule.

        A cell of a list is one of the schema if another static pattern says so: data have lists, too.

        Args:
            rule: The rule.
            names: The terms of the schema, which may stand for cells.
        """
        # In one piece: a fixpoint over the patterns of one rule.
        patterns = [joinable for joinable in rule.joinables if isinstance(joinable, Pattern | AtomPattern)]
        static = [pattern for pattern in patterns if self._is_static(pattern)]
        cells = [pattern for pattern in patterns if isinstance(pattern, Pattern) and pattern.predicate in LIST_CELLS]
        size = -1
        while size != len(static):
            size = len(static)
            bound = {slot for pattern in static for slot in pattern.slots if isinstance(slot, Variable)} | names
            static += [cell for cell in cells if cell not in static and cell.subject in bound]
        return [pattern for pattern in patterns if pattern in static]

    def is_static(self, rule: System) -> bool:
        """Returns whether what a rule derives follows from the schema alone."""
        return is_plain(rule) and len(self.static_patterns(rule)) == len(rule.joinables)

    def _is_static(self, pattern: FactPattern) -> bool:
        match pattern:
            case AtomPattern(relation=relation):
                return is_helper(pattern) and relation not in self.dynamic_relations
            case Pattern(predicate=predicate, object=object):
                if not isinstance(predicate, str):
                    return False
                return (
                    isinstance(object, str) and is_of_schema(object) if predicate == TYPE else is_of_schema(predicate)
                )


def vocabulary(patterns: Iterable[FactPattern]) -> tuple[frozenset[Term], frozenset[Term]]:
    """Returns the predicates of static patterns of triples, and the classes of those of types."""
    triples = [pattern for pattern in patterns if isinstance(pattern, Pattern)]
    predicates = (pattern.predicate for pattern in triples if pattern.predicate not in (TYPE, *LIST_CELLS))
    classes = (pattern.object for pattern in triples if pattern.predicate == TYPE)
    return (
        frozenset(term for term in predicates if isinstance(term, str)),
        frozenset(term for term in classes if isinstance(term, str)),
    )
