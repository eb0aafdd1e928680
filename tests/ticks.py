"""An evaluator of LARS programs that goes from tick to tick, over their syntax tree. It is too simple to be wrong.

It knows no intervals and shares nothing with the translator, the planners and the builders. At each tick it applies the
rules to all that holds now and has held before, stratum by stratum, until nothing new comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from squall.functions.values import integer, number
from squall.lexers.lars import tree
from squall.model import Variable
from squall.rdf import Atom, Fact, Term, Triple, iri
from squall.rdf.vocabulary import TYPE

UNITS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
Bindings = dict[str, Term]


class Ground(NamedTuple):
    """A ground atom."""

    relation: Term
    arguments: tuple[Term, ...]

    @property
    def fact(self) -> Fact:
        match self.arguments:
            case (subject,):
                return Triple(subject, TYPE, self.relation)
            case (subject, value):
                return Triple(subject, self.relation, value)
            case arguments:
                return Atom(self.relation, arguments)


def ground(relation: str, *arguments: str) -> Ground:
    """Returns an atom over names with the prefix ``urn:``."""
    return Ground(iri(f"urn:{relation}"), tuple(iri(f"urn:{argument}") for argument in arguments))


def is_rdf(atom: Ground) -> bool:
    """Returns whether an atom may be in an answer."""
    return len(atom.arguments) not in (1, 2) or atom.arguments[0][0] != '"'


class Ticks:
    """The run of a program.

    Args:
        program: The program.
        arrivals: What arrives, in order, each with its tick.
        strata: The levels of the relations, by relation and number of arguments; 0 for those that nothing derives.
    """

    def __init__(
        self,
        program: tree.Program,
        arrivals: Sequence[tuple[int, Ground]],
        strata: Callable[[Term, int], int],
    ) -> None:
        self.program = program
        self.arrivals = arrivals
        self.strata = strata
        self.tick = 1 if program.tick is None else program.tick.number * UNITS[program.tick.unit]
        self.models: dict[int, set[Ground]] = {}
        self.scheduled: dict[int, set[Ground]] = {}

    def run(self, ticks: Iterable[int]) -> Mapping[int, set[Ground]]:
        """Returns what rules derive at each of these ticks, the first of which is not later than any arrival."""
        derived: dict[int, set[Ground]] = {}
        for now in ticks:
            brought = {atom for tick, atom in self.arrivals if tick == now}
            facts = set(self.scheduled.get(now, ()))
            self.models[now] = brought | facts
            levels = {self._level(rule.head) for rule in self.program.rules}
            for level in sorted(levels):
                rules = [rule for rule in self.program.rules if self._level(rule.head) == level]
                size = -1
                while size != len(facts):
                    size = len(facts)
                    for rule in rules:
                        facts |= set(self._derived(rule, now))
                        self.models[now] |= facts
            derived[now] = facts
        return derived

    def _level(self, atom: tree.Atom) -> int:
        return self.strata(atom.relation, len(atom.arguments))

    def _derived(self, rule: tree.Rule, now: int) -> Iterator[Ground]:
        for solution in list(self._solutions(list(rule.body), {}, now)):
            atom = Ground(rule.head.relation, tuple(value_of(item, solution) for item in rule.head.arguments))
            if rule.time is None:
                yield atom
                continue
            time = number(value_of(rule.time, solution))
            if time is not None and time.value == now:
                yield atom
            elif time is not None and time.value > now:
                self.scheduled.setdefault(int(time.value), set()).add(atom)

    def _solutions(self, body: list[tree.Condition], bound: Bindings, now: int) -> Iterator[Bindings]:
        """Yields the solutions of a body: atoms first, then comparisons, then negations."""
        conditions = [
            tree.Condition((part,), condition.window, condition.negated)
            for condition in body
            for part in condition.parts
        ]
        conditions.sort(key=lambda item: (item.negated, isinstance(item.parts[0], tree.Comparison)))
        solutions = [bound]
        for condition in conditions:
            solutions = [more for solution in solutions for more in self._extended(condition, solution, now)]
        yield from solutions

    def _extended(self, condition: tree.Condition, solution: Bindings, now: int) -> Iterator[Bindings]:
        (part,) = condition.parts
        if isinstance(part, tree.Comparison):
            yield from compared(part, solution)
        elif not condition.negated:
            yield from self._matches(part, condition.window, solution, now)
        elif not list(self._matches(part, condition.window, solution, now)):
            yield solution

    def _matches(self, atom: tree.Atom, window: tree.Window | None, solution: Bindings, now: int) -> Iterator[Bindings]:
        if window is None:
            yield from matches(atom, self.models[now], solution)
            return
        if window.tuples is not None:
            arrived = [item for tick, item in self.arrivals if tick <= now]
            yield from matches(atom, arrived[-window.tuples :], solution)
            return
        assert window.length is not None
        step = self._ticks(window.step) if window.step else 1
        last = now // step * step
        ticks = range(last - self._ticks(window.length), last + 1)
        if window.mode == "always":
            per_tick = [list(matches(atom, self.models.get(tick, set()), solution)) for tick in ticks]
            yield from (item for item in per_tick[0] if all(item in others for others in per_tick[1:]))
            return
        for tick in ticks:
            for match in matches(atom, self.models.get(tick, set()), solution):
                if window.variable is None:
                    yield match
                elif match.get(window.variable.name, integer(tick)) == integer(tick):
                    yield {**match, window.variable.name: integer(tick)}

    def _ticks(self, length: tree.Length) -> int:
        return length.number if not length.unit else length.number * UNITS[length.unit] // self.tick


def matches(atom: tree.Atom, facts: Iterable[Ground], solution: Bindings) -> Iterator[Bindings]:
    """Yields the solutions extended by facts that match an atom. `_` is not part of them."""
    for fact in facts:
        if fact.relation != atom.relation or len(fact.arguments) != len(atom.arguments):
            continue
        extended = dict(solution)
        for slot, term in zip(atom.arguments, fact.arguments, strict=True):
            if not isinstance(slot, Variable):
                if slot != term:
                    break
            elif extended.setdefault(slot.name, term) != term:
                break
        else:
            yield {name: term for name, term in extended.items() if not name.startswith("_ ")}


def compared(part: tree.Comparison, solution: Bindings) -> Iterator[Bindings]:
    """Yields the solution if a comparison holds, with the value that it gives to a variable."""
    for target, other in ((part.left, part.right), (part.right, part.left)):
        if part.sign == "=" and isinstance(target, Variable) and target.name not in solution:
            yield {**solution, target.name: value_of(other, solution)}
            return
    left, right = value_of(part.left, solution), value_of(part.right, solution)
    numbers = number(left), number(right)
    if part.sign in ("=", "!="):
        yield from [solution] if (left == right) == (part.sign == "=") else []
    elif numbers[0] is not None and numbers[1] is not None:
        a, b = int(numbers[0].value), int(numbers[1].value)
        if {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[part.sign]:
            yield solution


def value_of(expression: tree.Expression, solution: Bindings) -> Term:
    """Returns the value of an expression over integers."""
    match expression:
        case Variable(name=name):
            return solution[name]
        case tree.Operation(sign=sign, left=left, right=right):
            a, b = (number(value_of(item, solution)) for item in (left, right))
            assert a is not None
            assert b is not None
            return integer(int(a.value) + int(b.value) if sign == "+" else int(a.value) - int(b.value))
        case _:
            return expression
