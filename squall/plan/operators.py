"""The operators of a plan: what each node of the Planned Production System does, as data.

Operators work on columns and not on names. A *row* is a tuple of terms (None: unbound). An operator says which of its
columns it compares, outputs and computes. docs/pps.md is the specification; `squall.builders.runtime.operators` has the
implementations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from squall.model import CLOSE, Report, Source
from squall.model.windows import Window
from squall.rdf import Term
from squall.rdf.row_tags import ASK_TAG, solution_tag


@dataclass(frozen=True)
class Value:
    """A literal that matches by value: ``"5"^^xsd:int`` matches ``"05"^^xsd:integer``."""

    term: Term


Cell = int | Term | Value | None
"""A cell of a `Match`: the number of a column to fill, a term to equal, a literal to equal by value, or None for
anything.
"""


@dataclass(frozen=True)
class Column:
    """The value in a column of the row."""

    index: int


@dataclass(frozen=True)
class Invoke:
    """A call of a function, by IRI, with expressions. The argument ``None`` is an unbound variable."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Term | Invoke | None


@dataclass(frozen=True)
class Scan:
    """Reads the facts of a source. A triple is the row (s, p, o); an atom is (``@relation``, arguments...).

    Attributes:
        source: The source.
        derived_streams: The derived streams among the streams of the source. A `DerivedStream` reads what the program
            outputs to them. Others may also bring facts to them, except where triples are counted, and retract nothing.
    """

    source: Source
    derived_streams: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Match:
    """Outputs a row for each fact of its inputs that fits the cells.

    Column numbers count from 0; a repeated one means equality. A fact fits only if it has as many cells (the rule's
    name behind it not counted) and is of the same kind.
    """

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Join:
    """Outputs pairs of a left and a right row that agree on the columns ``on`` (left column, right column).

    ``keep`` selects columns of the left row followed by the right row. Without a column to agree on, it is the cross
    join.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]


@dataclass(frozen=True)
class LeftJoin:
    """Outputs the rows of the `Join` for which the condition is true, and the left rows that have none.

    A left row is output by itself at the instants at which it has no such row, with the right columns unbound (None).
    The condition computes with the joined row.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]
    condition: Invoke | None = None


@dataclass(frozen=True)
class Union:
    """Outputs the rows of all inputs, as a bag. They have the same number of columns."""


@dataclass(frozen=True)
class Project:
    """Outputs rows of some columns, in this order; None gives an unbound cell."""

    columns: tuple[int | None, ...]


@dataclass(frozen=True)
class ConstantFilter:
    """Outputs the rows whose column holds the term.

    One look-up finds those of all `ConstantFilter` nodes on one producer that a row satisfies. So rules that differ
    only in a constant share everything before it.
    """

    column: int
    term: Term


@dataclass(frozen=True)
class AntiJoin:
    """Outputs left rows at the instants at which no right row agrees with them on the columns ``on``."""

    on: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Filter:
    """Outputs the rows for which the expression is true.

    Attributes:
        timed: The expression is evaluated at the time since which the row holds.
    """

    expression: Invoke
    timed: bool = False
    __test__ = False


@dataclass(frozen=True)
class Extend:
    """Adds the value of an expression to each row as a further column.

    Attributes:
        expression: The expression. A row for which it has no value is dropped.
        timed: The expression is evaluated at the time since which the row holds.
        keep_unbound: A row without a value is kept instead, with the column unbound (None).
    """

    expression: Expression
    timed: bool = False
    keep_unbound: bool = False


@dataclass(frozen=True)
class TableFunction:
    """Adds to each row the values of each row that a table function returns for it, as `results` further columns."""

    function: str
    arguments: tuple[Expression, ...]
    results: int


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the rows of a group: see `squall.model.Aggregate`."""

    kind: str
    expression: Expression = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Group:
    """Outputs for each combination of the key columns, at each instant, the keys and the aggregates of the rows valid
    then.

    Without keys there is always one row, even of no input. An aggregate without a value is unbound (None).
    """

    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Slice:
    """Outputs `limit` of the rows valid at an instant, from `offset` on, in an order.

    Attributes:
        order: The sort expressions, each with whether it descends; then rows are ordered by their own text.
        offset: The number of rows to skip.
        limit: The maximal number of rows.
        keys: Columns. Offset and limit hold for each combination of their values.
    """

    order: tuple[tuple[Expression, bool], ...] = ()
    offset: int = 0
    limit: int | None = None
    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class TransitiveClosure:
    """Outputs the transitive closure of its input's pairs (x, y), as a set.

    There is a pair for each path of one or more edges, valid while all edges of such a path are.
    """


@dataclass(frozen=True)
class Unit:
    """Outputs the one row without columns, which is always valid: the body of an axiom."""


@dataclass(frozen=True)
class Distinct:
    """Outputs the bag union of its inputs as a set: each row once at each instant.

    The first ``by`` columns identify a row. The columns after them (the rule's name on a fact) are those of a row that
    makes it valid when it begins to be.
    """

    by: int


@dataclass(frozen=True)
class Construct:
    """Outputs a fact for each row. The last column is the rule's name.

    Attributes:
        template: The cells of the fact, each a column number or a term.
        rules: The rules it serves, in the order of the program. They do not take part in equality, so that rules which
            derive the same facts from the same rows share the node.
        reentrant: Whether rules read the facts.
        internal: The facts are no part of the answer.
    """

    template: tuple[int | Term, ...]
    rules: tuple[str, ...] = field(default=(), compare=False)
    reentrant: bool = True
    internal: bool = False


@dataclass(frozen=True)
class Select:
    """Outputs a solution for each row, as a bag: the values of `columns` under `names`.

    Attributes:
        rules: As in `Construct`.
        order: As in `Slice`: the order in which the solutions of an instant are output, if all of them are (rstream).
        ask: The one column is the answer of an ASK query, an xsd:boolean.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    rules: tuple[str, ...] = field(default=(), compare=False)
    order: tuple[tuple[Expression, bool], ...] = ()
    ask: bool = False


Quad = tuple[int | Term | None, int | Term, int | Term, int | Term]
"""The graph (None: the default graph), subject, predicate and object of a template: column numbers or terms."""


@dataclass(frozen=True)
class Update:
    """Deletes and inserts facts for each row that begins to be valid, at the next instant (SPARQL 1.1 Update, section
    3.1.3).

    It acts on what is read. Its own rows are the facts that it has inserted, while they are there.

    Attributes:
        deletes: The templates of the facts to delete.
        inserts: The templates of the facts to insert.
        initial: What it inserts is there from the start.
        rules: As in `Construct`.
    """

    deletes: tuple[Quad, ...] = ()
    inserts: tuple[Quad, ...] = ()
    initial: bool = False
    rules: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Sink:
    """Ends a plan: outputs the facts and solutions of its inputs by an R2S operator.

    Facts are a set, solutions a bag. There is one sink for each output specification (`squall.model.OutputSpec`).

    Attributes:
        output: ``istream``, ``dstream`` or ``rstream``.
        distinct: Whether its inputs may bring a fact more than once, so that the node has to remember what it has
            output.
        report: See `squall.model.Report`.
        sources: The sources of the rules' patterns. Their events and windows say when the answer is evaluated
            (rstream).
        queries: The queries whose evaluations are marked as complete (`Report.empty`), each with its name and
            variables.
        name: The name under which facts are output. ``""`` means the name of the rule that derives the fact.
    """

    output: str = "istream"
    distinct: bool = True
    report: Report = CLOSE
    sources: tuple[Source, ...] = ()
    queries: tuple[tuple[str, tuple[str, ...]], ...] = ()
    name: str = ""


@dataclass(frozen=True)
class DerivedStream:
    """Reads a derived stream through a window (R2S, then S2R).

    What an R2S operator outputs of the facts of its inputs at an instant are events of that instant. The rows are
    facts, like those of a `Scan`.

    Attributes:
        source: The stream, and how it is read.
        output, report, sources: The output of the stream, as in `Sink`.
    """

    source: Source
    output: str = "istream"
    report: Report = CLOSE
    sources: tuple[Source, ...] = ()

    @property
    def output_key(self) -> tuple[str, str, Report, tuple[Source, ...]]:
        """Identifies how the facts are output: into which stream, and when. Nodes with equal keys and inputs output the
        same.
        """
        return self.source.stream, self.output, self.report, self.sources


Operator = (
    Scan | Match | Join | LeftJoin | AntiJoin | Union | Project | ConstantFilter | Filter | Extend | TableFunction
    | Unit | Distinct | Group | Slice | TransitiveClosure | Construct | Select | Update | Sink | DerivedStream
)  # fmt: skip


_STATEFUL = (Join, LeftJoin, AntiJoin, Distinct, Group, Slice, TransitiveClosure, Update, Sink, DerivedStream)


def is_time_dependent(op: Operator) -> bool:
    """Returns whether the operator computes with the time since which its rows hold."""
    return isinstance(op, Filter | Extend) and op.timed


def is_stateful(op: Operator) -> bool:
    """Returns whether the operator keeps rows as state."""
    return isinstance(op, _STATEFUL) or is_time_dependent(op)


def windows_of(op: Operator) -> tuple[Window, ...]:
    """Returns the windows through which an operator reads streams, including derived streams."""
    return op.source.all_windows if isinstance(op, Scan | DerivedStream) else ()


def columns_of(expression: Expression) -> Iterator[int]:
    """Yields the columns that an expression reads."""
    match expression:
        case Column(index=index):
            yield index
        case Invoke(arguments=arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case str() | None:
            return


ColumnMap = Mapping[int, int | None]
"""Maps column numbers to those in other rows (None: the column is unbound there)."""


def remap_columns(expression: Expression, places: ColumnMap) -> Expression:
    """Returns the expression over rows whose columns have other numbers."""
    match expression:
        case Column(index=index):
            place = places[index]
            return None if place is None else Column(place)
        case Invoke():
            return remap_call(expression, places)
        case _:
            return expression


def remap_call(call: Invoke, places: ColumnMap) -> Invoke:
    """Returns the call over rows whose columns have other numbers."""
    return Invoke(call.function, tuple(remap_columns(argument, places) for argument in call.arguments))


def select_tag(op: Select) -> str:
    """Returns the first cell of the rows that a `Select` makes: the query's tag, with the names of its variables."""
    query = op.rules[0] if op.rules else ""
    return ASK_TAG + query if op.ask else solution_tag(op.names, query)
