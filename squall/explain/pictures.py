"""Plans as SVG pictures. The layout is computed here; no other program is needed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from squall.explain.diagrams import COLOURS
from squall.explain.layout import MAX_POINTS, Layout, Point, Size, entry, lay_out
from squall.explain.words import edge_label, heat, metrics_text, node_labels
from squall.plan import Input, Node, Plan
from squall.plan.node_metrics import PlanMetrics

CHARACTER_WIDTH = 7.0
"""The width of a character of a label, in pixels, as are all lengths here."""
LINE_HEIGHT = 15.0
MAX_LINE_CHARACTERS = 38
"""A label's line is cut here; the node's tooltip has the whole label."""
MAX_LABEL_LINES = 4
MAX_LABELLED_INPUTS = 6
"""The edges into a node with more inputs have no labels, only tooltips."""
MARGIN = 30.0

DARK_COLOURS = ("#4d3f12", "#6b4e10", "#8a4f12", "#9c3a1d")
"""Like `COLOURS`, for white text."""

STYLE = """
.plan { font: 11.5px ui-monospace, Menlo, Consolas, monospace; background: #fff; }
.plan text { fill: #1c1e21; }
.plan .node rect { fill: #f4f6f8; stroke: #8b949e; }
.plan .node .id { font-weight: bold; }
.plan .node .measured { fill: #484f58; }
.plan .edge path { fill: none; stroke: #6e7781; }
.plan .edge text { fill: #57606a; font-size: 9.5px; }
.plan .feedback path { stroke-dasharray: 6 4; }
.plan .arrow { fill: #6e7781; }
"""
DARK_STYLE = """
.plan { background: #15181c; }
.plan text, .plan .node .measured { fill: #e6e8ea; }
.plan .node rect { fill: #252a30; stroke: #6e7781; }
.plan .edge text { fill: #a8b0b8; }
"""


def svg(plan: Plan, metrics: PlanMetrics | None = None, max_points: int = MAX_POINTS) -> str:
    """Draws a plan as an SVG picture from left to right, light or dark as the viewer prefers.

    Feedback is dashed; nodes with metrics are coloured by how hot they are. A plan with more points than `max_points`
    (nodes, and bends of edges) gets a simple layout, and the picture says so.
    """
    texts, _ = node_labels(plan)
    labels = {
        node.id: _label(node.id, texts[node.id], metrics_text((metrics or {}).get(node.id))) for node in plan.nodes
    }
    sizes = {id: _size(label) for id, label in labels.items()}
    layout = lay_out(plan, sizes, max_points)
    width, height = (side + 2 * MARGIN for side in layout.size)
    loops = [*_loops(plan, layout, sizes)]
    height += max((low for _, _, low in loops), default=layout.size[1]) - layout.size[1] + LINE_HEIGHT
    degrees = heat(metrics)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plan" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{_title(plan)}">',
        f"<title>{_title(plan)}</title>",
        f"<style>{_style()}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="arrow" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<g class="view"><g transform="translate({MARGIN:.0f} {MARGIN:.0f})">',
        *(_edge(plan, port, route) for port, route in layout.routes.items()),
        *(_loop(node, port, path) for (node, port), path, _ in loops),
        *(_node(node, labels[node.id], layout, sizes, texts, degrees) for node in plan.nodes),
        *([_note(layout)] if layout.simple else []),
        "</g></g></svg>",
    ]
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Escapes text for XML. Characters that XML 1.0 cannot hold (section 2.2) become U+FFFD."""
    return escape(re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _title(plan: Plan) -> str:
    return quoted(f"plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes")


def _style() -> str:
    light = "".join(f".plan .hot{degree} rect {{ fill: {colour}; }}\n" for degree, colour in enumerate(COLOURS, 1))
    dark = "".join(f".plan .hot{degree} rect {{ fill: {colour}; }}\n" for degree, colour in enumerate(DARK_COLOURS, 1))
    return f"{STYLE}{light}@media (prefers-color-scheme: dark) {{{DARK_STYLE}{dark}}}"


def _note(layout: Layout) -> str:
    text = "The layout is simple: the plan is too large for a better one."
    return f'<text class="note" y="{-LINE_HEIGHT / 2}">{text}</text>'


# Nodes


def _label(id: str, text: str, metrics: str) -> list[tuple[str, str]]:
    """Returns the lines of a node's label, each with its CSS class."""
    lines = textwrap.wrap(
        text, MAX_LINE_CHARACTERS, break_on_hyphens=False, max_lines=MAX_LABEL_LINES, placeholder=" ..."
    )
    label = [("id", _cut(id)), *(("words", line) for line in lines)]
    return [*label, ("measured", metrics)] if metrics else label


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARACTERS else text[: MAX_LINE_CHARACTERS - 1] + "…"


def _size(label: list[tuple[str, str]]) -> Size:
    return max(len(line) for _, line in label) * CHARACTER_WIDTH + 16, len(label) * LINE_HEIGHT + 10


def _node(
    node: Node, label: list[tuple[str, str]], layout: Layout, sizes: dict[str, Size], texts: dict[str, str],
    degrees: dict[str, int],
) -> str:  # fmt: skip
    x, y = layout.corners[node.id]
    width, height = sizes[node.id]
    kind = f"node hot{degrees[node.id]}" if node.id in degrees else "node"
    lines = "".join(
        f'<tspan class="{name}" x="8" y="{(row + 1) * LINE_HEIGHT:.0f}">{quoted(line)}</tspan>'
        for row, (name, line) in enumerate(label)
    )
    return (
        f'<g class="{kind}" data-id="{quoted(node.id)}" transform="translate({x:.1f} {y:.1f})">'
        f"<title>{quoted(f'{node.id}: {texts[node.id]}')}</title>"
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="5"/><text>{lines}</text></g>'
    )


# Edges


def _edge(plan: Plan, port: tuple[str, int], route: tuple[Point, ...]) -> str:
    node = plan.by_id[port[0]]
    curves = "".join(_curve(*ends) for ends in pairwise(route))
    return _drawn(node, port[1], f"M{_point(route[0])}{curves}", route[-1], "edge")


def _curve(start: Point, end: Point) -> str:
    """Draws a curve from left to right that is horizontal at both ends."""
    middle = (start[0] + end[0]) / 2
    return f"C{_point((middle, start[1]))} {_point((middle, end[1]))} {_point(end)}"


Loop = tuple[tuple[Node, int], tuple[str, Point], float]
"""A feedback edge: its port, its path with the path's end, and the path's lowest point."""


def _loops(plan: Plan, layout: Layout, sizes: dict[str, Size]) -> Iterator[Loop]:
    """Yields the feedback edges: each leaves a node at the right and enters one from the left, below both."""
    for node in plan.nodes:
        for port, input in enumerate(node.inputs):
            if input.feedback:
                yield (node, port), *_feedback_path(layout, sizes, input, node, port)


def _feedback_path(
    layout: Layout, sizes: dict[str, Size], input: Input, node: Node, port: int
) -> tuple[tuple[str, Point], float]:
    (left, top), (width, height) = layout.corners[input.node], sizes[input.node]
    start = left + width, top + height / 2
    end = entry(layout.corners[node.id], sizes[node.id], port, len(node.inputs))
    low = max(top + height, layout.corners[node.id][1] + sizes[node.id][1]) + 2 * LINE_HEIGHT
    path = (
        f"M{_point(start)}C{_point((start[0] + 40, start[1]))} {_point((start[0] + 40, low))} {_point((start[0], low))}"
        f"L{_point((end[0], low))}C{_point((end[0] - 40, low))} {_point((end[0] - 40, end[1]))} {_point(end)}"
    )
    return (path, end), low


def _loop(node: Node, port: int, path: tuple[str, Point]) -> str:
    return _drawn(node, port, *path, "edge feedback")


def _drawn(node: Node, port: int, path: str, end: Point, kind: str) -> str:
    """Draws an edge, with its label before its end."""
    input = node.inputs[port]
    label = quoted(edge_label(input))
    short = f'<text x="{end[0] - 12:.1f}" y="{end[1] - 3:.1f}" text-anchor="end">{label}</text>'
    text = short if label and len(node.inputs) <= MAX_LABELLED_INPUTS else ""
    title = quoted(f"{input.node} to {node.id}") + (f": {label}" if label else "")
    return (
        f'<g class="{kind}" data-from="{quoted(input.node)}" data-to="{quoted(node.id)}"><title>{title}</title>'
        f'<path d="{path}" marker-end="url(#arrow)"/>{text}</g>'
    )


def _point(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
