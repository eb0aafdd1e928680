"""Outputs of a plan as a batch or streaming DataFrame (docs/spark.md, "DataFrames")."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from squall.builders.distributed.io.ingest import is_live
from squall.builders.spark.job import build
from squall.builders.spark.result_frame import check_types, check_values, shape, types_of_values
from squall.builders.spark.result_frame import typed as as_typed
from squall.builders.spark.session import passing_folder, session
from squall.builders.spark.settings import spark_settings
from squall.builders.spark.sources import check_input, is_frame, mapped_source
from squall.builders.spark.store import pattern_of, uri_of
from squall.contracts import Job, Options
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import Event
from squall.streams import Source, Sources
from squall.streams.sinks.folders import FolderSink
from squall.streams.sources.dataframes import row_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

THREAD = "squall-dataframe"
"""The name of the threads that run the jobs behind streaming DataFrames."""
logger = logging.getLogger("squall")


def to_dataframe(
    plan: Plan,
    batches: Iterable[Sequence[Event]] | Source | DataFrame,
    static: Iterable[Event] = (),
    options: Options | None = None,
    typed: Mapping[str, str] | bool = True,
) -> DataFrame:
    """Returns the outputs of a plan as a DataFrame.

    The columns are the variables of its query, or ``subject``, ``predicate``, ``object`` and ``graph`` of derived
    facts; then ``time`` (a timestamp; null for what always holds) and ``place``, then ``rule``, unless all
    outputs are answers of one query, and of an output by `changes` ``change`` (``insert`` or ``delete``).

    Bounded input (a list of batches, or `Sources` none of which is live) is processed by this call, and the DataFrame
    is a batch one. Otherwise it is a streaming DataFrame. A job behind it runs until its sources end or its query (in
    ``spark.streams``) is stopped. Output is exactly-once, also after a restart from the same checkpoint. The job writes
    into the folder ``answers`` of the checkpoint, or into a temporary one that lasts as long as this process. It logs
    its failures to the logger ``squall``.

    Args:
        plan: the plan.
        batches: its input: a DataFrame with a triple in each row, a source (`squall.from_dataframe`, with a mapping),
            `Sources`, or batches of events.
        static: facts that always hold.
        options: the options of the job; they must not have a sink.
        typed: True: columns have the types of their values, as those of `squall.Results.to_arrow`; of a streaming
            DataFrame, whose types have to be known before, they are lexical forms. A mapping gives the types of
            variables, by Spark's names; ``*`` is the type of all others, which are strings without it. False: a term
            is a struct (lexical, datatype, language).

    Raises:
        ArgumentError: the DataFrame has no columns of triples and times, or `static` is one.
        BuilderError: the plan's queries have different columns, or `typed` names a column that does not exist, or a
            value is not of the type that it names.
    """
    inputs = _sources_of(batches)
    check_input(inputs, static)
    options = options or Options()
    if options.sink is not None:
        raise BuilderError("a DataFrame is a sink itself", hint="leave `sink` out of the options")
    columns = shape(plan)
    types = typed if isinstance(typed, Mapping) else {}
    check_types(columns, types)
    folder = (options.checkpoint or passing_folder()) / "answers"
    folder.mkdir(parents=True, exist_ok=True)
    job = build(plan, replace(options, sink=FolderSink(str(folder), folder, "parquet")))
    spark = session(spark_settings(options.conf))
    live = is_live(inputs)
    run_job = partial(_run_job, job, inputs, static)
    if live:
        threading.Thread(target=_log_failure, args=(run_job,), name=THREAD, daemon=True).start()
    else:
        run_job()
    reader = (spark.readStream if live else spark.read).schema(columns.schema).option("recursiveFileLookup", "true")
    frame = reader.parquet(pattern_of(uri_of(folder)))
    if typed is True and not live:
        types = types_of_values(frame, columns)
    elif types and not live:
        check_values(frame, columns, types)
    result = frame if typed is False else as_typed(frame, columns, types)
    return result.selectExpr(
        *(f"timestamp_millis(time) as {name}" if name == "time" else f"`{name}`" for name in result.columns)
    )


def _sources_of(batches: Any) -> Iterable[Sequence[Event]]:
    """Returns the sources of a DataFrame or of a single source; anything else is itself."""
    if is_frame(batches):
        reader = row_reader(batches.columns, None, None, "ms", "", "DataFrame")
        return Sources([mapped_source(batches, reader, strict=False)])
    events: Iterable[Sequence[Event]] = Sources([batches]) if isinstance(batches, Source) else batches
    return events


def _run_job(job: Job, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> None:
    deque(job.run(batches, static), maxlen=0)


def _log_failure(run_job: Callable[[], None]) -> None:
    """Runs a job and logs its failure: no other thread waits for its result."""
    try:
        run_job()
    except Exception:
        logger.exception("the job behind a DataFrame has failed")
