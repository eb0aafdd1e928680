"""Common parts of translators: calls of built-ins and compound terms as predicates, and the checks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from squall import functions
from squall.errors import Origin, TranslatorError, did_you_mean
from squall.functions import Builtin, Mode
from squall.functions.sparql.names import test_iri
from squall.model import Bind, Call, Expression, Filter, Predicate, Slot, TableFunction, Variable
from squall.rdf import XSD, Term, compounds, literal


@dataclass
class Scope:
    """The variables that are bound at a point of a rule's body.

    Attributes:
        key: Returns a text that identifies the meaning of the rule, whatever the names of its variables. It is computed
            on demand, since few rules need it and it is expensive.
        rule: The name of the rule, for errors at run time.
        bound: The bound variables, in the order in which they were bound.
        calls: The number of calls lowered so far.
    """

    key: Callable[[], str]
    rule: str = ""
    bound: list[Variable] = field(default_factory=list)
    calls: int = 0

    def bind(self, variables: Sequence[Slot]) -> None:
        """Records the variables among these slots as bound."""
        for slot in variables:
            if isinstance(slot, Variable) and slot not in self.bound:
                self.bound.append(slot)

    def is_bound(self, slot: Slot) -> bool:
        """Returns whether a slot is a constant or a bound variable."""
        return not isinstance(slot, Variable) or slot in self.bound


_OF_SOLUTION = "the time since which the clauses in front of it hold is `now(?t)`"
TIMES = {
    "start": f"{_OF_SOLUTION}; patterns over time are of CT-SPARQL",
    "end": f"{_OF_SOLUTION}; when a fact ends is known when something ends it: write a rule on that",
    "duration": f"{_OF_SOLUTION}; compare the times of two facts, `before(?start ?end ?start2 ?end2)`",
}
"""The hints for times that facts do not have by name."""


def find_builtin(name: str, builtins: Mapping[str, Builtin], count: int, where: str, origin: Origin | None) -> Builtin:
    """Returns the built-in that a call means.

    Args:
        name: The name in the call.
        builtins: The built-ins of the language.
        count: The number of arguments.
        where: The side of the rule with the call: ``body`` or ``head``.
        origin: The place of the call.

    Raises:
        TranslatorError: The name is unknown, the number of arguments is wrong, or the call is on the wrong side.
    """
    builtin = builtins.get(name)
    if builtin is None:
        hint = (
            TIMES.get(name)
            or did_you_mean(name, builtins)
            or "supply it as a plug-in, an entry point of `squall.functions`"
        )
        raise TranslatorError(f"there is no built-in `{name}`", origin, hint)
    if count < builtin.least or (builtin.most is not None and count > builtin.most):
        raise TranslatorError(f"`{name}` takes {_count(builtin)}, not {count}", origin)
    if builtin.where not in (where, "both"):
        hint = f"it belongs in the {builtin.where}"
        raise TranslatorError(f"`{name}` cannot be in the {where} of a rule", origin, hint)
    return builtin


def _count(builtin: Builtin) -> str:
    least, most = builtin.least, builtin.most
    if most is None:
        return f"at least {least} argument{'s' if least != 1 else ''}"
    numbers = str(least) if least == most else f"{least} to {most}"
    return f"{numbers} argument{'s' if most != 1 else ''}"


def lower_call(builtin: Builtin, slots: Sequence[Slot], scope: Scope, origin: Origin | None) -> Iterator[Predicate]:
    """Yields a call as predicates: it binds the unbound arguments that it can compute, and tests the others.

    Raises:
        TranslatorError: The call never has a value, since an argument that it needs is unbound or a constant is wrong.
    """
    scope.calls += 1
    mode = _mode(builtin, slots, scope)
    if mode is None or (mode.table and scope.is_bound(slots[mode.target])):
        yield Filter(_call(builtin.test or "", slots, origin))
        return
    inputs = [slots[index] for index in mode.arguments(len(slots))]
    for slot in inputs:
        if not scope.is_bound(slot):
            hint = "bind it in a pattern of the body"
            raise TranslatorError(f"`{slot}` is not bound where `{builtin.name}` needs it", origin, hint)
    for place, index in enumerate(mode.targets(len(slots)), 1):
        call = _call(mode.function, (*_leading_arguments(mode, place, scope), *inputs), origin)
        if functions.lookup(mode.function).nests:
            call = with_nesting_limit(call, scope.rule)
        target = slots[index]
        if isinstance(target, Variable) and not scope.is_bound(target):
            yield TableFunction((target,), call.function, call.arguments) if mode.table else Bind(target, call)
            scope.bind([target])
        else:
            yield Filter(Call(builtin.same or "", (target, call), origin))


def _mode(builtin: Builtin, slots: Sequence[Slot], scope: Scope) -> Mode | None:
    """Returns the first mode whose inputs are bound, or else the first of all. None means that the call is
    only a test."""
    usable = [mode for mode in builtin.modes if mode.targets(len(slots))]
    ready = (mode for mode in usable if all(scope.is_bound(slots[index]) for index in mode.arguments(len(slots))))
    return next(ready, usable[0] if usable else None)


def _leading_arguments(mode: Mode, place: int, scope: Scope) -> tuple[Expression, ...]:
    """Returns the arguments that a computing function takes in front of its inputs."""
    numbered = (literal(str(place), XSD + "int"),) if mode.repeats else ()
    return (*numbered, literal(f"{scope.key()} {scope.calls}"), *scope.bound) if mode.scoped else numbered


def _call(iri: str, arguments: Sequence[Expression], origin: Origin | None) -> Call:
    problem = functions.lookup(iri).problem(arguments)
    if problem:
        raise TranslatorError(problem, origin)
    return Call(iri, tuple(arguments), origin)


@dataclass(frozen=True)
class CompoundTerm:
    """A compound term over slots, ``name(arguments)``.

    Its arguments may be calls if it is constructed, but not if it is matched.

    Attributes:
        name: The functor.
        arguments: The arguments.
        rest: The rest of a list, behind its first members.
    """

    name: Term
    arguments: tuple[TermPattern, ...]
    rest: TermPattern | None = None

    @property
    def parts(self) -> tuple[TermPattern, ...]:
        return self.arguments if self.rest is None else (*self.arguments, self.rest)


TermPattern = Expression | CompoundTerm


def term_expression(part: TermPattern, rule: str) -> Expression:
    """Returns the expression of a term whose variables are bound.

    It is limited to the nesting depth that a run allows, with an error that names the rule. A compound without
    variables is a constant. A list whose rest is no list has no value.
    """
    built = expression(part)
    return with_nesting_limit(built, rule) if isinstance(part, CompoundTerm) and isinstance(built, Call) else built


def with_nesting_limit(call: Call, rule: str) -> Call:
    """Returns the call with a limit on the nesting of its term. At run time the error names the rule."""
    return Call(compounds.LIMIT, (literal(rule), call))


def expression(part: TermPattern) -> Expression:
    """Returns the expression of a term whose variables are bound, without a limit on nesting."""
    if not isinstance(part, CompoundTerm):
        return part
    function, first = (compounds.BUILD, part.name) if part.rest is None else (compounds.JOIN, expression(part.rest))
    arguments = (first, *map(expression, part.arguments))
    terms = [argument for argument in arguments if isinstance(argument, str)]
    if len(terms) == len(arguments):
        value = functions.lookup(function).evaluate(*terms)
        if isinstance(value, str):
            return value
    return Call(function, arguments)


def flatten_compounds(
    parts: Sequence[TermPattern], fresh: Callable[[], Variable]
) -> tuple[tuple[Slot, ...], list[Predicate]]:
    """Returns the slots of a pattern with compound terms, and the predicates that decompose the matched terms.

    The predicates bind the variables inside of the compounds. Repeated variables and constants are compared by term.
    Slots and predicates belong into a system of their own, which is joined by these variables.

    Args:
        parts: The terms of the pattern.
        fresh: Returns a new variable.
    """
    slots = tuple(_slot(part, fresh) for part in parts)
    pairs = [pair for pair in zip(slots, parts, strict=True) if pair[0] is not pair[1]]
    return slots, decompositions(pairs, {slot for slot in slots if isinstance(slot, Variable)}, fresh)


def decompositions(
    pairs: Sequence[tuple[Slot, TermPattern]], bound: set[Variable], fresh: Callable[[], Variable]
) -> list[Predicate]:
    """Returns the predicates that decompose the values of slots, each by its compound term.

    Args:
        pairs: The slots with their compound terms.
        bound: The variables that are bound. Those that the predicates bind are added.
        fresh: Returns a new variable.
    """
    waiting = list(pairs)
    predicates: list[Predicate] = []
    for slot, part in waiting:  # which grows
        if isinstance(part, CompoundTerm) and isinstance(slot, Variable):
            inner = tuple(_slot(inner_part, fresh) for inner_part in part.parts)
            names = tuple(_unbound(inner_part, inner[:place], bound, fresh) for place, inner_part in enumerate(inner))
            predicates.append(_decomposition(slot, part, names))
            predicates += [
                Filter(Call(_SAME_TERM, pair)) for pair in zip(names, inner, strict=True) if pair[0] != pair[1]
            ]
            bound.update(names)
            waiting += [
                (inner_part, nested)
                for inner_part, nested in zip(inner, part.parts, strict=True)
                if inner_part is not nested
            ]
    return predicates


_SAME_TERM = test_iri("sameTerm")


def _slot(part: TermPattern, fresh: Callable[[], Variable]) -> Slot:
    """Returns the slot for a term: itself, the constant that a compound is, or a new variable."""
    value = expression(part)
    return fresh() if isinstance(value, Call) else value


def _unbound(
    slot: Slot, before: Sequence[Slot], bound: Collection[Variable], fresh: Callable[[], Variable]
) -> Variable:
    """Returns an unbound variable: the slot itself, or a new one."""
    is_new = isinstance(slot, Variable) and slot not in bound and slot not in before
    return slot if is_new and isinstance(slot, Variable) else fresh()


def _decomposition(slot: Slot, part: CompoundTerm, names: tuple[Variable, ...]) -> TableFunction:
    count = literal(str(len(part.arguments)), XSD + "integer")
    if part.rest is None:
        return TableFunction(names, compounds.DECOMPOSE, (slot, part.name, count))
    return TableFunction(names, compounds.SPLIT, (slot, count))


def unbound_head_variable(variable: Variable, origin: Origin | None, bound: Sequence[Variable]) -> TranslatorError:
    """Returns the error for a head variable that nothing in the body binds."""
    close = did_you_mean(str(variable), map(str, bound))
    hint = f"{close} " if close else ""
    return TranslatorError(
        f"`{variable}` is in the head, but nothing in the body binds it",
        origin,
        f"{hint}bind `{variable}` in a pattern of the body, or make a new node with a built-in such as `makeTemp`",
    )


def is_subject(term: Term | Variable) -> bool:
    """Returns whether a slot may be the subject of a fact: it is no literal."""
    return isinstance(term, Variable) or term[0] != '"'


def is_predicate(term: Term | Variable) -> bool:
    """Returns whether a slot may be the predicate of a fact: it is a variable or an IRI."""
    return isinstance(term, Variable) or term[0] == "<"
