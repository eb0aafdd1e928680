"""The syntax tree of a RIF document, and its text in the presentation syntax.

The tree is the same whichever syntax the document was written in, and its text is lexed to an equal tree. Prefixes and
bases are resolved. `origin` does not take part in equality.

Source: RIF Basic Logic Dialect (second edition), sections 2.2 to 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import cast

from squall.errors import Origin
from squall.rdf import OWL, RDF, RDFS, XSD, XSD_STRING, iri, literal

RIF = "http://www.w3.org/2007/rif#"
IRI = RIF + "iri"
LOCAL = RIF + "local"
PLAIN = RDF + "PlainLiteral"


@dataclass(frozen=True)
class Meta:
    """The metadata of a node, ``(* id frames *)``: its identifier and statements about it."""

    id: Const | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class _Node:
    """The common fields of all nodes: optional metadata and the place in the text."""

    meta: Meta | None = field(default=None, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Const(_Node):
    """A constant: a lexical form in a symbol space, which is an IRI.

    A text with a language is in the symbol space `PLAIN`, as ``text@lang``.
    """

    lexical: str
    space: str


@dataclass(frozen=True)
class Var(_Node):
    """A variable. Its name has no question mark."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True)
class Expr(_Node):
    """A function applied to terms, ``op(arguments)``, as a term.

    Attributes:
        names: The names of the arguments, if they are named: one for each.
    """

    op: Const
    arguments: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class List(_Node):
    """A list, ``List(items | rest)``. It is closed without a rest, and open with one."""

    items: tuple[Term, ...] = ()
    rest: Term | None = None


@dataclass(frozen=True)
class External(_Node):
    """A call of an external function or predicate, ``External(content)``, as a term or a formula."""

    content: Expr | Atom


Term = Const | Var | Expr | List | External


@dataclass(frozen=True)
class Atom(_Node):
    """A predicate applied to terms, ``op(arguments)``, as a formula.

    Attributes:
        names: The names of the arguments, if they are named: one for each.
    """

    op: Const
    arguments: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Equal(_Node):
    """An equality, ``left = right``."""

    left: Term
    right: Term


@dataclass(frozen=True)
class Member(_Node):
    """A class membership, ``instance # cls``."""

    instance: Term
    cls: Term


@dataclass(frozen=True)
class Subclass(_Node):
    """A subclass relation, ``sub ## sup``."""

    sub: Term
    sup: Term


@dataclass(frozen=True)
class Frame(_Node):
    """A frame, ``object[attribute -> value ...]``."""

    object: Term
    slots: tuple[tuple[Term, Term], ...] = ()


Atomic = Atom | Equal | Member | Subclass | Frame


@dataclass(frozen=True)
class And(_Node):
    """A conjunction. It is true if it is empty."""

    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Or(_Node):
    """A disjunction. It is false if it is empty."""

    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Exists(_Node):
    """An existential formula, ``Exists variables (formula)``."""

    variables: tuple[Var, ...]
    formula: Formula


Formula = Atomic | And | Or | Exists | External


@dataclass(frozen=True)
class Implies(_Node):
    """A rule without its quantifier, ``conclusion :- condition``."""

    conclusion: Atomic | And
    condition: Formula


@dataclass(frozen=True)
class Forall(_Node):
    """A universally quantified rule or fact, ``Forall variables (formula)``."""

    variables: tuple[Var, ...]
    formula: Implies | Atomic


@dataclass(frozen=True)
class Group(_Node):
    """A group of rules, facts and groups."""

    sentences: tuple[Sentence, ...] = ()


Sentence = Group | Forall | Implies | Atomic


@dataclass(frozen=True)
class Import(_Node):
    """An import, ``Import(location profile)``.

    Attributes:
        location: The IRI of the imported document.
        profile: The IRI of the import profile, for RDF and OWL documents. None means that the document is RIF.
    """

    location: str
    profile: str | None = None


@dataclass(frozen=True)
class Document(_Node):
    """A document.

    Attributes:
        name: The name of its text.
    """

    imports: tuple[Import, ...] = ()
    group: Group | None = None
    name: str = field(default="", compare=False, kw_only=True)

    def __str__(self) -> str:
        return _document_text(self)


Node = Term | Formula | Implies | Forall | Group | Import | Document


def parts(node: Node | None, outside: bool = True) -> Iterator[Node]:
    """Yields a node and all of its descendants but metadata, in the order of the text.

    Args:
        node: The node. None has no descendants.
        outside: Whether to descend into `External` nodes.
    """
    if node is None:
        return
    yield node
    if isinstance(node, External) and not outside:
        return
    for node_field in fields(node):
        if node_field.name not in ("meta", "origin"):
            for inner in _nodes(getattr(node, node_field.name)):
                yield from parts(inner, outside)


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, tuple):
        for inner in value:
            yield from _nodes(inner)
    elif isinstance(value, _Node):
        yield cast("Node", value)


def text_constant(text: str, language: str = "") -> Const:
    """Returns the constant for a text, which may have a language."""
    return Const(f"{text}@{language}", PLAIN) if language else Const(text, XSD_STRING)


def leading(node: Node) -> Node | None:
    """Returns the child with which the text of a node begins, if that child may have metadata of its own.

    The metadata of both stand in front of the text, those of the node first.
    """
    match node:
        case Implies(conclusion=first) | Equal(left=first) | Member(instance=first):
            return first
        case Subclass(sub=first) | Frame(object=first):
            return first
        case _:
            return None


PREFIXES = {
    "rif": RIF,
    "xs": XSD,
    "rdf": RDF,
    "rdfs": RDFS,
    "owl": OWL,
    "func": "http://www.w3.org/2007/rif-builtin-function#",
    "pred": "http://www.w3.org/2007/rif-builtin-predicate#",
}
"""The prefixes that need no declaration. The W3C's own test cases use them without one."""

NUMBERS = {XSD + "integer": r"[+-]?[0-9]+", XSD + "decimal": r"[+-]?[0-9]*\.[0-9]+"}
NUMBERS[XSD + "double"] = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+"
"""The lexical forms of the numbers that need no quotes, as regular expressions by datatype."""

_NAME = re.compile(r"[^\W0-9](?:[\w.·]|-(?!>))*")
_LOCAL = re.compile(r"[^\W0-9_](?:[\w.·]|-(?!>))*")
_TAG = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")
_NOT_IN_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20]')


def _document_text(document: Document) -> str:
    directives = [*map(node_text, document.imports)]
    if document.group:
        directives.append("\n".join(_group_lines(document.group)))
    inside = "".join(f"  {line}\n" for directive in directives for line in directive.split("\n"))
    return f"{_metadata_text(document)}Document(\n{inside})\n"


def _group_lines(group: Group) -> Iterator[str]:
    yield f"{_metadata_text(group)}Group("
    for sentence in group.sentences:
        lines = _group_lines(sentence) if isinstance(sentence, Group) else [node_text(sentence)]
        yield from (f"  {line}" for line in lines)
    yield ")"


def node_text(node: Node) -> str:
    """Returns the text of a node, with its metadata in front."""
    return _metadata_text(node) + _bare_text(node)


def _bare_text(node: Node) -> str:
    """Returns the text of a node without the metadata in front of it."""
    # In one piece: a flat match, a line of syntax for each node.
    match node:
        case Document():
            return _document_text(node)
        case Group():
            return " ".join(line.strip() for line in _group_lines(node)).removeprefix(_metadata_text(node))
        case Import(location=location, profile=profile):
            return f"Import({' '.join(iri(part_iri) for part_iri in (location, profile) if part_iri is not None)})"
        case Forall(variables=names, formula=formula):
            return f"Forall {_listed(names)} ({node_text(formula)})"
        case Implies(conclusion=conclusion, condition=condition):
            return f"{_bare_text(conclusion)} :- {node_text(condition)}"
        case And(formulas=formulas) | Or(formulas=formulas):
            return f"{type(node).__name__}({_listed(formulas)})"
        case Exists(variables=names, formula=formula):
            return f"Exists {_listed(names)} ({node_text(formula)})"
        case Equal(left=left, right=right):
            return f"{_bare_text(left)} = {node_text(right)}"
        case Member(instance=left, cls=right):
            return f"{_bare_text(left)} # {node_text(right)}"
        case Subclass(sub=left, sup=right):
            return f"{_bare_text(left)} ## {node_text(right)}"
        case Frame(object=first, slots=slots):
            inside = " ".join(f"{node_text(attribute)} -> {node_text(value)}" for attribute, value in slots)
            return f"{_bare_text(first)}[{inside}]"
        case Atom() | Expr():
            return f"{_bare_text(node.op)}({_arguments(node)})"
        case External(content=content):
            return f"External({_bare_text(content)})"
        case List(items=items, rest=rest):
            return f"List({_listed(items)}{f' | {node_text(rest)}' if rest else ''})"
        case Var(name=name):
            return f"?{_name_text(name)}"
        case Const():
            return _constant_text(node)


def _listed(nodes: Iterable[Node]) -> str:
    return " ".join(map(node_text, nodes))


def _arguments(node: Atom | Expr) -> str:
    if not node.names:
        return _listed(node.arguments)
    named_arguments = zip(node.names, node.arguments, strict=True)
    return " ".join(f"{_name_text(name)} -> {node_text(value)}" for name, value in named_arguments)


def _name_text(name: str) -> str:
    return name if _NAME.fullmatch(name) else literal(name)


def _constant_text(constant: Const) -> str:
    lexical, space = constant.lexical, constant.space
    if space == IRI and not _NOT_IN_IRI.search(lexical):
        return iri(lexical)
    if space == LOCAL and _LOCAL.fullmatch(lexical):
        return f"_{lexical}"
    if space in NUMBERS and re.fullmatch(NUMBERS[space], lexical):
        return lexical
    if space == XSD_STRING:
        return literal(lexical)
    text, at, language = lexical.rpartition("@")
    if space == PLAIN and at and _TAG.fullmatch(language):
        return f"{literal(text)}@{language}"
    return f"{literal(lexical)}^^{iri(space)}"


def _metadata_text(node: Node) -> str:
    """Returns the text of the metadata of a node and of its leading children, the outer ones first.

    Where only an inner node has metadata, the outer ones are printed as empty.
    """
    metas = []
    first: Node | None = node
    while first is not None:
        metas.append(first.meta)
        first = leading(first)
    while metas and metas[-1] is None:
        metas.pop()
    return "".join(f"{_meta_text(meta)} " for meta in metas)


def _meta_text(meta: Meta | None) -> str:
    if meta is None:
        return "(* *)"
    frames = [node_text(frame) for frame in meta.frames]
    conjunction = frames if len(frames) < 2 else [f"And({' '.join(frames)})"]
    return " ".join(["(*", *([_bare_text(meta.id)] if meta.id else []), *conjunction, "*)"])
