"""A plan as a transform of a user's own pipeline: from a collection of events, or of rows, to one of outputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow

from squall import functions
from squall.builders.beam.beam_import import beam
from squall.builders.beam.graph import graph
from squall.builders.beam.pipeline import ANSWERS, Group, GroupSink, KeyedPipeline, Routes, add_whole_plan
from squall.builders.beam.serialized_program import SerializedPlan
from squall.builders.distributed.exec.sharded_plan import ShardedProgress, ShardTask
from squall.builders.distributed.io.parsing import Document, Parse, lines_parser, spool_lines
from squall.builders.distributed.io.records import ROW, from_arrow
from squall.builders.distributed.io.records import WorkerStep as Worker
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.runtime.serde import unpack_output
from squall.contracts import Options, Output
from squall.errors import ArgumentError, BuilderError
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED, with_seed
from squall.rdf import ALWAYS, Event
from squall.streams.mappings.model import Mapping as RecordMapping
from squall.streams.sources.dataframes import UNITS, RowReader, mapping_of, row_reader

DEAD_LETTERS = "dead-letters"
"""The tag of elements that cannot be used."""
_ROW = ("subject", "predicate", "object", "graph")
_LOST = "lost"
_LEAST, _MOST = beam.utils.timestamp.MIN_TIMESTAMP, beam.utils.timestamp.MAX_TIMESTAMP
_LEAST_MS, _MOST_MS = _LEAST.micros // 1000, _MOST.micros // 1000
"""The times that Beam has (integer ms). An element without a time has the least one."""
logger = logging.getLogger("squall")


class Squall(beam.PTransform):  # type: ignore[misc]
    """``collection | Squall(plan)`` runs a plan over a bounded collection, and gives a collection of `squall.Output`.

    Elements are `squall.Event`s; or rows (dictionaries, named tuples, rows of Beam), to which a mapping applies as to
    those of `squall.from_dataframe`; or rows of a triple each: ``subject``, ``predicate``, ``object``, and optionally
    ``graph`` and ``time``, such as those of `ReadEvents`. A row without a time in it has that of its element; elements
    without one always hold. The order of elements has no meaning, and no event is late.

    Outputs are those of every builder, without an order; each has its time as the timestamp. They are in the global
    window: windows are those of the program, and those of the collection are left out. An element that cannot be used
    is logged (``squall``) and counted (the metric ``dead_letters``); `with_dead_letters` gives a collection of them.

    Args:
        plan: The plan.
        map: The mapping of rows: a file, or a text in the short form or in RML.
        time: The field of the time, if the mapping names none.
        unit: The unit of times that are numbers: ``ms`` or ``s``.
        stream: The IRI of the stream of rows.
        static: Events whose facts always hold.
        options: Options of the run; `seed`, `now`, `max_update_steps` are used.
        with_dead_letters: Whether the result has two collections: `outputs`, and `dead_letters` of texts.

    Raises:
        ArgumentError: An argument is not what it has to be.
        UsageError: The mapping cannot be read.
        BuilderError: The collection is unbounded.
    """

    def __init__(
        self,
        plan: Plan,
        map: str | Path | RecordMapping | None = None,
        *,
        time: str | None = None,
        unit: str = "ms",
        stream: str = "",
        static: Iterable[Event] = (),
        options: Options | None = None,
        with_dead_letters: bool = False,
    ) -> None:
        super().__init__()
        _check_plan(plan)
        self.static = tuple(event._replace(time=ALWAYS) for event in static)
        self.with_dead_letters = with_dead_letters
        self.options = options or Options()
        self.plan = plan
        self.reader = _row_reader(map, time, unit, stream)

    def expand(self, elements: Any) -> Any:
        if not elements.is_bounded:
            hint = "`squall run --builder beam` runs live sources"
            raise BuilderError("an unbounded collection has no end, at which its outputs are known", hint=hint)
        whole = elements | "in one window" >> beam.WindowInto(beam.window.GlobalWindows())
        step = beam.ParDo(_AsLines(self.reader)).with_outputs(DEAD_LETTERS, main="lines")
        rows = whole | "events" >> step
        lines: Any = [rows["lines"]]
        static_lines = [line for event in self.static for line in spool_lines(event)]
        if static_lines:
            lines.append(elements.pipeline | "static data" >> beam.Create(static_lines))
        outputs = self._outputs(elements.pipeline, lines | "lines" >> beam.Flatten(), rows["lines"])
        return (outputs, rows[DEAD_LETTERS]) if self.with_dead_letters else outputs

    def _outputs(self, root: Any, lines: Any, timed_lines: Any) -> Any:
        options = self.options
        plan = with_seed(self.plan, FIXED_SEED if options.seed is None else options.seed)
        begin = options.now or 0  # event time begins at the epoch, as in process
        program = SerializedPlan(physical_plan(plan, in_one_job=True), functions.own(), begin)
        steps, collection = graph(program.physical), _CollectionInput(lines)
        if not program.physical.strategy.is_staged:
            task = ShardTask(program, ShardedProgress(), options.max_update_steps, first=True, last=True)
            return _flattened(add_whole_plan(root, steps, program, collection, task))
        pipeline = KeyedPipeline(root, steps, program, collection)
        pipeline.build()
        # No time passes without events: what static data begin later does not begin.
        count = beam.pvalue.AsSingleton(timed_lines | "number of lines" >> beam.combiners.Count.Globally())
        return _flattened(pipeline.emitted) | "begun" >> beam.Filter(_has_begun, count)


@dataclass(frozen=True)
class _CollectionInput:
    """The input of a pipeline: lines of events in a collection."""

    lines: Any

    @property
    def parse(self) -> Parse:
        return lines_parser((Document("events", spooled=True),))

    def read(self, root: Any, name: str, worker: Worker, routes: Routes) -> Any:
        batches = self.lines | f"{name}: batches" >> beam.BatchElements(min_batch_size=100, max_batch_size=10_000)
        read = beam.FlatMap(lambda lines: routes(worker(iter([_batch_of(lines)]))))
        return batches | name >> read.with_outputs(*routes.all)

    def sink(self, kind: str) -> GroupSink:
        return _emitting if kind == ANSWERS else _ignoring


def _flattened(collections: list[Any]) -> Any:
    return collections | "outputs" >> beam.Flatten()


def _emitting(worker: Callable[[Iterable[bytes]], Iterable[pyarrow.RecordBatch]]) -> Callable[[Group], Iterator[Any]]:
    def emit(group: Group) -> Iterator[Any]:
        for record in from_arrow(worker(group[1])):
            if record.type == ROW:
                output = unpack_output(record.row, record.start)
                yield beam.window.TimestampedValue(output, _timestamp(output.time))
            else:
                logger.warning("a dead letter of the run: %s", record.row)

    return emit


def _ignoring(worker: Callable[[Iterable[bytes]], Iterable[pyarrow.RecordBatch]]) -> Callable[[Group], Iterator[Any]]:
    return lambda group: iter(())


def _has_begun(output: Output[Any], count: int) -> bool:
    return output.time == ALWAYS or count > 0


def _timestamp(time: int) -> Any:
    return beam.utils.timestamp.Timestamp(micros=min(max(time, _LEAST_MS), _MOST_MS) * 1000)


def _batch_of(lines: list[str]) -> pyarrow.RecordBatch:
    count = len(lines)
    columns = {"value": pyarrow.array([line.encode() for line in lines], pyarrow.binary()), "file": ["events"] * count}
    return pyarrow.RecordBatch.from_pydict({**columns, "block": [0] * count, "source": [0] * count})


def _row_reader(map: Any, time: str | None, unit: str, stream: str) -> RowReader:
    if map is None:
        names = (*_ROW, time or "time")
        return row_reader(names, None, time or "time", unit, stream, "collection")
    if unit not in UNITS:
        raise ArgumentError(f"`unit={unit!r}` is no unit of time", hint="units: `ms` and `s`")
    mapping = mapping_of(map)
    names = (*mapping.fields(), *((time,) if time else ()))
    return row_reader(names, mapping, time, unit, stream, "collection")


def _check_plan(plan: Any) -> None:
    if not isinstance(plan, Plan):
        hint = "compile and plan it first: `squall.plan(squall.compile(program))`"
        raise ArgumentError(f"the plan is a Plan, and not a {type(plan).__name__}", hint=hint)


@beam.typehints.with_output_types(str)
class _AsLines(beam.DoFn):  # type: ignore[misc]
    """Yields the events of elements as lines, and the elements that cannot be used."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._count = beam.metrics.Metrics.counter("squall", "dead_letters")

    def process(self, element: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        if isinstance(element, Event):
            yield from spool_lines(element)
            return
        time = timestamp.micros // 1000
        reason = self._reason_of(element)
        events: Iterable[Event] = ()
        if not reason:
            events, reason = self._events(_fields(element), ALWAYS if time <= _LEAST_MS else time)
        for event in events:
            yield from spool_lines(event)
        if reason:
            self._count.inc()
            logger.warning("an element cannot be used: %s", reason)
            yield beam.pvalue.TaggedOutput(DEAD_LETTERS, reason)

    def _reason_of(self, element: Any) -> str:
        if _fields(element) is None:
            return f"a {type(element).__name__} is no event and no row: {element!r}"
        lost = _fields(element).get(_LOST) if self._reader.records is None else None
        return str(lost) if lost else ""

    def _events(self, fields: Mapping[str, Any], time: int) -> tuple[Iterable[Event], str]:
        reader = self._reader
        time_field = reader.names[-1] if reader.records is None else ""
        if not reader.is_timed or (time_field and fields.get(time_field) is None):
            reader = replace(reader, time=time)
        events, bad = reader.events({name: [fields.get(name)] for name in self._reader.names} or {"": [None]})
        return events, f"{bad[0][1]}: {bad[0][2]}" if bad else ""


def _fields(element: Any) -> Any:
    """Returns the fields of a row; None if it is none."""
    if isinstance(element, Mapping):
        return element
    as_dict = getattr(element, "_asdict", None) or getattr(element, "as_dict", None)
    return as_dict() if as_dict is not None else None
