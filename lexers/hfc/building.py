"""Construction of the tree of HFC's rules and queries from lark's tree: prefixes, terms and tuples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lark import Token, Tree

from squall.errors import Origin
from squall.lexers.hfc.tree import Action, Call, Comparison, Program, Query, Rule, Test, Tuple
from squall.lexers.prefixes import declaration_hint
from squall.lexers.sparql.terms import unquoted
from squall.lexers.text import Text
from squall.model import Slot, Variable
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, literal
from squall.rdf.iris import is_absolute

PREFIXES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
"""The prefixes that every program has."""

Node = Tree[Token]


def build(parsed: Node, text: Text, prefixes: Mapping[str, str]) -> Program:
    """Returns the tree. Errors are recorded in the text."""
    builder = _Builder(text, prefixes)
    items = [builder.item(part) for part in parsed.children if isinstance(part, Tree)]
    return Program(tuple(item for item in items if item is not None), text.name)


class _Builder:
    """Builds the tree in the order of the text: a prefix is known before it is used."""

    def __init__(self, text: Text, prefixes: Mapping[str, str]) -> None:
        self.text = text
        self.prefixes = {**PREFIXES, **prefixes}
        self.undeclared: set[str] = set()

    def item(self, part: Node) -> Rule | Query | None:
        """Returns a rule or a query; None for a declaration."""
        tokens = [child for child in part.children if isinstance(child, Token)]
        if part.data == "prefix":
            self._declare(*tokens)
            return None
        name = next((str(token)[1:] for token in tokens if token.type == "NAME"), "")
        body, *heads = (tuple(map(self._tuple, lines)) for lines in _sections(part, "tuples"))
        tests = tuple(map(self._test, _lines(part, "tests")))
        origin = self._origin(part)
        if part.data == "query":
            variables = tuple(Variable(token[1:]) for token in tokens if token.type == "VAR")
            is_distinct = any(token.type == "DISTINCT" for token in tokens)
            return Query(name, variables, is_distinct, body, tests, origin)
        actions = tuple(map(self._action, _lines(part, "actions")))
        return Rule(name, body, heads[0], tests, actions, origin)

    def _declare(self, prefix: Token, namespace: Token) -> None:
        if not is_absolute(namespace[1:-1]):
            self.text.fail(f"`{namespace}` is not an absolute IRI", self._place(namespace))
        self.prefixes[prefix[:-1]] = namespace[1:-1]

    def _tuple(self, line: Any) -> Tuple:
        terms = tuple(map(self._term, line.children))
        if len(terms) < 3:
            count = "1 term" if len(terms) == 1 else f"{len(terms)} terms"
            hint = "a tuple has a subject, a predicate and an object at least"
            self.text.fail(f"this tuple has {count}", self._origin(line), hint)
        return Tuple(terms, self._origin(line))

    def _test(self, test: Node) -> Test:
        if test.data == "comparison":
            left, sign, right = test.children
            return Comparison(self._term(left), self._term(right), str(sign) == "==", self._origin(test))
        return self._call(test.children, self._origin(test))

    def _action(self, action: Node) -> Action:
        variable, *call = action.children
        assert isinstance(variable, Token)
        origin = self._origin(action)
        return Action(Variable(variable[1:]), self._call(call, origin), origin)

    def _call(self, parts: list[Any], origin: Origin) -> Call:
        function, *arguments = parts
        name = str(function) if function.type == "FUNCTION" else str(self._term(function))
        return Call(name, tuple(map(self._term, arguments)), origin)

    # Terms

    def _term(self, part: Any) -> Slot:
        if isinstance(part, Tree):
            return self._literal(part)
        match part.type:
            case "VAR":
                return Variable(part[1:])
            case "BLANK_NODE":
                hint = "use a variable; in a head, one that `?v = MakeBlankNode` has bound"
                self.text.fail(f"`{part}`: a program has no blank nodes", self._place(part), hint)
                return Term(part)
            case "IRIREF":
                return self._iri(part)
        return self._expanded(part, str(part))

    def _iri(self, token: Token) -> Term:
        """Returns the term of an IRI. HFC writes prefixed names in brackets as well: ``<rdf:type>``."""
        text = token[1:-1]
        prefix, colon, _ = text.partition(":")
        if colon and prefix in self.prefixes:
            return self._expanded(token, text)
        if not is_absolute(text):
            self.text.fail(f"`{token}` is not an absolute IRI", self._place(token))
        return iri(text)

    def _expanded(self, token: Token, name: str) -> Term:
        prefix, _, local = name.partition(":")
        if prefix not in self.prefixes:
            if prefix not in self.undeclared:
                self.undeclared.add(prefix)
                namespace = "http://example.org/"
                hint = declaration_hint(prefix, self.prefixes, f"@prefix {prefix}: <{namespace}>", namespace)
                self.text.fail(f"the prefix `{prefix}:` is not declared", self._place(token), hint)
            return iri(name)
        return iri(self.prefixes[prefix] + local)

    def _literal(self, part: Node) -> Term:
        string, *more = part.children
        lexical = unquoted(str(string))
        if not more:
            return literal(lexical)
        if len(more) == 1:
            return literal(lexical, language=str(more[0])[1:])
        datatype = self._term(more[1])
        assert isinstance(datatype, str)
        return literal(lexical, datatype[1:-1])

    def _place(self, token: Token) -> Origin:
        return self.text.origin(token.start_pos or 0, token.end_pos or 0)

    def _origin(self, part: Any) -> Origin:
        return self.text.origin(getattr(part.meta, "start_pos", 0), getattr(part.meta, "end_pos", 1))


def _sections(part: Node, name: str) -> list[list[Any]]:
    """Returns the lines of each section of a rule or a query: its tuples, tests or actions."""
    return [child.children for child in part.children if isinstance(child, Tree) and child.data == name]


def _lines(part: Node, name: str) -> list[Any]:
    """Returns the lines of a section that a rule or a query has at most once."""
    return next(iter(_sections(part, name)), [])
