"""The operators of a plan, over columns: what each node of the Planned Production System does, as data.

Names end here. A *row* is a tuple of terms (None: unbound); an operator says which of its columns it compares, keeps
and makes. docs/pps.md is the specification; `squall.builders.runtime.operators` says what each does to rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from squall.model import CLOSE, Report, Source
from squall.model.windows import Window
from squall.rdf import Term


@dataclass(frozen=True)
class Value:
    """A literal that matches by value: ``"5"^^xsd:int`` matches ``"05"^^xsd:integer``."""

    term: Term


Cell = int | Term | Value | None
"""One cell of a `Match`: a column number to fill, a term to equal, a literal to equal by value, or anything at all."""


@dataclass(frozen=True)
class Column:
    """The value in a column of the row."""

    index: int


@dataclass(frozen=True)
class Invoke:
    """A function, by IRI, of expressions. ``None`` as an argument is an unbound variable."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Term | Invoke | None


@dataclass(frozen=True)
class Scan:
    """The facts of a source. A triple is the row (s, p, o); an atom is (``@relation``, arguments...).

    made: of the streams that it reads those that the program makes. What that tells of them a `DerivedStream` reads; others may
    bring something, too, but not where triples are counted, and take back nothing.
    """

    source: Source
    made: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Match:
    """Rows for the facts of its inputs that fit the cells. Column numbers count from 0; a repeated one means equality.

    A fact fits only if it has as many cells (the rule's name behind it not counted) and is of the same kind.
    """

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of a left and a right row that agree on the columns ``on`` (left column, right column).

    ``keep`` selects columns of the left row followed by the right row. No column to agree on: the cross product.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]


@dataclass(frozen=True)
class LeftJoin:
    """The rows of the `Join` for which the condition is true, and each left row at the instants at which there is none
    for it, what it would have of a right row unbound (None). The condition computes with the joined row."""

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]
    condition: Invoke | None = None


@dataclass(frozen=True)
class Union:
    """The rows of all inputs, as a bag. They have the same number of columns."""


@dataclass(frozen=True)
class Project:
    """Rows of some columns, in this order; None makes an unbound cell."""

    columns: tuple[int | None, ...]


@dataclass(frozen=True)
class ConstantFilter:
    """Rows whose column holds the term. Of all `ConstantFilter` nodes that read one node, those that a row satisfies are found
    by one look-up, however many there are: rules that differ in a constant share all that comes before it."""

    column: int
    term: Term


@dataclass(frozen=True)
class AntiJoin:
    """Left rows at the instants at which no right row agrees with them on ``on``."""

    on: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Filter:
    """Rows for which the expression is true. ``timed``: it is taken at the time since which the row holds."""

    expression: Invoke
    timed: bool = False
    __test__ = False


@dataclass(frozen=True)
class Extend:
    """Rows with the value of the expression as a further column; a row for which it has none is dropped.
    ``timed``: it is taken at the time since which the row holds. ``keeps``: a row for which it has none is kept, the
    column unbound (None)."""

    expression: Expression
    timed: bool = False
    keeps: bool = False


@dataclass(frozen=True)
class TableFunction:
    """Rows with the values of each row that a table function makes of them as `results` further columns."""

    function: str
    arguments: tuple[Expression, ...]
    results: int


@dataclass(frozen=True)
class Aggregate:
    """A value of all rows of a group: see `squall.model.Aggregate`."""

    kind: str
    expression: Expression = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Group:
    """For each combination of the key columns, at each instant: the keys and the aggregates of the rows valid then.
    Without keys there is always one row, of nothing too. An aggregate without a value is unbound (None)."""

    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Slice:
    """Of the rows valid at an instant those from `offset` on, `limit` of them, in an order: expressions, each with
    whether it descends, then the rows' own text. keys: columns; so many of each combination of their values."""

    order: tuple[tuple[Expression, bool], ...] = ()
    offset: int = 0
    limit: int | None = None
    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class TransitiveClosure:
    """The transitive closure of its input's pairs (x, y), as a set: a pair for each path of one step or more, valid
    while all steps of such a path are."""


@dataclass(frozen=True)
class Unit:
    """The one row without columns, valid always: the body of an axiom."""


@dataclass(frozen=True)
class Distinct:
    """The bag union of its inputs as a set: each row at each instant once. The first ``by`` columns tell rows apart;
    columns after them (the rule's name on a fact) are those of a row that makes it valid when it begins to be."""

    by: int


@dataclass(frozen=True)
class Construct:
    """A fact from each row: ``template`` gives its cells (a column number or a term); the last column is the rule's
    name.

    ``rules``: the rules it serves, in the order of the program. They do not take part in equality, so that rules which
    make the same facts of the same rows share the node. ``reentrant``: whether the facts are read again. ``internal``:
    they are no part of the answer.
    """

    template: tuple[int | Term, ...]
    rules: tuple[str, ...] = field(default=(), compare=False)
    reentrant: bool = True
    internal: bool = False


@dataclass(frozen=True)
class Select:
    """A solution from each row, as a bag: the values of `columns` under `names`. `rules`: as in `Construct`.

    order: as in `Slice`: in which order the solutions of an instant are handed on where all of them are (rstream).
    asks: its one column is the answer of an ASK query, an xsd:boolean.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    rules: tuple[str, ...] = field(default=(), compare=False)
    order: tuple[tuple[Expression, bool], ...] = ()
    asks: bool = False


Quad = tuple[int | Term | None, int | Term, int | Term, int | Term]
"""The graph (None: the default graph), subject, predicate and object of a template: column numbers or terms."""


@dataclass(frozen=True)
class Update:
    """From each row that begins to be valid, facts that end or begin in the graphs at the next instant (SPARQL 1.1
    Update, section 3.1.3). It acts on what is read; its own rows are the facts that it has put there, while they are.

    initial: what it inserts is there from the start instead. `rules`: as in `Construct`.
    """

    deletes: tuple[Quad, ...] = ()
    inserts: tuple[Quad, ...] = ()
    initial: bool = False
    rules: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Sink:
    """An operation node that ends a plan: hands the facts and solutions of its inputs to the sink by an R2S operator.
    Facts are a set, solutions a bag. There is one for each way of telling (`squall.model.OutputSpec`).

    output: ``istream``, ``dstream`` or ``rstream``.
    distinct: whether its inputs may bring a fact more than once, so that the node has to remember what it has handed
    on. report: see `squall.model.Report`. sources: those that patterns of the rules read: their events and windows say
    when the answer is evaluated (rstream). queries: those that are told that an evaluation of theirs is complete
    (`Report.empty`): each with its name and those of its variables. name: under which facts are told, whatever rule
    made them; ``""``: under that rule's.
    """

    output: str = "istream"
    distinct: bool = True
    report: Report = CLOSE
    sources: tuple[Source, ...] = ()
    queries: tuple[tuple[str, tuple[str, ...]], ...] = ()
    name: str = ""


@dataclass(frozen=True)
class DerivedStream:
    """A stream that the program makes, read through a window: what an R2S operator hands on of the facts of its inputs
    at an instant are events of that instant (R2S, then S2R). Its rows are facts, like those of a `Scan`.

    source: the stream, with how it is read. output, report, sources: as in `Sink`, by which the stream is told to
    the outside.
    """

    source: Source
    output: str = "istream"
    report: Report = CLOSE
    sources: tuple[Source, ...] = ()

    @property
    def way(self) -> tuple[str, str, Report, tuple[Source, ...]]:
        """How the facts are told: into which stream, and when. What is told alike of the same facts is the same."""
        return self.source.stream, self.output, self.report, self.sources


Operator = (
    Scan | Match | Join | LeftJoin | AntiJoin | Union | Project | ConstantFilter | Filter | Extend | TableFunction | Unit | Distinct
    | Group | Slice | TransitiveClosure | Construct | Select | Update | Sink | DerivedStream
)  # fmt: skip


_KEEPING = (Join, LeftJoin, AntiJoin, Distinct, Group, Slice, TransitiveClosure, Update, Sink, DerivedStream)


def is_timed(op: Operator) -> bool:
    """Whether the operator computes with the time since which its rows hold."""
    return isinstance(op, Filter | Extend) and op.timed


def is_stateful(op: Operator) -> bool:
    """Whether the operator keeps rows."""
    return isinstance(op, _KEEPING) or is_timed(op)


def windows_of(op: Operator) -> tuple[Window, ...]:
    """The windows through which an operator reads streams, those that the program makes included."""
    return op.source.all_windows if isinstance(op, Scan | DerivedStream) else ()


def columns_of(expression: Expression) -> Iterator[int]:
    """The columns that an expression reads."""
    match expression:
        case Column(index=index):
            yield index
        case Invoke(arguments=arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case str() | None:
            return


Places = Mapping[int, int | None]
"""Columns by number, with the place where each is in other rows (None: it is unbound there)."""


def moved(expression: Expression, places: Places) -> Expression:
    """The expression over rows in which the columns are at other places."""
    match expression:
        case Column(index=index):
            place = places[index]
            return None if place is None else Column(place)
        case Invoke():
            return moved_call(expression, places)
        case _:
            return expression


def moved_call(call: Invoke, places: Places) -> Invoke:
    """The call over rows in which the columns are at other places."""
    return Invoke(call.function, tuple(moved(argument, places) for argument in call.arguments))
