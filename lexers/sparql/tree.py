"""Trees of SPARQL and its stream extensions, close to the text: frozen data that print as text of their language.

Prefixed names and relative IRIs are resolved. Collections and blank nodes in brackets are triples with blank nodes of
their own. A blank node of a pattern is a variable whose name begins with ``_:``: no text can name it, and ``SELECT *``
does not show it (SPARQL 1.1 Query, section 4.1.4). In a template or in data it is a term.

Source: SPARQL 1.1 Query, section 19; SPARQL 1.1 Update, section 3; for C-SPARQL and RSP-QL what their grammars name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import groupby

from squall.errors import Origin
from squall.rdf import XSD, Term, iri, is_literal, literal, parts
from squall.system import Variable
from squall.windows import duration

Slot = Term | Variable

OPERATORS = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})
"""What is written between its operands; ``+`` and ``-`` before one, too, as ``!`` is."""
MEMBERSHIP = frozenset({"IN", "NOT IN"})
TIMESTAMP = iri("http://larkc.eu/csparql/sparql/jena/ext#timestamp")
"""The function that ``timestamp(?s, ?p, ?o)`` stands for: its name in C-SPARQL's engine."""
_SHORT = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
"""The datatypes of literals that need no quotes, with what these look like."""


def is_unnamed(variable: Variable) -> bool:
    """Whether a variable stands for a blank node of a pattern."""
    return variable.name.startswith("_:")


# Property paths (SPARQL 1.1 Query, section 9)


@dataclass(frozen=True)
class Inverse:
    """``^path``."""

    path: Path

    def __str__(self) -> str:
        return f"(^{self.path})"


@dataclass(frozen=True)
class Steps:
    """``path/path``, two or more."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        return f"({'/'.join(map(str, self.paths))})"


@dataclass(frozen=True)
class Alternative:
    """``path|path``, two or more."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        return f"({'|'.join(map(str, self.paths))})"


@dataclass(frozen=True)
class Repeat:
    """``path*``, ``path+`` or ``path?``, by its mark."""

    path: Path
    mark: str

    def __str__(self) -> str:
        return f"({self.path}{self.mark})"


@dataclass(frozen=True)
class Negated:
    """``!(a|^b)``: any predicate but these, forward or, where some of them are inverse, backward as well."""

    forward: tuple[Term, ...]
    backward: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return f"!({'|'.join([*self.forward, *(f'^{term}' for term in self.backward)])})"


Path = Term | Inverse | Steps | Alternative | Repeat | Negated


# Expressions


@dataclass(frozen=True)
class Call:
    """A function applied to expressions.

    function: a built-in's name in capitals (``STRLEN``, ``ISIRI``, ``IF``, ``COALESCE``), the sign of an operator
    (``||`` and ``&&`` take two or more arguments, ``!`` one, ``+`` and ``-`` one or two), ``IN`` or ``NOT IN`` (the
    arguments after the first are the list), or the term of an IRI (``<http://...>``).
    distinct: ``function(DISTINCT ...)``, for aggregates of others (grammar rule ArgList).
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        first, *others = [expressed(argument) for argument in self.arguments] or [""]
        if self.function in MEMBERSHIP:
            return f"({first} {self.function} ({', '.join(others)}))"
        if self.function in OPERATORS and others:
            return f"({f' {self.function} '.join([first, *others])})"
        if self.function in OPERATORS or self.function == "!":
            return f"({self.function} {first})"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{', '.join([first, *others])})"


@dataclass(frozen=True)
class Aggregate:
    """``COUNT``, ``SUM``, ``MIN``, ``MAX``, ``AVG``, ``SAMPLE`` or ``GROUP_CONCAT`` of an expression, or of solutions
    (``COUNT(*)``: None). separator: of ``GROUP_CONCAT``, where one is written."""

    kind: str
    expression: Expression | None = None
    distinct: bool = False
    separator: str | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        what = "*" if self.expression is None else expressed(self.expression)
        between = "" if self.separator is None else f"; SEPARATOR = {_quoted(self.separator)}"
        return f"{self.kind}({'DISTINCT ' if self.distinct else ''}{what}{between})"


@dataclass(frozen=True)
class Exists:
    """``EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"EXISTS {self.group}"


@dataclass(frozen=True)
class NotExists:
    """``NOT EXISTS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"NOT EXISTS {self.group}"


@dataclass(frozen=True)
class Timestamp:
    """C-SPARQL's ``timestamp(?v)``: when what binds the variable came, looked for in everything, in the stream of an
    IRI, or in a pattern."""

    variable: Variable
    within: Term | Group | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"timestamp({self.variable}{'' if self.within is None else f' {self.within}'})"


Expression = Term | Variable | Call | Aggregate | Exists | NotExists | Timestamp


# Elements of a group


@dataclass(frozen=True)
class TriplePattern:
    """A triple pattern, or one with a property path for its predicate."""

    subject: Slot
    predicate: Path | Variable
    object: Slot
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        path = self.predicate
        verb = path if isinstance(path, Inverse | Steps | Alternative | Repeat | Negated) else slot(path)
        return f"{slot(self.subject)} {verb} {slot(self.object)} ."


@dataclass(frozen=True)
class TriplesBlock:
    """Triple patterns beside each other."""

    triples: tuple[TriplePattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _lines(self.triples)


@dataclass(frozen=True)
class Group:
    """``{ ... }``."""

    elements: tuple[Element, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _braced(_lines(self.elements))


@dataclass(frozen=True)
class Optional:
    """``OPTIONAL { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"OPTIONAL {self.group}"


@dataclass(frozen=True)
class Union:
    """``{ ... } UNION { ... }``, two or more."""

    branches: tuple[Group, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return " UNION ".join(map(str, self.branches))


@dataclass(frozen=True)
class Minus:
    """``MINUS { ... }``."""

    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"MINUS {self.group}"


@dataclass(frozen=True)
class Graph:
    """``GRAPH name { ... }``."""

    name: Slot
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"GRAPH {slot(self.name)} {self.group}"


@dataclass(frozen=True)
class Window:
    """``WINDOW name { ... }`` (RSP-QL)."""

    name: Slot
    group: Group
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"WINDOW {slot(self.name)} {self.group}"


@dataclass(frozen=True)
class Service:
    """``SERVICE [SILENT] name { ... }``."""

    name: Slot
    group: Group
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"SERVICE {_silent(self.silent)}{slot(self.name)} {self.group}"


@dataclass(frozen=True)
class Filter:
    """``FILTER (expression)``."""

    expression: Expression
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FILTER {_bracketed(self.expression)}"


@dataclass(frozen=True)
class Bind:
    """``BIND (expression AS ?variable)``."""

    expression: Expression
    variable: Variable
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"BIND ({expressed(self.expression)} AS {self.variable})"


@dataclass(frozen=True)
class Values:
    """``VALUES (?variables) { (terms) ... }``; None is ``UNDEF``."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        rows = "\n".join(f"({' '.join('UNDEF' if term is None else slot(term) for term in row)})" for row in self.rows)
        return f"VALUES ({' '.join(map(str, self.variables))}) {_braced(rows)}"


@dataclass(frozen=True)
class SubSelect:
    """A sub-query; it is the only element of its group."""

    query: SelectQuery
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.query)


Element = (
    TriplesBlock | Group | Optional | Union | Minus | Graph | Window | Service | Filter | Bind | Values | SubSelect
)


# Windows and data sets


@dataclass(frozen=True)
class TimeRange:
    """``RANGE size [STEP step]``, in integer ms; TUMBLING is a step of the window's size."""

    size: int
    step: int | None = None

    def text(self, length: Callable[[int], str]) -> str:
        return f"[RANGE {length(self.size)}{'' if self.step is None else f' STEP {length(self.step)}'}]"


@dataclass(frozen=True)
class CountRange:
    """The last so many triples: ``RANGE TRIPLES size`` (C-SPARQL), ``ELEMENTS size [STEP step]`` (RSP-QL)."""

    size: int
    step: int | None = None


@dataclass(frozen=True)
class PastRange:
    """``FROM NOW-begin TO NOW-end [STEP step]`` in integer ms: a window that lies back (RSP-QL, drafts)."""

    begin: int
    end: int
    step: int | None = None


Range = TimeRange | CountRange | PastRange


@dataclass(frozen=True)
class From:
    """``FROM graph``; in an update, ``USING graph``."""

    graph: Term
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM {self.graph}"


@dataclass(frozen=True)
class FromNamed:
    """``FROM NAMED graph``; in an update, ``USING NAMED graph``. whole: there are no graphs in it, as there may be in a
    document."""

    graph: Term
    whole: bool = field(default=False, kw_only=True)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM NAMED {self.graph}"


@dataclass(frozen=True)
class FromStream:
    """``FROM [NAMED] STREAM stream [window]`` (C-SPARQL); range: None where none is written."""

    stream: Term
    range: TimeRange | CountRange | None = None
    named: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        clause = f"FROM {'NAMED ' if self.named else ''}STREAM {self.stream}"
        match self.range:
            case TimeRange():
                return f"{clause} {self.range.text(duration)}"
            case CountRange(size=size, step=step):
                return f"{clause} [RANGE TRIPLES {size}{'' if step is None else f' STEP {step}'}]"
            case None:
                return clause


@dataclass(frozen=True)
class FromWindow:
    """``FROM NAMED WINDOW name ON STREAM stream [window]`` (RSP-QL)."""

    name: Term
    stream: Term
    range: Range
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"FROM NAMED WINDOW {self.name} ON STREAM {self.stream} {self._window()}"

    def _window(self) -> str:
        match self.range:
            case TimeRange():
                return self.range.text(iso_duration)
            case CountRange(size=size, step=step):
                return f"[ELEMENTS {size}{'' if step is None else f' STEP {step}'}]"
            case PastRange(begin=begin, end=end, step=step):
                moves = "" if step is None else f" STEP {iso_duration(step)}"
                return f"[FROM NOW-{iso_duration(begin)} TO NOW-{iso_duration(end)}{moves}]"


DatasetClause = From | FromNamed | FromStream | FromWindow


# Queries


@dataclass(frozen=True)
class SelectItem:
    """A variable to show, and what it is where it is written ``(expression AS ?variable)``."""

    variable: Variable
    expression: Expression | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _named(self.expression, self.variable)


@dataclass(frozen=True)
class GroupCondition:
    """What solutions are grouped by: a variable, or an expression, which may be given a name."""

    expression: Expression
    variable: Variable | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.variable is None:
            return str(self.expression) if isinstance(self.expression, Variable) else _bracketed(self.expression)
        return _named(self.expression, self.variable)


@dataclass(frozen=True)
class OrderCondition:
    """``ASC(expression)`` or ``DESC(expression)``."""

    expression: Expression
    descending: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'DESC' if self.descending else 'ASC'} {_bracketed(self.expression)}"


@dataclass(frozen=True)
class Addition:
    """``(?variable, aggregate, {?keys})`` of C-SPARQL's older ``AGGREGATE { ... }``: a column of the aggregate's value
    over the solutions that agree on the keys, which leaves all solutions as they are."""

    variable: Variable
    aggregate: Aggregate
    keys: tuple[Variable, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.variable}, {self.aggregate}, {{{' '.join(map(str, self.keys))}}})"


@dataclass(frozen=True)
class AggregateClause:
    """C-SPARQL's older ``AGGREGATE { additions filters }``."""

    additions: tuple[Addition, ...]
    filters: tuple[Filter, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"AGGREGATE {_braced(_lines([*self.additions, *self.filters]))}"


@dataclass(frozen=True)
class Modifiers:
    """What is done to the solutions: in this order, then DISTINCT, then the slice."""

    aggregates: tuple[AggregateClause, ...] = ()
    group: tuple[GroupCondition, ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        return _lines(
            [
                *self.aggregates,
                *_clause("GROUP BY", self.group),
                *_clause("HAVING", map(_bracketed, self.having)),
                *_clause("ORDER BY", self.order),
                *_clause("LIMIT", [] if self.limit is None else [self.limit]),
                *_clause("OFFSET", [] if self.offset is None else [self.offset]),
            ]
        )


NO_MODIFIERS = Modifiers()


@dataclass(frozen=True)
class SelectQuery:
    """``SELECT``. items: None for ``*``. quantifier: ``DISTINCT``, ``REDUCED`` or nothing. values: after the query."""

    items: tuple[SelectItem, ...] | None
    where: Group
    quantifier: str = ""
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        shown = "*" if self.items is None else " ".join(map(str, self.items))
        head = " ".join(word for word in ("SELECT", self.quantifier, shown) if word)
        return _query(head, self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class ConstructQuery:
    """``CONSTRUCT``; the short form ``CONSTRUCT WHERE`` is written out."""

    template: tuple[QuadPattern, ...]
    where: Group
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        head = f"CONSTRUCT {_quads(self.template)}"
        return _query(head, self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class AskQuery:
    """``ASK``."""

    where: Group
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _query("ASK", self.dataset, self.where, self.modifiers, self.values)


@dataclass(frozen=True)
class DescribeQuery:
    """``DESCRIBE``. resources: None for ``*``. where: None if there is none."""

    resources: tuple[Slot, ...] | None
    where: Group | None = None
    dataset: tuple[DatasetClause, ...] = ()
    modifiers: Modifiers = NO_MODIFIERS
    values: Values | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        shown = "*" if self.resources is None else " ".join(map(slot, self.resources))
        return _query(f"DESCRIBE {shown}", self.dataset, self.where, self.modifiers, self.values)


Query = SelectQuery | ConstructQuery | AskQuery | DescribeQuery


# Updates (SPARQL 1.1 Update, section 3)


@dataclass(frozen=True)
class QuadPattern:
    """A triple of a template or of data, in a graph or (None) in the default one. Its blank nodes are terms."""

    subject: Slot
    predicate: Slot
    object: Slot
    graph: Slot | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{slot(self.subject)} {slot(self.predicate)} {slot(self.object)} ."


@dataclass(frozen=True)
class InsertData:
    """``INSERT DATA { ... }``."""

    quads: tuple[QuadPattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"INSERT DATA {_quads(self.quads)}"


@dataclass(frozen=True)
class DeleteData:
    """``DELETE DATA { ... }``."""

    quads: tuple[QuadPattern, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"DELETE DATA {_quads(self.quads)}"


@dataclass(frozen=True)
class Modify:
    """``[WITH graph] DELETE { ... } INSERT { ... } WHERE { ... }``; ``DELETE WHERE`` is written out."""

    delete: tuple[QuadPattern, ...]
    insert: tuple[QuadPattern, ...]
    where: Group
    graph: Term | None = None
    using: tuple[From | FromNamed, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        parts = [
            *([] if self.graph is None else [f"WITH {self.graph}"]),
            *([f"DELETE {_quads(self.delete)}"] if self.delete else []),
            *([f"INSERT {_quads(self.insert)}"] if self.insert or not self.delete else []),
            *(str(clause).replace("FROM", "USING", 1) for clause in self.using),
            f"WHERE {self.where}",
        ]
        return "\n".join(parts)


@dataclass(frozen=True)
class Load:
    """``LOAD [SILENT] source [INTO GRAPH graph]``."""

    source: Term
    graph: Term | None = None
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        into = "" if self.graph is None else f" INTO GRAPH {self.graph}"
        return f"LOAD {_silent(self.silent)}{self.source}{into}"


@dataclass(frozen=True)
class Manage:
    """``CLEAR``, ``DROP`` or ``CREATE`` (action) of a graph: its IRI, ``DEFAULT``, ``NAMED`` or ``ALL``."""

    action: str
    graph: str
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.action} {_silent(self.silent)}{_graph(self.graph)}"


@dataclass(frozen=True)
class Transfer:
    """``ADD``, ``MOVE`` or ``COPY`` (action) from one graph to another: an IRI, or ``DEFAULT``."""

    action: str
    source: str
    target: str
    silent: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.action} {_silent(self.silent)}{_graph(self.source)} TO {_graph(self.target)}"


Operation = InsertData | DeleteData | Modify | Load | Manage | Transfer


# Programs


@dataclass(frozen=True)
class Registration:
    """``REGISTER kind name [COMPUTED EVERY period] AS``.

    kind: ``QUERY`` or ``STREAM``; in RSP-QL ``STREAM``, ``RSTREAM``, ``ISTREAM`` or ``DSTREAM``.
    name: a word, or the term of an IRI. period: integer ms.
    """

    kind: str
    name: str
    period: int | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        every = "" if self.period is None else f" COMPUTED EVERY {duration(self.period)}"
        return f"REGISTER {self.kind} {self.name}{every} AS\n"


@dataclass(frozen=True)
class Statement:
    """A query or an operation of an update. base: the IRI against which ``IRI()`` resolves, if there is one."""

    body: Query | Operation
    registration: Registration | None = None
    base: str = ""

    def __str__(self) -> str:
        base = f"BASE <{self.base}>\n" if self.base else ""
        return f"{base}{self.registration or ''}{self.body}\n"


@dataclass(frozen=True)
class Program:
    """The statements of a text: one query, or the operations of an update."""

    statements: tuple[Statement, ...]
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return ";\n".join(map(str, self.statements))


# Scope


def mentioned(part: object) -> frozenset[Variable]:
    """All variables in a part of a tree, in scope or not."""
    if isinstance(part, Variable):
        return frozenset((part,))
    if isinstance(part, tuple):
        inner: Iterable[object] = part
    elif is_dataclass(part):
        inner = (getattr(part, one.name) for one in fields(part))
    else:
        return frozenset()
    return frozenset().union(*map(mentioned, inner))


def in_scope(element: Element) -> tuple[Variable, ...]:
    """The variables that an element may bind and its surroundings see, each once, in the order of the text; blank nodes
    are none of them (SPARQL 1.1 Query, section 18.2.1)."""
    return tuple(dict.fromkeys(_bound(element)))


def _bound(element: Element) -> Iterable[Variable]:
    match element:
        case TriplesBlock(triples=triples):
            slots = [one for triple in triples for one in (triple.subject, triple.predicate, triple.object)]
            return [one for one in slots if isinstance(one, Variable) and not is_unnamed(one)]
        case Group(elements=elements):
            return [name for inner in elements for name in _bound(inner)]
        case Union(branches=branches):
            return [name for branch in branches for name in _bound(branch)]
        case Optional(group=group):
            return _bound(group)
        case Graph(name=name, group=group) | Window(name=name, group=group) | Service(name=name, group=group):
            return [*([name] if isinstance(name, Variable) else []), *_bound(group)]
        case Bind(variable=variable):
            return [variable]
        case Values(variables=variables):
            return variables
        case SubSelect(query=query):
            return shown(query)
        case Filter() | Minus():
            return []


def shown(query: SelectQuery) -> tuple[Variable, ...]:
    """The variables of a query's solutions, in the order in which they are selected."""
    if query.items is not None:
        return tuple(item.variable for item in query.items)
    added = [one.variable for clause in query.modifiers.aggregates for one in clause.additions]
    after = query.values.variables if query.values else ()
    return tuple(dict.fromkeys([*in_scope(query.where), *added, *after]))


# Printing


def slot(one: Slot) -> str:
    """A term or variable as text. A number or truth value is printed without its datatype where that says the same."""
    if isinstance(one, Variable):
        return one.name if is_unnamed(one) else str(one)
    if is_literal(one) and one.endswith(">"):
        lexical, datatype, _ = parts(one)
        shape = _SHORT.get(datatype)
        if shape and shape.fullmatch(lexical):
            return lexical
    return one


def expressed(expression: Expression) -> str:
    """An expression as text."""
    return slot(expression) if isinstance(expression, str | Variable) else str(expression)


def iso_duration(milliseconds: int) -> str:
    """A length of time as an xsd:dayTimeDuration: ``PT10S``, ``PT0.5S``, ``P1D``."""
    if milliseconds % 1000:
        return f"PT{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0") + "S"
    plain = duration(milliseconds).upper()
    return f"P{plain}" if plain.endswith("D") else f"PT{plain}"


def _query(
    head: str, dataset: tuple[DatasetClause, ...], where: Group | None, modifiers: Modifiers, values: Values | None
) -> str:
    pattern = [] if where is None else [f"WHERE {where}"]
    pieces = [head, *map(str, dataset), *pattern, str(modifiers), "" if values is None else str(values)]
    return "\n".join(piece for piece in pieces if piece)


def _quads(quads: tuple[QuadPattern, ...]) -> str:
    pieces = []
    for graph, members in groupby(quads, lambda quad: quad.graph):
        text = _lines(members)
        pieces.append(text if graph is None else f"GRAPH {slot(graph)} {_braced(text)}")
    return _braced("\n".join(pieces))


def _clause(keyword: str, parts: Iterable[object]) -> list[str]:
    text = " ".join(map(str, parts))
    return [f"{keyword} {text}"] if text else []


def _named(expression: Expression | None, variable: Variable) -> str:
    return str(variable) if expression is None else f"({expressed(expression)} AS {variable})"


def _bracketed(expression: Expression) -> str:
    text = expressed(expression)
    return text if text.startswith("(") else f"({text})"


def _braced(text: str) -> str:
    indented = text.replace("\n", "\n  ")
    return f"{{\n  {indented}\n}}" if text else "{}"


def _lines(parts: Iterable[object]) -> str:
    return "\n".join(map(str, parts))


def _silent(silent: bool) -> str:
    return "SILENT " if silent else ""


def _graph(graph: str) -> str:
    return f"GRAPH {graph}" if graph.startswith("<") else graph


def _quoted(text: str) -> str:
    return str(literal(text))
