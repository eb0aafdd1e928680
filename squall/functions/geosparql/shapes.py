"""Geometries made of geometries, what is known of them, and the aggregates of GeoSPARQL 1.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from squall.functions import Function, Member, aggregate_of
from squall.functions.geosparql.geometries import Geometry, geometry, library, problem_of_geometries, written
from squall.functions.geosparql.names import CRS84, GEOF, GEOJSON, SF, WKT
from squall.functions.sparql.names import truth
from squall.functions.values import double, integer
from squall.rdf import XSD, Term, is_literal, literal, parts

_PAIRS = {
    "intersection": ("intersection", "what two geometries have in common"),
    "union": ("union", "two geometries together"),
    "difference": ("difference", "a geometry without another one"),
    "symDifference": ("symmetric_difference", "what is in one of two geometries alone"),
}
_SHAPES = {
    "boundary": ("boundary", "the boundary of a geometry"),
    "centroid": ("centroid", "the centre of a geometry"),
    "convexHull": ("convex_hull", "the least convex area around a geometry"),
}


def _of_pair(name: str) -> Callable[[Term | None, Term | None], Term | None]:
    def body(left: Term | None, right: Term | None) -> Term | None:
        shapes = (geometry(left), geometry(right))
        return None if None in shapes else written(getattr(library(), name)(*shapes))

    return body


def _of_one(result: Callable[[Geometry], Term | None]) -> Callable[[Term | None], Term | None]:
    def body(term: Term | None) -> Term | None:
        shape = geometry(term)
        return None if shape is None else result(shape)

    return body


def _shape(name: str) -> Callable[[Geometry], Term | None]:
    return lambda shape: written(getattr(library(), name)(shape))


def _envelope(shape: Geometry) -> Geometry:
    """Returns the least rectangle around a geometry; if it has no width or no height, that is a line or a point."""
    shapely = library()
    rectangle = shapely.envelope(shape)
    return rectangle if shapely.is_valid(rectangle) else shapely.convex_hull(rectangle)


def _bound(place: int) -> Callable[[Geometry], Term | None]:
    return lambda shape: None if shape.is_empty else double(float(shape.bounds[place]))


_PROPERTIES: dict[str, tuple[Callable[[Geometry], Term | None], str]] = {
    **{name: (_shape(function), doc) for name, (function, doc) in _SHAPES.items()},
    "asGeoJSON": (lambda shape: literal(library().to_geojson(shape), GEOJSON), "a geometry in GeoJSON"),
    "asWKT": (written, "a geometry in WKT"),
    "dimension": (lambda shape: integer(int(library().get_dimensions(shape))), "0 of points, 1 of lines, 2 of areas"),
    "envelope": (
        lambda shape: written(_envelope(shape)),
        "the least rectangle of longitudes and latitudes around a geometry",
    ),
    "geometryType": (lambda shape: literal(SF + shape.geom_type, XSD + "anyURI"), "the IRI of the type of a geometry"),
    "isEmpty": (lambda shape: truth(bool(shape.is_empty)), "whether a geometry has no points"),
    "isSimple": (lambda shape: truth(bool(shape.is_simple)), "whether a geometry does not cross itself"),
    "maxX": (_bound(2), "the greatest longitude"),
    "maxY": (_bound(3), "the greatest latitude"),
    "minX": (_bound(0), "the least longitude"),
    "minY": (_bound(1), "the least latitude"),
    "numGeometries": (lambda shape: integer(int(library().get_num_geometries(shape))), "the number of its parts"),
}


def _part(term: Term | None, place: Term | None) -> Term | None:
    """the n-th part of a geometry, from 1"""
    shape = geometry(term)
    if shape is None or place is None or not is_literal(place) or parts(place).datatype != XSD + "integer":
        return None
    position = int(parts(place).lexical)
    return written(library().get_geometry(shape, position - 1)) if position > 0 else None


def _reference_system(term: Term | None) -> Term | None:
    """the IRI of the reference system in which a literal is written"""
    if geometry(term) is None:
        return None
    assert term is not None
    lexical, datatype, _ = parts(term)
    text = lexical.strip()
    named = datatype == WKT and text.startswith("<")
    return literal(text[1 : text.index(">")] if named else CRS84, XSD + "anyURI")


def _first(term: Term | None, *_: Any) -> str | None:
    return problem_of_geometries(term)


def _aggregate(combine: Callable[[Any], Geometry]) -> Callable[[Sequence[Term]], Term | None]:
    """Returns an aggregate of geometries. It has no value if one of the values is no geometry."""

    def body(values: Sequence[Term]) -> Term | None:
        shapes = [geometry(value) for value in sorted(values)]
        return None if not shapes or None in shapes else written(combine(shapes))

    return body


_AGGREGATES: dict[str, tuple[Callable[[Any], Geometry], str]] = {
    "aggBoundingBox": (lambda shapes: _envelope(library().geometrycollections(shapes)), "the least rectangle"),
    "aggCentroid": (lambda shapes: library().centroid(library().geometrycollections(shapes)), "the centre"),
    "aggConvexHull": (lambda shapes: library().convex_hull(library().geometrycollections(shapes)), "the convex hull"),
    "aggUnion": (lambda shapes: library().union_all(shapes), "all together"),
}


def _documented(body: Callable[[Sequence[Term]], Term | None], doc: str) -> Callable[[Sequence[Term]], Term | None]:
    body.__doc__ = f"of geometries, {doc}"
    return body


MEMBERS: tuple[Member, ...] = (
    *(
        Function(GEOF + name, _of_pair(function), 2, 2, check=problem_of_geometries, doc=doc)
        for name, (function, doc) in _PAIRS.items()
    ),
    *(
        Function(GEOF + name, _of_one(result), 1, 1, check=problem_of_geometries, doc=doc)
        for name, (result, doc) in _PROPERTIES.items()
    ),
    Function(GEOF + "geometryN", _part, 2, 2, check=_first, doc=_part.__doc__ or ""),
    Function(GEOF + "getSRID", _reference_system, 1, 1, check=_first, doc=_reference_system.__doc__ or ""),
    *(aggregate_of(GEOF + name, _documented(_aggregate(combine), doc)) for name, (combine, doc) in _AGGREGATES.items()),
)
