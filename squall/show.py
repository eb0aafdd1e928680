"""Trees, systems and plans for the eye: as text (the golden form), JSON, Mermaid and DOT."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from squall import operators as pps
from squall import system as tps
from squall.plan import Input, Node, Plan
from squall.rdf import OWL, RDF, RDFS, XSD
from squall.system import System, Variable, rules

_KNOWN = {RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd"}
_TERM = re.compile(r'"(?:[^"\\]|\\.)*"|<(?P<space>[^<>\s]*[/#]|urn:[^<>\s]+:)(?P<local>[A-Za-z_][A-Za-z0-9_-]*)>')
"""A literal's text, or an IRI that can be cut in two. What looks like an IRI in a literal is none."""


def text(thing: object) -> str:
    """A system or a plan as text with shortened names, the prefixes first. Any other tree prints itself."""
    match thing:
        case System():
            return _with_prefixes(_system_lines(thing))
        case Plan():
            return _with_prefixes(_plan_lines(thing))
        case _:
            return str(thing)


def as_json(thing: object) -> str:
    """A tree, a system or a plan as JSON: each part an object with its ``kind`` and its fields, origins left out."""
    return json.dumps(_data(thing), indent=2, ensure_ascii=False)


def mermaid(plan: Plan) -> str:
    """The plan as a Mermaid flow chart; feedback is dotted."""
    names = _numbers(plan)
    prefixes = _prefixes("\n".join(map(_node, plan.nodes)))
    lines = ["flowchart TD", *(f"  %% prefix {prefix}: <{space}>" for space, prefix in prefixes.items())]
    lines += [f'  {names[node.id]}["{_mermaid(_short(_node(node), prefixes))}"]' for node in plan.nodes]
    for node, edge in _edges(plan):
        label = f'|"{_mermaid(_edge(edge))}"|' if _edge(edge) else ""
        arrow = "-.->" if edge.feedback else "-->"
        lines.append(f"  {names[edge.node]} {arrow}{label} {names[node.id]}")
    return "\n".join(lines)


def dot(plan: Plan) -> str:
    """The plan as a Graphviz digraph; feedback is dashed."""
    names = _numbers(plan)
    prefixes = _prefixes("\n".join(map(_node, plan.nodes)))
    lines = ["digraph plan {", *(f"  // prefix {prefix}: <{space}>" for space, prefix in prefixes.items())]
    lines.append("  node [shape=box, fontname=sans];")
    lines += [f'  {names[node.id]} [label="{_dot(_short(_node(node), prefixes))}"];' for node in plan.nodes]
    for node, edge in _edges(plan):
        style = ", style=dashed, constraint=false" if edge.feedback else ""
        lines.append(f'  {names[edge.node]} -> {names[node.id]} [label="{_dot(_edge(edge))}"{style}];')
    return "\n".join([*lines, "}"])


# Systems


def _system_lines(system: System) -> Iterator[str]:
    yield f"output {system.output}"
    for rule in rules(system):
        yield ""
        yield f"rule {rule.name}" + ("" if rule.reentrant else " (what it makes is not read again)")
        yield from _labelled("from", (f"<{source.iri}>" for source in rule.sources if source.iri))
        yield from _labelled("if", map(_fact, rule.joinables))
        for predicate in rule.predicates:
            yield from _predicate(predicate)
        for consequence in rule.consequences:
            yield from _labelled("then", map(_fact, consequence.template))


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {label:<8}{line}"
        label = ""


def _predicate(predicate: tps.Predicate) -> Iterator[str]:
    match predicate:
        case tps.Test(expression=expression):
            return _labelled("test", [_expression(expression)])
        case tps.Bind(variable=variable, expression=expression):
            return _labelled("let", [f"{variable} = {_expression(expression)}"])
        case tps.Without(joinables=joinables):
            return _labelled("unless", map(_fact, joinables))


def _fact(pattern: tps.FactPattern) -> str:
    match pattern:
        case tps.Pattern():
            return " ".join(map(str, pattern.slots))
        case tps.AtomPattern(relation=relation, arguments=arguments):
            return f"{relation}({', '.join(map(str, arguments))})"


def _expression(expression: tps.Expression) -> str:
    match expression:
        case tps.Call(function=function, arguments=arguments):
            return f"{_function(function)}({', '.join(map(_expression, arguments))})"
        case Variable() | str():
            return str(expression)


def _function(iri: str) -> str:
    """The local name."""
    return re.split(r"[#/:]", iri)[-1] or iri


# Plans


def _plan_lines(plan: Plan) -> Iterator[str]:
    edges = sum(len(node.inputs) for node in plan.nodes)
    yield f"plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes, {edges} edges"
    drawn: set[str] = set()
    for node in plan.nodes:
        if not node.inputs:
            yield ""
            yield _node(node)
            drawn.add(node.id)
            yield from _below(plan, node, "", drawn)


def _below(plan: Plan, node: Node, margin: str, drawn: set[str]) -> Iterator[str]:
    """What the node feeds, as a tree. A node is drawn where it is met first; from then on an arrow leads to it."""
    targets = plan.consumers[node.id]
    for index, (id, port) in enumerate(targets):
        last = index == len(targets) - 1
        target = plan.by_id[id]
        label = _edge(target.inputs[port], port if len(target.inputs) > 1 else None)
        note = f"  [{label}]" if label else ""
        branch = margin + ("└─ " if last else "├─ ")
        if id in drawn:
            yield f"{branch}-> {id}{note}"
            continue
        drawn.add(id)
        yield f"{branch}{_node(target)}{note}"
        yield from _below(plan, target, margin + ("   " if last else "│  "), drawn)


def _edge(edge: Input, port: int | None = None) -> str:
    """What an edge says: the number of the input (from 1) where there are several, the grouping columns, feedback."""
    words = [] if port is None else [f"input {port + 1}"]
    if edge.columns is not None:
        words.append(f"by {_columns(edge.columns)}" if edge.columns else "all in one")
    if edge.feedback:
        words.append("feedback")
    return ", ".join(words)


def _node(node: Node) -> str:
    return f"{node.id}: {_operator(node.op)}"


def _operator(op: pps.Operator) -> str:
    match op:
        case pps.Read(source=source):
            return f"read {f'<{source.iri}>' if source.iri else 'everything'}"
        case pps.Match(cells=cells):
            return f"match {' '.join(map(_cell, cells))}"
        case pps.Join(on=on, keep=keep):
            return f"join {f'where {_pairs(on)}' if on else 'all with all'}, keep {_columns(keep) or 'nothing'}"
        case pps.AntiJoin(on=on):
            return f"left rows without a right row{f' where {_pairs(on)}' if on else ''}"
        case pps.Test(expression=expression):
            return f"test {_computed(expression)}"
        case pps.Extend(expression=expression):
            return f"extend by {_computed(expression)}"
        case pps.Unit():
            return "the row without columns"
        case pps.Distinct(by=by):
            return f"distinct by the first {by} columns"
        case pps.Emit(template=template, rules=names):
            return f"emit {' '.join(map(_cell, template))} for {', '.join(names)}"
        case pps.Deliver(output=output):
            return f"deliver {output}"


def _pairs(on: tuple[tuple[int, int], ...]) -> str:
    return " and ".join(f"left ${left} = right ${right}" for left, right in on)


def _columns(columns: Iterable[int]) -> str:
    return " ".join(f"${column}" for column in columns)


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
        case pps.Apply(function=function, arguments=arguments):
            return f"{_function(function)}({', '.join(map(_computed, arguments))})"
        case None:
            return "unbound"
        case str():
            return expression


def _edges(plan: Plan) -> Iterator[tuple[Node, Input]]:
    return ((node, edge) for node in plan.nodes for edge in node.inputs)


def _numbers(plan: Plan) -> dict[str, str]:
    """Names that need no quotes."""
    return {node.id: f"n{index}" for index, node in enumerate(plan.nodes)}


def _mermaid(label: str) -> str:
    """Quoted characters are written by their names between # and ; (Mermaid, "Entity codes to escape characters")."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
    return "".join(entities.get(character, character) for character in label)


def _dot(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"')


# Names


def _with_prefixes(lines: Iterable[str]) -> str:
    """The lines with names shortened, after a line for each prefix."""
    body = "\n".join(lines)
    prefixes = _prefixes(body)
    header = "".join(f"prefix {prefix}: <{space}>\n" for space, prefix in prefixes.items())
    return (header + "\n" if header else "") + _short(body, prefixes)


def _prefixes(body: str) -> dict[str, str]:
    """Prefixes for the namespaces of a text: well-known ones by their names, ``:`` for another that is alone, ``ns1:``,
    ``ns2:`` ... in the order in which they occur otherwise."""
    spaces = dict.fromkeys(match["space"] for match in _TERM.finditer(body) if match["space"])
    own = [space for space in spaces if space not in _KNOWN]
    names = [""] if len(own) == 1 else [f"ns{index + 1}" for index in range(len(own))]
    return dict(zip(own, names, strict=True)) | {space: _KNOWN[space] for space in spaces if space in _KNOWN}


def _short(body: str, prefixes: dict[str, str]) -> str:
    return _TERM.sub(lambda match: f"{prefixes[match['space']]}:{match['local']}" if match["space"] else match[0], body)


def _data(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _data(getattr(value, field.name)) for field in fields(value) if field.name != "origin"}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, tuple | list | frozenset):
        return [_data(item) for item in value]
    return value
