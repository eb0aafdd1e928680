"""The names, units and reference systems of GeoSPARQL, and the points that need no library.

Source: OGC GeoSPARQL 1.1 (OGC 22-047). Coordinates are of CRS84 (longitude, latitude), which is the default, or of
another reference system, whose IRI is in front of them, such as EPSG:4326 (latitude, longitude). Lengths are measured
on a sphere of the earth's mean radius (IUGG), and are less than 0.6 % off those on the ellipsoid.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from squall.rdf import Term, iri, is_literal, parts

GEO = "http://www.opengis.net/ont/geosparql#"
GEOF = "http://www.opengis.net/def/function/geosparql/"
OLD_GEOF = "http://www.opengis.net/def/geosparql/function/"
"""Another namespace that queries use for the distance."""
SF = "http://www.opengis.net/ont/sf#"
WKT, GEOJSON = GEO + "wktLiteral", GEO + "geoJSONLiteral"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
EPSG4326 = "http://www.opengis.net/def/crs/EPSG/0/4326"
RADIUS = 6_371_008.8
"""The mean radius of the earth in metres."""

_OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
_QUDT = "http://qudt.org/vocab/unit/"
METRE = iri(_OGC + "metre")
UNITS: dict[Term, float] = {
    iri(_OGC + "radian"): 1.0,
    iri(_OGC + "degree"): 180 / math.pi,
    METRE: RADIUS,
    iri(_QUDT + "RAD"): 1.0,
    iri(_QUDT + "DEG"): 180 / math.pi,
    iri(_QUDT + "M"): RADIUS,
    iri(_QUDT + "KiloM"): RADIUS / 1000,
    iri(_QUDT + "MI"): RADIUS / 1609.344,
}
"""The number of units in a radian of a great circle."""
AREA_UNITS: dict[Term, float] = {
    iri(_OGC + "squareMetre"): 1.0,
    iri(_QUDT + "M2"): 1.0,
    iri(_QUDT + "HA"): 10_000.0,
    iri(_QUDT + "KiloM2"): 1e6,
}
"""The square metres of each unit of area."""

_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_POINT = re.compile(rf"\s*(?:<([^<>]*)>\s+)?POINT\s*\(\s*{_NUMBER}\s+{_NUMBER}\s*\)\s*", re.IGNORECASE)


class Point(NamedTuple):
    """A point in degrees."""

    longitude: float
    latitude: float


def point(term: Term) -> Point | None:
    """Returns the point of a ``geo:wktLiteral`` in CRS84 or EPSG:4326; None if it is none, or not on the globe."""
    if not is_literal(term) or parts(term).datatype != WKT:
        return None
    match = _POINT.fullmatch(parts(term).lexical)
    if match is None or match[1] not in (None, CRS84, EPSG4326):
        return None
    first, second = float(match[2]), float(match[3])
    result = Point(second, first) if match[1] == EPSG4326 else Point(first, second)
    return result if abs(result.latitude) <= 90 and abs(result.longitude) <= 180 else None


def arc(start: Point, end: Point) -> float:
    """Returns the angle of the great circle between two points, in radians."""
    # The haversine, which is exact for small distances as well (Sinnott 1984).
    first, second = math.radians(start.latitude), math.radians(end.latitude)
    across = math.sin((second - first) / 2) ** 2
    along = math.sin(math.radians(end.longitude - start.longitude) / 2) ** 2
    chord = across + math.cos(first) * math.cos(second) * along
    return 2 * math.asin(math.sqrt(min(1.0, chord)))
