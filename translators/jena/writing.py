"""Writes systems as Jena rules, as far as that language can say what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from squall import functions
from squall.lexers.jena import Program, Rule
from squall.lexers.jena import tree as jena
from squall.model import AtomPattern, Bind, Call, Expression, Filter, Joinable, Pattern, System
from squall.rdf import Term, is_blank
from squall.rulesets import HELPER
from squall.translators.valid_time import windowed_pattern
from squall.translators.writing import cannot_write, plain_rules, templates

_LANGUAGE = "jena"


def written(system: System) -> Program:
    """Returns a system as Jena rules, from which a system with the same meaning is read.

    Raises:
        UsageError: A rule has a part that Jena rules do not have.
    """
    return Program(tuple(map(_rule, plain_rules(system, _LANGUAGE))))


def _rule(rule: System) -> Rule:
    body: list[jena.Clause] = [*(_joined(rule, joinable) for joinable in rule.joinables), *_calls(rule)]
    head: list[jena.Clause] = [_pattern(rule, fact) for fact in templates(rule, _LANGUAGE)]
    return Rule(rule.name, tuple(head), tuple(body))


def _joined(rule: System, joinable: Joinable) -> jena.Pattern:
    """Returns a pattern of the body, which may have a window or times."""
    part = windowed_pattern(joinable)
    if part is None:
        return _pattern(rule, joinable)
    length = part.length if part.mode in ("in", "always", "at") else None
    window = jena.PatternWindow(part.mode, length, part.step, part.names)
    return replace(_pattern(rule, part.pattern), window=window)


def _pattern(rule: System, part: object) -> jena.Pattern:
    """Returns a pattern of triples; a relation that a rule set derives for itself is a predicate again."""
    match part:
        case Pattern(exact=False):
            slots = part.slots
        case AtomPattern(relation=relation, arguments=(first, second), exact=False) if relation.startswith(HELPER):
            slots = (first, relation, second)
        case _:
            raise cannot_write(rule, f"`{type(part).__name__}`", _LANGUAGE)
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
                raise cannot_write(rule, f"`{type(predicate).__name__}`", _LANGUAGE)
        yield jena.Call(_builtin(rule, function, len(nodes)), tuple(_node(rule, node) for node in nodes))


def _builtin(rule: System, function: str, count: int) -> str:
    """Returns the name of the built-in that a function is a meaning of, with so many arguments."""
    for name, builtin in functions.builtins("jena").items():
        is_meant = function == builtin.test or any(mode.function == function for mode in builtin.modes)
        if is_meant and builtin.least <= count <= (count if builtin.most is None else builtin.most):
            return name
    raise cannot_write(rule, f"the function <{function}>", _LANGUAGE)


def _node(rule: System, slot: Expression) -> jena.Node:
    if isinstance(slot, Call) or (isinstance(slot, str) and is_blank(Term(slot))):
        raise cannot_write(rule, f"`{slot}` as a node", _LANGUAGE)
    return jena.Node(slot)
