"""The operators of a plan: what each node of the Planned Production System does, as data.

Operators work on columns and not on names. A *row* is a tuple of terms (None: unbound). An operator says which of its
columns it compares, outputs and computes. docs/pps.md is the specification; `squall.builders.runtime.operators` has the
implementations. A class says all that plans have to know of an operator (`Traits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from squall.functions.timers import SETTING, TIMERS
from squall.model import CLOSE, Report, Source
from squall.model.fixed_schema import FixedSchema
from squall.model.sequences import Selection
from squall.model.windows import Window
from squall.rdf import Term, iri_text
from squall.rdf.row_tags import ASK_TAG, solution_tag


@dataclass(frozen=True)
class Value:
    """A literal that matches by value: ``"5"^^xsd:int`` matches ``"05"^^xsd:integer``."""

    term: Term


@dataclass(frozen=True)
class OneOf:
    """Some terms, of which one matches. They are sorted."""

    terms: tuple[Term, ...]


Cell = int | Term | Value | OneOf | None
"""A cell of a `Match`: the number of a column to fill, a term to equal, a literal to equal by value, terms of which one
is to equal, or None for anything.
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
ColumnMap = Mapping[int, int | None]
"""Maps column numbers to those in other rows (None: the column is unbound there)."""


class Traits:
    """What planners, builders and analyses ask an operator about itself.

    The defaults are those of a function of the rows of one input that reads all columns. An *input row* is a row of an
    input, and of a join rows of all inputs one after the other.
    """

    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    """The least and the greatest number of inputs (None: any)."""
    keeps_rows: ClassVar[bool] = False
    """Whether it keeps rows as state, whatever its fields are (`is_stateful`)."""
    retracts: ClassVar[bool] = False
    """Whether it may retract its rows before they expire, even if its inputs do not."""
    whole_rows: ClassVar[bool] = True
    """Whether columns that it neither reads nor copies may count, too."""
    extends_rows: ClassVar[bool] = True
    """Whether its rows are rows of its only input, of whatever width, each with further columns behind it or none."""
    counts_rows: ClassVar[bool | None] = None
    """Whether it depends on the multiplicity of input rows. None: only if what is behind it does."""
    append_only: ClassVar[bool] = False
    """Whether it needs inputs whose rows are not retracted before they expire."""
    stratified: ClassVar[tuple[int | None, str] | None] = None
    """The input through which no cycle may go (None: any), and a verb for what the operator does with it."""
    decides_next_instant: ClassVar[str | None] = None
    """What it does at an instant that decides what others do at the next one, as a verb phrase."""
    combines: ClassVar[int | None] = None
    """How many inputs, the first ones, have a row in each combination of a join (None: all). Others are only tested."""
    is_inner_join: ClassVar[bool] = False
    """Whether it outputs all combinations of rows that agree on the `join_keys`, and nothing else."""

    @property
    def joins_replaced(self) -> tuple[str, ...]:
        """The joins of the logical plan that it stands for, the last one first, if it stands for several."""
        return ()

    @property
    def is_event_time(self) -> bool:
        """Whether it processes complete instants in the order of time, so that no cycle may go through any input."""
        return self.stratified is not None and self.stratified[0] is None

    def first_column(self, port: int, widths: Sequence[int]) -> int:
        """Returns where the columns of an input begin in the input row."""
        return sum(widths[:port]) if port and self.join_keys else 0

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        """Returns, for each output column, the column of the input row with the same value. None: there is none.

        Args:
            widths: The number of columns of each input.
        """
        return range(widths[0])

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        """Returns the columns of the input row that it compares or computes with."""
        keys = (self.first_column(port, widths) + column for port, key in enumerate(self.join_keys) for column in key)
        return [*keys, *columns_of(*self.expressions)]

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        """Returns the output columns that may be unbound though the input row is not."""
        return ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it computes with the input row."""
        return ()

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        """The key columns of each input, if it joins its inputs on a key. Of others it does not matter on which input a
        row comes.
        """
        return ()

    def over(self, places: ColumnMap) -> Self:
        """Returns the operator over input rows whose columns have other numbers, if it reads single columns."""
        return self

    def grouping(self, width: int) -> tuple[int, ...]:
        """Returns, if it keeps rows, columns such that only rows that agree on them have to meet. (): all rows have to.

        Joins, `Distinct` and what outputs rows follow their inputs instead (`squall.planners.partitioning`).
        """
        return ()


class _Join(Traits):
    """What the binary joins have in common."""

    on: tuple[tuple[int, int], ...]
    arity = (2, 2)
    keeps_rows = True
    whole_rows = False

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        return tuple(zip(*self.on, strict=True)) or ((), ())


@dataclass(frozen=True)
class Scan(Traits):
    """Reads the facts of a source. A triple is the row (s, p, o); an atom is (``@relation``, arguments...).

    Attributes:
        source: The source.
        derived_streams: The derived streams among the streams of the source. A `DerivedStream` reads what the program
            outputs to them. Others may also bring facts to them, except where triples are counted, and retract nothing.
        fixed_schema: The schema that facts must not change: one that would is an error.
    """

    source: Source
    derived_streams: tuple[str, ...] = field(default=(), repr=False)
    fixed_schema: FixedSchema | None = field(default=None, repr=False)

    arity = (0, 0)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None,) * 4


@dataclass(frozen=True)
class Match(Traits):
    """Outputs a row for each fact of its inputs that fits the cells.

    Column numbers count from 0; a repeated one means equality. A fact fits only if it has as many cells (the rule's
    name behind it not counted) and is of the same kind.
    """

    cells: tuple[Cell, ...]

    arity = (1, None)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None,) * (1 + max([cell for cell in self.cells if isinstance(cell, int)], default=-1))


@dataclass(frozen=True)
class Join(_Join):
    """Outputs pairs of a left and a right row that agree on the columns ``on`` (left column, right column).

    ``keep`` selects columns of the left row followed by the right row. Without a column to agree on, it is the cross
    join.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]

    is_inner_join = True

    def copied(self, widths: Sequence[int]) -> Sequence[int]:
        return self.keep


@dataclass(frozen=True)
class MultiwayJoin(Traits):
    """Outputs combinations of a row of each input that agree on a key. Their rows are never retracted.

    Builders put it in place of a tree of joins (`squall.builders.runtime.multiway_join`).

    Attributes:
        on: The key columns of each input, in the same order.
        keep: The output columns, as columns of the rows of all inputs one after the other.
        joins: The joins of the logical plan that it stands for, the last one first. They do not take part in equality.
    """

    on: tuple[tuple[int, ...], ...]
    keep: tuple[int, ...]
    joins: tuple[str, ...] = field(default=(), compare=False)

    arity = (3, None)
    keeps_rows = append_only = is_inner_join = True
    whole_rows = False

    @property
    def joins_replaced(self) -> tuple[str, ...]:
        return self.joins

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        return self.on

    def copied(self, widths: Sequence[int]) -> Sequence[int]:
        return self.keep


@dataclass(frozen=True)
class LeftJoin(_Join):
    """Outputs the rows of the `Join` for which the condition is true, and the left rows that have none.

    A left row is output by itself at the instants at which it has no such row, with the right columns unbound (None).
    The condition computes with the joined row.
    """

    on: tuple[tuple[int, int], ...]
    keep: tuple[int, ...]
    condition: Invoke | None = None

    retracts = True
    stratified = (1, "looks for the absence of")

    def copied(self, widths: Sequence[int]) -> Sequence[int]:
        return self.keep

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return [*super().reads(widths), *(self.keep[column] for column in columns_of(self.condition))]

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return [place for place, column in enumerate(self.keep) if column >= widths[0]]


@dataclass(frozen=True)
class Between:
    """What has to be, or must not be, between the two rows of a `SequenceJoin`: rows of an input of its own.

    Attributes:
        on: Pairs of a column of the left row followed by the right row, and a column of the input, which are equal.
        start: The column of the time at which a row begins.
        end: The column of the time at which it ends.
        wanted: Whether there has to be one, or must be none.
    """

    on: tuple[tuple[int, int], ...]
    start: int
    end: int
    wanted: bool = False


@dataclass(frozen=True)
class SequenceJoin(Traits):
    """Outputs pairs of a left and a right row that agree on the columns ``on``, where the right one begins after the
    left one ends: see `squall.model.SequenceJoin`.

    Its inputs are the left rows, the right rows, and those of `between`.

    Rows begin to be valid when they end, and are never retracted. A pair is valid while both are.

    Attributes:
        on: The columns (left, right) that agree.
        keys: The columns of each input, in the same order, that agree in all rows that meet.
        keep: The output columns, as columns of the left row followed by the right row.
        times: The columns with the end of the left row, and with the begin and the end of the right row (xsd:integer
            ms).
        selection, min_gap, max_gap: As in `squall.model.SequenceJoin`.
        condition: A condition on the left row followed by the right row, or None.
        between: What has to be, or must not be, between the two, for each further input.
    """

    on: tuple[tuple[int, int], ...]
    keys: tuple[tuple[int, ...], ...]
    keep: tuple[int, ...]
    times: tuple[int, int, int]
    selection: Selection = "nearest"
    min_gap: int = 1
    max_gap: int | None = None
    condition: Invoke | None = None
    between: tuple[Between, ...] = ()

    arity = (2, None)
    keeps_rows = append_only = True
    stratified = (None, "orders")
    combines = 2

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        return self.keys

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.condition is None else (self.condition,)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return self.keep

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        left, right = zip(*self.on, strict=True) if self.on else ((), ())
        left_end, right_start, right_end = self.times
        own = [*left, left_end, *(widths[0] + column for column in (*right, right_start, right_end))]
        for port, part in enumerate(self.between, 2):
            first = self.first_column(port, widths)
            own += [column for column, _ in part.on]
            own += [first + column for column in (part.start, part.end, *(column for _, column in part.on))]
        return [*own, *super().reads(widths)]


@dataclass(frozen=True)
class Iteration(SequenceJoin):
    """Outputs runs of rows: each pair of the sequence join as a left row, which right rows follow again. See
    `squall.model.Iteration`. A run is valid while all of its rows are. Equal runs count once.

    Attributes:
        keep: The columns of a left row, all and in order.
        values: The cells of the left row that a pair makes, as expressions over the left row followed by the right row.
            Those of the keys are the columns of the keys.
        again: A condition on that row under which it goes on, or None.
    """

    values: tuple[Expression, ...] = ()
    again: Invoke | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*super().expressions, *self.values, *(() if self.again is None else (self.again,)))

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return [value.index if isinstance(value, Column) else None for value in self.values]

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return [place for place, value in enumerate(self.values) if isinstance(value, Invoke)]


class Temporal(Traits):
    """What the operators on the validity of rows have in common (`squall.model.Temporal`).

    Such an operator takes its input as a set, and outputs each of its rows over other intervals. It processes validity
    when time has reached its begin, so that a recursion through it processes one instant after the other.
    """

    keeps_rows = True
    counts_rows = False
    decides_next_instant = "changes when facts hold, also where nothing comes"

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return range(widths[0])

    def grouping(self, width: int) -> tuple[int, ...]:
        return tuple(range(width))


@dataclass(frozen=True)
class Dilate(Temporal):
    """Outputs a row while it has been valid at some instant of the last `length` ms: [a, b) becomes [a, b + length).

    Attributes:
        length: Integer ms, 0 or more.
        step: If it is more than 0, the row is output from the first multiple of it on (integer ms), up to another one.
    """

    length: int
    step: int = 0


@dataclass(frozen=True)
class Erode(Temporal):
    """Outputs a row while it has been valid for more than `length` ms: a maximal [a, b) becomes [a + length, b), if
    that is not empty. The attributes are those of `Dilate`.
    """

    length: int
    step: int = 0


@dataclass(frozen=True)
class At(Temporal):
    """Outputs a row with each time at which it was valid in the last `length` ms, as a further column.

    Attributes:
        length: Integer ms, 0 or more.
        tick: The unit of time (integer ms): the column is an xsd:integer that counts these.
        step: As in `Dilate`.
    """

    length: int
    tick: int = 1
    step: int = 0

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (*range(widths[0]), None)


@dataclass(frozen=True)
class Schedule(Temporal):
    """Outputs a row at the time that one of its columns holds, if it was valid by then.

    Attributes:
        time: The column, an xsd:integer in units of `tick`. A row with another value is not output.
        tick: The unit of time (integer ms), and how long the row is output.
    """

    time: int
    tick: int = 1


@dataclass(frozen=True)
class Gate(Traits):
    """Outputs the rows of the first input that hold at an instant at which a row of the second one, the *opener*, has
    begun before and still holds, and agrees with them on the columns ``on`` (row, opener).

    It may output others, too: planners put it where these make no difference (`squall.plan.gates`), so that a step of
    a pattern over time is evaluated only while it can still be a part of a match.
    """

    on: tuple[tuple[int, int], ...]

    arity = (2, 2)
    keeps_rows = append_only = True
    whole_rows = False
    stratified = (None, "waits for")
    combines = 1

    @property
    def join_keys(self) -> tuple[tuple[int, ...], ...]:
        return tuple(zip(*self.on, strict=True)) or ((), ())


@dataclass(frozen=True)
class Union(Traits):
    """Outputs the rows of all inputs, as a bag. They have the same number of columns."""

    arity = (1, None)


@dataclass(frozen=True)
class Project(Traits):
    """Outputs rows of some columns, in this order; None gives an unbound cell."""

    columns: tuple[int | None, ...]

    whole_rows = extends_rows = False

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return self.columns

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return [place for place, column in enumerate(self.columns) if column is None]


@dataclass(frozen=True)
class ConstantFilter(Traits):
    """Outputs the rows whose column holds the term.

    One look-up finds those of all `ConstantFilter` nodes on one producer that a row satisfies. So rules that differ
    only in a constant share everything before it.
    """

    column: int
    term: Term

    whole_rows = False

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return (self.column,)

    def over(self, places: ColumnMap) -> ConstantFilter:
        return replace(self, column=_place(self.column, places))


@dataclass(frozen=True)
class AntiJoin(_Join):
    """Outputs left rows at the instants at which no right row agrees with them on the columns ``on``."""

    on: tuple[tuple[int, int], ...]

    retracts = True
    stratified = (1, "negates")


@dataclass(frozen=True)
class Filter(Traits):
    """Outputs the rows for which the expression is true.

    Attributes:
        timed: The expression is evaluated at the time since which the row holds.
    """

    expression: Invoke
    timed: bool = False
    __test__ = False

    whole_rows = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.expression,)

    def over(self, places: ColumnMap) -> Filter:
        return replace(self, expression=remap_call(self.expression, places))

    def grouping(self, width: int) -> tuple[int, ...]:
        return tuple(range(width))


@dataclass(frozen=True)
class Extend(Traits):
    """Adds the value of an expression to each row as a further column.

    Attributes:
        expression: The expression. A row for which it has no value is dropped.
        timed: The expression is evaluated at the time since which the row holds.
        keep_unbound: A row without a value is kept instead, with the column unbound (None).
    """

    expression: Expression
    timed: bool = False
    keep_unbound: bool = False

    whole_rows = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.expression,)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (*range(widths[0]), None)

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return widths[:1] if self.keep_unbound else ()

    def over(self, places: ColumnMap) -> Extend:
        return replace(self, expression=remap_columns(self.expression, places))

    def grouping(self, width: int) -> tuple[int, ...]:
        return tuple(range(width))


@dataclass(frozen=True)
class TableFunction(Traits):
    """Adds to each row the values of each row that a table function returns for it, as `results` further columns."""

    function: str
    arguments: tuple[Expression, ...]
    results: int

    whole_rows = False

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (Invoke(self.function, self.arguments),)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (*range(widths[0]), *(None,) * self.results)

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return range(widths[0], widths[0] + self.results)

    def over(self, places: ColumnMap) -> TableFunction:
        return replace(self, arguments=tuple(remap_columns(argument, places) for argument in self.arguments))


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the rows of a group: see `squall.model.Aggregate`."""

    kind: str
    expression: Expression = None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True)
class Group(Traits):
    """Outputs for each combination of the key columns, at each instant, the keys and the aggregates of the rows valid
    then.

    Without keys there is always one row, even of no input. An aggregate without a value is unbound (None).
    """

    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]

    whole_rows = extends_rows = False
    keeps_rows = retracts = counts_rows = True
    stratified = (None, "groups")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(aggregate.expression for aggregate in self.aggregates)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (*self.keys, *(None,) * len(self.aggregates))

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return (*self.keys, *super().reads(widths))

    def unbinds(self, widths: Sequence[int]) -> Sequence[int]:
        return range(len(self.keys), len(self.keys) + len(self.aggregates))

    def over(self, places: ColumnMap) -> Group:
        aggregates = (
            replace(aggregate, expression=remap_columns(aggregate.expression, places)) for aggregate in self.aggregates
        )
        return Group(tuple(_place(key, places) for key in self.keys), tuple(aggregates))

    def grouping(self, width: int) -> tuple[int, ...]:
        return self.keys


@dataclass(frozen=True)
class Slice(Traits):
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

    keeps_rows = retracts = counts_rows = True
    stratified = (None, "slices")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(value for value, _ in self.order)

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return (*self.keys, *super().reads(widths))

    def grouping(self, width: int) -> tuple[int, ...]:
        return self.keys


@dataclass(frozen=True)
class Consume(Traits):
    """Outputs the matches that have their occurrences: see `squall.model.Consumption`.

    Its rows are matches, which begin to be valid when they end, and are never retracted.

    Attributes:
        keys: The columns of the keys.
        start: The column of the time at which a match begins (xsd:integer ms).
        members: The column of the occurrences that it is made of.
        steps: The names of the patterns of its steps there, in the order of the text.
        order: The columns whose text orders matches that are else equal.
        retention: For how long (integer ms) an occurrence is stored, from its time on; None: for ever.
    """

    keys: tuple[int, ...]
    start: int
    members: int
    steps: tuple[str, ...]
    order: tuple[int, ...] = ()
    retention: int | None = None

    keeps_rows = append_only = True
    whole_rows = counts_rows = False
    stratified = (None, "consumes")

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return (*self.keys, self.start, self.members, *self.order)

    def over(self, places: ColumnMap) -> Consume:
        keys, order = (tuple(_place(column, places) for column in columns) for columns in (self.keys, self.order))
        return replace(
            self, keys=keys, order=order, start=_place(self.start, places), members=_place(self.members, places)
        )

    def grouping(self, width: int) -> tuple[int, ...]:
        return self.keys


@dataclass(frozen=True)
class TransitiveClosure(Traits):
    """Outputs the transitive closure of its input's pairs (x, y), as a set.

    There is a pair for each path of one or more edges, valid while all edges of such a path are.
    """

    keeps_rows = append_only = True
    counts_rows = False

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None, None)


@dataclass(frozen=True)
class Unit(Traits):
    """Outputs the one row without columns, which is always valid: the body of an axiom."""

    arity = (0, 0)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return ()


@dataclass(frozen=True)
class Distinct(Traits):
    """Outputs the bag union of its inputs as a set: each row once at each instant.

    The first ``by`` columns identify a row. The columns after them (the rule's name on a fact) are those of a row that
    makes it valid when it begins to be.
    """

    by: int

    arity = (1, None)
    keeps_rows = True
    counts_rows = False


@dataclass(frozen=True)
class Construct(Traits):
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

    whole_rows = extends_rows = False
    counts_rows = False

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (*(cell if isinstance(cell, int) else None for cell in self.template), None)

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return [cell for cell in self.template if isinstance(cell, int)]

    def over(self, places: ColumnMap) -> Construct:
        template = tuple(_place(cell, places) if isinstance(cell, int) else cell for cell in self.template)
        return replace(self, template=template)


@dataclass(frozen=True)
class Select(Traits):
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

    whole_rows = extends_rows = False
    counts_rows = True

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(value for value, _ in self.order)

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None, *self.columns, None)

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return (*self.columns, *super().reads(widths))

    def over(self, places: ColumnMap) -> Select:
        order = tuple((remap_columns(value, places), descends) for value, descends in self.order)
        return replace(self, columns=tuple(_place(column, places) for column in self.columns), order=order)


Quad = tuple[int | Term | None, int | Term, int | Term, int | Term]
"""The graph (None: the default graph), subject, predicate and object of a template: column numbers or terms."""


@dataclass(frozen=True)
class Update(Traits):
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

    keeps_rows = retracts = True
    counts_rows = False
    decides_next_instant = "inserts or deletes facts"

    @property
    def sets_timers(self) -> bool:
        """Whether a template that names the graph of timers may set one."""
        return any(
            isinstance(graph, str)
            and iri_text(graph) == TIMERS
            and (isinstance(predicate, int) or predicate in SETTING)
            for graph, _, predicate, _ in self.inserts
        )

    def reads(self, widths: Sequence[int]) -> Sequence[int]:
        return [cell for quad in (*self.deletes, *self.inserts) for cell in quad if isinstance(cell, int)]

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None,) * 4


@dataclass(frozen=True)
class Sink(Traits):
    """Ends a plan: outputs the facts and solutions of its inputs by an R2S operator.

    Facts are a set, solutions a bag. There is one sink for each output specification (`squall.model.OutputSpec`).

    Attributes:
        output: ``istream``, ``dstream``, ``rstream`` or ``changes``.
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

    arity = (0, None)
    keeps_rows = True

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return range(widths[0]) if widths else ()


@dataclass(frozen=True)
class DerivedStream(Traits):
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

    arity = (1, None)
    keeps_rows = True
    stratified = (None, "derives a stream from")
    counts_rows = False

    def copied(self, widths: Sequence[int]) -> Sequence[int | None]:
        return (None,) * 4


Operator = (
    Scan | Match | Join | MultiwayJoin | LeftJoin | AntiJoin | SequenceJoin | Iteration | Gate | Dilate | Erode | At
    | Schedule | Union | Project | ConstantFilter | Filter | Extend | TableFunction | Unit | Distinct | Group | Slice
    | Consume | TransitiveClosure | Construct | Select | Update | Sink | DerivedStream
)  # fmt: skip


def is_time_dependent(op: Operator) -> bool:
    """Returns whether the operator computes with the time since which its rows hold."""
    return isinstance(op, Filter | Extend) and op.timed


def is_stateful(op: Operator) -> bool:
    """Returns whether the operator keeps rows as state."""
    return op.keeps_rows or is_time_dependent(op)


def windows_of(op: Operator) -> tuple[Window, ...]:
    """Returns the windows through which an operator reads streams, including derived streams."""
    return op.source.all_windows if isinstance(op, Scan | DerivedStream) else ()


def columns_of(*expressions: Expression) -> Iterator[int]:
    """Yields the columns that expressions read."""
    for expression in expressions:
        match expression:
            case Column(index=index):
                yield index
            case Invoke(arguments=arguments):
                yield from columns_of(*arguments)


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


def _place(column: int, places: ColumnMap) -> int:
    """Returns the position of a column that is not unbound."""
    place = places[column]
    assert place is not None, "what is unbound in all rows is no term"
    return place


def select_tag(op: Select) -> str:
    """Returns the first cell of the rows that a `Select` makes: the query's tag, with the names of its variables."""
    query = op.rules[0] if op.rules else ""
    return ASK_TAG + query if op.ask else solution_tag(op.names, query)
