"""The syntax tree of a program in the Jena rule language, which prints as text of the language."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from squall.errors import Origin
from squall.model import Variable
from squall.model.windows import duration
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
"""The schemes that make a word with a colon an IRI, if they are no prefixes."""

WORD = re.compile(r"[^()\[\],\s'\"?<*_#@.-][^()\[\],\s]*")


@dataclass(frozen=True)
class Functor:
    """A structured value, ``name(arguments)``, as a node."""

    name: str
    arguments: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Node:
    """A variable, a term or a functor, with its place."""

    value: Variable | Term | Functor
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _term_text(self.value) if isinstance(self.value, str) else str(self.value)


WINDOWS = ("in", "always", "at", "start", "end", "interval")
"""The names of windows on patterns, and of their times."""


@dataclass(frozen=True)
class PatternWindow:
    """A window on what a pattern matches: ``in(10s)``, ``always(10s step 5s)``, ``at(?t 10s)``; or the times of the
    fact: ``start(?s)``, ``end(?e)``, ``interval(?s ?e)``.

    Attributes:
        mode: One of `WINDOWS`: whether the pattern holds at some instant of the window, at all, or at the instant that
            a variable has; whether it holds since a time, or has ceased to hold.
        length: Integer ms. None for the times of a fact.
        step: The distance of the instants at which the window moves (integer ms); 0: it moves with time.
        variables: The variable of the instant, of ``at``; those of the times of a fact.
    """

    mode: str
    length: int | None = None
    step: int = 0
    variables: tuple[Variable, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        length = [] if self.length is None else [duration(self.length)]
        step = ["step", duration(self.step)] if self.step else []
        return f"{self.mode}({' '.join((*map(str, self.variables), *length, *step))})"


@dataclass(frozen=True)
class Pattern:
    """A triple pattern, ``(subject predicate object)``, which may have a window behind its object."""

    subject: Node
    predicate: Node
    object: Node
    origin: Origin | None = field(default=None, compare=False, repr=False)
    window: PatternWindow | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.subject, self.predicate, self.object)

    @property
    def variable_nodes(self) -> tuple[Node, ...]:
        """The nodes, and the variables of the window as nodes."""
        names = self.window.variables if self.window else ()
        return (*self.nodes, *(Node(name, self.origin) for name in names))

    def __str__(self) -> str:
        window = [str(self.window)] if self.window else []
        return f"({' '.join((*map(str, self.nodes), *window))})"


@dataclass(frozen=True)
class Call:
    """A call of a built-in, ``name(nodes)``, as a clause."""

    name: str
    nodes: tuple[Node, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.nodes))})"


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        name: The name, or None.
        backward: Whether it was written ``head <- body``.
        sources: The streams that its patterns read. Without any, they read all.
    """

    name: str | None
    head: tuple[Clause, ...]
    body: tuple[Clause, ...]
    backward: bool = False
    sources: tuple[StreamSource, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        label = [f"{self.name}:"] if self.name is not None else []
        body, head = [str(clause) for clause in self.body], [str(clause) for clause in self.head]
        clauses = [*head, "<-", *body] if self.backward else [*body, "->", *head]
        return " ".join(["[", *label, *clauses, "]"])

    @property
    def direction(self) -> str:
        """The direction of the arrow: ``forward`` or ``backward``."""
        return "backward" if self.backward else "forward"

    @property
    def canonical(self) -> Rule:
        """The rule with its variables numbered in the order of their first occurrence, body first.

        Rules that differ in the names of their variables alone have equal canonical rules.
        """
        numbers: dict[Variable, Variable] = {}
        return rename_variables(self, lambda variable: numbers.setdefault(variable, Variable(str(len(numbers)))))


Clause = Pattern | Call | Rule


@dataclass(frozen=True)
class StreamSource:
    """A stream that the rules behind a directive ``@source`` read.

    Attributes:
        iri: The IRI of the stream, without brackets.
        window: The text of its window, without brackets; ``""`` for the window that the run gives to the stream.
    """

    iri: str
    window: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"<{self.iri}> [{self.window}]" if self.window else f"<{self.iri}>"


def source_directive(sources: Sequence[StreamSource]) -> str:
    """Returns the directive ``@source`` of some streams; without any, that of all streams."""
    return f"@source {', '.join(map(str, sources)) or '*'} ."


@dataclass(frozen=True)
class RuleSetSubstitution:
    """A rule set of Jena that a program includes by name, and for which a different one of squall is read.

    Attributes:
        name: The name of Jena's rule set.
        replacement: The name of squall's rule set, whose conclusions differ.
    """

    name: str
    replacement: str
    origin: Origin | None = None


@dataclass(frozen=True)
class Program:
    """The rules of a text, in order. Prefixes are resolved, so that the printed text needs no declarations."""

    rules: tuple[Rule, ...]
    name: str = field(default="", compare=False)
    substitutions: tuple[RuleSetSubstitution, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        lines: list[str] = []
        sources: tuple[StreamSource, ...] = ()
        for rule in self.rules:
            if rule.sources != sources:
                sources = rule.sources
                lines.append(source_directive(sources))
            lines.append(str(rule))
        return "".join(f"{line}\n" for line in lines)


def rename_variables(rule: Rule, name: Callable[[Variable], Variable]) -> Rule:
    """Returns the rule with other names for its variables, body first, including the rules in it."""
    body = tuple([_rename_in_clause(clause, name) for clause in rule.body])
    return replace(rule, body=body, head=tuple([_rename_in_clause(clause, name) for clause in rule.head]))


def _rename_in_clause(clause: Clause, name: Callable[[Variable], Variable]) -> Clause:
    match clause:
        case Pattern(subject=subject, predicate=predicate, object=object):
            nodes = [_rename_in_node(node, name) for node in (subject, predicate, object)]
            window = clause.window
            if window is not None:
                window = replace(window, variables=tuple([name(variable) for variable in window.variables]))
            return replace(clause, subject=nodes[0], predicate=nodes[1], object=nodes[2], window=window)
        case Call(nodes=nodes):
            return replace(clause, nodes=tuple([_rename_in_node(node, name) for node in nodes]))
        case Rule():
            return rename_variables(clause, name)


def _rename_in_node(node: Node, name: Callable[[Variable], Variable]) -> Node:
    match node.value:
        case Variable():
            return replace(node, value=name(node.value))
        case Functor(name=functor, arguments=arguments):
            return replace(node, value=Functor(functor, tuple([_rename_in_node(inner, name) for inner in arguments])))
        case _:
            return node


def _term_text(term: Term) -> str:
    """Returns a term as text of the language."""
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
    """Returns whether an IRI can be written without angle brackets."""
    return text.partition(":")[0] in SCHEMES and WORD.fullmatch(text) is not None
