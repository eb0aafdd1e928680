"""SPARQLStream: SPARQL over windows of streams, up to now or to some time ago. Source: named in sparqlstream.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "outputs", "sparqlstream"))
