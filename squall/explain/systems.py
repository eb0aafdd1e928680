"""A system as lines of text: its rules, each with its sources, joins, filters and consequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from squall import model as tps
from squall.explain.words import aggregate_label, constant_label, function_name, slice_label, source_label
from squall.model import OutputSpec, System, output_specs
from squall.model.reports import report_label
from squall.model.windows import duration
from squall.wording import counted


def lines(system: System) -> Iterator[str]:
    """Yields the lines of a system. Names are not shortened."""
    if system.fixed_schema is not None:
        size = counted(len(system.fixed_schema.triples), "triple")
        yield from system.fixed_schema.notes or (f"entailment with a schema of {size}, which is fixed",)
    if system.cliques is not None:
        terms = sum(map(len, system.cliques.members.values()))
        cliques = counted(len(system.cliques.members), "clique")
        way = "with provenance" if system.cliques.keeps_terms else "by representative"
        change = "which streams may change" if system.cliques.may_change else "which are fixed"
        yield f"owl:sameAs {way}, with {cliques} of {counted(terms, 'term')}, {change}"
    specs = output_specs(system)
    visible_specs = [spec for spec in specs if spec.rules] or specs[:1]
    for number, spec in enumerate(visible_specs):
        yield from [""] if number else []
        internal = "internal " if spec.internal else ""
        stream = f" of the {internal}stream <{spec.stream}>" if spec.stream else ""
        yield f"output {spec.output}{report_label(spec.report)}{stream}"
        yield from _rules(spec)


def _rules(spec: OutputSpec) -> Iterator[str]:
    for rule in spec.rules:
        yield ""
        yield f"rule {rule.name}" + ("" if rule.reentrant else " (no rule reads its facts)")
        yield from _indented(_body(rule))


def _body(system: System) -> Iterator[str]:
    """Yields the lines of a rule's or a part's body and consequences."""
    sources = (source for source in system.sources if replace(source, cliques=None) != tps.Source())
    yield from _labelled("from", map(source_label, sources))
    yield from _labelled("match", _joinables(system.joinables))
    for predicate in system.predicates:
        yield from _predicate(predicate)
    if system.grouping is not None:
        yield from _labelled("group", _grouping(system.grouping))
    if system.distinct:
        yield "distinct"
    if system.slice is not None:
        yield from _labelled("slice", [_slice(system.slice)])
    if system.consumption is not None:
        keys = f", once for each value of {_slots(system.consumption.keys)}" if system.consumption.keys else ""
        yield from _labelled("consume", [f"{system.consumption.members} from {system.consumption.start}{keys}"])
    for consequence in system.consequences:
        yield from _consequence(consequence)


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:<12}{line}"
        label = ""


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _joinables(joinables: Iterable[tps.Joinable]) -> Iterator[str]:
    for joinable in joinables:
        yield from _joinable(joinable)


def _joinable(joinable: tps.Joinable) -> Iterator[str]:
    match joinable:
        case tps.Union(branches=branches):
            for index, branch in enumerate(branches):
                yield "or" if index else "union"
                yield from _indented(_body(branch))
        case tps.SequenceJoin():
            yield from _sequence(joinable)
        case tps.Temporal():
            yield _temporal(joinable)
            yield from _indented(_body(joinable.system))
        case System():
            yield joinable.name or "subquery"
            yield from _indented(_body(joinable))
        case tps.Pattern() | tps.AtomPattern():
            yield _fact(joinable)


def _temporal(part: tps.Temporal) -> str:
    match part:
        case tps.Schedule(time=time):
            return f"at the time {time}"
        case tps.At(variable=variable, length=length):
            label = f"at {variable} in the last {duration(length)}"
        case tps.Erode(length=length):
            label = f"always in the last {duration(length)}"
        case tps.Dilate(length=length):
            label = f"in the last {duration(length)}"
        case _:
            raise TypeError(f"`{part}` has no label")
    return f"{label}, each {duration(part.step)}" if part.step else label


def _sequence(sequence: tps.SequenceJoin) -> Iterator[str]:
    most = "" if sequence.max_gap is None else f", at most {duration(sequence.max_gap)}"
    least = "" if sequence.min_gap == 1 else f", at least {duration(sequence.min_gap)}"
    name = "iteration" if isinstance(sequence, tps.Iteration) else "sequence"
    yield f"{name}, {sequence.selection}: from {sequence.left_end} to {sequence.right_start}{least}{most}"
    yield from _indented(_body(sequence.left))
    yield "then"
    yield from _indented(_body(sequence.right))
    for part in sequence.between:
        yield f"with {'some' if part.wanted else 'none'} of these between, from {part.start} to {part.end}"
        yield from _indented(_body(part.system))
    if isinstance(sequence, tps.Iteration):
        yield "then again, with " + ", ".join(f"{name} = {_expression(value)}" for name, value in sequence.values)
        if sequence.again is not None:
            yield f"if {_expression(sequence.again)}"
    if sequence.condition is not None:
        yield from _labelled("condition", [_expression(sequence.condition)])


def _predicate(predicate: tps.Predicate) -> Iterator[str]:
    match predicate:
        case tps.Filter(expression=expression):
            return _labelled("filter", [_expression(expression)])
        case tps.Bind(variable=variable, expression=expression, keep_unbound=keeps):
            value = f"{variable} = {_expression(expression)}"
            return _labelled("bind", [f"{value}, or unbound" if keeps else value])
        case tps.TableFunction(variables=names, function=iri, arguments=arguments):
            return _labelled("table", [f"{_slots(names)} = {_call(iri, arguments)}"])
        case tps.NotExists(joinables=joinables):
            return _labelled("not exists", _joinables(joinables))
        case tps.Minus(joinables=joinables):
            return _labelled("minus", _joinables(joinables))
        case tps.Optional():
            return _labelled("optional", _optional(predicate))
        case tps.Exists():
            return _labelled("exists", _exists(predicate))


def _exists(part: tps.Exists) -> Iterator[str]:
    if part.variable is not None:
        yield f"{part.variable} = whether a solution exists"
    if part.wanted is not None:
        yield "some solution" if part.wanted else "no solution"
    yield from _indented(_body(part.system))


def _optional(optional: tps.Optional) -> Iterator[str]:
    yield from _body(optional.system)
    for part in optional.exists:
        yield from _labelled("exists", _exists(part))
    if optional.condition is not None:
        yield from _labelled("condition", [_expression(optional.condition)])


def _grouping(grouping: tps.Grouping) -> Iterator[str]:
    yield f"by {_slots(grouping.keys)}" if grouping.keys else "all solutions"
    for aggregate in grouping.aggregates:
        argument = None if aggregate.expression is None else _expression(aggregate.expression)
        call = aggregate_label(aggregate.kind, argument, aggregate.distinct, aggregate.separator)
        yield f"{aggregate.variable} = {call}"


def _slice(part: tps.Slice) -> str:
    order = [(_expression(key.expression), key.descending) for key in part.order]
    return slice_label(part.limit, part.offset, order, map(str, part.keys))


def _consequence(consequence: tps.Consequence) -> Iterator[str]:
    match consequence:
        case tps.Construct(template=template, internal=internal):
            return _labelled("internal" if internal else "construct", map(_fact, template))
        case tps.Delete(template=template, graph=graph):
            return _labelled("delete", (_fact(pattern) + _graph(graph) for pattern in template))
        case tps.Insert(template=template, graph=graph):
            return _labelled("insert", (_fact(pattern) + _graph(graph) for pattern in template))
        case tps.Select(variables=names):
            return _labelled("select", [_slots(names) or "nothing"])
        case tps.Ask():
            return _labelled("ask", ["whether any solution exists"])


def _graph(graph: tps.Slot | None) -> str:
    return "" if graph is None else f" in {graph}"


def _fact(pattern: tps.FactPattern) -> str:
    has_literals = any(isinstance(slot, str) and slot[0] == '"' for slot in pattern.slots)
    exact = " (literals match by term)" if pattern.exact and has_literals else ""
    match pattern:
        case tps.Pattern():
            return _slots(pattern.slots) + exact
        case tps.AtomPattern(relation=relation, arguments=arguments):
            return f"{relation}({', '.join(map(str, arguments))}){exact}"


def _slots(slots: Iterable[tps.Slot]) -> str:
    return " ".join(map(str, slots))


def _expression(expression: tps.Expression) -> str:
    match expression:
        case tps.Call(function=iri, arguments=arguments):
            return _call(iri, arguments)
        case tps.Variable() | str():
            return constant_label(str(expression))


def _call(iri: str, arguments: Iterable[tps.Expression]) -> str:
    return f"{function_name(iri)}({', '.join(map(_expression, arguments))})"
