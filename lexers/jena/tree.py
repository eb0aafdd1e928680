"""The tree of a program in the Jena rule language, which prints as text of the language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from squall.errors import Origin
from squall.model import Variable
from squall.rdf import OWL, RDF, RDFS, XSD, XSD_STRING, Term, iri, iri_text, is_blank, is_iri, parts

PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "drdfs": "urn:x-hp-direct-predicate:http_//www.w3.org/2000/01/rdf-schema#",
    "owl": OWL,
    "jr": "http://jena.hpl.hp.com/2003/JenaReasoner#",
    "rb": "urn:x-hp-jena:rubrik/",
    "eg": "urn:x-hp:eg/",
    "xsd": XSD,
}
"""The prefixes that need no declaration."""

SCHEMES = frozenset({"http", "https", "urn", "file", "ftp", "mailto"})
"""What before a colon makes a word an IRI if it is no prefix."""

WORD = re.compile(r"[^()\[\],\s'\"?<*_#@.-][^()\[\],\s]*")


@dataclass(frozen=True)
class Functor:
    """``name(arguments)`` as a node: a structured value."""

    name: str
    arguments: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Node:
    """A variable, a term or a functor in its place."""

    value: Variable | Term | Functor
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _printed(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Pattern:
    """``(subject predicate object)``."""

    subject: Node
    predicate: Node
    object: Node
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.subject, self.predicate, self.object)

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.nodes))})"


@dataclass(frozen=True)
class Call:
    """``name(nodes)`` as a clause: a built-in."""

    name: str
    nodes: tuple[Node, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.nodes))})"


@dataclass(frozen=True)
class Rule:
    """A rule. `backward` if it was written ``head <- body``; `name` is None where it has none."""

    name: str | None
    head: tuple[Clause, ...]
    body: tuple[Clause, ...]
    backward: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        label = [f"{self.name}:"] if self.name is not None else []
        body, head = [str(clause) for clause in self.body], [str(clause) for clause in self.head]
        clauses = [*head, "<-", *body] if self.backward else [*body, "->", *head]
        return " ".join(["[", *label, *clauses, "]"])

    @property
    def direction(self) -> str:
        """``forward`` or ``backward``, as it was written."""
        return "backward" if self.backward else "forward"

    @property
    def canonical(self) -> Rule:
        """The rule with its variables numbered in the order of their first occurrence, body first.

        Rules that differ in the names of their variables alone have equal canonical rules.
        """
        numbers: dict[Variable, Variable] = {}
        return renamed(self, lambda variable: numbers.setdefault(variable, Variable(str(len(numbers)))))


Clause = Pattern | Call | Rule


@dataclass(frozen=True)
class Instead:
    """A rule set of Jena's that is included by its name, and that of ours which is read for it, though it concludes
    something else."""

    name: str
    own: str
    origin: Origin | None = None


@dataclass(frozen=True)
class Program:
    """The rules of a text, in order. Prefixes are resolved: what is printed needs no declarations."""

    rules: tuple[Rule, ...]
    name: str = field(default="", compare=False)
    instead: tuple[Instead, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return "".join(f"{rule}\n" for rule in self.rules)


def renamed(rule: Rule, name: Callable[[Variable], Variable]) -> Rule:
    """The rule with other names for its variables, body first, rules in it included."""
    body = tuple([_renamed(clause, name) for clause in rule.body])
    return replace(rule, body=body, head=tuple([_renamed(clause, name) for clause in rule.head]))


def _renamed(clause: Clause, name: Callable[[Variable], Variable]) -> Clause:
    match clause:
        case Pattern(subject=subject, predicate=predicate, object=object):
            nodes = [_named(node, name) for node in (subject, predicate, object)]
            return replace(clause, subject=nodes[0], predicate=nodes[1], object=nodes[2])
        case Call(nodes=nodes):
            return replace(clause, nodes=tuple([_named(node, name) for node in nodes]))
        case Rule():
            return renamed(clause, name)


def _named(node: Node, name: Callable[[Variable], Variable]) -> Node:
    match node.value:
        case Variable():
            return replace(node, value=name(node.value))
        case Functor(name=functor, arguments=arguments):
            return replace(node, value=Functor(functor, tuple([_named(inner, name) for inner in arguments])))
        case _:
            return node


def _printed(term: Term) -> str:
    """A term as text of the language."""
    if is_iri(term):
        return _prefixed(iri_text(term)) or term
    if is_blank(term):
        return f"_{term[2:]}"
    lexical, datatype, _ = parts(term)
    # At the start of a line `#` would begin a comment; blanks there are not part of the text.
    quoted = re.sub(r"(?<=\n)#", " #", lexical.replace("\\", "\\\\").replace("'", "\\'"))
    if datatype == XSD_STRING:
        return f"'{quoted}'"
    return f"'{quoted}'^^{datatype if _is_bare(datatype) else iri(datatype)}"


def _prefixed(text: str) -> str | None:
    for prefix, namespace in PREFIXES.items():
        word = f"{prefix}:{text.removeprefix(namespace)}"
        if text.startswith(namespace) and WORD.fullmatch(word):
            return word
    return None


def _is_bare(text: str) -> bool:
    """Whether an IRI is read as itself without angle brackets."""
    return text.partition(":")[0] in SCHEMES and WORD.fullmatch(text) is not None
