"""Printing of trees, systems and plans: text (the golden form), JSON, Mermaid, DOT, SVG and an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from squall.explain.data import as_json
from squall.explain.diagrams import dot, mermaid
from squall.explain.pages import html
from squall.explain.pictures import svg
from squall.explain.texts import text
from squall.plan import Plan
from squall.plan.node_metrics import PlanMetrics

__all__ = ["FORMATS", "as_json", "dot", "html", "mermaid", "svg", "text"]

FORMATS: Mapping[str, Callable[[Plan, PlanMetrics | None], str]] = {
    "text": text,
    "json": as_json,
    "mermaid": mermaid,
    "dot": dot,
    "svg": svg,
    "html": html,
}
"""The formats of a plan, by name. Text and JSON print trees and systems as well."""
