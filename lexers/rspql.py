"""RSP-QL: SPARQL over named windows of streams. Source: named in rspql.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "outputs", "step_times", "rspql"))
