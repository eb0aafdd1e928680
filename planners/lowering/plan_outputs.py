"""The end of a plan: facts made by rules are made unique, read again where they fit, and delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from squall.model import (
    Ask,
    AtomPattern,
    Construct,
    Graph,
    Negation,
    OutputSpec,
    Pattern,
    Report,
    Select,
    Source,
    System,
    derived_streams,
    output_specs,
)
from squall.model.fact_shapes import Shape, Shapes, may_affect, may_read, overlaps, shapes_read, stream_shapes
from squall.model.stratification import dependencies
from squall.model.windows import EMPTY
from squall.plan import Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import Cell, Match, Scan, Update, Value
from squall.planners.lowering.plan_builder import Draft
from squall.planners.lowering.walk import walk
from squall.planners.partitioning import group

_STREAM = itemgetter(0)
_OTHER = "/other"
"""Any stream that has no window of its own."""


class End(NamedTuple):
    """A node in which a rule ends (`Emit`, `Answer`, `Update`), and the answer that the rule belongs to."""

    node: str
    spec: OutputSpec


def finish(draft: Draft, system: System, ends: Iterable[End], planner: str) -> Plan:
    """The plan of a system whose rules end in these nodes."""
    return grouped(ended(draft, system, ends, planner))


def ended(draft: Draft, system: System, ends: Iterable[End], planner: str, in_order: bool = False) -> Plan:
    """The plan whose rules end in these nodes, as yet without grouping columns.

    Facts are made unique per *shape* (the constants of their templates): two shapes that have no fact in common do not
    depend on each other, so that stratification sees what a rule can make, not just that it makes something.
    ``ordered``: list the nodes by depth and id, so that the order of the rules does not show.
    """
    end_list = list(ends)
    ways = _ways(system, end_list)
    facts = _unique_facts(draft, end_list, ways)
    feed_back(draft, facts)
    _feed_streams(draft, facts)
    update_ends = [end for end in dict.fromkeys(end_list) if _inserts(draft.nodes[end.node].op)]
    update_ends += [end for end in end_list if isinstance(draft.nodes[end.node].op, ops.Select)]
    last = _delivered(draft, sorted(update_ends, key=_node) if in_order else update_ends, facts, ways)
    last = last or [draft.add(_deliver(_way_of(output_specs(system)[0], {}), [], False))]
    draft.keep([*last, *(id for id, _ in end_list if isinstance(draft.nodes[id].op, Update))])
    _read_unread(draft, facts, set(ways.values()))
    _mark_made(draft, derived_streams(system))
    nodes = inputs_first(draft.nodes.values())
    return arranged(nodes, planner) if in_order else Plan(tuple(nodes), planner)


class _Way(NamedTuple):
    """How facts and solutions are told; what is told alike ends in one `Deliver`. name, stream: of what makes facts,
    since each query has a set of its own. whole: the answer, where it shows whether all of it has changed, or is
    empty."""

    output: str
    report: Report
    sources: tuple[Source, ...]
    name: str = ""
    stream: str = ""
    whole: OutputSpec | None = None

    @property
    def emission_key(self) -> tuple[str, str, Report, tuple[Source, ...]]:
        """What is a `Feed`'s `way`."""
        return self.stream, self.output, self.report, self.sources


def _ways(system: System, ends: Iterable[End]) -> dict[OutputSpec, _Way]:
    shapes_by_stream: dict[str, Shapes[str | None]] = {}
    for spec in output_specs(system):
        for rule in spec.rules if spec.stream else ():
            for shape, graph in stream_shapes(rule, spec.stream):
                shapes_by_stream.setdefault(spec.stream, Shapes()).add(shape, graph)
    return {spec: _way_of(spec, shapes_by_stream) for spec in dict.fromkeys(end.spec for end in ends)}


def _way_of(spec: OutputSpec, shapes_by_stream: Mapping[str, Shapes[str | None]]) -> _Way:
    read = _with_instants(spec, shapes_by_stream) if spec.output == "rstream" else ()
    own = (spec.name, spec.stream) if spec.has_facts else ("", "")
    snapshot_spec = spec if spec.output == "rstream" and _is_looked_at(spec.report) else None
    return _Way(spec.output, spec.report, read, *own, snapshot_spec)


def _is_looked_at(report: Report) -> bool:
    """Whether it shows which rules an answer is of that is told whole: it is told only where it has changed, or it is
    said that all has been told, but not of one that is empty."""
    return report.policy == "change" or (report.policy == "nonempty" and report.empty)


def _with_instants(spec: OutputSpec, shapes_by_stream: Mapping[str, Shapes[str | None]]) -> tuple[Source, ...]:
    """The sources whose events say when an answer is evaluated. Those of a stream that the program makes only do where
    some of them may fit a pattern: or else a stream would be evaluated whenever it is."""
    read_sources = sources(spec.rules)
    needs = [need for rule in spec.rules for need in dependencies(rule)] if shapes_by_stream else []
    for stream, shapes in shapes_by_stream.items():
        if not any(need.reads_stream(stream, graph) for need in needs for graph in shapes.overlapping(need.shape)):
            read_sources = tuple(
                _silenced(source, stream) for source in read_sources if not _reads_only(source, stream)
            )
    return read_sources


def _reads_only(source: Source, stream: str) -> bool:
    return (source.within if isinstance(source, Graph) else source.iri) == stream


def _silenced(source: Source, stream: str) -> Source:
    if not may_read(source, stream, None):
        return source
    other_windows = (window for window in source.windows if window[0] != stream)
    return replace(source, windows=tuple(sorted((*other_windows, (stream, EMPTY)), key=_STREAM)))


def _delivered(
    draft: Draft, ends: Iterable[End], derived_facts: Sequence[Facts], ways: Mapping[OutputSpec, _Way]
) -> list[str]:
    """The operation nodes: one for each way of telling. told: what is no fact that rules derive."""
    inputs: dict[_Way, list[str]] = {}
    inserted: set[_Way] = set()
    for facts in derived_facts:
        if facts.way is not None:
            inputs.setdefault(facts.way, []).append(facts.node)
    for node, spec in ends:
        inputs.setdefault(ways[spec], []).append(node)
        if _inserts(draft.nodes[node].op):
            inserted.add(ways[spec])
    sinks = []
    for way, nodes in inputs.items():
        specs = [spec for spec, spec_way in ways.items() if spec_way == way]
        distinct = way in inserted or _overlaps([facts for facts in derived_facts if facts.way == way])
        sinks.append(draft.add(_deliver(way, specs, distinct), *nodes))
    return sinks


def _deliver(way: _Way, specs: Sequence[OutputSpec], distinct: bool) -> ops.Sink:
    return ops.Sink(way.output, distinct, way.report, way.sources, queries(specs), way.name)


def _node(end: End) -> str:
    return end.node


def _inserts(op: ops.Operator) -> bool:
    return isinstance(op, Update) and bool(op.inserts)


def sources(program: Iterable[System]) -> tuple[Source, ...]:
    """The sources that the patterns of rules read, each once, in an order of their own."""
    parts = (part for rule in program for part in walk(rule) if isinstance(part, System) and _has_patterns(part))
    return tuple(sorted({source for part in parts for source in part.sources}, key=repr))


def _has_patterns(part: System) -> bool:
    """Whether patterns read the sources of this part itself."""
    inner = [
        inner_joinable
        for predicate in part.predicates
        if isinstance(predicate, Negation)
        for inner_joinable in predicate.joinables
    ]
    return any(isinstance(joinable, Pattern | AtomPattern) for joinable in (*part.joinables, *inner))


def queries(output_specs: Iterable[OutputSpec]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The queries that are told that an evaluation of theirs is complete, if they are, in an order of their own. What
    makes facts is one if these are not read again, or only as a stream."""
    specs = (spec for spec in output_specs if spec.report.empty)
    return tuple(sorted({query for spec in specs for rule in spec.rules for query in _queries(rule)}))


def _queries(rule: System) -> Iterator[tuple[str, tuple[str, ...]]]:
    for consequence in rule.consequences:
        match consequence:
            case Select(variables=names):
                yield rule.name, tuple(name.name for name in names)
            case Ask():
                yield rule.name, ()
            case Construct(internal=False) if not rule.reentrant:
                yield rule.name, ()


class Facts(NamedTuple):
    """Unique facts of one shape: the node that makes them so, whether they are read again, and how they are told (None:
    they are no part of any answer)."""

    shape: Shape
    reentrant: bool
    way: _Way | None
    node: str


def _unique_facts(draft: Draft, ends: Iterable[End], ways: Mapping[OutputSpec, _Way]) -> list[Facts]:
    groups: dict[tuple[Shape, bool, _Way | None], list[str]] = {}
    for id, spec in ends:
        op = draft.nodes[id].op
        if isinstance(op, ops.Construct):
            way = None if op.internal else ways[spec]
            groups.setdefault((shape_of(op.template), op.reentrant, way), []).append(id)
    ordered_groups = sorted(groups.items(), key=_of_kind)
    return [
        Facts(*kind, draft.add(ops.Distinct(by=len(kind[0])), *sorted(set(nodes)))) for kind, nodes in ordered_groups
    ]


def _of_kind(group: tuple[tuple[Shape, bool, _Way | None], list[str]]) -> tuple[list[str], bool, str]:
    shape, reentrant, way = group[0]
    return [cell or "" for cell in shape], reentrant, repr(way)


def shape_of(cells: Sequence[Cell]) -> Shape:
    """The constants of cells, None for what varies."""
    return tuple(cell.term if isinstance(cell, Value) else cell if isinstance(cell, str) else None for cell in cells)


def feed_back(draft: Draft, derived_facts: Iterable[Facts]) -> None:
    """Lets each `Match` over the default graph read the facts that may fit it."""
    again: Shapes[str] = Shapes()
    for facts in derived_facts:
        if facts.reentrant:
            again.add(facts.shape, facts.node)
    for id, node in list(draft.nodes.items()):
        if isinstance(node.op, Match) and _reads_all(draft, node):
            draft.read_again(id, sorted(again.overlapping(shape_of(node.op.cells))))


def _reads_all(draft: Draft, node: Node) -> bool:
    return any(source.reads_derived_facts for source in _sources_of(draft, node))


def _sources_of(draft: Draft, node: Node) -> list[Source]:
    reads = (draft.nodes[edge.node].op for edge in node.inputs)
    return [op.source for op in reads if isinstance(op, Scan)]


def _feed_streams(draft: Draft, derived_facts: Sequence[Facts]) -> None:
    """Lets each `Match` over a stream that the program makes read those of its facts that may fit, as it reads the
    stream."""
    streams = _streams(derived_facts)
    matches = [node for node in draft.nodes.values() if isinstance(node.op, Match)] if streams else []
    for way, stream_facts in streams.items():
        every = sorted(facts.node for facts in stream_facts)
        for node in matches:
            assert isinstance(node.op, Match)
            read_shape = shape_of(node.op.cells)
            sources = [candidate for candidate in _sources_of(draft, node) if may_read(candidate, way.stream, None)]
            fitting = [
                candidate
                for candidate in dict.fromkeys(source.for_stream(way.stream) for source in sources)
                if any(
                    overlaps(shape, read_shape)
                    for facts in stream_facts
                    for shape in shapes_read(facts.shape, candidate)
                )
            ]
            feeds = (ops.DerivedStream(source, way.output, way.report, way.sources) for source in fitting)
            draft.read_again(node.id, sorted(draft.add(feed, *every) for feed in feeds))


def _read_unread(draft: Draft, derived_facts: Sequence[Facts], ways: Iterable[_Way]) -> None:
    """What no node reads that was kept, but at whose events answers are evaluated (rules that make what nobody reads
    count, too): somebody has to say when windows of triples move on, and streams that the program makes have any."""
    evaluated = sorted({source for way in ways for source in way.sources}, key=repr)
    read = [node.op.source for node in draft.nodes.values() if isinstance(node.op, Scan)]
    for source in evaluated:
        if not _is_counted(source, read):
            read.append(source)
            draft.add(Scan(source))
    sources_by_spec: dict[tuple[object, ...], list[Source]] = {}
    for node in draft.nodes.values():
        if isinstance(node.op, ops.DerivedStream):
            place = (node.op.output_key, *(edge.node for edge in node.inputs))
            sources_by_spec.setdefault(place, []).append(node.op.source)
    for way, stream_facts in _streams(derived_facts).items():
        every = sorted(facts.node for facts in stream_facts)
        known_sources = sources_by_spec.setdefault((way.emission_key, *every), [])
        for evaluated_source in evaluated:
            is_counted = evaluated_source.step_of(way.stream) <= 1 or any(
                evaluated_source.counts_as(other_source, way.stream) for other_source in known_sources
            )
            if may_affect(evaluated_source, way.stream) and not (known_sources and is_counted):
                known_sources.append(evaluated_source.for_stream(way.stream))
                draft.add(ops.DerivedStream(known_sources[-1], way.output, way.report, way.sources), *every)


def _mark_made(draft: Draft, streams: Sequence[str]) -> None:
    """Nodes know which of the streams that they read the program makes."""
    for id, node in draft.nodes.items() if streams else ():
        op = node.op
        if isinstance(op, Scan) and (derived := tuple(stream for stream in streams if may_affect(op.source, stream))):
            draft.nodes[id] = replace(node, op=replace(op, derived_streams=derived))


def _is_counted(source: Source, read: Sequence[Source]) -> bool:
    """Whether the triples are counted with which the windows of a source move on by steps. read: what nodes read."""
    streams = [name for name in (source.stream, *map(_STREAM, source.windows), _OTHER) if source.step_of(name) > 1]
    return all(any(name.counts_as(source, stream) for name in read) for stream in streams)


def _streams(derived_facts: Iterable[Facts]) -> dict[_Way, list[Facts]]:
    """What is told as a stream, by how it is."""
    ways = sorted({facts.way for facts in derived_facts if facts.way is not None and facts.way.stream}, key=repr)
    return {way: [facts for facts in derived_facts if facts.way == way] for way in ways}


def _overlaps(derived_facts: Sequence[Facts]) -> bool:
    """Whether a fact may have two of the shapes."""
    shapes: Shapes[str] = Shapes()
    for facts in derived_facts:
        shapes.add(facts.shape, facts.node)
    return any(len(list(shapes.overlapping(facts.shape))) > 1 for facts in derived_facts)


def grouped(plan: Plan) -> Plan:
    """The plan with grouping columns on its edges."""
    return Plan(tuple(group(plan.nodes)), plan.planner)


def inputs_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes, each behind its inputs: one may have been put in before what it reads was."""
    nodes_by_id = {node.id: node for node in nodes}
    ordered_nodes: dict[str, Node] = {}
    waiting = list(reversed(nodes_by_id.values()))
    while waiting:
        node = waiting[-1]
        missing = [
            nodes_by_id[edge.node] for edge in node.inputs if not edge.feedback and edge.node not in ordered_nodes
        ]
        if missing:
            waiting += missing
        else:
            ordered_nodes[waiting.pop().id] = node
    return list(ordered_nodes.values())


def arranged(nodes: Iterable[Node], planner: str) -> Plan:
    """The plan of these nodes, listed inputs first, in an order that depends on nothing but themselves."""
    depths: dict[str, int] = {}
    places = []
    for node in nodes:
        depth = max([depths[edge.node] for edge in node.inputs if not edge.feedback], default=0) + 1
        depths[node.id] = depth
        places.append((isinstance(node.op, ops.Sink), depth, node.id, node))
    # No two nodes have the same id: nodes themselves are never compared.
    return Plan(tuple([place[3] for place in sorted(places)]), planner)
