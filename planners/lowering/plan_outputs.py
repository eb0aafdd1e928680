"""The outputs of a plan: makes derived facts distinct, adds feedback and derived streams, and ends in sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from squall.errors import PlannerError
from squall.model import (
    Arrivals,
    Ask,
    Construct,
    Graph,
    Graphs,
    Occurrences,
    OutputSpec,
    Report,
    Select,
    Source,
    System,
    derived_streams,
    output_specs,
)
from squall.model.fact_shapes import Shape, Shapes, may_affect, may_read, overlaps, shapes_read, stream_shapes
from squall.model.fingerprint import source_fingerprint, sources_fingerprint
from squall.model.reading import has_patterns
from squall.model.stratification import dependencies
from squall.model.walk import walk
from squall.model.windows import EMPTY
from squall.plan import Node, Plan
from squall.plan import operators as ops
from squall.plan.fingerprint import stable_id
from squall.plan.operators import Cell, Column, Invoke, Match, Scan, Update, Value
from squall.planners.lowering.plan_builder import Draft
from squall.planners.partitioning import assign_partitioning
from squall.rdf.compounds import IS_RDF

_STREAM = itemgetter(0)
_OTHER = "/other"
"""A name for any stream that has no window of its own."""


class RuleOutput(NamedTuple):
    """A node in which a rule ends (`Construct`, `Select` or `Update`), and the output specification it belongs to."""

    node: str
    spec: OutputSpec


def finish(draft: Draft, system: System, ends: Iterable[RuleOutput], planner: str) -> Plan:
    """Returns the plan of a system whose rules end in these nodes."""
    return partitioned(assemble(draft, system, ends, planner))


def assemble(draft: Draft, system: System, ends: Iterable[RuleOutput], planner: str, in_order: bool = False) -> Plan:
    """Returns the plan whose rules end in these nodes, without partitioning.

    Facts are made distinct for each *shape* (the constants of their templates). Two shapes that have no fact in common
    do not depend on each other, so that stratification sees which facts a rule can derive.

    Args:
        draft: The nodes.
        system: The system.
        ends: The nodes in which its rules end.
        planner: The name of the planner.
        in_order: Whether to sort the nodes by depth and id, so that the plan does not depend on the order of the rules.
    """
    ends_of_rules = list(ends)
    sink_specs = _sink_specs(system, ends_of_rules)
    facts = _unique_facts(draft, ends_of_rules, sink_specs)
    add_feedback(draft, facts)
    _add_derived_streams(draft, facts)
    update_ends = [end for end in dict.fromkeys(ends_of_rules) if _inserts(draft.nodes[end.node].op)]
    update_ends += [end for end in ends_of_rules if isinstance(draft.nodes[end.node].op, ops.Select)]
    last = _add_sinks(draft, sorted(update_ends, key=_node_of) if in_order else update_ends, facts, sink_specs)
    last = last or [draft.add(_sink(_sink_spec_of(output_specs(system)[0], {}), [], False))]
    draft.keep([*last, *(id for id, _ in ends_of_rules if isinstance(draft.nodes[id].op, Update))])
    _add_evaluation_scans(draft, facts, set(sink_specs.values()))
    _mark_scans(draft, system)
    nodes = inputs_first(draft.nodes.values())
    return sorted_plan(nodes, planner) if in_order else Plan(tuple(nodes), planner)


class _SinkSpec(NamedTuple):
    """The way in which facts and solutions are output. Those with equal specifications end in one `Sink`.

    Attributes:
        output: The R2S operator.
        report: The report policy.
        sources: The sources whose events give the evaluation times (rstream).
        name: The name of the query, if it derives facts: each query has a set of its own.
        stream: The derived stream.
        snapshot_spec: The output specification, if it matters whether its whole answer has changed or is empty.
        internal: Whether only the program reads the stream, so that there is no sink.
    """

    output: str
    report: Report
    sources: tuple[Source, ...]
    name: str = ""
    stream: str = ""
    snapshot_spec: OutputSpec | None = None
    internal: bool = False

    @property
    def output_key(self) -> tuple[str, str, Report, tuple[Source, ...]]:
        """The fields that identify a `DerivedStream` (its `output_key`)."""
        return self.stream, self.output, self.report, self.sources


def _sink_specs(system: System, ends: Iterable[RuleOutput]) -> dict[OutputSpec, _SinkSpec]:
    shapes_by_stream: dict[str, Shapes[str | None]] = {}
    for spec in output_specs(system):
        for rule in spec.rules if spec.stream else ():
            for shape, graph in stream_shapes(rule, spec.stream):
                shapes_by_stream.setdefault(spec.stream, Shapes()).add(shape, graph)
        if spec.stream and spec.output == "changes":
            hint = "output it by `istream`, `dstream` or `rstream`"
            raise PlannerError(f"the derived stream <{spec.stream}> cannot be output by `changes`", hint=hint)
    return {spec: _sink_spec_of(spec, shapes_by_stream) for spec in dict.fromkeys(end.spec for end in ends)}


def _sink_spec_of(spec: OutputSpec, shapes_by_stream: Mapping[str, Shapes[str | None]]) -> _SinkSpec:
    read = _evaluation_sources(spec, shapes_by_stream) if spec.output == "rstream" else ()
    identity = ("" if spec.internal else spec.name, spec.stream) if spec.has_facts else ("", "")
    snapshot_spec = spec if spec.output == "rstream" and spec.report.depends_on_whole_answer else None
    return _SinkSpec(spec.output, spec.report, read, *identity, snapshot_spec, spec.internal)


def _evaluation_sources(spec: OutputSpec, shapes_by_stream: Mapping[str, Shapes[str | None]]) -> tuple[Source, ...]:
    """Returns the sources whose events give the evaluation times of an answer.

    A derived stream counts only if some of its facts may match a pattern. Otherwise a stream would be evaluated
    whenever it is evaluated.
    """
    read_sources = sources(spec.rules)
    needs = [need for rule in spec.rules for need in dependencies(rule)] if shapes_by_stream else []
    if all(isinstance(source, Occurrences) for source in read_sources):
        names = {source.iri for source in read_sources}
        shapes_by_stream = {name: shapes for name, shapes in shapes_by_stream.items() if name in names}
    for stream, shapes in shapes_by_stream.items():
        if not any(need.reads_stream(stream, graph) for need in needs for graph in shapes.overlapping(need.shape)):
            read_sources = tuple(
                _without_stream(source, stream) for source in read_sources if not _reads_only(source, stream)
            )
    return read_sources


def _reads_only(source: Source, stream: str) -> bool:
    return (source.within if isinstance(source, Graph) else source.iri) == stream


def _without_stream(source: Source, stream: str) -> Source:
    if not may_read(source, stream, None):
        return source
    other_windows = (window for window in source.windows if window[0] != stream)
    return replace(source, windows=tuple(sorted((*other_windows, (stream, EMPTY)), key=_STREAM)))


def _add_sinks(
    draft: Draft, ends: Iterable[RuleOutput], derived_facts: Sequence[Facts], sink_specs: Mapping[OutputSpec, _SinkSpec]
) -> list[str]:
    """Adds a sink for each sink specification, and returns their ids."""
    inputs: dict[_SinkSpec, list[str]] = {}
    inserted: set[_SinkSpec] = set()
    for facts in derived_facts:
        if facts.sink_spec is not None and not facts.sink_spec.internal:
            inputs.setdefault(facts.sink_spec, []).append(facts.node)
    for node, spec in ends:
        inputs.setdefault(sink_specs[spec], []).append(node)
        if _inserts(draft.nodes[node].op):
            inserted.add(sink_specs[spec])
    sinks = []
    for sink_spec, nodes in inputs.items():
        specs = [spec for spec, spec_way in sink_specs.items() if spec_way == sink_spec]
        distinct = sink_spec in inserted or _overlaps(
            [facts for facts in derived_facts if facts.sink_spec == sink_spec]
        )
        sinks.append(draft.add(_sink(sink_spec, specs, distinct), *nodes))
    return sinks


def _sink(sink_spec: _SinkSpec, specs: Sequence[OutputSpec], distinct: bool) -> ops.Sink:
    return ops.Sink(
        sink_spec.output, distinct, sink_spec.report, sink_spec.sources, reported_queries(specs), sink_spec.name
    )


def _node_of(end: RuleOutput) -> str:
    return stable_id(end.node)


def _inserts(op: ops.Operator) -> bool:
    return isinstance(op, Update) and bool(op.inserts)


def sources(program: Iterable[System]) -> tuple[Source, ...]:
    """Returns the sources that the patterns of rules read, each once, sorted."""
    parts = (part for rule in program for part in walk(rule) if isinstance(part, System) and has_patterns(part))
    return tuple(sorted({source for part in parts for source in part.sources}, key=source_fingerprint))


def reported_queries(output_specs: Iterable[OutputSpec]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the queries for which the end of an evaluation is reported, with their columns, sorted.

    A rule that derives facts is one of them if its facts are not read again, or only as a stream.
    """
    specs = (spec for spec in output_specs if spec.report.empty)
    return tuple(sorted({query for spec in specs for rule in spec.rules for query in _query_signatures(rule)}))


def _query_signatures(rule: System) -> Iterator[tuple[str, tuple[str, ...]]]:
    for consequence in rule.consequences:
        match consequence:
            case Select(variables=names):
                yield rule.name, tuple(name.name for name in names)
            case Ask():
                yield rule.name, ()
            case Construct(internal=False) if not rule.reentrant:
                yield rule.name, ()


class Facts(NamedTuple):
    """Distinct facts of one shape.

    Attributes:
        shape: The constants of the facts.
        reentrant: Whether rules read them again.
        sink_spec: How they are output. None means that they are not output.
        node: The node that makes them distinct.
    """

    shape: Shape
    reentrant: bool
    sink_spec: _SinkSpec | None
    node: str


def _unique_facts(draft: Draft, ends: Iterable[RuleOutput], sink_specs: Mapping[OutputSpec, _SinkSpec]) -> list[Facts]:
    groups: dict[tuple[Shape, bool, _SinkSpec | None], list[str]] = {}
    for id, spec in ends:
        op = draft.nodes[id].op
        if isinstance(op, ops.Construct):
            sink_spec = None if op.internal else sink_specs[spec]
            groups.setdefault((shape_of(op.template), op.reentrant, sink_spec), []).append(id)
    ordered_groups = sorted(groups.items(), key=_facts_order)
    return [
        Facts(*kind, draft.add(ops.Distinct(by=len(kind[0])), *sorted(set(nodes)))) for kind, nodes in ordered_groups
    ]


def _facts_order(
    item: tuple[tuple[Shape, bool, _SinkSpec | None], list[str]],
) -> tuple[list[str], bool, str]:
    shape, reentrant, sink_spec = item[0]
    return [cell or "" for cell in shape], reentrant, _spec_order(sink_spec) if sink_spec is not None else ""


def _spec_order(sink_spec: _SinkSpec) -> str:
    """Returns the text by which sink specifications are sorted."""
    output, report, sources, *other_fields = sink_spec
    return f"{output!r}, {report!r}, {sources_fingerprint(sources)}, {other_fields!r}"


def shape_of(cells: Sequence[Cell]) -> Shape:
    """Returns the constants of cells, with None for the cells that vary."""
    return tuple(cell.term if isinstance(cell, Value) else cell if isinstance(cell, str) else None for cell in cells)


def add_feedback(draft: Draft, derived_facts: Sequence[Facts]) -> None:
    """Lets each `Match` over the default graph read the derived facts that may match it.

    The solutions of queries are about well-formed RDF triples (SPARQL 1.1 Entailment Regimes, section 3.1), while rules
    read generalised ones as well.
    """
    reentrant_facts: Shapes[str] = Shapes()
    for facts in derived_facts:
        if facts.reentrant:
            reentrant_facts.add(facts.shape, facts.node)
    shapes = {facts.node: facts.shape for facts in derived_facts}
    for id, node in list(draft.nodes.items()):
        if not isinstance(node.op, Match):
            continue
        reading = [source for source in _sources_of(draft, node) if source.reads_derived_facts]
        if not reading:
            continue
        read_facts = list(reentrant_facts.overlapping(shape_of(node.op.cells)))
        if not any(source.reads_generalized_triples for source in reading):
            read_facts = [_well_formed(draft, facts, shapes[facts]) for facts in read_facts]
        draft.read_again(id, sorted(read_facts))


def _well_formed(draft: Draft, facts: str, shape: Shape) -> str:
    """Returns the node of those of the facts that are RDF triples; of atoms all."""
    if len(shape) != _TRIPLE_WIDTH or (shape[0] or "").startswith("@"):
        return facts
    return draft.add(ops.Filter(Invoke(IS_RDF, (Column(0), Column(1), Column(2)))), facts)


_TRIPLE_WIDTH = 3


def _sources_of(draft: Draft, node: Node) -> list[Source]:
    reads = (draft.nodes[edge.node].op for edge in node.inputs)
    return [op.source for op in reads if isinstance(op, Scan)]


def _add_derived_streams(draft: Draft, derived_facts: Sequence[Facts]) -> None:
    """Lets each `Match` over a derived stream read those facts of the stream that may match it."""
    streams = _facts_by_stream(derived_facts)
    matches = _MatchesByStream(draft) if streams else None
    for sink_spec, stream_facts in streams.items():
        fact_nodes = sorted(facts.node for facts in stream_facts)
        for node in matches.of(sink_spec.stream, stream_facts) if matches is not None else ():
            assert isinstance(node.op, Match)
            sources = (source for source in _sources_of(draft, node) if may_read(source, sink_spec.stream, None))
            candidates = dict.fromkeys(source.for_stream(sink_spec.stream) for source in sources)
            read_shape = shape_of(node.op.cells)
            feeds = (
                ops.DerivedStream(source, sink_spec.output, sink_spec.report, sink_spec.sources)
                for source in candidates
                if _may_fit(stream_facts, source, read_shape)
            )
            draft.read_again(node.id, sorted(draft.add(feed, *fact_nodes) for feed in feeds))


class _MatchesByStream:
    """The matches of a plan, by what they read: those of occurrences by stream, and others by shape.

    A program may have a thousand patterns over time, of which each reads streams of its own.
    """

    def __init__(self, draft: Draft) -> None:
        self._of_occurrences: dict[str, list[tuple[int, Node]]] = {}
        self._others: Shapes[tuple[int, Node]] = Shapes()
        for number, node in enumerate(draft.nodes.values()):
            if not isinstance(node.op, Match):
                continue
            sources = _sources_of(draft, node)
            if sources and all(isinstance(source, Occurrences) for source in sources):
                for name in dict.fromkeys(source.iri for source in sources):
                    self._of_occurrences.setdefault(name, []).append((number, node))
            else:
                self._others.add(shape_of(node.op.cells), (number, node))

    def of(self, stream: str, stream_facts: Iterable[Facts]) -> list[Node]:
        """Returns the matches that may read facts of a stream, in the order of the plan."""
        read_shapes = {
            read_shape
            for facts in stream_facts
            for source in (Source(stream), Graphs(stream), Arrivals(stream), Occurrences(stream))
            for read_shape in shapes_read(facts.shape, source)
        }
        near = {item for read_shape in read_shapes for item in self._others.overlapping(read_shape)}
        numbered = dict([*near, *self._of_occurrences.get(stream, ())])
        return [numbered[number] for number in sorted(numbered)]


def _may_fit(stream_facts: Sequence[Facts], source: Source, read_shape: Shape) -> bool:
    """Returns whether facts of a stream, as a source reads them, may have the shape that a pattern reads."""
    return any(overlaps(shape, read_shape) for facts in stream_facts for shape in shapes_read(facts.shape, source))


def _add_evaluation_scans(draft: Draft, derived_facts: Sequence[Facts], sink_specs: Iterable[_SinkSpec]) -> None:
    """Adds scans of the sources that no node reads, but whose events give evaluation times.

    They make the windows of triples advance. Derived streams need the same, also those of rules whose facts nobody
    reads.
    """
    evaluated = sorted({source for sink_spec in sink_specs for source in sink_spec.sources}, key=source_fingerprint)
    read = [node.op.source for node in draft.nodes.values() if isinstance(node.op, Scan)]
    for source in evaluated:
        if not _is_followed(source, read):
            read.append(source)
            draft.add(Scan(source))
    _add_evaluation_streams(draft, derived_facts, evaluated)


def _add_evaluation_streams(draft: Draft, derived_facts: Sequence[Facts], evaluated: Sequence[Source]) -> None:
    """Adds the same for derived streams."""
    sources_by_spec: dict[tuple[object, ...], list[Source]] = {}
    for node in draft.nodes.values():
        if isinstance(node.op, ops.DerivedStream):
            place = (node.op.output_key, *(edge.node for edge in node.inputs))
            sources_by_spec.setdefault(place, []).append(node.op.source)
    for sink_spec, stream_facts in _facts_by_stream(derived_facts).items():
        fact_nodes = sorted(facts.node for facts in stream_facts)
        if not all(node in draft.nodes for node in fact_nodes):
            continue  # an internal stream that nothing needs
        read_sources = sources_by_spec.setdefault((sink_spec.output_key, *fact_nodes), [])
        for evaluated_source in evaluated:
            is_followed = not evaluated_source.has_sequential_instants(sink_spec.stream) or any(
                evaluated_source.follows_as(other_source, sink_spec.stream) for other_source in read_sources
            )
            if may_affect(evaluated_source, sink_spec.stream) and not (read_sources and is_followed):
                read_sources.append(evaluated_source.for_stream(sink_spec.stream))
                draft.add(
                    ops.DerivedStream(read_sources[-1], sink_spec.output, sink_spec.report, sink_spec.sources),
                    *fact_nodes,
                )


def _mark_scans(draft: Draft, system: System) -> None:
    """Marks in each scan which of its streams are derived streams, and the schema that its facts must not change."""
    streams, schema = derived_streams(system), system.fixed_schema
    for id, node in draft.nodes.items() if streams or schema else ():
        op = node.op
        if isinstance(op, Scan):
            derived = tuple(stream for stream in streams if may_affect(op.source, stream))
            own_schema = schema if schema is not None and schema.guards(op.source) else None
            draft.nodes[id] = replace(node, op=replace(op, derived_streams=derived, fixed_schema=own_schema))


def _is_followed(source: Source, read: Sequence[Source]) -> bool:
    """Returns whether some node follows the streams by which the windows of a source advance.

    Args:
        source: The source.
        read: The sources that nodes read.
    """
    names = (source.stream, *map(_STREAM, source.windows), _OTHER)
    streams = [name for name in names if source.has_sequential_instants(name)]
    return all(any(other.follows_as(source, stream) for other in read) for stream in streams)


def _facts_by_stream(derived_facts: Iterable[Facts]) -> dict[_SinkSpec, list[Facts]]:
    """Returns the facts of derived streams by sink specification."""
    sink_specs = sorted(
        {facts.sink_spec for facts in derived_facts if facts.sink_spec is not None and facts.sink_spec.stream},
        key=_spec_order,
    )
    return {sink_spec: [facts for facts in derived_facts if facts.sink_spec == sink_spec] for sink_spec in sink_specs}


def _overlaps(derived_facts: Sequence[Facts]) -> bool:
    """Returns whether a fact may have two of the shapes."""
    shapes: Shapes[str] = Shapes()
    for facts in derived_facts:
        shapes.add(facts.shape, facts.node)
    return any(len(list(shapes.overlapping(facts.shape))) > 1 for facts in derived_facts)


def partitioned(plan: Plan) -> Plan:
    """Returns the plan with partitioning columns on its edges."""
    return Plan(tuple(assign_partitioning(plan.nodes)), plan.planner)


def inputs_first(nodes: Iterable[Node]) -> list[Node]:
    """Returns the nodes in topological order. A node may have been added before its inputs."""
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


def sorted_plan(nodes: Iterable[Node], planner: str) -> Plan:
    """Returns the plan of these nodes, which are listed inputs first, in an order that depends only on the nodes."""
    depths: dict[str, int] = {}
    places = []
    for node in nodes:
        depth = max([depths[edge.node] for edge in node.inputs if not edge.feedback], default=0) + 1
        depths[node.id] = depth
        places.append((isinstance(node.op, ops.Sink), depth, stable_id(node.id), node))
    # No two nodes have the same id: nodes themselves are never compared.
    return Plan(tuple([place[3] for place in sorted(places)]), planner)
