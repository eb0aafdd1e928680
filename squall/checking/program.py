"""The program that checks look at: its system and texts, its sources, and which rules feed which patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from squall.checking.findings import Finding
from squall.compiling import Program as Text
from squall.errors import Origin
from squall.functions.timers import FIRED, TIMERS, sets_timer
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
    derived_streams,
    documents,
    output_specs,
)
from squall.model.fact_shapes import Shape, Shapes, derived_shapes, may_read, shape, stream_shapes
from squall.model.walk import Part, inside, walk
from squall.model.windows import Window
from squall.plan.cardinality import Statistics
from squall.planners.rete import identities
from squall.rdf import WORKING, Term, iri, iri_text


class Rule(NamedTuple):
    """A rule of a program, and the derived stream of its facts (``""``: none)."""

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
        """Returns whether it reads anything of a stream.

        Args:
            graphs: Whether the stream may bring any named graphs.
        """
        graph_reads = (graphs and source.reads(stream, iri(source.iri or stream)) for source in self.sources)
        return any(source.reads(stream) for source in self.sources) or any(graph_reads)

    def finds(self, maker: Maker) -> bool:
        """Returns whether it reads the stream and the graph of derived facts."""
        return any(may_read(source, maker.stream or "", maker.graph) for source in self.sources)

    @property
    def of_graphs(self) -> bool:
        """Whether it reads named graphs, wherever they come from."""
        return any(
            isinstance(source, Graphs) or (isinstance(source, Graph) and not source.within) for source in self.sources
        )

    @property
    def reads_derived(self) -> bool:
        """Whether it reads what rules derive."""
        return any(source.reads_derived_facts for source in self.sources)


P = TypeVar("P", Pattern, AtomPattern)
ANY = "any stream"
"""Stands for a stream's IRI that is given by a variable."""


class Maker(NamedTuple):
    """A rule (by number) that derives facts, and where these are.

    Attributes:
        rule: The number of the rule.
        stream: The stream in which the facts are, or `ANY`. None means derived facts of the default graph.
        graph: The named graph in which they are. ``""`` means none, None any.
    """

    rule: int
    stream: str | None
    graph: str | None = ""


@dataclass(frozen=True)
class Program:
    """A program to be checked.

    Attributes:
        system: The system, with its windows.
        texts: The texts that it was compiled from.
        given: The streams, by IRI, of sources and static data (``""`` is the default one). None means unknown.
        growing: Those of them that bring events without end. None means unknown.
        graphs: Whether they may bring named graphs.
        statistics: Counts of the data, if there are any.
        classes: The classes that the data have instances of. None means unknown.
        windows: The windows that were given from outside.
        tuples: The addresses of sources and static data whose quintuples become tuples.
    """

    system: System
    texts: tuple[Text, ...] = ()
    given: frozenset[str] | None = None
    growing: frozenset[str] | None = None
    graphs: bool = True
    statistics: Statistics | None = None
    classes: frozenset[Term] | None = None
    windows: tuple[Window, ...] = ()
    tuples: tuple[str, ...] = ()

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in the order of the program."""
        return tuple(Rule(rule, spec.stream) for spec in output_specs(self.system) for rule in spec.rules)

    @cached_property
    def identities(self) -> list[tuple[str, ...]]:
        """For each rule, a key that rules with the same meaning share.

        Raises:
            PlannerError: A rule cannot be planned.
            Errors: Several rules cannot.
        """
        return identities(self.system)

    @cached_property
    def derived(self) -> Shapes[Maker]:
        """The facts that rules derive, by their shapes, as patterns read them."""
        makers: Shapes[Maker] = Shapes()
        for number, rule in enumerate(self.rules):
            for fact_shape, *where in _derived(rule):
                makers.add(fact_shape, Maker(number, *where))
        return makers

    @cached_property
    def predicates(self) -> frozenset[Term]:
        """The constant predicates of the triples that rules derive."""
        return frozenset(
            template.predicate for template in self._templates(Pattern) if isinstance(template.predicate, str)
        )

    @cached_property
    def relations(self) -> frozenset[Term]:
        """The relations of the atoms that rules derive."""
        return frozenset(template.relation for template in self._templates(AtomPattern))

    def _templates(self, kind: type[P]) -> Iterator[P]:
        for rule in self.rules:
            for consequence in rule.system.consequences:
                if isinstance(consequence, Construct | Insert):
                    yield from (template for template in consequence.template if isinstance(template, kind))

    @cached_property
    def own_streams(self) -> frozenset[str]:
        """The streams that the program derives."""
        return frozenset(derived_streams(self.system))

    @cached_property
    def present(self) -> frozenset[str] | None:
        """The streams, by IRI, with facts that no rule derived: those that are given, and the documents that the
        program names.

        None means unknown.
        """
        if self.given is None:
            return None
        return self.given | {document.iri for document in documents(self.system)}

    def makers(self, reading: Reading) -> Iterator[Maker]:
        """Yields the rules that derive facts which a pattern may match."""
        for maker in self.derived.overlapping(reading.shape):
            if reading.reads_derived if maker.stream is None else maker.stream == ANY or reading.finds(maker):
                yield maker


Check = Callable[[Program], Iterator[Finding]]
"""A function that yields all findings of one kind about a program."""


def _derived(rule: Rule) -> Iterator[tuple[Shape, str | None, str | None]]:
    if rule.system.reentrant:
        yield from ((fact_shape, None, "") for fact_shape in derived_shapes(rule.system))
    if rule.stream:
        yield from ((fact_shape, rule.stream, graph) for fact_shape, graph in stream_shapes(rule.system, rule.stream))
    for consequence in rule.system.consequences:
        if isinstance(consequence, Insert):
            yield from ((shape(template), _graph(consequence), "") for template in consequence.template)
            if any(sets_timer(_graph(consequence), template.slots[1]) for template in consequence.template):
                yield (None, FIRED, None), TIMERS, ""


def _graph(insert: Insert) -> str:
    match insert.graph:
        case None:
            return WORKING
        case str() as graph:
            return iri_text(graph)
        case _:
            return ANY


def readings(part: Part, sources: tuple[Source, ...] = (Source(),)) -> Iterator[Reading]:
    """Yields all patterns in a part, each with its sources."""
    if isinstance(part, System):
        sources = part.sources
    if isinstance(part, FactPattern):
        yield Reading(part, sources)
    for inner in inside(part):
        yield from readings(inner, sources)


def systems(rule: Rule) -> Iterator[System]:
    """Yields a rule, and all systems in it."""
    return (part for part in walk(rule.system) if isinstance(part, System))


def mentions(part: Any) -> Iterator[Variable]:
    """Yields every occurrence of a variable in a part, visible from outside or not."""
    if isinstance(part, Variable):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from mentions(inner)
    elif is_dataclass(part):
        for part_field in fields(part):
            if part_field.compare:
                yield from mentions(getattr(part, part_field.name))


def origin_of(expression: Expression) -> Origin | None:
    """Returns where an expression was written, even if a translator has put a call of its own around it."""
    if not isinstance(expression, Call):
        return None
    inner = (origin_of(argument) for argument in expression.arguments)
    return expression.origin or next((origin for origin in inner if origin is not None), None)


def is_silent(variable: Variable) -> bool:
    """Returns whether a variable has no findings: its name begins with ``_``, or a translator invented it."""
    return variable.name.startswith("_") or " " in variable.name or not variable.name
