"""What GeoSPARQL measures on the globe: distances, buffers, lengths and areas.

The globe is a sphere. Distances of points are exact. Near other geometries the sphere is projected on a plane in which
distances from a centre are true (the azimuthal equidistant projection: J. P. Snyder, Map Projections, USGS 1987, pages
191 to 202), which is 0.5 % off for what is 1,000 km from the centre. Larger geometries have no buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from squall.functions import Function, Member
from squall.functions.geosparql.geometries import Geometry, geometry, library, problem_of_geometries, written
from squall.functions.geosparql.names import AREA_UNITS, GEOF, METRE, OLD_GEOF, RADIUS, UNITS, Point, arc, point
from squall.functions.values import double, floating, number
from squall.rdf import Term

MAX_EXTENT = 1_000_000.0
"""How far a geometry other than a point may extend from the centre of a projection, in metres."""
_LONGEST_EDGE = 0.25
"""The length in degrees from which an edge is divided before it is projected, since it does not remain straight."""
_QUARTER_SEGMENTS = 16
"""The number of edges of a quarter of a circle."""


class Projection:
    """The azimuthal equidistant projection of the sphere around a centre, in metres."""

    def __init__(self, centre: Point) -> None:
        self.centre = centre
        self._latitude = math.radians(centre.latitude)

    def forward(self, geometry: Geometry) -> Geometry:
        """Returns a geometry in the plane."""
        shapely = library()
        return shapely.transform(shapely.segmentize(geometry, _LONGEST_EDGE), self._projected, interleaved=False)

    def inverse(self, geometry: Geometry) -> Geometry:
        """Returns a geometry of the plane on the globe. Its longitudes may be beyond 180 degrees."""
        return library().transform(geometry, self._unprojected, interleaved=False)

    def _projected(self, longitude: Any, latitude: Any) -> tuple[Any, Any]:
        np = library("numpy")
        east, north = np.radians(longitude - self.centre.longitude), np.radians(latitude)
        sine, cosine = math.sin(self._latitude), math.cos(self._latitude)
        x = np.cos(north) * np.sin(east)
        y = cosine * np.sin(north) - sine * np.cos(north) * np.cos(east)
        z = sine * np.sin(north) + cosine * np.cos(north) * np.cos(east)
        length = np.hypot(x, y)
        angle = np.arctan2(length, z)
        scale = RADIUS * np.divide(angle, length, out=np.ones_like(length), where=length > 0)
        return scale * x, scale * y

    def _unprojected(self, x: Any, y: Any) -> tuple[Any, Any]:
        np = library("numpy")
        length = np.hypot(x, y)
        angle = length / RADIUS
        sine, cosine = math.sin(self._latitude), math.cos(self._latitude)
        direction = np.divide(y, length, out=np.zeros_like(length), where=length > 0)
        latitude = np.arcsin(np.clip(np.cos(angle) * sine + direction * np.sin(angle) * cosine, -1, 1))
        across = np.divide(x, length, out=np.zeros_like(length), where=length > 0)
        east = np.arctan2(across * np.sin(angle), cosine * np.cos(angle) - direction * sine * np.sin(angle))
        return self.centre.longitude + np.degrees(east), np.degrees(latitude)


def _distance(left: Term | None, right: Term | None, unit: Term | None) -> Term | None:
    """the least distance of two geometries, in a unit of OGC or QUDT"""
    if left is None or right is None or unit not in UNITS:
        return None
    start, end = point(left), point(right)
    angle = arc(start, end) if start and end else _least_arc(geometry(left), geometry(right))
    return None if angle is None else double(UNITS[unit] * angle)


def _least_arc(left: Geometry | None, right: Geometry | None) -> float | None:
    """Returns the angle between the nearest points of two geometries, in radians; None if there are none."""
    if left is None or right is None or left.is_empty or right.is_empty:
        return None
    shapely = library()
    if shapely.intersects(left, right):
        return 0.0
    if left.geom_type != "Point":
        left, right = right, left
    centre = Point(*shapely.get_coordinates(left)[0].tolist())
    if left.geom_type != "Point":
        # The nearest points in the plane of degrees are near the nearest ones on the globe.
        centre = Point(*shapely.get_coordinates(shapely.shortest_line(left, right))[0].tolist())
    projection = Projection(centre)
    line = projection.inverse(shapely.shortest_line(projection.forward(left), projection.forward(right)))
    first, second = shapely.get_coordinates(line).tolist()
    return arc(Point(*first), Point(*second))


def _buffer(term: Term | None, radius: Term | None, unit: Term | None) -> Term | None:
    """the area of all points up to a distance, in a unit of OGC or QUDT, from a geometry"""
    shape, size = geometry(term), _float(radius)
    if shape is None or size is None or unit not in UNITS:
        return None
    return written(_buffered(shape, size / UNITS[unit] * RADIUS))


def _buffered(shape: Geometry, metres: float) -> Geometry | None:
    """Returns an area around a geometry; None if it is too large, or crosses the meridian of 180 degrees or a pole."""
    shapely = library()
    if shape.is_empty:
        return shape
    centre = Point(*shapely.get_coordinates(shapely.centroid(shape))[0].tolist())
    projection = Projection(centre)
    plane = projection.forward(shape)
    extent = math.hypot(
        *(max(abs(low), abs(high)) for low, high in zip(plane.bounds[:2], plane.bounds[2:], strict=True))
    )
    to_pole = math.radians(90 - abs(centre.latitude)) * RADIUS
    if extent > MAX_EXTENT or extent + metres >= to_pole:
        return None
    area = projection.inverse(plane.buffer(metres, quad_segs=_QUARTER_SEGMENTS))
    west, _, east, _ = area.bounds
    return None if west < -180 or east > 180 else area


def _float(term: Term | None) -> float | None:
    value = None if term is None else number(term)
    size = math.nan if value is None else floating(value)
    return size if math.isfinite(size) else None


def _metric_buffer(term: Term | None, radius: Term | None) -> Term | None:
    """the area of all points up to a distance in metres from a geometry"""
    return _buffer(term, radius, METRE)


def _metric_distance(left: Term | None, right: Term | None) -> Term | None:
    """the least distance of two geometries in metres"""
    return _distance(left, right, METRE)


def _globe() -> Any:
    return library("pyproj").Geod(a=RADIUS, b=RADIUS)


def _square_metres(shape: Geometry) -> float:
    area, _ = _globe().geometry_area_perimeter(library().orient_polygons(shape))
    return float(area)


def _metres(shape: Geometry) -> float:
    """Returns the length of lines, and that of the edges of areas."""
    shapely = library()
    edges = shapely.boundary(shape) if shapely.get_dimensions(shape) == 2 else shape
    return float(_globe().geometry_length(edges))


def _area(term: Term | None, unit: Term | None) -> Term | None:
    """the area of a geometry, in a unit of OGC or QUDT"""
    shape = geometry(term)
    return None if shape is None or unit not in AREA_UNITS else double(_square_metres(shape) / AREA_UNITS[unit])


def _metric_area(term: Term | None) -> Term | None:
    """the area of a geometry in square metres"""
    shape = geometry(term)
    return None if shape is None else double(_square_metres(shape))


def _length(term: Term | None, unit: Term | None) -> Term | None:
    """the length of a geometry, of an area that of its edges, in a unit of OGC or QUDT"""
    shape = geometry(term)
    return None if shape is None or unit not in UNITS else double(_metres(shape) / RADIUS * UNITS[unit])


def _metric_length(term: Term | None) -> Term | None:
    """the length of a geometry in metres, of an area that of its edges"""
    return _length(term, METRE)


def _problem(geometries: int, units: dict[Term, float] | None = None) -> Callable[..., str | None]:
    """Returns the check of a call whose first arguments are geometries, and whose last one is a unit, if there are."""

    def check(*arguments: Term | None) -> str | None:
        wrong_unit = None if units is None else _unit_problem(arguments[-1], units)
        return wrong_unit or problem_of_geometries(*arguments[:geometries])

    return check


def _unit_problem(unit: Term | None, units: dict[Term, float]) -> str | None:
    return None if unit is None or unit in units else f"{unit} is no unit of this function: {', '.join(units)}"


def _distance_problem(left: Term | None, right: Term | None, unit: Term | None) -> str | None:
    """Returns what is wrong with a call; points need no library."""
    geometries = [term for term in (left, right) if term is not None and point(term) is None]
    return _unit_problem(unit, UNITS) or (problem_of_geometries(*geometries) if geometries else None)


def _defined(name: str, body: Callable[..., Term | None], count: int, check: Callable[..., str | None]) -> Function:
    return Function(name, body, count, count, check=check, doc=body.__doc__ or "")


MEMBERS: tuple[Member, ...] = (
    _defined(GEOF + "distance", _distance, 3, _distance_problem),
    _defined(OLD_GEOF + "distance", _distance, 3, _distance_problem),
    _defined(GEOF + "metricDistance", _metric_distance, 2, _problem(2)),
    _defined(GEOF + "buffer", _buffer, 3, _problem(1, UNITS)),
    _defined(GEOF + "metricBuffer", _metric_buffer, 2, _problem(1)),
    _defined(GEOF + "area", _area, 2, _problem(1, AREA_UNITS)),
    _defined(GEOF + "metricArea", _metric_area, 1, _problem(1)),
    _defined(GEOF + "length", _length, 2, _problem(1, UNITS)),
    _defined(GEOF + "metricLength", _metric_length, 1, _problem(1)),
    _defined(GEOF + "perimeter", _length, 2, _problem(1, UNITS)),
    _defined(GEOF + "metricPerimeter", _metric_length, 1, _problem(1)),
)
