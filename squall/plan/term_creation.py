"""Term creation in the recursions of a plan: which nodes may create terms from their own terms, without end.

The test is weak acyclicity (Fagin, Kolaitis, Miller and Popa, "Data exchange: semantics and query answering", TCS 2005,
section 3.2), with the columns of nodes in place of the positions of relations and the values of functions in place of
existential variables. A recursion creates finitely many terms if no column that a function computes is on a cycle with
a column that the function reads. The nodes of other recursions may go on for ever, or end because of their data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from squall.functions.creation import creating_function
from squall.model.fact_shapes import Shapes
from squall.model.graphs import components
from squall.plan import Node, Plan
from squall.plan.operators import (
    Cell,
    Construct,
    Expression,
    Extend,
    Invoke,
    Match,
    TableFunction,
    Value,
    columns_of,
    is_time_dependent,
)
from squall.rdf import Term, parts
from squall.rdf.compounds import LIMIT

PlanColumn = tuple[str, int]
"""A column of the rows of a node."""
Flows = dict[PlanColumn, list[PlanColumn]]
"""The columns that have the values of a column, or values that a function computes from them."""

_CACHE_NAME = "_recursive_creations"
"""The name under which a plan has its recursive creations."""


def recursive_creations(plan: Plan) -> dict[str, str]:
    """Returns the nodes that may create terms from their own terms without end, each with the name of a rule.

    It is analysed once for a plan, whose pickle has the result, as it has that of its cached properties.
    """
    cache = vars(plan)
    if _CACHE_NAME not in cache:
        cache[_CACHE_NAME] = _recursive_creations(plan)
    creations: dict[str, str] = cache[_CACHE_NAME]
    return creations


def _recursive_creations(plan: Plan) -> dict[str, str]:
    endless: list[str] = []
    for component in plan.components:
        recursive = component if len(component) > 1 else ()
        if creating := [id for id in recursive if any(map(creating_function, _expressions(plan.by_id[id])))]:
            endless += _cyclic(plan, creating, _flows(plan, component))
    return {id: _rule_of(plan, id) for id in endless}


def nesting_nodes(plan: Plan) -> dict[str, str]:
    """Returns the nodes that create compounds and blank nodes, each with the name of a rule."""
    nodes = (node for node in plan.nodes if not is_time_dependent(node.op))
    calls = ((node.id, expression) for node in nodes for expression in _expressions(node))
    nesting = (id for id, call in calls if isinstance(call, Invoke) and call.function == LIMIT)
    return {id: _rule_of(plan, id) for id in nesting}


def _expressions(node: Node) -> tuple[Expression, ...]:
    """Returns the expressions by which a node adds columns to its rows."""
    return node.op.expressions if isinstance(node.op, Extend | TableFunction) else ()


def _columns_read(node: Node) -> set[PlanColumn]:
    """Returns the columns that the functions of a node read."""
    return {(node.inputs[0].node, index) for expression in _expressions(node) for index in columns_of(expression)}


def _columns_added(plan: Plan, node: Node) -> list[PlanColumn]:
    """Returns the columns that the functions of a node compute."""
    return [(node.id, index) for index in range(plan.widths[node.inputs[0].node], plan.widths[node.id])]


def _cyclic(plan: Plan, creating: Sequence[str], flows: Flows) -> Iterator[str]:
    """Yields the creating nodes of which a new column is on a cycle with a column that the function reads."""
    number_of = {column: number for number, part in enumerate(components(flows)) for column in part}
    for node in map(plan.by_id.__getitem__, creating):
        numbers = {number_of.get(column, -1) for column in _columns_read(node)}
        if any(number_of[column] in numbers for column in _columns_added(plan, node)):
            yield node.id


def _flows(plan: Plan, component: Sequence[str]) -> Flows:
    """Returns the flows of values between the columns of a recursion."""
    flows: Flows = {(id, index): [] for id in component for index in range(plan.widths[id])}
    edges = [edge for id in component for edge in _edges(plan, plan.by_id[id])]
    for source, target in (*edges, *_fact_edges(plan, component)):
        if source in flows:
            flows[source].append(target)
    return flows


def _edges(plan: Plan, node: Node) -> Iterator[tuple[PlanColumn, PlanColumn]]:
    """Yields the flows from the inputs of a node, except for those of facts."""
    if isinstance(node.op, Match | Construct):
        return
    widths = [plan.widths[edge.node] for edge in node.inputs]
    for port, edge in enumerate(node.inputs):
        start = node.op.first_column(port, widths)
        for place, column in enumerate(node.op.copied(widths)):
            if column is not None and start <= column < start + widths[port]:
                yield (edge.node, column - start), (node.id, place)
    for added in _columns_added(plan, node) if _expressions(node) else ():
        yield from ((column, added) for column in _columns_read(node))


def _fact_edges(plan: Plan, component: Sequence[str]) -> Iterator[tuple[PlanColumn, PlanColumn]]:
    """Yields the flows from the rows of which facts are made to the rows of patterns that fit these facts."""
    nodes = [plan.by_id[id] for id in component]
    templates: Shapes[Node] = Shapes()
    for node in nodes:
        if isinstance(node.op, Construct):
            templates.add(tuple(cell if isinstance(cell, str) else None for cell in node.op.template), node)
    for node in nodes:
        cells = node.op.cells if isinstance(node.op, Match) else ()
        for maker in templates.overlapping(tuple(map(_constant, cells))) if cells else ():
            assert isinstance(maker.op, Construct)
            for source, target in zip(maker.op.template, cells, strict=True):
                if isinstance(source, int) and isinstance(target, int):
                    yield (maker.inputs[0].node, source), (node.id, target)


def _constant(cell: Cell) -> Term | None:
    return cell.term if isinstance(cell, Value) else cell if isinstance(cell, str) else None


def _rule_of(plan: Plan, id: str) -> str:
    """Returns the name of a rule that a node serves."""
    for expression in _expressions(plan.by_id[id]):
        if isinstance(expression, Invoke) and expression.function == LIMIT and isinstance(expression.arguments[0], str):
            return parts(expression.arguments[0]).lexical
    reachable, new = {id}, [id]
    while new:
        op = plan.by_id[node := new.pop(0)].op
        if isinstance(op, Construct) and op.rules:
            return op.rules[0]
        following = [consumer for consumer, _ in plan.consumers[node] if consumer not in reachable]
        reachable.update(following)
        new += following
    return ""
