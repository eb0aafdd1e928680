"""The layout of a plan's diagram: nothing overlaps, edges lead to the right, and few of them cross."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall import explain
from squall.explain import layout
from squall.explain.layout import NODE_GAP, LayerPoint, Layout, Size, lay_out
from squall.plan import Input, Node, Plan
from squall.plan.operators import Sink, Union
from tests.laws import examples_of

Near = dict[LayerPoint, list[LayerPoint]]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draws digraphs that can be listed inputs first, with feedback; layouts do not look at operators."""
    count = draw(st.integers(1, 14))
    nodes = []
    for number in range(count):
        sources = draw(st.lists(st.integers(0, number - 1), max_size=4)) if number else []
        back = draw(st.lists(st.integers(number, count - 1), max_size=1))
        inputs = [*(Input(f"n{source}") for source in sources), *(Input(f"n{late}", feedback=True) for late in back)]
        nodes.append(Node(f"n{number}", Union(), tuple(inputs)))
    return Plan((*nodes, Node("end", Sink(), (Input("n0"),))))


SIZES = st.tuples(st.floats(1, 300), st.floats(1, 90))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Plan, dict[str, Size]]:
    plan = draw(plans())
    return plan, {node.id: draw(SIZES) for node in plan.nodes}


def box(layout_result: Layout, sizes: dict[str, Size], id: str) -> tuple[float, float, float, float]:
    (left, top), (width, height) = layout_result.corners[id], sizes[id]
    return left, top, left + width, top + height


@given(cases(), st.sampled_from([0, layout.MAX_POINTS]))
def test_nodes_are_inside_the_picture_and_do_not_overlap(case: tuple[Plan, dict[str, Size]], most: int) -> None:
    plan, sizes = case
    layout_result = lay_out(plan, sizes, most)
    boxes = [box(layout_result, sizes, node.id) for node in plan.nodes]
    for left, top, right, bottom in boxes:
        assert left >= 0
        assert top >= -1e-6
        assert right <= layout_result.size[0] + 1e-6
        assert bottom <= layout_result.size[1] + 1e-6
    for combination, other in combinations(boxes, 2):
        beside = combination[2] < other[0] or other[2] < combination[0]
        above = combination[3] + NODE_GAP <= other[1] + 1e-6 or other[3] + NODE_GAP <= combination[1] + 1e-6
        assert beside or above


@given(cases(), st.sampled_from([0, layout.MAX_POINTS]))
def test_an_edge_leads_to_the_right_from_its_node_to_its_node(case: tuple[Plan, dict[str, Size]], most: int) -> None:
    plan, sizes = case
    layout_result = lay_out(plan, sizes, most)
    forward = {(node.id, port): edge.node for node in plan.nodes for port, edge in enumerate(node.inputs)
               if not edge.feedback}  # fmt: skip
    assert layout_result.routes.keys() == forward.keys()
    for (id, port), route in layout_result.routes.items():
        assert route[0][0] == box(layout_result, sizes, forward[id, port])[2]
        assert route[-1][0] == layout_result.corners[id][0]
        assert all(item[0] <= other[0] for item, other in pairwise(route))


@settings(max_examples=examples_of(25))
@given(cases())
def test_a_plan_is_drawn_alike_each_time(case: tuple[Plan, dict[str, Size]]) -> None:
    assert lay_out(*case) == lay_out(*case)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_crossings_are_counted_as_pairs(edges: list[tuple[int, int]]) -> None:
    left, right = [f"l{i}" for i in range(7)], [f"r{i}" for i in range(7)]
    after: Near = {f"l{i}": [f"r{end}" for start, end in edges if start == i] for i in range(7)}
    pairs = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(edges, 2))
    assert layout._crossings([left, right], after) == pairs


@given(plans())
def test_sweeps_make_nothing_worse(plan: Plan) -> None:
    depths = layout._depths(plan)
    chains = [layout._chain(port, source, depths, False) for port, source in layout._edges(plan)]
    before, after = layout._neighbours(chains)
    layers = layout._layers(plan, before, depths)
    ordered = layout._ordered(layers, before, after)
    assert [sorted(map(str, layer)) for layer in ordered] == [sorted(map(str, layer)) for layer in layers]
    assert layout._crossings(ordered, after) <= layout._crossings(layers, after)


def test_sweeps_undo_crossings() -> None:
    before: Near = {"c": ["b"], "d": ["a"]}
    after: Near = {"a": ["d"], "b": ["c"]}
    assert layout._crossings([["a", "b"], ["c", "d"]], after) == 1
    assert layout._crossings(layout._ordered([["a", "b"], ["c", "d"]], before, after), after) == 0


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(0, 90)), min_size=1, max_size=8))
def test_places_settle_where_they_are_wanted_if_they_can(wishes: list[tuple[float, float]]) -> None:
    places: list[LayerPoint] = [f"p{number}" for number in range(len(wishes))]
    expected = dict(zip(places, (wish for wish, _ in wishes), strict=True))
    heights = dict(zip(places, (height for _, height in wishes), strict=True))
    needed = [(heights[item] + heights[other]) / 2 + NODE_GAP for item, other in pairwise(places)]
    settled = dict(layout._settled(places, heights, expected.__getitem__))
    for (item, other), gap in zip(pairwise(places), needed, strict=True):
        assert settled[other] - settled[item] >= gap - 1e-6
    assert sum(settled.values()) == pytest.approx(sum(expected.values()), abs=1e-6)
    if all(
        expected[other] - expected[item] >= gap for (item, other), gap in zip(pairwise(places), needed, strict=True)
    ):
        assert settled == pytest.approx(expected)


def test_a_simple_layout_is_marked() -> None:
    plan = Plan((Node("n", Union()), Node("end", Sink(), (Input("n"),))))
    assert "The layout is simple" not in explain.svg(plan)
    assert "The layout is simple" in explain.svg(plan, max_points=1)


def test_what_reads_nothing_stands_before_its_first_consumer() -> None:
    chain = [Node(f"n{i}", Union(), (Input(f"n{i - 1}"),) if i else ()) for i in range(4)]
    plan = Plan((Node("free", Union()), *chain, Node("end", Sink(), (Input("n3"), Input("free")))))
    depths = layout._depths(plan)
    assert depths["free"] == depths["n3"] == depths["end"] - 1
