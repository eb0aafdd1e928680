"""RIF conditions as bodies of rules: first the patterns, then each computation and test as soon as its variables are
bound.

A condition is turned into alternatives: conjunctions of formulas without `Or` and `Exists`. A variable of an `Exists`
gets a new name, since another variable may have the same.
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
    Select,
    Slot,
    System,
    TableFunction,
    Variable,
)
from squall.model import variables as variables_of
from squall.rdf import iri
from squall.rdf.vocabulary import TYPE
from squall.translators.common import CompoundTerm, TermPattern, decompositions, expression, flatten_compounds
from squall.translators.rif.terms import (
    EQUAL,
    SUBCLASS,
    Constants,
    Terms,
    builtin,
    ordered_arguments,
    with_argument_names,
)
from squall.translators.rif.windows import WindowedAtom, is_window, windowed_atom
from squall.translators.valid_time import windowed

MAX_ALTERNATIVES = 256
"""The largest number of alternatives of a condition. Each is a rule."""

AtomicFormula = tree.Atom | tree.Equal | tree.Member | tree.Subclass | tree.Frame | tree.External


@dataclass(frozen=True)
class Literal:
    """A formula of a conjunction.

    Attributes:
        formula: The formula.
        names: Its variables by name.
        concluded: Whether it is an equation that rules conclude.
    """

    formula: AtomicFormula
    names: Mapping[str, Variable]
    concluded: bool = False


@dataclass
class FreshVariables:
    """Returns variables that no program can have: an unquoted name in a program has no blank."""

    numbers: Iterator[int] = field(default_factory=count)

    def __call__(self, like: str = "new") -> Variable:
        return Variable(f"{like} {next(self.numbers)}")


def alternatives(
    formula: tree.Formula, names: Mapping[str, Variable], fresh: FreshVariables, equality: bool
) -> list[tuple[Literal, ...]]:
    """Returns the conjunctions of which one has to hold (disjunctive normal form).

    Args:
        formula: The formula.
        names: Its variables by name.
        fresh: Returns a new variable.
        equality: Whether rules conclude ``=``. Then an equation holds if they do, or if both sides are identical.

    Raises:
        TranslatorError: There are too many alternatives.
    """
    match formula:
        case tree.Equal() if equality:
            return [(Literal(formula, names),), (Literal(formula, names, concluded=True),)]
        case tree.And(formulas=formulas):
            inner_alternatives = [alternatives(inner, names, fresh, equality) for inner in formulas]
            _check_count(inner_alternatives, formula.origin)
            return [tuple(literal for part in parts for literal in part) for parts in product(*inner_alternatives)]
        case tree.Or(formulas=formulas):
            return [literal for inner in formulas for literal in alternatives(inner, names, fresh, equality)]
        case tree.Exists(variables=bound, formula=inner):
            renamed = {literal.name: fresh(literal.name) for literal in bound}
            return alternatives(inner, {**names, **renamed}, fresh, equality)
        case _:
            return [(Literal(formula, names),)]


def undeclared_variables(formula: tree.Node, declared: frozenset[str]) -> Iterator[TranslatorError]:
    """Yields an error for each occurrence of a variable that neither the rule nor an ``Exists`` around it declares."""
    match formula:
        case tree.And(formulas=formulas) | tree.Or(formulas=formulas):
            for inner in formulas:
                yield from undeclared_variables(inner, declared)
        case tree.Exists(variables=variables, formula=inner):
            yield from undeclared_variables(inner, declared.union(variable.name for variable in variables))
        case _:
            for part in tree.parts(formula):
                if isinstance(part, tree.Var) and part.name not in declared:
                    hint = f"declare it: `Forall ?{part.name} (...)` around the rule, or `Exists` around a condition"
                    yield TranslatorError(f"the variable `?{part.name}` is not declared", part.origin, hint)


def _check_count(factors: Sequence[Sequence[object]], origin: Origin | None) -> None:
    size = 1
    for alternative in factors:
        size *= len(alternative)
        if size > MAX_ALTERNATIVES:
            hint = "make rules of its `Or`s that conclude a relation, and use that"
            raise TranslatorError(f"this condition has more than {MAX_ALTERNATIVES} alternatives", origin, hint)


class Body:
    """The body of a rule for one conjunction.

    Attributes:
        is_satisfiable: Whether it can have a solution at all.
    """

    def __init__(self, constants: Constants, fresh: FreshVariables) -> None:
        self.constants = constants
        self.fresh = fresh
        self.is_satisfiable = True
        self.joinables: list[Joinable] = []
        self.predicates: list[Predicate] = []
        self.bound: set[Variable] = set()
        self.errors: list[SquallError] = []
        self.pending: list[_Equation | _ExternalPredicate] = []

    def add(self, conjunction: Sequence[Literal]) -> None:
        """Adds all formulas. Their errors are in `errors`."""
        for literal in conjunction:
            try:
                self._add_formula(literal.formula, Terms(self.constants, literal.names), literal.concluded)
            except TranslatorError as error:
                self.errors.append(error)
        for joinable in self.joinables:
            self.bound.update(variables_of(joinable))
        while [literal for literal in list(self.pending) if self._solve(literal)]:
            pass

    def unsafe_rule(self) -> list[UnsafeRule]:
        """Returns an error for each formula that could not be computed, since a variable is unbound."""
        return [formula.unsafe_rule(self.bound) for formula in self.pending]

    def _add_formula(self, formula: AtomicFormula, terms: Terms, concluded: bool) -> None:
        match formula:
            case tree.Atom(op=op):
                relation = with_argument_names(self.constants.term(op), formula.names)
                self._join(relation, ordered_arguments(formula), terms, formula.origin)
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
                self._equal(terms.term_pattern(left), terms.term_pattern(right), formula)
            case tree.External() if is_window(formula):
                self._add_window(windowed_atom(formula), terms, formula.origin)
            case tree.External(content=content):
                self._add_external(formula, content, terms)

    def _join(self, relation: str | None, arguments: Sequence[tree.Term], terms: Terms, origin: Origin | None) -> None:
        """Adds a pattern. Terms that are computed in it are compared afterwards."""
        parts = [terms.term_pattern(argument, lambda outside: self._outside(outside, terms)) for argument in arguments]
        slots, predicates = flatten_compounds(parts, self.fresh)
        pattern = self._pattern(relation, slots, origin)
        self.joinables.append(System(joinables=(pattern,), predicates=tuple(predicates)) if predicates else pattern)

    def _add_window(self, part: WindowedAtom, terms: Terms, origin: Origin | None) -> None:
        """Adds a frame or an atom through a window, or with its times."""
        body = Body(self.constants, self.fresh)
        body._add_formula(part.atom, terms, concluded=False)
        for external in body.pending:
            hint = "compute it in an equation, and compare the two"
            raise TranslatorError("what a window is about has no computed arguments", external.origin, hint)
        names = tuple(dict.fromkeys(name for joinable in body.joinables for name in variables_of(joinable)))
        system = System(joinables=tuple(body.joinables), consequences=(Select(names),), origin=origin)
        times = tuple(terms.variables[time.name] for time in part.times)
        self.joinables.append(windowed(system, part.mode, part.length, part.step, times, origin))

    @staticmethod
    def _pattern(relation: str | None, slots: tuple[Slot, ...], origin: Origin | None) -> FactPattern:
        if relation is None:
            subject, predicate, object = slots
            return Pattern(subject, predicate, object, origin=origin)
        return AtomPattern(iri(relation[1:-1]), slots, origin=origin)

    def _outside(self, external: tree.External, terms: Terms) -> Variable:
        """Returns a variable that has to be equal to the value of an external function."""
        variable = self.fresh()
        self.pending.append(_Equation(variable, terms.call(external), external.origin))
        return variable

    def _equal(self, left: TermPattern, right: TermPattern, formula: tree.Equal) -> None:
        if isinstance(left, CompoundTerm) and isinstance(right, CompoundTerm) and left.name != right.name:
            self.is_satisfiable = False
        else:
            self.pending.append(_Equation(left, right, formula.origin))

    def _add_external(self, formula: tree.External, content: tree.Atom | tree.Expr, terms: Terms) -> None:
        call = terms.call(formula)
        spelled = builtin(content, self.constants.term(content.op))
        self.pending.append(_ExternalPredicate(call, spelled, formula.origin))

    def _solve(self, pending: _Equation | _ExternalPredicate) -> bool:
        """Returns whether a pending formula could be added with the variables that are bound."""
        predicates = pending.predicates(self.bound, self.fresh)
        if predicates is None:
            return False
        self.pending.remove(pending)
        self.predicates += predicates
        return True


def unbound_variables(part: TermPattern, bound: set[Variable]) -> list[Variable]:
    """Returns the unbound variables of a term, in the order of the text."""
    return [name for name in variables_of(expression(part)) if name not in bound]


@dataclass
class _ExternalPredicate:
    """A predicate that is defined outside."""

    call: Call
    builtin: Builtin | None
    origin: Origin | None

    def predicates(self, bound: set[Variable], fresh: FreshVariables) -> list[Predicate] | None:
        unbound = [place for place, argument in enumerate(self.call.arguments) if unbound_variables(argument, bound)]
        if not unbound:
            return [Filter(self.call)]
        return self._computed(unbound, bound) if self.builtin else None

    def _computed(self, unbound: list[int], bound: set[Variable]) -> list[Predicate] | None:
        """Returns the predicates that bind the unbound arguments, by a mode of the built-in."""
        assert self.builtin is not None
        arguments = self.call.arguments
        for mode in self.builtin.modes:
            (target, *other_targets) = mode.targets(len(arguments))
            variable = arguments[target]
            if other_targets or unbound != [target] or not isinstance(variable, Variable):
                continue
            inputs = tuple(arguments[place] for place in mode.arguments(len(arguments)))
            bound.add(variable)
            if mode.table:
                return [TableFunction((variable,), mode.function, inputs)]
            return [Bind(variable, Call(mode.function, inputs, self.origin))]
        return None

    def unsafe_rule(self, bound: set[Variable]) -> UnsafeRule:
        missing = next(name for argument in self.call.arguments for name in unbound_variables(argument, bound))
        return unsafe_rule(missing, self.origin)


@dataclass
class _Equation:
    """An equation of two terms. An unbound side gets the value of the other."""

    left: TermPattern
    right: TermPattern
    origin: Origin | None

    def predicates(self, bound: set[Variable], fresh: FreshVariables) -> list[Predicate] | None:
        left, right = unbound_variables(self.left, bound), unbound_variables(self.right, bound)
        if not left and not right:
            return [Filter(Call(SAME, (expression(self.left), expression(self.right)), self.origin))]
        if left and right:
            return None
        bound_side, other_side = (self.right, self.left) if left else (self.left, self.right)
        if isinstance(other_side, Variable):
            bound.add(other_side)
            return [Bind(other_side, expression(bound_side))]
        if isinstance(other_side, CompoundTerm):
            return _decompose(expression(bound_side), other_side, bound, fresh)
        return _solve_linear(expression(bound_side), other_side, bound) if isinstance(other_side, Call) else None

    def unsafe_rule(self, bound: set[Variable]) -> UnsafeRule:
        missing = [*unbound_variables(self.left, bound), *unbound_variables(self.right, bound)]
        return unsafe_rule(missing[0], self.origin)


def _decompose(
    expression_value: Expression, compound: CompoundTerm, bound: set[Variable], fresh: FreshVariables
) -> list[Predicate]:
    value = expression_value if isinstance(expression_value, Variable) else fresh()
    first: list[Predicate] = [] if value == expression_value else [Bind(value, expression_value)]
    return first + decompositions([(value, compound)], bound, fresh)


_NUMERIC = "http://www.w3.org/2007/rif-builtin-function#numeric-"


def _solve_linear(value: Expression, call: Call, bound: set[Variable]) -> list[Predicate] | None:
    """Returns the predicates that solve ``?x + a = known``, ``a + ?x``, ``?x - a`` or ``a - ?x`` for the variable.

    The equation is tested as well, since the domain of the function may be narrower.
    """
    name = call.function.removeprefix(_NUMERIC)
    unbound = [place for place, argument in enumerate(call.arguments) if unbound_variables(argument, bound)]
    if name not in ("add", "subtract") or len(unbound) != 1:
        return None
    variable, other = call.arguments[unbound[0]], call.arguments[1 - unbound[0]]
    if not isinstance(variable, Variable):
        return None
    if name == "add":
        inverse = Call(f"{_NUMERIC}subtract", (value, other))
    elif unbound == [0]:
        inverse = Call(f"{_NUMERIC}add", (value, other))
    else:
        inverse = Call(f"{_NUMERIC}subtract", (other, value))
    bound.add(variable)
    return [Bind(variable, inverse), Filter(Call(SAME, (value, call)))]


class UnsafeRule(TranslatorError):
    """The error that a variable is unbound, with nothing else wrong."""


def unsafe_rule(variable: Variable, origin: Origin | None) -> UnsafeRule:
    """Returns the error for a variable that nothing binds."""
    short_name = variable.name.partition(" ")[0]
    hint = (
        "give it a value by a relation, a frame or a class in the condition, or by an equation with what has one; or "
        "conclude a relation, and let other rules demand it for values that they have"
    )
    subject = f"`?{short_name}`" if not short_name.startswith("new") else "what a function is to give here"
    return UnsafeRule(f"nothing gives a value to {subject}: the rule is not safe", origin, hint)
