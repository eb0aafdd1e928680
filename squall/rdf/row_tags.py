"""Row tags: the first cell of rows that are not triples. No term's text begins as they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from squall.rdf import QUAD, Term

SOLUTION_TAG = "?"
"""The first cell of a solution's row begins with it. The names of its variables and of its query follow.

So two queries with the same solutions have different rows.
"""
ASK_TAG = "!"
"""The first cell of the row of an ASK query's answer begins with it. The name of the query follows."""
QUERY_SEPARATOR = "\t"
"""It stands before the name of a solution's query. No variable name has it, and it does not separate cells."""
RANK_SEPARATOR = "\x1f"
"""It stands after the name of the query in the first cell of an ordered solution, before the solution's rank.

The rank is a text that sorts before that of each later solution. No query name has this character.
"""


def relation_tag(relation: Term) -> Term:
    """Returns the first cell of an atom's row."""
    return Term(f"@{relation}")


QUAD_TAG = relation_tag(QUAD)
"""The first cell of a quad's row. Its graph, subject, predicate and object follow."""


def relation_tag_of(cells: Sequence[object]) -> Term | None:
    """Returns the tag of an atom's cells (its relation after an ``@``), or None for the cells of a triple."""
    first = cells[0]
    return Term(first) if isinstance(first, str) and first[0] == "@" else None


def solution_tag(names: Iterable[str], query: str) -> str:
    """Returns the first cell of the rows of a query's solutions."""
    return f"{SOLUTION_TAG}{' '.join(names)}{QUERY_SEPARATOR}{query}"
