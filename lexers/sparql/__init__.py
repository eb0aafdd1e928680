"""The lexer of SPARQL 1.1: parses the text of a query or an update to a tree that prints as text.

Sources: SPARQL 1.1 Query, sections 4 and 19, and SPARQL 1.1 Update. docs/decisions/0009-sparql-grammar.md says why the
grammar is squall's own, and how C-SPARQL and RSP-QL extend it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from squall.errors import raise_all
from squall.lexers.sparql.tree import Program


@dataclass(frozen=True)
class SparqlLexer:
    """A lexer of SPARQL, or of a language that extends it.

    Attributes:
        grammars: The grammars, each of which extends those before it.
        base: The IRI against which relative IRIs are resolved if the text has no ``BASE``. Without it they stay
            relative.
    """

    grammars: tuple[str, ...] = ("sparql",)
    base: str = ""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> Program:
        """Parses a program, which may use the prefixes from outside.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        from squall.lexers.sparql.building import Builder
        from squall.lexers.sparql.notes import note_errors
        from squall.lexers.sparql.reading import read
        from squall.lexers.text import Text

        source = Text(text.removeprefix("\ufeff"), name)
        raise_all(source.errors)
        tree = read(source, self.grammars)
        builder = Builder(source, self.base, prefixes or {}, "epsparql" in self.grammars)
        program = builder.program(tree) if tree is not None else Program(())
        raise_all([*source.errors, *note_errors(program)])
        return program


lexer = SparqlLexer()
