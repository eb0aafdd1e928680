"""What checks look at: a program's system and texts, what will be given to it, and which rules feed which patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from squall.checking.findings import Finding
from squall.compiling import Program as Text
from squall.errors import Origin
from squall.model import (
    AtomPattern,
    Call,
    Construct,
    Expression,
    FactPattern,
    Graph,
    Graphs,
    Insert,
    Pattern,
    Source,
    System,
    Variable,
    documents,
    derived_streams,
    output_specs,
)
from squall.model.fact_shapes import Shape, Shapes, derived_shapes, may_read, stream_shapes, shape
from squall.model.windows import Window
from squall.plan.cardinality import Statistics
from squall.planners.lowering.walk import Part, inside, walk
from squall.planners.rete import identities
from squall.rdf import WORKING, Term, iri, iri_text


class Rule(NamedTuple):
    """A rule of a program, and the stream that its facts are the events of (``""``: none)."""

    system: System
    stream: str

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def origin(self) -> Origin | None:
        return self.system.origin


class Reading(NamedTuple):
    """A pattern of a rule, and the sources in which it looks for facts."""

    pattern: FactPattern
    sources: tuple[Source, ...]

    @property
    def shape(self) -> Shape:
        return shape(self.pattern)

    def reads(self, stream: str, graphs: bool = False) -> bool:
        """Whether it reads anything of a stream. graphs: which may bring any named graphs."""
        named = (graphs and source.reads(stream, iri(source.iri or stream)) for source in self.sources)
        return any(source.reads(stream) for source in self.sources) or any(named)

    def finds(self, maker: Maker) -> bool:
        """Whether it reads the stream and the graph in which facts are made."""
        return any(may_read(source, maker.stream or "", maker.graph) for source in self.sources)

    @property
    def of_graphs(self) -> bool:
        """Whether it reads named graphs, wherever they come from."""
        return any(isinstance(one, Graphs) or (isinstance(one, Graph) and not one.within) for one in self.sources)

    @property
    def derives(self) -> bool:
        """Whether it reads what rules derive."""
        return any(source.reads_derived_facts for source in self.sources)


P = TypeVar("P", Pattern, AtomPattern)
ANY = "any stream"
"""In place of a stream's IRI: a variable says which it is."""


class Maker(NamedTuple):
    """A rule (by number) that makes facts, and the stream in which these are (or `ANY`); None: they are derived. graph:
    the name of that in which they are there (``""``: none; None: any)."""

    rule: int
    stream: str | None
    graph: str | None = ""


@dataclass(frozen=True)
class Program:
    """A program to be checked: its system, with its windows, and the texts that it was made of.

    given: the streams, by IRI, that sources and static data bring (``""`` is the default one); None: nobody knows.
    growing: of these, those that bring events, for ever; None: nobody knows. graphs: whether they may bring named
    graphs.
    statistics: counts of the data; None: nobody counted. windows: those that were given from outside.
    """

    system: System
    texts: tuple[Text, ...] = ()
    given: frozenset[str] | None = None
    growing: frozenset[str] | None = None
    graphs: bool = True
    statistics: Statistics | None = None
    windows: tuple[Window, ...] = ()

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in the order of the program."""
        return tuple(Rule(rule, telling.stream) for telling in output_specs(self.system) for rule in telling.rules)

    @cached_property
    def identities(self) -> list[tuple[str, ...]]:
        """For each rule, what is the same for rules that mean the same. Raises PlannerError, or Errors, where rules
        cannot be planned."""
        return identities(self.system)

    @cached_property
    def made(self) -> Shapes[Maker]:
        """The facts that rules make, by their shapes, as patterns read them."""
        found: Shapes[Maker] = Shapes()
        for number, rule in enumerate(self.rules):
            for made, *where in _made(rule):
                found.add(made, Maker(number, *where))
        return found

    @cached_property
    def predicates(self) -> frozenset[Term]:
        """The constant predicates of the triples that rules make."""
        return frozenset(made.predicate for made in self._templates(Pattern) if isinstance(made.predicate, str))

    @cached_property
    def relations(self) -> frozenset[Term]:
        """The relations of the atoms that rules make."""
        return frozenset(made.relation for made in self._templates(AtomPattern))

    def _templates(self, kind: type[P]) -> Iterator[P]:
        for rule in self.rules:
            for one in rule.system.consequences:
                if isinstance(one, Construct | Insert):
                    yield from (made for made in one.template if isinstance(made, kind))

    @cached_property
    def own_streams(self) -> frozenset[str]:
        """The streams that the program makes."""
        return frozenset(derived_streams(self.system))

    @cached_property
    def present(self) -> frozenset[str] | None:
        """The streams, by IRI, that have facts which no rule made: what is given, and the documents that the program
        names; None: nobody knows."""
        if self.given is None:
            return None
        return self.given | {document.iri for document in documents(self.system)}

    def makers(self, reading: Reading) -> Iterator[Maker]:
        """The rules that make facts which a pattern may find."""
        for maker in self.made.overlapping(reading.shape):
            if reading.derives if maker.stream is None else maker.stream == ANY or reading.finds(maker):
                yield maker


Check = Callable[[Program], Iterator[Finding]]
"""What gives everything of one kind that is to be said of a program."""


def _made(rule: Rule) -> Iterator[tuple[Shape, str | None, str | None]]:
    if rule.system.reentrant:
        yield from ((made, None, "") for made in derived_shapes(rule.system))
    if rule.stream:
        yield from ((made, rule.stream, graph) for made, graph in stream_shapes(rule.system, rule.stream))
    for one in rule.system.consequences:
        if isinstance(one, Insert):
            yield from ((shape(template), _graph(one), "") for template in one.template)


def _graph(insert: Insert) -> str:
    match insert.graph:
        case None:
            return WORKING
        case str() as graph:
            return iri_text(graph)
        case _:
            return ANY


def readings(part: Part, sources: tuple[Source, ...] = (Source(),)) -> Iterator[Reading]:
    """All patterns in a part, each with its sources."""
    if isinstance(part, System):
        sources = part.sources
    if isinstance(part, FactPattern):
        yield Reading(part, sources)
    for inner in inside(part):
        yield from readings(inner, sources)


def systems(rule: Rule) -> Iterator[System]:
    """A rule, and all systems in it."""
    return (part for part in walk(rule.system) if isinstance(part, System))


def mentions(part: Any) -> Iterator[Variable]:
    """Every place of a part in which a variable stands, seen from outside or not."""
    if isinstance(part, Variable):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from mentions(inner)
    elif is_dataclass(part):
        for one in fields(part):
            if one.compare:
                yield from mentions(getattr(part, one.name))


def origin_of(expression: Expression) -> Origin | None:
    """Where an expression was written: a translator may have put a call of its own around it."""
    if not isinstance(expression, Call):
        return None
    inner = (origin_of(argument) for argument in expression.arguments)
    return expression.origin or next((origin for origin in inner if origin is not None), None)


def is_silent(variable: Variable) -> bool:
    """Whether nothing is to be said of a variable: its name begins with ``_``, or a translator made it up."""
    return variable.name.startswith("_") or " " in variable.name or not variable.name
