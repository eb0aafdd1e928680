"""The answers of a plan as a DataFrame, batch or streaming (docs/spark.md, "DataFrames")."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from squall.builders.distributed.io.ingest import is_live
from squall.builders.spark.result_frame import check_types, shape
from squall.builders.spark.result_frame import typed as as_typed
from squall.builders.spark.session import passing_folder
from squall.builders.spark.settings import others
from squall.builders.spark.store import pattern_of, uri_of
from squall.contracts import Job, Options
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import Event
from squall.streams.sinks.folders import FolderSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

THREAD = "squall-dataframe"
"""The name of the threads of jobs behind streaming DataFrames."""
logger = logging.getLogger("squall")


def to_dataframe(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static: Iterable[Event] = (),
    options: Options | None = None,
    typed: Mapping[str, str] | bool = False,
) -> DataFrame:
    """The answers of a plan as a DataFrame: a column for each variable of its query, or ``subject``, ``predicate``,
    ``object`` and ``graph`` of what rules make; and ``time`` (integer ms; null for what always holds) and ``rule``.

    A list of batches, and `Sources` none of which is live, are worked off by this call; the DataFrame has what came of
    it. Otherwise a streaming DataFrame is given, and a job of its own goes on behind it until its sources end or its
    query (in ``spark.streams``) is stopped; each answer is in it once, also after a restart with the same checkpoint.
    What it reads lies in the folder ``answers`` of the checkpoint; without one, until this process ends. What goes
    wrong in that job is logged (``squall``).

    typed: False: a term is a struct (lexical, datatype, language). True: it is its lexical form. A mapping says the
    types of variables, by Spark's names (``*``: of all others, which are strings otherwise).

    Raises BuilderError where the plan answers in different columns, or `typed` names none of them.
    """
    from squall.builders.spark import build, session

    options = options or Options()
    if options.sink is not None:
        raise BuilderError("a DataFrame is a sink itself", hint="leave `sink` out of the options")
    columns = shape(plan)
    types = None if typed is False else {} if typed is True else typed
    check_types(columns, types or {})
    folder = (options.checkpoint or passing_folder()) / "answers"
    folder.mkdir(parents=True, exist_ok=True)
    job = build(plan, replace(options, sink=FolderSink(str(folder), folder, "parquet")))
    spark = session(others(options.conf))
    live = is_live(batches)
    work = partial(_work, job, batches, static)
    if live:
        threading.Thread(target=_watched, args=(work,), name=THREAD, daemon=True).start()
    else:
        work()
    reader = (spark.readStream if live else spark.read).schema(columns.schema).option("recursiveFileLookup", "true")
    frame = reader.parquet(pattern_of(uri_of(folder)))
    return frame if types is None else as_typed(frame, columns, types)


def _work(job: Job, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> None:
    deque(job.run(batches, static), maxlen=0)


def _watched(work: Callable[[], None]) -> None:
    """For a thread of its own: nobody waits for what goes wrong there."""
    try:
        work()
    except Exception:
        logger.exception("the job behind a DataFrame has failed")
