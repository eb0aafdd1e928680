"""Trees, systems and plans for the eye: text (the golden form), JSON, Mermaid, DOT, SVG and an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from squall.figures import Figures
from squall.plan import Plan
from squall.show.data import as_json
from squall.show.diagrams import dot, mermaid
from squall.show.pages import html
from squall.show.pictures import svg
from squall.show.texts import text

__all__ = ["FORMATS", "as_json", "dot", "html", "mermaid", "svg", "text"]

FORMATS: Mapping[str, Callable[[Plan, Figures | None], str]] = {
    "text": text,
    "json": as_json,
    "mermaid": mermaid,
    "dot": dot,
    "svg": svg,
    "html": html,
}
"""What a plan can be shown as, by name. The first two show trees and systems as well."""
