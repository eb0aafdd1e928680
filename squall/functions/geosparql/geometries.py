"""Geometries: literals of WKT and GeoJSON as objects of shapely, in CRS84, and back.

shapely, and pyproj for other reference systems, are the extra ``geo``. They are imported with the first geometry that
is no point in CRS84 or EPSG:4326.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from squall.errors import BuilderError
from squall.functions.geosparql.names import CRS84, EPSG4326, GEOJSON, WKT, point
from squall.rdf import Term, is_literal, literal, parts

Geometry = Any
"""A geometry of shapely, whose coordinates are longitude and latitude in degrees."""

CACHED_GEOMETRIES = 16_384
"""The number of literals whose geometries are kept."""
_INSTALL = "install it: pip install 'squall[geo]'"
_WKT = re.compile(r"\s*(?:<([^<>]*)>)?\s*(.*)", re.DOTALL)
_SYSTEM = re.compile(r"http://www\.opengis\.net/def/crs/([A-Za-z]+)/[0-9.]+/(\w+)")


def library(name: str = "shapely") -> ModuleType:
    """Returns shapely, or another library of the extra ``geo``. Raises BuilderError if it is not installed."""
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise BuilderError(f"functions of GeoSPARQL need the package `{name}`", hint=_INSTALL) from error


def problem_of_geometries(*arguments: Term | None) -> str | None:
    """Returns what is wrong with a call before a run: shapely is missing, or a constant is no geometry."""
    if find_spec("shapely") is None:
        return f"this function of GeoSPARQL needs the package `shapely`: {_INSTALL}"
    constants = (term for term in arguments if term is not None)
    return next((f"{term} is no geometry: {why}" for term in constants if (why := problem(term))), None)


def problem(term: Term) -> str | None:
    """Returns why a term is no geometry, or None."""
    datatype = parts(term).datatype if is_literal(term) else ""
    if datatype not in (WKT, GEOJSON):
        return "its datatype is neither geo:wktLiteral nor geo:geoJSONLiteral"
    shapely = library()
    try:
        result = _parsed(term)
    except shapely.errors.GEOSException as error:
        return str(error).partition("\n")[0]
    except _ReferenceSystemError as error:
        return str(error)
    if not shapely.is_valid(result):
        return str(shapely.is_valid_reason(result))
    return None if _is_on_globe(result) else "it is not on the globe"


@lru_cache(CACHED_GEOMETRIES)
def geometry(term: Term | None) -> Geometry | None:
    """Returns the geometry of a literal; None if it has none, or an invalid one, such as a polygon that crosses
    itself."""
    if term is None:
        return None
    simple = point(term)
    if simple is not None:
        return library().Point(*simple)
    return None if problem(term) is not None else _prepared(_parsed(term))


def written(geometry: Geometry | None) -> Term | None:
    """Returns the ``geo:wktLiteral`` of a geometry, in CRS84, or None."""
    return None if geometry is None else literal(library().to_wkt(geometry, rounding_precision=-1), WKT)


def _prepared(geometry: Geometry) -> Geometry:
    """Returns an area with an index of its edges, by which tests of points are fast."""
    shapely = library()
    if shapely.get_dimensions(geometry) == 2:
        shapely.prepare(geometry)
        # GEOS makes the index with the first test, and other threads may test as well.
        shapely.contains(geometry, shapely.point_on_surface(geometry))
    return geometry


class _ReferenceSystemError(Exception):
    """A literal is in a reference system that is not known."""


def _parsed(term: Term) -> Geometry:
    """Returns the geometry of a literal, in CRS84 and with two dimensions.

    Raises shapely's GEOSException if it is malformed, and _ReferenceSystemError.
    """
    shapely = library()
    lexical, datatype, _ = parts(term)
    if datatype == GEOJSON:
        return shapely.force_2d(shapely.from_geojson(lexical))
    match = _WKT.fullmatch(lexical)
    assert match is not None
    system, text = match[1], match[2].strip()
    result = shapely.force_2d(shapely.from_wkt(text or "GEOMETRYCOLLECTION EMPTY"))
    if system in (None, CRS84):
        return result
    if system == EPSG4326:
        return shapely.transform(result, lambda coordinates: coordinates[:, ::-1])
    return shapely.transform(result, _to_crs84(system), interleaved=False)


@cache
def _to_crs84(system: str) -> Callable[..., Any]:
    """Returns the transformation from a reference system, whose axes are in its own order, into CRS84."""
    match = _SYSTEM.fullmatch(system)
    if match is None:
        raise _ReferenceSystemError(f"<{system}> is no reference system of the OGC's")
    pyproj = library("pyproj")
    try:
        source = pyproj.CRS.from_authority(match[1], match[2])
        transform: Callable[..., Any] = pyproj.Transformer.from_crs(source, "OGC:CRS84").transform
    except pyproj.exceptions.ProjError as error:
        raise _ReferenceSystemError(f"the reference system {match[1]}:{match[2]} is not known") from error
    return transform


def _is_on_globe(geometry: Geometry) -> bool:
    west, south, east, north = geometry.bounds
    return bool(geometry.is_empty or (west >= -180 and south >= -90 and east <= 180 and north <= 90))
