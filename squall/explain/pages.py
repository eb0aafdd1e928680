"""Plans as one HTML page: an SVG picture that can be moved, zoomed and searched, with a panel for each node."""

from __future__ import annotations

import json
from typing import Any

from squall.explain.page_parts import SCRIPT, STYLE
from squall.explain.pictures import quoted, svg
from squall.explain.words import edge_label, metric_texts, node_labels
from squall.plan import Input, Plan
from squall.plan.node_metrics import PlanMetrics
from squall.plan.node_rules import rules_by_node

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<label>Search <input id="search" type="search" autocomplete="off" placeholder="id, operator or rule"></label>
<output id="found" for="search" aria-live="polite"></output>
<button id="closer" type="button" aria-label="zoom in">+</button>
<button id="farther" type="button" aria-label="zoom out">&minus;</button>
<button id="whole" type="button">whole plan</button>
</header>
<main id="picture">
{picture}
</main>
<aside id="panel" aria-live="polite" tabindex="-1"><p>Click a node, or go to one with the Tab key and the arrow keys.
Drag to move, turn the wheel to zoom.</p>
{prefixes}</aside>
<script id="plan" type="application/json">{data}</script>
<script>{script}</script>
</body>
</html>"""


def html(plan: Plan, metrics: PlanMetrics | None = None) -> str:
    """Draws a plan as a self-contained HTML page: its SVG, and a panel for each node.

    The panel has the node's operator, columns, rules and metrics. The page works with mouse and keyboard, in light and
    dark, and loads nothing.
    """
    labels, namespaces = node_labels(plan)
    title = f"Plan{f' by {plan.planner}' if plan.planner else ''}: {len(plan.nodes)} nodes"
    terms = "".join(f"<dt>{quoted(prefix)}:</dt><dd>{quoted(space)}</dd>" for space, prefix in namespaces.items())
    return PAGE.format(
        title=quoted(title),
        style=STYLE,
        picture=svg(plan, metrics),
        prefixes=f"<h2>Prefixes</h2><dl>{terms}</dl>\n" if terms else "",
        data=_embedded(_data(plan, metrics or {}, labels)),
        script=SCRIPT,
    )


def _embedded(data: Any) -> str:
    """Encodes data as JSON in which nothing can end a script element (HTML, section 4.12.1.3)."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(plan: Plan, metrics: PlanMetrics, labels: dict[str, str]) -> dict[str, Any]:
    """Returns the data of the nodes for the script. Rules are numbers in a list of all names."""
    rules = rules_by_node(plan)
    names = {name: number for number, name in enumerate(dict.fromkeys(name for own in rules.values() for name in own))}
    nodes = [
        {
            "id": node.id,
            "kind": type(node.op).__name__,
            "words": labels[node.id],
            "columns": plan.widths[node.id],
            "inputs": [_input(input) for input in node.inputs],
            "rules": [names[name] for name in rules[node.id]],
            "metrics": metric_texts(metrics.get(node.id)),
        }
        for node in plan.nodes
    ]
    return {"rules": list(names), "nodes": nodes}


def _input(input: Input) -> dict[str, str]:
    return {"node": input.node, "words": edge_label(input)}
