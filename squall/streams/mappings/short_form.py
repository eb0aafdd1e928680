"""Reads mappings in the short form: a pattern of JSON with variables, and the triples that a record makes.

``{ "sensor": ?s, "degrees": ?d } => { ex:{?s} ex:degrees ?d } AT ?t``. docs/guides/data-that-are-not-rdf.md defines it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

from lark import Lark, Token, Tree

from squall.errors import Origin, did_you_mean, raise_all
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.text import Text
from squall.rdf import OWL, RDF, RDFS, XSD, Term, literal
from squall.rdf.iris import is_absolute
from squall.streams.mappings.model import (
    Condition,
    Constant,
    Level,
    Mapping,
    Path,
    Reference,
    Rule,
    Template,
    TermMap,
    TimeMap,
    Value,
    mapping_of,
    normal,
    path_text,
    references_of,
    whole_path,
)

_NAMESPACES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
_RDF_TYPE = Term(f"<{RDF}type>")
_NUMBER_TYPES = (("e", f"{XSD}double"), (".", f"{XSD}decimal"))
"""The datatypes of numbers among constant terms, by a character in them, as in SPARQL."""
_SIGNS = {
    "DOT": ".", "SEMICOLON": ";", "COMMA": ",", "LBRACE": "{", "RBRACE": "}", "LPAR": "(", "RPAR": ")", "LSQB": "[",
    "RSQB": "]", "TYPED": "^^", "COLON": ":", "QUESTION": "?", "ARROW": "=>",
}  # fmt: skip
_WORDS = {"_PREFIX": "PREFIX", "_AT": "AT", "_GRAPH": "GRAPH", "UNIT": "SECONDS", "$END": "the end"}
_TERMS = frozenset({"IRI", "NAME", "BLANK", "STRING", "NUMBER", "BOOLEAN", "VAR", "_IRI_FUNCTION"})
_PHRASES: tuple[Phrase, ...] = (
    ("a predicate", frozenset({"A"}), _TERMS | {"A"}),
    ("a term", frozenset({"IRI", "NAME", "VAR"}), _TERMS),
    ("a variable or a value", frozenset({"VAR", "STRING"}), _TERMS),
    ("a variable", frozenset({"VAR"}), frozenset({"VAR"})),
    ("an IRI", frozenset({"IRI"}), frozenset({"IRI", "NAME"})),
    ("a prefix and its colon", frozenset({"NAME"}), frozenset({"NAME"})),
    ("a key in quotes", frozenset({"STRING"}), frozenset({"STRING"})),
    ("a language tag", frozenset({"LANGTAG"}), frozenset({"LANGTAG"})),
)
_WORD = re.compile(r"[^\s{}\[\](),;]+")
_NO_BLANK = "name the blank node after a field, such as `_:{?id}`, so that the same record makes the same one"


@cache
def _grammar() -> Lark:
    text = files("squall.streams.mappings").joinpath("mapping.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def read(text: str, name: str) -> Mapping:
    """Returns the mapping of a text in the short form.

    Args:
        text: The text.
        name: Its name, for messages.

    Raises:
        LexerError: It is no mapping.
        Errors: It has several errors.
    """
    source = Text(text.removeprefix("\ufeff"), name)
    tree = None if source.errors else _Reader(source, _grammar().parse_interactive(source.text)).read()
    mapping = None if tree is None else _Builder(source).mapping(tree)
    raise_all(source.errors)
    assert mapping is not None, "a text without a mapping has an error"
    return mapping


class _Reader(Reader):
    """Reads a mapping, with error messages."""

    def unexpected(self, token: Token) -> None:
        if token.type in ("LSQB", "LPAR") and "NAME" in self.accepted():
            what = "a blank node" if token.type == "LSQB" else "a collection"
            hint = _NO_BLANK if token.type == "LSQB" else "write the triples of its members"
            self.text.fail(f"{what} in brackets is not supported", self.origin(token), hint)
            return
        hint = self.expected()
        if token.type == "NAME" and "STRING" in self.accepted() and token.endswith(":"):
            hint = f'a key is written `"{token[:-1]}"`'
        self.text.fail(f"`{token}` cannot stand here", self.origin(token), hint)

    def unreadable(self, place: int) -> None:
        remainder = self.text.text[place:]
        match = _WORD.match(remainder)
        word = match[0] if match else remainder[0]
        origin = self.text.origin(place, place + len(word))
        if word[0] == '"':
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), 'end it with `"`')
        elif "VAR" in self.accepted() and "STRING" not in self.accepted() and word.isidentifier():
            self.text.fail(f"`{word}` cannot stand here", origin, f"a variable is written `?{word}`")
        else:
            self.text.fail(f"`{word}` cannot stand here", origin, self.expected())

    def expected(self) -> str:
        phrases, left = expected_phrases(self.accepted(), _SIGNS, _PHRASES)
        return expected_hint([*phrases, *sorted(_WORDS[kind] for kind in left if kind in _WORDS)])


class _Variable(NamedTuple):
    """The field for which a variable stands, whether it is optional, and where it is written."""

    reference: Reference
    is_optional: bool
    token: Token


@dataclass
class _Block:
    """A pattern, as far as it has been read."""

    levels: list[Level] = field(default_factory=list)
    variables: dict[str, _Variable] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


class _Builder:
    """Makes rules of lark's tree."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.prefixes: dict[str, str] = {}
        self.places: list[tuple[str, Origin]] = []
        self.unused: list[tuple[str, Origin]] = []
        self.optional: set[str] = set()
        self.block = _Block()

    def mapping(self, tree: Tree[Token]) -> Mapping:
        rules: list[Rule] = []
        for child in cast("list[Tree[Token]]", tree.children):
            if child.data == "prefix":
                self._prefix(*cast("list[Token]", child.children))
            else:
                rules += self._block(child)
        return mapping_of(rules, self.places, self.unused, self.optional)

    def _prefix(self, prefix: Token, iri: Token) -> None:
        if not prefix.endswith(":"):
            self._fail(f"`{prefix}` is no prefix and its colon", prefix, "write `PREFIX ex: <http://example.org/>`")
        elif not is_absolute(iri[1:-1]):
            self._fail(f"`{iri}` is no absolute IRI", iri, "write `PREFIX ex: <http://example.org/>`")
        else:
            self.prefixes[prefix[:-1]] = iri[1:-1]

    def _block(self, tree: Tree[Token]) -> list[Rule]:
        self.block = _Block()
        pattern, content, *time_trees = (child for child in tree.children if isinstance(child, Tree))
        self._pattern(pattern, 0, (), False)
        time = self._time(time_trees[0]) if time_trees else None
        rules = [rule for rule in self._content(content, None, time) if rule is not None]
        if not rules and not self.text.errors:
            brace = next(child for child in tree.children if isinstance(child, Token) and child.type == "LBRACE")
            self._fail("a mapping without triples does nothing", brace, "write triples between `=> {` and `}`")
        variables = self.block.variables.items()
        self.unused += [
            (name, self.text.origin(*_span(variable.token)))
            for name, variable in variables
            if name not in self.block.used
        ]
        return rules

    # Patterns

    def _pattern(self, tree: Tree[Token], level: int, path: Path, is_optional: bool) -> None:
        """Reads a pattern of the value at a path in the items of a level."""
        block = self.block
        match tree.data:
            case "object":
                self._object(tree, level, path, is_optional)
            case "array":
                block.levels.append(Level(level, path))
                value = next(child for child in tree.children if isinstance(child, Tree))
                self._pattern(value, len(block.levels), (), is_optional)
            case "variable":
                token = cast(Token, tree.children[0])
                if token in block.variables:
                    self._fail(f"`{token}` stands for two fields", token, "give each field its own variable")
                block.variables[str(token)] = _Variable(Reference(level, path), is_optional, token)
            case _:
                token = cast(Token, tree.children[0])
                json_text = json.dumps(self._key(token)) if token.type == "STRING" else str(token)
                block.conditions.append(Condition(Reference(level, path), json_text))

    def _object(self, tree: Tree[Token], level: int, path: Path, is_optional: bool) -> None:
        """Reads a pattern of an object."""
        keys: set[str] = set()
        for member in (child for child in tree.children if isinstance(child, Tree)):
            key_token, value = cast(Token, member.children[0]), cast("Tree[Token]", member.children[-1])
            key = self._key(key_token)
            if key in keys:
                self._fail(f"the key {key_token} is there twice", key_token, "give each field one variable")
            keys.add(key)
            field = path_text((*whole_path(self.block.levels, level), *path, key))
            self.places.append((field, self.text.origin(*_span(key_token))))
            is_marked = any(isinstance(child, Token) and child.type == "QUESTION" for child in member.children)
            if is_optional or is_marked:
                self.optional.add(field)
            self._pattern(value, level, (*path, key), is_optional or is_marked)

    def _key(self, token: Token) -> str:
        return "".join(part if isinstance(part, str) else "" for part in self._text_parts(token, has_templates=False))

    def _time(self, tree: Tree[Token]) -> TimeMap | None:
        variable, *units = cast("list[Token]", tree.children)
        reference = self._reference(variable)
        is_seconds = any(unit.upper() == "SECONDS" for unit in units)
        return None if reference is None else TimeMap(reference, 1000 if is_seconds else 1)

    # Triples

    def _content(self, tree: Tree[Token], graph: TermMap | None, time: TimeMap | None) -> Iterator[Rule | None]:
        for child in tree.children:
            if not isinstance(child, Tree):
                continue
            if child.data == "triples":
                yield from self._triples(child, graph, time)
                continue
            name_tree, content = (part for part in child.children if isinstance(part, Tree))
            if graph is not None:
                self._fail_at("a graph inside of a graph is not supported", child, "write it beside the other one")
            name = self._node(name_tree, "the name of a graph")
            if name is not None:
                yield from self._content(content, name, time)

    def _triples(self, tree: Tree[Token], graph: TermMap | None, time: TimeMap | None) -> Iterator[Rule | None]:
        subject_tree, *lists = (child for child in tree.children if isinstance(child, Tree))
        subject = self._node(subject_tree, "a subject")
        for verb_objects in lists:
            verb, *objects = (child for child in verb_objects.children if isinstance(child, Tree) or child.type == "A")
            predicate = Constant(_RDF_TYPE) if isinstance(verb, Token) else self._node(verb, "a predicate")
            for object_tree in objects:
                object = self._term(cast("Tree[Token]", object_tree))
                if subject is not None and predicate is not None and object is not None:
                    yield self._rule(subject, predicate, object, graph, time)

    def _rule(
        self, subject: TermMap, predicate: TermMap, object: TermMap, graph: TermMap | None, time: TimeMap | None
    ) -> Rule:
        optional = {variable.reference for variable in self.block.variables.values() if variable.is_optional}
        is_optional = not optional.isdisjoint(references_of(subject))
        rule = Rule(tuple(self.block.levels), subject, predicate, object, graph, time, (), is_optional)
        levels = {0, *(reference.level for reference in rule.references())}
        for number in range(len(self.block.levels), 0, -1):
            if number in levels:
                levels.add(self.block.levels[number - 1].parent)
        conditions = tuple(condition for condition in self.block.conditions if condition.reference.level in levels)
        return normal(replace(rule, conditions=conditions), ())

    def _node(self, tree: Tree[Token], what: str) -> TermMap | None:
        """Returns a term that is no literal."""
        term = self._term(tree)
        is_literal = (
            (isinstance(term, Constant) and term.term.startswith('"'))
            or (isinstance(term, Value) and not term.is_iri)
            or (isinstance(term, Template) and term.kind == "literal")
        )
        is_blank = isinstance(term, Template) and term.kind == "blank"
        if is_literal:
            hint = "make an IRI of a field: `ex:{?name}`, or `IRI(?name)` if it is one"
            self._fail_at(f"{what} is no literal", tree, hint)
        elif is_blank and what == "a predicate":
            self._fail_at("a predicate is no blank node", tree, "make an IRI of it: `ex:{?name}`")
        return None if is_literal else term

    def _term(self, tree: Tree[Token]) -> TermMap | None:
        tokens = cast("list[Token]", [child for child in tree.children if isinstance(child, Token)])
        token = tokens[0]
        match tree.data:
            case "name":
                return self._iri(token)
            case "blank":
                return self._template("blank", token, self._parts(token[2:], token))
            case "number":
                return Constant(_number(token))
            case "iri":
                reference = self._reference(next(token for token in tokens if token.type == "VAR"))
                return None if reference is None else Value(reference, is_iri=True)
            case "variable":
                datatype, language = self._annotation(tokens[1:])
                reference = self._reference(token)
                return None if reference is None else Value(reference, datatype=datatype, language=language)
        return self._literal(token, *self._annotation(tokens[1:]))

    def _literal(self, token: Token, datatype: str, language: str) -> TermMap | None:
        """Returns a literal, which may be a template."""
        parts = self._text_parts(token, has_templates=True)
        if all(isinstance(part, str) for part in parts):
            return Constant(literal("".join(cast("list[str]", parts)), datatype or None, language or None))
        return self._template("literal", token, parts, "" if datatype == f"{XSD}string" else datatype, language)

    def _annotation(self, tokens: Sequence[Token]) -> tuple[str, str]:
        """Returns the datatype and the language tag that follow a text or a variable."""
        for token in tokens:
            if token.type == "LANGTAG":
                return "", token[1:].lower()
            if token.type in ("IRI", "NAME"):
                datatype = self._iri(token)
                if isinstance(datatype, Constant):
                    return datatype.term[1:-1], ""
                if datatype is not None:
                    self._fail("a datatype is no template", token, "write the triples of each datatype by themselves")
        return "", ""

    def _iri(self, token: Token) -> TermMap | None:
        """Returns an IRI, which may be a template."""
        if token.startswith("<"):
            return self._template("iri", token, self._parts(token[1:-1], token))
        prefix, _, local = token.partition(":")
        if prefix not in self.prefixes:
            namespace = _NAMESPACES.get(prefix, "http://example.org/")
            similar = did_you_mean(f"{prefix}:", [f"{other}:" for other in self.prefixes])
            declaration = f"declare it: `PREFIX {prefix}: <{namespace}>`"
            hint = f"{similar} Or {declaration}" if similar else declaration
            self._fail(f"the prefix `{prefix}:` is not declared", token, hint)
            self._parts(local, token)
            return None
        return self._template("iri", token, [self.prefixes[prefix], *self._parts(local, token)])

    def _template(
        self, kind: str, token: Token, parts: Sequence[str | Reference | None], datatype: str = "", language: str = ""
    ) -> TermMap | None:
        """Returns the term of parts; None of them stands for an error."""
        if any(part is None for part in parts):
            return None
        merged_parts = merged(cast("Sequence[str | Reference]", parts))
        if any(isinstance(part, Reference) for part in merged_parts):
            if kind == "iri" and not (isinstance(merged_parts[0], str) and _SCHEME.match(merged_parts[0])):
                hint = "begin it with a scheme; `IRI(?name)` is the IRI that a field has"
                self._fail(f"`{token}` makes no absolute IRIs", token, hint)
            return Template(kind, merged_parts, datatype, language)
        text = "".join(cast("Sequence[str]", merged_parts))
        if kind == "blank":
            self._fail(f"the blank node `{token}` would be the same for all records", token, _NO_BLANK)
            return None
        if not is_absolute(text):
            self._fail(f"`{token}` is no absolute IRI", token, "write all of it, with its scheme")
            return None
        return Constant(Term(f"<{text}>"))

    def _text_parts(self, token: Token, has_templates: bool) -> list[str | Reference | None]:
        """Returns the parts of a text in quotes."""
        parts: list[str | Reference | None] = []
        for match in _TEXT_PART.finditer(token[1:-1]):
            escape, brace = match["escape"], match["brace"]
            if escape:
                if escape not in _ESCAPES:
                    self._fail(f"`\\{escape}` is no escape", token, r"escapes: \" \\ \/ \b \f \n \r \t \{ \} \uXXXX")
                parts.append(_ESCAPES.get(escape, escape))
            elif brace and has_templates:
                parts += self._parts(brace, token)
            else:
                parts.append(match[0])
        return parts

    def _parts(self, text: str, token: Token) -> list[str | Reference | None]:
        """Returns the parts of a text with variables in braces."""
        parts: list[str | Reference | None] = []
        for match in re.finditer(r"\{([^{}]*)\}|([{}])|[^{}]+", text):
            if match[1] is not None:
                is_variable = _IS_VARIABLE(match[1])
                if not is_variable:
                    self._fail(f"`{match[0]}` is no variable in braces", token, "write `{?name}`")
                parts.append(self._reference(token, match[1]) if is_variable else None)
            elif match[2]:
                self._fail(f"there is a single `{match[2]}`", token, r"a variable is `{?name}`; in texts write `\{`")
                parts.append(None)
            else:
                parts.append(match[0])
        return parts

    def _reference(self, token: Token, name: str = "") -> Reference | None:
        """Returns the reference of a variable, which may be a part of a token."""
        name = name or str(token)
        if name in self.block.variables:
            self.block.used.add(name)
            return self.block.variables[name].reference
        hint = did_you_mean(name, self.block.variables) or 'name its field in the pattern: `"field": ' + f"{name}`"
        self._fail(f"`{name}` is not in the pattern", token, hint)
        return None

    def _fail(self, message: str, token: Token, hint: str) -> None:
        self.text.fail(message, self.text.origin(*_span(token)), hint)

    def _fail_at(self, message: str, tree: Tree[Token], hint: str) -> None:
        meta: Any = tree.meta
        start = 0 if meta.empty else meta.start_pos
        self.text.fail(message, self.text.origin(start, start + 1 if meta.empty else meta.end_pos), hint)


def _number(token: Token) -> Term:
    """Returns the literal of a number or a truth value, with the datatype that it has in SPARQL."""
    kinds = (datatype for sign, datatype in _NUMBER_TYPES if sign in token.lower())
    datatype = next(kinds, f"{XSD}integer") if token.type == "NUMBER" else f"{XSD}boolean"
    return literal(str(token), datatype)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IS_VARIABLE = re.compile(r"\?[A-Za-z_][A-Za-z0-9_]*").fullmatch
_TEXT_PART = re.compile(r"\\(?P<escape>.)|(?P<brace>\{[^{}\\]*\}|[{}])|[^\\{}]+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", **{sign: sign for sign in '"\\/{}'}}


def merged(parts: Sequence[str | Reference]) -> tuple[str | Reference, ...]:
    """Returns the parts of a template, with neighbouring texts in one."""
    result: list[str | Reference] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)


def _span(token: Token) -> tuple[int, int]:
    return token.start_pos or 0, token.end_pos or 0
