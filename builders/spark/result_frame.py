"""Outputs of a plan as a DataFrame, with a column for each variable of a query, or for each term of a fact."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow

from squall.builders.distributed.io.records import WorkerError, from_arrow
from squall.builders.distributed.io.task_output import OUTPUT_ORDER
from squall.builders.runtime.serde import unpack_output
from squall.contracts import Output
from squall.errors import BuilderError, did_you_mean
from squall.functions.values import NUMERIC
from squall.plan import Plan
from squall.plan.answers import is_one_query, output_nodes
from squall.plan.operators import Select
from squall.rdf import ALWAYS, XSD, Atom, Boolean, Evaluated, Quad, Solution, Term, iri_text, is_blank, is_iri, parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FACT = ("subject", "predicate", "object", "graph")
"""The columns of facts; `graph` is null in the default graph."""
TERM = "struct<lexical: string, datatype: string, language: string>"
"""The type of a term. An IRI or blank node (``_:b``) has a null datatype; a plain literal has xsd:string."""
EVERY = {"time": "long", "place": "int", "rule": "string"}
"""The columns of every output: its time (integer ms, null for what always holds); its position, from 1 on, among the
ordered outputs of its time, else 0; its rule, unless all are answers of one query."""
CHANGE = {"change": "string"}
"""The column behind these of outputs by `changes`: ``insert`` or ``delete``."""
_TERM = pyarrow.struct([(name, pyarrow.string()) for name in ("lexical", "datatype", "language")])


@dataclass(frozen=True)
class Shape:
    """The columns of a plan's outputs: those in `names`, each a term, then those of `EVERY`, and of `CHANGE`.

    Attributes:
        names: the names of the columns of terms.
        asks: whether the only column is the boolean answer of an ASK query.
        changes: whether the outputs are insertions and deletions (`changes`).
        is_one_query: whether all of them are answers of one query, so that there is no column `rule`.
    """

    names: tuple[str, ...]
    asks: bool = False
    changes: bool = False
    is_one_query: bool = False

    @property
    def common(self) -> dict[str, str]:
        """The columns that do not depend on the query, and their types."""
        columns = {**EVERY, **(CHANGE if self.changes else {})}
        return {name: type for name, type in columns.items() if name != "rule" or not self.is_one_query}

    @property
    def schema(self) -> str:
        """The schema as Spark's DDL."""
        kind = "boolean" if self.asks else TERM
        cells = (f"`{name}` {kind}" for name in self.names)
        return ", ".join([*cells, *(f"{name} {kind}" for name, kind in self.common.items())])

    def cells(self, output: Output) -> tuple[Any, ...]:
        """Returns the cells of an output in the columns of `names`. Raises BuilderError for an atom."""
        answer = output.fact
        match answer:
            case Boolean(value=value):
                return (value,)
            case Solution(values=values):
                return tuple(map(_cell, values))
            case Atom():
                hint = "have a query or a rule make triples of it"
                raise BuilderError(f"`{output.rule}` makes `{answer}`, which has no columns", hint=hint)
            case Quad():
                return tuple(map(_cell, answer))
        assert not isinstance(answer, Evaluated)
        return (*map(_cell, answer), None)


def shape(plan: Plan) -> Shape:
    """Returns the columns of a plan's outputs.

    Raises:
        BuilderError: the plan's programs have different columns, or two columns have the same name to Spark.
    """
    shapes = {
        replace(_shape(plan, end), changes=op.output == "changes", is_one_query=is_one_query(plan))
        for node, op in plan.sinks
        for end in output_nodes(plan, node.id)
    }
    if len(shapes) != 1:
        raise BuilderError(
            f"a DataFrame has the columns of one query: {' and '.join(sorted(map(_shape_text, shapes)))} differ",
            hint="make a plan for each of them",
        )
    columns = shapes.pop()
    names = list(columns.common)
    for name in columns.names:
        if name.lower() in names:
            raise BuilderError(f"there would be two columns `{name}`", hint="give the variable another name (`AS`)")
        names.append(name.lower())
    return columns


def _shape(plan: Plan, id: str) -> Shape:
    match plan.by_id[id].op:
        case Select(ask=True):
            return Shape(("boolean",), asks=True)
        case Select(names=names):
            return Shape(names)
    return Shape(FACT)


def _shape_text(shape: Shape) -> str:
    change = (*CHANGE,) if shape.changes else ()
    return f"({', '.join((*shape.names, *change))})"


def is_ordered(plan: Plan) -> bool:
    """Returns whether a plan's outputs have an order."""
    ends = (end for node, op in plan.sinks if op.output == "rstream" for end in output_nodes(plan, node.id))
    return any(isinstance(op := plan.by_id[id].op, Select) and op.order for id in ends)


def numbered(answers: DataFrame) -> DataFrame:
    """Adds to records of outputs their position among those of the same time (`weight`). Spark's tasks sort each time
    separately."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    number = f.row_number().over(Window.partitionBy("start", "node").orderBy(*OUTPUT_ORDER))
    return answers.withColumn("weight", f.when(f.length("spans") > 0, number).otherwise(0).cast("int"))


def frame(answers: DataFrame, columns: Shape) -> DataFrame:
    """Converts records of outputs into columns."""

    def step(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            try:
                yield _batch(batch, columns)
            except BuilderError as error:
                raise WorkerError(error) from None

    return answers.mapInArrow(step, columns.schema)


def _batch(batch: pyarrow.RecordBatch, columns: Shape) -> pyarrow.RecordBatch:
    rows: list[tuple[Any, ...]] = []
    for record in from_arrow([batch]):
        output = unpack_output(record.row, record.start)
        if not isinstance(output.fact, Evaluated):
            time = None if output.time == ALWAYS else output.time
            rule = () if columns.is_one_query else (output.rule,)
            change = (output.change,) if columns.changes else ()
            rows.append((*columns.cells(output), time, record.weight, *rule, *change))
    kinds = [pyarrow.bool_() if columns.asks else _TERM for _ in columns.names]
    kinds += [pyarrow.int64(), pyarrow.int32(), *([pyarrow.string()] * (len(columns.common) - 2))]
    arrays = [pyarrow.array([row[number] for row in rows], type=kind) for number, kind in enumerate(kinds)]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[*columns.names, *columns.common])


def _cell(term: Term | None) -> dict[str, str | None] | None:
    if term is None:
        return None
    if is_iri(term):
        return {"lexical": iri_text(term), "datatype": None, "language": None}
    if is_blank(term):
        return {"lexical": term, "datatype": None, "language": None}
    lexical, datatype, language = parts(term)
    return {"lexical": lexical, "datatype": datatype, "language": language or None}


OTHERS = "*"
"""Stands for all variables without a type of their own."""
TYPES = ("string", "boolean", "int", "long", "float", "double", "decimal", "date", "timestamp")
"""The types that columns can have, by Spark's names. ``decimal`` may have digits: ``decimal(38, 18)``."""


def check_types(columns: Shape, types: Mapping[str, str]) -> None:
    """Raises BuilderError for a name that is no column, or a type that no column can have."""
    for name, type in types.items():
        if name not in (*columns.names, OTHERS):
            raise BuilderError(f"there is no column `{name}` to be typed", hint=did_you_mean(name, columns.names))
        if not re.fullmatch(rf"({'|'.join(TYPES)})|decimal\(\d+, ?\d+\)", type):
            raise BuilderError(f"a column cannot have the type `{type}`", hint=f"types: {', '.join(TYPES)}")


def typed(answers: DataFrame, columns: Shape, types: Mapping[str, str]) -> DataFrame:
    """Replaces terms by plain values, cast from their lexical forms. A value that is not of the type fails the job.

    Args:
        answers: the outputs, with whole terms.
        columns: their columns.
        types: the type of each column by its name, or of `OTHERS`; a column without either is a string.
    """
    from pyspark.sql import functions as f

    if columns.asks:
        return answers
    default_type = types.get(OTHERS, "string")
    return answers.withColumns(
        {name: _plain(f.col(f"`{name}`"), name, types.get(name, default_type)) for name in columns.names}
    )


def _plain(cell: Column, name: str, type: str) -> Column:
    from pyspark.sql import functions as f

    lexical = cell["lexical"]
    if type == "string":
        return lexical
    value = _cast(lexical, type)
    wrong = WorkerError.text(_wrong_value(name, type))
    return f.when(lexical.isNull() | value.isNotNull(), value).otherwise(f.raise_error(f.lit(wrong)))


def _wrong_value(name: str, type: str) -> BuilderError:
    hint = f"have the query answer with what is, or `{name}=string`"
    return BuilderError(f"a value of `{name}` is no {type}", hint=hint)


def _cast(lexical: Column, type: str) -> Column:
    """Returns the value of a lexical form, null if it has none of the type. Times without a zone are in UTC."""
    from pyspark.sql import functions as f

    if type == "timestamp":
        has_zone = lexical.rlike("(Z|[+-][0-9]{2}:[0-9]{2})$")
        lexical = f.when(has_zone, lexical).otherwise(f.concat(lexical, f.lit("Z")))
    return lexical.try_cast(type)


def check_values(answers: DataFrame, columns: Shape, types: Mapping[str, str]) -> None:
    """Checks that all values of a batch DataFrame have the types that `typed` is given.

    Raises:
        BuilderError: A value has another type.
    """
    from pyspark.sql import functions as f

    type_by_name = {name: types.get(name, types.get(OTHERS, "string")) for name in columns.names}
    names = [name for name, type in type_by_name.items() if type != "string" and not columns.asks]
    if not names:
        return
    lexical = {name: f.col(f"`{name}`")["lexical"] for name in names}
    wrong = [f.bool_or(lexical[name].isNotNull() & _cast(lexical[name], type_by_name[name]).isNull()) for name in names]
    for name, is_wrong in zip(names, answers.agg(*wrong).first() or (), strict=True):
        if is_wrong:
            raise _wrong_value(name, type_by_name[name])


_DECIMAL_TYPE = "decimal(38,18)"
_INTEGERS = frozenset(
    name for name in NUMERIC if name not in (f"{XSD}{other}" for other in ("decimal", "float", "double"))
)
_CANDIDATES: tuple[tuple[str, frozenset[str], str], ...] = (
    ("long", _INTEGERS, ".*"),
    (_DECIMAL_TYPE, _INTEGERS | {f"{XSD}decimal"}, r"[^.]*(\.[0-9]{0,18})?"),
    ("double", frozenset(NUMERIC), ".*"),
    ("boolean", frozenset((f"{XSD}boolean",)), "true|false|1|0"),
    ("timestamp", frozenset((f"{XSD}dateTime", f"{XSD}dateTimeStamp")), r"[^.]*(\.[0-9]{0,6})?(Z|[+-][0-9:]+)?"),
    ("date", frozenset((f"{XSD}date",)), "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
)
"""The types that columns get by their values: the datatypes that they are for, and the form of texts that they hold as
they are. The first that fits all values is taken."""


def types_of_values(answers: DataFrame, columns: Shape) -> dict[str, str]:
    """Returns the types of the columns of a batch DataFrame: the first that holds all values exactly, else string.

    Numbers of several types are doubles if one is a double, and else decimals.
    """
    from pyspark.sql import functions as f

    if columns.asks:
        return {}
    fits = []
    for name in columns.names:
        cell = f.col(f"`{name}`")
        for type, datatypes, form in _CANDIDATES:
            is_of_type = cell["datatype"].isin(*sorted(datatypes)) & cell["lexical"].rlike(f"^({form})$")
            fits.append(
                f.bool_and(
                    f.when(
                        cell.isNotNull(),
                        f.coalesce(is_of_type & _cast(cell["lexical"], type).isNotNull(), f.lit(False)),
                    )
                )
            )
    flags: Sequence[bool | None] = answers.agg(*fits).first() or ()
    types: dict[str, str] = {}
    for number, name in enumerate(columns.names):
        own_flags = flags[number * len(_CANDIDATES) :]
        types[name] = next((type for (type, *_), fit in zip(_CANDIDATES, own_flags, strict=False) if fit), "string")
    return types
