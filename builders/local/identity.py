"""What a checkpoint belongs to, by names, and how a run differs that is to go on from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from squall.builders.local.migration import described
from squall.plan import Plan
from squall.plan.node_rules import rules_by_node

Names = Mapping[str, Mapping[str, str]]
"""Names by kind, with a digest of each."""
LESS = "without rules "
"""How a change begins where rules are there no more."""


def rules(plan: Plan) -> dict[str, str]:
    """A digest of the nodes that work for each rule."""
    names_by_node: dict[str, list[str]] = {}
    by_node = rules_by_node(plan)
    for node in plan.nodes:
        for rule in by_node[node.id] or ("",):
            names_by_node.setdefault(rule, []).append(described(node))
    return {rule: hashlib.sha256("\n".join(nodes).encode()).hexdigest() for rule, nodes in names_by_node.items()}


def differences(before: Names, now: Names) -> Iterator[str]:
    """What is there no more, new, or another; and sources in another order, by which it is known where each stands."""
    for kind in now.keys() | before.keys():
        old, new = before.get(kind, {}), now.get(kind, {})
        for word, names in (
            ("without", [name for name in old if name not in new]),
            ("with", [name for name in new if name not in old]),
            ("changed", [name for name in new if name in old and new[name] != old[name]]),
        ):
            if names:
                yield f"{word} {kind} {', '.join(f'`{name}`' for name in names)}"
        if kind == "sources" and old == new and list(old) != list(new):
            yield "sources in another order"
