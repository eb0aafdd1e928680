"""Marks: what the rows of all that is no triple begin with, as no term's text does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from squall.rdf import QUAD, Term

SOLUTION_TAG = "?"
"""What the first cell of a solution's row begins with; the names of its variables follow, and the name of its query:
two queries that answer the same have answers of their own."""
ASK_TAG = "!"
"""What the first cell of the row of an ASK query's answer begins with; its name follows."""
QUERY_SEPARATOR = "\t"
"""What stands in front of the name of a solution's query: no variable has it in its name, and it divides no cells."""
RANK_SEPARATOR = "\x1f"
"""What stands behind the name of its query in the first cell of a solution that is told in an order, in front of its
place in that: text that is less than the one of each solution behind it. No query has this character in its name."""


def relation_tag(relation: Term) -> Term:
    """The first cell of an atom's row."""
    return Term(f"@{relation}")


QUAD_TAG = relation_tag(QUAD)
"""The first cell of a quad's row; its graph, subject, predicate and object follow."""


def relation_tag_of(cells: Sequence[object]) -> Term | None:
    """What the rows of an atom begin with, its relation behind an ``@``; None: the cells are a triple's."""
    first = cells[0]
    return Term(first) if isinstance(first, str) and first[0] == "@" else None


def solution_tag(names: Iterable[str], query: str) -> str:
    """The first cell of the rows of a query's solutions."""
    return f"{SOLUTION_TAG}{' '.join(names)}{QUERY_SEPARATOR}{query}"
