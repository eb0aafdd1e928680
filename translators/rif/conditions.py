"""Conditions of RIF as bodies of rules: what binds variables first, then what computes and tests, as soon as it can.

A condition is turned into alternatives: conjunctions of formulas without `Or` and `Exists`. A variable of an `Exists`
gets a name of its own, since it may be called like another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, product

from squall.errors import Origin, SquallError, TranslatorError
from squall.functions import Builtin
from squall.functions.rif.names import SAME
from squall.lexers.rif import tree
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Expression,
    FactPattern,
    Filter,
    Joinable,
    Pattern,
    Predicate,
    Slot,
    System,
    TableFunction,
    Variable,
)
from squall.model import variables as variables_of
from squall.rdf import iri
from squall.translators.common import Built, Part, expression, taken, unfolded
from squall.translators.rif.terms import EQUAL, SUBCLASS, TYPE, Constants, Terms, builtin, named, ordered

MOST = 256
"""How many alternatives a condition may have: each is a rule."""

Leaf = tree.Atom | tree.Equal | tree.Member | tree.Subclass | tree.Frame | tree.External


@dataclass(frozen=True)
class Literal:
    """A formula of a conjunction, with what its variables are called. concluded: an equation that rules conclude."""

    formula: Leaf
    names: Mapping[str, Variable]
    concluded: bool = False


@dataclass
class Fresh:
    """Makes variables that no text can have: a name in it has no blank, or stands in quotes."""

    numbers: Iterator[int] = field(default_factory=count)

    def __call__(self, like: str = "new") -> Variable:
        return Variable(f"{like} {next(self.numbers)}")


def alternatives(
    formula: tree.Formula, names: Mapping[str, Variable], fresh: Fresh, equality: bool
) -> list[tuple[Literal, ...]]:
    """The conjunctions of which one has to hold. Raises TranslatorError where there are too many.

    equality: whether rules conclude ``=``: then an equation holds where they do, or of what is the same anyhow.
    """
    match formula:
        case tree.Equal() if equality:
            return [(Literal(formula, names),), (Literal(formula, names, concluded=True),)]
        case tree.And(formulas=formulas):
            each = [alternatives(inner, names, fresh, equality) for inner in formulas]
            _check_count(each, formula.origin)
            return [tuple(literal for part in parts for literal in part) for parts in product(*each)]
        case tree.Or(formulas=formulas):
            return [literal for inner in formulas for literal in alternatives(inner, names, fresh, equality)]
        case tree.Exists(variables=bound, formula=inner):
            renamed = {literal.name: fresh(literal.name) for literal in bound}
            return alternatives(inner, {**names, **renamed}, fresh, equality)
        case _:
            return [(Literal(formula, names),)]


def _check_count(each: Sequence[Sequence[object]], origin: Origin | None) -> None:
    size = 1
    for alternative in each:
        size *= len(alternative)
        if size > MOST:
            hint = "make rules of its `Or`s that conclude a relation, and use that"
            raise TranslatorError(f"this condition has more than {MOST} alternatives", origin, hint)


class Body:
    """The body of a rule for one conjunction. possible: whether it can have a solution at all."""

    def __init__(self, constants: Constants, fresh: Fresh) -> None:
        self.constants = constants
        self.fresh = fresh
        self.possible = True
        self.joinables: list[Joinable] = []
        self.predicates: list[Predicate] = []
        self.bound: set[Variable] = set()
        self.errors: list[SquallError] = []
        self.waiting: list[_Equation | _Question] = []

    def add(self, conjunction: Sequence[Literal]) -> None:
        """Takes up all formulas; what is wrong with them is in `errors`."""
        for literal in conjunction:
            try:
                self._take(literal.formula, Terms(self.constants, literal.names), literal.concluded)
            except TranslatorError as error:
                self.errors.append(error)
        for joinable in self.joinables:
            self.bound.update(variables_of(joinable))
        while [literal for literal in list(self.waiting) if self._try(literal)]:
            pass

    def unsafe(self) -> list[Unsafe]:
        """An error for each formula that could not be computed, since a variable has no value."""
        return [left.unsafe(self.bound) for left in self.waiting]

    def _take(self, formula: Leaf, terms: Terms, concluded: bool) -> None:
        match formula:
            case tree.Atom(op=op):
                relation = named(self.constants.term(op), formula.names)
                self._join(relation, ordered(formula), terms, formula.origin)
            case tree.Frame(object=about, slots=slots):
                for attribute, value in slots:
                    self._join(None, (about, attribute, value), terms, formula.origin)
            case tree.Member(instance=left, cls=right):
                self._join(None, (left, tree.Const(TYPE[1:-1], tree.IRI), right), terms, formula.origin)
            case tree.Subclass(sub=left, sup=right):
                self._join(SUBCLASS, (left, right), terms, formula.origin)
            case tree.Equal(left=left, right=right) if concluded:
                self._join(EQUAL, (left, right), terms, formula.origin)
            case tree.Equal(left=left, right=right):
                self._equal(terms.part(left), terms.part(right), formula)
            case tree.External(content=content):
                self._ask(formula, content, terms)

    def _join(self, relation: str | None, arguments: Sequence[tree.Term], terms: Terms, origin: Origin | None) -> None:
        """A pattern; what is computed in it is compared afterwards."""
        parts = [terms.part(argument, lambda outside: self._outside(outside, terms)) for argument in arguments]
        slots, predicates = unfolded(parts, self.fresh)
        pattern = self._pattern(relation, slots, origin)
        self.joinables.append(System(joinables=(pattern,), predicates=tuple(predicates)) if predicates else pattern)

    @staticmethod
    def _pattern(relation: str | None, slots: tuple[Slot, ...], origin: Origin | None) -> FactPattern:
        if relation is None:
            subject, predicate, object = slots
            return Pattern(subject, predicate, object, origin=origin)
        return AtomPattern(iri(relation[1:-1]), slots, origin=origin)

    def _outside(self, external: tree.External, terms: Terms) -> Variable:
        """A variable that has to be equal to what a function computes."""
        variable = self.fresh()
        self.waiting.append(_Equation(variable, terms.call(external), external.origin))
        return variable

    def _equal(self, left: Part, right: Part, formula: tree.Equal) -> None:
        if isinstance(left, Built) and isinstance(right, Built) and left.name != right.name:
            self.possible = False
        else:
            self.waiting.append(_Equation(left, right, formula.origin))

    def _ask(self, formula: tree.External, content: tree.Atom | tree.Expr, terms: Terms) -> None:
        call = terms.call(formula)
        spelled = builtin(content, self.constants.term(content.op))
        self.waiting.append(_Question(call, spelled, formula.origin))

    def _try(self, pending: _Equation | _Question) -> bool:
        """Whether what waits could be done with what is bound."""
        predicates = pending.predicates(self.bound, self.fresh)
        if predicates is None:
            return False
        self.waiting.remove(pending)
        self.predicates += predicates
        return True


def unknown(part: Part, bound: set[Variable]) -> list[Variable]:
    """The variables of a part that have no value yet, in the order of the text."""
    return [name for name in variables_of(expression(part)) if name not in bound]


@dataclass
class _Question:
    """A predicate that is defined outside."""

    call: Call
    builtin: Builtin | None
    origin: Origin | None

    def predicates(self, bound: set[Variable], fresh: Fresh) -> list[Predicate] | None:
        open_ = [place for place, argument in enumerate(self.call.arguments) if unknown(argument, bound)]
        if not open_:
            return [Filter(self.call)]
        return self._computed(open_, bound) if self.builtin else None

    def _computed(self, open_: list[int], bound: set[Variable]) -> list[Predicate] | None:
        """What gives the arguments their values that have none, by a mode of the built-in."""
        assert self.builtin is not None
        arguments = self.call.arguments
        for mode in self.builtin.modes:
            (target, *more) = mode.targets(len(arguments))
            variable = arguments[target]
            if more or open_ != [target] or not isinstance(variable, Variable):
                continue
            inputs = tuple(arguments[place] for place in mode.arguments(len(arguments)))
            bound.add(variable)
            if mode.table:
                return [TableFunction((variable,), mode.function, inputs)]
            return [Bind(variable, Call(mode.function, inputs, self.origin))]
        return None

    def unsafe(self, bound: set[Variable]) -> Unsafe:
        missing = next(name for argument in self.call.arguments for name in unknown(argument, bound))
        return unsafe(missing, self.origin)


@dataclass
class _Equation:
    """Two sides that have to be the same value: one without a value gets that of the other."""

    left: Part
    right: Part
    origin: Origin | None

    def predicates(self, bound: set[Variable], fresh: Fresh) -> list[Predicate] | None:
        left, right = unknown(self.left, bound), unknown(self.right, bound)
        if not left and not right:
            return [Filter(Call(SAME, (expression(self.left), expression(self.right)), self.origin))]
        if left and right:
            return None
        known_side, other_side = (self.right, self.left) if left else (self.left, self.right)
        if isinstance(other_side, Variable):
            bound.add(other_side)
            return [Bind(other_side, expression(known_side))]
        if isinstance(other_side, Built):
            return _apart(expression(known_side), other_side, bound, fresh)
        return _solved(expression(known_side), other_side, bound) if isinstance(other_side, Call) else None

    def unsafe(self, bound: set[Variable]) -> Unsafe:
        missing = [*unknown(self.left, bound), *unknown(self.right, bound)]
        return unsafe(missing[0], self.origin)


def _apart(known_value: Expression, built: Built, bound: set[Variable], fresh: Fresh) -> list[Predicate]:
    value = known_value if isinstance(known_value, Variable) else fresh()
    first: list[Predicate] = [] if value == known_value else [Bind(value, known_value)]
    return first + taken([(value, built)], bound, fresh)


_NUMERIC = "http://www.w3.org/2007/rif-builtin-function#numeric-"


def _solved(known_value: Expression, call: Call, bound: set[Variable]) -> list[Predicate] | None:
    """What computes the variable in ``?x + a = known``, ``a + ?x``, ``?x - a`` or ``a - ?x``; and the equation, since
    the domain of the function may be narrower."""
    name = call.function.removeprefix(_NUMERIC)
    open_ = [place for place, argument in enumerate(call.arguments) if unknown(argument, bound)]
    if name not in ("add", "subtract") or len(open_) != 1:
        return None
    variable, other = call.arguments[open_[0]], call.arguments[1 - open_[0]]
    if not isinstance(variable, Variable):
        return None
    if name == "add":
        inverse = Call(f"{_NUMERIC}subtract", (known_value, other))
    elif open_ == [0]:
        inverse = Call(f"{_NUMERIC}add", (known_value, other))
    else:
        inverse = Call(f"{_NUMERIC}subtract", (other, known_value))
    bound.add(variable)
    return [Bind(variable, inverse), Filter(Call(SAME, (known_value, call)))]


class Unsafe(TranslatorError):
    """A variable has no value, and nothing is wrong but that."""


def unsafe(variable: Variable, origin: Origin | None) -> Unsafe:
    """The error for a variable to which nothing gives a value."""
    short_name = variable.name.partition(" ")[0]
    hint = (
        "give it a value by a relation, a frame or a class in the condition, or by an equation with what has one; or "
        "conclude a relation, and let other rules ask for what they have values of"
    )
    subject = f"`?{short_name}`" if not short_name.startswith("new") else "what a function is to give here"
    return Unsafe(f"nothing gives a value to {subject}: the rule is not safe", origin, hint)
