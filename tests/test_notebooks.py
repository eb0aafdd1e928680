"""What notebooks show of systems, plans, findings and results: HTML that is well-formed and escaped."""

from __future__ import annotations

import dataclasses
from typing import Any
from xml.etree import ElementTree

import pytest

import squall
from squall.checking import lint
from squall.explain import notebooks, text
from squall.testing import stream

E = "http://example.org/"
QUERY = f"""PREFIX : <{E}>
SELECT ?room WHERE {{ ?room :degrees ?d ; :name "<b>&'x" FILTER(?d > 30 && ?d < 50) }}"""


def shown(value: Any) -> ElementTree.Element:
    """Returns the HTML of a value, which has to be well-formed."""
    return ElementTree.fromstring(f"<div>{value._repr_html_()}</div>")


def text_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def test_a_system_shows_its_text() -> None:
    system = squall.compile(QUERY, lexer="sparql")
    element = shown(system)
    assert element.findtext(".//summary") == "1 rule"
    assert text(system) == element.findtext(".//pre")
    assert "<b>&" in text_of(element)


def test_a_plan_shows_a_picture_and_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = squall.plan(squall.compile(QUERY, lexer="sparql"))
    element = shown(plan)
    (picture,) = element.iter("{http://www.w3.org/2000/svg}svg")
    assert "<b>&" in text_of(picture)
    (details,) = element.iter("details")
    assert details.get("open") is None
    assert details.findtext("summary") == f"{len(plan.nodes)} nodes, planned by rete"
    monkeypatch.setattr(notebooks, "MAX_NODES", 1)
    assert not list(shown(plan).iter("{http://www.w3.org/2000/svg}svg"))
    assert "Scan" in text_of(shown(plan)) or "scan" in text_of(shown(plan))


def test_findings_are_a_table() -> None:
    findings = lint(f"PREFIX : <{E}> SELECT ?a WHERE {{ ?a :p <{E}x&y> . ?b :q ?c }}", lexer="sparql")
    assert findings
    element = shown(findings)
    rows = list(element.iter("tr"))
    assert [head.text for head in rows[0]] == ["severity", "code", "place", "message", "hint"]
    assert len(rows) == len(findings) + 1
    assert [cell.text or "" for cell in rows[1]][:2] == [findings[0].severity, findings[0].code]
    hostile = type(findings)([dataclasses.replace(findings[0], message="<script>&")])
    assert "<script>&" in text_of(shown(hostile))
    assert text_of(shown(type(findings)())) == "no findings"


def test_results_are_a_table() -> None:
    results = squall.query(f"SELECT ?o {{ ?s <{E}p> ?o }}", lexer="sparql", sources=stream("1 :s :p '<i>&'"))
    assert "<i>&" in text_of(shown(results))
    assert len(list(results)) == 1
