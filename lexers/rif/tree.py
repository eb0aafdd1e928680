"""The tree of a RIF document, whichever syntax it was written in; it prints as presentation syntax.

Source: RIF Basic Logic Dialect (second edition), sections 2.2 to 2.6. Prefixes and bases are resolved. Places
(`origin`) take no part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import cast

from squall.errors import Origin
from squall.rdf import OWL, RDF, RDFS, XSD, XSD_STRING

RIF = "http://www.w3.org/2007/rif#"
IRI = RIF + "iri"
LOCAL = RIF + "local"
PLAIN = RDF + "PlainLiteral"


@dataclass(frozen=True)
class Meta:
    """``(* id frames *)``: the name of what follows, and what is said about it."""

    id: Const | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class _Part:
    """What any part has: perhaps meta-data in front of it, and a place."""

    meta: Meta | None = field(default=None, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Const(_Part):
    """A constant: a lexical form in a symbol space (an IRI). A text with a language is in `PLAIN`, as ``text@lang``."""

    lexical: str
    space: str


@dataclass(frozen=True)
class Var(_Part):
    """A variable by name, without its question mark."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True)
class Expr(_Part):
    """``op(arguments)`` as a term: a function applied to terms. names: those of named arguments, for each one."""

    op: Const
    arguments: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class List(_Part):
    """``List(items | rest)``: a closed list, or with a rest an open one."""

    items: tuple[Term, ...] = ()
    rest: Term | None = None


@dataclass(frozen=True)
class External(_Part):
    """``External(content)``: a function or a predicate that is defined outside, as a term or a formula."""

    content: Expr | Atom


Term = Const | Var | Expr | List | External


@dataclass(frozen=True)
class Atom(_Part):
    """``op(arguments)`` as a formula. names: those of named arguments, for each one."""

    op: Const
    arguments: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Equal(_Part):
    """``left = right``."""

    left: Term
    right: Term


@dataclass(frozen=True)
class Member(_Part):
    """``instance # cls``."""

    instance: Term
    cls: Term


@dataclass(frozen=True)
class Subclass(_Part):
    """``sub ## sup``."""

    sub: Term
    sup: Term


@dataclass(frozen=True)
class Frame(_Part):
    """``object[attribute -> value ...]``."""

    object: Term
    slots: tuple[tuple[Term, Term], ...] = ()


Atomic = Atom | Equal | Member | Subclass | Frame


@dataclass(frozen=True)
class And(_Part):
    """All of the formulas; without any it is true."""

    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Or(_Part):
    """One of the formulas at least; without any it is false."""

    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Exists(_Part):
    """``Exists variables (formula)``."""

    variables: tuple[Var, ...]
    formula: Formula


Formula = Atomic | And | Or | Exists | External


@dataclass(frozen=True)
class Implies(_Part):
    """``conclusion :- condition``."""

    conclusion: Atomic | And
    condition: Formula


@dataclass(frozen=True)
class Forall(_Part):
    """``Forall variables (formula)``."""

    variables: tuple[Var, ...]
    formula: Implies | Atomic


@dataclass(frozen=True)
class Group(_Part):
    """Rules, facts and groups of them."""

    sentences: tuple[Sentence, ...] = ()


Sentence = Group | Forall | Implies | Atomic


@dataclass(frozen=True)
class Import(_Part):
    """``Import(location profile)``: of a RIF document, or under a profile of something else."""

    location: str
    profile: str | None = None


@dataclass(frozen=True)
class Document(_Part):
    """A document; `name` is that of its text."""

    imports: tuple[Import, ...] = ()
    group: Group | None = None
    name: str = field(default="", compare=False, kw_only=True)

    def __str__(self) -> str:
        from squall.lexers.rif.printing import presentation

        return presentation(self)


Node = Term | Formula | Implies | Forall | Group | Import | Document


def parts(node: Node | None, outside: bool = True) -> Iterator[Node]:
    """A node and all that it is made of, meta-data apart, in the order of the text. outside: also what is in an
    `External`."""
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
    elif isinstance(value, _Part):
        yield cast("Node", value)


def text_constant(text: str, language: str = "") -> Const:
    """The constant of a text, which may have a language."""
    return Const(f"{text}@{language}", PLAIN) if language else Const(text, XSD_STRING)


def leading(node: Node) -> Node | None:
    """The part with which the presentation syntax of a node begins, if that may have meta-data of its own: those of
    both stand in front, the whole's first."""
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
"""The prefixes that need no declaration: the W3C's own cases use them without one."""

NUMBERS = {XSD + "integer": r"[+-]?[0-9]+", XSD + "decimal": r"[+-]?[0-9]*\.[0-9]+"}
NUMBERS[XSD + "double"] = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+"
"""The numbers that need no quotes, by datatype."""
