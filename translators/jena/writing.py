"""Writes systems as Jena rules, as far as that language can say what they mean."""

from __future__ import annotations

from collections.abc import Iterator

from squall import functions
from squall.errors import UsageError
from squall.lexers.jena import Program, Rule
from squall.lexers.jena import tree as jena
from squall.model import AtomPattern, Bind, Call, Construct, Expression, Filter, Pattern, Source, System, rules
from squall.rdf import Term, is_blank
from squall.rulesets import HELPER


def written(system: System) -> str:
    """Returns a system as a file of Jena rules, which a system with the same meaning is read from.

    Raises:
        UsageError: A rule has a part that Jena rules do not have.
    """
    return str(Program(tuple(_rule(rule) for rule in rules(system))))


def _rule(rule: System) -> Rule:
    if rule.sources != (Source(),) or rule.grouping or rule.slice or rule.distinct or rule.output or rule.stream:
        raise _error(rule, "windows, grouping or other parts of a query")
    body: list[jena.Clause] = [*(_pattern(rule, joinable) for joinable in rule.joinables), *_calls(rule)]
    head: list[jena.Clause] = [
        _pattern(rule, fact)
        for consequence in rule.consequences
        for fact in (consequence.template if isinstance(consequence, Construct) else (consequence,))
    ]
    return Rule(rule.name, tuple(head), tuple(body))


def _pattern(rule: System, part: object) -> jena.Pattern:
    """Returns a pattern of triples; a relation that a rule set derives for itself is a predicate again."""
    match part:
        case Pattern(exact=False):
            slots = part.slots
        case AtomPattern(relation=relation, arguments=(first, second), exact=False) if relation.startswith(HELPER):
            slots = (first, relation, second)
        case _:
            raise _error(rule, f"`{type(part).__name__}`")
    subject, predicate, object = (_node(rule, slot) for slot in slots)
    return jena.Pattern(subject, predicate, object)


def _calls(rule: System) -> Iterator[jena.Call]:
    for predicate in rule.predicates:
        match predicate:
            case Filter(expression=Call(function=function, arguments=arguments)):
                nodes = arguments
            case Bind(variable=variable, expression=Call(function=function, arguments=arguments), keep_unbound=False):
                nodes = (*arguments, variable)
            case _:
                raise _error(rule, f"`{type(predicate).__name__}`")
        yield jena.Call(_builtin(rule, function, len(nodes)), tuple(_node(rule, node) for node in nodes))


def _builtin(rule: System, function: str, count: int) -> str:
    """Returns the name of the built-in that a function is a meaning of, with so many arguments."""
    for name, builtin in functions.builtins("jena").items():
        is_meant = function == builtin.test or any(mode.function == function for mode in builtin.modes)
        if is_meant and builtin.least <= count <= (count if builtin.most is None else builtin.most):
            return name
    raise _error(rule, f"the function <{function}>")


def _node(rule: System, slot: Expression) -> jena.Node:
    if isinstance(slot, Call) or (isinstance(slot, str) and is_blank(Term(slot))):
        raise _error(rule, f"`{slot}` as a node")
    return jena.Node(slot)


def _error(rule: System, part: str) -> UsageError:
    hint = "`--format json` has all parts of a system"
    return UsageError(f"the rule `{rule.name}` cannot be written in `jena`: it has {part}", rule.origin, hint)
