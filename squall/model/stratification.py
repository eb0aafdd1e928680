"""Which rules feed which, and whether a program can be stratified (Apt, Blair and Walker 1988; semantics.md 3)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from squall.errors import Origin, TranslatorError, raise_all
from squall.model import (
    CAME,
    GRAPH,
    Arrivals,
    AtomPattern,
    Bind,
    Call,
    Construct,
    Exists,
    Expression,
    FactPattern,
    Filter,
    Graphs,
    Joinable,
    Optional,
    OutputSpec,
    Pattern,
    Source,
    System,
    Union,
    Without,
    output_specs,
)
from squall.rdf import Term, iri
from squall.rdf.row_tags import QUAD_MARK, mark_of, relation_mark

Shape = tuple[Term | None, ...]
"""The constants of a pattern or a template, None for what varies; an atom starts with its relation, marked ``@``."""


def shape(pattern: FactPattern) -> Shape:
    """The shape of a pattern."""
    match pattern:
        case Pattern():
            return tuple(slot if isinstance(slot, str) else None for slot in pattern.slots)
        case AtomPattern(relation=relation):
            return (relation_mark(relation), *(slot if isinstance(slot, str) else None for slot in pattern.slots))


def overlap(left: Shape, right: Shape) -> bool:
    """Whether some fact has both shapes. Literals agree by value (semantics.md 5)."""
    return (
        len(left) == len(right)
        and (mark_of(left) is None) == (mark_of(right) is None)
        and all(map(_agree, left, right))
    )


def _agree(left: Term | None, right: Term | None) -> bool:
    if left is None or right is None or left == right:
        return True
    return left[0] == right[0] == '"' and _value(left) == _value(right)


def _value(constant: Term | None) -> Hashable:
    """What two constants share if they agree; None for what varies."""
    if constant is None or constant[0] != '"':
        return constant
    from squall.functions.values import value_key

    return value_key(constant)


T = TypeVar("T")
N = TypeVar("N", bound=Hashable)


class Shapes(Generic[T]):
    """Things of some shape, found by the predicate (of an atom: the relation) and the last cell of what is wanted."""

    def __init__(self) -> None:
        self._groups: dict[Term | None, dict[Hashable, list[tuple[Shape, T]]]] = {}

    def add(self, made: Shape, thing: T) -> None:
        """Adds a thing of this shape."""
        self._groups.setdefault(_predicate(made), {}).setdefault(_value(made[-1]), []).append((made, thing))

    def overlapping(self, wanted: Shape) -> Iterator[T]:
        """The things whose shape has a fact in common with this one."""
        for group in _near(self._groups, _predicate(wanted)):
            for things in _near(group, _value(wanted[-1])):
                yield from (thing for made, thing in things if overlap(made, wanted))


def _predicate(made: Shape) -> Term | None:
    """The constant by which shapes are told apart first: those that differ in it have no fact in common, None apart."""
    return mark_of(made) or made[1]


def _near(table: dict[Any, T], key: Hashable) -> Iterator[T]:
    if key is None:
        yield from table.values()
    else:
        yield from (table[one] for one in (key, None) if one in table)


def is_timed(expression: Expression) -> bool:
    """Whether an expression depends on the time at which it is evaluated."""
    from squall import functions

    match expression:
        case Call(function=function, arguments=arguments):
            return functions.lookup(function).timed or any(map(is_timed, arguments))
        case _:
            return False


class Need(NamedTuple):
    """A pattern whose facts a system needs, and the sources where it looks for them. verb: how, where it has to know
    all of them; None where more facts can only give it more solutions."""

    shape: Shape
    verb: str | None
    origin: Origin | None
    sources: tuple[Source, ...] = (Source(),)

    @property
    def reads_derived(self) -> bool:
        """Whether it reads what rules derive: it does in the default graph only."""
        return any(source.derives for source in self.sources)

    def reads_stream(self, stream: str, graph: str | None = "") -> bool:
        """Whether it reads what a stream brings in a graph (see `placed`)."""
        return any(may_read(source, stream, graph) for source in self.sources)


def needs(system: System, verb: str | None = None, origin: Origin | None = None) -> Iterator[Need]:
    """What a system needs of the facts that rules make, in all of its parts."""
    origin, own = system.origin or origin, verb or _verb(system)

    def of(joinable: Joinable, verb: str | None, origin: Origin | None) -> Iterator[Need]:
        match joinable:
            case Pattern() | AtomPattern():
                yield Need(shape(joinable), verb, origin, system.sources)
            case Union(branches=branches):
                for branch in branches:
                    yield from needs(branch, verb, origin)
            case System():
                yield from needs(joinable, verb, origin)

    for joinable in system.joinables:
        yield from of(joinable, own, origin)
    for part in system.predicates:
        if isinstance(part, Without):
            for joinable in part.joinables:
                yield from of(joinable, "negates", part.origin or origin)
        elif isinstance(part, Optional):
            verb = "takes as optional" if part.system.grouping is None else "aggregates"
            yield from needs(part.system, verb, origin)
            for asked in part.exists:
                yield from needs(asked.system, "asks for", origin)
        elif isinstance(part, Exists):
            yield from needs(part.system, own if part.wanted else "asks for", part.origin or origin)


def _verb(system: System) -> str | None:
    """How a system takes all of its own facts, if it has to know them all."""
    if system.grouping is not None:
        return "groups"
    if system.slice is not None:
        return "slices"
    timed = any(is_timed(part.expression) for part in system.predicates if isinstance(part, Filter | Bind))
    return "takes the time (`now`) of" if timed else None


def stratify(system: System) -> None:
    """Raises TranslatorError, or Errors, for each way in which rules depend on their own negation.

    The same holds for what else has to know all of what it reads: ``Optional``, grouping, slices, and functions of time
    (``now``), whose value would depend on how often it is taken inside a recursion; and for what reads a stream that
    the program makes, whose events are what an instant has come to. And for each rule that reads a stream through a
    window of triples which several queries make: such a window is of those of one.
    """
    told = output_specs(system)
    raise_all(list(_counted_together(told)))
    program = [rule for telling in told for rule in telling.rules]
    streams = [telling.stream for telling in told for _ in telling.rules]
    needed = [list(needs(rule)) for rule in program]
    if any(streams) or any(need.verb is not None for found in needed for need in found):
        raise_all(list(_violations(program, streams, needed)))


def _counted_together(told: Sequence[OutputSpec]) -> Iterator[TranslatorError]:
    """What reads a stream through a window of triples that several queries make."""
    makers: dict[str, list[str]] = {}
    for telling in told:
        if telling.stream and telling.has_facts:
            makers.setdefault(telling.stream, []).append(f"`{telling.rules[0].name}`")
    for stream in (stream for stream, names in makers.items() if len(names) > 1):
        for rule in (rule for telling in told for rule in telling.rules):
            counted = (one for need in needs(rule) for one in need.sources if one.counts(stream))
            if source := next(counted, None):
                yield TranslatorError(
                    f"rule `{rule.name}` reads <{stream}> through the window {source.window_of(stream)}, and several "
                    f"queries make that stream: {', '.join(makers[stream])}",
                    rule.origin,
                    "give each query a stream of its own, let one of them make all of it, or read it through a window "
                    "of time (`RANGE`)",
                )


def _violations(program: list[System], streams: list[str], needed: list[list[Need]]) -> Iterator[TranslatorError]:
    edges, strict = _dependencies(program, streams, needed)
    after: dict[Hashable, list[Hashable]] = {node: [] for edge in edges for node in edge}
    for before, node in edges:
        after[before].append(node)
    part_of = {node: number for number, part in enumerate(components(after)) for node in part}
    for (read, reader), need in strict.items():
        if part_of[read] == part_of[reader]:
            path = shortest_path(edges, reader, read)
            names = [f"`{program[node].name}`" for node in (*path, reader) if isinstance(node, int)]
            hint = "let the rule read something that does not follow from its own conclusion"
            yield TranslatorError(
                f"rule `{program[reader].name}` {need.verb} what depends on it: {' -> '.join(names)}",
                need.origin,
                f"{hint}, or look at it once: `--profile jena`" if need.verb in ("negates", "aggregates") else hint,
            )


_Read = tuple[str, Shape, tuple[Source, ...]]
_Edge = tuple[Hashable, Hashable]


def _dependencies(
    program: list[System], streams: list[str], needed: list[list[Need]]
) -> tuple[list[_Edge], dict[tuple[_Read, int], Need]]:
    """Rules (by number), the shapes of what they make and of what they read, as the edges of a graph; and what a rule
    has to know all of. By way of shapes, since many rules may make what many rules read."""
    edges: list[_Edge] = []
    strict: dict[tuple[_Read, int], Need] = {}
    made: Shapes[Hashable] = Shapes()
    fed: Shapes[tuple[str, str | None]] = Shapes()
    known: set[Hashable] = set()
    for writer, rule in enumerate(program):
        for one in made_of(rule) if rule.reentrant else ():
            if ("made", one) not in known:
                known.add(("made", one))
                made.add(one, ("made", one))
            edges.append((writer, ("made", one)))
        for one, graph in read_of(rule, streams[writer]) if streams[writer] else ():
            fed.add(one, (streams[writer], graph))
        if streams[writer]:
            edges.append((writer, ("stream", streams[writer])))
    for reader, found in enumerate(needed):
        for need in found:
            read = ("read", need.shape, need.sources)
            before = made.overlapping(need.shape) if need.reads_derived else ()
            overlapping = fed.overlapping(need.shape)
            told = [stream for stream, graph in overlapping if need.reads_stream(stream, graph)]
            if read not in known:
                known.add(read)
                edges += [(one, read) for one in before]
                edges += [(("stream", stream), read) for stream in dict.fromkeys(told)]
            edges.append((read, reader))
            if told:
                need = need._replace(verb=f"reads the stream <{told[0]}> that is made of")
            if need.verb is not None:
                strict.setdefault((read, reader), need)
    return edges, strict


def shortest_path(edges: list[_Edge], start: Hashable, end: Hashable) -> list[Hashable]:
    """A shortest path."""
    import networkx  # it takes longer to load than all of squall

    found: list[Hashable] = networkx.shortest_path(networkx.DiGraph(edges), start, end)
    return found


def components(after: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components of a graph, given by what comes after each of its nodes (Tarjan 1972, "Depth-
    first search and linear graph algorithms"; without recursion, since paths may be long)."""
    found: list[list[N]] = []
    low: dict[N, int] = {}
    """Of each node that was visited, the least place in `stack` that is known to be reached; beyond all when done."""
    stack: list[N] = []
    for root in after:
        if root in low:
            continue
        low[root] = len(stack)
        stack.append(root)
        path = [(root, low[root], iter(after[root]))]
        while path:
            node, place, rest = path[-1]
            for following in rest:
                if following not in low:
                    low[following] = len(stack)
                    path.append((following, len(stack), iter(after[following])))
                    stack.append(following)
                    break
                low[node] = min(low[node], low[following])
            else:
                path.pop()
                if low[node] == place:
                    found.append(stack[place:])
                    del stack[place:]
                    low.update(dict.fromkeys(found[-1], len(after)))
                elif path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
    return found


def made_of(rule: System) -> Iterator[Shape]:
    """The shapes of the facts that a rule makes."""
    for consequence in rule.consequences:
        if isinstance(consequence, Construct):
            yield from map(shape, consequence.template)


def read_of(rule: System, stream: str) -> Iterator[tuple[Shape, str | None]]:
    """The shapes in which those that are part of its answer are read, where this is a stream, each with the name of
    the graph that they are in (see `placed`)."""
    for consequence in rule.consequences:
        if isinstance(consequence, Construct) and not consequence.internal:
            for template in consequence.template:
                told = shape(template)
                for source in (Source(stream), Graphs(stream), Arrivals(stream)):
                    yield from ((one, placed(told)[0]) for one in as_read(told, source))


def placed(told: Shape) -> tuple[str | None, Shape]:
    """The name of the graph in which facts are that are told in a shape (``""``: none; None: any), and the shape of the
    facts without it."""
    return (told[1], told[2:]) if told[0] == QUAD_MARK else ("", told)


def may_hear(source: Source, stream: str) -> bool:
    """Whether a source has to do with what a stream may bring: it reads some of it, or counts it."""
    return source.counts(stream) or may_read(source, stream, None)


def as_read(told: Shape, source: Source) -> tuple[Shape, ...]:
    """The shapes in which facts of a stream are read by a source of it that are told in this shape; none, where it does
    not read them."""
    graph, triple = placed(told)
    if not may_read(source, source.stream, graph):
        return ()
    only = source.only if isinstance(source, Graphs) else ""
    names: list[Term | None] = [] if only == "graphs" else [iri(source.stream)]
    if graph != "" and only != "streams":
        names.append(None if graph is None else Term(graph))
    match source:
        case Graphs():
            return tuple((relation_mark(GRAPH), name, *triple) for name in names)
        case Arrivals():
            return tuple((relation_mark(CAME), name, None, *triple) for name in names)
        case _:
            return (triple,)


def may_read(source: Source, stream: str, graph: str | None) -> bool:
    """Whether a source reads what a stream brings in a graph (see `placed`)."""
    graphs = (graph,) if graph is not None else (iri(source.iri), "_:any")
    return any(source.reads(stream, one) for one in graphs)
