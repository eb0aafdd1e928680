"""The results of a run: outputs, as rows of Python values, as tables of pandas, polars and Arrow, and as graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic

from squall.contracts import Output, R
from squall.errors import UsageError, install_hint
from squall.functions.python_values import to_python, to_term
from squall.functions.values import LONG, date_time, text
from squall.rdf import ALWAYS, Atom, Boolean, Evaluated, Quad, Solution, Triple, to_rdflib

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import pyoxigraph
    import rdflib

MAX_ROWS_IN_HTML = 20
"""How many rows a notebook shows."""
_STATEMENT = ("subject", "predicate", "object", "graph")


class Row(Mapping[str, Any]):
    """An output with Python values: a mapping of its columns, which are attributes as well.

    The columns of a solution are its variables; of a triple ``subject``, ``predicate`` and ``object``, of a quad
    ``graph`` besides; of an atom ``relation`` and ``arguments``; of the answer of ASK ``boolean``. A variable without a
    value has None. A column by the name of an attribute below is read as ``row["time"]``.

    Attributes:
        time: The time of the output (integer ms), or `squall.ALWAYS`.
        rule: The name of the rule or query.
        change: ``insert`` or ``delete`` of the R2S operator `changes`, else ``""``.
    """

    __slots__ = ("_values", "change", "rule", "time")

    def __init__(self, output: Output[Any]) -> None:
        self.time = output.time
        self.rule = output.rule
        self.change = output.change
        self._values = _columns(output.fact)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"there is no column `{name}`: there are {', '.join(self._values)}") from None

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        time = "always" if self.time == ALWAYS else self.time
        return f"Row(time={time}, rule={self.rule!r}{', ' if values else ''}{values})"


def _columns(result: object) -> dict[str, Any]:
    """Returns the Python values of a result by column."""
    match result:
        case Solution(names=names, values=terms):
            return {name: None if term is None else to_python(term) for name, term in zip(names, terms, strict=True)}
        case Triple() | Quad():
            return dict(zip(_STATEMENT, map(to_python, result), strict=False))
        case Atom(relation=relation, arguments=arguments):
            return {"relation": to_python(relation), "arguments": [*map(to_python, arguments)]}
        case Boolean(value=value):
            return {"boolean": value}
    raise TypeError(f"{type(result).__name__} has no columns")


class Results(Iterator[Output[R]], Generic[R]):
    """The outputs of a run, in the order of time. They are read once, as the run makes them.

    A loop takes them one by one. Each method below takes all that are left, so that the run has to end; `rows` is lazy.
    """

    def __init__(self, outputs: Iterable[Output[R]], is_one_query: bool = False) -> None:
        """Creates them.

        Args:
            outputs: The outputs.
            is_one_query: Whether all are answers of one query, so that tables have no column ``rule``.
        """
        self._outputs = iter(outputs)
        self._is_one_query = is_one_query

    def __iter__(self) -> Iterator[Output[R]]:
        return self._outputs  # without a call of this class for each output

    def __next__(self) -> Output[R]:
        return next(self._outputs)

    def close(self) -> None:
        """Ends the run, if it can be ended."""
        close = getattr(self._outputs, "close", None)
        if close is not None:
            close()

    def rows(self) -> Iterator[Row]:
        """Yields the outputs as rows of Python values. The marks of complete evaluations are left out."""
        return (Row(output) for output in self if not isinstance(output.fact, Evaluated))

    def to_arrow(self) -> pyarrow.Table:
        """Returns a table of Arrow: the columns ``time`` and, unless all are answers of one query, ``rule``, then those
        of the rows.

        ``time`` is a timestamp in UTC, and null for what always holds; ``change`` is a column where outputs say it. A
        column has the type of its values: numbers of several types are doubles if one is a double, else decimals;
        values of other different types are texts. What an output does not have is null.

        Raises:
            UsageError: pyarrow is not installed, or a variable has the name of one of the first columns.
        """
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise _missing("pyarrow") from error
        outputs = [output for output in self if not isinstance(output.fact, Evaluated)]
        columns: dict[str, list[Any]] = {
            "time": [None if output.time == ALWAYS else output.time for output in outputs],
        }
        if not self._is_one_query:
            columns["rule"] = [output.rule for output in outputs]
        if any(output.change for output in outputs):
            columns["change"] = [output.change for output in outputs]
        first = tuple(columns)
        for place, output in enumerate(outputs):
            for name, value in _columns(output.fact).items():
                if name in first:
                    hint = "give it another name: `SELECT (?time AS ?at)`"
                    raise UsageError(f"the variable `?{name}` has the name of a column of all outputs", hint=hint)
                columns.setdefault(name, [None] * len(outputs))[place] = value
        types = {"time": pyarrow.timestamp("ms", "UTC")}
        arrays = {name: _array(pyarrow, values, types.get(name)) for name, values in columns.items()}
        return pyarrow.table(arrays)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a DataFrame of pandas with the columns of `to_arrow`. Integers and booleans have types with nulls.

        Raises:
            UsageError: pandas or pyarrow is not installed, or as of `to_arrow`.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise _missing("pandas") from error
        table = self.to_arrow()
        import pyarrow

        nullable = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
        return table.to_pandas(types_mapper=nullable.get)

    def to_polars(self) -> polars.DataFrame:
        """Returns a DataFrame of polars with the columns of `to_arrow`.

        Raises:
            UsageError: polars or pyarrow is not installed, or as of `to_arrow`.
        """
        try:
            import polars
        except ModuleNotFoundError as error:
            raise _missing("polars") from error
        return polars.DataFrame(self.to_arrow())

    def to_graph(self) -> rdflib.Graph:
        """Returns a graph of rdflib with the derived triples. Of the R2S operator `changes`, what holds at the end.

        Raises:
            UsageError: An output is no triple.
        """
        import rdflib

        graph = rdflib.Graph()
        for output in self._statements():
            triple = tuple(map(to_rdflib, output.fact[:3]))
            if isinstance(output.fact, Quad):
                raise UsageError(f"`{output.fact}` is in a named graph", hint="`to_store` has named graphs")
            (graph.remove if output.change == "delete" else graph.add)(triple)  # type: ignore[arg-type]
        return graph

    def to_store(self) -> pyoxigraph.Store:
        """Returns a store of pyoxigraph with the derived triples and quads. Of `changes`, what holds at the end.

        Raises:
            UsageError: An output is neither a triple nor a quad.
        """
        import pyoxigraph

        store = pyoxigraph.Store()
        for output in self._statements():
            (quad,) = pyoxigraph.parse(f"{' '.join(output.fact)} .".encode(), format=pyoxigraph.RdfFormat.N_QUADS)
            (store.remove if output.change == "delete" else store.add)(quad)
        return store

    def _statements(self) -> Iterator[Output[Any]]:
        for output in self:
            if isinstance(output.fact, Triple | Quad):
                yield output
            elif not isinstance(output.fact, Evaluated):
                kind = "the answer of a query" if isinstance(output.fact, Solution | Boolean) else "an atom"
                hint = "`CONSTRUCT` answers with triples; `rows` and `to_arrow` have all results"
                raise UsageError(f"`{output.rule}` outputs {kind}, which is no statement", hint=hint)

    def _repr_html_(self) -> str:
        """Returns a table of the first outputs, for notebooks. They are not lost: a loop begins with them."""
        from html import escape  # its tables of entities take as much memory as ten modules of squall

        first = list(islice(self._outputs, MAX_ROWS_IN_HTML + 1))
        self._outputs = chain(first, self._outputs)
        shown = [output for output in first[:MAX_ROWS_IN_HTML] if not isinstance(output.fact, Evaluated)]
        names = list(dict.fromkeys(name for output in shown for name in _columns(output.fact)))
        rule = () if self._is_one_query else ("rule",)
        head = "".join(f"<th>{escape(name)}</th>" for name in ("time", *rule, *names))
        rows = "".join(_html_row(map(escape, _html_cells(output, names, self._is_one_query))) for output in shown)
        more = "<p>and more</p>" if len(first) > MAX_ROWS_IN_HTML else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _array(pyarrow: Any, values: Sequence[Any], type: Any = None) -> Any:
    """Returns an array of Arrow with values of one type, to which they are converted where they have several."""
    kinds = {value.__class__ for value in values if value is not None}
    if type is not None:
        return pyarrow.array(values, type)
    if kinds == {list}:
        return pyarrow.array([None if value is None else [*map(_text, value)] for value in values])
    if kinds <= {int, Decimal, float} and len(kinds) > 1:
        number = float if float in kinds else Decimal
        kinds, values = {number}, _mapped(number, values)
    kind = next(iter(kinds), str)
    if len(kinds) <= 1 and _is_exact(kind, values):
        return pyarrow.array(values, _TYPES[kind](pyarrow))
    return pyarrow.array(_mapped(_text, values), pyarrow.string())


def _mapped(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    return [None if value is None else function(value) for value in values]


_TYPES: Mapping[type, Callable[[Any], Any]] = {
    bool: lambda pyarrow: pyarrow.bool_(),
    int: lambda pyarrow: pyarrow.int64(),
    float: lambda pyarrow: pyarrow.float64(),
    Decimal: lambda pyarrow: None,
    datetime: lambda pyarrow: pyarrow.timestamp("us", "UTC"),
    date: lambda pyarrow: pyarrow.date32(),
    time: lambda pyarrow: pyarrow.time64("us"),
    timedelta: lambda pyarrow: pyarrow.duration("us"),
    bytes: lambda pyarrow: pyarrow.binary(),
    str: lambda pyarrow: pyarrow.string(),
}
"""The types of Arrow by those of Python. That of decimals has as many digits as they have."""
_MAX_DECIMAL_DIGITS = 76


def _is_exact(kind: type, values: Sequence[Any]) -> bool:
    """Returns whether the type of Arrow holds values of one type of Python as they are."""
    existing = [value for value in values if value is not None]
    if kind is int:
        return all(LONG[0] <= value <= LONG[1] for value in existing)
    if kind is time:
        return not any(value.tzinfo for value in existing)
    if kind is Decimal:
        before_point = max(value.adjusted() + 1 for value in existing)
        behind_point = max(-int(value.as_tuple().exponent) for value in existing)
        return bool(max(before_point, 0) + max(behind_point, 0) <= _MAX_DECIMAL_DIGITS)
    return True


def _text(value: Any) -> str:
    """Returns the lexical form of a value; a text is itself."""
    return value if isinstance(value, str) else text(to_term(value))


def _html_row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _html_cells(output: Output[Any], names: Sequence[str], is_one_query: bool) -> Iterator[str]:
    values = _columns(output.fact)
    shown = "always" if output.time == ALWAYS else text(date_time(output.time))
    yield from (shown, *(() if is_one_query else (output.rule,)))
    yield from ("" if values.get(name) is None else str(values[name]) for name in names)


def _missing(library: str) -> UsageError:
    return UsageError(f"this needs `{library}`, which is not installed", hint=install_hint("squall[frames]"))
