"""GeoSPARQL: geometries, their relations, what is measured on the globe, and programs over moving things."""

from __future__ import annotations

import math
import sys
from itertools import product
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.errors import BuilderError, SquallError
from squall.functions import lookup
from squall.functions.geosparql.geometries import geometry
from squall.functions.geosparql.names import CRS84, EPSG4326, GEO, GEOF, OLD_GEOF, RADIUS
from squall.functions.geosparql.relations import MAX_CELLS, OWN, RELATIONS, within_keys
from squall.functions.sparql.names import FALSE, TRUE
from squall.functions.values import number
from squall.rdf import XSD, Boolean, Solution, Term, iri, literal, parts
from squall.testing import run, stream
from tests.bench import areas
from tests.laws import examples_of

OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
QUDT = "http://qudt.org/vocab/unit/"
ZURICH, BERN = "POINT(8.5417 47.3769)", "POINT(7.4474 46.9480)"


def wkt(text: str) -> Term:
    return literal(text, GEO + "wktLiteral")


def call(name: str, *arguments: Term | None) -> Any:
    return lookup(GEOF + name).body(*arguments)


def shape_of(term: Term | None) -> Any:
    return geometry(term)


def text_of(name: str, *arguments: Term | None) -> str:
    return parts(call(name, *arguments)).lexical


def value_of(name: str, *arguments: Term | None) -> float:
    """Returns the number that a function gives."""
    value = number(call(name, *arguments))
    assert value is not None
    return float(value.value)


def far(one: str, other: str, unit: str = OGC + "metre") -> float | None:
    result = call("distance", wkt(one), wkt(other), iri(unit))
    value = None if result is None else number(result)
    return None if value is None else float(value.value)


@pytest.mark.parametrize(
    ("one", "other", "unit", "due"),
    [
        ("POINT(0 0)", "POINT(180 0)", OGC + "radian", math.pi),
        ("POINT(0 0)", "POINT(0 90)", OGC + "degree", 90),
        ("POINT(10 90)", "POINT(-120 90)", OGC + "metre", 0),
        ("POINT(179 0)", "POINT(-179 0)", OGC + "degree", 2),
        ("POINT(0 0)", "POINT(1 0)", OGC + "metre", RADIUS * math.pi / 180),
        (ZURICH, BERN, QUDT + "KiloM", 95.5),
        (ZURICH, BERN, QUDT + "MI", 59.3),
        (f"<{CRS84}> {ZURICH}", f"<{EPSG4326}> point ( 46.9480 7.4474 )", QUDT + "KiloM", 95.5),
    ],
)
def test_distances(one: str, other: str, unit: str, due: float) -> None:
    assert far(one, other, unit) == pytest.approx(due, rel=1e-3, abs=1e-6)
    assert far(other, one, unit) == far(one, other, unit)


@pytest.mark.parametrize(
    "wrong",
    ["POINT(0)", "POINT EMPTY", "POINT(0 91)", "POINT(181 0)", "", "LINESTRING(0 0, 0 91)",
     "POLYGON((0 0, 1 1, 0 1, 1 0, 0 0))",
     "<http://www.opengis.net/def/crs/EPSG/0/99999> POINT(0 0)", "<http://example.org/crs> POINT(0 0)"],
)  # fmt: skip
def test_invalid_geometries_are_errors(wrong: str) -> None:
    assert far(wrong, ZURICH) is None
    assert far(ZURICH, wrong) is None


def test_other_arguments_are_errors() -> None:
    assert far(ZURICH, BERN, "http://unit#mile") is None
    assert call("distance", literal(ZURICH), wkt(BERN), iri(OGC + "metre")) is None
    assert call("distance", None, wkt(BERN), iri(OGC + "metre")) is None


@pytest.mark.parametrize("namespace", [GEOF, OLD_GEOF])
def test_it_is_called_by_its_iri(namespace: str) -> None:
    text = f"""PREFIX geof: <{namespace}> PREFIX geo: <{GEO}>
        ASK {{ FILTER (geof:distance("{ZURICH}"^^geo:wktLiteral, "{BERN}"^^geo:wktLiteral, <{OGC}metre>) < 100000) }}"""
    (out,) = run(text, "", lexer="sparql")
    assert out.fact == Boolean(True)


def test_points_with_a_height_and_in_other_reference_systems() -> None:
    projected = "<http://www.opengis.net/def/crs/EPSG/0/3857> POINT(950857.70 6003812.20)"
    assert far("POINT Z(8.5417 47.3769 400)", ZURICH) == 0
    assert far(projected, ZURICH) == pytest.approx(0, abs=2)
    assert call("asWKT", wkt("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(47 8)")) == wkt("POINT (8 47)")


def test_areas_in_another_reference_system() -> None:
    area = shape_of(wkt(f"<{EPSG4326}> {box(47, 8, 48, 10)}"))
    assert area.bounds == (8, 47, 10, 48)
    assert shape_of(wkt("<http://www.opengis.net/def/crs/EPSG/0/3857> " + box(0, 0, 1e6, 1e6))).bounds[
        2:
    ] == pytest.approx((8.98, 8.95), abs=0.01)


def test_the_system_of_a_literal() -> None:
    assert text_of("getSRID", wkt(f"<{EPSG4326}> POINT(47 8)")) == EPSG4326
    assert text_of("getSRID", wkt("POINT(8 47)")) == CRS84
    assert text_of("getSRID", literal('{"type": "Point", "coordinates": [8, 47]}', GEO + "geoJSONLiteral")) == CRS84


# Relations


def box(west: float, south: float, east: float, north: float) -> str:
    return f"POLYGON(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"


Interval = tuple[int, int]
Box = tuple[Interval, Interval]
SIDES = st.tuples(st.integers(-4, 4), st.integers(1, 4)).map(lambda side: (side[0], side[0] + side[1]))
BOXES = st.tuples(SIDES, SIDES)


def relations_of(left: Box, right: Box) -> set[str]:
    """Returns the relations of RCC8 that hold between two rectangles, and those of the other families that follow, by
    comparing the ends of their sides."""
    pairs = list(zip(left, right, strict=True))
    if any(a[1] < b[0] or b[1] < a[0] for a, b in pairs):
        return {"rcc8dc", "sfDisjoint", "ehDisjoint"}
    if any(a[1] == b[0] or b[1] == a[0] for a, b in pairs):
        return {"rcc8ec", "sfTouches", "ehMeet", "sfIntersects"}
    if left == right:
        return {"rcc8eq", "sfEquals", "ehEquals", "sfWithin", "sfContains", "sfIntersects"}
    if all(b[0] <= a[0] and a[1] <= b[1] for a, b in pairs):
        is_inside = all(b[0] < a[0] and a[1] < b[1] for a, b in pairs)
        return {"sfWithin", "sfIntersects", *(("rcc8ntpp", "ehInside") if is_inside else ("rcc8tpp", "ehCoveredBy"))}
    if all(a[0] <= b[0] and b[1] <= a[1] for a, b in pairs):
        is_inside = all(a[0] < b[0] and b[1] < a[1] for a, b in pairs)
        return {"sfContains", "sfIntersects", *(("rcc8ntppi", "ehContains") if is_inside else ("rcc8tppi", "ehCovers"))}
    return {"rcc8po", "sfOverlaps", "ehOverlap", "sfIntersects"}


def box_of(sides: Box, unit: float = 1.0) -> Term:
    (west, east), (south, north) = sides
    return wkt(box(west * unit, south * unit, east * unit, north * unit))


@given(BOXES, BOXES)
@settings(max_examples=examples_of(400), deadline=None)
def test_the_relations_of_rectangles_are_those_of_their_sides(left: Box, right: Box) -> None:
    terms = (box_of(left), box_of(right))
    assert {name for name in RELATIONS if call(name, *terms) == TRUE} == relations_of(left, right)
    assert {name for name in RELATIONS if lookup(OWN + name).body(*terms)} == relations_of(left, right)


@pytest.mark.parametrize(
    ("position", "names"),
    [
        ("POINT(1 1)", {"sfWithin", "sfIntersects", "ehInside"}),
        ("POINT(0 1)", {"sfTouches", "sfIntersects", "ehMeet"}),
        ("POINT(3 1)", {"sfDisjoint", "ehDisjoint"}),
        ("LINESTRING(-1 1, 3 1)", {"sfCrosses", "sfIntersects"}),
        ("POINT EMPTY", {"sfDisjoint", "ehDisjoint"}),
    ],
)
def test_points_and_lines_against_an_area(position: str, names: set[str]) -> None:
    area = wkt(box(0, 0, 2, 2))
    simple = {name for name in RELATIONS if name[:2] in ("sf", "eh") and call(name, wkt(position), area) == TRUE}
    assert simple - {"ehOverlap"} == names
    assert call("relate", wkt(position), area, literal("FF*FF****")) == (TRUE if "sfDisjoint" in names else FALSE)


@pytest.mark.parametrize("wrong", ["POINT(1", "POLYGON((0 0, 1 1, 0 1, 1 0, 0 0))", "POINT(0 95)"])
@pytest.mark.parametrize("name", ["sfWithin", "sfDisjoint", "rcc8ec"])
def test_what_is_no_geometry_is_an_error(wrong: str, name: str) -> None:
    area = wkt(box(0, 0, 2, 2))
    assert call(name, wkt(wrong), area) is None
    assert call(name, area, literal("POINT(1 1)")) is None
    assert call(name, None, area) is None
    assert lookup(OWN + name).body(wkt(wrong), area) is False


def test_calls_for_many_rows_at_once_are_those_for_each_row() -> None:
    rows = [
        (wkt("POINT(1 1)"), wkt(box(0, 0, 2, 2))),
        (None, wkt("POINT(1 1)")),
        (wkt("POINT(3 1)"), wkt(box(0, 0, 2, 2))),
    ]
    for iri_of in (GEOF + "sfWithin", OWN + "sfWithin"):
        function = lookup(iri_of)
        assert list(function.evaluate_all(rows)) == [function.evaluate(*row) for row in rows]
        assert list(function.evaluate_all([(None, None)])) == [function.evaluate(None, None)]


@given(BOXES, BOXES, st.sampled_from([0.001, 0.01, 0.3, 5.0]))
@settings(max_examples=examples_of(400), deadline=None)
def test_what_lies_within_an_area_has_one_key_in_common_with_it(left: Box, right: Box, unit: float) -> None:
    inner, outer = box_of(left, unit), box_of(right, unit)
    common = {*within_keys(inner, True)} & {*within_keys(outer, False)}
    assert len(common) == 1 if call("sfWithin", inner, outer) == TRUE else len(common) <= 1


def test_areas_have_few_keys_that_others_do_not_have() -> None:
    near, far_off = (within_keys(wkt(box(x, 47, x + 0.01, 47.01)), False) for x in (8, 8.1))
    assert not {*near} & {*far_off}
    globe = [*within_keys(wkt(box(-180, -90, 180, 90)), False)]
    assert len(globe) == len({*globe}) <= MAX_CELLS * 5
    assert len([*within_keys(wkt(box(8, 47, 8.1, 47.1)), False)]) <= MAX_CELLS
    assert [*within_keys(wkt("POINT EMPTY"), True)] == []


# What is measured

UNIT = iri(OGC + "metre")
PLACES = st.tuples(st.floats(-20, 20), st.floats(-60, 60))
COASTS = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3, max_size=5)
SHAPES = st.tuples(PLACES, COASTS).map(
    lambda shape: shapely.MultiPoint([(shape[0][0] + x, shape[0][1] + y) for x, y in shape[1]]).convex_hull
)


def sampled(shape: Any) -> list[tuple[float, float]]:
    """Returns points of a geometry's edges, close to each other."""
    dense: list[tuple[float, float]] = shapely.get_coordinates(shapely.segmentize(shape, 0.02)).tolist()
    return dense


@given(SHAPES, SHAPES)
@settings(max_examples=examples_of(100), deadline=None)
def test_the_distance_is_that_of_the_nearest_points(left: Any, right: Any) -> None:
    measured = far(left.wkt, right.wkt)
    if shapely.intersects(left, right):
        assert measured == 0
        return
    pairs = product(sampled(left)[::2], sampled(right)[::2])
    least = min(far(f"POINT({a} {b})", f"POINT({c} {d})") or 0.0 for (a, b), (c, d) in list(pairs)[:4000])
    step = math.radians(0.05) * RADIUS
    assert measured is not None
    assert measured <= least * 1.005 + 1
    assert len(sampled(left)) * len(sampled(right)) > 16_000 or measured >= (least - 2 * step) * 0.995


@given(PLACES, st.floats(1, 2_000_000))
@settings(max_examples=examples_of(100), deadline=None)
def test_the_edge_of_a_buffer_of_a_point_is_at_its_distance(place: tuple[float, float], radius: float) -> None:
    centre = f"POINT({place[0]} {place[1]})"
    area = shape_of(call("buffer", wkt(centre), literal(repr(radius), XSD + "double"), UNIT))
    for x, y in shapely.get_coordinates(area).tolist():
        assert far(centre, f"POINT({x} {y})") == pytest.approx(radius, rel=1e-6, abs=1e-3)


@given(SHAPES, st.floats(10, 50_000))
@settings(max_examples=examples_of(100), deadline=None)
def test_the_edge_of_a_buffer_is_at_its_distance_from_a_geometry(shape: Any, radius: float) -> None:
    area = shape_of(call("metricBuffer", wkt(shape.wkt), literal(repr(radius), XSD + "double")))
    assert shapely.contains(area, shape.centroid)
    for x, y in shapely.get_coordinates(area).tolist()[::7]:
        # A quarter of a circle has 16 edges, whose middles are nearer by half a per cent.
        assert far(shape.wkt, f"POINT({x} {y})") == pytest.approx(radius, rel=1e-2, abs=1)


def test_edges_are_straight_in_degrees() -> None:
    """The great circle between the ends is 43 km north of the parallel."""
    assert far("LINESTRING(-10 60, 10 60)", "POINT(0 60.001)") == pytest.approx(111, abs=1)


@pytest.mark.parametrize(
    ("text", "radius"),
    [("POINT(179.9 0)", "20000"), ("POINT(0 89.9)", "20000"), (box(-20, 0, 20, 1), "10"), ("POINT(0 0)", "INF")],
)
def test_buffers_that_are_not_computed_are_errors(text: str, radius: str) -> None:
    assert call("buffer", wkt(text), literal(radius, XSD + "double"), UNIT) is None


def test_lengths_and_areas() -> None:
    degree = RADIUS * math.pi / 180
    line, square = wkt("LINESTRING(0 0, 1 0, 2 0)"), wkt(box(0, 0, 1, 1))
    assert value_of("metricLength", line) == pytest.approx(2 * degree)
    assert value_of("length", line, iri(QUDT + "KiloM")) == pytest.approx(2 * degree / 1000)
    assert value_of("metricArea", square) == pytest.approx(degree**2, rel=1e-3)
    assert value_of("area", square, iri(QUDT + "KiloM2")) == pytest.approx(degree**2 / 1e6, rel=1e-3)
    assert value_of("metricPerimeter", square) == pytest.approx(4 * degree, rel=1e-3)
    assert value_of("metricDistance", wkt("POINT(0 0)"), wkt("POINT(1 0)")) == pytest.approx(degree)
    reversed_square = wkt("POLYGON((0 0, 0 1, 1 1, 1 0, 0 0))")
    assert value_of("metricArea", reversed_square) == value_of("metricArea", square)
    assert call("area", square, UNIT) is None


# Geometries of geometries


@given(BOXES, BOXES)
@settings(max_examples=examples_of(100), deadline=None)
def test_what_two_rectangles_have_in_common(left: Box, right: Box) -> None:
    sides = [(max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(left, right, strict=True)]
    common = shape_of(call("intersection", box_of(left), box_of(right)))
    together = shape_of(call("union", box_of(left), box_of(right)))
    size = math.prod(max(0, high - low) for low, high in sides)
    sizes = [math.prod(high - low for low, high in sides) for sides in (left, right)]
    assert (common.area, together.area) == (size, sum(sizes) - size)
    assert shape_of(call("difference", box_of(left), box_of(right))).area == sizes[0] - size
    assert shape_of(call("symDifference", box_of(left), box_of(right))).area == sum(sizes) - 2 * size


def test_properties_of_a_geometry() -> None:
    square = wkt(box(0, 1, 2, 3))
    assert [value_of(name, square) for name in ("minX", "minY", "maxX", "maxY", "dimension")] == [0, 1, 2, 3, 2]
    assert call("centroid", square) == wkt("POINT (1 2)")
    assert text_of("geometryType", square) == "http://www.opengis.net/ont/sf#Polygon"
    assert (call("isEmpty", square), call("isEmpty", wkt("POINT EMPTY"))) == (FALSE, TRUE)
    assert call("minX", wkt("POINT EMPTY")) is None
    assert call("isSimple", wkt("LINESTRING(0 0, 1 1, 0 1, 1 0)")) == FALSE
    many = wkt("MULTIPOINT((1 1), (2 2))")
    assert value_of("numGeometries", many) == 2
    assert call("geometryN", many, literal("2", XSD + "integer")) == wkt("POINT (2 2)")
    assert [call("geometryN", many, literal(place, XSD + "integer")) for place in ("0", "3")] == [None, None]
    assert shape_of(call("envelope", wkt("LINESTRING(0 0, 2 1)"))).equals(shapely.box(0, 0, 2, 1))
    assert shape_of(call("asGeoJSON", square)).equals(shape_of(square))
    assert shape_of(call("boundary", square)).length == 8
    assert shape_of(call("convexHull", wkt("MULTIPOINT((0 0), (2 0), (0 2), (0.5 0.5))"))).area == 2


# Programs

HEAD = f"PREFIX geof: <{GEOF}> PREFIX geo: <{GEO}> PREFIX : <http://example.org/>"
MOVES = stream(
    f"""0 :hall :area {wkt(box(0, 0, 1, 1))}
    1000 :car :at {wkt("POINT(0.5 0.5)")}
    2000 :car :at {wkt("POINT(1.5 0.5)")}
    3000 :bus :at {wkt("POINT(1")}"""
)


def solutions(text: str, **more: Any) -> list[tuple[int, tuple[Term | None, ...]]]:
    system = squall.compile(f"{HEAD} {text}", lexer="sparql", **more)
    outputs = squall.run(squall.plan(system), MOVES)
    return [(out.time, out.fact.values) for out in outputs if isinstance(out.fact, Solution)]


def test_errors_in_conditions_are_those_of_sparql() -> None:
    inside = solutions("SELECT ?v { ?z :area ?a . ?v :at ?p FILTER(geof:sfWithin(?p, ?a)) }")
    outside = solutions("SELECT ?v { ?z :area ?a . ?v :at ?p FILTER(!geof:sfWithin(?p, ?a)) }")
    values = solutions("SELECT ?v ?x { ?z :area ?a . ?v :at ?p BIND(geof:sfWithin(?p, ?a) AS ?x) }")
    car, bus = iri("http://example.org/car"), iri("http://example.org/bus")
    assert (inside, outside) == ([(1000, (car,))], [(2000, (car,))])
    assert values == [(1000, (car, TRUE)), (2000, (car, FALSE)), (3000, (bus, None))]


@pytest.mark.parametrize("patterns", ["?z :area ?a . ?v :at ?p", "?v :at ?p . ?z :area ?a"])
@pytest.mark.parametrize("test", ["sfWithin(?p, ?a)", "sfContains(?a, ?p)", "ehInside(?p, ?a)", "ehContains(?a, ?p)"])
def test_keys_belong_to_the_sides_of_the_test(test: str, patterns: str) -> None:
    """Whichever side of the join has the areas."""
    assert solutions(f"SELECT ?v {{ {patterns} FILTER(geof:{test}) }}") == [(1000, (iri("http://example.org/car"),))]


def test_aggregates_follow_the_window() -> None:
    answers = solutions(
        "SELECT (geof:aggBoundingBox(?p) AS ?box) (geof:aggUnion(?p) AS ?all) { :car :at ?p }",
        window="RANGE 1500ms", output="rstream",
    )  # fmt: skip
    shown = {time: (shape_of(box).wkt, shape_of(union).wkt) for time, (box, union) in answers if box and union}
    assert shown[1500] == ("POINT (0.5 0.5)", "POINT (0.5 0.5)")
    assert shown[2000] == ("LINESTRING (0.5 0.5, 1.5 0.5)", "MULTIPOINT ((0.5 0.5), (1.5 0.5))")
    assert shown[3000] == ("POINT (1.5 0.5)", "POINT (1.5 0.5)")
    assert max(shown) == 3000


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("geof:buffer(?p, 10, <http://example.org/mile>)", "no unit of this function"),
        ('geof:sfWithin(?p, "POLYGON((0 0, 1 1, 0 1, 1 0, 0 0))"^^geo:wktLiteral)', "Self-intersection"),
        ('geof:sfWithin("POINT(1"^^geo:wktLiteral, ?p)', "no geometry: ParseException"),
        ('geof:sfWithin("POINT(1 1)", ?p)', "its datatype is neither"),
        ('geof:distance("POINT(0 95)"^^geo:wktLiteral, ?p, <http://qudt.org/vocab/unit/M>)', "not on the globe"),
        ('geof:relate(?p, ?p, "abc")', "no pattern of DE-9IM"),
    ],
)
def test_wrong_constants_are_errors_with_a_place(expression: str, why: str) -> None:
    with pytest.raises(SquallError, match=why) as error:
        squall.compile(f"{HEAD}\nSELECT ?v {{ ?v :at ?p BIND({expression} AS ?x) }}", lexer="sparql")
    assert ":2:" in str(error.value)


def test_a_constant_area_has_a_distance() -> None:
    distance = f"geof:distance({wkt(box(0, 0, 1, 1))}, ?p, <{OGC}metre>)"
    (at_edge,) = solutions(f"SELECT ?v {{ ?v :at ?p FILTER({distance} > 0) }}")
    assert at_edge == (2000, (iri("http://example.org/car"),))


def test_jena_rules_and_rif_call_relations() -> None:
    rule = "@prefix : <http://example.org/>.\n[in: (?z :area ?a) (?v :at ?p) sfWithin(?p, ?a) -> (?v :in ?z)]"
    document = """Document(Prefix(ex <http://example.org/>) Prefix(geof <http://www.opengis.net/def/function/geosparql/>)
        Group(Forall ?a ?p ?v ?z (?v[ex:in -> ?z] :- And(?z[ex:area -> ?a] ?v[ex:at -> ?p]
            External(geof:sfWithin(?p ?a))))))"""
    for text, lexer in ((rule, "jena"), (document, "rifps")):
        (out,) = squall.run(squall.plan(squall.compile(text, lexer=lexer)), MOVES)
        assert (out.time, str(out.fact)[:80]) == (1000, str(out.fact)[:80])
        assert "http://example.org/hall" in str(out.fact)


def test_without_shapely_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squall.functions.geosparql.geometries.find_spec", lambda name: None)
    text = f"{HEAD} SELECT ?v {{ ?z :area ?a . ?v :at ?p FILTER(geof:sfWithin(?p, ?a)) }}"
    with pytest.raises(SquallError, match=r"pip install 'squall\[geo\]'"):
        squall.compile(text, lexer="sparql")
    monkeypatch.setitem(sys.modules, "shapely", None)
    assert far(ZURICH, BERN) == pytest.approx(95_500, rel=1e-3)
    geometry.cache_clear()
    with pytest.raises(BuilderError, match="need the package `shapely`"):
        call("sfWithin", wkt(ZURICH), wkt(BERN))


@pytest.mark.parametrize(
    "builder",
    [
        "iterator",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
    ],
)
def test_each_builder_looks_up_areas_by_cells(builder: str) -> None:
    """The answers are those of comparing all pairs."""
    batches, static = areas.positions(200), areas.areas(100)
    answers = []
    for planner, used_builder in (("greedy", "iterator"), ("rete", builder)):
        plan = squall.plan(squall.compile(areas.QUERY, lexer="sparql", window="RANGE 1s"), planner=planner)
        outputs = squall.build(plan, used_builder).run(batches, static)
        answers.append(sorted((out.time, out.fact.values) for out in outputs if isinstance(out.fact, Solution)))
    assert answers[0] == answers[1] != []
