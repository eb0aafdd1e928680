"""SPARQL 1.1: the text of a query or of an update to a tree that prints as text.

Source: SPARQL 1.1 Query, sections 4 and 19, and SPARQL 1.1 Update. Why the grammar is our own, and how C-SPARQL and
RSP-QL extend it: docs/decisions/0009-sparql-grammar.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from squall.errors import raise_all
from squall.lexers.sparql.tree import Program


@dataclass(frozen=True)
class SparqlLexer:
    """A lexer of SPARQL, or of a language that extends it.

    grammars: its grammars, each of which extends those before it.
    base: the IRI against which relative ones are resolved, where the text has no ``BASE``; without it they stay as they
    are.
    """

    grammars: tuple[str, ...] = ("sparql",)
    base: str = ""

    def __call__(self, text: str, name: str) -> Program:
        """The tree of a program. Raises LexerError, or Errors with all that are found."""
        from squall.lexers.sparql.building import Builder
        from squall.lexers.sparql.notes import wrong
        from squall.lexers.sparql.reading import read
        from squall.lexers.text import Text

        source = Text(text.removeprefix("\ufeff"), name)
        raise_all(source.errors)
        tree = read(source, self.grammars)
        program = Builder(source, self.base).program(tree) if tree is not None else Program(())
        raise_all([*source.errors, *wrong(program)])
        return program


lexer = SparqlLexer()
