"""What translators share: calls of built-ins as predicates, and the checks that go with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from squall import functions
from squall.errors import Origin, TranslatorError, near
from squall.functions import Builtin, Mode
from squall.rdf import XSD, Term, literal
from squall.system import Bind, Call, Expression, Predicate, Slot, Test, Variable


@dataclass
class Scope:
    """What is known at a point of a rule's body.

    key: gives a text that tells the rule from rules that mean something else, whatever the names of its variables.
    Few rules ask for it, and it takes longer to make than the rest of a rule.
    bound: the variables that have a value, in the order in which they got it.
    calls: how many calls were lowered so far.
    """

    key: Callable[[], str]
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


def find(name: str, known: Mapping[str, Builtin], count: int, where: str, origin: Origin | None) -> Builtin:
    """The built-in that a call means. Raises TranslatorError: unknown, wrong number of arguments, or out of place.

    where: ``body`` or ``head``, the side of the rule that the call is in.
    """
    builtin = known.get(name)
    if builtin is None:
        raise TranslatorError(f"there is no built-in `{name}`", origin, near(name, known))
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
    if mode is None:
        yield Test(_call(builtin.test or "", slots, origin))
        return
    inputs = [slots[index] for index in mode.arguments(len(slots))]
    for slot in inputs:
        if not scope.knows(slot):
            hint = "bind it in a pattern of the body"
            raise TranslatorError(f"`{slot}` is not bound where `{builtin.name}` needs it", origin, hint)
    for place, index in enumerate(mode.targets(len(slots)), 1):
        call = _call(mode.function, (*_extra(mode, place, scope), *inputs), origin)
        target = slots[index]
        if isinstance(target, Variable) and not scope.knows(target):
            yield Bind(target, call)
            scope.bind([target])
        else:
            yield Test(Call(builtin.same or "", (target, call), origin))


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


def unsafe(variable: Variable, origin: Origin | None, bound: Sequence[Variable]) -> TranslatorError:
    """The error for a variable of a head that nothing in the body binds."""
    close = near(str(variable), map(str, bound))
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
