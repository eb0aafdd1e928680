"""GeoSPARQL's distance between points."""

from __future__ import annotations

import math

import pytest

from squall.functions.geosparql import CRS84, EPSG4326, GEO, GEOF, OLD_GEOF, RADIUS, distance
from squall.functions.values import number
from squall.rdf import Boolean, Term, iri, literal
from squall.testing import run

OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
QUDT = "http://qudt.org/vocab/unit/"
ZURICH, BERN = "POINT(8.5417 47.3769)", "POINT(7.4474 46.9480)"


def wkt(text: str) -> Term:
    return literal(text, GEO + "wktLiteral")


def far(one: str, other: str, unit: str = OGC + "metre") -> float | None:
    result = distance(wkt(one), wkt(other), iri(unit))
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
    ["POINT(0)", "POINT EMPTY", "POINT Z(0 0 0)", "LINESTRING(0 0, 1 1)", "POINT(0 91)", "POINT(181 0)", "",
     "<http://www.opengis.net/def/crs/EPSG/0/3857> POINT(0 0)"],
)  # fmt: skip
def test_invalid_points_are_errors(wrong: str) -> None:
    assert far(wrong, ZURICH) is None
    assert far(ZURICH, wrong) is None


def test_other_arguments_are_errors() -> None:
    assert far(ZURICH, BERN, "http://unit#mile") is None
    assert distance(literal(ZURICH), wkt(BERN), iri(OGC + "metre")) is None
    assert distance(None, wkt(BERN), iri(OGC + "metre")) is None


@pytest.mark.parametrize("namespace", [GEOF, OLD_GEOF])
def test_it_is_called_by_its_iri(namespace: str) -> None:
    text = f"""PREFIX geof: <{namespace}> PREFIX geo: <{GEO}>
        ASK {{ FILTER (geof:distance("{ZURICH}"^^geo:wktLiteral, "{BERN}"^^geo:wktLiteral, <{OGC}metre>) < 100000) }}"""
    (out,) = run(text, "", lexer="sparql")
    assert out.fact == Boolean(True)
