"""Plans in the languages of diagram tools: Mermaid and Graphviz's DOT."""

from __future__ import annotations

from collections.abc import Iterator

from squall.explain.words import edge_label, edges, heat, metrics_text, node_labels
from squall.plan import Plan
from squall.plan.node_metrics import PlanMetrics

COLOURS = ("#fff0c2", "#ffd98a", "#ffb56b", "#ff8a65")
"""Fill colours of hot nodes, from degree 1 to 4. Black text is legible on all of them."""


def mermaid(plan: Plan, metrics: PlanMetrics | None = None) -> str:
    """Draws a plan as a Mermaid flow chart. Feedback is dotted; nodes with metrics are coloured by how hot they are."""
    names = _numbers(plan)
    labels, namespaces = _labels(plan, metrics)
    lines = ["flowchart TD", *(f"  %% prefix {prefix}: <{space}>" for space, prefix in namespaces.items())]
    lines += [f"""  {names[id]}["{"<br/>".join(map(_mermaid, label))}"]""" for id, label in labels.items()]
    for node, input in edges(plan):
        label = f'|"{_mermaid(edge_label(input))}"|' if edge_label(input) else ""
        arrow = "-.->" if input.feedback else "-->"
        lines.append(f"  {names[input.node]} {arrow}{label} {names[node.id]}")
    return "\n".join([*lines, *_classes(names, heat(metrics))])


def _classes(names: dict[str, str], degrees: dict[str, int]) -> Iterator[str]:
    for degree, colour in enumerate(COLOURS, 1):
        hot = [names[id] for id in degrees if degrees[id] == degree]
        if hot:
            yield f"  classDef hot{degree} fill:{colour},color:#000"
            yield f"  class {','.join(hot)} hot{degree}"


def _mermaid(label: str) -> str:
    """Escapes characters by their entity codes (Mermaid, "Entity codes to escape characters")."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
    return "".join(entities.get(character, character) for character in label)


def dot(plan: Plan, metrics: PlanMetrics | None = None) -> str:
    """Draws a plan as a Graphviz digraph. Feedback is dashed; nodes with metrics are coloured by how hot they are."""
    names = _numbers(plan)
    labels, namespaces = _labels(plan, metrics)
    degrees = heat(metrics)
    lines = ["digraph plan {", *(f"  // prefix {prefix}: <{space}>" for space, prefix in namespaces.items())]
    lines.append("  node [shape=box, fontname=sans];")
    for id, label in labels.items():
        colour = f', style=filled, fillcolor="{COLOURS[degrees[id] - 1]}"' if id in degrees else ""
        text = "\\n".join(map(_dot, label))
        lines.append(f'  {names[id]} [label="{text}"{colour}];')
    for node, input in edges(plan):
        style = ", style=dashed, constraint=false" if input.feedback else ""
        lines.append(f'  {names[input.node]} -> {names[node.id]} [label="{_dot(edge_label(input))}"{style}];')
    return "\n".join([*lines, "}"])


def _dot(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"')


def _labels(plan: Plan, metrics: PlanMetrics | None) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Returns the lines of each node's label, and the prefixes by namespace."""
    labels, namespaces = node_labels(plan)
    measured = {id: metrics_text((metrics or {}).get(id)) for id in labels}
    return {id: [f"{id}: {labels[id]}", *filter(None, [measured[id]])] for id in labels}, namespaces


def _numbers(plan: Plan) -> dict[str, str]:
    """Numbers the nodes, so that their names need no quotes."""
    return {node.id: f"n{index}" for index, node in enumerate(plan.nodes)}
