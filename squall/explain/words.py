"""Labels of nodes, edges and metrics in printed plans, and how hot a node is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from squall import functions
from squall.model import Arrivals, Graph, Graphs, Source
from squall.model.reports import report_label
from squall.model.windows import LANDMARK, Window, duration
from squall.plan import Input, Node, Plan
from squall.plan import operators as pps
from squall.plan.node_metrics import NodeMetric, PlanMetrics
from squall.rdf.cliques import ENDING as CLIQUES_ENDING
from squall.rdf.prefixes import prefixes, shorten

# Nodes and edges


def node_labels(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Describes each node in a line.

    Returns:
        The lines by node id, with shortened names, and the prefixes of these names by namespace.
    """
    labels = {node.id: operator_label(node.op) for node in plan.nodes}
    namespaces = prefixes("\n".join(labels.values()))
    return {id: shorten(label, namespaces) for id, label in labels.items()}, namespaces


def edges(plan: Plan) -> Iterator[tuple[Node, Input]]:
    """Yields each edge, after the node that it leads to."""
    return ((node, edge) for node in plan.nodes for edge in node.inputs)


def edge_label(input: Input, port: int | None = None) -> str:
    """Describes an edge: the number of the input (from 1) if `port` is given, the partitioning, and feedback."""
    parts = [] if port is None else [f"input {port + 1}"]
    if input.columns is not None:
        parts.append(f"partitioned by {_columns(input.columns)}" if input.columns else "single partition")
    if input.feedback:
        parts.append("feedback")
    return ", ".join(parts)


# Operators


def operator_label(op: pps.Operator) -> str:
    """Describes in a line what an operator does."""
    match op:  # one phrase for each operator: in one piece, to be read as a list
        case pps.Scan(source=source, fixed_schema=schema):
            suffix = ", with a fixed schema" if schema is not None else ""
            has_representatives = source.cliques is not None and not source.cliques.keeps_terms
            return f"scan {source_label(source)}{suffix}{', by representative' if has_representatives else ''}"
        case pps.Match(cells=cells):
            return f"match {_cells(cells)}"
        case pps.Join(on=on, keep=keep):
            return f"{_join('join', on)}, output {_columns(keep) or 'no columns'}"
        case pps.MultiwayJoin(on=on, keep=keep):
            keys = " = ".join(f"[{_columns(key)}]" for key in on)
            return f"multiway join on {keys}, output {_columns(keep) or 'no columns'}"
        case pps.LeftJoin(on=on, keep=keep, condition=condition):
            suffix = f", if {_expression(condition)}" if condition else ""
            return f"{_join('left join', on)}, output {_columns(keep) or 'no columns'}{suffix}"
        case pps.SequenceJoin():
            return _sequence(op)
        case pps.Dilate(length=length, step=step):
            return f"dilate by {duration(length)}{_each(step)}"
        case pps.Erode(length=length, step=step):
            return f"erode by {duration(length)}{_each(step)}"
        case pps.At(length=length, tick=tick, step=step):
            return f"list times in the last {duration(length)} by {duration(tick)}{_each(step)}"
        case pps.Schedule(time=time, tick=tick):
            return f"schedule at ${time} by {duration(tick)}"
        case pps.AntiJoin(on=on):
            return _join("anti join", on)
        case pps.Gate(on=on):
            agreeing = f" with {' and '.join(f'${opener} = ${column}' for column, opener in on)}" if on else ""
            return f"gate, open while a row of input 2{agreeing} holds"
        case pps.Project(columns=columns):
            return f"project {_projected(columns) or 'no columns'}"
        case pps.ConstantFilter(column=column, term=term):
            return f"constant filter ${column} = {term}"
        case pps.Filter(expression=expression):
            return f"filter {_expression(expression)}"
        case pps.Extend(expression=expression, keep_unbound=keeps):
            return f"extend by {_expression(expression)}{', or unbound' if keeps else ''}"
        case pps.TableFunction(function=name, arguments=arguments, results=results):
            return f"table function {_call(name, arguments)}, {results} column{'' if results == 1 else 's'}"
        case pps.Unit():
            return "unit: one row without columns"
        case pps.Distinct(by=by):
            return f"distinct by the first {by} columns"
        case pps.Group(keys=keys, aggregates=aggregates):
            return _group(keys, aggregates)
        case pps.Slice(order=order, offset=offset, limit=limit, keys=keys):
            return f"slice {slice_label(limit, offset, _order(order), [_columns((key,)) for key in keys])}"
        case pps.Consume(keys=keys, start=start, members=members, retention=retention):
            times = "" if retention is None else f", stored for {duration(retention)}"
            per = f", once per {_columns(keys)}" if keys else ""
            return f"consume the occurrences of ${members} from ${start}{per}{times}"
        case pps.Construct(template=template, rules=rules, internal=internal):
            return f"construct {_cells(template)} for {', '.join(rules)}{', internal' if internal else ''}"
        case pps.Select(columns=(column,), rules=rules, ask=True):
            return f"ask whether ${column} is true for {', '.join(rules)}"
        case pps.Select(names=names, columns=columns, rules=rules, order=order):
            label = f"select {_selected(names, columns) or 'no columns'} for {', '.join(rules)}"
            return f"{label}, {order_label(_order(order))}" if order else label
        case pps.DerivedStream(source=source, output=output, report=report):
            return f"derived stream {source_label(source)} from {output}{report_label(report)}"
        case pps.Update(deletes=deletes, inserts=inserts, rules=rules):
            parts = [f"delete {_quad(quad)}" for quad in deletes] + [f"insert {_quad(quad)}" for quad in inserts]
            return f"{', '.join(parts) or 'update nothing'} for {', '.join(rules)}"
        case pps.Sink(output=output, report=report):
            return f"sink {output}{report_label(report)}"
        case _:  # the words of its name, and its fields
            fields = repr(op).partition("(")[2].removesuffix(")")
            return f"{re.sub('(?<!^)(?=[A-Z])', ' ', type(op).__name__).lower()} {fields}".rstrip()


def _each(step: int) -> str:
    return f", each {duration(step)}" if step else ""


def source_label(source: Source) -> str:
    """Describes what is read: each stream with its window."""
    if type(source) is Source and not source.iri and source.window.is_empty and not source.windows:
        return "derived facts and static data"
    first = _source_name(source) + _window(source.window)
    iris = [f"<{iri}>{_window(window) or ' [LANDMARK]'}" for iri, window in source.windows]
    columns = [label for kind, label in _EXTRA_COLUMNS.items() if isinstance(source, kind)]
    return ", ".join([first, *iris, *columns, *(["with removals"] if source.removals else [])])


def _source_name(source: Source) -> str:
    if isinstance(source, Graph):
        return f"the graph <{source.iri}>" + (f" of <{source.within}>" if source.within else "")
    scope = "the graphs of " if isinstance(source, Graphs) and source.only == "graphs" else ""
    if isinstance(source, Graphs) and source.only == "streams" and not source.iri:
        return "each stream"
    return scope + (f"<{source.iri}>" if source.iri else "the default graph" if source.sparql_dataset else "everything")


_EXTRA_COLUMNS: dict[type[Source], str] = {Graphs: "with the graph", Arrivals: "with stream and time"}
"""What the rows of a source hold besides the triple."""


def _window(window: Window) -> str:
    return "" if window == LANDMARK else f" [{window}]"


def slice_label(limit: int | None, offset: int, order: Iterable[tuple[str, bool]], keys: Iterable[str] = ()) -> str:
    """Describes a slice in SPARQL's words: limit and offset, for each value of which keys, in which order."""
    parts = [] if limit is None else [f"limit {limit:,}"]
    parts += [f"offset {offset:,}"] if offset else []
    parts += [f"per {key}"] if (key := ", ".join(keys)) else []
    parts += [order_text] if (order_text := order_label(order)) else []
    return " ".join(parts) or "all rows"


def order_label(order: Iterable[tuple[str, bool]]) -> str:
    """Describes the sort order of rows; empty if there is none."""
    keys = ", ".join(f"{name} descending" if descending else name for name, descending in order)
    return f"order by {keys}" if keys else ""


def aggregate_label(kind: str, argument: str | None, distinct: bool, separator: str) -> str:
    """Describes an aggregate as a call; without an argument it counts rows."""
    call = f"{function_name(kind)}({'distinct ' if distinct else ''}{'*' if argument is None else argument}"
    return call + (f"; {separator!r})" if functions.lookup_aggregate(kind).has_separator else ")")


def function_name(iri: str) -> str:
    """Returns the local name of a function's IRI."""
    return re.split(r"[#/:]", iri)[-1] or iri


def _order(order: Iterable[tuple[pps.Expression, bool]]) -> list[tuple[str, bool]]:
    return [(_expression(key), descending) for key, descending in order]


def _group(keys: tuple[int, ...], aggregates: tuple[pps.Aggregate, ...]) -> str:
    label = f"group by {_columns(keys)}" if keys else "group all rows"
    calls = [
        aggregate_label(
            aggregate.kind,
            None if aggregate.expression is None else _expression(aggregate.expression),
            aggregate.distinct,
            aggregate.separator,
        )
        for aggregate in aggregates
    ]
    return f"{label}: {', '.join(calls)}" if calls else label


def _sequence(op: pps.SequenceJoin) -> str:
    left_end, right_start, _ = op.times
    gap = f", by at least {duration(op.min_gap)}" if op.min_gap > 1 else ""
    gap += "" if op.max_gap is None else f", by at most {duration(op.max_gap)}"
    between = (
        f", with {'some' if part.wanted else 'none'} of input {port} between" for port, part in enumerate(op.between, 3)
    )
    condition = "" if op.condition is None else f", if {_expression(op.condition)}"
    name = "iteration" if isinstance(op, pps.Iteration) else "sequence join"
    return (
        f"{_join(name, op.on)}, {op.selection}, right ${right_start} after left ${left_end}{gap}"
        f"{''.join(between)}{condition}, output {_outputs(op)}"
    )


def _outputs(op: pps.SequenceJoin) -> str:
    if not isinstance(op, pps.Iteration):
        return _columns(op.keep) or "no columns"
    again = "" if op.again is None else f" if {_expression(op.again)}"
    return f"{' '.join(map(_expression, op.values))}, and as left rows again{again}"


def _join(kind: str, on: tuple[tuple[int, int], ...]) -> str:
    """Names a join with its condition; without one it compares all rows with all."""
    return (
        f"{kind} on {' and '.join(f'left ${left} = right ${right}' for left, right in on)}" if on else f"cross {kind}"
    )


def _columns(columns: Iterable[int]) -> str:
    return " ".join(f"${column}" for column in columns)


def _projected(columns: Iterable[int | None]) -> str:
    return " ".join("unbound" if column is None else f"${column}" for column in columns)


def _selected(names: tuple[str, ...], columns: tuple[int, ...]) -> str:
    return " ".join(f"?{name}=${column}" for name, column in zip(names, columns, strict=True))


def _cells(cells: Iterable[pps.Cell]) -> str:
    return " ".join(map(_cell, cells))


def _quad(quad: pps.Quad) -> str:
    graph, *cells = quad
    return _cells(cells) + ("" if graph is None else f" in {_cell(graph)}")


def _cell(cell: pps.Cell) -> str:
    match cell:
        case int():
            return f"${cell}"
        case pps.Value(term=term):
            return f"value({term})"
        case pps.OneOf(terms=terms):
            return f"one of ({' '.join(terms)})"
        case None:
            return "*"
        case str():
            return cell


def _expression(expression: pps.Expression) -> str:
    match expression:
        case pps.Column(index=index):
            return f"${index}"
        case pps.Invoke(function=name, arguments=arguments):
            return _call(name, arguments)
        case None:
            return "unbound"
        case str():
            return constant_label(expression)


def constant_label(term: str) -> str:
    """Returns a constant as it is shown: itself; of cliques (`squall.rdf.cliques`), which may be many, the word."""
    return "cliques" if term.endswith(CLIQUES_ENDING) else term


def _call(iri: str, arguments: Iterable[pps.Expression]) -> str:
    return f"{function_name(iri)}({', '.join(map(_expression, arguments))})"


# Metrics


def metrics_text(metrics: NodeMetric | None) -> str:
    """Lists a node's metrics: estimated rows, rows out, rows of state at the end, time, and the joins that ran as one.

    For example ``~1,200 rows, 998 rows, state 10, 1.2 ms``. Unknown metrics are left out.
    """
    return ", ".join(metric_texts(metrics).values())


def metric_texts(metrics: NodeMetric | None) -> dict[str, str]:
    """Returns each known metric with its unit, by its name."""
    if metrics is None:
        return {}
    texts = {
        "estimated": None if metrics.estimated is None else f"~{_rows(metrics.estimated)}",
        "rows": None if metrics.rows is None else _rows(metrics.rows),
        "state": None if metrics.state is None else f"state {metrics.state:,}",
        "time": None if metrics.seconds is None else _time(metrics.seconds),
        "joins": None if metrics.joins is None else f"multiway join of {' + '.join(sorted(metrics.joins))}",
    }
    return {name: text for name, text in texts.items() if text is not None}


def _rows(number: float) -> str:
    digits = _digits(number)
    return f"{digits} row{'' if digits == '1' else 's'}"


def _digits(number: float) -> str:
    """Formats a number, with a decimal where it is small and has one."""
    return f"{number:.1f}" if number < 9.95 and number != round(number) else f"{number:,.0f}"


def _time(seconds: float) -> str:
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
    return f"{_digits(seconds / size)} {unit}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


HEAT_THRESHOLDS = (0.05, 0.2, 0.4, 0.7)
"""The degree of heat of a node is the number of these shares of the hottest node's cost that its own cost reaches."""


def heat(metrics: PlanMetrics | None) -> dict[str, int]:
    """Ranks how hot each node is, from 1 to 4: by time if any time is known, else by rows. It leaves cold nodes out."""
    by_id = metrics or {}
    cost: dict[str, float] = {id: metric.seconds for id, metric in by_id.items() if metric.seconds is not None}
    cost = cost or {id: metric.rows for id, metric in by_id.items() if metric.rows is not None}
    highest = max(cost.values(), default=0)
    degrees = (
        {id: sum(value >= share * highest for share in HEAT_THRESHOLDS) for id, value in cost.items()}
        if highest
        else {}
    )
    return {id: degree for id, degree in degrees.items() if degree}
