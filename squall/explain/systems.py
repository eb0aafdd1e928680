"""A system as lines of text: its rules, each with what it reads, joins, tests and makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall import model as tps
from squall.explain.words import aggregate, function, reported, slice_of, source
from squall.model import OutputSpec, System, output_specs


def lines(system: System) -> Iterator[str]:
    """The system in lines, names not shortened."""
    told = output_specs(system)
    shown = [telling for telling in told if telling.rules] or told[:1]
    for number, telling in enumerate(shown):
        yield from [""] if number else []
        stream = f" of the stream <{telling.stream}>" if telling.stream else ""
        yield f"output {telling.output}{reported(telling.report)}{stream}"
        yield from _rules(telling)


def _rules(telling: OutputSpec) -> Iterator[str]:
    for rule in telling.rules:
        yield ""
        yield f"rule {rule.name}" + ("" if rule.reentrant else " (what it makes is not read again)")
        yield from _indented(_body(rule))


def _body(system: System) -> Iterator[str]:
    """A rule's, or a part's, own lines."""
    yield from _labelled("from", (source(read) for read in system.sources if read != tps.Source()))
    yield from _labelled("if", _joinables(system.joinables))
    for predicate in system.predicates:
        yield from _predicate(predicate)
    if system.grouping is not None:
        yield from _labelled("group", _grouping(system.grouping))
    if system.distinct:
        yield "distinct"
    if system.slice is not None:
        yield from _labelled("slice", [_slice(system.slice)])
    for consequence in system.consequences:
        yield from _consequence(consequence)


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:<8}{line}"
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
                yield "or" if index else "either"
                yield from _indented(_body(branch))
        case System():
            yield "part"
            yield from _indented(_body(joinable))
        case tps.Pattern() | tps.AtomPattern():
            yield _fact(joinable)


def _predicate(predicate: tps.Predicate) -> Iterator[str]:
    match predicate:
        case tps.Filter(expression=expression):
            return _labelled("test", [_expression(expression)])
        case tps.Bind(variable=variable, expression=expression, keeps=keeps):
            value = f"{variable} = {_expression(expression)}"
            return _labelled("let", [f"{value}, if it has a value" if keeps else value])
        case tps.TableFunction(variables=names, function=iri, arguments=arguments):
            return _labelled("let", [f"{_slots(names)} in {_call(iri, arguments)}"])
        case tps.Without(joinables=joinables, minus=minus):
            return _labelled("minus" if minus else "unless", _joinables(joinables))
        case tps.Optional():
            return _labelled("maybe", _maybe(predicate))
        case tps.Exists():
            return _labelled("exists", _exists(predicate))


def _exists(part: tps.Exists) -> Iterator[str]:
    if part.variable is not None:
        yield f"{part.variable} = whether there is"
    if part.wanted is not None:
        yield "there is" if part.wanted else "there is none"
    yield from _indented(_body(part.system))


def _maybe(maybe: tps.Optional) -> Iterator[str]:
    yield from _body(maybe.system)
    for part in maybe.exists:
        yield from _labelled("exists", _exists(part))
    if maybe.condition is not None:
        yield from _labelled("where", [_expression(maybe.condition)])


def _grouping(grouping: tps.Grouping) -> Iterator[str]:
    yield f"by {_slots(grouping.keys)}" if grouping.keys else "all solutions"
    for one in grouping.aggregates:
        of = None if one.expression is None else _expression(one.expression)
        yield f"{one.variable} = {aggregate(one.kind, of, one.distinct, one.separator)}"


def _slice(part: tps.Slice) -> str:
    order = [(_expression(by.expression), by.descending) for by in part.order]
    return slice_of(part.limit, part.offset, order, map(str, part.keys))


def _consequence(consequence: tps.Consequence) -> Iterator[str]:
    match consequence:
        case tps.Construct(template=template, internal=internal):
            return _labelled("inside" if internal else "then", map(_fact, template))
        case tps.Delete(template=template, graph=graph):
            return _labelled("delete", (_fact(one) + _in(graph) for one in template))
        case tps.Insert(template=template, graph=graph):
            return _labelled("insert", (_fact(one) + _in(graph) for one in template))
        case tps.Select(variables=names):
            return _labelled("select", [_slots(names) or "nothing"])
        case tps.Ask():
            return _labelled("ask", ["whether there is any"])


def _in(graph: tps.Slot | None) -> str:
    return "" if graph is None else f" in {graph}"


def _fact(pattern: tps.FactPattern) -> str:
    literals = any(isinstance(slot, str) and slot[0] == '"' for slot in pattern.slots)
    exact = " (literals as they are)" if pattern.exact and literals else ""
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
            return str(expression)


def _call(iri: str, arguments: Iterable[tps.Expression]) -> str:
    return f"{function(iri)}({', '.join(map(_expression, arguments))})"
