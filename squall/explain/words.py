"""A plan in words: what a node does, what an edge says, what was measured, and how hot a node is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from squall.explain.names import prefixes, shorten
from squall.model import Arrivals, Graph, Graphs, Report, Source
from squall.model.windows import LANDMARK, Window, duration
from squall.plan import Input, Node, Plan
from squall.plan import operators as pps
from squall.plan.node_metrics import Figures, NodeFigures

# Nodes and edges


def described(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """What each node does, by id and with names shortened; and the prefixes of these names, by namespace."""
    long = {node.id: operator(node.op) for node in plan.nodes}
    known = prefixes("\n".join(long.values()))
    return {id: shorten(words, known) for id, words in long.items()}, known


def edges(plan: Plan) -> Iterator[tuple[Node, Input]]:
    """Each edge, after the node that it leads to."""
    return ((node, edge) for node in plan.nodes for edge in node.inputs)


def edge(input: Input, port: int | None = None) -> str:
    """What an edge says: the number of the input (from 1) where there are several, the grouping columns, feedback."""
    words = [] if port is None else [f"input {port + 1}"]
    if input.columns is not None:
        words.append(f"by {_columns(input.columns)}" if input.columns else "all in one")
    if input.feedback:
        words.append("feedback")
    return ", ".join(words)


# Operators


def operator(op: pps.Operator) -> str:
    """What an operator does, in a line."""
    match op:
        case pps.Scan(source=read):
            return f"read {source(read)}"
        case pps.Match(cells=cells):
            return f"match {_cells(cells)}"
        case pps.Join(on=on, keep=keep):
            return f"join {_pairs(on)}, keep {_columns(keep) or 'nothing'}"
        case pps.LeftJoin(on=on, keep=keep, condition=condition):
            only = f", if {_computed(condition)}" if condition else ""
            return f"left join {_pairs(on)}, keep {_columns(keep) or 'nothing'}{only}"
        case pps.AntiJoin(on=on):
            return f"left rows without a right row{f' {_pairs(on)}' if on else ''}"
        case pps.Union():
            return "union"
        case pps.Project(columns=columns):
            return f"project to {_projected(columns) or 'nothing'}"
        case pps.ConstantFilter(column=column, term=term):
            return f"where column {column} is {term}"
        case pps.Filter(expression=expression):
            return f"test {_computed(expression)}"
        case pps.Extend(expression=expression, keeps=keeps):
            return f"extend by {_computed(expression)}{', if it has a value' if keeps else ''}"
        case pps.TableFunction(function=name, arguments=arguments, results=results):
            return f"extend by {results} column{'' if results == 1 else 's'} of {_invoked(name, arguments)}"
        case pps.Unit():
            return "the row without columns"
        case pps.Distinct(by=by):
            return f"distinct by the first {by} columns"
        case pps.Group(keys=keys, aggregates=aggregates):
            return _group(keys, aggregates)
        case pps.Slice(order=order, offset=offset, limit=limit, keys=keys):
            return slice_of(limit, offset, _order(order), [_columns((key,)) for key in keys])
        case pps.TransitiveClosure():
            return "transitive closure"
        case pps.Construct(template=template, rules=names, internal=internal):
            return f"emit {_cells(template)} for {', '.join(names)}{', to be read again only' if internal else ''}"
        case pps.Select(columns=(column,), rules=rules, asks=True):
            return f"answer whether column {column} is true for {', '.join(rules)}"
        case pps.Select(names=names, columns=columns, rules=rules, order=order):
            told = f"answer {_answered(names, columns) or 'nothing'} for {', '.join(rules)}"
            return f"{told}, {ordered(_order(order))}" if order else told
        case pps.DerivedStream(source=read, output=output, report=report):
            return f"feed {source(read)} from {output}{reported(report)}"
        case pps.Update(deletes=deletes, inserts=inserts, rules=names):
            parts = [f"delete {_quad(quad)}" for quad in deletes] + [f"insert {_quad(quad)}" for quad in inserts]
            return f"{', '.join(parts) or 'update nothing'} for {', '.join(names)}"
        case pps.Sink(output=output, report=report):
            return f"deliver {output}{reported(report)}"


def source(read: Source) -> str:
    """What is read, each stream with its window."""
    first = _named(read) + _window(read.window)
    others = [f"<{iri}>{_window(window) or ' [LANDMARK]'}" for iri, window in read.windows]
    told = [words for kind, words in _TOLD.items() if isinstance(read, kind)]
    return ", ".join([first, *others, *told, *(["with removals"] if read.removals else [])])


def _named(read: Source) -> str:
    if isinstance(read, Graph):
        return f"the graph <{read.iri}>" + (f" of <{read.within}>" if read.within else "")
    inside = "the graphs of " if isinstance(read, Graphs) and read.only == "graphs" else ""
    if isinstance(read, Graphs) and read.only == "streams" and not read.iri:
        return "each stream"
    return inside + (f"<{read.iri}>" if read.iri else "the default graph" if read.apart else "everything")


_TOLD: dict[type[Source], str] = {Graphs: "with the graph", Arrivals: "with stream and time"}
"""What sources tell of triples besides."""


def _window(window: Window) -> str:
    return "" if window == LANDMARK else f" [{window}]"


def reported(report: Report) -> str:
    """When answers are handed on, where that is not whenever they may have changed."""
    told = ", each to its end" if report.empty else ""
    match report.policy:
        case "change":
            return f" on change{told}"
        case "nonempty":
            return f" unless empty{told}"
        case "periodic":
            return f" every {duration(report.period)}{told}"
        case _:
            return told


def slice_of(limit: int | None, offset: int, order: Iterable[tuple[str, bool]], keys: Iterable[str] = ()) -> str:
    """How many rows are kept, of each value of the keys, and in which order."""
    words = f"keep {'all' if limit is None else f'{limit:,}'} rows" + (f" after the first {offset:,}" if offset else "")
    words += f" of each {each}" if (each := ", ".join(keys)) else ""
    return f"{words}, {by}" if (by := ordered(order)) else words


def ordered(order: Iterable[tuple[str, bool]]) -> str:
    """By what rows are put in order; "" if by nothing."""
    by = ", ".join(f"{name} descending" if descending else name for name, descending in order)
    return f"by {by}" if by else ""


def aggregate(kind: str, of: str | None, distinct: bool, separator: str) -> str:
    """An aggregate as a call."""
    call = f"{kind}({'distinct ' if distinct else ''}{'*' if of is None else of}"
    return call + (f"; {separator!r})" if kind == "group_concat" else ")")


def function(iri: str) -> str:
    """The local name."""
    return re.split(r"[#/:]", iri)[-1] or iri


def _order(order: Iterable[tuple[pps.Expression, bool]]) -> list[tuple[str, bool]]:
    return [(_computed(by), descending) for by, descending in order]


def _group(keys: tuple[int, ...], aggregates: tuple[pps.Aggregate, ...]) -> str:
    by = f"group by {_columns(keys)}" if keys else "group all rows"
    calls = [
        aggregate(one.kind, None if one.expression is None else _computed(one.expression), one.distinct, one.separator)
        for one in aggregates
    ]
    return f"{by}: {', '.join(calls)}" if calls else by


def _pairs(on: tuple[tuple[int, int], ...]) -> str:
    return "where " + " and ".join(f"left ${left} = right ${right}" for left, right in on) if on else "all with all"


def _columns(columns: Iterable[int]) -> str:
    return " ".join(f"${column}" for column in columns)


def _projected(columns: Iterable[int | None]) -> str:
    return " ".join("unbound" if column is None else f"${column}" for column in columns)


def _answered(names: tuple[str, ...], columns: tuple[int, ...]) -> str:
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
        case None:
            return "*"
        case str():
            return cell


def _computed(expression: pps.Expression) -> str:
    match expression:
        case pps.Column(index=index):
            return f"${index}"
        case pps.Invoke(function=name, arguments=arguments):
            return _invoked(name, arguments)
        case None:
            return "unbound"
        case str():
            return expression


def _invoked(name: str, arguments: Iterable[pps.Expression]) -> str:
    return f"{function(name)}({', '.join(map(_computed, arguments))})"


# Figures


def measured(figures: NodeFigures | None) -> str:
    """``~1,200 rows, 998 rows, 10 kept, 1.2 ms``: expected, out, kept at the end, time; what is unknown is left out."""
    return ", ".join(measures(figures).values())


def measures(figures: NodeFigures | None) -> dict[str, str]:
    """Each known figure with its unit, by its name."""
    if figures is None:
        return {}
    found = {
        "estimated": None if figures.estimated is None else f"~{_rows(figures.estimated)}",
        "rows": None if figures.rows is None else _rows(figures.rows),
        "state": None if figures.state is None else f"{figures.state:,} kept",
        "time": None if figures.seconds is None else _time(figures.seconds),
    }
    return {name: words for name, words in found.items() if words is not None}


def _rows(number: float) -> str:
    digits = _digits(number)
    return f"{digits} row{'' if digits == '1' else 's'}"


def _digits(number: float) -> str:
    """With a decimal where a number is small and has one."""
    return f"{number:.1f}" if number < 9.95 and number != round(number) else f"{number:,.0f}"


def _time(seconds: float) -> str:
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
    return f"{_digits(seconds / size)} {unit}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


HOT = (0.05, 0.2, 0.4, 0.7)
"""A node is as hot as the number of these that its share of the hottest node's time, or rows, is not below."""


def heat(figures: Figures | None) -> dict[str, int]:
    """How hot each node is, from 1 to 4, by time if any is known, else by rows; nodes that are not are left out."""
    known = figures or {}
    cost: dict[str, float] = {id: figure.seconds for id, figure in known.items() if figure.seconds is not None}
    cost = cost or {id: figure.rows for id, figure in known.items() if figure.rows is not None}
    most = max(cost.values(), default=0)
    degrees = {id: sum(value >= share * most for share in HOT) for id, value in cost.items()} if most else {}
    return {id: degree for id, degree in degrees.items() if degree}


# Rules


def served(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The rules that each node works for: those that it leads to, or, behind their facts, those that lead to it."""
    found: dict[str, dict[str, None]] = {node.id: dict.fromkeys(_own(node.op)) for node in plan.nodes}
    for node in reversed(plan.nodes):
        for input in _forward(node):
            found[input.node] |= found[node.id]
    before = {id: dict(rules) for id, rules in found.items()}
    for node in plan.nodes:
        if not before[node.id]:
            for input in _forward(node):
                found[node.id] |= found[input.node]
    return {id: tuple(rules) for id, rules in found.items()}


def _own(op: pps.Operator) -> tuple[str, ...]:
    return op.rules if isinstance(op, pps.Construct | pps.Select | pps.Update) else ()


def _forward(node: Node) -> Iterator[Input]:
    return (input for input in node.inputs if not input.feedback)
