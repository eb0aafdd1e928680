"""The translation of one rule of a LARS program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from squall.errors import Origin, SquallError, TranslatorError
from squall.functions.sparql.names import SPARQL, test_iri
from squall.lexers.lars import tree
from squall.model import (
    At,
    AtomPattern,
    Bind,
    Call,
    Construct,
    Dilate,
    Erode,
    Expression,
    FactPattern,
    Filter,
    Joinable,
    NotExists,
    Pattern,
    Predicate,
    Schedule,
    Select,
    System,
    Variable,
    variables,
)
from squall.model.fact_shapes import overlaps, shape
from squall.rdf.vocabulary import TYPE
from squall.translators.common import is_subject
from squall.translators.lars.times import Times

_OPERATIONS = {"+": "plus", "-": "subtract", "*": "multiply", "/": "divide"}
_COMPARISONS = {
    "=": "equals", "!=": "not-equals", "<": "less-than", ">": "greater-than", "<=": "less-than-or-equal",
    ">=": "greater-than-or-equal",
}  # fmt: skip


def pattern_of(atom: tree.Atom) -> FactPattern:
    """Returns the pattern, or the template, of an atom."""
    match atom.arguments:
        case (argument,):
            return Pattern(argument, TYPE, atom.relation, origin=atom.origin)
        case (subject, value):
            return Pattern(subject, atom.relation, value, origin=atom.origin)
        case arguments:
            return AtomPattern(atom.relation, arguments, origin=atom.origin)


class RuleTranslator:
    """Translates a rule.

    Args:
        name: The name of the rule.
        rule: The rule.
        times: The unit of time of the program.
        heads: What the rules of the program derive.
        errors: The errors, to which those of the rule are added.
    """

    def __init__(
        self, name: str, rule: tree.Rule, times: Times, heads: Sequence[FactPattern], errors: list[SquallError]
    ) -> None:
        self.name = name
        self.rule = rule
        self.times = times
        self.heads = heads
        self.errors = errors
        self.sources = (times.source,)
        self.joinables: list[Joinable] = []
        self.predicates: list[Predicate] = []
        self.bound: set[Variable] = set()

    def system(self) -> System:
        """Returns the system of the rule."""
        head = pattern_of(self.rule.head)
        self._check_head(head)
        for condition in self.rule.body:
            if not condition.negated:
                self._add_atoms(condition)
        parts = [(part, condition) for condition in self.rule.body for part in condition.parts]
        self._add_comparisons([part for part, _ in parts if isinstance(part, tree.Comparison)])
        for condition in self.rule.body:
            if condition.negated:
                self._negate(condition)
        for name in dict.fromkeys(variables(head)):
            self._check_bound(name, self.rule.head.origin, "the head has")
        if self.rule.time is not None:
            self._schedule(head, self.rule.time)
        return System(
            self.name,
            self.sources,
            tuple(self.joinables),
            tuple(self.predicates),
            consequences=(Construct((head,)),),
            origin=self.rule.origin,
        )

    # Atoms

    def _add_atoms(self, condition: tree.Condition) -> None:
        for part in condition.parts:
            if isinstance(part, tree.Atom):
                joinable = self._windowed(part, condition.window)
                self.joinables.append(joinable)
                self.bound.update(variables(joinable))
            elif condition.window is not None and len(condition.parts) == 1:
                self._fail("a comparison has no window", condition.window.origin, "it holds always, or never")

    def _windowed(self, atom: tree.Atom, window: tree.Window | None) -> Joinable:
        """Returns an atom through a window."""
        pattern = pattern_of(atom)
        if window is None:
            return self._named(pattern) if _has_anonymous(pattern) else pattern
        try:
            if window.length is None:
                return self._last_tuples(pattern, window, atom)
            length = self.times.milliseconds(window.length)
            step = 0 if window.step is None else self.times.milliseconds(window.step)
        except TranslatorError as error:
            self.errors.append(error)
            return pattern
        system = self._named(pattern)
        match window:
            case tree.Window(mode="always"):
                return Erode(system, length, step, origin=window.origin)
            case tree.Window(mode="at", variable=Variable() as variable):
                if variable in variables(pattern):
                    hint = "give the time another name, and compare the two"
                    self._fail(f"`{variable.name}` is a variable of the atom", window.origin, hint)
                return At(system, variable, length, self.times.tick, step, origin=window.origin)
            case _:
                return Dilate(system, length, step, origin=window.origin)

    def _named(self, pattern: FactPattern) -> System:
        """Returns a system of the solutions of a pattern without its anonymous variables."""
        names = tuple(dict.fromkeys(name for name in variables(pattern) if not _is_anonymous(name)))
        return System(sources=self.sources, joinables=(pattern,), consequences=(Select(names),), origin=pattern.origin)

    def _last_tuples(self, pattern: FactPattern, window: tree.Window, atom: tree.Atom) -> Joinable:
        """Returns an atom through a window of tuples."""
        if window.mode != "in":
            raise TranslatorError(
                f"a window of tuples has no `{window.mode}`",
                window.origin,
                "read it by `in`, or use a window of time, `[10 sec]`",
            )
        if any(overlaps(shape(pattern), shape(head)) for head in self.heads):
            raise TranslatorError(
                f"a window of tuples counts what streams bring, and a rule derives `{atom}`",
                window.origin,
                "use a window of time, `[10 sec]`, or another name in the head",
            )
        system = replace(self._named(pattern), sources=(self.times.tuples(window.tuples or 1),))
        return Dilate(system, 0, self.times.tick, origin=window.origin) if self.times.tick > 1 else system

    def _negate(self, condition: tree.Condition) -> None:
        """Adds a negated condition."""
        if len(condition.parts) > 1 or isinstance(condition.parts[0], tree.Comparison):
            hint = "give the conjunction a head of its own, and negate that"
            self._fail("`not` stands in front of one atom", condition.origin, hint)
            return
        joinable = self._windowed(condition.parts[0], condition.window)
        for name in dict.fromkeys(variables(joinable)):
            if not _is_anonymous(name):
                self._check_bound(name, condition.origin, "`not` has")
        self.predicates.append(NotExists((joinable,), origin=condition.origin))

    # Comparisons

    def _add_comparisons(self, comparisons: Sequence[tree.Comparison]) -> None:
        """Adds the comparisons of the body: those that give a variable its value as soon as they can."""
        waiting = list(comparisons)
        while waiting:
            ready = next((item for item in waiting if self._predicate(item) is not None), None)
            if ready is None:
                break
            waiting.remove(ready)
            predicate = self._predicate(ready)
            assert predicate is not None
            self.predicates.append(predicate)
            if isinstance(predicate, Bind):
                self.bound.add(predicate.variable)
        for item in waiting:
            for name in dict.fromkeys((*_names(item.left), *_names(item.right))):
                self._check_bound(name, item.origin, "the comparison has")

    def _predicate(self, comparison: tree.Comparison) -> Predicate | None:
        """Returns a comparison as a predicate; None while it has variables without a value."""
        left, right = comparison.left, comparison.right
        if self._is_bound(left) and self._is_bound(right):
            function = test_iri(_COMPARISONS[comparison.sign])
            return Filter(Call(function, (_expression(left), _expression(right)), comparison.origin))
        if comparison.sign != "=":
            return None
        for target, value in ((left, right), (right, left)):
            if isinstance(target, Variable) and target not in self.bound and self._is_bound(value):
                return Bind(target, _expression(value))
        return None

    def _is_bound(self, expression: tree.Expression) -> bool:
        return self.bound.issuperset(_names(expression))

    # Heads

    def _check_head(self, head: FactPattern) -> None:
        """Records an error if the facts of the head would be no RDF."""
        if isinstance(head, Pattern) and not is_subject(head.subject):
            self._fail("a literal cannot be the subject of a triple", head.origin, "exchange the arguments")
        if _has_anonymous(head):
            self._fail("the head has `_`, which has no value", head.origin, "name a variable of the body")

    def _schedule(self, head: FactPattern, time: tree.Expression) -> None:
        """Puts the body into a system whose solutions hold at the time of the head."""
        for name in dict.fromkeys(_names(time)):
            self._check_bound(name, self.rule.origin, "the time of the head has")
        variable = Variable("time of the head")
        names = tuple(dict.fromkeys((*variables(head), variable)))
        body = System(
            self.name,
            self.sources,
            tuple(self.joinables),
            (*self.predicates, Bind(variable, _expression(time))),
            consequences=(Select(names),),
            origin=self.rule.origin,
        )
        self.joinables = [Schedule(body, variable, self.times.tick, origin=self.rule.origin)]
        self.predicates = []

    # Errors

    def _check_bound(self, name: Variable, origin: Origin | None, place: str) -> None:
        if name not in self.bound and not _is_anonymous(name):
            hint = f"bind `{name.name}` in an atom of the body that is not negated"
            self._fail(f"{place} the variable `{name.name}`, which has no value: the rule is unsafe", origin, hint)
            self.bound.add(name)  # one error for each variable
        elif _is_anonymous(name) and name not in self.bound:
            self._fail(f"{place} `_`, which has no value", origin, "name a variable of the body")

    def _fail(self, message: str, origin: Origin | None, hint: str) -> None:
        self.errors.append(TranslatorError(message, origin, hint))


def _is_anonymous(name: Variable) -> bool:
    return name.name.startswith(f"{tree.ANONYMOUS} ")


def _has_anonymous(pattern: FactPattern) -> bool:
    return any(map(_is_anonymous, variables(pattern)))


def _names(expression: tree.Expression) -> Iterator[Variable]:
    match expression:
        case Variable():
            yield expression
        case tree.Operation(left=left, right=right):
            yield from (*_names(left), *_names(right))


def _expression(expression: tree.Expression) -> Expression:
    match expression:
        case tree.Operation(sign=sign, left=left, right=right):
            return Call(SPARQL + _OPERATIONS[sign], (_expression(left), _expression(right)))
        case _:
            return expression
