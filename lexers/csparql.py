"""C-SPARQL: SPARQL over windows of streams. Source: named in csparql.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "csparql"))
