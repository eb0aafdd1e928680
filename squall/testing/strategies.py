"""Hypothesis strategies: programs over a vocabulary so small that everything meets everything, and streams for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial, reduce
from itertools import accumulate, permutations, product
from typing import Any

from hypothesis import strategies as st

from squall import functions
from squall.errors import SquallError
from squall.functions.jena import function_iri
from squall.rdf import ALWAYS, QUAD, XSD, Event, Fact, Term, Triple, iri, literal
from squall.strata import stratify
from squall.system import (
    CAME,
    GRAPH,
    Aggregate,
    Arrivals,
    Ask,
    AtomPattern,
    Bind,
    Call,
    Compute,
    Consequence,
    Construct,
    Delete,
    Either,
    Exists,
    Expression,
    FactPattern,
    Graph,
    Graphs,
    Grouping,
    Insert,
    Joinable,
    Maybe,
    Order,
    Pattern,
    Predicate,
    Report,
    Select,
    Slice,
    Slot,
    Source,
    System,
    Test,
    Variable,
    Without,
    is_update,
    variables,
    visible,
)
from squall.windows import LANDMARK, Count, Range, Stepped, Window

NODES = tuple(iri(f"http://example.org/{name}") for name in "abc")
LITERALS = (
    literal("1", XSD + "int"),
    literal("01", XSD + "integer"),
    literal("1.0", XSD + "double"),
    literal("2", XSD + "integer"),
    literal("1"),
)
"""Some are one value in several forms; the last is a string."""
NUMBERS = (*LITERALS[:4], literal("0.1", XSD + "decimal"), literal("0.3", XSD + "float"))
LEVELS = tuple(tuple(iri(f"http://example.org/{name}") for name in names) for names in (("p", "q"), ("r",), ("s",)))
"""Predicates by stratum: a rule reads its own level and those below it, and negates only those below."""
MEASURE = iri("http://example.org/n")
"""A predicate whose objects are numbers; no rule makes it."""
STREAMS = ("", "http://example.org/one", "http://example.org/two")
MADE_STREAMS = ("http://example.org/made", "http://example.org/more")
"""Streams that programs make."""
GRAPHS = ("", "", "<http://example.org/one>", "<http://example.org/named>", "_:named")
"""Named graphs, of which one has the name of a stream."""

FEATURES = {
    "axioms": "rules without a body",
    "landmark": "sources without a window",
    "transitive": "rules that say that a predicate is transitive",
    "alike": "rules that differ in a constant",
    "negation": "Without",
    "maybe": "left joins",
    "either": "unions",
    "parts": "sub-systems that are joined, and more than one joinable in Without and Maybe",
    "compute": "table functions",
    "now": "the time since which a solution holds",
    "grouping": "aggregates",
    "totals": "aggregates without keys, which have a row of nothing too",
    "distinct": "of solutions",
    "slice": "order, offset and limit",
    "select": "queries beside rules",
    "delete": "rules that take facts out of the streams",
    "insert": "rules that put facts into graphs",
    "streams": "several streams, sources that name one, rules with several sources",
    "graphs": "parts that read where facts come from",
    "named": "events and static data in named graphs, and sources that read one of these",
    "times": "parts that read when facts came",
    "windows": "RANGE, and RANGE STEP with every alignment",
    "count": "windows of the last so many triples, each time, or after so many further ones",
    "removals": "streams that carry removals",
    "reports": "report policies other than `close`, and evaluations told where they are empty",
    "unsure": "joins on variables that may be unbound",
    "minus": "Without that asks for a variable that is bound in both",
    "exists": "whether there is a solution for a solution",
    "exact": "literals that match by term",
    "keeps": "values that solutions may do without",
    "ask": "queries that ask whether there is any solution",
    "internal": "facts that are no part of the answer",
    "tellings": "rules that say how their answer is told, and such as make streams that others read",
}
"""What a made-up program may have, by the name under which it is switched on."""
ALL = frozenset(FEATURES)
CORE = frozenset({"axioms", "landmark", "negation"})
"""What needs no time: rules over a growing set of facts."""

_WHOLE = frozenset({"negation", "minus", "exists", "maybe", "now", "grouping", "totals", "slice"})
"""Features by which more facts may make less: they read lower strata only."""
_TOP = len(LEVELS)
"""The level of what makes no facts (queries): it may read all others."""
_NAMES = tuple(map(Variable, "xyz"))
_TRUTHS = (literal("true", XSD + "boolean"), literal("false", XSD + "boolean"))
_MADE, _THERE, _ALSO, _GRAPH, _TIME = map(Variable, ("made", "there", "also", "graph", "time"))
_BASE, _DERIVED = LEVELS[0], tuple(predicate for level in LEVELS[1:] for predicate in level)
# What is listed several times is drawn more often: nodes rather than literals, data rather than what rules make.
_FACTS = tuple(
    Triple(subject, predicate, value)
    for subject, predicate, value in product(NODES, 2 * _BASE + _DERIVED, 3 * NODES + LITERALS)
)
_MEASURES = tuple(Triple(subject, MEASURE, value) for subject, value in product(NODES, NUMBERS))
_TESTS = tuple(
    (function_iri(name), (left, right))
    for name, left, right in product(("equal", "notEqual", "lessThan", "ge"), _NAMES, _NAMES + LITERALS[:3])
    if left != right
) + tuple((function_iri(name), (left,)) for name, left in product(("isLiteral", "notLiteral", "unbound"), _NAMES))


@dataclass(frozen=True)
class _Shape:
    """What a rule may say: the level that its head is on, and the features that its program has."""

    level: int
    features: frozenset[str]
    sources: tuple[tuple[Source, ...], ...]

    @property
    def below(self) -> tuple[Term, ...]:
        lower = tuple(predicate for level in LEVELS[: self.level] for predicate in level)
        return (*_BASE, *lower, MEASURE) if lower and self.features & {"grouping", "totals"} else lower

    @property
    def readable(self) -> tuple[Slot, ...]:
        """A variable for a predicate reads every level: only what nothing negates may depend on it."""
        own = LEVELS[self.level] if self.level < _TOP else ()
        known = (*_BASE, *_BASE, *self.below, *own)
        return (*known, _NAMES[-1]) if not self.features & _WHOLE or self.level >= _TOP - 1 else known


@dataclass(frozen=True)
class _Known:
    """The variables of a body: bound in each solution; of these, those that are never literals; maybe unbound."""

    bound: tuple[Variable, ...] = ()
    subjects: tuple[Variable, ...] = ()
    maybe: tuple[Variable, ...] = ()

    @property
    def all(self) -> tuple[Variable, ...]:
        return (*self.bound, *self.maybe)

    def plus(self, other: _Known) -> _Known:
        return _Known(
            _each_once(self.bound, other.bound),
            _each_once(self.subjects, other.subjects),
            tuple(name for name in _each_once(self.maybe, other.maybe) if name not in (*self.bound, *other.bound)),
        )

    def bound_in(self, pattern: Pattern) -> bool:
        """Whether all variables of a pattern are known."""
        return set(self.bound).issuperset(variables(pattern))

    def only(self, names: Collection[Variable]) -> _Known:
        parts = (self.bound, self.subjects, self.maybe)
        return _Known(*(tuple(name for name in part if name in names) for part in parts))


def _each_once(*parts: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))


# Streams


def facts(features: frozenset[str] = CORE) -> st.SearchStrategy[Triple]:
    """A triple of the vocabulary."""
    return st.sampled_from(_FACTS + 4 * _MEASURES if features & {"grouping", "totals"} else _FACTS)


@st.composite
def event_streams(draw: st.DrawFn, least: int = 7, most: int = 12, features: frozenset[str] = CORE) -> list[Event]:
    """Events in the order of time: several facts at once, the same fact twice, several events at one time, none with
    facts; pauses, with windows also such as are longer than all of them; with removals mostly of what has come."""
    together = st.lists(facts(features), min_size=3, max_size=8).map(tuple)
    given = st.one_of(together, together, together, together, st.just(()))
    pauses = st.sampled_from((0, 0, 0, 1, 1, 1, 2, 2, 3, 17) if "windows" in features else (0, 0, 0, 1, 1, 2))
    times = accumulate(draw(st.lists(pauses, min_size=least, max_size=most)))
    streams = st.sampled_from((*STREAMS[:2], *STREAMS) if "streams" in features else STREAMS[:1])
    graphs = st.sampled_from(GRAPHS if "named" in features else GRAPHS[:1])
    events = [Event(time, draw(given), draw(streams), graph=draw(graphs)) for time in times]
    return draw(_removing(events)) if "removals" in features else events


@st.composite
def _removing(draw: st.DrawFn, events: Sequence[Event]) -> list[Event]:
    """The events, of which some remove what came before them, or what never came."""
    found: list[Event] = []
    came: list[Fact] = []
    for event in events:
        removed = draw(st.lists(st.sampled_from((*came, *_FACTS[:2])), max_size=2)) if draw(_one_in(4)) else []
        found.append(event._replace(removed=tuple(removed)))
        came += event.facts
    return found


def static_data(most: int = 3, features: frozenset[str] = CORE) -> st.SearchStrategy[list[Event]]:
    """Facts that always hold."""
    streams = st.sampled_from((*STREAMS[:1], *STREAMS) if "streams" in features else STREAMS[:1])
    graphs = st.sampled_from(GRAPHS if "named" in features else GRAPHS[:1])

    def event(fact: Fact, stream: str, graph: str) -> Event:
        return Event(ALWAYS, (fact,), stream, graph=graph)

    return st.lists(st.builds(event, facts(features), streams, graphs), max_size=most)


def _one_in(many: int) -> st.SearchStrategy[bool]:
    """True once in so many times, and the more seldom the simpler hypothesis makes an example."""
    return st.integers(1, many).map(lambda number: number == many)


# Programs


@st.composite
def systems(draw: st.DrawFn, output: str | None = None, features: frozenset[str] = CORE) -> System:
    """A program of one to four rules and queries that can be stratified, planned, and ends: recursion makes no new
    terms, and no variable that may be unbound is joined on.

    Joins, repeated variables, constants (literals that are equal by value among them), several heads, tests, binds;
    and each of the `features`. In half of the programs nothing needs a whole stratum (negation, aggregates and so on).
    `output` is drawn where it is not given. Events for it are those of `event_streams` with the same features.
    """
    chosen = features if draw(st.booleans()) else features - _WHOLE
    if chosen >= {"delete", "insert"}:
        chosen -= draw(st.sampled_from((frozenset(), frozenset({"delete"}), frozenset({"insert"}))))
    default = draw(_sources_of("", chosen))
    sources: list[tuple[Source, ...]] = [(default,)]
    if "streams" in features:
        one, two = (draw(_sources_of(stream, chosen)) for stream in STREAMS[1:])
        sources = [*5 * [(default,)], (one,), (one, two), (default, one)]
    if "tellings" in features:
        made, more = (draw(_sources_of(stream, chosen)) for stream in MADE_STREAMS)
        sources += [(made,), (made, more), (default, made)]
    if "named" in features:
        sources += [(draw(_graphs_of(chosen)),), (default, draw(_graphs_of(chosen)))]
    top = _TOP if features & {"select", "delete", "insert", "ask"} else _TOP - 1
    levels = draw(st.lists(st.integers(0, top), min_size=2, max_size=4))
    program = [draw(_rules(f"r{number}", _Shape(level, chosen, tuple(sources)))) for number, level in enumerate(levels)]
    if "exact" in features:
        program = [_exactly(rule) if draw(_one_in(3)) else rule for rule in program]
    if "transitive" in features and draw(_one_in(4)):
        program.append(_transitive(draw(st.sampled_from((*_BASE, *_DERIVED))), draw(st.sampled_from(sources))))
    if "alike" in features and draw(_one_in(4)):
        like = draw(st.sampled_from(program))
        program += [replace(_turned(like), name="alike"), replace(_turned(_turned(like)), name="alike too")]
    report = draw(_reports()) if "reports" in features and draw(_one_in(3)) else None
    system = System(subsystems=tuple(program), output=output or draw(_outputs(chosen)), report=report)
    return draw(_told(system, chosen)) if "tellings" in features else system


def _outputs(features: frozenset[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(("istream", "istream", "rstream", *(["dstream"] if features & _FALLING else [])))


@st.composite
def _told(draw: st.DrawFn, system: System, features: frozenset[str]) -> System:
    """The program, some of its rules told in a way of their own; some make a stream, where no cycle comes of that."""
    updated = any(map(is_update, system.subsystems))  # what is told to streams would be told to itself, in time
    for place, rule in enumerate(system.subsystems):
        if is_update(rule) or not draw(_one_in(3)):
            continue
        report = draw(_reports()) if "reports" in features and draw(_one_in(3)) else None
        own = System(subsystems=(rule,), output=draw(_outputs(features)), report=report)
        made = draw(_quads(rule)) if "named" in features else rule
        stream = replace(own, stream=draw(st.sampled_from(MADE_STREAMS)), subsystems=(replace(made, reentrant=False),))
        system = _put(system, place, own)
        if not updated and draw(st.booleans()):
            with suppress(SquallError):
                stratify(_put(system, place, stream))
                system = _put(system, place, stream)
    return system


@st.composite
def _quads(draw: st.DrawFn, rule: System) -> System:
    """The rule, some of whose triples are made in a named graph."""
    graphs = st.sampled_from((None, *map(Term, GRAPHS[2:4]), *visible(rule)[:1]))

    def template(one: FactPattern) -> FactPattern:
        graph = draw(graphs)
        return AtomPattern(QUAD, (graph, *one.slots)) if isinstance(one, Pattern) and graph else one

    def made(one: Consequence) -> Consequence:
        return replace(one, template=tuple(map(template, one.template))) if isinstance(one, Construct) else one

    return replace(rule, consequences=tuple(map(made, rule.consequences)))


def _put(system: System, place: int, rule: System) -> System:
    return replace(system, subsystems=(*system.subsystems[:place], rule, *system.subsystems[place + 1 :]))


def _transitive(predicate: Term, sources: tuple[Source, ...]) -> System:
    x, y, z = _NAMES
    head = Construct((Pattern(x, predicate, z),))
    return System("transitive", sources, (Pattern(x, predicate, y), Pattern(y, predicate, z)), consequences=(head,))


def _turned(part: Any) -> Any:
    """The same with each node put in another's place."""
    if isinstance(part, str):
        return NODES[(NODES.index(part) + 1) % len(NODES)] if part in NODES else part
    return _changed(part, _turned)


def _exactly(part: Any) -> Any:
    """The same with patterns whose literals match by term."""
    made = _changed(part, _exactly)
    return replace(made, exact=True) if isinstance(made, Pattern) else made


def _changed(part: Any, change: Callable[[Any], Any]) -> Any:
    """What has parts, with each of these changed."""
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: change(getattr(part, field.name)) for field in fields(part)})
    return part


_FALLING = _WHOLE | {"windows", "count", "removals", "delete", "insert"}
"""Features by which answers come to an end."""


def _reports() -> st.SearchStrategy[Report]:
    periodic = st.builds(Report, st.just("periodic"), st.sampled_from((2, 3, 4, 12)))
    policies = st.one_of(st.sampled_from((Report("change"), Report("nonempty"), Report("close"))), periodic)
    return st.builds(lambda report, empty: replace(report, empty=empty), policies, st.booleans())


def _sources_of(stream: str, features: frozenset[str]) -> st.SearchStrategy[Source]:
    windows = _windows(features)
    own = st.lists(windows, min_size=2, max_size=2).map(lambda found: tuple(zip(STREAMS[1:], found, strict=True)))
    apart = st.one_of(st.just(()), own) if stream == "" and "streams" in features else st.just(())
    strict = st.booleans() if "named" in features else st.just(False)
    return st.builds(Source, st.just(stream), windows, apart, st.just("removals" in features), apart=strict)


def _graphs_of(features: frozenset[str]) -> st.SearchStrategy[Graph]:
    """Sources of a named graph, of all streams or within one."""
    found = _sources_of("", features)
    within = st.sampled_from(("", "", STREAMS[1], *(MADE_STREAMS if "tellings" in features else ())))

    def graph(source: Source, name: str, within: str) -> Graph:
        return Graph(name[1:-1], source.window, source.windows, source.removals, within=within)

    return st.builds(graph, found, st.sampled_from(GRAPHS[2:4]), within)


@cache
def _windows(features: frozenset[str]) -> st.SearchStrategy[Window]:
    """Windows whose sizes are of the order of the pauses between events. Their steps divide 12."""
    sizes, steps = st.integers(2, 12), st.sampled_from((1, 2, 3, 4))
    kinds: list[st.SearchStrategy[Window]] = []
    if "landmark" in features:
        kinds.append(st.just(LANDMARK))
    if "windows" in features:
        kinds += [st.builds(Range, sizes), st.builds(Range, sizes)]
        kinds += [
            st.builds(Stepped, sizes, steps, st.integers(0, 3), st.booleans()),
            steps.map(lambda size: Stepped(size, size)),
        ]
    if "count" in features:
        kinds += [st.builds(Count, st.integers(3, 16), st.sampled_from((1, 1, 2, 5))), st.integers(3, 16).map(_blocks)]
    return st.one_of(kinds)


def _blocks(size: int) -> Count:
    return Count(size, size)


def jena_texts() -> st.SearchStrategy[tuple[str, System]]:
    """A program as Jena rules, and the system that it has to mean, for a translator to be held against."""
    sayable = systems(output="istream").filter(lambda system: all(map(_is_jena, system.subsystems)))
    return sayable.map(lambda system: (jena_text(system), system))


def _is_jena(rule: System) -> bool:
    """Whether Jena rules can say it: they compute of what is bound only, and a wildcard of ``noValue`` has no name."""
    bound = {name for pattern in rule.joinables for name in variables(pattern)} | {_MADE}
    for part in rule.predicates:
        if isinstance(part, Bind) and not bound.issuperset(variables(part.expression)):
            return False
        if isinstance(part, Without):
            wild = [name for pattern in part.joinables for name in variables(pattern) if name not in bound]
            if len(set(wild)) < len(wild):
                return False
    return True


@st.composite
def _rules(draw: st.DrawFn, name: str, shape: _Shape) -> System:
    sources = draw(st.sampled_from(shape.sources))
    if "axioms" in shape.features and shape.level < _TOP and draw(_one_in(12)):
        return System(name, consequences=(Construct((draw(_heads(shape, (), ())),)),))
    binds = shape.level > 0 and draw(_one_in(4))
    whole = _drawn_of(draw, shape, {"grouping": 4, "slice": 5, "now": 6}) if shape.below else set()
    # What makes new terms reads only what lies below, so that making them does not recur.
    asks = shape.below and _drawn_of(draw, shape, {"exists": 3})
    readable = shape.below if binds or whole or asks else shape.readable
    body, known = draw(_bodies(shape, readable, sources, most=3))
    asking = shape if asks else replace(shape, features=shape.features - {"exists"})
    predicates, known = draw(_predicates(asking, known, sources, binds))
    if "now" in whole and not known.maybe and all(isinstance(one, Pattern) for one in body):
        predicates, known = (*predicates, Bind(Variable("now"), Call(function_iri("now"), ()))), _with(known, "now")
    grouping = draw(_groupings(shape, known, "n")) if "grouping" in whole and _may_group(shape, known) else None
    if grouping:
        known = _grouped(grouping, known)
    consequences = draw(_consequences(shape, known, body))
    rule = System(name, sources, body, predicates, grouping, consequences=consequences)
    return draw(_modified(rule, shape, known, "slice" in whole))


def _drawn_of(draw: st.DrawFn, shape: _Shape, chances: dict[str, int]) -> set[str]:
    """Some of the features that the program has, each once in so many times."""
    return {name for name, many in chances.items() if name in shape.features and draw(_one_in(many))}


def _with(known: _Known, name: str) -> _Known:
    return known.plus(_Known(bound=(Variable(name),)))


@st.composite
def _bodies(
    draw: st.DrawFn, shape: _Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], most: int
) -> tuple[tuple[Joinable, ...], _Known]:
    """Joinables and what they bind: patterns, sometimes a part or a union among them."""
    patterns = draw(st.lists(_patterns(readable), min_size=1, max_size=draw(st.integers(1, most))))
    found: list[tuple[Joinable, _Known]] = [(pattern, _of_patterns([pattern])) for pattern in patterns]
    chosen = _drawn_of(draw, shape, {"parts": 5, "either": 5})
    # A body that asks for too much has no answers.
    found = found[: most - len(chosen)]
    if "parts" in chosen:
        found.insert(draw(st.integers(0, len(found))), draw(_parts(shape, readable, sources, "k")))
    if "either" in chosen:
        found.insert(draw(st.integers(0, len(found))), draw(_unions(shape, readable, sources)))
    return tuple(joinable for joinable, _ in found), reduce(_Known.plus, (known for _, known in found))


def _of_patterns(joinables: Iterable[Joinable]) -> _Known:
    patterns = [one for one in joinables if isinstance(one, Pattern)]
    subjects = [slot for pattern in patterns if isinstance(slot := pattern.subject, Variable)]
    return _Known(_each_once(*(tuple(variables(pattern)) for pattern in patterns)), _each_once(subjects))


@st.composite
def _parts(
    draw: st.DrawFn, shape: _Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...], prefix: str
) -> tuple[System, _Known]:
    """A sub-query: its variables that others may join are bound; an aggregate has a name of its own, with a prefix."""
    whole = _drawn_of(draw, shape, {"grouping": 3, "slice": 4}) if shape.below else set()
    patterns = tuple(draw(st.lists(_patterns(shape.below if whole else readable), min_size=1, max_size=2)))
    known = _of_patterns(patterns)
    tests = (draw(_conditions(known)),) if draw(_one_in(4)) and known.bound else ()
    own = draw(st.sampled_from(shape.sources)) if draw(_one_in(4)) else sources
    part = System("", own, patterns, tests)
    if views := _drawn_of(draw, shape, {"graphs": 3, "times": 3}):
        part, known = draw(_viewed(part, known, "times" in views, shape.features))
    if "grouping" in whole and _may_group(shape, known):
        grouping = draw(_groupings(shape, known, prefix))
        part, known = replace(part, grouping=grouping), _grouped(grouping, known)
    if draw(st.booleans()) and known.bound:
        names = draw(_some(known.all, 1))
        part, known = replace(part, consequences=(Select(names),)), known.only(names)
    return draw(_modified(part, shape, known, "slice" in whole)), known


@st.composite
def _viewed(
    draw: st.DrawFn, part: System, known: _Known, timed: bool, features: frozenset[str]
) -> tuple[System, _Known]:
    """A part that reads where its facts come from, and when they came, if it is `timed`."""
    graphs: tuple[Slot, ...] = (_GRAPH, _GRAPH, iri(STREAMS[1]))
    if "named" in features:
        graphs = (*graphs, Term(GRAPHS[3]))
    graph = draw(st.sampled_from(graphs))
    told = [graph] if not timed else [graph, _TIME]
    patterns = [one for one in part.joinables if isinstance(one, Pattern)]
    atoms = tuple(AtomPattern(CAME if timed else GRAPH, (*told, *one.slots)) for one in patterns)
    kind: type[Source] = Arrivals if timed else Graphs
    if not timed and "named" in features and draw(st.booleans()):
        kind = partial(Graphs, inside=True)  # type: ignore[assignment]
    sources = tuple(
        kind("" if isinstance(one, Graph) else one.iri, one.window, one.windows, one.removals) for one in part.sources
    )
    names = tuple(one for one in told if isinstance(one, Variable))
    return replace(part, sources=sources, joinables=atoms), known.plus(_Known(bound=names))


@st.composite
def _unions(
    draw: st.DrawFn, shape: _Shape, readable: tuple[Slot, ...], sources: tuple[Source, ...]
) -> tuple[Either, _Known]:
    """Two or three patterns beside each other. A variable that not all of them bind mostly gets a name of its own."""
    unsure = "unsure" in shape.features and draw(st.booleans())
    patterns = draw(st.lists(_patterns(readable), min_size=2, max_size=3))
    knowns = [_of_patterns([pattern]) for pattern in patterns]
    common = [name for name in _NAMES if all(name in known.bound for known in knowns)]
    maybe: list[Variable] = []
    branches: list[System] = []
    for number, (pattern, known) in enumerate(zip(patterns, knowns, strict=True)):
        own = [name for name in known.bound if name not in common]
        names = {name: name if unsure else Variable(f"e{number}{name.name}") for name in own}
        maybe += (name for name in names.values() if name not in maybe)
        branches.append(System("", sources, (_renamed(pattern, names),)))
    subjects = tuple(name for name in common if all(name in known.subjects for known in knowns))
    return Either(tuple(branches)), _Known(tuple(common), subjects, tuple(maybe))


def _renamed(pattern: Pattern, names: dict[Variable, Variable]) -> Pattern:
    subject, predicate, value = (
        names.get(slot, slot) if isinstance(slot, Variable) else slot for slot in pattern.slots
    )
    return Pattern(subject, predicate, value)


@cache
def _patterns(predicates: tuple[Slot, ...]) -> st.SearchStrategy[Pattern]:
    """Mostly two variables; seldom the same one twice, or constants."""
    ends: list[tuple[Slot, Slot]] = [*6 * tuple(permutations(_NAMES, 2)), *((name, name) for name in 2 * _NAMES)]
    ends += product(_NAMES, (*2 * NODES[:2], *LITERALS[:2]))
    ends += product(NODES[:1], (*2 * _NAMES, NODES[0], LITERALS[0]))
    return st.sampled_from([Pattern(one, predicate, other) for predicate in predicates for one, other in ends])


def _some(names: Sequence[Variable], least: int) -> st.SearchStrategy[tuple[Variable, ...]]:
    """Some of the variables, in any order."""
    return st.lists(st.sampled_from(names), min_size=least, max_size=len(names), unique=True).map(tuple)


@st.composite
def _predicates(
    draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...], binds: bool
) -> tuple[tuple[Predicate, ...], _Known]:
    """Tests, binds, table functions, negations and left joins; variables that the body does not know are unbound."""
    found: list[Predicate] = []
    if draw(_one_in(4)) and known.all:
        found.append(draw(_conditions(known)))
    if binds:
        keeps = "keeps" in shape.features and draw(st.booleans())
        found.append(Bind(_MADE, draw(_calls(known)), keeps))
        known = known.plus(_Known(maybe=(_MADE,))) if keeps else _with(known, _MADE.name)
    if shape.below:
        chosen = _drawn_of(draw, shape, {"negation": 2, "maybe": 4, "compute": 5, "minus": 6, "exists": 1})
        for kind in draw(st.permutations(sorted(chosen))):
            predicate, known = draw(_PREDICATES[kind](shape, known, sources))
            found.append(predicate)
        # What a left join or a table function gives may be asked for as well.
        if draw(_one_in(3)) and chosen - {"negation", "minus"} and known.all:
            found.append(draw(_conditions(known)))
    return tuple(found), known


@st.composite
def _conditions(draw: st.DrawFn, known: _Known) -> Test:
    """A test: mostly one that some solutions pass and others do not, now and then any."""
    function, arguments = draw(st.sampled_from(_TESTS if draw(_one_in(5)) else _selective(known) or _TESTS))
    return Test(Call(function, arguments))


@cache
def _selective(known: _Known) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    found: list[tuple[str, tuple[Expression, ...]]] = [("notEqual", pair) for pair in permutations(known.bound, 2)]
    for name in known.bound:
        found.append(("notEqual", (name, NODES[1])))
        if name not in known.subjects:
            found += [("isLiteral", (name,)), ("notLiteral", (name,)), ("ge", (name, LITERALS[0]))]
    for name in known.maybe:
        found += [("unbound", (name,)), ("bound", (name,))]
    return tuple((function_iri(name), arguments) for name, arguments in found)


@st.composite
def _calls(draw: st.DrawFn, known: _Known) -> Call:
    """A value of what is known; now and then of what is not."""
    names = known.bound if known.bound and not draw(_one_in(6)) else _NAMES
    first: Variable = draw(st.sampled_from(names))
    name = draw(st.sampled_from(("strConcat", "sum", "max"))) if first not in known.subjects else "strConcat"
    others: tuple[Slot, ...] = (*names, *LITERALS[1:4])
    second = draw(st.sampled_from(others))
    return Call(function_iri(name), (first, second))


@st.composite
def _negations(draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...]) -> tuple[Predicate, _Known]:
    joinables: tuple[Joinable, ...] = (draw(_negated(shape.below, known.bound)),)
    if "parts" in shape.features and draw(_one_in(3)):
        more = (
            draw(_parts(shape, shape.below, sources, "w"))[0]
            if draw(st.booleans())
            else draw(_negated(shape.below, known.bound))
        )
        joinables = (*joinables, more)
    return Without(joinables), known


@cache
def _negated(predicates: tuple[Term, ...], bound: tuple[Variable, ...]) -> st.SearchStrategy[Pattern]:
    """One pattern over what lies below, mostly about what is bound; ``?u`` and ``?v`` are variables of its own."""
    subjects: tuple[Slot, ...] = (*6 * bound, *_NAMES, Variable("u"), NODES[0])
    values: tuple[Slot, ...] = (*2 * bound, *_NAMES, Variable("v"), Variable("v"), *NODES, LITERALS[1])
    slots = product(subjects, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


@st.composite
def _left_joins(draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...]) -> tuple[Predicate, _Known]:
    """A left join on what is bound; every other variable of its right side has a name of its own."""
    most = 2 if "parts" in shape.features else 1
    patterns = draw(st.lists(_patterns(shape.below), min_size=1, max_size=most))
    if not draw(_one_in(4)):
        # One of its own, or else all that it does is to multiply.
        patterns[0] = replace(patterns[0], object=Variable("o"))
    inner = _of_patterns(patterns)
    own = [name for name in inner.bound if name not in known.bound]
    unsure = "unsure" in shape.features and draw(st.booleans())
    names = {name: name if unsure else Variable(f"m{name.name}") for name in own}
    right = System("", sources, tuple(_renamed(pattern, names) for pattern in patterns))
    after = known.plus(_Known(maybe=tuple(names.values())))
    condition = draw(_conditions(after)).expression if draw(_one_in(3)) else None
    asked: tuple[Exists, ...] = ()
    if "exists" in shape.features and draw(_one_in(4)):
        asked = (Exists(_ALSO, draw(_asked_for(shape, after, sources))),)
        condition = Call(function_iri("equal"), (_ALSO, draw(st.sampled_from(_TRUTHS))))
    return Maybe(right, condition, asked), after


@st.composite
def _minuses(draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...]) -> tuple[Predicate, _Known]:
    """MINUS of a pattern, or of a union in which a variable may be unbound."""
    joinable: Joinable = draw(_negated(shape.below, known.bound))
    if "unsure" in shape.features and draw(_one_in(3)):
        joinable, _ = draw(_unions(shape, shape.below, sources))
    return Without((joinable,), minus=True), known


@st.composite
def _existences(draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...]) -> tuple[Predicate, _Known]:
    asked = draw(_asked_for(shape, known, sources))
    wanted = draw(st.sampled_from((True, False, None)))
    if wanted is not None and draw(st.booleans()):
        return Exists(None, asked, wanted), known
    return Exists(_THERE, asked, wanted), _with(known, _THERE.name)


@st.composite
def _asked_for(draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...], deep: int = 1) -> System:
    """What is to exist: patterns or a union, and predicates that may read what is known outside."""
    least = 0 if deep and "axioms" in shape.features else 1
    patterns = draw(st.lists(_negated(shape.below, known.all), min_size=least, max_size=2))
    joinables: tuple[Joinable, ...] = tuple(patterns)
    inner = known.plus(_of_patterns(patterns))
    if "either" in shape.features and draw(_one_in(4)):
        branches = [draw(_asked_for(shape, known, sources, 0)) for _ in range(2)]
        joinables = (*joinables[:1], Either(tuple(branches)))
    predicates: list[Predicate] = []
    if draw(_one_in(3)) and inner.all:
        predicates.append(draw(_conditions(inner)))
    if draw(_one_in(5)):
        predicates.append(Maybe(System("", sources, (draw(_negated(shape.below, inner.all)),))))
    if draw(_one_in(6)):
        predicates.append(Without((draw(_negated(shape.below, inner.all)),)))
    if deep and draw(_one_in(4)):
        nested = draw(_asked_for(shape, inner, sources, 0))
        predicates.append(Exists(None, nested, draw(st.booleans())))
    if draw(_one_in(3)) and inner.all:
        predicates.append(draw(_conditions(inner)))
    part = System("", sources, joinables, tuple(predicates))
    if "parts" in shape.features and deep and draw(_one_in(6)) and visible(part):
        part = replace(part, consequences=(Select(draw(_some(visible(part), 1))),))
        part = System("", sources, (part,)) if draw(st.booleans()) else part
    return part


@st.composite
def _computations(
    draw: st.DrawFn, shape: _Shape, known: _Known, sources: tuple[Source, ...]
) -> tuple[Predicate, _Known]:
    result = Variable("t")
    return Compute((result,), _table(), (draw(st.sampled_from(_NAMES)),)), _with(known, result.name)


_PREDICATES = {
    "negation": _negations,
    "minus": _minuses,
    "exists": _existences,
    "maybe": _left_joins,
    "compute": _computations,
}


@cache
def _table() -> str:
    """The IRI of a table function that makes none, one or several rows, one of them twice."""
    made = functions.Function("urn:x-squall:testing:table", _rows_of, 1, 1)
    functions.register(made)
    return made.iri


def _rows_of(value: Term | None) -> list[tuple[Term]]:
    if value is None:
        return []
    return [(value,)] if value[0] == '"' else [(NODES[0],), (NODES[1],), (NODES[1],)]


@st.composite
def _groupings(draw: st.DrawFn, shape: _Shape, known: _Known, prefix: str) -> Grouping:
    """Aggregates by one or two keys, or by none. They are named by the prefix and a number."""
    least = 0 if "totals" in shape.features else 1
    keys = draw(_some(known.all, least)) if known.all else ()
    values = st.sampled_from((*_NAMES[:1], *3 * known.all))
    aggregates = tuple(draw(_aggregates(f"{prefix}{number}", values)) for number in range(draw(st.integers(1, 2))))
    return Grouping(keys[:2], aggregates)


@st.composite
def _aggregates(draw: st.DrawFn, name: str, values: st.SearchStrategy[Variable]) -> Aggregate:
    kind = draw(st.sampled_from(("count", "count", "sum", "sum", "avg", "min", "max", "sample", "group_concat")))
    expression: Expression | None = draw(values)
    if draw(_one_in(4)):
        expression = None if kind == "count" else Call(function_iri("sum"), (draw(values), LITERALS[3]))
    return Aggregate(Variable(name), kind, expression, draw(_one_in(3)))


def _may_group(shape: _Shape, known: _Known) -> bool:
    return bool(known.all) or "totals" in shape.features


def _grouped(grouping: Grouping, known: _Known) -> _Known:
    made = tuple(aggregate.variable for aggregate in grouping.aggregates)
    return known.only(grouping.keys).plus(_Known(maybe=made))


@st.composite
def _modified(draw: st.DrawFn, system: System, shape: _Shape, known: _Known, sliced: bool) -> System:
    """The system with distinct and slice. Where these leave a choice that names and written order would make, the order
    says it all."""
    selects = any(isinstance(one, Select) for one in system.consequences)
    distinct = selects and "distinct" in shape.features and draw(_one_in(3))
    if not sliced:
        return replace(system, distinct=distinct)
    if selects:
        names = visible(system) if distinct else known.all
        order = draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []
    else:
        makes = (one for one in system.consequences if isinstance(one, Construct))
        made = [template for one in makes for template in one.template]
        order = list(dict.fromkeys(name for template in made for name in variables(template))) or list(visible(system))
    by = tuple(Order(name, draw(st.booleans())) for name in order)
    shown = [one.variables for one in system.consequences if isinstance(one, Select)]
    keys = draw(_some(shown[0], 0))[:1] if shown and shown[0] and draw(_one_in(3)) else ()
    cut = Slice(by, draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from((1, 2, 3, None))), keys)
    return replace(system, distinct=distinct, slice=cut)


@st.composite
def _consequences(draw: st.DrawFn, shape: _Shape, known: _Known, body: tuple[Joinable, ...]) -> tuple[Consequence, ...]:
    if shape.level < _TOP:
        heads = st.lists(_heads(shape, known.subjects, known.all), min_size=1, max_size=2)
        return (Construct(tuple(draw(heads)), "internal" in shape.features and draw(_one_in(5))),)
    if "ask" in shape.features and ("select" not in shape.features or draw(_one_in(5))):
        return (Ask(),)
    updates = sorted(shape.features & {"delete", "insert"})
    if updates and ("select" not in shape.features or draw(_one_in(3))):
        kinds = draw(st.lists(st.sampled_from(updates), min_size=1, max_size=3))
        return tuple([draw(_changes(kind, shape, known, body)) for kind in kinds])
    return (Select(draw(_some(known.all, 1)) if known.all else ()),)


@cache
def _heads(shape: _Shape, subjects: tuple[Variable, ...], objects: tuple[Variable, ...]) -> st.SearchStrategy[Pattern]:
    """A head: its subject is never a literal, since only what was a subject may become one."""
    return _templates(LEVELS[shape.level], subjects, objects)


# So that updates come to rest, none inserts what another may delete, nor a term that is not there.


def _changes(kind: str, shape: _Shape, known: _Known, body: tuple[Joinable, ...]) -> st.SearchStrategy[Consequence]:
    if kind == "insert":
        among = _BASE[:1] if "delete" in shape.features else _BASE
        return st.builds(Insert, _alone(_templates(among, known.subjects, known.subjects)), _graphs(shape, known))
    return st.builds(Delete, _alone(_deleted(shape, known, body)), _graphs(shape, known))


def _alone(templates: st.SearchStrategy[Pattern]) -> st.SearchStrategy[tuple[Pattern]]:
    return templates.map(lambda template: (template,))


@st.composite
def _deleted(draw: st.DrawFn, shape: _Shape, known: _Known, body: tuple[Joinable, ...]) -> Pattern:
    """What a rule has just read is there, so that taking it away makes a difference."""
    among = _BASE[1:] if "insert" in shape.features else _BASE
    read = [one for one in body if isinstance(one, Pattern) and known.bound_in(one)]
    if "insert" in shape.features:
        read = [one for one in read if one.predicate in among]
    if read and not draw(_one_in(3)):
        return draw(st.sampled_from(read))
    return draw(_templates(among, known.subjects, known.all))


@st.composite
def _graphs(draw: st.DrawFn, shape: _Shape, known: _Known) -> Slot | None:
    """Mostly none; or that of a stream, or one that a solution names."""
    streams = map(iri, STREAMS[1:]) if "streams" in shape.features else ()
    named: tuple[Slot, ...] = (*streams, *known.all[:1])
    if not named or not draw(_one_in(3)):
        return None
    return draw(st.sampled_from(named))


def _templates(
    predicates: tuple[Term, ...], subjects: tuple[Variable, ...], objects: tuple[Variable, ...]
) -> st.SearchStrategy[Pattern]:
    known: tuple[Slot, ...] = (*subjects, *subjects, NODES[0])
    values: tuple[Slot, ...] = (*objects, *objects, NODES[0], LITERALS[0])
    slots = product(known, predicates, values)
    return st.sampled_from([Pattern(*slot) for slot in slots])


# Systems as text


def jena_text(system: System) -> str:
    """A program of `systems` as Jena rules (its output apart, which the language does not say)."""
    return "\n".join(map(_jena_rule, system.subsystems)) + "\n"


def _jena_rule(rule: System) -> str:
    body = [*map(_jena_pattern, rule.joinables), *map(_jena_predicate, rule.predicates)]
    made = [one for one in rule.consequences if isinstance(one, Construct)]
    heads = [_jena_pattern(template) for construct in made for template in construct.template]
    return f"[{rule.name}: {' '.join(body)} -> {' '.join(heads)}]"


def _jena_pattern(pattern: object) -> str:
    if not isinstance(pattern, Pattern):
        raise ValueError(f"Jena rules have triple patterns only, not {pattern!r}")
    return f"({' '.join(map(_jena_slot, pattern.slots))})"


def _jena_slot(slot: Expression) -> str:
    return str(slot).replace('"', "'")


def _jena_predicate(predicate: Predicate) -> str:
    match predicate:
        case Test(expression=call):
            return _jena_call(call, ())
        case Bind(variable=variable, expression=Call() as call):
            return _jena_call(call, (variable,))
        case Without(joinables=(Pattern() as pattern,)):
            return f"noValue{_jena_pattern(pattern)}"
        case _:
            raise ValueError(f"Jena rules cannot say {predicate!r}")


def _jena_call(call: Call, results: tuple[Variable, ...]) -> str:
    name = call.function.rpartition(":")[2]
    return f"{name}({' '.join(map(_jena_slot, (*call.arguments, *results)))})"
