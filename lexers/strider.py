"""Strider: SPARQL queries over one window of all streams. Source: named in strider.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "strider"))
