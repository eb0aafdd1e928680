"""Systems: rules, queries, sets of them and parts of these, and when they are told."""

from __future__ import annotations

from dataclasses import dataclass, field

from squall.errors import Origin, SquallError
from squall.model.consequences import Consequence
from squall.model.expressions import Grouping, Predicate, Slice, Union
from squall.model.patterns import FactPattern
from squall.model.sources import Source


@dataclass(frozen=True)
class Report:
    """At which instants the answer is evaluated (the report policies of the SECRET model, Botan et al., VLDB 2010).

    policy: ``close``: whenever the content of a window may have changed (an event in a landmark, `Range` or `Count`
    window, the end of its validity; a step of a `Stepped` one that has content, or has just lost it); ``change``: of
    these, only where the answer is another one than before; ``nonempty``: only where the answer is not empty;
    ``periodic``: at the multiples of `period` (integer ms), from the first after the first event on.
    empty: of every query a `squall.rdf.Evaluated` ends what it answers at each of these instants, so that one at which
    the answer is empty shows (``rstream``).
    """

    policy: str = "close"
    period: int = 0
    empty: bool = False


CLOSE = Report()


@dataclass(frozen=True)
class Document:
    """A document that a program names, to be loaded as static data of the stream of its IRI (without brackets).

    forbidden: the datatypes (IRIs) that no literal in it may have: it is refused as a whole. ontology: it is read by
    the direct semantics of OWL, and refused if it is not in the profile RL (`squall.streams.sources.ontologies`).
    """

    iri: str
    origin: Origin | None = field(default=None, compare=False, repr=False)
    forbidden: tuple[str, ...] = ()
    ontology: bool = False


@dataclass(frozen=True)
class Stream:
    """A stream that a program names as one, which has to be given when it is run (its IRI without brackets)."""

    iri: str
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class System:
    """A rule, a query, a set of them, or a part of one (sub-TPS).

    sources: what its patterns read: the union of these.
    joinables: combined by AND; none means that the body always holds (an axiom). A system among them is a part that is
    evaluated by itself (a sub-query) and then joined.
    predicates: applied in this order to the joined solutions.
    grouping: then applied to them; it leaves its keys and aggregates.
    distinct, slice: applied to the solutions that are left, projected to what `Select` names.
    consequences: what each solution makes. In a part, `Select` says which variables can be seen from outside.
    subsystems: stand alone beside each other (the rules of a rule set); never joined.
    reentrant: whether consequences are read again by the systems they belong with.
    output: the R2S operator by which answers are handed on: ``istream``, ``dstream`` or ``rstream``; report: at which
    evaluation instants they are (docs/semantics.md, section 4). None: as those of the system around it; of a program,
    ``istream`` and `CLOSE`. A system that says one of them, or has a stream, has an answer of its own (`output_specs`).
    stream: the IRI (without brackets) of the stream that the facts of its answer are the events of; ``""``: of none.
    documents: what has to be loaded before it is run. streams: what has to be given for it.
    warnings: what its author may not have meant (`squall.errors.TranslatorWarning`).
    """

    name: str = ""
    sources: tuple[Source, ...] = (Source(),)
    joinables: tuple[Joinable, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    grouping: Grouping | None = None
    distinct: bool = False
    slice: Slice | None = None
    consequences: tuple[Consequence, ...] = ()
    subsystems: tuple[System, ...] = ()
    reentrant: bool = True
    output: str | None = None
    report: Report | None = None
    stream: str = ""
    documents: tuple[Document, ...] = ()
    streams: tuple[Stream, ...] = ()
    warnings: tuple[SquallError, ...] = field(default=(), compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)


Joinable = FactPattern | Union | System
