"""Validation of plans: the rules that every plan obeys and on which builders rely (docs/pps.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from squall.errors import PlannerError
from squall.model import Source
from squall.plan import Node, Plan
from squall.plan.operators import (
    DerivedStream,
    Distinct,
    LeftJoin,
    Match,
    Operator,
    Sink,
    TransitiveClosure,
    Union,
    Update,
    columns_of,
    is_stateful,
    is_time_dependent,
)
from squall.plan.partitioning import Columns, inputs_by_kind, is_sequence, is_whole


def check(plan: Plan) -> Plan:
    """Returns the plan if it is well formed.

    1. Ids are unique and every input exists. 2. Each operator has its number of inputs; those of a `MultiwayJoin` have
    keys of one length, those of a `Union` equal widths. 3. Without its feedback edges the plan is a DAG, listed inputs
    first. 4. Columns exist. 5. There is a `Sink`, which feeds nothing, and every `Update` feeds nothing else. 6. No
    cycle goes through a time-dependent node, or what an operator is `stratified` in: the right side of an `AntiJoin` or
    a `LeftJoin`, a `Group`, a `Slice`. 7. Every cycle passes a `Distinct` or a `TransitiveClosure`. 8. What an operator
    that is `append_only` reads is never retracted before it expires. 9. Partitioning columns separate no rows that have
    to meet. 10. All `DerivedStream` nodes that read one stream through a count window have the same inputs.

    Raises:
        PlannerError: It names every violation.
    """
    problems = [*_structure_problems(plan)]
    if not problems:
        problems = [
            *_column_problems(plan),
            *_sink_problems(plan),
            *_stratification_problems(plan),
            *_cycle_problems(plan),
            *_retraction_problems(plan),
        ]
        problems = problems or [*_partitioning(plan), *_sequence_problems(plan)]
    if problems:
        raise PlannerError("the plan is not well formed:\n  " + "\n  ".join(problems))
    return plan


def _structure_problems(plan: Plan) -> Iterator[str]:
    earlier_ids: set[str] = set()
    ids = {node.id for node in plan.nodes}
    for node in plan.nodes:
        if node.id in earlier_ids:
            yield f"the id `{node.id}` occurs twice"
        min_inputs, max_inputs = node.op.arity
        if len(node.inputs) < min_inputs or (max_inputs is not None and len(node.inputs) > max_inputs):
            yield f"`{node.id}` has {len(node.inputs)} inputs"
        elif (keys := node.op.join_keys) and (len(keys) != len(node.inputs) or len({*map(len, keys)}) > 1):
            yield f"`{node.id}` has not a key of the same length for each input"
        for edge in node.inputs:
            if edge.node not in ids:
                yield f"`{node.id}` reads `{edge.node}`, which does not exist"
            elif not edge.feedback and edge.node not in earlier_ids:
                yield f"`{node.id}` is listed before its input `{edge.node}`"
        earlier_ids.add(node.id)


def _column_problems(plan: Plan) -> Iterator[str]:
    widths = plan.widths
    for node in plan.nodes:
        inputs = [widths[edge.node] for edge in node.inputs]
        for what, column, width in _uses(node.op, inputs):
            if not 0 <= column < width:
                yield f"`{node.id}` {what} column {column} of {width}"
        if isinstance(node.op, Union) and len(set(inputs)) > 1:
            yield f"`{node.id}` combines rows of {' and '.join(map(str, sorted(set(inputs))))} columns"
        if isinstance(node.op, TransitiveClosure) and inputs[0] != 2:
            yield f"`{node.id}` closes rows of {inputs[0]} columns, not pairs"
        for edge in node.inputs:
            for column in edge.columns or ():
                if not 0 <= column < widths[edge.node]:
                    name = f"the edge from `{edge.node}` to `{node.id}`"
                    yield f"{name} is partitioned by column {column} of {widths[edge.node]}"


def _uses(op: Operator, inputs: list[int]) -> Iterator[tuple[str, int, int]]:
    """Yields how an operator uses a column, the column, and the number of columns that there are."""
    # In one piece: what follows from traits, and what no trait says of three operators.
    match op:
        case Match(cells=cells):
            numbers = sorted({cell for cell in cells if isinstance(cell, int)})
            if numbers != list(range(len(numbers))):
                yield "fills", max(numbers), len(numbers)
        case Distinct(by=by):
            for width in inputs:
                yield "compares", by - 1 if by else 0, max(width, 1)
    for port, key in enumerate(op.join_keys):
        yield from ((f"joins input {port + 1} by", column, inputs[port]) for column in key)
    row_width = max((op.first_column(port, inputs) + width for port, width in enumerate(inputs)), default=0)
    read: Sequence[int] = () if op.join_keys else op.reads(inputs)
    yield from (("reads", column, row_width) for column in read)
    copied = (column for column in op.copied(inputs) if column is not None and column not in read)
    yield from (("outputs", column, row_width) for column in copied)
    if isinstance(op, LeftJoin):
        yield from (("reads", column, len(op.keep)) for column in columns_of(op.condition))


def _sink_problems(plan: Plan) -> Iterator[str]:
    if not plan.sinks:
        yield "it has no Sink node"
    for node in plan.nodes:
        consumers = [id for id, _ in plan.consumers[node.id]]
        if isinstance(node.op, Sink) and consumers:
            yield f"`{node.id}` is a sink, yet feeds `{consumers[0]}`"
        other_consumers = [id for id in consumers if not isinstance(plan.by_id[id].op, Sink)]
        if isinstance(node.op, Update) and other_consumers:
            yield f"`{node.id}` updates graphs, yet feeds `{other_consumers[0]}`"


def _stratification_problems(plan: Plan) -> Iterator[str]:
    for component in plan.components:
        for id in component if len(component) > 1 else ():
            node = plan.by_id[id]
            if is_time_dependent(node.op):
                yield f"`{id}` takes the time of what depends on it: {', '.join(component)}"
            if node.op.stratified:
                port, verb = node.op.stratified
                if port is None or node.inputs[port].node in component:
                    yield f"`{id}` {verb} what depends on it: {', '.join(component)}"


def _cycle_problems(plan: Plan) -> Iterator[str]:
    if all(len(component) == 1 for component in plan.components) and not _feeds_itself(plan):
        return
    guarded = {node.id for node in plan.nodes if isinstance(node.op, Distinct | TransitiveClosure)}
    unguarded = {
        node.id: [edge.node for edge in node.inputs if edge.node not in guarded]
        for node in plan.nodes
        if node.id not in guarded
    }
    try:
        TopologicalSorter(unguarded).prepare()
    except CycleError as error:
        yield f"the cycle {' -> '.join(error.args[1][:-1])} has no Distinct: it would never end"


def _feeds_itself(plan: Plan) -> bool:
    return any(edge.node == node.id for node in plan.nodes for edge in node.inputs if edge.feedback)


def _retraction_problems(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if node.op.append_only and node.id in plan.retractable:
            retracted = next(edge.node for edge in node.inputs if edge.node in plan.retractable)
            yield f"`{node.id}` reads rows that may be retracted: `{retracted}`"


def _partitioning(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        keys = [edge.columns or () for edge in node.inputs] if is_stateful(node.op) else []
        yield from (f"`{node.id}` {problem}" for problem in _partitioning_problems(node, keys, plan))


def _sequence_problems(plan: Plan) -> Iterator[str]:
    first_by_source: dict[Source, Node] = {}
    for node in plan.nodes:
        if isinstance(node.op, DerivedStream) and node.op.source.window.is_sequential:
            first = first_by_source.setdefault(node.op.source, node)
            if {edge.node for edge in first.inputs} != {edge.node for edge in node.inputs}:
                yield f"`{first.id}` and `{node.id}` follow one stream, yet have different inputs"


def _partitioning_problems(node: Node, keys: Sequence[Columns], plan: Plan) -> Iterator[str]:
    """Yields why partitioning columns separate rows that have to meet.

    Args:
        keys: The partitioning columns of each input.
    """
    match node.op:
        case op if op.join_keys:
            if len({*map(len, keys)}) > 1 or not {*zip(*keys, strict=True)} <= {*zip(*op.join_keys, strict=True)}:
                yield f"is partitioned by columns {' and '.join(map(_text, keys))}, no columns that it joins on"
        case Distinct(by=by):
            yield from _different_partitioning(node, range(len(keys)))
            yield from (f"is partitioned by column {column}, yet compares {by}" for column in keys[0] if column >= by)
        case DerivedStream() | Sink():
            yield from _output_problems(node, node.op, plan)
        case op if is_stateful(op):
            own = op.grouping(plan.widths[node.inputs[0].node])
            if not {*keys[0]} <= {*own}:
                needs = f"is partitioned by columns {_text(keys[0])}, where its keys are {_text(own)}"
                yield needs if own else "needs a single partition"


def _output_problems(node: Node, op: DerivedStream | Sink, plan: Plan) -> Iterator[str]:
    """Yields the same for nodes that output rows, or derive a stream."""
    for ports in inputs_by_kind(node, plan.by_id).values():
        yield from _different_partitioning(node, ports)
        edges = [node.inputs[port] for port in ports]
        sequence = is_sequence(op, (plan.by_id[edge.node].op for edge in edges))
        for edge in edges:
            if edge.columns and (sequence or (isinstance(op, DerivedStream) and is_whole(op))):
                yield f"needs the rows of `{edge.node}` in a single partition, since their order, or all of them, count"
    for edge in node.inputs:
        if (plan.widths[edge.node] - 1) in (edge.columns or ()):
            yield f"partitions the rows of `{edge.node}` by the last column, in which equal rows may differ"


def _different_partitioning(node: Node, ports: Sequence[int]) -> Iterator[str]:
    """Yields inputs whose rows may be equal, but are partitioned by different columns."""
    first, *other_edges = (node.inputs[port] for port in ports)
    for edge in other_edges:
        if (edge.columns or ()) != (first.columns or ()):
            yield (
                f"partitions the rows of `{first.node}` by columns {_text(first.columns)}, and those of `{edge.node}` "
                f"by {_text(edge.columns)}, though rows of both may be equal"
            )


def _text(columns: Columns | None) -> str:
    return str([*(columns or ())])
