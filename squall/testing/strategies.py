"""Hypothesis strategies: programs over a vocabulary so small that everything meets everything, and streams for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from hypothesis import strategies as st

from squall.functions.jena import function_iri
from squall.rdf import ALWAYS, XSD, Event, Term, Triple, iri, literal
from squall.system import (
    Bind,
    Call,
    Construct,
    Expression,
    Pattern,
    Predicate,
    Slot,
    System,
    Test,
    Variable,
    Without,
    variables,
)

NODES = tuple(iri(f"http://example.org/{name}") for name in "abc")
LITERALS = (
    literal("1", XSD + "int"),
    literal("01", XSD + "integer"),
    literal("1.0", XSD + "double"),
    literal("2", XSD + "integer"),
    literal("1"),
)
"""Some are one value in several forms; the last is a string."""
LEVELS = tuple(tuple(iri(f"http://example.org/{name}") for name in names) for names in (("p", "q"), ("r",), ("s",)))
"""Predicates by stratum: a rule reads its own level and those below it, and negates only those below."""

_NAMES = tuple(map(Variable, "xyz"))
_MADE = Variable("made")
_BASE, _DERIVED = LEVELS[0], tuple(predicate for level in LEVELS[1:] for predicate in level)
# What is listed several times is drawn more often: nodes rather than literals, data rather than what rules make.
_FACTS = tuple(
    Triple(subject, predicate, value)
    for subject, predicate, value in product(NODES, 3 * _BASE + _DERIVED, 3 * NODES + LITERALS)
)
_TESTS = tuple(
    (function_iri(name), (left, right))
    for name, left, right in product(("equal", "notEqual", "lessThan", "ge"), _NAMES, _NAMES + LITERALS[:3])
    if left != right
) + tuple((function_iri(name), (left,)) for name, left in product(("isLiteral", "notLiteral", "unbound"), _NAMES))
_BINDS = tuple(
    (function_iri(name), arguments)
    for name, arguments in product(("sum", "strConcat", "max"), product(_NAMES, _NAMES + LITERALS[1:4]))
)


@dataclass(frozen=True)
class _Shape:
    """What a rule may say: the level that its head is on, and whether its program negates anything."""

    level: int
    negation: bool

    @property
    def below(self) -> tuple[Term, ...]:
        return tuple(predicate for level in LEVELS[: self.level] for predicate in level)

    @property
    def readable(self) -> tuple[Slot, ...]:
        """A variable for a predicate reads every level: only what nothing negates may depend on it."""
        known = (*_BASE, *_BASE, *self.below, *LEVELS[self.level])
        return (*known, _NAMES[-1]) if not self.negation or self.level == len(LEVELS) - 1 else known


def facts() -> st.SearchStrategy[Triple]:
    """A triple of the vocabulary."""
    return st.sampled_from(_FACTS)


def event_streams(least: int = 5, most: int = 10) -> st.SearchStrategy[list[Event]]:
    """Events in the order of time: several facts at once, the same fact twice, several events at one time, pauses."""
    together = st.lists(facts(), min_size=2, max_size=5).map(tuple)
    event = st.builds(Event, st.integers(0, 5), st.one_of(together, together, together, st.just(())))
    events = st.lists(event, min_size=least, max_size=most)
    return events.map(lambda found: sorted(found, key=lambda one: one.time))


def static_data(most: int = 3) -> st.SearchStrategy[list[Event]]:
    """Facts that always hold."""
    return st.lists(facts().map(lambda fact: Event(ALWAYS, (fact,))), max_size=most)


@st.composite
def systems(draw: st.DrawFn, output: str | None = None) -> System:
    """A program of one to four rules that can be stratified and ends: recursion makes no new terms.

    Joins, repeated variables, constants (literals that are equal by value among them), several heads, axioms, tests,
    binds and, in half of the programs, negation. `output` is drawn where it is not given.
    """
    negation = draw(st.booleans())
    levels = draw(st.lists(st.integers(0, len(LEVELS) - 1), min_size=1, max_size=4))
    program = [draw(_rules(f"r{number}", _Shape(level, negation))) for number, level in enumerate(levels)]
    outputs = ["istream", "istream", "rstream", "dstream"] if negation else ["istream", "istream", "rstream"]
    return System(subsystems=tuple(program), output=output or draw(st.sampled_from(outputs)))


def jena_texts() -> st.SearchStrategy[tuple[str, System]]:
    """A program as Jena rules, and the system that it has to mean, for a translator to be held against."""
    sayable = systems(output="istream").filter(lambda system: all(map(_is_jena, system.subsystems)))
    return sayable.map(lambda system: (jena_text(system), system))


def _is_jena(rule: System) -> bool:
    """Whether Jena rules can say it: they compute of what is bound only, and a wildcard of ``noValue`` has no name."""
    bound = {name for pattern in rule.joinables for name in variables(pattern)} | {_MADE}
    for part in rule.predicates:
        if isinstance(part, Bind) and not bound.issuperset(variables(part.expression)):
            return False
        if isinstance(part, Without):
            wild = [name for pattern in part.joinables for name in variables(pattern) if name not in bound]
            if len(set(wild)) < len(wild):
                return False
    return True


@st.composite
def _rules(draw: st.DrawFn, name: str, shape: _Shape) -> System:
    if draw(st.integers(0, 11)) == 11:
        return System(name, consequences=(Construct((draw(_heads(shape, (), ())),)),))
    binds = shape.level > 0 and draw(st.integers(0, 3)) == 0
    # What makes new terms reads only what lies below, so that making them does not recur.
    body = tuple(draw(st.lists(_patterns(shape.below if binds else shape.readable), min_size=1, max_size=3)))
    known = tuple(dict.fromkeys(name for pattern in body for name in variables(pattern)))
    subjects = tuple(dict.fromkeys(slot for pattern in body if isinstance(slot := pattern.subject, Variable)))
    predicates = draw(_predicates(shape, known, binds))
    made = [part.variable for part in predicates if isinstance(part, Bind)]
    heads = draw(st.lists(_heads(shape, subjects, (*known, *made)), min_size=1, max_size=2))
    return System(name, joinables=body, predicates=predicates, consequences=(Construct(tuple(heads)),))


@cache
def _patterns(predicates: tuple[Slot, ...]) -> st.SearchStrategy[Pattern]:
    subjects: tuple[Slot, ...] = (*_NAMES, *_NAMES, *_NAMES, NODES[0])
    values: tuple[Slot, ...] = (*_NAMES, *_NAMES, *_NAMES, *NODES[:2], *LITERALS[:2])
    slots = product(subjects, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


@cache
def _heads(shape: _Shape, subjects: tuple[Variable, ...], objects: tuple[Variable, ...]) -> st.SearchStrategy[Pattern]:
    """A head: its subject is never a literal, since only what was a subject may become one."""
    known: tuple[Slot, ...] = (*subjects, *subjects, NODES[0])
    values: tuple[Slot, ...] = (*objects, *objects, NODES[0], LITERALS[0])
    slots = product(known, LEVELS[shape.level], values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


@st.composite
def _predicates(draw: st.DrawFn, shape: _Shape, known: Sequence[Variable], binds: bool) -> tuple[Predicate, ...]:
    """Tests, binds and negations whose variables the body knows; where it does not, they are unbound."""
    found: list[Predicate] = []
    if known and draw(st.integers(0, 2)) == 0:
        found.append(Test(Call(*draw(st.sampled_from(_TESTS)))))
    if binds:
        found.append(Bind(_MADE, Call(*draw(st.sampled_from(_BINDS)))))
    if shape.negation and shape.below and draw(st.booleans()):
        found.append(Without((draw(_negated(shape.below)),)))
    return tuple(found)


@cache
def _negated(predicates: tuple[Term, ...]) -> st.SearchStrategy[Pattern]:
    """One pattern over what lies below; ``?u`` and ``?v`` are variables of its own."""
    subjects: tuple[Slot, ...] = (*_NAMES, *_NAMES, Variable("u"), NODES[0])
    values: tuple[Slot, ...] = (*_NAMES, Variable("v"), Variable("v"), LITERALS[1])
    slots = product(subjects, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


# Systems as text


def jena_text(system: System) -> str:
    """A program of `systems` as Jena rules (its output apart, which the language does not say)."""
    return "\n".join(map(_jena_rule, system.subsystems)) + "\n"


def _jena_rule(rule: System) -> str:
    body = [*map(_jena_pattern, rule.joinables), *map(_jena_predicate, rule.predicates)]
    heads = [_jena_pattern(template) for construct in rule.consequences for template in construct.template]
    return f"[{rule.name}: {' '.join(body)} -> {' '.join(heads)}]"


def _jena_pattern(pattern: object) -> str:
    if not isinstance(pattern, Pattern):
        raise ValueError(f"Jena rules have triple patterns only, not {pattern!r}")
    return f"({' '.join(map(_jena_slot, pattern.slots))})"


def _jena_slot(slot: Expression) -> str:
    return str(slot).replace('"', "'")


def _jena_predicate(predicate: Predicate) -> str:
    match predicate:
        case Test(expression=call):
            return _jena_call(call, ())
        case Bind(variable=variable, expression=Call() as call):
            return _jena_call(call, (variable,))
        case Without(joinables=(Pattern() as pattern,)):
            return f"noValue{_jena_pattern(pattern)}"
        case _:
            raise ValueError(f"Jena rules cannot say {predicate!r}")


def _jena_call(call: Call, results: tuple[Variable, ...]) -> str:
    name = call.function.rpartition(":")[2]
    return f"{name}({' '.join(map(_jena_slot, (*call.arguments, *results)))})"
