"""Systems and plans as HTML for notebooks: what `System` and `Plan` show of themselves there.

Both are in layers below this one, and find these functions by the entry-point group `squall.plugins.HTML`.
"""

from __future__ import annotations

from squall.explain.pictures import quoted, svg
from squall.explain.texts import text
from squall.model import System, rules
from squall.plan import Plan
from squall.wording import counted

MAX_NODES = 300
"""The most nodes of a plan that a notebook draws. A larger plan is its text."""


def system_html(system: System) -> str:
    """Returns a system as its text, under the number of its rules."""
    return _details(counted(sum(1 for _ in rules(system)), "rule"), _text(text(system)))


def plan_html(plan: Plan) -> str:
    """Returns a plan as a picture of its nodes, and as its text, which can be opened."""
    title = f"{counted(len(plan.nodes), 'node')}{f', planned by {plan.planner}' if plan.planner else ''}"
    plan_text = _text(text(plan))
    if len(plan.nodes) > MAX_NODES:
        return _details(title, plan_text)
    picture = f'<div style="overflow-x: auto">{svg(plan)}</div>'
    return f"<div>{picture}{_details(title, plan_text, is_open=False)}</div>"


def _details(title: str, content: str, is_open: bool = True) -> str:
    opened = ' open=""' if is_open else ""
    return f"<details{opened}><summary>{quoted(title)}</summary>{content}</details>"


def _text(content: str) -> str:
    return f'<pre style="overflow-x: auto">{quoted(content)}</pre>'
