"""The sizes of plans: what each planner makes of many rules that share their prefixes. Nothing is run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import squall
from squall import plugins
from tests.bench.works import many


def sizes(rules: int) -> list[dict[str, Any]]:
    """Returns the number of nodes for each planner, in all and by operator."""
    system = squall.compile(many(rules).text, lexer="jena")
    results = []
    for planner in plugins.names(plugins.PLANNERS):
        nodes = squall.plan(system, planner).nodes
        counts = Counter(type(node.op).__name__ for node in nodes)
        results.append(
            {"work": "plans", "rules": rules, "planner": planner, "nodes": len(nodes), "operators": dict(counts)}
        )
    return results
