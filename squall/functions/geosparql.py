"""GeoSPARQL's ``geof:distance`` between points on the globe.

Source: OGC GeoSPARQL 1.1 (OGC 22-047), ``geo:wktLiteral`` and ``geof:distance``. Coordinates are of CRS84 (longitude,
latitude), which is the default, or of EPSG:4326 (latitude, longitude). The distance is that of the great circle on a
sphere of the earth's mean radius (IUGG), less than 0.6 % off that on the ellipsoid. What is no point, or in another
reference system, is an error.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from squall.functions import Function
from squall.functions.values import double
from squall.rdf import Term, iri, is_literal, parts

GEO = "http://www.opengis.net/ont/geosparql#"
GEOF = "http://www.opengis.net/def/function/geosparql/"
OLD_GEOF = "http://www.opengis.net/def/geosparql/function/"
"""Another namespace that queries use for it."""
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
EPSG4326 = "http://www.opengis.net/def/crs/EPSG/0/4326"
RADIUS = 6_371_008.8
"""The mean radius of the earth in metres."""

_OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
_QUDT = "http://qudt.org/vocab/unit/"
UNITS: dict[Term, float] = {
    iri(_OGC + "radian"): 1.0,
    iri(_OGC + "degree"): 180 / math.pi,
    iri(_OGC + "metre"): RADIUS,
    iri(_QUDT + "RAD"): 1.0,
    iri(_QUDT + "DEG"): 180 / math.pi,
    iri(_QUDT + "M"): RADIUS,
    iri(_QUDT + "KiloM"): RADIUS / 1000,
    iri(_QUDT + "MI"): RADIUS / 1609.344,
}
"""The number of units in a radian of a great circle."""

_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_POINT = re.compile(rf"\s*(?:<([^<>]*)>\s+)?POINT\s*\(\s*{_NUMBER}\s+{_NUMBER}\s*\)\s*", re.IGNORECASE)


class Point(NamedTuple):
    """A point in radians."""

    latitude: float
    longitude: float


def point(term: Term | None) -> Point | None:
    """Returns the point of a ``geo:wktLiteral``; None if it is none, or not on the globe."""
    if term is None or not is_literal(term) or parts(term).datatype != GEO + "wktLiteral":
        return None
    match = _POINT.fullmatch(parts(term).lexical)
    if match is None or match[1] not in (None, CRS84, EPSG4326):
        return None
    first, second = float(match[2]), float(match[3])
    latitude, longitude = (first, second) if match[1] == EPSG4326 else (second, first)
    on_globe = abs(latitude) <= 90 and abs(longitude) <= 180
    return Point(math.radians(latitude), math.radians(longitude)) if on_globe else None


def distance(left: Term | None, right: Term | None, unit: Term | None) -> Term | None:
    """the distance of two points, in a unit of OGC or QUDT"""
    start, end = point(left), point(right)
    if start is None or end is None or unit not in UNITS:
        return None
    # The haversine, which is exact for small distances as well (Sinnott 1984).
    across = math.sin((end.latitude - start.latitude) / 2) ** 2
    along = math.sin((end.longitude - start.longitude) / 2) ** 2
    chord = across + math.cos(start.latitude) * math.cos(end.latitude) * along
    return double(UNITS[unit] * 2 * math.asin(math.sqrt(min(1.0, chord))))


FUNCTIONS = tuple(
    Function(namespace + "distance", distance, 3, 3, doc=distance.__doc__ or "") for namespace in (GEOF, OLD_GEOF)
)
"""The functions of the entry point `geosparql` of the group ``squall.functions``."""
