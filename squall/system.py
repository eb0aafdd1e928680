"""The Translated Production System (TPS): what a program means, in names, whatever language it was written in.

The five kinds of component of the four-stage design (SourceProvider, JoinableComponent, Predicate, Consequence,
sub-TPS) as frozen data. Equality is meaning: `origin` does not take part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from squall.errors import Origin, SquallError
from squall.rdf import ALWAYS, HEARTBEAT, WORKING, XSD, Atom, Fact, Term, Triple, iri, iri_text, literal
from squall.windows import LANDMARK, Count, Nothing, Window


@dataclass(frozen=True)
class Variable:
    """A variable by name, without its question mark."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Slot = Term | Variable


@dataclass(frozen=True)
class Source:
    """The potential to read a stream through a window (a SourceProvider), or all of them.

    iri: the stream; ``""`` names the default graph: all streams and static data.
    window: says when what is read is valid; of the default graph, for streams that have no window of their own.
    windows: of the default graph, the streams that have one.
    removals: whether the stream may carry removals (`squall.rdf.Event.removed`).
    apart: whether static data in a named graph are in that graph alone, as in the data set of SPARQL.
    """

    is_plain: ClassVar[bool] = True
    """Whether patterns read facts as streams bring them."""
    iri: str = ""
    window: Window = LANDMARK
    windows: tuple[tuple[str, Window], ...] = ()
    removals: bool = False
    apart: bool = field(default=False, kw_only=True)

    @property
    def all_windows(self) -> tuple[Window, ...]:
        """Every window through which something may be read."""
        return (self.window, *(window for _, window in self.windows))

    def window_of(self, stream: str) -> Window:
        """The window through which a stream is read."""
        return LANDMARK if stream == WORKING else dict(self.windows).get(stream, self.window)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        """Whether it reads anything of a stream, or (`static`) of the static data that belong to it. graph: what is in
        the named graph of this name (a term's text), and not in the default graph."""
        if static and graph and self.apart:
            return bool(self.iri) and self.iri == iri_text(graph)
        return self.iri in ("", stream) and self._is_open(stream)

    def counts(self, stream: str) -> bool:
        """Whether it reads a stream, or some of its graphs, through a window of triples, which counts them all."""
        return self.iri in ("", stream) and isinstance(self.window_of(stream), Count)

    def _is_open(self, stream: str) -> bool:
        """Whether a stream has a window through which anything is seen."""
        return not (stream and isinstance(self.window_of(stream), Nothing))

    def alone(self, stream: str) -> Source:
        """The same, of one stream of those that it reads."""
        return replace(self, iri=stream, window=self.window_of(stream), windows=(), removals=False)

    @property
    def stream(self) -> str:
        """The stream that it reads, if it reads one alone."""
        return self.iri

    @property
    def derives(self) -> bool:
        """Whether what rules derive is read, too."""
        return self.iri == ""

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "") -> tuple[Fact, ...]:
        """What patterns read of a fact, of a stream that brings it at a time (integer ms), in a named graph or
        none."""
        return (fact,)


@dataclass(frozen=True)
class Graph(Source):
    """The named graph of an IRI: what the stream of this name brings, and what others bring in a named graph of this
    name, each through the window of its stream.

    within: of this stream only what it brings in a named graph of this name.
    """

    within: str = field(default="", kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        if not self._is_open(stream):
            return False
        named = bool(graph) and iri_text(graph) == self.iri
        if self.within:
            return named and stream == self.within
        return named or (stream == self.iri and not (static and graph))

    def counts(self, stream: str) -> bool:
        return self.within in ("", stream) and isinstance(self.window_of(stream), Count)

    def alone(self, stream: str) -> Source:
        within = "" if stream == self.iri else stream
        return replace(self, window=self.window_of(stream), windows=(), removals=False, within=within)

    @property
    def stream(self) -> str:
        return self.within or self.iri

    @property
    def derives(self) -> bool:
        return False


GRAPH = iri("urn:x-squall:graph")
"""The relation of what `Graphs` reads."""


@dataclass(frozen=True)
class Graphs(Source):
    """The triples of named graphs, each with the name: a triple ``s p o`` of the stream ``g`` is read as the atom
    ``GRAPH(g, s, p, o)``, in the window of that stream, and if the stream brings it in the named graph ``h``, as
    ``GRAPH(h, s, p, o)``, too. Static data are in one graph: the one in which they are, or else that of their stream.

    What has no name is not there: the default stream, and what rules derive.
    inside: a stream itself is no graph, only those that it brings are.
    """

    is_plain: ClassVar[bool] = False
    inside: bool = field(default=False, kw_only=True)

    def reads(self, stream: str, graph: str = "", static: bool = False) -> bool:
        named = bool(graph) or not (self.inside or stream in UNNAMED)
        return named and self.iri in ("", stream) and self._is_open(stream)

    @property
    def derives(self) -> bool:
        return False

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "") -> tuple[Fact, ...]:
        if not isinstance(fact, Triple):
            return ()
        names = _names(stream, time, graph)
        return tuple(Atom(GRAPH, (name, *fact)) for name in (names[-1:] if self.inside else names))


def _names(stream: str, time: int, graph: str) -> tuple[Term, ...]:
    """The names of the graphs that something is in."""
    own = (Term(graph),) if graph else ()
    return own if stream in UNNAMED or (time == ALWAYS and graph) else tuple(dict.fromkeys((iri(stream), *own)))


CAME = iri("urn:x-squall:came")
"""The relation of what `Arrivals` reads."""


@dataclass(frozen=True)
class Arrivals(Source):
    """The triples of streams, each with where and when it came: a triple ``s p o`` that the stream ``g`` brings at the
    time ``t`` is read as the atom ``CAME(g, t, s, p, o)``, in the window of that stream. ``t`` is an xsd:integer of
    milliseconds since the epoch; of the default stream, ``g`` is the empty string. What comes in a named graph is read
    with the name of that, too.

    What never came is not there: static data, and what rules derive.
    """

    is_plain: ClassVar[bool] = False

    @property
    def derives(self) -> bool:
        return False

    def seen(self, fact: Fact, stream: str, time: int, graph: str = "") -> tuple[Fact, ...]:
        if time == ALWAYS or not isinstance(fact, Triple):
            return ()
        names = _names(stream, time, graph)
        if stream in UNNAMED:
            names = (literal(""), *names)
        return tuple(Atom(CAME, (name, literal(str(time), XSD + "integer"), *fact)) for name in names)


UNNAMED = frozenset(("", HEARTBEAT, WORKING))
"""The streams that are no named graphs: the default one, and those of our own."""


@dataclass(frozen=True)
class Pattern:
    """A triple pattern (a joinable, or a fact's template). A literal matches by value; everything else by term.

    exact: literals match by term, too (SPARQL 1.1, section 18.3). Of a template it says nothing.
    """

    subject: Slot
    predicate: Slot
    object: Slot
    exact: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return (self.subject, self.predicate, self.object)


@dataclass(frozen=True)
class AtomPattern:
    """``relation(slots)``: an n-ary pattern or template. exact: as in `Pattern`."""

    relation: Term
    arguments: tuple[Slot, ...]
    exact: bool = field(default=False, kw_only=True)
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
    """Extends a solution by the expression's value (a Predicate); a solution for which it has none is dropped.

    keeps: it is kept, the variable unbound (SPARQL 1.1, section 18.5, Extend).
    """

    variable: Variable
    expression: Expression
    keeps: bool = False


@dataclass(frozen=True)
class Compute:
    """Extends a solution by each row of values that a function makes of it (a table function): none, one or many.

    The function is looked up by IRI as in a `Call`; it gives rows of as many terms as there are variables.
    """

    variables: tuple[Variable, ...]
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Without:
    """Keeps a solution where the joinables have no solution that agrees with it on the variables that are bound in
    both.

    ``noValue``, negation as failure: evaluated on the whole model, stratum by stratum. Variables that occur in the
    joinables alone are local to them. minus: only a solution of the joinables counts in which at least one variable is
    bound that is bound in the solution, too (SPARQL 1.1, section 18.5, Minus); these do not count for that if they are
    `apart`.
    """

    joinables: tuple[Joinable, ...]
    minus: bool = field(default=False, kw_only=True)
    apart: tuple[Variable, ...] = field(default=(), kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Maybe:
    """OPTIONAL, a true left join: a solution with each solution of the system that agrees with it on the variables
    they share and for which the condition holds; by itself, the others unbound, where there is none.

    The condition may use the variables of both (SPARQL 1.1, section 18.2.2.6, filters of an OPTIONAL).
    exists: what the condition asks besides: each extends a pair of solutions in front of it, by a variable that is seen
    by the condition alone.
    """

    system: System
    condition: Call | None = None
    exists: tuple[Exists, ...] = ()


@dataclass(frozen=True)
class Exists:
    """Extends each solution by whether the system has a solution for it: ``"true"`` or ``"false"``, an xsd:boolean.

    The system is that which results where the variables that the solution binds are replaced by their values (SPARQL
    1.1, section 18.6, exists): tests, binds, optional parts and nested `Exists` may use them. A part that selects,
    groups or slices (a sub-query) does not see them: it is evaluated by itself, and then joined. A `Bind` or `Compute`
    of such a variable keeps what gives it the value that it has.
    variable: None: the solution is not extended. wanted: True keeps solutions for which there is one only, False those
    for which there is none, None all. So ``Exists(None, system, True)`` is FILTER EXISTS, and as cheap as a join.
    """

    variable: Variable | None
    system: System
    wanted: bool | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


Predicate = Test | Bind | Compute | Without | Maybe | Exists


@dataclass(frozen=True)
class Either:
    """The solutions of each of the systems beside each other, as a bag (UNION, Or). A variable that one of them does
    not bind is unbound in its solutions."""

    branches: tuple[System, ...]


@dataclass(frozen=True)
class Aggregate:
    """A value of all solutions of a group.

    kind: ``count``, ``sum``, ``avg``, ``min``, ``max``, ``sample`` or ``group_concat``.
    expression: of what; None counts solutions (``count`` only).
    distinct: equal values count once. separator: between values (``group_concat``).
    """

    variable: Variable
    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Grouping:
    """One solution for each combination of the keys' values: the keys and the aggregates. Without keys there is always
    one, also of nothing (SPARQL 1.1, section 18.5.1)."""

    keys: tuple[Variable, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Order:
    """By what solutions are put in order (SPARQL 1.1, section 15.1)."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Slice:
    """Some of the solutions that hold at an instant: those from `offset` on, `limit` of them, in the order given; what
    it leaves equal is ordered by its text, so that the choice is always the same. keys: so many for each combination of
    their values."""

    order: tuple[Order, ...] = ()
    offset: int = 0
    limit: int | None = None
    keys: tuple[Variable, ...] = ()


@dataclass(frozen=True)
class Construct:
    """Facts made of each solution (a Consequence).

    internal: rules read them, but they are no part of the answer (relations that property paths are made of).
    """

    template: tuple[FactPattern, ...]
    internal: bool = False


@dataclass(frozen=True)
class Insert:
    """Facts that are put into a graph when a solution begins to hold (a Consequence), from the next instant on until
    they are deleted (SPARQL 1.1 Update, section 3.1.3). A rule without a body puts them there from the start.

    graph: the stream of the graph, a term or a variable; None: the default working graph (`squall.rdf.WORKING`).
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Delete:
    """Facts that end when a solution begins to hold (a Consequence): what was brought or inserted of them is valid no
    longer, from the next instant on. What follows from other facts goes on for as long as these do.

    graph: the stream in which they end, a term or a variable; None: all of them.
    """

    template: tuple[Pattern, ...]
    graph: Slot | None = None


@dataclass(frozen=True)
class Select:
    """The solutions themselves (a Consequence), as a bag of values of these variables."""

    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Ask:
    """Whether there is any solution (a Consequence): at each instant one `squall.rdf.Boolean`."""


Consequence = Construct | Insert | Delete | Select | Ask


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
    the direct semantics of OWL, and refused if it is not in the profile RL (`squall.streams.ontologies`).
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
    ``istream`` and `CLOSE`. A system that says one of them, or has a stream, has an answer of its own (`tellings`).
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


Joinable = FactPattern | Either | System


def rules(system: System) -> Iterator[System]:
    """The systems with consequences, in the order of the program."""
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        yield from rules(subsystem)


@dataclass(frozen=True, eq=False)
class Telling:
    """How the answer of some rules is told: what they derive as a set of facts, what they select as a bag of solutions.
    Told apart by identity.

    name: that of all of these rules (a query); ``""``: each fact is told under the name of a rule that makes it.
    output, report, stream: see `System`.
    """

    rules: tuple[System, ...]
    output: str = "istream"
    report: Report = CLOSE
    stream: str = ""
    name: str = ""

    @property
    def has_facts(self) -> bool:
        """Whether rules of it make facts that are part of the answer."""
        return any(map(_makes_facts, self.rules))


def tellings(system: System) -> tuple[Telling, ...]:
    """The answers of a program, each with its rules: its own, then those of the systems in it that say how they are
    told or are streams, in the order of the program."""
    return tuple(_tellings(system, Telling(())))


def _tellings(system: System, around: Telling, nested: bool = False) -> Iterator[Telling]:
    own = tuple(_own_rules(system))
    names = {rule.name for rule in own if _makes_facts(rule)}
    name = names.pop() if nested and len(names) == 1 else ""
    found = Telling(own, system.output or around.output, system.report or around.report, system.stream, name)
    yield found
    for inner in _told_inside(system):
        yield from _tellings(inner, found, True)


def _makes_facts(rule: System) -> bool:
    made = (one for one in rule.consequences if isinstance(one, Construct | Insert))
    return any(isinstance(one, Insert) or not one.internal for one in made)


def is_told(system: System) -> bool:
    """Whether a system in another one has an answer of its own."""
    return bool(system.output or system.report or system.stream)


def _own_rules(system: System) -> Iterator[System]:
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        if not is_told(subsystem):
            yield from _own_rules(subsystem)


def _told_inside(system: System) -> Iterator[System]:
    for subsystem in system.subsystems:
        if is_told(subsystem):
            yield subsystem
        else:
            yield from _told_inside(subsystem)


def made_streams(system: System) -> tuple[str, ...]:
    """The IRIs (without brackets) of the streams that a program makes, each once, in its order."""
    return tuple(dict.fromkeys(telling.stream for telling in tellings(system) if telling.stream))


def documents(system: System) -> tuple[Document, ...]:
    """The documents of a program, each once, in the order of the program."""
    nested = (document for subsystem in system.subsystems for document in documents(subsystem))
    return tuple(dict.fromkeys((*system.documents, *nested)))


def streams(system: System) -> tuple[Stream, ...]:
    """The streams that a program names as such, each once, in the order of the program."""
    nested = (stream for subsystem in system.subsystems for stream in streams(subsystem))
    return tuple(dict.fromkeys((*system.streams, *nested)))


def warnings(system: System) -> tuple[SquallError, ...]:
    """The warnings of a program, in its order."""
    return (*system.warnings, *(warning for subsystem in system.subsystems for warning in warnings(subsystem)))


def visible(part: System) -> tuple[Variable, ...]:
    """The variables of a part's solutions that can be seen from outside, each once, in the order of its text."""
    for consequence in part.consequences:
        if isinstance(consequence, Select):
            return consequence.variables
    if part.grouping is not None:
        return (*part.grouping.keys, *(aggregate.variable for aggregate in part.grouping.aggregates))
    names = [name for joinable in part.joinables for name in variables(joinable)]
    for predicate in part.predicates:
        names += _made(predicate)
    return tuple(dict.fromkeys(names))


def _made(predicate: Predicate) -> tuple[Variable, ...]:
    match predicate:
        case Bind(variable=variable):
            return (variable,)
        case Compute(variables=names):
            return names
        case Maybe(system=system):
            return visible(system)
        case Exists(variable=variable):
            return () if variable is None else (variable,)
        case Test() | Without():
            return ()


def is_update(rule: System) -> bool:
    """Whether a rule inserts or deletes: it acts on each of its solutions when it begins to hold, and these are told
    apart by all of their variables."""
    return any(isinstance(consequence, Insert | Delete) for consequence in rule.consequences)


def is_initial(rule: System) -> bool:
    """Whether what a rule inserts is there from the start: it has no body."""
    return not (rule.joinables or rule.predicates or rule.grouping or rule.slice)


def variables(part: Joinable | Expression | None) -> Iterator[Variable]:
    """The variables of a joinable that can be seen from outside, or of an expression: left to right, repetitions
    included."""
    match part:
        case Variable():
            yield part
        case Call(arguments=arguments):
            for argument in arguments:
                yield from variables(argument)
        case Pattern() | AtomPattern():
            yield from (slot for slot in part.slots if isinstance(slot, Variable))
        case Either(branches=branches):
            for branch in branches:
                yield from visible(branch)
        case System():
            yield from visible(part)
        case str() | None:
            return


def over(
    system: System, window: Window = LANDMARK, windows: Mapping[str, Window] | None = None, removals: bool = False
) -> System:
    """The system with windows on what names none itself, in all of its parts: `windows` by stream, `window` for the
    others. removals: whether streams may carry removals."""
    return _over(system, Source("", window, tuple(sorted((windows or {}).items())), removals))


def _through(source: Source, default: Source) -> Source:
    """A source through the windows of another, if it has none of its own."""
    if (source.window, source.windows) != (LANDMARK, ()):
        return replace(source, removals=source.removals or default.removals)
    if source.iri and not isinstance(source, Graph):
        return replace(source, window=default.window_of(source.iri), removals=default.removals)
    return replace(source, window=default.window, windows=default.windows, removals=default.removals)


def _over(system: System, default: Source) -> System:
    def part(one: Any) -> Any:
        match one:
            case System():
                return _over(one, default)
            case Either(branches=branches):
                return replace(one, branches=tuple(_over(branch, default) for branch in branches))
            case Maybe(system=inner, exists=exists):
                return replace(one, system=_over(inner, default), exists=tuple(map(part, exists)))
            case Exists(system=inner):
                return replace(one, system=_over(inner, default))
            case Without(joinables=joinables):
                return replace(one, joinables=tuple(map(part, joinables)))
            case _:
                return one

    return replace(
        system,
        sources=tuple(_through(source, default) for source in system.sources),
        joinables=tuple(map(part, system.joinables)),
        predicates=tuple(map(part, system.predicates)),
        subsystems=tuple(map(part, system.subsystems)),
    )
