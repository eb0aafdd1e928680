"""What translators share: calls of built-ins, and terms built of terms, as predicates; the checks that go with them."""

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
    """What is known at a point of a rule's body.

    key: gives a text that tells the rule from rules that mean something else, whatever the names of its variables.
    Few rules ask for it, and it takes longer to make than the rest of a rule.
    rule: the name of the rule, for errors at run time.
    bound: the variables that have a value, in the order in which they got it.
    calls: how many calls were lowered so far.
    """

    key: Callable[[], str]
    rule: str = ""
    bound: list[Variable] = field(default_factory=list)
    calls: int = 0

    def bind(self, variables: Sequence[Slot]) -> None:
        """Notes the variables among these slots as bound."""
        for slot in variables:
            if isinstance(slot, Variable) and slot not in self.bound:
                self.bound.append(slot)

    def knows(self, slot: Slot) -> bool:
        """Whether a slot has a value here."""
        return not isinstance(slot, Variable) or slot in self.bound


def find(name: str, builtins: Mapping[str, Builtin], count: int, where: str, origin: Origin | None) -> Builtin:
    """The built-in that a call means. Raises TranslatorError: unknown, wrong number of arguments, or out of place.

    where: ``body`` or ``head``, the side of the rule that the call is in.
    """
    builtin = builtins.get(name)
    if builtin is None:
        raise TranslatorError(f"there is no built-in `{name}`", origin, did_you_mean(name, builtins))
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


def lower(builtin: Builtin, slots: Sequence[Slot], scope: Scope, origin: Origin | None) -> Iterator[Predicate]:
    """A call as predicates: binds the arguments that it can compute and that have no value yet, and tests the others.

    Raises TranslatorError where it never has a value: an argument that it needs is not bound, or a constant is wrong.
    """
    scope.calls += 1
    mode = _mode(builtin, slots, scope)
    if mode is None or (mode.table and scope.knows(slots[mode.target])):
        yield Filter(_call(builtin.test or "", slots, origin))
        return
    inputs = [slots[index] for index in mode.arguments(len(slots))]
    for slot in inputs:
        if not scope.knows(slot):
            hint = "bind it in a pattern of the body"
            raise TranslatorError(f"`{slot}` is not bound where `{builtin.name}` needs it", origin, hint)
    for place, index in enumerate(mode.targets(len(slots)), 1):
        call = _call(mode.function, (*_extra(mode, place, scope), *inputs), origin)
        if functions.lookup(mode.function).nests:
            call = guarded(call, scope.rule)
        target = slots[index]
        if isinstance(target, Variable) and not scope.knows(target):
            yield TableFunction((target,), call.function, call.arguments) if mode.table else Bind(target, call)
            scope.bind([target])
        else:
            yield Filter(Call(builtin.same or "", (target, call), origin))


def _mode(builtin: Builtin, slots: Sequence[Slot], scope: Scope) -> Mode | None:
    """The first mode whose inputs are bound, else the first of all; None if the call is a mere test."""
    usable = [mode for mode in builtin.modes if mode.targets(len(slots))]
    ready = (mode for mode in usable if all(scope.knows(slots[index]) for index in mode.arguments(len(slots))))
    return next(ready, usable[0] if usable else None)


def _extra(mode: Mode, place: int, scope: Scope) -> tuple[Expression, ...]:
    """What a computing function gets before its inputs."""
    numbered = (literal(str(place), XSD + "int"),) if mode.repeats else ()
    return (*numbered, literal(f"{scope.key()} {scope.calls}"), *scope.bound) if mode.scoped else numbered


def _call(iri: str, arguments: Sequence[Expression], origin: Origin | None) -> Call:
    check = functions.lookup(iri).check
    constants = [argument if isinstance(argument, str) else None for argument in arguments]
    problem = check(*constants) if check else None
    if problem:
        raise TranslatorError(problem, origin)
    return Call(iri, tuple(arguments), origin)


@dataclass(frozen=True)
class Built:
    """A compound term with slots in it, ``name(arguments)``. rest: of a list, what follows its first members.

    What is made, but not what is taken apart, may have calls among its arguments.
    """

    name: Term
    arguments: tuple[Part, ...]
    rest: Part | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.arguments if self.rest is None else (*self.arguments, self.rest)


Part = Expression | Built


def made(part: Part, rule: str) -> Expression:
    """The expression of a term, its variables bound: what a rule of this name makes, no deeper than a run allows.

    A compound without variables is a constant. It has no value where the rest of a list is no list.
    """
    built = expression(part)
    return guarded(built, rule) if isinstance(part, Built) and isinstance(built, Call) else built


def guarded(call: Call, rule: str) -> Call:
    """The call, with an error in its place that names the rule where it makes a term that is nested too deep."""
    return Call(compounds.LIMIT, (literal(rule), call))


def expression(part: Part) -> Expression:
    """The expression of a part, its variables bound, whatever the depth."""
    if not isinstance(part, Built):
        return part
    function, first = (compounds.BUILD, part.name) if part.rest is None else (compounds.JOIN, expression(part.rest))
    arguments = (first, *map(expression, part.arguments))
    terms = [argument for argument in arguments if isinstance(argument, str)]
    if len(terms) == len(arguments):
        value = functions.lookup(function).evaluate(*terms)
        if isinstance(value, str):
            return value
    return Call(function, arguments)


def unfolded(parts: Sequence[Part], fresh: Callable[[], Variable]) -> tuple[tuple[Slot, ...], list[Predicate]]:
    """The slots of a pattern with such parts, and the predicates that take apart what it finds in them.

    They bind the variables within the parts; what occurs twice, or is constant, is compared by term. Both belong into
    a system of their own, so that it is joined by these variables. fresh: gives new variables.
    """
    slots = tuple(_slot(part, fresh) for part in parts)
    pairs = [pair for pair in zip(slots, parts, strict=True) if pair[0] is not pair[1]]
    return slots, taken(pairs, {slot for slot in slots if isinstance(slot, Variable)}, fresh)


def taken(pairs: Sequence[tuple[Slot, Part]], bound: set[Variable], fresh: Callable[[], Variable]) -> list[Predicate]:
    """The predicates that take apart the values of slots, each as its compound says, where some variables have values;
    the others get theirs, and are added to `bound`."""
    waiting = list(pairs)
    predicates: list[Predicate] = []
    for slot, part in waiting:  # which grows
        if isinstance(part, Built) and isinstance(slot, Variable):
            inner = tuple(_slot(inner_part, fresh) for inner_part in part.parts)
            names = tuple(_unbound(inner_part, inner[:place], bound, fresh) for place, inner_part in enumerate(inner))
            predicates.append(_apart(slot, part, names))
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


def _slot(part: Part, fresh: Callable[[], Variable]) -> Slot:
    """The part, if it is a slot; of a compound the constant that it is, or a new variable."""
    value = expression(part)
    return fresh() if isinstance(value, Call) else value


def _unbound(
    slot: Slot, before: Sequence[Slot], bound: Collection[Variable], fresh: Callable[[], Variable]
) -> Variable:
    """A variable that has no value yet: the slot, or another one."""
    is_new = isinstance(slot, Variable) and slot not in bound and slot not in before
    return slot if is_new and isinstance(slot, Variable) else fresh()


def _apart(slot: Slot, part: Built, names: tuple[Variable, ...]) -> TableFunction:
    count = literal(str(len(part.arguments)), XSD + "integer")
    if part.rest is None:
        return TableFunction(names, compounds.DECOMPOSE, (slot, part.name, count))
    return TableFunction(names, compounds.SPLIT, (slot, count))


def unsafe(variable: Variable, origin: Origin | None, bound: Sequence[Variable]) -> TranslatorError:
    """The error for a variable of a head that nothing in the body binds."""
    close = did_you_mean(str(variable), map(str, bound))
    hint = f"{close} " if close else ""
    return TranslatorError(
        f"`{variable}` is in the head, but nothing in the body binds it",
        origin,
        f"{hint}bind `{variable}` in a pattern of the body, or make a new node with a built-in such as `makeTemp`",
    )


def is_subject(term: Term | Variable) -> bool:
    """Whether a slot may be the subject of a fact: everything but a literal."""
    return isinstance(term, Variable) or term[0] != '"'


def is_predicate(term: Term | Variable) -> bool:
    """Whether a slot may be the predicate of a fact: a variable or an IRI."""
    return isinstance(term, Variable) or term[0] == "<"
