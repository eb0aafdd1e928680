"""``endless-recursion``: rules that make new terms of new terms, over and over.

The test is joint acyclicity (Krötzsch and Rudolph, "Extending decidable existential rules by joining acyclicity and
guardedness", IJCAI 2011), with what functions make in the place of existential variables.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from squall import functions
from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, mentions, origin_of, readings
from squall.errors import Origin
from squall.model import Bind, Call, Construct, Exists, Expression, Filter, System, Variable, Without
from squall.model.fact_shapes import Shape, overlaps, shape
from squall.model.graphs import components, shortest_path
from squall.rdf import iri_text
from squall.rdf.compounds import BUILD, JOIN, LIMIT

_MAKE = frozenset((
    "addOne", "difference", "makeSkolem", "makeTemp", "product", "quotient", "strConcat", "subtractOne", "sum",
    "uriConcat", "bnode", "concat", "divide", "encode-for-uri", "md5", "multiply", "plus", "replace", "sha1", "sha256",
    "sha384", "sha512", "struuid", "subtract", "uuid", "numeric-add", "numeric-subtract", "numeric-multiply",
    "numeric-divide", "string-join", "append", "concatenate", "insert-before", "make-list", "build",
    "makeInstance", *(f"{sign}-{duration}{what}" for sign in ("add", "subtract")
                      for duration in ("dayTimeDuration", "yearMonthDuration")
                      for what in ("s", *(f"-{word}-{kind}" for word in ("to", "from")
                                          for kind in ("date", "dateTime", "time")))),
))  # fmt: skip
"""The local names of functions that make new terms of any terms, without end. All others that squall has test, choose
among their arguments, or come to an end when they are applied to what they made."""


def check(program: Program) -> Iterator[Finding]:
    """A finding for each function whose values come back to it through the rules, if nothing in its rule looks at what
    goes in or comes out: a test, or a negation, that might end it."""
    after = _feeding(program)
    for part in components(after):
        if len(part) > 1 or part[0] in after[part[0]]:
            yield from _cycles(program, sorted(part), after)


def _feeding(program: Program) -> dict[int, set[int]]:
    """For each rule, by number, the rules that read what it derives."""
    after: dict[int, set[int]] = {number: set() for number in range(len(program.rules))}
    for number, rule in enumerate(program.rules):
        for reading in readings(rule.system):
            for maker in program.makers(reading):
                if maker.stream is None:
                    after[maker.rule].add(number)
    return after


class _Made(NamedTuple):
    """A value that a function makes in a rule, by number, and the variables of which it does."""

    rule: int
    variable: Variable
    function: str
    inputs: frozenset[Variable]
    origin: Origin | None


_Place = tuple[int, Variable]
"""A variable of a rule."""


def _cycles(program: Program, part: list[int], after: dict[int, set[int]]) -> Iterator[Finding]:
    """The findings of rules that feed each other, by way of those that somebody wrote and no translator."""
    written = [number for number in part if program.rules[number].origin is not None]
    rules = {number: _Rule.of(program.rules[number].system) for number in written or part}
    made = [_Made(number, *one) for number, rule in rules.items() for one in rule.made]
    feeds: dict[_Made, list[_Made]] = {}
    for one in made:
        reached = _reached(one, rules)
        feeds[one] = [other for other in made if any((other.rule, name) in reached for name in other.inputs)]
    for found in components(feeds):
        one = min(found, key=lambda one: (one.rule, str(one.variable)))
        if len(found) > 1 or one in feeds[one]:
            yield _finding(program, one, part, after)


def _finding(program: Program, one: _Made, part: list[int], after: dict[int, set[int]]) -> Finding:
    edges: list[tuple[Hashable, Hashable]] = [
        (rule, following) for rule in part for following in after[rule] if following in part
    ]
    start = min((shortest_path(edges, following, one.rule) for rule, following in edges if rule == one.rule), key=len)
    names = " -> ".join(f"`{program.rules[number].name}`" for number in (one.rule, *start) if isinstance(number, int))
    made = "new terms" if " " in one.variable.name else f"`{one.variable}`"
    message = f"`{one.function}` makes {made} of what it made before, without end: {names}"
    hint = "let a test of the rule say where that ends, or read what no rule of the cycle makes"
    return Finding("endless-recursion", WARNING, message, one.origin or program.rules[one.rule].origin, hint)


# Where values go


@dataclass(frozen=True)
class _Rule:
    """What becomes of values in a rule: where it finds them, what it makes of them, and where it puts them."""

    found: dict[Variable, tuple[Reading, ...]]
    made: tuple[tuple[Variable, str, frozenset[Variable], Origin | None], ...]
    copied: tuple[tuple[Variable, frozenset[Variable]], ...]
    heads: tuple[tuple[Shape, int, Variable], ...]

    @classmethod
    def of(cls, rule: System) -> _Rule:
        found: dict[Variable, tuple[Reading, ...]] = {}
        for reading in readings(rule):
            for name in dict.fromkeys(mentions(reading.pattern)):
                found[name] = (*found.get(name, ()), reading)
        ending = [one for one in rule.predicates if isinstance(one, Filter | Without | Exists)]
        looked_at = {name for one in ending for name in mentions(one)}
        binds = [(one, _maker(one.expression)) for one in rule.predicates if isinstance(one, Bind)]
        return cls(
            found,
            tuple(
                (one.variable, made, frozenset(mentions(one.expression)), origin_of(one.expression))
                for one, made in binds
                if made is not None and not looked_at.intersection(mentions(one))
            ),
            tuple((one.variable, frozenset(mentions(one.expression))) for one, made in binds if made is None),
            tuple(_heads(rule)),
        )


def _heads(rule: System) -> Iterator[tuple[Shape, int, Variable]]:
    """Where a rule puts the values of its variables: cells of the facts that it makes."""
    for one in rule.consequences:
        for template in one.template if isinstance(one, Construct) else ():
            cells = shape(template)
            names = template.slots[-len(cells) :]
            for place, slot in enumerate(names, len(cells) - len(names)):
                if isinstance(slot, Variable):
                    yield cells, place, slot


def _reached(start: _Made, rules: dict[int, _Rule]) -> set[_Place]:
    """The variables of rules that may have the value: it may stand in all places where they are found."""
    reached: set[_Place] = set()
    new: set[_Place] = {(start.rule, start.variable)}
    while new:
        reached |= new
        cells = [(made, place) for number, rule in rules.items() for made, place, name in rule.heads
                 if (number, name) in reached]  # fmt: skip
        new = {one for number, rule in rules.items() for one in _given(number, rule, cells, reached)} - reached
    return reached


def _given(
    number: int, rule: _Rule, cells: Collection[tuple[Shape, int]], reached: Collection[_Place]
) -> Iterator[_Place]:
    for name, found in rule.found.items():
        if all(any(_stands(reading, name, *cell) for cell in cells) for reading in found):
            yield number, name
    for name, inputs in rule.copied:
        if any((number, one) in reached for one in inputs):
            yield number, name


def _stands(reading: Reading, name: Variable, made: Shape, place: int) -> bool:
    """Whether a pattern finds, as the value of a variable, what stands in a cell of the facts of a shape: surely, since
    they have its constants, and not only if data wish."""
    if not overlaps(reading.shape, made):
        return False
    slots = reading.pattern.slots
    at = place - (len(reading.shape) - len(slots))
    if at < 0 or slots[at] != name:
        return False
    return all(cell is not None for cell, wanted in zip(made, reading.shape, strict=True) if wanted is not None)


# Functions


def _maker(expression: Expression) -> str | None:
    """The name of a function in an expression that makes new terms; None if there is none."""
    if not isinstance(expression, Call):
        return None
    return next(filter(None, chain([_name(expression)], map(_maker, expression.arguments))), None)


def _name(call: Call) -> str | None:
    """The name of a function that makes new terms; of a compound term, its own. Lists that a rule makes longer have the
    limit of terms that are made: others that are joined are those of the data."""
    if call.function == LIMIT:
        return "List" if JOIN in {one.function for one in call.arguments if isinstance(one, Call)} else None
    if call.function == BUILD and isinstance(call.arguments[0], str):
        return _local(iri_text(call.arguments[0]))
    local = _local(call.function)
    return local if local in _MAKE or functions.lookup(call.function) in functions.own() else None


def _local(iri: str) -> str:
    return iri.replace("#", "/").replace(":", "/").rpartition("/")[2]
