"""The function library of SPARQL 1.1 (section 17) and its aggregates, over terms, in which None is an error.

docs/languages/sparql-functions.md lists all of it; `squall.translators.sparql.calls` composes expressions.
"""

from __future__ import annotations

from squall.functions.sparql import (
    aggregates,
    arithmetic,
    casts,
    comparison,
    dates,
    hashes,
    logic,
    patterns,
    strings,
    tables,
    terms,
)
from squall.functions.sparql.names import Members

FUNCTIONS: Members = (
    *logic.MEMBERS,
    *comparison.MEMBERS,
    *arithmetic.MEMBERS,
    *terms.MEMBERS,
    *strings.MEMBERS,
    *tables.MEMBERS,
    *patterns.MEMBERS,
    *dates.MEMBERS,
    *hashes.MEMBERS,
    *casts.MEMBERS,
    *aggregates.MEMBERS,
)
"""The functions of the entry point `sparql` of the group ``squall.functions``."""
