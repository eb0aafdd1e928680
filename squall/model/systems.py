"""Systems: rules, queries, sets of them and parts of these, with their output and report policy."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall import plugins
from squall.errors import Origin, SquallError
from squall.model.consequences import Consequence
from squall.model.expressions import Grouping, Predicate, Slice, Union
from squall.model.fixed_schema import FixedSchema
from squall.model.patterns import FactPattern
from squall.model.reports import Report
from squall.model.sequences import Consumption, SequenceJoin
from squall.model.sources import Source
from squall.model.temporal import Temporal
from squall.rdf import Term
from squall.rdf.cliques import Cliques

BY_CLIQUE = "clique"
"""How a query treats owl:sameAs by `REASONING [SM]`: with provenance if that is said around it, or else by
representative.
"""


@dataclass(frozen=True)
class Document:
    """A document that a program names, to be loaded as static data of the stream of its IRI (without brackets).

    Attributes:
        forbidden: The datatypes (IRIs) that no literal in it may have. A document with one is refused as a whole.
    """

    iri: str
    origin: Origin | None = field(default=None, compare=False, repr=False)
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stream:
    """A stream that a program names as one. It has to be given when the program is run (IRI without brackets)."""

    iri: str
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class System:
    """A rule, a query, a set of them, or a part of one (sub-TPS).

    Attributes:
        sources: The patterns read the union of these.
        joinables: They are combined by AND. Without any, the body always holds (an axiom). A system among them is a
            subquery: it is evaluated by itself and then joined.
        predicates: They are applied in this order to the joined solutions.
        grouping: It is then applied to them, and leaves its keys and aggregates.
        distinct: Whether the remaining solutions, projected to what `Select` names, are a set.
        slice: It is applied to these last.
        consumption: Of a rule whose solutions are matches of a pattern over time, each at the instant at which it ends:
            which of them count, in place of the modifiers above.
        consequences: What each solution derives. In a part, `Select` says which variables are visible from outside.
        subsystems: They stand beside each other (the rules of a rule set) and are never joined.
        reentrant: Whether the systems that it belongs with read its consequences.
        output: The R2S operator of the answer: ``istream``, ``dstream``, ``rstream`` or ``changes``.
        report: The evaluation instants of the answer (docs/semantics.md, section 4). None for `output` or `report`
            means that of the enclosing system; of a program, ``istream`` and `CLOSE`. A system that has one of them, or
            a `stream`, has an answer of its own (`output_specs`).
        stream: The IRI (without brackets) of the derived stream whose events are the facts of the answer, or ``""``.
        internal: The derived stream is read by the program only: its facts are no output.
        documents: The documents to load before the run.
        streams: The streams that have to be given.
        is_named: Whether the program gives the name. Otherwise it may be changed, so that no other query has it
            (`squall.model.query_names`).
        is_background: Whether it is background knowledge, such as an ontology: a rule set in front of the programs that
            it is compiled with, and part of the answer only without them.
        entailment: Of a program or a query: the name of the entailment regime of its patterns, by a pragma or by
            `REASONING`. None: that of what it is a part of, or of the run.
        batch_interval: Of a program: how long events may be gathered for a micro-batch (integer ms), or None. No answer
            depends on it (`batch_interval_of`).
        fixed_schema: Of a whole system: the schema that is compiled into it, if any.
        same_as: Of a program or a query: how its patterns treat owl:sameAs, by a pragma or by `REASONING`
            (`squall.reasoning.same_as_mode`). None: as what it is a part of, or as the run does.
        cliques: Of a whole system: the terms that its sources read as one, if any.
        declared_names: Of an ontology: the classes that it names, and its properties.
        axioms: Of an ontology: its axioms, whose texts are in functional-style syntax.
        warnings: What its author may not have meant (`squall.errors.TranslatorWarning`).
    """

    name: str = ""
    sources: tuple[Source, ...] = (Source(),)
    joinables: tuple[Joinable, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    grouping: Grouping | None = None
    distinct: bool = False
    slice: Slice | None = None
    consumption: Consumption | None = field(default=None, repr=False)
    consequences: tuple[Consequence, ...] = ()
    subsystems: tuple[System, ...] = ()
    reentrant: bool = True
    output: str | None = None
    report: Report | None = None
    stream: str = ""
    internal: bool = field(default=False, repr=False)
    documents: tuple[Document, ...] = ()
    streams: tuple[Stream, ...] = ()
    entailment: str | None = field(default=None, repr=False)
    batch_interval: int | None = field(default=None, repr=False)
    fixed_schema: FixedSchema | None = field(default=None, repr=False)
    same_as: str | None = field(default=None, repr=False)
    cliques: Cliques | None = field(default=None, repr=False)
    is_named: bool = field(default=False, compare=False, repr=False)
    is_background: bool = field(default=False, compare=False, repr=False)
    declared_names: tuple[frozenset[Term], frozenset[Term]] = field(
        default=(frozenset(), frozenset()), compare=False, repr=False
    )
    axioms: tuple[object, ...] = field(default=(), compare=False, repr=False)
    warnings: tuple[SquallError, ...] = field(default=(), compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        """Returns the text of the system, for notebooks."""
        return str(plugins.load(plugins.HTML, "system")(self))


Joinable = FactPattern | Union | SequenceJoin | Temporal | System


def axioms_of(system: System) -> tuple[object, ...]:
    """Returns the axioms of the ontologies in a system."""
    return (*system.axioms, *(axiom for part in system.subsystems for axiom in axioms_of(part)))


def batch_interval_of(system: System) -> int | None:
    """Returns how long events may be gathered for a micro-batch (integer ms): the shortest time that a program names.

    None: no program names one.
    """
    own = () if system.batch_interval is None else (system.batch_interval,)
    nested = (batch_interval_of(part) for part in system.subsystems)
    return min((*own, *(interval for interval in nested if interval is not None)), default=None)
