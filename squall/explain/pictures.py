"""Plans as SVG, laid out here: no other program is needed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from squall.explain.diagrams import COLOURS
from squall.explain.layout import Layout, Point, Size, entry, lay_out
from squall.explain.words import described, edge, heat, measured
from squall.plan import Input, Node, Plan
from squall.plan.node_metrics import Figures

CHARACTER = 7.0
"""The width of a character of the labels."""
LINE = 15.0
LONGEST = 38
"""Characters in a line of a label; what does not fit is in the node's tooltip, whole."""
MOST_LINES = 4
MOST_LABELS = 6
"""A node with more inputs has no words at their ends, but in their tooltips."""
MARGIN = 30.0

DARK = ("#4d3f12", "#6b4e10", "#8a4f12", "#9c3a1d")
"""As `COLOURS`, behind white text."""

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
AT_NIGHT = """
.plan { background: #15181c; }
.plan text, .plan .node .measured { fill: #e6e8ea; }
.plan .node rect { fill: #252a30; stroke: #6e7781; }
.plan .edge text { fill: #a8b0b8; }
"""


def svg(plan: Plan, figures: Figures | None = None) -> str:
    """The plan as an SVG picture, from left to right, light or dark as the viewer prefers; feedback is dashed, and
    nodes with figures are coloured by how hot they are. Of a very large plan the layout is simple, and says so."""
    words, _ = described(plan)
    labels = {node.id: _label(node.id, words[node.id], measured((figures or {}).get(node.id))) for node in plan.nodes}
    sizes = {id: _size(label) for id, label in labels.items()}
    layout = lay_out(plan, sizes)
    width, height = (side + 2 * MARGIN for side in layout.size)
    loops = [*_loops(plan, layout, sizes)]
    height += max((low for _, _, low in loops), default=layout.size[1]) - layout.size[1] + LINE
    degrees = heat(figures)
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
        *(_node(node, labels[node.id], layout, sizes, words, degrees) for node in plan.nodes),
        *([_note(layout)] if layout.simple else []),
        "</g></g></svg>",
    ]
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Text as XML has it. Characters that XML 1.0 has no way to write (section 2.2) become U+FFFD."""
    return escape(re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def _title(plan: Plan) -> str:
    return quoted(f"plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes")


def _style() -> str:
    by_day = "".join(f".plan .hot{degree} rect {{ fill: {colour}; }}\n" for degree, colour in enumerate(COLOURS, 1))
    by_night = "".join(f".plan .hot{degree} rect {{ fill: {colour}; }}\n" for degree, colour in enumerate(DARK, 1))
    return f"{STYLE}{by_day}@media (prefers-color-scheme: dark) {{{AT_NIGHT}{by_night}}}"


def _note(layout: Layout) -> str:
    return f'<text class="note" y="{-LINE / 2}">The layout is simple: the plan is too large for a better one.</text>'


# Nodes


def _label(id: str, words: str, measures: str) -> list[tuple[str, str]]:
    """The lines of a node's label, each with its class."""
    lines = textwrap.wrap(words, LONGEST, break_on_hyphens=False, max_lines=MOST_LINES, placeholder=" ...")
    label = [("id", _cut(id)), *(("words", line) for line in lines)]
    return [*label, ("measured", measures)] if measures else label


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _size(label: list[tuple[str, str]]) -> Size:
    return max(len(line) for _, line in label) * CHARACTER + 16, len(label) * LINE + 10


def _node(
    node: Node, label: list[tuple[str, str]], layout: Layout, sizes: dict[str, Size], words: dict[str, str],
    degrees: dict[str, int],
) -> str:  # fmt: skip
    x, y = layout.corners[node.id]
    width, height = sizes[node.id]
    kind = f"node hot{degrees[node.id]}" if node.id in degrees else "node"
    lines = "".join(
        f'<tspan class="{name}" x="8" y="{(row + 1) * LINE:.0f}">{quoted(line)}</tspan>'
        for row, (name, line) in enumerate(label)
    )
    return (
        f'<g class="{kind}" data-id="{quoted(node.id)}" transform="translate({x:.1f} {y:.1f})">'
        f"<title>{quoted(f'{node.id}: {words[node.id]}')}</title>"
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="5"/><text>{lines}</text></g>'
    )


# Edges


def _edge(plan: Plan, port: tuple[str, int], route: tuple[Point, ...]) -> str:
    node = plan.by_id[port[0]]
    curves = "".join(_curve(*ends) for ends in pairwise(route))
    return _drawn(node, port[1], f"M{_point(route[0])}{curves}", route[-1], "edge")


def _curve(start: Point, end: Point) -> str:
    """From left to right, level at both ends."""
    middle = (start[0] + end[0]) / 2
    return f"C{_point((middle, start[1]))} {_point((middle, end[1]))} {_point(end)}"


Loop = tuple[tuple[Node, int], tuple[str, Point], float]
"""A feedback edge: its port, its path with where it ends, and how low that comes."""


def _loops(plan: Plan, layout: Layout, sizes: dict[str, Size]) -> Iterator[Loop]:
    """Feedback leaves a node at the right and comes back from the left, below both."""
    for node in plan.nodes:
        for port, input in enumerate(node.inputs):
            if input.feedback:
                yield (node, port), *_way_back(layout, sizes, input, node, port)


def _way_back(
    layout: Layout, sizes: dict[str, Size], input: Input, node: Node, port: int
) -> tuple[tuple[str, Point], float]:
    (left, top), (width, height) = layout.corners[input.node], sizes[input.node]
    start = left + width, top + height / 2
    end = entry(layout.corners[node.id], sizes[node.id], port, len(node.inputs))
    low = max(top + height, layout.corners[node.id][1] + sizes[node.id][1]) + 2 * LINE
    path = (
        f"M{_point(start)}C{_point((start[0] + 40, start[1]))} {_point((start[0] + 40, low))} {_point((start[0], low))}"
        f"L{_point((end[0], low))}C{_point((end[0] - 40, low))} {_point((end[0] - 40, end[1]))} {_point(end)}"
    )
    return (path, end), low


def _loop(node: Node, port: int, path: tuple[str, Point]) -> str:
    return _drawn(node, port, *path, "edge feedback")


def _drawn(node: Node, port: int, path: str, end: Point, kind: str) -> str:
    """An edge, and what it says before its end."""
    input = node.inputs[port]
    says = quoted(edge(input))
    short = f'<text x="{end[0] - 12:.1f}" y="{end[1] - 3:.1f}" text-anchor="end">{says}</text>'
    words = short if says and len(node.inputs) <= MOST_LABELS else ""
    title = quoted(f"{input.node} to {node.id}") + (f": {says}" if says else "")
    return (
        f'<g class="{kind}" data-from="{quoted(input.node)}" data-to="{quoted(node.id)}"><title>{title}</title>'
        f'<path d="{path}" marker-end="url(#arrow)"/>{words}</g>'
    )


def _point(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
