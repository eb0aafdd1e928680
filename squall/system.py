"""The Translated Production System (TPS): what a program means, in names, whatever language it was written in.

The five kinds of component of the four-stage design (SourceProvider, JoinableComponent, Predicate, Consequence,
sub-TPS) as frozen data. Equality is meaning: `origin` does not take part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from squall.errors import Origin
from squall.rdf import Term


@dataclass(frozen=True)
class Variable:
    """A variable by name, without its question mark."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Slot = Term | Variable


@dataclass(frozen=True)
class Source:
    """The potential to read a stream (a SourceProvider). ``""`` names the default graph: all streams and static data.

    What is read of it is valid from its event's time on (a landmark window).
    """

    iri: str = ""


@dataclass(frozen=True)
class Pattern:
    """A triple pattern (a joinable, or a fact's template). A literal matches by value; everything else by term."""

    subject: Slot
    predicate: Slot
    object: Slot
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return (self.subject, self.predicate, self.object)


@dataclass(frozen=True)
class AtomPattern:
    """``relation(slots)``: an n-ary pattern or template."""

    relation: Term
    arguments: tuple[Slot, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.arguments


FactPattern = Pattern | AtomPattern


@dataclass(frozen=True)
class Call:
    """A function applied to expressions. A variable that nothing binds is passed as unbound (None)."""

    function: str
    arguments: tuple[Expression, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)


Expression = Term | Variable | Call


@dataclass(frozen=True)
class Test:
    """Keeps a solution where the expression is true (a Predicate)."""

    expression: Call
    __test__ = False


@dataclass(frozen=True)
class Bind:
    """Extends a solution by the expression's value (a Predicate); a solution for which it has none is dropped."""

    variable: Variable
    expression: Expression


@dataclass(frozen=True)
class Without:
    """Keeps a solution where the patterns have no match that agrees on the variables they share with it.

    MINUS with shared variables, ``noValue``, negation as failure: evaluated on the whole model, stratum by stratum.
    Variables that occur in the patterns alone are local to them.
    """

    joinables: tuple[FactPattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)


Predicate = Test | Bind | Without


@dataclass(frozen=True)
class Construct:
    """Facts made of each solution (a Consequence)."""

    template: tuple[FactPattern, ...]


@dataclass(frozen=True)
class System:
    """A rule, or a set of them.

    joinables: combined by AND; none means that the body always holds (an axiom).
    predicates: applied in this order to the joined solutions.
    consequences: what each solution makes.
    subsystems: stand alone beside each other (the rules of a rule set); never joined.
    reentrant: whether consequences are read again by the systems they belong with.
    output: the R2S operator by which answers are handed on: ``istream``, ``dstream`` or ``rstream``.
    """

    name: str = ""
    sources: tuple[Source, ...] = (Source(),)
    joinables: tuple[FactPattern, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    consequences: tuple[Construct, ...] = ()
    subsystems: tuple[System, ...] = ()
    reentrant: bool = True
    output: str = "istream"
    origin: Origin | None = field(default=None, compare=False, repr=False)


def rules(system: System) -> Iterator[System]:
    """The systems with consequences, in the order of the program."""
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        yield from rules(subsystem)


def variables(part: FactPattern | Expression) -> Iterator[Variable]:
    """The variables of a pattern or an expression, left to right, repetitions included."""
    match part:
        case Variable():
            yield part
        case Call(arguments=arguments):
            for argument in arguments:
                yield from variables(argument)
        case Pattern() | AtomPattern():
            yield from (slot for slot in part.slots if isinstance(slot, Variable))
        case str():
            return
