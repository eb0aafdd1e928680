"""The functions of GeoSPARQL 1.1 (OGC 22-047) over geometries on the globe."""

from __future__ import annotations

from squall.functions import Member
from squall.functions.geosparql import measures, relations, shapes

FUNCTIONS: tuple[Member, ...] = (*relations.MEMBERS, *measures.MEMBERS, *shapes.MEMBERS)
"""The functions of the entry point `geosparql` of the group ``squall.functions``."""
