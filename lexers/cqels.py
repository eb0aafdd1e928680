"""CQELS-QL: SPARQL with streams inside of patterns. Source: named in cqels.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "step_times", "cqels"))
