"""Stratification: which rules depend on which, and whether any depends on its own negation.

See Apt, Blair and Walker 1988, and docs/semantics.md, section 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from squall.errors import Origin, TranslatorError, raise_all
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Joinable,
    Negation,
    Optional,
    OutputSpec,
    Pattern,
    SequenceJoin,
    Source,
    System,
    Temporal,
    Union,
    output_specs,
)
from squall.model.fact_shapes import Shape, Shapes, derived_shapes, may_read, shape, stream_shapes
from squall.model.graphs import components, shortest_path


def is_time_dependent(expression: Expression) -> bool:
    """Returns whether an expression depends on the time at which it is evaluated."""
    from squall import functions

    match expression:
        case Call(function=function, arguments=arguments):
            return functions.lookup(function).timed or any(map(is_time_dependent, arguments))
        case _:
            return False


class Dependency(NamedTuple):
    """A pattern whose facts a system depends on.

    Attributes:
        shape: The shape of the pattern.
        verb: How the system uses the facts, if it has to know all of them. None if more facts only give more solutions.
        origin: Where the system is written.
        sources: Where the pattern looks for the facts.
    """

    shape: Shape
    verb: str | None
    origin: Origin | None
    sources: tuple[Source, ...] = (Source(),)

    @property
    def reads_derived(self) -> bool:
        """Whether the pattern reads what rules derive. Only the default graph has that."""
        return any(source.reads_derived_facts for source in self.sources)

    def reads_stream(self, stream: str, graph: str | None = "") -> bool:
        """Returns whether the pattern reads what a stream brings in a graph (see
        `squall.model.fact_shapes.split_graph`).
        """
        return any(may_read(source, stream, graph) for source in self.sources)


def dependencies(system: System, verb: str | None = None, origin: Origin | None = None) -> Iterator[Dependency]:
    """Yields the dependencies of a system, in all of its parts."""
    origin, own_verb = system.origin or origin, verb or _verb(system)

    def of_joinable(joinable: Joinable, verb: str | None, origin: Origin | None) -> Iterator[Dependency]:
        match joinable:
            case Pattern() | AtomPattern():
                yield Dependency(shape(joinable), verb, origin, system.sources)
            case Union(branches=branches):
                for branch in branches:
                    yield from dependencies(branch, verb, origin)
            case SequenceJoin(sides=sides):
                for side in sides:
                    yield from dependencies(side, verb or "orders", joinable.origin or origin)
            case Temporal(system=inner):
                yield from dependencies(inner, verb, joinable.origin or origin)
            case System():
                yield from dependencies(joinable, verb, origin)

    for joinable in system.joinables:
        yield from of_joinable(joinable, own_verb, origin)
    for part in system.predicates:
        if isinstance(part, Negation):
            for joinable in part.joinables:
                yield from of_joinable(joinable, "negates", part.origin or origin)
        elif isinstance(part, Optional):
            verb = "takes as optional" if part.system.grouping is None else "aggregates"
            yield from dependencies(part.system, verb, origin)
            for exists in part.exists:
                yield from dependencies(exists.system, "asks for", origin)
        elif isinstance(part, Exists):
            yield from dependencies(part.system, own_verb if part.wanted else "asks for", part.origin or origin)


def _verb(system: System) -> str | None:
    """Returns how a system uses all of its own facts, if it has to know them all."""
    if system.grouping is not None:
        return "groups"
    if system.slice is not None:
        return "slices"
    if system.consumption is not None:
        return "consumes"
    time_dependent = any(
        is_time_dependent(part.expression) for part in system.predicates if isinstance(part, Filter | Bind)
    )
    return "takes the time (`now`) of" if time_dependent else None


def stratify(system: System) -> None:
    """Raises an error for each way in which rules depend on their own negation.

    The same holds for everything else that has to know all of what it reads: ``Optional``, grouping, slices, and
    functions of time (``now``), whose value would depend on how often they are evaluated inside of a recursion. It also
    holds for rules that read a derived stream, whose events are the result of an instant. And it is an error if a rule
    reads a stream that several queries derive through a window that follows its stream, such as a count window: such a
    window sees the triples of one query.

    Raises:
        TranslatorError: There is one such error.
        Errors: There are several.
    """
    specs = output_specs(system)
    raise_all(list(_shared_sequences(specs)))
    rules = [rule for spec in specs for rule in spec.rules]
    streams = [spec.stream for spec in specs for _ in spec.rules]
    needed_by_rule = [list(dependencies(rule)) for rule in rules]
    if any(streams) or any(need.verb is not None for needs in needed_by_rule for need in needs):
        raise_all(list(_violations(rules, streams, needed_by_rule)))


def _shared_sequences(specs: Sequence[OutputSpec]) -> Iterator[TranslatorError]:
    """Yields an error for each rule that reads a stream of several queries through a window that follows one."""
    makers: dict[str, list[str]] = {}
    for spec in specs:
        if spec.stream and spec.has_facts:
            makers.setdefault(spec.stream, []).append(f"`{spec.rules[0].name}`")
    for stream in (stream for stream, names in makers.items() if len(names) > 1):
        for rule in (rule for spec in specs for rule in spec.rules):
            followed_sources = (
                followed_source
                for need in dependencies(rule)
                for followed_source in need.sources
                if followed_source.follows(stream)
            )
            if source := next(followed_sources, None):
                yield TranslatorError(
                    f"rule `{rule.name}` reads <{stream}> through the window {source.window_of(stream)}, and several "
                    f"queries make that stream: {', '.join(makers[stream])}",
                    rule.origin,
                    "give each query a stream of its own, let one of them make all of it, or read it through a window "
                    "of time (`RANGE`) whose steps do not begin with the first triple",
                )


def _violations(
    rules: list[System], streams: list[str], needed_by_rule: list[list[Dependency]]
) -> Iterator[TranslatorError]:
    graph = _DependencyGraph()
    for number, (rule, stream) in enumerate(zip(rules, streams, strict=True)):
        graph.add_conclusions(number, rule)
        if stream:
            graph.add_stream(number, rule, stream)
    for number, needs in enumerate(needed_by_rule):
        for need in needs:
            graph.add_dependency(number, need)
    successors: dict[Hashable, list[Hashable]] = {node: [] for edge in graph.edges for node in edge}
    for before, node in graph.edges:
        successors[before].append(node)
    part_of = {node: number for number, part in enumerate(components(successors)) for node in part}
    for (read, reader), need in graph.strict.items():
        if part_of[read] == part_of[reader]:
            path = shortest_path(graph.edges, reader, read)
            names = [f"`{rules[node].name}`" for node in (*path, reader) if isinstance(node, int)]
            hint = "let the rule read something that does not follow from its own conclusion"
            yield TranslatorError(
                f"rule `{rules[reader].name}` {need.verb} what depends on it: {' -> '.join(names)}",
                need.origin,
                f"{hint}, or evaluate it once: `--profile jena`" if need.verb in ("negates", "aggregates") else hint,
            )


_Read = tuple[str, Shape, tuple[Source, ...]]
_Edge = tuple[Hashable, Hashable]


class _DependencyGraph:
    """Which rules depend on which: by way of the shapes that they derive and read, since many rules may derive what
    many rules read.

    The nodes are rules (by number), shapes and streams. All conclusions are added before the first dependency.

    Attributes:
        edges: The edges, from what is read to what reads it.
        strict: The dependencies on all facts of a shape, by the shape that is read and the rule that reads it.
    """

    def __init__(self) -> None:
        self.edges: list[_Edge] = []
        self.strict: dict[tuple[_Read, int], Dependency] = {}
        self.derived: Shapes[Hashable] = Shapes()
        self.streamed: Shapes[tuple[str, str | None]] = Shapes()
        self.visited: set[Hashable] = set()

    def add_conclusions(self, writer: int, rule: System) -> None:
        """Adds the facts that a rule derives for other rules."""
        for node_shape in derived_shapes(rule) if rule.reentrant else ():
            node = ("made", node_shape)
            if node not in self.visited:
                self.visited.add(node)
                self.derived.add(node_shape, node)
            self.edges.append((writer, node))

    def add_stream(self, writer: int, rule: System, stream: str) -> None:
        """Adds the stream that a rule derives."""
        for node_shape, graph in stream_shapes(rule, stream):
            self.streamed.add(node_shape, (stream, graph))
        self.edges.append((writer, ("stream", stream)))

    def add_dependency(self, reader: int, need: Dependency) -> None:
        """Adds what a rule reads."""
        read = ("read", need.shape, need.sources)
        overlapping = self.streamed.overlapping(need.shape)
        read_streams = [stream for stream, graph in overlapping if need.reads_stream(stream, graph)]
        if read not in self.visited:
            self.visited.add(read)
            writers = self.derived.overlapping(need.shape) if need.reads_derived else ()
            self.edges += [(node, read) for node in writers]
            self.edges += [(("stream", stream), read) for stream in dict.fromkeys(read_streams)]
        self.edges.append((read, reader))
        if read_streams:
            need = need._replace(verb=f"reads the stream <{read_streams[0]}> that is derived from")
        if need.verb is not None:
            self.strict.setdefault((read, reader), need)
