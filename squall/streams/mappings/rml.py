"""Reads mappings in RML (Turtle): the part of it that streams of JSON and CSV need.

The vocabulary is that of RML-Core (``http://w3id.org/rml/``), or that of the first RML with R2RML
(``http://semweb.mmlab.be/ns/rml#``, ``http://www.w3.org/ns/r2rml#``). Event times, which RML does not have, are
properties of the logical source in the namespace ``urn:x-squall:``. What is not supported is refused by its name.

Sources: RML-Core (https://w3id.org/rml/core/spec); R2RML (W3C 2012); Dimou et al. 2014, "RML: A Generic Language for
Integrated RDF Mappings of Heterogeneous Data".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import RdfFormat

from squall.errors import LexerError, Origin, SquallError, did_you_mean, raise_all
from squall.rdf import Term, is_iri, literal, term
from squall.streams.formats import reason_of
from squall.streams.mappings.evaluation import is_part_of_iri
from squall.streams.mappings.model import (
    Constant,
    Level,
    Mapping,
    Reference,
    Rule,
    Template,
    TermMap,
    Value,
    mapping_of,
    normal,
    timed,
)
from squall.streams.mappings.paths import Steps, steps_of
from squall.streams.mappings.short_form import merged

Node = pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple
_BASE = "urn:x-squall:mapping/"
"""The IRI against which relative ones are resolved, such as names of triples maps."""

NAMESPACES = ("http://w3id.org/rml/", "http://semweb.mmlab.be/ns/rml#", "http://www.w3.org/ns/r2rml#")
"""The namespaces of RML; a name means the same in each."""
QUERY_LANGUAGES = "http://semweb.mmlab.be/ns/ql#"
OWN = "urn:x-squall:"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ANNOTATIONS = (
    _RDF,
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://purl.org/dc/terms/",
    "http://purl.org/dc/elements/",
)
"""The namespaces of properties that say nothing about the triples."""
_DEFAULT_GRAPH = "defaultGraph"
_TERM_PROPERTIES = frozenset({"constant", "reference", "template", "termType", "datatype", "language"})
_UNITS = {"ms": 1, "s": 1000}
_REFUSED = {
    "parentTriplesMap": "a join needs a second source: write a rule over two streams instead",
    "joinCondition": "a join needs a second source: write a rule over two streams instead",
    "subjectMap": "a triples map has one subject map",
    "logicalTable": "SQL is no stream: name a logical source of JSON or CSV (`rml:logicalSource`)",
    "column": "SQL is no stream: a column of CSV is `rml:reference`",
    "query": "a source of records has no queries",
    "sqlQuery": "SQL is no stream",
    "functionExecution": "functions are for programs: `BIND` in a query, or a built-in in a rule",
    "functionValue": "functions are for programs: `BIND` in a query, or a built-in in a rule",
    "condition": "conditions are for programs, or for the short form",
    "languageMap": "the language tag of a map is fixed: `rml:language`",
    "datatypeMap": "the datatype of a map is fixed: `rml:datatype`",
}
"""Hints for names of RML that are not supported."""


class Document(NamedTuple):
    """A mapping in RML.

    Attributes:
        mapping: The mapping.
        is_csv: Whether its references are columns of CSV, and no paths into JSON; None: it does not say.
    """

    mapping: Mapping
    is_csv: bool | None


def read(text: str, name: str, is_csv: bool = False) -> Document:
    """Returns the mapping of a text in RML.

    Args:
        text: The text, in Turtle.
        name: Its name, for messages.
        is_csv: Whether references are columns of CSV if the text does not say so.

    Raises:
        LexerError: It is no Turtle, or no mapping, or has something that is not supported.
        Errors: It has several errors.
    """
    plain = text.removeprefix("\ufeff")
    try:
        quads = list(pyoxigraph.parse(plain, format=RdfFormat.TURTLE, base_iri=_BASE))
    except SyntaxError as error:
        origin = Origin(name, plain, error.lineno or 1, error.offset or 1)
        raise LexerError(f"the mapping is no Turtle: {reason_of(error)}", origin) from error
    reader = _Reader(quads, name, plain, is_csv)
    rules = list(reader.rules())
    raise_all(reader.errors)
    return Document(mapping_of(rules), reader.is_csv)


_RECORD = Reference(0, ())


@dataclass
class _Map:
    """A triples map, as far as it has been read.

    Attributes:
        steps: The steps of its iterator from the record.
        is_csv: Whether its references are columns.
        levels: Its levels, to which each reference through arrays adds its own.
        base: The level and path of the items of its iterator.
        time: The path of the time from the record, and the unit; None: there is none.
    """

    steps: Steps
    is_csv: bool
    levels: list[Level] = field(default_factory=list)
    base: Reference = _RECORD
    time: tuple[Steps, int] | None = None

    def __post_init__(self) -> None:
        self.base = self.reference(self.steps)

    @property
    def is_object(self) -> bool:
        """Whether the iterator ends at an object in the record, of which there may be none."""
        return bool(self.steps) and self.steps[-1] is not None

    def reference(self, steps: Sequence[str | int | None]) -> Reference:
        """Returns the reference of a path in the items of the iterator. Arrays on it are levels of their own."""
        level, path = self.base.level, list(self.base.path)
        for step in steps:
            if step is None:
                self.levels.append(Level(level, tuple(path)))
                level, path = len(self.levels), []
            else:
                path.append(step)
        return Reference(level, tuple(path))


class _Reader:
    """Reads the graph of a mapping."""

    def __init__(self, quads: Sequence[pyoxigraph.Quad], name: str, text: str, is_csv: bool) -> None:
        self.properties: dict[Node, list[tuple[str, Node]]] = {}
        for quad in quads:
            self.properties.setdefault(quad.subject, []).append((quad.predicate.value, quad.object))
        self.name = name
        self.text = text
        self.default_is_csv = is_csv
        self.is_csv: bool | None = None
        self.errors: list[SquallError] = []
        self.sources: dict[str, None] = {}

    def rules(self) -> Iterator[Rule]:
        """Yields the rules of all triples maps."""
        names = {"logicalSource", "logicalTable", "subjectMap", "subject", "predicateObjectMap"}
        maps = {
            node for node, pairs in self.properties.items() if not names.isdisjoint(_local(iri) for iri, _ in pairs)
        }
        if not maps:
            hint = "a triples map has `rml:logicalSource`, `rml:subjectMap` and `rml:predicateObjectMap`"
            self.errors.append(LexerError(f"`{self.name}` has no triples map", self._origin(""), hint))
        for node in sorted(maps, key=str):
            yield from self._triples_map(node)
        if len(self.sources) > 1:
            sources = ", ".join(self.sources)
            hint = "write a mapping for each; the address of the source says which data it is for"
            self._fail(f"the mapping has several sources: {sources}", "source", hint)

    def _triples_map(self, node: Node) -> Iterator[Rule]:
        allowed = ("logicalSource", "subjectMap", "subject", "predicateObjectMap", "baseIRI")
        parts = self._properties(node, allowed, "a triples map")
        if "baseIRI" in parts:
            self._fail("`baseIRI` is not supported", "baseIRI", "write templates with a scheme")
        source = self._single(parts, "logicalSource", "a triples map")
        triples_map = self._logical_source(source) if source is not None else None
        subject_node = self._single({"s": parts.get("subjectMap", []) + parts.get("subject", [])}, "s", "a triples map",
                                    "subject map")  # fmt: skip
        if triples_map is None or subject_node is None:
            return
        is_shortcut = "subject" in parts
        subject_parts = {} if is_shortcut else self._properties(
            subject_node, (*_TERM_PROPERTIES, "class", "graphMap", "graph", "optional"), "a subject map"
        )  # fmt: skip
        subject = self._term_map(subject_node, is_shortcut, triples_map, "subject")
        graphs = self._graphs(subject_parts, triples_map)
        optional = triples_map.is_object or [*map(_text, subject_parts.get("optional", []))] == ["true"]
        pairs: list[tuple[TermMap, TermMap, list[TermMap | None]]] = [
            (Constant(Term(f"<{_RDF}type>")), Constant(self._constant(kind)), graphs)
            for kind in subject_parts.get("class", [])
        ]
        for map_node in parts.get("predicateObjectMap", []):
            pairs += self._predicate_object_map(map_node, triples_map, graphs)
        if not pairs and not self.errors:
            hint = "add `rml:predicateObjectMap`"
            self._fail(f"the triples map {self._shown(node)} makes no triples", "subjectMap", hint)
        subjects = [] if subject is None else [subject]
        for (predicate, object, names), subject_term in product(pairs, subjects):
            for graph in names:
                yield self._rule(triples_map, subject_term, predicate, object, graph, optional)

    def _rule(
        self,
        triples_map: _Map,
        subject: TermMap,
        predicate: TermMap,
        object: TermMap,
        graph: TermMap | None,
        optional: bool,
    ) -> Rule:
        is_optional = optional and not isinstance(subject, Constant)
        rule = Rule(tuple(triples_map.levels), subject, predicate, object, graph, is_optional=is_optional)
        rule = _with_base(rule, triples_map.base.level)
        return rule if triples_map.time is None else normal(timed(rule, *triples_map.time))

    def _predicate_object_map(
        self, node: Node, triples_map: _Map, graphs: list[TermMap | None]
    ) -> Iterator[tuple[TermMap, TermMap, list[TermMap | None]]]:
        allowed = ("predicateMap", "predicate", "objectMap", "object", "graphMap", "graph")
        parts = self._properties(node, allowed, "a predicate-object map")
        own_graphs = self._graphs(parts, triples_map) if "graphMap" in parts or "graph" in parts else []
        all_graphs = [*(graphs if graphs != [None] or not own_graphs else []), *own_graphs]
        terms: dict[str, list[TermMap]] = {}
        for kind in ("predicate", "object"):
            nodes = [(value, False) for value in parts.get(f"{kind}Map", [])]
            nodes += [(value, True) for value in parts.get(kind, [])]
            if not nodes:
                self._fail(f"a predicate-object map has no {kind}", "predicateObjectMap", f"add `rml:{kind}Map`")
            maps = [self._term_map(value, is_shortcut, triples_map, kind) for value, is_shortcut in nodes]
            terms[kind] = [term_map for term_map in maps if term_map is not None]
        for predicate in terms["predicate"]:
            for object in terms["object"]:
                yield predicate, object, all_graphs

    def _graphs(self, parts: dict[str, list[Node]], triples_map: _Map) -> list[TermMap | None]:
        nodes = [(node, False) for node in parts.get("graphMap", [])]
        nodes += [(node, True) for node in parts.get("graph", [])]
        graphs: list[TermMap | None] = []
        for node, is_shortcut in nodes:
            graph = self._term_map(node, is_shortcut, triples_map, "graph")
            if graph is not None:
                is_default = isinstance(graph, Constant) and _local(graph.term[1:-1]) == _DEFAULT_GRAPH
                graphs.append(None if is_default else graph)
        return graphs or [None]

    # Logical sources

    def _logical_source(self, node: Node) -> _Map | None:
        allowed = ("source", "iterator", "referenceFormulation", "time", "unit")
        parts = self._properties(node, allowed, "a logical source")
        for source in parts.get("source", []):
            self.sources[self._shown(source)] = None
        is_csv = self._formulation(parts)
        steps: Steps = ()
        if iterators := parts.get("iterator", []):
            if is_csv:
                self._fail("a source of CSV has no iterator: each row is an item", "iterator", "leave it out")
            else:
                steps = self._steps(_text(iterators[0]), "iterator")
        time = None
        if times := parts.get("time", []):
            path: Steps = (_text(times[0]),) if is_csv else self._steps(_text(times[0]), "time")
            unit = _text(parts["unit"][0]) if "unit" in parts else "ms"
            if unit not in _UNITS:
                self._fail(f"`{unit}` is no unit of time", "unit", "units: `ms` and `s`")
            time = (path, _UNITS.get(unit, 1))
        return _Map(steps, is_csv, time=time)

    def _formulation(self, parts: dict[str, list[Node]]) -> bool:
        """Returns whether references are columns of CSV."""
        for node in parts.get("referenceFormulation", []):
            name = _text(node)
            local = name.removeprefix(QUERY_LANGUAGES) if name.startswith(QUERY_LANGUAGES) else _local(name)
            if local not in ("CSV", "JSONPath"):
                hint = "supported are `ql:JSONPath` and `ql:CSV`"
                self._fail(f"the reference formulation {self._shown(node)} is not supported", str(local or name), hint)
            is_csv = local == "CSV"
            if self.is_csv not in (None, is_csv):
                hint = "write a mapping for each"
                self._fail("the mapping is for JSON and for CSV", "referenceFormulation", hint)
            self.is_csv = is_csv
            return is_csv
        return self.default_is_csv

    def _steps(self, text: str, name: str) -> Steps:
        try:
            return steps_of(text)
        except ValueError as error:
            self._fail(str(error), text if text in self.text else name)
            return ()

    # Term maps

    def _term_map(self, node: Node, is_shortcut: bool, triples_map: _Map, position: str) -> TermMap | None:
        if is_shortcut:
            return self._checked_constant(node, position)
        extra = {"subject": ("class", "graphMap", "graph", "optional"), "object": ()}.get(position, ())
        parts = self._properties(node, (*_TERM_PROPERTIES, *extra), f"{_with_article(position)} map")
        ways = [name for name in ("constant", "reference", "template") if name in parts]
        if len(ways) != 1 or len(parts[ways[0]]) != 1:
            what = f"`{ways[0]}` and `{ways[-1]}`" if len(ways) > 1 else "no constant, reference or template"
            self._fail(f"{_with_article(position)} map has {what}", f"{position}Map", "it has exactly one of them")
            return None
        value = parts[ways[0]][0]
        if ways == ["constant"]:
            return self._checked_constant(value, position)
        datatype, language = self._annotation(parts)
        kind = self._term_type(parts, ways[0], position, bool(datatype or language))
        if ways == ["reference"]:
            reference = self._reference(_text(value), triples_map)
            if kind == "blank":
                return Template("blank", (reference,))
            return Value(reference, kind == "iri", datatype, language.lower())
        return self._template(_text(value), kind, datatype, language.lower(), triples_map)

    def _checked_constant(self, node: Node, position: str) -> TermMap:
        """Returns a constant, which has to be an IRI unless it is an object."""
        constant = self._constant(node)
        if position != "object" and not is_iri(constant):
            self._fail(f"{_with_article(position)} is no literal", _text(node), "name an IRI")
        return Constant(constant)

    def _annotation(self, parts: dict[str, list[Node]]) -> tuple[str, str]:
        """Returns the datatype and the language of a term map."""
        datatype, language = (parts.get(name, []) for name in ("datatype", "language"))
        if datatype and not isinstance(datatype[0], pyoxigraph.NamedNode):
            self._fail(f"the datatype {self._shown(datatype[0])} is no IRI", "datatype", "write `xsd:double`")
        tag = _text(language[0]) if language else ""
        if tag and not _LANGUAGE_TAG.fullmatch(tag):
            self._fail(f"`{tag}` is no language tag", tag, "tags are like `en` and `de-AT`")
        if datatype and tag:
            self._fail("a term map has a datatype and a language", "language", "leave one of them out")
        return _text(datatype[0]) if datatype else "", tag

    def _term_type(self, parts: dict[str, list[Node]], way: str, position: str, is_literal: bool) -> str:
        """Returns ``iri``, ``blank`` or ``literal`` (R2RML 7.4)."""
        if not (types := parts.get("termType", [])):
            return "literal" if position == "object" and (way == "reference" or is_literal) else "iri"
        kinds = {"IRI": "iri", "BlankNode": "blank", "Literal": "literal", "URI": "iri"}
        kind = kinds.get(_local(_text(types[0])) or "", "")
        if not kind:
            hint = "term types: `rr:IRI`, `rr:BlankNode`, `rr:Literal`"
            self._fail(f"the term type {self._shown(types[0])} is not supported", "termType", hint)
        elif (kind == "literal" and position != "object") or (kind == "blank" and position == "predicate"):
            what = "blank node" if kind == "blank" else kind
            self._fail(f"{_with_article(position)} is no {what}", "termType", "leave the term type out")
        if kind != "literal" and is_literal:
            hint = "leave out the term type, or the datatype and language"
            self._fail(f"{_with_article(position)} with a datatype or a language is a literal", f"{position}Map", hint)
        return kind

    def _template(self, text: str, kind: str, datatype: str, language: str, triples_map: _Map) -> TermMap | None:
        parts: list[str | Reference] = []
        for match in _TEMPLATE_PART.finditer(text):
            if match["reference"] is not None:
                parts.append(self._reference(_ESCAPED.sub(r"\1", match["reference"]), triples_map))
            elif match["brace"]:
                hint = r"a brace that begins no reference is written `\\{`"
                self._fail(f"the template `{text}` has a single `{match['brace']}`", text, hint)
            else:
                parts.append(_ESCAPED.sub(r"\1", match[0]))
        merged_parts = merged(parts)
        if not any(isinstance(part, Reference) for part in merged_parts):
            self._fail(f"the template `{text}` has no reference", text, "`rml:constant` is the same for all records")
            return None
        if kind == "iri" and not (isinstance(merged_parts[0], str) and _SCHEME.match(merged_parts[0])):
            hint = "begin it with a scheme; `rml:reference` with `rr:termType rr:IRI` is the IRI that a field has"
            self._fail(f"the template `{text}` makes no absolute IRIs", text, hint)
        elif kind == "iri" and not all(is_part_of_iri(part) for part in merged_parts if isinstance(part, str)):
            hint = "write what no IRI has percent-encoded"
            self._fail(f"the template `{text}` has characters that no IRI has", text, hint)
        return Template(kind, merged_parts, "" if datatype.endswith("#string") else datatype, language)

    def _reference(self, text: str, triples_map: _Map) -> Reference:
        return triples_map.reference((text,) if triples_map.is_csv else self._steps(text, "reference"))

    def _constant(self, node: Node) -> Term:
        if isinstance(node, pyoxigraph.BlankNode):
            self._fail("a constant is no blank node", "constant", "use a template with `rr:termType rr:BlankNode`")
            return literal("")
        return term(node)

    # The graph

    def _properties(self, node: Node, allowed: Sequence[str], what: str) -> dict[str, list[Node]]:
        """Returns the values of the properties of a node by their names, in the order of their texts."""
        values: dict[str, list[Node]] = {}
        for iri, value in sorted(self.properties.get(node, ()), key=str):
            is_own = iri.startswith(OWN)
            name = iri.removeprefix(OWN) if is_own else _local(iri)
            if name is not None and name in allowed and is_own == (name in ("time", "unit", "optional")):
                values.setdefault(name, []).append(value)
            elif not iri.startswith(_ANNOTATIONS):
                self._refuse(iri, name, allowed, what)
        return values

    def _refuse(self, iri: str, name: str | None, allowed: Sequence[str], what: str) -> None:
        short = name or re.split(r"[/#]", iri)[-1]
        known_parts = f"{what} has {', '.join(f'`{part}`' for part in allowed)}"
        hint = _REFUSED.get(short) or did_you_mean(short, allowed) or known_parts
        self._fail(f"`{short}` of {what} is not supported", short, hint)

    def _single(self, parts: dict[str, list[Node]], name: str, what: str, label: str = "") -> Node | None:
        nodes = parts.get(name, [])
        if len(nodes) == 1:
            return nodes[0]
        label = label or name
        problem = "has no" if not nodes else "has more than one"
        self._fail(f"{what} {problem} {label}", name if nodes else "predicateObjectMap", "it has exactly one")
        return None

    def _shown(self, node: Node) -> str:
        if isinstance(node, pyoxigraph.BlankNode):
            return f"[{', '.join(sorted(self._shown(value) for _, value in self.properties.get(node, ())))}]"
        return f"`{_text(node).removeprefix(_BASE)}`"

    def _fail(self, message: str, word: str, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, self._origin(word), hint))

    def _origin(self, word: str) -> Origin:
        """Returns the first place in the text that has a word: the parser does not say where a node is from."""
        match = re.search(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", self.text) if word else None
        start = match.start() if match else 0
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text.count("\n", 0, start) + 1
        return Origin(self.name, self.text, line, start - line_start + 1, max(1, len(word)))


def _with_base(rule: Rule, base: int) -> Rule:
    """Returns a rule with the levels of its iterator and those that it uses."""
    return normal(rule, (base,) if base else ())


def _text(node: Node) -> str:
    """Returns the IRI, or the lexical form of a literal."""
    return str(node) if isinstance(node, pyoxigraph.Triple) else node.value


def _with_article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _local(iri: str) -> str | None:
    """Returns the name of an IRI in a namespace of RML; None if it is in none."""
    return next((iri[len(namespace) :] for namespace in NAMESPACES if iri.startswith(namespace)), None)


_TEMPLATE_PART = re.compile(r"\{(?P<reference>(?:\\.|[^\\{}])*)\}|(?P<brace>[{}])|(?:\\.|[^\\{}])+", re.DOTALL)
_LANGUAGE_TAG = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_ESCAPED = re.compile(r"\\([{}\\])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
