"""EP-SPARQL: SPARQL with operators for events one after the other. Source: named in epsparql.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "csparql", "epsparql"))
