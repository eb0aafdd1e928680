"""Plans in the languages of diagram tools: Mermaid and Graphviz's DOT."""

from __future__ import annotations

from collections.abc import Iterator

from squall.explain.words import described, edge, edges, heat, measured
from squall.plan import Plan
from squall.plan.node_metrics import Figures

COLOURS = ("#fff0c2", "#ffd98a", "#ffb56b", "#ff8a65")
"""Of hot nodes, from degree 1 to 4; black text is legible on all of them."""


def mermaid(plan: Plan, figures: Figures | None = None) -> str:
    """The plan as a Mermaid flow chart; feedback is dotted, and nodes with figures are coloured by how hot they are."""
    names = _numbers(plan)
    labels, known = _labels(plan, figures)
    lines = ["flowchart TD", *(f"  %% prefix {prefix}: <{space}>" for space, prefix in known.items())]
    lines += [f"""  {names[id]}["{"<br/>".join(map(_mermaid, label))}"]""" for id, label in labels.items()]
    for node, input in edges(plan):
        label = f'|"{_mermaid(edge(input))}"|' if edge(input) else ""
        arrow = "-.->" if input.feedback else "-->"
        lines.append(f"  {names[input.node]} {arrow}{label} {names[node.id]}")
    return "\n".join([*lines, *_classes(names, heat(figures))])


def _classes(names: dict[str, str], degrees: dict[str, int]) -> Iterator[str]:
    for degree, colour in enumerate(COLOURS, 1):
        hot = [names[id] for id in degrees if degrees[id] == degree]
        if hot:
            yield f"  classDef hot{degree} fill:{colour},color:#000"
            yield f"  class {','.join(hot)} hot{degree}"


def _mermaid(label: str) -> str:
    """Quoted characters are written by their names between # and ; (Mermaid, "Entity codes to escape characters")."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
    return "".join(entities.get(character, character) for character in label)


def dot(plan: Plan, figures: Figures | None = None) -> str:
    """The plan as a Graphviz digraph; feedback is dashed, and nodes with figures are coloured by how hot they are."""
    names = _numbers(plan)
    labels, known = _labels(plan, figures)
    degrees = heat(figures)
    lines = ["digraph plan {", *(f"  // prefix {prefix}: <{space}>" for space, prefix in known.items())]
    lines.append("  node [shape=box, fontname=sans];")
    for id, label in labels.items():
        colour = f', style=filled, fillcolor="{COLOURS[degrees[id] - 1]}"' if id in degrees else ""
        text = "\\n".join(map(_dot, label))
        lines.append(f'  {names[id]} [label="{text}"{colour}];')
    for node, input in edges(plan):
        style = ", style=dashed, constraint=false" if input.feedback else ""
        lines.append(f'  {names[input.node]} -> {names[node.id]} [label="{_dot(edge(input))}"{style}];')
    return "\n".join([*lines, "}"])


def _dot(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"')


def _labels(plan: Plan, figures: Figures | None) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The lines of each node's label, and the prefixes."""
    words, known = described(plan)
    measures = {id: measured((figures or {}).get(id)) for id in words}
    return {id: [f"{id}: {words[id]}", *filter(None, [measures[id]])] for id in words}, known


def _numbers(plan: Plan) -> dict[str, str]:
    """Names that need no quotes."""
    return {node.id: f"n{index}" for index, node in enumerate(plan.nodes)}
