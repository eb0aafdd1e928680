"""Reads OWL 2 functional-style syntax: a lark grammar of calls, and a table of what each call means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree

from squall.errors import LexerError, Origin, SquallError, did_you_mean, raise_all
from squall.lexers.owl import tree
from squall.lexers.prefixes import declaration_hint
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.text import Text
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, iri_text, literal
from squall.rdf.iris import is_absolute

STANDARD_PREFIXES = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD, "owl": OWL}
"""The prefixes that every document has (section 3.7)."""

Item = Tree[Token]


@dataclass(frozen=True)
class _Form:
    """A call: what makes its part of the tree, and the kinds of its arguments.

    A kind that ends in ``*`` is for two or more arguments (``+``: one or more), one that ends in ``?`` may be left out.
    """

    make: Callable[..., Any]
    kinds: tuple[str, ...] = ()


def _properties(kind: str, is_data: bool) -> dict[str, _Form]:
    """Returns the axioms of properties of objects, or of data."""
    value = "literal" if is_data else "individual"
    name, filler = ("Data", "range") if is_data else ("Object", "class")
    return {
        f"Sub{name}PropertyOf": _Form(
            lambda sub, sup: tree.SubPropertyOf(sub, sup), ("chain" if not is_data else "data chain", kind)
        ),
        f"Equivalent{name}Properties": _Form(tree.EquivalentProperties, (f"{kind}*",)),
        f"Disjoint{name}Properties": _Form(tree.DisjointProperties, (f"{kind}*",)),
        f"{name}PropertyDomain": _Form(tree.Domain, (kind, "class")),
        f"{name}PropertyRange": _Form(tree.Range, (kind, filler)),
        f"Functional{name}Property": _Form(partial(tree.Characteristic, "Functional"), (kind,)),
        f"{name}PropertyAssertion": _Form(tree.PropertyAssertion, (kind, "individual", value)),
        f"Negative{name}PropertyAssertion": _Form(
            partial(tree.PropertyAssertion, negative=True), (kind, "individual", value)
        ),
    }


def _restrictions(kind: str, name: str, filler: str) -> dict[str, _Form]:
    return {
        f"{name}SomeValuesFrom": _Form(tree.Some, (kind, filler)),
        f"{name}AllValuesFrom": _Form(tree.All, (kind, filler)),
        f"{name}HasValue": _Form(tree.HasValue, (kind, "literal" if name == "Data" else "individual")),
        **{
            f"{name}{bound}Cardinality": _Form(partial(tree.Cardinality, bound), ("number", kind, f"{filler}?"))
            for bound in ("Min", "Max", "Exact")
        },
    }


_CLASSES = {
    "ObjectIntersectionOf": _Form(tree.Intersection, ("class*",)),
    "ObjectUnionOf": _Form(tree.Union, ("class*",)),
    "ObjectComplementOf": _Form(tree.Complement, ("class",)),
    "ObjectOneOf": _Form(tree.OneOf, ("individual+",)),
    "ObjectHasSelf": _Form(tree.HasSelf, ("object",)),
    **_restrictions("object", "Object", "class"),
    **_restrictions("data", "Data", "range"),
}
_RANGES = {
    "DataIntersectionOf": _Form(tree.Intersection, ("range*",)),
    "DataUnionOf": _Form(tree.Union, ("range*",)),
    "DataComplementOf": _Form(tree.Complement, ("range",)),
    "DataOneOf": _Form(tree.OneOf, ("literal+",)),
    "DatatypeRestriction": _Form(tree.Restricted, ("name", "facets")),
}
_AXIOMS = {
    "SubClassOf": _Form(tree.SubClassOf, ("class", "class")),
    "EquivalentClasses": _Form(tree.EquivalentClasses, ("class*",)),
    "DisjointClasses": _Form(tree.DisjointClasses, ("class*",)),
    "DisjointUnion": _Form(tree.DisjointUnion, ("name", "class*")),
    "DatatypeDefinition": _Form(tree.DatatypeDefinition, ("name", "range")),
    "InverseObjectProperties": _Form(tree.InverseProperties, ("object", "object")),
    **{
        f"{kind}ObjectProperty": _Form(partial(tree.Characteristic, kind), ("object",))
        for kind in tree.CHARACTERISTICS
    },
    "HasKey": _Form(tree.HasKey, ("class", "keys")),
    "SameIndividual": _Form(tree.SameIndividual, ("individual*",)),
    "DifferentIndividuals": _Form(tree.DifferentIndividuals, ("individual*",)),
    "ClassAssertion": _Form(tree.ClassAssertion, ("class", "individual")),
    **_properties("object", is_data=False),
    **_properties("data", is_data=True),
}  # fmt: skip
_KINDS = ("Class", "Datatype", "ObjectProperty", "DataProperty", "AnnotationProperty", "NamedIndividual")
_WITHOUT_MEANING = (
    "Annotation", "AnnotationAssertion", "SubAnnotationPropertyOf", "AnnotationPropertyDomain",
    "AnnotationPropertyRange",
)  # fmt: skip
_SIGNS = {"LPAR": "(", "RPAR": ")", "EQUAL": "="}
_PHRASES: tuple[Phrase, ...] = (
    ("an axiom or an argument", {"KEYWORD", "IRIREF"}, {"KEYWORD", "IRIREF", "PNAME", "BLANK", "NUMBER", "STRING"}),
    ("an IRI", {"IRIREF"}, {"IRIREF", "PNAME"}),
    ("a prefix, such as `ex:`", {"PNAME"}, {"PNAME"}),
    ("`Prefix(` or `Ontology(`", {"ONTOLOGY"}, {"ONTOLOGY", "PREFIX"}),
)


def read(text: str, name: str, prefixes: Mapping[str, str]) -> tree.Ontology:
    """Parses an ontology in functional-style syntax.

    Args:
        text: The text.
        name: Its name.
        prefixes: Prefixes from outside.

    Raises:
        LexerError: There is an error.
        Errors: There are several errors.
    """
    source = Text(text, name)
    parsed = _Reader(source).read()
    raise_all(source.errors)
    assert parsed is not None
    return _Building(source, prefixes).ontology(parsed)


class _Reader(Reader):
    def __init__(self, text: Text) -> None:
        super().__init__(text, _grammar().parse_interactive(text.text))

    def unexpected(self, token: Token) -> None:
        self.text.fail(f"`{token}` cannot stand here", self.origin(token), self.expected())

    def unreadable(self, place: int) -> None:
        piece = re.compile(r"\w+|\S").match(self.text.text, place)
        excerpt = piece[0] if piece else self.text.text[place]
        hint = 'end it with `"`' if excerpt == '"' else self.expected()
        message = "this text is never closed" if excerpt == '"' else f"`{excerpt}` cannot stand here"
        self.text.fail(message, self.text.origin(place, place + len(excerpt)), hint)

    def expected(self) -> str:
        return expected_hint(expected_phrases(self.accepted(), _SIGNS, _PHRASES)[0])


@cache
def _grammar() -> Lark:
    text = files(__package__).joinpath("owl.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


class _Building:
    """Turns lark's tree into an ontology, and gathers errors."""

    def __init__(self, source: Text, prefixes: Mapping[str, str]) -> None:
        self.source = source
        self.prefixes = {**prefixes, **STANDARD_PREFIXES}
        self.errors: list[SquallError] = []
        self.kinds: dict[str, Callable[[Item], Any]] = {
            "class": partial(self._expression, forms=_CLASSES, named=tree.Class),
            "range": partial(self._expression, forms=_RANGES, named=tree.Datatype),
            "object": self._object_property,
            "data": lambda item: tree.Property(self._name(item), is_data=True),
            "chain": self._chain,
            "data chain": lambda item: (tree.Property(self._name(item), is_data=True),),
            "name": self._name,
            "individual": self._individual,
            "literal": self._literal,
            "number": self._number,
        }

    def ontology(self, parsed: Item) -> tree.Ontology:
        items = [child for child in parsed.children if isinstance(child, Tree)]
        for item in items:
            if item.data == "prefix":
                prefix, namespace = item.children
                self.prefixes[str(prefix).removesuffix(":")] = str(namespace)[1:-1]
        items = [item for item in items if item.data != "prefix"]
        header = [item for item in items if item.data in ("iri", "pname")]
        axioms: list[tree.Axiom] = []
        imports: list[tree.Import] = []
        for item in items[len(header) :]:
            try:
                if _keyword(item) == "Import":
                    imports += (tree.Import(iri_text(self._name(part)), self._origin(part)) for part in _parts(item))
                else:
                    axioms += self._axiom(item)
            except LexerError as error:
                self.errors.append(error)
        named = iri_text(self._name(header[0])) if header else ""
        result = tree.Ontology(self.source.name, named, tuple(imports), tuple(axioms))
        raise_all(self.errors, result)
        return result

    def _axiom(self, item: Item) -> list[tree.Axiom]:
        keyword = _keyword(item)
        if keyword in _WITHOUT_MEANING:
            return []
        if keyword == "Declaration":
            return [self._declaration(item)]
        form = _AXIOMS.get(keyword)
        if form is None:
            hint = did_you_mean(keyword, (*_AXIOMS, "Declaration", "Import", *_WITHOUT_MEANING))
            raise self._error(f"`{keyword or self._text(item)}` is no axiom", item, hint)
        return [replace(self._made(item, form), origin=self._origin(item))]

    def _declaration(self, item: Item) -> tree.Declaration:
        inner = [part for part in _parts(item) if _keyword(part) != "Annotation"]
        if len(inner) != 1 or _keyword(inner[0]) not in _KINDS or len(_parts(inner[0])) != 1:
            raise self._error("a declaration has a kind and a name", item, "write `Declaration(Class(ex:A))`")
        return tree.Declaration(_keyword(inner[0]), self._name(_parts(inner[0])[0]), origin=self._origin(item))

    def _made(self, item: Item, form: _Form) -> Any:
        """Returns what a call with arguments of the right kinds means."""
        parts = [part for part in _parts(item) if _keyword(part) != "Annotation"]
        arguments: list[Any] = []
        for kind in form.kinds:
            if kind == "keys":
                arguments.append(self._keys(item, parts))
                parts = []
            elif kind == "facets":
                arguments.append(self._facets(item, parts))
                parts = []
            elif kind[-1] in "*+":
                if len(parts) < (2 if kind[-1] == "*" else 1):
                    raise self._error(f"`{_keyword(item)}` has too few arguments", item)
                arguments.append(tuple(map(self.kinds[kind[:-1]], parts)))
                parts = []
            elif parts:
                arguments.append(self.kinds[kind.removesuffix("?")](parts.pop(0)))
            elif kind[-1] != "?":
                raise self._error(f"`{_keyword(item)}` has too few arguments", item)
        if parts:
            raise self._error(f"`{_keyword(item)}` has too many arguments", parts[0])
        return form.make(*arguments)

    def _expression(self, item: Item, forms: Mapping[str, _Form], named: Callable[[Term], Any]) -> Any:
        if item.data != "call":
            return named(self._name(item))
        keyword = _keyword(item)
        if keyword not in forms:
            kind = "class expression" if forms is _CLASSES else "data range"
            raise self._error(f"`{keyword or self._text(item)}` is no {kind}", item, did_you_mean(keyword, forms))
        return self._made(item, forms[keyword])

    def _object_property(self, item: Item) -> tree.Property:
        if item.data != "call":
            return tree.Property(self._name(item))
        if _keyword(item) != "ObjectInverseOf" or len(_parts(item)) != 1:
            raise self._error(f"`{self._text(item)}` is no property", item, "write `ObjectInverseOf(ex:p)`")
        inner = self._object_property(_parts(item)[0])
        return tree.Property(inner.name, inverse=not inner.inverse)

    def _chain(self, item: Item) -> tuple[tree.Property, ...]:
        if _keyword(item) != "ObjectPropertyChain":
            return (self._object_property(item),)
        if len(_parts(item)) < 2:
            raise self._error("a chain has two properties or more", item)
        return tuple(map(self._object_property, _parts(item)))

    def _keys(self, item: Item, groups: Sequence[Item]) -> tuple[tree.Property, ...]:
        if len(groups) != 2 or any(group.data != "call" or _keyword(group) for group in groups):
            hint = "write `HasKey(ex:A (ex:objectProperty) (ex:dataProperty))`; either may be empty"
            raise self._error("a key has two groups of properties", item, hint)
        keys = (*map(self.kinds["object"], _parts(groups[0])), *map(self.kinds["data"], _parts(groups[1])))
        if not keys:
            raise self._error("this key has no properties", item)
        return keys

    def _facets(self, item: Item, parts: Sequence[Item]) -> tuple[tuple[Term, Term], ...]:
        if not parts or len(parts) % 2:
            raise self._error("each facet has a name and a literal", item)
        names, values = parts[::2], parts[1::2]
        return tuple(zip(map(self._name, names), map(self._literal, values), strict=True))

    # Terms

    def _name(self, item: Item) -> Term:
        if item.data == "iri":
            return self._iri(item.children[0], str(item.children[0])[1:-1])
        if item.data == "pname":
            return self._iri(item.children[0], self._expanded(item.children[0]))
        raise self._error(f"`{self._text(item)}` is no name", item, "write an IRI: `<http://example.org/a>` or `ex:a`")

    def _expanded(self, token: Any) -> str:
        prefix, _, local = str(token).partition(":")
        if prefix not in self.prefixes:
            namespace = "http://example.org/"
            hint = declaration_hint(prefix, self.prefixes, f"Prefix({prefix}:=<{namespace}>)", namespace)
            raise LexerError(f"the prefix `{prefix}:` is not declared", self._token_origin(token), hint)
        return self.prefixes[prefix] + local

    def _iri(self, token: Any, text: str) -> Term:
        if not is_absolute(text):
            raise LexerError(f"`{text}` is no absolute IRI", self._token_origin(token))
        return iri(text)

    def _individual(self, item: Item) -> Term:
        return Term(str(item.children[0])) if item.data == "blank" else self._name(item)

    def _literal(self, item: Item) -> Term:
        if item.data != "literal":
            raise self._error(f"`{self._text(item)}` is no literal", item, 'write `"text"` or `"1"^^xsd:integer`')
        string, *suffix = item.children
        lexical = re.sub(r'\\(["\\])', r"\1", str(string)[1:-1])
        if not suffix:
            return literal(lexical)
        token = suffix[0]
        if getattr(token, "type", "") == "LANGTAG":
            return literal(lexical, language=str(token)[1:])
        text = str(token)[1:-1] if str(token).startswith("<") else self._expanded(token)
        if text == f"{RDF}PlainLiteral":
            value, _, language = lexical.rpartition("@")
            return literal(value, language=language or None)
        return literal(lexical, iri_text(self._iri(token, text)))

    def _number(self, item: Item) -> int:
        if item.data != "number":
            raise self._error(f"`{self._text(item)}` is no number", item)
        return int(str(item.children[0]))

    # Places

    def _origin(self, item: Item) -> Origin:
        return self.source.origin(item.meta.start_pos, item.meta.end_pos)

    def _token_origin(self, token: Any) -> Origin:
        return self.source.origin(token.start_pos, token.end_pos)

    def _text(self, item: Item) -> str:
        text = self.source.text[item.meta.start_pos : item.meta.end_pos]
        return text if len(text) <= 40 else f"{text[:37]}..."

    def _error(self, message: str, item: Item, hint: str | None = None) -> LexerError:
        return LexerError(message, self._origin(item), hint)


def _keyword(item: Item) -> str:
    """Returns the keyword of a call; ``""`` for anything else."""
    first = item.children[0] if item.data == "call" and item.children else None
    return str(first) if isinstance(first, Token) and first.type == "KEYWORD" else ""


def _parts(item: Item) -> list[Item]:
    return [child for child in item.children if isinstance(child, Tree)]
