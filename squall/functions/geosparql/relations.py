"""Topological relations of two geometries: simple features, Egenhofer's, RCC8, and patterns of DE-9IM.

Source: OGC GeoSPARQL 1.1, tables of the query functions of the three families. Coordinates are those of a plane of
longitude and latitude, as in other engines: an edge between two points is straight there, and nothing crosses the
meridian of 180 degrees. Geometries are equal if they have the same points, whatever the family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from squall.functions import Builtin, Function, Member
from squall.functions.geosparql.geometries import Geometry, geometry, library, problem_of_geometries
from squall.functions.geosparql.names import GEOF
from squall.functions.join_keys import table_of
from squall.functions.sparql.names import FALSE, TRUE
from squall.rdf import Term, is_literal, parts

OWN = "urn:x-squall:geosparql:"
"""The namespace of the tests, which are false where a relation is an error."""

_PREDICATES = {
    "sfEquals": "equals", "sfDisjoint": "disjoint", "sfIntersects": "intersects", "sfTouches": "touches",
    "sfCrosses": "crosses", "sfWithin": "within", "sfContains": "contains", "sfOverlaps": "overlaps",
    "ehEquals": "equals", "ehDisjoint": "disjoint", "ehMeet": "touches", "rcc8eq": "equals",
}  # fmt: skip
"""The relations that are predicates of shapely."""
_PATTERNS = {
    "ehOverlap": "T*T***T**", "ehCovers": "T*TFT*FF*", "ehCoveredBy": "TFF*TFT**", "ehInside": "TFF*FFT**",
    "ehContains": "T*TFF*FF*", "rcc8dc": "FFTFFTTTT", "rcc8ec": "FFTFTTTTT", "rcc8po": "TTTTTTTTT",
    "rcc8tppi": "TTTFTTFFT", "rcc8tpp": "TFFTTFTTT", "rcc8ntpp": "TFFTFFTTT", "rcc8ntppi": "TTTFFTFFT",
}  # fmt: skip
"""The relations that are patterns of DE-9IM."""
RELATIONS = tuple(sorted((*_PREDICATES, *_PATTERNS)))
_WITHIN = ("sfWithin", "ehCoveredBy", "ehInside", "rcc8tpp", "rcc8ntpp")
"""The relations in which the first geometry lies within the second one."""
_CONTAINS = ("sfContains", "ehCovers", "ehContains", "rcc8tppi", "rcc8ntppi")
_PATTERN = re.compile(r"[TF012*]{9}")

CELLS = (8.0, 1 / 4, 1 / 128)
"""The sizes of cells, in degrees, whose numbers are the keys of joins."""
MAX_CELLS = 256
"""The number of cells of one size that a geometry may have as keys."""


def within_keys(term: Term, is_left: bool) -> Iterator[str]:
    """Yields the keys of a test whether the left geometry lies within the right one.

    The left one has a key for each size of cells: the cell of its first point. The right one has the cells of one size
    that its envelope meets. So geometries of which the test is true have exactly one key in common.
    """
    shape = geometry(term)
    if shape is None or shape.is_empty:
        return
    if is_left:
        x, y = library().get_coordinates(shape)[0].tolist()
        for size in CELLS:
            yield _cell(size, x // size, y // size)
        return
    bounds = shape.bounds
    size = next((size for size in reversed(CELLS) if _count(bounds, size) <= MAX_CELLS), CELLS[0])
    west, south, east, north = (int(bound // size) for bound in bounds)
    for column in range(west, east + 1):
        for row in range(south, north + 1):
            yield _cell(size, column, row)


def _cell(size: float, column: float, row: float) -> str:
    return f"{CELLS.index(size)} {int(column)} {int(row)}"


def _count(bounds: Sequence[float], size: float) -> int:
    west, south, east, north = (int(bound // size) for bound in bounds)
    return (east - west + 1) * (north - south + 1)


WITHIN_KEYS = table_of(OWN + "within-keys", within_keys, "what lies within an area")
CONTAINS_KEYS = table_of(
    OWN + "contains-keys", lambda term, is_left: within_keys(term, not is_left), "what an area contains"
)


def _relation_of(name: str) -> Callable[[Any, Any], Any]:
    """Returns the test of a relation, of two geometries or of two arrays of them."""
    shapely = library()
    if name == "sfWithin":
        return lambda left, right: shapely.contains(right, left)  # which uses the index of an area
    if name in _PATTERNS:
        return lambda left, right: shapely.relate_pattern(left, right, _PATTERNS[name])
    test: Callable[[Any, Any], Any] = getattr(shapely, _PREDICATES[name])
    return test


def _results(name: str, lefts: Sequence[Term | None], rights: Sequence[Term | None]) -> Iterator[bool | None]:
    """Yields whether a relation holds, for each pair of literals; None where one of them is no geometry."""
    pairs = [(geometry(left), geometry(right)) for left, right in zip(lefts, rights, strict=True)]
    complete = [pair for pair in pairs if None not in pair]
    if not complete:
        yield from (None for _ in pairs)
        return
    holds = iter(_relation_of(name)(*map(list, zip(*complete, strict=True))).tolist())
    yield from (None if None in pair else next(holds) for pair in pairs)


def _values(name: str, lefts: Sequence[Term | None], rights: Sequence[Term | None]) -> list[Term | None]:
    return [None if result is None else TRUE if result else FALSE for result in _results(name, lefts, rights)]


def _tests(name: str, lefts: Sequence[Term | None], rights: Sequence[Term | None]) -> list[bool]:
    return [bool(result) for result in _results(name, lefts, rights)]


def _for_one_pair(body: Callable[..., list[Any]]) -> Callable[..., Any]:
    """Returns a function over columns as one over two literals."""
    return lambda left, right: body([left], [right])[0]


def _relation(name: str) -> tuple[Member, ...]:
    doc = f"whether two geometries are in the relation {name}"
    keys = WITHIN_KEYS.iri if name in _WITHIN else CONTAINS_KEYS.iri if name in _CONTAINS else ""
    values, tests = partial(_values, name), partial(_tests, name)
    check = problem_of_geometries
    function = Function(
        GEOF + name, _for_one_pair(values), 2, 2, vector=values, check=check, as_test=OWN + name, doc=doc
    )
    test = Function(
        OWN + name,
        _for_one_pair(tests),
        2,
        2,
        truth=True,
        vector=tests,
        check=check,
        strict=True,
        join_keys=keys,
        doc=doc,
    )
    return (
        function,
        test,
        Builtin(name, "jena", 2, 2, test=test.iri, doc=doc),
    )


def _relate(left: Term | None, right: Term | None, pattern: Term | None) -> Term | None:
    """whether the intersections of two geometries match a pattern of DE-9IM"""
    shapes: tuple[Geometry | None, ...] = (geometry(left), geometry(right))
    if None in shapes or pattern is None or _pattern_problem(pattern) is not None:
        return None
    return TRUE if library().relate_pattern(*shapes, parts(pattern).lexical) else FALSE


def _pattern_problem(pattern: Term) -> str | None:
    if is_literal(pattern) and _PATTERN.fullmatch(parts(pattern).lexical):
        return None
    return f"{pattern} is no pattern of DE-9IM: nine of the characters `TF012*`"


def _relate_problem(left: Term | None, right: Term | None, pattern: Term | None) -> str | None:
    return problem_of_geometries(left, right) or (None if pattern is None else _pattern_problem(pattern))


MEMBERS: tuple[Member, ...] = (
    WITHIN_KEYS,
    CONTAINS_KEYS,
    *(member for name in RELATIONS for member in _relation(name)),
    Function(GEOF + "relate", _relate, 3, 3, check=_relate_problem, doc=_relate.__doc__ or ""),
)
