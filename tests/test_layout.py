"""The layout of a dataflow: where the nodes of a plan run, and where their rows go."""

from __future__ import annotations

import re

import pytest

import squall
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.layout import DataflowLayout
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.contracts import Options
from squall.plan import Plan
from squall.plan.operators import Distinct, MultiwayJoin, is_stateful

CASES = {
    "a join": (
        "[r: (?x :parent ?y) (?y :parent ?z) -> (?x :grand ?z)]",
        """\
scan-0 -> alpha network: match-1
match-1 -> distinct-2.0
distinct-2 -> join-3.0
distinct-2 -> join-3.1
join-3 -> construct-4 | sink-5.0""",
    ),
    "a multiway join": (
        "[r: (?x :p ?a) (?x :q ?b) (?x :r ?c) -> (?x :s ?c)]",
        """\
scan-0 -> alpha network: match-1, match-2, match-3
match-1 -> distinct-4.0
match-2 -> distinct-5.0
match-3 -> distinct-6.0
distinct-4 -> join-7.1
distinct-5 -> join-7.0
distinct-6 -> join-7.2
join-7 -> construct-8 | sink-9.0""",
    ),
    "constants": (
        "".join(f"[r{k}: (?x :p ?y) (?x :by :s{k}) -> (?x :reads{k} ?y)]" for k in range(9)),
        """\
scan-0 -> alpha network: match-1, match-2
match-1 -> distinct-3.0
match-2 -> distinct-4.0
distinct-3 -> join-5.1
distinct-4 -> join-5.0
join-5 -> column 2: 9 constants | construct | sink-6.0""",
    ),
    "a recursion": (
        "[r: (?x :is ?c) (?c :under ?d) -> (?x :is ?d)]",
        """\
scan-0 -> alpha network: match-1, match-2
match-1 -> distinct-3.0
match-2 -> distinct-4.0
distinct-4 -> join-5.1
distinct-3 -> join-5.0
join-5 -> construct-6 | distinct-7.0
distinct-7 -> alpha network: match-1
distinct-7 -> sink-8.0""",
    ),
}


def plan(text: str) -> Plan:
    return squall.plan(squall.compile(f"@prefix : <urn:> .\n{text}", lexer="jena"), "rete")


def shown(layout: DataflowLayout) -> str:
    """Returns the text of a layout with the nodes numbered in the order in which they appear."""
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f"{match[1]}-{numbers.setdefault(match[0], len(numbers))}"

    return re.sub(r"([a-z]+)-[0-9a-f]{10}", numbered, str(layout))


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_the_layout_of_a_plan(text: str, expected: str) -> None:
    query_plan = plan(text)
    layout = DataflowLayout.of(with_multiway_joins(query_plan))
    assert shown(layout) == expected
    assert layout == DataflowLayout.of(with_multiway_joins(query_plan))


def test_stateless_nodes_run_everywhere_and_others_where_they_are_hosted() -> None:
    query_plan = plan(CASES["a join"][0])
    (own,) = (node.id for node in query_plan.nodes if isinstance(node.op, Distinct))
    layout = DataflowLayout.of(query_plan, hosted=[own], reading=())
    assert [id for id in layout.nodes if is_stateful(query_plan.by_id[id].op)] == [own]
    assert layout.scans == ()


def test_a_job_shows_its_layout() -> None:
    query_plan = plan(CASES["a multiway join"][0])
    text = IteratorJob(query_plan, Options()).describe()
    changed = with_multiway_joins(query_plan)
    ((star, op),) = ((node, node.op) for node in changed.nodes if isinstance(node.op, MultiwayJoin))
    keys = ", ".join(f"{edge.node} by [0]" for edge in star.inputs)
    assert f"\n{star.id} = multiway join ({' + '.join(sorted(op.joins))}) of {keys}\n" in text
    assert text.endswith(str(DataflowLayout.of(changed)))
