"""The check ``endless-recursion``: rules that derive new terms from new terms without end.

The test is joint acyclicity (Krötzsch and Rudolph, "Extending decidable existential rules by joining acyclicity and
guardedness", IJCAI 2011), with the values of functions in place of existential variables.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, mentions, origin_of, readings
from squall.errors import Origin
from squall.functions.creation import creating_function
from squall.model import Bind, Construct, Exists, Filter, Negation, System, Variable
from squall.model.fact_shapes import Shape, overlaps, shape
from squall.model.graphs import components, shortest_path


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each function whose values come back to it through the rules.

    There is none if something in its rule looks at its input or output and might end the recursion: a test or a
    negation.
    """
    successors = _rule_successors(program)
    for part in components(successors):
        if len(part) > 1 or part[0] in successors[part[0]]:
            yield from _cycles(program, sorted(part), successors)


def _rule_successors(program: Program) -> dict[int, set[int]]:
    """Returns for each rule, by number, the rules that read what it derives."""
    successors: dict[int, set[int]] = {number: set() for number in range(len(program.rules))}
    for number, rule in enumerate(program.rules):
        for reading in readings(rule.system):
            for maker in program.makers(reading):
                if maker.stream is None:
                    successors[maker.rule].add(number)
    return successors


class _CreatedValue(NamedTuple):
    """A value that a function creates in a rule (by number), and the variables that it depends on."""

    rule: int
    variable: Variable
    function: str
    inputs: frozenset[Variable]
    origin: Origin | None


_RuleVariable = tuple[int, Variable]
"""A variable of a rule."""


def _cycles(program: Program, part: list[int], successors: dict[int, set[int]]) -> Iterator[Finding]:
    """Yields the findings of rules that feed each other, by way of rules with an origin."""
    with_origin = [number for number in part if program.rules[number].origin is not None]
    rules = {number: _Rule.of(program.rules[number].system) for number in with_origin or part}
    values = [_CreatedValue(number, *value) for number, rule in rules.items() for value in rule.created]
    feeds: dict[_CreatedValue, list[_CreatedValue]] = {}
    for value in values:
        reachable = _reached(value, rules)
        feeds[value] = [
            input_value
            for input_value in values
            if any((input_value.rule, name) in reachable for name in input_value.inputs)
        ]
    for cycle in components(feeds):
        value = min(cycle, key=lambda value: (value.rule, str(value.variable)))
        if len(cycle) > 1 or value in feeds[value]:
            yield _finding(program, value, part, successors)


def _finding(program: Program, value: _CreatedValue, part: list[int], successors: dict[int, set[int]]) -> Finding:
    edges: list[tuple[Hashable, Hashable]] = [
        (rule, following) for rule in part for following in successors[rule] if following in part
    ]
    start = min(
        (shortest_path(edges, following, value.rule) for rule, following in edges if rule == value.rule), key=len
    )
    names = " -> ".join(f"`{program.rules[number].name}`" for number in (value.rule, *start) if isinstance(number, int))
    what = "new terms" if " " in value.variable.name else f"`{value.variable}`"
    message = f"`{value.function}` makes {what} of what it made before, without end: {names}"
    hint = "let a test of the rule say where that ends, or read what no rule of the cycle makes"
    return Finding("endless-recursion", WARNING, message, value.origin or program.rules[value.rule].origin, hint)


# Where values go


@dataclass(frozen=True)
class _Rule:
    """How values flow in a rule: where it reads them, what it creates from them, and where it writes them."""

    readings: dict[Variable, tuple[Reading, ...]]
    created: tuple[tuple[Variable, str, frozenset[Variable], Origin | None], ...]
    copied: tuple[tuple[Variable, frozenset[Variable]], ...]
    heads: tuple[tuple[Shape, int, Variable], ...]

    @classmethod
    def of(cls, rule: System) -> _Rule:
        readings_by_variable: dict[Variable, tuple[Reading, ...]] = {}
        for reading in readings(rule):
            for name in dict.fromkeys(mentions(reading.pattern)):
                readings_by_variable[name] = (*readings_by_variable.get(name, ()), reading)
        tests = [predicate for predicate in rule.predicates if isinstance(predicate, Filter | Negation | Exists)]
        tested_variables = {name for predicate in tests for name in mentions(predicate)}
        binds = [
            (predicate, creating_function(predicate.expression))
            for predicate in rule.predicates
            if isinstance(predicate, Bind)
        ]
        return cls(
            readings_by_variable,
            tuple(
                (
                    predicate.variable,
                    function,
                    frozenset(mentions(predicate.expression)),
                    origin_of(predicate.expression),
                )
                for predicate, function in binds
                if function is not None and not tested_variables.intersection(mentions(predicate))
            ),
            tuple(
                (predicate.variable, frozenset(mentions(predicate.expression)))
                for predicate, function in binds
                if function is None
            ),
            tuple(_heads(rule)),
        )


def _heads(rule: System) -> Iterator[tuple[Shape, int, Variable]]:
    """Yields the cells of derived facts in which a rule writes the values of its variables."""
    for consequence in rule.consequences:
        for template in consequence.template if isinstance(consequence, Construct) else ():
            cells = shape(template)
            names = template.slots[-len(cells) :]
            for position, slot in enumerate(names, len(cells) - len(names)):
                if isinstance(slot, Variable):
                    yield cells, position, slot


def _reached(start: _CreatedValue, rules: dict[int, _Rule]) -> set[_RuleVariable]:
    """Returns the variables of rules that may have the value: all cells in which they are read may hold it."""
    reachable: set[_RuleVariable] = set()
    new: set[_RuleVariable] = {(start.rule, start.variable)}
    while new:
        reachable |= new
        cells = [(fact_shape, position) for number, rule in rules.items() for fact_shape, position, name in rule.heads
                 if (number, name) in reachable]  # fmt: skip
        new = {
            variable for number, rule in rules.items() for variable in _receiving(number, rule, cells, reachable)
        } - reachable
    return reachable


def _receiving(
    number: int, rule: _Rule, cells: Collection[tuple[Shape, int]], reachable: Collection[_RuleVariable]
) -> Iterator[_RuleVariable]:
    for name, rule_readings in rule.readings.items():
        if all(any(_binds(reading, name, *cell) for cell in cells) for reading in rule_readings):
            yield number, name
    for name, inputs in rule.copied:
        if any((number, input_name) in reachable for input_name in inputs):
            yield number, name


def _binds(reading: Reading, name: Variable, fact_shape: Shape, position: int) -> bool:
    """Returns whether a pattern binds a variable to what stands in a cell of the facts of a shape.

    It does so for certain: the facts have all constants of the pattern.
    """
    if not overlaps(reading.shape, fact_shape):
        return False
    slots = reading.pattern.slots
    slot = position - (len(reading.shape) - len(slots))
    if slot < 0 or slots[slot] != name:
        return False
    return all(
        cell is not None for cell, constant in zip(fact_shape, reading.shape, strict=True) if constant is not None
    )
