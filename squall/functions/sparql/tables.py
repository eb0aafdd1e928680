"""The table function of VALUES."""

from __future__ import annotations

from squall.functions import Function
from squall.functions.sparql.names import OWN, Members
from squall.rdf import Term, parts


def _table(width: Term, *cells: Term) -> list[tuple[Term, ...]]:
    """Returns the cells in rows of this width, an xsd:integer."""
    size = int(parts(width).lexical)
    return [cells[place : place + size] for place in range(0, len(cells), size)]


TABLE = Function(OWN + "table", _table, 1, None, doc="the rows of VALUES: how wide they are, then all their cells")

MEMBERS: Members = (TABLE,)
