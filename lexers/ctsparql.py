"""CT-SPARQL: C-SPARQL with patterns over time. Source: named in ctsparql.lark."""

from __future__ import annotations

from squall.lexers.sparql import SparqlLexer

lexer = SparqlLexer(("sparql", "streams", "csparql", "step_times", "ctsparql"))
